"""The kernels of the convolutional network compute what its layers do, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from radialbeams.front import folding
from radialbeams.front.folding import folded
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from tests.interpreting import interpreted

pytest.importorskip("triton")

from radialbeams.nn.convolutional_kernels import KernelConvolutional, with_kernels
from radialbeams.nn.kernels.depthwise import Footprint

# Odd sides, more channels than a tile, rows that fill no tile, uneven padding.
DEPTHWISE = """
import torch, torch.nn.functional as F
from radialbeams.nn.kernels.depthwise import Footprint, depthwise
torch.manual_seed(0)
for reading, height, width, channels in (
    (Footprint(3, 1, 1, 1), 7, 5, 40),
    (Footprint(3, 2, 0, 1), 8, 6, 24),
    (Footprint(3, 2, 1, 1), 7, 9, 16),
    (Footprint(5, 1, 2, 2), 7, 7, 72),
    (Footprint(5, 2, 1, 2), 10, 8, 48),
    (Footprint(5, 2, 2, 2), 7, 7, 8),
):
    x, bias = torch.randn(3, height, width, channels).half(), torch.randn(channels).half()
    taps = torch.randn(reading.size**2, channels).half() / reading.size
    weight = taps.float().t().reshape(channels, 1, reading.size, reading.size)
    image = F.pad(x.float().permute(0, 3, 1, 2), (reading.before, reading.after) * 2)
    expected = F.conv2d(image, weight, bias.float(), reading.stride, groups=channels)
    expected = F.relu6(expected).permute(0, 2, 3, 1)
    assert expected.shape[1:3] == (reading.reached(height), reading.reached(width))
    torch.testing.assert_close(
        depthwise(x, taps, bias, reading).float(), expected, atol=4e-3, rtol=1e-3
    )
assert depthwise(x[:0], taps, bias, reading).shape == (0, 4, 4, 8)
"""

PRODUCT = """
import torch, torch.nn.functional as F
from radialbeams.nn.kernels import product as products
from radialbeams.nn.kernels.product import product
torch.manual_seed(0)
products.ENOUGH = 1  # so that the large tiles are tried too
for channels, maps in ((16, 96), (24, 144), (96, 24), (144, 24), (48, 48), (288, 48), (120, 88)):
    x = torch.randn(2, 5, 7, channels).half()
    taps, bias = torch.randn(channels, maps).half() / channels**0.5, torch.randn(maps).half()
    skip = torch.randn(2, 5, 7, maps).half()
    expected = x.float() @ taps.float() + bias.float()
    close = lambda y, wanted: torch.testing.assert_close(y.float(), wanted, atol=4e-3, rtol=2e-3)
    close(product(x, taps, bias), expected)
    close(product(x, taps, bias, activate=True), F.relu6(expected))
    close(product(x, taps, bias, skip=skip), expected + skip)
assert product(x[:0], taps, bias).shape == (0, 5, 7, 88)
"""

STEM = """
import torch, torch.nn.functional as F
from radialbeams.nn.kernels.depthwise import Footprint
from radialbeams.nn.kernels.view_stem import stem
torch.manual_seed(0)
for reading, side, channels in ((Footprint(3, 2, 0, 1), 12, 3), (Footprint(3, 2, 1, 1), 11, 1)):
    weight, bias = torch.randn(24, channels, 3, 3).half() / 3, torch.randn(24).half()
    taps = weight.permute(2, 3, 1, 0).flatten(0, 2).contiguous()
    views = torch.rand(3, channels, side, side)
    image = F.pad(2 * views - 1, (reading.before, reading.after) * 2)
    expected = F.relu6(F.conv2d(image, weight.float(), bias.float(), 2)).permute(0, 2, 3, 1)
    far = torch.rand(channels, 3, side, side).transpose(0, 1).copy_(views)
    wide = torch.rand(3, channels, side, side + 5)[..., 2:-3].copy_(views)
    for given in (views, views.half(), views.to(memory_format=torch.channels_last), far, wide):
        y = stem(given, taps, bias, (2.0, -1.0), reading)
        assert y.dtype == torch.float16
        torch.testing.assert_close(y.float(), expected, atol=6e-3, rtol=2e-3)
    assert stem(views[:0], taps, bias, (2.0, -1.0), reading).shape == (0, *expected.shape[1:])
"""

# In float32, with operands as tensor cores take them: 11 bits, rounded and not cut off.
SINGLE = """
import torch, torch.nn.functional as F
from radialbeams.nn.kernels.arithmetic import rounded
from radialbeams.nn.kernels.depthwise import Footprint
from radialbeams.nn.kernels.product import product
from radialbeams.nn.kernels.view_stem import stem

def close(y, expected):
    assert y.dtype == torch.float32
    torch.testing.assert_close(y, expected, atol=5e-5, rtol=1e-5)

