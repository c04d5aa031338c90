"""The figure of `samples`: accuracy and angle error over the number of training images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from radialbeams.reproduce import figures
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.pipelines import PIPELINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

APART = 1.07  # factor between the places of two series on the axis of images


def draw(record: Record) -> dict[str, Figure]:
    cells = record["data"]["cells"]
    figure = figures.new(figures.PAGE, 3.3)
    accuracy, angle = figure.subplots(1, 2)
    lines = zip(PIPELINES.items(), figures.COLOURS, figures.MARKERS, strict=True)
    for place, ((name, pipeline), colour, marker) in enumerate(lines):
        mine = sorted(
            (one for key, one in cells.items() if key.split(", ")[0] == name),
            key=lambda one: int(one["images"]),
        )
        # Side by side, so that the ranges of neighbours can be told apart.
        beside = APART ** (place - (len(PIPELINES) - 1) / 2)
        for axes, measure in ((accuracy, "turned"), (angle, "mean")):
            known = [(beside * one["images"], one[measure]) for one in mine if measure in one]
            if not known:
                continue
            label = pipeline.title if axes is accuracy else None
            means = [found["mean"] for _, found in known]
            axes.plot(
                [x for x, _ in known], means, marker=marker, ms=3, lw=1, color=colour, label=label
            )
            for images, found in known:
                ends = min(found["values"]), max(found["values"])
                axes.plot([images, images], ends, color=colour, lw=1, solid_capstyle="butt")
    accuracy.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    accuracy.set_ylabel("accuracy on images at any angle")
    accuracy.set_title("a  Fashion-MNIST; bars: range of seeds")
    angle.set(yscale="log", ylabel="mean error of the angle")
    angle.set_title("b  the angle, where one is estimated")
    figures.plain_log(angle.yaxis)
    angle.yaxis.set_major_formatter("{x:g}°")
    ticks = sorted({one["images"] for one in cells.values()})
    for axes in (accuracy, angle):
        axes.set(xscale="log", xlabel="training images")
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()
    figure.legend(loc="outside upper center", ncols=3)
    return {"": figure}
