"""The verbs that need torch, called in one process for many hostile inputs: torch loads slowly.

Prints one JSON object before each input, and one for everything that is wrong.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import io
import json
import os
import pickle
import random
import resource
import shutil
import struct
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .command import unprintable

PATIENCE = 90  # seconds for one input
MEMORY = 8 << 30  # bytes of addresses, torch's own included
Words = list[str]


def main(base: Path, folder: Path, first: int, last: int, seed: int) -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in range(first, last):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        rng = random.Random(f"{seed}/{number}")
        make = HOSTILE[number % len(HOSTILE)]
        work = folder / str(number)
        shutil.copytree(base, work)
        os.chdir(work)
        label = make.__name__.replace("_", " ")
        print(json.dumps({"at": number, "label": label}), flush=True)
        for kind, text in problems(make(rng)):
            print(
                json.dumps({"kind": kind, "number": number, "text": f"{label}: {text}"}), flush=True
            )
        if Path("/tmp/radialbeams-probe-owned").exists():
            print(json.dumps({"kind": "outside", "number": number, "text": f"{label}: code ran"}))
        shutil.rmtree(work, ignore_errors=True)
    faulthandler.cancel_dump_traceback_later()


def problems(words: Words) -> list[tuple[str, str]]:
    """What is wrong with how one command met its input."""
    from radialbeams.cli import main as command

    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command(words)
    except BaseException as error:
        return [("traceback", f"{type(error).__name__}: {str(error)[:200]}")]
    message = err.getvalue().strip()
    found = []
    if code not in (0, 1, 2):
        found.append(("other", f"exit code {code}"))
    if code and len(message.split()) < 4:
        found.append(("other", f"exit code {code} without a sentence: {message!r}"))
    if letters := unprintable((message + out.getvalue()).encode("utf-8", "replace")):
        found.append(("other", f"{sorted(letters)!r} reached the terminal"))
    return found


def _train(*more: str, data: str = "mine", out: str = "new") -> Words:
    options = ["--steps", "2", "--batch", "4", "--devices", "cpu", "--minutes", "0.2"]
    return ["train", data, "--out", out, *options, *more]


def _resume() -> Words:
    return _train("--size", "28", "--num-beams", "8", out="run")


def _evaluate(model: str = "run", data: str = "mine") -> Words:
    return ["evaluate", model, data, "--limit", "4", "--seeds", "1", "--devices", "cpu", "--json"]


# --- recipes -----------------------------------------------------------------------------------


def recipe_with_strange_values(rng: random.Random) -> Words:
    recipe = json.loads(Path("run/recipe.json").read_text())
    for part in (recipe, recipe["model"], recipe["augmentation"], recipe["loss"]):
        for name in part:
            if name != "data" and rng.random() < 0.08:
                part[name] = rng.choice(STRANGE)
    return _recipe(json.dumps(recipe).encode())


def recipe_with_one_huge_number(rng: random.Random) -> Words:
    recipe = json.loads(Path("run/recipe.json").read_text())
    names = [name for name, value in recipe["model"].items() if isinstance(value, int)]
    recipe["model"][rng.choice(names)] = rng.choice((0, -1, 10**6, 10**9, 2**63, 10**30))
    return _recipe(json.dumps(recipe).encode())


def recipe_that_is_no_recipe(rng: random.Random) -> Words:
    strange = (b"", b"[]", b"3", b"null", b'"a"', b'{"model": 3}', b'{"model": {}}', b"\xff\xfe",
               b"[" * 5000, b'{"data": {}, "model": []}', rng.randbytes(300))  # fmt: skip
    return _recipe(rng.choice(strange))


def _recipe(data: bytes) -> Words:
    Path("recipe.json").write_bytes(data)
    return _train("--recipe", "recipe.json")


# --- weights and checkpoints -------------------------------------------------------------------


def checkpoint_damaged(rng: random.Random) -> Words:
    _damage(Path("run/checkpoint.safetensors"), rng)
    return _resume()


def checkpoint_with_a_strange_head(rng: random.Random) -> Words:
    _strange_head(Path("run/checkpoint.safetensors"), rng)
    return _resume()


def checkpoint_that_is_a_pickle(rng: random.Random) -> Words:
    Path("run/checkpoint.safetensors").write_bytes(_evil_pickle())
    return _resume()


def weights_damaged(rng: random.Random) -> Words:
    _damage(Path("run/model.safetensors"), rng)
    return _evaluate()


def weights_with_a_fitting_hash(rng: random.Random) -> Words:
    path = Path("run/model.safetensors")
    rng.choice((_damage, _strange_head))(path, rng)
    card = json.loads(Path("run/model.json").read_text())
    card["sha256"]["safetensors"] = hashlib.sha256(path.read_bytes()).hexdigest()
    Path("run/model.json").write_text(json.dumps(card))
    return rng.choice((_evaluate(), ["export", "run", "new.onnx"]))


def weights_that_are_a_pickle(rng: random.Random) -> Words:
    path = Path("run/model.safetensors")
    path.write_bytes(_evil_pickle())
    card = json.loads(Path("run/model.json").read_text())
    card["sha256"]["safetensors"] = hashlib.sha256(path.read_bytes()).hexdigest()
    Path("run/model.json").write_text(json.dumps(card))
    return _evaluate()


def card_with_strange_values(rng: random.Random) -> Words:
    card = json.loads(Path("run/model.json").read_text())
    for part in (card, card["config"], card["network"], card["protocol"]):
        for name in part:
            if rng.random() < 0.15:
                part[name] = rng.choice(STRANGE)
    Path("run/model.json").write_text(json.dumps(card))
    return _evaluate()


def records_of_a_run_damaged(rng: random.Random) -> Words:
    _damage(Path("run") / rng.choice(("metrics.jsonl", "recipe.json")), rng)
    return _resume()


def _damage(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    how = rng.randrange(4)
    if how == 0:
        data = data[: rng.randrange(len(data))]
    elif how == 1:
        for _ in range(20):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how == 2:
        for _ in range(5):
            data[rng.randrange(min(len(data), 300))] = rng.randrange(256)
    else:
        data = bytearray(rng.randbytes(rng.randrange(400)))
    path.write_bytes(data)


def _strange_head(path: Path, rng: random.Random) -> None:
    """Other names, shapes, types and offsets than the tensors have."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    head: dict[str, Any] = json.loads(data[8 : 8 + length])
    for name in rng.sample(sorted(head), min(len(head), 2)):
        change = rng.randrange(5)
        if change == 0:
            head[f"model.{name}.x"] = head.pop(name)
        elif isinstance(head[name], dict) and "shape" in head[name]:
            head[name] |= rng.choice(
                ({"shape": [2**40]}, {"dtype": "F64"}, {"dtype": "X"}, {"data_offsets": [0, 2**50]},
                 {"data_offsets": [9, 3]}, {"shape": "a"})
            )  # fmt: skip
        else:
            head[name] = rng.choice((None, [], {"step": "many"}, {"step": "-1", "seconds": "nan"}))
    packed = json.dumps(head).encode()
    claimed = rng.choice((len(packed), len(packed), 2**60))
    path.write_bytes(struct.pack("<Q", claimed) + packed + data[8 + length :])


