"""The figure of `topology`: the orbits on two principal axes, and their measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from radialbeams.reproduce import figures
from radialbeams.reproduce.experiment import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "pretrained": figures.GREEN,
    "leak-free": figures.BLUE,
    "paper": figures.ORANGE,
}
VIEWS = ("pretrained", "leak-free", "paper")
MEASURES = {
    "circle": "one-circle score",
    "longest": "longest loop  (| by chance)",
    "crossed": "directions crossed",
    "width": "width of the curve",
}


def draw(record: Record) -> dict[str, Figure]:
    data = record["data"]
    return {"": draw_measures(data["cells"]), "curves": draw_curves(data["shown"])}


def draw_curves(curves: Record) -> Figure:
    """One image: the mean embedding of every direction, coloured by direction."""
    available = {words: positions for words, positions in curves.items() if positions}
    rows = [[w for w in available if w.startswith(views)] for views in VIEWS]
    rows = [row for row in rows if row]
    most = max(len(row) for row in rows)
    figure = figures.new(figures.PAGE, 1.7 * len(rows))
    panels = figure.subplots(len(rows), most, squeeze=False)
    for line, row in zip(panels, rows, strict=True):
        for axes, words in zip(line, row, strict=False):
            _curve(axes, available[words])
            views, _, kind = words.partition(", ")
            kind = kind or "trained"
            axes.set_title(
                kind.replace(", after", ",\nafter").replace(" with", "\nwith"), fontsize=7
            )
            if words == row[0]:
                axes.set_ylabel(views)
        for axes in line[len(row) :]:
            axes.set_visible(False)
    points = panels[0, 0].collections
    if points:
        bar = figure.colorbar(points[0], ax=panels, shrink=0.6, ticks=[0, 90, 180, 270, 360])
        bar.set_label("direction in the upright image")
        bar.ax.yaxis.set_major_formatter("{x:g}°")
    return figure


def _curve(axes: Axes, positions: list[list[float]]) -> None:
    x, y = positions
    degrees = np.arange(len(x)) * 360 / len(x)
    axes.plot([*x, x[0]], [*y, y[0]], color="0.8", lw=0.5)
    axes.scatter(x, y, c=degrees, cmap="twilight", vmin=0, vmax=360, s=4)
    axes.set(xticks=[], yticks=[], aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
    axes.grid(False)


def draw_measures(cells: Record) -> Figure:
    figure = figures.new(figures.PAGE, 2.7)
    panels = figure.subplots(1, len(MEASURES), sharey=True)
    names = list(cells)
    ys = list(range(len(names)))
    for axes, (measure, title) in zip(panels, MEASURES.items(), strict=True):
        colours = [COLOURS[next(v for v in VIEWS if n.startswith(v))] for n in names]
        axes.barh(ys, [cells[name][measure] for name in names], color=colours, height=0.6)
        if measure == "longest":
            nulls = [cells[name]["null"] for name in names]
            axes.plot(nulls, ys, "|", color=figures.BLACK, ms=10)
        axes.set_xlim(0, 1)
        axes.set_xlabel(title)
        axes.grid(axis="y", visible=False)
    labels = [name.replace("pretrained, ", "the same, ") for name in names]
    panels[0].set_yticks(ys, labels)
    panels[0].set_ylim(len(ys) - 0.5, -0.5)
    return figure
