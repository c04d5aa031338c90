"""What a loss of a network gets and returns. A row of `architectures` names the loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class RingLoss:
    """What the ring is trained with: a target, and the weights of what stands beside it."""

    width: float = 1.0  # of the target's bump, in beam steps
    circle: float = 1.0  # the paper's loss of the posterior's mean
    offset: float = 50.0  # 1 − cos of what the beams near the truth answer

    def __post_init__(self) -> None:
        if self.width <= 0:
            raise ValueError(f"The width of a target must be above 0; got {self.width}.")


@dataclass(frozen=True)
class LossInputs:
    """What a training step gives a loss."""

    views: Tensor  # (N, C, S, S)
    angles: Tensor  # (N,) radians
    rows: Tensor  # (N,): the places of the images in the training set
    # The views of the same images as they are, with the same brightness: rendered when called.
    upright: Callable[[], Tensor]
    prior: nn.Module | None  # compares the embeddings of both; None: the recipe has none
    weights: Tensor  # (2,): of L_circle and L_prior in this epoch
    settings: RingLoss  # the recipe's `loss`


@dataclass(frozen=True)
class Losses:
    """What a step reports: the mean circle loss of the answers, and that of the prior or 0."""

    circle: Tensor
    prior: Tensor


# Returns what is minimised, and what is reported.
Loss = Callable[[Any, LossInputs], tuple[Tensor, Losses]]
