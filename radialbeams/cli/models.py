"""The commands that show what comes with the package: models, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from radialbeams.cli import terminal
from radialbeams.cli.app import JsonOption, app
from radialbeams.escaping import as_json


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the contact sheet.")] = Path(
        "radialbeams-demo.png"
    ),
) -> None:
    """Rotates sample images and estimates the angles; draws a sheet."""
    from radialbeams import demo as show

    rows = []
    print(f"{'picture':<11}{'model':<22}{'turned':>8}{'found':>9}{'error':>8}{'confidence':>12}")
    for row in show.rows():
        rows.append(row)
        print(
            f"{row.picture:<11}{row.model:<22}{row.rotation:>7.1f}°{row.estimate:>8.1f}°"
            f"{row.error:>7.1f}°{row.confidence:>12.0%}"
        )
    sheet = free_name(out)
    show.contact_sheet(rows).save(sheet)
    terminal.print_line(f"contact sheet: {sheet}")


@app.command()
def models(json_: JsonOption = False) -> None:
    """Lists the pretrained models: data, licence, errors, cost."""
    from radialbeams import zoo
    from radialbeams.cards import to_json

    cards = {name: zoo.find(name).card for name in zoo.names()}
    if json_:
        for name, card in cards.items():
            print(as_json({"name": name, **to_json(card)}))
        return
    for line in terminal.models_table(cards):
        terminal.print_line(line)


def free_name(path: Path) -> Path:
    """The path, with a number appended if it exists, so that no file is overwritten."""
    number, free = 2, path
    while free.exists():
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1
    return free
