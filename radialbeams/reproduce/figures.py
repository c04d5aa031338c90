"""The common style of the figures: readable at column width, colours for colour-blind readers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator
from PIL import Image

from radialbeams.files import write_whole

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, BLACK = COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
GREY = "#7F7F7F"
MARKERS = "osD^vPX"

COLUMN, PAGE = 3.35, 6.9  # inches: one column of a paper, and both
DPI = 200
QUICK_STRIP = 0.16  # inches
QUICK_MARK = "quick settings: little data, few steps; not a result"

# Attributes of an SVG with places in points, and numbers with digits that nobody can see.
PLACES = re.compile(r'(?<= )(?:d|x|y|points)="[^"]*"')
DIGITS = re.compile(r"-?\d+\.\d{3,}")

STYLE: Any = {
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "image.interpolation": "nearest",
    "svg.fonttype": "none",
    "svg.hashsalt": "radialbeams",  # the same file from the same data
}


def style() -> AbstractContextManager[None]:
    return matplotlib.rc_context(STYLE)


def new(width: float = COLUMN, height: float = 2.4) -> Figure:
    """An empty figure of this size in inches; `.subplots()` adds axes."""
    return Figure(figsize=(width, height), layout="constrained")


def picture(axes: Axes) -> None:
    """Prepares axes for an image: no ticks, no frame, no grid."""
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def label_ends(axes: Axes, room: float = 0.3, gap: float = 0.075) -> None:
    """Writes the label of each line at its right end, in its colour and without overlap.

    `room` is the share of the axes' width that is reserved for the labels, `gap` the minimum
    distance between two labels as a share of the height.
    """
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    low, high = axes.get_xlim()
    across, up = axes.transLimits, axes.transScale
    ends = []
    for line in lines:
        x, y = (np.asarray(values, dtype=float) for values in line.get_data())
        finite = np.isfinite(x) & np.isfinite(y)
        x, y = x[finite], y[finite]
        if len(x):
            end_point = across.transform(up.transform((x[-1], y[-1])))
            ends.append((float(end_point[1]), float(end_point[0]), line))
    places = _apart([end[0] for end in ends], gap)
    scale = 1 / (1 - room)
    for (y_end, x_end, line), place in zip(ends, places, strict=True):
        axes.annotate(
            str(line.get_label()),
            (x_end / scale, y_end),
            xytext=(x_end / scale + 0.035, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=line.get_color(),
            fontsize=7,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": line.get_color(), "lw": 0.4, "shrinkB": 1},
        )
    if axes.get_xscale() == "log":
        axes.set_xlim(low, low * (high / low) ** scale)
    else:
        axes.set_xlim(low, low + (high - low) * scale)


def _apart(values: Sequence[float], gap: float) -> list[float]:
    """The values, moved as little as necessary to be at least `gap` apart."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    groups: list[list[int]] = []

    def centres(group: list[int]) -> list[float]:
        middle = sum(values[i] for i in group) / len(group)
        return [middle + (k - (len(group) - 1) / 2) * gap for k in range(len(group))]

    for i in order:
        groups.append([i])
        while len(groups) > 1 and centres(groups[-1])[0] - centres(groups[-2])[-1] < gap:
            last = groups.pop()
            groups[-1] += last
    placed = [0.0] * len(values)
    for group in groups:
        for i, place in zip(group, centres(group), strict=True):
            placed[i] = place
    return placed


def band(
    axes: Axes,
    steps: Sequence[float],
    curve: Mapping[str, Sequence[float]],
    colour: str,
    linestyle: str,
    middle: str = "mean",
) -> None:
    """Draws the mean or median over seeds, and a band from the lowest to the highest."""
    axes.fill_between(steps, curve["low"], curve["high"], color=colour, alpha=0.2, lw=0)
    axes.plot(steps, curve[middle], linestyle, color=colour, lw=1.2)


def plain_log(axis: Axis) -> None:
    """Labels a logarithmic axis with numbers such as 0.2, 0.5, 1 instead of powers."""
    low, high = axis.get_view_interval()
    steps = (1, 2, 5) if high / low > 8 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    ticks = [step * 10.0**power for power in range(-6, 4) for step in steps]
    visible = [tick for tick in ticks if low <= tick <= high]
    axis.set_major_locator(FixedLocator(visible))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")


def degrees_axis(axes: Axes) -> None:
    """Adds an axis on the right with the circle loss in paper-equivalent degrees."""

    def degrees(loss: Any) -> Any:
        return np.degrees(np.arccos(np.clip(1 - np.asarray(loss) / 2, -1, 1)))

    def loss(angle: Any) -> Any:
        return 2 - 2 * np.cos(np.radians(np.clip(angle, 0.01, 180)))

    right = axes.secondary_yaxis("right", functions=(degrees, loss))
    low, high = (float(degrees(value)) for value in axes.get_ylim())
    steps = (0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 180)
    right.yaxis.set_major_locator(FixedLocator([step for step in steps if low <= step <= high]))
    right.yaxis.set_minor_locator(NullLocator())
    right.yaxis.set_major_formatter("{x:g}°")
    right.set_ylabel("paper-equivalent error")
    right.spines["right"].set_visible(True)


def legend_above(figure: Figure, colours: Mapping[str, str], linestyles: Mapping[str, str]) -> None:
    """Adds one legend of colours and line styles above all panels."""
    lines = [Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
    lines += [
        Line2D([], [], color="0.3", ls=linestyle, label=name)
        for name, linestyle in linestyles.items()
    ]
    figure.legend(handles=lines, loc="outside upper center", ncols=len(lines))


def save(figure: Figure, stem: Path, *, quick: bool) -> list[Path]:
    """Writes STEM.png and STEM.svg and returns their paths; quick settings are marked on both."""
    if quick:
        figure.text(
            0.995,
            0.005,
            QUICK_MARK,
            ha="right",
            va="bottom",
            fontsize=6.5,
            color="white",
            bbox={"facecolor": ORANGE, "edgecolor": "none", "pad": 1.5},
        )
        engine = figure.get_layout_engine()
        if isinstance(engine, ConstrainedLayoutEngine):  # reserves room for the mark
            strip = QUICK_STRIP / figure.get_figheight()
            engine.set(rect=(0, strip, 1, 1 - strip))
    png, svg = (stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "svg"))
    write_whole(png, partial(_save_png, figure))
    write_whole(svg, partial(_save_svg, figure))
    return [png, svg]


def _save_svg(figure: Figure, path: Path) -> None:
    drawn = StringIO()
    figure.savefig(drawn, format="svg", dpi=DPI, metadata={"Date": None})
    path.write_text(rounded_places(drawn.getvalue()), encoding="utf-8")


def rounded_places(svg: str) -> str:
    """The same drawing with places to a hundredth of a point: a third of the digits fewer."""

    def attribute(match: re.Match[str]) -> str:
        return DIGITS.sub(lambda number: f"{float(number[0]):.2f}", match[0])

    return PLACES.sub(attribute, svg)


def _save_png(figure: Figure, path: Path) -> None:
    """Writes a palette of 256 colours: a third of the size, and no visible difference."""
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=DPI, metadata={"Software": None})
    with Image.open(drawn) as image:
        reduced = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    reduced.save(path, format="PNG", optimize=True)
