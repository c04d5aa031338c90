"""Estimates under shifts of the rotated image, and the shift up to which they stay within 5°.

Shifts are along the axes of the rotated image, as the model sees it, in whole pixels of the data
set's images. Under the paper's protocol they move pixels without resampling, and padding enters at
the edge. A leak-free view is resampled once in any case, from a parent with a shifted centre.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from radialbeams.nn.angles import angular_error
from radialbeams.nn.architectures import Network
from radialbeams.reproduce import paper
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.pretrained import open_pretrained
from radialbeams.reproduce.seed_statistics import compare, detectable, spread
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.trainings import PlannedTraining, Trained
from radialbeams.stored import JsonDict, JsonFields
from radialbeams.training.data import ImageSet
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import PaperViews, Views, draw_angles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 128  # of COIL-100's images: a shift of one pixel is 1/128 of the picture for every model
FARTHEST = 8
SHIFTS = [shift for shift in range(-FARTHEST, FARTHEST + 1) if shift]
DIRECTIONS = ("horizontal", "vertical")
BOUNDARY = 5.0  # degrees of change from the estimate without a shift
EPSILONS = (1, 2, 3)
PRETRAINED = ("bic.coil100", "ring.coil100", "ring")

# Bins of the changes on a logarithmic scale; the first contains all smaller values.
EDGES = np.logspace(-2, math.log10(180), 41)

# --- shifting ---


def shifted(views: Views, prepared: Tensor, turns: Tensor, direction: str, share: float) -> Tensor:
    """Views of rotated images, shifted right or down by a share of the image's width."""
    across, down = (share, 0.0) if direction == "horizontal" else (0.0, share)
    size = prepared.shape[-1]
    if isinstance(views, PaperViews):
        pixels = (round(down * size), round(across * size))
        return moved(views.turn(prepared, turns), *pixels)
    # The view at x shows the content at x − shift, rotated back; in shares of the half-width.
    cos, sin = torch.cos(turns), torch.sin(turns)
    back = torch.stack((across * cos - down * sin, across * sin + down * cos), dim=-1)
    return views.turn(prepared, turns, None, (-2 * back).to(prepared.device))


def moved(images: Tensor, down: int, right: int) -> Tensor:
    """Shifts (N, C, S, S) by whole pixels, filled with black."""
    shifted_images = torch.roll(images, (down, right), dims=(-2, -1))
    for pixels, axis in ((down, -2), (right, -1)):
        if pixels:
            edge = slice(0, pixels) if pixels > 0 else slice(pixels, None)
            shifted_images.movedim(axis, 0)[edge] = 0
    return shifted_images


@torch.inference_mode()
def sweep(
    model: Network,
    images: ImageSet,
    views: Views,
    device: torch.device,
    batch: int = 128,
    show: Any = None,
) -> JsonDict:
    """The changes and the errors of the estimates under each shift; every image once."""
    turns = draw_angles("evaluation", 0, 0, len(images))
    shifts = [(direction, shift) for direction in DIRECTIONS for shift in SHIFTS]
    unshifted = torch.empty(len(images))
    estimates = torch.empty(len(shifts), len(images))
    for start in range(0, len(images), batch):
        chunk = slice(start, start + batch)
        prepared = views.prepare(images.images[chunk].to(device))
        unshifted[chunk] = model.angles(views.turn(prepared, turns[chunk])).cpu()
        for row, (direction, shift) in enumerate(shifts):
            shifted_views = shifted(views, prepared, turns[chunk], direction, shift / WIDTH)
            estimates[row, chunk] = model.angles(shifted_views).cpu()
        if show is not None:
            show(min(chunk.stop, len(images)), len(images))
    changes = torch.rad2deg(angular_error(estimates, unshifted)).double().numpy()
    errors = torch.rad2deg(angular_error(estimates, turns)).double().numpy()
    cells = [
        {"direction": direction, "shift": shift, **cell_of(changes[row], errors[row])}
        for row, (direction, shift) in enumerate(shifts)
    ]
    upright = torch.rad2deg(angular_error(unshifted, turns))
    return {"images": len(images), "error": _short(upright.mean().item()), "cells": cells}


