"""Checkpoints: everything that a killed run needs to resume, in one safetensors file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from radialbeams.training.weights import write_tensors

Parts = dict[str, dict[str, Tensor]]


class DamagedCheckpoint(ValueError):
    """The file is damaged, or belongs to a run of another recipe."""


@dataclass
class TrainingPosition:
    """How far a run has come."""

    step: int = 0
    seconds: float = 0.0  # of training so far, over all interrupted parts


def write_checkpoint(
    path: Path,
    model: nn.Module,
    average: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    position: TrainingPosition,
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
) -> TrainingPosition:
    """Fills model, average and optimizer in place; a damaged file leaves them as they were."""
    try:
        parts, position = _read(path)
        _check(parts, model, average, optimizer)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DamagedCheckpoint(
            f"{path} is not a checkpoint of this run: {' '.join(str(error).split())[:120]}. "
            "Remove it to start the run again, or copy it again."
        ) from error
    model.load_state_dict(parts["model"])
    for name, value in parts["average"].items():
        average[name].copy_(value)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": _state(parts["optimizer"]), "param_groups": groups})
    _lay_out_like_parameters(optimizer)
    return position


def _lay_out_like_parameters(optimizer: torch.optim.Optimizer) -> None:
    """Gives the optimizer's state the strides of its parameters, as the fused optimizer requires.

    Files store tensors contiguously; parameters may be in the channels-last layout.
    """
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if value.ndim and value.stride() != parameter.stride():
                state[name] = torch.empty_like(parameter).copy_(value)


def _read(path: Path) -> tuple[Parts, TrainingPosition]:
    parts: Parts = {"model": {}, "average": {}, "optimizer": {}}
    with safe_open(path, framework="pt") as file:
        for key in file.keys():  # noqa: SIM118 - not a dict
            part, name = key.split(".", 1)
            parts[part][name] = file.get_tensor(key)
        metadata = file.metadata() or {}
    position = TrainingPosition(int(metadata["step"]), float(metadata["seconds"]))
    if position.step < 0 or not 0 <= position.seconds < float("inf"):
        raise ValueError("its step or its time is out of range")
    return parts, position


def _check(
    parts: Parts, model: nn.Module, average: dict[str, Tensor], optimizer: torch.optim.Optimizer
) -> None:
    """Checks that every tensor has a counterpart of the same shape in this run."""
    if _shapes(parts["model"]) != _shapes(model.state_dict()):
        raise ValueError("the network has other tensors")
    if parts["average"] and _shapes(parts["average"]) != _shapes(average):
        raise ValueError("the average has other tensors")
    if not all(torch.isfinite(tensor).all() for tensor in parts["model"].values()):
        raise ValueError("its weights are NaN or infinite")
    parameters = [value for group in optimizer.param_groups for value in group["params"]]
    for index, values in _state(parts["optimizer"]).items():
        if not 0 <= index < len(parameters):
            raise ValueError("the optimizer has other tensors")
        for value in values.values():
            if value.ndim and value.shape != parameters[index].shape:
                raise ValueError("the optimizer has tensors of other shapes")


def _state(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    return state


def _shapes(tensors: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}
