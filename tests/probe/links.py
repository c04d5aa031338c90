"""Links planted where a run writes, and unfinished runs planted by someone else.

No file outside of the output changes, and no original becomes a link.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from .bench import Case, Family
from .command import ALL, judge_command
from .gallery import contents
from .kills import RUN_FOLDER, wait_until
from .victims import Outside

OPTIONS = (*ALL, "--json", "--workers", "2")
NOBODY = 65534


def check(case: Case) -> None:
    case.bench.gallery.copy_to(case.folder / "pictures")
    in_place = case.number % 2 == 0
    scenario = SCENARIOS[case.number // 2 % len(SCENARIOS)]
    scenario(case, in_place, Outside(case))


def _words(in_place: bool, *more: str) -> tuple[str, ...]:
    where = ("--in-place",) if in_place else ("-o", "out")
    return ("upright", "pictures", *where, *OPTIONS, *more)


def _home(case: Case, in_place: bool) -> Path:
    home = case.folder / ("pictures" if in_place else "out")
    home.mkdir(exist_ok=True)
    return home


def _run(case: Case, in_place: bool, outside: Outside, *more: str) -> None:
    """Runs it, then judges; a refusal in a sentence is as good as a success."""
    what = "in place" if in_place else "to a folder"
    done = case.command.run(*_words(in_place, *more), cwd=case.folder)
    judge_command(case, done, (0, 1, 2), what)
    outside.judge(what)
    judge_originals(case)


def judge_originals(case: Case) -> None:
    """Every input is still a file, turned at most once."""
    gallery, now = case.bench.gallery, contents(case.folder / "pictures")
    for name, original in gallery.original.items():
        if now.get(name) is None:
            case.found("lost", f"{name} is gone")
        elif now[name] == gallery.twice[name] != gallery.once[name]:
            case.found("twice", f"{name} was turned twice")
        elif now[name] not in (original, gallery.once[name]):
            case.found("torn", f"{name} is neither original nor turned: {now[name][:60]}")


# --- links -------------------------------------------------------------------------------------


def part_names(case: Case, in_place: bool, outside: Outside) -> None:
    """Links under every name that could be guessed for an output in the making."""
    home = _home(case, in_place)
    for name in case.bench.gallery.out:
        place = home / name
        place.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(os.fsencode(place.name)).hexdigest()[:16]
        for guess in (f".{digest}.radialbeams-part", f".{place.name}.part", f"{place.name}.part"):
            (place.parent / guess).symlink_to(outside.victim)
    _run(case, in_place, outside)


def run_folder(case: Case, in_place: bool, outside: Outside) -> None:
    (_home(case, in_place) / RUN_FOLDER).symlink_to(outside.folder)
    _run(case, in_place, outside)


def run_folder_to_nowhere(case: Case, in_place: bool, outside: Outside) -> None:
    (_home(case, in_place) / RUN_FOLDER).symlink_to(outside.folder / "empty")
    _run(case, in_place, outside)


def run_files(case: Case, in_place: bool, outside: Outside) -> None:
    folder = _home(case, in_place) / RUN_FOLDER
    folder.mkdir()
    for name in case.rng.sample(("journal.jsonl", "plan.jsonl", "plan.part", "lock"), 2):
        (folder / name).symlink_to(outside.victim)
    _run(case, in_place, outside)


def hard_links(case: Case, in_place: bool, outside: Outside) -> None:
    folder = _home(case, in_place) / RUN_FOLDER
    folder.mkdir()
    for name in ("journal.jsonl", "plan.part"):
        os.link(outside.victim, folder / name)
    _run(case, in_place, outside)


def output_names(case: Case, in_place: bool, outside: Outside) -> None:
    """Links where outputs go: skipped, or with --overwrite replaced themselves."""
    for name in case.bench.gallery.out:
        place = case.folder / "out" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(outside.victim)
    _run(case, False, outside, *(["--overwrite"] if in_place else []))


def output_folders(case: Case, in_place: bool, outside: Outside) -> None:
    """A folder below the output's is a link that leads out of it."""
    (case.folder / "out").mkdir()
    for name in ("0", "3"):
        (case.folder / "out" / name).symlink_to(outside.folder / "empty")
    _run(case, False, outside, *(["--overwrite"] if in_place else []))


