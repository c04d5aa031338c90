"""Training runs on the command line: notes, progress, and the closing lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from radialbeams.cli import terminal
from radialbeams.cli.plain_progress import SECONDS, clock
from radialbeams.cli.terminal import print_message
from radialbeams.escaping import as_json, shown
from radialbeams.stored import JsonDict, JsonFields

if TYPE_CHECKING:
    from radialbeams.training.own import Status, TrainedRun
    from radialbeams.training.recipe import Recipe

BAR = 1000  # steps of the bar: a share in thousandths


@dataclass(frozen=True)
class TrainOptions:
    """The options that every training has."""

    data: str
    out: Path
    minutes: float | None
    steps: int | None
    devices: str
    json: bool
    tensorboard: bool = False


def train_on_folder(
    options: TrainOptions,
    start: str | None,
    config: Path | None,
    realign: bool,
    canary: bool,
    changes: JsonFields,
    paper: JsonFields,
) -> None:
    """Trains on a user's folder; `paper` holds options that only the paper's network has."""
    from radialbeams.training.own import Watch, fit_folder
    from radialbeams.training.own.rules import read_config
    from radialbeams.training.own.tensorboard import open_board

    for name, option in paper.items():
        if option is not None:
            raise typer.BadParameter(f"{name} needs --decoder lstm, --recipe or a data set.")
    settings = {} if config is None else read_config(config)
    model = {**settings.get("model", {}), **changes["model"]}
    settings |= {name: value for name, value in changes.items() if name != "model"}
    settings |= {"model": model} if model else {}
    board = open_board(options.out) if options.tensorboard else None
    with _stoppable(options.out), _progress(board) as (note, show):
        run = fit_folder(
            options.data,
            options.out,
            minutes=options.minutes,
            steps=options.steps,
            start=start or "auto",
            config=settings,
            realign=realign,
            canary=canary,
            devices=options.devices,
            watch=Watch(note, show),
        )
    if options.json:
        print(as_json(_record(run)))
        return
    for line in closing(run):
        terminal.print_line(line)


def closing(run: TrainedRun) -> tuple[str, ...]:
    """Five lines: error, confidence, whether to trust the model and what `upright` does with it,
    where the report is, and the command that uses it."""
    from radialbeams.training.report import command

    learned, sure, *verdict = run.summary
    use = ": ".join(command(run.folder, run.card.trust))
    return learned, sure, " ".join(verdict), f"Report: {run.report}", use


def _record(run: TrainedRun) -> JsonDict:
    from radialbeams.cards import measurement

    figures = measurement(run.card.metrics[run.card.protocol.name])
    return {
        "run": str(run.folder),
        "report": str(run.report),
        "trusted": run.trusted,
        "trust": list(run.card.trust),
        **figures,
    }


def train_recipe(
    options: TrainOptions, recipe: Recipe, root: Path | None, limit: int | None
) -> None:
    """Trains by a recipe, on a data set or with the paper's network."""
    from radialbeams.cards import measurement
    from radialbeams.training.runs import complete

    with _stoppable(options.out), terminal.progress_bar(recipe.steps, "reading images") as bar:
        card = complete(
            recipe,
            options.out,
            root=root,
            devices=options.devices,
            minutes=options.minutes,
            limit=limit,
            on_progress=bar.show,
        )
    measured = measurement(card.metrics[recipe.protocol])
    if options.json:
        print(as_json({"run": str(options.out), **measured}))
        return
    for line in terminal.measured(options.out, recipe.data, measured):
        terminal.print_line(line)
    terminal.print_line(f"Report: {options.out / 'report.html'}")


# --- progress ---


Note = Callable[[str], None]
Show = Callable[["Status"], None]


@contextmanager
def _progress(board: Show | None = None) -> Iterator[tuple[Note, Show]]:
    """A bar in a terminal, plain lines elsewhere; each status goes to the board as well."""

    if not sys.stderr.isatty():
        yield print_message, _both(_Plain().show, board)
        return
    with terminal.share_bar(BAR) as bar:

        def show(status: Status) -> None:
            bar.show(round(BAR * status.done), in_words(status))

        yield bar.say, _both(show, board)


def _both(first: Show, second: Show | None) -> Show:
    def show(status: Status) -> None:
        first(status)
        if second is not None:
            second(status)

    return show


class _Plain:
    """A line when the stage changes, after each measurement, and at intervals."""

    def __init__(self) -> None:
        self.last: tuple[str, float | None] = ("", None)
        self.at = 0.0

    def show(self, status: Status) -> None:
        now = time.monotonic()
        if (status.stage, status.held_out) == self.last and now - self.at < SECONDS:
            return
        self.last, self.at = (status.stage, status.held_out), now
        print_message(in_words(status))


def in_words(status: Status) -> str:
    """One line: what is being done, the loss, the held-out error, the time left."""
    parts = [status.stage]
    if status.step is not None:
        parts.append(f"step {status.step:,}")
    if status.loss is not None:
        parts.append(f"loss {status.loss:.4f}")
    if status.held_out is not None:
        parts.append(f"held-out error {status.held_out:.1f}°")
    if status.seconds_left is not None:
        parts.append(f"{clock(status.seconds_left)} left")
    elif 0 < status.done < 1:
        parts.append(f"{status.done:.0%}")
    return ", ".join(parts)


@contextmanager
def _stoppable(out: Path) -> Iterator[None]:
    """On Ctrl-C, says how far the run has come and how to resume it."""
    try:
        yield
    except KeyboardInterrupt:
        for line in stopped(out):
            print_message(line)
        raise typer.Exit(130) from None


def stopped(out: Path) -> Iterator[str]:
    from radialbeams.training.run_folder import RunFolder

    folder = RunFolder(out)
    lines = folder.lines()
    if not folder.checkpoint.exists():
        yield "radialbeams: stopped before training began. The same command starts it again."
        return
    step = max((line["step"] for line in lines), default=0)
    errors = [line["held_out"]["mean"] for line in lines if line.get("held_out")]
    last_error = f", held-out error {errors[-1]:.1f}° when last measured" if errors else ""
    place = shown(str(out))
    yield f"radialbeams: stopped at step {step:,}{last_error}. The checkpoint is in {place}."
    yield (
        "The same command resumes the run. With fewer --minutes it finishes sooner, with the "
        "weights that it has by then."
    )
