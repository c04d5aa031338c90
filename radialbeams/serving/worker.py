"""A worker process of the service: it reads files from one pipe and writes results to another.

Everything that can crash, hang or exhaust the memory happens here. If a file kills this process,
the service starts another one.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams import images
from radialbeams.batch import system
from radialbeams.batch.processing import output_of, undo_for
from radialbeams.canonicalizer import Canonicalizer, Look
from radialbeams.decisions import Decision, by_hand, nearest_quarter
from radialbeams.images import ImageError
from radialbeams.limits import MIB
from radialbeams.posterior import Answer, rounded, signed
from radialbeams.serving import frames
from radialbeams.serving.heat import heat
from radialbeams.serving.options import FileTask
from radialbeams.serving.records import Applied, FileRecord, Result
from radialbeams.serving.settings import ServiceSettings
from radialbeams.undoing import Undo

LARGEST = 4  # the limit for a result, as a multiple of the limit for a file
Floats = NDArray[np.float32]


class ServiceWorker:
    """Processes a batch in three steps: all views, one call of each model, all turned files."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self._models = {
            name: Canonicalizer(name, threads=1, limits=settings.limits)
            for name in settings.offered
        }
        for model in self._models.values():
            _warm(model)

    def batch(self, tasks: list[FileTask], files: list[bytes]) -> list[Result]:
        looks = [self._look(task, data) for task, data in zip(tasks, files, strict=True)]
        answers = self._answers(tasks, looks)
        results: list[Result] = []
        for task, data, look, answer in zip(tasks, files, looks, answers, strict=True):
            results.append(
                (look, b"") if isinstance(look, dict) else self._result(task, data, look, answer)
            )
        return results

    def _look(self, task: FileTask, data: bytes) -> Look | FileRecord | None:
        """What the model needs of the image, an error record, or None if no model is needed."""
        if task.turns and task.angle is not None:
            return None
        try:
            # The estimated angle, if it is all that is asked for, does not depend on the frame.
            framed = task.turns or task.snap != "none"
            return self._models[task.model].look(data, first_frame=task.first_frame, framed=framed)
        except (ImageError, MemoryError) as error:
            return self._refused(error)

    def _answers(self, tasks: list[FileTask], looks: list[Any]) -> list[Answer | None]:
        """The estimates, with one call for each model that the batch needs."""
        estimates: list[Answer | None] = [None] * len(tasks)
        for name, model in self._models.items():
            rows = [
                n
                for n, task in enumerate(tasks)
                if task.model == name and isinstance(looks[n], Look)
            ]
            if rows:
                answers = model.answers_from_looks([looks[n] for n in rows])
                for n, answer in zip(rows, answers, strict=True):
                    estimates[n] = answer
        return estimates

    def _result(
        self, task: FileTask, data: bytes, look: Look | None, answer: Answer | None
    ) -> Result:
        try:
            if answer is None or look is None:
                return self._turned_by_hand(task, data)
            record = self._record(task, look, answer)
            if not task.turns:
                return record, b""
            job = task.job(self.settings)
            after, _ = output_of(data, undo_for(answer, look.frame, job, around=look.around), job)
            return self._sent(record, after)
        except (ImageError, MemoryError) as error:
            return self._refused(error), b""

    def _record(self, task: FileTask, look: Look, answer: Answer) -> FileRecord:
        decision = task.job(self.settings).decision(answer, look.around)
        quarter, probability = nearest_quarter(answer)
        record: FileRecord = {
            "angle_ccw": rounded(answer),
            "angle_signed": round(signed(rounded(answer)), 2),
            "confidence": _rounded(answer.confidence),
            "symmetry": answer.symmetry,
            "quarter": 90 * quarter,
            "quarter_confidence": _rounded(probability),
            "upright": _rounded(answer.upright),
            "kind": answer.kind,
            "model": task.model,
            "action": decision.action,
            "reason": decision.reason,
            "measure": decision.measure,
            "value": _rounded(decision.value),
            "threshold": decision.threshold,
            "applied": _applied(decision),
        }
        if task.posterior:
            mass = answer.posterior
            record["posterior"] = None if mass is None else [round(float(m), 5) for m in mass]
        if task.beams and look.view is not None:
            record["beams"] = heat(self._models[task.model], look.view)
        return record

    def _turned_by_hand(self, task: FileTask, data: bytes) -> Result:
        angle = round(float(task.angle or 0.0), 2) % 360
        job = task.job(self.settings)
        decision = by_hand(angle)
        record: FileRecord = {
            "angle_ccw": angle,
            "angle_signed": round(signed(angle), 2),
            "confidence": None,
            "symmetry": None,
            "quarter": None,
            "quarter_confidence": None,
            "upright": None,
            "model": None,
            "action": decision.action,
        }
        after, _ = output_of(data, Undo(decision, None, job.corners, job.fill), job)
        return self._sent(record, after)

    def _sent(self, record: FileRecord, data: bytes) -> Result:
        """The result, or an error if it is too large, since the service holds it in memory.

        Uncompressed formats turn small files into huge ones.
        """
        most = LARGEST * self.settings.max_file_size
        if len(data) <= most:
            return record, data
        message = (
            f"Expected a result of at most {most / MIB:,.0f} MiB; it has {len(data) / MIB:,.0f} "
            "MiB. Use a compressed format, or send a smaller image."
        )
        return {"error": {"code": "too_large", "message": message}}, b""

    def _refused(self, error: ImageError | MemoryError) -> FileRecord:
        if isinstance(error, MemoryError):
            error = images.out_of_memory(self.settings.limits)
        return {"error": {"code": "not_an_image", "message": error.for_clients}}


def _applied(decision: Decision) -> Applied | None:
    """How far `upright` rotates the picture, in the form of the command's JSON."""
    if decision.turn is None:
        return None
    return {"angle_ccw": round(-decision.turn, 2) % 360, "from": decision.source}


def _rounded(probability: float | None) -> float | None:
    return None if probability is None else round(probability, 4)


def _warm(model: Canonicalizer) -> None:
    """Runs the model once, so that no request waits for its first allocations."""
    model.answers([np.zeros((64, 64, 3), np.uint8)])


def main() -> None:
    # The service decides when to stop: it closes the pipe after the last batch.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Libraries that print to standard output must not interleave with the frames.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        run(sys.stdin.buffer, out)
    except BrokenPipeError:
        os._exit(1)  # the service is gone


def run(orders: BinaryIO, out: BinaryIO) -> None:
    first = frames.read(orders)
    if first is None:
        return
    fields = first[0]["settings"]
    settings = ServiceSettings(**{**fields, "models": tuple(fields["models"])})
    Image.MAX_IMAGE_PIXELS = None  # the limits in `settings` apply instead
    try:
        worker = ServiceWorker(settings)
    except (ValueError, MemoryError) as error:
        frames.write(out, {"broken": str(error) or "The models need more memory than there is."})
        return
    system.limit_memory(settings.max_memory)
    frames.write(out, {"ready": True})
    while (frame := frames.read(orders)) is not None:
        header, files = frame
        # The limit is for the whole batch: if it is exceeded, each file is tried again alone.
        system.limit_cpu(settings.seconds)
        results = worker.batch([FileTask(**fields) for fields in header["tasks"]], files)
        system.limit_cpu(0)
        frames.write(out, {"records": [r for r, _ in results]}, [data for _, data in results])


if __name__ == "__main__":
    main()
