"""A checkpoint gives back what was kept, in the layout that the run computes in."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from radialbeams.training.checkpoint import TrainingPosition, read_checkpoint, write_checkpoint


def trained() -> tuple[nn.Module, torch.optim.Optimizer]:
    """One step of a convolution in the layout that training on a GPU uses."""
    torch.manual_seed(0)
    model = nn.Conv2d(4, 8, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.rand(2, 4, 8, 8)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_the_optimizer_comes_back_with_the_strides_of_its_weights(tmp_path: Path) -> None:
    model, optimizer = trained()
    average = {name: value.clone() for name, value in model.state_dict().items()}
    write_checkpoint(
        tmp_path / "c.safetensors", model, average, optimizer, TrainingPosition(1, 2.0)
    )
    other, again = trained()
    assert read_checkpoint(tmp_path / "c.safetensors", other, average, again) == TrainingPosition(
        1, 2.0
    )
    for parameter, kept in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(parameter, kept)
        for name in ("exp_avg", "exp_avg_sq"):
            assert again.state[parameter][name].stride() == parameter.stride()
            assert torch.equal(again.state[parameter][name], optimizer.state[kept][name])
