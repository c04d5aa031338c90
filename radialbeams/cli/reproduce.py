"""The command that repeats the paper's experiments."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from radialbeams.cli import terminal
from radialbeams.cli.app import app
from radialbeams.cli.training import DataOption, DevicesOption
from radialbeams.extras import install_command


@app.command()
def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(help="An experiment, or all. Without a name: list the experiments."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Little data and few steps: minutes on two cores.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Output folder. Default: results/, or results/quick/ with --quick."
        ),
    ] = None,
    root: DataOption = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of trainings in parallel.")] = 1,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Trainings per configuration. Default: set by the experiment."),
    ] = None,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Only redraw the figures, from earlier results.")
    ] = False,
    trainings_only: Annotated[
        bool,
        typer.Option("--trainings-only", help="Only train; draw the figures later."),
    ] = False,
    devices: DevicesOption = "auto",
    classifier: Annotated[
        str | None,
        typer.Option(help="For downstream: an .onnx or .pt2 file that takes images in [0, 1]."),
    ] = None,
) -> None:
    """Repeats an experiment of the paper. If it is killed, the same command resumes it."""
    from radialbeams.reproduce import registry

    if name is None:
        for experiment_name in registry.names():
            print(f"{experiment_name:<13}{registry.SUMMARIES[experiment_name]}")
        return
    chosen = registry.chosen(name)
    _need(["torch", "safetensors", *([] if trainings_only else ["matplotlib"])])
    from radialbeams.reproduce.runner import reproduce as run
    from radialbeams.reproduce.runner import reproduce_each
    from radialbeams.reproduce.settings import ReproduceSettings

    def run_one(experiment: str) -> None:
        with terminal.progress_bar(100, experiment) as bar:

            def show(done: float, total: float, text: str) -> None:
                bar.show(int(100 * done / max(total, 1e-9)), f"{experiment}: {text}")

            settings = ReproduceSettings(quick, root, out, seeds, jobs, devices, classifier, show)
            stored = len([*settings.runs(experiment).glob("*.json")])
            files = run(experiment, settings, redraw=redraw, trainings_only=trainings_only)
            bar.show(100, experiment)
        if not trainings_only:
            for line in _summary(files[0], stored):
                terminal.print_message(line)
        for path in files:
            terminal.print_line(str(path))

    if len(chosen) == 1:
        run_one(chosen[0])
        return
    failures = reproduce_each(chosen, run_one, partial(_failed, len(chosen)))
    terminal.print_message(
        f"radialbeams: {len(chosen) - len(failures)} of {len(chosen)} experiments done"
        + (f"; failed: {', '.join(failures)}" if failures else "")
    )
    if failures:
        raise typer.Exit(1)


def _summary(place: Path, there: int) -> Iterator[str]:
    """The paper's figures beside ours, and how many trainings were read from disk."""
    record = json.loads(place.read_text(encoding="utf-8"))
    if count := record["trainings"]:
        stored = "all" if there >= count else str(there) if there else "none"
        yield f"{count} trainings, {stored} of them read from {place.parent / 'runs' / place.stem}"
    for name, claim in record["paper"].items():
        yield f"{name}: the paper {claim}; ours {record['ours'].get(name, 'not measured')}"
    if record["why"]:
        yield record["why"]


def _failed(count: int, name: str, error: Exception) -> None:
    if os.environ.get("RADIALBEAMS_TRACEBACK"):
        raise error
    terminal.print_message(f"radialbeams: {name}: {type(error).__name__}: {error}")


def _need(packages: list[str]) -> None:
    if missing := [package for package in packages if find_spec(package) is None]:
        raise ValueError(
            f"`radialbeams reproduce` needs {' and '.join(missing)}, not in the light install. "
            f"Install it in your clone with: {install_command('experiments')}"
        )
