"""`python tools/documents/measure.py TESTS`: documents through the library, one row for each set.

TESTS holds folders of upright documents (receipts, pages, screenshots, drawings). Reported for
each set, in percent: right quarter when turned by 0°, 90°, 180° and 270°, of all and of those
that the command acts on; within 2° and 5° when turned by any angle; within 1° when skewed by up to
10°; calibration error of the confidence, and the mean and the 5 % quantile of what it would be by
chance on as few files if the confidence were perfectly calibrated; CPU time; with --upright, the
share of untouched files that the command turns. `peers.py` measures other programs on the same
files in the same way.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from radialbeams import Canonicalizer, zoo
from radialbeams.batch import Job
from radialbeams.decisions import FILLED
from radialbeams.defaults import thresholds_of
from radialbeams.documents import document_card
from radialbeams.posterior import WITHIN


class Estimate(NamedTuple):
    """Degrees counter-clockwise, and fields that only some estimators report."""

    angle: float
    confidence: float | None = None
    acts: bool | None = None  # whether the command would turn the picture
    kind: str | None = None


Estimator = Callable[[bytes], Estimate]  # of a JPEG file
QUARTERS = (0, 90, 180, 270)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="measure.py")
    parser.add_argument("tests", type=Path)
    parser.add_argument("--model", default=zoo.DEFAULT, help="the model for other pictures")
    parser.add_argument("--upright", action="store_true", help="also run the command")
    parser.add_argument("--sets", nargs="+", help="folders of TESTS; default: all")
    parser.add_argument("--limit", type=int, default=100, help="files a set")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    arguments = parser.parse_args(argv)
    results = []
    for name, files in test_sets(arguments.tests, arguments.sets, arguments.limit):
        row = {"set": name, "files": len(files), "estimator": "radialbeams"}
        row |= measure(files, library(arguments.model))
        if arguments.upright:
            row |= turned_by_command(files)
        results.append(row)
        print(json.dumps(row, ensure_ascii=False), flush=True)
    if arguments.out:
        write(results, arguments.out)
    return 0


def test_sets(
    folder: Path, names: list[str] | None, limit: int
) -> Iterator[tuple[str, list[Path]]]:
    for name in names or sorted(path.name for path in folder.iterdir() if path.is_dir()):
        yield name, sorted(path for path in (folder / name).iterdir() if path.is_file())[:limit]


def write(results: list[dict[str, Any]], path: Path) -> None:
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# --- what is measured ---


def opened(path: Path) -> Image.Image:
    """In colour, with transparency replaced by white."""
    with Image.open(path) as file:
        image = file.convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image).convert("RGB")


def saved(image: Image.Image) -> bytes:
    """A JPEG of quality 90."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=90)
    return file.getvalue()


def apart(angle: float, truth: float) -> float:
    return abs((angle - truth + 180) % 360 - 180)


def measure(files: list[Path], estimate: Estimator) -> dict[str, Any]:
    quarters: list[Estimate] = []
    errors, any_angle, skews, seconds = [], [], [], []
    for path in files:
        image, rng = opened(path), Random(path.name)
        for quarter in QUARTERS:
            turned = saved(image.rotate(quarter, expand=True))
            begun = cpu_seconds()
            quarters.append(estimate(turned))
            seconds.append(cpu_seconds() - begun)
            errors.append(apart(quarters[-1].angle, quarter))
        truth = rng.uniform(0, 360)
        any_angle.append(apart(estimate(_rotated(image, truth)).angle, truth))
        truth = rng.uniform(-10, 10)
        skews.append(apart(estimate(_rotated(image, truth)).angle, truth))
    return {
        "quarter": _percent(np.array(errors) < 45),
        "any angle, 2°": _percent(np.array(any_angle) < 2),
        "any angle, 5°": _percent(np.array(any_angle) < 5),
        "skew, 1°": _percent(np.array(skews) < 1),
        "ms, mean": round(1000 * float(np.mean(seconds)), 1),
        "ms, median": round(1000 * float(np.median(seconds)), 1),
        **_confidence_figures(quarters, np.array(errors)),
    }


