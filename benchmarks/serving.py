"""The HTTP service under load: throughput, latency, memory, overload, slow clients, and its stop.

    python -m benchmarks.serving --seconds 60 --clients 64

Bars, on two free cores: 300 requests a second, no error, p99 at most 400 ms, flat memory. Prints
one JSON object for each part. The ratio compares the service with a plain handler that
decodes one image and runs the model once for each request, in the same process as HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import IO, cast

from PIL import Image

from radialbeams.demo import PICTURES
from radialbeams.stored import JsonDict

HOST = "127.0.0.1"
ROOT = Path(__file__).parents[1]
MODEL = "ring.coil100"
CORES = 2  # for which the bars are
PLAIN = "benchmarks.serving_plain"


@cache
def jpeg(side: int = 250) -> bytes:
    """A turned picture without corners, as a photo that was taken at an angle."""
    picture = Image.open(PICTURES / "astronaut.webp").convert("RGB").resize((400, 400))
    edge = (400 - side) // 2
    turned = picture.rotate(40, Image.Resampling.BICUBIC)
    stream = io.BytesIO()
    turned.crop((edge, edge, edge + side, edge + side)).save(stream, "JPEG", quality=90)
    return stream.getvalue()


# --- the server ---


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    port: int
    log: deque[bytes]  # the last lines

    def memory(self) -> float:
        """MiB that the service and its workers hold."""
        own = self.process.pid
        pids = [own, *children(own)]
        return sum(resident(pid) for pid in pids) / 2**20

    def computed(self) -> tuple[float, float]:
        """Seconds of computing of the service itself, and of its workers."""
        own = self.process.pid
        return computing(own), sum(computing(pid) for pid in children(own))


def computing(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def server(*words: str, command: tuple[str, ...] = ("radialbeams", "serve")) -> Iterator[Server]:
    argv = [sys.executable, "-m", *command, "--port", "0", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, env=environment, cwd=ROOT)
    try:
        yield _started(process)
    finally:
        process.terminate()
        process.wait(30)


def _started(process: subprocess.Popen[bytes]) -> Server:
    """Once it names its port; what follows on standard error is read by a thread."""
    stderr = cast(IO[bytes], process.stderr)
    for line in stderr:
        if match := re.search(rb"Listening at http://[^ ]*:(\d+)", line):
            running = Server(process, int(match[1]), deque(maxlen=9))
            threading.Thread(target=running.log.extend, args=(stderr,), daemon=True).start()
            return running
    raise RuntimeError("The service did not start.")


# --- clients ---


@dataclass
class Tally:
    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    wrong: int = 0  # answers of 200 without an angle
    took: float = 0.0

    def summary(self) -> JsonDict:
        times = sorted(self.seconds) or [0.0]
        at = {f"p{q}_ms": round(1000 * times[int(q / 100 * (len(times) - 1))], 1) for q in (50, 95)}
        at["p99_ms"] = round(1000 * times[int(0.99 * (len(times) - 1))], 1)
        done = self.statuses["200"]
        return {
            "requests_a_second": round(done / self.took, 1),
            **at,
            "statuses": dict(self.statuses),
            "wrong": self.wrong,
        }


def request(data: bytes, path: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes
) -> tuple[int, bytes, bool]:
    """Status, body, and whether the service closes the connection."""
    writer.write(message)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head.lower())[1])  # type: ignore[index]
    body = await reader.readexactly(length)
    return int(head[9:12]), body, b"connection: close" in head.lower()


async def client(port: int, message: bytes, until: float, tally: Tally) -> None:
    """One request after the other. A connection that is refused counts as such."""
    connection = None
    while time.perf_counter() < until:
        try:
            connection = connection or await asyncio.open_connection(HOST, port)
        except OSError:
            tally.statuses["refused"] += 1
            await asyncio.sleep(0.05)
            continue
        started = time.perf_counter()
        try:
            status, body, closes = await exchange(*connection, message)
        except (asyncio.IncompleteReadError, OSError) as error:
            lost = isinstance(error, asyncio.IncompleteReadError) and error.partial
            tally.statuses["cut off" if lost else "no answer"] += 1
            connection = None
            continue
        tally.seconds.append(time.perf_counter() - started)
        tally.statuses[str(status)] += 1
        tally.wrong += status == 200 and b"angle_ccw" not in body
        if closes:
            connection[1].close()
            connection = None
        if status == 503:
            await asyncio.sleep(0.02)


async def load(port: int, clients: int, seconds: float, path: str) -> Tally:
    tally, message = Tally(), request(jpeg(), path)
    started = time.perf_counter()
    await asyncio.gather(*(client(port, message, started + seconds, tally) for _ in range(clients)))
    tally.took = time.perf_counter() - started
    return tally


async def ready(port: int) -> int:
    """The number of requests until the service was ready."""
    for attempt in count(1):
        reader, writer = await asyncio.open_connection(HOST, port)
        status, _, _ = await exchange(reader, writer, b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
        writer.close()
        if status == 200:
            return attempt
        await asyncio.sleep(0.1)
    raise RuntimeError("never ready")


# --- the parts ---


async def measured(running: Server, clients: int, seconds: float) -> JsonDict:
    """Throughput and its cost. Memory is measured after a fifth of the time, and at the end.

    `requests_if_alone` is what two cores would do if nothing else ran on them, by the computing
    that each request took, the clients' own included.
    """
    await load(running.port, clients, min(2.0, seconds), "/v1/angle")
    before = (*running.computed(), time.process_time())
    work = asyncio.create_task(load(running.port, clients, seconds, "/v1/angle"))
    await asyncio.sleep(seconds / 5)
    early = running.memory()
    tally = await work
    after = (*running.computed(), time.process_time())
    spent = [b - a for a, b in zip(before, after, strict=True)]
    answered = max(tally.statuses["200"], 1)
    names = ("service_ms", "workers_ms", "clients_ms")
    return {
        **tally.summary(),
        "cores_used": round(sum(spent) / tally.took, 2),
        "computing_for_each": {
            name: round(1000 * value / answered, 2)
            for name, value in zip(names, spent, strict=True)
        },
        "requests_if_alone": round(CORES * answered / sum(spent)),
        "memory_mib_early": round(early),
        "memory_mib_late": round(running.memory()),
    }


async def throughput(clients: int, seconds: float) -> JsonDict:
    with server("--model", MODEL) as running:
        await ready(running.port)
        return await measured(running, clients, seconds)


async def plain(clients: int, seconds: float) -> JsonDict:
    with server(command=(PLAIN,)) as running:
        return await measured(running, clients, seconds)


async def overload(seconds: float) -> JsonDict:
    """Twice as many clients as the queue has places; then one request."""
    queue = 64
    with server("--model", MODEL, "--queue", str(queue)) as running:
        await ready(running.port)
        tally = await load(running.port, 2 * queue, seconds, "/v1/angle")
        started = time.perf_counter()
        reader, writer = await asyncio.open_connection(HOST, running.port)
        status, _, _ = await exchange(reader, writer, request(jpeg(), "/v1/angle"))
        writer.close()
        after = {"status": status, "ms": round(1000 * (time.perf_counter() - started))}
        return {**tally.summary(), "after": after}


async def slow_clients(clients: int, seconds: float) -> JsonDict:
    """Hundreds of connections that send a byte now and then, beside clients that do not."""
    with server("--model", MODEL) as running:
        await ready(running.port)
        slow = [asyncio.create_task(_send_slowly(running.port, seconds)) for _ in range(300)]
        await asyncio.sleep(0.5)
        tally = await load(running.port, clients, seconds, "/v1/angle")
        for task in slow:
            task.cancel()
        return tally.summary()


async def _send_slowly(port: int, seconds: float) -> None:
    _, writer = await asyncio.open_connection(HOST, port)
    message = request(jpeg(), "/v1/angle")
    for start in range(0, len(message), 7):
        writer.write(message[start : start + 7])
        await asyncio.sleep(0.2)


async def stop_under_load(clients: int) -> JsonDict:
    """SIGTERM under load: accepted requests are answered, then connections are refused.

    `no answer` are connections that the system had queued and the service never saw: all requests
    that it began are answered, and all of its answers arrived.
    """
    with server("--model", MODEL, "--no-log") as running:
        attempts = await ready(running.port)
        work = asyncio.create_task(load(running.port, clients, 4.0, "/v1/angle"))
        await asyncio.sleep(2.0)
        running.process.send_signal(signal.SIGTERM)
        tally = await work
        code = await asyncio.to_thread(running.process.wait, 30)
        await asyncio.sleep(0.2)
        stopped = json.loads(running.log[-1])
        answered = {key: stopped[key] for key in ("begun", "answered")}
        arrived = attempts + tally.statuses["200"] + tally.statuses["503"]
        return {**tally.summary(), "exit_code": code, **answered, "arrived": arrived}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--only", help="one part: throughput, plain, overload, slow or stop")
    arguments = parser.parse_args()
    short = min(arguments.seconds, 10.0)
    parts = {
        "throughput": lambda: throughput(arguments.clients, arguments.seconds),
        "plain": lambda: plain(arguments.clients, short),
        "overload": lambda: overload(short),
        "slow": lambda: slow_clients(8, short),
        "stop": lambda: stop_under_load(arguments.clients),
    }
    results: dict[str, JsonDict] = {}
    for name, run in parts.items():
        if arguments.only in (None, name):
            others = round(os.getloadavg()[0], 1)  # the load of other programs
            results[name] = {"part": name, "load_before": others, **asyncio.run(run())}
            print(json.dumps(results[name]), flush=True)
    if {"throughput", "plain"} <= set(results):
        ratios = {
            key: round(results["throughput"][key] / results["plain"][key], 2)
            for key in ("requests_a_second", "requests_if_alone")
        }
        print(json.dumps({"part": "service to plain", **ratios}))


if __name__ == "__main__":
    main()
