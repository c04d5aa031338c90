"""The verbs for files: upright, angle."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from radialbeams.cli import terminal
from radialbeams.cli.app import EXIT_CODES, app

if TYPE_CHECKING:
    from radialbeams.batch import Job, Outcome, Plan, Run
    from radialbeams.images import Corners
    from radialbeams.sheet import Sheet

Snap = StrEnum("Snap", {"quarter": "90"})
Format = StrEnum("Format", ["jpeg", "jpg", "png", "webp", "tiff", "tif", "bmp"])
ALIASES = {"jpg": "jpeg", "tif": "tiff"}
STDIN = "-"

Paths = Annotated[
    list[str], typer.Argument(help="Image files and folders, or - for standard input.")
]
Model = Annotated[
    str | None, typer.Option(help="A shipped model's name, a run's folder or an ONNX file.")
]
Refine = Annotated[
    int, typer.Option(min=1, max=64, help="Look at each picture so many times and average.")
]
FirstFrame = Annotated[
    bool, typer.Option("--first-frame", help="Of animated images take the first frame.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes; one for each core if not said.")
]
JsonLines = Annotated[bool, typer.Option("--json", help="One JSON object a line for each file.")]


@app.command(epilog=EXIT_CODES)
def upright(
    paths: Paths,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            help="A folder, or a file for one file; beside the input as NAME-upright if not said.",
        ),
    ] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Replace the inputs.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace outputs that exist; else they are skipped.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write no images; say what would be done.")
    ] = False,
    snap: Annotated[
        Snap | None,
        typer.Option(help="To the nearest quarter turn, without loss; a JPEG by its EXIF tag."),
    ] = None,
    exif: Annotated[
        bool, typer.Option("--exif", help="Quarter turns by a JPEG's EXIF tag and no other way.")
    ] = False,
    expand: Annotated[
        bool, typer.Option("--expand", help="Cut nothing off, enlarge the canvas. The default.")
    ] = False,
    crop: Annotated[
        bool, typer.Option("--crop", help="Cut to the largest rectangle without empty corners.")
    ] = False,
    same_size: Annotated[bool, typer.Option("--same-size", help="Keep the canvas.")] = False,
    fill: Annotated[
        str | None, typer.Option(help="The corners' colour or transparent; black if not said.")
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Leave alone below this; the model's own if not said."),
    ] = None,
    min_angle: Annotated[
        float | None,
        typer.Option(min=0, max=180, help="Leave alone if turned less; 1 degree if not said."),
    ] = None,
    quality: Annotated[
        int | None, typer.Option(min=1, max=100, help="Of JPEG and WebP; 95 if not said.")
    ] = None,
    format_: Annotated[
        Format | None, typer.Option("--format", help="Of the outputs; each input's if not said.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write an HTML contact sheet, before and after.")
    ] = None,
    model: Model = None,
    refine: Refine = 1,
    first_frame: FirstFrame = False,
    workers: Workers = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget an unfinished run with other settings.")
    ] = False,
    json_: JsonLines = False,
) -> None:
    """Turns images upright. One that the model is unsure of is left as it is.

    Inputs are never touched without --in-place. Killed or stopped, the same command goes on.
    """
    from radialbeams import batch, sheet, zoo

    _check_colour(fill)
    if report is not None and report.suffix != ".html":
        raise typer.BadParameter(f"{report} does not end with .html.", param_hint="--report")
    name = model or zoo.DEFAULT
    if min_confidence is None:
        min_confidence = batch.min_confidence_of(zoo.find(name).card)
    format = None if format_ is None else ALIASES.get(format_.value, format_.value)
    with _usage():
        wanted = None if out == STDIN else out
        plan = batch.plan_for(paths, wanted, in_place=in_place, format=format)
    job = batch.Job(
        model=name,
        refine=refine,
        first_frame=first_frame,
        turns=True,
        writes=not dry_run,
        in_place=in_place,
        overwrite=overwrite,
        snap=snap is not None or exif,
        exif=exif,
        corners=_corners(expand, crop, same_size),
        fill=fill,
        min_confidence=min_confidence,
        min_angle=batch.MIN_ANGLE if min_angle is None else min_angle,
        quality=quality,
        format=plan.format,
        thumbnails=0 if report is None else sheet.PICTURES,
    )
    if STDIN in (*paths, out):
        _pipe(job, paths, plan, json_)
        return
    page = None if report is None else sheet.Sheet("Turned upright")
    started = time.monotonic()
    begin = batch.unjournaled if dry_run else partial(batch.journaled, fresh=fresh)
    with _usage(), _stoppable(job), begin(job, plan, workers or _cores()) as run:
        counts = _follow(run, job, plan, json_, page)
        if page is not None and report is not None:
            page.write(report)
    _talk(terminal.summary(counts, time.monotonic() - started, dry_run=dry_run))
    _leave(counts)


@app.command(epilog=EXIT_CODES)
def angle(
    paths: Paths,
    model: Model = None,
    refine: Refine = 1,
    first_frame: FirstFrame = False,
    workers: Workers = None,
    json_: JsonLines = False,
) -> None:
    """Says how far images have been turned, counter-clockwise in degrees; writes nothing."""
    from radialbeams import batch, zoo

    name = model or zoo.DEFAULT
    job = batch.Job(name, refine=refine, first_frame=first_frame)
    plan = batch.Plan(tuple(paths), writes=False)
    if STDIN in paths:
        _pipe(job, paths, plan, json_)
        return
    with _stoppable(job), batch.unjournaled(job, plan, workers or _cores()) as run:
        counts = _follow(run, job, plan, json_)
    _leave(counts)


# --- many files ---


def _follow(run: Run, job: Job, plan: Plan, json_: bool, page: Sheet | None = None) -> Counter[str]:
    """Tells each outcome as it comes, and counts their kinds."""
    counts: Counter[str] = Counter()
    if run.done_before:
        _talk(f"radialbeams: going on; {run.done_before:,} of {run.files:,} were done before.")
    # Two things that move on one terminal would garble each other.
    data_on_terminal = (json_ or not job.turns) and sys.stdout.isatty()
    visible = sys.stderr.isatty() and not data_on_terminal
    files = sum(1 for _ in plan.items()) if visible and run.files is None else run.files or 0
    text = "turning" if job.turns else "looking"
    with terminal.progress_bar(files, text) if visible else nullcontext(QUIET) as bar:
        tell = _teller(job, json_, bar, files if visible else None)
        for done, outcome in enumerate(run.outcomes, 1):
            counts[outcome.kind] += 1
            if outcome.error is not None:
                bar.say(terminal.failure(outcome))
            tell(outcome)
            if page is not None:
                page.add(outcome)
            bar.show(done, text)
    return counts


def _teller(
    job: Job, json_: bool, bar: terminal.Bar, files: int | None
) -> Callable[[Outcome], None]:
    """How outcomes are told: as data on standard output, as rows above a bar, or not at all."""
    if json_:
        return lambda outcome: print(json.dumps(outcome.record(job.model)), flush=True)
    if not job.turns:
        print(terminal.HEADER)
        return lambda outcome: None if outcome.error else print(terminal.row(outcome))
    if files is None:
        return lambda outcome: None
    bar.say(terminal.HEADER)
    return lambda outcome: (
        bar.say(terminal.row(outcome)) if _is_worth_a_row(outcome, files) else None
    )


def _is_worth_a_row(outcome: Outcome, files: int) -> bool:
    """Errors have been told; of many files that went as they should nobody reads the rows."""
    return outcome.error is None and (files <= terminal.ROWS or outcome.kind == "unsure")


def _leave(counts: Counter[str]) -> None:
    if not counts:
        raise ValueError("There are no images in what was named.")
    if counts["failed"]:
        raise typer.Exit(1)


@contextmanager
def _stoppable(job: Job) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        _talk("radialbeams: stopped." + " The same command goes on where it was." * job.writes)
        raise typer.Exit(130) from None


# --- one file through a pipe ---


def _pipe(job: Job, paths: list[str], plan: Plan, json_: bool) -> None:
    """From standard input, or to standard output, or both."""
    from radialbeams import batch

    to_stdout = job.turns and plan.file is None
    if len(paths) > 1 or job.in_place or job.thumbnails or plan.folder is not None:
        raise typer.BadParameter("A pipe takes one image, to standard output or to one file.")
    if to_stdout and json_:
        raise typer.BadParameter("The image itself goes to standard output; leave out --json.")
    if to_stdout and sys.stdout.isatty():
        raise typer.BadParameter("Standard output is a terminal; send it to a file or say -o FILE.")
    data = sys.stdin.buffer.read() if paths == [STDIN] else Path(paths[0]).read_bytes()
    outcome, after = batch.piped(data, job, paths[0], plan.file)
    if outcome.error is not None:
        _talk(terminal.failure(outcome))
    elif to_stdout and job.writes:
        sys.stdout.buffer.write(after)
        sys.stdout.buffer.flush()
    elif not json_:
        print(f"{terminal.HEADER}\n{terminal.row(outcome)}")
    if json_:
        print(json.dumps(outcome.record(job.model)))
    _leave(Counter([outcome.kind]))


# --- what was asked for ---


@contextmanager
def _usage() -> Iterator[None]:
    """Commands that contradict themselves, or an unfinished run, are wrong usage."""
    from radialbeams.batch import JournalError, PlanError

    try:
        yield
    except (JournalError, PlanError) as error:
        raise typer.BadParameter(str(error)) from error


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


def _talk(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


QUIET = terminal.Bar(lambda step, text: None, _talk)
