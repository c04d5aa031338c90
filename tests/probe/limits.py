"""Full disks, small limits and closed streams: a sentence, nothing torn, and a run that goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .bench import Case, Family
from .command import ALL, TRACEBACK, Done, judge_command
from .gallery import contents, judge_in_place, judge_out
from .users import NOBODY, as_nobody

OPTIONS = (*ALL, "--workers", "2")
IN_PLACE = ("upright", "pictures", "--in-place", *OPTIONS)
TO_FOLDER = ("upright", "pictures", "-o", "out", *OPTIONS)


def check(case: Case) -> None:
    SCENARIOS[case.number % len(SCENARIOS)](case)


def _unfinished(case: Case, done: Done, what: str) -> None:
    """Whatever the limit did, no file is torn or lost."""
    judge_command(case, done, (0, 1, 2), what)
    judge_in_place(case, case.folder / "pictures", finished=False)
    judge_out(case, case.folder / "out", finished=False)


def _finish(case: Case, in_place: bool, what: str) -> None:
    """Without the limit, the same command completes the run."""
    done = case.command.run(*(IN_PLACE if in_place else TO_FOLDER), cwd=case.folder)
    judge_command(case, done, (0, 1), f"{what}, repeated")
    if in_place:
        judge_in_place(case, case.folder / "pictures")
    else:
        judge_out(case, case.folder / "out")


# --- limits of the shell -----------------------------------------------------------------------


def _limited(case: Case, limit: str, what: str, *, in_place: bool = False) -> None:
    case.bench.gallery.copy_to(case.folder / "pictures")
    words = IN_PLACE if in_place else TO_FOLDER
    done = case.command.run(*words, cwd=case.folder, shell=f'{limit}; exec "$@"')
    _unfinished(case, done, what)
    if not in_place or (case.folder / "pictures" / ".radialbeams-run").exists():
        _finish(case, in_place, what)


def small_files_only(case: Case) -> None:
    _limited(case, f"ulimit -f {case.rng.choice((1, 4, 8))}", "a limit on the size of files")


def small_files_only_in_place(case: Case) -> None:
    _limited(case, "ulimit -f 4", "a limit on the size of files, in place", in_place=True)


def few_open_files(case: Case) -> None:
    _limited(case, f"ulimit -n {case.rng.choice((8, 12, 16, 24))}", "a limit on open files")


def little_memory(case: Case) -> None:
    _limited(case, f"ulimit -v {case.rng.choice((300, 600, 900)) * 1024}", "a limit on memory")


def little_stack(case: Case) -> None:
    _limited(case, "ulimit -s 256", "a limit on the stack")


def few_processes(case: Case) -> None:
    """Root has no such limit, so it runs as nobody."""
    user = as_nobody()
    if user is None:
        case.skip("no command can be run as nobody here")
        return
    case.bench.gallery.copy_to(case.folder / "pictures")
    os.chmod(case.folder, 0o777)
    done = case.command.run(
        *TO_FOLDER, cwd=case.folder, wrap=("prlimit", "--nproc=3", *user), limit=60
    )
    _unfinished(case, done, "a limit on processes")


# --- disks -------------------------------------------------------------------------------------


@contextmanager
def _mounted(case: Case, options: str) -> Iterator[Path | None]:
    """A small disk in memory; None where mounting is not allowed."""
    place = case.folder / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        case.skip("a small disk cannot be mounted here")
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def _on_disk(case: Case, options: str, larger: str, what: str, *, in_place: bool) -> None:
    """The pictures lie on the small disk if they are turned in place, else only the outputs."""
    with _mounted(case, options) as disk:
        if disk is None:
            return
        links = {"pictures" if in_place else "out": disk / "home"}
        (disk / "home").mkdir()
        if in_place:
            shutil.copytree(case.bench.gallery.folder, disk / "home", dirs_exist_ok=True)
        else:
            case.bench.gallery.copy_to(case.folder / "pictures")
        for name, target in links.items():
            (case.folder / name).symlink_to(target)
        words = IN_PLACE if in_place else TO_FOLDER
        done = case.command.run(*words, cwd=case.folder)
        _unfinished(case, done, what)
        subprocess.run(["mount", "-o", f"remount,{larger}", str(disk)], check=False)
        if not in_place or (disk / "home" / ".radialbeams-run").exists():
            _finish(case, in_place, what)


def full_disk(case: Case) -> None:
    size = case.rng.choice((16, 48, 96, 160))
    _on_disk(case, f"size={size}k", "size=50m", "a full disk", in_place=False)


def full_disk_in_place(case: Case) -> None:
    used = sum(path.stat().st_size for path in case.bench.gallery.folder.rglob("*.*"))
    size = used // 1024 + case.rng.choice((220, 260, 320))
    _on_disk(case, f"size={size}k", "size=50m", "a full disk, in place", in_place=True)


def few_inodes(case: Case) -> None:
    count = case.rng.choice((6, 12, 30))
    options = f"size=50m,nr_inodes={count}"
    _on_disk(case, options, "nr_inodes=5000", "a disk without inodes", in_place=False)


def read_only_disk(case: Case) -> None:
    with _mounted(case, "size=50m") as disk:
        if disk is None:
            return
        shutil.copytree(case.bench.gallery.folder, disk / "home")
        (case.folder / "pictures").symlink_to(disk / "home")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=False)
        _unfinished(case, case.command.run(*IN_PLACE, cwd=case.folder), "a read-only disk")


def full_disk_for_the_report(case: Case) -> None:
    """Neither a torn page nor its part is left."""
    with _mounted(case, "size=8k") as disk:
        if disk is None:
            return
        case.bench.gallery.copy_to(case.folder / "pictures")
        done = case.command.run(*TO_FOLDER, "--report", "disk/sheet.html", cwd=case.folder)
        _unfinished(case, done, "no room for the report")
        if left := list(contents(disk)):
            case.found("other", f"no room for the report: left behind: {left}")


def quota(case: Case) -> None:
    case.skip("this kernel has no disk quotas")


# --- rights ------------------------------------------------------------------------------------


def folder_of_another_user(case: Case) -> None:
    """One file in a sticky folder belongs to someone else: it fails alone."""
    user = as_nobody()
    if user is None:
        case.skip("no command can be run as nobody here")
        return
    case.bench.gallery.copy_to(case.folder / "pictures")
    for place, folders, files in os.walk(case.folder / "pictures"):
        for name in (*folders, *files):
            os.chown(os.path.join(place, name), NOBODY, NOBODY)
    os.chown(case.folder / "pictures", NOBODY, NOBODY)
    sticky = case.folder / "pictures" / "0"
    os.chown(sticky, 0, 0)
    sticky.chmod(0o1777)
    foreign = sorted(sticky.glob("*.png"))[0]
    os.chown(foreign, 0, 0)
    done = case.command.run(*IN_PLACE, "--json", cwd=case.folder, wrap=user)
    judge_command(case, done, (1,), "another user's file")
    now, gallery = contents(case.folder / "pictures"), case.bench.gallery
    for name, content in gallery.once.items():
        if now.get(name) != content and case.folder / "pictures" / name != foreign:
            case.found("omitted", f"another user's file stopped the run before {name}")
            break
    if (case.folder / "pictures" / ".radialbeams-run").exists():
        case.found("other", "another user's file: the run cannot be finished")


# --- streams -----------------------------------------------------------------------------------


def _streams(case: Case, shell: str, what: str) -> None:
    """A run without a reader still does its work."""
    case.bench.gallery.copy_to(case.folder / "pictures")
    done = case.command.run(*TO_FOLDER, "--json", cwd=case.folder, shell=shell)
    if done.hung or TRACEBACK in done.stderr:
        judge_command(case, done, (0, 1, 2), what)
    judge_out(case, case.folder / "out", finished=False)
    _finish(case, False, what)


def closed_stdin(case: Case) -> None:
    _streams(case, 'exec "$@" <&-', "closed standard input")


def closed_stdout(case: Case) -> None:
    _streams(case, 'exec "$@" >&-', "closed standard output")


def closed_stderr(case: Case) -> None:
    _streams(case, 'exec "$@" 2>&-', "closed standard error")


def all_closed(case: Case) -> None:
    _streams(case, 'exec "$@" <&- >&- 2>&-', "closed streams")


def full_stdout(case: Case) -> None:
    _streams(case, 'exec "$@" >/dev/full', "full standard output")


def full_stderr(case: Case) -> None:
    _streams(case, 'exec "$@" 2>/dev/full', "full standard error")


def broken_pipe(case: Case) -> None:
    _streams(case, '"$@" | head -n 1 >/dev/null', "a reader that leaves")


SCENARIOS: tuple[Callable[[Case], None], ...] = (
    small_files_only,
    small_files_only_in_place,
    few_open_files,
    little_memory,
    little_stack,
    few_processes,
    full_disk,
    full_disk_in_place,
    few_inodes,
    read_only_disk,
    full_disk_for_the_report,
    quota,
    folder_of_another_user,
    closed_stdin,
    closed_stdout,
    closed_stderr,
    all_closed,
    full_stdout,
    full_stderr,
    broken_pipe,
)
FAMILY = Family("limits", "full disks, small limits, closed streams", check, len(SCENARIOS))
