"""A faster form of the convolutional network's blocks, with the same results, for inference.

It is for half precision on a GPU with Triton; elsewhere the plain block runs.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.convolutional import Bottleneck


def with_fast_blocks(network: nn.Module) -> None:
    """Gives all blocks of a network with folded norms their fast form, in place, if it has any."""
    if find_spec("triton") is None:
        return
    for block in network.modules():
        if type(block) is Bottleneck and isinstance(block.depthwise_norm, nn.Identity):
            block.__class__ = FastBottleneck
            taps = block.depthwise.weight.detach().flatten(1).t().contiguous()  # (K·K, C)
            block.register_buffer("taps", taps, persistent=False)


class FastBottleneck(Bottleneck):
    """Matrix products for the 1 × 1 convolutions, and one kernel for everything between them."""

    taps: Tensor

    def forward(self, features: Tensor) -> Tensor:
        if not (features.is_cuda and features.dtype == torch.float16) or self.training:
            return super().forward(features)
        return self.in_products(features)

    def in_products(self, features: Tensor) -> Tensor:
        from radialbeams.nn.depthwise_kernel import depthwise

        rows = features.permute(0, 2, 3, 1).contiguous()  # (N, H, W, C): channels last
        after = self.depthwise.get_parameter("bias")
        hidden, before = rows, after  # without an expansion, there is no bias before
        if self.expands:
            hidden = F.linear(rows, self.expand.weight.flatten(1))
            before = self.expand.get_parameter("bias")
        layer = self.depthwise
        first = layer.before if layer.after else int(layer.padding[0])
        hidden = depthwise(hidden, before, self.taps, after, layer.stride[0], first, self.expands)
        out = F.linear(hidden, self.project.weight.flatten(1), self.project.bias)
        if self.skips:
            out = out + rows
        return out.permute(0, 3, 1, 2)
