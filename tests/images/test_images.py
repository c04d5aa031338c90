"""Pictures in as they are meant to be seen, views of them, and pictures out as they came."""

from __future__ import annotations

import io
import re
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image, JpegImagePlugin, PngImagePlugin, TiffImagePlugin
from probe import damage, decoding

from radialbeams.cards import ViewProtocol
from radialbeams.images import (
    ImageError,
    Picture,
    content_of,
    encode,
    read,
    read_small,
    set_orientation,
    turn,
    view,
)
from radialbeams.images.orientation import CYCLES, TRANSPOSES, orientation_of
from radialbeams.images.sixteen_bit import as_gray, sixteen_bit_png, sixteen_bit_tiff
from radialbeams.images.views import centre_square, paper_view

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
CORNERS = np.array([[RED, GREEN], [BLUE, WHITE]], dtype=np.uint8)
ORIENTATION, MAKE, THUMBNAIL = 0x0112, 0x010F, b"a thumbnail of the picture as it was"


def pixels(picture: Image.Image) -> list[list[tuple[int, ...]]]:
    return [[tuple(map(int, pixel)) for pixel in row] for row in np.asarray(picture)]


def one_pixel(picture: Image.Image) -> tuple[int, ...]:
    small = read_small(picture, 8)
    assert small.mode == "RGB"
    return pixels(small)[0][0]


def one_seen(picture: Image.Image) -> list[float]:
    """The same pixel as a model sees it, 0 … 255."""
    seen = view(read_small(picture, 8), ViewProtocol("paper"), 1, 3)
    return [float(value) for value in 255 * seen[:, 0, 0]]


def noise(width: int, height: int, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, channels), np.uint8)


