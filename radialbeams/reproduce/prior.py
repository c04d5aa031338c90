"""The Toeplitz prior off, dynamic and full, and whether its harm was a bug.

`exact` is the prior as the paper intends it: beams at equal angles, so that a rotation of C_|B| is
a roll of the beams; the plain distance; cross-entropy with the correct sign. `authors` is what the
authors' code does instead: beams whose ends are equally spaced along the border, the squared
distance, and a hub without input. The other variants change one thing at a time. All are trained on
the rotations of C_|B| in equal steps and with the paper's schedule 1/e; the authors' code rotates
by the angles of its own, unequally spaced beams, and shifts the weights linearly over the epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from radialbeams.nn.architectures import Network, build, with_beams
from radialbeams.nn.beams import BresenhamBeams
from radialbeams.nn.bic import BIC
from radialbeams.nn.context import Hub
from radialbeams.nn.prior import PRIOR_MODES, PriorMode, ToeplitzPrior
from radialbeams.reproduce import paper
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.seed_statistics import compare, finished, mean_curve, spread, unclear
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord, tagged
from radialbeams.reproduce.trainings import PlannedTraining, Trained, errors
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import GROUPS, Protocol, draw_angles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEAMS = 32
# Keys that our numbers share with the paper's.
BEST = "best of off, dynamic and full"
WHY = "why the prior hurts"

# --- the variants ---


class SquaredPrior(ToeplitzPrior):
    """Similarities 1/(1 + ‖·‖²), as in the authors' code."""

    def forward(self, upright: Tensor, turned: Tensor) -> Tensor:
        distances = torch.cdist(
            upright.float(), turned.float(), compute_mode="donot_use_mm_for_euclid_dist"
        )
        logits = torch.einsum("nij,kij->nk", 1 / (1 + distances.square()), self.extractor)
        return logits.log_softmax(dim=-1)


class PrintedPrior(ToeplitzPrior):
    """The prior with the sign of the loss as printed: `prior_loss` negates its input."""

    def forward(self, upright: Tensor, turned: Tensor) -> Tensor:
        return -super().forward(upright, turned)


def border_network(recipe: Recipe, images: ImageSet) -> Network:
    """A network whose beams end in equal steps along the border: only quarter turns are rolls."""
    model = build(recipe.model)
    c = with_beams(recipe.model)
    layout = (c.num_beams, c.beam_length, c.epsilon, c.view_size)
    model.beams = BresenhamBeams(*layout, spacing="border")
    return model


class PriorVariant(NamedTuple):
    parts: Parts
    hub: Hub
    label: str


VARIANTS = {
    "exact": PriorVariant(Parts(), "mean", "exact"),
    "authors": PriorVariant(
        Parts(network=border_network, prior=SquaredPrior), "dead", "authors' code"
    ),
    "border": PriorVariant(Parts(network=border_network), "mean", "border steps"),
    "squared": PriorVariant(Parts(prior=SquaredPrior), "mean", "squared distance"),
    "printed": PriorVariant(Parts(prior=PrintedPrior), "mean", "sign as printed"),
}


@dataclass(frozen=True)
class PriorKind:
    """One kind of training; its runs differ only in the seed."""

    variant: str
    protocol: Protocol
    mode: PriorMode

    @property
    def name(self) -> str:
        return f"{self.variant}-{self.protocol}-{self.mode}"


def kinds() -> list[PriorKind]:
    """`exact` and `authors` in every mode, `exact` also on leak-free views; others with `full`."""
    planned = [
        PriorKind(variant, "paper", mode)
        for variant in ("exact", "authors")
        for mode in PRIOR_MODES
    ]
    planned += [PriorKind("exact", "leakfree", mode) for mode in PRIOR_MODES]
    # Without the prior, its distance and its sign have no effect.
    planned += [PriorKind("border", "paper", "off")]
    return planned + [PriorKind(name, "paper", "full") for name in ("border", "squared", "printed")]


