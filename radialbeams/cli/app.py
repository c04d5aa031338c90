"""The command itself, and the options that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

import radialbeams

EXIT_CODES = "Exit codes: 0 all done, 1 some files failed, 2 wrong usage, 130 stopped by Ctrl-C."

app = typer.Typer(
    help="Finds the turn of rotated images and turns them back.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its boxes are narrow, and importing them takes longer than all else
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _version(asked: bool) -> None:
    if asked:
        print(f"radialbeams {radialbeams.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print it and leave."),
    ] = False,
) -> None:
    """What comes before every verb."""
