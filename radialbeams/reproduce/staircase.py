"""From the authors' settings to ours, one change at a time, and the context encoder's contribution.

Every stair is trained twice: on the paper's views, which leak part of the angle, and on leak-free
views. Each network is measured on views like those that it was trained on, and on JPEG files that
Pillow rotated, in which only a faint edge rotates with the content. A gain on the paper's views
alone is a better reading of the leak; a gain on leak-free views and files comes from the content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from radialbeams.nn.architectures import Config
from radialbeams.nn.context import Hub
from radialbeams.nn.ring_network import RingConfig
from radialbeams.reproduce import paper
from radialbeams.reproduce.effort import FULL
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.prior import border_network
from radialbeams.reproduce.seed_statistics import STUCK, compare, over_seeds, spread, unclear
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.staircase_designs import (
    CONSTANT,
    CONTEXT_LABELS,
    CONTEXT_SERIES,
    CONTEXTS,
    LABELS,
    SIDE_BY_SIDE,
    STAIRS,
    StairDesign,
)
from radialbeams.reproduce.staircase_measures import measure
from radialbeams.reproduce.training_record import TrainingRecord, data_notes, tagged
from radialbeams.reproduce.trainings import PlannedTraining
from radialbeams.stored import JsonDict
from radialbeams.training.augment import Augmentation
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS = 5
SERIES: tuple[Protocol, ...] = ("paper", "leakfree")
LARGE: JsonDict = {"batch": 512, "steps": 2500}
RING: JsonDict = {"learning_rate": 3e-3, "weight_decay": 0.05, "average": 0.998}


@dataclass(frozen=True)
class StaircaseRow:
    """A design under a protocol; its trainings differ only in the seed."""

    name: str
    protocol: Protocol
    design: StairDesign


def rows() -> list[StaircaseRow]:
    """All rows, the longest trainings first, so that none of them runs alone at the end."""
    stairs = [
        StaircaseRow(f"{protocol}-{name}", protocol, design)
        for name, design in reversed(STAIRS.items())
        for protocol in SERIES
    ]
    return stairs + [
        StaircaseRow(f"context-{series}-{name}", protocol, replace(STAIRS[stair], **CONTEXTS[name]))
        for series, (protocol, stair) in CONTEXT_SERIES.items()
        for name in (CONTEXTS if series == "one-cycle" else CONSTANT)
        if name != "mean"
    ]


def row_of(series: str, name: str) -> str:
    """The name of a context encoder's row; that of the pretrained `bic` is a stair."""
    protocol, stair = CONTEXT_SERIES[series]
    return f"{protocol}-{stair}" if name == "mean" else f"context-{series}-{name}"


def recipe(row: StaircaseRow, seed: int, settings: ReproduceSettings) -> Recipe:
    size, design = settings.pick(quick=64, full=128), row.design
    base = Recipe(
        "coil100",
        network(row, size, settings),
        size,
        protocol=row.protocol,
        draw=design.draw,
        learning_rate=design.rate,
        schedule=design.schedule,
        clip=design.clip,
        average=design.average,
        augmentation=augmentation(row),
        batch=settings.pick(quick=32, full=128),
        steps=settings.pick(quick=40, full=4096),
        seed=seed,
    )
    if design.large and not settings.quick:
        base = replace(base, **LARGE)
    return replace(base, **RING) if design.ring else base


def augmentation(row: StaircaseRow) -> Augmentation:
    """The ring's augmentation; without zoom on the paper's views, where the border is visible."""
    if not row.design.augmented:
        return Augmentation()
    return Augmentation(zoom=0.15 if row.protocol == "leakfree" else 0.0, jitter=0.2, noise=0.02)


def network(row: StaircaseRow, size: int, settings: ReproduceSettings) -> Config:
    design = row.design
    changes: JsonDict = {"hub": design.hub, "context_layers": design.layers}
    bic = paper.network(row.protocol, size, settings, **changes)
    if not design.ring:
        return bic
    return RingConfig(
        view_size=bic.view_size, sampler="polar", num_beams=48, beam_length=32, epsilon=0
    )


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    """All rows of the first seed, then all of the second: an interrupted run has whole seeds."""
    seeds = settings.seeds_of(quick=1, full=SEEDS)
    planned = sorted(((seed, row) for seed in seeds for row in rows()), key=_due)
    return [
        PlannedTraining(
            f"{row.name}-seed{seed}",
            recipe(row, seed, settings),
            {"row": row.name},
            images=settings.pick(quick=300, full=FULL.images),
            held_out=settings.pick(quick=60, full=FULL.held_out),
            measure=measure,
            parts=Parts(network=border_network) if row.design.spacing == "border" else Parts(),
        )
        for seed, row in planned
    ]


