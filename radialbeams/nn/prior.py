"""The Toeplitz prior: a training loss that relates a rotation of the image to a shift of its beams.

It compares the embeddings of X₀ with those of X_θ, the same image rotated by θ of C_|B|. Beam i of
X₀ then looks like beam i + k of X_θ, so one shifted diagonal of the similarity matrix is large.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from radialbeams.nn.angles import TURN

PriorMode = Literal["off", "full", "dynamic"]
PRIOR_MODES: tuple[PriorMode, ...] = ("off", "full", "dynamic")


def angle_matrix(num_beams: int) -> Tensor:
    """Θ, (|B|, |B|): the shift k that takes beam i of X₀ (row) to beam j of X_θ (column)."""
    beams = torch.arange(num_beams)
    return (beams[None, :] - beams[:, None]) % num_beams


def extraction_tensor(num_beams: int) -> Tensor:
    """T, (|B|, |B|, |B|): T_k is 1 on the diagonal of shift k, and 0 elsewhere."""
    shifts = torch.arange(num_beams)
    return (angle_matrix(num_beams) == shifts[:, None, None]).float()


def similarity(upright: Tensor, turned: Tensor) -> Tensor:
    """Ξ = 1/(1 + ‖·‖₂) of all pairs of beams: two of (N, |B|, L) → (N, |B|, |B|)."""
    # The exact distance: the faster form with a matrix product is not 0 for equal beams.
    distance = torch.cdist(
        upright.float(), turned.float(), compute_mode="donot_use_mm_for_euclid_dist"
    )
    return 1 / (1 + distance)


class ToeplitzPrior(nn.Module):
    """Two of (N, |B|, L) → (N, |B|): the log-probability of each shift."""

    def __init__(self, num_beams: int) -> None:
        super().__init__()
        self.extractor: Tensor
        self.register_buffer("extractor", extraction_tensor(num_beams), persistent=False)

    def forward(self, upright: Tensor, turned: Tensor) -> Tensor:
        logits = torch.einsum("nij,kij->nk", similarity(upright, turned), self.extractor)
        return logits.log_softmax(dim=-1)


def prior_loss(angles: Tensor, log_probabilities: Tensor) -> Tensor:
    """L_prior, not yet averaged: (N,), (N, |B|) → (N,).

    The target is a single shift, so an angle between two beams counts as the nearer one.
    """
    num_beams = log_probabilities.shape[-1]
    shift = torch.round(angles * (num_beams / TURN)).long() % num_beams
    # Differs from the paper: it prints the sum without the minus, which would reward errors.
    return -log_probabilities.gather(-1, shift[:, None]).squeeze(-1)


def loss_weights(mode: PriorMode, epoch: int) -> tuple[float, float]:
    """The weights of L_circle and L_prior in this epoch; epochs count from 1."""
    if mode not in PRIOR_MODES:
        raise ValueError(f"The prior is one of {', '.join(PRIOR_MODES)}; got {mode!r}.")
    if mode == "dynamic":
        return 1 - 1 / epoch, 1 / epoch
    return 1.0, 1.0 if mode == "full" else 0.0
