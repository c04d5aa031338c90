"""Canonicalizer: pictures in, their angles and the pictures turned back out. No torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams import images, zoo

BATCH = 64


@dataclass(frozen=True)
class Canonicalization:
    """What was found: the turn that the input has undergone, and the input turned back."""

    image: Image.Image
    angle_degrees: float  # counter-clockwise, in [0, 360)


class Canonicalizer:
    """A model, loaded once, that any number of pictures can be put through."""

    def __init__(self, model: str | Path, *, threads: int = 0) -> None:
        # Only here: it is most of the import time, and `--help` needs none of it.
        import onnxruntime

        found = zoo.find(model)
        self.card = found.card
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads  # 0 lets the runtime choose
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            zoo.verified_onnx(found), options, providers=["CPUExecutionProvider"]
        )

    def angles(self, pictures: Sequence[images.Source]) -> list[float]:
        """Degrees in [0, 360) for each picture, in batches."""
        found: list[float] = []
        for start in range(0, len(pictures), BATCH):
            views = [self._view(picture) for picture in pictures[start : start + BATCH]]
            (units,) = self._session.run(None, {"views": np.stack(views)})
            found += [math.degrees(math.atan2(im, re)) % 360 for re, im in units.tolist()]
        return found

    def predict(self, picture: images.Source) -> Canonicalization:
        opened = images.open_rgb(picture)
        (angle,) = self.angles([opened])
        return Canonicalization(images.turn(opened, -angle), angle)

    def _view(self, picture: images.Source) -> NDArray[np.float32]:
        return images.paper_view(images.open_rgb(picture), self.card["config"]["view_size"])
