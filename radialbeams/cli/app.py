"""The typer application, and the options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

import radialbeams

EXIT_CODES = (
    "Exit codes: 0 all done, 1 the command or some files failed, 2 wrong usage, 130 stopped by "
    "Ctrl-C."
)

app = typer.Typer(
    help="Estimates how far images were rotated, and turns them upright.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich's boxes are narrow, and importing rich is slow
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _version(requested: bool) -> None:
    if requested:
        print(f"radialbeams {radialbeams.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """The options that come before a command."""
