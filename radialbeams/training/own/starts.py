"""The initial weights of a run: those of a pretrained model, of an earlier run, or none.

To choose among the pretrained models, each estimates the angles of some training images without
any training. The one with the smallest error is the start.
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
# Models that were measured to transfer well; the first one is taken if none is better.
CANDIDATES = ("ring", "ring.coil100-objects", "general")
PROBED = 48  # images that they are tried on
# A step of the general model's encoder costs a CPU as much as ten of a ring, so it has to be
# ahead by this much to be worth it.
AHEAD = 0.5


@dataclass(frozen=True)
class Start:
    """Initial weights, and the recipe that they were trained with."""

    name: str
    stem: Path  # of the weights and the card

    @property
    def card(self) -> Card:
        return zoo.find(f"{self.stem}.json").card

    @property
    def recipe(self) -> Recipe:
        return Recipe.of_card(self.card)


def licence(start: Start | None) -> str:
    """The licence of weights that were trained from this start."""
    if start is None:
        return "Weights: yours, as far as your images allow."
    return f"Started from {start.name}. {start.card.licence}".strip()


@dataclass(frozen=True)
class StartTrial:
    """The mean error of a pretrained model before training, in degrees."""

    name: str
    mean: float


def full_name(name: str) -> str:
    """The absolute path of a run's folder, so that the run can be resumed from any folder."""
    if name in (AUTO, SCRATCH) or name in zoo.names() or not Path(name).is_dir():
        return name
    return str(Path(name).resolve())


def find_start(name: str) -> Start | None:
    """The start with this name: a pretrained model or the folder of a run; None for scratch."""
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
    """The error of a pretrained model on images, which are read at the size that it needs."""
    model, card = load_model(zoo.find(name).stem)
    views = views_of(card.protocol, card.network.view_size)
    figures = evaluate(partial(predict_with, model), images(card.parent_size), views, seeds=1)
    return StartTrial(name, figures.mean)


def best_start(probes: list[StartTrial], *, gpu: bool) -> tuple[str, str]:
    """The most promising start, and the sentence for the log."""

    def handicapped(one: StartTrial) -> float:
        slow = not gpu and zoo.find(one.name).card.network.architecture == "convolutional"
        return one.mean / AHEAD if slow else one.mean

    best, nearest = min(probes, key=handicapped), min(probes, key=lambda one: one.mean)
    tried = ", ".join(f"{one.name} {one.mean:.1f}°" for one in probes)
    slow = (
        f"{nearest.name} trains much more slowly on a CPU, so it is chosen only if its error is at "
        f"most {AHEAD:.0%} of the next one. "
    )
    return best.name, (
        f"The start is {best.name}. Mean errors of the pretrained models on your images: "
        f"{tried}. {slow if nearest.mean < best.mean else ''}{zoo.find(best.name).card.licence}"
    )
