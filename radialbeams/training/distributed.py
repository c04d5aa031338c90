"""Data-parallel training: several processes train one model, each on a part of every batch.

    radialbeams train FOLDER --out RUN --devices 4
    NODE_RANK=0 MASTER_ADDR=host MASTER_PORT=29500 radialbeams train … --devices 4 --nodes 2
    torchrun --nnodes 2 --nproc-per-node 4 … -m -- radialbeams train FOLDER --out RUN

All processes run the same command on the same files. They draw the same random numbers and hold
the same weights. Each takes its part of the rows; gradients, batch statistics and the clock are
shared. N processes with batch size B therefore compute what one process computes with batch size
N · B. Only the first process writes files, evaluates and reports.

This is not torch's `DistributedDataParallel`, because that synchronises batch norms on GPUs only
and renames the weights by its wrapper, and because a network of this size gains nothing from
overlapping communication with the backward pass.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import IO

import torch
import torch.distributed as dist
from torch import Tensor, nn

from radialbeams.training.data.workers import end_with
from radialbeams.training.weights import pick_device

# As torchrun and most schedulers set them.
RANK, SIZE, LOCAL, NODE = "RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK"
ADDRESS, PORT = "MASTER_ADDR", "MASTER_PORT"
LAUNCHER = "RADIALBEAMS_LAUNCHER"  # process id of the parent, with which a child ends
TIMEOUT = timedelta(hours=2)  # the others wait while the first process evaluates


@dataclass(frozen=True)
class World:
    """The processes of a run, and which of them this one is."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def part(self, rows: Tensor) -> Tensor:
        """This process's part of the rows of a batch."""
        share = len(rows) // self.size
        return rows[self.rank * share : (self.rank + 1) * share]

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replaces gradients by their mean over the processes, in one all-reduce."""
        if self.size == 1:
            return
        gradients = [value.grad for value in parameters if value.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        flat /= self.size
        parts = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def mean(self, value: Tensor) -> Tensor:
        if self.size == 1:
            return value
        total = value.detach().clone()
        dist.all_reduce(total)
        return total / self.size

    def of_first(self, number: float) -> float:
        """The first process's number, in every process."""
        if self.size == 1:
            return number
        shared = torch.tensor([number], dtype=torch.float64)
        dist.broadcast(shared, 0)
        return float(shared.item())

    def agreed(self, is_true: Callable[[], bool]) -> Callable[[], bool]:
        """The first process's answer, so that all processes stop at the same step."""
        return is_true if self.size == 1 else lambda: bool(self.of_first(float(is_true())))

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """Runs the block in the first process, then in the others, which find its files on disk."""
        if not self.is_first:
            self.wait()
        yield
        if self.is_first:
            self.wait()

    def wait(self) -> None:
        """Waits for all processes: a mean needs all of them."""
        self.mean(torch.zeros(1))


ALONE = World()


# --- joining -----------------------------------------------------------------------------------


def is_joined() -> bool:
    """Whether this process was started as one of several."""
    return int(os.environ.get(SIZE, "1")) > 1


def join() -> World:
    """The processes that the environment describes; `ALONE` if there is only this one."""
    if not is_joined():
        return ALONE
    if not dist.is_initialized():
        if LAUNCHER in os.environ:
            parent = int(os.environ[LAUNCHER])
            threading.Thread(target=end_with, args=(parent,), daemon=True).start()
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=TIMEOUT)
    return World(dist.get_rank(), dist.get_world_size())


def quieten() -> None:
    """Silences standard output in all processes but the first; errors are still shown."""
    if is_joined() and os.environ.get(RANK, "0") != "0":
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the very end


def own_device(devices: str = "auto") -> torch.device:
    """This process's device: with several processes on GPUs, the GPU of its local rank."""
    count, name = parse_devices(devices)
    device = pick_device(name)
    if device.type != "cuda" or not (is_joined() or count > 1):
        return device
    device = torch.device("cuda", int(os.environ.get(LOCAL, "0")))
    torch.cuda.set_device(device)
    return device


def parse_devices(devices: str) -> tuple[int, str]:
    """Number and kind of devices: `4` means four GPUs, or four CPU processes without GPUs."""
    if not devices.isdecimal():
        return 1, devices
    count, gpus = int(devices), torch.cuda.device_count()
    if count < 1 or (gpus and count > gpus):
        reason = f"this machine has {gpus} GPUs" if gpus else "at least one is needed"
        raise ValueError(
            f"Expected auto, cpu, cuda or a number of devices; got {devices}, and {reason}."
        )
    return count, "auto"


# --- launching ---------------------------------------------------------------------------------


def launch(command: Sequence[str], devices: int, nodes: int = 1) -> int:
    """Runs the command once for each device of this machine; returns the first bad exit status.

    With several machines, each runs the same command with MASTER_ADDR, MASTER_PORT and NODE_RANK
    in its environment. If one process fails, the others are terminated.
    """
    shared = _rendezvous(devices, nodes)
    node = int(shared[NODE])
    children: list[_Child] = []
    with ExitStack() as stack:
        stack.callback(_end, children)
        for local in range(devices):
            own = {LOCAL: str(local), RANK: str(node * devices + local)}
            # The other processes would only repeat the first one's messages.
            errors = None if node == local == 0 else stack.enter_context(tempfile.TemporaryFile())
            output = None if errors is None else subprocess.DEVNULL
            environment = {**os.environ, **shared, **own}
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=errors)
            children.append(_Child(process, errors))
        return _wait(children)


@dataclass(frozen=True)
class _Child:
    process: subprocess.Popen[bytes]
    errors: IO[bytes] | None  # its standard error, unless that is shown already

    def show_errors(self) -> None:
        if self.errors is not None:
            self.errors.seek(0)
            sys.stderr.write(self.errors.read().decode(errors="replace"))


def _end(children: Sequence[_Child]) -> None:
    for child in children:
        if child.process.poll() is None:
            child.process.terminate()
            child.process.wait()


def _rendezvous(devices: int, nodes: int) -> dict[str, str]:
    """The environment variables that all processes of a run share."""
    if nodes > 1 and (missing := [n for n in (ADDRESS, PORT, NODE) if n not in os.environ]):
        raise ValueError(
            f"With --nodes {nodes}, every machine needs {ADDRESS} and {PORT} of the first machine "
            f"and its own {NODE} (0 to {nodes - 1}) in its environment; missing: "
            f"{', '.join(missing)}."
        )
    node = os.environ[NODE] if nodes > 1 else "0"
    if not (node.isdecimal() and int(node) < nodes):
        raise ValueError(f"Expected {NODE} between 0 and {nodes - 1}; got {node!r}.")
    threads = max(1, (os.cpu_count() or 1) // devices)
    return {
        ADDRESS: os.environ[ADDRESS] if nodes > 1 else "127.0.0.1",
        PORT: os.environ[PORT] if nodes > 1 else str(_free_port()),
        NODE: node,
        SIZE: str(devices * nodes),
        LAUNCHER: str(os.getpid()),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(children: Sequence[_Child]) -> int:
    """Waits until all have succeeded or one has failed. Ctrl-C reaches the children too: they save
    and exit."""
    previous_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        waiting = list(children)
        while waiting:
            for child in list(waiting):
                try:
                    status = child.process.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
                waiting.remove(child)
                if status:
                    child.show_errors()
                    return status if status > 0 else 128 - status
        return 0
    finally:
        signal.signal(signal.SIGINT, previous_handler)
