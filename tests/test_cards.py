"""Damaged and hostile models: one sentence that names the model and the field, and no picture."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from radialbeams import Canonicalizer, cards, zoo
from radialbeams.cards import to_json
from radialbeams.cli import main
from radialbeams.demo import PICTURES

CARD = to_json(zoo.find("ring").card)
FIRST = json.loads((Path(__file__).parent / "fixtures" / "cards" / "ring.json").read_text())
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    for ending in (".onnx", ".json"):
        shutil.copy(zoo.FOLDER / f"ring{ending}", tmp_path / f"mine{ending}")
    return tmp_path / "mine.onnx"


def set_to(field: str, value: Any) -> Change:
    def change(card: dict[str, Any]) -> None:
        *parents, last = field.split(".")
        for name in parents:
            card = card.setdefault(name, {})
        card[last] = value

    return change


# --- cards ---

WRONG_VALUES: dict[str, list[Any]] = {
    "network.view_size": [0, -1, 10**9, 79.0, "79", True, [], float("nan")],
    "network.channels": [0, 2, 4, "3", True, None],
    "network.num_bins": [0, 2, 1e9, "48", float("inf")],
    "network.reading": ["tree", 3, [], {}],
    "network.architecture": [3, [], None],
    "data.training_images": ["many", 1.5],
    "training.steps_done": ["all", 0.5],
    "looks.below": [2, "half"],
    "parameters": ["many", 1.5],
    "version": [0, 3, "2", 2.0, None],
    "metrics.leakfree.mean": ["small", None, float("nan")],
    "metrics.leakfree.protocol": [3, None],
    "protocol.name": ["papers", 1, ["paper"]],
    "protocol.parent_size": [0, 10**12, "176", 1.5, None],
    "calibration.temperature": [0, -1, float("nan"), float("inf"), "1", None, 10**400],
    "calibration.spread": [-1, float("nan"), [], "0"],
    "abstain.confidence": [-0.1, 2, float("nan"), "high"],
    "abstain.angle": [-1, 181, float("nan"), {}],
    "abstain.upright": [7, "x"],
    "trust": ["no", [3], {}, None],
    "sha256.onnx": ["", "abc", 3, None],
    "summary": [3, [], {}],
}
CASES = [(field, value) for field, values in WRONG_VALUES.items() for value in values]


@pytest.mark.parametrize(("field", "value"), CASES)
def test_a_wrong_value_is_named_with_its_card_and_field(mine: Path, field: str, value: Any) -> None:
    card = deepcopy(CARD)
    set_to(field, value)(card)
    mine.with_suffix(".json").write_text(json.dumps(card))
    with pytest.raises(zoo.DamagedModel) as caught:
        Canonicalizer(mine)
    pattern = rf".*mine\.json is not a model card: {re.escape(field)} must be .+; got .+\."
    assert re.fullmatch(pattern, str(caught.value))
    assert len(str(caught.value).split("model card: ")[1]) < 150


FIRST_VALUES = {
    "config.view_size": [0, -1, 10**9, 79.0, "79", True, [], float("nan")],
    "config.channels": [0, 2, 4, "3", True, None],
    "config.num_beams": [0, 2, 1e9, "48", float("inf")],
    "config.decoder": ["tree", 3, [], {}],
}
FIRST_CASES = [(field, value) for field, values in FIRST_VALUES.items() for value in values]


@pytest.mark.parametrize(("field", "value"), FIRST_CASES)
def test_a_wrong_value_on_a_card_of_the_first_format_is_named(field: str, value: Any) -> None:
    card = deepcopy(FIRST)
    set_to(field, value)(card)
    with pytest.raises(ValueError, match=rf"^{re.escape(field)} must be .+; got .+"):
        cards.parse(card)


@pytest.mark.parametrize("name", ["ring", "bic.lfw"])
def test_a_card_of_the_first_format_says_what_the_present_one_says(name: str) -> None:
    """The fixtures are cards as version 0.1 of the package shipped them."""
    path = Path(__file__).parent / "fixtures" / "cards" / f"{name}.json"
    first, now = cards.read(path), zoo.find(name).card
    assert "version" not in json.loads(path.read_text())
    for part in ("network", "protocol", "data", "calibration", "abstain", "metrics"):
        assert getattr(first, part) == getattr(now, part)
    assert first.sha256.safetensors is not None and first.sha256.onnx is not None


@pytest.mark.parametrize("name", zoo.names())
def test_what_is_written_is_read_as_the_same_card(name: str, tmp_path: Path) -> None:
    card = replace(zoo.find(name).card, trust=("The data is symmetric.",))
    cards.write(tmp_path / "card.json", card)
    assert cards.read(tmp_path / "card.json") == card


def test_fields_that_this_version_does_not_know_are_kept(tmp_path: Path) -> None:
    card = cards.parse({**CARD, "note": ["mine"]})
    assert to_json(card) == {**CARD, "note": ["mine"]}


@pytest.mark.parametrize("part", ["calibration", "abstain", "sha256"])
@pytest.mark.parametrize("value", [3, [], "x", None])
def test_a_part_that_is_no_object_is_named(mine: Path, part: str, value: Any) -> None:
    mine.with_suffix(".json").write_text(json.dumps({**CARD, part: value}))
    with pytest.raises(zoo.DamagedModel, match=f"{part} must be an object of fields; got "):
        Canonicalizer(mine)


@pytest.mark.parametrize("part", ["calibration", "abstain"])
def test_an_unknown_field_of_a_closed_part_is_named(mine: Path, part: str) -> None:
    mine.with_suffix(".json").write_text(json.dumps({**CARD, part: {"__class__": 1}}))
    with pytest.raises(
        zoo.DamagedModel, match=rf"{part} must have only {part}\.\w+, .*; got .__class__."
    ):
        Canonicalizer(mine)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"3",
        b"\xff\xfe",
        b'"' + b"x" * 100,
        b"[" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"config": ' + b"9" * 5000 + b"}",
    ],
    ids=range(9),
)
def test_a_card_that_is_no_json_is_refused(mine: Path, content: bytes) -> None:
    mine.with_suffix(".json").write_bytes(content)
    with pytest.raises(zoo.DamagedModel, match=r"mine\.json is not a model card: "):
        Canonicalizer(mine)


def test_a_huge_card_is_not_even_read(mine: Path) -> None:
    with mine.with_suffix(".json").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(zoo.DamagedModel, match="larger than 16 MiB"):
        Canonicalizer(mine)


def test_a_huge_onnx_file_is_not_even_read(mine: Path) -> None:
    with mine.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(zoo.DamagedModel, match="larger than 1024 MiB"):
        Canonicalizer(mine)


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text(max_size=8)
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
)
FIELDS = [
    *cards.reading.RULES,
    *cards.reading.TEXTS,
    *("data", "data.name", "training", "training.start", "training.averaged", "metrics"),
    *("metrics.leakfree", "metrics.leakfree.groups", "metrics.leakfree.risk_coverage"),
    *("network", "config", "protocol", "calibration", "abstain", "cost", "least_confident"),
]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.sampled_from(FIELDS), LEAVES), min_size=1, max_size=4))
def test_any_card_is_taken_or_refused(mine: Path, changes: list[tuple[str, Any]]) -> None:
    card = deepcopy(CARD)
    for field, value in changes:
        try:
            set_to(field, value)(card)
        except (AttributeError, TypeError):  # an earlier change took the parent away
            continue
    mine.with_suffix(".json").write_text(json.dumps(card))
    try:
        found = cards.read(mine.with_suffix(".json"))
    except zoo.DamagedModel as error:
        assert re.fullmatch(r"[^\n]+mine\.json is not a model card: [^\n]+\.", str(error))
        return
    assert 0 < found.calibration.temperature <= 1000


# --- graphs ---

SHAPE = ["batch", 3, 79, 79]
RING = [("logits", ["batch", 48]), ("offsets", ["batch", 48])]


def graph(
    given: str = "views",
    shape: list[Any] = SHAPE,
    outputs: list[tuple[str, list[Any]]] = RING,
    kind: int = TensorProto.FLOAT,
    values: float = 0.0,
) -> bytes:
    """A graph that reads its input's size and gives constants of the size of its first output."""
    width = outputs[0][1][-1] if outputs else 1
    nodes = [
        helper.make_node("Shape", [given], ["n"], start=0, end=1),
        helper.make_node("Concat", ["n", "width"], ["size"], axis=0),
    ]
    for name, _ in outputs:
        constant = helper.make_tensor("value", TensorProto.FLOAT, [1], [values])
        nodes.append(helper.make_node("ConstantOfShape", ["size"], [name], value=constant))
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(given, kind, shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, s) for name, s in outputs],
            [helper.make_tensor("width", TensorProto.INT64, [1], [width])],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    content: bytes = model.SerializeToString()
    return content


