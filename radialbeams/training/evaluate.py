"""The measure: circular errors of any callable views → angles, on held-out images."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from radialbeams.nn.angles import angular_error, from_unit, paper_equivalent
from radialbeams.nn.bic import BIC
from radialbeams.training.data import ImageSet
from radialbeams.training.views import PaperViews, draw_angles

# Views (N, C, S, S) in [0, 1] → radians (N,): torch, ONNX and peers all fit in here.
Predict = Callable[[Tensor], Tensor]

FLIP = 150  # degrees; from here on an answer is upside down rather than inexact


@dataclass(frozen=True)
class Evaluation:
    """Errors in degrees; shares of views as fractions."""

    n: int
    mean: float
    median: float
    p95: float
    paper_equivalent: float
    within_5: float
    within_10: float
    flips: float
    groups: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def summarise(errors: Tensor, groups: Sequence[str] = ()) -> Evaluation:
    """Radians in [0, π], one per view, and optionally the group of each."""
    degrees = torch.rad2deg(errors.double())
    return Evaluation(
        n=len(degrees),
        mean=degrees.mean().item(),
        median=degrees.quantile(0.5).item(),
        p95=degrees.quantile(0.95).item(),
        paper_equivalent=torch.rad2deg(paper_equivalent(errors.double())).item(),
        within_5=(degrees <= 5).double().mean().item(),
        within_10=(degrees <= 10).double().mean().item(),
        flips=(degrees >= FLIP).double().mean().item(),
        groups=_by_group(degrees, groups),
    )


def _by_group(degrees: Tensor, groups: Sequence[str]) -> dict[str, float]:
    names, members = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    return {str(name): degrees[members == i].mean().item() for i, name in enumerate(names)}


def evaluate(
    predict: Predict,
    images: ImageSet,
    views: PaperViews,
    *,
    seeds: int = 3,
    batch: int = 128,
    jpeg: int | None = None,
    by_group: bool = False,
    device: torch.device | None = None,
    on_batch: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Every image once per seed, at angles uniform on the circle.

    With `jpeg`, each rotated image is saved once as JPEG of that quality before it is looked at:
    a model that reads the angle off interpolation loses it there.
    """
    errors = []
    for seed in range(seeds):
        angles = draw_angles("evaluation", seed, 0, len(images))
        for start in range(0, len(images), batch):
            part = slice(start, start + batch)
            rendered = views.render(images.images[part].to(device), angles[part])
            if jpeg is not None:
                rendered = through_jpeg(rendered, jpeg)
            errors.append(angular_error(predict(rendered).cpu().float(), angles[part]))
            if on_batch is not None:
                on_batch(len(errors) * batch, seeds * len(images))
    return summarise(torch.cat(errors), images.groups * seeds if by_group else ())


@torch.inference_mode()
def predict_with(model: BIC, views: Tensor) -> Tensor:
    """The torch model as a `Predict`, after `functools.partial(predict_with, model)`."""
    return from_unit(model(views))


def through_jpeg(views: Tensor, quality: int) -> Tensor:
    """One save and one read of each view as a 4:2:0 JPEG, in memory."""
    pixels = (views * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    return (
        torch.from_numpy(np.stack([_resaved(image, quality) for image in pixels]))
        .to(views.device)
        .permute(0, 3, 1, 2)
        .float()
        .div_(255)
    )


def _resaved(image: np.ndarray, quality: int) -> np.ndarray:
    buffer = io.BytesIO()
    picture = Image.fromarray(image if image.shape[-1] == 3 else image[..., 0])
    picture.save(buffer, "JPEG", quality=quality, subsampling="4:2:0")
    return np.asarray(Image.open(buffer)).reshape(image.shape)
