"""The figures of `geometry`, from its JSON alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from radialbeams.reproduce import figures
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.geometry import BEAMS, EPSILONS, LENGTH
from radialbeams.reproduce.thumbnails import decode
from radialbeams.stored import JsonDict

PIXEL_LIMITS = (-3500, 18000)  # the printed coverage is negative at few beams


def draw(record: Record) -> dict[str, Figure]:
    return {"": draw_lemmas(record["data"]), "beams": draw_beams(record["data"]["drawing"])}


def draw_lemmas(data: JsonDict) -> Figure:
    figure = figures.new(figures.PAGE, 6.9)
    (cover, over), (error, length), (bound, padding) = figure.subplots(3, 2)
    for epsilon, colour in zip(EPSILONS, figures.COLOURS, strict=False):
        rows = [row for row in data["by_beams"] if row["epsilon"] == epsilon]
        beams = [row["beams"] for row in rows]
        for axes, quantity in ((cover, "cover"), (over, "over")):
            for name, linestyle in STYLES.items():
                values = [row[f"{quantity}_{name}"] for row in rows]
                axes.plot(
                    beams, values, linestyle, color=colour, ms=2.6, lw=1, mfc="white", mew=0.7
                )
            counts = [row[f"{quantity}_angle"] for row in rows]
            # Each label is on its curve, a little lower than the last, so that none overlap.
            height = (0.75 - 0.15 * epsilon) * max(counts)
            at = min(range(len(rows)), key=lambda i: abs(counts[i] - height))
            axes.text(
                beams[at],
                counts[at],
                f"ε = {epsilon}",
                color=colour,
                fontsize=6.5,
                ha="center",
                va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
            )
        along = [row for row in data["by_length"] if row["epsilon"] == epsilon]
        for name in ("printed", "corrected"):
            error.plot(beams, _off(rows, name), STYLES[name], color=colour)
            lengths = [row["length"] for row in along]
            length.plot(lengths, _off(along, name), STYLES[name], color=colour)
    most = max(row["beams"] for row in data["by_beams"])
    cover.set(ylabel="pixels covered")
    cover.set_title(f"a  coverage, D = {LENGTH}")
    over.set(ylabel="readings beyond the first")
    for axes in (cover, over):
        axes.set_ylim(PIXEL_LIMITS)
    over.set_title(f"b  overlap, D = {LENGTH}")
    error.set_title(f"c  error of the coverage over |B|, D = {LENGTH}")
    length.set_title(f"d  error of the coverage over D, |B| = {BEAMS}")
    length.set(xlabel="beam length D, pixels")
    length.axhline(0, color="0.5", lw=0.6)
    for axes in (error, length):
        axes.set(ylabel="formula / count − 1", ylim=(-600, 20))
        axes.set_yscale("symlog", linthresh=10)
        axes.set_yticks([-400, -100, -10, 0, 10], ["−400 %", "−100 %", "−10 %", "0 %", "10 %"])
        axes.minorticks_off()
    for axes, stretch in ((cover, 1.2), (over, 1.2), (error, 1.1)):
        axes.set(xlabel="number of beams |B|", xscale="log", xlim=(7.5, most * stretch))
        axes.axhline(0, color="0.5", lw=0.6)
        ticks = [2**k for k in range(3, 10) if 2**k <= most]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
    for name, words in LABELS.items():
        over.plot([], [], STYLES[name], color="0.3", label=words, ms=3, mfc="white")
    figure.legend(*over.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    draw_bounds(bound, data["bounds"])
    draw_padding(padding, data["padding"])
    return figure


def _off(rows: list[dict[str, float]], formula: str) -> list[float]:
    """The error of a formula against the count, in per cent."""
    return [100 * (row[f"cover_{formula}"] / row["cover_angle"] - 1) for row in rows]


STYLES = {"angle": "o", "corrected": "-", "printed": ":"}
LABELS = {"angle": "counted", "corrected": "corrected, 8/|B|", "printed": "printed, tan(360°/|B|)"}


def draw_bounds(axes: Axes, bounds: list[JsonDict]) -> None:
    """Counts as multiples of the bound, for both meanings and both spacings."""
    kinds = (
        ("full", "angle", figures.BLUE, "o", "fill the square, equal angles"),
        ("full", "border", figures.SKY, "s", "fill the square, border steps"),
        ("redundant", "angle", figures.ORANGE, "^", "one is redundant, equal angles"),
        ("redundant", "border", figures.YELLOW, "v", "one is redundant, border steps"),
    )
    axes.axhline(1, color="0.4", lw=0.8)
    for meaning, spacing, colour, marker, label in kinds:
        rows = [row for row in bounds if row["spacing"] == spacing]
        x, y = [row["bound"] for row in rows], [row[meaning] / row["bound"] for row in rows]
        axes.plot(x, y, marker, color=colour, label=label, mfc="none", mew=0.9)
    axes.set(xlabel="the paper's upper bound, 8D/(2ε + 1) beams", xscale="log", ylim=(0.5, 2.9))
    axes.set(ylabel="fewest beams that …, in bounds")
    axes.set_xticks([20, 50, 100, 200, 500], ["20", "50", "100", "200", "500"])
    axes.minorticks_off()
    axes.set_title("e  upper bound against counts")
    axes.legend(loc="upper right")


def draw_padding(axes: Axes, rows: list[JsonDict]) -> None:
    names = ("A", "B", "C")
    for offset, row, colour in zip((-0.2, 0.2), rows, figures.COLOURS[:2], strict=True):
        positions = np.arange(len(names)) + offset
        shares = [100 * row[name]["mean"] for name in names]
        most = [100 * row[name]["most"] for name in names]
        axes.bar(positions, shares, 0.36, color=colour, label=f"W = {row['size']}")
        axes.plot(positions, most, "_", color="0.1", ms=8)
        for x, top, name in zip(positions, most, names, strict=True):
            axes.annotate(
                f"D = {row[name]['length']}",
                (x, top),
                ha="center",
                va="bottom",
                fontsize=6,
                xytext=(0, 3),
                textcoords="offset points",
            )
    axes.set_xticks(range(len(names)), [f"length {name}" for name in names])
    axes.set(ylim=(0, 36))
    axes.yaxis.set_major_formatter("{x:g} %")
    axes.set(ylabel="samples that read padding")
    axes.set_title("f  padding: mean over rotations; – the worst")
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper left")


def draw_beams(drawn: JsonDict) -> Figure:
    image, inside = decode(drawn["picture"]), decode(drawn["inside"])
    counts = decode(drawn["readers"]).astype(float)
    canvas, centre = len(counts), (len(counts) - 1) / 2
    figure = figures.new(figures.PAGE, 2.05)
    panels = figure.subplots(1, 4)
    for axes in panels:
        axes.imshow(image)
        figures.picture(axes)
        axes.set(xlim=(-0.5, canvas - 0.5), ylim=(canvas - 0.5, -0.5))

    def fill(axes: Axes, places: Any, colour: str) -> None:
        layer = np.zeros((canvas, canvas))
        columns, rows = np.asarray(places).reshape(-1, 2).T
        layer[rows, columns] = 1
        overlay = np.ma.masked_equal(layer, 0)
        axes.imshow(overlay, cmap=_one_colour(colour), vmin=0, vmax=1)

    core, thick = np.asarray(drawn["core"]), np.asarray(drawn["thick"])
    for axes in panels[:2]:
        if axes is panels[1]:
            fill(axes, thick, figures.YELLOW)
        fill(axes, core, figures.SKY)
    panels[0].set_title(f"a  {drawn['beams']} beams")
    right, step = 5 * drawn["beams"] // 8, 2 * drawn["length"] // 3
    x, y = core[right, step]
    kernel = Rectangle((x - 1.5, y - 1.5), 3, 3, fc=figures.ORANGE, ec="white", lw=0.8, zorder=5)
    panels[1].add_patch(kernel)
    panels[1].annotate(
        "kernel",
        (x, y + 1.5),
        xytext=(x, y + 14),
        ha="center",
        fontsize=6.5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        arrowprops={"arrowstyle": "-|>", "color": "black", "lw": 0.8, "mutation_scale": 6},
    )
    panels[1].set_title("b  thickness ε = 1")
    mappable = panels[2].imshow(np.where(counts > 0, counts, np.nan), cmap="viridis", norm="log")
    panels[2].set_title("c  overlap")
    ticks = [tick for tick in (1, 2, 4, 8, 16) if tick <= counts.max()]
    bar = figure.colorbar(mappable, ax=panels[2], shrink=0.8, pad=0.02, ticks=ticks, format="%d")
    bar.set_label("readings of a pixel", fontsize=6.5)
    bar.minorticks_off()
    panels[3].contour(inside, [127], colors="white", linewidths=0.8)
    colours = (figures.GREEN, figures.SKY, figures.YELLOW)
    for (name, length), colour in zip(drawn["lengths"].items(), colours, strict=True):
        corner = centre - length
        square = Rectangle((corner, corner), 2 * length, 2 * length, fill=False, ec=colour, lw=1.2)
        panels[3].add_patch(square)
        panels[3].text(
            corner + 2, corner + 2, name, color=colour, va="top", fontsize=8, fontweight="bold"
        )
    circle = Circle((centre, centre), drawn["size"] / 2, fill=False, ec="white", lw=0.6, ls=":")
    panels[3].add_patch(circle)
    panels[3].set_title("d  lengths A, B, C; padding")
    return figure


def _one_colour(colour: str) -> Any:
    return ListedColormap([colour])
