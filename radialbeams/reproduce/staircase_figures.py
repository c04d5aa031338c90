"""The figures of `staircase`: the stairs, and the context encoders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from radialbeams.reproduce import figures
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.staircase import row_of
from radialbeams.reproduce.staircase_designs import (
    CONSTANT,
    CONTEXT_LABELS,
    CONTEXTS,
    LABELS,
    STAIRS,
)
from radialbeams.stored import JsonFields

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABEL = 26  # characters in a line of a label
# Of each line: the views trained on, the test, colour, style, label.
LINES = (
    ("paper", "so2", figures.ORANGE, "-", "paper's views"),
    ("paper", "files", figures.ORANGE, ":", "the same networks on files"),
    ("leakfree", "so2", figures.BLUE, "-", "leak-free views"),
    ("leakfree", "files", figures.BLUE, ":", "the same networks on files"),
)
FAR = 4.0  # times the lowest median of a panel: larger errors are shown as numbers


def draw_stairs(cells: Mapping[str, Record]) -> Figure:
    """Downwards from the authors' settings to ours: medians, and a dot for every seed."""
    figure = figures.new(figures.PAGE, 3.6)
    axes = figure.subplots()
    ys = list(range(len(STAIRS)))
    for number, (protocol, test, colour, linestyle, words) in enumerate(LINES):
        shift = 0.12 * (number - 1.5)
        points = [
            (y + shift, cells[f"{protocol}-{name}"][test]["mean"])
            for y, name in zip(ys, STAIRS, strict=True)
            if cells[f"{protocol}-{name}"]["seeds"]
        ]
        label = f"{words}" if test == "so2" else f"{protocol_label(protocol)}, on files"
        axes.plot(
            [float(np.median(mean["values"])) for _, mean in points],
            [y for y, _ in points],
            linestyle,
            color=colour,
            label=label,
        )
        for y, mean in points:
            fill_colour = colour if test == "so2" else "white"
            same_y = [y] * len(mean["values"])
            axes.plot(mean["values"], same_y, "o", color=colour, ms=2.8, mfc=fill_colour, mew=0.7)
    axes.set_yticks(ys, [LABELS[name] for name in STAIRS])
    axes.set(
        xscale="log",
        xlabel="mean error on held-out images; lines: median over seeds; circles: seeds",
        ylim=(len(ys) - 0.5, -0.5),
    )
    figures.plain_log(axes.xaxis)
    axes.xaxis.set_major_formatter("{x:g}°")
    axes.grid(axis="y", visible=False)
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside upper center", ncols=4)
    return figure


def protocol_label(protocol: str) -> str:
    return "trained on the paper's" if protocol == "paper" else "trained on leak-free"


def draw_contexts(cells: Mapping[str, Record]) -> Figure:
    figure = figures.new(figures.PAGE, 2.6)
    errors, paper, shares = figure.subplots(1, 3, sharey=True)
    names = list(CONTEXTS)
    for axes, series, chosen, title in (
        (errors, "one-cycle", names, "a  leak-free, one-cycle"),
        (paper, "constant", (*CONSTANT, "mean"), "b  paper's, constant rate"),
    ):
        by_row = {names.index(name): cells[row_of(series, name)] for name in chosen}
        _dots(axes, {row: cell["so2"]["mean"] for row, cell in by_row.items() if cell["seeds"]})
        axes.set(xlabel="mean error, held out")
        axes.xaxis.set_major_formatter("{x:g}°")
        axes.set_title(title)
    widest = 1.06 * max(axes.get_xlim()[1] for axes in (errors, paper))
    for axes in (errors, paper):
        axes.set_xlim(0, widest)
    through = {
        row: cells[row_of("one-cycle", name)]["hub_share"]
        for row, name in enumerate(names)
        if cells[row_of("one-cycle", name)]["seeds"]
    }
    _dots(shares, through)
    shares.set(xlabel="share of the gradient, of a", xlim=(-0.03, 1))
    shares.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    shares.set_title("c  through the hub")
    errors.set_yticks(range(len(names)), [fill(CONTEXT_LABELS[name], LABEL) for name in names])
    errors.set_ylim(len(names) - 0.5, -0.5)
    return figure


def _dots(axes: Axes, errors: Mapping[int, JsonFields]) -> None:
    """Draws a dot for every seed; far larger errors are shown as a number at the edge."""
    middles: Sequence[float] = [statistics["mean"] for statistics in errors.values()]
    limit = FAR * min(middles) if middles and min(middles) > 0 else float("inf")
    for y, statistics in errors.items():
        if statistics["mean"] > limit:
            axes.annotate(
                f"{statistics['mean']:.0f}° →", (0.98, y), xycoords=("axes fraction", "data"),
                ha="right", va="center", color=figures.ORANGE,
            )  # fmt: skip
            continue
        values = statistics["values"]
        axes.plot(values, [y] * len(values), "o", color=figures.BLUE, ms=3)
        axes.plot([statistics["mean"]], [y], "|", color=figures.BLUE, ms=12)
    axes.grid(axis="y", visible=False)
