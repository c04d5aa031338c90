"""What a file carries besides its pixels: kept in place, or the file is left alone with a word."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from PIL import Image, PngImagePlugin

from .bench import Case, Family
from .command import ALL, judge_command
from .damage import chunk, saved
from .gallery import content_of, picture

MARK = b"a caption that someone wrote"
VIDEO = b"\0\0\0\x18ftypmp42" + bytes(range(256)) * 4


def check(case: Case) -> None:
    """After a run in place the mark is still there, or nothing has changed and the run says why."""
    make, keeps = KINDS[case.number % len(KINDS)]
    path = case.folder / "in"
    path.mkdir()
    path = make(path, case)
    before = content_of(path)
    done = case.command.run("upright", "in", "--in-place", *ALL, "--json", cwd=case.folder)
    what = make.__name__.replace("_", " ")
    judge_command(case, done, (0, 1, 2), what)
    if content_of(path) == before:
        if done.code == 0:
            case.found("omitted", f"{what}: not turned, and exit code 0")
    elif not keeps(path):
        case.found("lost", f"{what}: gone after a run in place")


def _jpeg(case: Case, **options: object) -> bytes:
    return saved(picture(case.rng), "JPEG", **options)


def _segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def _with_segment(case: Case, folder: Path, marker: int, body: bytes) -> Path:
    data = _jpeg(case)
    path = folder / "a.jpg"
    path.write_bytes(data[:2] + _segment(marker, body) + data[2:])
    return path


def iptc_caption(folder: Path, case: Case) -> Path:
    record = b"\x1c\x02\x78" + struct.pack(">H", len(MARK)) + MARK
    resource = b"8BIM\x04\x04\0\0" + struct.pack(">I", len(record)) + record
    return _with_segment(
        case, folder, 0xED, b"Photoshop 3.0\0" + resource + b"\0" * (len(record) % 2)
    )


def application_segment(folder: Path, case: Case) -> Path:
    return _with_segment(
        case, folder, 0xE0 + case.rng.choice((3, 4, 5, 8, 10, 11)), b"OWN\0" + MARK
    )


def jpeg_comment(folder: Path, case: Case) -> Path:
    return _with_segment(case, folder, 0xFE, MARK)


def data_after_the_end(folder: Path, case: Case) -> Path:
    """As a phone appends the video of a motion photo."""
    (folder / "a.jpg").write_bytes(_jpeg(case) + VIDEO)
    return folder / "a.jpg"


def exif_tags(folder: Path, case: Case) -> Path:
    exif = Image.Exif()
    exif[0x010E] = MARK.decode()
    (folder / "a.jpg").write_bytes(_jpeg(case, exif=exif))
    return folder / "a.jpg"


def png_text(folder: Path, case: Case) -> Path:
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Description", MARK.decode())
    (folder / "a.png").write_bytes(saved(picture(case.rng), "PNG", pnginfo=texts))
    return folder / "a.png"


def private_png_chunk(folder: Path, case: Case) -> Path:
    data = saved(picture(case.rng), "PNG")
    (folder / "a.png").write_bytes(data[:33] + chunk(b"prVt", MARK) + data[33:])
    return folder / "a.png"


def data_after_a_png(folder: Path, case: Case) -> Path:
    (folder / "a.png").write_bytes(saved(picture(case.rng), "PNG") + VIDEO)
    return folder / "a.png"


def webp_xmp(folder: Path, case: Case) -> Path:
    packet = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>" + MARK + b"</x:xmpmeta>"
    (folder / "a.webp").write_bytes(saved(picture(case.rng), "WEBP", xmp=packet))
    return folder / "a.webp"


def _plain(folder: Path, case: Case) -> Path:
    picture(case.rng).save(folder / "a.png")
    return folder / "a.png"


def another_owner(folder: Path, case: Case) -> Path:
    path = _plain(folder, case)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    path.chmod(0o640)
    return path


def extended_attribute(folder: Path, case: Case) -> Path:
    """Linux has them on every file system that people keep pictures on."""
    path = _plain(folder, case)
    os.setxattr(path, "user.caption", MARK)
    return path


def times(folder: Path, case: Case) -> Path:
    path = _plain(folder, case)
    os.utime(path, (10**9, 10**9))
    return path


def hard_link(folder: Path, case: Case) -> Path:
    path = _plain(folder, case)
    os.link(path, case.folder / "second-name.png")
    return path


def _has_mark(path: Path) -> bool:
    return MARK in path.read_bytes()


def _has_text(path: Path) -> bool:
    with Image.open(BytesIO(path.read_bytes())) as image:
        image.load()
        return MARK.decode() in map(str, image.info.values())


def _has_video(path: Path) -> bool:
    return path.read_bytes().endswith(VIDEO)


def _has_owner(path: Path) -> bool:
    found = path.stat()
    return found.st_uid in (65534, os.geteuid() or 65534) and found.st_mode & 0o777 == 0o640


def _has_attribute(path: Path) -> bool:
    try:
        return os.getxattr(path, "user.caption") == MARK
    except OSError:
        return False


def _has_times(path: Path) -> bool:
    return int(path.stat().st_mtime) == 10**9


def _has_link(path: Path) -> bool:
    return path.samefile(path.parents[1] / "second-name.png")


KINDS: tuple[tuple[Callable[[Path, Case], Path], Callable[[Path], bool]], ...] = (
    (iptc_caption, _has_mark),
    (application_segment, _has_mark),
    (jpeg_comment, _has_mark),
    (data_after_the_end, _has_video),
    (exif_tags, _has_mark),
    (png_text, _has_text),
    (private_png_chunk, _has_mark),
    (data_after_a_png, _has_video),
    (webp_xmp, _has_mark),
    (another_owner, _has_owner),
    (extended_attribute, _has_attribute),
    (times, _has_times),
    (hard_link, _has_link),
)
FAMILY = Family("metadata", "what a file carries besides its pixels", check, cases=2 * len(KINDS))
