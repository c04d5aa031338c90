"""The wheel graph: who hears whom, and which way round."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from radialbeams.nn.context import HUBS, Hub, WheelContext, wheel

# The authors' graph has a seam, so it alone does not commute with rolls.
CIRCULAR = tuple(hub for hub in HUBS if hub != "authors")
hubs = pytest.mark.parametrize("hub", CIRCULAR)


def context(hub: Hub, num_beams: int = 8, latent: int = 16, layers: int = 3) -> WheelContext:
    torch.manual_seed(0)
    return WheelContext(num_beams, latent, layers, 0.5, hub)


def embeddings(num_beams: int = 8, latent: int = 16) -> Tensor:
    return torch.randn(2, num_beams, latent, generator=torch.Generator().manual_seed(1))


def heard(network: WheelContext, beam: int, num_beams: int = 8) -> list[int]:
    """The beams whose embeddings the context of one beam depends on."""
    inputs = embeddings(num_beams).requires_grad_()
    network(inputs)[:, beam].square().sum().backward()
    assert inputs.grad is not None
    return inputs.grad.abs().sum(dim=(0, 2)).nonzero().flatten().tolist()


# --- the adjacency ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hub", "heard_by_the_hub"),
    [
        ("mean", [0.25, 0.25, 0.25, 0.25, 0]),
        ("sum", [1, 1, 1, 1, 0]),
        ("dead", [0, 0, 0, 0, 0]),
    ],
)
def test_the_wheel_of_four_beams(hub: Hub, heard_by_the_hub: list[float]) -> None:
    assert wheel(4, hub).tolist() == [
        [0, 1, 0, 0, 1],
        [0, 0, 1, 0, 1],
        [0, 0, 0, 1, 1],
        [1, 0, 0, 0, 1],
        heard_by_the_hub,
    ]


@pytest.mark.parametrize(("hub", "weight"), [("held-mean", 0.25), ("held-sum", 1.0)])
def test_the_wheel_of_the_text_sends_beams_to_the_hub_only(hub: Hub, weight: float) -> None:
    assert wheel(4, hub).tolist() == [
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 1, 0],
        [1, 0, 0, 0, 0],
        [weight, weight, weight, weight, 0],
    ]


def test_the_authors_wheel_has_a_seam_and_a_dead_hub() -> None:
    assert wheel(5, "authors").tolist() == [
        [0, 1, 0, 0, 1, 0],
        [1, 0, 0, 0, 0, 1],
        [0, 1, 0, 0, 0, 1],
        [0, 0, 1, 0, 0, 1],
        [1, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ]


def test_the_authors_wheel_does_not_commute_with_rolls() -> None:
    network, inputs = context("authors"), embeddings()
    assert (network(inputs.roll(1, 1)) - network(inputs).roll(1, 1)).abs().max() > 0.01


def test_an_unknown_hub_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"^hub must be one of mean, sum, dead, .*; got 'max'\.$"):
        wheel(4, "max")  # type: ignore[arg-type]


# --- symmetry --------------------------------------------------------------------------------


@hubs
@pytest.mark.parametrize("roll", [1, 3, 7])
def test_context_commutes_with_rolls_of_the_beams(hub: Hub, roll: int) -> None:
    network, inputs = context(hub), embeddings()
    result = network(inputs)
    assert result.shape == inputs.shape
    torch.testing.assert_close(network(inputs.roll(roll, 1)), result.roll(roll, 1))
    assert (result.roll(roll, 1) - result).abs().max() > 0.1


@hubs
def test_the_sense_of_rotation_matters(hub: Hub) -> None:
    network, inputs = context(hub), embeddings()
    there, back = network(inputs), network(inputs.flip(1)).flip(1)
    assert (there - back).abs().max() > 0.01


# --- the hub ---------------------------------------------------------------------------------


@pytest.mark.parametrize("beam", [0, 3, 6])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_with_a_dead_hub_a_beam_depends_on_itself_and_one_neighbour_only(
    beam: int, layers: int
) -> None:
    """A message moves on by one beam a layer and leaves nothing behind: no edge is a loop."""
    assert heard(context("dead", layers=layers), beam) == sorted((beam, (beam + layers) % 8))


@pytest.mark.parametrize("hub", ["mean", "sum"])
@pytest.mark.parametrize("layers", [1, 3])
def test_through_a_hub_every_beam_influences_every_beam(hub: Hub, layers: int) -> None:
    assert heard(context(hub, layers=layers), 2) == list(range(8))


def rim_depends_on(network: WheelContext, beam: int) -> list[int]:
    """The beams that the rim's state of one beam depends on before the hub is added."""
    inputs = embeddings().requires_grad_()
    network.messages(inputs)[0][:, beam].square().sum().backward()
    assert inputs.grad is not None
    return inputs.grad.abs().sum(dim=(0, 2)).nonzero().flatten().tolist()


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("hub", ["mean", "sum", "held-mean", "held-sum"])
def test_the_hub_reaches_the_rim_from_the_second_layer_on_unless_it_is_held_back(
    hub: Hub, layers: int
) -> None:
    found = rim_depends_on(context(hub, layers=layers), 2)
    if layers == 1 or hub.startswith("held"):
        assert found == [2 + layers]
    else:
        assert found == list(range(8))


