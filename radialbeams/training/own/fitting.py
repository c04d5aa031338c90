"""From a folder of upright images to a calibrated model with a card and a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from radialbeams.nn.architectures import build
from radialbeams.training.data import ImageSet
from radialbeams.training.distributed import World, join, own_device
from radialbeams.training.fit import Fit, Progress
from radialbeams.training.own import budget as budgets
from radialbeams.training.own import rules, starts, upright
from radialbeams.training.own.crooked import realigned
from radialbeams.training.own.finishing import finish
from radialbeams.training.own.pixels import read
from radialbeams.training.own.rules import Budget, ChosenRecipe
from radialbeams.training.own.run import (
    Begun,
    TrainedRun,
    check_place,
    check_same,
    digest,
    read_begun,
    removed_if_refused,
    write_begun,
)
from radialbeams.training.own.scan import Scan, scan
from radialbeams.training.own.split import Split, split
from radialbeams.training.own.starts import AUTO
from radialbeams.training.recipe import RecipeFields
from radialbeams.training.report import CrookedImage, crooked_images
from radialbeams.training.run_folder import MetricsLine
from radialbeams.training.weights import read_card

SHARE = 0.2  # of the images that is held out
WANTED = 10  # images: of a small folder more than a fifth is held out, up to MOST_SHARE
MOST_SHARE = 1 / 3
VALIDATIONS = 8  # during a run
VALIDATED = 128  # images of each
LOG_SECONDS = 2.0
MINUTES = 10.0


@dataclass(frozen=True)
class Status:
    """What a run is doing."""

    stage: str  # reading, training, measuring, …
    done: float  # share of the stage, 0 to 1
    step: int | None = None
    loss: float | None = None
    held_out: float | None = None  # degrees: the mean error on held-out images, when last measured
    seconds_left: float | None = None  # of the training


@dataclass(frozen=True)
class Watch:
    """Receives the progress of a run: sentences for the log, and its status."""

    note: Callable[[str], None] = lambda sentence: None
    show: Callable[[Status], None] = lambda status: None


def fit_folder(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    minutes: float | None = None,
    steps: int | None = None,
    start: str = AUTO,
    config: RecipeFields | None = None,
    realign: bool = False,
    canary: bool = False,
    devices: str = "auto",
    watch: Watch | None = None,
) -> TrainedRun:
    """A model for the images of a folder, calibrated and measured on those that were held out.

    Everything takes `minutes` (10 by default), or the training takes `steps`. `start` is the
    name of a pretrained model, the folder of a run, "scratch", or "auto" for the best of the
    pretrained models. `config` has fields of a recipe. `realign` straightens crooked images.
    `canary` measures whether the views of this run leak the angle, which takes a minute or two;
    without it the report quotes a canary for similar views. `out` is the folder of the run, by
    default runs/NAME. An unfinished run there is resumed, and a finished one can be extended.
    """
    begin = time.monotonic()
    world = join()
    watch = watch if watch is not None and world.is_first else Watch()
    place = Path(out) if out is not None else Path("runs") / Path(folder).resolve().name
    limit = Budget(MINUTES if minutes is None and steps is None else minutes, steps)
    rules.check_settings(config or {})
    start = starts.full_name(start)
    if start != AUTO:
        starts.find_start(start)  # or an error, before the folder is scanned
    device = own_device(devices)
    gpu = device.type == "cuda"
    with removed_if_refused(place, world):
        with world.first_alone():
            if world.is_first:
                check_place(place)
            material = _material(Path(folder), place, watch)
            begun = _begin(material, place, start, watch, gpu=gpu)
        if begun.covers(limit.minutes, limit.steps, realign=realign, canary=canary):
            watch.note(
                f"The run in {place} is finished. Ask for more minutes or steps to extend it."
            )
            return _finished(place)
        plan = _plan(material, begun, limit, config or {}, gpu=gpu)
        for sentence in plan.reasons:
            watch.note(sentence)
        run = OwnTraining(material, begun, plan, limit, place, device, world, realign, canary)
        _train(run, watch, begin)
    return _finished(place)


# --- what there is to train on ---


@dataclass(frozen=True)
class SplitFolder:
    """A folder that was scanned and split."""

    scan: Scan
    split: Split
    cache: Path

    def read(self, indices: Sequence[int], size: int, channels: int = 3) -> ImageSet:
        return read(self.scan, indices, size, channels, self.cache)

    def realigned(self, checked: upright.Checked) -> SplitFolder:
        """The same folder, with crooked images straightened when they are read."""
        rows = range(len(self.scan.images))
        return replace(self, scan=realigned(self.scan, rows, checked.crooked))

    @property
    def as_found(self) -> Scan:
        images = tuple(replace(image, angle=0.0) for image in self.scan.images)
        return replace(self.scan, images=images)

    def some(self, indices: Sequence[int], count: int) -> list[int]:
        """At most `count` of these indices, evenly spaced."""
        kept = min(count, len(indices))
        return [indices[i * len(indices) // kept] for i in range(kept)]


def _material(folder: Path, out: Path, watch: Watch) -> SplitFolder:
    def show(done: int, count: int) -> None:
        watch.show(Status("scanning the folder", done / count))

    scanned = scan(folder, show, notes=out / "cache" / "scan.jsonl")
    for one in scanned.skipped:
        watch.note(f"skipped {one.path}: {one.reason}")
    parts = split(scanned, min(max(SHARE, WANTED / len(scanned.images)), MOST_SHARE))
    groups = f" in {len(scanned.groups)} groups" if parts.by == "group" else ""
    unit = "whole groups" if parts.by == "group" else "single images"
    watch.note(
        f"{len(scanned.images):,} images{groups}: {len(parts.train):,} to train on, "
        f"{len(parts.held_out):,} held out ({unit})."
    )
    if parts.near_copies:
        watch.note(f"{parts.near_copies:,} have near copies, which are kept on one side.")
    for warning in (*scanned.warnings, *parts.warnings):
        watch.note(f"warning: {warning}")
    return SplitFolder(scanned, parts, out / "cache")


def _begin(material: SplitFolder, out: Path, start: str, watch: Watch, *, gpu: bool) -> Begun:
    """The run in the folder, or a new one with the given start or the best one."""
    begun = read_begun(out)
    if begun is not None:
        check_same(begun, material.scan, material.split, out)
        if start not in (AUTO, begun.start):
            raise ValueError(
                f"The run in {out} was begun from {begun.start}, and --start says {start}. Leave "
                "it out to go on, or train in a new folder."
            )
        return begun
    chosen = ""
    if start == AUTO:
        start, chosen = _best_start(material, watch, gpu=gpu)
        watch.note(chosen)
    begun = Begun(
        folder=str(material.scan.folder.resolve()),
        images=digest(material.scan),
        held_out=tuple(material.scan.images[i].path for i in material.split.held_out),
        by=material.split.by,
        start=start,
        chosen=chosen,
    )
    write_begun(out, begun)
    return begun


def _best_start(material: SplitFolder, watch: Watch, *, gpu: bool) -> tuple[str, str]:
    rows = material.some(material.split.train, starts.PROBED)
    trials = []
    for number, name in enumerate(starts.CANDIDATES):
        watch.show(Status("trying the pretrained models", number / len(starts.CANDIDATES)))
        trials.append(starts.probe(name, partial(material.read, rows)))
    return starts.best_start(trials, gpu=gpu)


def _plan(
    material: SplitFolder, begun: Begun, limit: Budget, config: RecipeFields, *, gpu: bool
) -> ChosenRecipe:
    start = starts.find_start(begun.start)
    count = len(material.split.train)
    return rules.plan(material.scan, material.split.by, count, start, limit, config, gpu=gpu)


# --- training ---


@dataclass(frozen=True)
class OwnTraining:
    """Everything that a training run needs."""

    material: SplitFolder
    begun: Begun
    plan: ChosenRecipe
    limit: Budget
    out: Path
    device: torch.device
    world: World
    realign: bool
    canary: bool

    @property
    def split(self) -> Split:
        return self.material.split

    def images(self, indices: Sequence[int]) -> ImageSet:
        recipe = self.plan.recipe
        return self.material.read(indices, recipe.parent_size, recipe.model.channels)


def _train(run: OwnTraining, watch: Watch, begin: float) -> None:
    """Trains, and measures in the first process; the time limit counts from `begin`."""
    watch.show(Status("reading images", 0.0))
    view_seconds = budgets.seconds_a_view(build(run.plan.recipe.model).eval(), run.device)
    checked = _checked(run, view_seconds, watch)
    if run.realign:
        run = replace(run, material=run.material.realigned(checked))
    images, held_out = (run.images(rows) for rows in (run.split.train, run.split.held_out))
    fit = _fit(run, images, held_out)
    end = budgets.ending(len(held_out), view_seconds, run.limit)
    fit.minutes = budgets.training_minutes(run.limit, time.monotonic() - begin, end)
    follow = _Following(watch, fit)
    fit.run(follow.progress, follow.validation)
    if run.world.is_first:
        _measure(run, fit, held_out, end, checked, watch)
    run.world.wait()


def _checked(run: OwnTraining, view_seconds: float, watch: Watch) -> upright.Checked:
    """The training images that are not upright, if there is time to check."""
    scan, batch = run.material.scan, run.plan.recipe.batch
    affordable = upright.is_affordable(len(scan.images), view_seconds, run.limit, batch)
    start = starts.find_start(run.begun.start)
    # From scratch, the few steps that a check gets would teach the networks too little.
    if not (run.realign or (affordable and start is not None)):
        watch.note(
            "The training images are not checked for being upright; --realign checks and corrects "
            "them, but takes longer."
        )
        return upright.Checked()
    with run.world.first_alone():
        checked = upright.check(
            run.plan.recipe,
            run.images(range(len(scan.images))),
            run.out,
            run.limit,
            start=None if start is None else start.stem,
            device=run.device,
            thorough=run.realign,
            on_progress=lambda done: watch.show(Status("looking for crooked images", done)),
        )
    if not checked.images:
        watch.note("The networks are too unsure to tell whether the images are upright.")
    elif checked.crooked:
        what = "corrected" if run.realign else "listed in the report; --realign corrects"
        count = len(checked.crooked)
        subject = "1 image is" if count == 1 else f"{count:,} images are"
        watch.note(f"{subject} not upright: {what}.")
    return checked


def _fit(run: OwnTraining, images: ImageSet, held_out: ImageSet) -> Fit:
    start = starts.find_start(run.begun.start)
    return Fit(
        run.plan.recipe,
        images,
        run.out,
        device=run.device,
        start=None if start is None else start.stem,
        held_out=held_out.select(run.material.some(range(len(held_out)), VALIDATED)),
        validations=VALIDATIONS,
        validate_start=start is not None,
        log_every=rules.ENDLESS,
        log_seconds=LOG_SECONDS,
        world=run.world,
    )


def _measure(
    run: OwnTraining,
    fit: Fit,
    held_out: ImageSet,
    end: budgets.Ending,
    checked: upright.Checked,
    watch: Watch,
) -> None:
    summary = finish(
        run.out,
        held_out.select(run.material.some(range(len(held_out)), end.images)),
        training_images=len(fit.images),
        by=run.split.by,
        licence=starts.licence(starts.find_start(run.begun.start)),
        seeds=end.seeds,
        lines=fit.folder.lines(),
        skipped=run.material.scan.skipped,
        crooked=_pictures(run, checked) if checked.crooked else (),
        unfit=0 if run.realign else len(checked.crooked),
        checked=checked.images,
        canary=run.canary,
        start=fit.start,
        device=run.device,
        show=lambda stage, done: watch.show(Status(stage, done)),
    )
    limit = run.limit
    done = replace(run.begun, minutes=limit.minutes, steps=limit.steps, summary=summary)
    write_begun(run.out, replace(done, realigned=run.realign, canary=run.canary))


def _pictures(run: OwnTraining, checked: upright.Checked) -> tuple[CrookedImage, ...]:
    """The crooked images as they are in the folder, corrected or not."""
    before = replace(run, material=replace(run.material, scan=run.material.as_found))
    return crooked_images(checked.crooked, before.images(range(len(run.material.scan.images))))


def _finished(out: Path) -> TrainedRun:
    begun = read_begun(out)
    return TrainedRun(out, read_card(out / "model.json"), () if begun is None else begun.summary)


class _Following:
    """Combines the reports of the training loop into one status."""

    def __init__(self, watch: Watch, fit: Fit) -> None:
        self.watch, self.fit = watch, fit
        self.held_out: float | None = None

    def progress(self, progress: Progress) -> None:
        left = progress.seconds_left
        spent = self.fit.at.seconds
        self.watch.show(
            Status(
                "training",
                spent / max(spent + left, 1e-9),
                progress.step,
                progress.circle_loss,
                self.held_out,
                left,
            )
        )

    def validation(self, line: MetricsLine) -> None:
        self.held_out = float(line["held_out"]["mean"])
