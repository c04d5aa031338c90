"""Hostile uploads: damaged files and decompression bombs, sent to the HTTP service."""

from __future__ import annotations

import http.client
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .bench import Case, Family
from .command import MODEL, environment
from .damage import damaged
from .giants import GIANTS

EACH = 500  # files that one case sends
CLIENTS = 8
LIMIT = 90.0  # seconds for one answer: a bomb may use up its time twice
LARGEST = 32 * 2**20  # bytes; larger ones are refused by their length alone
TURN = f"/v1/upright?model={MODEL}&min_confidence=0&min_angle=0&first_frame=true"
PATHS = (
    f"/v1/angle?model={MODEL}&posterior=true",
    TURN,
    f"{TURN}&output=json&format=png",
    f"{TURN}&output=zip",
    f"{TURN}&angle=33&corners=crop",
)


@dataclass
class Service:
    process: subprocess.Popen[bytes]
    port: int

    def post(self, path: str, data: bytes, headers: dict[str, str]) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            connection.request("POST", path, data, headers)
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()


@contextmanager
def service(case: Case) -> Iterator[Service]:
    log = case.folder / "log"
    words = ("serve", "--port", "0", "--no-log", "--workers", "2", "--model", MODEL)
    with log.open("wb") as file:
        process = subprocess.Popen([*case.command.argv, *words], stderr=file, env=environment())
    try:
        while b"worker ready" not in (text := log.read_bytes()):
            if process.poll() is not None:
                raise RuntimeError(f"the service did not start: {text.decode()}")
            time.sleep(0.05)
        (port,) = re.findall(rb"Listening at http://[^ ]*:(\d+)", text)
        yield Service(process, int(port))
    finally:
        process.terminate()
        process.wait(LIMIT)


def check(case: Case) -> None:
    """Only 2xx and 4xx; the process lives, and answers a good file as before."""
    case.tried = EACH
    first = case.number * EACH
    with service(case) as running:
        pid = running.process.pid
        with ThreadPoolExecutor(CLIENTS) as clients:
            for _ in clients.map(lambda n: _damaged(case, running, n), range(first, first + EACH)):
                pass
            giants = _giants(case) if case.number == 0 else []
            for _ in clients.map(lambda name: _giant(case, running, name), giants):
                pass
        case.tried += len(giants)
        if running.process.poll() is not None or running.process.pid != pid:
            case.found("lost", f"the service ended with {running.process.returncode}")
            return
        _judge_after(case, running)


def _damaged(case: Case, running: Service, number: int) -> None:
    format, how, data = damaged(number, case.bench.seed)
    path, headers = PATHS[number % len(PATHS)], {}
    if number % 3 == 0:
        head = b'--x\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n'
        data = head + data + b"\r\n--x--\r\n"
        headers["content-type"] = "multipart/form-data; boundary=x"
    _judge(case, running, path, data, headers, f"file {number} ({format}, {how})")


def _giants(case: Case) -> list[Path]:
    found = []
    for number, make in enumerate(GIANTS):
        folder = case.folder / str(number)
        folder.mkdir()
        name = make(folder)
        if name is not None and (folder / name).stat().st_size <= LARGEST:
            found.append(folder / name)
    return found


def _giant(case: Case, running: Service, path: Path) -> None:
    label = GIANTS[int(path.parent.name)].__name__.replace("_", " ")
    for target in PATHS[:2]:
        _judge(case, running, target, path.read_bytes(), {}, label)


def _judge(
    case: Case, running: Service, path: str, data: bytes, headers: dict[str, str], label: str
) -> None:
    try:
        status = running.post(path, data, headers)
    except TimeoutError:
        case.found("hang", f"{label}: no answer from {path} within {LIMIT:.0f} s")
    except (OSError, http.client.HTTPException) as error:
        case.found("lost", f"{label}: {path} gave no answer ({error!r})")
    else:
        if status >= 500:
            case.found("other", f"{label}: {path} answered {status}")


def _judge_after(case: Case, running: Service) -> None:
    from radialbeams.demo import PICTURES

    status = running.post(PATHS[0], (PICTURES / "rocket.webp").read_bytes(), {})
    if status != 200:
        case.found("other", f"afterwards a good file is answered with {status}")
    if running.get("/readyz")[0] != 200:
        case.found("other", "afterwards the service is not ready")


FAMILY = Family(
    "uploads", "damaged files sent to the HTTP service", check, cases=5000, each=EACH, slow=True
)
