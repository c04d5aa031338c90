"""The figures of `end-to-end`, from its JSON alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean
from typing import Any

from matplotlib import colormaps
from matplotlib.figure import Figure

from radialbeams.reproduce import figures
from radialbeams.reproduce.end_to_end import AVERAGES, VARIANTS, WAYS
from radialbeams.reproduce.experiment import Record
from radialbeams.stored import JsonDict


def draw(record: Record) -> dict[str, Figure]:
    data = list(record["data"]["tasks"].values())
    return {
        "": _dots(data),
        "curves": _curves(data),
        "angles": _angles(data),
        "poses": _poses(data[0]),
    }


def _style(name: str) -> JsonDict:
    colours = {
        "plain": figures.GREY,
        "augmented": figures.YELLOW,
        "apart": figures.BLACK,
        "angle": figures.SKY,
        "downstream": figures.ORANGE,
        "both": figures.BLUE,
    }
    return {"color": colours[name.partition("-")[0]]}


def _rows(ways: Record) -> list[tuple[str, str, str]]:
    """Way, key of the accuracy, and label, from top to bottom."""
    rows = []
    for name in WAYS:
        rows.append((name, "turned", ways[name]["title"]))
        if name in AVERAGES:
            rows.append((name, "averaged", AVERAGES[name]))
    return rows + [(name, "turned", ways[name]["title"]) for name in VARIANTS if name in ways]


def _dots(data: Sequence[Record]) -> Figure:
    """Accuracies by way: a dot for each seed, a bar at their mean, a ring for upright images."""
    rows = _rows(data[0]["ways"])
    figure = figures.new(figures.PAGE, 0.8 + 0.21 * len(rows))
    panels = figure.subplots(1, len(data), sharey=True)
    for axes, task in zip(panels, data, strict=True):
        axes.set(title=task["title"], xlabel="accuracy, %", xlim=_limits(task["ways"]))
        for y, (name, key, _) in enumerate(rows):
            if name in task["ways"]:
                _row(axes, y, task["ways"][name], key, _style(name))
    panels[0].set_yticks(range(len(rows)), [title for _, _, title in rows])
    panels[0].set_ylim(len(rows) - 0.4, -0.8)
    figure.suptitle("dots: images at any angle, one for each seed; rings: upright images", size=7)
    return figure


def _limits(ways: Record) -> tuple[float, float]:
    """The range of accuracies above 50%; lower ones are shown as a number at the edge."""
    values = [
        100 * value
        for way in ways.values()
        for key in ("turned", "upright")
        for value in way[key]["values"]
    ]
    least, most = min((value for value in values if value > 50), default=0.0), max(values)
    span = max(most - least, 1.0)
    return least - 0.25 * span, most + 0.06 * span


def _row(axes: Any, y: int, way: Record, key: str, style: JsonDict) -> None:
    values = [100 * value for value in way[key]["values"]]
    centre = mean(values)
    if max(values) < axes.get_xlim()[0]:
        offset = {"xytext": (3, 0), "textcoords": "offset points", "fontsize": 6.5}
        axes.annotate(f"← {centre:.1f}", (axes.get_xlim()[0], y), va="center", **offset, **style)
    else:
        axes.plot(values, [y] * len(values), "o", markersize=3, alpha=0.6, **style)
        axes.plot([centre], [y], "|", markersize=8, markeredgewidth=1.4, **style)
        offset = {"xytext": (-5, 0), "textcoords": "offset points", "fontsize": 6.5}
        anchor = (min(*values, 100 * way["upright"]["mean"]), y)
        axes.annotate(f"{centre:.1f}", anchor, ha="right", va="center", **offset)
    if key == "turned":
        upright = 100 * way["upright"]["mean"]
        axes.plot([upright], [y], "o", markersize=4.5, markerfacecolor="none", **style)


def _lines(axes: Any, task: Record, names: Sequence[str], key: str, split: str) -> None:
    """Draws a line at the mean over seeds, and a band over their range."""
    for name in names:
        curves = task["ways"][name]["along"]
        steps = [line["step"] for line in curves[0]]
        values = [[_plotted(key, line[split][key]) for line in curve] for curve in curves]
        middle = [mean(values_at) for values_at in zip(*values, strict=True)]
        if split == "train":
            axes.plot(steps, middle, ":", linewidth=0.8, label=f"_{name}", **_style(name))
            continue
        # Dashed and on top: where both learn the same angle, it coincides with another line.
        style = {"linestyle": "--", "zorder": 3} if name == "apart" else {}
        axes.plot(steps, middle, label=task["ways"][name]["title"], **style, **_style(name))
        low, high = (
            [choose(values_at) for values_at in zip(*values, strict=True)] for choose in (min, max)
        )
        axes.fill_between(steps, low, high, alpha=0.15, linewidth=0, **_style(name))


def _plotted(key: str, value: float) -> float:
    """Angles unchanged; an accuracy as its distance from 100%, for a logarithmic scale."""
    return value if key == "mean" else max(100 * (1 - value), LEAST)


LEAST = 0.05  # percent: the lower end of that scale


def _curves(data: Sequence[Record]) -> Figure:
    """Accuracy on rotated images over training; dotted: on training images."""
    figure = figures.new(figures.PAGE, 2.9)
    panels = figure.subplots(1, len(data))
    for axes, task in zip(panels, data, strict=True):
        _lines(axes, task, list(WAYS), "turned", "train")
        _lines(axes, task, list(WAYS), "turned", "test")
        axes.set(title=task["title"], xlabel="training step", yscale="log")
        ticks = [100 - share for share in (10, 30, 50, 70, 80, 85, 90, 95, 98, 99, 99.5, 99.9)]
        low, high = axes.get_ylim()
        ticks = [tick for tick in ticks if low <= tick <= high]
        axes.set_yticks(ticks, [f"{100 - tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(high, low)
    panels[0].set_ylabel("accuracy at any angle, %\n(dotted: training images)")
    _legend(figure, panels[0], columns=3)
    return figure


def _angles(data: Sequence[Record]) -> Figure:
    """The error of the angle over training, for every way that has an angle."""
    names = [name for name, way in WAYS.items() if way.localises]
    figure = figures.new(figures.PAGE, 2.7)
    panels = figure.subplots(1, len(data))
    for axes, task in zip(panels, data, strict=True):
        _lines(axes, task, names, "mean", "test")
        axes.axhline(90, color="0.6", linewidth=0.8, linestyle=":")
        axes.annotate(
            "chance",
            (1, 90),
            xytext=(-2, 2),
            textcoords="offset points",
            xycoords=("axes fraction", "data"),
            ha="right",
            fontsize=6.5,
            color="0.4",
        )
        axes.set(title=task["title"], xlabel="training step", yscale="log")
        axes.set_ylim(top=180)
        ticks = [tick for tick in (0.5, 1, 2, 5, 10, 20, 50, 100) if tick >= axes.get_ylim()[0]]
        axes.set_yticks(ticks, [f"{tick:g}°" for tick in ticks])
        axes.minorticks_off()
    panels[0].set_ylabel("mean error of the angle")
    _legend(figure, panels[0], columns=2)
    return figure


def _poses(task: Record) -> Figure:
    """The pose that each class is rotated to: up is upright; a longer arrow, a steadier pose."""
    names = [name for name in ("apart", "downstream", "both") if name in task["ways"]]
    figure = figures.new(figures.PAGE, 3.2)
    panels = figure.subplots(1, len(names), subplot_kw={"projection": "polar"})
    for axes, name in zip(panels, names, strict=True):
        way = task["ways"][name]
        axes.set_theta_zero_location("N")
        for number, row in enumerate(way["classes"]):
            # The residual rotation after rotating back, counter-clockwise.
            residual = -math.radians(row["direction"])
            colour = colormaps["tab10"](number % 10)
            label = row["name"] if number < 10 else None
            axes.plot([residual, residual], [0, row["length"]], "o-", markevery=[1], markersize=3,
                      linewidth=1.2, color=colour, label=label)  # fmt: skip
        axes.set_ylim(0, 1.05)
        axes.set_yticks([0.5, 1], ["", ""])
        axes.set_xticks([k * math.pi / 2 for k in range(4)], ["up", "90°", "180°", "270°"])
        apart = way["between_turns"]["mean"]
        axes.set_title(f"{way['title']}\n(two turns of an image end {apart:.1f}° apart)", size=7)
    _legend(figure, panels[0], columns=5)
    return figure


def _legend(figure: Figure, axes: Any, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)