def install(mine: Path, content: bytes) -> None:
    """With a card that vouches for it: hostile, and not merely damaged."""
    mine.write_bytes(content)
    card = deepcopy(CARD)
    card["sha256"]["onnx"] = hashlib.sha256(content).hexdigest()
    mine.with_suffix(".json").write_text(json.dumps(card))


def test_a_graph_as_the_card_describes_it_runs(mine: Path) -> None:
    install(mine, graph())
    assert Canonicalizer(mine).predict(PICTURES / "horse.webp").confidence is not None


@pytest.mark.parametrize(
    "content",
    [
        graph(given="pictures"),
        graph(shape=["batch", 1, 79, 79]),
        graph(shape=["batch", 3, 80, 80]),
        graph(shape=["batch", 3, "side", "side"]),
        graph(shape=["batch", 3, 79]),
        graph(shape=[1, 3, 79, 79]),
        graph(kind=TensorProto.DOUBLE),
        graph(outputs=RING[:1]),
        graph(outputs=[*RING, ("more", ["batch", 48])]),
        graph(outputs=[("logits", ["batch", 47]), ("offsets", ["batch", 47])]),
    ],
    ids=range(10),
)
def test_a_graph_of_something_else_is_refused_by_its_shapes(mine: Path, content: bytes) -> None:
    install(mine, content)
    with pytest.raises(zoo.DamagedModel, match=r"mine\.onnx does not match its card: ex"):
        Canonicalizer(mine)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_outputs_that_are_no_numbers_are_the_models_fault(mine: Path, value: float) -> None:
    install(mine, graph(values=value))
    with pytest.raises(zoo.DamagedModel, match=r"model .*mine\.onnx do not match its card"):
        Canonicalizer(mine).predict(PICTURES / "horse.webp")