def _due(planned: tuple[int, StaircaseRow]) -> float:
    """A sort key: the seed, but three seeds of the networks compared side by side come early."""
    seed, row = planned
    return min(seed, 0.5) if row.name in SIDE_BY_SIDE and seed < 3 else seed


# --- results ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    cells = {}
    for row in rows():
        runs = tagged(records, row=row.name)
        cells[row.name] = cell_of(runs)
    notes = data_notes(records.values())
    data = {"cells": cells, "notes": notes}
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data)


def cell_of(runs: Sequence[TrainingRecord]) -> JsonDict:
    """Errors over the seeds that have finished; a run diverged if its loss was not finite."""
    results = [run.measured for run in runs if run.finished]
    if not results:
        return {"seeds": 0, "diverged": len(runs)}
    cell: JsonDict = {
        "seeds": len(results),
        "diverged": len(runs) - len(results),
        "training_images": runs[0].training_images,
        "steps": runs[0].recipe["steps"],
        "batch": runs[0].recipe["batch"],
    }
    for test in ("so2", "files"):
        cell[test] = {
            name: spread([result[test][name] for result in results])
            for name in ("mean", "median", "paper_equivalent", "flips")
        }
    shares = [result["hub_share"] for result in results if result["hub_share"] is not None]
    cell["hub_share"] = spread(shares) if shares else None
    return cell


def conclude(data: Record) -> Conclusion:
    cells = data["cells"]
    ours = {LABELS[name]: _stair(cells, name) for name in STAIRS}
    for series, names in (("one-cycle", tuple(CONTEXTS)), ("constant", (*CONSTANT, "mean"))):
        for name in names:
            words = f"context, {_series_label(series)}, {CONTEXT_LABELS[name]}"
            ours[words] = _context(cells, series, name)
    return ours, sentence(cells, data["notes"])


def _series_label(series: str) -> str:
    protocol, _ = CONTEXT_SERIES[series]
    rate = "one-cycle" if series == "one-cycle" else "the paper's constant rate"
    return f"{_views(protocol)}, {rate}"


def _views(protocol: str) -> str:
    return "paper's views" if protocol == "paper" else "leak-free views"


def _stair(cells: Mapping[str, Record], name: str) -> str:
    parts = []
    for protocol in SERIES:
        cell = cells[f"{protocol}-{name}"]
        files = f", files {degrees(cell, 'files')}" if cell["seeds"] else ""
        parts.append(f"{_views(protocol)} {degrees(cell)}{files}")
    return "; ".join(parts)


def degrees(cell: Record, test: str = "so2") -> str:
    if not cell["seeds"]:
        return "diverged" if cell["diverged"] else "not trained"
    return over_seeds(cell[test]["mean"]["values"])


def _context(cells: Mapping[str, Record], series: str, name: str) -> str:
    cell, base = cells[row_of(series, name)], cells[row_of(series, "mean")]
    if not cell["seeds"]:
        return degrees(cell)
    text = f"{degrees(cell)}, {cell['hub_share']['mean']:.0%} of the gradient through the hub"
    if name == "mean" or not base["seeds"]:
        return text
    pair = cell["so2"]["mean"], base["so2"]["mean"]
    sign = compare(*pair)
    words = {-1: "better than the hub of bic", 0: unclear(*pair), 1: "worse than the hub of bic"}
    return f"{text}; {words[sign]}"


def gains(cells: Mapping[str, Record], protocol: Protocol) -> dict[str, float]:
    """The factor by which each stair lowers the median error over seeds; above 1 is a gain."""
    factors, before = {}, None
    for name in STAIRS:
        cell = cells[f"{protocol}-{name}"]
        now = float(np.median(cell["so2"]["mean"]["values"])) if cell["seeds"] else None
        if now and before:
            factors[name] = before / now
        before = now
    return factors


