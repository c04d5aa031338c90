"""Decodes the images of a scan once into one file, which is then mapped into memory.

The file has the format of `training.data.cache`: NAME.bytes, (N, C, W, W), and NAME.json with its
sha256, written last. While it is being built it is called NAME.building. NAME.done has the sha256
of each chunk that is whole: a killed build goes on after them, and of a damaged file only the
damaged chunks are decoded again. NAME follows from the contents of the images, their size and
their order, so that nothing stale is ever read.

Reading the whole file for its checksum takes as long as an epoch. It is done once: NAME.checked
notes the state of the file, and only a file that was touched since, or may have been cut off by a
crash of the system, is checked again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from io import BufferedRandom
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from radialbeams.files import claimed, sha256, write_whole
from radialbeams.images import read_small
from radialbeams.training.data import ImageSet, cache
from radialbeams.training.data.decoding import decode
from radialbeams.training.data.members import Member
from radialbeams.training.data.pixels import centred_square
from radialbeams.training.own.scan import FEW_FILES, OnProgress, Scan, ScannedImage

VERSION = 1  # of how an image becomes a square; another one is another file
CHUNK_BYTES = 128 * 2**20  # decoded at once
# Differs after every start of the system: a crash may lose what was written last.
BOOT = Path("/proc/sys/kernel/random/boot_id")
TICK = 0.02  # seconds, more than the resolution of the times of files
WAIT = 0.2  # seconds between two looks at what another process builds


class ChangedImages(ValueError):
    """Images have changed since the scan."""


def read(
    scan: Scan,
    indices: Sequence[int],
    size: int,
    channels: int,
    cache: Path,
    on_progress: OnProgress | None = None,
) -> ImageSet:
    """These images of a scan as squares of `size` pixels, on a map of the file in `cache`.

    The file is made first if it is not there. Of several processes that ask for it one makes it
    and the others wait.
    """
    chosen = [scan.images[i] for i in indices]
    if not chosen:
        raise ValueError("Expected at least one image to read; got none.")
    build = _Build(scan.root, chosen, size, channels, cache)
    pixels = build.mapped()
    while pixels is None:
        with claimed(cache / f"{build.name}.lock") as mine:
            if mine:
                build.run(on_progress)
            else:
                time.sleep(WAIT)
        pixels = build.mapped()
    return ImageSet(
        scan.folder.name,
        _tensor(pixels),
        tuple(image.path for image in chosen),
        tuple(image.group for image in chosen),
        file=pixels,
    )


def _tensor(pixels: np.memmap) -> torch.Tensor:
    with warnings.catch_warnings():
        # torch cannot mark memory as read-only. Nothing writes to parents; and a private map that
        # could be written to may not be larger than memory.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(pixels)


@dataclass(frozen=True)
class _Build:
    """Builds one file of decoded squares, or resumes building it."""

    root: Path
    images: Sequence[ScannedImage]
    size: int
    channels: int
    folder: Path

    @property
    def name(self) -> str:
        content = "".join(
            image.sha256 + (f"@{image.angle!r}" if image.angle else "") for image in self.images
        )
        digest = hashlib.sha256(f"{VERSION}/{content}".encode()).hexdigest()
        return f"{self.size}px-{self.channels}-{digest[:16]}"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self.images), self.channels, self.size, self.size

    @property
    def row_bytes(self) -> int:
        return self.channels * self.size**2

    @property
    def building(self) -> Path:
        return self.folder / f"{self.name}.building"

    @property
    def done(self) -> Path:
        return self.folder / f"{self.name}.done"

    @property
    def checked(self) -> Path:
        return self.folder / f"{self.name}.checked"

    def mapped(self) -> np.memmap | None:
        """(N, C, W, W), once its bytes have been checked; None if it is not there, or damaged."""
        if not cache.holds(self.folder, self.name):
            return None
        path = cache.bytes_path(self.folder, self.name)
        try:
            index = cache.read_index(self.folder, self.name)
            if _is_noted(self.checked, path):
                return np.memmap(path, np.uint8, "r", shape=index.shape)
            pixels = cache.mapped(self.folder, self.name, index)
        except (cache.DamagedCache, OSError, ValueError, TypeError):
            cache.index_path(self.folder, self.name).unlink(missing_ok=True)
            return None
        _note_checked(self.checked, path)
        return pixels

    def run(self, on_progress: OnProgress | None) -> None:
        if cache.holds(self.folder, self.name):
            return  # another process was faster
        self._check_space()
        chunks = self._chunks()
        with self._opened() as file:
            whole = self._whole_chunks(file, chunks)
            for chunk in chunks:
                if chunk.start not in whole:
                    pixels = self._decoded(chunk)
                    file.seek(chunk.start * self.row_bytes)
                    file.write(pixels.data)
                    file.flush()
                    self._note(chunk, pixels)
                if on_progress is not None:
                    on_progress(chunk.stop, len(self.images))
        self._finish()

    def _chunks(self) -> list[range]:
        rows = max(16, CHUNK_BYTES // self.row_bytes)
        count = len(self.images)
        return [range(start, min(start + rows, count)) for start in range(0, count, rows)]

    def _opened(self) -> BufferedRandom:
        """The file as an earlier build left it, killed or damaged since; else an empty one."""
        earlier = cache.bytes_path(self.folder, self.name)
        if earlier.exists() and not self.building.exists():
            os.replace(earlier, self.building)
        self.building.touch()
        file = self.building.open("r+b")
        file.truncate(len(self.images) * self.row_bytes)
        return file

    def _whole_chunks(self, file: BufferedRandom, chunks: Sequence[range]) -> set[int]:
        """The first rows of the chunks that an earlier build has written and noted."""
        noted = _notes(self.done)
        whole = set()
        for chunk in chunks:
            if chunk.start in noted:
                file.seek(chunk.start * self.row_bytes)
                if sha256(file.read(len(chunk) * self.row_bytes)) == noted[chunk.start]:
                    whole.add(chunk.start)
        return whole

    def _decoded(self, chunk: range) -> NDArray[np.uint8]:
        members = [
            Member(image.path, image.path, "", partial(_opened_image, self.root, image, self.size))
            for image in (self.images[row] for row in chunk)
        ]
        pixels, problems = decode(self.root, members, self.size, self.channels, many=FEW_FILES)
        if problems:
            row, reason = next(iter(sorted(problems.items())))
            raise ChangedImages(
                f"Expected the images that were scanned; {members[row].path} cannot be used any "
                f"more ({reason}). Do not change the folder meanwhile, and start again."
            )
        return pixels

    def _note(self, chunk: range, pixels: NDArray[np.uint8]) -> None:
        line = json.dumps({"row": chunk.start, "sha256": sha256(pixels.tobytes())})
        with self.done.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _finish(self) -> None:
        index = cache.Index(
            self.shape,
            tuple(image.path for image in self.images),
            tuple(image.group for image in self.images),
            (False,) * len(self.images),
            {},
            sha256(self.building),
        )
        path = cache.bytes_path(self.folder, self.name)
        os.replace(self.building, path)
        _note_checked(self.checked, path)
        cache.write_index(self.folder, self.name, index)

    def _check_space(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        there = self.building.stat().st_blocks * 512 if self.building.exists() else 0
        needed = len(self.images) * self.row_bytes - there
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise ValueError(
                f"Expected {needed / 1e9:.1f} GB of free space in {self.folder} for the decoded "
                f"images; got {free / 1e9:.1f} GB. Make room, or train on smaller images."
            )


def _opened_image(root: Path, image: ScannedImage, size: int) -> Image.Image:
    data = image.stored.read(root)
    if sha256(data) != image.sha256:
        raise ChangedImages("it changed after the scan")
    picture = read_small(data, size, first_frame=True)
    if not image.angle:
        return picture
    # Only the disc in its middle is ever seen, and nothing empty is turned into that.
    return centred_square(picture).rotate(-image.angle, Image.Resampling.BICUBIC)


def _state(path: Path) -> str | None:
    """Changes whenever the file is written to or the system starts anew; None if unknown."""
    try:
        started = BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return None
    stat = path.stat()
    return f"{started} {stat.st_size} {stat.st_ino} {stat.st_mtime_ns} {stat.st_ctime_ns}"


def _is_noted(note: Path, path: Path) -> bool:
    return note.exists() and note.read_text(encoding="ascii", errors="replace") == _state(path)


def _note_checked(note: Path, path: Path) -> None:
    state = _state(path)
    if state is not None:
        time.sleep(TICK)  # so that whatever is written later has another time
        write_whole(note, lambda part: part.write_text(state, encoding="ascii"))


def _notes(path: Path) -> dict[int, str]:
    """Row → sha256 of each chunk that was noted; half a line of a killed build does not count."""
    if not path.exists():
        return {}
    digests = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            values = json.loads(line)
            digests[int(values["row"])] = str(values["sha256"])
        except (KeyError, TypeError, ValueError):
            continue
    return digests
