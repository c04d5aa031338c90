"""`reproduce orbit`: which beams see the same, loops, and what the figure may show."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SIZE, TINY_RING, beams_of, easy_images

from radialbeams.nn.architectures import build
from radialbeams.nn.bic import BIC
from radialbeams.reproduce import homology, orbit
from radialbeams.reproduce.settings import ReproduceSettings

STEPS = np.arange(32) * 2 * math.pi / 32
CIRCLE = np.stack((np.cos(STEPS), np.sin(STEPS)), axis=1)

# --- loops ---


def test_a_circle_is_one_loop_with_the_birth_and_death_of_its_chords() -> None:
    bars = homology.loops(CIRCLE[::2])  # sixteen steps
    assert len(bars) == 1
    birth, death = bars[0]
    assert birth == pytest.approx(2 * math.sin(math.pi / 16))
    # Three chords that enclose the centre, the shortest longest of them: 6 steps of 16.
    assert death == pytest.approx(2 * math.sin(6 * math.pi / 16))


def test_a_square_is_a_loop_until_its_diagonals_fill_it() -> None:
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=float)
    assert homology.loops(square) == [(pytest.approx(1), pytest.approx(math.sqrt(2)))]


def test_points_on_a_line_or_three_of_them_have_no_loop() -> None:
    assert homology.loops(np.arange(10.0)[:, None]) == []
    assert homology.loops(CIRCLE[:3]) == []
    assert homology.one_circle(CIRCLE[:3]) == 0


def test_two_circles_are_not_one() -> None:
    apart = np.concatenate((CIRCLE, CIRCLE + 10))
    first, second = homology.loops(apart)[:2]
    assert first == pytest.approx(second)
    assert homology.one_circle(apart) == pytest.approx(0, abs=1e-9)


def test_one_circle_is_high_for_circles_and_low_for_clouds() -> None:
    rng = np.random.default_rng(0)
    # In many dimensions, and not round: what counts is the topology.
    bent = CIRCLE @ rng.normal(size=(2, 40)) + rng.normal(0, 0.02, (32, 40))
    assert homology.one_circle(bent) > 0.6
    assert homology.one_circle(rng.normal(size=(32, 40))) < 0.1


def test_distances_survive_an_offset() -> None:
    assert homology.pairwise(CIRCLE + 1e6)[0, 16] == pytest.approx(2)


# --- the orbit ---


def test_after_quarter_turns_the_same_direction_has_the_same_embedding(tiny_model: BIC) -> None:
    found = orbit.orbit(tiny_model, easy_images(1).images[0], every=2)  # 8 beams: quarter turns
    assert found.points.shape == (4 * 8, 16)
    upright = found.points[found.turns == 0]
    for turn in (2, 4, 6):
        here = found.turns == turn
        assert found.points[here] == pytest.approx(upright[found.directions[here]], abs=1e-5)
    assert np.abs(upright - upright[found.directions[found.turns == 2]]).max() > 1e-3


def test_the_ring_has_no_beams_by_themselves() -> None:
    with pytest.raises(ValueError, match="Expected the paper's network"):
        orbit.orbit(build(TINY_RING), torch.zeros(3, 32, 32, dtype=torch.uint8))


def made(points: np.ndarray, turns: int) -> orbit.Orbit:
    count = len(points)
    directions = np.tile(np.arange(count), turns)
    return orbit.Orbit(np.tile(points, (turns, 1)), np.repeat(np.arange(turns), count), directions)


def test_one_point_is_drawn_for_each_direction_and_from_several_turns() -> None:
    found = made(CIRCLE, 4)
    numbered = orbit.Orbit(
        np.stack((found.directions, found.turns), axis=1), found.turns, found.directions
    )
    points = orbit.drawn(numbered, 0)
    assert points[:, 0].tolist() == list(range(32))
    assert set(points[:, 1]) == {0, 1, 2, 3}


def test_a_circle_is_found_and_is_gone_when_shuffled() -> None:
    rng = np.random.default_rng(0)
    found = made((CIRCLE @ rng.normal(size=(2, 12))).astype(np.float32), 4)
    there = orbit.measures(found, 2)
    assert there["circle"] > 0.7
    assert there["order"] == 1
    assert there["coordinate"] < 2
    shuffled = found.shuffled(0)
    assert sorted(shuffled.points[:, 3]) == sorted(found.points[:, 3])
    gone = orbit.measures(shuffled, 2)
    assert gone["circle"] < 0.4
    assert gone["order"] < 0.3
    assert gone["coordinate"] > 50


def test_a_curve_that_goes_around_twice_has_no_circular_coordinate() -> None:
    twice = np.stack((np.cos(2 * STEPS), np.sin(2 * STEPS)), axis=1)
    assert orbit.coordinate(twice) == pytest.approx(90, abs=10)
    assert orbit.coordinate(CIRCLE) < 2


def test_a_layout_is_small_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setitem(orbit.TSNE, "perplexity", 5)
    monkeypatch.setitem(orbit.TSNE, "max_iter", 250)
    x, y = orbit.layout(made(CIRCLE.astype(np.float32), 2))
    assert len(x) == len(y) == 64
    assert min(x) == min(y) == 0
    assert max(*x, *y) == orbit.GRID


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orbit, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"scikit-learn.*\.\[experiments\]"):
        orbit.run(ReproduceSettings(quick=True), {})


# --- what was found ---


def cells(circle: float, fits: tuple[float, float, float, float]) -> list[dict[str, object]]:
    """The loop of the trained network, and the coordinate's error for each kind."""

    def values(mean: float) -> dict[str, object]:
        return {"mean": mean, "std": 0.01, "values": [mean] * 4}

    return [
        {
            "data": data,
            "kind": kind,
            "circle": values(circle if kind == "trained" else 0.02),
            "order": values(0.5),
            "coordinate": values(fit),
        }
        for data in orbit.DATA
        for kind, fit in zip(orbit.KINDS, fits, strict=True)
    ]


