"""The weights that a run begins with: shipped ones, those of an earlier run, or none.

Which of the shipped ones is measured: each estimates the angles of some training images as it is,
without any training. The one that is least off is the start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from radialbeams import zoo
from radialbeams.cards import Card
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import views_of
from radialbeams.training.weights import load_model

AUTO, SCRATCH = "auto", "scratch"
# What was measured to transfer; the first one is taken if none is better.
CANDIDATES = ("ring", "ring.coil100-objects", "general")
PROBED = 48  # images that they are tried on
# A step of the general model's encoder costs a CPU as much as ten of a ring, so it has to be
# ahead by this much to be worth it.
AHEAD = 0.5


@dataclass(frozen=True)
class Start:
    """Weights to begin with, and the recipe that they were trained with."""

    name: str
    stem: Path  # of the weights and the card

    @property
    def card(self) -> Card:
        return zoo.find(f"{self.stem}.json").card

    @property
    def recipe(self) -> Recipe:
        return Recipe.of_card(self.card)


def licence(start: Start | None) -> str:
    """What may be done with weights that began so."""
    if start is None:
        return "Weights: yours, as far as your images allow."
    return f"Started from {start.name}. {start.card.licence}".strip()


@dataclass(frozen=True)
class StartTrial:
    """How far off weights are without training, in degrees."""

    name: str
    mean: float


def full_name(name: str) -> str:
    """A run's folder by its whole path, so that it is found from wherever the run goes on."""
    if name in (AUTO, SCRATCH) or name in zoo.names() or not Path(name).is_dir():
        return name
    return str(Path(name).resolve())


def find_start(name: str) -> Start | None:
    """A shipped model's name or the folder of a run; None for scratch."""
    if name == SCRATCH:
        return None
    model = zoo.find(name)
    if model.card.network.reading != "posterior" or model.card.protocol.name != "leakfree":
        raise ValueError(
            f"Expected a start that was trained on leak-free views and knows how sure it is; "
            f"{name} is not. Use one of {', '.join(CANDIDATES)}, a run of your own, or {SCRATCH}."
        )
    return Start(model.name, model.stem)


def probe(name: str, images: Callable[[int], ImageSet]) -> StartTrial:
    """The error of a shipped model on images, which are read at the size that it wants."""
    model, card = load_model(zoo.find(name).stem)
    views = views_of(card.protocol, card.network.view_size)
    figures = evaluate(partial(predict_with, model), images(card.parent_size), views, seeds=1)
    return StartTrial(name, figures.mean)


def best_start(probes: list[StartTrial], *, gpu: bool) -> tuple[str, str]:
    """The start that should come out best, and the sentence for the log."""

    def handicapped(one: StartTrial) -> float:
        slow = not gpu and zoo.find(one.name).card.network.architecture == "convolutional"
        return one.mean / AHEAD if slow else one.mean

    best = min(probes, key=handicapped)
    tried = ", ".join(f"{one.name} by {one.mean:.1f}°" for one in probes)
    return best.name, (
        f"The start is {best.name}. Without training, the shipped models are off on your images: "
        f"{tried}. {zoo.find(best.name).card.licence}"
    )