def saved(image: Image.Image, format: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def exif_of(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[ORIENTATION], exif[MAKE] = orientation, "camera"
    return exif


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


# --- in ---


@pytest.mark.parametrize(
    ("orientation", "seen"),
    [
        (1, [[RED, GREEN], [BLUE, WHITE]]),
        (2, [[GREEN, RED], [WHITE, BLUE]]),
        (3, [[WHITE, BLUE], [GREEN, RED]]),
        (6, [[BLUE, RED], [WHITE, GREEN]]),  # the camera lay on its side
        (8, [[GREEN, WHITE], [RED, BLUE]]),
        (77, [[RED, GREEN], [BLUE, WHITE]]),  # no such value
    ],
)
def test_the_exif_orientation_is_applied(
    tmp_path: Path, orientation: int, seen: list[list[tuple[int, ...]]]
) -> None:
    path = tmp_path / "turned.png"
    Image.fromarray(CORNERS).save(path, exif=exif_of(orientation))
    sources = (path, str(path), path.read_bytes(), io.BytesIO(path.read_bytes()), Image.open(path))
    for source in sources:
        assert pixels(read(source).image) == seen
    assert pixels(read_small(path, 8)) == seen


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_an_unreadable_orientation_counts_as_none() -> None:
    data = saved(Image.fromarray(CORNERS), "PNG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    assert pixels(read(data).image) == pixels(Image.fromarray(CORNERS))
    assert read(data).exif is None


def test_what_is_transparent_is_black_to_a_model() -> None:
    assert one_seen(Image.new("RGBA", (1, 1), (200, 100, 50, 0))) == [0, 0, 0]
    opaque = one_seen(Image.new("RGBA", (1, 1), (200, 100, 50, 255)))
    np.testing.assert_allclose(opaque, (200, 100, 50), atol=0.01)
    half = one_seen(Image.new("RGBA", (1, 1), (200, 100, 50, 128)))
    np.testing.assert_allclose(half, (100, 50, 25), atol=1)
    assert one_seen(Image.new("LA", (1, 1), (200, 0))) == [0, 0, 0]


def test_a_palette_is_looked_up() -> None:
    palette = Image.fromarray(CORNERS).quantize(4)
    assert pixels(read(palette).image) == pixels(Image.fromarray(CORNERS))
    assert pixels(read_small(palette, 8)) == pixels(Image.fromarray(CORNERS))


def test_a_transparent_colour_of_a_palette_stays_transparent() -> None:
    picture = Image.new("P", (2, 1))
    picture.putpalette([9, 9, 9, *RED])
    picture.putpixel((1, 0), 1)
    data = saved(picture, "PNG", transparency=1)
    for image in (read(data).image, read_small(data, 8)):
        assert image.mode == "RGBA"
        assert [pixel[3] for pixel in pixels(image)[0]] == [255, 0]


def test_gray_becomes_three_equal_channels() -> None:
    assert one_pixel(Image.new("L", (1, 1), 77)) == (77, 77, 77)
    assert one_pixel(Image.new("1", (1, 1), 1)) == (255, 255, 255)


def test_printers_inks_become_light() -> None:
    assert one_pixel(Image.new("CMYK", (1, 1), (0, 255, 255, 0))) == RED
    assert one_pixel(Image.new("CMYK", (1, 1), (0, 0, 0, 255))) == (0, 0, 0)


@pytest.mark.parametrize(("value", "seen"), [(0, 0), (25700, 100), (32896, 128), (65535, 255)])
def test_sixteen_bits_are_scaled_in_the_view_and_kept_in_the_picture(value: int, seen: int) -> None:
    data = saved(Image.fromarray(np.full((1, 1), value, np.uint16)), "PNG")
    assert one_pixel(opened(data)) == (seen, seen, seen)
    assert np.asarray(read(data).image).tolist() == [[value]]


@pytest.mark.parametrize(
    "array",
    [
        CORNERS,
        CORNERS.astype(np.uint16) * 257,
        (CORNERS / 255).astype(np.float32),
        CORNERS / 255,
        np.dstack([CORNERS, np.full((2, 2), 255, np.uint8)]),
    ],
)
def test_arrays_of_any_depth_are_pictures(array: np.ndarray) -> None:
    assert pixels(read_small(array, 8).convert("RGB")) == pixels(Image.fromarray(CORNERS))


def test_gray_arrays_are_pictures() -> None:
    assert pixels(read_small(np.full((1, 1), 77, np.uint8), 8)) == [[(77, 77, 77)]]
    assert pixels(read_small(np.full((1, 1, 1), 77, np.uint8), 8)) == [[(77, 77, 77)]]
    assert pixels(read_small(np.array([[[200, 0]]], np.uint8), 8)) == [[(200, 200, 200, 0)]]


def test_the_callers_picture_is_left_alone() -> None:
    picture = Image.fromarray(CORNERS)
    for seen in (read(picture).image, read_small(picture, 8)):
        seen.putpixel((0, 0), (1, 2, 3))
    assert pixels(picture)[0][0] == RED
    large = opened(saved(Image.new("RGB", (640, 640)), "JPEG"))
    read_small(large, 8)
    assert large.size == (640, 640)


def test_a_large_jpeg_is_decoded_small_but_not_too_small() -> None:
    data = saved(Image.fromarray(noise(1000, 600)), "JPEG")
    assert read_small(data, 128).size == (500, 300)
    assert read_small(data, 30).size == (125, 75)
    assert read_small(data, 301).size == (1000, 600)
    assert read(data).image.size == (1000, 600)


@pytest.mark.parametrize("options", [{}, {"subsampling": 2}, {"keep_rgb": True}])
def test_a_jpeg_can_be_decoded_in_gray(options: dict[str, Any]) -> None:
    data = saved(Image.fromarray(noise(80, 60)).resize((800, 600)), "JPEG", **options)
    gray, colour = read_small(data, 128, gray=True), read_small(data, 128)
    assert (gray.mode, gray.size, colour.mode) == ("L", colour.size, "RGB")
    assert gray.info["reduced"]
    apart = np.abs(np.asarray(gray, int) - np.asarray(colour.convert("L"), int))
    assert apart.mean() < 1 and np.quantile(apart, 0.99) <= 4


def test_only_a_jpeg_of_three_colours_is_decoded_in_gray() -> None:
    inks = saved(Image.new("CMYK", (40, 30)), "JPEG")
    clear = saved(Image.new("L", (40, 30)), "PNG", transparency=0)
    assert read_small(inks, 4, gray=True).mode == "RGB"
    assert read_small(clear, 4, gray=True).mode == "RGBA"


def test_a_cameras_second_picture_is_ignored() -> None:
    several = {"save_all": True, "append_images": [Image.new("RGB", (4, 4), "red")]}
    data = saved(Image.new("RGB", (4, 4), "blue"), "MPO", **several)
    assert read(data).format == "JPEG"
    assert encode(read(data))[:3] == b"\xff\xd8\xff"


# --- what is refused ---


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "TIFF"])
def test_several_frames_are_refused_with_the_option_that_takes_one(format: str) -> None:
    several = {"save_all": True, "append_images": [Image.new("RGB", (4, 4), "blue")]}
    data = saved(Image.new("RGB", (4, 4), "red"), format, **several)
    for reading in (lambda d: read(d), lambda d: read_small(d, 8)):
        with pytest.raises(ImageError, match=r"several frames .* --first-frame \(first_frame=True"):
            reading(data)
    assert pixels(read_small(data, 8, first_frame=True))[0][0][0] > 200
    assert read(data, first_frame=True).image.size == (4, 4)


def test_a_kind_of_tiff_that_is_not_supported_is_called_so() -> None:
    data = bytearray(saved(Image.new("RGB", (4, 4), "red"), "TIFF"))
    at = data.index(struct.pack("<HHI", 258, 3, 3))  # the bits of each channel
    place = struct.unpack_from("<I", data, at + 8)[0]
    data[place : place + 6] = struct.pack("<3H", 12, 12, 12)
    with pytest.raises(ImageError, match="This kind of TIFF is not supported"):
        read(bytes(data))


def bomb() -> bytes:
    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    return damage.repaired(
        saved(Image.new("RGB", (2, 2)), "PNG").replace(
            struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0), header
        )
    )


