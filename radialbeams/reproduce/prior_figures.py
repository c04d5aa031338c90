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
            found = curves[f"{variant}-paper-{mode}"]
            figures.band(axes, found["train_step"], found["train"], colour, "-")
            figures.band(axes, found["test_step"], found["test"], colour, "--")
        axes.set(xlabel="training steps", yscale="log")
        axes.set_title(title)
    panels[0].set_ylabel("circle loss on C_B")
    figures.plain_log(panels[0].yaxis)
    figures.degrees_axis(panels[-1])
    looks = {f"prior {mode}": colour for mode, colour in _colours().items()}
    figures.legend_above(figure, looks, {"training": "-", "test": "--"})
    return figure


def draw_variants(cells: Sequence[Record]) -> Figure:
    """A dot for every seed: the errors, and how often the strongest diagonal is the true shift."""
    figure = figures.new(figures.PAGE, 3.1)
    left, right = figure.subplots(1, 2)
    rows = sorted(
        {(one["protocol"] != "paper", list(VARIANTS).index(one["variant"])) for one in cells}
    )
    names = list(VARIANTS)
    labels = []
    for place, (leakfree, number) in enumerate(rows):
        protocol = "leakfree" if leakfree else "paper"
        labels.append(VARIANTS[names[number]].words + (", leakfree" if leakfree else ""))
        here = [
            one for one in cells if (one["variant"], one["protocol"]) == (names[number], protocol)
        ]
        for one in here:
            shift = 0.2 * (list(_colours()).index(one["mode"]) - 1)
            for axes, what in ((left, "test_cyclic"), (right, "shift_found")):
                _dots(axes, one[what], place + shift, _colours()[one["mode"]])
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


def _dots(axes: Axes, found: JsonDict, place: float, colour: str) -> None:
    axes.plot(found["values"], [place] * len(found["values"]), "o", color=colour, ms=3)
    axes.plot([found["mean"]], [place], "|", color=colour, ms=9)
