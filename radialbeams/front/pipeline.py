"""Exports canonicaliser and classifier as one ONNX file, and checks that it agrees with torch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from radialbeams.front.exported import ExportedViews, turned
from radialbeams.front.module import TorchCanonicalizer
from radialbeams.front.pose import Pose
from radialbeams.nn.architectures import architecture
from radialbeams.nn.exporting import is_exporting
from radialbeams.training.export import write_agreeing, write_onnx

OUTPUTS = ("output", "angle", "confidence", "applied")
PARITY_BATCHES = (1, 7)
PARITY_TOLERANCE = 1e-3


class Pipeline(nn.Module):
    """Images (N, C, H, W) → the classifier's output for the upright images, and their poses."""

    def __init__(self, canonicalizer: TorchCanonicalizer, classifier: nn.Module) -> None:
        super().__init__()
        self.canonicalizer, self.classifier = canonicalizer, classifier

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        front = self.canonicalizer
        pose = front.estimate(images)
        turn = turned if is_exporting() else Pose.apply_images
        upright = turn(pose, images, front.fill, exact=front.may_leave_alone)
        return self.classifier(upright), pose.angle, pose.confidence, pose.applied


def export_pipeline(
    canonicalizer: TorchCanonicalizer,
    classifier: nn.Module,
    path: str | Path,
    example: Tensor,
    *,
    any_size: bool = False,
    tolerance: float = PARITY_TOLERANCE,
) -> float:
    """Writes an ONNX file with the input `images` (N, C, H, W) and the outputs in OUTPUTS.

    The images have the size of the example, or with `any_size` any height and width; the classifier
    must accept them too, and the canvas stays that of the image. Batches have any size from 1;
    angles are in radians. Returns the largest difference to torch in the classifier's output, as a
    share of its largest value. Nothing is written if torch and ONNX Runtime differ by more than
    `tolerance` on the example, or on noise in batches of 1 and 7 (with `any_size`, of other image
    sizes too).
    """
    if example.ndim != 4 or not example.shape[0]:
        raise ValueError(
            f"Expected an example (N, C, H, W) of at least one image; got {tuple(example.shape)}."
        )
    if any_size and canonicalizer.canvas != "same":
        raise ValueError(
            "A file for images of any size keeps their canvas; this canonicaliser has "
            f'canvas="{canonicalizer.canvas}". Make it with canvas="same".'
        )
    path, example = Path(path), example.cpu()
    pipeline = Pipeline(canonicalizer, classifier)
    with _ready(pipeline):
        _check_output(pipeline, example)
        if any_size:
            _check_sizes(classifier, example)
        return write_agreeing(
            path,
            partial(_write_graph, pipeline, example=example, any_size=any_size),
            partial(parity, pipeline, example=example, any_size=any_size),
            tolerance,
            "Use a typical image as the example",
        )


@contextmanager
def _ready(pipeline: nn.Module) -> Iterator[None]:
    """Moves the pipeline to the CPU in evaluation mode; restores every part afterwards."""
    states = [(part, part.training, _device(part)) for part in pipeline.modules()]
    try:
        pipeline.cpu().eval()
        yield
    finally:
        for part, training, device in states:  # parents first: their children may differ
            part.training = training
            if device is not None:
                part.to(device)


def _device(part: nn.Module) -> torch.device | None:
    """The device of a module's own tensors, without those of its children; None if it has none."""
    own = (*part.parameters(recurse=False), *part.buffers(recurse=False))
    return own[0].device if own else None


def _check_output(pipeline: Pipeline, example: Tensor) -> None:
    with torch.inference_mode():
        output = pipeline(example[:1])[0]
    if not isinstance(output, Tensor):
        raise ValueError(
            f"Expected a classifier that returns one tensor; got {type(output).__name__}. Wrap it "
            "in a module whose forward picks the tensor out, such as the logits."
        )


def _check_sizes(classifier: nn.Module, example: Tensor) -> None:
    for shape in _other_shapes(example):
        try:
            with torch.inference_mode():
                classifier(torch.zeros(shape))
        except RuntimeError as error:
            raise ValueError(
                f"any_size needs a classifier that takes images of any size; this one fails at "
                f"{shape[-2]} × {shape[-1]}: {error}. Leave any_size out, or resize inside the "
                "classifier."
            ) from error


def _other_shapes(example: Tensor) -> list[tuple[int, ...]]:
    channels, height, width = example.shape[1:]
    return [(1, channels, width, height), (2, channels, height + 9, 2 * width)]


def _write_graph(pipeline: Pipeline, path: Path, example: Tensor, any_size: bool) -> None:
    free = ("height", "width") if any_size else ()
    front = pipeline.canonicalizer
    network, views = front.network, front.view_geometry
    front.network = architecture(network.config).exported(network)
    if not any_size:
        front.view_geometry = ExportedViews.of(views, (example.shape[2], example.shape[3]))
    try:
        write_onnx(pipeline, example[:1], path, "images", OUTPUTS, free)
    finally:
        front.network, front.view_geometry = network, views


def parity(pipeline: Pipeline, path: Path, example: Tensor, any_size: bool = False) -> float:
    """The largest difference between torch and the file, as a share of torch's largest output."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    generator = torch.Generator().manual_seed(0)
    shapes = [(n, *example.shape[1:]) for n in PARITY_BATCHES]
    if any_size:
        shapes += _other_shapes(example)
    batches = [torch.rand(shape, generator=generator) for shape in shapes]
    worst = 0.0
    for images in (example, *batches):
        with torch.inference_mode():
            expected = pipeline(images)[0].numpy()
        (actual,) = session.run(OUTPUTS[:1], {"images": images.numpy()})
        difference = float(np.abs(actual - expected).max() / max(np.abs(expected).max(), 1e-6))
        # max() may ignore a NaN.
        if math.isnan(difference):
            return difference
        worst = max(worst, difference)
    return worst
