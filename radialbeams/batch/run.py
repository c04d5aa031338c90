"""A plan carried out: with a journal where files are written, without one where none are."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import radialbeams
from radialbeams import zoo
from radialbeams.batch.crew import Crew
from radialbeams.batch.job import Job, Outcome, made, outcome_of
from radialbeams.batch.journal import Journal, part_of, stage
from radialbeams.batch.plan import BATCH, Plan, batches
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.images import ImageError


@dataclass(frozen=True)
class Run:
    """`outcomes` come in plan order, those of an earlier start included."""

    outcomes: Iterator[Outcome]
    files: int | None = None  # None where the plan is made as the run goes
    done_before: int = 0  # files that an earlier start had finished


def piped(data: bytes, job: Job, path: str, out: Path | None) -> tuple[Outcome, bytes]:
    """One picture whose bytes are here already, and what becomes of them."""
    if out is not None and out.exists() and not job.overwrite:
        return Outcome(path, str(out), action="exists"), data
    try:
        canonicalizer = Canonicalizer(job.model, refine=job.refine)
        (answer,) = canonicalizer.answers([data], first_frame=job.first_frame)
        outcome = outcome_of(path, None if out is None else str(out), answer)
        if not job.turns:
            return outcome, data
        action, after = made(data, answer, job)
    except ImageError as error:
        return Outcome(path, error=str(error)), data
    if out is not None and job.writes:
        stage(after, str(out))
        os.replace(part_of(str(out)), out)
    return replace(outcome, action=action), after


@contextmanager
def unjournaled(job: Job, plan: Plan, workers: int) -> Iterator[Run]:
    """For a job that writes nothing: there is nothing to go on from."""
    with Crew(job, workers) as crew:
        found = crew.outcomes(batches(plan.items()))
        yield Run(outcome for outcomes in found for outcome in outcomes)


@contextmanager
def journaled(job: Job, plan: Plan, workers: int, *, fresh: bool = False) -> Iterator[Run]:
    """The journal is forgotten when the block ends well, and kept when it does not."""
    with closing(Journal(plan.home, _settings(job, plan), fresh=fresh)) as journal:
        files = journal.fix_plan(plan.items())
        start = journal.recover()
        with closing(_carried_out(job, journal, start, workers)) as outcomes:
            yield Run(outcomes, files, min(start * BATCH, files))
        journal.finish()


def _carried_out(
    job: Job, journal: Journal, start: int, workers: int
) -> Generator[Outcome, None, None]:
    for outcomes in journal.done():
        yield from outcomes
    try:
        with Crew(job, workers, lock=journal.lock) as crew:
            for outcomes in crew.outcomes(journal.batches(start), start):
                journal.record(outcomes)
                yield from outcomes
    finally:
        journal.recover()  # stopped in the middle of things, too, nothing half done is left


def _settings(job: Job, plan: Plan) -> dict[str, Any]:
    """All that must be the same for a run to go on."""
    places = [*plan.sources, str(plan.folder or plan.file or "")]
    relative = not all(os.path.isabs(place) for place in places if place)
    return {
        "version": radialbeams.__version__,
        "inputs": list(plan.sources),
        "output": places[-1] or None,
        "working folder": os.getcwd() if relative else None,
        **asdict(job),
        "weights": zoo.find(job.model).card.get("sha256", {}).get("onnx"),
    }
