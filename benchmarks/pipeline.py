"""From files to answers: the time of each stage, and of Pillow's decoding alone."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.clock import Call, compared, in_turns
from benchmarks.files import gathered, make_large
from radialbeams import images
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.stored import JsonDict

MODEL = "ring.coil100"
SMALL, LARGE = 64, 4  # files in a call
# A large file must reach this share of the speed of decoding alone.
SHARE = 0.7
BATCH = 16


def measure(quick: bool) -> JsonDict:
    with tempfile.TemporaryDirectory() as name:
        small = gathered(None, Path(name) / "images", SMALL)
        large = [make_large(Path(name) / "large.jpg")] * LARGE
        rounds = 3 if quick else 9
        return {
            "JPEG of 250 pixels": stages(small, rounds),
            "JPEG of 12 megapixels": stages(large, rounds),
        }


def stages(paths: list[Path], rounds: int) -> JsonDict:
    """In the time of this thread, so that other programs add little to it."""
    canonicalizer = Canonicalizer(MODEL, threads=1)
    network, side = canonicalizer.card.network, canonicalizer.parent_size
    smalls = [images.read_small(path, side) for path in paths]
    views = np.stack([canonicalizer.view(path) for path in paths])
    protocol, size = canonicalizer.card.protocol, network.view_size
    calls: dict[str, Call] = {
        "Pillow decode": lambda: _decode(paths),
        "Pillow decode, scaled": lambda: _decode(paths, 2 * side),
        "decode": lambda: [images.read_small(path, side) for path in paths],
        "view": lambda: [images.view(s, protocol, size, network.channels) for s in smalls],
        "model": lambda: _answers(canonicalizer, views),
        "file to answer": lambda: canonicalizer.answers(paths),
    }
    seconds = in_turns(calls, rounds, time.thread_time)
    return compared(seconds, "Pillow decode", len(paths))


def _decode(paths: list[Path], side: int | None = None) -> None:
    for path in paths:
        with Image.open(path) as image:
            if side is not None:
                image.draft(None, (side, side))
            image.load()


def _answers(canonicalizer: Canonicalizer, views: Any) -> None:
    for first in range(0, len(views), BATCH):
        canonicalizer.answers_from_views(views[first : first + BATCH])
