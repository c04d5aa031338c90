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

# The violins of other thicknesses are those of ε = 1, and those of both rings are alike.
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
    shown = [name for name in VIOLINS if name in models]
    figure = figures.new(figures.PAGE, 4.2)
    panels = figure.subplots(len(DIRECTIONS), 1, sharex=True, sharey=True)
    for axes, direction, letter in zip(panels, DIRECTIONS, "ab", strict=True):
        for place, name in enumerate(shown):
            _violins(axes, models[name]["cells"], direction, data, colours[name], place, len(shown))
        axes.axhline(data["boundary"], color="0.2", lw=0.8, ls="--")
        axes.set_title(f"{letter}  {direction} shifts")
        axes.grid(axis="x", visible=False)
        axes.set(ylabel="change of the answer", yscale="log", ylim=(0.02, 200))
        axes.set_yticks([0.1, 1, 5, 20, 100], ["0.1°", "1°", "5°", "20°", "100°"])
        axes.minorticks_off()
    panels[-1].set_xticks(SHIFTS, [f"{shift:+d}".replace("-", "−") for shift in SHIFTS])
    panels[-1].set(xlabel="shift, pixels of a 128-pixel image", xlim=(-8.6, 8.6))
    handles = [
        Patch(color=colours[name], alpha=0.6, label=reach_of(name, models)) for name in shown
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
    place: int,
    count: int,
) -> None:
    """A violin for each shift, beside those of the other models; a bar at the mean."""
    edges = np.asarray(data["edges"])
    middles = np.sqrt(edges[1:] * edges[:-1])
    room = 0.86 / count
    for one in cells:
        if one["direction"] != direction:
            continue
        counts = np.convolve(one["counts"], (0.25, 0.5, 0.25), mode="same")
        half = 0.48 * room * counts / counts.max()
        centre = one["shift"] + (place - (count - 1) / 2) * room
        seen = counts > 0.002 * counts.sum()
        low, high = np.flatnonzero(seen)[[0, -1]]
        body = slice(low, high + 1)
        axes.fill_betweenx(
            middles[body], centre - half[body], centre + half[body], color=colour, alpha=0.55, lw=0
        )
        axes.plot([centre - room / 2.4, centre + room / 2.4], [one["mean"]] * 2, color=colour)


def draw_means(data: JsonDict) -> Figure:
    """The means of all models."""
    models = models_of(data)
    colours = _colours(list(models))
    figure = figures.new(figures.PAGE, 2.7)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, direction, letter in zip(panels, DIRECTIONS, "ab", strict=True):
        for name, one in models.items():
            here = [c for c in one["cells"] if c["direction"] == direction]
            look = "--" if name.startswith("pretrained") else "-"
            points = sorted([(c["shift"], c["mean"]) for c in here] + [(0, 0.0)])
            axes.plot(*zip(*points, strict=True), look, color=colours[name], label=name)
        axes.axhline(data["boundary"], color="0.2", lw=0.8, ls=":")
        axes.set(xlabel="shift, pixels of a 128-pixel image")
        axes.yaxis.set_major_formatter("{x:g}°")
        axes.set_title(f"{letter}  {direction}")
    panels[0].set(ylabel="mean change of the answer")
    top = max(c["mean"] for one in models.values() for c in one["cells"])
    panels[0].set_ylim(0, min(60.0, 1.05 * top))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
