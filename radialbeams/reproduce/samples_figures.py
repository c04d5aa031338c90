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
    for number, ((name, pipeline), colour, marker) in enumerate(lines):
        pipeline_cells = sorted(
            (cell for key, cell in cells.items() if key.split(", ")[0] == name),
            key=lambda cell: int(cell["images"]),
        )
        # Shifted sideways, so that the ranges of neighbours do not overlap.
        shift = APART ** (number - (len(PIPELINES) - 1) / 2)
        for axes, key in ((accuracy, "turned"), (angle, "mean")):
            points = [(shift * cell["images"], cell[key]) for cell in pipeline_cells if key in cell]
            if not points:
                continue
            label = pipeline.title if axes is accuracy else None
            means = [statistics["mean"] for _, statistics in points]
            axes.plot(
                [x for x, _ in points], means, marker=marker, ms=3, lw=1, color=colour, label=label
            )
            for images, statistics in points:
                ends = min(statistics["values"]), max(statistics["values"])
                axes.plot([images, images], ends, color=colour, lw=1, solid_capstyle="butt")
    accuracy.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    accuracy.set_ylabel("accuracy on images at any angle")
    accuracy.set_title("a  Fashion-MNIST; bars: range of seeds")
    angle.set(yscale="log", ylabel="mean error of the angle")
    angle.set_title("b  the angle, where one is estimated")
    figures.plain_log(angle.yaxis)
    angle.yaxis.set_major_formatter("{x:g}°")
    ticks = sorted({cell["images"] for cell in cells.values()})
    for axes in (accuracy, angle):
        axes.set(xscale="log", xlabel="training images")
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()
    figure.legend(loc="outside upper center", ncols=3)
    return {"": figure}
