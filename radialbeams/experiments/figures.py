"""The common look of the figures: readable at the width of a column, colours for every eye."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from radialbeams.training.weights import write_whole

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
DPI = 220
QUICK_STRIP = 0.16  # inches
QUICK_MARK = "quick settings: little data, few steps; not a result"

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
    """An empty figure of so many inches; `.subplots()` gives its axes."""
    return Figure(figsize=(width, height), layout="constrained")


def picture(axes: Axes) -> None:
    """Axes for an image: no ticks, no frame, no grid."""
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def label_ends(axes: Axes, room: float = 0.3, gap: float = 0.075) -> None:
    """Writes each line's label at its right end in its colour, kept apart; no legend needed.

    `room` is the share of the axes' width that is left free for the labels, `gap` the least
    distance between two of them as a share of the height.
    """
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    low, high = axes.get_xlim()
    across, up = axes.transLimits, axes.transScale
    ends = []
    for line in lines:
        x, y = (np.asarray(values, dtype=float) for values in line.get_data())
        keep = np.isfinite(x) & np.isfinite(y)
        x, y = x[keep], y[keep]
        if len(x):
            at = across.transform(up.transform((x[-1], y[-1])))
            ends.append((float(at[1]), float(at[0]), line))
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
    """The same values, moved as little as it takes to keep each `gap` from the next."""
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


def save(figure: Figure, stem: Path, *, quick: bool) -> list[Path]:
    """STEM.png and STEM.svg; quick settings are marked on both."""
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
        if isinstance(engine, ConstrainedLayoutEngine):  # room for the mark: it covers nothing
            strip = QUICK_STRIP / figure.get_figheight()
            engine.set(rect=(0, strip, 1, 1 - strip))
    files = []
    for ending, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
        path = stem.with_name(f"{stem.name}.{ending}")
        write_whole(path, partial(figure.savefig, format=ending, dpi=DPI, metadata=metadata))
        files.append(path)
    return files
