"""A plain ViT-S/14 at 224 pixels with random weights, to compare the speed of a model with."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

SIDE, PATCH, WIDTH, HEADS, LAYERS = 224, 14, 384, 6, 12


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.out(self._attended(self.norm1(x)))  # (N, 257, 384)
        mixed: Tensor = x + self.mlp(self.norm2(x))
        return mixed

    def _attended(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)  # (N, 6, 257, 64)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return mixed.transpose(1, 2).flatten(2)


class ViT(nn.Module):
    """Returns the 384 features of the class token; the cost of a head would be negligible."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.places = nn.Parameter(torch.randn(1, (SIDE // PATCH) ** 2 + 1, WIDTH) / 50)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patches(images).flatten(2).transpose(1, 2)  # (N, 256, 384)
        tokens = torch.cat([self.token.expand(images.shape[0], -1, -1), patches], 1) + self.places
        features: Tensor = self.norm(self.layers(tokens)[:, 0])
        return features


def export(path: Path, batch: int) -> Path:
    torch.manual_seed(0)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            ViT().eval(),
            (torch.zeros(batch, 3, SIDE, SIDE),),
            path,
            input_names=["images"],
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    return path
