"""Timers, memory limits and workers, also on systems that have less than POSIX."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import face
from onnx import TensorProto, helper, numpy_helper

from radialbeams import zoo
from radialbeams.batch import JobSettings, PoolError, system
from radialbeams.batch.pool import WorkerPool
from radialbeams.cards import to_json

FACES = "ring.lfw"


def sleeper() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], text=True)


# --- the watchdog ---


@pytest.fixture
def watchdog() -> system.Watchdog:
    return system.Watchdog()


def test_a_process_that_takes_too_long_is_killed(watchdog: system.Watchdog) -> None:
    process = sleeper()
    watchdog.watch(process, 0.5)
    process.wait(10)
    assert watchdog.has_killed(process)
    watchdog.close()


def test_a_process_that_is_forgotten_lives_on(watchdog: system.Watchdog) -> None:
    process = sleeper()
    watchdog.watch(process, 0.5)
    watchdog.forget(process)
    time.sleep(1.5)
    assert process.poll() is None and not watchdog.has_killed(process)
    watchdog.close()
    process.kill()
    process.wait()


def test_a_process_that_is_suspended_loses_no_time(watchdog: system.Watchdog) -> None:
    process = sleeper()
    process.send_signal(signal.SIGSTOP)
    watchdog.watch(process, 0.5)
    time.sleep(2)
    assert process.poll() is None
    process.send_signal(signal.SIGCONT)
    process.wait(10)
    assert watchdog.has_killed(process)
    watchdog.close()


# A batch of one file that needs a second, in a run that allows two.
SLOW = """
import sys
from radialbeams import batch
from radialbeams.batch import pool
WORKER = '''
import time
from radialbeams.batch import worker
from radialbeams.canonicalizer import Canonicalizer
view = Canonicalizer.view
def slow(self, path, **options):
    time.sleep(1)
    return view(self, path, **options)
Canonicalizer.view = slow
worker.main()
'''
pool.COMMAND, pool.FILE = [sys.executable, "-c", WORKER], 2.0
plan = batch.Plan((sys.argv[1],), writes=False)
with batch.unjournaled(batch.JobSettings("ring.lfw"), plan, 1) as run:
    for outcome in run.outcomes:
        print(outcome.error)
"""


@pytest.mark.long
def test_the_time_of_a_suspended_run_does_not_count(tmp_path: Path) -> None:
    for number in range(5):
        face(tmp_path / f"{number}.png")
    command = [sys.executable, "-c", SLOW, str(tmp_path)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)
    time.sleep(3)  # it is at one of the files now
    for _ in range(2):
        os.killpg(run.pid, signal.SIGSTOP)
        time.sleep(2.5)  # more than the run allows for a file
        os.killpg(run.pid, signal.SIGCONT)
        time.sleep(0.7)
    out, _ = run.communicate(timeout=60)
    assert out.split() == ["None"] * 5


# --- the model ---


def endless_model(stem: Path) -> Path:
    """A model of the right inputs and outputs, with a loop that never ends."""
    card = to_json(zoo.find(FACES).card)
    size, channels, beams = (card["network"][n] for n in ("view_size", "channels", "num_bins"))
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["going_on"]),
            helper.make_node("Add", ["sum", "step"], ["next_sum"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("count", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("going_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next_sum", TensorProto.FLOAT, []),
        ],
    )
    graph = helper.make_graph(
        [
            helper.make_node("ReduceSum", ["views"], ["start"], keepdims=0),
            helper.make_node("Loop", ["", "true", "start"], ["end"], body=body),
            helper.make_node("Shape", ["views"], ["count"], end=1),
            helper.make_node("Concat", ["count", "beams"], ["shape"], axis=0),
            helper.make_node("Expand", ["end", "shape"], ["logits"]),
            helper.make_node("Identity", ["logits"], ["offsets"]),
        ],
        "endless",
        [helper.make_tensor_value_info("views", TensorProto.FLOAT, ["n", channels, size, size])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", beams])
            for name in ("logits", "offsets")
        ],
        [
            numpy_helper.from_array(np.array(True), "true"),
            numpy_helper.from_array(np.float32(1e-9), "step"),
            numpy_helper.from_array(np.array([beams]), "beams"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    content = model.SerializeToString()
    stem.with_suffix(".onnx").write_bytes(content)
    card["sha256"] = {"onnx": hashlib.sha256(content).hexdigest()}
    stem.with_suffix(".json").write_text(json.dumps(card))
    return stem.with_suffix(".onnx")


# How long the model may compute, or, where nothing measures that, how long it may take.
BY_COMPUTING = "worker.MODEL_SECONDS, worker.VIEW_SECONDS = 1.0, 0.0"
BY_THE_CLOCK = "del signal.setitimer"
ENDLESS = """
import sys
from radialbeams import batch
from radialbeams.batch import pool
worker = f"import signal; from radialbeams.batch import worker; {sys.argv[3]}; worker.main()"
pool.COMMAND = [sys.executable, "-c", worker]
pool.MODEL, pool.MODEL_VIEW = float(sys.argv[4]), 0.0
plan = batch.Plan((sys.argv[2],), writes=False)
try:
    with batch.unjournaled(batch.JobSettings(sys.argv[1]), plan, 1) as run:
        print(list(run.outcomes))
