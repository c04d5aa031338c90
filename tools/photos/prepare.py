"""Makes a training set of upright photos from folders of them: cleaned, square, one size.

    python tools/photos/prepare.py OUT \
        --squashed coco=train2017 --sizes coco-train2017-sizes.csv.gz --exclude coco=excluded.txt \
        --photos flickr8k=Flicker8k_Dataset --exclude flickr8k=Flickr_8k.testImages.txt \
        --away coco-val2017 --report results/photos.json

Three passes: check every photo, compare their fingerprints, and write the ones that are kept as
OUT/train/SOURCE/NAME.webp and OUT/test/SOURCE/NAME.webp. The same command resumes a killed run.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from clean import fault, open_photo, square
from PIL import Image

from radialbeams.files import bucket, sha256
from radialbeams.images.fingerprints import BITS, Bits, fingerprint, first_near, near_earlier

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
COPY = 20  # bits of 128: a photo this close to an earlier one is a near copy
AWAY = 26  # bits: photos this close to a test photo, mirrored or not, are dropped

Size = tuple[int, int]
Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Photo:
    source: str
    name: str  # the path inside its folder, joined by hyphens, without the suffix
    path: Path
    native: Size | None = None  # if the stored file is squashed
    reason: str = ""  # why it is dropped unchecked

    @property
    def place(self) -> str:
        return f"{'test' if held_out(self.name) else 'train'}/{self.source}/{self.name}.webp"


@dataclass(frozen=True)
class PhotoCheck:
    """The result for one photo: the reason to drop it, or an empty string, and its fingerprint."""

    source: str
    name: str
    reason: str
    bits: str
    digest: str


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    out: Path = arguments.out
    photos = find_photos(arguments)
    looks = look_at_all(photos, out / "looks.jsonl", arguments.jobs)
    away = [path for folder in arguments.away for path in _files(folder)]
    reasons = compare(photos, looks, _fingerprints(away, arguments.jobs))
    accepted = [photo for photo, reason in zip(photos, reasons, strict=True) if not reason]
    if arguments.write:
        remove_others(photos, accepted, out)
        write_all(accepted, out, arguments.size, arguments.quality, arguments.jobs)
    lines = (
        {"source": p.source, "name": p.name, "native": p.native, "reason": r}
        for p, r in zip(photos, reasons, strict=True)
    )
    (out / "reasons.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = json.dumps(summary(photos, reasons, out), indent=1) + "\n"
    if arguments.report:
        arguments.report.write_text(report)
    print(report, end="")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("out", type=Path)
    named: dict[str, Any] = {"type": _named, "action": "append", "metavar": "NAME=PATH"}
    named["default"] = []  # not changed by "append", which copies it
    add("--photos", **named, help="a folder of photos as they are")
    add("--squashed", **named, help="folder of photos with a changed aspect ratio; see --sizes")
    add("--sizes", type=Path, help="table of id,width,height of squashed photos, csv or csv.gz")
    add("--exclude", **named, help="names or ids, one per line, that are never used")
    add("--away", type=Path, action="append", default=[], help="a folder of photos to measure on")
    add("--size", type=int, default=176)
    add("--quality", type=int, default=82, help="of the WebP files")
    add("--jobs", type=int, default=2)
    add(
        "--no-write",
        dest="write",
        action="store_false",
        help="list the photos to use, but write none",
    )
    add("--report", type=Path, help="also write the counts as JSON")
    return parser


def _named(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"expected NAME=PATH; got {text!r}; name the source")
    return name, Path(path)


# Finding the photos.


def find_photos(arguments: argparse.Namespace) -> list[Photo]:
    """Photos in the order of their sources, then by name: the earlier of two copies is kept."""
    excluded: dict[str, set[str]] = {}
    for source, path in arguments.exclude:
        names = (Path(line.strip()).stem for line in path.read_text().splitlines())
        excluded.setdefault(source, set()).update(_plain(name) for name in names if name)
    if arguments.squashed and not arguments.sizes:
        raise SystemExit(
            "expected --sizes with --squashed; got none; give a table of id,width,height"
        )
    sizes = read_sizes(arguments.sizes) if arguments.sizes else {}
    folders = [(*named, True) for named in arguments.squashed]
    folders += [(*named, False) for named in arguments.photos]
    photos = []
    for source, folder, squashed in folders:
        for path in _files(folder):
            name = "-".join(path.relative_to(folder).with_suffix("").parts)
            native = sizes.get(_plain(path.stem)) if squashed else None
            reason = "size unknown" if squashed and native is None else ""
            if _plain(path.stem) in excluded.get(source, ()):
                reason = "excluded"
            photos.append(Photo(source, name, path, native, reason))
    return photos


def read_sizes(path: Path) -> dict[str, Size]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    rows = csv.DictReader(text.splitlines())
    return {row["id"]: (int(row["width"]), int(row["height"])) for row in rows}


def _plain(stem: str) -> str:
    """An id without its leading zeros; a name as it is."""
    return str(int(stem)) if stem.isascii() and stem.isdigit() else stem


def _files(folder: Path) -> list[Path]:
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES)
    if not files:
        raise SystemExit(f"expected photos; got {folder}, which contains none; check the path")
    return files


def held_out(name: str) -> bool:
    """True for one photo in fifty, and for the same ones on every machine."""
    return bucket(name, 50) == 0


# The three passes.


def look_at_all(photos: Sequence[Photo], notes: Path, jobs: int) -> list[PhotoCheck]:
    """A check of each photo, in order; results of an earlier run are reused."""
    notes.parent.mkdir(parents=True, exist_ok=True)
    checks = {(check.source, check.name): check for check in _read_notes(notes)}
    todo = [p for p in photos if (p.source, p.name) not in checks]
    torn = notes.exists() and not notes.read_bytes().endswith(b"\n")
    with notes.open("a") as file:
        file.write("\n" if torn else "")
        for check in _in_parallel(look_at, todo, jobs, "looked at"):
            checks[check.source, check.name] = check
            file.write(json.dumps(asdict(check)) + "\n")
    return [checks[p.source, p.name] for p in photos]


def look_at(photo: Photo) -> PhotoCheck:
    """Excluded photos are checked too, so that their copies can be excluded."""
    try:
        data = photo.path.read_bytes()
        image = open_photo(data)
    except Exception:  # decoders raise all kinds of errors on a broken file; each is counted
        return PhotoCheck(photo.source, photo.name, "unreadable", "", "")
    reason = fault(image, photo.native or image.size)
    bits = np.packbits(fingerprint(image)).tobytes().hex()
    return PhotoCheck(photo.source, photo.name, reason, bits, sha256(data))


def compare(photos: Sequence[Photo], looks: Sequence[PhotoCheck], away: Bits) -> list[str]:
    """The reason to drop each photo, or an empty string."""
    both = list(zip(photos, looks, strict=True))
    reasons = [photo.reason or look.reason for photo, look in both]
    excluded = [_bits(look) for photo, look in both if photo.reason == "excluded" and look.bits]
    away = np.concatenate([away, *(bits[None] for bits in excluded)])

    rows = [row for row, reason in enumerate(reasons) if not reason]
    bits = np.array([_bits(looks[row]) for row in rows], bool).reshape(-1, BITS)
    near = first_near(bits, away, AWAY)
    for row, copy in zip(rows, near, strict=True):
        reasons[row] = "near a test photo" if copy >= 0 else ""

    rows = [row for row, reason in enumerate(reasons) if not reason]
    bits = np.array([_bits(looks[row]) for row in rows], bool).reshape(-1, BITS)
    digests: set[str] = set()
    for row, copy in zip(rows, near_earlier(bits, COPY), strict=True):
        if looks[row].digest in digests:
            reasons[row] = "copy"
        elif copy >= 0:
            reasons[row] = "near copy"
        digests.add(looks[row].digest)
    return reasons


def remove_others(photos: Sequence[Photo], accepted: Sequence[Photo], out: Path) -> None:
    """Removes the files of photos that an earlier run accepted and this one drops."""
    for path in {p.place for p in photos} - {p.place for p in accepted}:
        (out / path).unlink(missing_ok=True)


def write_all(accepted: Sequence[Photo], out: Path, size: int, quality: int, jobs: int) -> None:
    """Writes the photos; existing files are kept."""
    existing = {p.relative_to(out).as_posix() for p in out.glob("*/*/*.webp")}
    todo = [photo for photo in accepted if photo.place not in existing]
    for folder in {(out / photo.place).parent for photo in todo}:
        folder.mkdir(parents=True, exist_ok=True)
    write = partial(write_one, out=out, size=size, quality=quality)
    for _ in _in_parallel(write, todo, jobs, "written"):
        pass


def write_one(photo: Photo, out: Path, size: int, quality: int) -> None:
    image = open_photo(photo.path.read_bytes())
    squared = square(image, photo.native or image.size, size)
    path = out / photo.place
    part = path.with_suffix(".part")
    squared.save(part, "WEBP", quality=quality, method=4)
    os.replace(part, path)  # atomic, so that a killed run can resume


def summary(photos: Sequence[Photo], reasons: Sequence[str], out: Path) -> dict[str, Any]:
    """Counts of each source, and the mean size of what was written."""
    counts: dict[str, Any] = {}
    for source in dict.fromkeys(photo.source for photo in photos):
        of_source = [i for i, photo in enumerate(photos) if photo.source == source]
        paths = [out / photos[i].place for i in of_source if not reasons[i]]
        splits = Counter(path.parts[-3] for path in paths)
        counts[source] = {
            "photos": len(of_source),
            "dropped": dict(Counter(reasons[i] for i in of_source if reasons[i]).most_common()),
            "train": splits["train"],
            "test": splits["test"],
            "mean_bytes": round(sum(_size(path) for path in paths) / max(1, len(paths))),
        }
    return counts


def _size(path: Path) -> int:
    """0 for a photo that was not written."""
    return path.stat().st_size if path.exists() else 0


def _fingerprints(paths: Sequence[Path], jobs: int) -> Bits:
    """Each photo as it is and mirrored."""
    prints = list(_in_parallel(_both_ways, paths, jobs, "test photos looked at"))
    return np.array(prints, bool).reshape(-1, BITS)


def _both_ways(path: Path) -> Bits:
    image = open_photo(path.read_bytes())
    mirrored = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return np.stack([fingerprint(image), fingerprint(mirrored)])


def _bits(look: PhotoCheck) -> Bits:
    return np.unpackbits(np.frombuffer(bytes.fromhex(look.bits), np.uint8)).astype(bool)


def _read_notes(notes: Path) -> Iterator[PhotoCheck]:
    """Ignores an incomplete line that a killed run left."""
    for line in notes.read_text().splitlines() if notes.exists() else ():
        try:
            yield PhotoCheck(**json.loads(line))
        except json.JSONDecodeError:
            continue


def _in_parallel(
    work: Callable[[Job], Result], jobs: Sequence[Job], processes: int, verb: str
) -> Iterator[Result]:
    """The results in order; prints progress and the remaining time to standard error."""
    if processes == 1 or len(jobs) < 100:
        yield from _with_progress(map(work, jobs), len(jobs), verb)
        return
    with get_context("spawn").Pool(processes) as pool:
        yield from _with_progress(pool.imap(work, jobs, chunksize=32), len(jobs), verb)


def _with_progress(results: Iterable[Result], total: int, verb: str) -> Iterator[Result]:
    started = reported = time.monotonic()
    for count, result in enumerate(results, start=1):
        yield result
        now = time.monotonic()
        if now - reported > 10 or count == total:
            minutes_left = (now - started) / count * (total - count) / 60
            print(f"{count:,} of {total:,} {verb}, {minutes_left:.1f} min left", file=sys.stderr)
            reported = now


if __name__ == "__main__":
    raise SystemExit(main())
