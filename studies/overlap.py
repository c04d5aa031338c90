"""Photos of a test set that a model may have been trained on, found by their fingerprints.

    python studies/overlap.py --tested PHOTOS.zip --against FOLDER_OR_LOOKS…

A fingerprint is that of `tools/photos`: 128 bits of the whole picture, whatever its shape. Two
pictures that differ in at most 20 bits are taken for copies, up to 26 for near ones. `--against`
names folders or archives of photos, or a `looks.jsonl` that `tools/photos/prepare.py` wrote.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams.images.fingerprints import fingerprint
from radialbeams.training.data import load

COPY, NEAR, BITS = 20, 26, 128
SIZE = 128  # pixels to which photos of a folder are brought before their fingerprints

Bits = NDArray[np.bool_]


def of_folder(place: Path) -> tuple[list[str], Bits]:
    """The centred squares of the photos in a folder or archive."""
    images = load(place, size=SIZE)
    pixels = images.images.permute(0, 2, 3, 1).numpy()
    return list(images.keys), np.stack(
        [fingerprint(Image.fromarray(picture)) for picture in pixels]
    )


def of_looks(place: Path) -> tuple[list[str], Bits]:
    """Whole photos, fingerprinted by `prepare.py`; those that it dropped count too."""
    names, rows = [], []
    for line in place.read_text(encoding="utf-8").splitlines():
        look = json.loads(line)
        if look.get("bits"):
            names.append(f"{look['source']}/{look['name']}")
            rows.append(np.frombuffer(bytes.fromhex(look["bits"]), np.uint8))
    return names, np.unpackbits(np.stack(rows), axis=1).astype(bool)


def whole(folder: Path) -> tuple[list[str], Bits]:
    """The photos as they are, not cut to a square: squashed copies have the same fingerprint."""
    import zipfile

    names, rows = [], []
    with zipfile.ZipFile(folder) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".jpg"):
                with archive.open(name) as file, Image.open(file) as photo:
                    names.append(Path(name).stem)
                    rows.append(fingerprint(photo))
    return names, np.stack(rows)


def nearest(bits: Bits, known: Bits, tile: int = 8192) -> tuple[NDArray[np.int64], Any]:
    """For each row the nearest of `others`, and in how many bits they differ."""
    signs = np.where(bits, 1, -1).astype(np.float32)
    best = np.full(len(bits), BITS + 1)
    where = np.full(len(bits), -1)
    for start in range(0, len(known), tile):
        part = np.where(known[start : start + tile], 1, -1).astype(np.float32)
        apart = (BITS - signs @ part.T) / 2
        least = apart.min(1)
        where = np.where(least < best, start + apart.argmin(1), where)
        best = np.minimum(best, least)
    return where, best


def compared(tested: tuple[list[str], Bits], known: tuple[list[str], Bits]) -> dict[str, Any]:
    where, apart = nearest(tested[1], known[1])
    near = [
        {"photo": tested[0][row], "like": known[0][where[row]], "bits": int(apart[row])}
        for row in np.argsort(apart, kind="stable")
        if apart[row] <= NEAR
    ]
    return {
        "photos": len(known[0]),
        "copies": sum(pair["bits"] <= COPY for pair in near),
        "near": near,
        "nearest_bits": int(apart.min()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tested", type=Path, required=True, help="a zip of photos")
    parser.add_argument("--against", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, default=Path("results") / "overlap.json")
    arguments = parser.parse_args()
    tested = whole(arguments.tested)
    results: dict[str, Any] = {"tested": arguments.tested.stem, "n": len(tested[0]), "against": {}}
    results["same_by_eye"] = None  # to be filled in by whoever has looked at the near pairs
    for source in arguments.against:
        known = of_looks(source) if source.suffix == ".jsonl" else of_folder(source)
        name = sorted({key.split("/")[0] for key in known[0]}) if source.suffix == ".jsonl" else []
        results["against"][", ".join(name) or source.stem] = compared(tested, known)
    arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results)[:2000])


if __name__ == "__main__":
    main()
