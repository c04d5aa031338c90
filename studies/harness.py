"""The options, images, stored outputs and output file that studies share."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from radialbeams.training.data import DataNotFound, ImageSet, load

Kept = TypeVar("Kept")  # a NamedTuple of arrays


def arguments(description: str | None, out: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--photos", type=Path, help="a folder or archive of upright photos")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, default=out)
    return parser.parse_args()


def kept(file: Path | None, kind: Callable[..., Kept], compute: Callable[[], Kept]) -> Kept:
    """The named arrays that an earlier run stored, else computed and stored: models are slow."""
    if file is not None and file.is_file():
        with np.load(file) as stored:
            return kind(**stored)
    new = compute()
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **new._asdict())  # type: ignore[attr-defined]
    return new


def surer(right: NDArray[Any], scores: NDArray[Any]) -> float:
    """The share that is right among the half with the highest scores."""
    best = np.argsort(-scores, kind="stable")[: len(scores) // 2]
    return round(float(right[best].mean()), 4)


def objects(options: argparse.Namespace) -> ImageSet:
    """COIL-100's held-out views."""
    return load("coil100", root=options.data, split="test", limit=options.limit)


def photos(options: argparse.Namespace) -> ImageSet | None:
    """The photos of `--photos`, by default COCO-1030; None if they are not found."""
    top = options.data or Path(os.environ.get("RADIALBEAMS_DATA", "."))
    try:
        return load(options.photos or top / "coco-1030.zip", limit=options.limit)
    except DataNotFound:
        return None


def write(results: dict[str, Any], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results))
