"""The figures of `orbit`, from its JSON alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from radialbeams.nn.angles import TURN
from radialbeams.reproduce import figures
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.orbit import BEAMS, DATA, GRID, KINDS, TITLES, find
from radialbeams.reproduce.thumbnails import decode


def draw(record: Record) -> dict[str, Figure]:
    data = record["data"]
    return {"": draw_layouts(data), "circle": draw_table(data["table"])}


def draw_layouts(data: Record) -> Figure:
    columns = max(sum(layout["data"] == name for layout in data["layouts"]) for name in DATA)
    figure = figures.new(figures.PAGE, 0.7 + 1.55 * figures.PAGE / max(columns, 3))
    panels = figure.subplots(2, columns, squeeze=False)
    for row, name in zip(panels, DATA, strict=True):
        layouts = [layout for layout in data["layouts"] if layout["data"] == name]
        for axes, layout in zip(row, layouts, strict=False):
            _draw_layout(axes, layout, data["beams"])
            trained = layout["kind"] == "trained"
            label = f"sample {layouts.index(layout) + 1}" if trained else "sample 1, untrained"
            colour = "black" if trained else figures.ORANGE
            axes.set_title(f"{TITLES[name]}, {label}", fontsize=7, color=colour)
            _draw_key(axes, layout.get("picture"), data["beams"])
    figure.suptitle(
        "t-SNE of the beams' embeddings over an orbit. A dot is a beam at a rotation; its colour "
        "is the beam's\ndirection in the upright picture, as in the ring beside it",
        fontsize=7,
        x=0.01,
        ha="left",
    )
    return figure


def _draw_layout(axes: Axes, layout: Record, beams: int) -> None:
    figures.picture(axes)
    order = np.random.default_rng(0).permutation(len(layout["directions"]))  # none always on top
    x, y = (np.asarray(column)[order] for column in layout["places"])
    shade = np.asarray(layout["directions"])[order] / beams
    axes.scatter(x, y, 1.2, c=shade, cmap="hsv", vmin=0, vmax=1, lw=0, rasterized=True)
    # The space on the right is for a picture that covers no point.
    axes.set(aspect="equal", xlim=(-40, 1.36 * GRID), ylim=(-40, GRID + 40))


def _draw_key(axes: Axes, picture: str | None, beams: int) -> None:
    """Draws the colour of each direction around the upright picture; faces are not shown."""
    inset = axes.inset_axes((0.75, 0.73, 0.25, 0.27))
    if picture is None:  # a face
        inset.text(0, 0, "up\n↑", ha="center", va="center", fontsize=6, color="0.3")
    else:
        inset.imshow(decode(picture), extent=(-1, 1, -1, 1), interpolation="lanczos")
    # Beam 0 points to the upper left, the others follow counter-clockwise.
    directions = np.radians(135) + np.arange(4 * beams) * TURN / (4 * beams)
    shade = np.arange(4 * beams) / (4 * beams)
    inset.scatter(
        1.55 * np.cos(directions), 1.55 * np.sin(directions), 3, c=shade, cmap="hsv", lw=0
    )
    inset.set(xlim=(-1.7, 1.7), ylim=(-1.7, 1.7), aspect="equal")
    inset.set_axis_off()


PANELS = {
    "circle": ("a  one circle?", "longest loop less the next, by its death", (-0.03, 1.0)),
    "coordinate": ("b  a circular coordinate", "error at directions left out", (-3.0, 123.0)),
    "order": ("c  in order?", "nearest is the next direction", (-0.03, 1.03)),
}


def draw_table(cells: Sequence[Record]) -> Figure:
    """A dot for every image and kind of points; dotted: an exact circle, or chance."""
    figure = figures.new(figures.PAGE, 2.3)
    panels = figure.subplots(1, 3, sharey=True)
    colours = dict(zip(DATA, (figures.BLUE, figures.ORANGE), strict=True))
    exact = 1 - 2 * np.sin(np.pi / BEAMS) / np.sqrt(3)
    marks = {"circle": ("exact", exact), "coordinate": ("chance", 90), "order": ("chance", 2 / 63)}
    for axes, (name, (title, label, limits)) in zip(panels, PANELS.items(), strict=True):
        for shift, data in zip((-0.15, 0.15), DATA, strict=True):
            for y, kind in enumerate(KINDS):
                measure, colour = find(cells, data, kind)[name], colours[data]
                ys = [y + shift] * len(measure["values"])
                axes.plot(measure["values"], ys, "o", color=colour, ms=3, alpha=0.5, mew=0)
                axes.plot([measure["mean"]], [y + shift], "|", color=colour, ms=10, mew=1.5)
        mark, x = marks[name]
        axes.axvline(x, color=figures.GREY, lw=0.7, ls=":")
        axes.text(
            x,
            0,
            f" {mark} ",
            transform=axes.get_xaxis_transform(),
            fontsize=6.5,
            color=figures.GREY,
            va="bottom",
            ha="right" if x > limits[1] / 2 else "left",
        )
        axes.set(xlabel=label, xlim=limits, ylim=(len(KINDS) - 0.4, -0.5))
        axes.grid(axis="y", visible=False)
        axes.set_title(title)
    panels[1].xaxis.set_major_formatter("{x:g}°")
    panels[2].xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    words = {"pixels": "the beams' pixels", "untrained": "before training"}
    panels[0].set_yticks(range(len(KINDS)), [words.get(kind, kind) for kind in KINDS])
    for data, colour in colours.items():
        panels[0].plot([], [], "o", color=colour, label=TITLES[data])
    figure.legend(loc="outside upper center", ncols=2)
    return figure
