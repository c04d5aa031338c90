"""A whole job on Ray: each actor loads the model once and processes many units.

Plain actors take the units, because Ray Data would start four more processes on every run, which on
one machine take as long as thousands of images.

On a cluster, every machine needs this package with its `ray` extra, and access to the source and
the output under the same paths or URLs.
"""

from __future__ import annotations

import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from radialbeams import zoo
from radialbeams.batch import JobSettings, Outcome
from radialbeams.engines.plan import Task, tasks_for
from radialbeams.engines.record import Record, claimed, outcomes_of, settings_of
from radialbeams.engines.storage import Outputs, is_remote
from radialbeams.engines.unit import Units
from radialbeams.extras import install_command

STORE = 256 * 2**20  # bytes for Ray's object store on this machine; it holds only reports
REACHED_IN = 10.0  # seconds to connect to a cluster
SOON = 0.05  # seconds


class EngineError(ValueError):
    """Ray is missing or cannot be reached; the message says what to do."""


@dataclass(frozen=True)
class RayRun:
    """A run in progress. `outcomes` come unit by unit, those of an earlier start first."""

    outcomes: Generator[list[Outcome], None, None]
    units: int
    units_before: int  # done by an earlier start


@dataclass(frozen=True)
class Cluster:
    """Where a run takes place. Without an address, Ray is started on this machine."""

    address: str | None = None
    workers: int | None = None  # at most; default: one per core of the cluster


def upright(
    job: JobSettings,
    sources: Sequence[str],
    out: str,
    cluster: Cluster | None = None,
    *,
    column: str | None = None,
    fresh: bool = False,
) -> Iterator[Outcome]:
    """Turns all images below the sources upright; yields the outcomes as they arrive."""
    with run(job, sources, out, cluster or Cluster(), column=column, fresh=fresh) as begun:
        for outcomes in begun.outcomes:
            yield from outcomes


@contextmanager
def run(
    job: JobSettings,
    sources: Sequence[str],
    out: str,
    cluster: Cluster,
    *,
    column: str | None = None,
    fresh: bool = False,
) -> Iterator[RayRun]:
    """Makes or resumes the plan; the work starts when the outcomes are iterated."""
    _import_ray()
    zoo.verified_onnx(zoo.find(job.model))  # before any file is created
    sources = [source if is_remote(source) else os.path.abspath(source) for source in sources]
    out = out.rstrip("/") if is_remote(out) else os.path.abspath(out)
    workers = cluster.workers or _cores()
    plan = partial(
        tasks_for, sources, out, format=job.format, overwrite=job.overwrite, workers=workers
    )
    with ExitStack() as stack:
        new = fresh or not Record.exists(out)
        # Either way, the plan raises its errors before a record is created.
        tasks = _planned_while_ray_starts(plan, cluster, stack) if new else plan()
        stack.enter_context(claimed(out))
        record = Record.begun(out, settings_of(job, sources, out, column), fresh=fresh)
        begun = _begun(job, record, record.added(tasks), cluster, column)
        try:
            yield begun
        finally:
            begun.outcomes.close()


def _planned_while_ray_starts(
    plan: Callable[[], list[Task]], cluster: Cluster, stack: ExitStack
) -> list[Task]:
    """The plan; Ray, which the stack closes, mostly waits for its own processes meanwhile.

    A run that is resumed plans first, since it may have nothing left to do.
    """
    with ThreadPoolExecutor(1) as thread:
        tasks = thread.submit(plan)
        if not _failed_at_once(tasks):
            stack.enter_context(connected(cluster))
        return tasks.result()


def _failed_at_once(tasks: Future[list[Task]]) -> bool:
    """Whether the plan has failed, as it does on a wrong path: then Ray need not start."""
    return bool(wait([tasks], timeout=SOON).done) and tasks.exception() is not None


