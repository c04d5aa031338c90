"""Export of canonicaliser and classifier as one ONNX file, which computes what torch computes."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from radialbeams.nn.module import Canonicalizer
from radialbeams.training.export import write_agreeing, write_onnx

OUTPUTS = ("output", "angle", "confidence", "applied")
PARITY_BATCHES = (1, 7)
PARITY_TOLERANCE = 1e-3


class Pipeline(nn.Module):
    """Images (N, C, H, W) → what the classifier says of them upright, and how they were turned."""

    def __init__(self, canonicalizer: Canonicalizer, classifier: nn.Module) -> None:
        super().__init__()
        self.canonicalizer, self.classifier = canonicalizer, classifier

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        upright, pose = self.canonicalizer.canonicalize(images)
        return self.classifier(upright), pose.angle, pose.confidence, pose.applied


def export_pipeline(
    canonicalizer: Canonicalizer,
    classifier: nn.Module,
    path: Path,
    example: Tensor,
    *,
    tolerance: float = PARITY_TOLERANCE,
) -> float:
    """Input `images` (N, C, H, W) of the example's size; outputs as in OUTPUTS, angles in radians.

    Returns the largest difference of the classifier's output, as a share of its largest value.
    Any batch runs. Nothing is written where torch and ONNX Runtime differ by more than
    `tolerance` on the example, or on noise in batches of 1 and 7.
    """
    if example.ndim != 4 or not example.shape[0]:
        raise ValueError(
            f"Expected an example (N, C, H, W) of at least one image; got {tuple(example.shape)}."
        )
    pipeline = Pipeline(canonicalizer, classifier).cpu().eval()
    example = example.cpu()
    return write_agreeing(
        path,
        partial(_write_graph, pipeline, example=example),
        partial(parity, pipeline, example=example),
        tolerance,
        "Give a typical image as the example",
    )


def _write_graph(pipeline: Pipeline, path: Path, example: Tensor) -> None:
    write_onnx(pipeline, example[:1], path, "images", OUTPUTS)


def parity(pipeline: Pipeline, path: Path, example: Tensor) -> float:
    """The largest difference between torch and the file, as a share of torch's largest output."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    generator = torch.Generator().manual_seed(0)
    batches = [torch.rand(n, *example.shape[1:], generator=generator) for n in PARITY_BATCHES]
    worst = 0.0
    for images in (example, *batches):
        with torch.inference_mode():
            expected = pipeline(images)[0].numpy()
        (found,) = session.run(OUTPUTS[:1], {"images": images.numpy()})
        difference = float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-6))
        # A NaN must not hide behind max(), which may pass over it.
        if math.isnan(difference):
            return difference
        worst = max(worst, difference)
    return worst
