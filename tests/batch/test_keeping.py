"""In place, nothing that belongs to a file vanishes silently: it is kept, or named and refused."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from PIL import Image, PngImagePlugin, TiffImagePlugin, features

from radialbeams.cli import main
from radialbeams.demo import PICTURES
from radialbeams.images import ImageError, encode, missing, read, set_orientation, turn
from radialbeams.images.jpeg import contents, trailer

OPTIONS = ("--model", "ring.lfw", "--min-confidence", "0", "--min-angle", "0", "--workers", "1")
XMP = b"http://ns.adobe.com/xap/1.0/\0"
MOTION = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf GCamera:MicroVideoOffset="%d"/></x:xmpmeta>'
VIDEO = b"\0\0\0\x18ftypmp42" + bytes(range(256)) * 9


@cache
def face(turned: float = 40) -> Image.Image:
    with Image.open(PICTURES / "astronaut.webp") as picture:
        small = picture.convert("RGB").resize((128, 128), Image.Resampling.LANCZOS)
    return small.rotate(turned, Image.Resampling.BICUBIC)


def saved(format: str, **options: object) -> bytes:
    stream = io.BytesIO()
    face().save(stream, format, **options)
    return stream.getvalue()


def segment(kind: int, body: bytes) -> bytes:
    return bytes((0xFF, kind)) + struct.pack(">H", len(body) + 2) + body


def with_segments(data: bytes, *segments: bytes) -> bytes:
    end = 4 + int.from_bytes(data[4:6], "big")
    return data[:end] + b"".join(segments) + data[end:]


def resource(number: int, content: bytes) -> bytes:
    head = struct.pack(">4sHHI", b"8BIM", number, 0, len(content))
    return head + content + bytes(len(content) % 2)


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def with_chunks(data: bytes, *chunks: bytes) -> bytes:
    return data[:33] + b"".join(chunks) + data[33:]


IPTC = resource(1028, b"\x1c\x02\x78\x00\x07caption")
PHOTOSHOP = b"Photoshop 3.0\0"
APP13 = segment(0xED, PHOTOSHOP + IPTC)


@pytest.fixture
def in_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[bytes, str]]:
    """What a file is after the command, and what the command printed to standard error."""

    def run(data: bytes, suffix: str, *options: str) -> tuple[bytes, str]:
        path = tmp_path / f"file{suffix}"
        path.write_bytes(data)
        code = main(["upright", str(path), "--in-place", *OPTIONS, *options])
        err = capsys.readouterr().err
        after = path.read_bytes()
        assert (code == 1) == (after == data), err
        return after, err

    return run


InPlace = Callable[..., tuple[bytes, str]]

# --- JPEG ---


def test_a_jpeg_keeps_its_segments(in_place: InPlace) -> None:
    segments = {
        "IPTC": APP13,
        "extended XMP": segment(0xE1, b"http://ns.adobe.com/xmp/extension/\0" + bytes(40)),
        "FlashPix": segment(0xE2, b"FPXR\0\0\0"),
        "APP4": segment(0xE4, b"anything"),
        "Ducky": segment(0xEC, b"Ducky\0\x01\0\x04\0\0\0\x41"),
        "comments": segment(0xFE, b"first comment") + segment(0xFE, b"second comment"),
    }
    data = with_segments(saved("JPEG"), *segments.values())  # in one file, to save time
    after, _ = in_place(data, ".jpg")
    for name, kept in segments.items():
        present = {content for content in contents(data) if content[1] in kept}
        assert present and present <= set(contents(after)), name
    assert Image.open(io.BytesIO(after)).convert("RGB").size != (128, 128)
    assert missing(data, after) == []


def test_stale_thumbnails_go_and_the_caption_stays(in_place: InPlace) -> None:
    resources = resource(1036, bytes(31)) + IPTC
    thumbnail = segment(0xE0, b"JFXX\0\x10" + bytes(9))
    data = with_segments(saved("JPEG"), thumbnail, segment(0xED, PHOTOSHOP + resources))
    after, _ = in_place(data, ".jpg")
    assert APP13 in after and b"JFXX" not in after


@pytest.mark.parametrize("options", [(), ("--snap", "90")])
def test_the_video_of_a_motion_photo_stays_where_xmp_says(
    in_place: InPlace, options: tuple[str, ...]
) -> None:
    stream = io.BytesIO()
    face(80).save(stream, "JPEG", xmp=MOTION % len(VIDEO))
    after, _ = in_place(stream.getvalue() + VIDEO, ".jpg", *options)
    assert after.endswith(VIDEO) and trailer(after) == VIDEO
    assert MOTION % len(VIDEO) in after
    assert Image.open(io.BytesIO(after)).convert("RGB").getbbox() is not None


@pytest.mark.parametrize(
    ("segments", "tail", "name"),
    [
        (segment(0xE2, b"MPF\0II*\0" + bytes(40)), saved("JPEG"), "index of further images"),
        (segment(0xEB, b"JP\0\1" + bytes(40)), b"", "content credentials"),
        (segment(0xED, PHOTOSHOP + resource(2000, bytes(26))), b"", "a clipping path"),
    ],
    ids=["MPF", "JUMBF", "path"],
)
def test_what_a_jpeg_cannot_keep_is_refused_by_name(
    in_place: InPlace, segments: bytes, tail: bytes, name: str
) -> None:
    data = with_segments(saved("JPEG"), segments) + tail
    after, err = in_place(data, ".jpg")
    assert after == data
    assert "In place, it would lose" in err and name in err and "--force" in err
    after, err = in_place(data, ".jpg", "--force")
    assert after != data and err.count("failed") == 0


def test_the_second_picture_goes_only_by_force(in_place: InPlace) -> None:
    data = saved("MPO", save_all=True, append_images=[face().reduce(2)])
    assert "--force" in in_place(data, ".jpg")[1]
    after, _ = in_place(data, ".jpg", "--force")
    assert trailer(after) == b""


def test_a_tag_that_would_break_the_index_behind_it_is_refused() -> None:
    exif = Image.Exif()
    exif[0x010F] = "camera"
    data = with_segments(saved("JPEG", exif=exif), segment(0xE2, b"MPF\0" + bytes(20)))
    index = data.index(b"\xff\xe2")
    assert index < data.index(b"\xff\xe1")
    with pytest.raises(ImageError, match="MPF"):
        set_orientation(data, 1)


def test_an_exif_that_is_too_long_for_the_new_file_is_named() -> None:
    data = saved("JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08" + bytes(65_000))
    assert missing(data, saved("JPEG")) == ["EXIF"]


# --- PNG ---


def test_a_png_keeps_its_chunks(in_place: InPlace) -> None:
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Author", "Ada")
    texts.add_text("Author", "Grace")  # the same key twice
    kept = (
        chunk(b"cICP", b"\x09\x10\x00\x01"),
        chunk(b"sRGB", b"\0"),
        chunk(b"sBIT", b"\x05\x06\x05"),
        chunk(b"bKGD", b"\0\1\0\2\0\3"),
        chunk(b"prVt", b"private, safe to copy"),
        chunk(b"tEXt", b"Raw profile type iptc\0\niptc\n 2\n0102"),
        chunk(b"pHYs", struct.pack(">IIB", 2, 1, 0)),
    )
    data = with_chunks(saved("PNG", pnginfo=texts), *kept) + b"appended"
    after, _ = in_place(data, ".png")
    assert all(one in after for one in kept)
    assert after.count(b"Author") == 2 and after.endswith(b"appended")
    Image.open(io.BytesIO(after)).load()


def test_a_chunk_that_may_not_be_copied_is_refused_by_name(in_place: InPlace) -> None:
    data = with_chunks(saved("PNG"), chunk(b"caBX", b"signed"), chunk(b"tIME", bytes(7)))
    after, err = in_place(data, ".png")
    assert after == data and "a chunk caBX" in err and "tIME" not in err
    assert b"caBX" not in in_place(data, ".png", "--force")[0]


# --- WebP, TIFF, AVIF ---


def test_an_unknown_chunk_of_a_webp_is_refused_by_name(in_place: InPlace) -> None:
    data = saved("WEBP", exif=b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0")
    data = data + b"ODD " + struct.pack("<I", 4) + b"1234"
    data = data[:4] + struct.pack("<I", len(data) - 8) + data[8:]
    assert "a chunk 'ODD '" in in_place(data, ".webp")[1]
    assert in_place(saved("WEBP") + b"appended", ".webp")[0].endswith(b"appended")


def test_a_tiff_keeps_its_tags_or_names_them(in_place: InPlace) -> None:
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[269], tags[270], tags[305] = "document", "described", "software"
    tags.tagtype[33723] = 7
    tags[33723] = b"\x1c\x02\x78\x00\x07caption"
    after, _ = in_place(saved("TIFF", tiffinfo=tags), ".tif")
    again = Image.open(io.BytesIO(after))
    assert isinstance(again, TiffImagePlugin.TiffImageFile)
    kept = again.tag_v2
    assert (kept[269], kept[270], kept[305]) == ("document", "described", "software")
    assert bytes(kept[33723]).startswith(b"\x1c\x02\x78\x00\x07caption")
    tags.tagtype[33550] = 12
    tags[33550] = (1.0, 1.0, 0.0)
    after, err = in_place(saved("TIFF", tiffinfo=tags), ".tif")
    assert "ModelPixelScale" in err and "(33550)" in err


@pytest.mark.skipif(not features.check("avif"), reason="Pillow without AVIF")
def test_an_avif_of_ten_bits_is_not_reduced_to_eight_silently(in_place: InPlace) -> None:
    data = bytearray(saved("AVIF"))
    at = bytes(data).index(b"av1C") + 6
    assert not data[at] & 0x60
    ten = bytearray(data)
    ten[at] |= 0x40
    assert missing(bytes(ten), bytes(data)) == ["10 bits per channel, of which 8 are kept"]
    assert missing(bytes(data), bytes(ten)) == []


# --- elsewhere ---


def test_with_an_output_what_is_lost_is_in_the_outcome(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(with_segments(saved("JPEG"), segment(0xEB, b"JP\0\1" + bytes(40))))
    assert main(["upright", str(path), "-o", str(tmp_path / "out"), "--json", *OPTIONS]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["lost"] == "content credentials or HDR data (APP11)"
    assert main(["upright", str(path), "-o", str(tmp_path / "b.png"), "--json", *OPTIONS]) == 0
    assert "lost" not in json.loads(capsys.readouterr().out)


def test_force_means_nothing_without_in_place(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(saved("JPEG"))
    assert main(["upright", str(tmp_path / "a.jpg"), "--force", *OPTIONS]) == 2


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF", "GIF", "AVIF", "JPEG2000"])
def test_a_plain_file_loses_nothing(format: str) -> None:
    data = saved(format)
    assert missing(data, encode(turn(read(data), 33))) == []


# --- attributes of the file ---


def test_mode_times_and_extended_attributes_stay(in_place: InPlace, tmp_path: Path) -> None:
    path = tmp_path / "file.jpg"
    path.write_bytes(saved("JPEG"))
    path.chmod(0o640)
    os.utime(path, ns=(1_500_000_000_123_456_789, 1_400_000_000_987_654_321))
    os.setxattr(path, "user.rating", b"5")
    before = path.stat()
    assert main(["upright", str(path), "--in-place", *OPTIONS]) == 0
    after = path.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert os.getxattr(path, "user.rating") == b"5"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_the_owner_keeps_the_file_that_root_turns(tmp_path: Path) -> None:
    path = tmp_path / "file.jpg"
    path.write_bytes(saved("JPEG"))
    os.chown(path, 1234, 2345)
    path.chmod(0o600)
    assert main(["upright", str(path), "--in-place", *OPTIONS]) == 0
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


# Replaces a file of root as another user, in a folder that all may write in.
AS_ANOTHER = """
import os, sys
from radialbeams.batch import attributes
open(sys.argv[2], "wb").close()
os.chown(sys.argv[2], 1234, 1234)
os.setgid(1234)
os.setuid(1234)
try:
    attributes.copy(sys.argv[1], sys.argv[2])
except attributes.AttributesError as error:
    print(error)
attributes.copy(sys.argv[1], sys.argv[2], force=True)
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_an_owner_that_cannot_be_kept_is_refused_without_force(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o777 == 0o700:
            folder.chmod(0o755)
    source = tmp_path / "file.jpg"
    source.write_bytes(b"1")
    command = [sys.executable, "-c", AS_ANOTHER, source, tmp_path / "part"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "lose its owner or group" in done.stdout and "--force" in done.stdout


def test_a_file_with_several_names_is_refused_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, other = tmp_path / "file.jpg", tmp_path / "other.jpg"
    path.write_bytes(saved("JPEG"))
    os.link(path, other)
    before = path.read_bytes()
    assert main(["upright", str(path), "--in-place", *OPTIONS]) == 1
    err = capsys.readouterr().err
    assert "It has 2 names (hard links)" in err and "--force" in err
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["file.jpg", "other.jpg"]
    assert main(["upright", str(path), "--in-place", "--force", *OPTIONS]) == 0
    assert path.read_bytes() != before == other.read_bytes()