def test_a_graph_that_fails_when_it_runs_is_the_models_fault(mine: Path) -> None:
    model = onnx.load_from_string(graph())
    model.graph.initializer[0].CopyFrom(helper.make_tensor("width", TensorProto.INT64, [1], [-5]))
    install(mine, model.SerializeToString())
    with pytest.raises(zoo.DamagedModel, match=r"mine\.onnx (does not run|do not match)"):
        Canonicalizer(mine).predict(PICTURES / "horse.webp")


# --- through the command ---


def damaged_models(count: int) -> list[tuple[bytes, bool]]:
    """ONNX files cut, flipped, and exchanged for other bytes; half with a card that vouches."""
    rng = np.random.default_rng(0)
    whole, made = graph(), []
    for number in range(count):
        content = bytearray(whole)
        for place in rng.integers(0, len(content), rng.integers(1, 30)):
            content[place] = rng.integers(256)
        if number % 3 == 0:
            content = content[: rng.integers(0, len(content))]
        if number % 7 == 0:
            content = bytearray(rng.bytes(200))
        made.append((bytes(content), number % 2 == 0))
    return made


def test_fifty_damaged_models_give_a_sentence_or_an_answer(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = (PICTURES / "horse.webp").read_bytes()
    codes = []
    for content, vouched in damaged_models(50):
        install(mine, content if vouched else graph())
        mine.write_bytes(content)
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(picture)))
        codes.append(main(["angle", "-", "--model", str(mine)]))
        told = capsys.readouterr().err
        if codes[-1]:
            assert re.fullmatch(r"radialbeams: [^\n]*mine[^\n]+\.\n", told)
    assert set(codes) <= {0, 1}
    assert codes.count(1) >= 40


def test_a_hostile_card_is_blamed_by_the_workers_and_no_picture_is(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(mine, graph(shape=["batch", 3, 80, 80]))
    assert main(["angle", str(PICTURES), "--model", str(mine), "--workers", "1"]) == 1
    told = capsys.readouterr().err
    assert "mine.onnx does not match its card" in told
    assert "horse" not in told and "Traceback" not in told