def _begun(
    job: JobSettings, record: Record, tasks: list[Task], cluster: Cluster, column: str | None
) -> RayRun:
    by_unit: dict[int, list[Task]] = {}
    for task in tasks:
        by_unit.setdefault(task.unit, []).append(task)
    finished = record.reported() & by_unit.keys()

    def outcomes() -> Generator[list[Outcome], None, None]:
        again = set()
        for unit in sorted(finished):
            earlier = record.read_report(unit)
            if by_unit[unit][0].kind == "images" and any(o.error is not None for o in earlier):
                again.add(unit)  # failed files are tried again
            else:
                yield earlier
        rest = [by_unit[unit] for unit in sorted(by_unit.keys() - finished | again)]
        if rest:
            yield from _carried_out(job, record, rest, cluster, column)

    return RayRun(outcomes(), len(by_unit), len(finished))


def _carried_out(
    job: JobSettings, record: Record, units: list[list[Task]], cluster: Cluster, column: str | None
) -> Generator[list[Outcome], None, None]:
    with connected(cluster):
        import ray

        most = min(cluster.workers or _cpus(), len(units))
        # If its process dies, Ray starts an actor again and repeats its unit.
        actor: Any = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(Actor)
        actors = [actor.remote(job, record, column) for _ in range(most)]
        try:
            yield from _shared_out(actors, units)
        finally:
            for actor_handle in actors:
                ray.kill(actor_handle)


def _shared_out(
    actors: Sequence[Any], units: Sequence[list[Task]]
) -> Generator[list[Outcome], None, None]:
    """Gives every actor the next unit when it has reported one; those that start late help too."""
    import ray

    waiting = deque(units)
    # On a cluster that adds machines, some actors start later, perhaps after all is done.
    calls = {actor.started.remote(): actor for actor in actors}
    missing = len(units)
    while missing:
        (call, *_), _ = ray.wait(list(calls), num_returns=1)
        actor, outcomes = calls.pop(call), ray.get(call)
        if waiting:
            calls[actor.process.remote(waiting.popleft())] = actor
        if outcomes is not None:
            missing -= 1
            yield outcomes


class Actor:
    """Processes units on one core of the cluster."""

    def __init__(self, job: JobSettings, record: Record, column: str | None) -> None:
        self._record = record
        self._units = Units(job, Outputs(record.token, job.overwrite), column)

    def started(self) -> None:
        """Returns when the actor can take units."""

    def process(self, tasks: list[Task]) -> list[Outcome]:
        """The outcomes of one unit, which its report then holds."""
        unit = tasks[0].unit
        reported = self._earlier(unit)
        if tasks[0].kind != "images":
            outcomes = reported or self._units.outcomes(tasks)
        else:
            good = {outcome.path: outcome for outcome in reported if outcome.error is None}
            rest = [task for task in tasks if task.path not in good]
            new = iter(self._units.outcomes(rest) if rest else [])
            outcomes = [good.get(task.path) or next(new) for task in tasks]
        return outcomes_of(self._record.write_report(unit, outcomes))

    def _earlier(self, unit: int) -> list[Outcome]:
        """What an earlier start, or an actor that died, reported for this unit."""
        try:
            return self._record.read_report(unit)
        except FileNotFoundError:
            return []


@contextmanager
def connected(cluster: Cluster) -> Iterator[None]:
    """Connects to the cluster, or starts one on this machine that ends with the block."""
    ray = _import_ray()
    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if cluster.address is None:
            ray.init(
                address="local",
                num_cpus=cluster.workers or _cores(),
                object_store_memory=STORE,
                include_dashboard=False,
                **quiet,
            )
        else:
            _check_answers(cluster.address)
            ray.init(address=cluster.address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise EngineError(
            f"No Ray cluster could be reached at {cluster.address or 'this machine'} ({error}). "
            "Start one with `ray start --head`, or leave out --address to use this machine."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Checks the address first, because Ray ends the whole process if it cannot connect."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=REACHED_IN).close()


def _import_ray() -> Any:
    # Ray sends usage statistics to its vendor unless this is set before it starts.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # warnings stay in Ray's own logs
    try:
        import fsspec  # noqa: F401
        import pyarrow  # noqa: F401
        import ray
    except ImportError as error:
        raise EngineError(
            f"The engine needs {error.name}, not in the light install. Install it in your clone "
            f"with: {install_command('ray')}"
        ) from error
    return ray


def _cpus() -> int:
    import ray

    resources = ray.cluster_resources()  # type: ignore[no-untyped-call, unused-ignore]
    return max(1, int(resources.get("CPU", 1)))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
