"""The figures of `beams`, from its JSON alone. Lines are medians: one seed diverged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from radialbeams.reproduce import figures
from radialbeams.reproduce.beams import CURVES, ROWS, find
from radialbeams.reproduce.experiment import Record
from radialbeams.stored import JsonDict


def draw(record: Record) -> dict[str, Figure]:
    data = record["data"]
    return {
        "": draw_over_beams(data["cells"]),
        "curves": draw_curves(data["curves"], data["main"]),
        "answer": draw_answer(data["answer"]["rows"], data["main"]),
    }


PANELS = {
    "a  as the authors' code draws": ("view", "image"),
    "b  fresh angles for both": ("view", "view"),
    "c  one angle per image": ("image", "image"),
}


def _colours() -> dict[str, str]:
    colours = (figures.BLUE, figures.YELLOW, figures.ORANGE)
    return dict(zip(CURVES, colours, strict=True))


def draw_over_beams(cells: Sequence[Record]) -> Figure:
    figure = figures.new(figures.PAGE, 2.7)
    panels = figure.subplots(1, 3, sharey=True)
    paper = [cell for cell in cells if cell["protocol"] == "paper"]
    beam_counts = sorted({cell["beams"] for cell in paper})
    for axes, (title, (cyclic, so2)) in zip(panels, PANELS.items(), strict=True):
        for name, (trained, tested) in CURVES.items():
            drawn = cyclic if trained == "cyclic" else so2
            rows = [find(paper, "paper", beams, trained, drawn) for beams in beam_counts]
            for key, linestyle in ((f"test_{tested}", "--"), ("train", "-")):
                if key == "train" and name == "C_B → SO(2)":
                    continue  # the same trainings as C_B
                _medians(
                    axes,
                    beam_counts,
                    [row[key]["values"] for row in rows],
                    _colours()[name],
                    linestyle,
                )
        axes.set(xscale="log", yscale="log", xlabel="number of beams |B|")
        axes.set_xticks(beam_counts, [str(beams) for beams in beam_counts])
        axes.minorticks_off()
        axes.set_title(title.replace(" protocol", ""))
    panels[0].set_ylabel("circle loss")
    figures.plain_log(panels[0].yaxis)
    figures.degrees_axis(panels[-1])
    figures.legend_above(figure, _colours(), {"training": "-", "test": "--"})
    return figure


def _medians(
    axes: Axes,
    beam_counts: Sequence[int],
    runs: Sequence[Sequence[float]],
    colour: str,
    linestyle: str,
) -> None:
    """Draws a line through the medians and, for test losses, a dot for every seed."""
    axes.plot(beam_counts, [float(np.median(values)) for values in runs], linestyle, color=colour)
    if linestyle == "--":
        for beams, values in zip(beam_counts, runs, strict=True):
            axes.plot([beams] * len(values), values, "o", color=colour, ms=2, alpha=0.7)


def draw_curves(curves: JsonDict, beams: int) -> Figure:
    figure = figures.new(figures.PAGE, 4.6)
    panels = figure.subplots(2, 2, sharey=True, sharex=True)
    ways = product((("", "as the paper trains"), ("-fits", "to convergence")), ("fixed", "fresh"))
    for axes, letter, ((fits, how), drawn) in zip(panels.flat, "abcd", ways, strict=True):
        for name, (trained, tested) in CURVES.items():
            curve, colour = curves[f"paper-{beams}-{trained}-{drawn}{fits}"], _colours()[name]
            tests = curve[f"test_{tested}"]
            figures.band(axes, curve["test_step"], tests, colour, "--", "median")
            if name != "C_B → SO(2)":
                figures.band(axes, curve["train_step"], curve["train"], colour, "-", "median")
        axes.set(yscale="log")
        angles = "one angle per image" if drawn == "fixed" else "fresh angles"
        axes.set_title(f"{letter}  {how}, {angles}")
    for axes in panels[1]:
        axes.set_xlabel(f"training steps, {beams} beams")
    for axes, last in panels:
        axes.set_ylabel("circle loss")
        figures.degrees_axis(last)
    figures.plain_log(panels[0, 0].yaxis)
    figures.legend_above(figure, _colours(), {"training": "-", "test": "--"})
    return figure


def draw_answer(rows: Sequence[Record], beams: int) -> Figure:
    """The losses on SO(2) at 32 beams under each protocol: a dot for every seed."""
    figure = figures.new(figures.PAGE, 2.3)
    panels = figure.subplots(1, len(ROWS), squeeze=False, sharex=True)[0]
    colours = _colours()
    for axes, ((protocol, fits), title) in zip(panels, ROWS.items(), strict=True):
        wanted = {"protocol": protocol, "fits": fits, "beams": beams}
        panel_rows = [row for row in rows if wanted.items() <= row.items()]
        for y, row in enumerate(panel_rows):
            for shift, key, name in ((-0.12, "cyclic", "C_B → SO(2)"), (0.12, "so2", "SO(2)")):
                values = row[key]["values"]
                axes.plot(values, [y + shift] * len(values), "o", color=colours[name], ms=3)
                middle = float(np.median(values))
                axes.plot([middle], [y + shift], "|", color=colours[name], ms=11)
        axes.set_yticks(range(len(panel_rows)), [row["comparison"] for row in panel_rows])
        axes.set(
            xlabel="circle loss on SO(2), test", xscale="log", ylim=(len(panel_rows) - 0.5, -0.5)
        )
        axes.grid(axis="y", visible=False)
        axes.set_title(title.replace(" protocol", ""))
        if axes is not panels[0]:
            axes.tick_params(labelleft=False)
    panels[0].set_xticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    panels[0].minorticks_off()
    for name, key in (("C_B → SO(2)", "trained on C_B"), ("SO(2)", "trained on SO(2)")):
        panels[0].plot([], [], "o", color=colours[name], label=key)
    figure.legend(loc="outside upper center", ncols=2)
    return figure
