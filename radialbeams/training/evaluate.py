"""Evaluation: circular errors of any callable views → angles, on held-out images."""

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

# Views (N, C, S, S) in [0, 1] → radians (N,), or radians and confidences. Wraps torch models, ONNX
# files and other methods alike.
Predict = Callable[[Tensor], Tensor | tuple[Tensor, Tensor]]

FLIP = 150  # degrees; an error of at least this is an upside-down answer
BOOTSTRAP = 1000
COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


def summarise(
    errors: Tensor, groups: Sequence[str] = (), confidences: Tensor | None = None
) -> Evaluation:
    """Statistics of errors (seeds, images) in radians, [0, π]; confidences have the same shape."""
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
    """The 95 % interval of the mean; resamples images, since an image's views are correlated."""
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
        answered = ranked[: max(1, round(coverage * len(ranked)))]
        within = (answered <= 10).double().mean().item()
        curve.append(RiskCoverage(coverage, answered.mean().item(), within))
    return tuple(curve)


def expected_calibration_error(correct: Tensor, confidences: Tensor, bins: int = 10) -> float:
    """The mean gap between confidence and accuracy, over bins of equal counts."""
    order = confidences.argsort()
    gaps = [
        (len(part) / len(order)) * abs(confidences[part].mean() - correct[part].double().mean())
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
    """Evaluates every image once per seed, at random angles of SO(2) or, by `group`, of C_|B|.

    With `jpeg`, each rotated parent is saved once as a JPEG of that quality before its view is
    made: this removes traces of interpolation from which a model could read the angle.
    """
    images.upright()
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1; got {seeds}.")
    draw = partial(draw_angles, "evaluation", group=group, num_beams=num_beams)
    angles = torch.stack([draw(seed, 0, len(images)) for seed in range(seeds)])
    return _measured(predict, images, views, angles, batch, jpeg, by_group, device, on_batch)


class QuarterTurns(NamedTuple):
    """Mean errors in degrees at multiples of 90°, and 1° away from them."""

    quarter: float
    quarter_plus_1: float


def quarter_turns(
    predict: Predict, images: ImageSet, views: Views, *, device: torch.device | None = None
) -> QuarterTurns:
    """Mean errors at multiples of 90° and 1° away: exact quarter turns must not be easier."""
    quarters = torch.arange(4)[:, None] * (math.pi / 2) * torch.ones(len(images))
    at_quarters, beside_quarters = (
        _measured(predict, images, views, quarters + extra, 128, None, False, device, None).mean
        for extra in (0.0, math.radians(1))
    )
    return QuarterTurns(at_quarters, beside_quarters)


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
        prepared = views.prepare(parents)  # once for all angles of an image
        for seed, turns in enumerate(angles[:, part]):
            if jpeg is None:
                rendered = views.turn(prepared, turns)
            else:
                rendered = _resaved_views(views, parents, turns, jpeg)
            predicted = predict(rendered)
            if isinstance(predicted, tuple):
                predicted, confidences[seed, part] = predicted[0], predicted[1].cpu().float()
            errors[seed, part] = angular_error(predicted.cpu().float(), turns)
        images.release()
        if on_batch is not None:
            on_batch(min(part.stop, len(images)) * len(angles), angles.numel())
    sure = None if confidences.isnan().any() else confidences
    return summarise(errors, images.groups if by_group else (), sure)


def _resaved_views(views: Views, parents: Tensor, angles: Tensor, jpeg: int) -> Tensor:
    if isinstance(views, PaperViews):  # here the view is the rotated parent
        return through_jpeg(views.render(parents, angles), jpeg)
    return views.upright(through_jpeg(rotate(as_floats(parents), angles), jpeg))


@torch.inference_mode()
def predict_with(
    model: Network, views: Tensor, temperature: float = 1.0, spread: float = 0.0
) -> Tensor | tuple[Tensor, Tensor]:
    """A torch model as a `Predict`: `functools.partial(predict_with, model)`.

    `temperature` and `spread` (degrees) are the calibration on a model's card.
    """
    if architecture(model.config).reading == "unit":
        return model.angles(views)
    logits, offsets = model(views)
    distribution = posterior(logits, offsets, temperature)
    return answer(distribution), confidence(distribution, math.radians(spread))


def through_jpeg(views: Tensor, quality: int) -> Tensor:
    """The views after each was saved and read once as a 4:2:0 JPEG, in memory."""
    pixels = (views * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    saved = torch.from_numpy(np.stack([_resaved(image, quality) for image in pixels]))
    return saved.to(views.device).permute(0, 3, 1, 2).float().div_(255)


def _resaved(image: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    buffer = io.BytesIO()
    picture = Image.fromarray(image if image.shape[-1] == 3 else image[..., 0])
    picture.save(buffer, "JPEG", quality=quality, subsampling="4:2:0")
    return np.asarray(Image.open(buffer)).reshape(image.shape)
