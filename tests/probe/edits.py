"""People save files while a run works on them, or between a kill and the next start.

What they saved stays. It may be turned, if it was saved before the run read it.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from io import BytesIO
from pathlib import Path

from .bench import Case, Family
from .command import ALL, Done, judge_command
from .gallery import ENDINGS, contents, picture
from .kills import RUN_FOLDER, wait_until

IN_PLACE = ("upright", "pictures", "--in-place", *ALL, "--json", "--workers", "2")
TO_FOLDER = ("upright", "pictures", "-o", "out", *ALL, "--json", "--workers", "2")


def check(case: Case) -> None:
    case.bench.gallery.copy_to(case.folder / "pictures")
    scenario = (while_stopped, after_a_kill, outputs_of_others)[case.number % 3]
    scenario(case)


# --- scenarios ---------------------------------------------------------------------------------


def while_stopped(case: Case) -> None:
    """The parent stands still while its workers finish: outputs lie ready and have not landed."""
    running = case.command.start(*IN_PLACE, cwd=case.folder)
    wait_until(running, lambda: _staged(case.folder / "pictures"))
    running.signal(signal.SIGSTOP)
    time.sleep(case.rng.uniform(0.2, 0.5))
    saved = save_some(case)
    running.signal(signal.SIGCONT)
    done = running.wait()
    judge_command(case, done, (0, 1), "edited while it ran")
    judge_saved(case, saved, done)


def after_a_kill(case: Case) -> None:
    running = case.command.start(*IN_PLACE, cwd=case.folder)
    wait_until(running, lambda: _staged(case.folder / "pictures"))
    wait_until(running, lambda: False, case.rng.uniform(0, 0.15))
    running.signal(signal.SIGKILL, group=True)
    running.wait()
    if not (case.folder / "pictures" / RUN_FOLDER / "journal.jsonl").exists():
        # It had finished, and perhaps not yet removed its folder; the next start is another run.
        case.tried = 0
        return
    saved = save_some(case)
    done = case.command.run(*IN_PLACE, cwd=case.folder)
    judge_command(case, done, (0, 1), "edited after a kill")
    judge_saved(case, saved, done)


def outputs_of_others(case: Case) -> None:
    """Files that someone saves where outputs will go are not replaced without --overwrite."""
    running = case.command.start(*TO_FOLDER, cwd=case.folder)
    wait_until(running, lambda: _staged(case.folder / "out"))
    running.signal(signal.SIGSTOP)
    time.sleep(case.rng.uniform(0.2, 0.5))
    there = contents(case.folder / "out")
    saved = {}
    for name in sorted(case.bench.gallery.out):
        if name not in there:
            saved[name] = _write(case, case.folder / "out" / name)
    running.signal(signal.SIGCONT)
    done = running.wait()
    judge_command(case, done, (0, 1), "outputs of someone else")
    now = contents(case.folder / "out")
    for name, content in saved.items():
        if now.get(name) != content:
            case.found("lost", f"someone else's {name} was replaced without --overwrite")


# --- saving ------------------------------------------------------------------------------------


def save_some(case: Case) -> dict[str, tuple[str, bool]]:
    """Saves other pictures over some of the files: content, and whether they were turned before."""
    gallery, now = case.bench.gallery, contents(case.folder / "pictures")
    names = [name for name in gallery.original if name not in gallery.unreadable and name in now]
    saved = {}
    for name in case.rng.sample(sorted(names), len(names) // 2):
        turned = now[name] != gallery.original[name]
        saved[name] = (_write(case, case.folder / "pictures" / name), turned)
    return saved


def _write(case: Case, path: Path) -> str:
    """As editors do it: over the old bytes, or under another name that then takes the place."""
    stream = BytesIO()
    format = {"jpg": "jpeg"}.get(path.suffix[1:], path.suffix[1:])
    picture(case.rng).save(stream, format if path.suffix[1:] in ENDINGS else "png")
    data = stream.getvalue()
    path.parent.mkdir(parents=True, exist_ok=True)
    if case.rng.random() < 0.5:
        path.write_bytes(data)
    else:
        draft = path.with_name(f"draft-{path.name}")
        draft.write_bytes(data)
        os.replace(draft, path)
    return hashlib.sha256(data).hexdigest()


def _staged(folder: Path) -> bool:
    """Whether any hidden file lies there outside of the run's own folder."""
    return any(
        path.name.startswith(".") and path.is_file()
        for place in (folder, *folder.glob("[!.]*"))
        for path in place.glob(".*")
    )


def judge_saved(case: Case, saved: dict[str, tuple[str, bool]], done: Done) -> None:
    """An edit stays, or was read and turned; a file that stays unturned is a failure with a word.

    A file that had been turned before it was edited is done, and is not touched again.
    """
    folder = case.folder / "pictures"
    now, errors = contents(folder), {r["path"]: r["error"] for r in done.records if "error" in r}
    turned = {r["path"] for r in done.records if r.get("action") == "turned"}
    gallery = case.bench.gallery
    for name, (content, before) in saved.items():
        path = f"pictures/{name}"
        if now.get(name) == content:
            if not before and path not in errors and path not in turned:
                case.found("omitted", f"{name} stayed as it was saved, without a word")
        elif now.get(name) in (None, gallery.once[name], gallery.twice[name]) or before:
            case.found("lost", f"the edit of {name} was overwritten")
    for name, original in gallery.original.items():
        if name in saved:
            continue
        if now.get(name) not in (gallery.once[name], original):
            kind = "twice" if now.get(name) == gallery.twice[name] else "torn"
            case.found(kind, f"{name}, which nobody edited, has other bytes")


FAMILY = Family("edits", "files saved while a run works on them", check, cases=45)