def blank() -> bytes:
    return bomb().replace(struct.pack(">II", 50_000, 50_000), struct.pack(">II", 5_000, 5_000))


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (b"", r"It is empty: 0 bytes\. Get a fresh copy\."),
        (
            b"no picture",
            r"It is not an image, or its format is not supported\. Supported are JPEG, PN",
        ),
        (
            saved(Image.fromarray(noise(40, 40)), "PNG")[:900],
            r"It is damaged or truncated \(.*\)\. ",
        ),
        (
            saved(Image.fromarray(noise(40, 40)), "JPEG")[:900],
            r"It is damaged or truncated \(.*\)\. ",
        ),
        (bomb(), r"It has more pixels than Pillow allows"),
        (
            damage.repaired(blank()),
            r"Its header claims 25 million pixels, which its \d+ bytes cannot",
        ),
        (
            Image.new("F", (2, 2)),
            r"Its pixels are floats, whose range is unknown\. Save it with 8 or 16",
        ),
        (
            np.zeros((2, 2), bool),
            r"Expected an array of uint8, uint16 or float in \[0, 1\]; got bo",
        ),
        (
            np.zeros((3, 8, 8)),
            r"Expected an array of shape .* got \(3, 8, 8\)\. Put the channels la",
        ),
        (np.zeros((0, 8)), r"Expected an array of shape .* got \(0, 8\)"),
        (np.full((2, 2), 255.0), r"Expected floats in \[0, 1\]; some lie outside\. Divide by"),
        (np.full((2, 2), np.nan), r"Expected floats in \[0, 1\]; some lie outside"),
        (3, r"Expected a path, bytes, a binary file, a Pillow image or a numpy array; got int\."),
    ],
)
def test_what_is_no_picture_is_refused_in_a_sentence(source: Any, sentence: str) -> None:
    for reading in (lambda s: read(s), lambda s: read_small(s, 8)):
        with pytest.raises(ImageError, match=sentence):
            reading(source)


