"""A worker process: it reads batches from standard input and writes outcomes to standard output.

Everything that can crash, hang or exhaust the memory happens here. The worker reports each file
before it opens it, so the parent knows which file killed it. If the parent dies, the next report
fails and the worker stops.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from PIL import Image

from radialbeams import images, zoo
from radialbeams.batch import system
from radialbeams.batch.attributes import AttributesError, check_links, check_writable
from radialbeams.batch.job import JobSettings
from radialbeams.batch.landing import OutputError, discard, stage, writing_in
from radialbeams.batch.late_syncs import LateSyncs
from radialbeams.batch.messages import WorkerMessage
from radialbeams.batch.outcome import Outcome, decided_outcome, outcome_of
from radialbeams.batch.plan import Item
from radialbeams.batch.previews import dial_of, thumbnail
from radialbeams.batch.processing import (
    is_written,
    lost_metadata,
    output_of,
    undo_for,
    unless_raw,
)
from radialbeams.batch.sources import read_unchanged, refusal, stamp
from radialbeams.canonicalizer import Canonicalizer, Look
from radialbeams.files import sha256
from radialbeams.images import ImageError, SeveralFrames
from radialbeams.posterior import Answer

# CPU seconds that one file may take: three, and one more for every 8,000 bytes, up to a minute.
# A decoder that needs longer for a small file is in an endless loop.
SECONDS, BYTES_A_SECOND, MOST_SECONDS = 3.0, 8_000, 60.0
# CPU seconds for each call of the model, plus for each view in it.
MODEL_SECONDS, VIEW_SECONDS = 60.0, 1.0

Report = Callable[[WorkerMessage], None]


class Worker:
    """Processes a batch in three steps: all views, one call of the model, all outputs.

    An output is synced to disk while the next ones are computed; the batch ends when all are.
    """

    def __init__(self, job: JobSettings, report: Report) -> None:
        self.job = job
        self.canonicalizer = Canonicalizer(
            job.model, threads=1, refine=job.refine, limits=job.limits
        )
        self._report = report
        self._syncs = LateSyncs()
        self._stamps: dict[str, str | None] = {}  # of the files whose views were made, by path
        self._looks: dict[str, Look] = {}  # the looks without their views, by path

    def batch(self, items: list[Item], thumbnails: int) -> list[Outcome]:
        self._stamps.clear()
        self._looks.clear()
        early: list[Outcome | None] = []  # the outcomes of files that the model need not see
        looks: list[Look] = []
        for number, item in enumerate(items):
            self._begin_file(number, item)
            outcome, look = self._look(item)
            early.append(outcome)
            if look is not None:
                looks.append(look)
        answers = iter(self._answers(looks))
        outcomes = []
        for number, (item, outcome) in enumerate(zip(items, early, strict=True)):
            if self.job.turns:
                self._begin_file(number, item)
            outcomes.append(
                outcome or self._outcome(item, next(answers), previews=number < thumbnails)
            )
        system.limit_cpu(0)
        pairs = zip(items, outcomes, strict=True)
        return [self._on_disk(number, *pair) for number, pair in enumerate(pairs)]

    def _answers(self, looks: list[Look]) -> list[Answer]:
        if not looks:
            return []
        count = sum(look.view is not None for look in looks) * self.job.refine
        system.limit_cpu(MODEL_SECONDS + VIEW_SECONDS * count)
        self._report({"model": count})
        return self.canonicalizer.answers_from_looks(looks)

    def _look(self, item: Item) -> tuple[Outcome | None, Look | None]:
        """An outcome if there is nothing to estimate, else what the model needs of the image."""
        keeps_existing = not (self.job.in_place or self.job.overwrite)
        if keeps_existing and item.out is not None and os.path.lexists(item.out):
            return Outcome(item.path, item.out, action="exists"), None
        if reason := item.error or refusal(item.path):
            return Outcome(item.path, error=reason), None
        if self.job.turns:
            self._stamps[item.path] = stamp(item.path)
        try:
            look = self.canonicalizer.look(
                item.path, first_frame=self.job.first_frame, framed=self.job.turns
            )
            self._looks[item.path] = look._replace(view=None, ends=None)
            return None, look
        except SeveralFrames:
            return Outcome(item.path, action="skipped", reason="several frames"), None
        except (ImageError, MemoryError) as error:
            return Outcome(item.path, error=self._sentence(error)), None

    def _outcome(self, item: Item, answer: Answer, *, previews: bool) -> Outcome:
        outcome = outcome_of(item.path, item.out, answer)
        try:
            if not self.job.turns:
                return outcome
            return self._write_output(outcome, answer, item.part, previews=previews)
        except (ImageError, OutputError, AttributesError, OSError, MemoryError) as error:
            return Outcome(item.path, error=self._sentence(error))

    def _write_output(
        self, outcome: Outcome, answer: Answer, part: str | None, *, previews: bool
    ) -> Outcome:
        """Writes the output under a temporary name; the parent moves it to its place."""
        # The stamp ensures that the file turned here is the file that the model saw, and the file
        # that the parent replaces.
        source = self._stamps.pop(outcome.path)
        before = read_unchanged(outcome.path, source, self.job.limits)
        look = self._looks.pop(outcome.path)
        undo = undo_for(answer, look.frame, self.job, outcome.path, look.around)
        undo = unless_raw(undo, before, self.job)
        after, method = output_of(before, undo, self.job)
        outcome = decided_outcome(outcome, undo, method)
        if outcome.action == "turned":
            outcome = replace(outcome, lost=lost_metadata(before, after, self.job))
        if previews:
            outcome = self._with_previews(outcome, answer, before, after)
        if outcome.out is None or part is None or not self._needs_output(outcome, before, after):
            return outcome
        in_place = self.job.in_place
        if in_place and not self.job.force:
            check_links(outcome.out)
            check_writable(outcome.out)
        digest = sha256(after)
        stage(
            after,
            outcome.out,
            part,
            like=outcome.path,
            in_place=in_place,
            force=self.job.force,
            sync=partial(self._syncs.begin, part),
        )
        return replace(outcome, sha256=digest, source=source if in_place else None)

    def _on_disk(self, number: int, item: Item, outcome: Outcome) -> Outcome:
        """The outcome once its output is on the disk, or the error of the disk."""
        if outcome.sha256 is None or outcome.out is None or item.part is None:
            return outcome  # nothing was written
        if not self._syncs.has_ended_well(item.part):
            self._report({"at": number})  # the parent waits as long for this file as for any other
        try:
            with writing_in(Path(outcome.out).parent):
                self._syncs.wait(item.part)
        except (OutputError, OSError, MemoryError) as error:
            discard(item.part)
            return Outcome(item.path, error=self._sentence(error))
        return outcome

    def _needs_output(self, outcome: Outcome, before: bytes, after: bytes) -> bool:
        if self.job.in_place:
            return after != before
        return is_written(outcome.action, self.job)

    def _with_previews(
        self, outcome: Outcome, answer: Answer, before: bytes, after: bytes
    ) -> Outcome:
        """Adds what a report shows: the posterior, and one thumbnail or, if turned, two."""
        first = thumbnail(before, self.job)
        second = None if after == before else thumbnail(after, self.job)
        return replace(outcome, before=first, after=second, dial=dial_of(answer))

    def _sentence(self, error: Exception) -> str:
        if isinstance(error, MemoryError):
            return str(images.out_of_memory(self.job.limits))
        return f"{error.strerror}." if isinstance(error, OSError) and error.strerror else str(error)

    def _begin_file(self, number: int, item: Item) -> None:
        """Reports a file and limits its CPU time, so that no decoder can run forever."""
        system.limit_cpu(seconds_for(item.path))
        self._report({"at": number})


def seconds_for(path: str) -> float:
    """The CPU seconds that a file may take, by its size."""
    try:
        size = os.path.getsize(path)
    except OSError:
        size = 0
    return min(SECONDS + size / BYTES_A_SECOND, MOST_SECONDS)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    # Libraries that print to standard output must not interleave with the messages.
    messages = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def report(message: WorkerMessage) -> None:
        messages.write(json.dumps(message) + "\n")
        messages.flush()

    job = JobSettings.from_fields(json.loads(sys.stdin.readline()))
    Image.MAX_IMAGE_PIXELS = None  # `job.limits` applies instead
    system.limit_memory(job.limits.memory)
    try:
        worker = Worker(job, report)
    except MemoryError:
        report({"broken": "The model needs more memory than --max-memory allows. Raise it."})
        return
    except ValueError as error:  # the model is unusable, for every other worker too
        report({"broken": str(error)})
        return
    report({"ready": True})
    try:
        for line in sys.stdin:
            order = json.loads(line)
            outcomes = worker.batch([Item(*item) for item in order["items"]], order["thumbnails"])
            report({"outcomes": [outcome.fields() for outcome in outcomes]})
    except zoo.DamagedModel as error:  # another worker would get the same outputs
        report({"broken": str(error)})
    except BrokenPipeError:
        os._exit(1)  # the parent is gone


if __name__ == "__main__":
    main()