except batch.PoolError as error:
    print(error)
"""


@pytest.mark.parametrize(("how", "clock"), [(BY_COMPUTING, 600), (BY_THE_CLOCK, 2)])
def test_a_model_that_never_answers_ends_the_run_with_a_sentence(
    tmp_path: Path, how: str, clock: float
) -> None:
    model = endless_model(tmp_path / "endless")
    command = [sys.executable, "-c", ENDLESS, str(model), str(face(tmp_path / "a.png")), how]
    done = subprocess.run([*command, str(clock)], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("The model took far too long for 1 views."), done.stderr


PIPE = """
import sys
from radialbeams.cli import files, main
files.PIPE_SECONDS = 2.0
sys.exit(main(["angle", "-", "--model", sys.argv[1]]))
"""


def test_a_pipe_does_not_hang_on_a_model_that_never_answers(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PIPE, str(endless_model(tmp_path / "endless"))]
    data = face(tmp_path / "a.png").read_bytes()
    done = subprocess.run(command, input=data, capture_output=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == b"radialbeams: The image or the model took far too long.\n"


# --- systems with less ---

# As on Windows: no fcntl, no resource, no interval timers, no inherited handles.
WITHOUT_POSIX = """
import signal, subprocess, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("setitimer", "alarm", "ITIMER_PROF", "SIGPROF", "SIGALRM", "SIGXCPU"):
    delattr(signal, name)
import os
for name in ("waitid", "listxattr", "getxattr", "setxattr", "chown", "fchown", "geteuid", "getuid"):
    delattr(os, name)
start = subprocess.Popen.__init__

def without_handles(self, *arguments, pass_fds=(), **options):
    assert not pass_fds, "pass_fds not supported on Windows."
    start(self, *arguments, **options)

subprocess.Popen.__init__ = without_handles
"""
WORKER = "from radialbeams.batch import worker; worker.main()"
COMMAND = """
from radialbeams.batch import pool
pool.COMMAND = [sys.executable, "-c", {worker!r}]
from radialbeams.cli import main
print([main(line.split()) for line in sys.argv[1:]])
"""


def without_posix(*lines: str) -> subprocess.CompletedProcess[str]:
    code = WITHOUT_POSIX + COMMAND.format(worker=WITHOUT_POSIX + WORKER)
    command = [sys.executable, "-c", code, *lines]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_upright_and_angle_work_without_posix(tmp_path: Path) -> None:
    for number in range(3):
        face(tmp_path / "in" / f"{number}.jpg", 40 + number)
        face(tmp_path / "place" / f"{number}.png", 40 + number)
    (tmp_path / "in" / "bad.jpg").write_bytes(b"no picture")
    done = without_posix(
        f"angle {tmp_path}/in --json --model {FACES}",
        f"upright {tmp_path}/in -o {tmp_path}/out --model {FACES}",
        f"upright {tmp_path}/place --in-place --model {FACES}",
    )
    *lines, codes = done.stdout.splitlines()
    assert codes == "[1, 1, 0]", done.stderr
    assert "Traceback" not in done.stderr
    angles = [json.loads(line).get("angle_ccw") for line in lines]
    assert [angle is None for angle in angles] == [False, False, False, True]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0.jpg", "1.jpg", "2.jpg"]
    assert sorted(path.name for path in (tmp_path / "place").iterdir()) == [
        "0.png", "1.png", "2.png"
    ]  # fmt: skip


def test_a_limit_on_threads_is_reported_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(PoolError, match="allows no more threads or processes"):
        WorkerPool(JobSettings("ring.coil100"), 1)
