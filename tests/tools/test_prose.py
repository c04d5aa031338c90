"""Figures in README and docs are those of the results that their sentences name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import ROOT

from radialbeams import zoo
from radialbeams.cards import to_json


def result(name: str) -> Any:
    return json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_ring_against_the_papers_network() -> None:
    cells = result("staircase")["data"]["cells"]
    ring, bic = (cells[name] for name in ("leakfree-decoder", "leakfree-batch"))
    assert ring["seeds"] == bic["seeds"] == 3
    shown = [f"{one['so2']['mean']['mean']:.2f}°" for one in (ring, bic)]
    sentence = f"its mean error is {shown[0]} where that of the paper's network is {shown[1]}"
    assert sentence in text("README.md")


def test_the_papers_figures_its_authors_weights_and_ours() -> None:
    weights, ours = result("authors"), result("protocol")["data"]["reproduction"]
    sets = ("coil100", "lfw")
    measured = " and ".join(f"{weights[data]['paper_equivalent']:.1f}°" for data in sets)
    repeated = " and ".join(f"{ours[data]['paper_equivalent']['mean']:.1f}°" for data in sets)
    assert f"its authors' own weights measure {measured}, and" in text("README.md")
    assert f"with the paper's optimizer we measure {repeated}, all as" in text("README.md")


def test_what_a_classifier_gains() -> None:
    found = result("downstream")["data"]["sets"]["imagenet"]["uniform"]
    for words in (
        f"classifies {found['plain']:.1%} of 1,000 ImageNet photos",
        f"{found['ring']:.1%} with `ring` in front of it",
        f"{found['ceiling']:.1%} when they are turned back by the true angle",
    ):
        assert words in text("README.md")


def test_how_little_the_views_leak() -> None:
    places = (ROOT / "results" / "leaks").glob("leakfree-*.json")
    leaks = [json.loads(place.read_text(encoding="utf-8")) for place in places]
    worst = max(abs(leak["rho4"]) for leak in leaks)
    assert f"(|ρ₄| ≤ {worst:.2f})" in text("README.md")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("general", "{within_10:.0%} of its estimates are within 10°"),
        ("general", "half are within {median:.1f}°"),
        ("general", "of the more confident half {surer_half_within_10:.1%} are within 10°"),
        ("ring", "less accurate ({within_10:.0%} within 10°)"),
    ],
)
def test_what_everyday_photos_come_to(model: str, words: str) -> None:
    found = to_json(zoo.find(model).card)["end_to_end"]
    assert words.format(**found) in text("README.md")
