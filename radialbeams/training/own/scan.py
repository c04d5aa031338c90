"""Scans a folder: the images to train on, their groups, and which files are skipped and why."""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from radialbeams.files import sha256
from radialbeams.images import Frame, ImageError, frame_of, read_small
from radialbeams.images.fingerprints import fingerprint, thumbnail
from radialbeams.training.data import workers
from radialbeams.training.data.pixels import opaque, square_bytes
from radialbeams.training.own.notes import Notes, stamp
from radialbeams.training.own.scanned import ScannedImage, UnusedFile
from radialbeams.training.own.shards import ENDINGS, Stored, root_of, stored_images

LOOK_AT = 256  # pixels; a larger JPEG is decoded small
LEAST_SIDE = 32  # pixels of the shorter side
SMALL_SIDE = 64
BLANK = 2.0  # grey levels of standard deviation
LEAST_IMAGES, FEW_IMAGES = 10, 100
NAMED = 5  # files, at most, in a warning
LEAST_GROUPS = 5  # fewer cannot be split into fifths
FEW_FILES = 32  # up to here processes are not worth their start

__all__ = ["OnProgress", "Scan", "ScannedImage", "UnusedFile", "look", "scan"]

OnProgress = Callable[[int, int], None]  # images done, and how many there are


@dataclass(frozen=True)
class Scan:
    """The result of scanning a folder."""

    folder: Path
    images: tuple[ScannedImage, ...]
    skipped: tuple[UnusedFile, ...] = ()
    warnings: tuple[str, ...] = ()  # in words, with what to expect

    @property
    def root(self) -> Path:
        """The folder that the paths of the stored images are relative to."""
        return root_of(self.folder)

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(sorted({image.group for image in self.images} - {""}))


def scan(folder: Path, on_progress: OnProgress | None = None, *, notes: Path | None = None) -> Scan:
    """Reads every image once. What cannot be trained on is skipped with its reason; a folder
    without enough to train on is a ValueError that says why.

    With a file for notes, a scan that was killed goes on, and a later one reads only the files
    that changed.
    """
    stored, problems = stored_images(folder)
    if not stored:
        raise ValueError(
            f"Expected images ({', '.join(e.removeprefix('.') for e in ENDINGS[:8])}, …) or tar "
            f"shards of them in {folder}; got none. Check the path."
        )
    looks = _looked_at(root_of(folder), stored, on_progress, notes)
    images, skipped = _without_copies(looks)
    skipped = [UnusedFile(path, reason) for path, reason in problems.items()] + skipped
    if len(images) < LEAST_IMAGES:
        raise ValueError(_too_few(folder, len(images), skipped))
    images = _grouped(images)
    return Scan(folder, tuple(images), tuple(skipped), tuple(_warnings(images, skipped)))


# --- one image -------------------------------------------------------------------------------


