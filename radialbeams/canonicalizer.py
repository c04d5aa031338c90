"""Canonicalizer: pictures in, their angles and the pictures turned back out. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams import images, zoo
from radialbeams.answers import Answer, read_posterior, read_unit

BATCH = 64


@dataclass(frozen=True)
class Canonicalization:
    """What was found: the turn that the input has undergone, and the input turned back.

    A model without a posterior (the paper's own network) has no confidence and no symmetry.
    """

    image: Image.Image
    angle_degrees: float  # counter-clockwise, in [0, 360)
    confidence: float | None  # chance that the angle is within 10°
    symmetry: int | None  # 1 = one clear up, k = the same every 360°/k, 0 = no up
    posterior: NDArray[np.float32] | None  # (|B|,): probability of each beam's direction


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

    def answers(self, pictures: Sequence[images.Source]) -> list[Answer]:
        """What the model says of each picture, in batches; nothing is turned."""
        found: list[Answer] = []
        for start in range(0, len(pictures), BATCH):
            views = [self._view(picture) for picture in pictures[start : start + BATCH]]
            outputs = self._session.run(None, {"views": np.stack(views)})
            if self.card["config"]["decoder"] == "ring":
                logits, offsets = outputs
                found += read_posterior(logits, offsets, **self.card.get("calibration", {}))
            else:
                found += read_unit(outputs[0])
        return found

    def predict(self, picture: images.Source, *, fill: str = "black") -> Canonicalization:
        """The turn of one picture, and the picture turned back; `fill` is for its corners."""
        opened = images.open_rgb(picture)
        (found,) = self.answers([opened])
        return Canonicalization(
            images.turn(opened, -found.angle_degrees, fill),
            found.angle_degrees,
            found.confidence,
            found.symmetry,
            found.posterior,
        )

    def _view(self, picture: images.Source) -> NDArray[np.float32]:
        protocol, size = self.card["protocol"], self.card["config"]["view_size"]
        channels = self.card["config"]["channels"]
        opened = images.open_rgb(picture)
        if channels == 1:
            opened = opened.convert("L").convert("RGB")
        if protocol["name"] == "leakfree":
            view = images.leakfree_view(opened, protocol["parent_size"], size)
        else:
            view = images.paper_view(opened, size)
        return view[:channels]
