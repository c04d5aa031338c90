"""The Toeplitz prior at weights from 0.01 to 1, before the hub and after it.

`prior` follows the paper: a constant rate, and weights of 1. Here the schedule is one-cycle, the
prior compares embeddings before the hub is added (the encoder's) or after it (the context
encoder's), and its weight varies. If a lighter prior does no harm, it was too heavy. If the
gradients of both losses are orthogonal and reaching the prior's goal changes nothing, it is an
unrelated second task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch

from radialbeams import zoo
from radialbeams.nn.losses import Loss
from radialbeams.reproduce import paper
from radialbeams.reproduce.effort import FULL
from radialbeams.reproduce.effort import QUICK as QUICK_EFFORT
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.pretrained import open_pretrained
from radialbeams.reproduce.prior_weight_answer import against, answer, label, signed
from radialbeams.reproduce.prior_weight_measures import (
    BEAMS,
    OBJECTS,
    PLACES,
    Place,
    compare_gradients,
    gradients,
    measure,
    measure_quickly,
    shifts_found,
    weighted,
)
from radialbeams.reproduce.seed_statistics import over_seeds, spread
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord, data_notes, tagged
from radialbeams.reproduce.trainings import Measure, PlannedTraining
from radialbeams.training.data import ImageSet
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "prior-weight"
SEEDS = 3
MODEL = "bic.coil100"
PROTOCOLS: tuple[Protocol, ...] = ("paper", "leakfree")
WEIGHTS = (0.01, 0.1, 1.0)
GRADIENT_CHECKS = 8  # times that the gradients are compared during training


@dataclass(frozen=True)
class WeightKind:
    """One kind of training; its runs differ only in the seed. Without a prior the weight is 0."""

    protocol: Protocol
    place: Place = "after"
    weight: float = 0.0

    @property
    def name(self) -> str:
        if not self.weight:
            return f"{self.protocol}-off"
        return f"{self.protocol}-{self.place}-{self.weight:g}"


def kinds(quick: bool = False) -> list[WeightKind]:
    """No prior and the heaviest first; quick settings have only these."""
    without_prior = [WeightKind(protocol) for protocol in PROTOCOLS]
    return without_prior + [
        WeightKind(protocol, place, weight)
        for weight in ([max(WEIGHTS)] if quick else sorted(WEIGHTS, reverse=True))
        for place in PLACES
        for protocol in PROTOCOLS
    ]


def recipe(kind: WeightKind, seed: int, settings: ReproduceSettings) -> Recipe:
    effort = settings.pick(quick=QUICK_EFFORT, full=FULL)
    base = Recipe(
        "coil100",
        paper.network(kind.protocol, effort.size, settings, latent=32, num_beams=BEAMS),
        effort.size,
        protocol=kind.protocol,
        group="cyclic",
        prior="full" if kind.weight else "off",
        batch=effort.batch,
        steps=effort.steps,
        seed=seed,
    )
    return paper.fitting(base, settings)


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    """All kinds of the first seed, then all of the second: an interrupted run has whole seeds."""
    effort = settings.pick(quick=QUICK_EFFORT, full=FULL)
    return [
        PlannedTraining(
            f"{kind.name}-seed{seed}",
            recipe(kind, seed, settings),
            {"kind": kind.name},
            images=effort.images,
            held_out=effort.held_out,
            validations=settings.pick(quick=2, full=GRADIENT_CHECKS),
            measure=measure_quickly if settings.quick else measure_of(kind, seed),
            parts=parts(kind),
        )
        for seed in settings.seeds_of(quick=1, full=SEEDS)
        for kind in kinds(settings.quick)
    ]


def measure_of(kind: WeightKind, seed: int) -> Measure:
    """The measurements of a training; orbits take minutes, so only where `topology` needs them."""
    in_topology = seed == 0 and kind.weight in (0.0, max(WEIGHTS))
    return partial(measure, objects=OBJECTS if in_topology else 0)


def parts(kind: WeightKind) -> Parts:
    def loss(recipe: Recipe, images: ImageSet, device: torch.device) -> Loss:
        return weighted(kind.place, kind.weight)

    return Parts(loss=loss, validation=compare_gradients)


# --- results ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    cells = {}
    for kind in kinds():
        runs = tagged(records, kind=kind.name)
        cells[kind.name] = {**vars(kind), **cell_of(runs)}
    notes = data_notes(records.values())
    data = {
        "cells": cells,
        "notes": notes,
        "steps": settings.pick(quick=QUICK_EFFORT, full=FULL).steps,
    }
    data["pretrained"] = pretrained(settings)
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data)


def pretrained(settings: ReproduceSettings) -> Record:
    """The measurements of the pretrained network, which has converged without a prior."""
    held_out = open_pretrained(MODEL, settings, limit=settings.pick(quick=8, full=FULL.held_out))
    metrics = next(iter(zoo.find(MODEL).card.metrics.values()))
    return {
        "shifts": shifts_found(
            held_out.model, held_out.views, held_out.images.images, held_out.device
        ),
        "gradients": gradients(held_out.model, held_out.views, held_out.images, held_out.device),
        "mean": metrics.evaluation.mean,
    }


def cell_of(runs: Sequence[TrainingRecord]) -> Record:
    """Errors, shifts found and gradients of one kind, over the seeds that have finished."""
    results = [run.measured for run in runs if run.finished]
    cell: Record = {"seeds": len(results), "diverged": len(runs) - len(results)}
    for group in ("cyclic", "so2"):
        cell[group] = spread([result[group]["mean"] for result in results])
    for place in PLACES:
        cell[f"shifts_{place}"] = spread([result["shifts"][place] for result in results])
        cell[f"cosine_{place}"] = spread(
            [_training_mean(result, place, "cosine") for result in results]
        )
        cell[f"ratio_{place}"] = spread(
            [_training_mean(result, place, "ratio") for result in results]
        )
        cell[f"cosines_{place}"] = [
            [point[place]["cosine"] for point in result["along"]] for result in results
        ]
    cell["judged"] = [point["step"] for point in results[0]["along"]] if results else []
    return cell


def _training_mean(measured: Record, place: str, name: str) -> float:
    """The mean of a gradient statistic over the training."""
    values = [point[place][name] for point in measured["along"]]
    return float(sum(values) / len(values))


def conclude(data: Record) -> Conclusion:
    cells = data["cells"]
    ours = {ANSWER: answer(cells)}
    for cell in cells.values():
        if cell["seeds"]:
            ours[f"mean error on C_B, {label(cell)}"] = _row(cells, cell)
    return ours, sentence(data)


ANSWER = "a second task, or too heavy"


def _row(cells: Mapping[str, Record], cell: Record) -> str:
    error, place = cell["cyclic"], cell["place"] if cell["weight"] else "before"
    text = (
        f"{over_seeds(error['values'])}, {cell[f'shifts_{place}']['mean']:.0%} of shifts found, "
        f"cosine {signed(cell[f'cosine_{place}']['mean'])}"
    )
    if not cell["weight"]:
        return text
    return f"{text}; {against(cells, cell)}"


def sentence(data: Record) -> str:
    cells = data["cells"]
    trained = [cell for cell in cells.values() if cell["seeds"]]
    if not trained:
        return "Nothing has been trained yet."
    baselines = [cell for cell in trained if not cell["weight"]]
    with_prior = [cell for cell in trained if cell["weight"]]
    cosines = [cell[f"cosine_{place}"]["mean"] for cell in baselines for place in PLACES]
    shares_found = [cell[f"shifts_{cell['place']}"]["mean"] for cell in with_prior]
    parts = [
        f"Is the prior a second task, or too heavy? After {data['steps']:,} steps of a one-cycle "
        f"schedule: {answer(cells)}. `prior` asks the same at the paper's constant rate.",
        _how_far(baselines),
        _gradients(cosines),
    ]
    if baselines and shares_found:
        share = sum(cell["shifts_before"]["mean"] for cell in baselines) / len(baselines)
        parts.append(
            f"The embeddings identify {share:.0%} of the shifts without the prior, and "
            f"{_between(shares_found)} with it: it reaches its own goal."
        )
    counts = [cell["seeds"] for cell in trained]
    if min(counts) < max(counts):
        parts.append(f"Rows have {min(counts)} to {max(counts)} seeds.")
    parts.append(_at_the_end(data["pretrained"]))
    return " ".join(part for part in [*parts, *data["notes"]] if part)


def _between(shares: Sequence[float]) -> str:
    low, high = (f"{share:.0%}" for share in (min(shares), max(shares)))
    return low if low == high else f"{low} to {high}"


def _gradients(cosines: Sequence[float]) -> str:
    if not cosines:
        return ""
    near = max(map(abs, cosines)) < NEAR_ZERO
    return (
        "Without the prior the gradients of both losses have cosines from "
        f"{signed(min(cosines))} to {signed(max(cosines))}, averaged over the training"
        f"{': they are close to orthogonal, as those of two tasks are' if near else ''}."
    )


def _at_the_end(result: Record) -> str:
    ratios = [gradient["ratio"] for gradient in result["gradients"].values()]
    cosines = " and ".join(
        f"{signed(gradient['cosine'])} {place} the hub"
        for place, gradient in result["gradients"].items()
    )
    return (
        f"The pretrained network, which has converged without the prior ({result['mean']:.2f}°), "
        f"identifies {result['shifts']['before']:.0%} of the shifts before the hub and "
        f"{result['shifts']['after']:.0%} after it. There the cosine is {cosines}, and "
        f"the prior's gradient is {min(ratios):,.0f} to {max(ratios):,.0f} times as long as that "
        "of the circle loss: at weight 1 it outweighs a network that is nearly done."
    )


def _how_far(baselines: Sequence[Record]) -> str:
    """A caveat if the networks without a prior have not converged, else an empty string."""
    best = min((cell["cyclic"]["mean"] for cell in baselines), default=0.0)
    if best < CONVERGED:
        return ""
    return (
        f"Without the prior they still have {best:.0f}°, so these trainings are short; whether "
        "the answer holds for those that converge is not known."
    )


CONVERGED = 5.0  # degrees of mean error on C_B
NEAR_ZERO = 0.15  # cosines below are called close to orthogonal


def draw(record: Record) -> dict[str, Figure]:
    from radialbeams.reproduce import prior_weight_figures  # it needs matplotlib

    return prior_weight_figures.draw(record)


EXPERIMENT = Experiment(
    name=NAME,
    claim=(
        "The Toeplitz prior hurts: whether because of a bug or because its task perturbs the "
        "other is left open"
    ),
    paper={},
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