def test_a_refusal_names_no_path(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_text("no picture")
    (tmp_path / "secret.jpg").write_bytes(saved(Image.fromarray(noise(9, 9)), "JPEG")[:200])
    cases = {
        tmp_path / "secret.png": "not an image",
        tmp_path / "secret.jpg": "damaged",
        tmp_path / "secret.gif": r"There is no such file\. Check the path\.",
        tmp_path: r"It is a folder\. Give the files in it instead\.",
    }
    for path, sentence in cases.items():
        with pytest.raises(ImageError, match=sentence) as refused:
            read(path)
        assert "secret" not in str(refused.value)


def test_postscript_is_not_run() -> None:
    with pytest.raises(ImageError, match="It is not an image"):
        read(saved(Image.new("RGB", (4, 4)), "EPS"))


@pytest.mark.filterwarnings("ignore")  # Pillow warns about what it meets
def test_damaged_files_give_a_picture_or_a_sentence() -> None:
    problems = {number: decoding.problem_with(number, seed=1) for number in range(300)}
    assert not {number: problem for number, problem in problems.items() if problem}
    labels = {damage.damaged(number, 1)[:2] for number in range(300)}
    assert len(labels) > 50  # formats and kinds of damage


# --- the view ---


def test_the_centred_square_is_cut_from_the_longer_side() -> None:
    wide = np.arange(12, dtype=np.uint8).reshape(2, 6)
    assert np.asarray(centre_square(Image.fromarray(wide))).tolist() == [[2, 3], [8, 9]]
    assert np.asarray(centre_square(Image.fromarray(wide.T.copy()))).tolist() == [[2, 8], [3, 9]]
    square = Image.fromarray(CORNERS)
    assert pixels(centre_square(square)) == pixels(square)


PROTOCOLS = (ViewProtocol("paper"), ViewProtocol("leakfree", 96))


@pytest.mark.parametrize("turned", [0.0, 2.8])
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
@pytest.mark.parametrize("size", [(40, 40), (97, 40), (3, 500), (1, 1)])
def test_a_view_is_float_channels_near_the_unit_interval(
    size: tuple[int, int], protocol: ViewProtocol, turned: float
) -> None:
    for channels in (1, 3):
        seen = view(Image.fromarray(noise(*size)), protocol, 40, channels, turned)
        assert seen.shape == (channels, 40, 40) and seen.dtype == np.float32
        assert seen.min() >= -0.1 and seen.max() <= 1.1


def test_a_view_of_its_own_size_is_not_resampled() -> None:
    image = noise(40, 40)
    seen = paper_view(Image.fromarray(image), 40)
    np.testing.assert_array_equal(seen, image.transpose(2, 0, 1).astype(np.float32) / 255)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_convention_a_view_turns_counter_clockwise(protocol: ViewProtocol) -> None:
    dot = Image.new("RGB", (96, 96))
    dot.paste("white", (76, 44, 84, 52))  # on the right
    y, x = np.mgrid[:40, :40] - 19.5
    for degrees in (0.0, 45.0, 90.0, -30.0):
        seen = view(dot, protocol, 40, 1, degrees)[0]
        found = np.degrees(np.arctan2(-(seen * y).sum(), (seen * x).sum()))
        assert found == pytest.approx(degrees, abs=1)


# --- out ---


MODES = {
    "JPEG": ("L", "RGB", "CMYK"),
    "PNG": ("L", "LA", "RGB", "RGBA", "I;16"),
    "TIFF": ("L", "LA", "RGB", "RGBA", "CMYK", "I;16"),
    "WEBP": ("RGB", "RGBA"),
    "BMP": ("L", "RGB"),
}


@pytest.mark.parametrize(("format", "mode"), [(f, m) for f, modes in MODES.items() for m in modes])
def test_a_picture_goes_back_as_it_came(format: str, mode: str) -> None:
    smooth = Image.fromarray(noise(6, 4, 4)).resize((60, 40), Image.Resampling.BICUBIC)
    if mode == "I;16":
        image = Image.fromarray(np.asarray(smooth.convert("L")).astype(np.uint16) * 257)
    else:
        image = smooth.convert(mode)
    picture = read(saved(image, format))
    assert (picture.format, picture.image.mode) == (format, mode)
    again = read(encode(picture))
    assert (again.format, again.image.mode, again.image.size) == (format, mode, (60, 40))
    difference = np.abs(np.asarray(again.image, float) - np.asarray(picture.image, float))
    assert difference.mean() <= (3 if format in ("JPEG", "WEBP") else 0)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_profile_resolution_and_camera_are_kept_and_the_orientation_is_not(format: str) -> None:
    kept = {"icc_profile": b"a profile", "exif": exif_of(6)}
    if format != "WEBP":
        kept["dpi"] = (300, 200)
    data = saved(Image.fromarray(noise(9, 5)), format, **kept)
    again = opened(encode(read(data)))
    assert again.size == (5, 9)
    assert again.info["icc_profile"] == b"a profile"
    assert again.getexif()[MAKE] == "camera"
    assert orientation_of(again) == 1
    if format != "WEBP":
        assert again.info["dpi"] == pytest.approx((300, 200), abs=0.1)


def test_a_stale_thumbnail_is_dropped() -> None:
    # One directory with the orientation, and behind it a second one: the thumbnail's.
    first = struct.pack("<HHHIHHI", 1, ORIENTATION, 3, 1, 6, 0, 26)
    second = struct.pack("<HHHIIHHIII", 2, 0x0201, 4, 1, 56, 0x0202, 4, 1, len(THUMBNAIL), 0)
    exif = b"Exif\0\0II*\0\x08\0\0\0" + first + second + THUMBNAIL
    data = saved(Image.fromarray(CORNERS), "JPEG", exif=exif)
    assert 0x0201 in opened(data).getexif().get_ifd(ExifTags.IFD.IFD1)
    again = opened(encode(read(data)))
    assert again.getexif().get_ifd(ExifTags.IFD.IFD1) == {}


def test_jpeg_keeps_its_subsampling_and_a_new_one_has_none() -> None:
    image = Image.fromarray(noise(16, 16))
    for subsampling in (0, 1, 2):
        data = saved(image, "JPEG", subsampling=subsampling)
        assert JpegImagePlugin.get_sampling(opened(encode(read(data)))) == subsampling
    assert JpegImagePlugin.get_sampling(opened(encode(Picture(image), "jpeg"))) == 0


def test_a_webp_without_loss_stays_without() -> None:
    image = Image.fromarray(noise(40, 24, 4))
    for kept in ({}, {"exif": exif_of(1), "icc_profile": b"a profile"}):
        picture = read(saved(image, "WEBP", lossless=True, exact=True, **kept))
        np.testing.assert_array_equal(np.asarray(read(encode(picture)).image), np.asarray(image))
    lossy = read(saved(image.convert("RGB"), "WEBP"))
    assert len(encode(lossy)) < len(encode(picture))


def test_the_format_is_the_callers_or_png() -> None:
    picture = Picture(Image.fromarray(CORNERS))
    assert opened(encode(picture)).format == "PNG"
    assert opened(encode(picture, "jpg")).format == "JPEG"
    assert len(encode(picture, "JPEG", quality=10)) < len(encode(picture, "JPEG"))
    inks = Picture(Image.new("CMYK", (4, 4)), "JPEG", icc_profile=b"of the inks")
    assert "icc_profile" not in opened(encode(inks, "PNG")).info


def test_what_a_format_cannot_hold_is_refused_in_a_sentence() -> None:
    clear = turn(Picture(Image.new("RGB", (4, 4)), "JPEG"), 30, fill="transparent")
    with pytest.raises(ImageError, match=r"JPEG has no transparency\. Fill with a colour, or"):
        encode(clear)
    with pytest.raises(ImageError, match=r"It cannot be written as NOPE .*\. Write PNG\."):
        encode(Picture(Image.new("RGB", (4, 4))), "nope")


@pytest.mark.parametrize(
    ("mode", "fill", "seen"),
    [("RGBA", "red", RED), ("RGBA", None, WHITE), ("LA", "red", (76,) * 3), ("LA", None, WHITE)],
)
def test_without_alpha_it_is_laid_on_the_fill_or_on_white(
    mode: str, fill: str | None, seen: tuple[int, ...]
) -> None:
    turned = turn(Picture(Image.new(mode, (16, 16)), "PNG"), 30, fill=fill)
    again = opened(encode(turned, "bmp")).convert("RGB")
    assert again.getpixel((10, 10)) == again.getpixel((0, 0)) == seen
    assert encode(turned, "jpeg")[:2] == b"\xff\xd8"


PROFILES = {"CMYK": "JPEG", "LAB": "TIFF"}


@pytest.mark.parametrize(("mode", "format"), PROFILES.items())
def test_a_profile_goes_with_its_colours(mode: str, format: str) -> None:
    data = saved(Image.new(mode, (8, 8)), format, icc_profile=b"of other colours")
    clear = turn(read(data), 30, fill="transparent")
    for picture in (read(data), clear):
        assert "icc_profile" not in opened(encode(picture, "PNG")).info
    kept = read(saved(Image.new("L", (8, 8)), "PNG", icc_profile=b"of grays"))
    assert opened(encode(turn(kept, 30, fill="transparent"))).info["icc_profile"] == b"of grays"


XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf tiff:Orientation="6" dc:title="a"/></x:xmpmeta>'


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_xmp_is_kept_and_says_upright(format: str) -> None:
    image = Image.fromarray(noise(9, 5))
    if format == "PNG":
        info = PngImagePlugin.PngInfo()
        info.add_itxt("XML:com.adobe.xmp", XMP.decode())
        data = saved(image, format, pnginfo=info)
    elif format == "TIFF":
        data = saved(image, format, tiffinfo={700: XMP})
    else:
        data = saved(image, format, xmp=XMP)
    again = opened(encode(turn(read(data), 33)))
    kept = again.info["xmp"]
    assert b'dc:title="a"' in kept and b'tiff:Orientation="6"' not in kept
    assert orientation_of(again) == 1


def test_comments_and_texts_are_kept() -> None:
    image = Image.fromarray(noise(9, 5))
    for format in ("JPEG", "GIF"):
        data = saved(image, format, comment=b"by hand")
        assert opened(encode(turn(read(data), 33))).info["comment"] == b"by hand"
    info = PngImagePlugin.PngInfo()
    info.add_text("Author", "Ada")
    info.add_itxt("Title", "Čmelák", "cs", "Titul")
    again = opened(encode(turn(read(saved(image, "PNG", pnginfo=info)), 33)))
    assert isinstance(again, PngImagePlugin.PngImageFile)
    assert again.text == {"Author": "Ada", "Title": "Čmelák"}


def test_a_comment_that_a_jpeg_cannot_hold_costs_nothing_else() -> None:
    picture = Picture(Image.fromarray(CORNERS), comment=bytes(70_000), xmp=bytes(70_000))
    assert opened(encode(picture, "JPEG")).size == (2, 2)


def test_a_tiff_keeps_its_tags_and_gets_no_resolution() -> None:
    exif = exif_of(1)
    exif[315] = "Ada"
    exif[ExifTags.IFD.Exif], exif[ExifTags.IFD.GPSInfo] = {33434: 0.5}, {1: "N"}
    data = saved(Image.fromarray(noise(9, 5)), "TIFF", exif=exif.tobytes())
    assert "dpi" not in read(data).image.info
    again = opened(encode(turn(read(data), 33)))
    assert (again.getexif()[MAKE], again.getexif()[315]) == ("camera", "Ada")
    assert again.getexif().get_ifd(ExifTags.IFD.Exif)[33434] == 0.5
    assert again.getexif().get_ifd(ExifTags.IFD.GPSInfo)[1] == "N"
    assert isinstance(again, TiffImagePlugin.TiffImageFile)
    assert 282 not in again.tag_v2
    assert again.size == turn(Image.new("L", (9, 5)), 33).size


def test_a_jpegs_own_size_does_not_become_the_tiffs() -> None:
    exif = exif_of(1)
    exif[256], exif[257] = 4000, 3000
    data = saved(Image.fromarray(noise(9, 5)), "JPEG", exif=exif)
    assert opened(encode(read(data), "TIFF")).size == (9, 5)
    assert read(data).dpi is None


# --- more than eight bits ---


def deep(channels: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 65536, (5, 7, channels), np.uint16)


def deep_file(array: np.ndarray, format: str = "PNG", **kept: Any) -> bytes:
    if format == "TIFF":
        return sixteen_bit_tiff(array, saved(as_gray(array), "TIFF", **kept))
    mode = {2: "LA", 3: "RGB", 4: "RGBA"}[array.shape[2]]
    return sixteen_bit_png(
        array, saved(Image.new(mode, (array.shape[1], array.shape[0])), "PNG", **kept)
    )


def deep_pixels(data: bytes) -> np.ndarray:
    found = read(data).sixteen_bit
    assert found is not None
    return found


DEEP = [("PNG", 2), ("PNG", 3), ("PNG", 4), ("TIFF", 3), ("TIFF", 4)]


@pytest.mark.parametrize(("format", "channels"), DEEP)
def test_sixteen_bits_of_colour_go_back_as_they_came(format: str, channels: int) -> None:
    array = deep(channels)
    kept = {"dpi": (300, 300), "icc_profile": b"a profile", "exif": exif_of(1)}
    data = deep_file(array, format, **kept)
    np.testing.assert_array_equal(deep_pixels(data), array)
    again = encode(turn(read(data), 90))
    np.testing.assert_array_equal(deep_pixels(again), np.rot90(array))
    assert opened(again).format == format
    assert opened(again).info["icc_profile"] == b"a profile"
    assert opened(again).getexif()[MAKE] == "camera"
    turned = encode(turn(read(data), 33))
    np.testing.assert_array_equal(deep_pixels(turned), turn(array, 33))
    assert read_small(data, 8).size == (7, 5)


def test_sixteen_bits_are_turned_as_their_tag_says_and_may_get_alpha() -> None:
    array = deep(3)
    np.testing.assert_array_equal(
        deep_pixels(deep_file(array, exif=exif_of(6))), np.rot90(array, -1)
    )
    clear = deep_pixels(encode(turn(read(deep_file(array)), 90, fill="transparent")))
    assert clear.shape == (7, 5, 4) and clear[..., 3].min() == 65535


def test_a_clear_colour_of_sixteen_bits_is_alpha() -> None:
    array, header = deep(3), struct.pack(">I4s", 6, b"tRNS")
    data = deep_file(array)
    place = data.index(b"IDAT") - 4
    key = header + array[0, 0].astype(">u2").tobytes() + bytes(4)
    alpha = deep_pixels(damage.repaired(data[:place] + key + data[place:]))[..., 3]
    assert alpha[0, 0] == 0 and alpha.ravel()[1:].min() == 65535


@pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_a_deep_tiff_keeps_its_compression(compression: str) -> None:
    data = deep_file(deep(3), "TIFF", compression=compression)
    np.testing.assert_array_equal(deep_pixels(data), deep(3))
    assert opened(encode(read(data))).info["compression"] == compression
    np.testing.assert_array_equal(deep_pixels(encode(read(data), "png")), deep(3))


def test_what_sixteen_bits_would_lose_is_reported() -> None:
    data = deep_file(deep(3))
    with pytest.raises(
        ImageError, match=r"16 bits per channel, of which only 8 would .* PPM .*--format png"
    ):
        encode(read(data), "ppm")
    assert opened(encode(read(data), "jpeg")).size == (7, 5)
    ppm = b"P6 7 5 65535\n" + deep(3).astype(">u2").tobytes()
    assert read_small(ppm, 8).size == (7, 5)
    with pytest.raises(
        ImageError, match=r"16 bits per channel, of which only 8 would be written to PPM here"
    ):
        encode(read(ppm))


def test_integers_beyond_sixteen_bits_are_refused() -> None:
    data = saved(Image.fromarray(np.array([[0, 70_000]], np.int32)), "TIFF")
    for reading in (lambda d: read(d), lambda d: read_small(d, 8)):
        with pytest.raises(
            ImageError, match=r"integers of more than 16 bits, whose range is unknown\. Save it"
        ):
            reading(data)
    small = saved(Image.fromarray(np.array([[0, 60_000]], np.int32)), "TIFF")
    assert np.asarray(read(small).image).tolist() == [[0, 60_000]]


# --- files and images of the caller ---


def test_a_file_is_read_from_its_start_and_not_as_text(tmp_path: Path) -> None:
    data = saved(Image.fromarray(CORNERS), "PNG")
    stream = io.BytesIO(data)
    stream.seek(0, io.SEEK_END)
    assert pixels(read(stream).image) == pixels(Image.fromarray(CORNERS))
    (tmp_path / "text").write_text("some text")
    with (
        open(tmp_path / "text", encoding="utf-8") as file,
        pytest.raises(
            ImageError, match=r"was opened as text\. Open it with open\(path, \"rb\"\)\."
        ),
    ):
        read(file)  # type: ignore[arg-type]


@pytest.mark.parametrize("format", ["GIF", "WEBP", "TIFF"])
def test_the_first_frame_is_the_first_wherever_the_image_stands(format: str) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "lime", "blue")]
    image = opened(saved(frames[0], format, save_all=True, append_images=frames[1:]))
    image.seek(2)
    for seen in (read(image, first_frame=True).image, read_small(image, 8, first_frame=True)):
        assert seen.convert("RGB").getpixel((1, 1))[0] > 200
    assert image.tell() == 2
    assert image.convert("RGB").getpixel((1, 1))[2] > 200


