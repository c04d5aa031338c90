"""The measure: circular errors of any callable views → angles, on held-out images."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from radialbeams.cards import Evaluation, RiskCoverage
from radialbeams.nn.angles import angular_error, paper_equivalent
from radialbeams.nn.architectures import Network, architecture
from radialbeams.nn.posterior import answer, confidence, posterior
from radialbeams.nn.rotation import rotate
from radialbeams.training.data import ImageSet
from radialbeams.training.views import Group, PaperViews, Views, as_floats, draw_angles

# Views (N, C, S, S) in [0, 1] → radians (N,), or radians and confidences: torch, ONNX and peers
# all fit in here.
Predict = Callable[[Tensor], Tensor | tuple[Tensor, Tensor]]

FLIP = 150  # degrees; from here on an answer is upside down rather than inexact
BOOTSTRAP = 1000
COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


def summarise(
    errors: Tensor, groups: Sequence[str] = (), confidences: Tensor | None = None
) -> Evaluation:
    """Radians in [0, π], (seeds, images); the group of each image; confidences like errors."""
    degrees = torch.rad2deg(errors.double())
    flat = degrees.flatten()
    low, high = _bootstrap(degrees.mean(0))
    sure = None if confidences is None else confidences.flatten().double()
    return Evaluation(
        n=len(flat),
        mean=flat.mean().item(),
        mean_low=low,
        mean_high=high,
        median=flat.quantile(0.5).item(),
        p90=flat.quantile(0.9).item(),
        p95=flat.quantile(0.95).item(),
        rmse=flat.square().mean().sqrt().item(),
        paper_equivalent=torch.rad2deg(paper_equivalent(errors.double())).item(),
        within_2=(flat <= 2).double().mean().item(),
        within_5=(flat <= 5).double().mean().item(),
        within_10=(flat <= 10).double().mean().item(),
        flips=(flat >= FLIP).double().mean().item(),
        groups=_by_group(degrees.mean(0), groups),
        risk_coverage=() if sure is None else _risk_coverage(flat, sure),
        calibration_error=None if sure is None else expected_calibration_error(flat <= 10, sure),
    )


def _bootstrap(per_image: Tensor) -> tuple[float, float]:
    """Images are drawn, not views: the views of one image go wrong together."""
    values = per_image.numpy()
    rows = np.random.default_rng(0).integers(len(values), size=(BOOTSTRAP, len(values)))
    low, high = np.quantile(values[rows].mean(1), (0.025, 0.975))
    return float(low), float(high)


def _by_group(per_image: Tensor, groups: Sequence[str]) -> dict[str, float]:
    names, members = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    return {str(name): per_image[members == i].mean().item() for i, name in enumerate(names)}


def _risk_coverage(degrees: Tensor, confidences: Tensor) -> tuple[RiskCoverage, ...]:
    ranked = degrees[confidences.argsort(descending=True, stable=True)]
    curve = []
    for coverage in COVERAGES:
        kept = ranked[: max(1, round(coverage * len(ranked)))]
        within = (kept <= 10).double().mean().item()
        curve.append(RiskCoverage(coverage, kept.mean().item(), within))
    return tuple(curve)


def expected_calibration_error(right: Tensor, confidences: Tensor, bins: int = 10) -> float:
    """The mean gap between confidence and truth over equally filled bins."""
    order = confidences.argsort()
    gaps = [
        (len(part) / len(order)) * abs(confidences[part].mean() - right[part].double().mean())
        for part in order.tensor_split(bins)
        if len(part)
    ]
    return float(sum(gaps))


def evaluate(
    predict: Predict,
    images: ImageSet,
    views: Views,
    *,
    seeds: int = 3,
    batch: int = 128,
    jpeg: int | None = None,
    by_group: bool = False,
    group: Group = "so2",
    num_beams: int = 0,
    device: torch.device | None = None,
    on_batch: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Every image once per seed, at angles uniform on the circle, or on C_|B| where `group` says.

    With `jpeg`, each rotated parent is saved once as JPEG of that quality before its view is
    made: a model that reads the angle off interpolation loses it there.
    """
    images.upright()
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1; got {seeds}.")
    draw = partial(draw_angles, "evaluation", group=group, num_beams=num_beams)
    angles = torch.stack([draw(seed, 0, len(images)) for seed in range(seeds)])
    return _measured(predict, images, views, angles, batch, jpeg, by_group, device, on_batch)


