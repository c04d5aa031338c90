"""Very many files and folders: slow, so that it runs only when it is asked for."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from .bench import Case, Family
from .command import ALL, judge_command
from .gallery import picture
from .kills import wait_until

LIMIT = 3000.0  # seconds
FOLDERS, NESTED, FILES = 10_000, 1_200, 100_000
LINKS = 50_000  # names that one file may have


def check(case: Case) -> None:
    SCENARIOS[case.number % len(SCENARIOS)](case)


def _judge(case: Case, expected: int, out: Path, what: str, *words: str) -> None:
    done = case.command.run("upright", *words, *ALL, "--json", cwd=case.folder, limit=LIMIT)
    judge_command(case, done, (0,), what)
    records = len({record.get("path") for record in done.records})
    if records != expected:
        case.found("omitted", f"{what}: {records:,} records of {expected:,} files")
    if (count := _count(out)) != expected:
        case.found("omitted", f"{what}: {count:,} outputs of {expected:,} files")


def _count(folder: Path) -> int:
    """Files that are not hidden; by a loop, since folders may be nested very deeply."""
    count, waiting = 0, [os.open(folder, os.O_RDONLY)] if folder.exists() else []
    while waiting:
        place = waiting.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(os.open(entry.name, os.O_RDONLY, dir_fd=place))
                elif not entry.name.startswith("."):
                    count += 1
        os.close(place)
    return count


def many_folders(case: Case) -> None:
    small = _small(case)
    for number in range(FOLDERS):
        folder = case.folder / "in" / f"{number % 100}" / f"{number}"
        folder.mkdir(parents=True)
        os.link(small, folder / "a.bmp")
    _judge(case, FOLDERS, case.folder / "out", f"{FOLDERS:,} folders", "in", "-o", "out")


def nested_folders(case: Case) -> None:
    """One picture in every hundredth; the path may not be longer than the system allows."""
    small = _small(case)
    place = case.folder / "in"
    place.mkdir()
    expected = 0
    for depth in range(NESTED):
        place = place / "d"
        place.mkdir()
        if depth % 100 == 99:
            os.link(small, place / "a.bmp")
            expected += 1
    what = f"{NESTED:,} nested folders"
    _judge(case, expected, case.folder / "out", what, "in", "-o", "out")


def many_files_killed_in_the_middle(case: Case) -> None:
    """The same command afterwards makes every output, and none is made twice."""
    originals = [_small(case, number) for number in range(-(-FILES // LINKS))]
    for number in range(FILES):
        folder = case.folder / "in" / f"{number // 1000}"
        folder.mkdir(parents=True, exist_ok=True)
        os.link(originals[number % len(originals)], folder / f"{number}.bmp")
    words = ("upright", "in", "-o", "out", *ALL, "--json")
    running = case.command.start(*words, cwd=case.folder)
    middle = case.folder / "out" / f"{FILES // 2000}"
    if not wait_until(running, middle.exists, LIMIT):
        case.found("other", f"{FILES:,} files: it ended before it was half done")
    running.signal(signal.SIGKILL, group=True)
    running.wait()
    _judge(case, FILES, case.folder / "out", f"{FILES:,} files", "in", "-o", "out")


def _small(case: Case, number: int = 0) -> Path:
    path = case.folder / f"small{number}.bmp"
    picture(case.rng).resize((8, 8)).save(path)
    return path


SCENARIOS: tuple[Callable[[Case], None], ...] = (
    many_folders,
    nested_folders,
    many_files_killed_in_the_middle,
)
FAMILY = Family(
    "scale", "10,000 folders, 1,200 nested, 100,000 files", check, len(SCENARIOS), slow=True
)
