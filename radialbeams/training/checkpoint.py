"""Checkpoints: everything that a killed run needs to go on, in one safetensors file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn

from radialbeams.training.weights import write_tensors


@dataclass
class Position:
    """How far a run has come."""

    step: int = 0
    seconds: float = 0.0  # spent, earlier parts included


def write_checkpoint(
    path: Path,
    model: nn.Module,
    average: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    position: Position,
) -> None:
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"average.{name}": value for name, value in average.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in state.items()}
    metadata = {"step": str(position.step), "seconds": repr(position.seconds)}
    write_tensors(path, tensors, metadata)


def read_checkpoint(
    path: Path,
    model: nn.Module,
    average: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
) -> Position:
    """Fills model, average and optimizer in place."""
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "average": {}, "optimizer": {}}
    with safe_open(path, framework="pt") as file:
        for key in file.keys():  # noqa: SIM118 - not a dict
            part, name = key.split(".", 1)
            parts[part][name] = file.get_tensor(key)
        metadata = file.metadata()
    model.load_state_dict(parts["model"])
    for name, value in parts["average"].items():
        average[name].copy_(value)
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in parts["optimizer"].items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    return Position(int(metadata["step"]), float(metadata["seconds"]))
