"""A finished run leaves a page that shows how it went."""

from __future__ import annotations

import re
from pathlib import Path

from radialbeams.cards import parse
from radialbeams.training.report import write_report

FIGURES = {
    "n": 1200,
    "mean": 1.25,
    "mean_low": 1.0,
    "mean_high": 1.5,
    "median": 1.0,
    "p90": 3.0,
    "rmse": 2.0,
    "within_2": 0.8,
    "protocol": "leakfree",
    "p95": 4.0,
    "paper_equivalent": 2.0,
    "within_5": 0.97,
    "within_10": 0.99,
    "flips": 0.001,
}
CONFIG = {"view_size": 57, "channels": 3, "num_beams": 48, "decoder": "ring"}
CARD = {
    "config": CONFIG,
    "protocol": {"name": "leakfree", "parent_size": 128},
    "name": "mine <b>",
    "parameters": 1000,
    "data": {"name": "folder", "training_images": 40},
    "training": {"steps_done": 100, "seconds": 3.0},
    "metrics": {"leakfree": FIGURES},
}


def test_the_page_names_the_protocol_beside_the_figures(tmp_path: Path) -> None:
    lines = [{"step": 50, "epoch": 1, "circle_loss": 2.0}, {"step": 50, "held_out": {}}]
    lines += [{"step": 100, "epoch": 2, "circle_loss": 0.01}]
    write_report(tmp_path / "report.html", parse(CARD), lines)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "leakfree" in page and "1.25°" in page and "97.0%" in page
    assert "mine &lt;b&gt;" in page and "<b>" not in page
    (points,) = re.findall(r'<polyline points="([^"]+)"', page)
    assert len(points.split()) == 2


def test_a_run_of_one_line_has_no_curve(tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", parse(CARD), [{"step": 1, "epoch": 1, "circle_loss": 2.0}])
    assert "Too short" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_training_leaves_one(finished_run: Path) -> None:
    assert (finished_run / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
