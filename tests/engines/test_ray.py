"""A job on a real Ray cluster of two workers, one of which is killed: nothing lost or twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="the ray extra is not installed; run `make test-ray`")

import pyarrow.parquet as pq

from radialbeams.batch import JournalError, Plan, PlanError, journaled
from radialbeams.engines import ray as engine
from radialbeams.engines.plan import Task, _in_units, tasks_for

from .conftest import JOB, contents

SLOW = replace(JOB, refine=4)  # long enough that a worker can be killed at work
COPIES = 8
TWO = engine.Cluster(workers=2)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with engine.connected(TWO):
        import ray

        yield ray.get_runtime_context().gcs_address


@pytest.fixture(scope="module")
def many(faces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many") / "in"
    for number in range(COPIES):
        shutil.copytree(faces, folder / str(number))
        if number:
            (folder / str(number) / "1" / "broken.jpg").unlink()
    return folder


@pytest.fixture(scope="module")
def expected(many: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("expected") / "out"
    with journaled(SLOW, Plan((str(many),), folder=out), 2) as run:
        list(run.outcomes)
    return contents(out)


def below(process: int) -> Iterator[int]:
    """The processes that descend from one."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == process:
            yield int(entry.parent.name)
            yield from below(int(entry.parent.name))


def titles() -> dict[int, str]:
    """What Ray calls the processes of its workers: `ray::` and what they run, or `IDLE`."""
    lines = {pid: Path(f"/proc/{pid}/cmdline") for pid in below(os.getpid())}
    read = {pid: line.read_text() for pid, line in lines.items() if line.exists()}
    return {pid: line for pid, line in read.items() if line.startswith("ray::")}


def actors() -> list[int]:
    return [pid for pid, title in titles().items() if title.startswith("ray::Actor")]


def report(out: Path) -> list[str]:
    return [
        path for part in out.glob("_report/*") for path in pq.read_table(part)["path"].to_pylist()
    ]


def test_a_killed_worker_costs_nothing(
    cluster: str, many: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out, killed = tmp_path / "out", []
    outcomes = []
    for outcome in engine.upright(SLOW, [str(many)], str(out), TWO):
        if not killed:
            assert len(actors()) == 2
            killed.append(actors()[0])
            os.kill(killed[0], signal.SIGKILL)
            left = len(list(many.rglob("*.jpg"))) - len(report(out))
            assert left > 100  # it died at work
        outcomes.append(outcome)
    assert contents(out) == expected
    inputs = sorted(map(str, many.rglob("*.jpg")))
    assert sorted(outcome.path for outcome in outcomes) == inputs
    assert sorted(report(out)) == inputs
    assert sum(outcome.error is not None for outcome in outcomes) == 1


def test_a_run_starts_no_other_actors_than_its_own(
    cluster: str, faces: Path, tmp_path: Path
) -> None:
    seen = {
        title.rstrip("\0").partition(".")[0]
        for _ in engine.upright(JOB, [str(faces)], str(tmp_path / "out"), TWO)
        for title in titles().values()
    }
    assert {title for title in seen if not title.endswith("Agent")} - {"ray::IDLE"} == {
        "ray::Actor"
    }


def command(many: Path, out: Path) -> list[str]:
    options = ("--model", SLOW.model, "--refine", "4", "--min-confidence", "0.3", "--workers", "2")
    return [sys.executable, "-m", "radialbeams", "upright", str(many), "-o", str(out), *options]


def test_a_killed_run_goes_on_without_repeating_what_is_done(
    cluster: str, many: Path, tmp_path: Path
) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    assert subprocess.run(command(many, plain), capture_output=True).returncode == 1
    on_ray = [*command(many, out), "--engine", "ray", "--address", cluster]
    driver = subprocess.Popen(on_ray, stderr=subprocess.PIPE)
    while len(list(out.glob("_report/part-*"))) < 4:
        assert driver.poll() is None, driver.stderr.read()
        time.sleep(0.05)
    driver.kill()
    driver.communicate()
    time.sleep(1)  # its workers end
    before = {part: part.stat().st_mtime_ns for part in out.glob("_report/part-*") if clean(part)}
    assert len(before) >= 2
    done = subprocess.run(on_ray, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr  # the broken files
    assert "were done before" in done.stderr
    assert {part: part.stat().st_mtime_ns for part in before} == before
    assert contents(out) == contents(plain)
    assert sorted(report(out)) == sorted(map(str, many.rglob("*.jpg")))


def clean(part: Path) -> bool:
    """Units with a failure are tried again."""
    return pq.read_table(part)["error"].null_count == pq.read_table(part).num_rows


def test_new_files_are_added_and_other_settings_refused(
    cluster: str, faces: Path, plain: Path, tmp_path: Path
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    shutil.copytree(faces / "0", source / "0")
    first = list(engine.upright(JOB, [str(source)], str(out), TWO))
    shutil.copytree(faces / "1", source / "1")
    second = list(engine.upright(JOB, [str(source)], str(out), TWO))
    assert (len(first), len(second)) == (20, 41)
    assert contents(out) == contents(plain)
    with pytest.raises(JournalError, match=r"other settings .*refine was 1, is 2"):
        list(engine.upright(replace(JOB, refine=2), [str(source)], str(out), TWO))


def test_a_cluster_that_is_not_there_is_refused(faces: Path, tmp_path: Path) -> None:
    code = "import sys; from radialbeams.cli import main; sys.exit(main(sys.argv[1:]))"
    where = ("--engine", "ray", "--address", "127.0.0.1:1")
    line = [sys.executable, "-c", code, "upright", str(faces), "-o", str(tmp_path / "o"), *where]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "No Ray cluster could be reached at 127.0.0.1:1" in done.stderr


def test_a_wrong_path_is_refused_before_ray_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "connected", lambda cluster: pytest.fail("Ray was started"))
    with pytest.raises(PlanError, match="nothing"):
        list(engine.upright(JOB, [str(tmp_path / "nothing")], str(tmp_path / "out"), TWO))
    assert not (tmp_path / "out").exists()


def test_ray_starts_while_the_plan_of_a_new_run_is_made(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan waits here until Ray is asked to start, and a resumed run plans first."""
    starting = threading.Event()

    @contextmanager
    def started(cluster: engine.Cluster) -> Iterator[None]:
        starting.set()
        yield

    def patient(*arguments: Any, **options: Any) -> list[Task]:
        assert starting.wait(20)
        return tasks_for(*arguments, **options)

    monkeypatch.setattr(engine, "connected", started)
    monkeypatch.setattr(engine, "tasks_for", patient)
    with engine.run(JOB, [str(faces)], str(tmp_path / "out"), TWO) as begun:
        units = begun.units
        assert units > 0
    starting.clear()
    monkeypatch.setattr(engine, "tasks_for", tasks_for)
    with engine.run(JOB, [str(faces)], str(tmp_path / "out"), TWO) as begun:
        assert (begun.units, begun.units_before) == (units, 0)
    assert not starting.is_set()


@pytest.mark.parametrize(("images", "sizes"), [(20_000, {1008, 848}), (100, {16, 4}), (1, {1})])
def test_all_workers_get_as_many_units_of_the_same_size(images: int, sizes: set[int]) -> None:
    tasks = [Task(0, "images", f"{number}.jpg", None) for number in range(images)]
    units = Counter(task.unit for task in _in_units(tasks, 2))
    assert set(units.values()) == sizes
    assert len(units) % 2 == 0 or images < 1000
