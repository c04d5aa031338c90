"""Damaged and hostile recipes, weights and checkpoints: one sentence each, and nothing changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import beams_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from radialbeams.cards import Hashes, ViewProtocol, to_json
from radialbeams.nn.bic import BIC, BICConfig
from radialbeams.stored import LARGEST
from radialbeams.training.checkpoint import (
    DamagedCheckpoint,
    TrainingPosition,
    read_checkpoint,
    write_checkpoint,
)
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import plan
from radialbeams.training.weights import (
    DamagedWeights,
    load_model,
    new_card,
    read_card,
    save_model,
    sha256,
    write_card,
)

FUZZ = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NO_OBJECTS = {
    "empty": b"",
    "half": b'{"data": ',
    "a list": b"[]",
    "a number": b"3",
    "null": b"null",
    "no UTF-8": b'{"data": "\xff\xfe"}',
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a long number": b'{"steps": ' + b"9" * 10_000 + b"}",
    "a pickle": b"\x80\x04\x95\x10\x00",
}


def sentence(error: BaseException) -> None:
    assert re.fullmatch(r"[^\n]{10,600}[.]", str(error))


# --- recipes ---


def recipe_error(path: Path) -> ValueError:
    with pytest.raises(ValueError) as caught:
        plan("photos", path, {}, {})
    return caught.value


@pytest.mark.parametrize("content", NO_OBJECTS.values(), ids=NO_OBJECTS.keys())
def test_a_recipe_that_is_no_object_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "recipe.json"
    path.write_bytes(content)
    error = recipe_error(path)
    sentence(error)
    assert "recipe.json is not a recipe: " in str(error)


def test_a_huge_recipe_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "recipe.json"
    with path.open("wb") as file:
        file.truncate(2**40)
    assert f"larger than {LARGEST // 2**20} MiB" in str(recipe_error(path))


GOOD = json.loads(json.dumps(Recipe("photos", BICConfig()).to_dict()))
WRONG: list[tuple[str, Any]] = [
    *(("batch", value) for value in ("8", 1.5, None, [], True, 10**12, float("nan"))),
    *(("learning_rate", value) for value in ("fast", float("nan"), float("inf"), None, 10**400)),
    *(("steps", value) for value in (0, -1, "many", {})),
    *(("seed", value) for value in (-1, 2**64, 0.5)),
    *(("parent_size", value) for value in (0, 10**9, "128")),
    *(("repeats", value) for value in ([], {"a": "b"}, {"a": 0}, 3)),
    *(("model", value) for value in (3, [], None, "bic")),
    *(("augmentation", value) for value in (3, {"zoom": "x"}, {"zoom": float("nan")}, [1])),
    *(("loss", value) for value in ({"width": 0}, {"width": None}, [])),
    *(("protocol", value) for value in (3, "../../etc", None, ["paper"])),
    *(("model.view_size", value) for value in ("182", 10**9, 1.5)),
    *(("model.num_beams", value) for value in (0, 10**9, True)),
    *(("model.latent", value) for value in (7, 10**9)),
    ("model.edge_factor", float("nan")),
    ("../../x", 1),
    ("\x1b[31m", 1),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_wrong_value_in_a_recipe_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    values = json.loads(json.dumps(GOOD))
    inner, _, last = field.removeprefix("../../").rpartition(".")
    (values[inner] if inner == "model" else values)[last] = value
    (tmp_path / "recipe.json").write_text(json.dumps(values))
    sentence(recipe_error(tmp_path / "recipe.json"))


@pytest.mark.parametrize("value", [3, ["a"], [10**9], [1] * 1000, [0]])
def test_wrong_stages_of_a_ring_are_refused(tmp_path: Path, value: Any) -> None:
    model = {"architecture": "ring", "stages": value}
    (tmp_path / "recipe.json").write_text(json.dumps({**GOOD, "model": model}))
    sentence(recipe_error(tmp_path / "recipe.json"))


def test_beams_that_would_fill_the_memory_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 16,777,216 pixels together"):
        BICConfig(num_beams=4096, beam_length=4096, epsilon=64)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES = LEAVES | st.lists(LEAVES, max_size=3) | st.dictionaries(st.text(max_size=5), LEAVES)
NAMES = [*GOOD, *(f"model.{name}" for name in GOOD["model"])]


@FUZZ
@given(st.lists(st.tuples(st.sampled_from(NAMES), VALUES), min_size=1, max_size=3))
def test_any_recipe_is_taken_or_refused(changes: list[tuple[str, Any]]) -> None:
    values = json.loads(json.dumps(GOOD))
    for name, value in changes:
        inner, _, last = name.rpartition(".")
        place = values["model"] if inner else values
        if isinstance(place, dict):
            place[last] = value
    try:
        recipe = Recipe.from_dict(values)
    except ValueError as error:
        assert str(error)
        return
    assert recipe.batch >= 1 and beams_of(recipe.model).num_beams >= 3


# --- weights ---


@pytest.fixture
def stem(tiny_model: BIC, tmp_path: Path) -> Path:
    save_model(tmp_path / "mine", tiny_model, new_card(tiny_model, ViewProtocol("paper"), "mine"))
    return tmp_path / "mine"


@pytest.fixture
def weights(stem: Path) -> bytes:
    return stem.with_suffix(".safetensors").read_bytes()


def vouch(stem: Path) -> None:
    """The card names the weights as they are now: hostile, and not merely damaged."""
    card = read_card(stem.with_suffix(".json"))
    hashes = Hashes(sha256(stem.with_suffix(".safetensors")))
    write_card(stem.with_suffix(".json"), replace(card, sha256=hashes))


def header(length: int, text: bytes = b"{}") -> bytes:
    return length.to_bytes(8, "little") + text


def tensor_header(**fields: Any) -> bytes:
    values = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **fields}
    text = json.dumps({"../../etc/passwd": values}).encode()
    return header(len(text), text) + b"\0" * 4


HOSTILE_WEIGHTS = {
    "empty": b"",
    "a huge header": header(2**63 - 1),
    "a header of a gigabyte": header(2**30),
    "no JSON": header(4, b"\xff\xfe\xfd\xfc"),
    "deep JSON": header(100_000, b"[" * 100_000),
    "another name": tensor_header(),
    "a huge shape": tensor_header(shape=[2**60]),
    "a negative shape": tensor_header(shape=[-1]),
    "offsets outside": tensor_header(data_offsets=[0, 2**40]),
    "offsets that go back": tensor_header(data_offsets=[4, 0]),
    "an unknown type": tensor_header(dtype="OBJECT"),
    "a pickle": b"\x80\x02cos\nsystem\n(S'true'\ntR.",
}


@pytest.mark.parametrize("content", HOSTILE_WEIGHTS.values(), ids=HOSTILE_WEIGHTS.keys())
def test_hostile_weights_are_refused(stem: Path, content: bytes) -> None:
    stem.with_suffix(".safetensors").write_bytes(content)
    vouch(stem)
    with pytest.raises(DamagedWeights, match=r"mine\.safetensors (is not|has other)") as caught:
        load_model(stem)
    sentence(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(stem: Path, tiny_model: BIC, value: float) -> None:
    tensors = {name: one.clone() for name, one in tiny_model.state_dict().items()}
    next(one for one in tensors.values() if one.is_floating_point()).view(-1)[0] = value
    save_file(tensors, stem.with_suffix(".safetensors"))
    vouch(stem)
    with pytest.raises(DamagedWeights, match="NaN or infinite"):
        load_model(stem)


def test_a_config_that_asks_for_much_more_than_the_file_holds_takes_no_memory(stem: Path) -> None:
    card = read_card(stem.with_suffix(".json"))
    config = {**card.config, "latent": 8192, "lstm_layers": 64}
    write_card(stem.with_suffix(".json"), replace(card, config=config))
    with pytest.raises(DamagedWeights, match="other tensors than the config"):
        load_model(stem)


@pytest.mark.parametrize("content", NO_OBJECTS.values(), ids=NO_OBJECTS.keys())
def test_a_card_that_is_no_object_is_refused(stem: Path, content: bytes) -> None:
    stem.with_suffix(".json").write_bytes(content)
    with pytest.raises(ValueError, match=r"mine\.json is not a model card: |sha256") as caught:
        load_model(stem)
    sentence(caught.value)


@pytest.mark.parametrize("sha", [None, 3, [], {}, {"safetensors": 3}])
def test_a_card_that_vouches_for_nothing_is_refused(stem: Path, sha: Any) -> None:
    card = to_json(read_card(stem.with_suffix(".json")))
    stem.with_suffix(".json").write_text(json.dumps({**card, "sha256": sha}))
    with pytest.raises(ValueError, match=r"does not have the sha256|card: sha256.* must be"):
        load_model(stem)


@FUZZ
@given(st.data())
def test_mutated_weights_are_loaded_or_refused(
    stem: Path, weights: bytes, data: st.DataObject
) -> None:
    path = stem.with_suffix(".safetensors")
    content = bytearray(weights)
    head = int.from_bytes(content[:8], "little")
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, head + 8))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.just(len(content)) | st.integers(0, len(content)))])
    vouch(stem)
    try:
        load_model(stem)
    except ValueError as error:
        sentence(error)


# --- checkpoints ---

Checkpoint = tuple[Path, BIC, dict[str, torch.Tensor], torch.optim.Optimizer]


@pytest.fixture
def checkpoint(tiny_model: BIC, tmp_path: Path) -> Checkpoint:
    optimizer = torch.optim.AdamW(tiny_model.parameters())
    tiny_model(torch.rand(2, 3, 40, 40)).sum().backward()
    optimizer.step()
    average = {name: one.clone() for name, one in tiny_model.state_dict().items()}
    path = tmp_path / "checkpoint.safetensors"
    write_checkpoint(path, tiny_model, average, optimizer, TrainingPosition(3, 1.5))
    return path, tiny_model, average, optimizer


def test_a_whole_checkpoint_is_read(checkpoint: Checkpoint) -> None:
    assert read_checkpoint(*checkpoint) == TrainingPosition(3, 1.5)


def rewritten(
    path: Path, change: Callable[[dict[str, torch.Tensor], dict[str, str]], None]
) -> None:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = dict(file.metadata())
    change(tensors, metadata)
    save_file(tensors, path, metadata=metadata or None)


def first(tensors: dict[str, torch.Tensor], part: str) -> str:
    return next(n for n, one in tensors.items() if n.startswith(part) and one.ndim > 1)


CHANGES: dict[str, Callable[[dict[str, torch.Tensor], dict[str, str]], object]] = {
    "no metadata": lambda t, m: m.clear(),
    "no step": lambda t, m: m.pop("step"),
    "a step that is none": lambda t, m: m.update(step="three"),
    "a step before the first": lambda t, m: m.update(step="-1"),
    "an endless time": lambda t, m: m.update(seconds="inf"),
    "a time that is none": lambda t, m: m.update(seconds="nan"),
    "a tensor too few": lambda t, m: t.pop(first(t, "model.")),
    "a tensor too many": lambda t, m: t.update({"model.../../x": torch.ones(1)}),
    "an unknown part": lambda t, m: t.update({"evil.x": torch.ones(1)}),
    "no part": lambda t, m: t.update({"x": torch.ones(1)}),
    "another shape": lambda t, m: t.update({first(t, "model."): torch.ones(1, 2)}),
    "another average": lambda t, m: t.update({first(t, "average."): torch.ones(1, 2)}),
    "an optimizer of another": lambda t, m: t.update({"optimizer.999.exp_avg": torch.ones(1)}),
    "an optimizer's other shape": lambda t, m: t.update({first(t, "optimizer."): torch.ones(9, 9)}),
    "an optimizer of text": lambda t, m: t.update({"optimizer.x.exp_avg": torch.ones(1)}),
    "no numbers": lambda t, m: t[first(t, "model.")].fill_(float("nan")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_checkpoint_of_something_else_is_refused_and_changes_nothing(
    checkpoint: Checkpoint, change: Callable[..., None]
) -> None:
    path, model, average, _ = checkpoint
    before = {name: one.clone() for name, one in model.state_dict().items()}
    rewritten(path, change)
    with pytest.raises(DamagedCheckpoint, match=r"is not a checkpoint of this run: ") as caught:
        read_checkpoint(*checkpoint)
    sentence(caught.value)
    after = {**model.state_dict(), **{f"average.{name}": one for name, one in average.items()}}
    for name, value in before.items():
        assert torch.equal(after[name], value) and torch.equal(after[f"average.{name}"], value)


@pytest.mark.parametrize("content", HOSTILE_WEIGHTS.values(), ids=HOSTILE_WEIGHTS.keys())
def test_a_hostile_checkpoint_is_refused(checkpoint: Checkpoint, content: bytes) -> None:
    checkpoint[0].write_bytes(content)
    with pytest.raises(DamagedCheckpoint) as caught:
        read_checkpoint(*checkpoint)
    sentence(caught.value)
