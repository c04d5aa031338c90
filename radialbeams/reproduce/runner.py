"""Runs an experiment and writes NAME.json with all results, and the figures drawn from it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from radialbeams.extras import install_command
from radialbeams.reproduce import registry
from radialbeams.reproduce.experiment import Experiment, Finding, Record, Records
from radialbeams.reproduce.records import write_record
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.trainings import complete, finished
from radialbeams.stored import JsonDict
from radialbeams.training.weights import pick_device


def reproduce(
    name: str,
    settings: ReproduceSettings,
    *,
    redraw: bool = False,
    trainings_only: bool = False,
    finished_only: bool = False,
) -> list[Path]:
    """Runs an experiment and returns the files that it wrote.

    `redraw` measures nothing: it words and draws the data in NAME.json again. `trainings_only`
    writes only the results of the trainings, which a later call reads; it needs no matplotlib.
    `finished_only` trains nothing and uses the results of finished trainings.
    """
    experiment = registry.find(name)
    path = settings.folder / f"{name}.json"
    if not redraw:
        if not trainings_only:
            _need_matplotlib()  # now, not after hours of training
        started = time.monotonic()
        planned = experiment.trainings(settings)
        if finished_only:
            records, trained_here = finished(name, planned, settings), 0.0
        else:
            records, trained_here = complete(name, planned, settings)
        if trainings_only:
            return [settings.runs(name) / f"{run}.json" for run in records]
        finding = experiment.run(settings, records)
        seconds = time.monotonic() - started - trained_here
        result = record(experiment, settings, records, finding, seconds)
        write_record(path, result, long=["data"])
    elif not path.is_file():
        raise ValueError(
            f"Expected {path} to draw from; there is none. Run it first, without --redraw."
        )
    else:
        write_record(path, reworded(experiment, path), long=["data"])
    return [path, *draw(experiment, path)]


def reproduce_each(
    names: Sequence[str],
    run_one: Callable[[str], object],
    report: Callable[[str, Exception], object],
) -> list[str]:
    """Calls `run_one` with each name and returns the names that failed.

    An error is passed to `report`, and the other names still run.
    """
    failures = []
    for name in names:
        try:
            run_one(name)
        except Exception as error:  # any error: the other experiments are independent
            failures.append(name)
            report(name, error)
    return failures


def record(
    experiment: Experiment,
    settings: ReproduceSettings,
    records: Records,
    finding: Finding,
    seconds: float,
) -> Record:
    """The content of NAME.json. Its time includes that of earlier trainings."""
    seeds = {run.seed for run in records.values()} | set(finding.seeds)
    trained = sum(run.seconds for run in records.values())
    measured = finding.seconds + seconds
    hardware = {run.hardware for run in records.values()}
    if not hardware or measured > trained:  # trainings may have been run elsewhere
        hardware.add(pick_device(settings.devices).type)
    return {
        "name": experiment.name,
        "claim": experiment.claim,
        "paper": dict(experiment.paper),
        "ours": dict(finding.ours),
        "why": finding.why,
        "command": command(experiment.name, settings),
        "settings": settings.pick(quick="quick", full="full"),
        "seeds": sorted(seeds),
        "seconds": round(trained + measured, 1),
        "trainings": len(records),
        "efforts": efforts((run.recipe["steps"], run.recipe["batch"]) for run in records.values()),
        "hardware": " and ".join(sorted(hardware)),
        "data": dict(finding.data),
    }


def efforts(trainings: Iterable[tuple[int, int]]) -> list[str]:
    """Steps and batch of trainings, in words: "4,096 × 128"."""
    return [f"{steps:,} × {batch:,}" for steps, batch in sorted(set(trainings))]


def reworded(experiment: Experiment, path: Path) -> Record:
    """NAME.json with claim, numbers and sentences worded by the current code."""
    stored: Record = json.loads(path.read_text(encoding="utf-8"))
    ours, why = experiment.conclude(stored["data"])
    why = (QUICK if stored["why"].startswith(QUICK) else "") + why
    words = {"claim": experiment.claim, "paper": dict(experiment.paper), "ours": ours, "why": why}
    return {**stored, **words}


def command(name: str, settings: ReproduceSettings) -> str:
    """The command that repeats the experiment, without paths."""
    parts = ["radialbeams reproduce", name]
    parts += ["--quick"] if settings.quick else []
    parts += [] if settings.seeds is None else [f"--seeds {settings.seeds}"]
    parts += [] if settings.classifier is None else [f"--classifier {settings.classifier}"]
    return " ".join(parts)


def draw(experiment: Experiment, path: Path) -> list[Path]:
    """Writes NAME*.png and .svg beside NAME.json, and returns their paths."""
    _need_matplotlib()
    from radialbeams.reproduce import figures

    stored: JsonDict = json.loads(path.read_text(encoding="utf-8"))
    files = []
    with figures.style():
        for suffix, figure in experiment.draw(stored).items():
            stem = path.with_name(experiment.name + (f"-{suffix}" if suffix else ""))
            files += figures.save(figure, stem, quick=stored["settings"] == "quick")
    return files


def _need_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise ValueError(
            "`radialbeams reproduce` draws with matplotlib, which is not installed. Install it in "
            f"your clone with: {install_command('experiments')}; or leave the "
            "drawing for later with --trainings-only."
        )