def report_names(case: Case, in_place: bool, outside: Outside) -> None:
    guesses = (".sheet.html.part", ".sheet.part", "sheet.html.part")
    for name in ("sheet.html", *guesses) if case.rng.random() < 0.5 else guesses:
        (case.folder / name).symlink_to(outside.victim)
    _run(case, in_place, outside, "--report", "sheet.html")


def racing(case: Case, in_place: bool, outside: Outside) -> None:
    """Someone exchanges each output in the making for a link, as fast as they can."""
    home = _home(case, in_place)
    running = case.command.start(*_words(in_place), cwd=case.folder)
    end = time.monotonic() + 10
    while running.is_running and time.monotonic() < end:
        try:
            parts = list(home.glob("*/.*"))
        except FileNotFoundError:  # a folder vanished meanwhile
            continue
        for part in parts:
            draft = home / ".planted"
            try:
                draft.symlink_to(outside.victim)
                os.replace(draft, part)
            except OSError:
                continue
    judge_command(case, running.wait(), (0, 1, 2), "racing")
    outside.judge("racing")


# --- planted runs ------------------------------------------------------------------------------


def killed_run(case: Case, in_place: bool) -> bool:
    """Leaves an unfinished run behind; False if it was too fast."""
    home = _home(case, in_place)
    running = case.command.start(*_words(in_place), cwd=case.folder)
    wait_until(running, lambda: any(True for _ in home.glob("*/.*")))
    wait_until(running, lambda: False, case.rng.uniform(0, 0.2))
    running.signal(signal.SIGKILL, group=True)
    running.wait()
    return (home / RUN_FOLDER / "journal.jsonl").exists()


def plan_outside(case: Case, in_place: bool, outside: Outside) -> None:
    """The plan and the journal of a real run, with outputs that point elsewhere."""
    if not killed_run(case, in_place):
        case.tried = 0
        return
    root = "pictures" if in_place else "out"
    aim = case.rng.choice((str(outside.folder), "../outside", f"{root}/../outside"))
    if aim.startswith("../"):
        aim = f"./{aim[3:]}"  # relative to the working folder, which holds both
    for path in (_home(case, in_place) / RUN_FOLDER).iterdir():
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines(True)
        changed = [_aimed(line, root, aim, in_place) for line in lines]
        path.write_text("".join(changed), encoding="utf-8", errors="surrogateescape")
    shutil.copytree(case.folder / root, outside.folder / "copy", dirs_exist_ok=True)
    shutil.rmtree(outside.folder / "copy" / RUN_FOLDER)
    for part in (outside.folder / "copy").iterdir():  # parts lie ready where outputs would land
        shutil.copytree(part, outside.folder / part.name, dirs_exist_ok=True)
    outside.remember()
    _run(case, in_place, outside)


def _aimed(line: str, root: str, aim: str, in_place: bool) -> str:
    """Inputs stay as they are, but for a run in place, where they are the outputs."""
    if '"settings"' in line:
        return line
    if not in_place:
        return line.replace(f'"{root}/', f'"{aim}/')
    head, comma, tail = line.partition(", ")
    return head + comma + tail.replace(f'"{root}/', f'"{aim}/')


def of_another_user(case: Case, in_place: bool, outside: Outside) -> None:
    """An unfinished run that belongs to someone else is refused or at least harmless."""
    if os.geteuid() != 0:
        case.skip("planting another user's files needs root")
        return
    if not killed_run(case, in_place):
        case.tried = 0
        return
    folder = _home(case, in_place) / RUN_FOLDER
    before = contents(folder)
    for path in (folder, *folder.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    done = case.command.run(*_words(in_place), cwd=case.folder)
    judge_command(case, done, (0, 1, 2), "another user's run")
    if done.code == 0 or not folder.exists() or contents(folder) != before:
        case.found("outside", "a run planted by another user was taken up")
    outside.judge("another user's run")
    judge_originals(case)


SCENARIOS: tuple[Callable[[Case, bool, Outside], None], ...] = (
    part_names,
    run_folder,
    run_folder_to_nowhere,
    run_files,
    hard_links,
    output_names,
    output_folders,
    report_names,
    racing,
    plan_outside,
    of_another_user,
)
FAMILY = Family("links", "planted links and planted runs", check, cases=66)
