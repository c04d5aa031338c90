"""The fast forms of layers compute what torch's own compute, in Triton's interpreter."""

from __future__ import annotations

import importlib.util

import pytest

from tests.interpreting import interpreted

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed"
)

NORM = """
import torch, torch.nn.functional as F
from radialbeams.training.kernels import norm
norm.ROWS, norm.BLOCK = 16, 256  # several chunks
torch.manual_seed(0)
x = (2 * torch.randn(3, 24, 5, 7) + 3).contiguous(memory_format=torch.channels_last)
x.requires_grad_()
weight, bias = (torch.rand(24) + 0.5).requires_grad_(), torch.randn(24, requires_grad=True)
running = torch.randn(24), torch.rand(24)
before = [value.clone() for value in running]
for limit in (True, False):
    fast = norm.norm_relu6(x, weight, bias, *running, momentum=0.1, epsilon=1e-3, limit=limit)
    plain = F.batch_norm(x, *before, weight, bias, True, 0.1, 1e-3)
    plain = F.relu6(plain) if limit else plain
    seed = torch.randn_like(plain)
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)
    for one, other in zip(
        torch.autograd.grad(fast, (x, weight, bias), seed),
        torch.autograd.grad(plain, (x, weight, bias), seed),
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    for one, other in zip(running, before):
        torch.testing.assert_close(one, other)
"""

DEPTHWISE = """
import torch, torch.nn.functional as F
from radialbeams.training.kernels.depthwise import depthwise
torch.manual_seed(0)
for kernel, height, width in ((3, 9, 8), (5, 8, 11)):
    x = torch.randn(2, 40, height, width).contiguous(memory_format=torch.channels_last)
    x.requires_grad_()
    weight = torch.randn(40, 1, kernel, kernel, requires_grad=True)
    before, after = (kernel - 2) // 2, kernel - 2 - (kernel - 2) // 2
    fast = depthwise(x, weight, stride=2, before=before, after=after)
    plain = F.conv2d(F.pad(x, (before, after) * 2), weight, stride=2, groups=40)
    seed = torch.randn_like(plain)
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)
    for one, other in zip(
        torch.autograd.grad(fast, (x, weight), seed), torch.autograd.grad(plain, (x, weight), seed)
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
"""


@pytest.mark.parametrize("program", [NORM, DEPTHWISE], ids=["norm", "depthwise"])
def test_a_kernel_computes_what_torch_computes(program: str) -> None:
    interpreted(program)
