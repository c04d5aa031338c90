"""The optimizer and its learning-rate schedule."""

from __future__ import annotations

import math

import torch
from torch import nn

from radialbeams.training.recipe import Recipe

WARM_UP = 0.1  # share of a one-cycle run


def make_optimizer(model: nn.Module, recipe: Recipe, device: torch.device) -> torch.optim.Optimizer:
    on_gpu = device.type == "cuda"
    rate = recipe.learning_rate
    return torch.optim.AdamW(
        model.parameters(),
        lr=torch.tensor(rate, device=device)
        if on_gpu
        else rate,  # a CUDA graph reads it from memory
        betas=(0.9, 0.999),
        weight_decay=recipe.weight_decay,  # 0 makes it plain Adam
        fused=on_gpu,
        capturable=on_gpu,
    )


def learning_rate(recipe: Recipe, done: float) -> float:
    """The rate when a fraction `done` of the run is over."""
    highest = recipe.learning_rate
    if recipe.schedule == "constant":
        return highest
    if done < WARM_UP:
        return highest * (done + 1 / recipe.steps) / WARM_UP
    return highest * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP))) / 2


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate
