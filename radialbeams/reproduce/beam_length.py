"""Beams of length A, B and C, adaptive padding, and what the border reveals about the angle.

Beams of length A stay inside the image at every rotation, B reach its border, C its corners. Black
padding draws a square around the image that rotates with it. Three measurements show whether a
network reads that square: the loss, a test with the other padding, and a canary, which is the same
network trained on white noise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from radialbeams.nn.beams import Length, named_length
from radialbeams.nn.encoder import spatial_table
from radialbeams.nn.rotation import PADDINGS, Padding
from radialbeams.reproduce import paper
from radialbeams.reproduce.border_canary import CANARIES, canary
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.geometry import padding_read
from radialbeams.reproduce.pretrained import open_pretrained
from radialbeams.reproduce.seed_statistics import compare, detectable, mean_curve, spread
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.thumbnails import encode
from radialbeams.reproduce.training_record import TrainingRecord
from radialbeams.reproduce.trainings import SEEDS, PlannedTraining, Trained, errors, summary
from radialbeams.stored import JsonDict, JsonFields
from radialbeams.training.data import load
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.leaks import ALERT
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import PaperViews

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTHS: tuple[Length, ...] = ("A", "B", "C")
DATA = {"coil100": "COIL-100", "lfw": "LFW"}
ERROR = "paper-equivalent error on COIL-100 and LFW"
WIDTH = {"coil100": 128, "lfw": 250}
LABELS = {"zeros": "black padding", "corner": "adaptive padding"}
LEAKS = Path("results") / "leaks"  # canaries that were measured on a GPU
DRAWN, DRAWN_SIZE, DRAWN_TURN = 73, 64, 20.0  # a duck on a ground that is not quite black


@dataclass(frozen=True)
class LengthKind:
    """One kind of training; its runs differ only in the seed."""

    data: str
    length: Length
    padding: Padding

    @property
    def name(self) -> str:
        return f"{self.data}-{self.length}-{self.padding}"


def kinds() -> list[LengthKind]:
    """All combinations, slowest first. Length A reads no padding, so one padding is enough."""
    return [
        LengthKind(data, length, padding)
        for data in reversed(DATA)
        for length in reversed(LENGTHS)
        for padding in PADDINGS
        if not (length == "A" and padding == "corner")
    ]


def recipe(kind: LengthKind, seed: int, settings: ReproduceSettings) -> Recipe:
    """The paper's recipe; only data, length and padding differ."""
    size = settings.pick(quick=64, full=WIDTH[kind.data])
    return Recipe(
        kind.data,
        paper.network("paper", size, settings, beam_length=named_length(kind.length, size)),
        size,
        padding=kind.padding,
        seed=seed,
        **paper.effort(settings, quick_steps=150),
    )


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    planned = []
    for kind in kinds():
        # LFW's images are four times as large.
        for seed in settings.seeds_of(quick=1, full=2 if kind.data == "lfw" else 3):
            planned.append(
                PlannedTraining(
                    f"{kind.name}-seed{seed}",
                    recipe(kind, seed, settings),
                    {"kind": kind.name},
                    images=settings.pick(quick=400, full=None),
                    held_out=settings.pick(quick=100, full=None),
                    validations=settings.pick(quick=3, full=8),
                    measure=measure,
                )
            )
    return planned + [canary(kind, settings) for kind in CANARIES]


def measure(trained: Trained) -> JsonDict:
    """The errors with the padding of the training, and with the other one."""
    other: Padding = "corner" if trained.recipe.padding == "zeros" else "zeros"
    swapped = evaluate(
        partial(predict_with, trained.model),
        trained.held_out,
        PaperViews(other),
        seeds=SEEDS,
        device=trained.device,
    )
    return {**errors(trained), "other_padding": summary(swapped)}


# --- results ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    cells, curves = [], {}
    for kind in kinds():
        runs = _finished_runs(kind.name, records)
        cells.append({**vars(kind), **cell_of(runs)})
        curves[kind.name] = {
            "step": runs[0].validated_at,
            "test": mean_curve([run.validated("so2") for run in runs]),
        }
    canaries = {}
    for protocol, length in CANARIES:
        measured = _finished_runs(f"canary-{protocol}-{length}", records)[0].measured
        canaries[f"{protocol}-{length}"] = measured
    pretrained = {name: swapped_pretrained(name, settings) for name in DATA}
    edges = {name: border(name, settings) for name in DATA}
    data = {
        "cells": cells,
        "shipped": pretrained,
        "curves": curves,
        "canaries": canaries,
        "border": edges,
        "measured_leaks": measured_leaks(),
        "padding": {name: padding_read(size) for name, size in WIDTH.items()},
        "drawing": drawing(settings),
    }
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data)


def conclude(data: Record) -> Conclusion:
    cells, canaries, pretrained = data["cells"], data["canaries"], data["shipped"]
    ours = numbers(cells, canaries, pretrained)
    for name, title in DATA.items():
        step = data["border"][name]
        ours[f"layers of the spatial encoder of A, B, C, {title}"] = ", ".join(
            str(len(spatial_table(named_length(length, WIDTH[name])))) for length in LENGTHS
        )
        ours[f"step at the border, black and adaptive padding, grey levels of 255, {title}"] = (
            f"{step['zeros']:.0f}, {step['corner']:.0f}"
        )
    return ours, sentence(cells, canaries, pretrained, data["border"])


def _finished_runs(kind: str, records: Records) -> list[TrainingRecord]:
    return [
        record for record in records.values() if record.tags["kind"] == kind and record.finished
    ]


def cell_of(runs: Sequence[TrainingRecord]) -> JsonDict:
    results = [run.errors() for run in runs]
    swapped = [run.measured["other_padding"] for run in runs]
    return {
        "test": spread([result["circle_loss"] for result in results]),
        "degrees": spread([result["paper_equivalent"] for result in results]),
        "mean": spread([result["mean"] for result in results]),
        "mean_swapped": spread([result["mean"] for result in swapped]),
        "degrees_swapped": spread([result["paper_equivalent"] for result in swapped]),
    }


def edge_step(images: Tensor, padding: Padding) -> float:
    """Bytes (N, C, W, W) → mean distance of the outermost pixels from the padding."""
    pixels = images.float()
    fill = pixels[..., :1, :1] if padding == "corner" else torch.zeros(())
    step = (pixels - fill).abs()
    edges = (step[..., 0, :], step[..., -1, :], step[..., 0], step[..., -1])
    return float(f"{torch.stack([edge.mean() for edge in edges]).mean().item():.3g}")


def border(data: str, settings: ReproduceSettings) -> dict[str, float]:
    """The step at the border with each padding; adaptive padding is meant to remove it."""
    limit = settings.pick(quick=100, full=500)
    images = load(data, root=settings.data, split="test", size=WIDTH[data], limit=limit)
    return {padding: edge_step(images.images, padding) for padding in PADDINGS}


def measured_leaks() -> list[Record]:
    """White-noise canaries of `radialbeams leaks`, if their results exist here."""
    leaks = []
    for name in ("paper", "bilinear", "leakfree"):
        for network in ("ring", "cnn"):
            path = LEAKS / f"{name}-{network}-white.json"
            if path.is_file():
                leak = json.loads(path.read_text(encoding="utf-8"))
                keys = ("rendering", "canary", "views", "rho4", "rho1")
                leaks.append({key: leak[key] for key in keys})
    return leaks


def find(cells: Sequence[Record], data: str, length: str, padding: str) -> Record:
    wanted = {"data": data, "length": length, "padding": "zeros" if length == "A" else padding}
    return next(cell for cell in cells if wanted.items() <= cell.items())


def _least(cells: Sequence[Record], data: str) -> str:
    """The length with the lowest mean loss, and the lengths not clearly different from it."""
    losses = {name: find(cells, data, name, "zeros")["test"] for name in LENGTHS}
    best = min(losses, key=lambda name: losses[name]["mean"])
    near = [name for name in LENGTHS if name != best and not compare(losses[name], losses[best])]
    return f"{best}, not clearly different from {' and '.join(near)}" if near else best


def numbers(cells: Sequence[Record], canaries: JsonFields, pretrained: JsonFields) -> JsonDict:
    errors = [find(cells, data, "B", "zeros")["degrees"]["mean"] for data in DATA]
    ours: JsonDict = {ERROR: " and ".join(f"{error:.1f}°" for error in errors)}
    for data, title in DATA.items():
        ours[f"beam length with the lowest loss, {title}"] = _least(cells, data)
        for padding, words in LABELS.items():
            ours[f"circle loss of A, B, C, {title}, {words}"] = ", ".join(
                f"{cell['test']['mean']:.4f} ± {cell['test']['std']:.4f}"
                for cell in (find(cells, data, length, padding) for length in LENGTHS)
            )
            ours[f"paper-equivalent error of A, B, C, {title}, {words}"] = ", ".join(
                f"{find(cells, data, length, padding)['degrees']['mean']:.1f}°"
                for length in LENGTHS
            )
        for length in ("B", "C"):
            cell = find(cells, data, length, "zeros")
            ours[f"mean error of length {length}, black → adaptive padding, {title}"] = (
                f"{cell['mean']['mean']:.1f}° → {cell['mean_swapped']['mean']:.1f}°"
            )
        ours[f"mean error of pretrained bic.{data}, black → adaptive padding"] = (
            f"{pretrained[data]['zeros']['mean']:.1f}° → {pretrained[data]['corner']['mean']:.1f}°"
        )
    for name, result in canaries.items():
        protocol, length = name.split("-")
        words = f"length {length}" if protocol == "paper" else "leak-free views"
        ours[f"ρ₄ of the network on white noise, {words}"] = round(result["rho4"][0], 3)
    return ours


def sentence(
    cells: Sequence[Record],
    canaries: JsonFields,
    pretrained: JsonFields,
    edges: JsonFields,
) -> str:
    """Whether longer beams gain by reading the border, as the authors suspect."""
    parts = []
    for data, title in DATA.items():
        short, border, adaptive = (
            find(cells, data, length, padding)
            for length, padding in (("A", "zeros"), ("C", "zeros"), ("C", "corner"))
        )
        gain = _comparison(border, short)
        lost = _comparison(adaptive, border)
        parts.append(
            f"On {title} ({len(border['test']['values'])} seeds), C {gain} A "
            f"({border['degrees']['mean']:.1f}° against {short['degrees']['mean']:.1f}°). C on "
            f"adaptive padding {lost} C on black padding "
            f"({adaptive['degrees']['mean']:.1f}°). C trained on black padding has a mean "
            f"error of {border['mean_swapped']['mean']:.1f}° on adaptive padding instead of "
            f"{border['mean']['mean']:.1f}°; the pretrained bic.{data} (length B) has "
            f"{pretrained[data]['corner']['mean']:.1f}° instead of "
            f"{pretrained[data]['zeros']['mean']:.1f}°. Adaptive padding reduces the step at the "
            f"border from {edges[data]['zeros']:.0f} to {edges[data]['corner']:.0f} grey levels."
        )
    rho4 = {length: canaries[f"paper-{length}"]["rho4"][0] for length in LENGTHS}
    leaks = [length for length, value in rho4.items() if value > ALERT]
    readings = ", ".join(f"{value:.2f} ({length})" for length, value in rho4.items())
    return (
        f"{' '.join(parts)} Lengths that leak: {', '.join(leaks) or 'none'}. Trained on white "
        f"noise, the network reads the angle modulo 90° with ρ₄ = {readings}, where 1 is exact and "
        f"0 is chance; on leak-free views ρ₄ is {canaries['leakfree-B']['rho4'][0]:.2f}. "
        "Differences are judged by Welch's test over seeds. The encoders of the lengths differ in "
        "depth too (rows *layers of the spatial encoder*), so more than the length changes between "
        "them."
    )


def _comparison(first: Record, second: Record) -> str:
    """How the paper-equivalent errors compare; if not clearly, what would go unnoticed."""
    sign = compare(first["degrees"], second["degrees"])
    if sign:
        return "is better than" if sign < 0 else "is worse than"
    least = detectable(first["degrees"], second["degrees"])
    return f"does not clearly differ (a difference below {least:.0f}° would go unnoticed) from"


def swapped_pretrained(data: str, settings: ReproduceSettings) -> JsonDict:
    """The errors on both paddings of a pretrained model, which was trained on black padding."""
    limit = settings.pick(quick=24, full=300)
    held_out = open_pretrained(f"bic.{data}", settings, limit=limit)
    predict = partial(predict_with, held_out.model)
    return {
        padding: summary(
            evaluate(predict, held_out.images, PaperViews(padding), seeds=1, device=held_out.device)
        )
        for padding in PADDINGS
    }


# --- figures ---


def drawing(settings: ReproduceSettings) -> JsonDict:
    """A small picture of COIL-100, rotated, on black and on the colour of its corner."""
    images = load("coil100", root=settings.data, size=DRAWN_SIZE, limit=100)  # one of each object
    return pictures_of(images.images[DRAWN : DRAWN + 1])


def pictures_of(upright: Tensor) -> JsonDict:
    """Bytes (1, 3, W, W) → the two paddings as PNGs, and the three lengths at this size."""
    size = upright.shape[-1]
    pictures: JsonDict = {"lengths": {name: named_length(name, size) for name in LENGTHS}}
    for padding in PADDINGS:
        turned = PaperViews(padding).render(upright, torch.tensor([math.radians(DRAWN_TURN)]))
        pixels = turned[0].permute(1, 2, 0).mul(255).round().clamp(0, 255).byte()
        pictures[padding] = encode(pixels.numpy())
    return pictures


def draw(record: Record) -> dict[str, Figure]:
    from radialbeams.reproduce import beam_length_figures  # it needs matplotlib

    return beam_length_figures.draw(record)


EXPERIMENT = Experiment(
    name="beam-length",
    claim=(
        "Longer beams give a lower loss on COIL-100 and on LFW. Beams that read no padding are "
        "much worse, so the authors suspect that the network reads the border between image and "
        "padding, which padding in the colour of the image's corner removes"
    ),
    paper={
        "beam length with the lowest loss, COIL-100": "C",
        "beam length with the lowest loss, LFW": "C",
        ERROR: "13° and 12°, at D = W/2 (B)",
    },
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
