"""The LSTM decoder: an ordered sequence of beams to a point of the unit circle."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from radialbeams.nn.decoder import LSTMDecoder


def decoder(latent: int = 32, layers: int = 3) -> LSTMDecoder:
    torch.manual_seed(0)
    return LSTMDecoder(latent, layers)


def context(batch: int = 5, num_beams: int = 8, latent: int = 32) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, num_beams, latent, generator=generator)


@pytest.mark.parametrize(("batch", "num_beams", "latent"), [(1, 3, 8), (5, 8, 32), (2, 32, 128)])
def test_answers_are_unit_vectors(batch: int, num_beams: int, latent: int) -> None:
    answer = decoder(latent)(context(batch, num_beams, latent))
    assert answer.shape == (batch, 2)
    torch.testing.assert_close(answer.norm(dim=-1), torch.ones(batch), atol=1e-6, rtol=0)


def test_answers_keep_full_precision_under_autocast() -> None:
    network, inputs = decoder(), context()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        answer = network(inputs)
    assert answer.dtype == torch.float32
    torch.testing.assert_close(answer.norm(dim=-1), torch.ones(5), atol=1e-6, rtol=0)


def test_the_order_of_beams_matters() -> None:
    network, inputs = decoder(layers=1), context()
    for layer in network.linear:
        nn.init.zeros_(layer.bias)  # type: ignore[arg-type]  # an untrained bias hides the rest
    answer = network(inputs)
    for shift in (1, 4):
        assert (network(inputs.roll(shift, 1)) - answer).norm(dim=-1).mean() > 0.1


def test_the_answer_is_read_from_the_last_state_of_the_last_layer() -> None:
    network, inputs = decoder(layers=2), context()
    _, (last, _) = network.lstm(inputs)  # (layers, N, L)
    vector = network.linear(last[-1])
    torch.testing.assert_close(network(inputs), vector / vector.norm(dim=-1, keepdim=True))


@pytest.mark.parametrize("beam", [0, 7])
def test_every_beam_reaches_the_answer(beam: int) -> None:
    inputs = context().requires_grad_()
    decoder(layers=1)(inputs)[:, 0].sum().backward()
    assert inputs.grad is not None
    assert inputs.grad[:, beam].abs().amax(dim=-1).min() > 0


def test_the_linear_layers_halve_twice_and_have_nothing_between() -> None:
    layers = list(decoder(128).linear)
    assert all(type(layer) is nn.Linear for layer in layers)
    shapes = [tuple(layer.weight.shape) for layer in layers]  # type: ignore[union-attr]
    assert shapes == [(64, 128), (32, 64), (2, 32)]
    assert all(layer.bias is not None for layer in layers)


def test_the_linear_layers_together_are_one_affine_map() -> None:
    linear = decoder().linear
    a, b = context()[:, 0], context()[:, 1]
    zero = linear(torch.zeros(5, 32))
    torch.testing.assert_close(linear(a + b) - zero, linear(a) + linear(b) - 2 * zero)


@pytest.mark.parametrize("layers", [1, 3])
def test_the_lstm_is_as_wide_as_the_latent_space(layers: int) -> None:
    lstm = decoder(64, layers).lstm
    assert (lstm.input_size, lstm.hidden_size, lstm.num_layers) == (64, 64, layers)
    assert not lstm.bidirectional
    # Four gates, two matrices and two biases a layer.
    assert sum(p.numel() for p in lstm.parameters()) == layers * 4 * (2 * 64 * 64 + 2 * 64)
