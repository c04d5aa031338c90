"""Folding: the same answers without norms, and a network that is for nothing but inference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import TINY_RING
from torch import Tensor, nn

from radialbeams import zoo
from radialbeams.cards import ViewProtocol
from radialbeams.front.folding import folded
from radialbeams.front.module import Canonicalizer
from radialbeams.nn.architectures import build
from radialbeams.nn.bic import BICConfig
from radialbeams.nn.pretrained import load_model
from radialbeams.nn.ring_network import RingConfig
from radialbeams.training.weights import new_card, save_model

RINGS = [
    {},
    {"stages": (8, 12), "depth": 2},
    {"attention": 2, "width": 16},
]


def lived_in(network: nn.Module, seed: int = 1) -> nn.Module:
    """With norms that scale and shift, as those of a trained network do."""
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for values in (module.weight, module.running_var):
                values.data = 0.5 + torch.rand(values.shape, generator=generator)
            for values in (module.bias, module.running_mean):
                values.data = torch.randn(values.shape, generator=generator)
        if hasattr(module, "apart"):
            module.apart.data = torch.randn(module.apart.shape, generator=generator)
    return network.eval()


@pytest.mark.parametrize("changes", RINGS)
def test_answers_stay_and_norms_go(
    changes: dict[str, object], make_config: Callable[..., RingConfig]
) -> None:
    torch.manual_seed(0)
    network = lived_in(build(make_config(**changes)))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    made, views = folded(network), torch.rand(3, 3, 24, 24)
    torch.testing.assert_close(made(views), network(views), atol=1e-4, rtol=1e-4)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in made.modules())
    assert not any(parameter.requires_grad for parameter in made.parameters())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


@pytest.fixture
def make_config() -> Callable[..., RingConfig]:
    return lambda **changes: RingConfig.from_dict({**TINY_RING.to_dict(), **changes})


@pytest.mark.parametrize("name", ["ring", "ring.coil100", "ring.lfw"])
def test_shipped_rings_answer_the_same(name: str) -> None:
    network, _ = load_model(zoo.find(name).stem)
    side = network.config.view_size
    views = torch.rand(2, 3, side, side)
    torch.testing.assert_close(folded(network)(views), network(views), atol=2e-4, rtol=1e-4)


def test_the_papers_network_has_nothing_to_fold() -> None:
    network = build(BICConfig.for_images(32)).eval()
    views = torch.rand(2, 3, network.config.view_size, network.config.view_size)
    assert torch.equal(folded(network)(views), network(views))


def test_a_norm_without_a_convolution_is_an_error() -> None:
    alone = nn.Sequential(nn.BatchNorm2d(4), nn.GELU(), nn.Conv2d(4, 4, 1))
    with pytest.raises(ValueError, match="Expected a convolution next to the norm '0'"):
        folded(alone)
    wide = nn.Sequential(nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, padding=1))  # its rim would differ
    with pytest.raises(ValueError, match="Expected a convolution next to the norm '0'"):
        folded(wide)


def test_a_canonicalizer_for_inference_is_a_copy(images: Tensor) -> None:
    front = Canonicalizer.from_pretrained("ring.coil100")
    fast = front.for_inference()
    (upright, pose), (expected, known) = fast(images), front(images)
    torch.testing.assert_close(pose.angle, known.angle, atol=1e-3, rtol=0)
    torch.testing.assert_close(upright, expected, atol=1e-2, rtol=0)
    assert fast.network is not front.network and fast.view_geometry is not front.view_geometry
    assert fast.measured == front.measured
    assert any(isinstance(module, nn.BatchNorm2d) for module in front.modules())
    assert not fast.training and all(p.requires_grad for p in front.network.parameters())


def test_made_twice_and_in_any_mode_it_is_the_same(images: Tensor) -> None:
    front = Canonicalizer.from_pretrained("ring")
    fast = front.for_inference()
    with torch.inference_mode(), torch.autocast("cpu", torch.float16):
        again = fast.for_inference()
        first = front.for_inference()
    given = images.clone().requires_grad_()
    for other in (again, first):
        torch.testing.assert_close(other(given)[1].confidence, fast(images)[1].confidence)
        other(given)[0].sum().backward()
    assert given.grad is not None and given.grad.abs().sum() > 0


def test_its_state_goes_into_another() -> None:
    torch.manual_seed(0)
    config = RingConfig.from_dict({**TINY_RING.to_dict(), "attention": 1})
    first, second = (Canonicalizer(lived_in(build(config), n)).for_inference() for n in (1, 2))
    views = torch.rand(2, 3, 24, 24)
    assert not torch.allclose(first.network(views)[0], second.network(views)[0])
    second.load_state_dict(first.state_dict(), strict=True)
    torch.testing.assert_close(first.network(views), second.network(views))


def test_in_training_mode_nothing_is_dropped() -> None:
    config = RingConfig.from_dict({**TINY_RING.to_dict(), "drop": 0.5})
    fast, views = folded(lived_in(build(config))), torch.rand(4, 3, 24, 24)
    assert torch.equal(fast.train()(views)[0], fast.eval()(views)[0])


@pytest.mark.parametrize("dtype", ["float16", torch.int8, torch.complex64])
def test_only_floats_are_a_precision(dtype: object) -> None:
    front = Canonicalizer(build(TINY_RING))
    with pytest.raises(
        ValueError, match=r"dtype must be a floating-point type, such as torch\.float16 for a GPU"
    ):
        front.for_inference(dtype)  # type: ignore[arg-type]
    assert next(front.double().for_inference().parameters()).dtype == torch.float64


def test_a_folded_network_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"folded for inference.*Save the network before folding"):
        network = build(TINY_RING)
        card = new_card(network, ViewProtocol("paper"))
        save_model(tmp_path / "model", folded(network), card)
    assert not list(tmp_path.iterdir())


def test_in_half_precision_only_the_network_is_rounded(images: Tensor) -> None:
    front = Canonicalizer.from_pretrained("ring.coil100")
    fast = front.for_inference(torch.float16)
    upright, pose = fast(images)
    assert {p.dtype for p in fast.network.parameters()} == {torch.float16}
    assert fast.network.beams.grid.dtype == torch.float32  # where it reads is not rounded
    assert upright.dtype == pose.angle.dtype == pose.transform.dtype == torch.float32
    away = torch.remainder(pose.angle - front(images)[1].angle + 1, 2 * torch.pi) - 1
    assert away.abs().max() < 0.01


@pytest.fixture
def images() -> Tensor:
    """Something with a clear direction: a disc that is bright on one side, turned."""
    line = torch.linspace(-1, 1, 96)
    y, x = torch.meshgrid(line, line, indexing="ij")
    turns = torch.tensor([0.3, 2.0, 4.5])[:, None, None]
    bright = 0.5 + 0.5 * (x * turns.cos() + y * turns.sin()).clamp(-1, 1)
    return (bright * ((x**2 + y**2) < 0.7))[:, None].repeat(1, 3, 1, 1)
