"""Packs the photos that `prepare.py` kept, byte for byte, into archives of a limited size.

    python tools/photos/prepare.py PHOTOS --squashed coco=train2017 --sizes sizes.csv.gz --no-write
    python tools/photos/shards.py PHOTOS/reasons.jsonl train2017 SHARDS [--bytes 56000000]

For machines with a limit on the size of an upload. Each shard is a tar of image files with a
sizes.csv (id,width,height) of the native sizes of squashed photos, as
`radialbeams.training.data.cache` reads them. The folder of photos has no subfolders. The photos are
shuffled by a hash, so every shard is a random sample.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from radialbeams.files import sha256, write_whole

BLOCK = 512  # bytes: in a tar, each file takes a header and whole blocks
ROW = 30  # bytes of a photo's line in sizes.csv, at most


class StoredPhoto(NamedTuple):
    path: Path
    native: tuple[int, int] | None  # width and height, if the stored file is squashed

    @property
    def row(self) -> str:
        """Its line in sizes.csv, if it has one."""
        return f"{self.path.stem},{self.native[0]},{self.native[1]}\n" if self.native else ""


def accepted(reasons: Path, folder: Path) -> list[StoredPhoto]:
    """The photos without a reason to drop them, in the order of their hashes."""
    rows = [json.loads(line) for line in reasons.read_text(encoding="utf-8").splitlines()]
    native_sizes = {row["name"]: row["native"] for row in rows if not row["reason"]}
    photos = [
        StoredPhoto(path, native if (native := native_sizes[path.stem]) is None else tuple(native))
        for path in folder.iterdir()
        if path.stem in native_sizes
    ]
    return sorted(photos, key=lambda photo: sha256(f"shard {photo.path.stem}".encode()))


def shards(photos: Sequence[StoredPhoto], most: int) -> Iterator[list[StoredPhoto]]:
    """Groups of photos whose archives have at most `most` bytes."""
    shard: list[StoredPhoto] = []
    total = free = most - 40 * BLOCK  # the end of an archive, and the header of sizes.csv
    for photo in photos:
        size = photo.path.stat().st_size
        cost = BLOCK + -(-size // BLOCK) * BLOCK + ROW
        if cost > total and shard:
            yield shard
            shard, total = [], free
        shard.append(photo)
        total -= cost
    if shard:
        yield shard


def write(shard: Sequence[StoredPhoto], path: Path) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        rows = "".join(photo.row for photo in shard)
        _add(archive, "sizes.csv", f"id,width,height\n{rows}".encode())
        for photo in shard:
            _add(archive, photo.path.name, photo.path.read_bytes())


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reasons", type=Path)
    parser.add_argument("photos", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--bytes", type=int, default=56_000_000, help="of one shard, at most")
    arguments = parser.parse_args(argv)
    photos = accepted(arguments.reasons, arguments.photos)
    for number, shard in enumerate(shards(photos, arguments.bytes)):
        path = arguments.out / f"{number:03d}.tar"

        def fill(part: Path, shard: list[StoredPhoto] = shard) -> None:
            write(shard, part)

        write_whole(path, fill)
        print(f"{path}: {len(shard):,} photos, {path.stat().st_size:,} bytes", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
