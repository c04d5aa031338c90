"""The exported form of the ring computes what the ring computes, with the same tensors."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from radialbeams.front.folding import folded
from radialbeams.nn.architectures import architecture
from radialbeams.nn.ring_export import ExportedRing, in_few_products
from radialbeams.nn.ring_network import RingBIC, RingConfig

CONFIGS = {
    "polar": RingConfig(view_size=33, num_beams=16, beam_length=16, sampler="polar", epsilon=0),
    "polar of odd lengths": RingConfig(
        view_size=41, num_beams=16, beam_length=20, sampler="polar", epsilon=1, depth=2
    ),
    "bresenham": RingConfig(view_size=33, num_beams=16, beam_length=16, epsilon=1),
    "attention": RingConfig(
        view_size=33, num_beams=16, beam_length=16, sampler="polar", width=32, attention=1
    ),
}


def lived_in(config: RingConfig) -> RingBIC:
    """A network whose norms are not those of a new one."""
    torch.manual_seed(0)
    network = RingBIC(config).train()
    network(torch.rand(4, 3, config.view_size, config.view_size))
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return network.eval()


@pytest.mark.parametrize("name", CONFIGS)
@torch.no_grad()
def test_the_exported_form_computes_the_same(name: str) -> None:
    network = lived_in(CONFIGS[name])
    views = torch.rand(3, 3, network.config.view_size, network.config.view_size)
    for want, found in zip(network(views), ExportedRing.of(network)(views), strict=True):
        scale = float(want.abs().max())
        torch.testing.assert_close(found, want, atol=1e-5 * scale, rtol=1e-4)


@torch.no_grad()
def test_the_exported_form_of_a_folded_network_computes_the_same() -> None:
    network = folded(lived_in(CONFIGS["attention"]))
    views = torch.rand(3, 3, network.config.view_size, network.config.view_size)
    for want, found in zip(network(views), ExportedRing.of(network)(views), strict=True):
        torch.testing.assert_close(found, want, atol=1e-5 * float(want.abs().max()), rtol=1e-4)


@torch.no_grad()
def test_convolutions_along_beams_take_half_of_the_products() -> None:
    network = lived_in(RingConfig(num_beams=16, beam_length=20, stages=(64, 64), sampler="polar"))
    features = torch.rand(1, 5, 64, 18)  # (N, d, C, |B| + 2)
    block = network.ring.radial[1]
    with FlopCounterMode(display=False) as plain:
        block.second(features.transpose(1, 2).mT)
    with FlopCounterMode(display=False) as few:
        convolved = in_few_products(block.second, block.second_norm, features)
    assert convolved.shape == (1, 5, 64, 16)
    assert counted(few, "convolution") < 0.5 * counted(plain, "convolution")


def counted(flops: FlopCounterMode, name: str) -> int:
    operations = flops.get_flop_counts()["Global"]
    return sum(count for operation, count in operations.items() if name in str(operation))


def test_the_exported_form_has_the_same_tensors_and_leaves_the_network_as_it_is() -> None:
    network = lived_in(CONFIGS["polar"])
    made = architecture(network.config).exported(network)
    assert isinstance(made, ExportedRing) and type(network) is RingBIC
    for name, tensor in network.state_dict().items():
        assert made.state_dict()[name].data_ptr() == tensor.data_ptr()
