"""Finds photos of a test set that a model may have been trained on, by their fingerprints.

    python studies/overlap.py --tested PHOTOS.zip --against NAME=FOLDER_OR_LOOKS…

Fingerprints are those of `tools/photos`: 128 bits of a picture, independent of its shape. Photos
are compared whole and by their centred squares, since copies are often cropped. Two pictures that
differ in at most 20 bits count as copies, and in at most 26 bits as near. `--against` names folders
of training photos, which must be downloaded first (`tools/photos/README.md` lists their sources),
or a `looks.jsonl` that `tools/photos/prepare.py` wrote, which has fingerprints of whole photos
only. Results under other names stay in the file, so sources can be compared one after the other.
`--sheet` draws the near pairs side by side, so that a person can decide which of them show the same
picture. `--looked NAME=BITS` records the decision: pairs up to so many bits do, the others do not
(-1: none does).
"""

from __future__ import annotations

import argparse
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams.images.fingerprints import fingerprint

COPY, NEAR, BITS = 20, 26, 128
DECODED = 64  # pixels that a photo is decoded to at least; a fingerprint needs 32
ENDINGS = (".jpg", ".jpeg", ".png", ".webp")

Bits = NDArray[np.bool_]
Fingerprinted = tuple[list[str], list[Bits]]  # names, and one or more fingerprints of each


def fingerprints(photo: Image.Image) -> tuple[Bits, Bits]:
    """The fingerprints of the whole photo, and of its centred square."""
    photo.draft("L", (DECODED, DECODED))
    wide, high = photo.size
    side = min(wide, high)
    left, top = (wide - side) // 2, (high - side) // 2
    return fingerprint(photo), fingerprint(photo.crop((left, top, left + side, top + side)))


def of_folder(folder: Path) -> Fingerprinted:
    """The photos in a folder; files that cannot be read are skipped."""
    names, pairs = [], []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in ENDINGS:
            continue
        try:
            with Image.open(path) as photo:
                pairs.append(fingerprints(photo))
        except (OSError, ValueError):
            continue
        names.append(str(path.relative_to(folder)))
    if not names:
        raise SystemExit(f"Expected a folder of photos; got {folder}, which has none.")
    return names, [np.stack(side) for side in zip(*pairs, strict=True)]


def of_looks(path: Path) -> Fingerprinted:
    """Whole photos, fingerprinted by `prepare.py`, including those that it dropped."""
    names, rows = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        look = json.loads(line)
        if look.get("bits"):
            names.append(f"{look['source']}/{look['name']}")
            rows.append(np.frombuffer(bytes.fromhex(look["bits"]), np.uint8))
    return names, [np.unpackbits(np.stack(rows), axis=1).astype(bool)]


def of_archive(path: Path) -> Fingerprinted:
    """The photos in a zip file."""
    names, pairs = [], []
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(ENDINGS):
                with archive.open(name) as file, Image.open(file) as photo:
                    names.append(Path(name).stem)
                    pairs.append(fingerprints(photo))
    return names, [np.stack(side) for side in zip(*pairs, strict=True)]


def nearest(bits: Bits, others: Bits, tile: int = 8192) -> tuple[NDArray[np.int64], Any]:
    """For each row, the index of the nearest of `others`, and the number of bits that differ."""
    signs = np.where(bits, 1, -1).astype(np.float32)
    lowest = np.full(len(bits), BITS + 1)
    index = np.full(len(bits), -1)
    for start in range(0, len(others), tile):
        tile_signs = np.where(others[start : start + tile], 1, -1).astype(np.float32)
        distance = (BITS - signs @ tile_signs.T) / 2
        tile_lowest = distance.min(1)
        index = np.where(tile_lowest < lowest, start + distance.argmin(1), index)
        lowest = np.minimum(lowest, tile_lowest)
    return index, lowest


def compare(tested: Fingerprinted, source: Fingerprinted) -> dict[str, Any]:
    """The near pairs: whole photos against whole, squares against squares, the nearer counts."""
    pairs = [nearest(ours, theirs) for ours, theirs in zip(tested[1], source[1], strict=False)]
    index, distance = pairs[0]
    for square_index, square_distance in pairs[1:]:
        index, distance = (
            np.where(square_distance < distance, square_index, index),
            np.minimum(square_distance, distance),
        )
    near = [
        {"photo": tested[0][row], "like": source[0][index[row]], "bits": int(distance[row])}
        for row in np.argsort(distance, kind="stable")
        if distance[row] <= NEAR
    ]
    return {
        "photos": len(source[0]),
        "copies": sum(pair["bits"] <= COPY for pair in near),
        "near": near,
        "nearest_bits": int(distance.min()),
        "same_by_eye": None if near else 0,  # recorded by --looked, after looking at the pairs
    }


def looked_at(comparison: dict[str, Any], bits: int) -> dict[str, Any]:
    """The comparison after looking at its near pairs: those up to `bits` are copies."""
    near = [{**pair, "same": pair["bits"] <= bits} for pair in comparison["near"]]
    return {**comparison, "near": near, "same_by_eye": sum(pair["same"] for pair in near)}


def draw_sheet(comparison: dict[str, Any], tested: Path, folder: Path, out: Path) -> None:
    """Writes an image of the near pairs side by side, the photo of the test set on the left."""
    side, rows = 128, max(1, len(comparison["near"]))
    sheet = Image.new("RGB", (2 * side, side * rows))
    with zipfile.ZipFile(tested) as archive:
        files = {Path(name).stem: name for name in archive.namelist()}
        for row, pair in enumerate(comparison["near"]):
            with archive.open(files[pair["photo"]]) as file, Image.open(file) as ours:
                sheet.paste(ours.convert("RGB").resize((side, side)), (0, side * row))
            with Image.open(folder / pair["like"]) as theirs:
                sheet.paste(theirs.convert("RGB").resize((side, side)), (side, side * row))
    sheet.save(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tested", type=Path, required=True, help="a zip of photos")
    parser.add_argument("--against", nargs="+", default=[], help="NAME=FOLDER or NAME=FILE")
    parser.add_argument("--looked", nargs="+", default=[], help="NAME=BITS")
    parser.add_argument("--out", type=Path, default=Path("results") / "overlap.json")
    parser.add_argument("--sheet", type=Path, help="a folder for pictures of the near pairs")
    arguments = parser.parse_args()
    tested = of_archive(arguments.tested)
    results: dict[str, Any] = {"tested": arguments.tested.stem, "n": len(tested[0]), "against": {}}
    if arguments.out.is_file():
        earlier = json.loads(arguments.out.read_text(encoding="utf-8"))
        if earlier["tested"] == results["tested"]:
            results["against"] = earlier["against"]
    for argument in arguments.against:
        name, _, path = argument.partition("=")
        source = of_looks(Path(path)) if path.endswith(".jsonl") else of_folder(Path(path))
        comparison = compare(tested, source)
        results["against"][name] = comparison
        if arguments.sheet and Path(path).is_dir():
            draw_sheet(comparison, arguments.tested, Path(path), arguments.sheet / f"{name}.png")
        print(f"{name}: {comparison['photos']:,} photos, {len(comparison['near'])} near, nearest "
              f"{comparison['nearest_bits']} bits", flush=True)  # fmt: skip
    for argument in arguments.looked:
        name, _, bits = argument.partition("=")
        if name not in results["against"]:
            parser.error(f"expected a source that was compared; got {name!r}. Name it in --against")
        results["against"][name] = looked_at(results["against"][name], int(bits))
    arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
