"""Camera raw files: seen through their largest preview, and never written."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from radialbeams import images
from radialbeams.canonicalizer import canonicalize
from radialbeams.cli import main
from radialbeams.demo import PICTURES
from radialbeams.images import ImageError, raw_previews

SENSOR = b"\xff\xd8\xff\xc3\x00\x0b\x0e\x03\x00\x04\x00\x01\x01\x11\x00" + bytes(64)  # lossless


def jpeg(picture: Image.Image) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=90)
    return stream.getvalue()


def photo(degrees: int = 0) -> Image.Image:
    with Image.open(PICTURES / "astronaut.webp") as picture:
        return picture.convert("RGB").crop((0, 8, 256, 248)).rotate(degrees, expand=True)


Tags = dict[int, tuple[int, list[int]]]  # tag → type, values


class Tiff:
    """Writes directories and the data that they point to."""

    def __init__(self, start: bytes = b"II*\0") -> None:
        self.order = "<" if start.startswith(b"II") else ">"
        self.content = bytearray(start + bytes(4))

    def add(self, data: bytes) -> int:
        self.content += bytes(len(self.content) % 2)
        at = len(self.content)
        self.content += data
        return at

    def directory(self, tags: Tags, following: int = 0) -> int:
        rows = b""
        for tag, (kind, values) in sorted(tags.items()):
            form = {1: "B", 3: "H", 4: "I"}[kind]
            packed = struct.pack(f"{self.order}{len(values)}{form}", *values)
            if len(packed) > 4:
                packed = struct.pack(self.order + "I", self.add(packed))
            rows += struct.pack(self.order + "HHI", tag, kind, len(values)) + packed.ljust(4, b"\0")
        count, end = (
            struct.pack(self.order + f, n) for f, n in (("H", len(tags)), ("I", following))
        )
        return self.add(count + rows + end)

    def whole(self, first: int) -> bytes:
        self.content[4:8] = struct.pack(self.order + "I", first)
        return bytes(self.content)


def thumbnail(file: Tiff, orientation: int) -> Tags:
    """An uncompressed picture of 16 × 12 pixels, which is what a TIFF reader would show."""
    return {
        **{0x100: (4, [16]), 0x101: (4, [12]), 0x102: (3, [8, 8, 8]), 0x103: (3, [1])},
        **{0x106: (3, [2]), 0x111: (4, [file.add(bytes(576))]), 0x112: (3, [orientation])},
        **{0x115: (3, [3]), 0x116: (4, [12]), 0x117: (4, [576])},
    }


def nef(picture: Image.Image, orientation: int = 1, start: bytes = b"II*\0") -> bytes:
    """A thumbnail, and below it a small preview, a large one and the sensor's data."""
    file = Tiff(start)
    small, large = jpeg(picture.resize((80, 60))), jpeg(picture)
    below = [
        file.directory({0x201: (4, [file.add(data)]), 0x202: (4, [len(data)])})
        for data in (small, large)
    ]
    strips: Tags = {0x111: (4, [file.add(SENSOR)]), 0x117: (4, [len(SENSOR)])}
    below.append(file.directory({0x103: (3, [34713]), 0x106: (3, [32803]), **strips}))
    return file.whole(file.directory({**thumbnail(file, orientation), 0x14A: (4, below)}))


def dng(picture: Image.Image, orientation: int = 1) -> bytes:
    """The preview is a strip of JPEG."""
    file = Tiff(b"MM\0*")
    data = jpeg(picture)
    strip: Tags = {0x103: (3, [7]), 0x111: (4, [file.add(data)]), 0x117: (4, [len(data)])}
    below = [file.directory({**strip, 0x106: (3, [6])})]
    version: Tags = {0xC612: (1, [1, 4, 0, 0])}
    return file.whole(
        file.directory({**thumbnail(file, orientation), 0x14A: (4, below), **version})
    )


def cr2(picture: Image.Image, orientation: int = 1) -> bytes:
    file = Tiff()
    file.content += b"CR\x02\0" + bytes(4)
    data = jpeg(picture)
    sensor: Tags = {0x111: (4, [file.add(SENSOR)]), 0x117: (4, [len(SENSOR)])}
    raw = file.directory({0x103: (3, [6]), **sensor})
    strip: Tags = {0x111: (4, [file.add(data)]), 0x117: (4, [len(data)])}
    return file.whole(file.directory({**strip, 0x112: (3, [orientation])}, raw))


def rw2(picture: Image.Image, orientation: int = 1) -> bytes:
    file = Tiff(b"IIU\0")
    data = jpeg(picture)
    at = file.directory({0x112: (3, [orientation]), 0x2E: (1, [0])})
    place = file.add(data)
    file.content[at + 2 : at + 14] = struct.pack("<HHII", 0x2E, 7, len(data), place)
    return file.whole(at)


def orf(picture: Image.Image, orientation: int = 1) -> bytes:
    """The preview lies where only the maker's notes say."""
    file = Tiff(b"IIRO")
    file.add(jpeg(picture))
    return file.whole(file.directory({0x112: (3, [orientation])}))


def raf(picture: Image.Image, orientation: int = 1) -> bytes:
    exif = Image.Exif()
    exif[0x112] = orientation
    stream = io.BytesIO()
    picture.save(stream, "JPEG", exif=exif)
    data = stream.getvalue()
    head = b"FUJIFILMCCD-RAW 0201".ljust(84, b"\0") + struct.pack(">II", 148, len(data))
    return head.ljust(148, b"\0") + data + bytes(1000)


