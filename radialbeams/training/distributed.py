"""Several processes that train one model, each on its part of every batch.

    radialbeams train FOLDER --out RUN --devices 4
    NODE_RANK=0 MASTER_ADDR=host MASTER_PORT=29500 radialbeams train … --devices 4 --nodes 2
    torchrun --nnodes 2 --nproc-per-node 4 … -m -- radialbeams train FOLDER --out RUN

All processes run the same command on the same files. They draw the same random numbers and hold
the same weights; each takes its part of the rows, and gradients, norms and the clock are shared.
N processes with a batch of B are therefore one process with a batch of N · B. The first process
alone writes files, measures and reports.

Not torch's `DistributedDataParallel`: its norms are shared on GPUs only, it hides the network
behind a wrapper with other names for the weights, and a network of this size gains nothing from
sending gradients while others are still computed.
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
LAUNCHER = "RADIALBEAMS_LAUNCHER"  # the process that ends with its children
PATIENCE = timedelta(hours=2)  # while the first process measures, the others wait


@dataclass(frozen=True)
class World:
    """The processes of a run, as one of them sees them."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def part(self, rows: Tensor) -> Tensor:
        """This process' part of what belongs to a whole batch."""
        share = len(rows) // self.size
        return rows[self.rank * share : (self.rank + 1) * share]

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """The mean of all parts of the batch, in one message."""
        if self.size == 1:
            return
        gradients = [one.grad for one in parameters if one.grad is not None]
        together = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(together)
        together /= self.size
        parts = torch.split(together, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def mean(self, value: Tensor) -> Tensor:
        if self.size == 1:
            return value
        total = value.detach().clone()
        dist.all_reduce(total)
        return total / self.size

    def of_first(self, number: float) -> float:
        """The number that the first process gives."""
        if self.size == 1:
            return number
        held = torch.tensor([number], dtype=torch.float64)
        dist.broadcast(held, 0)
        return float(held.item())

    def agreed(self, is_true: Callable[[], bool]) -> Callable[[], bool]:
        """What the first process finds, so that all of them stop at the same step."""
        return is_true if self.size == 1 else lambda: bool(self.of_first(float(is_true())))

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """The others do the same after the first process, and find what it has left on disk."""
        if not self.is_first:
            self.wait()
        yield
        if self.is_first:
            self.wait()

    def wait(self) -> None:
        """Until all processes are here: a mean needs all of them."""
        self.mean(torch.zeros(1))


ALONE = World()


# --- joining -----------------------------------------------------------------------------------


def is_joined() -> bool:
    """Whether this process was started as one of several."""
    return int(os.environ.get(SIZE, "1")) > 1


def join() -> World:
    """The world that the environment describes; a process on its own is a world of one."""
    if not is_joined():
        return ALONE
    if not dist.is_initialized():
        if LAUNCHER in os.environ:
            parent = int(os.environ[LAUNCHER])
            threading.Thread(target=end_with, args=(parent,), daemon=True).start()
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=PATIENCE)
    return World(dist.get_rank(), dist.get_world_size())


def quieten() -> None:
    """What the first process prints, the others do not repeat; their errors are shown."""
    if is_joined() and os.environ.get(RANK, "0") != "0":
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the very end


def own_device(devices: str = "auto") -> torch.device:
    """This process' device: among several processes on GPUs, the GPU of its own number."""
    count, name = parse_devices(devices)
    device = pick_device(name)
    if device.type != "cuda" or not (is_joined() or count > 1):
        return device
    device = torch.device("cuda", int(os.environ.get(LOCAL, "0")))
    torch.cuda.set_device(device)
    return device


def parse_devices(devices: str) -> tuple[int, str]:
    """How many, and which kind: `4` are four GPUs, or four processes where there is no GPU."""
    if not devices.isdecimal():
        return 1, devices
    count, gpus = int(devices), torch.cuda.device_count()
    if count < 1 or (gpus and count > gpus):
        there = f"this machine has {gpus} GPUs" if gpus else "at least one is needed"
        raise ValueError(
            f"Expected auto, cpu, cuda or a number of devices; got {devices}, and {there}."
        )
    return count, "auto"


# --- launching ---------------------------------------------------------------------------------


def launch(command: Sequence[str], devices: int, nodes: int = 1) -> int:
    """Runs the command once for each device of this machine; returns the first bad exit status.

    Of several machines each runs the same command, with MASTER_ADDR, MASTER_PORT and NODE_RANK in
    its environment. Where one process fails the others are ended.
    """
    shared = _meeting_place(devices, nodes)
    node = int(shared[NODE])
    children: list[_Child] = []
    with ExitStack() as stack:
        stack.callback(_end, children)
        for local in range(devices):
            own = {LOCAL: str(local), RANK: str(node * devices + local)}
            # What the first process says, the others would only repeat.
            talk = None if node == local == 0 else stack.enter_context(tempfile.TemporaryFile())
            quiet = None if talk is None else subprocess.DEVNULL
            environment = {**os.environ, **shared, **own}
            process = subprocess.Popen(command, env=environment, stdout=quiet, stderr=talk)
            children.append(_Child(process, talk))
        return _wait(children)


@dataclass(frozen=True)
class _Child:
    process: subprocess.Popen[bytes]
    talk: IO[bytes] | None  # its standard error, where it is not shown

    def complain(self) -> None:
        """Shows why it failed."""
        if self.talk is not None:
            self.talk.seek(0)
            sys.stderr.write(self.talk.read().decode(errors="replace"))


def _end(children: Sequence[_Child]) -> None:
    for child in children:
        if child.process.poll() is None:
            child.process.terminate()
            child.process.wait()


def _meeting_place(devices: int, nodes: int) -> dict[str, str]:
    """What all processes of a run find in their environment."""
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
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait(children: Sequence[_Child]) -> int:
    """Until all have ended well or one has not. Ctrl-C reaches them too: they save and end."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
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
                    child.complain()
                    return status if status > 0 else 128 - status
        return 0
    finally:
        signal.signal(signal.SIGINT, before)
