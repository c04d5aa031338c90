"""What was measured is not measured again, until something else is given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from radialbeams.reproduce.cache import once


def test_what_was_measured_is_kept_with_its_time(tmp_path: Path) -> None:
    place, calls = tmp_path / "deep" / "part.json", []

    def measure() -> dict[str, int]:
        calls.append(1)
        return {"n": len(calls)}

    assert once(place, {"weights": "a"}, measure) == ({"n": 1}, 0.0)
    kept = json.loads(place.read_text(encoding="utf-8"))
    place.write_text(json.dumps({**kept, "seconds": 7.5}), encoding="utf-8")
    assert once(place, {"weights": "a"}, measure) == ({"n": 1}, 7.5)
    assert once(place, {"weights": "b"}, measure) == ({"n": 2}, 0.0)


def test_what_was_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> dict[str, int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        once(tmp_path / "part.json", {}, interrupted)
    assert not list(tmp_path.iterdir())
