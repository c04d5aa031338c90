"""Between two runs: the weights on the line, a card that says so, and no run overwritten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from radialbeams.cards import AveragedWith, TrainingCard, ViewProtocol, WeightsOrigin
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.training.average import average_runs, averaged, main
from radialbeams.training.weights import load_model, new_card, save_model


def network(seed: int, config: BICConfig) -> BIC:
    torch.manual_seed(seed)
    return BIC(config)


@pytest.fixture
def runs(tiny_config: BICConfig, tmp_path: Path) -> list[Path]:
    stems = [tmp_path / name / "model" for name in ("first", "second")]
    for seed, stem in enumerate(stems):
        model = network(seed, tiny_config)
        card = new_card(model, ViewProtocol("paper"), stem.parent.name)
        save_model(stem, model, replace(card, training=TrainingCard({"steps": 3})))
    return stems


def test_the_new_weights_lie_between(runs: list[Path], tmp_path: Path) -> None:
    arguments = [*map(str, runs), "--share", "0.25", "--out", str(tmp_path / "new")]
    assert main(arguments) == 0
    (first, first_card), (second, _) = (load_model(stem) for stem in runs)
    found, card = load_model(tmp_path / "new" / "model")
    for name, value in found.state_dict().items():
        expected = 0.75 * first.state_dict()[name] + 0.25 * second.state_dict()[name]
        torch.testing.assert_close(value, expected)
    step = AveragedWith(WeightsOrigin("first", first_card.sha256.safetensors or ""), 0.25)
    assert card.training == TrainingCard({"steps": 3}, averaged=(step,))


def test_one_average_of_another_tells_both(runs: list[Path], tmp_path: Path) -> None:
    average_runs(runs[0], runs[1], 0.5, tmp_path / "half")
    average_runs(runs[0], tmp_path / "half" / "model", 0.75, tmp_path / "new")
    _, card = load_model(tmp_path / "new" / "model")
    assert [step.share for step in card.training.averaged] == [0.5, 0.75]


def test_the_ends_are_the_runs_themselves(tiny_config: BICConfig) -> None:
    for share, seed in ((0.0, 0), (1.0, 1)):
        found = averaged(network(0, tiny_config), network(1, tiny_config), share).state_dict()
        for name, value in network(seed, tiny_config).state_dict().items():
            assert torch.equal(found[name], value)


def test_what_does_not_fit_is_refused(
    runs: list[Path], tiny_config: BICConfig, tmp_path: Path
) -> None:
    other = network(0, BICConfig.for_images(28, num_beams=12, latent=16, lstm_layers=1))
    with pytest.raises(ValueError, match="their configs differ"):
        averaged(network(0, tiny_config), other, 0.5)
    with pytest.raises(ValueError, match=r"between 0 and 1; got 1\.5"):
        averaged(network(0, tiny_config), network(1, tiny_config), 1.5)
    with pytest.raises(ValueError, match="already contains a run"):
        average_runs(runs[0], runs[1], 0.5, runs[0].parent)
    assert not (tmp_path / "new").exists()