def cell_of(changes: np.ndarray, errors: np.ndarray) -> JsonDict:
    """The data of one violin: means, the share within the boundary, and the histogram."""
    counts, _ = np.histogram(np.clip(changes, EDGES[0], EDGES[-1]), EDGES)
    return {
        "mean": _short(float(changes.mean())),
        "median": _short(float(np.median(changes))),
        "within": _short(float((changes <= BOUNDARY).mean())),
        "error": _short(float(errors.mean())),
        "counts": counts.tolist(),
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")


# --- trainings ---


def recipe(epsilon: int, seed: int, settings: ReproduceSettings) -> Recipe:
    """The paper's recipe: D = W/2, Adam at a constant rate; only the thickness differs."""
    return Recipe(
        "coil100",
        paper.network("paper", WIDTH, settings, epsilon=epsilon),
        WIDTH,
        seed=seed,
        **paper.effort(settings, quick_steps=150),
    )


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    return [
        PlannedTraining(
            f"epsilon{epsilon}-seed{seed}",
            recipe(epsilon, seed, settings),
            {"model": name_of(epsilon)},
            images=settings.pick(quick=600, full=None),
            held_out=settings.pick(quick=64, full=None),
            measure=measure,
        )
        for epsilon in EPSILONS
        for seed in settings.seeds_of(quick=1, full=3)
    ]


def measure(trained: Trained) -> JsonDict:
    return sweep(trained.model, trained.held_out, trained.fit.views, trained.device)


def name_of(epsilon: int) -> str:
    return f"bic, ε = {epsilon}"


# --- results ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    models = {}
    for epsilon in EPSILONS:
        runs = [record for record in records.values() if record.tags["model"] == name_of(epsilon)]
        models[name_of(epsilon)] = combined([record.measured for record in runs if record.finished])
    for number, name in enumerate(PRETRAINED):
        limit = settings.pick(quick=24, full=150 if name == "ring" else 493)
        held_out = open_pretrained(name, settings, limit=limit, data="coil100")

        def show(done: int, total: int, name: str = name, number: int = number) -> None:
            settings.show(number + done / total, len(PRETRAINED), f"shifts, {name}")

        result = sweep(held_out.model, held_out.images, held_out.views, held_out.device, show=show)
        models[f"pretrained {name}"] = combined([result])
    data = {"models": models, "edges": [_short(edge) for edge in EDGES], "boundary": BOUNDARY}
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data)


def conclude(data: Record) -> Conclusion:
    models = models_of(data)
    ours: JsonDict = {}
    for name, model in models.items():
        for direction in DIRECTIONS:
            ours[f"largest stable shift, {direction}, {name}"] = stable_range(
                model["stable"][direction]
            )
    for name, model in models.items():
        ours[f"mean error without a shift, {name}"] = f"{model['error']['mean']:.2f}°"
    return ours, sentence(models)


def combined(runs: Sequence[Record]) -> JsonDict:
    """All seeds of a model combined: means of the means, sums of the counts."""
    cells = []
    for cells_at_shift in zip(*(run["cells"] for run in runs), strict=True):
        cell = {key: cells_at_shift[0][key] for key in ("direction", "shift")}
        for key in ("mean", "median", "within", "error"):
            cell[key] = _short(float(np.mean([single[key] for single in cells_at_shift])))
        cell["counts"] = np.sum([single["counts"] for single in cells_at_shift], axis=0).tolist()
        cells.append(cell)
    return {
        "images": runs[0]["images"],
        "error": spread([run["error"] for run in runs]),
        "stable": {
            direction: {
                "pixels": crossing(cells, direction),
                "by_median": crossing(cells, direction, "median"),
                "seeds": spread([crossing(run["cells"], direction) for run in runs]),
            }
            for direction in DIRECTIONS
        },
        "cells": cells,
    }


