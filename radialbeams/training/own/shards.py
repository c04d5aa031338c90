"""Where the bytes of an image are: a file of its own, or a piece of a tar shard or a zip.

WebDataset shards are plain tar files. The images of a sample are found by their endings; labels
and texts beside them are not read. Nothing is unpacked: a tar is indexed once, and each image is
then read at its own place, by any process and in any order.
"""

from __future__ import annotations

import os
import tarfile
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from radialbeams.files import natural_order
from radialbeams.images import missing_suffixes, suffixes
from radialbeams.limits import DEFAULT
from radialbeams.training.data.archives import file_names, is_hidden

ENDINGS = (
    *(".png", ".jpg", ".jpeg", ".jpe", ".webp", ".bmp", ".tif", ".tiff"),
    *(".gif", ".avif", ".jp2", ".j2k", ".ppm", ".pgm", ".pbm"),
)
COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")


@dataclass(frozen=True)
class Stored:
    """The bytes of one image."""

    path: str  # as a report names it: relative to the folder, SHARD/NAME inside a shard
    file: str  # relative to the folder
    offset: int | None = None  # in a tar
    length: int | None = None
    member: str | None = None  # of a zip

    @property
    def name(self) -> PurePosixPath:
        """The path without the shard's name: folders inside a shard are groups, shards are not."""
        inside = self.offset is not None or self.member is not None
        return PurePosixPath(self.path.removeprefix(f"{self.file}/") if inside else self.path)

    def read(self, folder: Path) -> bytes:
        if self.member is not None:
            return _zip(str(folder / self.file), os.getpid()).read(self.member)
        with (folder / self.file).open("rb") as file:
            length = os.fstat(file.fileno()).st_size if self.length is None else self.length
            if length > DEFAULT.file_size:
                raise ValueError(f"It has {length:,} bytes, of at most {DEFAULT.file_size:,}.")
            file.seek(self.offset or 0)
            return file.read(length)


@lru_cache(maxsize=4)
def _zip(path: str, process: int) -> zipfile.ZipFile:
    """Open in this process: forked ones would share one position in the file."""
    return zipfile.ZipFile(path)


def root_of(place: Path) -> Path:
    """The folder that the files of `Stored` are relative to."""
    return place if place.is_dir() else place.parent


def stored_images(place: Path) -> tuple[list[Stored], dict[str, str]]:
    """The images of a folder (loose and in its tar shards), of one tar, or of a zip, in order.

    And what is wrong with shards that are damaged, by their names: what can be read of them is
    among the images. A single archive that holds nothing else is an error.
    """
    if not place.exists():
        raise ValueError(
            f"Expected a folder of images, or a tar or zip of them; got {place}, which does not "
            "exist. Check the path."
        )
    if not place.is_dir():
        images, problem = _archived(place, place.name)
        if problem and not images:
            raise ValueError(f"Expected a folder, a tar or a zip of images; got {place}. {problem}")
        return images, {place.name: problem} if problem else {}
    stored: list[Stored] = []
    problems: dict[str, str] = {}
    for path in file_names(place):
        if is_image(path):
            stored.append(Stored(path, path))
        elif path.lower().endswith((".tar", *COMPRESSED)):
            images, problem = _archived(place / path, path)
            stored += images
            problems |= {path: problem} if problem else {}
    return stored, problems


def is_image(path: str) -> bool:
    """By its ending; formats whose plug-in is missing count, so that a report can say so."""
    return path.lower().endswith((*ENDINGS, *suffixes(), *missing_suffixes()))


def _archived(path: Path, name: str) -> tuple[list[Stored], str]:
    """The images of an archive in natural order, and what is wrong with it or nothing."""
    if path.name.lower().endswith(COMPRESSED):
        return [], (
            "It is compressed, so its images cannot be read in any order. Decompress it first, "
            "for example with gunzip."
        )
    members, problem = _in_zip(path, name) if zipfile.is_zipfile(path) else _in_tar(path, name)
    images = (one for one in members if is_image(one.path) and not is_hidden(one.name.as_posix()))
    return sorted(images, key=lambda one: natural_order(one.path)), problem


def _in_zip(path: Path, name: str) -> tuple[list[Stored], str]:
    with zipfile.ZipFile(path) as archive:
        members = [info.filename for info in archive.infolist() if not info.is_dir()]
    return [Stored(f"{name}/{one}", name, member=one) for one in members], ""


def _in_tar(path: Path, name: str) -> tuple[list[Stored], str]:
    """Up to the place where the tar is damaged."""
    members = []
    try:
        with tarfile.open(path, "r:") as tar:
            for info in tar:
                if info.isfile():
                    shown = f"{name}/{info.name.removeprefix('./')}"
                    members.append(Stored(shown, name, info.offset_data, info.size))
    except (tarfile.TarError, OSError, EOFError) as error:
        why = " ".join(str(error).split())
        return members, f"It is damaged or cut short ({why}). Get a fresh copy."
    return members, ""
