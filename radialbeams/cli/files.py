"""The verbs for files: upright, angle."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from radialbeams.cli import options as o
from radialbeams.cli import terminal
from radialbeams.cli.app import EXIT_CODES, app
from radialbeams.cli.models import free_name
from radialbeams.cli.progress import follow, leave, stoppable
from radialbeams.cli.scale import Cluster, turn_with_ray
from radialbeams.cli.terminal import talk
from radialbeams.escaping import as_json

if TYPE_CHECKING:
    from radialbeams.batch import Job, Plan
    from radialbeams.images import Corners
    from radialbeams.sheet import Sheet

STDIN = "-"
PIPE_SECONDS = 300.0  # for one image and the model


@app.command(epilog=EXIT_CODES)
def upright(
    context: typer.Context,
    paths: o.Paths,
    out: o.Out = None,
    in_place: o.InPlace = False,
    force: o.Force = False,
    overwrite: o.Overwrite = False,
    dry_run: o.DryRun = False,
    snap: o.Snap = None,
    exif: o.Exif = False,
    expand: o.Expand = False,
    crop: o.Crop = False,
    same_size: o.SameSize = False,
    fill: o.Fill = None,
    min_confidence: o.MinConfidence = None,
    min_angle: o.MinAngle = None,
    quality: o.Quality = None,
    format_: o.Format = None,
    report: o.Report = None,
    model: o.Model = None,
    refine: o.Refine = 1,
    first_frame: o.FirstFrame = False,
    workers: o.Workers = None,
    max_pixels: o.MaxPixels = o.MAX_PIXELS,
    max_memory: o.MaxMemory = o.MAX_MEMORY,
    max_file_size: o.MaxFileSize = o.MAX_FILE_SIZE,
    fresh: o.Fresh = False,
    json_: o.JsonLines = False,
    engine: o.EngineName = None,
    address: o.Address = None,
    column: o.Column = None,
) -> None:
    """Turns images upright. One that the model is unsure of is left as it is.

    Inputs are never touched without --in-place. Killed or stopped, the same command goes on, and
    what had failed is tried again.
    """
    from radialbeams import batch, sheet, zoo

    _check_colour(fill)
    _check_report(report)
    name = model or zoo.DEFAULT
    card = batch.thresholds_of(zoo.find(name).card)
    plan = _plan(
        # An engine makes a plan of its own, which may hold addresses.
        paths if engine is None else [],
        out if engine is None else None,
        format_,
        in_place=in_place,
        overwrite=overwrite,
        since=context.find_root().obj,
    )
    job = batch.Job(
        model=name,
        refine=refine,
        first_frame=first_frame,
        turns=True,
        writes=not dry_run,
        in_place=in_place,
        force=force,
        overwrite=overwrite,
        snap=snap is not None or exif,
        exif=exif,
        corners=_corners(expand, crop, same_size),
        fill=fill,
        min_confidence=card.confidence if min_confidence is None else min_confidence,
        min_angle=card.angle if min_angle is None else min_angle,
        # A confidence on the command line replaces both thresholds of the card.
        max_upright=card.upright if min_confidence is None else batch.MAX_UPRIGHT,
        quality=quality,
        format=plan.format,
        thumbnails=0 if report is None else sheet.PICTURES,
        limits=o.limits_of(max_pixels, max_memory, max_file_size),
    )
    _check_job(job)
    if engine is not None:
        cluster = Cluster(address, workers)
        with _usage():
            turn_with_ray(job, paths, out, cluster, column, fresh=fresh, json_=json_)
    elif address is not None or column is not None:
        raise typer.BadParameter("--address and --column need --engine ray.")
    elif STDIN in (*paths, out):
        _pipe(job, paths, plan, json_)
    else:
        _turn_all(job, plan, workers or _cores(), report, fresh=fresh, json_=json_)


@app.command(epilog=EXIT_CODES)
def angle(
    paths: o.Paths,
    model: o.Model = None,
    refine: o.Refine = 1,
    first_frame: o.FirstFrame = False,
    workers: o.Workers = None,
    max_pixels: o.MaxPixels = o.MAX_PIXELS,
    max_memory: o.MaxMemory = o.MAX_MEMORY,
    max_file_size: o.MaxFileSize = o.MAX_FILE_SIZE,
    json_: o.JsonLines = False,
) -> None:
    """Says how far images have been turned, counter-clockwise in degrees; writes nothing."""
    from radialbeams import batch, zoo

    job = batch.Job(
        model or zoo.DEFAULT,
        refine=refine,
        first_frame=first_frame,
        limits=o.limits_of(max_pixels, max_memory, max_file_size),
    )
    plan = batch.Plan(tuple(paths), writes=False)
    if STDIN in paths:
        _pipe(job, paths, plan, json_)
        return
    with stoppable(job), batch.unjournaled(job, plan, workers or _cores()) as run:
        counts = follow(run, job, plan, json_)
    for line in terminal.left_out(run.left_out):
        talk(line)
    leave(counts)


# --- many files ---


def _turn_all(
    job: Job, plan: Plan, workers: int, report: Path | None, *, fresh: bool, json_: bool
) -> None:
    from radialbeams import batch, sheet, zoo

    page = None if report is None else sheet.Sheet("Turned upright", snap=job.snap)
    started = time.monotonic()
    begin = partial(batch.journaled, fresh=fresh) if job.writes else batch.unjournaled
    with _usage(), stoppable(job), begin(job, plan, workers) as run:
        counts = follow(run, job, plan, json_, page)
        if page is not None and report is not None:
            # After a kill the page that is there may be this run's own.
            own = job.overwrite or run.done_before > 0
            _write(page, report if own else free_name(report), report)
    talk(terminal.summary(counts, time.monotonic() - started, job))
    talk(terminal.thresholds(job, zoo.find(job.model).card))
    for line in terminal.left_out(run.left_out):
        talk(line)
    leave(counts)


# --- one file through a pipe ---


def _pipe(job: Job, paths: list[str], plan: Plan, json_: bool) -> None:
    """From standard input, or to standard output, or both."""
    from radialbeams import batch
    from radialbeams.batch.system import deadline

    to_stdout = job.turns and plan.file is None
    if len(paths) > 1 or job.in_place or job.thumbnails or plan.folder is not None:
        raise typer.BadParameter("A pipe takes one image, to standard output or to one file.")
    if to_stdout and json_:
        raise typer.BadParameter("The image itself goes to standard output; leave out --json.")
    if to_stdout and sys.stdout.isatty():
        raise typer.BadParameter("Standard output is a terminal; send it to a file or say -o FILE.")
    data = _data(paths[0], job)
    with deadline(PIPE_SECONDS, "radialbeams: The image or the model took far too long."):
        outcome, after = batch.piped(data, job, paths[0], plan.file)
    if outcome.error is not None:
        talk(terminal.failure(outcome))
    elif to_stdout and job.writes:
        sys.stdout.buffer.write(after)
        sys.stdout.buffer.flush()
    elif not json_:
        terminal.say(terminal.HEADER)
        terminal.say(terminal.row(outcome, job))
    if json_:
        print(as_json(outcome.record(job.model)))
    leave(Counter([outcome.kind]))


def _data(path: str, job: Job) -> bytes:
    from radialbeams.batch import refusal
    from radialbeams.images import content_of

    if path == STDIN:
        return content_of(sys.stdin.buffer, job.limits)
    if reason := refusal(path):
        raise ValueError(f"{path}: {reason}")
    with open(path, "rb") as file:
        return content_of(file, job.limits)


# --- what was asked for ---


@contextmanager
def _usage() -> Iterator[None]:
    """Commands that contradict themselves, or an unfinished run, are wrong usage."""
    from radialbeams.batch import JournalError, PlanError

    try:
        yield
    except (JournalError, PlanError) as error:
        raise typer.BadParameter(str(error)) from error


def _plan(
    paths: list[str],
    out: str | None,
    format: o.FileFormat | None,
    *,
    in_place: bool,
    overwrite: bool,
    since: int | None,
) -> Plan:
    from radialbeams import batch

    name = None if format is None else o.ALIASES.get(format.value, format.value)
    with _usage():
        return batch.plan_for(
            paths,
            None if out == STDIN else out,
            in_place=in_place,
            overwrite=overwrite,
            format=name,
            since=since,
        )


def _check_job(job: Job) -> None:
    if job.exif and job.format not in (None, "jpeg"):
        raise typer.BadParameter(
            f"--exif sets a JPEG's tag, and the output would be {job.format.upper()}. Leave out "
            "one of the two, or say --snap 90 instead of --exif."
        )
    if job.force and not job.in_place:
        raise typer.BadParameter("--force needs --in-place. To replace outputs, use --overwrite.")
    if job.first_frame and job.in_place:
        raise typer.BadParameter(
            "--first-frame --in-place would delete all other frames. Name an output with -o."
        )


def _check_report(report: Path | None) -> None:
    if report is None:
        return
    if report.suffix.lower() != ".html":
        raise typer.BadParameter(f"{report} does not end with .html.", param_hint="--report")
    if report.is_dir():
        raise typer.BadParameter(f"{report} is a folder.", param_hint="--report")
    if not report.parent.is_dir() or not os.access(report.parent, os.W_OK):
        raise typer.BadParameter(
            f"{report.parent} is no folder that can be written in. Make it first.",
            param_hint="--report",
        )


def _write(page: Sheet, place: Path, wanted: Path) -> None:
    if place != wanted:
        talk(f"{wanted} exists; the report is {place}.")
    page.write(place)


def _corners(expand: bool, crop: bool, same_size: bool) -> Corners:
    if expand + crop + same_size > 1:
        raise typer.BadParameter("Say one of --expand, --crop and --same-size.")
    return "crop" if crop else "same" if same_size else "expand"


def _check_colour(fill: str | None) -> None:
    from PIL import ImageColor

    if fill in (None, "transparent"):
        return
    try:
        ImageColor.getrgb(str(fill))
    except ValueError as error:
        raise typer.BadParameter(
            f"{fill!r} is no colour; say white, #ff8800 or transparent.", param_hint="--fill"
        ) from error


def _cores() -> int:
    """Those that this process may use, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
