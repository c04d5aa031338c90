"""The commands for files: upright, angle."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from radialbeams.cli import checks, inputs, terminal
from radialbeams.cli import options as o
from radialbeams.cli.app import EXIT_CODES, app
from radialbeams.cli.inputs import STDIN
from radialbeams.cli.models import free_name
from radialbeams.cli.progress import follow, leave, stoppable
from radialbeams.cli.scale import RayOptions, turn_with_ray
from radialbeams.cli.terminal import print_message
from radialbeams.defaults import LOOKS
from radialbeams.escaping import as_json

if TYPE_CHECKING:
    from radialbeams.batch import JobSettings, Plan
    from radialbeams.sheet import ReportSheet

PIPE_SECONDS = 300.0  # the time limit for one image through a pipe, loading the model included


@app.command(epilog=EXIT_CODES)
def upright(
    context: typer.Context,
    paths: o.Paths = None,
    out: o.Out = None,
    in_place: o.InPlace = False,
    backup: o.Backup = False,
    force: o.Force = False,
    overwrite: o.Overwrite = False,
    dry_run: o.DryRun = False,
    explain: o.Explain = False,
    snap: o.Snap = o.SNAP_TO,
    exif: o.Exif = False,
    pixels: o.Pixels = False,
    expand: o.Expand = False,
    crop: o.Crop = False,
    same_size: o.SameSize = False,
    fill: o.Fill = None,
    min_confidence: o.MinConfidence = None,
    min_angle: o.MinAngle = None,
    quality: o.Quality = None,
    format_: o.Format = None,
    report: o.Report = None,
    corrections: o.Corrections = None,
    files_from: o.FilesFrom = None,
    recursive: o.Recursive = True,
    include: o.Include = None,
    exclude: o.Exclude = None,
    model: o.Model = None,
    refine: o.Refine = LOOKS,
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
    """Turns images upright. An image is left as it is if the model is unsure.

    Inputs are never changed without --in-place. If a run is killed or stopped, the same command
    resumes it and retries the files that failed.
    """
    from radialbeams import batch, sheet, zoo

    checks.check_colour(fill)
    checks.check_report(report)
    name = model or zoo.DEFAULT
    card = checks.card_of(name)
    corrected = inputs.read_corrections(corrections)
    # An engine makes its own plan, which may contain URLs.
    planned = inputs.sources(paths, files_from, list(corrected)) if engine is None else []
    with checks.usage():
        plan = batch.plan_for(
            planned,
            None if out == STDIN or engine is not None else out,
            in_place=in_place,
            overwrite=overwrite,
            format=None if format_ is None else o.ALIASES.get(format_.value, format_.value),
            since=context.find_root().obj,
            wanted=batch.FileFilter(recursive, tuple(include or ()), tuple(exclude or ())),
            only=corrected if corrections else None,
        )
    job = batch.JobSettings(
        model=name,
        refine=refine,
        first_frame=first_frame,
        turns=True,
        writes=not (dry_run or explain),
        in_place=in_place,
        backup=backup,
        force=force,
        overwrite=overwrite,
        copies=plan.folder is not None or plan.file is not None,
        snap="90" if exif else snap.value,
        exif=exif,
        pixels=pixels,
        corners=checks.corners_of(expand, crop, same_size),
        fill=fill,
        quality=quality,
        format=plan.format,
        thumbnails=0 if report is None else sheet.PICTURES,
        corrections=inputs.corrections_for(plan, corrected),
        limits=o.limits_of(max_pixels, max_memory, max_file_size),
    )
    job = batch.with_thresholds(job, card, min_confidence, min_angle)
    checks.check_job(job)
    if engine is not None:
        with checks.usage():
            cluster = RayOptions(address, workers)
            turn_with_ray(job, paths or [], out, cluster, column, fresh=fresh, json_=json_)
        return
    if address is not None or column is not None:
        raise typer.BadParameter("--address and --column need --engine ray.")
    if STDIN in (*plan.sources, out):
        _pipe(job, plan, json_=json_, explain=explain)
        return
    checks.check_plan(plan, job)
    run = _turn_all if not explain else _explain_all
    run(job, plan, workers or _cores(), report, fresh=fresh, json_=json_)


@app.command(epilog=EXIT_CODES)
def angle(
    paths: o.Paths = None,
    files_from: o.FilesFrom = None,
    recursive: o.Recursive = True,
    include: o.Include = None,
    exclude: o.Exclude = None,
    model: o.Model = None,
    refine: o.Refine = LOOKS,
    first_frame: o.FirstFrame = False,
    workers: o.Workers = None,
    max_pixels: o.MaxPixels = o.MAX_PIXELS,
    max_memory: o.MaxMemory = o.MAX_MEMORY,
    max_file_size: o.MaxFileSize = o.MAX_FILE_SIZE,
    json_: o.JsonLines = False,
) -> None:
    """Prints how far images were rotated; writes no files.

    Angles are in degrees, counter-clockwise. The table shows them from −180° to 180°. JSON has
    these as angle_signed, and angles from 0° to 360° as angle_ccw.
    """
    from radialbeams import batch, zoo

    name = model or zoo.DEFAULT
    card = checks.card_of(name)
    if card.trust:
        print_message(f"radialbeams: {terminal.untrusted(name, card)}")
    job = batch.JobSettings(
        name,
        refine=refine,
        first_frame=first_frame,
        limits=o.limits_of(max_pixels, max_memory, max_file_size),
    )
    plan = batch.Plan(
        tuple(inputs.sources(paths, files_from, [])),
        writes=False,
        recursive=recursive,
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
    )
    if STDIN in plan.sources:
        _pipe(job, plan, json_=json_)
        return
    with stoppable(job), batch.unjournaled(job, plan, workers or _cores()) as run:
        counts = follow(run, job, plan, json_)
    for line in terminal.left_out(run.left_out):
        print_message(line)
    leave(counts)


# --- many files ---


def _turn_all(
    job: JobSettings, plan: Plan, workers: int, report: Path | None, *, fresh: bool, json_: bool
) -> None:
    from radialbeams import batch, sheet, zoo

    page = None if report is None else sheet.ReportSheet("Turned upright", in_place=job.in_place)
    started = time.monotonic()
    begin = partial(batch.journaled, fresh=fresh) if job.writes else batch.unjournaled
    with checks.usage(), stoppable(job), begin(job, plan, workers) as run:
        counts = follow(run, job, plan, json_, page)
        if page is not None and report is not None:
            # After a restart, an existing report may be this run's own. A report on corrections
            # has only the corrected files, and must not replace the report on all files.
            own = (job.overwrite or run.done_before > 0) and not job.corrections
            _write(page, report if own else free_name(report), report)
    if counts:
        print_message(terminal.summary(counts, time.monotonic() - started, job))
    if not job.corrections:  # which need no confidence
        for line in terminal.thresholds(counts, job, zoo.find(job.model).card):
            print_message(line)
    if counts["unsure"] and page is None and job.min_confidence <= 1:
        print_message(terminal.UNSURE)
    if counts[terminal.BETWEEN]:
        print_message(terminal.ANY_ANGLE)
    if job.writes and job.in_place and job.corrections and counts["turned"]:
        print_message(terminal.CORRECTED)
    if counts["exists"]:
        print_message(terminal.NOT_CORRECTED if job.corrections else terminal.NOT_REPLACED)
    for line in terminal.left_out(run.left_out):
        print_message(line)
    if job.writes and plan.folder is not None:
        for line in terminal.not_in_output(counts, run.left_out, plan.folder):
            print_message(line)
    leave(counts)


def _explain_all(
    job: JobSettings, plan: Plan, workers: int, report: Path | None, *, fresh: bool, json_: bool
) -> None:
    """Prints explanations and writes nothing; ignores `fresh`, since there is no journal."""
    from radialbeams import batch
    from radialbeams.cli.explaining import explanation

    if report is not None or json_:
        raise typer.BadParameter("--explain prints sentences; leave out --report and --json.")
    counts: Counter[str] = Counter()
    with checks.usage(), stoppable(job), batch.unjournaled(job, plan, workers) as run:
        for outcome in run.outcomes:
            counts[outcome.kind] += 1
            for line in explanation(outcome, job):
                terminal.print_line(line)
    leave(counts)


# --- one file through a pipe ---


def _pipe(job: JobSettings, plan: Plan, *, json_: bool, explain: bool = False) -> None:
    """Processes one image from standard input, to standard output, or both."""
    from radialbeams import batch
    from radialbeams.batch.system import deadline
    from radialbeams.cli.explaining import explanation

    to_stdout = job.turns and plan.file is None and not explain
    paths = plan.sources
    if len(paths) > 1 or job.in_place or job.thumbnails or plan.folder is not None:
        raise typer.BadParameter(
            "Expected one image, and standard output or one file as its output."
        )
    if to_stdout and json_:
        raise typer.BadParameter("The image is written to standard output; leave out --json.")
    if to_stdout and sys.stdout.isatty():
        raise typer.BadParameter(
            "Standard output is a terminal; redirect it to a file, or use -o FILE."
        )
    data = _data(paths[0], job)
    with deadline(PIPE_SECONDS, "radialbeams: The image or the model took far too long."):
        outcome, after = batch.piped(data, job, paths[0], plan.file)
    if outcome.error is not None:
        print_message(terminal.failure(outcome))
    elif explain:
        for line in explanation(outcome, job):
            terminal.print_line(line)
    elif to_stdout and job.writes:
        sys.stdout.buffer.write(after)
        sys.stdout.buffer.flush()
    elif not json_:
        terminal.print_line(terminal.HEADER)
        terminal.print_line(terminal.row(outcome, job))
    if json_:
        print(as_json(outcome.record(job)))
    leave(Counter([outcome.kind]))


def _data(path: str, job: JobSettings) -> bytes:
    from radialbeams.batch import refusal
    from radialbeams.images import content_of

    if path == STDIN:
        return content_of(sys.stdin.buffer, job.limits)
    if reason := refusal(path):
        raise ValueError(f"{path}: {reason}")
    with open(path, "rb") as file:
        return content_of(file, job.limits)


def _write(page: ReportSheet, place: Path, wanted: Path) -> None:
    if place != wanted:
        print_message(f"{wanted} exists; the report is {place}.")
    page.write(place)


def _cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
