"""Ctrl-C, Ctrl-Z, a closed terminal and a system that shuts down, then the same command again."""

from __future__ import annotations

import signal
import time

from .bench import Case, Family
from .command import judge_command
from .gallery import judge_in_place, judge_out
from .kills import (
    RUN_FOLDER_OF,
    is_complete,
    judge_files,
    judge_same_records,
    wait_until,
    words_for,
)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGSTOP)


def check(case: Case) -> None:
    number = SIGNALS[case.number % len(SIGNALS)]
    in_place = case.rng.random() < 0.5
    case.bench.gallery.copy_to(case.folder / "pictures")
    words = words_for(case, in_place)
    running = case.command.start(*words, cwd=case.folder)
    home = case.folder / RUN_FOLDER_OF[in_place]
    if case.rng.random() < 0.7:
        wait_until(running, home.exists)
    wait_until(running, lambda: False, case.rng.uniform(0, 0.7 * case.bench.gallery.seconds))
    if number == signal.SIGSTOP:
        running.signal(signal.SIGSTOP, group=True)
        time.sleep(case.rng.uniform(0.1, 2))
        running.signal(signal.SIGCONT, group=True)
    else:
        running.signal(number, group=case.rng.random() < 0.5)
    done = running.wait()
    # 130: stopped by Ctrl-C. A signal that nobody handles ends the process with its number.
    judge_command(case, done, (0, 1, 130, -number), number.name)
    if home.exists() or not is_complete(case, RUN_FOLDER_OF[in_place]):
        _judge_stopped(case, in_place)
        done = case.command.run(*words, cwd=case.folder)
        judge_command(case, done, (0, 1), f"after {number.name}")
    if done.code in (0, 1):  # one that was stopped at its very end has only its files to show
        judge_same_records(case, done, in_place)
        judge_files(case, in_place)


def _judge_stopped(case: Case, in_place: bool) -> None:
    if in_place:
        judge_in_place(case, case.folder / "pictures", finished=False)
    else:
        judge_out(case, case.folder / "out", finished=False)


FAMILY = Family("signals", "Ctrl-C, Ctrl-Z, hang-ups, shutdowns", check, cases=32)
