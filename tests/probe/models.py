"""Damaged and hostile models: a card and an ONNX file that lie, break off or never end."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from radialbeams import zoo

from .bench import Case, Family
from .command import judge_command
from .gallery import picture

MODEL = "ring.coil100"
LIMIT = 150.0  # seconds: a model that never ends is given up within two minutes
Card = dict[str, Any]
# The picture is whole: whatever goes wrong is the model's fault.
BLAMES_THE_PICTURE = re.compile(
    rb"fresh copy|truncated|is not an image|[Ss]ave it again|[Ll]eave it out"
)


def check(case: Case) -> None:
    """Every verb that runs a model refuses it, or uses it, but never breaks down."""
    (case.folder / "in").mkdir()
    picture(case.rng).save(case.folder / "in" / "good.png")
    (case.folder / "run").mkdir()
    how = HOSTILE[case.number % len(HOSTILE)]
    how(case.folder / "run", case.rng)
    what = how.__name__.replace("_", " ")
    verb = (
        ("angle", "in", "--json"),
        ("upright", "in", "-o", "out", "--min-confidence", "0"),
    )[case.number // len(HOSTILE) % 2]
    done = case.command.run(*verb, "--model", "run", "--workers", "1", cwd=case.folder, limit=LIMIT)
    judge_command(case, done, (0, 1, 2), what)
    if BLAMES_THE_PICTURE.search(done.stdout + done.stderr):
        case.found("other", f"{what}: the picture is blamed: {done.message[-200:]!r}")


# --- making them -------------------------------------------------------------------------------


def _card() -> Card:
    card: Card = json.loads((zoo.FOLDER / f"{MODEL}.json").read_text(encoding="utf-8"))
    return card


def _onnx() -> bytes:
    return (zoo.FOLDER / f"{MODEL}.onnx").read_bytes()


def _write(folder: Path, card: Any, onnx: bytes | None = None) -> None:
    """With the hash that the card has to name, so that the file itself is put to the test."""
    if onnx is not None:
        card = {**card, "sha256": {"onnx": hashlib.sha256(onnx).hexdigest()}}
    (folder / "model.json").write_text(json.dumps(card), encoding="utf-8")
    (folder / "model.onnx").write_bytes(_onnx() if onnx is None else onnx)


def _graph(body: Callable[[Any], list[Any]]) -> bytes:
    """A small ONNX model with this library's names of inputs and outputs."""
    from onnx import TensorProto, helper

    views = helper.make_tensor_value_info("views", TensorProto.FLOAT, [None, 3, 57, 57])
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in ("logits", "offsets")
    ]
    graph = helper.make_graph(body(helper), "hostile", [views], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data


# --- cards -------------------------------------------------------------------------------------


def card_with_strange_values(folder: Path, rng: random.Random) -> None:
    card = _card()
    for part in ("config", "network", "protocol"):
        for name in card[part]:
            if rng.random() < 0.3:
                card[part][name] = rng.choice(STRANGE)
    _write(folder, card)


def card_with_a_strange_size(folder: Path, rng: random.Random) -> None:
    card = _card()
    size = rng.choice((0, -1, 1, 10**5, 10**9, 1.5, "57", None))
    part, name = rng.choice((("network", "view_size"), ("protocol", "parent_size"),
                             ("network", "num_bins"), ("network", "channels")))  # fmt: skip
    card[part][name] = size
    _write(folder, card)


def card_with_strange_thresholds(folder: Path, rng: random.Random) -> None:
    parts = ({"confidence": "x"}, {"odd": 1}, {"angle": None})
    values: tuple[Any, ...] = (None, "high", -1, 10**400, [], *parts)
    _write(folder, {**_card(), "abstain": rng.choice(values)})


def card_with_strange_calibration(folder: Path, rng: random.Random) -> None:
    card = _card()
    for name in rng.sample(sorted(card), 4):
        if name not in ("config", "network", "protocol"):
            card[name] = rng.choice(STRANGE)
    _write(folder, card)


def card_without_parts(folder: Path, rng: random.Random) -> None:
    card = {name: value for name, value in _card().items() if rng.random() < 0.6}
    _write(folder, card)


def card_that_is_no_object(folder: Path, rng: random.Random) -> None:
    _write(folder, rng.choice(STRANGE))


def card_nested_too_deeply(folder: Path, rng: random.Random) -> None:
    _write(folder, {})
    (folder / "model.json").write_bytes(b'{"config":' * 50_000)


def card_that_is_noise(folder: Path, rng: random.Random) -> None:
    _write(folder, {})
    (folder / "model.json").write_bytes(rng.randbytes(rng.randrange(2000)))


def card_with_a_huge_number(folder: Path, rng: random.Random) -> None:
    _write(folder, {})
    (folder / "model.json").write_bytes(b'{"config": ' + b"9" * 10_000 + b"}")


def card_with_escapes(folder: Path, rng: random.Random) -> None:
    """What it says is printed, but not what a terminal would obey."""
    hostile = "\x1b]0;owned\x07\x1b[2J\u202e\r"
    words = {name: hostile for name in ("summary", "name", "licence", "works_on", "fails_on")}
    _write(folder, {**_card(), **words})


def card_with_another_hash(folder: Path, rng: random.Random) -> None:
    digest: Any = rng.choice(("0" * 64, "", None, 3, [], "\x1b[2J"))
    _write(folder, {**_card(), "sha256": rng.choice(({"onnx": digest}, digest))})


def card_is_a_pipe(folder: Path, rng: random.Random) -> None:
    _write(folder, _card())
    (folder / "model.json").unlink()
    os.mkfifo(folder / "model.json")


# --- networks ----------------------------------------------------------------------------------


def network_with_flipped_bits(folder: Path, rng: random.Random) -> None:
    data = bytearray(_onnx())
    for _ in range(rng.randrange(1, 30)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    _write(folder, _card(), bytes(data))


def network_with_a_damaged_head(folder: Path, rng: random.Random) -> None:
    data = bytearray(_onnx())
    for _ in range(rng.randrange(1, 10)):
        data[rng.randrange(400)] = rng.randrange(256)
    _write(folder, _card(), bytes(data))


def network_cut_short(folder: Path, rng: random.Random) -> None:
    _write(folder, _card(), _onnx()[: rng.randrange(len(_onnx()))])


def network_that_is_noise(folder: Path, rng: random.Random) -> None:
    _write(folder, _card(), rng.randbytes(rng.randrange(5000)))


def network_is_a_folder(folder: Path, rng: random.Random) -> None:
    _write(folder, _card())
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").mkdir()


def network_is_a_pipe(folder: Path, rng: random.Random) -> None:
    _write(folder, _card())
    (folder / "model.onnx").unlink()
    os.mkfifo(folder / "model.onnx")


def network_that_is_endless(folder: Path, rng: random.Random) -> None:
    def body(helper: Any) -> list[Any]:
        from onnx import TensorProto

        flag = helper.make_tensor_value_info("flag_in", TensorProto.BOOL, [])
        count = helper.make_tensor_value_info("count", TensorProto.INT64, [])
        state = helper.make_tensor_value_info("state", TensorProto.FLOAT, None)
        ends = [
            helper.make_tensor_value_info("flag_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state_out", TensorProto.FLOAT, None),
        ]
        steps = [
            helper.make_node("Identity", ["flag_in"], ["flag_out"]),
            helper.make_node("Identity", ["state"], ["state_out"]),
        ]
        loop = helper.make_graph(steps, "loop", [count, flag, state], ends)
        return [
            helper.make_node("Constant", [], ["most"],
                             value=helper.make_tensor("n", TensorProto.INT64, [], [2**62])),
            helper.make_node("Constant", [], ["go"],
                             value=helper.make_tensor("b", TensorProto.BOOL, [], [True])),
            helper.make_node("Loop", ["most", "go", "views"], ["logits"], body=loop),
            helper.make_node("Identity", ["views"], ["offsets"]),
        ]  # fmt: skip

    _write(folder, _card(), _graph(body))


def network_that_asks_for_all_memory(folder: Path, rng: random.Random) -> None:
    def body(helper: Any) -> list[Any]:
        from onnx import TensorProto

        shape = helper.make_tensor("s", TensorProto.INT64, [2], [2**20, 2**22])
        return [
            helper.make_node("Constant", [], ["shape"], value=shape),
            helper.make_node("ConstantOfShape", ["shape"], ["logits"]),
            helper.make_node("Identity", ["views"], ["offsets"]),
        ]

    _write(folder, _card(), _graph(body))


def network_with_other_shapes(folder: Path, rng: random.Random) -> None:
    kind = rng.choice(("Identity", "Shape", "ReduceSum", "Size"))

    def body(helper: Any) -> list[Any]:
        from onnx import TensorProto

        nodes = [helper.make_node(kind, ["views"], ["raw"])]
        nodes += [helper.make_node("Cast", ["raw"], [name], to=TensorProto.FLOAT)
                  for name in ("logits", "offsets")]  # fmt: skip
        return nodes

    _write(folder, _card(), _graph(body))


def network_that_answers_nothing_finite(folder: Path, rng: random.Random) -> None:
    value = rng.choice((float("nan"), float("inf"), -float("inf")))

    def body(helper: Any) -> list[Any]:
        from onnx import TensorProto

        tensor = helper.make_tensor("v", TensorProto.FLOAT, [1, 48], [value] * 48)
        return [helper.make_node("Constant", [], [name], value=tensor)
                for name in ("logits", "offsets")]  # fmt: skip

    _write(folder, _card(), _graph(body))


def network_with_data_elsewhere(folder: Path, rng: random.Random) -> None:
    """Weights that are said to lie in a file of the system."""
    import onnx

    model = onnx.load_from_string(_onnx())
    for tensor in model.graph.initializer[:3]:
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", rng.choice(("/etc/hostname", "../../../etc/hostname"))
    _write(folder, _card(), model.SerializeToString())


def network_with_unknown_operators(folder: Path, rng: random.Random) -> None:
    def body(helper: Any) -> list[Any]:
        return [
            helper.make_node("Evil", ["views"], ["logits"], domain="some.where"),
            helper.make_node("Identity", ["views"], ["offsets"]),
        ]

    _write(folder, _card(), _graph(body))


STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1e308, float("nan"), "", "\x1b[2J", "a" * 5000, [], {}, [[]], "ring",
)  # fmt: skip
HOSTILE: tuple[Callable[[Path, random.Random], None], ...] = (
    card_with_strange_values,
    card_with_a_strange_size,
    card_with_strange_thresholds,
    card_with_strange_calibration,
    card_without_parts,
    card_that_is_no_object,
    card_nested_too_deeply,
    card_that_is_noise,
    card_with_a_huge_number,
    card_with_escapes,
    card_with_another_hash,
    card_is_a_pipe,
    network_with_flipped_bits,
    network_with_a_damaged_head,
    network_cut_short,
    network_that_is_noise,
    network_is_a_folder,
    network_is_a_pipe,
    network_that_is_endless,
    network_that_asks_for_all_memory,
    network_with_other_shapes,
    network_that_answers_nothing_finite,
    network_with_data_elsewhere,
    network_with_unknown_operators,
)
FAMILY = Family("models", "damaged and hostile cards and ONNX files", check, cases=50)
