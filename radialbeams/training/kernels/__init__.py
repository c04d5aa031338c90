"""Fast forms of the convolutional network's layers, for training on a GPU that has Triton.

Norms and strided depthwise convolutions dominate its training step. `accelerate` replaces them by
the forms below, which give the same results; the weights and their names stay the same.
"""

from __future__ import annotations

from torch import Tensor, nn

from radialbeams.nn.convolutional import Bottleneck, Convolutional, SameConv
from radialbeams.nn.layers import in_precision_of
from radialbeams.training.kernels.depthwise import depthwise
from radialbeams.training.kernels.norm import norm_relu6

__all__ = ["accelerate", "depthwise", "norm_relu6"]


def accelerate(model: Convolutional) -> None:
    """Replaces the layers in place; outside training mode, the network computes as before."""
    for block in model.blocks:
        block.__class__ = _FastBottleneck
    model.__class__ = _FastConvolutional


class _FastBottleneck(Bottleneck):
    def forward(self, features: Tensor) -> Tensor:
        if not self.training:
            return super().forward(features)
        hidden = features
        if self.expands:
            hidden = _normed(self.expand_norm, self.expand(hidden))
        hidden = _normed(self.depthwise_norm, _convolved(self.depthwise, hidden))
        hidden = _normed(self.project_norm, self.project(hidden), limit=False)
        return features + self.depth(hidden) if self.skips else hidden


class _FastConvolutional(Convolutional):
    def features(self, views: Tensor) -> Tensor:
        if not self.training:
            return super().features(views)
        image = in_precision_of(self.stem, views * (255 / 128) - 127 / 128)
        features = _normed(self.stem_norm, self.stem(image))
        features = self.blocks(features)
        return _normed(self.last_norm, self.last(features))


def _normed(norm: nn.BatchNorm2d, features: Tensor, *, limit: bool = True) -> Tensor:
    if norm.running_mean is None or norm.running_var is None or norm.momentum is None:
        raise ValueError("Expected a batch norm that tracks its statistics with a momentum.")
    if norm.num_batches_tracked is not None:
        norm.num_batches_tracked.add_(1)
    return norm_relu6(
        features,
        norm.weight,
        norm.bias,
        norm.running_mean,
        norm.running_var,
        momentum=norm.momentum,
        epsilon=norm.eps,
        limit=limit,
    )


def _convolved(layer: SameConv, features: Tensor) -> Tensor:
    """The convolution, with our kernel where torch would first copy the image to pad it."""
    if not layer.after:
        convolved: Tensor = layer(features)
        return convolved
    return depthwise(
        features, layer.weight, stride=layer.stride[0], before=layer.before, after=layer.after
    )
