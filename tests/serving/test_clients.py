"""The client snippets of docs/serving.md, and what the files for deployment name."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import snippets
import typer.main
from conftest import ROOT
from PIL import Image

from radialbeams import cli, zoo
from radialbeams.demo import PICTURES
from radialbeams.serving import ServiceSettings

from .conftest import Running

PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")


@pytest.fixture
def page(service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The text with the address of the running service, in a folder with a photo."""
    monkeypatch.chdir(tmp_path)
    Image.open(PICTURES / "rocket.webp").convert("RGB").save("photo.jpg")
    return PAGE.replace("127.0.0.1:8000", f"127.0.0.1:{service.port}")


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_python_snippet_runs(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = snippets.run(page)
    assert names["found"]["model"] == zoo.DEFAULT
    assert Image.open("upright.jpg").format == "JPEG"


@pytest.mark.skipif(shutil.which("curl") is None, reason="There is no curl")
def test_the_lines_of_curl_run(page: str) -> None:
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("curl ")]
    for words in commands:
        done = subprocess.run([*words, "--fail", "--silent"], capture_output=True, check=True)
        if "-o" not in words:
            assert "error" not in json.loads(done.stdout)
    assert len(commands) == 6
    assert [Path(name).is_file() for name in ("upright.jpg", "upright.zip", "upright.png")]


@pytest.mark.skipif(shutil.which("node") is None, reason="There is no node")
def test_the_javascript_snippet_runs(page: str) -> None:
    (code,) = blocks(page, "js")
    Path("client.mjs").write_text(code, encoding="utf-8")
    done = subprocess.run(["node", "client.mjs"], capture_output=True, text=True, check=True)
    assert re.match(r"turned by [\d.]+°: (left|turned|unsure)\n", done.stdout)
    assert Image.open("upright.jpg").format == "JPEG"


def test_the_limits_on_the_page_are_the_settings() -> None:
    settings = ServiceSettings()
    for number in (settings.max_file_size >> 20, settings.max_pixels // 10**6, settings.max_files,
                   settings.max_memory >> 30, settings.queue, settings.max_body >> 20):  # fmt: skip
        assert re.search(rf"\b{number} (MiB|million|GiB|files)", PAGE), number


def test_the_commands_defaults_are_the_settings() -> None:
    command = typer.main.get_command(cli.app).commands["serve"]  # type: ignore[attr-defined]
    given = {option.name: option.default for option in command.params}
    settings = ServiceSettings()
    assert (given["host"], given["port"]) == (settings.host, settings.port)
    assert (given["queue"], given["max_files"]) == (settings.queue, settings.max_files)
    assert given["max_file_size"] * 2**20 == settings.max_file_size
    assert given["max_pixels"] * 10**6 == settings.max_pixels
    assert given["max_memory"] * 2**30 == settings.max_memory
    assert given["seconds"] == settings.seconds


def test_the_container_copies_what_is_there_and_starts_a_command_that_is() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    copied = [word for line in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE)
              for word in line.split()]  # fmt: skip
    assert copied and all((ROOT / name).exists() for name in copied)
    assert all(f"!{name}\n" in allowed for name in copied)
    assert "USER radialbeams" in text
    options = {name for option in
               typer.main.get_command(cli.app).commands["serve"].params  # type: ignore[attr-defined]
               for name in option.opts}  # fmt: skip
    unit = (ROOT / "deploy" / "radialbeams.service").read_text(encoding="utf-8")
    for line in (text.splitlines()[-1], *re.findall("^ExecStart=.*", unit, re.MULTILINE)):
        assert set(re.findall(r"--[a-z-]+", line)) <= options
