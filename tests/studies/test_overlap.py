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
        ["overlap.py", "--tested", str(place), "--against", f"coco={looks}", "--out", str(out)],
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


def test_cut_copies_in_a_folder_are_found_and_earlier_sources_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, folder, out = tmp_path / "photos.zip", tmp_path / "dogs", tmp_path / "overlap.json"
    (folder / "poodle").mkdir(parents=True)
    whole = photo(3, (200, 120))
    whole.crop((40, 0, 160, 120)).save(folder / "poodle" / "7.png")  # its centred square
    (folder / "broken.jpg").write_bytes(b"no picture")
    with zipfile.ZipFile(place, "w") as archive:
        buffer = io.BytesIO()
        whole.save(buffer, "PNG")
        archive.writestr("photos/dog.png", buffer.getvalue())
    earlier = {"tested": "photos", "n": 1, "against": {"coco": {"photos": 5}}}
    out.write_text(json.dumps(earlier))
    words = ["overlap.py", "--tested", str(place), "--against", f"dogs={folder}"]
    monkeypatch.setattr("sys.argv", [*words, "--out", str(out), "--sheet", str(tmp_path)])
    overlap.main()
    against = json.loads(out.read_text())["against"]
    assert against["coco"] == {"photos": 5}
    assert [one["like"] for one in against["dogs"]["near"]] == [str(Path("poodle") / "7.png")]
    assert against["dogs"]["same_by_eye"] is None, "somebody has to look"
    assert Image.open(tmp_path / "dogs.png").size == (256, 128)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"Expected a folder of photos; got .*, which has none"):
        overlap.of_folder(tmp_path)


def test_what_somebody_saw_in_the_pairs_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, out = tmp_path / "photos.zip", tmp_path / "overlap.json"
    with zipfile.ZipFile(place, "w") as archive:
        buffer = io.BytesIO()
        photo(3).save(buffer, "PNG")
        archive.writestr("photos/dog.png", buffer.getvalue())
    near = [{"photo": "a", "like": "b", "bits": 3}, {"photo": "c", "like": "d", "bits": 21}]
    dogs = {"photos": 5, "near": near, "same_by_eye": None}
    out.write_text(json.dumps({"tested": "photos", "n": 1, "against": {"dogs": dogs}}))
    words = ["overlap.py", "--tested", str(place), "--out", str(out), "--looked"]
    monkeypatch.setattr("sys.argv", [*words, "dogs=8"])
    overlap.main()
    found = json.loads(out.read_text())["against"]["dogs"]
    assert [pair["same"] for pair in found["near"]] == [True, False]
    assert found["same_by_eye"] == 1
    monkeypatch.setattr("sys.argv", [*words, "cats=8"])
    with pytest.raises(SystemExit):
        overlap.main()
    assert "expected a source that was compared; got 'cats'" in capsys.readouterr().err
