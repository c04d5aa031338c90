"""Figures in README and docs are those of the results that their sentences name."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT
from sentences import PAGES, Sentences, result

from radialbeams.reproduce import registry

FIGURE = re.compile(r"(?<![\w.,])[−+]?\d[\d.,]*(?: ?%|°)")
GENERATED = {"results.md", "models.md"}  # whole pages, from results and cards
# Angles that define a measure or a setting, and quarter turns.
DEFINED = {"0°", "1°", "2°", "5°", "10°", "90°", "91°", "180°", "270°", "360°", "95%"}
# Other figures that no result has to show, each with its reason.
EXPLAINED = {
    "docs/detector.md": {"40°", "158°", "275°"},  # by which an example turns its picture
    "docs/documents.md": {
        # tilts of single files, and a first threshold: in the note of results/documents.json
        *("2.2°", "4.9°", "99.3%", "0.57%", "1.14%", "0.3%"),
        *("0.25%", "0.8%"),  # shares that set the threshold
        *("90%", "81%"),  # a trial that was not kept; the card of the network
    },
    "docs/leaks.md": {"1.6%", "4%", "8°"},  # by calculation
    "docs/scale.md": {"15%", "30%", "80%"},  # goals
    "docs/train.md": {
        "2%",
        "3.6°",
        "99%",
    },  # a setting; `benchmarks.own_folder` prints the others
}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "sentences"),
    [(page, sentences) for page, known in PAGES.items() for sentences in known],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)
def test_a_sentence_has_the_figures_of_its_result(page: str, sentences: Sentences) -> None:
    for sentence in sentences():
        assert sentence in text(page)


def figures_without_a_result(page: str, content: str) -> list[str]:
    """Percentages and degrees in the prose of a page that nobody has connected with a result."""
    for sentences in PAGES.get(page, ()):
        for sentence in sentences():
            content = content.replace(sentence, "")
    content = re.sub(r"```.*?```|`[^`]*`", "", content, flags=re.DOTALL)
    prose = [line for line in content.splitlines() if not line.startswith("|")]
    found = FIGURE.findall("\n".join(prose))
    return [one for one in found if one not in DEFINED | EXPLAINED.get(page, set())]


def pages() -> list[str]:
    docs = [place.name for place in (ROOT / "docs").glob("*.md")]
    return ["README.md", *(f"docs/{name}" for name in sorted(docs) if name not in GENERATED)]


@pytest.mark.parametrize("page", pages())
def test_every_figure_in_prose_is_that_of_a_result(page: str) -> None:
    content = text(page)
    if page == "docs/leaks.md":  # its table and what follows are generated
        content = re.sub(r"<!-- .*? -->.*<!-- .*? -->", "", content, flags=re.DOTALL)
    assert not figures_without_a_result(page, content)


def test_a_new_figure_would_be_seen() -> None:
    content = text("README.md") + "\nIt finds 93.7% of the angles within 4°.\n"
    assert figures_without_a_result("README.md", content) == ["93.7%", "4°"]


MEASURED = (
    "set|files|quarter|quarter where acted|turned ones acted on|any angle, 2°|skew, 1°"
    "|upright files turned|calibration error|judged as documents|ms, mean"
)


@pytest.mark.parametrize(
    ("name", "part", "columns"),
    [
        ("documents", "radialbeams", MEASURED),
        ("documents-fresh", "radialbeams", MEASURED),
        ("documents", "peers", "estimator|set|files|quarter|any angle, 2°|skew, 1°|ms, mean"),
    ],
)
def test_the_tables_of_documents_are_the_stored_figures(name: str, part: str, columns: str) -> None:
    for row in result(name)[part]:
        cells = [row[column] for column in columns.split("|")]
        shown = [cell if isinstance(cell, str) else f"{cell:g}" for cell in cells]
        assert f"| {' | '.join(shown)} |" in text("docs/documents.md")


def test_the_table_of_fresh_documents_has_no_other_rows() -> None:
    _, found = text("docs/documents.md").split("### Fresh sets\n")
    rows = [line for line in found.split("\n### ")[0].splitlines() if line.startswith("| ")]
    names = [row.split("|")[1].strip() for row in rows]
    assert names == ["set", *(row["set"] for row in result("documents-fresh")["radialbeams"])]


def test_two_measurements_of_one_classifier_agree() -> None:
    """`downstream` and `studies/gap.py` share classifier, photos and angles, or photos at least.

    One ran on a GPU, the other on a CPU: three borderline photos of a thousand may differ.
    """
    photos, ring = (
        result("downstream")["data"]["sets"]["imagenet"],
        result("gap")["models"]["ring"],
    )
    near = 3.1 / ring["n"] if photos["n"] == ring["n"] else 0.03
    for theirs, ours in (("plain", "plain"), ("ring", "always"), ("ceiling", "ceiling")):
        assert photos["uniform"][theirs] == pytest.approx(ring["accuracy"][ours], abs=near)


def test_no_tested_photo_is_among_the_training_photos() -> None:
    against, models = result("overlap")["against"], result("gap")["models"]
    same = {name: one["same_by_eye"] for name, one in against.items()}
    assert None not in same.values(), "somebody has to look at the pairs"
    assert models["general"]["left_out"] == same["coco"] == 0
    assert models["ring"]["left_out"] == sum(same.values())
    assert all(one["n"] + one["left_out"] == result("overlap")["n"] for one in models.values())


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
