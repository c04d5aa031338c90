"""What is found in a folder, what is skipped, and in which words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from folders import picture, plain_folder, save
from PIL import Image

from radialbeams.training.own import scan as module
from radialbeams.training.own.scan import Scan, ScannedImage, UnusedFile, scan
from radialbeams.training.own.shards import Stored


def reasons(found: Scan) -> dict[str, str]:
    return {one.path: one.reason for one in found.skipped}


def test_mixed_sizes_formats_and_modes_are_all_found(tmp_path: Path) -> None:
    plain_folder(tmp_path, 8)
    save(picture(20, (90, 40)), tmp_path / "wide.jpg")
    save(picture(21).convert("L"), tmp_path / "gray.webp")
    save(picture(22).convert("RGBA"), tmp_path / "clear.PNG")
    save(picture(23).quantize(16), tmp_path / "few colours.gif")
    save(picture(24), tmp_path / "page.tif")
    (tmp_path / "notes.txt").write_text("no image")
    found = scan(tmp_path)
    assert len(found.images) == 13
    assert found.skipped == ()
    sizes = {image.path: image.size for image in found.images}
    assert sizes["wide.jpg"] == (90, 40)


def test_the_order_is_the_natural_one_with_processes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain_folder(tmp_path, 14)
    alone = scan(tmp_path)
    monkeypatch.setattr(module, "FEW_FILES", 2)
    seen: list[tuple[int, int]] = []
    together = scan(tmp_path, lambda done, total: seen.append((done, total)))
    assert together == alone
    assert [image.path for image in alone.images] == [f"photo{i}.png" for i in range(14)]
    assert seen == [(i, 14) for i in range(1, 15)]


def test_every_bad_file_is_skipped_with_its_reason(tmp_path: Path) -> None:
    plain_folder(tmp_path, 10)
    (tmp_path / "text.jpg").write_bytes(b"not an image")
    (tmp_path / "empty.png").write_bytes(b"")
    whole = save(picture(30), tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    save(picture(31, (20, 200)), tmp_path / "small.png")
    save(Image.new("RGB", (64, 64), (200, 10, 10)), tmp_path / "blank.png")
    turned = picture(32, (300, 300)).rotate(17, expand=True, fillcolor=(255, 255, 255))
    save(turned, tmp_path / "turned.png")
    (tmp_path / "twin.png").write_bytes((tmp_path / "photo3.png").read_bytes())
    found = scan(tmp_path)
    assert [image.path for image in found.images] == [f"photo{i}.png" for i in range(10)]
    texts = {
        "text.jpg": "It is not an image",
        "empty.png": "It is empty: 0 bytes",
        "cut.png": "It is damaged or truncated",
        "small.png": "It is too small: 20 × 200 pixels. The shorter side must have at least 32.",
        "blank.png": "It is blank",
        "turned.png": "It lies turned by 17° on a plain canvas",
        "twin.png": "It is a copy of photo3.png.",
    }
    assert set(reasons(found)) == set(texts)
    for path, text in texts.items():
        assert reasons(found)[path].startswith(text), path


def test_a_picture_that_was_turned_on_its_own_canvas_is_kept_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its corners are cut off, so no view shows them; cross-fitting finds its angle."""
    monkeypatch.setattr(module, "FEW_IMAGES", 10)
    plain_folder(tmp_path, 10, (300, 300))
    save(picture(32, (300, 300)).rotate(17, fillcolor=(255, 255, 255)), tmp_path / "turned.png")
    found = scan(tmp_path)
    assert [image.path for image in found.images if image.tilted] == ["turned.png"]
    assert found.warnings[0].startswith(
        "1 of 11 images have plain corners, as pictures have that were turned: turned.png. If they"
    )


def test_transparent_pictures_are_judged_by_what_is_seen(tmp_path: Path) -> None:
    """Black letters on nothing: all their colours are black, and they are still not copies."""
    for number in range(10):
        alpha = picture(number).convert("L")
        image = Image.new("RGBA", alpha.size, (255, 255, 255, 255))
        image.putalpha(alpha)
        save(image, tmp_path / f"letter{number}.png")
    fingerprints = {image.fingerprint for image in scan(tmp_path).images}
    assert len(fingerprints) == 10


def test_the_size_is_the_displayed_one(tmp_path: Path) -> None:
    plain_folder(tmp_path, 10)
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    picture(40, (90, 50)).save(tmp_path / "turned.jpg", exif=exif)
    sizes = {image.path: image.size for image in scan(tmp_path).images}
    assert sizes["turned.jpg"] == (50, 90)


