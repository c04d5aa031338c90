"""Hostile files: damaged images of every format, through the library and through the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from PIL import Image

from .bench import Case, Family
from .command import ALL, Done, environment, judge_command
from .damage import ENDINGS, damaged
from .gallery import contents

EACH = 50  # files that one case holds


def check(case: Case) -> None:
    """The library and all verbs meet the same files; inputs stay, outputs can be read."""
    case.tried = EACH
    first = case.number * EACH
    check_library(case, first, first + EACH)
    labels = write_damaged(case.folder / "in", first, first + EACH, case.bench.seed)
    check_angle(case, labels)
    check_folder(case, labels)
    check_in_place(case, labels)


def write_damaged(folder: Path, first: int, last: int, seed: int) -> dict[str, str]:
    """By their names, what was done to the files."""
    folder.mkdir(parents=True)
    labels = {}
    for number in range(first, last):
        format, how, data = damaged(number, seed)
        name = f"{number}.{ENDINGS[format]}"
        (folder / name).write_bytes(data)
        labels[name] = f"{name} ({format}, {how})"
    return labels


# --- the library -------------------------------------------------------------------------------


def check_library(case: Case, first: int, last: int) -> None:
    """A process that dies is started again after the file that it died of."""
    while first < last:
        lines = _child(first, last, case.bench.seed)
        for line in lines:
            if "problem" in line:
                kind = "hang" if line["problem"].startswith("took") else "traceback"
                case.found(kind, f"file {line['number']} in the library: {line['problem']}")
        reached = max((line["at"] for line in lines if "at" in line), default=first)
        if lines and lines[-1].get("ended"):
            return
        case.found("traceback", f"file {reached} ended the process that read it")
        first = reached + 1


def _child(first: int, last: int, seed: int) -> list[dict[str, Any]]:
    package = __package__ or "tests.probe"
    argv = [sys.executable, "-m", f"{package}.decoding", str(first), str(last), str(seed)]
    root = Path(__file__).parents[len(package.split("."))]
    done = subprocess.run(argv, cwd=root, env=environment(), capture_output=True, text=True)
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return [*lines, {"ended": True}] if done.returncode == 0 else lines


# --- the command -------------------------------------------------------------------------------


def check_angle(case: Case, labels: dict[str, str]) -> None:
    words = ("angle", "in", "--model", ALL[1], "--first-frame", "--json")
    done = case.command.run(*words, cwd=case.folder)
    judge_command(case, done, (0, 1), "angle")
    judge_records(case, done, labels, "angle")


def check_folder(case: Case, labels: dict[str, str]) -> None:
    before = contents(case.folder / "in")
    done = case.command.run("upright", "in", "-o", "out", *ALL, "--json", cwd=case.folder)
    judge_command(case, done, (0, 1), "upright -o")
    judge_records(case, done, labels, "upright -o")
    if contents(case.folder / "in") != before:
        case.found("lost", "upright -o changed its inputs")
    written = set(contents(case.folder / "out")) if (case.folder / "out").exists() else set()
    promised = {record["path"].removeprefix("in/") for record in done.records if _wrote(record)}
    for name in sorted(promised ^ written):
        case.found("omitted", f"{labels.get(name, name)}: the records and the outputs disagree")
    for name in sorted(written):
        judge_readable(case, case.folder / "out" / name, labels.get(name, name))


def check_in_place(case: Case, labels: dict[str, str]) -> None:
    """What was not turned keeps its bytes; what was can be read."""
    before = contents(case.folder / "in")
    done = case.command.run("upright", "in", "--in-place", *ALL, "--json", cwd=case.folder)
    judge_command(case, done, (0, 1), "upright --in-place")
    judge_records(case, done, labels, "upright --in-place")
    after = contents(case.folder / "in")
    failed = {r["path"].removeprefix("in/") for r in done.records if "error" in r}
    for name, content in before.items():
        if name not in after:
            case.found("lost", f"{labels[name]}: gone after a run in place")
        elif after[name] != content:
            if name in failed:
                case.found("torn", f"{labels[name]}: failed, but changed")
            judge_readable(case, case.folder / "in" / name, labels[name])
    if extra := set(after) - set(before):
        case.found("other", f"left behind: {sorted(extra)[:3]}")


def _wrote(record: dict[str, object]) -> bool:
    return "error" not in record and record.get("out") is not None


def judge_records(case: Case, done: Done, labels: dict[str, str], what: str) -> None:
    """One record for each file, and an exit code that agrees with them."""
    if done.hung:
        return
    paths = [record.get("path", "").removeprefix("in/") for record in done.records]
    for name in sorted(set(labels) - set(paths)):
        case.found("omitted", f"{what}: no record of {labels[name]}")
    if len(paths) > len(set(paths)):
        case.found("other", f"{what}: a file has two records")
    skipped = [record.get("action") == "skipped" for record in done.records]  # several frames
    errors = ["error" in record for record in done.records]
    failed = all(skipped) or any(e and not s for e, s in zip(errors, skipped, strict=True))
    if done.code != int(failed):
        case.found("omitted", f"{what}: exit code {done.code} with{'' if failed else 'out'} errors")


def judge_readable(case: Case, path: Path, label: str) -> None:
    try:
        with Image.open(path) as image:
            image.load()
    except Exception as error:  # Pillow raises nearly anything
        case.found("torn", f"{label}: the output cannot be read ({error})")


FAMILY = Family("files", "damaged images of every format", check, cases=2000, each=EACH)
