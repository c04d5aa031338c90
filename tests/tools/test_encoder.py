"""Published ImageNet weights become those of the convolutional network, in order and by shape."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig, load_encoder
from tools.photos.encoder import converted


def published(variant: str) -> dict[str, Tensor]:
    """As the package stores them: other names, the same order, a classifier at the end."""
    network = Convolutional(ConvolutionalConfig(variant=variant, view_size=32))
    tensors = [value for name, value in network.state_dict().items() if "head." not in name]
    weights = {f"_layer{number}": value for number, value in enumerate(tensors)}
    return {**weights, "_fc.weight": torch.zeros(1000, 1280)}


def test_the_encoder_gets_the_published_tensors() -> None:
    torch.manual_seed(0)
    theirs = published("lite0")
    model = Convolutional(ConvolutionalConfig(variant="lite0", view_size=32))
    load_encoder(model, converted(theirs, "lite0"))
    torch.testing.assert_close(model.stem.weight, theirs["_layer0"])
    torch.testing.assert_close(model.last.weight, theirs[f"_layer{len(theirs) - 7}"])


def test_weights_of_another_variant_are_refused() -> None:
    with pytest.raises(SystemExit, match="weights of EfficientNet-lite2"):
        converted(published("lite0"), "lite2")
