"""What `radialbeams upright` does to mixed files: one row for each kind of file.

    python benchmarks/mixed.py --photos FOLDER --documents FOLDER [--out results/mixed.json]
    python benchmarks/mixed.py --photos FOLDER --quarters 200

The first makes 500 files out of upright photos, pages and drawings: turned with filled corners on
their own canvas and on an enlarged one, turned and cropped, tilted, turned by exact quarters,
upright, upright by their EXIF tag. Then it runs the command with its defaults and compares the
result of every file with the correct one. It exits with 1 if more than one in a hundred upright
files is turned, or if a file that was turned by an exact quarter does not end at a quarter.

The second turns this many photos by exact quarters, half of them PNG and half JPEG. It exits with 1
unless every file that is acted on ends at a quarter without loss: PNG with the pixels of its
original where the quarter is right, and JPEG with its compressed pixels untouched.

FOLDER of documents holds folders pages, receipts, screenshots and drawings of upright images.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from radialbeams import images, zoo
from radialbeams.posterior import signed
from radialbeams.stored import JsonDict

COMMAND = [sys.executable, "-m", "radialbeams", "upright"]
SEED = 20
NEAR = 5.0  # degrees; an image within this of upright counts as upright
WORSE = 0.01  # of upright files may be turned
FILLS = ("black", "white", "#7f7f7f")
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff")
LARGEST = 1600  # pixels of the longer side of a document


@dataclass(frozen=True)
class Kind:
    """How files of a kind are made, and how many."""

    name: str
    source: str  # photos, documents or drawings
    count: int
    turn: str  # none, quarter, tilt or any
    canvas: str = "none"  # same, expand or crop, for turns that are no quarters
    ending: str = "jpg"


KINDS = (
    Kind("photo, upright", "photos", 80, "none"),
    Kind("photo, upright by its EXIF tag", "photos", 30, "exif"),
    Kind("photo, exact quarter, JPEG", "photos", 60, "quarter"),
    Kind("photo, exact quarter, PNG", "photos", 40, "quarter", ending="png"),
    Kind("photo, any angle, filled corners", "photos", 60, "any", "same"),
    Kind("photo, any angle, enlarged canvas", "photos", 60, "any", "expand"),
    Kind("photo, any angle, cropped", "photos", 50, "any", "crop"),
    Kind("photo, tilted by 3° to 8°, cropped", "photos", 40, "tilt", "crop"),
    Kind("document, upright", "documents", 20, "none", ending="png"),
    Kind("document, exact quarter", "documents", 20, "quarter", ending="png"),
    Kind("document, any angle, enlarged canvas", "documents", 20, "any", "expand", "png"),
    Kind("drawing, upright", "drawings", 10, "none", ending="png"),
    Kind("drawing, exact quarter", "drawings", 10, "quarter", ending="png"),
)


# --- making files ---


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)


def sources(photos: Path, documents: Path | None) -> dict[str, Iterator[Path]]:
    """In an order that the seed decides; each file is used once, until all are used up."""
    rng = np.random.default_rng(SEED)
    kinds = {"photos": files_in(photos)}
    if documents is not None:
        drawings = files_in(documents / "drawings")
        kinds["drawings"] = drawings
        kinds["documents"] = [p for p in files_in(documents) if p not in set(drawings)]
    return {
        name: _endless([paths[n] for n in rng.permutation(len(paths))])
        for name, paths in kinds.items()
    }


def _endless(paths: list[Path]) -> Iterator[Path]:
    while paths:
        yield from paths


def opened(path: Path) -> Image.Image:
    image = images.read(path).image.convert("RGB")
    if max(image.size) > LARGEST:
        image.thumbnail((LARGEST, LARGEST))
    return image


def turned(image: Image.Image, angle: float, kind: Kind, rng: np.random.Generator) -> Image.Image:
    """The image as any program would turn it, here with Pillow's rotation."""
    if kind.turn in ("none", "exif", "quarter"):
        return images.turn(image, angle)
    if kind.canvas == "crop":
        return images.turn(image, angle, corners="crop")
    fill = FILLS[int(rng.integers(len(FILLS)))]
    return image.rotate(
        angle, Image.Resampling.BICUBIC, expand=kind.canvas == "expand", fillcolor=fill
    )