def test_the_sentence_says_whether_there_is_a_circle_and_whether_it_was_learned() -> None:
    learned = orbit.sentence(cells(0.9, (5, 20, 20, 90)))
    assert (
        "is one circle: it scores 0.90 of at most 0.94, and shuffled points score 0.02" in learned
    )
    assert "error of 5°, better than before training and from the beams' pixels" in learned
    traces = orbit.sentence(cells(0.1, (20, 20, 10, 90)))
    assert "only traces of a loop" in traces
    assert "no better than without learning" in traces
    assert "is not a circle: it scores 0.02" in orbit.sentence(cells(0.02, (5, 20, 20, 90)))


def test_a_row_counts_its_image_once_however_many_seeds() -> None:
    rows = [
        {"data": "lfw", "kind": "trained", "image": i, "circle": c, "order": 1.0, "coordinate": 9.0}
        for i, c in ((0, 0.2), (0, 0.4), (1, 0.6))
    ]
    rows += [
        {"data": data, "kind": kind, "image": 0, "circle": 0.1, "order": 0.1, "coordinate": 9.0}
        for data in orbit.DATA
        for kind in orbit.KINDS
        if (data, kind) != ("lfw", "trained")
    ]
    found = orbit.find(orbit.table(rows), "lfw", "trained")
    assert found["circle"]["values"] == pytest.approx([0.3, 0.6])


def test_trainings_are_the_paper_s() -> None:
    for training in orbit.trainings(ReproduceSettings()):
        recipe = training.recipe
        assert (recipe.group, recipe.prior) == ("cyclic", "off")
        assert beams_of(recipe.model).num_beams == 64
        assert (recipe.steps, recipe.learning_rate, recipe.batch) == (4096, 1e-4, 128)
        assert training.keep


def test_figures_come_from_json_and_show_no_faces(tmp_path: Path) -> None:
    from radialbeams.reproduce import figures

    rng = np.random.default_rng(0)
    layouts = []
    for data in orbit.DATA:
        for kind in ("trained", "untrained"):
            one = {"data": data, "kind": kind, "image": 0, "directions": list(range(64))}
            one["places"] = rng.integers(0, 1000, (2, 64)).tolist()
            if data == "coil100":
                one["picture"] = orbit._small(easy_images(1, size=SIZE).images[0])
            layouts.append(one)
    table = cells(0.7, (5, 20, 20, 90))
    record = {"data": {"beams": 64, "layouts": layouts, "table": table}}
    with figures.style():
        drawn = orbit.draw(json.loads(json.dumps(record)))
        for suffix, figure in drawn.items():
            figures.save(figure, tmp_path / f"orbit{suffix}", quick=True)
    assert set(drawn) == {"", "circle"}
    # Every layout has its key of colours; a picture is in it for COIL-100 only.
    keys = [axes.child_axes[0] for axes in drawn[""].axes]
    assert [bool(key.images) for key in keys] == [True, True, False, False]
    assert all(key.collections for key in keys)


def test_faces_are_never_kept(tiny_model: BIC, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orbit, "layout", lambda found: [[0], [0]])
    images = easy_images(2).images
    monkeypatch.setattr(orbit, "_untrained", lambda training, device: tiny_model)
    for training in orbit.trainings(ReproduceSettings(quick=True)):
        kept = orbit.layouts_of(training, tiny_model, images, ReproduceSettings(quick=True))
        assert all(("picture" in one) == (training.recipe.data == "coil100") for one in kept)
