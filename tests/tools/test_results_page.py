"""The results page: up to date, and right about files that do not exist yet."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

REGENERATE = "Run `python tools/results_page.py` and commit what it wrote."


# As where the script runs: its folder comes first.
sys.path.insert(0, str(ROOT / "tools"))
page = importlib.import_module("results_page")
leaks_section = importlib.import_module("sections.leaks")

FIGURES = {
    "n": 300,
    "mean": 2.0,
    "mean_low": 1.9,
    "mean_high": 2.1,
    "median": 1.25,
    "p95": 6.5,
    "paper_equivalent": 3.5,
    "within_5": 0.9,
    "within_10": 0.975,
    "flips": 0.005,
    "seeds": 5,
    "jpeg": None,
}
CURVE = [{"coverage": c / 10, "mean": 0.2 * c, "within_10": 1 - c / 400} for c in range(10, 0, -1)]


def write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")


def card(name: str = "ring.coil100", split_by: str = "object", **extra: Any) -> dict[str, Any]:
    figures = {**FIGURES, "risk_coverage": CURVE, "calibration_error": 0.5}
    metrics = {
        "leakfree": {**figures, "groups": {f"obj{i}": float(i) for i in range(81, 101)}},
        "leakfree_jpeg_90": {**figures, "mean": 2.5, "jpeg": 90},
    }
    data = {"name": "coil100", "split_by": split_by}
    known = {"parameters": 540_000, "data": data, "calibrated": {"expected_error": 0.03}}
    return {"name": name, **known, "metrics": metrics, **extra}


def run(name: str, mean: float, **extra: Any) -> dict[str, Any]:
    around = {"mean": mean, "mean_low": mean - 0.1, "mean_high": mean + 0.1}
    effort = {"steps": 2500, "batch": 512, "seeds": 3, "hardware": "cuda", "training_seconds": 36.4}
    return {"name": name, "split": "test", "parameters": 7, **FIGURES, **effort, **around, **extra}


def leak(rendering: str, canary: str, noise: str, rho4: float) -> dict[str, Any]:
    values = {f"rho4{end}": rho4 + d for end, d in (("", 0), ("_low", -0.02), ("_high", 0.02))}
    values |= {"rho1": -0.01, "rho1_low": -0.03, "rho1_high": 0.01}
    names = {"rendering": rendering, "canary": canary, "noise": noise}
    settings = {"views": 600_064, "test_views": 4096, "parent": 128, "hardware": "cuda"}
    return {**names, **settings, **values}


QUESTIONS = "The paper's questions, in ten lines"
OPENING = ("In short", QUESTIONS, "Contents")


def titles(text: str) -> list[str]:
    """Of the sections; the summary and the contents stand before them."""
    found = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    return [title for title in found if title not in OPENING]


def sections(root: Path) -> list[str]:
    found = page.results_page(root).split("\n## ")[1:]
    return [text for text in found if not text.startswith(OPENING)]


def row(text: str, *starts: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("| " + " | ".join(starts)))


# --- what is committed -------------------------------------------------------------------------


def test_the_results_page_is_up_to_date() -> None:
    committed = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert committed == page.results_page(), REGENERATE


def test_the_table_of_leaks_is_up_to_date() -> None:
    committed = (ROOT / "docs" / "leaks.md").read_text(encoding="utf-8")
    leaks = page.read(ROOT / "results" / "leaks", "*.json")
    assert committed == page.with_leak_table(committed, leaks), REGENERATE


@pytest.mark.parametrize("name", ["results.md", "leaks.md"])
def test_every_picture_that_is_shown_exists(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    pictures = re.findall(r"\]\(([\w-]+\.(?:png|svg|md))\)", text)
    assert pictures
    assert [p for p in pictures if not (ROOT / "docs" / p).is_file()] == [], REGENERATE


# --- sections ----------------------------------------------------------------------------------


def test_without_files_there_are_no_sections(tmp_path: Path) -> None:
    assert titles(page.results_page(tmp_path)) == []


def test_a_section_appears_when_its_files_do(tmp_path: Path) -> None:
    write(tmp_path / "results/ring/ablation-48-beams.json", run("48 beams", 1.0))
    assert titles(page.results_page(tmp_path)) == ["Ablation of `ring.coil100`"]
    write(tmp_path / "results/ring/side-by-side-ring.json", run("ring", 1.0))
    write(tmp_path / "results/leaks/a.json", leak("leakfree", "ring", "white", 0.0))
    write(tmp_path / "radialbeams/zoo/ring.json", card(cost={"ms": 1.66, "deep": {"mb": 3}}))
    assert titles(page.results_page(tmp_path)) == [
        "The pretrained models",
        "Comparison with the paper",
        "Robustness to JPEG",
        "Confidence: risk and coverage",
        "By object or person",
        "Networks on the same views",
        "Ablation of `ring.coil100`",
        "Leaks",
        "Cost of an estimate",
    ]


def test_the_order_of_the_models_does_not_depend_on_when_their_cards_were_written(
    tmp_path: Path,
) -> None:
    for order in ("ab", "ba"):
        for name in order:
            write(tmp_path / order / f"radialbeams/zoo/{name}.json", card(name))
    text = page.results_page(tmp_path / "ab")
    assert text == page.results_page(tmp_path / "ba")
    assert text.index("`a`") < text.index("`b`")


def test_every_table_names_its_command_and_its_meaning(tmp_path: Path) -> None:
    write(tmp_path / "results/ring/ablation-48-beams.json", run("48 beams", 1.0))
    write(tmp_path / "results/ring/side-by-side-ring.json", run("ring", 1.0))
    write(tmp_path / "results/leaks/a.json", leak("leakfree", "ring", "white", 0.0))
    write(tmp_path / "radialbeams/zoo/ring.json", card(cost={"ms": 1.66}, end_to_end={"ms": 3}))
    for text in sections(tmp_path):
        assert "rinted by" in text and "What it means: " in text and "| --- |" in text


def experiment(name: str, **extra: Any) -> dict[str, Any]:
    told = {"claim": "a claim", "paper": {"K": 2, "left open": "x"}, "ours": {"K": 1.99999, "n": 3}}
    said = {"why": "because.", "command": f"radialbeams reproduce {name}", "settings": "full"}
    return {"name": name, **told, **said, "seeds": [0], "seconds": 3.2, "trainings": 0} | {
        "hardware": "cpu",
        **extra,
    }


def test_the_papers_experiments_stand_beside_its_claims_in_their_order(tmp_path: Path) -> None:
    for name in ("beam-length", "loss", "beams"):
        write(tmp_path / f"results/{name}.json", experiment(name))
        (tmp_path / f"results/{name}-more.png").touch()
    (tmp_path / "results/quick").mkdir()
    write(tmp_path / "results/quick/geometry.json", experiment("geometry"))
    (text,) = sections(tmp_path)
    assert re.findall(r"### (.+)", text) == ["loss", "beams", "beam-length"]
    assert "| K | 2 | 2 |" in text and "| left open | x | – |" in text and "| n | – | 3 |" in text
    assert re.findall(r"\(\.\./results/(.+)\)", text) == [
        f"{name}-more.png" for name in ("loss", "beams", "beam-length")
    ]
    assert "rinted by" in text and "What it means: because." in text


def test_the_effort_of_an_experiment_stands_below_its_table(tmp_path: Path) -> None:
    few = experiment("beams", trainings=92, efforts=["4,096 × 128"])
    many = experiment("loss", trainings=5, efforts=[f"{k} × 8" for k in range(1, 6)])
    for record in (few, many):
        write(tmp_path / f"results/{record['name']}.json", record)
    (text,) = sections(tmp_path)
    assert "92 trainings (4,096 × 128 views), 1 seed, 3 s on CPU" in text
    assert "5 trainings (1 × 8 to 5 × 8 views)" in text


def test_every_figure_of_an_experiment_exists() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for picture in re.findall(r"\((\.\./results/.+?)\)", text):
        assert (ROOT / "docs" / picture).resolve().is_file(), REGENERATE


# --- the first screen --------------------------------------------------------------------------


def test_the_page_opens_with_a_summary_of_one_screen_and_its_contents() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    opening, contents = text.split("\n## The paper's questions")[0], text.split("\n## ")[3]
    assert opening.startswith("# Results\n\n## In short\n")
    assert opening.count("\n- **") == 6 and len(opening.split()) < 400
    headings = re.findall(r"^##+ (.+)$", text, re.MULTILINE)
    assert re.findall(r"^ *- \[(.+)\]", contents, re.MULTILINE) == headings[3:]


def test_every_long_table_has_a_sentence_that_says_what_to_look_for() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for part in re.split(r"^##+ ", text, flags=re.MULTILINE)[3:]:
        before, _, table = part.partition("\n| ")
        if table and len(re.findall(r"^\|", table, re.MULTILINE)) > 8:
            assert "What to look for: " in before, part.splitlines()[0]


def test_no_table_shows_fractions_of_the_views() -> None:
    """Shares are per cent: no column is called `within` or `flips` and has values below one."""
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *rows = [line.strip("| \n").split(" | ") for line in table.splitlines()]
        shares = [i for i, name in enumerate(head) if re.search("within|flips", name)]
        for cells in rows:
            for i in shares:
                assert re.search(r"%|points|^–$|^$", cells[i]), (head[i], cells[i])


def test_the_papers_questions_are_answered_in_ten_lines() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    part = text.split(f"\n## {QUESTIONS}\n")[1].split("\n## ")[0]
    assert re.findall(r"^(\d+)\. \*\*.+\?\*\* .+\)$", part, re.MULTILINE) == [
        str(number) for number in range(1, 11)
    ]


def test_answers_follow_from_the_results(tmp_path: Path) -> None:
    for mean, answer in ((9.2, "Yes"), (30.0, "No")):
        found = {"paper_equivalent": {"mean": mean}, "mean": {"mean": mean}}
        data = {"reproduction": {"coil100": found, "lfw": found}}
        (text,) = page.questions_section([{"name": "protocol", "data": data}])
        assert f"1. **Do its errors reproduce?** {answer}: with its optimizer" in text
        assert f"we measure {mean}° on COIL-100" in text


def test_the_images_that_are_saved_stand_beside_what_they_reach() -> None:
    claim = "canonicalisation lowers the sample complexity, against"
    reached = "images for what rotation augmentation reaches"
    ours = {
        f"{claim} a CNN with augmentation": "in part: the best is better with 9 images",
        f"{claim} a C8-equivariant CNN": "not confirmed: the best is worse with 9 images",
        f"{reached}, spatial transformer, ring": "about 3,600",
        f"{reached}, C8-equivariant CNN, augmentation": "about 1,700",
    }
    cell = {"images": 55812, "turned": {"mean": 0.837}}
    record = {"name": "samples", "ours": ours, "data": {"cells": {"augmented, 1": cell}}}
    (text,) = page.questions_section([record])
    assert "Compared with augmentation, in part; compared with an equivariant CNN, no." in text
    assert "has 83.7% after training on 55,812 images" in text
    assert "With the ring in front of it, about 3,600 give the same" in text


def test_training_photos_that_were_not_compared_are_named() -> None:
    coco = {"photos": 1000, "near": [{}, {}], "nearest_bits": 20, "same_by_eye": 1}
    pets = {"photos": 500, "near": [{}], "nearest_bits": 25, "same_by_eye": None}
    (text,) = page.overlap_section([{"n": 9, "against": {"coco": coco, "pets": pets}}])
    assert "of the 2 pairs within 26 bits that were looked at, 1 shows the same picture" in text
    assert "trained on 16 sources, of which 14 have not been compared" in text
    assert row(text, "pets") == "| pets | 500 | 1 | 25 | not looked at |"
    dogs = {"photos": 17000, "near": [{}], "nearest_bits": 0, "same_by_eye": 1}
    (text,) = page.overlap_section([{"n": 9, "against": {"dogs": dogs}}])
    assert "the 17,000 that could be brought were compared; the 1 test photos found" in text


def test_no_two_curves_look_alike() -> None:
    pictures = importlib.import_module("sections.pictures")
    looks = [pictures.look(series) for series in range(30)]
    assert len({(one["color"], one["marker"]) for one in looks}) == len(looks)


def test_what_bic_had_stands_beside_what_the_paper_had() -> None:
    recipe = {"model": {"num_beams": 32, "beam_length": 64}, "steps": 20000, "batch": 256}
    recipe |= {"learning_rate": 1e-3, "schedule": "one-cycle", "average": 0.999, "clip": 1.0}
    recipe |= {"weight_decay": 0.01, "augmentation": {"jitter": 0.1, "zoom": 0.0}}
    (text,) = page.settings_section([card("bic.coil100", training=recipe), card("ring")])
    assert row(text, "steps") == "| steps | not stated | 4,096 | 20,000 |"
    assert row(text, "beams") == "| beams | 32 | 16 | 32 |"
    assert row(text, "augmentation").endswith("| jitter 0.1 |")


def test_the_summary_compares_both_networks_over_seeds() -> None:
    def cell(mean: float) -> dict[str, Any]:
        return {"seeds": 3, "so2": {"mean": {"mean": mean, "std": 0.02}}}

    cells = {"leakfree-decoder": cell(0.5), "leakfree-batch": cell(3.25)}
    record = {"name": "staircase", "data": {"cells": cells}}
    (text,) = page.summary([], [], [record], [], [])
    assert "0.50° ± 0.02° against 3.25° ± 0.02° (3 seeds)" in text


# --- cards -------------------------------------------------------------------------------------


def test_a_model_has_its_protocol_and_its_split_beside_its_figures() -> None:
    (text,) = page.models_section(page.measured([card()]))
    assert row(text, "`ring.coil100`") == (
        "| `ring.coil100` | COIL-100, unseen objects 81–100 | leakfree | 540,000 | 300 "
        "| 2.00° [1.90, 2.10] | 1.25° | 6.50° | 3.50° | 90.0% | 97.5% | 0.50% |"
    )


def test_missing_figures_are_dashes() -> None:
    bare = {"name": "ring", "data": "photos", "metrics": {"leakfree": {"mean": 3.0}, "note": "no"}}
    (text,) = page.models_section(page.measured([bare, {"name": "nothing"}]))
    assert row(text, "`ring`").startswith(
        "| `ring` | everyday photos, one in fifty | leakfree | – | – | 3.00° |"
    )
    assert "nothing" not in text
    assert list(page.jpeg_section(page.measured([bare]))) == []
    assert list(page.risk_section(page.measured([bare]))) == []


def test_a_model_measured_on_other_data_says_so() -> None:
    other = card()
    other["metrics"] = {"leakfree_lfw": {**FIGURES, "data": "lfw", "protocol": "leakfree"}}
    (text,) = page.models_section(page.measured([other]))
    assert row(text, "`ring.coil100`", "LFW", "leakfree", "540,000")


def test_the_papers_claim_stands_in_the_column_of_its_own_measure() -> None:
    (text,) = page.paper_section(page.measured([card()]))
    claim = "| the paper's claim | paper, as printed | – | 13.0° | – | – | – | – |"
    assert row(text, "the paper's claim") == claim
    assert "training images included | 1,500 | 9.5° | 7.35° | 5.92° | 45% | 72% |" in text
    assert "leakfree; unseen objects 81–100 | 300 | 3.5° | 2.00° | 1.25° | 90.0%" in text
    assert "| LFW" not in text  # no model of ours to stand beside it


def test_jpeg_stands_beside_the_figure_without() -> None:
    (text,) = page.jpeg_section(page.measured([card()]))
    assert "leakfree | q90 | 2.00° | 2.50° | 1.25° | 1.25° | 97.5% | 97.5% |" in text
    assert "grows by a factor of 1.25" in text


def test_risk_is_read_at_three_coverages() -> None:
    (text,) = page.risk_section(page.measured([card()]))
    assert "2.00° | 97.5% | 1.60° | 98.0% | 1.00° | 98.8% | 3.0% |" in text


def test_objects_are_named_and_people_are_not() -> None:
    people = card("ring.lfw")
    people["data"] = {"name": "lfw"}
    people["metrics"]["leakfree"]["groups"] = {"Somebody": 9.0, "Else": 1.0}
    (text,) = page.groups_section(page.measured([card(), people]))
    assert "obj100 100.00°, obj99 99.00°, obj98 98.00°" in text
    assert "Somebody" not in text and "| 9.00° |" in row(text, "`ring.lfw`")


# --- results -----------------------------------------------------------------------------------


def test_side_by_side_is_ranked_by_the_mean() -> None:
    (text,) = page.side_by_side_section([run("bic", 3.0), run("ring", 1.0), run("resnet", 4.0)])
    assert text.index("| ring |") < text.index("| bic |") < text.index("| resnet |")
    assert "that of the others is 3.0 to 4.0 times as large" in text
    assert "2,500 steps of 512 views, 3 angles per test image, one GPU" in text


def test_ablation_starts_with_the_recipe_and_keeps_negative_results() -> None:
    runs = [run("48 beams", 1.0), run("worse one", 2.0), run("same", 1.1), run("better", 0.5)]
    (text,) = page.ablation_section(runs)
    order = [text.index(f"| {name} |") for name in ("48 beams", "better", "same", "worse one")]
    assert order == sorted(order)
    assert "| −0.50° |" in row(text, "better") and row(text, "better").endswith("| better |")
    assert row(text, "same").endswith("| no clear difference |")
    assert "of 3 changes, 1 better (better); 1 worse (worse one)" in text
    assert "negative result" in text


def test_leaks_are_in_order_with_a_true_minus() -> None:
    leaks = [leak("leakfree", "ring", "white", -0.012), leak("bilinear", "cnn", "white", 0.97)]
    (text,) = page.leaks_section(leaks)
    assert text.index("| bilinear") < text.index("| leak-free")
    assert "−0.012 [−0.032, +0.008]" in text and "standard deviation of 0.011" in text
    assert "equal figures" not in text


def test_canaries_that_gave_one_answer_are_called_out() -> None:
    leaks = [leak("leakfree", "cnn", noise, -0.01) for noise in ("white", "pink")]
    assert "(leakfree cnn on white, leakfree cnn on pink)" in importlib.import_module(
        "sections.leaks"
    ).leaks_mean(leaks)


def test_leaks_md_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="Expected '<!-- this table"):
        page.with_leak_table("# Leaks", [])


# --- pictures ----------------------------------------------------------------------------------


def test_the_curves_are_drawn_where_cards_have_them(tmp_path: Path) -> None:
    page.draw_risk_coverage(page.measured([{"name": "bic", "metrics": {}}]), tmp_path)
    assert list(tmp_path.iterdir()) == []
    page.draw_risk_coverage(page.measured([card()]), tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["risk-coverage.png", "risk-coverage.svg"]


def test_the_default_model_stands_beside_what_others_publish(tmp_path: Path) -> None:
    found = {"n": 9, "mean": 5.0, "median": 3.0, "within_5": 0.7, "within_10": 0.8, "flips": 0.02}
    found["surer_half_within_10"] = 0.95
    files = {**found, **{kind: found for kind in ("corners", "halved", "deblocked")}}
    files["turned"] = {"acted_on": 0.4, "acted_on_within_5": 0.9}
    files["upright"] = {"worse_than_it_came": 0.01}
    write(tmp_path / "radialbeams/zoo/general.json", card("general", end_to_end=files))
    text = page.results_page(tmp_path).split("\n## Everyday photos")[1].split("\n## ")[0]
    assert "| rotated on their own canvas | 9 | 5.00° | 3.00° | 70.0% | 80.0% | 2.0%" in text
    assert "| RightWayUp 1.0, ViT-L | 306,000,000 | 2.04° | 98.8% | – |" in text
    assert "Not the same views" in text and "we lose" in text


def test_the_gap_is_judged_by_its_goal() -> None:
    for regained, words in (
        (0.75, "always acting, regains 75% of the difference, which falls short"),
        (0.85, "always acting, regains 85% of the difference, which reaches"),
    ):
        text = gap_text(always=regained, decides=0.5, likely_turns=0.7, six_rotations=0.6)
        assert words in text
        assert "| `general`, always acting | 8 | 1 | 70.0% |" in text


def test_what_averaging_regains_is_told_with_its_cost() -> None:
    text = gap_text(always=0.75, decides=0.5, likely_turns=0.85, six_rotations=0.6)
    assert "averaged over likely turns, regains 85% of the difference, which reaches" in text
    assert "one turn regains 75%. The classifier then runs 1.5 times for each photo" in text
    assert "averaged without a model, regain 60%." in text
    assert (
        "| `general`, averaged over likely turns | 8 | 1.5 | 72.0% | 85% | 70% to 90% | 2.0% |"
        in text
    )
    assert (
        "| no model, averaged over six rotations | 8 | 6 | 71.0% | 60% | 70% to 90% | – |" in text
    )


def gap_text(**shares: float) -> str:
    accuracies = {"plain": 0.5, "ceiling": 0.8, "always": 0.7, "decides": 0.6}
    upright = {"lost": 0.01}
    one = {
        "n": 8,
        "accuracy": {**accuracies, "likely_turns": 0.72, "six_rotations": 0.71},
        "share_of_the_gap": {
            way: {"share": share, "interval": [0.7, 0.9]} for way, share in shares.items()
        },
        "runs_of_the_classifier": {"likely_turns": 1.5, "six_rotations": 6},
        "errors": {"within_10": 0.6},
        "upright": {"plain": 0.8, "decides": upright, "likely_turns": {"lost": 0.02}},
    }
    record = {"command": "c", "n": 9, "classifier": "x", "models": {"general": one}}
    (text,) = page.gap_section([record])
    return text