def angle_for(kind: Kind, rng: np.random.Generator) -> float:
    if kind.turn in ("none", "exif"):
        return 0.0
    if kind.turn == "quarter":
        return float(90 * rng.integers(1, 4))
    if kind.turn == "tilt":
        return float(rng.uniform(3, 8) * rng.choice((-1, 1)) % 360)
    return float(rng.uniform(10, 350))


def encoded(image: Image.Image, kind: Kind, rng: np.random.Generator) -> bytes:
    stream = io.BytesIO()
    if kind.ending == "png":
        image.save(stream, "PNG")
        return stream.getvalue()
    image.save(stream, "JPEG", quality=int(rng.integers(85, 96)))
    if kind.turn != "exif":
        return stream.getvalue()
    # Stored sideways, and the tag says so: the displayed image is upright.
    quarters = int(rng.integers(1, 4))
    stream = io.BytesIO()
    images.turn(image, 90.0 * quarters).save(stream, "JPEG", quality=92)
    return images.set_orientation(stream.getvalue(), -quarters)


@dataclass(frozen=True)
class MixedFile:
    kind: Kind
    angle: float
    size: tuple[int, int]  # of the upright original
    path: Path
    original: Path


def make(
    kinds: tuple[Kind, ...], originals: dict[str, Iterator[Path]], folder: Path
) -> list[MixedFile]:
    rng = np.random.default_rng(SEED)
    files = []
    for number, kind in enumerate(kinds):
        for count in range(kind.count):
            original = next(originals[kind.source])
            image = opened(original)
            angle = angle_for(kind, rng)
            path = folder / f"{number:02}-{count:03}.{kind.ending}"
            path.write_bytes(encoded(turned(image, angle, kind, rng), kind, rng))
            files.append(MixedFile(kind, angle, image.size, path, original))
    return files


# --- results ---


