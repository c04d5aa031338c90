"""The decoder: an LSTM over the beams in order, which ends in a point on the unit circle."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class LSTMDecoder(nn.Module):
    """(N, |B|, L) → (N, 2): the last state of an LSTM, three linear layers, unit length."""

    def __init__(self, latent: int, layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(latent, latent, num_layers=layers, batch_first=True)
        self.linear = nn.Sequential(  # without activations in between, as in the paper
            nn.Linear(latent, latent // 2),
            nn.Linear(latent // 2, latent // 4),
            nn.Linear(latent // 4, 2),
        )

    def forward(self, context: Tensor) -> Tensor:
        states, _ = self.lstm(context)  # (N, |B|, L)
        vector = self.linear(states[:, -1])  # (N, 2)
        # In full precision: half precision would cost a tenth of a degree.
        return F.normalize(vector.float(), dim=-1)
