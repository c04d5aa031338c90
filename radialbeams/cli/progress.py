"""Progress while files are processed, and the summary at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import typer

from radialbeams.cli import terminal
from radialbeams.cli.streams import print_data
from radialbeams.cli.terminal import print_message
from radialbeams.escaping import as_json

if TYPE_CHECKING:
    from radialbeams.batch import BatchRun, JobSettings, Outcome, Plan
    from radialbeams.sheet import ReportSheet


def follow(
    run: BatchRun, job: JobSettings, plan: Plan, json_: bool, page: ReportSheet | None = None
) -> Counter[str]:
    """Reports each outcome as it arrives; returns the counts of their kinds."""
    counts: Counter[str] = Counter()
    for line in terminal.resumption(run):
        print_message(line)
    # A progress bar would garble data that is printed on the same terminal.
    data_on_terminal = (json_ or not job.turns) and sys.stdout.isatty()
    visible = sys.stderr.isatty() and not data_on_terminal
    files = sum(1 for _ in plan.items()) if visible and run.files is None else run.files or 0
    text = "turning" if job.turns else "estimating"
    with terminal.progress_bar(files, text) if visible else nullcontext(QUIET) as bar:
        report = _reporter(job, json_, bar, files if visible else None)
        for done, outcome in enumerate(run.outcomes, 1):
            counts[outcome.kind] += 1
            if outcome.problem is not None:
                bar.say(terminal.failure(outcome))
            report(outcome)
            if page is not None:
                page.add(outcome)
            bar.show(done, text)
    return counts


def leave(counts: Counter[str]) -> None:
    """Exits with code 1 if a file failed or no file was processed."""
    if not counts:
        raise ValueError("Expected image files; the given paths have no images. Check the paths.")
    if counts["failed"] or counts["several frames"] == counts.total():  # nothing was done
        raise typer.Exit(1)


@contextmanager
def stoppable(job: JobSettings) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print_message("radialbeams: stopped." + " The same command resumes the run." * job.writes)
        raise typer.Exit(130) from None


QUIET = terminal.Bar(lambda step, text: None, print_message)


def _reporter(
    job: JobSettings, json_: bool, bar: terminal.Bar, files: int | None
) -> Callable[[Outcome], None]:
    """The function that reports an outcome: as data, as a row above a bar, or not at all."""
    if json_ and job.writes:  # continues even if the reader of standard output has gone
        return lambda outcome: print_data(as_json(outcome.record(job)))
    if json_:
        return lambda outcome: print(as_json(outcome.record(job)), flush=True)
    if not job.turns:
        terminal.print_line(terminal.HEADER)
        return lambda outcome: (
            None if outcome.problem else terminal.print_line(terminal.row(outcome, job))
        )
    if files is None:
        return lambda outcome: None
    bar.say(terminal.HEADER)
    return lambda outcome: (
        bar.say(terminal.row(outcome, job)) if _is_worth_a_row(outcome, files) else None
    )


def _is_worth_a_row(outcome: Outcome, files: int) -> bool:
    """Whether an outcome gets a row: errors have their own line, and long lists are shortened."""
    return outcome.problem is None and (files <= terminal.ROWS or outcome.action == "unsure")
