"""Carries out a plan: with a journal if files are written, without one otherwise."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import radialbeams
from radialbeams import zoo
from radialbeams.batch.bounds import Bounds
from radialbeams.batch.job import JobSettings, RecordedSettings, settings_of_older
from radialbeams.batch.journal import Journal
from radialbeams.batch.landing import Rules, land, new_token, part_of, stage
from radialbeams.batch.locks import JournalError, wait_for
from radialbeams.batch.outcome import Outcome, decided_outcome, outcome_of
from radialbeams.batch.plan import BATCH, Plan, batches
from radialbeams.batch.pool import WorkerPool
from radialbeams.batch.processing import is_written, output_of, undo_for, unless_raw
from radialbeams.batch.walk import SkippedFiles
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.files import sha256
from radialbeams.images import ImageError
from radialbeams.limits import Limits


@dataclass(frozen=True)
class BatchRun:
    """A run in progress. `outcomes` come in plan order and include those of an earlier start."""

    outcomes: Generator[Outcome, None, None]
    files: int | None = None  # None if the plan is made during the run
    done_before: int = 0  # files that an earlier start processed
    added: int = 0  # files that appeared after the plan was made; the next run reads them
    # Files in the folders that are not read, counted by kind; complete once `outcomes` is.
    left_out: Counter[str] = field(default_factory=Counter)


def piped(data: bytes, job: JobSettings, path: str, out: Path | None) -> tuple[Outcome, bytes]:
    """Processes one image given as bytes; returns its outcome and the resulting bytes."""
    if out is not None and out.exists() and not job.overwrite:
        return Outcome(path, str(out), action="exists"), data
    try:
        canonicalizer = Canonicalizer(job.model, refine=job.refine, limits=job.limits)
        (answer,), (look,) = canonicalizer.answers_and_looks([data], first_frame=job.first_frame)
        outcome = outcome_of(path, None if out is None else str(out), answer)
        if not job.turns:
            return outcome, data
        undo = unless_raw(undo_for(answer, look.frame, job, path, look.around), data, job)
        after, method = output_of(data, undo, job)
    except ImageError as error:
        return Outcome(path, error=str(error)), data
    outcome = decided_outcome(outcome, undo, method)
    if out is not None and job.writes and is_written(outcome.action, job):
        outcome = _written(after, outcome, str(out), Rules(overwrite=job.overwrite))
    return outcome, after


def _written(data: bytes, outcome: Outcome, out: str, rules: Rules) -> Outcome:
    part = part_of(out, new_token())
    stage(data, out, part)
    staged = replace(outcome, sha256=sha256(data))
    return replace(land(staged, part, rules), sha256=None)


@contextmanager
def unjournaled(job: JobSettings, plan: Plan, workers: int) -> Iterator[BatchRun]:
    """A run that writes no files, so there is nothing to resume."""
    # Going through a plan with outputs raises its errors before the run starts.
    files = sum(1 for _ in plan.items()) if plan.writes else None
    skipped = SkippedFiles()
    with closing(WorkerPool(job, workers)) as pool:
        batches_of_outcomes = pool.outcomes(enumerate(batches(plan.items(skipped))))
        outcomes = (outcome for batch in batches_of_outcomes for outcome in batch)
        yield BatchRun(outcomes, files, left_out=skipped.left_out)


@contextmanager
def journaled(
    job: JobSettings, plan: Plan, workers: int, *, fresh: bool = False
) -> Iterator[BatchRun]:
    """A run with a journal, which is removed if the block succeeds and kept if it does not."""
    zoo.verified_onnx(zoo.find(job.model))  # before any file is created
    with closing(_journal(job, plan, fresh)) as journal:
        try:
            run = _begun(job, plan, workers, journal)
            with closing(run.outcomes):
                yield run
        except BaseException:
            if not (journal.is_resumed or journal.done_batches):  # there is nothing to resume
                journal.finish()
            raise
        journal.finish()


def _journal(job: JobSettings, plan: Plan, fresh: bool) -> Journal:
    bounds = Bounds(plan)
    home, *others = plan.roots
    return Journal(
        home,
        _settings(job, plan),
        fresh=fresh,
        others=others,
        rules=Rules(job.in_place, job.overwrite, bounds.hold, job.backup),
        names=bounds.name,
        update=partial(_updated, job),
    )


def _begun(job: JobSettings, plan: Plan, workers: int, journal: Journal) -> BatchRun:
    """Makes the plan, or reads it with the outcomes of an earlier start."""
    skipped = SkippedFiles()
    start = journal.recover() if journal.is_resumed else 0
    paths = (item.path for item in plan.files(skipped))
    added = journal.added(paths, plan.place) if journal.is_resumed else 0
    files = journal.fix_plan(plan.items(skipped))
    if job.in_place:
        below = wait_for(folder for folder in skipped.runs if not journal.is_in(folder))
        _check_not_turned(journal, below)
    outcomes = _carried_out(job, journal, start, workers)
    return BatchRun(outcomes, files, min(start * BATCH, files), added, skipped.left_out)


def _check_not_turned(journal: Journal, below: Path | None) -> None:
    """Refuses to turn files in place if an overlapping run, which ended first, may have done so."""
    earlier = journal.waited_for or below
    if earlier is not None and not journal.is_resumed:
        raise JournalError(
            f"Another run was working in {earlier} and may have turned these files already. "
            "Check them, and run the command again if necessary."
        )


def _carried_out(
    job: JobSettings, journal: Journal, start: int, workers: int
) -> Generator[Outcome, None, None]:
    try:
        with closing(WorkerPool(job, workers, lock=journal.lock)) as pool:
            for outcomes in pool.outcomes(journal.failed()):
                journal.record(outcomes, again=True)
            for outcomes in journal.done():
                yield from outcomes
            for outcomes in pool.outcomes(journal.batches(start)):
                yield from journal.record(outcomes)
    except BaseException:
        journal.recover()  # so that a stopped run leaves nothing half done
        raise


def _updated(job: JobSettings, noted: RecordedSettings) -> RecordedSettings:
    """Converts the settings recorded by an older version to those of this version."""
    defaults = {**_plan_settings(Plan(())), **asdict(JobSettings(job.model))}
    settings = settings_of_older(noted, job, {**defaults, "limits": asdict(Limits())})
    return {**settings, "corrections": _listed(settings["corrections"])}


def _listed(corrections: Any) -> Any:
    """Tuples as lists, which is what JSON returns for them."""
    return [list(pair) for pair in corrections]


def _plan_settings(plan: Plan) -> RecordedSettings:
    """The settings that decide which files are read."""
    return {
        "recursive": plan.recursive,
        "include": list(plan.include),
        "exclude": list(plan.exclude),
    }


def _settings(job: JobSettings, plan: Plan) -> RecordedSettings:
    """Everything that must be equal for a command to resume a run."""
    paths = [*plan.sources, str(plan.folder or plan.file or "")]
    relative = not all(os.path.isabs(path) for path in paths if path)
    return {
        "version": radialbeams.__version__,
        "inputs": list(plan.sources),
        "output": paths[-1] or None,
        "working folder": os.getcwd() if relative else None,
        **_plan_settings(plan),
        **asdict(replace(job, limits=Limits())),  # raised limits may let failed files through
        "corrections": _listed(job.corrections),
        "weights": zoo.find(job.model).card.sha256.onnx,
    }
