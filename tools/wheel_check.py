"""Installs the wheel as a user would: newest and lowest versions, on each named Python.

    python tools/wheel_check.py python3.11 python3.12 python3.13

Builds the wheel once. For each interpreter and each set of versions it creates a virtual
environment in a temporary folder, installs the wheel there, and runs `demo`, `angle` and `upright`
outside the clone. Prints one line for each; exits 1 if any of them fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOWEST = ["-c", str(ROOT / "constraints-minimum.txt")]
SETS: dict[str, list[str]] = {"newest": [], "lowest": LOWEST}
PICTURE = ROOT / "radialbeams" / "pictures" / "rocket.webp"
PACKAGES = ("numpy", "pillow", "onnxruntime", "typer")
PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check"]


class Failed(Exception):
    """A command that failed, with the end of its output."""


def run(command: list[str], folder: Path) -> str:
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if process.returncode:
        output = (process.stderr or process.stdout).strip()
        raise Failed(f"{' '.join(command[-4:])}: {output[-400:]}")
    return process.stdout


def build(folder: Path) -> Path:
    run([sys.executable, *PIP, "wheel", "--no-deps", "-w", str(folder), str(ROOT)], folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(interpreter: str, wheel: Path, constraints: list[str], folder: Path) -> Path:
    run([interpreter, "-m", "venv", "env"], folder)
    python = folder / "env" / "bin" / "python"
    run([str(python), *PIP, "install", *constraints, str(wheel)], folder)
    return python


def versions(python: Path, folder: Path) -> str:
    code = f"from importlib.metadata import version; print(*map(version, {PACKAGES}))"
    installed = run([str(python), "-c", code], folder).split()
    return ", ".join(f"{name} {number}" for name, number in zip(PACKAGES, installed, strict=True))


def check(python: Path, folder: Path) -> None:
    command = [str(python), "-P", "-m", "radialbeams"]
    run([*command, "demo", "-o", "sheet.png"], folder)
    angle = json.loads(run([*command, "angle", str(PICTURE), "--json"], folder))["angle_ccw"]
    if min(angle, 360 - angle) > 5:
        raise Failed(f"angle: an upright picture was found to be turned by {angle}°")
    sure = ["--min-confidence", "0", "--min-angle", "0"]
    run([*command, "upright", str(PICTURE), "-o", "out.webp", *sure], folder)
    for name in ("sheet.png", "out.webp"):
        if not (folder / name).is_file():
            raise Failed(f"{name} was not written")


def check_one(interpreter: str, wheel: Path, kind: str) -> bool:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        try:
            python = install(interpreter, wheel, SETS[kind], folder)
            number = run([str(python), "-V"], folder).split()[1]
            label = f"Python {number}, {kind}: {versions(python, folder)}"
            check(python, folder)
        except (Failed, OSError) as error:
            print(f"FAILED  {interpreter}, {kind}: {error}", flush=True)
            return False
    print(f"ok      {label} ({time.monotonic() - started:.0f} s)", flush=True)
    return True


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("interpreters", nargs="+", help="Python interpreters, 3.11 or newer")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        wheel = build(Path(temporary))
        passed = [
            check_one(interpreter, wheel, kind)
            for interpreter in arguments.interpreters
            for kind in SETS
        ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
