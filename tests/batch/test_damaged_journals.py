"""Damaged and forged journals: each is gone on with, or refused in one sentence."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radialbeams.batch import JobSettings, JournalError, Outcome, Plan, lines
from radialbeams.batch.bounds import Bounds
from radialbeams.batch.journal import Journal
from radialbeams.batch.landing import Rules, stage
from radialbeams.batch.plan import BATCH
from radialbeams.batch.sources import stamp

RUN = ".radialbeams-run"
FILES = BATCH + 3
SETTINGS = {"version": "1", "fill": None, "inputs": ["in"]}
VICTIM = b"precious"


@pytest.fixture(autouse=True, scope="module")
def no_waiting_for_the_disk() -> Iterator[None]:
    """No machine fails here, so nothing has to reach the disk; waiting for it took most of the
    time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def opened(folder: Path, *, in_place: bool, fresh: bool = False) -> Journal:
    source = str(folder / "in")
    plan = Plan((source,), in_place=True) if in_place else Plan((source,), folder=folder / "out")
    bounds = Bounds(plan)
    return Journal(
        plan.home,
        SETTINGS,
        fresh=fresh,
        rules=Rules(in_place=in_place, holds=bounds.hold),
        names=bounds.name,
    )


def make_unfinished(folder: Path, *, in_place: bool) -> None:
    """One batch done, of which four outputs still wait in their parts."""
    (folder / "in").mkdir()
    (folder / "victim").write_bytes(VICTIM)
    for number in range(FILES):
        (folder / "in" / f"{number}.png").write_bytes(b"input %d" % number)
    source = str(folder / "in")
    plan = Plan((source,), in_place=True) if in_place else Plan((source,), folder=folder / "out")
    with closing(opened(folder, in_place=in_place)) as kept:
        kept.fix_plan(plan.items())
        _, batch = next(kept.batches())
        outcomes = []
        for item in batch:
            data = b"output of " + os.fsencode(os.path.basename(item.path))
            outcome = Outcome(
                item.path,
                item.out,
                *(40.25, 0.98, 1, "turned"),
                sha256=hashlib.sha256(data).hexdigest(),
                source=stamp(item.path) if in_place else None,
            )
            stage(data, str(item.out), str(item.part))
            outcomes.append(outcome)
        kept.record([*outcomes[:-1], Outcome(batch[-1].path, error="Damaged.")])
        for item in batch[:4]:
            os.replace(str(item.out), str(item.part))
            if in_place:
                Path(item.path).write_bytes(b"input")


def resume(folder: Path, *, in_place: bool) -> None:
    """All that a run asks its journal when it goes on."""
    with closing(opened(folder, in_place=in_place)) as kept:
        assert kept.is_resumed
        kept.recover()
        kept.added([str(folder / "in" / "0.png")])
        kept.fix_plan([])
        for _, batch in [*kept.failed(), *kept.batches(1)]:
            for item in batch:
                assert item.out is None or item.out.startswith(str(folder) + os.sep)
        for outcomes in kept.done():
            for outcome in outcomes:
                json.dumps(outcome.record(JobSettings("ring", turns=True)))


@contextmanager
def unfinished(in_place: bool) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        make_unfinished(folder, in_place=in_place)
        yield folder


def check(name: str, in_place: bool, damage: Callable[[bytes], bytes]) -> None:
    with unfinished(in_place) as folder:
        path = folder / ("in" if in_place else "out") / RUN / name
        path.write_bytes(damage(path.read_bytes()))
        try:
            resume(folder, in_place=in_place)
        except JournalError as error:
            assert str(error).isprintable() and "--fresh" in str(error)
        assert (folder / "victim").read_bytes() == VICTIM
        left = {one.name for one in folder.iterdir()}
        assert left <= {"in", "out", "victim"}
        with closing(opened(folder, in_place=in_place, fresh=True)) as kept:
            kept.fix_plan([])


FILE_NAMES = st.sampled_from(["journal.jsonl", "plan.jsonl"])
WILD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -1, float("inf"), float("nan"), 2**64, 1e308])
    | st.sampled_from(["a\0b", "\ud800", "", "/etc/passwd", "../victim", "x" * 5000, "\x1b[2J"])
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
BYTES = [b"[" * 100_000, b'{"again":' * 50_000, b"9" * 5000, b"\xff\xfe", b"\0", b"NaN", b"\n"]


# `python -m tests.probe --only journals` tries many more, through the command.
@settings(max_examples=50, deadline=None)
@given(FILE_NAMES, st.booleans(), st.lists(st.integers(0, 10**6), min_size=1, max_size=4))
def test_flipped_bits_are_refused_or_harmless(name: str, in_place: bool, places: list[int]) -> None:
    def flip(content: bytes) -> bytes:
        changed = bytearray(content)
        for place in places:
            changed[place // 8 % len(changed)] ^= 1 << place % 8
        return bytes(changed)

    check(name, in_place, flip)


@settings(max_examples=30, deadline=None)
@given(FILE_NAMES, st.booleans(), st.floats(0, 1), st.sampled_from([b"", *BYTES]))
def test_cut_or_overwritten_ends_are_refused_or_harmless(
    name: str, in_place: bool, share: float, tail: bytes
) -> None:
    check(name, in_place, lambda content: content[: int(share * len(content))] + tail)


@settings(max_examples=80, deadline=None)
@given(FILE_NAMES, st.booleans(), st.data())
def test_forged_values_are_refused_or_harmless(
    name: str, in_place: bool, data: st.DataObject
) -> None:
    def forge(content: bytes) -> bytes:
        rows = [json.loads(line) for line in content.splitlines()]
        number = data.draw(st.integers(0, len(rows) - 1))
        rows[number] = forged(rows[number], data.draw)
        order = data.draw(st.sampled_from([rows, rows[::-1], rows * 2, rows[1:], rows[:-1]]))
        return b"".join(json.dumps(row).encode() + b"\n" for row in order)

    check(name, in_place, forge)


def forged(value: Any, draw: Callable[[Any], Any]) -> Any:
    """The same with one value in it, at any depth, replaced by a wild one."""
    if not value or not isinstance(value, dict | list) or draw(st.integers(0, 5)) == 0:
        return draw(WILD)
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = draw(st.sampled_from(keys))
    changed = value.copy()
    changed[key] = forged(value[key], draw)
    return changed


@pytest.mark.parametrize("in_place", [False, True])
def test_an_undamaged_journal_is_gone_on_with(in_place: bool) -> None:
    with unfinished(in_place) as folder:
        if in_place:
            shutil.rmtree(folder / "out", ignore_errors=True)
        resume(folder, in_place=in_place)
        home = folder / ("in" if in_place else "out")
        # In place the four that waited had changed since, and stay.
        expected = b"input" if in_place else b"output of 0.png"
        assert (home / "0.png").read_bytes() == expected
        assert (home / "9.png").read_bytes() == b"output of 9.png"


def test_every_field_of_an_outcome_has_its_check() -> None:
    assert lines.CHECKS.keys() == {field.name for field in fields(Outcome)}
