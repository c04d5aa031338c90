"""`python tools/documents/drawings.py UNPACKED`: the confidence of drawings, as it is and averaged.

UNPACKED contains Debian's openclipart-png after `dpkg -x`. Reported for the drawings of categories
with a clear up, inside and outside the test part, at four quarter turns: the confidence, the share
of right answers, the calibration error and what it would be by chance (`measure.py`), and the share
of confidences of at least 0.9, for the model as it is and for one that sees every picture at all
four quarter turns, not only those that it is unsure of.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

from radialbeams import Canonicalizer, zoo
from radialbeams.posterior import WITHIN, Answer
from tools.documents.material import DRAWN, WITHOUT_UP, is_test_drawing
from tools.documents.measure import QUARTERS, apart, by_chance, calibration, opened, saved

LONGEST, NARROWEST = 3000, 0.15  # pixels, and the shorter side as a share of the longer one


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="drawings.py")
    parser.add_argument("unpacked", type=Path)
    parser.add_argument("--model", default=zoo.DEFAULT)
    parser.add_argument("--limit", type=int, help="drawings of each part; default: all")
    parser.add_argument("--parts", nargs="+", choices=("training", "test"))
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    arguments = parser.parse_args(argv)
    model, averaging = (Canonicalizer(arguments.model, threads=1) for _ in range(2))
    if averaging.card.looks is None:
        parser.error(f"expected a model with looks; got {averaging.name}; name another model")
    averaging.card = replace(
        averaging.card, looks=replace(averaging.card.looks, below=1.0, oblong_below=None)
    )
    results = {}
    for part in arguments.parts or ("training", "test"):
        files = drawings(arguments.unpacked, test=part == "test")
        Random(0).shuffle(files)
        results[part] = measured(files[: arguments.limit], model, averaging)
        print(json.dumps({part: results[part]}), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


def drawings(unpacked: Path, *, test: bool) -> list[Path]:
    """One file for each name, in name order."""
    root = unpacked / "usr/share/openclipart/png"
    files = {}
    for path in sorted(root.rglob("*.png")):
        place = path.relative_to(root).as_posix()
        wanted = place.startswith(DRAWN) and not place.startswith(WITHOUT_UP)
        if wanted and is_test_drawing(path.name) == test and path.name not in files:
            with Image.open(path) as file:
                short, long = sorted(file.size)
            if long <= LONGEST and short >= NARROWEST * long:
                files[path.name] = path
    return [files[name] for name in sorted(files)]


def measured(files: list[Path], model: Canonicalizer, averaging: Canonicalizer) -> dict[str, Any]:
    """For all drawings, and for those that are judged as pictures."""
    once: list[Answer] = []
    averaged: list[Answer] = []
    for path in files:
        image = opened(path)
        turned = (saved(image.rotate(turn, expand=True)) for turn in QUARTERS)
        looks = [model.look(data, framed=False) for data in turned]
        once += model.answers_from_looks(looks)
        averaged += averaging.answers_from_looks(looks)
    pictures = np.array([answer.kind == "picture" for answer in once])
    pictures = np.repeat(pictures.reshape(-1, len(QUARTERS)).all(1), len(QUARTERS))
    return {
        "drawings": len(files),
        "judged as pictures": int(pictures.sum()) // len(QUARTERS),
        "all": summary(once, np.full(len(once), fill_value=True)),
        "pictures": summary(once, pictures),
        "pictures, always averaged": summary(averaged, pictures),
    }


def summary(answers: list[Answer], chosen: np.ndarray) -> dict[str, Any]:
    """Figures of the chosen answers; the turns of a drawing follow each other in QUARTERS."""
    truth = np.resize(QUARTERS, len(answers))
    errors = [apart(a.angle_degrees, t) for a, t in zip(answers, truth, strict=True)]
    limit = np.where([answer.kind == "document" for answer in answers], 45, WITHIN)
    right = (np.array(errors) <= limit)[chosen]
    confidence = np.array([answer.confidence for answer in answers])[chosen]
    sure = confidence >= 0.9
    return {
        "confidence, mean": round(float(confidence.mean()), 3),
        "right": round(100 * float(right.mean()), 1),
        "calibration error": calibration(confidence, right),
        "calibration error by chance": by_chance(confidence),
        "at least 0.9": round(100 * float(sure.mean()), 1),
        "right of these": round(100 * float(right[sure].mean()), 1) if sure.any() else None,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
