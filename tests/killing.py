"""A batch killed −9 at random moments, and compared with one that nobody disturbed.

    python tests/killing.py --files 2000 --kills 20 [--in-place] [--seed 0]

The same command is started again after each kill. At the end the outputs, the contact sheet and
the JSON lines must be the same to the byte, and nothing else may lie about. Exits 1 if not.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from radialbeams.demo import PICTURES

COMMAND = [sys.executable, "-c", "from radialbeams.cli import run; run()"]
OPTIONS = ("--model", "ring.coil100", "--report", "sheet.html", "--json", "--workers", "2")
ENDINGS = ("jpg", "png", "webp", "bmp")


@dataclass(frozen=True)
class Result:
    """All that a run leaves behind, and what it said."""

    files: dict[str, str]
    lines: str
    kills: int


def make_pictures(folder: Path, count: int, rng: random.Random) -> None:
    """Small ones, turned, in several formats and folders; some are no pictures at all."""
    originals = [
        Image.open(path).convert("RGB").resize((72, 72)) for path in PICTURES.glob("*.webp")
    ]
    for number in range(count):
        place = folder / f"{number % 7}"
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{number}.{ENDINGS[number % len(ENDINGS)]}"
        if number % 29 == 28:
            path.write_bytes(rng.randbytes(rng.randrange(50)))
        else:
            turned = rng.choice(originals).rotate(rng.uniform(0, 360), Image.Resampling.BICUBIC)
            turned.save(path)


def command(in_place: bool) -> list[str]:
    where = ["--in-place"] if in_place else ["-o", "out"]
    return [*COMMAND, "upright", "pictures", *where, *OPTIONS]


def undisturbed(folder: Path, in_place: bool) -> Result:
    done = subprocess.run(command(in_place), cwd=folder, capture_output=True, text=True)
    return Result(_left_behind(folder), done.stdout, 0)


def killed(folder: Path, in_place: bool, kills: int, files: int, rng: random.Random) -> Result:
    """Each kill comes a moment after the journal has reached a place drawn by lot.

    A run may come to its end in that moment; then it was the last.
    """
    home = folder / ("pictures" if in_place else "out")
    journal = home / ".radialbeams-run" / "journal.jsonl"
    moments = sorted(rng.randrange(max(files // 16 - 1, 1)) for _ in range(kills))
    for count, moment in enumerate(moments):
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                command(in_place), cwd=folder, stdout=said, stderr=subprocess.DEVNULL
            )
            while process.poll() is None and _lines(journal) <= moment:
                time.sleep(0.001)
            time.sleep(rng.choice((0, rng.uniform(0, 0.02), rng.uniform(0, 0.5))))
            process.kill()
            process.wait()
            if (folder / "sheet.html").exists() and not journal.exists():  # all was done before
                said.seek(0)
                return Result(_left_behind(folder), said.read(), count)
    last = undisturbed(folder, in_place)
    return Result(last.files, last.lines, len(moments))


def compare(files: int, kills: int, *, in_place: bool, seed: int) -> tuple[Result, Result]:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        calm, rough = Path(name, "calm"), Path(name, "rough")
        make_pictures(calm / "pictures", files, rng)
        shutil.copytree(calm, rough)
        return undisturbed(calm, in_place), killed(rough, in_place, kills, files, rng)


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def _left_behind(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(argv)
    calm, rough = compare(asked.files, asked.kills, in_place=asked.in_place, seed=asked.seed)
    names = calm.files.keys() | rough.files.keys()
    different = [name for name in sorted(names) if calm.files.get(name) != rough.files.get(name)]
    for name in different[:20]:
        print(f"differs: {name}", file=sys.stderr)
    same = not different and calm.lines == rough.lines
    print(
        f"{asked.files} files, killed {rough.kills} times: {len(names)} files left behind, "
        f"{len(different)} differ; JSON lines {'equal' if calm.lines == rough.lines else 'DIFFER'}"
    )
    return 0 if same and rough.kills == asked.kills else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
