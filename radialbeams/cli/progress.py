"""Progress while files are processed, and the summary at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import typer

from radialbeams.cli import terminal
from radialbeams.cli.streams import tell
from radialbeams.cli.terminal import talk
from radialbeams.escaping import as_json

if TYPE_CHECKING:
    from radialbeams.batch import BatchRun, JobSettings, Outcome, Plan
    from radialbeams.sheet import ReportSheet


def follow(
    run: BatchRun, job: JobSettings, plan: Plan, json_: bool, page: ReportSheet | None = None
) -> Counter[str]:
    """Tells each outcome as it comes, and counts their kinds."""
    counts: Counter[str] = Counter()
    for line in terminal.resumption(run):
        talk(line)
    # Two things that move on one terminal would garble each other.
    data_on_terminal = (json_ or not job.turns) and sys.stdout.isatty()
    visible = sys.stderr.isatty() and not data_on_terminal
    files = sum(1 for _ in plan.items()) if visible and run.files is None else run.files or 0
    text = "turning" if job.turns else "looking"
    with terminal.progress_bar(files, text) if visible else nullcontext(QUIET) as bar:
        tell = _teller(job, json_, bar, files if visible else None)
        for done, outcome in enumerate(run.outcomes, 1):
            counts[outcome.kind] += 1
            if outcome.problem is not None:
                bar.say(terminal.failure(outcome))
            tell(outcome)
            if page is not None:
                page.add(outcome)
            bar.show(done, text)
    return counts


def leave(counts: Counter[str]) -> None:
    """With the exit code that the outcomes ask for."""
    if not counts:
        raise ValueError("Expected image files; the given paths have no images. Check the paths.")
    if counts["failed"] or counts["several frames"] == counts.total():  # nothing was done
        raise typer.Exit(1)


@contextmanager
def stoppable(job: JobSettings) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        talk("radialbeams: stopped." + " The same command goes on where it was." * job.writes)
        raise typer.Exit(130) from None


QUIET = terminal.Bar(lambda step, text: None, talk)


def _teller(
    job: JobSettings, json_: bool, bar: terminal.Bar, files: int | None
) -> Callable[[Outcome], None]:
    """How outcomes are told: as data on standard output, as rows above a bar, or not at all."""
    if json_ and job.writes:  # the work goes on, whether or not anybody reads about it
        return lambda outcome: tell(as_json(outcome.record(job)))
    if json_:
        return lambda outcome: print(as_json(outcome.record(job)), flush=True)
    if not job.turns:
        terminal.say(terminal.HEADER)
        return lambda outcome: None if outcome.problem else terminal.say(terminal.row(outcome, job))
    if files is None:
        return lambda outcome: None
    bar.say(terminal.HEADER)
    return lambda outcome: (
        bar.say(terminal.row(outcome, job)) if _is_worth_a_row(outcome, files) else None
    )


def _is_worth_a_row(outcome: Outcome, files: int) -> bool:
    """Errors have been told; of many files that went as they should nobody reads the rows."""
    return outcome.problem is None and (files <= terminal.ROWS or outcome.action == "unsure")
