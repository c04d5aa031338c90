"""Kill −9 at random moments, then the same command again: exactly what nobody disturbed."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable

from .bench import Case, Family
from .command import ALL, Done, Running, judge_command
from .gallery import contents, judge_in_place, judge_out

RUN_FOLDER = ".radialbeams-run"
REPORT = ("--report", "sheet.html")
ATTEMPTS = 6  # at killing a run before it has finished


def check(case: Case) -> None:
    """One to three kills of a run in place or to a folder, then a start that may finish."""
    in_place = case.rng.random() < 0.5
    words = words_for(case, in_place)
    killed = killed_runs(case, words, in_place)
    if killed:
        done = case.command.run(*words, cwd=case.folder)
        judge_command(case, done, (0, 1), "after the kill")
        judge_same_records(case, done, in_place)
    else:
        case.tried = 0
    judge_files(case, in_place)
    for running in killed:
        running.wait()  # ends what outlived its parent


def killed_runs(case: Case, words: tuple[str, ...], in_place: bool) -> list[Running]:
    """Runs of the same pictures, each killed; sooner if the first was too fast for that."""
    for attempt in range(ATTEMPTS):
        for name in ("pictures", "out"):
            shutil.rmtree(case.folder / name, ignore_errors=True)
        (case.folder / "sheet.html").unlink(missing_ok=True)
        case.bench.gallery.copy_to(case.folder / "pictures")
        runs = []
        for _ in range(case.rng.choice((1, 1, 1, 2, 3))):
            runs.append(case.command.start(*words, cwd=case.folder))
            if not kill_sometime(case, runs[-1], RUN_FOLDER_OF[in_place], 0.5**attempt):
                break  # in place, another start would turn everything again
        else:
            return runs
    return []


def judge_files(case: Case, in_place: bool) -> None:
    """Pictures and report are those of an undisturbed run, and nothing else lies about."""
    if in_place:
        judge_in_place(case, case.folder / "pictures")
    else:
        judge_out(case, case.folder / "out")
    sheets = {name: content for name, content in contents(case.folder).items() if "sheet" in name}
    if sheets != {"sheet.html": case.bench.gallery.sheets[in_place]}:
        case.found("torn", f"the report is not that of an undisturbed run: {sorted(sheets)}")


RUN_FOLDER_OF = {True: f"pictures/{RUN_FOLDER}", False: f"out/{RUN_FOLDER}"}


def words_for(case: Case, in_place: bool) -> tuple[str, ...]:
    where = ("--in-place",) if in_place else ("-o", "out")
    workers = str(case.rng.choice((1, 2)))
    return ("upright", "pictures", *where, *ALL, "--json", "--workers", workers, *REPORT)


def kill_sometime(case: Case, running: Running, home: str, haste: float) -> bool:
    """Kills it, alone or with its workers; returns whether it was still at work.

    Workers whose parent was killed have to notice and stop. Half of the kills come at
    any moment, half soon after the journal exists.
    """
    seconds = haste * case.bench.gallery.seconds
    if case.rng.random() < 0.5:
        pause = case.rng.uniform(0, 1.1 * seconds)
    else:
        wait_until(running, lambda: (case.folder / home).exists())
        pause = case.rng.uniform(0, 0.7 * seconds)
    wait_until(running, lambda: False, pause)
    running.signal(signal.SIGKILL, group=case.rng.random() < 0.4)
    running.process.wait()
    return (case.folder / home).exists() or not is_complete(case, home)


def is_complete(case: Case, home: str) -> bool:
    """Whether every output is in its place: a kill after that has nothing left to disturb."""
    folder, gallery = (case.folder / home).parent, case.bench.gallery
    expected = gallery.out if folder.name == "out" else gallery.once
    now = contents(folder) if folder.exists() else {}
    return all(now.get(name) == content for name, content in expected.items())


def wait_until(running: Running, reached: Callable[[], bool], limit: float = 30.0) -> bool:
    """Whether it was reached while the command ran."""
    end = time.monotonic() + limit
    while running.is_running and time.monotonic() < end:
        if reached():
            return True
        time.sleep(0.001)
    return False


def judge_same_records(case: Case, done: Done, in_place: bool) -> None:
    """Every file has its record, the same as without a kill."""
    expected = case.bench.gallery.records
    now = {record.get("path"): record for record in done.records}
    if missing := sorted(set(expected) - set(now)):
        case.found("omitted", f"{len(missing)} records are missing: {missing[:3]}")
    for path, record in now.items():
        names = [name for name in record if name != "out" or in_place]
        if path in expected and any(record[n] != expected[path].get(n) for n in names):
            case.found("other", f"another record after the kill: {record} for {expected[path]}")
            return


FAMILY = Family("kills", "kill −9 at random moments, then resume", check, cases=300)
