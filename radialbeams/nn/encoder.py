"""The beam encoder: maps each beam separately to one embedding, with shared weights.

The proximity encoder reduces the width of a beam, the spatial encoder its length. There is no
padding and no pooling, so the order along the beam is kept up to the last layer.
"""

from __future__ import annotations

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

LEAK = 0.3
SHORTEST_BEAM = 9


class Layer(NamedTuple):
    """One row of the paper's tables; it has L / `divisor` feature maps."""

    kernel: int
    stride: int
    divisor: int


# The paper's spatial encoders by beam length D, for images of 28, 32, 128 and 250 pixels. The
# strides of the last two do not divide evenly, so they never read the outermost 3 and 7 samples.
SPATIAL_TABLES: dict[int, tuple[Layer, ...]] = {
    14: (Layer(4, 1, 4), Layer(4, 1, 2), Layer(4, 1, 2), Layer(3, 1, 1)),
    16: (Layer(4, 1, 4), Layer(4, 1, 2), Layer(4, 1, 2), Layer(4, 1, 1), Layer(2, 1, 1)),
    64: (
        *(Layer(5, 2, 4), Layer(4, 2, 4)),
        *(Layer(4, 1, 2), Layer(4, 1, 2), Layer(4, 1, 2)),
        *(Layer(3, 1, 1), Layer(2, 1, 1)),
    ),
    125: (
        *(Layer(4, 2, 4), Layer(3, 2, 4), Layer(4, 2, 4)),
        *(Layer(4, 1, 2), Layer(4, 1, 2), Layer(4, 1, 2)),
        *(Layer(3, 1, 1), Layer(2, 1, 1)),
    ),
}


def spatial_table(beam_length: int) -> tuple[Layer, ...]:
    """The paper's table for this D, or one of the same form by rule if the paper has none."""
    if beam_length < SHORTEST_BEAM:
        raise ValueError(
            f"The beam encoder needs a beam_length of at least {SHORTEST_BEAM}; got {beam_length}. "
            "Use larger images or longer beams."
        )
    return SPATIAL_TABLES.get(beam_length) or _table_by_rule(beam_length)


def _table_by_rule(beam_length: int) -> tuple[Layer, ...]:
    """Strides of 2 down to 14 samples, kernels of 4 down to 4 samples, one last kernel down to 1.

    The strided kernels end exactly on the last sample, so that no rounding drops the outer end of
    a beam, which moves most under rotation.
    """
    length = beam_length - 2  # the proximity encoder removes one sample at each end
    layers = []
    while length > 14:
        kernel = 4 if length % 2 == 0 else 5
        layers.append(Layer(kernel, 2, 4))
        length = (length - kernel) // 2 + 1
    while length > 4:
        layers.append(Layer(4, 1, 2))
        length -= 3
    return (*layers, Layer(length, 1, 1))


class AlongBeams(nn.Conv1d):
    """A `Conv1d` on features (M, C, 1, D), computed as a `conv2d`: it is faster on a GPU."""

    def forward(self, features: Tensor) -> Tensor:
        return F.conv2d(features, self.weight.unsqueeze(2), self.bias, (1, self.stride[0]))


class BeamEncoder(nn.Module):
    """(N, |B|, C, 2ε + 1, D) → (N, |B|, L)."""

    def __init__(self, channels: int, beam_length: int, epsilon: int, latent: int) -> None:
        super().__init__()
        self.proximity = nn.Sequential(
            # Differs from the paper: its 3 × 3 kernel closes the width only for ε = 1.
            # Differs from the paper: one such layer leaves D − 2, as its tables need, not D − 8.
            nn.Conv2d(channels, latent // 8, (2 * epsilon + 1, 3)),
            nn.LeakyReLU(LEAK),  # Differs from the paper: max(0.3x, 0) is a misprint
        )
        spatial: list[nn.Module] = []
        maps = latent // 8
        for layer in spatial_table(beam_length):
            spatial += [
                AlongBeams(maps, latent // layer.divisor, layer.kernel, layer.stride),
                nn.LeakyReLU(LEAK),
            ]
            maps = latent // layer.divisor
        self.spatial = nn.Sequential(*spatial, nn.Flatten(1))

    def forward(self, beams: Tensor) -> Tensor:
        shared = beams.flatten(0, 1)  # (N·|B|, C, 2ε+1, D): the index of a beam is not an input
        shared = shared.to(next(self.parameters()).dtype)  # beams are always float32
        near = self.proximity(shared)  # (N·|B|, L/8, 1, D−2)
        embeddings: Tensor = self.spatial(near)  # (N·|B|, L)
        return embeddings.reshape(*beams.shape[:2], embeddings.shape[1])  # (N, |B|, L)
