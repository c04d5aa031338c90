"""The figures of `downstream`, from its JSON alone: curves and table are of the same images."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from radialbeams.front.accuracy import LINES
from radialbeams.reproduce import figures
from radialbeams.reproduce.downstream import FIGURE_SETS, NAMES, TITLES
from radialbeams.reproduce.experiment import Record
from radialbeams.stored import JsonDict
from radialbeams.training.report.intervals import share_interval as interval

SHORT = {"si-score": "SI-SCORE, 9 cut-outs", "si-score-by-cut-out": "9 cut-outs, split by them"}
FIRST_COLUMN = 0.22  # of the table's width


def draw(record: Record) -> dict[str, Figure]:
    sets = {
        name: result for name, result in record["data"]["sets"].items() if "missing" not in result
    }
    return {"": draw_curves(sets), "table": draw_table(sets)}


def images_of(result: JsonDict) -> int:
    """The number of images behind the curves: some at every angle, or all at one angle each."""
    return int(result["n_on_the_grid"] if "n_on_the_grid" in result else result["n"])


def at_each_angle(result: JsonDict) -> float:
    """The number of images at an angle; the mean if every image has one fixed angle."""
    on_the_grid = "n_on_the_grid" in result
    return images_of(result) if on_the_grid else images_of(result) / len(result["angles"])


def draw_curves(sets: JsonDict) -> Figure:
    names = [name for name in FIGURE_SETS if name in sets]
    figure = figures.new(figures.PAGE, 3.1)
    colours = dict(
        zip(
            LINES,
            (figures.GREY, figures.YELLOW, figures.PINK, figures.BLUE, figures.SKY, figures.BLACK),
            strict=True,
        )
    )
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        result = sets[name]
        count = at_each_angle(result)
        for line, values in result["lines"].items():
            style = {"ls": "--"} if line == "ceiling" else {}
            axes.plot(result["angles"], values, color=colours[line], label=TITLES[line], **style)
            low, high = zip(*(interval(value, count) for value in values), strict=True)
            axes.fill_between(result["angles"], low, high, color=colours[line], alpha=0.12, lw=0)
        axes.set_title(f"{SHORT.get(name, NAMES[name])}\n{count:.0f} images an angle", fontsize=7)
        axes.set_xticks(range(0, 361, 90))
        axes.set_xlabel("turned by (°)")
        axes.set_ylim(0, 1.02)
    panels[0].set_ylabel("top-1 accuracy, 95% intervals")
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


def draw_table(sets: JsonDict) -> Figure:
    """A table of the accuracies over the angles of the curves."""
    columns = [name for name in NAMES if name in sets]
    rows = [[TITLES[line], *(_cell(sets[name], line) for name in columns)] for line in LINES]
    figure = figures.new(figures.PAGE, 2.4)
    axes = figure.subplots()
    axes.axis("off")
    table = axes.table(
        rows,
        colLabels=[
            "top-1\n[95% interval]",
            *(_head(name, sets[name]) for name in columns),
        ],
        loc="center",
        cellLoc="left",
        colLoc="left",
        colWidths=[FIRST_COLUMN, *([(1 - FIRST_COLUMN) / len(columns)] * len(columns))],
        edges="horizontal",
    )
    table.auto_set_font_size(False)
    table.set_fontsize(6)
    table.scale(1, 1.4)
    for column in range(len(columns) + 1):
        table[0, column].set_height(1.3 * table[0, column].get_height())
    return figure


def _head(name: str, result: JsonDict) -> str:
    words = SHORT.get(name, NAMES[name]).replace(", ", ",\n", 1)
    return f"{words}\n{images_of(result):,} images"


def accuracy(result: JsonDict, line: str) -> float:
    """The top-1 accuracy over the images and angles of the curves."""
    if "n_on_the_grid" in result:
        return float(np.mean(result["lines"][line]))
    return float(result["uniform"][line])


def _cell(result: JsonDict, line: str) -> str:
    if line not in result["lines"]:
        return "–"
    share = accuracy(result, line)
    low, high = (100 * end for end in interval(share, images_of(result)))
    return f"{share:.1%} [{low:.0f}, {high:.0f}]"