torch.manual_seed(0)
step = 2.0**-10
tenth = rounded(torch.tensor([1 + 0.4 * step, 1 + 0.6 * step, -1 - 0.6 * step]))
assert tenth.tolist() == [1, 1 + step, -1 - step]
assert rounded(torch.tensor(torch.nan)).isnan()

x, bias = torch.randn(2, 8, 5, 48), torch.randn(24)
taps = rounded(torch.randn(48, 24) / 7)
close(product(x, taps, bias, skip=x[..., :24]), rounded(x) @ taps + bias + x[..., :24])
x[0, 0, 0, 0] = torch.nan
assert product(x, taps, bias)[0, 0, 0].isnan().all()

views, weight = torch.rand(2, 3, 12, 12), rounded(torch.randn(24, 3, 3, 3) / 3)
expected = F.relu6(F.conv2d(F.pad(rounded(2 * views - 1), (0, 1) * 2), weight, bias, 2))
taps = weight.permute(2, 3, 1, 0).flatten(0, 2).contiguous()
y = stem(views, taps, bias, (2.0, -1.0), Footprint(3, 2, 0, 1))
close(y, expected.permute(0, 2, 3, 1))
"""

NETWORK = """
import torch
from radialbeams.front.folding import folded, with_kernels
from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig
from radialbeams.nn.convolutional_kernels import KernelConvolutional
from radialbeams.nn.kernels.using import without_kernels
torch.manual_seed(0)
made = Convolutional(ConvolutionalConfig(variant="lite0", view_size=39)).eval()
for norm in made.modules():
    if isinstance(norm, torch.nn.BatchNorm2d):
        norm.running_mean.normal_(0, 0.2), norm.running_var.uniform_(0.5, 1.5)
        norm.weight.data.uniform_(0.8, 1.2), norm.bias.data.normal_(0, 0.2)
made.head.weight.data.normal_(0, 0.5)
views = torch.rand(2, 3, 39, 39)
with torch.inference_mode():
    expected = made(views)
    for dtype in (torch.float32, torch.float16):
        network = folded(made).to(dtype)
        with_kernels(network)
        assert type(network) is KernelConvolutional and network.has_kernels(views)
        for one, other in zip(network(views), expected):
            assert 0 < (one - other).abs().max() < 0.01 * other.std()
    assert network.state_dict().keys() == folded(made).state_dict().keys()
    with without_kernels():
        assert not network.has_kernels(views)
    calls = torch.compile(network, backend="aot_eager", fullgraph=True, dynamic=False)
    torch.testing.assert_close(calls(views), network(views))
"""

PROGRAMS = {
    "depthwise": DEPTHWISE,
    "product": PRODUCT,
    "stem": STEM,
    "single": SINGLE,
    "network": NETWORK,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_computes_what_torch_computes(name: str) -> None:
    interpreted(PROGRAMS[name])


# --- when they are used ---


def network() -> Convolutional:
    return folded(Convolutional(ConvolutionalConfig(variant="lite0", view_size=32)).eval())


@pytest.mark.parametrize(("side", "reached"), [(12, 6), (11, 6), (7, 4)])
def test_a_side_is_halved_and_rounded_up(side: int, reached: int) -> None:
    missing = max((reached - 1) * 2 + 3 - side, 0)
    assert Footprint(3, 2, missing // 2, missing - missing // 2).reached(side) == reached


def test_without_triton_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = network()
    monkeypatch.setattr(folding, "INSTALLED", False)
    folding.with_kernels(made)
    assert type(made) is Convolutional


def test_a_network_that_is_not_folded_stays_as_it_is() -> None:
    made = Convolutional(ConvolutionalConfig(variant="lite0", view_size=32)).eval()
    with_kernels(made)
    assert type(made) is Convolutional


def test_without_a_gpu_it_computes_as_before() -> None:
    made, views = network(), torch.rand(2, 3, 32, 32)
    expected = made(views)
    with_kernels(made)
    assert isinstance(made, KernelConvolutional)
    assert not made.has_kernels(views)
    for one, other in zip(made(views), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "used"),
    [
        (lambda made: made.half(), True),
        (lambda made: made.float(), True),
        (lambda made: made.double(), False),
        (lambda made: made.train(), False),
    ],
    ids=["half", "float", "double", "training"],
)
def test_only_inference_uses_the_kernels(
    change: Callable[[Convolutional], object], used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("radialbeams.nn.kernels.arithmetic.can_run", lambda device: True)
    made, views = network(), torch.rand(2, 3, 32, 32)
    with_kernels(made)
    change(made)

    def uses(given: Tensor) -> bool:
        assert isinstance(made, KernelConvolutional)
        return made.has_kernels(given)

    assert uses(views) is used
    assert not uses(views[:, :1])  # of other channels, which torch refuses
    assert not uses(views.clone().requires_grad_())
    with torch.autocast("cpu"):
        assert not uses(views)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    assert uses(views) is (used and made.stem.weight.dtype == torch.float16)
