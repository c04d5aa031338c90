"""What is gained by looking at both ends of an oblong photo where the model is unsure.

    python tools/photos/held_out.py train2017 photos/reasons.jsonl PHOTOS --size 256 --whole
    python studies/ends.py PHOTOS [--out results/ends.json] [--keep FOLDER]

PHOTOS is a folder of upright photos of any shape that the model was not trained on. Each is rotated
by a uniformly random angle, cut to the largest upright rectangle inside, so that no canvas is left
to give the angle away, and saved as JPEG q90. The model sees the square in the middle, its three
other quarter turns, and the squares at both ends, at a quarter turn and at three. Every rule says
below which confidence of the first view more views are averaged, and at which temperature.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import harness
import numpy as np
from numpy.typing import NDArray
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))

from radialbeams import Canonicalizer, images, zoo
from radialbeams.further_looks import AT_ENDS
from radialbeams.posterior import Answer, Calibration, read_posterior, read_posteriors
from radialbeams.reproduce.records import write_record
from radialbeams.training.views import draws
from tools.photos.measure_photos import QUALITY, inner

COMMAND = "python studies/ends.py PHOTOS"
SHIPPED, BEFORE = "both ends, below 0.9, temperature × 0.6", "quarter turns, below 0.8"
FILES = ("before", "shipped", "temperature × 1")  # the rules that files were measured with
BELOW = (0.8, 0.9, 0.95)
FACTORS = (1.0, 0.8, 0.7, 0.6)  # of the card's temperature
BINS = 10  # of the calibration error

Floats = NDArray[Any]


class Outputs(NamedTuple):
    """Logits and offsets (N, 6, bins): four quarter turns of the middle, both ends; true angles."""

    logits: Floats
    offsets: Floats
    degrees: Floats


def outputs(folder: Path, model: str, seed: int = 0) -> Outputs:
    photos = sorted(path for path in folder.rglob("*") if path.suffix in (".jpg", ".png"))
    reader = Canonicalizer(model, threads=1, documents=False)
    network, protocol = reader.card.network, reader.card.protocol
    degrees = 360 * draws("evaluation", seed, 0, (len(photos), 6))[:, 0]
    pairs = []
    for photo, angle in zip(photos, degrees, strict=True):
        with Image.open(photo) as image:
            upright = image.convert("RGB")
        turned = upright.rotate(angle, Image.Resampling.BICUBIC, expand=True)
        file = io.BytesIO()
        inner(turned, upright.size, float(angle)).save(file, "JPEG", quality=QUALITY)
        picture = Image.open(file).convert("RGB")
        middle = reader.view(file.getvalue())
        squares = images.ends(picture, reader.parent_size)
        at_ends = [middle] * 2
        if squares is not None:
            seen = images.views_of(squares, protocol, network.view_size, network.channels)
            at_ends = list(seen)
        views = [np.rot90(middle, k, (-2, -1)) for k in range(4)]
        views += [np.rot90(end, k, (-2, -1)) for end, k in zip(at_ends, AT_ENDS, strict=True)]
        pairs.append(reader._run(np.stack(views)))
    logits, offsets = (np.stack(parts) for parts in zip(*pairs, strict=True))
    return Outputs(logits, offsets, degrees)


def averaged(given: Outputs, views: tuple[int, ...], calibration: Calibration) -> list[Answer]:
    """The estimates from some of the views; the ends come after the four quarter turns."""
    turns = np.array([(0, 1, 2, 3, *AT_ENDS)[number] for number in views], np.float32)
    shifts = turns * np.float32(given.logits.shape[-1] / 4)
    logits, offsets = given.logits[:, views], given.offsets[:, views]
    return read_posteriors(logits, offsets, shifts, *calibration)


def rules(given: Outputs, calibration: Calibration) -> dict[str, dict[str, float]]:
    first = read_posterior(given.logits[:, 0], given.offsets[:, 0], *calibration)
    table = {"one view": figures(first, given.degrees, 1)}
    for name, views, factors in (
        ("quarter turns", (0, 1, 2, 3), (1.0,)),
        ("both ends", (0, 4, 5), FACTORS),
    ):
        for factor in factors:
            heat = Calibration(factor * calibration.temperature, calibration.spread)
            second = averaged(given, views, heat)
            for below in BELOW:
                unsure = np.array([(answer.confidence or 0.0) < below for answer in first])
                pairs = zip(first, second, unsure, strict=True)
                mixed = [more if again else one for one, more, again in pairs]
                title = f"{name}, below {below}"
                title += f", temperature × {factor}" if factor != 1 else ""
                mean = 1 + (len(views) - 1) * float(unsure.mean())
                table[title] = figures(mixed, given.degrees, mean)
    return table


def figures(answers: list[Answer], degrees: Floats, views: float) -> dict[str, float]:
    angles = np.array([answer.angle_degrees for answer in answers])
    sure = np.array([answer.confidence for answer in answers], np.float64)
    errors = np.abs((angles - degrees + 180) % 360 - 180)
    right, order = errors <= 10, np.argsort(-sure, kind="stable")
    gaps = [abs(sure[p].mean() - right[p].mean()) for p in np.array_split(order, BINS)]
    return {
        "views": round(views, 2),
        "within_10": round(float(right.mean()), 4),
        "within_5": round(float((errors <= 5).mean()), 4),
        "mean": round(float(errors.mean()), 2),
        "flips": round(float((errors > 170).mean()), 4),
        "surer_half": harness.surer(right, sure),
        "calibration_error": round(float(np.mean(gaps)), 4),
    }


def other_model(name: str) -> str:
    """What the command says if the model is not the default."""
    return "" if name == zoo.DEFAULT else f" --model {name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--model", default=zoo.DEFAULT)
    parser.add_argument(
        "--files",
        type=Path,
        nargs=len(FILES),
        metavar="JSON",
        help="outputs of tools/photos/measure_photos.py to quote: " + "; ".join(FILES),
    )
    parser.add_argument("--keep", type=Path, help="folder for the outputs of the model")
    parser.add_argument("--out", type=Path, default=Path("results") / "ends.json")
    arguments = parser.parse_args()
    stored = arguments.keep and arguments.keep / "ends.npz"
    given = harness.kept(stored, Outputs, lambda: outputs(arguments.photos, arguments.model))
    rows = rules(given, zoo.find(arguments.model).card.calibration)
    for name, row in rows.items():
        print(name, json.dumps(row), flush=True)
    record = {
        "command": COMMAND + other_model(arguments.model),
        "model": arguments.model,
        "n": len(given.degrees),
        "shipped": SHIPPED,
        "before": BEFORE,
        "rows": rows,
        "files": {
            name: json.loads(path.read_text(encoding="utf-8"))["inner"]
            for name, path in zip(FILES, arguments.files or [], strict=False)
        },
    }
    write_record(arguments.out, record, long=[])


if __name__ == "__main__":
    main()