def crossing(cells: Sequence[Record], direction: str, key: str = "mean") -> float:
    """The shift at which the mean change first exceeds the boundary, in the worse direction.

    It is interpolated linearly between whole pixels. If the change never exceeds the boundary, the
    result is the largest shift.
    """
    stable = float(FARTHEST)
    for sign in (-1, 1):
        before = 0.0
        for shift in range(1, FARTHEST + 1):
            value = next(
                cell[key]
                for cell in cells
                if cell["direction"] == direction and cell["shift"] == sign * shift
            )
            if value > BOUNDARY:
                stable = min(stable, shift - 1 + (BOUNDARY - before) / (value - before))
                break
            before = value
    return _short(stable)


def stable_range(stable: JsonFields) -> str:
    pixels = stable["pixels"]
    if pixels >= FARTHEST:
        return f"±{FARTHEST} px or more"
    return f"±{math.floor(pixels)} px (the mean change exceeds {BOUNDARY:g}° at {pixels:.1f} px)"


def _pixels(pixels: float) -> str:
    return f"≥ {FARTHEST} px" if pixels >= FARTHEST else f"{pixels:.1f} px"


def models_of(data: Record) -> JsonDict:
    """The models by their current names: earlier results call pretrained models shipped."""
    return {name.replace("shipped", "pretrained"): model for name, model in data["models"].items()}


def reach_of(name: str, models: JsonFields) -> str:
    """A legend label: the shifts at which the mean change exceeds the boundary."""
    stable = models[name]["stable"]
    return f"{name}: " + " and ".join(_pixels(stable[d]["pixels"]) for d in DIRECTIONS)


def _unnoticed(thick: Record, thin: Record) -> float:
    """The smallest detectable difference in pixels, along the axis where it is larger."""
    pairs = [[model["stable"][d]["seeds"] for model in (thick, thin)] for d in DIRECTIONS]
    return max(detectable(*pair) for pair in pairs)


def sentence(models: JsonFields) -> str:
    """Up to which shift the paper's setting is stable, and whether thicker beams help."""

    def worst(name: str) -> str:
        return _pixels(min(models[name]["stable"][d]["pixels"] for d in DIRECTIONS))

    thin, thick = (models[name_of(epsilon)] for epsilon in (EPSILONS[0], EPSILONS[-1]))
    signs = [compare(thick["stable"][d]["seeds"], thin["stable"][d]["seeds"]) for d in DIRECTIONS]
    helps = (
        "thicker beams help"
        if 1 in signs and -1 not in signs
        else "thicker beams hurt"
        if -1 in signs and 1 not in signs
        else f"thicker beams make no clear difference; one below {_unnoticed(thick, thin):.1f} px "
        "would go unnoticed"
    )
    reach = ", ".join(f"{worst(name_of(e))} for ε = {e}" for e in EPSILONS)
    return (
        f"Along the worse axis, the mean change of the estimate exceeds {BOUNDARY:g}° at a shift "
        f"of {reach}; by Welch's test over seeds, {helps}. For the pretrained ring.coil100, which "
        "was trained on views with shifted centres, it is "
        f"{worst('pretrained ring.coil100')}; for the pretrained bic.coil100, which was trained "
        f"longer on centred views, {worst('pretrained bic.coil100')}."
    )


# --- figures ---


def draw(record: Record) -> dict[str, Figure]:
    from radialbeams.reproduce import translation_figures  # it needs matplotlib

    return translation_figures.draw(record)


EXPERIMENT = Experiment(
    name="translation",
    claim=(
        "On average, the network's answer stays within 5° of its answer without a shift for shifts "
        "of up to ±3 pixels on COIL-100; thicker beams would improve that"
    ),
    paper={
        f"largest stable shift, horizontal, {name_of(1)}": "±3 px",
        f"largest stable shift, vertical, {name_of(1)}": "±3 px",
    },
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
