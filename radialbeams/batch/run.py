"""A plan carried out: with a journal where files are written, without one where none are."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import radialbeams
from radialbeams import zoo
from radialbeams.batch.crew import Crew
from radialbeams.batch.job import Job, Outcome
from radialbeams.batch.journal import Journal
from radialbeams.batch.plan import BATCH, Plan, batches


@dataclass(frozen=True)
class Run:
    """`outcomes` come in plan order, those of an earlier start included."""

    outcomes: Iterator[Outcome]
    files: int
    done_before: int  # files that an earlier start had finished


@contextmanager
def unjournaled(job: Job, plan: Plan, workers: int) -> Iterator[Iterator[Outcome]]:
    """For a job that writes nothing: there is nothing to go on from."""
    with Crew(job, workers) as crew:
        yield (
            outcome
            for outcomes in crew.outcomes(batches(plan.items()))
            for outcome in outcomes
        )  # fmt: skip


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
    done = start
    for outcomes in journal.done():
        yield from outcomes
    try:
        with Crew(job, workers, lock=journal.lock) as crew:
            for outcomes in crew.outcomes(journal.batches(start), start):
                journal.record(outcomes)
                done += 1
                yield from outcomes
    finally:
        journal.clear_parts(done)


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
        "weights": zoo.find(job.model).card["sha256"]["onnx"],
    }
