"""The figures of `prior`, from its JSON alone."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from radialbeams.reproduce import figures
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.prior import BEAMS, VARIANTS
from radialbeams.stored import JsonDict


def draw(record: Record) -> dict[str, Figure]:
    data = record["data"]
    return {"": draw_curves(data["curves"]), "variants": draw_variants(data["cells"])}


def _colours() -> dict[str, str]:
    return {"off": figures.BLUE, "dynamic": figures.GREEN, "full": figures.ORANGE}


def draw_curves(curves: JsonDict) -> Figure:
    figure = figures.new(figures.PAGE, 2.7)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, variant, title in zip(
        panels, ("exact", "authors"), ("a  exact prior", "b  as in the authors' code"), strict=True
    ):
        for mode, colour in _colours().items():
            curve = curves[f"{variant}-paper-{mode}"]
            figures.band(axes, curve["train_step"], curve["train"], colour, "-")
            figures.band(axes, curve["test_step"], curve["test"], colour, "--")
        axes.set(xlabel="training steps", yscale="log")
        axes.set_title(title)
    panels[0].set_ylabel("circle loss on C_B")
    figures.plain_log(panels[0].yaxis)
    figures.degrees_axis(panels[-1])
    colours_by_label = {f"prior {mode}": colour for mode, colour in _colours().items()}
    figures.legend_above(figure, colours_by_label, {"training": "-", "test": "--"})
    return figure


def draw_variants(cells: Sequence[Record]) -> Figure:
    """Losses and shares of identified shifts by variant: a dot for every seed."""
    figure = figures.new(figures.PAGE, 3.1)
    left, right = figure.subplots(1, 2)
    rows = sorted(
        {(cell["protocol"] != "paper", list(VARIANTS).index(cell["variant"])) for cell in cells}
    )
    names = list(VARIANTS)
    labels = []
    for y, (leakfree, number) in enumerate(rows):
        protocol = "leakfree" if leakfree else "paper"
        labels.append(VARIANTS[names[number]].label + (", leakfree" if leakfree else ""))
        variant_cells = [
            cell
            for cell in cells
            if (cell["variant"], cell["protocol"]) == (names[number], protocol)
        ]
        for cell in variant_cells:
            shift = 0.2 * (list(_colours()).index(cell["mode"]) - 1)
            for axes, key in ((left, "test_cyclic"), (right, "shift_found")):
                _dots(axes, cell[key], y + shift, _colours()[cell["mode"]])
    for axes in (left, right):
        axes.set(ylim=(len(rows) - 0.5, -0.5))
        axes.set_yticks(range(len(rows)), labels)
        axes.grid(axis="y", visible=False)
    right.tick_params(labelleft=False)
    right.set(xlabel="shifts identified on held-out images", xlim=(-0.02, 1.02))
    right.axvline(1 / BEAMS, color="0.4", lw=0.7, ls=":")
    right.annotate(
        "chance",
        (1 / BEAMS, -0.45),
        fontsize=6.5,
        color="0.3",
        va="top",
        xytext=(2, 0),
        textcoords="offset points",
    )
    right.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    left.set(xlabel="circle loss on C_B, test", xscale="log")
    figures.plain_log(left.xaxis)
    left.set_title("a  effect of the prior on the estimates")
    right.set_title("b  does the prior reach its own goal?")
    figures.legend_above(figure, {f"prior {mode}": c for mode, c in _colours().items()}, {})
    return figure


def _dots(axes: Axes, statistics: JsonDict, y: float, colour: str) -> None:
    axes.plot(statistics["values"], [y] * len(statistics["values"]), "o", color=colour, ms=3)
    axes.plot([statistics["mean"]], [y], "|", color=colour, ms=9)
