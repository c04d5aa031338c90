"""The set of upright photos: frames, squashing, copies, the split, runs that are killed."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image

from radialbeams.images import fingerprints

FOLDER = ROOT / "tools" / "photos"
NAMES = ("clean", "prepare")


def load() -> Iterator[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    try:
        yield from [importlib.import_module(name) for name in NAMES]
    finally:
        sys.path.remove(str(FOLDER))


clean, prepare = load()


def texture(seed: int, height: int = 200, width: int = 200) -> np.ndarray:
    """Soft blobs with grain: something in every line."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8))
    soft = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.float32)
    return np.clip(soft + rng.normal(0, 8, soft.shape), 0, 255).astype(np.float32)


def jpeg(pixels: np.ndarray, quality: int = 90) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(buffer, "JPEG", quality=quality, subsampling=0)
    return buffer.getvalue()


# Frames.


@pytest.mark.parametrize("colour", [0, 90, 255])
@pytest.mark.parametrize(
    "sides", ["top", "bottom", "left", "right", "top bottom", "top bottom left right"]
)
@pytest.mark.parametrize("depth", [3, 30])
def test_a_frame_is_found_on_its_sides(colour: int, sides: str, depth: int) -> None:
    pixels = texture(1)
    bands: dict[str, Any] = {
        "top": np.s_[:depth],
        "bottom": np.s_[-depth:],
        "left": np.s_[:, :depth],
        "right": np.s_[:, -depth:],
    }
    for side, lines in bands.items():
        if side in sides.split():
            pixels[lines] = colour
    assert clean.framed(pixels) == sides
    if colour in (0, 255):  # a grey frame is lost where JPEG rings into it
        stored = np.asarray(Image.open(io.BytesIO(jpeg(pixels))), np.float32)
        assert clean.framed(stored) == sides


def sky(horizon: np.ndarray, top: float, drift: float) -> np.ndarray:
    """A sky that brightens by `drift` grey levels downwards, then land below the outline."""
    rows = np.arange(200)[:, None, None]
    above = np.broadcast_to(top + drift * rows / 200, (200, 200, 3))
    return np.where(rows < horizon[None, :, None], above, texture(2)).astype(np.float32)


HILLS = 60 + 25 * np.sin(np.arange(200) / 25)


@pytest.mark.parametrize(
    "pixels",
    [
        pytest.param(texture(1), id="texture"),
        pytest.param(sky(HILLS, 120, 60), id="blue sky"),
        pytest.param(sky(HILLS, 255, 0), id="white sky"),
        pytest.param(sky(np.full(200, 100.0), 255, 0), id="white sky over the sea"),
        pytest.param(
            np.broadcast_to(np.linspace(0, 255, 200)[:, None, None], (200, 200, 3)), id="gradient"
        ),
    ],
)
def test_a_sky_is_no_frame(pixels: np.ndarray) -> None:
    assert clean.framed(pixels.astype(np.float32)) == ""


def test_an_object_on_white_is_no_frame() -> None:
    y, x = np.mgrid[-1:1:200j, -1:1:200j]
    pixels = np.where((x**2 + y**2 < 0.8)[..., None], texture(3), 255)
    assert clean.framed(pixels.astype(np.float32)) == ""


def test_bands_outside_of_the_centred_square_do_not_count() -> None:
    pixels = texture(4, 200, 300)
    pixels[:, :30] = pixels[:, -30:] = 0
    image = Image.fromarray(pixels.astype(np.uint8))
    assert clean.fault(image, image.size) == ""


@pytest.mark.parametrize(
    ("native", "reason"),
    [((640, 480), ""), ((320, 239), "small"), ((640, 250), "elongated"), ((256, 256), "")],
)
def test_the_native_size_decides_not_the_stored_one(native: tuple[int, int], reason: str) -> None:
    image = Image.fromarray(texture(5, 256, 256).astype(np.uint8))
    assert clean.fault(image, native) == reason


def test_a_wall_is_flat() -> None:
    image = Image.fromarray(np.full((200, 200, 3), 130, np.uint8))
    assert clean.fault(image, image.size) == "flat"


# Geometry.


def test_convention_square_box() -> None:
    assert clean.square_box((256, 256), (640, 480)) == (32.0, 0.0, 224.0, 256.0)
    assert clean.square_box((256, 256), (480, 640)) == (0.0, 32.0, 256.0, 224.0)
    assert clean.square_box((301, 200), (301, 200)) == (50.0, 0.0, 250.0, 200.0)


