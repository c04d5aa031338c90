"""The kernels of the ring in half precision compute what its layers do, in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

from radialbeams.front import folding
from radialbeams.front.folding import folded
from radialbeams.nn.beams import PolarBeams
from radialbeams.nn.ring_fast import FastRing
from radialbeams.nn.ring_network import RingBIC, RingConfig
from tests.interpreting import interpreted

pytest.importorskip("triton")

from radialbeams.nn.ring_kernels import KernelBeams, KernelRing, with_kernels

# Channels that fill no step of 64, lengths that are odd, more rows than a tile, beams that wrap.
CONVOLUTION = """
import torch, torch.nn.functional as F
from radialbeams.nn.kernels.convolution import Along, convolution

def by_torch(x, taps, across, read):
    maps = taps.shape[2]
    weight = taps.float().permute(2, 1, 0).reshape(maps, x.shape[3], across, read.taps)
    image = x.float().permute(0, 3, 1, 2)
    reach = read.dilation * (across // 2)
    if reach:
        image = torch.cat((image[:, :, -reach:], image, image[:, :, :reach]), 2)
    y = F.conv2d(image, weight, None, (1, read.stride), (0, read.padding), (read.dilation, 1))
    return y.permute(0, 2, 3, 1)

def random(*shape):
    return torch.randn(*shape).half()

def close(y, expected):
    torch.testing.assert_close(y.float(), expected, atol=2e-3, rtol=2e-3)

torch.manual_seed(0)
for across, read, length, channels, maps in (
    (3, Along(3, 1, 1), 5, 48, 64),
    (3, Along(3, 2, 1), 7, 16, 96),
    (3, Along(dilation=8), 1, 96, 48),
    (1, Along(), 1, 208, 192),
):
    x = random(3, 8, length, channels)
    taps = random(across * read.taps, channels, maps) / (across * read.taps * channels) ** 0.5
    bias = random(maps)
    expected = by_torch(x, taps, across, read) + bias.float()
    close(convolution(x, taps, bias, read=read, activate=False), expected)
    close(convolution(x, taps, bias, read=read), F.gelu(expected))
    skip = random(*expected.shape)
    close(convolution(x, taps, read=read, skip=skip), F.gelu(expected - bias.float() + skip))
    # A skip connection with a convolution of its own: the mean of two places, of which a beam of
    # odd length has only one at its end.
    longer = random(3, 8, 2 * expected.shape[2] - 1, 32)
    halves = random(32, maps) / 32
    mean = F.avg_pool2d(longer.float().permute(0, 3, 1, 2), (1, 2), ceil_mode=True)
    beside = mean.permute(0, 2, 3, 1) @ (2 * halves.float())
    both = convolution(x, taps, bias, read=read, beside=(longer, halves[None].repeat(2, 1, 1), 2))
    close(both, F.gelu(expected + beside))
assert convolution(x[:0], taps, bias).shape == (0, 8, 1, 192)
"""

STEM = """
import torch, torch.nn.functional as F
from radialbeams.nn.kernels.stem import stem
torch.manual_seed(0)
for layout in ((0, 1, 2, 3, 4), (0, 3, 1, 2, 4), (4, 0, 1, 2, 3)):  # of the beams in memory
    shape = (3, 6, 3, 3, 11)
    back = [layout.index(axis) for axis in range(5)]
    beams = torch.rand([shape[axis] for axis in layout]).permute(back)
    weight, bias = torch.randn(48, 9, 3, 2).half() / 5, torch.randn(48).half()
    image = beams.flatten(2, 3).transpose(1, 2)
    image = torch.cat((image[:, :, -1:], image, image[:, :, :1]), 2)
    expected = F.gelu(F.conv2d(image, weight.float(), bias.float(), (1, 2))).permute(0, 2, 3, 1)
    rows = weight.permute(2, 1, 3, 0).flatten(0, 2)
    y = stem(beams, rows, bias, 2)
    torch.testing.assert_close(y.float(), expected, atol=3e-3, rtol=2e-3)
"""

SAMPLED = """
import torch
from radialbeams.nn.beams import PolarBeams
from radialbeams.nn.kernels import sampling
for beams, length, epsilon, size in ((32, 32, 0, 57), (12, 9, 1, 28)):
    sampler = PolarBeams(beams, length, epsilon, size)
    for count, sampling.ENOUGH in ((1, 256), (5, 256), (5, 1)):  # the last: four views at once
        views = torch.rand(count, 3, size, size)
        turned = views.transpose(2, 3).contiguous().transpose(2, 3)  # columns before rows
        for same in (views, views.contiguous(memory_format=torch.channels_last), turned):
            y = sampling.sampled(same, sampler.index[0].int(), sampler.weight.flatten(1))
            torch.testing.assert_close(y, sampler(views), atol=2e-6, rtol=0)
"""

# More rows than one tile, two parts of the hidden maps, beams that wrap.
PAIR = """
import torch, torch.nn.functional as F
from radialbeams.nn.kernels import pair as module
from radialbeams.nn.kernels.pair import fits, pair
torch.manual_seed(0)
for count, beams, maps, hidden, across, dilation, activate, module.ENOUGH in (
    (9, 16, 32, 32, 3, 4, True, 132), (3, 12, 64, 128, 1, 1, False, 1),
    (5, 32, 128, 128, 3, 8, True, 1),
):
    assert fits(maps, hidden, maps)
    x = torch.randn(count, beams, 1, maps).half()
    taps = (torch.randn(across, maps, hidden) / (across * maps) ** 0.5).half()
    taps2, bias, bias2 = (
        (torch.randn(shape) / 8).half() for shape in ((1, hidden, maps), hidden, maps)
    )
    shifts = [dilation * (across // 2 - tap) for tap in range(across)]
    wide = sum(x.float().roll(shift, 1) @ taps[tap].float() for tap, shift in enumerate(shifts))
    inner = F.gelu(wide + bias.float()).half().float()
    expected = x.float() + inner @ taps2[0].float() + bias2.float()
    expected = F.gelu(expected) if activate else expected
    y = pair(x, (taps, bias), (taps2, bias2), dilation=dilation, activate=activate)
    torch.testing.assert_close(y.float(), expected, atol=4e-3, rtol=2e-3)
assert not fits(192, 192, 192)  # two kernels
"""

# For many views and for few, with more beams and maps than are computed at once.
ENDS = """
import torch
from radialbeams.nn.kernels import ends
from radialbeams.nn.kernels.ends import head, with_whole
torch.manual_seed(0)
for count, beams, maps, ends.ENOUGH in (
    (1, 12, 16, 1), (19, 7, 96, 2), (1, 12, 16, 2), (3, 70, 96, 2)
):
    x = torch.randn(count, beams, 1, maps).half()
    weight, bias = (torch.randn(maps, maps) / maps**0.5).half(), torch.randn(maps).half()
    expected = x.float() + (x.float().mean((1, 2)) @ weight.float() + bias.float())[:, None, None]
    torch.testing.assert_close(
        with_whole(x, weight, bias).float(), expected, atol=4e-3, rtol=2e-3
    )
    weight, bias = (torch.randn(2, maps) / 4).half(), torch.randn(2).half()
    both = x.float().squeeze(2) @ weight.float().t() + bias.float()
    logits, offsets = head(x, weight, bias, 0.75)
    torch.testing.assert_close(logits, both[..., 0], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(offsets, 0.75 * torch.tanh(both[..., 1]), atol=1e-5, rtol=1e-4)
"""

# Beams that are no power of 2, and few channels.
ATTENTION = """
import torch, torch.nn.functional as F
from radialbeams.nn.kernels.attention import attended, fits
torch.manual_seed(0)
for count, beams, heads, channels in ((2, 12, 4, 8), (3, 40, 2, 32)):
    assert fits(beams, channels)
    projected = torch.randn(count, beams, 1, 3 * heads * channels).half()
    bias = torch.randn(heads, beams, beams).half()
    parts = projected.float().reshape(count, beams, 3, heads, channels).permute(2, 0, 3, 1, 4)
    expected = F.scaled_dot_product_attention(*parts.unbind(), attn_mask=bias.float()[None])
    expected = expected.transpose(1, 2).reshape(count, beams, 1, -1)
    y = attended(projected, bias).float()
    torch.testing.assert_close(y, expected, atol=3e-3, rtol=2e-3)
assert attended(projected[:0], bias).shape == (0, 40, 1, 64)
assert not fits(129, 32)  # torch's attention
"""

GELU = """
import torch, triton, triton.language as tl
from radialbeams.nn.kernels.arithmetic import gelu

@triton.jit
def apply(x, y, B: tl.constexpr):
    place = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + place, gelu(tl.load(x + place)))

x = torch.cat((torch.linspace(-12, 12, 16384 - 2), torch.tensor([-3e4, 3e4])))
y = torch.empty_like(x)
apply[(16,)](x, y, B=1024)
exact = torch.nn.functional.gelu(x.double())
assert ((y - exact).abs() <= 3.3e-5 + 1e-5 * exact.abs()).all(), (y - exact).abs().max()
assert (y[x < -4.4] == 0).all()
"""

RING = """
import copy, torch
from radialbeams.front.module import Canonicalizer
from radialbeams.nn.ring_fast import FastRing
from radialbeams.nn.ring_kernels import KernelRing
torch.manual_seed(0)
canonicalizer = Canonicalizer.from_pretrained({model!r})
exact = canonicalizer.for_inference().network
half = canonicalizer.for_inference(torch.float16).network
half = half.to(memory_format=torch.channels_last)  # as on a GPU; it rearranges weights
assert type(half.ring) is KernelRing and type(exact.ring) is FastRing
assert half.state_dict().keys() == exact.state_dict().keys()
config = exact.config
for count in {counts}:
    views = torch.rand(count, config.channels, config.view_size, config.view_size)
    with torch.inference_mode():
        outputs, expected = half(views), exact(views)
    assert (outputs[0] - expected[0]).abs().max() / expected[0].std() < 0.02
    assert (outputs[1] - expected[1]).abs().max() < 0.01
"""

COMPILED = """
import torch
from radialbeams.front.module import Canonicalizer
network = Canonicalizer.from_pretrained("ring.coil100").for_inference(torch.float16).network
views = torch.rand(1, 3, 57, 57).half()
calls = torch.compile(network, backend="aot_eager", fullgraph=True, dynamic=False)
with torch.inference_mode():
    torch.testing.assert_close(calls(views), network(views))
"""

PROGRAMS = {
    "convolution": CONVOLUTION,
    "stem": STEM,
    "sampled": SAMPLED,
    "pair": PAIR,
    "ends": ENDS,
    "attention": ATTENTION,
    "gelu": GELU,
    "ring.coil100": RING.format(model="ring.coil100", counts=(1, 3)),
    "compiled": COMPILED,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_computes_what_torch_computes(name: str) -> None:
    interpreted(PROGRAMS[name])


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ring", "ring.lfw"])
def test_the_kernels_of_larger_rings_compute_what_torch_computes(model: str) -> None:
    interpreted(RING.format(model=model, counts=(1,)))


# --- when they are used ---


def network(**changes: object) -> RingBIC:
    settings = {"view_size": 28, "sampler": "polar", "num_beams": 16, "beam_length": 16}
    settings |= {"epsilon": 0, "stem": 16, "stages": (16, 32), "width": 32}
    torch.manual_seed(0)
    config = RingConfig(**{**settings, **changes})  # type: ignore[arg-type]
    made: RingBIC = folded(RingBIC(config).eval()).half()
    return made


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"attention": 1}, True),
        ({"depth": 2}, True),
        ({"width": 24}, False),
        ({"stages": (16, 20)}, False),
        ({"stem": 256}, False),
        ({"dilations": (1, 17)}, False),
        ({"stem_stride": 16, "channels": 4}, False),
    ],
)
def test_rings_of_sizes_that_do_not_fit_stay_as_they_are(
    changes: dict[str, object], fits: bool
) -> None:
    ring = network(**changes)
    with_kernels(ring)
    assert type(ring.ring) is (KernelRing if fits else FastRing)
    assert type(ring.beams) is (KernelBeams if fits else PolarBeams)


def test_a_ring_that_is_not_folded_stays_as_it_is() -> None:
    settings = {"view_size": 28, "num_beams": 16, "beam_length": 14, "epsilon": 0, "stem": 16}
    ring = RingBIC(RingConfig(**settings, stages=(16,), width=32)).eval().half()
    with_kernels(ring)
    assert type(ring.ring) is FastRing


def test_a_ring_in_float32_stays_as_it_is() -> None:
    ring = network().float()
    with_kernels(ring)
    assert type(ring.ring) is FastRing
    assert type(ring.beams) is PolarBeams


def test_without_triton_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = network()
    monkeypatch.setattr(folding, "INSTALLED", False)
    folding.with_kernels(ring)
    assert type(ring.ring) is FastRing


def test_without_a_gpu_the_ring_computes_as_before() -> None:
    ring = network(attention=1)
    beams = torch.rand(2, 16, 3, 1, 16).half()
    expected = ring.ring(beams)
    before = set(ring.state_dict())
    with_kernels(ring)
    assert isinstance(ring.ring, KernelRing)
    assert not ring.ring.has_kernels(beams)
    assert set(ring.state_dict()) == before
    for one, other in zip(ring.ring(beams), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "used"),
    [
        (lambda ring: None, True),
        (lambda ring: ring.float(), False),
        (lambda ring: ring.train(), False),
    ],
    ids=["half", "float", "training"],
)
def test_only_half_precision_at_inference_uses_the_kernels(
    change: object, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("radialbeams.nn.kernels.arithmetic.can_run", lambda device: True)
    ring = network()
    with_kernels(ring)
    change(ring)  # type: ignore[operator]
    beams = torch.rand(2, 16, 3, 1, 16)
    assert ring.ring.has_kernels(beams) is used
    assert not ring.ring.has_kernels(beams.requires_grad_())
    with torch.no_grad():
        assert ring.ring.has_kernels(beams) is used
    with torch.autocast("cpu"):
        assert not ring.ring.has_kernels(torch.rand(2, 16, 3, 1, 16))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_kernels_compute_what_the_layers_compute() -> None:
    ring = network(attention=1, depth=2).cuda()
    beams = torch.rand(300, 16, 3, 1, 16, device="cuda")
    with torch.inference_mode():
        expected = ring.ring(beams)
        with_kernels(ring)
        assert ring.ring.has_kernels(beams)
        for one, other in zip(ring.ring(beams), expected, strict=True):
            torch.testing.assert_close(one, other, atol=0.02, rtol=0.02)
