"""Quarter turns keep what a file stores: bits, palette, transparency, compression."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

from radialbeams import images
from radialbeams.batch import JobSettings
from radialbeams.batch.processing import upright_file
from radialbeams.decisions import Decision
from radialbeams.demo import PICTURES
from radialbeams.images.png import SIGNATURE, chunks, joined
from radialbeams.undoing import Undo, undone

QUARTER = Undo(Decision(90.0, "quarter"))
JOB = JobSettings("general", turns=True, writes=True)
PARTLY = bytes([0, 128, 255, 255, 255])


def values(high: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, high, (17, 33), np.uint8)


def one_bit() -> Image.Image:
    return Image.fromarray(values(256)).convert("1")


def palette() -> Image.Image:
    image = Image.fromarray(values(5)).convert("P")
    image.putdata(values(5).ravel().tolist())
    image.putpalette([value for colour in range(5) for value in (40 * colour, 10, 200 - colour)])
    return image


def saved(image: Image.Image, format: str, **options: Any) -> bytes:
    stream = BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def opened(data: bytes) -> Image.Image:
    image = Image.open(BytesIO(data))
    image.load()
    return image


FILES = {
    "one-bit PNG": saved(one_bit(), "PNG"),
    "palette PNG": saved(palette(), "PNG"),
    "palette PNG with alpha": saved(palette(), "PNG", transparency=PARTLY),
    "palette PNG with a clear colour": saved(palette(), "PNG", transparency=2),
    "gray PNG with a clear level": saved(Image.fromarray(values(9)), "PNG", transparency=3),
    "Group 4 TIFF": saved(one_bit(), "TIFF", compression="group4"),
    "Group 3 TIFF": saved(one_bit(), "TIFF", compression="group3"),
    "palette TIFF": saved(palette(), "TIFF", compression="packbits"),
    "GIF": saved(palette(), "GIF"),
    "GIF with a clear colour": saved(palette(), "GIF", transparency=2),
    "one-bit BMP": saved(one_bit(), "BMP"),
    "palette BMP": saved(palette(), "BMP"),
    "PBM": saved(one_bit(), "PPM"),
}


def bits(data: bytes) -> bytes:
    """Bit depth and colour type of a PNG."""
    return data[24:26] if data.startswith(SIGNATURE) else b""


@pytest.mark.parametrize("name", FILES)
def test_a_quarter_turn_keeps_what_the_file_stores(name: str) -> None:
    before = opened(FILES[name])
    data, method = upright_file(FILES[name], QUARTER, JOB)
    after = opened(data)
    assert (after.mode, method) == (before.mode, "pixels")
    assert after.info.get("compression") == before.info.get("compression")
    assert bits(data) == bits(FILES[name])
    clear = "RGBA" if before.has_transparency_data else "RGB"
    expected = before.convert(clear).transpose(Image.Transpose.ROTATE_270)
    assert after.convert(clear).tobytes() == expected.tobytes()
    assert after.has_transparency_data == before.has_transparency_data
    if name.startswith("palette"):
        assert after.getpalette() == before.getpalette()
    assert undone(FILES[name], QUARTER) == data  # the library writes the same bytes


def test_the_same_format_asked_for_is_the_same_file() -> None:
    job = JobSettings("general", turns=True, writes=True, format="png")
    assert opened(upright_file(FILES["palette PNG"], QUARTER, job)[0]).mode == "P"


def test_another_format_gets_colours() -> None:
    job = JobSettings("general", turns=True, writes=True, format="webp")
    after = opened(upright_file(FILES["palette PNG with alpha"], QUARTER, job)[0])
    assert (after.format, after.mode) == ("WEBP", "RGBA")


def test_other_angles_resample_colours() -> None:
    undo = Undo(Decision(10.0, "angle"))
    data, method = upright_file(FILES["palette PNG"], undo, JOB)
    assert (opened(data).mode, method) == ("RGB", "resampled")


def test_transparent_corners_are_asked_for_explicitly() -> None:
    undo = Undo(Decision(90.0, "quarter"), fill="transparent")
    assert opened(upright_file(FILES["palette PNG"], undo, JOB)[0]).mode == "RGBA"


def test_a_background_follows_the_palette() -> None:
    data = joined(FILES["palette PNG"], [(b"bKGD", b"\3"), (b"sBIT", b"\5\6\5")], "P", b"")
    assert [kind for kind, _ in chunks(upright_file(data, QUARTER, JOB)[0])] == [
        *(b"IHDR", b"sBIT", b"PLTE", b"bKGD", b"IDAT", b"IEND"),
    ]


def test_read_gives_colours_unless_asked() -> None:
    assert images.read(FILES["palette PNG"]).image.mode == "RGB"
    assert images.read(FILES["one-bit PNG"]).image.mode == "L"


# --- JPEG ---


def photo(**options: Any) -> bytes:
    with Image.open(PICTURES / "astronaut.webp") as picture:
        return saved(picture.convert("RGB").resize((320, 240)), "JPEG", **options)


PIXELS = JobSettings("general", turns=True, writes=True, pixels=True)


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_a_jpeg_may_be_turned_by_its_pixels(subsampling: int) -> None:
    before = photo(quality=80, subsampling=subsampling)
    assert upright_file(before, QUARTER, JOB)[1] == "exif"
    data, method = upright_file(before, QUARTER, PIXELS)
    after, expected = opened(data), opened(before).transpose(Image.Transpose.ROTATE_270)
    assert (method, after.size, after.getexif().get(0x0112, 1)) == ("encoded", (240, 320), 1)
    # With the turned tables of the file, whole blocks come back with hardly a change.
    difference = np.abs(np.asarray(after, np.int16) - np.asarray(expected, np.int16))
    assert difference.mean() < (0.4 if subsampling == 1 else 0.2)  # 4:2:2 gets new chroma blocks
    table = np.reshape(opened(before).quantization[0], (8, 8))  # type: ignore[attr-defined]
    assert np.reshape(after.quantization[0], (8, 8)).T.tolist() == table.tolist()  # type: ignore[attr-defined]
    if subsampling != 1:
        assert len(data) < 1.1 * len(before)


def test_a_quality_that_is_given_replaces_the_tables() -> None:
    job = JobSettings("general", turns=True, writes=True, pixels=True, quality=30)
    assert len(upright_file(photo(quality=90), QUARTER, job)[0]) < len(photo(quality=60))


def test_a_gray_jpeg_turns_by_its_pixels_too() -> None:
    before = saved(opened(photo()).convert("L"), "JPEG", quality=70)
    after = opened(upright_file(before, Undo(Decision(180.0, "quarter")), PIXELS)[0])
    assert after.mode == "L" and after.quantization == opened(before).quantization  # type: ignore[attr-defined]


def test_other_angles_are_encoded_as_before() -> None:
    undo = Undo(Decision(10.0, "angle"))
    before = photo(quality=20)
    assert upright_file(before, undo, PIXELS) == upright_file(before, undo, JOB)


@pytest.mark.parametrize(
    ("format", "options", "method"),
    [("WEBP", {}, "encoded"), ("WEBP", {"lossless": True}, "pixels"), ("PNG", {}, "pixels")],
)
def test_only_lossless_formats_are_called_so(
    format: str, options: dict[str, Any], method: str
) -> None:
    data = saved(opened(photo()), format, **options)
    assert upright_file(data, QUARTER, JOB)[1] == method
