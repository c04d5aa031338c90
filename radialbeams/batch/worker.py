"""One worker: a process that takes batches from its standard input and answers on its output.

It does what can go wrong. It says which file it is at before it touches it, so that if it dies its
parent knows why; and if its parent dies, saying so fails and it stops as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radialbeams.batch.job import Job, Outcome, made, outcome_of, refusal, thumbnail
from radialbeams.batch.landing import OutputError, stage
from radialbeams.batch.plan import Item
from radialbeams.batch.sources import read_unchanged, stamp
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.images import ImageError
from radialbeams.posterior import Answer

# Seconds of computing that one file may take: a second more for so many bytes, up to a minute.
# A small file that would take longer has a decoder run in circles.
SECONDS, BYTES_A_SECOND, MOST_SECONDS = 3.0, 8_000, 60.0
PATIENCE = 60  # seconds by the clock, for what does not even compute

Say = Callable[[dict[str, Any]], None]


class Worker:
    """The steps of one batch: all views, all answers in one call of the model, all outputs."""

    def __init__(self, job: Job, say: Say) -> None:
        self.job = job
        self.canonicalizer = Canonicalizer(job.model, threads=1, refine=job.refine)
        self._say = say
        self._stamps: dict[str, str | None] = {}  # of the files that were judged

    def batch(self, items: list[Item], thumbnails: int) -> list[Outcome]:
        self._stamps.clear()
        found: list[Outcome | None] = []
        views: list[NDArray[np.float32]] = []
        for number, item in enumerate(items):
            self._at(number, item)
            outcome, view = self._view(item)
            found.append(outcome)
            if view is not None:
                views.append(view)
        self._at_none()
        answers = iter(self.canonicalizer.answers_from_views(np.stack(views)) if views else ())
        outcomes = []
        for number, (item, outcome) in enumerate(zip(items, found, strict=True)):
            if self.job.turns:
                self._at(number, item)
            outcomes.append(
                outcome or self._outcome(item, next(answers), small=number < thumbnails)
            )
        self._at_none()
        return outcomes

    def _view(self, item: Item) -> tuple[Outcome | None, NDArray[np.float32] | None]:
        """Either an outcome already, or a view to be judged."""
        kept = not (self.job.in_place or self.job.overwrite)
        if kept and item.out is not None and os.path.lexists(item.out):
            return Outcome(item.path, item.out, action="exists"), None
        if reason := item.error or refusal(item.path):
            return Outcome(item.path, error=reason), None
        if self.job.turns:
            self._stamps[item.path] = stamp(item.path)
        try:
            return None, self.canonicalizer.view(item.path, first_frame=self.job.first_frame)
        except ImageError as error:
            return Outcome(item.path, error=str(error)), None

    def _outcome(self, item: Item, answer: Answer, *, small: bool) -> Outcome:
        outcome = outcome_of(item.path, item.out, answer)
        try:
            if not self.job.turns:
                return outcome
            return self._turned(outcome, answer, item.part, small=small)
        except (ImageError, OutputError, OSError) as error:
            return Outcome(item.path, error=_sentence(error))

    def _turned(
        self, outcome: Outcome, answer: Answer, part: str | None, *, small: bool
    ) -> Outcome:
        """The output is made, under a name of its own; the parent moves it to its place."""
        # What is turned is what was judged, and what the parent will find before it replaces it.
        source = self._stamps.pop(outcome.path)
        before = read_unchanged(outcome.path, source)
        action, after = made(before, answer, self.job)
        outcome = replace(outcome, action=action)
        if small:
            shown = thumbnail(before, self.job), thumbnail(after, self.job)
            outcome = replace(outcome, before=shown[0], after=shown[1])
        in_place = self.job.in_place
        if outcome.out is None or part is None or (in_place and after == before):
            return outcome
        stage(after, outcome.out, part, like=outcome.path if in_place else None)
        digest = hashlib.sha256(after).hexdigest()
        return replace(outcome, sha256=digest, source=source if in_place else None)

    def _at(self, number: int, item: Item) -> None:
        """A file that takes too long ends the worker, even inside a decoder that never returns."""
        signal.setitimer(signal.ITIMER_PROF, seconds_for(item.path))
        signal.alarm(PATIENCE)
        self._say({"at": number})

    def _at_none(self) -> None:
        """The model may take its time."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        self._say({"at": None})


def seconds_for(path: str) -> float:
    try:
        size = os.path.getsize(path)
    except OSError:
        size = 0
    return min(SECONDS + size / BYTES_A_SECOND, MOST_SECONDS)


def _sentence(error: Exception) -> str:
    return f"{error.strerror}." if isinstance(error, OSError) and error.strerror else str(error)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    # What a library prints must not come between the messages.
    messages = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(message: dict[str, Any]) -> None:
        messages.write(json.dumps(message) + "\n")
        messages.flush()

    job = Job(**json.loads(sys.stdin.readline()))
    try:
        worker = Worker(job, say)
    except ValueError as error:  # of the model: no other worker would do better
        say({"broken": str(error)})
        return
    try:
        for line in sys.stdin:
            order = json.loads(line)
            outcomes = worker.batch([Item(*item) for item in order["items"]], order["thumbnails"])
            say({"outcomes": [asdict(outcome) for outcome in outcomes]})
    except BrokenPipeError:
        os._exit(1)  # the parent is gone


if __name__ == "__main__":
    main()
