"""The contribution of each part of the paper's network: one change at a time.

Once under the paper's protocol with the paper's optimizer, and once on leak-free views with the
rate and schedule of the pretrained models, so that a part is judged by its final effect rather than
by how fast training starts. Compare results within a protocol only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from radialbeams.reproduce import paper
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.seed_statistics import compare, spread, unclear
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord
from radialbeams.reproduce.trainings import PlannedTraining
from radialbeams.stored import JsonDict, JsonFields
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASE = "base"
# Changes to the paper's network: three layers, λ = 0.5, a hub fed by the mean, ε = 1.
VARIANTS: dict[str, JsonDict] = {
    BASE: {},
    "context-off": {"context_layers": 0},
    "layers-1": {"context_layers": 1},
    "layers-5": {"context_layers": 5},
    "hub-summed": {"hub": "sum"},
    "hub-dead": {"hub": "dead"},
    "lambda-0.1": {"edge_factor": 0.1},
    "lambda-1": {"edge_factor": 1.0},
    "epsilon-0": {"epsilon": 0},
    "epsilon-2": {"epsilon": 2},
    "epsilon-3": {"epsilon": 3},
}
LABELS = {
    BASE: "base: 3 layers, mean hub, λ = 0.5, ε = 1",
    "context-off": "no context",
    "layers-1": "1 layer",
    "layers-5": "5 layers",
    "hub-summed": "hub by sum, sent to the rim in every layer",
    "hub-dead": "hub dead, equal rim",
    "lambda-0.1": "λ = 0.1",
    "lambda-1": "λ = 1",
    "epsilon-0": "ε = 0",
    "epsilon-2": "ε = 2",
    "epsilon-3": "ε = 3",
}
PROTOCOLS: tuple[Protocol, ...] = ("paper", "leakfree")
CHANCE = 90.0  # degrees of mean error
FAR = 4.0  # times the error of the base: larger errors are shown as numbers


def kind(variant: str, protocol: Protocol) -> str:
    return f"{protocol}-{variant}"


def recipe(variant: str, protocol: Protocol, seed: int, settings: ReproduceSettings) -> Recipe:
    size = settings.pick(quick=64, full=128)
    model = paper.network(protocol, size, settings, **VARIANTS[variant])
    common = Recipe(
        "coil100",
        model,
        size,
        protocol=protocol,
        seed=seed,
        **paper.effort(settings, quick_steps=100),
    )
    if protocol == "paper":
        return common
    steps = settings.pick(quick=100, full=2048)
    return replace(paper.fitting(common, settings), steps=steps)


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    return [
        PlannedTraining(
            f"{kind(variant, protocol)}-seed{seed}",
            recipe(variant, protocol, seed, settings),
            {"kind": kind(variant, protocol)},
            images=settings.pick(quick=400, full=None),
            held_out=settings.pick(quick=100, full=None),
        )
        for protocol in reversed(PROTOCOLS)
        for variant in VARIANTS
        for seed in settings.seeds_of(quick=1, full=3)
    ]


# --- results ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    cells = []
    for protocol in PROTOCOLS:
        for variant in VARIANTS:
            runs = [
                record
                for record in records.values()
                if record.tags["kind"] == kind(variant, protocol)
            ]
            cells.append({"protocol": protocol, "variant": variant, **cell_of(runs)})
    for cell in cells:
        cell["sign"] = sign(cell, find(cells, cell["protocol"], BASE))
    ours, why = conclude({"cells": cells})
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, {"cells": cells})


def conclude(data: Record) -> Conclusion:
    return numbers(data["cells"]), sentence(data["cells"])


def cell_of(runs: Sequence[TrainingRecord]) -> JsonDict:
    """The errors over seeds; a run counts as diverged if its loss was not finite."""
    results = [run.errors() for run in runs if run.finished]
    return {
        "diverged": len(runs) - len(results),
        "parameters": next((run.parameters for run in runs if run.finished), None),
        **{
            name: spread([result[key] for result in results]) if results else None
            for name, key in (("mean", "mean"), ("degrees", "paper_equivalent"))
        },
    }


def sign(cell: JsonFields, base: JsonFields) -> int:
    """1 if worse than the base by Welch's test over seeds, −1 if better, 0 if not significant."""
    if cell["mean"] is None or base["mean"] is None:
        return 1 if base["mean"] is not None else 0
    return compare(cell["mean"], base["mean"])


def find(cells: Sequence[Record], protocol: str, variant: str) -> Record:
    wanted = {"protocol": protocol, "variant": variant}
    return next(cell for cell in cells if wanted.items() <= cell.items())


def numbers(cells: Sequence[Record]) -> dict[str, str]:
    ours = {}
    for cell in cells:
        text = _degrees(cell)
        if cell["variant"] != BASE:
            text += f" ({_comparison(cell, find(cells, cell['protocol'], BASE))})"
        ours[f"mean error, {cell['protocol']}, {LABELS[cell['variant']]}"] = text
    return ours