MAKERS = {"nef": nef, "dng": dng, "cr2": cr2, "rw2": rw2, "orf": orf, "raf": raf}


@pytest.mark.parametrize("kind", MAKERS)
def test_the_largest_preview_is_read(kind: str) -> None:
    picture = images.read(MAKERS[kind](photo()))
    assert (picture.format, picture.image.size) == ("RAW", photo().size)
    assert images.is_raw(io.BytesIO(MAKERS[kind](photo())))


@pytest.mark.parametrize("kind", MAKERS)
def test_the_orientation_of_the_raw_file_is_applied(kind: str) -> None:
    upright = images.read(MAKERS[kind](photo(-90), 8)).image
    assert upright.size == photo().size


def test_both_byte_orders_are_read() -> None:
    assert images.read(nef(photo(), start=b"MM\0*")).image.size == photo().size


def test_an_ordinary_tiff_is_none() -> None:
    stream = io.BytesIO()
    photo().save(stream, "TIFF", compression="jpeg")
    assert not images.is_raw(stream)
    assert images.read(stream.getvalue()).format == "TIFF"


def test_a_raw_file_without_a_preview_is_named() -> None:
    file = Tiff()
    tags = {**thumbnail(file, 1), 0x106: (3, [32803])}
    with pytest.raises(ImageError, match="raw file without a JPEG preview"):
        images.read(file.whole(file.directory(tags)))
    with pytest.raises(ImageError, match="Canon CR3"):
        images.read(b"\0\0\0\x18ftypcrx " + bytes(99))


def test_the_library_turns_the_preview_and_writes_no_raw_file(tmp_path: Path) -> None:
    path = tmp_path / "a.nef"
    path.write_bytes(nef(photo(90)))
    result = canonicalize(path)
    assert result.applied_degrees == 90 and result.image.size == photo().size
    with pytest.raises(ImageError, match=r"only read, through its preview.*--format jpeg"):
        canonicalize(path.read_bytes())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "photos"
    place.mkdir()
    (place / "sideways.nef").write_bytes(nef(photo(90)))
    (place / "upright.dng").write_bytes(dng(photo()))
    return place


def lines(text: str) -> dict[str, dict[str, object]]:
    found = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return {Path(one["path"]).name: one for one in found}


def test_angle_and_dry_run_answer_from_the_preview(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["angle", str(folder), "--json"]) == 0
    assert lines(capsys.readouterr().out)["sideways.nef"]["quarter"] == 90
    assert main(["upright", str(folder), "--dry-run", "--json"]) == 0
    found = lines(capsys.readouterr().out)
    assert found["sideways.nef"]["reason"] == "camera raw"
    assert found["sideways.nef"]["quarter"] == 90 and found["sideways.nef"]["applied"] is None
    assert found["upright.dng"]["reason"] == "upright already"
    assert main(["upright", str(folder / "sideways.nef"), "--explain"]) == 0
    assert "--format jpeg writes the preview upright" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--in-place"], ["--in-place", "--force"], []])
def test_upright_leaves_raw_files_as_they_are(
    folder: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main(["upright", str(folder), *options]) == 0
    assert "1 left, camera raw: --format jpeg" in " ".join(capsys.readouterr())
    assert {path: path.read_bytes() for path in folder.glob("*.*")} == before


def test_into_a_folder_raw_files_are_copied_and_previews_written_on_request(
    folder: Path, tmp_path: Path
) -> None:
    assert main(["upright", str(folder), "-o", str(tmp_path / "same")]) == 0
    copy = tmp_path / "same" / "sideways.nef"
    assert copy.read_bytes() == (folder / "sideways.nef").read_bytes()
    report = tmp_path / "report.html"
    made = ["-o", str(tmp_path / "jpeg"), "--format", "jpeg", "--report", str(report)]
    assert main(["upright", str(folder), *made]) == 0
    for name in ("sideways.jpg", "upright.jpg"):
        with Image.open(tmp_path / "jpeg" / name) as picture:
            assert (picture.format, picture.size) == ("JPEG", photo().size)
    assert report.read_text().count("data:image/webp") >= 3


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_raw_files_fail_in_words(data: st.DataObject) -> None:
    small = photo().resize((64, 48))
    content = bytearray(data.draw(st.sampled_from(list(MAKERS.values())))(small))
    for _ in range(data.draw(st.integers(1, 8))):
        # Most of the file is compressed pixels; directories lie at its start and end.
        place = data.draw(st.sampled_from([range(96), range(len(content) - 400, len(content))]))
        content[data.draw(st.sampled_from(place))] = data.draw(st.integers(0, 255))
    try:
        images.read_small(bytes(content), 32, first_frame=True)
    except ImageError as error:
        assert str(error).endswith(".")


def test_directories_that_point_at_one_another_end() -> None:
    file = Tiff()
    first = file.directory({0x106: (3, [32803])})
    looped = bytearray(file.whole(first))
    looped[-4:] = struct.pack("<I", first)  # the next directory is the same one
    with pytest.raises(ImageError, match="without a JPEG preview"):
        raw_previews.preview_of(io.BytesIO(bytes(looped)))
