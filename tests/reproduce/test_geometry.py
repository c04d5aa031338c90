"""The counts behind `reproduce geometry`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from radialbeams.nn.beams import count_pixels, margin, upper_bound
from radialbeams.reproduce import geometry, geometry_figures
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.reproduce.thumbnails import decode


def test_the_row_of_the_papers_setting() -> None:
    row = geometry.lemmas(32, 64, 1)
    assert row["cover_printed"] == pytest.approx(2790, abs=1)
    assert row["cover_corrected"] == 5568
    assert row["cover_angle"] == count_pixels(32, 64, 1)[0]
    for kind in ("printed", "corrected", "angle", "border"):
        assert row[f"cover_{kind}"] + row[f"over_{kind}"] == pytest.approx(32 * 3 * 64, abs=0.2)


def test_the_corrected_lemma_is_that_of_border_steps() -> None:
    for beams in (8, 16, 32, 64, 128):
        row = geometry.lemmas(beams, 64, 0)
        assert row["cover_border"] == row["cover_corrected"]
    assert geometry.lemmas(128, 64, 1)["cover_angle"] < geometry.lemmas(128, 64, 1)["cover_border"]


def test_readers_are_counted_beam_by_beam() -> None:
    counts, seen = geometry.readers(4, 6, 0, "angle")
    assert counts.sum() == 4 * 6
    assert counts.max() == 1  # four diagonals from four centre pixels never meet
    assert seen.shape == (4, 6)


def test_the_bound_is_where_border_steps_fill_the_square() -> None:
    found = geometry.limits(16, 1, "border")
    assert abs(found["full"] - upper_bound(16, 1)) <= 4
    assert geometry.limits(16, 1, "angle")["full"] > found["full"]


@pytest.mark.parametrize("size", [8, 28, 33])
def test_the_margin_is_enough_and_never_two_too_much(size: int) -> None:
    found = geometry.margins(size)
    assert found["paper"] == margin(size)
    assert found["centres"] <= found["paper"] <= found["centres"] + 1
    assert found["bilinear"] <= found["paper"] + 1


def test_length_a_reads_no_padding_and_is_shorter_than_it_must_be() -> None:
    found = geometry.padding_read(28)
    assert found["A"]["most"] == 0
    assert 0 < found["B"]["mean"] < found["C"]["mean"]
    assert found["A"]["length"] < found["longest_without"] < found["B"]["length"]


def test_the_drawing_needs_nothing_but_json() -> None:
    from radialbeams.reproduce import figures

    drawn = json.loads(json.dumps(geometry.drawing()))
    counts = decode(drawn["readers"])
    assert counts.sum() == drawn["beams"] * 3 * drawn["length"]
    with figures.style():
        assert len(geometry_figures.draw_beams(drawn).axes) == 5  # four panels and a colour bar


def test_the_lemmas_are_drawn_for_every_thickness(tmp_path: Path) -> None:
    from radialbeams.reproduce import figures

    data = {
        "by_beams": [geometry.lemmas(b, 64, e) for e in geometry.EPSILONS for b in (8, 32)],
        "by_length": [geometry.lemmas(32, d, e) for e in geometry.EPSILONS for d in (32, 64)],
        "bounds": [
            {"spacing": spacing, **geometry.limits(8, 1, spacing)} for spacing in geometry.SPACINGS
        ],
        "margins": [geometry.margins(28)],
        "padding": [geometry.padding_read(28)] * 2,
    }
    with figures.style():
        figure = geometry_figures.draw_lemmas(json.loads(json.dumps(data)))
        files = figures.save(figure, tmp_path / "lemmas", quick=True)
    assert all(path.stat().st_size > 1000 for path in files)
    drawn = {tuple(np.asarray(line.get_ydata()).tolist()) for line in figure.axes[0].get_lines()}
    assert tuple(r["cover_angle"] for r in data["by_beams"][:2]) in drawn


def test_it_is_registered_without_trainings() -> None:
    assert geometry.EXPERIMENT.trainings(ReproduceSettings()) == []