def cpu_seconds() -> float:
    """CPU time of this process and of the programs that it has run."""
    parts = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)


def _confidence_figures(estimates: list[Estimate], errors: np.ndarray) -> dict[str, Any]:
    """Figures of an estimator that reports its confidence; otherwise empty.

    The confidence of a document is the probability that its quarter is correct; that of a picture
    is the probability that its angle is correct to within 10°.
    """
    if any(estimate.confidence is None for estimate in estimates):
        return {}
    acts = np.array([bool(estimate.acts) for estimate in estimates])
    right = errors < 45
    promised = np.where(
        [estimate.kind == "document" for estimate in estimates], right, errors <= WITHIN
    )
    # Leaving an upright page alone is no decision about its quarter.
    turned = np.arange(len(estimates)) % len(QUARTERS) > 0
    confidences = np.array([estimate.confidence for estimate in estimates])
    return {
        "calibration error": calibration(confidences, promised),
        "calibration error by chance": by_chance(confidences),
        "judged as documents": _percent([estimate.kind == "document" for estimate in estimates]),
        "turned ones acted on": _percent(acts[turned]),
        "quarter where acted": _percent(right[acts]),
    }


def _rotated(image: Image.Image, degrees: float) -> bytes:
    return saved(image.rotate(degrees, Image.Resampling.BICUBIC, expand=True))


def _percent(right: Any) -> float:
    return round(100 * float(np.mean(right)), 1) if len(right) else 0.0


def calibration(chances: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    places = np.minimum((chances * bins).astype(int), bins - 1)
    parts = [
        (places == k).mean() * abs(chances[places == k].mean() - right[places == k].mean())
        for k in np.unique(places)
    ]
    return round(float(sum(parts)), 3)


def by_chance(chances: np.ndarray, draws: int = 1000) -> list[float]:
    """Mean and 5 % quantile of the calibration errors of a perfectly calibrated confidence.

    They are not 0, since a bin of few files is right more or less often by chance. The four turns
    of a file are right or wrong together, as they are in nine of ten drawings.
    """
    luck = np.random.default_rng(0).random((draws, len(chances) // len(QUARTERS)))
    errors = [calibration(chances, np.repeat(draw, len(QUARTERS)) < chances) for draw in luck]
    return [round(float(np.mean(errors)), 3), round(float(np.quantile(errors, 0.05)), 3)]


def turned_by_command(files: list[Path]) -> dict[str, float]:
    """The share of upright files whose pixels `radialbeams upright` changes, with its defaults."""
    with tempfile.TemporaryDirectory() as folder:
        sources, outputs = Path(folder, "in"), Path(folder, "out")
        sources.mkdir()
        for path in files:
            opened(path).save(sources / f"{path.stem}.png")
        command = [
            sys.executable,
            "-m",
            "radialbeams",
            "upright",
            str(sources),
            "--out",
            str(outputs),
        ]
        subprocess.run(command, check=True, capture_output=True)
        changed = 0
        for path in sources.iterdir():
            output = outputs / path.name
            if not output.exists():  # left alone
                continue
            before, after = Image.open(path), Image.open(output)
            changed += before.size != after.size or before.tobytes() != after.tobytes()
    return {"upright files turned": round(100 * changed / len(files), 2)}


# --- the estimator ---


def library(name: str) -> Estimator:
    """The library as the command uses it."""
    model = Canonicalizer(name, threads=1)
    least, pages = thresholds_of(model.card), document_card().abstain
    job = Job(
        name,
        min_confidence=least.confidence,
        min_angle=least.angle,
        max_upright=least.upright,
        document_confidence=pages.confidence,
        document_angle=pages.angle,
    )

    def estimate(data: bytes) -> Estimate:
        (answer,) = model.answers([data])
        acts = job.decision(answer, FILLED).action == "turned"
        return Estimate(answer.angle_degrees, answer.confidence, acts, answer.kind)

    return estimate


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
