"""Divides the minutes of a run between training and what follows: measurement and report."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import torch

from radialbeams.nn.architectures import Network
from radialbeams.training.own.rules import Budget

CLOSING = 12.0  # seconds of two CPU cores for the export and the pages of the report
PASSES = 3  # over the held-out images: calibration, measurement, report
SHARE = 0.03  # of the minutes that one of them may take
ENOUGH_VIEWS = 600  # a calibration gains little from more
MOST_SEEDS, LEAST_SEEDS = 20, 2
MOST_IMAGES = 4000  # held-out images that are measured on: they are copied into memory
AGAIN_TURNS, MOST_AGAIN = 8, 960  # views of each image, and of all, that the report looks at again
PARITY_VIEWS = 272  # through torch and ONNX, to compare the two
RENDERED = 1.3  # what a view costs, for each that the network costs


@dataclass(frozen=True)
class Ending:
    """What is measured after training, and how long that takes."""

    images: int  # held-out images that are measured on
    seeds: int  # angles of each
    seconds: float


def seconds_a_view(model: Network, device: torch.device) -> float:
    """The time of the network alone for one view, in batches."""
    config = model.to(device).config
    views = torch.rand(32, config.channels, config.view_size, config.view_size, device=device)
    with torch.inference_mode():
        model(views)
        started = time.monotonic()
        outputs = model(views)
        [one.cpu() for one in outputs]
    return (time.monotonic() - started) / len(views)


def ending(held_out: int, view_seconds: float, budget: Budget) -> Ending:
    """Measures as many views as are useful, or as fit into their share of the minutes."""
    wanted = min(max(math.ceil(ENOUGH_VIEWS / held_out), LEAST_SEEDS), MOST_SEEDS)
    most = math.inf
    if budget.minutes is not None:
        most = max(SHARE * 60 * budget.minutes / max(view_seconds, 1e-9), 64)
    seeds = int(max(1, min(wanted, most // held_out)))
    images = int(min(held_out, max(most, 1), MOST_IMAGES))
    again = min(AGAIN_TURNS * images, MOST_AGAIN)
    views = PASSES * images * seeds + again + PARITY_VIEWS
    return Ending(images, seeds, CLOSING + RENDERED * views * view_seconds)


def training_minutes(budget: Budget, spent: float, end: Ending) -> float | None:
    """Of the minutes, those left for training; None for a run limited by steps.

    `spent` seconds have gone into reading the images.
    """
    if budget.minutes is None:
        return None
    return max(60 * budget.minutes - spent - end.seconds, 1e-3) / 60