@pytest.mark.parametrize("hub", ["held-mean", "held-sum"])
def test_a_hub_that_is_held_back_still_reaches_every_beam_at_the_end(hub: Hub) -> None:
    assert heard(context(hub), 2) == list(range(8))


@hubs
@pytest.mark.parametrize("num_beams", [8, 32])
def test_one_layer_by_hand(hub: Hub, num_beams: int) -> None:
    """Equal beams of 1 and W = 1: the rim hears λ, the hub λ, λ·|B| or nothing."""
    network = WheelContext(num_beams, 4, 1, 0.5, hub)
    nn.init.eye_(network.layers[0].weight)  # type: ignore[arg-type]
    expected = 1 + 0.5 + 0.5 * {"mean": 1, "sum": num_beams, "dead": 0}[hub.removeprefix("held-")]
    result = network(torch.ones(1, num_beams, 4))
    torch.testing.assert_close(result, torch.full_like(result, expected))


def test_beams_keep_their_embeddings_beside_the_attention_output() -> None:
    """With weights of 0 the graph says nothing: without a residual nothing would be left."""
    network, inputs = context("mean"), embeddings()
    for layer in network.layers:
        nn.init.zeros_(layer.weight)  # type: ignore[arg-type]
    assert torch.equal(network(inputs), inputs)


def test_activations_leak_0_3() -> None:
    network = WheelContext(4, 4, 1, 0.5, "dead")
    nn.init.eye_(network.layers[0].weight)  # type: ignore[arg-type]
    result = network(-torch.ones(1, 4, 4))
    torch.testing.assert_close(result, torch.full_like(result, -1 - 0.3 * 0.5))


def test_a_hub_that_sums_multiplies_activations_where_the_mean_keeps_them() -> None:
    def growth(hub: Hub, layers: int) -> float:
        network = context(hub, num_beams=32, layers=layers)
        for layer in network.layers:
            nn.init.eye_(layer.weight)  # type: ignore[arg-type]
        inputs = embeddings(32).abs()
        return ((network(inputs) - inputs).norm() / inputs.norm()).item()

    # |B|·λ = 16, times the norm of the mean beam: a little less than the mean of their norms.
    assert 0.7 * 16 < growth("sum", 1) < 16
    assert growth("mean", 1) < 1.1
    assert growth("sum", 3) > 50
    assert growth("mean", 3) < 1.1


def test_a_hub_that_receives_the_mean_trains_every_layer() -> None:
    network = context("mean")
    network(embeddings()).square().sum().backward()
    for layer in network.layers:
        gradient = layer.weight.grad
        assert isinstance(gradient, Tensor)
        assert (gradient != 0).all()


def test_the_mean_adds_the_hub_to_what_a_dead_one_trains() -> None:
    def gradient(hub: Hub) -> Tensor:
        network = context(hub)
        network(embeddings()).square().sum().backward()
        found = network.layers[0].weight.grad
        assert isinstance(found, Tensor)
        return found

    assert (gradient("mean") - gradient("dead")).norm() > 0.01 * gradient("dead").norm()


def test_layers_have_no_bias_and_the_graph_is_no_weight() -> None:
    state = context("mean").state_dict()
    assert {name: tuple(value.shape) for name, value in state.items()} == {
        f"layers.{n}.weight": (16, 16) for n in range(3)
    }
