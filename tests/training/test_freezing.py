"""Frozen blocks keep their weights and statistics; the rest trains."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from conftest import TINY_RING, easy_images

from radialbeams.nn.architectures import build
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from radialbeams.training.fit import Fit
from radialbeams.training.freezing import set_training
from radialbeams.training.recipe import Recipe


def test_only_what_comes_after_the_frozen_blocks_is_trained(tmp_path: Path) -> None:
    config = ConvolutionalConfig(variant="lite0", view_size=32)
    recipe = Recipe("easy", config, 80, "leakfree", steps=1, batch=4, frozen=13)
    fit = Fit(recipe, easy_images(4, size=80), tmp_path, device=torch.device("cpu"))
    before = {name: value.clone() for name, value in fit.model.state_dict().items()}
    fit.run()
    after = fit.model.state_dict()
    changed = {name.split(".")[0] for name in after if not torch.equal(after[name], before[name])}
    blocks = {
        int(name.split(".")[1])
        for name in after
        if name.startswith("blocks.") and not torch.equal(after[name], before[name])
    }
    assert changed == {"blocks", "last", "last_norm", "head"}
    assert min(blocks) == 13
    assert torch.equal(after["stem_norm.running_mean"], before["stem_norm.running_mean"])
    assert torch.equal(after["last_norm.running_mean"], before["last_norm.running_mean"])


def test_nothing_frozen_is_plain_training_mode() -> None:
    model = Convolutional(ConvolutionalConfig(variant="lite0", view_size=32)).eval()
    set_training(model, 0)
    assert all(part.training for part in model.modules())


@pytest.mark.parametrize("frozen", [1, 40])
def test_blocks_that_are_not_there_cannot_be_frozen(frozen: int) -> None:
    with pytest.raises(ValueError, match=rf"got {frozen}\. Set it to 0"):
        set_training(build(TINY_RING), frozen)
