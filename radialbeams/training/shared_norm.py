"""Batch norms that share their statistics between processes.

torch's `SyncBatchNorm` does this on GPUs only.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from radialbeams.training.distributed import World


class _Gathered(torch.autograd.Function):
    """All-gather, (…) → (processes, …), with its gradient: the sum over all processes."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        value = value.contiguous()
        parts = [torch.empty_like(value) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, value)
        return torch.stack(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous()
        dist.all_reduce(total)
        return total[dist.get_rank()]


class SharedNorm(nn.BatchNorm2d):
    """(N, C, H, W), normalised by mean and variance over the batches of all processes."""

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return super().forward(input)
        values = input.float()
        count = values.numel() // values.shape[1]  # per channel, the same in every process
        mean, var = self._statistics(values, count)
        self._update_running(mean.detach(), var.detach(), count * dist.get_world_size())
        scale = (var + self.eps).rsqrt() * self.weight
        shift = self.bias - mean * scale
        return (values * scale[:, None, None] + shift[:, None, None]).to(input.dtype)

    def _statistics(self, values: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Mean and variance (C,). Combined from those of the parts, which is numerically stable."""
        own_var, own_mean = torch.var_mean(values, (0, 2, 3), correction=0)
        both = torch.stack((own_mean, own_var))
        gathered: Tensor = _Gathered.apply(both)  # type: ignore[no-untyped-call]  # (P, 2, C)
        means, variances = gathered.unbind(1)
        mean = means.mean(0)
        return mean, (variances + (means - mean) ** 2).mean(0)

    def _update_running(self, mean: Tensor, var: Tensor, count: int) -> None:
        """Updates the running statistics as torch does, with the unbiased variance."""
        share = self.momentum or 0.0
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.lerp_(mean, share)
            self.running_var.lerp_(var * (count / max(count - 1, 1)), share)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)


def share_norms(model: nn.Module, world: World) -> None:
    """Replaces the batch norms in place; parameters, buffers and their names stay the same."""
    if world.size == 1:
        return
    for part in model.modules():
        for name, norm in part.named_children():
            if type(norm) is nn.BatchNorm2d:
                setattr(part, name, _shared(norm))


def _shared(norm: nn.BatchNorm2d) -> SharedNorm:
    shared = SharedNorm(norm.num_features, norm.eps, norm.momentum)
    shared.weight, shared.bias = norm.weight, norm.bias
    for name, buffer in norm.named_buffers():
        setattr(shared, name, buffer)
    return shared.train(norm.training)