class QuarterTurns(NamedTuple):
    """Mean errors in degrees at multiples of 90°, and 1° beside them."""

    quarter: float
    quarter_plus_1: float


def quarter_turns(
    predict: Predict, images: ImageSet, views: Views, *, device: torch.device | None = None
) -> QuarterTurns:
    """Mean errors at multiples of 90° and 1° beside them: nobody may be better at the former."""
    quarters = torch.arange(4)[:, None] * (math.pi / 2) * torch.ones(len(images))
    at, beside = (
        _measured(predict, images, views, quarters + extra, 128, None, False, device, None).mean
        for extra in (0.0, math.radians(1))
    )
    return QuarterTurns(at, beside)


def _measured(
    predict: Predict,
    images: ImageSet,
    views: Views,
    angles: Tensor,  # (seeds, images)
    batch: int,
    jpeg: int | None,
    by_group: bool,
    device: torch.device | None,
    on_batch: Callable[[int, int], None] | None,
) -> Evaluation:
    errors = torch.empty_like(angles)
    confidences = torch.full_like(angles, math.nan)
    for start in range(0, len(images), batch):
        part = slice(start, start + batch)
        parents = images.images[part].to(device)
        prepared = views.prepare(parents)  # once for all turns of an image
        for seed, turns in enumerate(angles[:, part]):
            if jpeg is None:
                rendered = views.turn(prepared, turns)
            else:
                rendered = _resaved_views(views, parents, turns, jpeg)
            found = predict(rendered)
            if isinstance(found, tuple):
                found, confidences[seed, part] = found[0], found[1].cpu().float()
            errors[seed, part] = angular_error(found.cpu().float(), turns)
        images.release()
        if on_batch is not None:
            on_batch(min(part.stop, len(images)) * len(angles), angles.numel())
    sure = None if confidences.isnan().any() else confidences
    return summarise(errors, images.groups if by_group else (), sure)


def _resaved_views(views: Views, parents: Tensor, angles: Tensor, jpeg: int) -> Tensor:
    if isinstance(views, PaperViews):  # its view is the rotated parent itself
        return through_jpeg(views.render(parents, angles), jpeg)
    return views.upright(through_jpeg(rotate(as_floats(parents), angles), jpeg))


@torch.inference_mode()
def predict_with(
    model: Network, views: Tensor, temperature: float = 1.0, spread: float = 0.0
) -> Tensor | tuple[Tensor, Tensor]:
    """The torch model as a `Predict`, after `functools.partial(predict_with, model)`.

    `temperature` and `spread` (degrees) are the calibration on a model's card.
    """
    if architecture(model.config).reading == "unit":
        return model.angles(views)
    logits, offsets = model(views)
    found = posterior(logits, offsets, temperature)
    return answer(found), confidence(found, math.radians(spread))


def through_jpeg(views: Tensor, quality: int) -> Tensor:
    """One save and one read of each view as a 4:2:0 JPEG, in memory."""
    pixels = (views * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    saved = torch.from_numpy(np.stack([_resaved(image, quality) for image in pixels]))
    return saved.to(views.device).permute(0, 3, 1, 2).float().div_(255)


def _resaved(image: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    buffer = io.BytesIO()
    picture = Image.fromarray(image if image.shape[-1] == 3 else image[..., 0])
    picture.save(buffer, "JPEG", quality=quality, subsampling="4:2:0")
    return np.asarray(Image.open(buffer)).reshape(image.shape)
