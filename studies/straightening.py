"""Whether photos that are tilted by a few degrees can be straightened without harming upright ones.

    python studies/straightening.py PHOTOS [--limit N] [--out results/straightening.json]

PHOTOS is a folder of upright photos. Each is measured as it is, and again after a tilt of 2° to 10°
and a crop that leaves no filled corner, as if the camera had been tilted. There are two kinds of
evidence: the estimate of the default model, and the direction of the strongest lines near it,
measured at full resolution. A rule acts if the model is confident, the lines are strong, and the
angle is large enough to matter; it corrects by the angle of the lines. The table shows, for each
rule, the shares of tilted photos that it acts on and that it brings within 1.5° of upright, and the
share of upright photos that it tilts by more than 1.5°.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from radialbeams.canonicalizer import Canonicalizer
from radialbeams.files import write_whole
from radialbeams.images.levelling import measure_skew
from radialbeams.posterior import signed

TILTS = (2.0, 10.0)  # degrees
NEAR = 1.5  # degrees: right if this close, worse if further
REACH = 4.0  # degrees around the model's estimate in which lines are searched
FURTHEST = 12.0  # degrees: larger estimates are not small tilts
ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
CONFIDENCES, LEAST = (0.0, 0.6, 0.8, 0.9), (1.5, 2.5)
STRENGTHS = (0.0, 8.0, 12.0, 16.0, 20.0, 30.0, 45.0)  # deviations above the other directions


@dataclass(frozen=True)
class Evidence:
    """The measurements of one picture, in degrees; `tilt` is the true angle."""

    tilt: float
    estimate: float
    confidence: float
    lines: float
    strength: float


def tilted(photo: Image.Image, degrees: float) -> Image.Image:
    """The photo rotated counter-clockwise, cropped to the largest rectangle of its shape."""
    width, height = photo.size
    turn = math.radians(abs(degrees))
    shrink = math.cos(turn) + math.sin(turn) * max(photo.size) / min(photo.size)
    inner = int(width / shrink) - 2, int(height / shrink) - 2
    left, top = (width - inner[0]) // 2, (height - inner[1]) // 2
    turned = photo.rotate(degrees, Image.Resampling.BICUBIC)
    return turned.crop((left, top, left + inner[0], top + inner[1]))


def evidence_of(model: Canonicalizer, picture: Image.Image, tilt: float) -> Evidence:
    answer = model.answers([picture])[0]
    estimate = signed(answer.angle_degrees)
    if abs(estimate) > FURTHEST:
        return Evidence(tilt, estimate, answer.confidence or 0.0, estimate, -math.inf)
    skew = measure_skew(picture, around_degrees=estimate, within_degrees=REACH)
    return Evidence(tilt, estimate, answer.confidence or 0.0, skew.skew_degrees, skew.strength)


def table(pictures: list[Evidence]) -> list[dict[str, float]]:
    """One row for each rule, the most helpful rules first."""
    columns = np.array([list(asdict(picture).values()) for picture in pictures]).T
    tilt, _, confidence, lines, strength = columns
    is_tilted = tilt != 0
    rows = []
    for confident, strong, least in product(CONFIDENCES, STRENGTHS, LEAST):
        acts = (confidence >= confident) & (strength >= strong) & (np.abs(lines) >= least)
        right = acts & (np.abs(lines - tilt) <= NEAR)
        worse = acts & (np.abs(lines) > NEAR)
        rows.append(
            {
                "confidence": confident,
                "strength": strong,
                "least_degrees": least,
                "tilted_acted_on": share(acts, is_tilted),
                "tilted_right": share(right, is_tilted),
                "upright_worse": share(worse, ~is_tilted),
            }
        )
    return sorted(rows, key=lambda row: -row["tilted_right"])


def share(selected: np.ndarray[Any, Any], among: np.ndarray[Any, Any]) -> float:
    return round(float(selected[among].mean()), 4)


def best(rows: list[dict[str, float]], worse: float) -> dict[str, float] | None:
    """The rule that helps most among those that harm at most this share of upright photos."""
    return next((row for row in rows if row["upright_worse"] <= worse), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    paths = [path for path in sorted(arguments.photos.iterdir()) if path.suffix.lower() in ENDINGS]
    paths = paths[: arguments.limit]
    draw, model = np.random.default_rng(0), Canonicalizer("general", threads=1)
    pictures = []
    for number, path in enumerate(paths, 1):
        photo = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
        tilt = float(draw.uniform(*TILTS) * draw.choice((-1, 1)))
        pictures.append(evidence_of(model, photo, 0.0))
        pictures.append(evidence_of(model, tilted(photo, tilt), tilt))
        print(f"\r{number} of {len(paths)} photos", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    rows = table(pictures)
    result = {
        "photos": len(paths),
        "best": {f"{limit:.1%}": best(rows, limit) for limit in (0.005, 0.01, 0.02, 0.05)},
        "rules": rows,
    }
    text = json.dumps(result, indent=1) + "\n"
    if arguments.out:
        write_whole(arguments.out, lambda path: path.write_text(text, encoding="utf-8"))
    print(json.dumps(result["best"], indent=1))


if __name__ == "__main__":
    main()