class _Evil:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch /tmp/radialbeams-probe-owned",)


def _evil_pickle() -> bytes:
    return pickle.dumps(_Evil())


# --- data sets ---------------------------------------------------------------------------------


def archive_with_names_that_climb(rng: random.Random) -> Words:
    with zipfile.ZipFile("evil.zip", "w") as archive:
        for number, path in enumerate(sorted(Path("mine").rglob("*.png"))):
            name = rng.choice(("../../climbed", "/tmp/radialbeams-probe-owned", "a\x1b[2J", "ok"))
            archive.write(path, f"{name}/{number}.png")
    return _train("--size", "28", data="evil.zip")


def archive_of_links(rng: random.Random) -> Words:
    with tarfile.open("evil.tar.gz", "w:gz") as archive:
        archive.add("mine")
        for number, target in enumerate(("/etc/passwd", "../..", "evil.png", "/dev/zero")):
            link = tarfile.TarInfo(f"mine/link{number}.png")
            link.type, link.linkname = rng.choice((tarfile.SYMTYPE, tarfile.LNKTYPE)), target
            archive.addfile(link)
        device = tarfile.TarInfo("mine/device.png")
        device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 5
        archive.addfile(device)
    return _train("--size", "28", data="evil.tar.gz")


def archive_with_a_huge_member(rng: random.Random) -> Words:
    with zipfile.ZipFile("evil.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in Path("mine").rglob("*.png"):
            archive.write(path)
        with archive.open("mine/giant.png", "w", force_zip64=True) as member:
            for _ in range(1500):
                member.write(bytes(1 << 20))
    return _train("--size", "28", data="evil.zip")


def archive_damaged(rng: random.Random) -> Words:
    with zipfile.ZipFile("evil.zip", "w") as archive:
        for path in Path("mine").rglob("*.png"):
            archive.write(path)
    _damage(Path("evil.zip"), rng)
    return _train("--size", "28", data="evil.zip")


def photos_damaged(rng: random.Random) -> Words:
    for path in Path("mine").rglob("*.png"):
        if rng.random() < 0.4:
            _damage(path, rng)
    return _train("--size", "28")


def batches_that_are_hostile_pickles(rng: random.Random) -> Words:
    import numpy as np

    structured = np.zeros(2, np.dtype([("a", "O"), ("b", "u1", (3072,))]))
    objects = np.array([None, "x"], dtype=object)
    content = rng.choice((
        _evil_pickle(),
        pickle.dumps({"data": structured, "labels": [1, 2]}, 2),
        pickle.dumps({"data": objects, "labels": [1, 2]}, 2),
        STRUCTURED,
        b"\x80\x02" + b"(" * 100_000,
        rng.randbytes(500),
    ))  # fmt: skip
    Path("cifar10").mkdir()
    for name in ("data_batch_1", "test_batch"):
        Path("cifar10", name).write_bytes(content)
    return ["evaluate", "ring.coil100", "cifar10", "--data", ".", "--devices", "cpu", "--json"]


def batches_with_strange_heads(rng: random.Random) -> Words:
    Path("fashion-mnist").mkdir()
    for part in ("train", "t10k"):
        head = struct.pack(
            ">IIII", 0x803, *(rng.choice((2, 28, 0, 2**31, 2**32 - 1)) for _ in "abc")
        )
        Path("fashion-mnist", f"{part}-images-idx3-ubyte").write_bytes(head + bytes(2 * 28 * 28))
    return [
        "evaluate",
        "ring.coil100",
        "fashion-mnist",
        "--data",
        ".",
        "--devices",
        "cpu",
        "--json",
    ]


# A dtype whose state claims fields of Python objects over raw bytes.
STRUCTURED = (
    b"\x80\x02}(U\x06labels](K\x01eU\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
    b"K\x00\x85U\x01b\x87R(K\x01K\x01M\x00\x0c\x86cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R(K\x03U\x01|NNN"
    b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x3ftb\x89T\x00\x60\x00\x00" + b"A" * 0x6000 + b"tbu."
)
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1e308, float("nan"), "", "\x1b[2J", [], {}, [[]], "ring", 10**7,
)  # fmt: skip
HOSTILE: tuple[Callable[[random.Random], Words], ...] = (
    recipe_with_strange_values,
    checkpoint_damaged,
    weights_damaged,
    recipe_with_one_huge_number,
    archive_with_names_that_climb,
    checkpoint_with_a_strange_head,
    weights_with_a_fitting_hash,
    recipe_that_is_no_recipe,
    archive_of_links,
    checkpoint_that_is_a_pickle,
    card_with_strange_values,
    weights_that_are_a_pickle,
    archive_with_a_huge_member,
    records_of_a_run_damaged,
    archive_damaged,
    photos_damaged,
    batches_that_are_hostile_pickles,
    batches_with_strange_heads,
)

if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