def test_threads_may_share_an_image_that_is_not_decoded_yet() -> None:
    data = saved(Image.fromarray(noise(300, 200)), "PNG")
    for shared in [opened(data) for _ in range(5)]:
        with ThreadPoolExecutor(16) as pool:
            seen = list(pool.map(read_small, [shared] * 32, [64] * 32))
        assert len({image.tobytes() for image in seen}) == 1


# --- turned by the EXIF tag alone ---


def test_convention_the_cycles_of_the_orientation() -> None:
    """Each value shows what the one before it shows, turned counter-clockwise."""
    image = Image.fromarray(CORNERS)
    for cycle in CYCLES:
        shown = [image.transpose(TRANSPOSES[v]) if v in TRANSPOSES else image for v in cycle]
        for before, after in zip(shown, shown[1:] + shown[:1], strict=True):
            assert pixels(after) == pixels(turn(before, 90))


@pytest.mark.parametrize("orientation", [None, 1, 2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("quarters", [-1, 0, 1, 2, 3, 5])
def test_a_jpeg_is_turned_without_touching_its_pixels(
    orientation: int | None, quarters: int
) -> None:
    kept = {} if orientation is None else {"exif": exif_of(orientation)}
    data = saved(Image.fromarray(noise(24, 16)), "JPEG", dpi=(72, 72), **kept)
    turned = set_orientation(data, quarters)
    scan = data[data.index(b"\xff\xdb") :]
    assert turned.endswith(scan)
    assert turned.startswith(data[:20])  # JFIF stays first
    expected = np.rot90(np.asarray(read(data).image), quarters)
    np.testing.assert_array_equal(np.asarray(read(turned).image), expected)
    assert set_orientation(turned, -quarters).endswith(scan)
    if orientation is not None:
        assert opened(turned).getexif()[MAKE] == "camera"


def test_exif_without_the_tag_is_given_one() -> None:
    exif = Image.Exif()
    exif[MAKE] = "camera"
    data = saved(Image.fromarray(noise(24, 16)), "JPEG", exif=exif)
    turned = opened(set_orientation(data, 1))
    assert (turned.getexif()[ORIENTATION], turned.getexif()[MAKE]) == (8, "camera")


def entries_of(*tags: tuple[int, int]) -> bytes:
    """EXIF of short numbers whose directory ends without the place of the next one."""
    entries = b"".join(struct.pack("<HHIHH", tag, 3, 1, value, 0) for tag, value in tags)
    return b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
@pytest.mark.parametrize("tags", [((274, 6), (41986, 1)), ((41986, 1),)])
def test_a_directory_that_ends_early_is_kept(tags: tuple[tuple[int, int], ...]) -> None:
    data = saved(Image.fromarray(noise(24, 16)), "JPEG", exif=entries_of(*tags))
    turned = opened(set_orientation(data, 1))
    assert turned.getexif()[41986] == 1
    assert turned.getexif()[ORIENTATION] == (1 if len(tags) == 2 else 8)
    assert opened(encode(turn(read(data), 33))).getexif()[41986] == 1


def test_exif_without_room_for_the_tag_is_a_sentence() -> None:
    exif = exif_of(1)
    del exif[ORIENTATION]
    full = exif.tobytes()
    data = saved(Image.fromarray(noise(24, 16)), "JPEG", exif=full + bytes(65533 - len(full)))
    with pytest.raises(
        ImageError, match=r"too long to add the orientation tag\. Turn its pixels inst"
    ):
        set_orientation(data, 1)
    assert opened(encode(turn(read(data), 33))).getexif()[MAKE] == "camera"


def test_only_a_jpeg_can_be_turned_by_its_tag() -> None:
    with pytest.raises(ImageError, match=r"Only a JPEG can be turned by its EXIF tag alone"):
        set_orientation(saved(Image.fromarray(CORNERS), "PNG"), 1)
    with pytest.raises(ImageError, match=r"It is damaged or truncated"):
        set_orientation(b"\xff\xd8\xff", 1)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 400), st.integers(-3, 3))
