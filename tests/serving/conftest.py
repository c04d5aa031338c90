"""A running service, a browser, and pictures to send them."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from PIL import Image

from radialbeams.demo import PICTURES

# Low, so that small files can exceed them.
LIMITS = ("--max-file-size", "1", "--max-pixels", "4", "--max-files", "8", "--queue", "64")


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


@dataclass
class Running:
    """A service in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def post(self, path: str, *files: tuple[str, bytes]) -> Answer:
        """As a form."""
        body, kind = form(*files)
        return self.ask("POST", path, body, {"content-type": kind})


def form(*files: tuple[str, bytes]) -> tuple[bytes, str]:
    head = '--limit\r\nContent-Disposition: form-data; name="file"; filename="{}"\r\n\r\n'
    parts = [head.format(name).encode() + data + b"\r\n" for name, data in files]
    return b"".join(parts) + b"--limit--\r\n", "multipart/form-data; boundary=limit"


def start(folder: Path, *words: str) -> Running:
    """Returns when a worker is ready."""
    log = folder / "service.log"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "radialbeams", "serve", "--port", "0", "--workers", "1", *words]
    with log.open("wb") as file:
        process = subprocess.Popen(argv, stderr=file, env=environment, cwd=folder)
    while (text := log.read_text()).count("worker ready") < 1:
        if process.poll() is not None:
            raise RuntimeError(f"The service did not start: {text}")
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    (port,) = re.findall(r"Listening at http://127.0.0.1:(\d+)", text)
    return Running(process, int(port), log)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = start(tmp_path_factory.mktemp("service"), *LIMITS)
    yield running
    running.process.terminate()
    assert running.process.wait(20) == 0


@pytest.fixture(scope="session")
def rocket() -> bytes:
    return (PICTURES / "rocket.webp").read_bytes()


@pytest.fixture(scope="session")
def face() -> Callable[[float], bytes]:
    """A PNG of a face, turned on its own canvas."""
    picture = Image.open(PICTURES / "astronaut.webp").convert("RGB")

    def turned(angle: float) -> bytes:
        stream = io.BytesIO()
        picture.rotate(angle, Image.Resampling.BICUBIC).save(stream, "PNG")
        return stream.getvalue()

    return turned
