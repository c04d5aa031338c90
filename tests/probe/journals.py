"""Damaged and forged memories of unfinished runs: refused in a sentence, or taken up without harm.

What is turned twice does not count here: whoever removes whole lines from the memory of a run
removes what the run knew.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from .bench import Bench, Case, Family
from .command import ALL, judge_command
from .gallery import contents
from .kills import RUN_FOLDER, wait_until
from .victims import Outside

OPTIONS = (*ALL, "--workers", "2")
WORDS = {
    "in place": ("upright", "pictures", "--in-place", *OPTIONS),
    "to a folder": ("upright", "pictures", "-o", "out", *OPTIONS),
}
HOMES = {"in place": "pictures", "to a folder": "out"}
TEMPLATES = 6  # real unfinished runs that are damaged
_making = Lock()


def check(case: Case) -> None:
    mode = case.rng.choice(list(WORDS))
    template = _template(case.bench, mode, case.number % TEMPLATES)
    work = case.folder / "work"
    shutil.copytree(template, work, symlinks=True)
    folder = work / HOMES[mode] / RUN_FOLDER
    outside = Outside(case)
    how = damage(folder, case.rng, outside)
    what = f"{mode}, {how}"
    done = case.command.run(*WORDS[mode], cwd=work)
    judge_command(case, done, (0, 1, 2), what)
    if done.code == 2 and case.rng.random() < 0.3:
        again = case.command.run(*WORDS[mode], "--fresh", cwd=work)
        judge_command(case, again, (0, 1, 2), f"{what}, --fresh")
    judge(case, work, what)
    outside.judge(what)


def judge(case: Case, work: Path, what: str) -> None:
    gallery = case.bench.gallery
    now = contents(work / "pictures")
    for name, original in gallery.original.items():
        if name not in now:
            case.found("lost", f"{what}: {name} is gone")
        elif now[name] not in (original, gallery.once[name], gallery.twice[name]):
            case.found("torn", f"{what}: {name} is neither original nor turned")
    if (work / "out").exists():
        outputs = contents(work / "out")
        for name in sorted(set(outputs) & set(gallery.out)):
            if outputs[name] != gallery.out[name]:
                case.found("torn", f"{what}: the output {name} has other bytes")


# --- real unfinished runs ----------------------------------------------------------------------


def _template(bench: Bench, mode: str, number: int) -> Path:
    """A folder in which a run was killed; made by the first case that needs it."""
    gallery, place = bench.gallery, bench.folder / f"killed-{mode.replace(' ', '-')}-{number}"
    rng = random.Random(f"{bench.seed}/{mode}/{number}")
    with _making:
        pause = 0.5 * gallery.seconds
        while not place.exists():
            draft = bench.folder / "killed-draft"
            shutil.rmtree(draft, ignore_errors=True)
            gallery.copy_to(draft / "pictures")
            _kill_one(bench, mode, draft, rng.uniform(0, pause))
            pause /= 2  # that one may have finished before
            if (draft / HOMES[mode] / RUN_FOLDER / "journal.jsonl").exists():
                draft.rename(place)
    return place


def _kill_one(bench: Bench, mode: str, folder: Path, pause: float) -> None:
    home = folder / HOMES[mode]
    running = bench.command.start(*WORDS[mode], cwd=folder)
    wait_until(running, lambda: any(True for _ in home.glob("*/.*")))
    wait_until(running, lambda: False, pause)
    running.signal(signal.SIGKILL, group=True)
    running.wait()


# --- damage ------------------------------------------------------------------------------------


def damage(folder: Path, rng: random.Random, outside: Outside) -> str:
    """Damages one or two files of a run's folder; returns what was done."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    done = []
    for name in rng.sample(names, min(len(names), rng.choice((1, 1, 2)))):
        how = rng.choice(list(DAMAGE))
        DAMAGE[how](folder / name, rng, outside)
        done.append(f"{name} {how.replace('_', ' ')}")
    return ", ".join(done)


def bits_flipped(path: Path, rng: random.Random, outside: Outside) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(rng.randrange(1, 10) if data else 0):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def cut_short(path: Path, rng: random.Random, outside: Outside) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size + 1))