def _comparison(cell: JsonFields, base: JsonFields) -> str:
    if cell["sign"]:
        return "worse" if cell["sign"] > 0 else "better"
    if cell["mean"] is None or base["mean"] is None:
        return "nothing to compare"
    return unclear(cell["mean"], base["mean"])


def _degrees(cell: JsonFields) -> str:
    if cell["mean"] is None:
        return "diverged"
    return f"{cell['mean']['mean']:.2f}° ± {cell['mean']['std']:.2f}°"


def sentence(cells: Sequence[Record]) -> str:
    parts = []
    for protocol in PROTOCOLS:
        changed = [
            cell for cell in cells if cell["protocol"] == protocol and cell["variant"] != BASE
        ]
        by_verdict = {
            word: [LABELS[cell["variant"]] for cell in changed if cell["sign"] == sign]
            for word, sign in (("worse", 1), ("better", -1))
        }
        verdicts = "; ".join(
            f"{word}: {', '.join(names) or 'none'}" for word, names in by_verdict.items()
        )
        base = _degrees(find(cells, protocol, BASE))
        parts.append(f"Protocol `{protocol}`, base {base}: {verdicts}.")
    return (
        f"The paper has no ablation. By Welch's test over seeds, against the base: "
        f"{' '.join(parts)} The other changes make no clear difference, which three seeds leave "
        "room for: each row says how small a difference would have gone unnoticed. The context "
        "encoder of the paper's text and that of its authors' code are in `staircase`."
    )


# --- figures ---


def draw(record: Record) -> dict[str, Figure]:
    return {"": draw_variants(record["data"]["cells"])}


def draw_variants(cells: Sequence[Record]) -> Figure:
    """The errors by variant: a dot for every seed, and a line at the base."""
    from radialbeams.reproduce import figures

    figure = figures.new(figures.PAGE, 3.0)
    panels = figure.subplots(1, 2)
    titles = ("a  the paper's protocol and optimizer", "b  leak-free views, one-cycle rate")
    for axes, protocol, title in zip(panels, PROTOCOLS, titles, strict=True):
        base = find(cells, protocol, BASE)
        if base["mean"] is not None:
            axes.axvline(base["mean"]["mean"], color="0.4", lw=0.8, ls="--")
        panel_cells = [find(cells, protocol, variant) for variant in VARIANTS]
        axes.set(xscale="log", xlabel="mean error, test", ylim=(len(VARIANTS) - 0.5, -0.5))
        axes.set_xlim(*_limits(panel_cells, base))
        for y, cell in enumerate(panel_cells):
            _dots(axes, cell, y)
        figures.plain_log(axes.xaxis)
        axes.xaxis.set_major_formatter("{x:g}°")
        axes.set_yticks(range(len(VARIANTS)), [LABELS[variant] for variant in VARIANTS])
        axes.grid(axis="y", visible=False)
        axes.set_title(title)
    panels[1].tick_params(labelleft=False)
    for colour, label in zip(
        _colours().values(), ("better", "no clear difference", "worse"), strict=True
    ):
        panels[0].plot([], [], "o", color=colour, label=label)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def _colours() -> dict[int, str]:
    from radialbeams.reproduce import figures

    return {-1: figures.GREEN, 0: figures.GREY, 1: figures.ORANGE}


def _limits(cells: Sequence[JsonFields], base: JsonFields) -> tuple[float, float]:
    """The range of the errors near the base, without networks that learned nothing."""
    if base["mean"] is None:
        return 1.0, CHANCE
    limit = FAR * base["mean"]["mean"]
    values = [value for cell in cells if cell["mean"] for value in cell["mean"]["values"]]
    near = [value for value in values if value <= limit]
    return min(near) / 1.1, max(near) * 1.25


def _dots(axes: Axes, cell: JsonFields, y: float) -> None:
    colour = _colours()[cell["sign"]]
    right = axes.get_xlim()[1]
    if cell["mean"] is None or min(cell["mean"]["values"]) > right:
        text = "diverged" if cell["mean"] is None else f"{cell['mean']['mean']:.0f}° →"
        axes.annotate(text, (right / 1.02, y), color=colour, va="center", ha="right")
        return
    values = cell["mean"]["values"]
    axes.plot(values, [y] * len(values), "o", color=colour, ms=3)
    axes.plot([cell["mean"]["mean"]], [y], "|", color=colour, ms=10)


EXPERIMENT = Experiment(
    name="ablation",
    claim=(
        "The network encodes context on a directed wheel graph whose hub gathers all beams, with "
        "an edge factor λ and beams of thickness ε = 1. The paper does not ablate any of these"
    ),
    paper={},
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
