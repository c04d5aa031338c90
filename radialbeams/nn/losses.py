"""The inputs and outputs of a loss. A row of `architectures` names the loss of a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class RingLoss:
    """The loss of the ring: the width of its target, and the weights of its additional terms."""

    width: float = 1.0  # of the von Mises target, in beam steps
    circle: float = 1.0  # weight of the paper's circle loss of the posterior's mean
    offset: float = 50.0  # weight of 1 − cos of the error of the beams near the true angle

    def __post_init__(self) -> None:
        if self.width <= 0:
            raise ValueError(f"The width of a target must be above 0; got {self.width}.")


@dataclass(frozen=True)
class LossInputs:
    """The inputs of a loss in a training step."""

    views: Tensor  # (N, C, S, S)
    angles: Tensor  # (N,) radians
    rows: Tensor  # (N,): the indices of the images in the training set
    # Renders the views of the same images without rotation, with the same brightness.
    upright: Callable[[], Tensor]
    prior: nn.Module | None  # compares the embeddings of both; None: the recipe has no prior
    weights: Tensor  # (2,): of L_circle and L_prior in this epoch
    settings: RingLoss  # the recipe's `loss`


@dataclass(frozen=True)
class Losses:
    """What a step reports: the mean circle loss of the estimates, and the prior's loss or 0."""

    circle: Tensor
    prior: Tensor


# Returns the loss to minimise, and the losses to report.
Loss = Callable[[Any, LossInputs], tuple[Tensor, Losses]]