def recipe(kind: PriorKind, seed: int, settings: ReproduceSettings) -> Recipe:
    size = settings.pick(quick=48, full=128)
    changes: JsonDict = {"num_beams": BEAMS, "hub": VARIANTS[kind.variant].hub}
    return Recipe(
        "coil100",
        paper.network(kind.protocol, size, settings, latent=32, **changes),
        size,
        protocol=kind.protocol,
        group="cyclic",
        prior=kind.mode,
        seed=seed,
        **paper.effort(settings, quick_steps=200),
    )


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    planned = []
    for kind in kinds():
        main_variant = kind.protocol == "paper" and kind.variant in ("exact", "authors")
        for seed in settings.seeds_of(
            quick=2 if main_variant else 1, full=5 if main_variant else 3
        ):
            planned.append(
                PlannedTraining(
                    f"{kind.name}-seed{seed}",
                    recipe(kind, seed, settings),
                    {"kind": kind.name},
                    images=settings.pick(quick=400, full=None),
                    held_out=settings.pick(quick=120, full=None),
                    validations=settings.pick(quick=4, full=16),
                    measure=measure,
                    parts=VARIANTS[kind.variant].parts,
                )
            )
    return planned


def measure(trained: Trained) -> JsonDict:
    return {**errors(trained), "shift_found": shift_found(trained)}


@torch.inference_mode()
def shift_found(trained: Trained, batch: int = 128) -> float:
    """The share of images whose strongest diagonal is the true shift; chance is 1/|B|."""
    model, views, beams = trained.model, trained.fit.views, trained.recipe.model.num_bins
    if not isinstance(model, BIC):
        raise TypeError(
            f"Expected the paper's network, whose embeddings the prior compares; got "
            f"{type(model).__name__}."
        )
    squared = trained.fit.parts.prior is SquaredPrior
    prior = (SquaredPrior if squared else ToeplitzPrior)(beams).to(trained.device)
    images = trained.held_out.images
    angles = draw_angles("evaluation", 0, 0, len(images), group="cyclic", num_beams=beams)
    correct = 0
    for start in range(0, len(images), batch):
        parents = images[start : start + batch].to(trained.device)
        turns = angles[start : start + batch].to(trained.device)
        upright, turned = (
            model.embed(views.upright(parents)),
            model.embed(views.render(parents, turns)),
        )
        estimated = prior(upright, turned).argmax(dim=-1)
        true = torch.round(turns * (beams / (2 * torch.pi))).long() % beams
        correct += int((estimated == true).sum())
    return correct / len(images)


# --- results ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    cells, curves = [], {}
    for kind in kinds():
        runs = tagged(records, kind=kind.name)
        cells.append({**vars(kind), **cell_of(runs)})
        if kind.protocol == "paper" and kind.variant in ("exact", "authors"):
            curves[kind.name] = curves_of(runs)
    data = {"cells": cells, "curves": curves, "answer": verdict(cells)}
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data)


def conclude(data: Record) -> Conclusion:
    answer = verdict(data["cells"])
    headlines = {BEST: _best(data["cells"]), WHY: answer["meaning"]}
    return {**headlines, **numbers(data["cells"]), **answer["harm"]}, answer["sentence"]


def cell_of(runs: Sequence[TrainingRecord]) -> JsonDict:
    results = [run.measured for run in runs if run.finished]
    cell: JsonDict = {"diverged": len(runs) - len(results)}
    for group in GROUPS:
        cell[f"test_{group}"] = spread([result[group]["circle_loss"] for result in results])
        cell[f"degrees_{group}"] = spread([result[group]["paper_equivalent"] for result in results])
    return {**cell, "shift_found": spread([result["shift_found"] for result in results])}


def curves_of(runs: Sequence[TrainingRecord]) -> JsonDict:
    runs = finished(runs)
    return {
        "train_step": runs[0].steps,
        "train": mean_curve([run.losses for run in runs]),
        "test_step": runs[0].validated_at,
        "test": mean_curve([run.validated("cyclic") for run in runs]),
    }


def numbers(cells: Sequence[Record]) -> dict[str, str]:
    ours = {}
    for cell in cells:
        error, share = cell["degrees_cyclic"], cell["shift_found"]
        name = f"{VARIANTS[cell['variant']].label}, {cell['protocol']}, prior {cell['mode']}"
        ours[f"paper-equivalent error on C_B, {name}"] = (
            f"{error['mean']:.2f}° ± {error['std']:.2f}°"
        )
        ours[f"shifts identified, {name}"] = f"{share['mean']:.0%}"
    return ours


VERDICTS = {-1: "better", 1: "worse"}
LEARNT = 0.9  # the lowest share of identified shifts at which the prior has reached its goal


