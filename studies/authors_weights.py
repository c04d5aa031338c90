"""The errors of the authors' own trained models, on the images of COIL-100 and LFW.

    python studies/authors_weights.py --coil100 MODEL --lfw MODEL --data DIR

MODEL is one of the two SavedModel folders in the authors' public repository (`model/*.h5py`). The
script needs `tensorflow-cpu` 2.21 in addition to this package. The networks have 16 beams of
D = 64, also for LFW, whose images are 250 pixels wide. The views follow the authors' code: a canvas
27 pixels wider than the image, one bilinear rotation, and beams that end in equal steps along the
border. Images are taken evenly from the whole set, so most of them are training images.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from radialbeams.nn.angles import angular_error, from_unit
from radialbeams.nn.rotation import pad, rotate
from radialbeams.training.data import ImageSet, load
from radialbeams.training.evaluate import summarise
from radialbeams.training.views import as_floats, draw_angles

BEAMS, LENGTH = 16, 64
IMAGES = {"coil100": 1500, "lfw": 1200}
BATCH = 50
STORED_FIGURES = ("n", "mean", "mean_low", "mean_high", "median", "p95", "paper_equivalent",
                  "within_5", "within_10", "flips")  # fmt: skip


def canvas_of(size: int) -> tuple[int, int]:
    """The width for which beams are laid out, and the padding on each side, half of the paper's."""
    width = size + math.ceil(LENGTH * (math.sqrt(2) - 1))
    return width, (width - size) // 2


def ends(width: int) -> NDArray[np.int64]:
    """(16, 2): where beams end, in equal steps along the border from the upper left corner."""
    count = BEAMS // 4
    steps = np.arange(count) * (width // count)
    back = np.arange(count, 0, -1) * (width // count)
    last = np.full(count, width - 1)
    none = np.zeros(count, dtype=int)
    sides = (
        np.stack((steps, none), 1),
        np.stack((last, np.r_[0, steps[1:]]), 1),
        np.stack((back, last), 1),
        np.stack((none, back), 1),
    )
    return np.concatenate(sides)


def line(centre: int, end: NDArray[np.int64]) -> NDArray[np.int64]:
    """(3, D, 2): the pixels (row, column) of a beam from the centre, with one more on each side."""
    offset = end - centre
    steep = abs(offset[1]) > abs(offset[0])
    along, across = (1, 0) if steep else (0, 1)  # the axis that grows by 1 a step, and the other
    steps, rise = abs(offset[along]), abs(offset[across])
    backwards = offset[along] < 0
    # Lines towards smaller indices are drawn from their end, so they round the other way.
    index = np.arange(LENGTH)
    along_steps = steps - index if backwards else index
    across_steps = np.maximum(0, -(-(along_steps * rise - steps // 2) // max(steps, 1)))
    start = end if backwards else np.full(2, centre)
    signs = np.sign(offset) * (-1 if backwards else 1)
    middle = np.empty((LENGTH, 2), dtype=np.int64)
    middle[:, along] = start[along] + along_steps
    middle[:, across] = start[across] + signs[across] * across_steps
    sideways = np.zeros(2, dtype=np.int64)
    sideways[across] = 1 if steep or backwards else -1
    return np.stack((middle + sideways, middle, middle - sideways))


def pixels_of(size: int) -> NDArray[np.int64]:
    """(16, 3, D, 2): the pixels of all beams."""
    width, _ = canvas_of(size)
    lines = [line(width // 2, end) for end in ends(width)]
    return np.clip(np.stack(lines), 0, width - 1)


def beams_of(images: Tensor, angles: Tensor) -> NDArray[np.float32]:
    """Bytes (N, C, W, W) and radians (N,) → (N, 16, 3, D, C) in [0, 1]."""
    size = images.shape[-1]
    turned = rotate(pad(as_floats(images), canvas_of(size)[1]), angles)
    pixels = turned.permute(0, 2, 3, 1).numpy()
    positions = pixels_of(size)
    return np.asarray(pixels[:, positions[..., 0], positions[..., 1]])


def measure(model: Path, images: ImageSet) -> dict[str, Any]:
    import tensorflow as tf  # type: ignore[import-not-found, import-untyped, unused-ignore]

    network = tf.saved_model.load(str(model))
    signature = network.signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    angles = draw_angles("evaluation", 0, 0, len(images))
    estimates = []
    for start in range(0, len(images), BATCH):
        chunk = slice(start, start + BATCH)
        beams = beams_of(images.images[chunk], angles[chunk])
        # The network takes pairs; the authors pass a single image twice.
        outputs = signature(**{name: tf.constant(np.stack((beams, beams), 1))})
        (unit,) = [value for value in outputs.values() if value.shape[1:] == (2,)]
        estimates.append(torch.from_numpy(unit.numpy()))
    figures = summarise(angular_error(from_unit(torch.cat(estimates)), angles)[None]).to_dict()
    parameters = sum(int(np.prod(value.shape)) for value in network.variables)
    return {
        "parameters": parameters,
        "beams": BEAMS,
        "beam_length": LENGTH,
        **{key: figures[key] for key in STORED_FIGURES},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in IMAGES:
        parser.add_argument(f"--{name}", type=Path, help="folder of the SavedModel")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int, help="images, for a quick look")
    parser.add_argument("--out", type=Path, default=Path("results") / "authors.json")
    arguments = parser.parse_args()
    results = {}
    for name, count in IMAGES.items():
        if model := getattr(arguments, name):
            images = load(name, root=arguments.data, limit=arguments.limit or count)
            results[name] = measure(model, images)
            print(name, json.dumps(results[name]), flush=True)
    arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
