"""Several processes are one process with a larger batch, and one run on disk."""

from __future__ import annotations

import json
import multiprocessing
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import TINY_RING, easy_images
from folders import plain_folder
from safetensors.torch import load_file
from torch import nn

from radialbeams.training import distributed
from radialbeams.training.augment import Augmentation
from radialbeams.training.distributed import ALONE, World, launch, parse_devices
from radialbeams.training.fit import Fit, Progress
from radialbeams.training.recipe import Recipe
from radialbeams.training.shared_norm import SharedNorm, share_norms

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif(not torch.distributed.is_available(), reason="torch has no distributed"),
]
CPU = torch.device("cpu")
EVERYTHING = Augmentation(mirror=True, zoom=0.1, jitter=0.2, noise=0.02)
RECIPE = Recipe(
    "easy",
    TINY_RING,
    parent_size=54,
    protocol="leakfree",
    batch=4,
    steps=12,
    learning_rate=1e-3,
    schedule="one-cycle",
    average=0.9,
    clip=1.0,
    augmentation=EVERYTHING,
)


def together(function: Callable[..., None], *arguments: object, size: int = 2) -> list[int]:
    """The exit statuses of processes that run a function as one world."""
    shared = distributed._rendezvous(size, 1)
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=_begin, args=(function, shared, rank, arguments))
        for rank in range(size)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def _begin(
    function: Callable[..., None], shared: dict[str, str], rank: int, arguments: tuple[Any, ...]
) -> None:
    os.environ |= {**shared, distributed.RANK: str(rank), distributed.LOCAL: str(rank)}
    del os.environ[distributed.LAUNCHER]
    function(*arguments)


def trained(recipe: Recipe, folder: Path, stop_at: int = 0) -> None:
    world = distributed.join()

    def on_progress(progress: Progress) -> None:
        if progress.step == stop_at:
            os.kill(os.getpid(), signal.SIGINT)

    fit = Fit(recipe, easy_images(22, size=54), folder, device=CPU, log_every=1, world=world)
    try:
        card = fit.run(on_progress)
    except KeyboardInterrupt:
        return
    assert (card is not None) == world.is_first


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def curve(folder: Path) -> list[tuple[int, int]]:
    return [(line["step"], line["epoch"]) for line in lines(folder)]


def test_two_processes_give_the_curve_of_one_with_the_doubled_batch(tmp_path: Path) -> None:
    assert together(trained, RECIPE, tmp_path / "two") == [0, 0]
    trained(replace(RECIPE, batch=8), tmp_path / "one")
    assert curve(tmp_path / "two") == curve(tmp_path / "one")
    two, one = (
        np.array([line["circle_loss"] for line in lines(tmp_path / name)])
        for name in ("two", "one")
    )
    np.testing.assert_allclose(two, one, rtol=2e-4)
    assert len(set(one.tolist())) == 12
    two_weights, one_weights = (
        load_file(tmp_path / name / "model.safetensors") for name in ("two", "one")
    )
    for name, value in one_weights.items():
        torch.testing.assert_close(two_weights[name], value, rtol=2e-3, atol=2e-4)


def test_without_shared_norms_the_curves_would_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("radialbeams.training.fit.share_norms", lambda model, world: None)
    assert together(trained, RECIPE, tmp_path / "two") == [0, 0]
    trained(replace(RECIPE, batch=8), tmp_path / "one")
    two, one = (
        np.array([line["circle_loss"] for line in lines(tmp_path / name)])
        for name in ("two", "one")
    )
    assert np.abs(two / one - 1).max() > 1e-2


def test_two_interrupted_processes_go_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    assert together(trained, RECIPE, tmp_path / "whole") == [0, 0]
    assert together(trained, RECIPE, tmp_path / "resumed", 5) == [0, 0]
    assert curve(tmp_path / "resumed")[-1][0] == 5
    assert not (tmp_path / "resumed" / "model.safetensors").exists()
    assert together(trained, RECIPE, tmp_path / "resumed") == [0, 0]
    whole, resumed = (tmp_path / name / "model.safetensors" for name in ("whole", "resumed"))
    assert whole.read_bytes() == resumed.read_bytes()
    assert curve(tmp_path / "resumed") == curve(tmp_path / "whole")


def limited_by_minutes(folder: Path) -> None:
    """Each process believes in other minutes; those of the first count."""
    world = distributed.join()
    minutes = 0.02 if world.is_first else 10.0
    recipe = replace(RECIPE, steps=10**6)
    Fit(recipe, easy_images(22, size=54), folder, device=CPU, minutes=minutes, world=world).run()


def test_all_processes_stop_at_the_same_step_when_the_minutes_are_over(tmp_path: Path) -> None:
    assert together(limited_by_minutes, tmp_path) == [0, 0]
    assert (tmp_path / "model.safetensors").exists()


