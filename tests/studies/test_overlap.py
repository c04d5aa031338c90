"""Fingerprints of test photos beside those of training photos."""

from __future__ import annotations

import importlib
import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image

sys.path.insert(0, str(ROOT / "studies"))
overlap = importlib.import_module("overlap")


def photo(seed: int, size: tuple[int, int] = (160, 120)) -> Image.Image:
    noise = np.random.default_rng(seed).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    return Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC)


def test_a_squashed_copy_is_found_and_another_photo_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "photos.zip"
    with zipfile.ZipFile(place, "w") as archive:
        for name, seed in (("copied", 1), ("alone", 2)):
            buffer = io.BytesIO()
            photo(seed).save(buffer, "JPEG", quality=90)
            archive.writestr(f"photos/{name}.jpg", buffer.getvalue())
    looks = tmp_path / "looks.jsonl"
    bits = np.packbits(overlap.fingerprint(photo(1, (128, 128)))).tobytes().hex()
    looks.write_text(json.dumps({"source": "coco", "name": "7", "bits": bits}) + "\n")
    out = tmp_path / "overlap.json"
    monkeypatch.setattr(
        "sys.argv",
        ["overlap.py", "--tested", str(place), "--against", str(looks), "--out", str(out)],
    )
    overlap.main()
    found = json.loads(out.read_text())["against"]["coco"]
    assert [(one["photo"], one["like"]) for one in found["near"]] == [("copied", "coco/7")]
    assert (found["photos"], found["copies"]) == (1, 1)


def test_the_nearest_is_found_across_tiles() -> None:
    bits = np.random.default_rng(0).random((40, 128)) < 0.5
    where, apart = overlap.nearest(bits[:5], bits[::-1], tile=7)
    assert where.tolist() == [39, 38, 37, 36, 35]
    assert apart.tolist() == [0] * 5
