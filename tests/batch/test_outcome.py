"""The record of a file: every line of `upright --json` says what was done."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from radialbeams.batch import JobSettings, Outcome, lines

UPRIGHT = JobSettings("general", turns=True)
ANGLE = JobSettings("general")


def test_a_failed_file_has_an_action() -> None:
    record = Outcome("a.jpg", error="It is empty.").record(UPRIGHT)
    assert record == {
        "path": "a.jpg",
        "action": "failed",
        "reason": "failed",
        "error": "It is empty.",
    }
    assert Outcome("a.jpg", error="It is empty.").record(ANGLE).keys() == {"path", "error"}


def test_a_skipped_file_says_why() -> None:
    skipped = Outcome("a.gif", action="skipped", reason="several frames")
    assert skipped.kind == "several frames" and "--first-frame" in str(skipped.problem)
    record = skipped.record(UPRIGHT)
    assert (record["action"], record["reason"], record["kind"]) == (
        *("skipped", "several frames", None),
    )
    # `angle` prints an estimate or an error.
    assert skipped.record(ANGLE)["error"] == skipped.problem
    # The reports of engines have no reasons.
    assert Outcome("a.gif", action="skipped").kind == "several frames"


def test_a_skipped_file_comes_back_from_the_journal() -> None:
    skipped = Outcome("a.gif", action="skipped", reason="several frames")
    assert lines.outcomes_from(lines.written([asdict(skipped)]), Path("journal")) == [skipped]


def test_a_file_that_nobody_looked_at_has_no_kind() -> None:
    assert Outcome("a.jpg", "b.jpg", action="exists").record(UPRIGHT)["kind"] is None
    assert Outcome("a.jpg", "b.jpg", 10.0, 0.9, 1, "turned").record(UPRIGHT)["kind"] == "picture"
    assert Outcome("a.jpg", angle_ccw=1.0, document=True).record(ANGLE)["kind"] == "document"