def norms_agree(folder: Path) -> None:
    """Forward, backward and running statistics of a shared norm are those of the whole batch."""
    world = distributed.join()
    torch.manual_seed(0)
    batch = 3 + 100 * torch.rand(6, 5, 4, 3)
    whole, parts = nn.Sequential(nn.BatchNorm2d(5)), nn.Sequential(nn.BatchNorm2d(5))
    share_norms(parts, world)
    assert isinstance(parts[0], SharedNorm)
    one, other = batch.clone().requires_grad_(), world.part(batch).clone().requires_grad_()
    (whole(one) ** 3).mean().backward()
    (parts(other) ** 3).mean().backward()
    world.average_gradients(parts.parameters())
    for mine, theirs in (
        (other.grad / world.size, world.part(one.grad)),
        *((p.grad, q.grad) for p, q in zip(parts.parameters(), whole.parameters(), strict=True)),
        *zip(parts.buffers(), whole.buffers(), strict=True),
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(parts.eval()(batch), whole.eval()(batch))


def test_a_shared_norm_is_the_norm_of_the_whole_batch(tmp_path: Path) -> None:
    assert together(norms_agree, tmp_path, size=3) == [0, 0, 0]


def test_a_single_process_shares_nothing() -> None:
    norms = nn.Sequential(nn.BatchNorm2d(2))
    share_norms(norms, ALONE)
    assert type(norms[0]) is nn.BatchNorm2d
    assert ALONE.of_first(3.5) == 3.5
    assert ALONE.agreed(lambda: True)()
    assert ALONE.part(torch.arange(5)).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("count", [8, 9])
def test_the_parts_of_a_batch_are_equally_large_and_disjoint(count: int) -> None:
    parts = [World(rank, 4).part(torch.arange(count)).tolist() for rank in range(4)]
    assert parts == [[0, 1], [2, 3], [4, 5], [6, 7]]


# --- devices and launching ---


def test_devices_are_a_name_or_a_number() -> None:
    assert parse_devices("cuda:1") == (1, "cuda:1")
    assert parse_devices("2") == (2, "auto")
    with pytest.raises(ValueError, match="a number of devices; got 0"):
        parse_devices("0")


def test_more_devices_than_there_are_gpus_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert parse_devices("2") == (2, "auto")
    with pytest.raises(ValueError, match="got 3, and this machine has 2 GPUs"):
        parse_devices("3")


def test_several_nodes_need_to_know_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="missing: MASTER_ADDR, MASTER_PORT, NODE_RANK"):
        launch(["true"], 2, nodes=2)
    for name, value in (("MASTER_ADDR", "first"), ("MASTER_PORT", "29500"), ("NODE_RANK", "1")):
        monkeypatch.setenv(name, value)
    shared = distributed._rendezvous(4, 2)
    assert (shared["WORLD_SIZE"], shared["MASTER_ADDR"]) == ("8", "first")
    monkeypatch.setenv("NODE_RANK", "2")
    with pytest.raises(ValueError, match="NODE_RANK between 0 and 1; got '2'"):
        launch(["true"], 2, nodes=2)


SAY = 'echo "$RANK $WORLD_SIZE $LOCAL_RANK" > "$0.$RANK"; '


def test_the_command_runs_once_for_each_device(tmp_path: Path) -> None:
    assert launch(["sh", "-c", SAY, str(tmp_path / "said")], 3) == 0
    said = [(tmp_path / f"said.{rank}").read_text().strip() for rank in range(3)]
    assert said == ["0 3 0", "1 3 1", "2 3 2"]


def test_where_one_process_fails_the_others_are_ended(tmp_path: Path) -> None:
    started = time.monotonic()
    script = 'if [ "$RANK" = 1 ]; then exit 7; fi; exec sleep 60'
    assert launch(["sh", "-c", script], 3) == 7
    assert time.monotonic() - started < 20


WAITING = """
import sys, time
from pathlib import Path
from radialbeams.training import distributed
if not distributed.is_joined():
    sys.exit(distributed.launch([sys.executable, *sys.argv], 2))
world = distributed.join()
Path(sys.argv[1] + f".{world.rank}").write_text(str(__import__("os").getpid()))
time.sleep(600)
"""


@pytest.mark.long
def test_processes_end_with_the_one_that_launched_them(tmp_path: Path) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    launcher = subprocess.Popen([sys.executable, str(script), str(tmp_path / "pid")])
    places = [tmp_path / f"pid.{rank}" for rank in range(2)]
    while not all(place.exists() and place.read_text() for place in places):
        time.sleep(0.2)
        assert launcher.poll() is None
    launcher.send_signal(signal.SIGKILL)
    launcher.wait()
    pids = [int(place.read_text()) for place in places]
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def documented() -> list[str]:
    """The arguments of torchrun in the documentation."""
    text = (Path(__file__).parents[2] / "docs" / "train.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("torchrun ")]
    return shlex.split(line)[1:]


def test_torchrun_passes_the_documented_command_on() -> None:
    from torch.distributed.run import parse_args

    asked = parse_args(documented())
    assert asked.module and asked.training_script == "radialbeams"
    rest = ["train", "pictures/", "--out", "runs/mine", "--start", "scratch"]
    assert [one for one in asked.training_script_args if one != "--"] == rest


@pytest.mark.long
def test_torchrun_trains_one_run_in_two_processes(tmp_path: Path) -> None:
    plain_folder(tmp_path / "pictures", 24, (64, 64))
    options = ["2" if one == "4" else one for one in documented()]
    command = [sys.executable, "-m", "torch.distributed.run", "--master-port", "29641", *options]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root}
    done = subprocess.run(
        [*command, "--steps", "2", "--batch", "4"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "mine" / "report.html").exists()
    assert done.stdout.count("Report: ") == 1