def test_wild_exif_is_a_picture_or_a_sentence(wild: bytes, place: int, quarters: int) -> None:
    data = saved(Image.fromarray(noise(8, 8)), "JPEG", exif=exif_of(6))
    place = min(place, len(data))
    damaged = data[:place] + wild + data[place + len(wild) :]
    try:
        assert (
            read(set_orientation(damaged, quarters)).image.size
            == read(damaged).image.size[:: -1 if quarters % 2 else 1]
        )
    except ImageError as error:
        assert re.fullmatch(r"[A-Z].+\.", str(error))


def test_a_plain_ppm_is_read_turned_and_written() -> None:
    data = io.BytesIO()
    Image.new("RGB", (6, 4), (10, 20, 30)).save(data, "PPM")
    turned = turn(read(data.getvalue()), 90)
    again = Image.open(io.BytesIO(encode(turned)))
    assert (again.format, again.size, again.getpixel((0, 0))) == ("PPM", (4, 6), (10, 20, 30))


def test_how_bright_a_png_means_its_numbers_is_kept() -> None:
    chunks = PngImagePlugin.PngInfo()
    chunks.add(b"gAMA", struct.pack(">I", 100_000))
    chunks.add(b"cHRM", struct.pack(">8I", *range(31_000, 31_008)))
    data = io.BytesIO()
    Image.new("RGB", (6, 4)).save(data, "PNG", pnginfo=chunks)
    again = Image.open(io.BytesIO(encode(turn(read(data.getvalue()), 30))))
    again.load()
    assert again.info["gamma"] == 1.0
    assert again.info["chromaticity"] == pytest.approx([x / 1e5 for x in range(31_000, 31_008)])


def test_reading_an_open_file_makes_room_for_its_own_bytes_only() -> None:
    """Asked for more, Python would allocate the largest file that the limits allow."""

    class Counting(io.BytesIO):
        asked = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.asked = max(self.asked, -1 if size is None else size)
            return super().read(size)

    file = Counting(b"0123456789")
    file.seek(4)
    assert content_of(file) == b"0123456789"
    assert file.asked == 11  # one more than there are, to see whether it grew