def zeroed(path: Path, rng: random.Random, outside: Outside) -> None:
    data = path.read_bytes()
    start = rng.randrange(len(data) + 1)
    path.write_bytes(data[:start] + bytes(rng.randrange(1, 300)) + data[start + 100 :])


def lines_shuffled(path: Path, rng: random.Random, outside: Outside) -> None:
    lines = path.read_bytes().splitlines(True)
    rng.shuffle(lines)
    path.write_bytes(b"".join(lines))


def lines_dropped(path: Path, rng: random.Random, outside: Outside) -> None:
    lines = path.read_bytes().splitlines(True)
    path.write_bytes(b"".join(line for line in lines if rng.random() < 0.7))


def lines_doubled(path: Path, rng: random.Random, outside: Outside) -> None:
    lines = path.read_bytes().splitlines(True)
    path.write_bytes(b"".join(line * rng.choice((1, 1, 2)) for line in lines))


def a_line_inserted(path: Path, rng: random.Random, outside: Outside) -> None:
    lines = path.read_bytes().splitlines(True)
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(STRANGE_LINES) + b"\n")
    path.write_bytes(b"".join(lines))


def noise(path: Path, rng: random.Random, outside: Outside) -> None:
    path.write_bytes(rng.randbytes(rng.randrange(500)))


def values_changed(path: Path, rng: random.Random, outside: Outside) -> None:
    """Well-formed JSON in which some values have other types, sizes or meanings."""
    strange = [*STRANGE_VALUES, str(outside.victim), "../outside/victim.png", "/etc/hostname"]

    def changed(value: Any) -> Any:
        if rng.random() < 0.05:
            return rng.choice(strange)
        if isinstance(value, dict):
            return {name: changed(one) for name, one in value.items() if rng.random() > 0.02}
        if isinstance(value, list):
            return [changed(one) for one in value]
        return value

    lines = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            lines.append(json.dumps(changed(json.loads(line))))
        except ValueError:
            lines.append(line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def paths_moved(path: Path, rng: random.Random, outside: Outside) -> None:
    """Every path of an output or an input leads elsewhere."""
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    root = rng.choice(("out/", "pictures/"))
    aim = rng.choice((f"{outside.folder}/", "../outside/", f"{root}../../outside/", "", "/dev/"))
    lines = [
        line if '"settings"' in line else line.replace(f'"{root}', f'"{aim}')
        for line in text.splitlines(True)
    ]
    path.write_text("".join(lines), encoding="utf-8", errors="surrogateescape")


def become_a_folder(path: Path, rng: random.Random, outside: Outside) -> None:
    path.unlink()
    path.mkdir()


def become_a_pipe(path: Path, rng: random.Random, outside: Outside) -> None:
    path.unlink()
    os.mkfifo(path)


def become_a_link(path: Path, rng: random.Random, outside: Outside) -> None:
    aim = rng.choice((outside.victim, outside.folder / "missing", Path(path.name)))
    path.unlink()
    path.symlink_to(aim)


def gone(path: Path, rng: random.Random, outside: Outside) -> None:
    path.unlink()


STRANGE_LINES = (
    b"null", b"[]", b"{}", b"0", b'""', b"[null]", b'["a", "b", "c"]', b'{"again": 3}',
    b'{"again": [{}]}', b"[" * 3000, b"9" * 5000, b"NaN", b"[1e999]", b"\xff\xfe", b"",
    b'[{"path": null}]', b'["\\ud800", "\\u0000"]', b'{"settings": []}', b'[["in", "out"]]',
    b'{"' + b"a" * 100_000 + b'": 1}',
)  # fmt: skip
STRANGE_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1e308, float("nan"), "", "\0", "\ud800", "a" * 5000, [], {}, [[]],
    "..", ".", "/", "/dev/null", "\x1b[2J", "out", "pictures", "\u202egnp.exe",
)  # fmt: skip
Damage = Callable[[Path, random.Random, Outside], None]
DAMAGE: dict[str, Damage] = {
    one.__name__: one
    for one in (
        bits_flipped,
        cut_short,
        zeroed,
        lines_shuffled,
        lines_dropped,
        lines_doubled,
        a_line_inserted,
        noise,
        values_changed,
        paths_moved,
        become_a_folder,
        become_a_pipe,
        become_a_link,
        gone,
    )
}
FAMILY = Family("journals", "damaged and forged journals and plans", check, cases=500)
