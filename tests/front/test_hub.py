"""The hub's mixin: saved with its options, read back the same, also by those without the hub."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from radialbeams import zoo
from radialbeams.front.module import Canonicalizer

pytest.importorskip("huggingface_hub")

from radialbeams.front import hub
from radialbeams.front.hub import HubCanonicalizer


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    front = Canonicalizer.from_pretrained("ring.lfw", abstain=0.4, canvas="expand")
    HubCanonicalizer.around(front).save_pretrained(tmp_path)
    return tmp_path


def test_what_was_saved_comes_back_with_its_options(saved: Path) -> None:
    front = HubCanonicalizer.from_pretrained(saved, canvas="same")
    assert (front.abstain, front.canvas, front.training) == (0.4, "same", False)
    expected = Canonicalizer.from_pretrained("ring.lfw", abstain=0.4)
    images = torch.rand(2, 3, 60, 50)
    with torch.inference_mode():
        (upright, pose), (same, other) = front(images), expected.canonicalize(images)
    assert torch.equal(upright, same)
    torch.testing.assert_close(pose.confidence, other.confidence)


def test_those_without_the_hub_read_it_too(saved: Path) -> None:
    images = torch.rand(1, 3, 60, 50)
    with torch.inference_mode():
        _, pose = Canonicalizer.from_pretrained(saved).canonicalize(images)
        _, expected = Canonicalizer.from_pretrained("ring.lfw").canonicalize(images)
    torch.testing.assert_close(pose.confidence, expected.confidence)


def test_the_default_model_comes_back_with_its_views(tmp_path: Path) -> None:
    """Its disc is larger than the usual one."""
    plain = Canonicalizer.from_pretrained("general")
    HubCanonicalizer.around(plain).save_pretrained(tmp_path)
    images = torch.rand(1, 3, 200, 240)
    expected = plain.view_geometry(images)
    for front in (HubCanonicalizer.around(plain), HubCanonicalizer.from_pretrained(tmp_path)):
        assert torch.equal(front.view_geometry(images), expected)
        assert front.more_views_below == plain.more_views_below > 0
        assert front.looks == plain.looks is not None
    read = Canonicalizer.from_pretrained(tmp_path)
    assert torch.equal(read.view_geometry(images), expected)
    assert read.more_views_below == plain.more_views_below


def test_the_papers_network_goes_there_and_back(tmp_path: Path) -> None:
    HubCanonicalizer.around(Canonicalizer.from_pretrained("bic.coil100")).save_pretrained(tmp_path)
    assert not HubCanonicalizer.from_pretrained(tmp_path).view_geometry.parent_size
    assert not Canonicalizer.from_pretrained(tmp_path).view_geometry.parent_size


def test_the_cards_thresholds_are_kept_and_used(tmp_path: Path) -> None:
    expected = thresholds(Canonicalizer.from_pretrained("ring.lfw", abstain="card"))
    first, second = tmp_path / "first", tmp_path / "second"
    front = Canonicalizer.from_pretrained("ring.lfw", abstain="card")
    HubCanonicalizer.around(front).save_pretrained(first)
    # Used with a threshold of one's own, and saved again: the card stays what it was.
    own = HubCanonicalizer.from_pretrained(first, abstain=0.9, still_degrees=0, most_upright=1)
    assert thresholds(own) == (0.9, 0, 1)
    HubCanonicalizer.around(own).save_pretrained(second)
    for folder in (first, second):
        assert thresholds(Canonicalizer.from_pretrained(folder, abstain="card")) == expected
        again = HubCanonicalizer.from_pretrained(folder, abstain="card")
        assert thresholds(again) == expected
        with torch.inference_mode():
            _, pose = again.canonicalize(torch.rand(2, 3, 60, 50))
        assert pose.applied.dtype == torch.bool
    said = HubCanonicalizer.from_pretrained(second, abstain="card", still_degrees=30)
    assert thresholds(said) == (expected[0], pytest.approx(30), expected[2])


def thresholds(front: Canonicalizer) -> tuple[Any, ...]:
    return front.abstain, pytest.approx(math.degrees(front.still)), front.most_upright


def test_a_network_that_is_never_sure_has_no_thresholds(tmp_path: Path) -> None:
    HubCanonicalizer.around(Canonicalizer.from_pretrained("bic.coil100")).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="abstain needs a network with a posterior"):
        HubCanonicalizer.from_pretrained(tmp_path, abstain="sure")
    assert HubCanonicalizer.from_pretrained(tmp_path, abstain="card").abstain is None


def test_a_runs_folder_without_options_is_read_by_its_card(saved: Path) -> None:
    (saved / "config.json").unlink()
    front = HubCanonicalizer.from_pretrained(saved)
    expected = Canonicalizer.from_pretrained("ring.lfw")
    assert (front.abstain, front.temperature) == (expected.abstain, expected.temperature)
    assert (
        front.view_geometry.parent_size
        and front.view_geometry.square_size == expected.view_geometry.square_size
    )


def test_an_id_is_fetched_from_the_hub(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetched(name: str, **options: Any) -> str:
        asked.append((name, options["allow_patterns"]))
        return str(saved)

    monkeypatch.setattr(hub, "snapshot_download", fetched)
    monkeypatch.setattr(
        "huggingface_hub.hub_mixin.hf_hub_download", lambda **_: str(saved / "config.json")
    )
    front = HubCanonicalizer.from_pretrained("me/faces")
    assert front.abstain == 0.4
    assert asked == [("me/faces", ["model.json", "model.safetensors"])]


def test_thresholds_of_a_card_are_saved_even_if_they_are_not_used(tmp_path: Path) -> None:
    plain = Canonicalizer.from_pretrained("ring.lfw")
    HubCanonicalizer.around(plain).save_pretrained(tmp_path)
    again = Canonicalizer.from_pretrained(tmp_path, abstain="card")
    card = zoo.find("ring.lfw").card.abstain
    assert (again.abstain, again.most_upright) == (card.confidence, card.upright)
