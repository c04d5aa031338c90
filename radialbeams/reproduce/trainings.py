"""Many small trainings: one JSON file each, resumed after a kill, shared between processes.

A training whose file exists is not run again. A process claims a training with a lock, which the
system releases when the process dies, so no claim is ever left behind. A killed training resumes
from its last checkpoint.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

import torch

from radialbeams.cards import Evaluation
from radialbeams.files import claimed, write_whole
from radialbeams.nn.architectures import Network, build
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord, read_training, write_training
from radialbeams.stored import JsonDict, JsonFields
from radialbeams.training.data import ImageSet
from radialbeams.training.data import load as load_images
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.fit import DEFAULT_PARTS, Fit, Progress
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import GROUPS
from radialbeams.training.weights import pick_device

POINTS = 64  # of a curve in a file
POLL_SECONDS = 1.0
NOTE = "NOTE.txt"  # in a folder of packed data, see `pack`
SEEDS = 3  # angles per held-out image at the end
# The figures of an `Evaluation` that are stored for every training.
STORED_FIGURES = (
    "n",
    "mean",
    "median",
    "p95",
    "paper_equivalent",
    "within_5",
    "within_10",
    "flips",
)


@dataclass(frozen=True)
class Trained:
    """A finished training: the model, and the images to measure it on."""

    recipe: Recipe
    fit: Fit
    model: Network
    held_out: ImageSet
    device: torch.device


Measure = Callable[[Trained], JsonDict]


def errors(trained: Trained) -> JsonDict:
    """Errors on the held-out images, for angles of SO(2) and of C_|B|."""
    beams = trained.recipe.model.num_bins
    return {
        group: summary(
            evaluate(
                partial(predict_with, trained.model),
                trained.held_out,
                trained.fit.views,
                seeds=SEEDS,
                group=group,
                num_beams=beams,
                device=trained.device,
            )
        )
        for group in GROUPS
    }


def summary(evaluation: Evaluation | JsonFields) -> dict[str, float]:
    """The stored figures, and the mean circle loss, which the paper plots."""
    values = evaluation.to_dict() if isinstance(evaluation, Evaluation) else evaluation
    figures = {name: values[name] for name in STORED_FIGURES}
    # The mean loss and the paper's error are the same number in two units.
    return {
        **figures,
        "circle_loss": 2 - 2 * math.cos(math.radians(figures["paper_equivalent"])),
    }


@dataclass(frozen=True)
class PlannedTraining:
    """One run of `Fit`, and its measurements."""

    name: str  # of its file; unique in the experiment
    recipe: Recipe
    tags: JsonFields = field(default_factory=dict)  # identify the training in its experiment
    images: int | None = None  # how many of the training split; None for all
    held_out: int | None = None  # how many of the test split
    validations: int = 0  # number of evaluations during training
    measure: Measure = errors
    parts: Parts = DEFAULT_PARTS
    keep: bool = False  # also stores the weights; `load` returns the model


# --- all trainings ---


def complete(
    experiment: str, trainings: Sequence[PlannedTraining], settings: ReproduceSettings
) -> tuple[dict[str, TrainingRecord], float]:
    """Runs the trainings that have no file; returns all results by name, and the seconds spent."""
    _check_names(trainings)
    folder = settings.runs(experiment)
    started = time.monotonic()
    missing = [training for training in trainings if read(training, folder) is None]
    if missing and settings.jobs > 1:
        _in_processes(experiment, missing, settings)
    elif missing:
        _in_this_process(missing, folder, settings)
    records = {training.name: read(training, folder) for training in trainings}
    if unfinished := [name for name, record in records.items() if record is None]:
        raise ValueError(
            f"{len(unfinished)} trainings of {experiment} are still being run by another process "
            f"({', '.join(unfinished[:3])} …). Repeat the command when it is done."
        )
    done = {name: record for name, record in records.items() if record is not None}
    return done, time.monotonic() - started if missing else 0.0


def finished(
    experiment: str, trainings: Sequence[PlannedTraining], settings: ReproduceSettings
) -> dict[str, TrainingRecord]:
    """The results of the finished trainings, by name; nothing is trained."""
    folder = settings.runs(experiment)
    records = {training.name: read(training, folder) for training in trainings}
    return {name: record for name, record in records.items() if record is not None}


def read(training: PlannedTraining, folder: Path) -> TrainingRecord | None:
    """The result of a training, or None; raises if the file belongs to another recipe."""
    path = folder / f"{training.name}.json"
    if not path.is_file():
        return None
    record = read_training(path)
    same = (
        # As recipes, so that a file written before a field was added still matches.
        Recipe.from_dict(record.recipe) == Recipe.from_dict(_plain(training.recipe))
        and record.images == training.images
        and record.held_out == training.held_out
    )
    if not same:
        raise ValueError(
            f"Expected the result of this recipe in {path}; got that of another one. Remove the "
            "file, or use a new folder (--out)."
        )
    return record


def load(training: PlannedTraining, settings: ReproduceSettings, experiment: str) -> Network:
    """The model of a training that keeps its weights."""
    from safetensors.torch import load_file

    path = settings.runs(experiment) / f"{training.name}.safetensors"
    if not path.is_file():
        raise ValueError(
            f"Expected the weights of a training in {path}; the file does not exist. Remove the "
            ".json beside it to train again."
        )
    model = build(training.recipe.model)
    model.load_state_dict(load_file(path))
    return model.to(pick_device(settings.devices)).eval()


def _check_names(trainings: Sequence[PlannedTraining]) -> None:
    names = [training.name for training in trainings]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"Expected unique names of trainings; got twice: {', '.join(twice)}.")


# --- in this process ---


def _in_this_process(
    trainings: Sequence[PlannedTraining], folder: Path, settings: ReproduceSettings
) -> None:
    total = sum(training.recipe.steps for training in trainings)
    done = 0
    for number, training in enumerate(trainings, 1):
        label = f"{training.name} ({number} of {len(trainings)})"
        settings.show(done, total, label)

        def show(progress: Progress, done: int = done, label: str = label) -> None:
            text = f"{label}, loss {progress.circle_loss:.3f}"
            settings.show(done + progress.step, total, text)

        with claimed(folder / ".work" / f"{training.name}.claimed") as acquired:
            # Another process may have finished it in the meantime.
            if acquired and read(training, folder) is None:
                _run(training, folder, settings, show)
        done += training.recipe.steps
    settings.show(total, total, "trained")


def _run(
    training: PlannedTraining,
    folder: Path,
    settings: ReproduceSettings,
    show: Callable[[Progress], None],
) -> None:
    """Trains, measures, and writes the result atomically."""
    device = pick_device(settings.devices)
    images = _images(training.recipe, "train", settings.data, training.images)
    held_out = _images(training.recipe, "test", settings.data, training.held_out)
    work = folder / ".work" / training.name
    steps = training.recipe.steps
    fit = Fit(
        training.recipe,
        images,
        work,
        device=device,
        parts=training.parts,
        held_out=held_out,
        validate_every=steps // training.validations if training.validations else 0,
        log_every=max(1, min(8, steps // POINTS)),
    )
    record = TrainingRecord(
        name=training.name,
        tags=dict(training.tags),
        recipe=_plain(training.recipe),
        images=training.images,
        held_out=training.held_out,
        training_images=len(images),
        hardware=device.type,
        data_note=data_note(settings.data),
    )
    measuring = 0.0
    try:
        fit.run(show)
    except FloatingPointError as error:  # divergence is a result too
        record = replace(record, diverged=str(error))
    else:
        model, started = fit.averaged(), time.monotonic()
        trained = Trained(training.recipe, fit, model, held_out, device)
        measured = training.measure(trained)
        measuring = time.monotonic() - started
        count = sum(p.numel() for p in model.parameters())
        record = replace(record, measured=measured, parameters=count)
        if training.keep:
            weights = work / "model.safetensors"
            target = folder / f"{training.name}.safetensors"
            write_whole(target, partial(shutil.copyfile, weights))
    curve, validations = curves(work / "metrics.jsonl")
    seconds = round(fit.at.seconds + measuring, 1)
    record = replace(record, seconds=seconds, curve=curve, validations=validations)
    write_training(folder / f"{training.name}.json", record)
    shutil.rmtree(work)


def data_note(root: Path | None) -> str:
    """How the images in a data folder differ from the originals, if its NOTE.txt says so."""
    top = root or os.environ.get("RADIALBEAMS_DATA")
    path = None if top is None else Path(top) / NOTE
    return path.read_text(encoding="utf-8").strip() if path and path.is_file() else ""


def _images(recipe: Recipe, split: str, root: Path | None, limit: int | None) -> ImageSet:
    width, channels = recipe.parent_size, recipe.model.channels
    return _read_images(recipe.data, split, recipe.split_by, width, channels, root, limit)


@lru_cache(maxsize=4)  # both splits of two data sets
def _read_images(
    data: str,
    split: str,
    split_by: str,
    size: int,
    channels: int,
    root: Path | None,
    limit: int | None,
) -> ImageSet:
    return load_images(
        data,
        root=root,
        split=split,
        split_by=split_by,
        size=size,
        channels=channels,
        limit=limit,
    )


def _plain(recipe: Recipe) -> JsonDict:
    values: JsonDict = json.loads(json.dumps(recipe.to_dict()))
    return values


def curves(metrics: Path) -> tuple[dict[str, list[float]], list[JsonDict]]:
    """The training losses in at most POINTS averages, and the evaluations during training."""
    lines = []
    if metrics.is_file():  # missing if it diverged before the first line
        lines = [json.loads(line) for line in metrics.open(encoding="utf-8")]
    losses = [line for line in lines if "circle_loss" in line]
    bins = [
        part
        for k in range(POINTS)
        if (part := losses[k * len(losses) // POINTS : (k + 1) * len(losses) // POINTS])
    ]
    curve = {
        "step": [part[-1]["step"] for part in bins],
        "circle_loss": [_mean(part, "circle_loss") for part in bins],
    }
    if any(line["prior_loss"] for line in losses):
        curve["prior_loss"] = [_mean(part, "prior_loss") for part in bins]
    return curve, [validation for line in lines if len(validation := _validation(line)) > 1]


def _validation(line: JsonFields) -> JsonDict:
    """The errors on held-out images in a line of metrics, rounded."""
    validation: JsonDict = {"step": line["step"]}
    for group, key in (("so2", "held_out"), ("cyclic", "held_out_cyclic")):
        if key in line:
            values = summary(line[key])
            validation[group] = {k: _short(values[k]) for k in ("circle_loss", "mean", "median")}
    return validation


def _mean(lines: Sequence[Mapping[str, float]], name: str) -> float:
    return _short(sum(line[name] for line in lines) / len(lines))


def _short(value: float) -> float:
    return float(f"{value:.4g}")


# --- in several processes ---


def _in_processes(
    experiment: str, missing: Sequence[PlannedTraining], settings: ReproduceSettings
) -> None:
    """Runs the trainings in processes that share the folder; each takes unclaimed ones."""
    count = min(settings.jobs, len(missing))
    command = [sys.executable, "-m", "radialbeams.reproduce", experiment]
    command += ["--trainings-only", "--out", str(settings.folder), "--devices", settings.devices]
    command += ["--quick"] if settings.quick else []
    command += [] if settings.data is None else ["--data", str(settings.data)]
    command += [] if settings.seeds is None else ["--seeds", str(settings.seeds)]
    threads = max(1, (os.cpu_count() or 1) // count)
    environment = {"OMP_NUM_THREADS": str(threads), **os.environ}
    folder = settings.runs(experiment)
    folder.mkdir(parents=True, exist_ok=True)
    processes, logs = [], []
    for number in range(count):
        log = folder / f".process-{number}.log"
        with log.open("wb") as file:
            processes.append(subprocess.Popen(command, stdout=file, stderr=file, env=environment))
        logs.append(log)
    try:
        while any(process.poll() is None for process in processes):
            done = sum((folder / f"{training.name}.json").is_file() for training in missing)
            settings.show(
                done, len(missing), f"{done} of {len(missing)} trainings, {count} in parallel"
            )
            time.sleep(POLL_SECONDS)
    finally:
        for process in processes:
            process.terminate()
            process.wait()
    if any(read(training, folder) is None for training in missing):
        for process, log in zip(processes, logs, strict=True):
            if process.returncode:
                last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
                raise ValueError(
                    f"A process with trainings of {experiment} failed: {' '.join(last)} "
                    f"(its log: {log}). Finished trainings are kept; repeat the command."
                )
    for log in logs:
        log.unlink()
