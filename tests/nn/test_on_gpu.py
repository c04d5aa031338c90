"""The kernels on a real GPU, against the same computation without them. Skipped without one.

The interpreter of the other tests cannot show what a compiler for GPUs does to a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.on_gpu.photos import photos
from radialbeams.front.module import Canonicalizer
from radialbeams.front.pose import Pose
from radialbeams.front.view_geometry import ViewGeometry
from radialbeams.nn.convolutional import Convolutional
from radialbeams.nn.kernels import using
from radialbeams.nn.kernels.using import without_kernels

pytestmark = pytest.mark.skipif(
    not (torch.cuda.is_available() and using.INSTALLED), reason="needs a GPU and Triton"
)
if using.INSTALLED:
    from radialbeams.nn.kernels.attention import attended
    from radialbeams.nn.kernels.ends import with_whole
PLACE = "cuda"
FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "whole": lambda wide: wide[..., : wide.shape[-2]].contiguous(),
    "cut": lambda wide: wide,
    "channels last": lambda wide: wide.contiguous(memory_format=torch.channels_last),
}


def pictures(side: int, dtype: torch.dtype) -> Tensor:
    """A bit wider than high, so that the central square starts at an odd place in memory."""
    noise = torch.rand(4, 3, side, side + 10, generator=torch.Generator().manual_seed(0))
    return (noise / 2 + noise.mean((-2, -1), keepdim=True) / 2).to(PLACE, dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("side", [150, 151, 160, 224, 300])
@pytest.mark.parametrize("parent_and_view", [(128, 57), (176, 79), (400, 160)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@torch.inference_mode()
def test_views_are_the_same(
    dtype: torch.dtype, parent_and_view: tuple[int, int], side: int, form: str
) -> None:
    parent, size = parent_and_view
    geometry = ViewGeometry(size, 3, parent).to(PLACE)
    images = FORMS[form](pictures(side, dtype))
    fast = geometry(images)
    with without_kernels():
        torch.testing.assert_close(fast, geometry(images), rtol=0, atol=2e-3)


@pytest.mark.parametrize("canvas", ["same", "expand"])
@pytest.mark.parametrize("size", [(65, 65), (64, 64), (48, 65)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@torch.inference_mode()
def test_images_are_turned_the_same(dtype: torch.dtype, size: tuple[int, int], canvas: str) -> None:
    angles = torch.tensor([0.0, 1, 2, 3, 0.4, 2.2], device=PLACE)
    angles[:4] *= math.pi / 2
    pose = Pose.from_angles(angles, size, canvas=canvas)  # type: ignore[arg-type]
    images = torch.rand(6, 3, *size).to(PLACE, dtype)
    for given in (images, images.contiguous(memory_format=torch.channels_last)):
        fast = pose.apply_images(given, 0.7)
        with without_kernels():
            plain = pose.apply_images(given, 0.7)
        assert torch.equal(fast[:4], plain[:4])  # quarter turns only move pixels
        torch.testing.assert_close(fast, plain, rtol=0, atol=2e-3)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("model", ["ring.coil100", "ring"])
@torch.inference_mode()
def test_rings_in_half_precision_find_the_same_beam(model: str, compiled: bool) -> None:
    front = Canonicalizer.from_pretrained(model)
    config = front.network.config
    views = torch.rand(64, config.channels, config.view_size, config.view_size, device=PLACE)
    exact, _ = front.for_inference(torch.float32).to(PLACE).network(views)
    network = front.for_inference(torch.float16).to(PLACE).network
    logits, _ = (torch.compile(network, dynamic=False) if compiled else network)(views.half())
    assert (logits.argmax(-1) == exact.argmax(-1)).float().mean() > 0.95
    assert (logits - exact).abs().max() < 0.05 * exact.std()


def lite(dtype: torch.dtype = torch.float16) -> Convolutional:
    """The network of `general` with its kernels."""
    network = Canonicalizer.from_pretrained("general").for_inference(dtype).network
    assert isinstance(network, Convolutional)
    return network.to(PLACE, memory_format=torch.channels_last)  # type: ignore[call-overload]


@pytest.mark.parametrize("count", [1, 3, 64])
@torch.inference_mode()
def test_the_convolutional_network_gives_the_same(count: int) -> None:
    network = lite()
    views = torch.rand(count, 3, 192, 192, device=PLACE)
    fast, fast_offsets = network(views)
    with without_kernels():
        plain, plain_offsets = network(views)
    assert not torch.equal(fast, plain)  # otherwise nothing was compared
    assert (fast - plain).abs().max() < 0.1 * plain.std()
    assert (fast_offsets - plain_offsets).abs().max() < 0.05  # bins


@torch.inference_mode()
def test_features_of_more_than_two_billion_values_are_as_right_as_few() -> None:
    network = lite()
    views = torch.rand(2560, 3, 192, 192, device=PLACE, dtype=torch.float16)
    logits, _ = network(views)
    torch.testing.assert_close(logits[-8:], network(views[-8:])[0], rtol=0.01, atol=0.05)


@pytest.mark.parametrize("count", [1, 3, 64])
@torch.inference_mode()
def test_float32_is_as_precise_as_torch_on_photos(count: int) -> None:
    network = lite(torch.float32)
    views = photos(count, 3, 192).to(PLACE)
    fast, _ = network(views)
    with without_kernels():
        plain, _ = network(views)
    assert not torch.equal(fast, plain)  # otherwise nothing was compared
    assert (fast - plain).square().mean().sqrt() < 0.002 * plain.std()
    assert (fast - plain).abs().max() < 0.01 * plain.std()


@pytest.mark.parametrize("count", [1, 64, 5000])
@torch.inference_mode()
def test_the_mean_over_the_beams_is_the_same_for_few_views_and_for_many(count: int) -> None:
    x = torch.randn(count, 40, 1, 256, device=PLACE).half()
    weight = (torch.randn(256, 256, device=PLACE) / 16).half()
    bias = torch.randn(256, device=PLACE).half()
    mean = x.double().mean(1, keepdim=True)
    expected = (x.double() + mean @ weight.double() + bias.double()).float()
    close = {"rtol": 2e-3, "atol": 4e-3}
    torch.testing.assert_close(with_whole(x, weight, bias).float(), expected, **close)


@pytest.mark.parametrize(("count", "beams"), [(1, 48), (64, 40), (3, 12)])
@torch.inference_mode()
def test_attention_is_the_same(count: int, beams: int) -> None:
    projected = torch.randn(count, beams, 1, 3 * 256, device=PLACE).half()
    bias = torch.randn(8, beams, beams, device=PLACE).half()
    parts = projected.double().reshape(count, beams, 3, 8, 32).permute(2, 0, 3, 1, 4)
    exact = F.scaled_dot_product_attention(*parts.unbind(), attn_mask=bias.double()[None])
    exact = exact.transpose(1, 2).reshape(count, beams, 1, 256)
    assert (attended(projected, bias) - exact).abs().max() < 4e-3
