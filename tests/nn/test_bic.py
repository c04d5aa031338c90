"""BIC: the paper's network as wired, its size, its configuration, its initial weights."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
import torch
from conftest import ROOT, paper_config
from torch import Tensor, nn

from radialbeams import zoo
from radialbeams.nn.beams import BresenhamBeams, PolarBeams, named_length
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.training.recipe import Recipe

SMALL: dict[str, Any] = {
    "view_size": 40,
    "num_beams": 8,
    "beam_length": 20,
    "latent": 16,
}


def small(**changes: Any) -> BIC:
    torch.manual_seed(0)
    return BIC(BICConfig(**{**SMALL, **changes}))


def views(config: BICConfig, batch: int = 2) -> Tensor:
    shape = (batch, config.channels, config.view_size, config.view_size)
    return torch.rand(shape, generator=torch.Generator().manual_seed(1))


# --- configuration ---------------------------------------------------------------------------


def test_the_defaults_are_the_coil100_setting_of_the_paper() -> None:
    assert BICConfig().to_dict() == {
        "architecture": "lstm",
        "view_size": 182,
        "channels": 3,
        "num_beams": 32,
        "beam_length": 64,
        "epsilon": 1,
        "latent": 128,
        "sampler": "bresenham",
        "context_layers": 3,
        "edge_factor": 0.5,
        "hub": "held-sum",
        "lstm_layers": 3,
    }
    assert BICConfig() == BICConfig.for_images(128)
    assert [BICConfig(epsilon=epsilon).thickness for epsilon in (0, 1, 2)] == [1, 3, 5]


def test_a_configuration_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        BICConfig().latent = 64  # type: ignore[misc]


@pytest.mark.parametrize("changes", [{}, {"sampler": "polar", "hub": "dead", "edge_factor": 0.25}])
def test_a_configuration_survives_a_card(changes: dict[str, Any]) -> None:
    config = BICConfig(**changes)
    assert BICConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_a_stored_configuration_without_a_hub_has_the_mean_that_was_the_default() -> None:
    values = BICConfig().to_dict()
    del values["hub"]
    assert BICConfig.from_dict(values).hub == "mean"
    assert BICConfig.from_dict({**values, "hub": "held-sum"}) == BICConfig()


@pytest.mark.parametrize("name", ["bic.coil100", "bic.lfw"])
def test_pretrained_weights_and_their_recipes_keep_their_hub(name: str) -> None:
    written = json.loads((ROOT / "recipes" / f"{name}.json").read_text())
    recipe = Recipe.from_dict(written)
    assert Recipe.of_card(zoo.find(name).card).model == recipe.model
    assert paper_config(recipe.model).hub == "mean"
    del written["model"]["hub"]
    assert Recipe.from_dict(written) == recipe


def test_unknown_keys_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="Unknown") as error:
        BICConfig.from_dict({"latent": 64, "vectors": 3, "lines": 1})
    assert str(error.value) == (
        "Unknown in a model configuration: lines, vectors. Known: architecture, view_size, "
        "channels, num_beams, beam_length, epsilon, sampler, latent, context_layers, edge_factor, "
        "hub, lstm_layers."
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"latent": 60},
            "latent must be a multiple of 8, since the first layer has L/8 maps; got 60. Use 64.",
        ),
        ({"latent": 4}, "latent must be at least 8; got 4."),
        ({"edge_factor": 0}, "edge_factor λ must lie in (0, 1]; got 0."),
        ({"edge_factor": 1.5}, "edge_factor λ must lie in (0, 1]; got 1.5."),
        ({"edge_factor": math.nan}, "edge_factor λ must lie in (0, 1]; got nan."),
        ({"sampler": "lines"}, "sampler must be one of bresenham, polar; got 'lines'."),
        (
            {"hub": "max"},
            "hub must be one of mean, sum, dead, held-mean, held-sum, authors; got 'max'.",
        ),
        ({"beam_length": 8}, "beam_length must be at least 9; got 8."),
        ({"num_beams": 2}, "num_beams must be at least 3; got 2."),
        ({"epsilon": -1}, "epsilon must be at least 0; got -1."),
        ({"channels": 0}, "channels must be at least 1; got 0."),
        ({"context_layers": -1}, "context_layers must be at least 0; got -1."),
        ({"lstm_layers": 0}, "lstm_layers must be at least 1; got 0."),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=r"must") as error:
        BICConfig(**changes)
    assert str(error.value) == text


@pytest.mark.parametrize(
    ("size", "view", "length"), [(28, 40, 14), (32, 46, 16), (128, 182, 64), (250, 354, 125)]
)
def test_for_images_pads_by_the_margin_and_reaches_the_border(
    size: int, view: int, length: int
) -> None:
    config = BICConfig.for_images(size)
    assert (config.view_size, config.beam_length) == (view, length)


def test_for_images_takes_changes_over_its_own_values() -> None:
    config = BICConfig.for_images(128, beam_length=91, num_beams=16)
    assert (config.view_size, config.beam_length, config.num_beams) == (182, 91, 16)


# --- size and weights ------------------------------------------------------------------------


def test_as_many_parameters_as_the_authors_model() -> None:
    model = BIC(BICConfig(num_beams=16, beam_length=64))
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == 561_762
    # Torch keeps a second bias for each of the four gates of the three LSTM layers.
    second = sum(p.numel() for name, p in model.named_parameters() if "bias_hh" in name)
    assert second == 3 * 4 * 128 == 1_536
    assert count - second == 560_226


def test_the_number_of_beams_costs_no_parameter() -> None:
    assert [p.shape for p in small(num_beams=8).parameters()] == [
        p.shape for p in small(num_beams=32).parameters()
    ]


@pytest.mark.parametrize("sampler", ["bresenham", "polar"])
def test_geometry_is_no_part_of_the_weights(sampler: str) -> None:
    model = small(sampler=sampler)
    assert set(model.state_dict()) == {name for name, _ in model.named_parameters()}
    assert not [name for name in model.state_dict() if name.startswith("beams.")]


def test_weights_move_between_models_of_the_same_configuration() -> None:
    model, other = small(), BIC(BICConfig(**SMALL))
    inputs = views(model.config)
    assert not torch.equal(other(inputs), model(inputs))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(inputs), model(inputs))


def test_weights_start_after_he_for_a_leak_of_0_3() -> None:
    torch.manual_seed(0)
    model = BIC(BICConfig())
    seen = 0
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
            assert module.bias is None or not module.bias.any(), name
            if module.weight.numel() >= 4096:
                expected = math.sqrt(2 / (1 + 0.3**2) / module.weight[0].numel())
                assert module.weight.std().item() == pytest.approx(expected, rel=0.04), name
                assert abs(module.weight.mean().item()) < 0.1 * expected, name
                seen += 1
    assert seen >= 8


def test_the_lstm_keeps_its_own_start() -> None:
    lstm = small(latent=64).decoder.lstm
    for parameter in lstm.parameters():
        assert parameter.abs().max() <= 1 / math.sqrt(64)
        assert parameter.std().item() == pytest.approx(1 / math.sqrt(3 * 64), rel=0.1)


@pytest.mark.parametrize("changes", [{}, {"sampler": "polar"}, {"hub": "sum"}, {"epsilon": 0}])
def test_every_parameter_receives_gradients(changes: dict[str, Any]) -> None:
    model = small(**changes)
    model(views(model.config))[:, 0].sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


# --- the way through -------------------------------------------------------------------------


def assert_answers(model: BIC) -> None:
    config = model.config
    with torch.no_grad():
        embedded, answer = model.embed(views(config)), model(views(config))
    assert embedded.shape == (2, config.num_beams, config.latent)
    assert answer.shape == (2, 2)
    torch.testing.assert_close(answer.norm(dim=-1), torch.ones(2), atol=1e-6, rtol=0)
    assert not torch.equal(answer[0], answer[1])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"channels": 1},
        {"sampler": "polar"},
        {"context_layers": 0},
        {"hub": "dead"},
        {"epsilon": 0},
        {"epsilon": 3},
        {"num_beams": 10},
        {"lstm_layers": 1},
        {"view_size": 41},
        {"view_size": 18, "beam_length": 9},
    ],
)
def test_every_variant_answers(changes: dict[str, Any]) -> None:
    assert_answers(small(**changes))


# Fashion-MNIST, CIFAR-10, COIL-100, LFW.
@pytest.mark.parametrize(("size", "channels"), [(28, 1), (32, 3), (128, 3), (250, 3)])
def test_the_data_sets_of_the_paper_fit(size: int, channels: int) -> None:
    torch.manual_seed(0)
    assert_answers(BIC(BICConfig.for_images(size, channels=channels, latent=32)))


def test_beams_of_91_on_images_of_224_fit() -> None:
    """SI-SCORE's setting: the length C of 128 pixels, on larger images."""
    assert named_length("C", 128) == 91
    torch.manual_seed(0)
    model = BIC(BICConfig.for_images(224, beam_length=91, latent=32))
    assert model.config.view_size == 318
    assert_answers(model)


