"""Small pictures in several formats and folders, and what undisturbed runs make of them."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import stat
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from radialbeams.demo import PICTURES

from .command import ALL, Command, Done

if TYPE_CHECKING:
    from .bench import Case

ENDINGS = ("png", "jpg", "webp", "bmp")
SIDE = 48
Content = dict[str, str]  # path below a folder: sha256, or what else lies there


@dataclass(frozen=True)
class Gallery:
    """Contents by name. `once` and `twice`: after so many runs in place; `out`: to a folder."""

    folder: Path
    original: Content
    once: Content
    twice: Content
    out: Content
    records: dict[str, Any]  # of the run in place, by path
    sheets: dict[bool, str]  # the report of a run in place (True) and to a folder
    seconds: float  # that one run takes

    @property
    def unreadable(self) -> set[str]:
        return {name for name, before in self.original.items() if self.once[name] == before}

    def copy_to(self, folder: Path) -> None:
        shutil.copytree(self.folder, folder)


class BrokenCommand(RuntimeError):
    """The command fails even where nothing disturbs it, so that nothing can be compared."""


def make_gallery(folder: Path, command: Command, count: int, seed: int) -> Gallery:
    work = folder / "work"
    make_pictures(folder / "pictures", count, random.Random(seed))
    original = contents(folder / "pictures")
    shutil.copytree(folder / "pictures", work / "pictures")
    _calm(command, work, "pictures", "-o", "out", "--report", "out.html")
    out = contents(work / "out")
    done = _calm(command, work, "pictures", "--in-place", "--report", "in-place.html")
    once = contents(work / "pictures")
    reports = contents(work)
    sheets = {True: reports["in-place.html"], False: reports["out.html"]}
    _calm(command, work, "pictures", "--in-place")
    twice = contents(work / "pictures")
    records = {record["path"]: record for record in done.records}
    shutil.rmtree(work)
    return Gallery(folder / "pictures", original, once, twice, out, records, sheets, done.seconds)


def _calm(command: Command, cwd: Path, *words: str) -> Done:
    done = command.run("upright", *words, *ALL, "--json", "--workers", "2", cwd=cwd)
    if done.code not in (0, 1) or len(done.records) == 0:
        raise BrokenCommand(f"{' '.join(words)}: exit code {done.code}: {done.message[-500:]}")
    return done


def make_pictures(folder: Path, count: int, rng: random.Random) -> None:
    """Turned, in several formats and folders; every 15th is no picture at all."""
    for number in range(count):
        path = folder / f"{number % 5}" / f"{number}.{ENDINGS[number % len(ENDINGS)]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number % 15 == 14:
            path.write_bytes(rng.randbytes(40))
        else:
            picture(rng).save(path)


def picture(rng: random.Random) -> Image.Image:
    return rng.choice(_originals()).rotate(rng.uniform(10, 350), Image.Resampling.BICUBIC)


@cache
def _originals() -> list[Image.Image]:
    return [
        Image.open(path).convert("RGB").resize((SIDE, SIDE))
        for path in sorted(PICTURES.glob("*.webp"))
    ]


def contents(folder: Path) -> Content:
    """Everything below a folder; links are named by their targets and not followed."""
    found = {}
    root = os.fsencode(folder)
    for place, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            relative = os.fsdecode(os.path.relpath(path, root))
            if (content := content_of(path)) is not None:
                found[relative] = content
    return found


def content_of(path: bytes | str | Path) -> str | None:
    """The sha256 of a file, a word for anything else, and None for a folder."""
    mode = os.lstat(path).st_mode
    if stat.S_ISDIR(mode):
        return None
    if stat.S_ISLNK(mode):
        return f"link to {os.readlink(os.fsencode(path))!r}"
    if not stat.S_ISREG(mode):
        return "special"
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def judge_in_place(case: Case, folder: Path, *, finished: bool = True) -> None:
    """Every file is turned exactly once; at most once where the run was not `finished`."""
    gallery, now = case.bench.gallery, contents(folder)
    for name, original in gallery.original.items():
        content = now.get(name)
        if content is None:
            case.found("lost", f"{name} is gone")
        elif content == gallery.once[name] or (content == original and not finished):
            continue
        elif content == original:
            case.found("omitted", f"{name} was not turned")
        elif content == gallery.twice[name]:
            case.found("twice", f"{name} was turned twice")
        else:
            case.found("torn", f"{name} is neither the original nor the turned picture")
    if finished:
        judge_leftovers(case, now, gallery.original)


def judge_out(case: Case, folder: Path, *, finished: bool = True) -> None:
    """Every output is the undisturbed run's, to the byte."""
    expected = case.bench.gallery.out
    now = contents(folder) if folder.exists() else {}
    for name, content in expected.items():
        if name not in now:
            if finished:
                case.found("omitted", f"the output {name} is missing")
        elif now[name] != content:
            case.found("torn", f"the output {name} differs from that of an undisturbed run")
    if finished:
        judge_leftovers(case, now, expected)


def judge_leftovers(case: Case, now: Content, expected: Content) -> None:
    extra = sorted(set(now) - set(expected))
    if extra:
        case.found("other", f"{len(extra)} left behind: {', '.join(map(repr, extra[:3]))}")
