"""The context encoder: message passing on a directed wheel graph, which relates the beams.

Node k < |B| is beam k, node |B| is the hub. Messages run one way round the rim, because the order
of the neighbours encodes the sense of rotation.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEAK = 0.3

Hub = Literal["mean", "sum", "dead", "held-mean", "held-sum", "authors"]
# How beams and hub exchange messages. In the first three, the hub sends messages to the rim in
# every layer; they differ in what the hub receives: the mean of the beams; their sum, which is |B|
# times as large and makes activations explode; nothing, so that it stays 0. In the text of the
# paper, the hub only receives messages and is added at the end ("held-…"); it sums them
# ("held-sum"). "authors" is the graph of the authors' code.
HUBS: tuple[Hub, ...] = ("mean", "sum", "dead", "held-mean", "held-sum", "authors")


def wheel(num_beams: int, hub: Hub) -> Tensor:
    """The adjacency A, (|B| + 1, |B| + 1): row v has the weights of the messages to node v."""
    if hub not in HUBS:
        raise ValueError(f"hub must be one of {', '.join(HUBS)}; got {hub!r}.")
    # Differs from the paper: it prints |B| × |B| for |B| + 1 nodes.
    adjacency = torch.zeros(num_beams + 1, num_beams + 1)
    beams = torch.arange(num_beams)
    if hub == "authors":
        return _with_a_seam(adjacency)
    adjacency[beams, (beams + 1) % num_beams] = 1  # from the next beam …
    if hub in ("mean", "sum", "dead"):
        adjacency[beams, num_beams] = 1  # … and from the hub
    if hub in ("mean", "held-mean"):
        adjacency[num_beams, beams] = 1 / num_beams
    elif hub in ("sum", "held-sum"):
        adjacency[num_beams, beams] = 1
    return adjacency


def _with_a_seam(adjacency: Tensor) -> Tensor:
    """The graph of the authors' code: its rim runs the other way round and has a seam.

    The first and the last beam receive messages from both neighbours but not from the hub, and
    the hub receives none.
    """
    last = len(adjacency) - 2
    inner = torch.arange(1, last)
    adjacency[inner, inner - 1] = 1
    adjacency[inner, last + 1] = 1
    adjacency[0, [1, last]] = 1
    adjacency[last, [last - 1, 0]] = 1
    return adjacency


class WheelContext(nn.Module):
    """(N, |B|, L) → (N, |B|, L): each embedding plus the messages of the rim and the hub."""

    def __init__(
        self, num_beams: int, latent: int, layers: int, edge_factor: float, hub: Hub
    ) -> None:
        super().__init__()
        self.edges: Tensor
        self.register_buffer("edges", edge_factor * wheel(num_beams, hub), persistent=False)
        self.layers = nn.ModuleList(nn.Linear(latent, latent, bias=False) for _ in range(layers))

    def forward(self, embeddings: Tensor) -> Tensor:
        rim, hub = self.messages(embeddings)
        # Differs from the paper: it has no residual, and adds the hub to the graph's output alone.
        return embeddings + rim + hub

    def messages(self, embeddings: Tensor) -> tuple[Tensor, Tensor]:
        """The output of the graph layers at the rim, (N, |B|, L), and at the hub, (N, 1, L)."""
        nodes = F.pad(embeddings, (0, 0, 0, 1))  # (N, |B|+1, L): the hub starts at 0
        for weight in self.layers:
            # Differs from the paper: λ·A·f(B)·W has no activation there.
            nodes = F.leaky_relu(weight(self.edges @ nodes), LEAK)
        return nodes[:, :-1], nodes[:, -1:]
