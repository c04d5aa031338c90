"""The figures of `translation`, from its JSON alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from radialbeams.reproduce import figures
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.translation import DIRECTIONS, SHIFTS, models_of, name_of, reach_of
from radialbeams.stored import JsonDict

# The violins of other thicknesses look like those of ε = 1, and those of both rings are alike.
VIOLINS = (name_of(1), "pretrained bic.coil100", "pretrained ring.coil100")


def draw(record: Record) -> dict[str, Figure]:
    return {"": draw_violins(record["data"]), "mean": draw_means(record["data"])}


def _colours(models: Sequence[str]) -> dict[str, str]:
    colours = (
        *(figures.SKY, figures.BLUE, figures.BLACK),
        *(figures.YELLOW, figures.ORANGE, figures.PINK),
    )
    return dict(zip(models, colours, strict=True))


def draw_violins(data: JsonDict) -> Figure:
    models = models_of(data)
    colours = _colours(list(models))
    names = [name for name in VIOLINS if name in models]
    figure = figures.new(figures.PAGE, 4.2)
    panels = figure.subplots(len(DIRECTIONS), 1, sharex=True, sharey=True)
    for axes, direction, letter in zip(panels, DIRECTIONS, "ab", strict=True):
        for index, name in enumerate(names):
            _violins(axes, models[name]["cells"], direction, data, colours[name], index, len(names))
        axes.axhline(data["boundary"], color="0.2", lw=0.8, ls="--")
        axes.set_title(f"{letter}  {direction} shifts")
        axes.grid(axis="x", visible=False)
        axes.set(ylabel="change of the answer", yscale="log", ylim=(0.02, 200))
        axes.set_yticks([0.1, 1, 5, 20, 100], ["0.1°", "1°", "5°", "20°", "100°"])
        axes.minorticks_off()
    panels[-1].set_xticks(SHIFTS, [f"{shift:+d}".replace("-", "−") for shift in SHIFTS])
    panels[-1].set(xlabel="shift, pixels of a 128-pixel image", xlim=(-8.6, 8.6))
    handles = [
        Patch(color=colours[name], alpha=0.6, label=reach_of(name, models)) for name in names
    ]
    title = "Shift at which the mean (bars) exceeds 5°, horizontal and vertical"
    figure.legend(
        handles=handles, loc="outside upper center", ncols=2, title=title, title_fontsize=7.5
    )
    return figure


def _violins(
    axes: Axes,
    cells: Sequence[Record],
    direction: str,
    data: JsonDict,
    colour: str,
    index: int,
    count: int,
) -> None:
    """Draws a violin for each shift, next to those of the other models, and a bar at the mean."""
    edges = np.asarray(data["edges"])
    middles = np.sqrt(edges[1:] * edges[:-1])
    width = 0.86 / count
    for cell in cells:
        if cell["direction"] != direction:
            continue
        counts = np.convolve(cell["counts"], (0.25, 0.5, 0.25), mode="same")
        half = 0.48 * width * counts / counts.max()
        centre = cell["shift"] + (index - (count - 1) / 2) * width
        visible = counts > 0.002 * counts.sum()
        low, high = np.flatnonzero(visible)[[0, -1]]
        body = slice(low, high + 1)
        axes.fill_betweenx(
            middles[body], centre - half[body], centre + half[body], color=colour, alpha=0.55, lw=0
        )
        axes.plot([centre - width / 2.4, centre + width / 2.4], [cell["mean"]] * 2, color=colour)


def draw_means(data: JsonDict) -> Figure:
    """The mean changes of all models over the shift."""
    models = models_of(data)
    colours = _colours(list(models))
    figure = figures.new(figures.PAGE, 2.7)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, direction, letter in zip(panels, DIRECTIONS, "ab", strict=True):
        for name, model in models.items():
            cells = [cell for cell in model["cells"] if cell["direction"] == direction]
            linestyle = "--" if name.startswith("pretrained") else "-"
            points = sorted([(cell["shift"], cell["mean"]) for cell in cells] + [(0, 0.0)])
            axes.plot(*zip(*points, strict=True), linestyle, color=colours[name], label=name)
        axes.axhline(data["boundary"], color="0.2", lw=0.8, ls=":")
        axes.set(xlabel="shift, pixels of a 128-pixel image")
        axes.yaxis.set_major_formatter("{x:g}°")
        axes.set_title(f"{letter}  {direction}")
    panels[0].set(ylabel="mean change of the answer")
    top = max(cell["mean"] for model in models.values() for cell in model["cells"])
    panels[0].set_ylim(0, min(60.0, 1.05 * top))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