def outcomes(folder: Path, out: Path, model: str) -> dict[str, JsonDict]:
    process = subprocess.run(
        [*COMMAND, str(folder), "-o", str(out), "--model", model, "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    print(process.stderr.strip(), file=sys.stderr)
    records = [json.loads(line) for line in process.stdout.splitlines()]
    return {os.path.basename(record["path"]): record for record in records}


def undone(outcome: JsonDict) -> float:
    """The rotation that the command undid, in degrees counter-clockwise."""
    applied = outcome.get("applied")
    return 0.0 if applied is None else -applied["angle_ccw"] % 360


def row(files: list[MixedFile], records: dict[str, JsonDict], out: Path) -> JsonDict:
    acted = [file for file in files if records[file.path.name]["action"] == "turned"]
    remaining = {
        file.path.name: signed(file.angle - undone(records[file.path.name])) for file in files
    }
    errors = [abs(remaining[file.path.name]) for file in acted]
    sizes = [_size(out / file.path.name) for file in acted]
    same = [_is_near(size, file.size) for size, file in zip(sizes, acted, strict=True)]
    framed = [file for file in acted if records[file.path.name]["frame_ccw"] is not None]
    reasons = Counter(records[file.path.name]["reason"] for file in files if file not in acted)
    worse = sum(abs(remaining[file.path.name]) > abs(signed(file.angle)) + 1 for file in files)
    return {
        "kind": files[0].kind.name,
        "files": len(files),
        "turned": len(acted),
        "upright after": sum(abs(value) <= NEAR for value in remaining.values()),
        "right of turned": sum(error <= NEAR for error in errors),
        "median error of turned": round(float(np.median(errors)), 2) if errors else None,
        "worse": worse,
        "original size": sum(same),
        "by their rectangle": len(framed),
        "left": dict(sorted(reasons.items())),
    }


def _size(path: Path) -> tuple[int, int]:
    return images.read(path).image.size


def _is_near(size: tuple[int, int], original: tuple[int, int]) -> bool:
    return all(abs(a - b) <= max(4, 0.01 * b) for a, b in zip(size, original, strict=True))


def lossless(file: MixedFile, outcome: JsonDict, out: Path) -> str | None:
    """The defect of a file whose exact quarter turn was undone; None if it has none."""
    if undone(outcome) % 90:
        return "not turned by a quarter"
    before, after = file.path.read_bytes(), (out / file.path.name).read_bytes()
    back = images.turn(images.read(before).image, -undone(outcome))
    if file.kind.ending == "jpg":
        scan = before.index(b"\xff\xda")
        if not after.endswith(before[scan:]):
            return "its compressed pixels changed"
    if images.read(after).image.tobytes() != back.tobytes():
        return "its pixels changed"
    right = undone(outcome) == file.angle and file.kind.ending == "png"
    if right and images.read(after).image.tobytes() != opened(file.original).tobytes():
        return "it is not its original"
    return None


# --- the two measurements ---


def mixed(arguments: argparse.Namespace, scratch: Path) -> JsonDict:
    folder, out = scratch / "in", scratch / "out"
    folder.mkdir()
    files = make(KINDS, sources(arguments.photos, arguments.documents), folder)
    records = outcomes(folder, out, arguments.model)
    rows = [row([file for file in files if file.kind is kind], records, out) for kind in KINDS]
    upright = [figures for figures in rows if "upright" in figures["kind"]]
    worse = sum(figures["worse"] for figures in upright)
    spoilt = worse / sum(figures["files"] for figures in upright)
    quarters = [file for file in files if file.kind.turn == "quarter"]
    wrong = _losses(quarters, records, out)
    missed = [f"{spoilt:.1%} of upright files were turned"] if spoilt > WORSE else []
    missed += [f"{name}: {what}" for name, what in wrong.items()]
    return {"model": arguments.model, "files": len(files), "rows": rows, "missed": missed}


def _losses(files: list[MixedFile], records: dict[str, JsonDict], out: Path) -> dict[str, str]:
    acted = [file for file in files if records[file.path.name]["action"] == "turned"]
    problems = {file.path.name: lossless(file, records[file.path.name], out) for file in acted}
    return {name: what for name, what in problems.items() if what is not None}


def quarters(arguments: argparse.Namespace, scratch: Path) -> JsonDict:
    folder, out = scratch / "in", scratch / "out"
    folder.mkdir()
    half = arguments.quarters // 2
    kinds = (
        Kind("photo, exact quarter, PNG", "photos", half, "quarter", ending="png"),
        Kind("photo, exact quarter, JPEG", "photos", arguments.quarters - half, "quarter"),
    )
    files = make(kinds, sources(arguments.photos, None), folder)
    records = outcomes(folder, out, arguments.model)
    rows = [row([file for file in files if file.kind is kind], records, out) for kind in kinds]
    wrong = _losses(files, records, out)
    missed = [f"{name}: {what}" for name, what in wrong.items()]
    return {"model": arguments.model, "files": len(files), "rows": rows, "missed": missed}


def table(result: JsonDict) -> Iterator[str]:
    names = [name for name in result["rows"][0] if name != "left"]
    yield "| " + " | ".join([*names, "left alone"]) + " |"
    yield "|" + "---|" * (len(names) + 1)
    for row in result["rows"]:
        reasons = ", ".join(f"{count} {reason}" for reason, count in row["left"].items()) or "–"
        cells = ["–" if row[name] is None else str(row[name]) for name in names]
        yield "| " + " | ".join([*cells, reasons]) + " |"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=Path, required=True, help="a folder of upright photos")
    parser.add_argument("--documents", type=Path, help="a folder of upright pages and drawings")
    parser.add_argument("--quarters", type=int, help="only exact quarter turns, on this many files")
    parser.add_argument("--model", default=zoo.DEFAULT)
    parser.add_argument(
        "--out", type=Path, help="write the result as JSON, and the table next to it"
    )
    arguments = parser.parse_args(argv)
    if arguments.quarters is None and arguments.documents is None:
        parser.error("name a folder of documents, or use --quarters")
    with tempfile.TemporaryDirectory() as scratch:
        result = (quarters if arguments.quarters else mixed)(arguments, Path(scratch))
    lines = list(table(result))
    print("\n".join([*lines, *result["missed"]]))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        arguments.out.with_suffix(".md").write_text("\n".join(lines) + "\n")
    return 1 if result["missed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
