"""PosteriorAverage: a classifier's probabilities, averaged over the likely quarter turns.

Large errors of a canonicaliser are mostly wrong quarter turns, and its posterior often shows the
doubt: several quarter turns have a share of it. So an image is turned upright by the estimate and
by every further quarter turn that is likely. The classifier sees all of these images, and its
probabilities are averaged with the shares as weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from radialbeams.front.checks import check_images, check_number
from radialbeams.front.module import TorchCanonicalizer
from radialbeams.front.pose import Pose
from radialbeams.nn.angles import TURN, wrap
from radialbeams.nn.architectures import architecture
from radialbeams.nn.posterior import (
    WITHIN,
    Posterior,
    answer,
    mass_near,
    of_quarter_turned_views,
    posterior,
)

QUARTERS = 4
LEAST = 0.05  # the lowest probability of a quarter turn that is worth a run of the classifier
Scores = Literal["logits", "probabilities"]


class Estimates(NamedTuple):
    """The estimates for N images, and the probabilities of the quarter turns from there."""

    angle: Tensor  # (N,) radians
    # Of the estimate, and of the estimate plus 1, 2 and 3 quarter turns:
    shares: Tensor  # (N, 4): the posterior mass that is nearest to it
    confidence: Tensor  # (N, 4): the probability that it is within 10° of the truth


class PosteriorAverage(nn.Module):
    """Images (N, C, H, W) in [0, 1] → class probabilities (N, K).

    Quarter turns with a probability below `least` are left out; 0 runs the classifier on all four.
    Images whose confidence is below `more_views_below` after one view get three more views, the
    other quarter turns of the same square. None takes the value of the model's card, 0 means one
    view for all. The classifier returns logits, or probabilities with `scores="probabilities"`.

    Of the canonicaliser's options, `canvas`, `fill` and `still_degrees` apply, and its calibration.
    Its thresholds do not, since an unsure estimate spreads the weights, and neither does `snap`:
    images are turned by the estimated angles.
    """

    def __init__(
        self,
        canonicalizer: TorchCanonicalizer,
        classifier: Callable[[Tensor], Tensor],
        *,
        least: float = LEAST,
        more_views_below: float | None = None,
        scores: Scores = "logits",
    ) -> None:
        super().__init__()
        if architecture(canonicalizer.network.config).reading == "unit":
            raise ValueError(
                "An average over the posterior needs a network that has one, such as the ring; "
                "this one estimates a single direction."
            )
        check_number("least", least, 0, 1)
        if scores not in get_args(Scores):
            raise ValueError(
                f"scores must be one of {', '.join(get_args(Scores))}; got {scores!r}."
            )
        below = canonicalizer.more_views_below if more_views_below is None else more_views_below
        check_number("more_views_below", below, 0, 2)
        self.canonicalizer, self.classifier = canonicalizer, classifier
        self.least, self.more_views_below, self.scores = least, below, scores

    def forward(self, images: Tensor) -> Tensor:
        pose, weights = self.turns(images)  # M ≥ N of them
        upright = pose.apply_images(images[pose.source], self.canonicalizer.fill)  # (M, C, H', W')
        scores = self.classifier(upright).float()  # (M, K); half precision would not sum to 1
        probabilities = scores.softmax(-1) if self.scores == "logits" else scores
        weighted = probabilities * weights.float()[:, None]
        total = weighted.new_zeros(images.shape[0], weighted.shape[1])  # (N, K)
        return total.index_add(0, pose.source, weighted)

    def turns(self, images: Tensor) -> tuple[Pose, Tensor]:
        """The poses of all likely turns of the images, and the weight (M,) of each turn.

        `pose.source` is the index of each turn's image. The weights of an image sum to 1.
        """
        check_images(images)
        front = self.canonicalizer
        estimates = self._estimates(front.view_geometry(images))
        shares = estimates.shares
        likely = (shares >= self.least) | (shares == shares.amax(1, keepdim=True))
        source, further = likely.nonzero(as_tuple=True)  # (M,) each
        angle = (estimates.angle[source] + further * (math.pi / 2)) % TURN
        pose = Pose.from_angles(
            angle,
            (images.shape[-2], images.shape[-1]),
            canvas=front.canvas,
            confidence=estimates.confidence[likely],
            applied=wrap(angle).abs() >= front.still,
        )
        weights = shares * likely
        return replace(pose, source=source), (weights / weights.sum(1, keepdim=True))[likely]

    def _estimates(self, views: Tensor) -> Estimates:
        """From views (N, C, S, S): one view each, and three more where the estimate is unsure."""
        front = self.canonicalizer
        logits, offsets = front.network(views)
        masses = posterior(logits, offsets, front.temperature)
        first = self._read(answer(masses), masses)
        unsure = (first.confidence[:, 0] < self.more_views_below).nonzero()[:, 0]
        if not len(unsure):
            return first
        outputs = [(logits[unsure], offsets[unsure])]
        outputs += [
            front.network(torch.rot90(views[unsure], k, (-2, -1))) for k in range(1, QUARTERS)
        ]
        # (n, 4, bins) each
        logits, offsets = (torch.stack(part, 1) for part in zip(*outputs, strict=True))
        second = self._read(*of_quarter_turned_views(logits, offsets, front.temperature))
        return Estimates(*(a.index_copy(0, unsure, b) for a, b in zip(first, second, strict=True)))

    def _read(self, angle: Tensor, masses: Posterior) -> Estimates:
        quarters = torch.arange(QUARTERS, device=angle.device) * (math.pi / 2)
        away = (masses.angles - angle[:, None] + math.pi / 4) % TURN  # (N, bins)
        nearest = (away / (math.pi / 2)).long() % QUARTERS
        shares = torch.zeros_like(masses.angles[:, :QUARTERS]).scatter_add(
            1, nearest, masses.log_probabilities.exp().to(masses.angles.dtype)
        )
        near = [
            mass_near(masses, angle + quarter, WITHIN, self.canonicalizer.spread)
            for quarter in quarters
        ]
        return Estimates(angle, shares, torch.stack(near, 1))