def sentence(cells: Mapping[str, Record], notes: Sequence[str]) -> str:
    first, last = next(iter(STAIRS)), list(STAIRS)[-1]
    seeds = [cell["seeds"] for cell in cells.values()]
    parts = []
    if min(seeds) < 2:
        parts.append(
            f"Rows have {min(seeds)} to {max(seeds)} seeds; of a row with one, only large steps "
            "count."
        )
    parts += [
        f"On {_views(protocol)} the mean error falls from {degrees(cells[f'{protocol}-{first}'])} "
        f"to {degrees(cells[f'{protocol}-{last}'])}; the largest steps are "
        f"{_largest(gains(cells, protocol))}."
        for protocol in reversed(SERIES)
    ]
    parts += [_side_by_side(cells), _text_hub(cells)]
    parts.append(
        f"The same last networks on files turned by Pillow: "
        f"{degrees(cells[f'leakfree-{last}'], 'files')} after leak-free views, "
        f"{degrees(cells[f'paper-{last}'], 'files')} after the paper's."
        if all(cells[f"{protocol}-{last}"]["seeds"] for protocol in SERIES)
        else ""
    )
    trained = {cell["training_images"] for cell in cells.values() if cell["seeds"]}
    if trained:
        parts.append(f"Trained on {max(trained):,} images of COIL-100's training split.")
    return " ".join(part for part in [*parts, *notes] if part)


def _side_by_side(cells: Mapping[str, Record]) -> str:
    """The ring and the paper's network after equally many leak-free views, in a sentence."""
    ring, bic = (cells[name] for name in SIDE_BY_SIDE)
    if not (ring["seeds"] and bic["seeds"]):
        return ""
    return (
        f"On the same leak-free views, {LARGE['steps']:,} steps of {LARGE['batch']}, the ring has "
        f"{degrees(ring)} and the paper's network {degrees(bic)}."
    )


def _text_hub(cells: Mapping[str, Record]) -> str:
    """Whether the context encoder of the paper's text, with a hub that sums, trains; in words."""
    cells_by_series = {series: cells[row_of(series, "held-sum")] for series in CONTEXT_SERIES}
    if not all(cell["seeds"] for cell in cells_by_series.values()):
        return ""
    trains = all(cell["so2"]["mean"]["mean"] < STUCK for cell in cells_by_series.values())
    return (
        "The context encoder of the paper's text, with a hub that sums and is held back, "
        f"{'trains' if trains else 'does not train'}. What does not train is a hub that sums and "
        f"is sent to the rim in every layer (`ablation`). {_default_hub(cells)}"
    )


def _hubs(cells: Mapping[str, Record]) -> dict[str, tuple[Record, Record]]:
    """The errors with the text's hub and with that of the pretrained `bic`, by series."""
    rows = {
        series: (cells[row_of(series, "held-sum")], cells[row_of(series, "mean")])
        for series in CONTEXT_SERIES
    }
    return {
        series: (text["so2"]["mean"], bic["so2"]["mean"])
        for series, (text, bic) in rows.items()
        if text["seeds"] and bic["seeds"]
    }


def preferred_hub(cells: Mapping[str, Record]) -> Hub:
    """The text's hub if clearly better in a series and clearly worse in none, else the mean hub."""
    signs = {compare(*pair) for pair in _hubs(cells).values()}
    return "held-sum" if -1 in signs and 1 not in signs else "mean"


def _default_hub(cells: Mapping[str, Record]) -> str:
    """Which of the two hubs is the default and why, in a sentence."""
    words = {-1: "better than", 0: "not clearly different from", 1: "worse than"}
    comparisons = [
        f"{words[compare(text, bic)]} that of the pretrained bic on {_series_label(series)} "
        f"({text['mean']:.2f}° against {bic['mean']:.2f}°)"
        for series, (text, bic) in _hubs(cells).items()
    ]
    default = (
        "it is the default of new networks"
        if preferred_hub(cells) == "held-sum"
        else "the hub of bic is the default of new networks too"
    )
    return (
        f"It is {' and '.join(comparisons)}, so {default}; this was measured with 32 beams on "
        "COIL-100 only."
    )


def _largest(factors: Mapping[str, float], count: int = 3) -> str:
    ranked = sorted(factors, key=lambda name: -factors[name])[:count]
    return ", ".join(
        f"{LABELS[name].removeprefix('+ ')} (÷ {factors[name]:.2f})" for name in ranked
    )


def draw(record: Record) -> dict[str, Figure]:
    from radialbeams.reproduce import staircase_figures

    cells = record["data"]["cells"]
    return {
        "": staircase_figures.draw_stairs(cells),
        "context": staircase_figures.draw_contexts(cells),
    }


EXPERIMENT = Experiment(
    name="staircase",
    claim=(
        "The network reaches 13° on COIL-100. What of the distance between this figure and ours is "
        "due to the optimiser, the geometry, the context encoder, the decoder, and to the leak"
    ),
    paper={},
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
