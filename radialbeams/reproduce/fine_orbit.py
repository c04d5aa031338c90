"""The orbit of one image at up to 1,024 rotations: is it one closed curve, and how wide is it?

Every beam of every rotated image is embedded. A beam's *direction* is that of its content in the
upright image; |B| beams, at as many rotations, see the same direction. Where their embeddings
agree, the orbit is a curve; how far they disagree is its width. Interpolation alone causes some.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from radialbeams.nn.angles import TURN
from radialbeams.nn.bic import BIC
from radialbeams.reproduce.homology import (
    bootstrap_band,
    circle_score,
    landmarks,
    longest,
    loops,
    pairwise,
    shapeless,
)
from radialbeams.stored import JsonDict
from radialbeams.training.views import Views

TURNS = 1024
SIZES = (64, 256, 1024)  # numbers of directions for the order of neighbours
MARKS = 160  # landmarks for the homology
RESAMPLED = 100  # bootstrap samples for the band of noise
NULL_MARKS, NULL_DRAWS = 64, 19  # of clouds without a shape: the lowest p is 1/20
FAR = 30.0  # degrees: directions at least this far apart cross where they come near
STRIP = 256  # directions at which the axis of the strip's width is followed
BATCH = 128
Place = str  # "before" the hub or "after" it
Cloud = NDArray[np.float32]


@torch.inference_mode()
def embeddings(
    model: BIC, views: Views, image: Tensor, turns: int, place: Place, device: torch.device
) -> Cloud:
    """Bytes (C, W, W) → (turns, |B|, L): embeddings by direction, and by the beam that sampled it.

    The place `pixels` gives the samples of the beams themselves.
    """
    angles = torch.arange(turns, device=device) * (TURN / turns)
    batches = []
    for start in range(0, turns, BATCH):
        batch_angles = angles[start : start + BATCH]
        parents = image[None].expand(len(batch_angles), -1, -1, -1).to(device)
        beams = model.beams(views.render(parents, batch_angles))  # (N, |B|, C, 2ε+1, D)
        if place == "pixels":
            batches.append(beams.flatten(2).cpu())
            continue
        embedded = model.encoder(beams)
        batches.append((model.context(embedded) if place == "after" else embedded).cpu())
    by_rotation = torch.cat(batches).float().numpy()  # (turns, |B|, L)
    return by_direction(by_rotation)


def by_direction(cloud: Cloud) -> Cloud:
    """(turns, |B|, L) by rotation → by direction, in steps of 360°/turns from beam 0."""
    turns, beams = cloud.shape[:2]
    if turns % beams:
        raise ValueError(f"turns must be a multiple of the {beams} beams; got {turns}.")
    number = np.arange(beams)
    # A rotation by t steps moves d to d + t, so beam b samples d at t = b·(turns/|B|) − d.
    seen_at = (number * (turns // beams) - np.arange(turns)[:, None]) % turns
    ordered: Cloud = cloud[seen_at, number]
    return ordered


def describe(cloud: Cloud, seed: int = 0) -> JsonDict:
    """All measures of an orbit (turns, |B|, L), by name."""
    generator = np.random.default_rng(seed)
    turns, beams = cloud.shape[:2]
    first, second = (cloud[np.arange(turns), generator.integers(beams, size=turns)] for _ in "12")
    measures: JsonDict = {"order": {}}
    for size in SIZES:
        if turns % size == 0:
            measures["order"][str(size)] = _short(order(first[:: turns // size]))
    measures |= {**crossings(first, second), **circle(first, seed), **strip(cloud)}
    return {**measures, "centre": centre_line(cloud, seed)}


def centre_line(cloud: Cloud, seed: int) -> JsonDict:
    """The measures of the curve without its width: each direction's mean over the beams."""
    points = cloud.mean(1)
    turns = len(points)
    sizes = [size for size in SIZES if turns % size == 0]
    orders = {str(size): _short(order(points[:: turns // size])) for size in sizes}
    return {"order": orders, **circle(points, seed)}


def order(points: Cloud) -> float:
    """The share of points whose nearest neighbour is adjacent to them on the circle."""
    distances = pairwise(points)
    np.fill_diagonal(distances, np.inf)
    steps = np.abs(distances.argmin(1) - np.arange(len(points)))
    return float((np.minimum(steps, len(points) - steps) == 1).mean())


def crossings(first: Cloud, second: Cloud) -> dict[str, float]:
    """Whether far directions stay apart; `first` and `second` each embed every direction once.

    `crossed`: the share of directions that are as near to a far direction as their own two
    embeddings are to each other. `nearest`: the smallest distance between far directions, relative
    to their median distance. `width`: the median distance between the two embeddings of a
    direction, relative to the same median.
    """
    distances = pairwise(first)
    steps = np.abs(np.subtract.outer(np.arange(len(first)), np.arange(len(first))))
    degrees = np.minimum(steps, len(first) - steps) * 360 / len(first)
    typical = float(np.median(distances[degrees >= FAR]))
    nearest_far = np.where(degrees >= FAR, distances, np.inf).min(1)
    width = np.linalg.norm(first - second, axis=1)
    shares = {
        "crossed": (nearest_far <= width).mean(),
        "nearest": nearest_far.min() / typical,
        "width": np.median(width) / typical,
    }
    return {name: _short(value) for name, value in shares.items()}


def circle(points: Cloud, seed: int) -> JsonDict:
    """The lives of the longest loops over the death of the longest, and how many exceed noise."""
    chosen, reach = landmarks(points, MARKS)
    bars = loops(points[chosen])
    noise = bootstrap_band(points, RESAMPLED, seed) + 4 * reach
    scale = bars[0][1] if bars else 1.0
    return {
        "circle": _short(circle_score(bars)),
        "lives": [_short((death - birth) / scale) for birth, death in bars[:3]],
        "noise": _short(noise / scale),
        "loops": sum(death - birth > noise for birth, death in bars),
        **against_null(points, seed),
    }


def against_null(points: Cloud, seed: int) -> dict[str, float]:
    """The longest loop's life, and its p-value among clouds of the same variances and no shape."""
    generator = np.random.default_rng(seed)
    life = longest(points, NULL_MARKS)
    null = [longest(shapeless(points, generator), NULL_MARKS) for _ in range(NULL_DRAWS)]
    as_long = sum(null_life >= life for null_life in null)
    return {
        "longest": _short(life),
        "null": _short(max(null)),
        "p": _short((1 + as_long) / (1 + NULL_DRAWS)),
    }


def strip(cloud: Cloud) -> JsonDict:
    """Whether the axis of the curve's width reverses once around, as on a Möbius strip.

    The axis at a direction is the first principal axis of its |B| embeddings. Followed around the
    circle, it returns as itself (`turned_over` is false) or reversed. `followed` is the smallest
    |cosine| of neighbouring axes: near 0 the axis is lost, and there is no strip. `share` is the
    axis's share of the variance across the curve.
    """
    stride = max(1, len(cloud) // STRIP)
    offsets = np.asarray(cloud[::stride], dtype=np.float64)
    offsets = offsets - offsets.mean(1, keepdims=True)  # (directions, |B|, L)
    _, lengths, axes = np.linalg.svd(offsets, full_matrices=False)
    axis = axes[:, 0]  # (directions, L)
    cosines = (axis * np.roll(axis, -1, axis=0)).sum(1)
    squares = lengths**2
    return {
        "turned_over": bool((np.sign(cosines) < 0).sum() % 2),
        "followed": _short(np.abs(cosines).min()),
        "share": _short((squares[:, 0] / np.maximum(squares.sum(1), 1e-30)).mean()),
    }


def projected(cloud: Cloud, count: int = 256) -> list[list[float]]:
    """The mean embedding of each direction on the first two principal axes: x and y, at most 1."""
    mean = np.asarray(cloud[:: max(1, len(cloud) // count)].mean(1), dtype=np.float64)
    mean = mean - mean.mean(0)
    _, _, axes = np.linalg.svd(mean, full_matrices=False)
    flat = mean @ axes[:2].T
    return [[_short(value) for value in column] for column in (flat / np.abs(flat).max()).T]


def _short(value: float) -> float:
    return float(f"{float(value):.4g}")
