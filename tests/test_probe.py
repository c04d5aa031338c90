"""The reliability probe at a small scale, and proof that it notices what it looks for."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from probe import families
from probe.__main__ import main, run_family
from probe.bench import Bench, Family, Finding
from probe.command import Command

# The real command, and then what a broken one might do.
BROKEN = """
import os, sys, time
from pathlib import Path

how = sys.argv.pop(1).split(",")
if "omitted" in how:
    print_ = print
    import builtins
    builtins.print = lambda *a, **k: None if "0/0.png" in str(a) else print_(*a, **k)
from radialbeams.cli import main

code = main(sys.argv[1:])
pictures = Path("pictures/1/1.jpg")
if "other" in how:
    print("\\x1b[2J", file=sys.stderr)
if "lost" in how:
    pictures.unlink()
    Path("out/1/1.jpg").unlink(missing_ok=True)
if "torn" in how:
    os.truncate(Path("out/1/1.jpg") if Path("out/1/1.jpg").exists() else pictures, 100)
if "twice" in how and "--in-place" in sys.argv:
    main(sys.argv[1:])
if "outside" in how:
    Path("outside/victim.png").write_text("overwritten")
if "traceback" in how:
    raise RuntimeError("broken")
if "hang" in how:
    time.sleep(600)
sys.exit(code)
"""

# Families, and the numbers of cases that take a few seconds altogether.
SMALL: dict[str, Sequence[int]] = {
    "files": [0],
    "names": [0, 4],
    "giants": [7, 9],
    "metadata": [0, 3, 9, 12],
    "kills": range(3),
    "signals": range(2),
    "edits": range(3),
    "overlaps": range(2),
    "links": [0, 3, 12, 18],
    "journals": range(2),
    "limits": [0, 14],
    "models": [0, 9, 12],
    "training": [],  # torch makes it slow; the full probe has it
    "scale": [],
    "uploads": [],  # tests/serving has a small version
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("probe")
    folder.chmod(0o755)
    yield Bench(folder, Command(), seed=0)


@pytest.fixture
def broken(bench: Bench, tmp_path: Path) -> Iterator[Bench]:
    """The bench with a broken command, but with what the true one makes of the pictures."""
    (tmp_path / "broken.py").write_text(BROKEN)
    assert bench.gallery
    sound = bench.command
    bench.command = Command((sys.executable, str(tmp_path / "broken.py")))
    yield bench
    bench.command = sound


def family(name: str) -> Family:
    return next(one for one in families.ALL if one.name == name)


def shown(findings: Sequence[Finding]) -> list[str]:
    return [f"{one.number}: {one.kind}: {one.text}" for one in findings]


def test_every_family_has_a_small_version() -> None:
    assert set(SMALL) == {one.name for one in families.ALL}


# Families whose parts have tests of their own.
LONG = (
    *("names", "giants", "journals", "edits", "kills", "links", "limits", "signals", "overlaps"),
    "metadata",
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] if name in LONG else [])
        for name, numbers in SMALL.items()
        if numbers
    ],
)
def test_the_command_keeps_its_promises(bench: Bench, name: str) -> None:
    tally = run_family(bench, family(name), SMALL[name])
    assert not shown(tally.findings)


@pytest.mark.parametrize(
    ("kinds", "name", "number"),
    [
        ("lost", "kills", 0),
        pytest.param("lost", "edits", 0, marks=pytest.mark.long),
        pytest.param("twice", "kills", 1, marks=pytest.mark.long),
        ("outside", "links", 4),
        pytest.param("hang", "kills", 0, marks=pytest.mark.long),
        # In one run, to save time.
        pytest.param("torn,traceback,omitted,other", "kills", 0, marks=pytest.mark.long),
    ],
)
def test_what_a_broken_command_does_is_found(
    broken: Bench, kinds: str, name: str, number: int
) -> None:
    broken.command = Command((*broken.command.argv, kinds), limit=6 if kinds == "hang" else 60)
    tally = run_family(broken, family(name), [number])
    assert set(kinds.split(",")) <= {kind for kind, count in tally.kinds.items() if count}, shown(
        tally.findings
    )


@pytest.mark.long  # a traceback is found in another family
def test_a_damaged_file_that_is_passed_over_is_found(broken: Bench) -> None:
    broken.command = Command((*broken.command.argv, "traceback"))
    assert run_family(broken, family("files"), [1]).kinds["traceback"] == 3  # three verbs


def test_the_probe_fails_with_the_number_of_the_case_and_writes_the_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    command = f"{sys.executable} {tmp_path / 'broken.py'} other"
    words = ["--only", "metadata", "--first", "4", "--cases", "1", "--seed", "3"]
    assert main([*words, "--command", command, "--json", str(tmp_path / "out.json")]) == 1
    assert "--only metadata --first 4 --cases 1 --seed 3: other: " in capsys.readouterr().out
    counts = json.loads((tmp_path / "out.json").read_text())["families"]["metadata"]
    assert (counts["tried"], counts["other"], counts["lost"]) == (1, 1, 0)
    assert main(words) == 0