def test_the_requested_sampler_is_used() -> None:
    assert type(small().beams) is BresenhamBeams
    assert type(small(sampler="polar").beams) is PolarBeams


def test_no_context_layer_means_the_embeddings_themselves() -> None:
    model = small(context_layers=0)
    inputs = views(model.config)
    assert torch.equal(model.embed(inputs), model.encoder(model.beams(inputs)))
    model = small()
    assert not torch.equal(model.embed(inputs), model.encoder(model.beams(inputs)))


@pytest.mark.parametrize("sampler", ["bresenham", "polar"])
def test_a_quarter_turn_of_the_view_rolls_what_the_decoder_reads(sampler: str) -> None:
    model = small(sampler=sampler)
    inputs = views(model.config)
    turned = model.embed(torch.rot90(inputs, 1, (-2, -1)))
    torch.testing.assert_close(turned, model.embed(inputs).roll(2, 1), atol=1e-5, rtol=1e-5)


def test_beams_longer_than_the_view_are_refused() -> None:
    with pytest.raises(ValueError, match="beam_length must be at most 20 for images of 40 × 40"):
        small(beam_length=21)


def test_views_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(N, C, 40, 40\), .*; got \(1, 3, 41, 41\)"):
        small()(torch.zeros(1, 3, 41, 41))
