"""Sections: the ring compared with other networks, and its ablations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sections.models import PUBLISHED
from sections.text import (
    BEFORE,
    Record,
    count,
    degrees,
    errors,
    hardware,
    interval,
    percent,
    plural,
    ranged,
    section,
    signed,
    table,
)


def side_by_side_section(runs: Sequence[Record]) -> Iterator[str]:
    if not runs:
        return
    runs = sorted(runs, key=lambda run: (run["mean"], run["name"]))
    head = "network|parameters|training|mean [95% CI]|median|P95|paper-equivalent"
    head += "|within 5°|within 10°|flips"
    rows = [
        [
            str(run["name"]),
            count(run.get("parameters")),
            _seconds(run),
            *errors(run),
        ]
        for run in runs
    ]
    rows += [
        [
            f"{published['who']} (other views: {published['protocol']})",
            count(published.get("parameters")),
            "–",
            *errors(published),
        ]
        for published in PUBLISHED["coil100"]
    ]
    best = runs[0]
    means = f"What it means: on these views `{best['name']}` has the smallest mean error"
    if len(runs) > 1:
        factors = [run["mean"] / best["mean"] for run in runs[1:]]
        means += f"; that of the others is {ranged(factors)} times as large"
    yield section(
        "Networks on the same views",
        "Printed by `python studies/ring.py side-by-side --data DIR --out results/ring`.",
        f"Protocol: leakfree, COIL-100, {_split(best)}; {_effort(best)}. Every network saw the "
        "same images, angles, augmentation and number of steps, and was trained once. "
        f"{BEFORE}",
        "What to look for: the mean error of the networks that were trained on the same views. "
        "The last two rows used other views and are shown for orientation only.",
        table(head.split("|"), rows),
        f"{means}. Each network uses the learning rate in `studies/ring.py`, without an extensive "
        "search, so a small difference is not a ranking.",
    )


def _split(run: Record) -> str:
    split = str(run.get("split", "test"))
    return {"test": "the held-out fifth of the images"}.get(split, split)


def _seconds(run: Record) -> str:
    seconds = run.get("training_seconds")
    return "–" if seconds is None else f"{seconds:.0f} s"


def _effort(run: Record) -> str:
    parts = []
    if "steps" in run and "batch" in run:
        parts.append(f"{run['steps']:,} steps of {run['batch']} views")
    if "seeds" in run:
        parts.append(f"{plural(run['seeds'], 'angle')} per test image")
    if "hardware" in run:
        parts.append(hardware(run))
    return ", ".join(parts)


# The first row of each table.
BASELINES = {"ablation": "48 beams", "photos": "as shipped"}
SETTINGS = {
    "ablation": "*48 beams* is the recipe of `ring.coil100` but for the beams: 32 beams make no "
    "clear difference and take two thirds of the "
    "operations, so the pretrained model has these.",
    "photos": "*As shipped* is the recipe of `ring`.",
}
# Whether choices were made on the images that a model's figures are from.
CLEAN = {
    "ablation": "These choices were made on a part of the training split, so the figures of "
    "`ring.coil100`, which are from the test split, are clean.",
    "photos": "These choices were made on the photos that are held out, and the figures of `ring` "
    "on *everyday photos, one in fifty* are from the same photos, so they are not clean. The "
    "errors on COCO-1030 are: no weights, recipe or confidence threshold was chosen on its photos. "
    "Only a rule of the command about filled corners was, which changes no estimate "
    "([training](training.md)).",
}


def ablation_section(runs: Sequence[Record], which: str = "ablation") -> Iterator[str]:
    if not runs:
        return
    data, model = ("photos", "ring") if which == "photos" else ("COIL-100", "ring.coil100")
    base = next((run for run in runs if run["name"] == BASELINES[which]), None)
    changed = sorted((r for r in runs if r is not base), key=lambda r: (r["mean"], r["name"]))
    head = "change|parameters|steps|training|mean [95% CI]|Δ mean|median|within 5°|flips|verdict"
    rows = [_ablated(run, base) for run in ([base] if base else []) + changed]
    first = base or changed[0]
    yield section(
        f"Ablation of `{model}`",
        f"Printed by `python studies/ring.py {which} --data DIR --out results/ring`.",
        f"Protocol: leakfree, {data}, {_split(first)}; {_effort(first)} unless the row states "
        f"otherwise. {SETTINGS[which]} There are fewer steps and images here than for the "
        f"pretrained model. {CLEAN[which]} "
        "Several rows were trained at the same time, so their training times are only rough."
        f"{f' {BEFORE}' if which == 'ablation' else ''}",
        "What to look for: *Δ mean*, the change of the mean error against the first row, and the "
        "last column, which shows whether the intervals overlap.",
        table(head.split("|"), rows),
        _ablation_means(changed, base),
    )


def _ablated(run: Record, base: Record | None) -> list[str]:
    other = base is not None and run is not base
    return [
        str(run["name"]),
        count(run.get("parameters")),
        count(run.get("steps")),
        _seconds(run),
        interval(run),
        signed(f"{run['mean'] - base['mean']:+.2f}°") if base and other else "",
        degrees(run.get("median")),
        percent(run.get("within_5")),
        percent(run.get("flips"), 2),
        against(run, base) if base and other else "",
    ]


def against(run: Record, base: Record) -> str:
    """Better or worse only if the two intervals do not overlap."""
    if not ("mean_low" in run and "mean_low" in base):
        return "single run, no interval"
    if run.get("mean_high", run["mean"]) < base.get("mean_low", base["mean"]):
        return "better"
    if run.get("mean_low", run["mean"]) > base.get("mean_high", base["mean"]):
        return "worse"
    return "no clear difference"


def _ablation_means(changed: Sequence[Record], base: Record | None) -> str:
    if base is None or not changed:
        return "What it means: nothing yet, because the other rows are missing."
    if not any("mean_low" in run for run in changed):
        return (
            "What it means: after so few steps a row shows how fast a variant starts to learn, not "
            "its final error. Each row is a single run of which only mean and median were kept. "
            "*Branches left out* is stochastic depth: it slows down the start, and a long run with "
            "it did not converge, so `ring` is trained without it. Nothing here is in favour of "
            "attention."
        )
    kinds: dict[str, list[str]] = {"better": [], "worse": [], "no clear difference": []}
    for run in changed:
        kinds[against(run, base)].append(str(run["name"]))
    text = f"What it means: of {plural(len(changed), 'change')}, "
    text += "; ".join(
        f"{len(names)} {kind} ({', '.join(names)})" if names else f"0 {kind}"
        for kind, names in kinds.items()
    )
    return (
        f"{text}. Changes that do not help are negative results and stay in the table. *Better* "
        "and *worse* mean that the intervals do not overlap. The intervals cover the choice of "
        "images, not the training seed: each row is one run."
    )