@pytest.mark.parametrize(
    ("paths", "groups"),
    [
        (["a", "b"], {""}),
        ([f"{name}/x" for name in "abcde"], set("abcde")),
        # One folder around everything, and years inside of people.
        ([f"all/{name}/{year}/x" for name in "abcde" for year in (1, 2)],
         {f"all/{name}" for name in "abcde"}),
        (["good/x", "bad/x"], {"good", "bad"}),
    ],
)  # fmt: skip
def test_subfolders_are_groups(tmp_path: Path, paths: list[str], groups: set[str]) -> None:
    for number in range(12):
        save(picture(number), tmp_path / f"{paths[number % len(paths)]}{number}.png")
    assert {image.group for image in scan(tmp_path).images} == groups


def test_a_folder_without_images_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no image")
    with pytest.raises(ValueError, match=r"Expected images \(png, jpg, .*\) or tar shards .* none"):
        scan(tmp_path)
    with pytest.raises(ValueError, match="which does not exist"):
        scan(tmp_path / "nowhere")


def test_too_few_usable_images_are_an_error_that_names_the_reason(tmp_path: Path) -> None:
    plain_folder(tmp_path, 5)
    for number in range(7):
        save(Image.new("RGB", (50, 50 + number)), tmp_path / f"blank{number}.png")
    text = "at least 10 usable images in .* got 5. 7 were skipped, 7 of them .*: It is blank."
    with pytest.raises(ValueError, match=text):
        scan(tmp_path)


def test_the_warnings_say_what_to_expect(tmp_path: Path) -> None:
    plain_folder(tmp_path, 12, (40, 40))
    for number in range(4):
        save(Image.new("RGB", (50, 50 + number)), tmp_path / f"blank{number}.png")
    few, small, skipped = scan(tmp_path).warnings
    assert few.startswith("There are only 12 images. Expect a model that")
    assert small.startswith("12 of 12 images are smaller than 64 pixels. Expect errors")
    assert skipped.startswith("4 of 16 images were skipped.")


def test_a_good_folder_has_no_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW_IMAGES", 10)
    assert scan(plain_folder(tmp_path, 12, (80, 80))).warnings == ()


def test_noise_as_files_never_ends_a_scan(tmp_path: Path) -> None:
    plain_folder(tmp_path, 10)
    rng = np.random.default_rng(0)
    whole = (tmp_path / "photo0.png").read_bytes()
    for number in range(20):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), 8):
            data[place] = rng.integers(0, 256)
        (tmp_path / f"broken{number}.png").write_bytes(bytes(data))
    found = scan(tmp_path)
    assert len(found.images) + len(found.skipped) == 30


# --- notes ---


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The images that are looked at from now on."""
    seen: list[str] = []
    plain = module.look

    def watched(root: Path, stored: Stored) -> ScannedImage | UnusedFile:
        seen.append(stored.path)
        return plain(root, stored)

    monkeypatch.setattr(module, "look", watched)
    return seen


def test_a_second_scan_with_notes_reads_only_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, notes = plain_folder(tmp_path / "photos", 12), tmp_path / "notes.jsonl"
    (folder / "bad.png").write_bytes(b"no image")
    first = scan(folder, notes=notes)
    seen = counted(monkeypatch)
    assert scan(folder, notes=notes) == first == scan(folder)
    assert len(seen) == 13  # by the scan without notes
    seen.clear()
    save(picture(77), folder / "photo5.png")
    save(picture(78), folder / "new.png")
    (folder / "photo6.png").unlink()
    again = scan(folder, notes=notes)
    assert sorted(seen) == ["new.png", "photo5.png"]
    assert again == scan(folder)


def test_a_killed_scan_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, notes = plain_folder(tmp_path / "photos", 12), tmp_path / "notes.jsonl"

    class Killed(Exception):
        pass

    def kill(done: int, total: int) -> None:
        if done == 7:
            raise Killed

    with pytest.raises(Killed):
        scan(folder, kill, notes=notes)
    with notes.open("a") as file:
        file.write('{"stamp": "1/photo')
    seen = counted(monkeypatch)
    assert len(scan(folder, notes=notes).images) == 12
    assert seen == [f"photo{i}.png" for i in range(7, 12)]
    seen.clear()
    scan(folder, notes=notes)
    assert seen == []


@pytest.mark.parametrize("line", ["[]", "null", '{"stamp": 3}', '{"stamp": "x", "found": {}}'])
def test_lines_that_are_no_notes_are_ignored(tmp_path: Path, line: str) -> None:
    folder, notes = plain_folder(tmp_path / "photos", 10), tmp_path / "notes.jsonl"
    notes.write_text(f"{line}\n")
    assert scan(folder, notes=notes) == scan(folder)
