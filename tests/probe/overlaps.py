"""Runs that share files, started at once: each file is turned at most once and none is torn."""

from __future__ import annotations

import os
import time

from .bench import Case, Family
from .command import ALL, Running, judge_command
from .gallery import contents, judge_in_place, judge_out

OPTIONS = (*ALL, "--json", "--workers", "2")


def check(case: Case) -> None:
    case.bench.gallery.copy_to(case.folder / "pictures")
    scenario = (nested, nested, linked, twice_named, same_output)[case.number % 5]
    scenario(case)


def nested(case: Case) -> None:
    """A folder and a folder inside it, in either order."""
    inner = f"pictures/{case.rng.randrange(5)}"
    _in_place(case, case.rng.sample(["pictures", inner], 2))


def linked(case: Case) -> None:
    """One folder under two names."""
    os.symlink("pictures", case.folder / "alias")
    _in_place(case, ["pictures", "alias"])


def twice_named(case: Case) -> None:
    _in_place(case, ["pictures", "pictures"])


def same_output(case: Case) -> None:
    _at_once(case, [("upright", "pictures", "-o", "out", *OPTIONS)] * 2)
    judge_out(case, case.folder / "out")


def _in_place(case: Case, folders: list[str]) -> None:
    if not _at_once(case, [("upright", folder, "--in-place", *OPTIONS) for folder in folders]):
        case.tried = 0
        return
    if any(name.rpartition("/")[2].startswith(".") for name in contents(case.folder / "pictures")):
        case.found("other", "something hidden was left behind")
    judge_in_place(case, case.folder / "pictures", finished=False)


def _at_once(case: Case, commands: list[tuple[str, ...]]) -> bool:
    """Whether the second started before the first was done; one may wait or refuse."""
    running: list[Running] = []
    for words in commands:
        at_once = all(one.is_running for one in running)
        running.append(case.command.start(*words, cwd=case.folder))
        time.sleep(case.rng.uniform(0, 0.6) * case.bench.gallery.seconds)
    for one in running:
        judge_command(case, one.wait(), (0, 1, 2), "one of two runs")
    return at_once


FAMILY = Family("overlaps", "runs that share files, started at once", check, cases=24)
