"""Figures in README and docs are those of the results that their sentences name."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from conftest import ROOT

from radialbeams import zoo
from radialbeams.cards import to_json
from radialbeams.reproduce import registry


def result(name: str) -> Any:
    return json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_ring_against_the_papers_network() -> None:
    cells = result("staircase")["data"]["cells"]
    ring, bic = (cells[name] for name in ("leakfree-decoder", "leakfree-batch"))
    assert ring["seeds"] == bic["seeds"] == 5
    shown = [f"{one['so2']['mean']['mean']:.2f}°" for one in (ring, bic)]
    sentence = f"its mean error is {shown[0]} where that of the paper's network is {shown[1]}"
    assert f"{sentence} (five seeds each" in text("README.md")


def test_the_papers_figures_its_authors_weights_and_ours() -> None:
    weights, ours = result("authors"), result("protocol")["data"]["reproduction"]
    sets = ("coil100", "lfw")
    measured = " and ".join(f"{weights[data]['paper_equivalent']:.1f}°" for data in sets)
    repeated = " and ".join(f"{ours[data]['paper_equivalent']['mean']:.1f}°" for data in sets)
    assert f"its authors' own weights measure {measured}, and" in text("README.md")
    assert f"with the paper's optimizer we measure {repeated}, all as" in text("README.md")


def test_what_a_classifier_gains() -> None:
    found, models = result("gap"), result("gap")["models"]
    general, ring = (models[name]["accuracy"] for name in ("general", "ring"))
    for words in (
        f"classifies {general['plain']:.1%} of {found['n']:,} ImageNet photos",
        f"{general['ceiling']:.1%} when they are turned back by the true angle",
        f"it classifies {general['decides']:.1%} by default",
        f"{general['always']:.1%} with `abstain=None`",
        f"with `ring`, {ring['decides']:.1%} and {ring['always']:.1%}",
    ):
        assert words in text("README.md")


def test_what_the_command_does_with_mixed_files() -> None:
    rows = result("mixed")["rows"]

    def counted(column: str, *kinds: str) -> int:
        return sum(row[column] for row in rows if row["kind"] in kinds)

    quarters = ("photo, exact quarter, JPEG", "photo, exact quarter, PNG")
    cropped = ("photo, any angle, cropped",)
    upright = [row for row in rows if "upright" in row["kind"]]
    files, turned = counted("files", *quarters), counted("turned", *quarters)
    assert turned == counted("right of turned", *quarters)
    assert sum(row["turned"] for row in upright) == 1
    for words in (
        f"Of {result('mixed')['files']} mixed files, {sum(row['files'] for row in upright)} were",
        f"of {files} photos turned by exactly 90°, 180° or 270°, {turned} were turned back, all",
        f"{files - turned} were left alone",
        f"Of {counted('files', *cropped)} photos turned by other angles and cropped, so that no "
        f"corner shows it, {counted('upright after', *cropped)} came out upright",
    ):
        assert words in text("README.md")


def test_two_measurements_of_one_classifier_agree() -> None:
    """`downstream` and `studies/gap.py` share photos, angles and classifier."""
    uniform = result("downstream")["data"]["sets"]["imagenet"]["uniform"]
    one = result("gap")["models"]["ring"]["accuracy"]
    for theirs, ours in (("plain", "plain"), ("ring", "always"), ("ceiling", "ceiling")):
        assert uniform[theirs] == pytest.approx(one[ours], abs=0.0021)


def test_no_tested_photo_is_among_the_training_photos() -> None:
    overlap, gap = result("overlap"), result("gap")
    assert {one["same_by_eye"] for one in overlap["against"].values()} == {0}
    assert gap["n"] + gap["left_out"] == overlap["n"]


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


@pytest.mark.parametrize(
    "words",
    [
        "`upright` acts on {turned[acted_on]:.0%} of these rotated files",
        "{turned[acted_on_within_5]:.0%} of those end within 5°",
    ],
)
def test_what_upright_does_to_photos(words: str) -> None:
    found = to_json(zoo.find("general").card)["end_to_end"]
    assert words.format(**found) in text("README.md")


def test_every_experiment_that_is_named_in_the_docs_exists() -> None:
    """`radialbeams reproduce NAME` in README and docs, and the result that it wrote."""
    places = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    named = {
        name
        for place in places
        for name in re.findall(r"radialbeams reproduce ([a-z][a-z-]*)", place.read_text("utf-8"))
    }
    assert named - {registry.ALL} <= set(registry.names())
    assert all((ROOT / "results" / f"{name}.json").is_file() for name in named - {registry.ALL})
