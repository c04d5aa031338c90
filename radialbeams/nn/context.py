"""The context encoder: messages on a directed wheel, so that no beam is judged alone.

Node k < |B| is beam k, node |B| is the hub. Messages run one way round the rim, because which
neighbour is which tells the sense of rotation.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEAK = 0.3

Hub = Literal["mean", "sum", "dead"]
# What the hub hears of the beams: their mean; their sum, as the text has it, which is |B| times
# as large and lets activations explode; nothing, as in the authors' code, so that it stays 0.
HUBS: tuple[Hub, ...] = ("mean", "sum", "dead")


def wheel(num_beams: int, hub: Hub) -> Tensor:
    """The adjacency A, (|B| + 1, |B| + 1): row v holds the weights of what node v hears."""
    if hub not in HUBS:
        raise ValueError(f"hub must be one of {', '.join(HUBS)}; got {hub!r}.")
    # Differs from the paper: it prints |B| × |B| for |B| + 1 nodes, and sums at the hub.
    adjacency = torch.zeros(num_beams + 1, num_beams + 1)
    beams = torch.arange(num_beams)
    adjacency[beams, (beams + 1) % num_beams] = 1  # each beam hears the next one …
    adjacency[beams, num_beams] = 1  # … and the hub
    adjacency[num_beams, beams] = {"mean": 1 / num_beams, "sum": 1.0, "dead": 0.0}[hub]
    return adjacency


class WheelContext(nn.Module):
    """(N, |B|, L) → (N, |B|, L): each embedding with what the rim and the hub have gathered."""

    def __init__(
        self, num_beams: int, latent: int, layers: int, edge_factor: float, hub: Hub
    ) -> None:
        super().__init__()
        self.edges: Tensor
        self.register_buffer("edges", edge_factor * wheel(num_beams, hub), persistent=False)
        self.layers = nn.ModuleList(nn.Linear(latent, latent, bias=False) for _ in range(layers))

    def forward(self, embeddings: Tensor) -> Tensor:
        nodes = F.pad(embeddings, (0, 0, 0, 1))  # (N, |B|+1, L): the hub knows nothing yet
        for weight in self.layers:
            nodes = F.leaky_relu(weight(self.edges @ nodes), LEAK)  # λ·A·f(B)·W
        rim, hub = nodes[:, :-1], nodes[:, -1:]
        # The hub's global context is held back until here, against over-smoothing.
        return embeddings + rim + hub