def look(root: Path, stored: Stored) -> ScannedImage | UnusedFile:
    """One scanned image, or the reason to skip it."""
    try:
        data = stored.read(root)
        image = read_small(data, LOOK_AT, first_frame=True)
        size = _displayed_size(data, image)
        frame = frame_of(image)
        if reason := _fault(image, size, frame):
            return UnusedFile(stored.path, reason)
        seen = opaque(image)
    except (ImageError, ValueError) as error:
        return UnusedFile(stored.path, str(error))
    except (OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        return UnusedFile(stored.path, f"It cannot be read ({' '.join(str(error).split())}).")
    bits = np.packbits(fingerprint(seen)).tobytes() + thumbnail(seen).tobytes()
    tilted = frame is not None
    return ScannedImage(stored.path, "", size, sha256(data), bits.hex(), stored, tilted)


def _displayed_size(data: bytes, image: Image.Image) -> tuple[int, int]:
    """From the header: the decoded image may be smaller, and is turned as its EXIF says."""
    with Image.open(BytesIO(data)) as header:
        width, height = header.size
    turned = (width > height) != (image.width > image.height) and image.width != image.height
    return (height, width) if turned else (width, height)


def _fault(image: Image.Image, size: tuple[int, int], frame: Frame | None) -> str:
    if min(size) < LEAST_SIDE:
        return (
            f"It is too small: {size[0]} × {size[1]} pixels. The shorter side must have at least "
            f"{LEAST_SIDE}."
        )
    if square_bytes(image, SMALL_SIDE, 3).std(axis=(1, 2)).max() < BLANK:
        return "It is blank: its pixels have one colour, so no angle can be seen in it."
    # On its own canvas a picture's corners are cut off, and no view shows where they were.
    if frame is not None and not frame.cut:
        return (
            f"It lies turned by {abs(frame.angle):.0f}° on a plain canvas, so it is not upright, "
            "and its edges would give the angle away. Straighten and crop it."
        )
    return ""


def _looked_at(
    root: Path, stored: Sequence[Stored], on_progress: OnProgress | None, notes: Path | None
) -> list[ScannedImage | UnusedFile]:
    with Notes(notes) as noted:
        stamps = [stamp(root, one) for one in stored]
        new = [one for one, at in zip(stored, stamps, strict=True) if at not in noted.known]
        results = _results(partial(look, root), new)
        looked_at: list[ScannedImage | UnusedFile] = []
        for at in stamps:
            if at not in noted.known:
                noted.add(at, next(results))
            looked_at.append(noted.known[at])
            if on_progress is not None:
                on_progress(len(looked_at), len(stored))
    return looked_at


def _results(
    function: Callable[[Stored], ScannedImage | UnusedFile], stored: Sequence[Stored]
) -> Iterator[ScannedImage | UnusedFile]:
    if len(stored) <= FEW_FILES:
        yield from map(function, stored)
        return
    with workers.pool() as pool:
        yield from pool.imap(function, stored, chunksize=8)


# --- all of them ------------------------------------------------------------------------------


def _without_copies(
    looks: Sequence[ScannedImage | UnusedFile],
) -> tuple[list[ScannedImage], list[UnusedFile]]:
    """Keeps only the first of several files with the same bytes."""
    images: dict[str, ScannedImage] = {}
    skipped = []
    for one in looks:
        if isinstance(one, UnusedFile):
            skipped.append(one)
        elif one.sha256 in images:
            skipped.append(UnusedFile(one.path, f"It is a copy of {images[one.sha256].path}."))
        else:
            images[one.sha256] = one
    return list(images.values()), skipped


def _grouped(images: Sequence[ScannedImage]) -> list[ScannedImage]:
    """The group of an image is its subfolder.

    Of nested subfolders it is the outermost one, as long as there are enough of those to split
    by; `photos/anna/2019` and `photos/anna/2020` then stay together.
    """
    folders = [image.stored.name.parts[:-1] for image in images]
    deepest = max(map(len, folders))
    for depth in range(1, deepest + 1):
        names = ["/".join(parts[:depth]) for parts in folders]
        if len(set(names) - {""}) >= LEAST_GROUPS or depth == deepest:
            return [replace(image, group=name) for image, name in zip(images, names, strict=True)]
    return list(images)


def _too_few(folder: Path, usable: int, skipped: Sequence[UnusedFile]) -> str:
    text = f"Expected at least {LEAST_IMAGES} usable images in {folder}; got {usable}."
    if skipped:
        reasons = Counter(one.reason.split(":")[0].split(".")[0] for one in skipped)
        common, times = reasons.most_common(1)[0]
        text += f" {len(skipped)} were skipped, {times} of them for this reason: {common}."
    return f"{text} A model needs images to learn from and others to be measured on; add more."


def _warnings(images: Sequence[ScannedImage], skipped: Sequence[UnusedFile]) -> Iterator[str]:
    if len(images) < FEW_IMAGES:
        yield (
            f"There are only {len(images)} images. Expect a model that knows these things and no "
            "others, and a measured error that is itself uncertain. A few hundred images are "
            "better."
        )
    if tilted := [image.path for image in images if image.tilted]:
        named = ", ".join(tilted[:NAMED]) + (", …" if len(tilted) > NAMED else "")
        yield (
            f"{len(tilted)} of {len(images)} images have plain corners, as pictures have that were "
            f"turned: {named}. If they are not upright, a model learns from them what is wrong: "
            "leave them out, or let --realign correct them."
        )
    small = sum(min(image.size) < SMALL_SIDE for image in images)
    if small > len(images) // 2:
        yield (
            f"{small} of {len(images)} images are smaller than {SMALL_SIDE} pixels. Expect errors "
            "of several degrees more than with larger images."
        )
    if len(skipped) > len(images) // 4:
        yield (
            f"{len(skipped)} of {len(images) + len(skipped)} images were skipped. Look at the "
            "reasons before you trust the rest."
        )
