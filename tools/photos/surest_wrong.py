"""The files that a model is surest of and gets wrong: a table, and a sheet to judge them by.

    python tools/photos/surest_wrong.py PHOTOS --sheet sheet.png [--judged JUDGED.json]

The files are those of `measure_photos.py`, rotated on their own canvas; wrong means more than 10°
from the rotation, among the half with the higher confidences. Photos count as upright as they were
taken, so a model that levels the horizon of a tilted photo is counted as wrong. The sheet shows
each photo as it was taken and, below it, as the model would turn it: judge by sea, walls and posts.
Judgements that are already in the JSON file are kept; new files get an empty one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from measure_photos import ENDINGS, Record, away, command, turned_files
from PIL import Image

from radialbeams import zoo
from radialbeams.reproduce.records import write_record

TILTED = "taken with a tilted camera"  # the judgement that the model is right
CELL, ACROSS = (320, 240), 5  # pixels; photos side by side
RESAMPLING = Image.Resampling.BICUBIC


def surest_wrong(photos: list[Path], model: str, seed: int = 0) -> list[Record]:
    """The wrong ones among the surer half, the surest first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "clean"
        angles = turned_files(photos, folder, seed, "clean")
        answers = command("angle", folder, "--model", model)
    sure = np.array([answer["confidence"] for answer in answers])
    estimates = np.array([answer["angle_ccw"] for answer in answers])
    half = np.argsort(-sure, kind="stable")[: len(photos) // 2]
    signed = (estimates - angles + 180) % 360 - 180
    return [
        {
            "photo": photos[n].name,
            "error": round(float(signed[n]), 1),
            "confidence": float(sure[n]),
        }
        for n in half
        if away(signed[n]) > 10
    ]


def draw_sheet(rows: list[Record], photos: list[Path], out: Path) -> None:
    by_name = {path.name: path for path in photos}
    across, (wide, high) = min(ACROSS, len(rows)), CELL
    down = -(-len(rows) // across)
    sheet = Image.new("RGB", (across * wide, down * 2 * high), "white")
    for number, row in enumerate(rows):
        left, top = number % across * wide, number // across * 2 * high
        with Image.open(by_name[row["photo"]]) as photo:
            taken = photo.convert("RGB")
        for below, picture in enumerate((taken, taken.rotate(-row["error"], RESAMPLING))):
            picture.thumbnail(CELL)
            sheet.paste(picture, (left, top + below * high))
    sheet.save(out)


def with_judgements(rows: list[Record], earlier: Path) -> list[Record]:
    known = {}
    if earlier.is_file():
        stored = json.loads(earlier.read_text(encoding="utf-8"))
        known = {row["photo"]: row["judged"] for row in stored["wrong"]}
    return [{**row, "judged": known.get(row["photo"], "")} for row in rows]


def summarised(rows: list[Record], half: int) -> Record:
    """The shares of the surer half that are right: by the file, and by the judgements."""
    tilted = sum(row["judged"] == TILTED for row in rows)
    return {
        "surer_half": half,
        "right": round(1 - len(rows) / half, 4),
        "right_as_judged": round(1 - (len(rows) - tilted) / half, 4),
        "tilted": tilted,
        "largest_error": max((float(away(row["error"])) for row in rows), default=0.0),
        "wrong": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--model", default=zoo.DEFAULT)
    parser.add_argument("--sheet", type=Path, help="a PNG of the wrong ones")
    parser.add_argument("--judged", type=Path, default=Path("results") / "surest-wrong.json")
    arguments = parser.parse_args()
    photos = sorted(p for p in arguments.photos.rglob("*") if p.suffix.lower() in ENDINGS)
    rows = with_judgements(surest_wrong(photos, arguments.model), arguments.judged)
    if arguments.sheet and rows:
        draw_sheet(rows, photos, arguments.sheet)
    record = {
        "command": "python tools/photos/surest_wrong.py PHOTOS",
        "model": arguments.model,
        **summarised(rows, len(photos) // 2),
    }
    print(json.dumps(record))
    write_record(arguments.judged, record, long=[])


if __name__ == "__main__":
    main()