def verdict(cells: Sequence[Record]) -> JsonDict:
    """Whether the prior hurts, in its exact form and as in the authors' code."""
    harm: dict[str, str] = {}
    signs: dict[tuple[str, str], list[int]] = {}
    for cell in cells:
        if cell["mode"] == "off":
            continue
        # Without the prior, its distance and its sign have no effect.
        base = cell["variant"] if cell["variant"] in ("authors", "border") else "exact"
        off = _find(cells, base, cell["protocol"], "off")
        sign = compare(cell["test_cyclic"], off["test_cyclic"])
        signs.setdefault((cell["variant"], cell["protocol"]), []).append(sign)
        name = f"{VARIANTS[cell['variant']].label}, {cell['protocol']}, prior {cell['mode']}"
        errors = cell["degrees_cyclic"], off["degrees_cyclic"]
        harm[f"against no prior: {name}"] = VERDICTS[sign] if sign else unclear(*errors)
    hurts = 1 in signs["exact", "paper"]
    meaning = _meaning(hurts, 1 in signs["authors", "paper"])
    reason = _why(cells) if hurts else ""
    listed = f"Paper-equivalent errors on C_B: {_errors_in_words(cells)}."
    sentence = f"By Welch's test over seeds, {meaning}.{reason} {listed}"
    return {"harm": harm, "meaning": meaning, "sentence": sentence}


def _best(cells: Sequence[Record]) -> str:
    """The mode of the exact prior with the lowest loss, and whether it clearly beats `off`."""
    modes = {mode: _find(cells, "exact", "paper", mode) for mode in PRIOR_MODES}
    best = min(modes, key=lambda mode: modes[mode]["test_cyclic"]["mean"])
    clear = compare(modes[best]["test_cyclic"], modes["off"]["test_cyclic"])
    return best if best == "off" or clear else f"{best}, not clearly different from off"


def _meaning(hurts_exact: bool, hurts_authors: bool) -> str:
    if hurts_exact and hurts_authors:
        return (
            "the harm is not a bug: with exact rolls, equal spacing, the plain distance and the "
            "correct sign the full prior still makes the estimates worse, as in the authors' code"
        )
    if hurts_authors:
        return (
            "the harm was a bug: the prior makes the estimates worse as in the authors' code, but "
            "not with exact rolls, equal spacing and the plain distance"
        )
    if hurts_exact:
        return "the exact prior makes the estimates worse, that of the authors' code does not"
    return "the prior does no visible harm, neither as in the authors' code nor in its exact form"


def _errors_in_words(cells: Sequence[Record]) -> str:
    return "; ".join(
        f"{VARIANTS[variant].label}: "
        + ", ".join(
            f"{mode} {_find(cells, variant, 'paper', mode)['degrees_cyclic']['mean']:.2f}°"
            for mode in PRIOR_MODES
        )
        for variant in ("exact", "authors")
    )


def _why(cells: Sequence[Record]) -> str:
    """Whether the prior reaches its own goal, in a sentence; empty if it was not learned."""
    shares = {
        (variant, mode): _find(cells, variant, "paper", mode)["shift_found"]["mean"]
        for variant in ("exact", "authors")
        for mode in ("off", "full")
    }
    if min(shares["exact", "full"], shares["authors", "full"]) < LEARNT:
        return ""
    return (
        " The prior reaches its own goal: the embeddings identify "
        f"{shares['exact', 'off']:.0%} of the shifts without it and {shares['exact', 'full']:.0%} "
        f"with it (authors' code: {shares['authors', 'off']:.0%} and "
        f"{shares['authors', 'full']:.0%}). Reaching it does not help the estimates, so the prior "
        "is a second task beside the first."
    )


def _find(cells: Sequence[Record], variant: str, protocol: str, mode: str) -> Record:
    wanted = {"variant": variant, "protocol": protocol, "mode": mode}
    return next(cell for cell in cells if wanted.items() <= cell.items())


def draw(record: Record) -> dict[str, Figure]:
    from radialbeams.reproduce import prior_figures  # it needs matplotlib

    return prior_figures.draw(record)


EXPERIMENT = Experiment(
    name="prior",
    claim=(
        "Over five runs the circle loss alone trains best, ahead of a dynamic combination with the "
        "Toeplitz prior and ahead of their sum. Whether the prior hurts or the code has a bug is "
        "left open"
    ),
    paper={BEST: "off", WHY: "a bug, or perturbations; left open"},
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
