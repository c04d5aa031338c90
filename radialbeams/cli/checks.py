"""Checks for options that contradict each other or the files, before any work is done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from radialbeams.cli.terminal import print_message
from radialbeams.defaults import CORNERS, Corners

if TYPE_CHECKING:
    from radialbeams.batch import JobSettings, Plan
    from radialbeams.cards import Card


@contextmanager
def usage() -> Iterator[None]:
    """Reports errors of the plan, and of an unfinished run, as wrong usage."""
    from radialbeams.batch import JournalError, PlanError

    try:
        yield
    except (JournalError, PlanError) as error:
        raise typer.BadParameter(str(error)) from error


def card_of(model: str) -> Card:
    """The card of a model; an unknown model is wrong usage."""
    from radialbeams import zoo

    try:
        return zoo.find(model).card
    except zoo.ModelNotFound as error:
        raise typer.BadParameter(str(error), param_hint="--model") from error


def check_job(job: JobSettings) -> None:
    if job.exif and job.format not in (None, "jpeg"):
        raise typer.BadParameter(
            f"--exif sets the tag of a JPEG, but --format asks for {job.format.upper()}. Leave out "
            "one of the two, or use --snap 90 instead of --exif."
        )
    if job.exif and job.pixels:
        raise typer.BadParameter("--exif and --pixels exclude each other; leave out one of them.")
    for name, is_set in (("--force", job.force), ("--backup", job.backup)):
        if is_set and not job.in_place:
            hint = " To replace outputs, use --overwrite." if name == "--force" else ""
            raise typer.BadParameter(f"{name} needs --in-place.{hint}")
    if job.first_frame and job.in_place:
        raise typer.BadParameter(
            "--first-frame --in-place would delete all other frames. Choose an output with -o."
        )


def check_plan(plan: Plan, job: JobSettings) -> None:
    """Checks that need the files themselves."""
    with usage():
        plan.check_output_folder()
    if plan.output_inside() is not None:
        print_message(
            f"radialbeams: the output folder {plan.folder} lies inside an input folder. This "
            "command does not read it; a command with another output folder does."
        )
    if job.fill == "transparent" and (path := plan.first_without_alpha()) is not None:
        raise typer.BadParameter(
            f"{path} would be written in a format without transparency. Add --format png, or use "
            "a colour.",
            param_hint="--fill",
        )


def check_report(report: Path | None) -> None:
    if report is None:
        return
    if report.suffix.lower() != ".html":
        raise typer.BadParameter(f"{report} does not end with .html.", param_hint="--report")
    if report.is_dir():
        raise typer.BadParameter(f"{report} is a folder.", param_hint="--report")
    if not report.parent.is_dir() or not os.access(report.parent, os.W_OK):
        raise typer.BadParameter(
            f"{report.parent} does not exist or is not writable. Create it first.",
            param_hint="--report",
        )


def check_colour(fill: str | None) -> None:
    from PIL import ImageColor

    if fill in (None, "transparent"):
        return
    try:
        ImageColor.getrgb(str(fill))
    except ValueError as error:
        raise typer.BadParameter(
            f"Expected a colour, such as white or #ff8800, or transparent; got {fill!r}.",
            param_hint="--fill",
        ) from error


def corners_of(expand: bool, crop: bool, same_size: bool) -> Corners:
    if expand + crop + same_size > 1:
        raise typer.BadParameter("Use only one of --expand, --crop and --same-size.")
    return "expand" if expand else "crop" if crop else "same" if same_size else CORNERS