@pytest.mark.parametrize("native", [(640, 480), (427, 640), (500, 500)])
def test_unsquashing_is_exact_on_a_plane(native: tuple[int, int]) -> None:
    """Lanczos keeps a plane away from its edges, so each pixel must show its own place."""
    width, height = native

    def plane(x: Any, y: Any) -> Any:  # of native coordinates, in grey levels
        return 20 + 200 * (0.3 * x / width + 0.7 * y / height)

    y, x = (np.mgrid[:256, :256] + 0.5) / 256
    squashed = Image.fromarray(plane(x * width, y * height).astype(np.float32))
    made = np.asarray(clean.square(squashed, native, 176))
    side = min(native)
    y, x = (np.mgrid[:176, :176] + 0.5) / 176 * side
    left, top = (width - side) // 2, (height - side) // 2
    inside = np.s_[6:-6, 6:-6]
    np.testing.assert_allclose(made[inside], plane(x + left, y + top)[inside], atol=0.05)


def test_exif_is_applied_before_anything_else() -> None:
    image = Image.fromarray(texture(6, 200, 300).astype(np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", exif=exif)
    assert clean.open_photo(buffer.getvalue()).size == (200, 300)


# Copies.


def bits_of(data: bytes) -> np.ndarray:
    return np.asarray(fingerprints.fingerprint(clean.open_photo(data)))


def test_a_copy_is_near_however_it_is_stored_and_another_photo_is_not() -> None:
    photo = texture(7, 300, 400)
    small = Image.fromarray(photo.astype(np.uint8)).resize((256, 256), Image.Resampling.LANCZOS)
    ours = bits_of(jpeg(photo))
    for copy in (jpeg(photo, 40), jpeg(np.asarray(small), 75), jpeg(0.8 * photo + 20)):
        assert (ours != bits_of(copy)).sum() <= prepare.COPY
    assert (ours != bits_of(jpeg(texture(8, 300, 400)))).sum() > prepare.AWAY


def test_near_rows_agree_with_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "TILE", 7)  # several tiles, the last one short
    rng = np.random.default_rng(0)
    bits = rng.random((40, 128)) < 0.5
    bits[[9, 20, 33]] = bits[[2, 19, 2]]
    bits[33, :5] ^= True
    apart = (bits[:, None] != bits[None]).sum(axis=2)
    for distance in (0, 4, 5, 55):
        expected = [next((j for j in range(i) if apart[i, j] <= distance), -1) for i in range(40)]
        assert fingerprints.near_earlier(bits, distance).tolist() == expected
        expected = [next((j for j in range(11) if row[j] <= distance), -1) for row in apart]
        assert fingerprints.first_near(bits, bits[:11], distance).tolist() == expected


# The command.


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    plain, squashed, away = (tmp_path / name for name in ("plain", "squashed", "away"))
    for folder in (plain / "cat", squashed, away):
        folder.mkdir(parents=True)
    for number in range(6):
        (plain / f"{number}.jpg").write_bytes(jpeg(texture(10 + number, 200, 260)))
    (plain / "cat" / "0.jpg").write_bytes(jpeg(texture(16)))
    (plain / "again.jpg").write_bytes((plain / "0.jpg").read_bytes())
    (plain / "near.jpg").write_bytes(jpeg(texture(11, 200, 260), 60))
    (plain / "broken.jpg").write_bytes(b"no photo")
    for number in range(4):
        (squashed / f"{number:012}.jpg").write_bytes(jpeg(texture(20 + number, 256, 256)))
    (away / "test.jpg").write_bytes(jpeg(texture(12, 200, 260)[:, ::-1], 80))
    (tmp_path / "sizes.csv.gz").write_bytes(
        gzip.compress(b"id,width,height\n0,640,480\n1,640,480\n2,640,480\n")
    )
    (tmp_path / "excluded.txt").write_text("1\n77\n")
    return tmp_path


def run(top: Path) -> dict[str, Any]:
    report = top / "report.json"
    arguments = [top / "out", "--photos", f"plain={top / 'plain'}", "--jobs", 1]
    arguments += ["--squashed", f"squashed={top / 'squashed'}", "--sizes", top / "sizes.csv.gz"]
    arguments += ["--exclude", f"squashed={top / 'excluded.txt'}", "--away", top / "away"]
    arguments += ["--report", report, "--size", 64]
    assert prepare.main([str(argument) for argument in arguments]) == 0
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def test_every_dropped_photo_is_counted(folders: Path) -> None:
    report = run(folders)
    dropped = {"copy": 1, "near copy": 1, "near a test photo": 1, "unreadable": 1}
    assert report["plain"]["dropped"] == dropped
    assert report["squashed"]["dropped"] == {"excluded": 1, "size unknown": 1}
    written = sorted((folders / "out").glob("*/*/*.webp"))
    names = {path.stem for path in written}
    assert names == {"0", "1", "3", "4", "5", "cat-0", "000000000000", "000000000002"}
    for source, count in (("plain", 6), ("squashed", 2)):
        assert report[source]["train"] + report[source]["test"] == count
    for path in written:
        assert Image.open(path).size == (64, 64)
        test = int(hashlib.sha256(path.stem.encode()).hexdigest(), 16) % 50 == 0
        assert path.parts[-3] == ("test" if test else "train")


def test_one_photo_in_fifty_is_held_out() -> None:
    share = np.mean([prepare.held_out(f"photo-{number}") for number in range(20_000)])
    assert share == pytest.approx(0.02, abs=0.003)


def test_a_killed_run_goes_on(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(folders)
    out = folders / "out"
    notes = out / "looks.jsonl"
    lines = notes.read_text().splitlines(keepends=True)
    notes.write_text("".join(lines[:9]) + lines[9][:30])
    kept, lost = sorted(out.glob("*/*/*.webp"))[:2]
    lost.unlink()
    stamp = kept.stat().st_mtime_ns
    looked: list[str] = []
    look_at = prepare.look_at

    def note_and_look(path: Path) -> Any:
        looked.append(path.name)
        return look_at(path)

    monkeypatch.setattr(prepare, "look_at", note_and_look)
    assert run(folders) == whole
    assert len(looked) == len(lines) - 9
    assert lost.exists() and kept.stat().st_mtime_ns == stamp
    looked.clear()
    assert run(folders) == whole
    assert looked == []


def test_a_photo_that_is_dropped_now_is_removed_and_others_are_not(folders: Path) -> None:
    run(folders)
    out = folders / "out"
    (out / "train" / "mine").mkdir()
    (out / "train" / "mine" / "own.webp").write_bytes(b"")
    (folders / "excluded.txt").write_text("0\n1\n")
    run(folders)
    assert not list(out.glob("*/squashed/000000000000.webp"))
    assert (out / "train" / "mine" / "own.webp").exists()


def test_refusals_say_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        prepare.main([str(tmp_path / "out"), "--photos", "folder"])
    assert "expected NAME=PATH; got 'folder'; name the source" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="contains none; check the path"):
        prepare.main([str(tmp_path / "out"), "--photos", f"a={tmp_path}"])
    with pytest.raises(SystemExit, match="expected --sizes with --squashed"):
        prepare.main([str(tmp_path / "out"), "--squashed", f"a={tmp_path}"])


def test_shards_hold_every_kept_photo_once_and_no_more_bytes_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    shards = importlib.import_module("shards")
    photos, out = tmp_path / "photos", tmp_path / "out"
    photos.mkdir()
    rng, lines = np.random.default_rng(0), []
    for number in range(12):
        noise = Image.fromarray(rng.integers(0, 256, (64, 64, 3), np.uint8))
        noise.save(photos / f"{number:03d}.{'jpg' if number % 2 else 'JPEG'}")
        reason = "frame" if number == 5 else ""
        native = [640, 480] if number % 2 else None  # squashed, or stored as it was taken
        row = {"name": f"{number:03d}", "native": native, "reason": reason}
        lines.append(json.dumps(row))
    (tmp_path / "reasons.jsonl").write_text("\n".join(lines))
    arguments = [tmp_path / "reasons.jsonl", photos, out, "--bytes", "36000"]
    assert shards.main([str(argument) for argument in arguments]) == 0
    names: list[str] = []
    sizes: list[str] = []
    for path in sorted(out.iterdir()):
        assert path.stat().st_size <= 36000
        with tarfile.open(path) as archive:
            members = archive.getnames()
            content = archive.extractfile("sizes.csv")
            assert content is not None
            header, *rows = content.read().decode().splitlines()
        assert header == "id,width,height"
        sizes += rows
        assert members[0] == "sizes.csv"
        names += members[1:]
    assert len(list(out.iterdir())) > 1
    assert sorted(names) == sorted(
        f"{number:03d}.{'jpg' if number % 2 else 'JPEG'}" for number in range(12) if number != 5
    )
    assert sorted(sizes) == [f"{number:03d},640,480" for number in (1, 3, 7, 9, 11)]
