"""A stored measurement is used until its conditions change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from radialbeams.reproduce.cache import cached


def test_what_was_measured_is_kept_with_its_time(tmp_path: Path) -> None:
    path, calls = tmp_path / "deep" / "part.json", []

    def measure() -> dict[str, int]:
        calls.append(1)
        return {"n": len(calls)}

    assert cached(path, {"weights": "a"}, measure) == ({"n": 1}, 0.0)
    stored = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**stored, "seconds": 7.5}), encoding="utf-8")
    assert cached(path, {"weights": "a"}, measure) == ({"n": 1}, 7.5)
    assert cached(path, {"weights": "b"}, measure) == ({"n": 2}, 0.0)


def test_what_was_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> dict[str, int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached(tmp_path / "part.json", {}, interrupted)
    assert not list(tmp_path.iterdir())
