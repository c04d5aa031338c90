"""The Toeplitz prior at weights from 0.01 to 1, before the hub and after it.

`prior` follows the paper: a constant rate, and weights of 1. Here the schedule is one-cycle, the
prior compares embeddings before the hub is added (the encoder's) or after it (the context
encoder's), and its weight varies. If a lighter prior does no harm, it was too heavy. If the
gradients of both losses are orthogonal and reaching the prior's goal changes nothing, it is a
second task.
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
from radialbeams.reproduce.prior_weight_measures import (
    BEAMS,
    OBJECTS,
    PLACES,
    Place,
    compared,
    gradients,
    measure,
    measure_quickly,
    shifts_found,
    weighted,
)
from radialbeams.reproduce.seed_statistics import compare, over_seeds, spread, unclear
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord, data_notes, tagged
from radialbeams.reproduce.trainings import Measure, PlannedTraining
from radialbeams.stored import JsonFields
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
JUDGED = 8  # times that the gradients are compared during training


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
    """The extremes first; quick settings have only these."""
    found = [WeightKind(protocol) for protocol in PROTOCOLS]
    return found + [
        WeightKind(protocol, place, weight)
        for weight in ([max(WEIGHTS)] if quick else sorted(WEIGHTS, reverse=True))
        for place in PLACES
        for protocol in PROTOCOLS
    ]


def recipe(kind: WeightKind, seed: int, settings: ReproduceSettings) -> Recipe:
    effort = settings.pick(quick=QUICK_EFFORT, full=FULL)
    found = Recipe(
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
    return paper.fitting(found, settings)


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    """All kinds of the first seed, then all of the second: what is cut off leaves whole seeds."""
    effort = settings.pick(quick=QUICK_EFFORT, full=FULL)
    return [
        PlannedTraining(
            f"{kind.name}-seed{seed}",
            recipe(kind, seed, settings),
            {"kind": kind.name},
            images=effort.images,
            held_out=effort.held_out,
            validations=settings.pick(quick=2, full=JUDGED),
            measure=measure_quickly if settings.quick else measure_of(kind, seed),
            parts=parts(kind),
        )
        for seed in settings.seeds_of(quick=1, full=SEEDS)
        for kind in kinds(settings.quick)
    ]


def measure_of(kind: WeightKind, seed: int) -> Measure:
    """Orbits take minutes on a CPU: only those that `topology` shows, of one seed."""
    shown = seed == 0 and kind.weight in (0.0, max(WEIGHTS))
    return partial(measure, objects=OBJECTS if shown else 0)


def parts(kind: WeightKind) -> Parts:
    def loss(recipe: Recipe, images: ImageSet, device: torch.device) -> Loss:
        return weighted(kind.place, kind.weight)

    return Parts(loss=loss, validation=compared)


# --- what was found ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    cells = {}
    for kind in kinds():
        runs = tagged(records, kind=kind.name)
        cells[kind.name] = {**vars(kind), **cell(runs)}
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
    """The same of the pretrained network, which has converged without a prior."""
    there = open_pretrained(MODEL, settings, limit=settings.pick(quick=8, full=FULL.held_out))
    known = next(iter(zoo.find(MODEL).card.metrics.values()))
    return {
        "shifts": shifts_found(there.model, there.views, there.images.images, there.device),
        "gradients": gradients(there.model, there.views, there.images, there.device),
        "mean": known.evaluation.mean,
    }


def cell(runs: Sequence[TrainingRecord]) -> Record:
    """Over the seeds that have finished: errors, shifts found, and the two gradients."""
    measured = [run.measured for run in runs if run.finished]
    found: Record = {"seeds": len(measured), "diverged": len(runs) - len(measured)}
    for group in ("cyclic", "so2"):
        found[group] = spread([one[group]["mean"] for one in measured])
    for place in PLACES:
        found[f"shifts_{place}"] = spread([one["shifts"][place] for one in measured])
        found[f"cosine_{place}"] = spread([_along(one, place, "cosine") for one in measured])
        found[f"ratio_{place}"] = spread([_along(one, place, "ratio") for one in measured])
        found[f"cosines_{place}"] = [[p[place]["cosine"] for p in one["along"]] for one in measured]
    found["judged"] = [point["step"] for point in measured[0]["along"]] if measured else []
    return found


def _along(measured: Record, place: str, name: str) -> float:
    """The mean over the training."""
    values = [point[place][name] for point in measured["along"]]
    return float(sum(values) / len(values))


def conclude(data: Record) -> Conclusion:
    cells = data["cells"]
    ours = {ANSWER: answer(cells)}
    for one in cells.values():
        if one["seeds"]:
            ours[f"mean error on C_B, {words(one)}"] = _row(cells, one)
    return ours, sentence(data)


ANSWER = "a second task, or too heavy"


def words(one: JsonFields) -> str:
    views = _views(one["protocol"])
    if not one["weight"]:
        return f"{views}, no prior"
    return f"{views}, weight {one['weight']:g} {one['place']} the hub"


def _row(cells: Mapping[str, Record], one: Record) -> str:
    error, place = one["cyclic"], one["place"] if one["weight"] else "before"
    text = (
        f"{over_seeds(error['values'])}, {one[f'shifts_{place}']['mean']:.0%} of shifts found, "
        f"cosine {_signed(one[f'cosine_{place}']['mean'])}"
    )
    if not one["weight"]:
        return text
    return f"{text}; {_against(cells, one)}"


def _against(cells: Mapping[str, Record], one: Record) -> str:
    off = cells[WeightKind(one["protocol"]).name]["cyclic"]
    sign = compare(one["cyclic"], off)
    said = {-1: "better than without", 1: "worse than without"}
    return said[sign] if sign else unclear(one["cyclic"], off)


def signs(cells: Mapping[str, Record]) -> dict[float, list[int]]:
    """For every weight with enough seeds, which of its kinds are better (−1) or worse (1)."""
    found: dict[float, list[int]] = {}
    for one in judged(cells):
        off = cells[WeightKind(one["protocol"]).name]["cyclic"]
        found.setdefault(one["weight"], []).append(compare(one["cyclic"], off))
    return dict(sorted(found.items()))


def answer(cells: Mapping[str, Record]) -> str:
    """Whether the prior is a second task or too heavy, from the weights at which it hurts."""
    if not changes(cells):
        return "not trained"
    found = signs(cells)
    if not found:
        return f"open, with one seed of each; {largest_change(cells)}"
    hurt = [weight for weight, those in found.items() if 1 in those]
    helped = [weight for weight, those in found.items() if -1 in those]
    if not hurt:
        text = f"neither: it does no clear harm at weight {_listed(list(found))}; "
        text += largest_change(cells)
    elif len(found) == 1:
        text = f"it hurts at weight {_listed(hurt)}; lighter ones have too few seeds to judge"
    elif min(hurt) > min(found):
        lighter = [weight for weight in found if weight < min(hurt)]
        text = f"too heavy: it hurts at weight {_listed(hurt)} and not at {_listed(lighter)}"
    else:
        text = f"a second task: it hurts at weight {_listed(hurt)}"
    return f"{text}; it helps at weight {_listed(helped)}" if helped else text


def judged(cells: Mapping[str, Record]) -> list[Record]:
    """The kinds with a prior that have two seeds or more, as has the one without."""
    return [
        one
        for one in cells.values()
        if one["weight"] and min(one["seeds"], cells[WeightKind(one["protocol"]).name]["seeds"]) > 1
    ]


def changes(cells: Mapping[str, Record]) -> dict[str, float]:
    """By kind, how many degrees of mean error the prior adds; below 0 is a gain."""
    return {
        name: one["cyclic"]["mean"] - cells[WeightKind(one["protocol"]).name]["cyclic"]["mean"]
        for name, one in cells.items()
        if one["weight"] and one["seeds"] and cells[WeightKind(one["protocol"]).name]["seeds"]
    }


def largest_change(cells: Mapping[str, Record]) -> str:
    """The change at the largest weight that was trained, in words."""
    found = changes(cells)
    weight = max(cells[name]["weight"] for name in found)
    most = [change for name, change in found.items() if cells[name]["weight"] == weight]
    return (
        f"at weight {weight:g} it changes the mean error by {_signed(min(most))}° to "
        f"{_signed(max(most))}°"
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _views(protocol: str) -> str:
    return "paper's views" if protocol == "paper" else "leak-free views"


def _listed(weights: Sequence[float]) -> str:
    return " and ".join(f"{weight:g}" for weight in sorted(weights))


def sentence(data: Record) -> str:
    cells = data["cells"]
    trained = [one for one in cells.values() if one["seeds"]]
    if not trained:
        return "Nothing has been trained yet."
    off = [one for one in trained if not one["weight"]]
    on = [one for one in trained if one["weight"]]
    cosines = [one[f"cosine_{place}"]["mean"] for one in off for place in PLACES]
    found = [one[f"shifts_{one['place']}"]["mean"] for one in on]
    parts = [
        f"Is the prior a second task, or too heavy? After {data['steps']:,} steps of a one-cycle "
        f"schedule: {answer(cells)}. `prior` asks the same at the paper's constant rate.",
        _how_far(off),
        _gradients(cosines),
    ]
    if off and found:
        share = sum(one["shifts_before"]["mean"] for one in off) / len(off)
        parts.append(
            f"The embeddings identify {share:.0%} of the shifts without the prior, and "
            f"{_between(found)} with it: it reaches its own goal."
        )
    counts = [one["seeds"] for one in trained]
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
        f"{_signed(min(cosines))} to {_signed(max(cosines))}, averaged over the training"
        f"{': they are close to orthogonal, as those of two tasks are' if near else ''}."
    )


def _at_the_end(found: Record) -> str:
    ratios = [one["ratio"] for one in found["gradients"].values()]
    cosines = " and ".join(
        f"{_signed(one['cosine'])} {place} the hub" for place, one in found["gradients"].items()
    )
    return (
        f"The pretrained network, which has converged without the prior ({found['mean']:.2f}°), "
        f"identifies {found['shifts']['before']:.0%} of the shifts before the hub and "
        f"{found['shifts']['after']:.0%} after it. There the cosine is {cosines}, and "
        f"the prior's gradient is {min(ratios):,.0f} to {max(ratios):,.0f} times as long as that "
        "of the circle loss: at weight 1 it outweighs a network that is nearly done."
    )


def _how_far(off: Sequence[Record]) -> str:
    """Whether the networks are near to the end of what training gives them."""
    best = min((one["cyclic"]["mean"] for one in off), default=0.0)
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
