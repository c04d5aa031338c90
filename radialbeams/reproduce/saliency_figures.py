"""The figures of `saliency`, from its JSON alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from radialbeams.reproduce import figures
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.saliency import FIGURE_TURNS, REGIONS
from radialbeams.reproduce.thumbnails import decode


def draw(record: Record) -> dict[str, Figure]:
    data = record["data"]
    return {"": draw_maps(data["pictures"]), "measured": draw_measured(data["rows"])}


TITLES: Mapping[str, str] = {
    "bic": "the pretrained bic, zero padding",
    "ring": "the pretrained ring, leak-free views",
    "short bic, zero padding": "bic, short training, zero padding",
    "short bic, adaptive padding": "bic, short training, adaptive padding",
}


def draw_maps(pictures: Sequence[Record]) -> Figure:
    """The upright picture of each object, and its maps under the outline of the object."""
    row_counts = [max(len(p["objects"]) for p in pair) for pair in (pictures[:2], pictures[2:])]
    figure = figures.new(figures.PAGE, 0.75 + 0.72 * sum(row_counts))
    blocks: Any = figure.subfigures(
        2, 2, wspace=0.04, hspace=0.02, height_ratios=[0.45 + rows for rows in row_counts]
    )
    for block, picture, letter in zip(blocks.flat, pictures, "abcd", strict=True):
        rows = picture["objects"]
        panels = block.subplots(len(rows), 1 + len(FIGURE_TURNS), squeeze=False)
        for axes, turns in zip(panels, rows, strict=True):
            _draw_object(axes, turns)
        titles = ["image", *(f"{degrees:g}°" for degrees in FIGURE_TURNS)]
        for axes, title in zip(panels[0], titles, strict=True):
            axes.set_title(title, loc="center", fontsize=7, pad=2)
        block.suptitle(f"{letter}  {TITLES[picture['name']]}", x=0.02, ha="left", fontsize=8)
    return figure


def _draw_object(axes: Sequence[Axes], turns: Sequence[Record]) -> None:
    first, *maps = axes
    first.imshow(decode(turns[0]["input"]), interpolation="none")
    figures.picture(first)
    for panel, turn in zip(maps, turns, strict=True):
        figures.picture(panel)
        panel.imshow(decode(turn["map"]), cmap="magma", interpolation="none")
        panel.contour(decode(turn["mask"]), [127.5], colors="white", linewidths=0.5)


KINDS = {
    "back": ("turned back", "o"),
    "other": ("another object's, turned back", "s"),
    "unturned": ("not turned back", "^"),
}


def draw_measured(rows: Sequence[Record]) -> Figure:
    figure = figures.new(figures.PAGE, 2.6)
    quarters, anywhere, location = figure.subplots(1, 3, width_ratios=(1, 1, 1.05))
    colours = dict(zip(KINDS, (figures.BLUE, figures.ORANGE, figures.GREY), strict=True))
    for axes, kind, title in (
        (quarters, "quarters", "a  quarter turns"),
        (anywhere, "anywhere", "b  any turn"),
    ):
        _draw_correlations(axes, [row[kind] for row in rows], colours)
        axes.set_title(title)
    ys = range(len(rows))
    quarters.set_yticks(ys, [row["name"].replace(", ", ",\n") for row in rows])
    for axes in (anywhere, location):
        axes.set_yticks(ys, [""] * len(rows))
    region_colours = dict(zip(REGIONS, (figures.GREEN, figures.BLACK, figures.SKY), strict=True))
    for y, row in enumerate(rows):
        for shift, region in zip((-0.24, 0, 0.24), REGIONS, strict=True):
            if region in row["density"]:
                value = row["density"][region]
                location.barh(y + shift, value, 0.22, color=region_colours[region])
    for region, colour in region_colours.items():
        location.barh([0], [0], color=colour, label=region)
    location.axvline(1, color=figures.GREY, lw=0.7, ls=":")
    location.set(ylim=(len(rows) - 0.5, -0.5), xlabel="saliency of a pixel; 1 = mean")
    location.set_title("c  where the maps lie")
    location.grid(axis="y", visible=False)
    location.legend(loc="best", fontsize=6.5)
    handles, labels = quarters.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


def _draw_correlations(axes: Axes, parts: Sequence[Record], colours: Mapping[str, str]) -> None:
    for kind, (words, marker) in KINDS.items():
        axes.errorbar(
            [part[kind]["mean"] for part in parts],
            range(len(parts)),
            xerr=[part[kind]["std"] for part in parts],
            fmt=marker,
            color=colours[kind],
            label=words,
            capsize=2,
            elinewidth=0.7,
            ms=4,
        )
    axes.set(xlim=(-0.35, 1.05), ylim=(len(parts) - 0.5, -0.5), xlabel="correlation of maps")
    axes.grid(axis="y", visible=False)
