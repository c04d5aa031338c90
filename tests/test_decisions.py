"""What becomes of a picture: turned by which angle, or left alone for which reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radialbeams.decisions import ROTATED, Decision, Surroundings, by_hand, decide, nearest_quarter
from radialbeams.defaults import ALWAYS, Snap
from radialbeams.posterior import Answer, Thresholds, quarter_masses, signed

LEAST = Thresholds(confidence=0.9, angle=1.0, upright=0.02, quarter=0.98, exact=0.02)
PLAIN = Surroundings(plain=True)


def answer(angle: float, sharp: float = 1.0, **fields: object) -> Answer:
    """All mass in the direction nearest to the angle, or only a share, the rest on the circle."""
    posterior = np.full(72, (1 - sharp) / 72, dtype=np.float32)
    posterior[round(angle / 5) % 72] += sharp
    off = abs((angle + 45) % 90 - 45)
    chances = {
        "confidence": sharp,
        "symmetry": 1,
        "upright": sharp * (abs(signed(angle)) <= 5),
        "exact": sharp * (off <= 5),
    }
    return replace(Answer(angle, posterior=posterior), **{**chances, **fields})


def outcome(found: Decision) -> tuple[float | None, str | None]:
    return found.turn, found.source or found.reason


@pytest.mark.parametrize(
    ("angle", "expected"),
    [
        (91.4, (90.0, "quarter")),
        (177.0, (180.0, "quarter")),
        (274.9, (270.0, "quarter")),
        (3.0, (None, "upright already")),
        (358.0, (None, "upright already")),
        (40.0, (None, "unsure")),  # no whole picture lies like that
        (100.0, (None, "unsure")),
    ],
)
def test_of_a_picture_that_fills_its_canvas_the_quarter_is_the_answer(
    angle: float, expected: tuple[float | None, str]
) -> None:
    assert outcome(decide(answer(angle), LEAST)) == expected


def test_a_sure_quarter_is_enough_where_the_angle_is_not_sure() -> None:
    posterior = np.zeros(72, dtype=np.float32)
    posterior[[14, 16, 18, 20, 22]] = 0.2  # 70° to 110°
    unsure = Answer(100.0, 0.4, 1, posterior, 0.0, 0.2)
    assert outcome(decide(unsure, LEAST)) == (90.0, "quarter")
    assert outcome(decide(unsure, LEAST, "none")) == (None, "unsure")
    found = decide(unsure, LEAST)
    assert (found.measure, found.value, found.threshold) == ("quarter", pytest.approx(1.0), 0.98)


def test_a_picture_that_contradicts_its_own_rectangle_is_left_alone() -> None:
    found = decide(answer(100.0, exact=0.01), LEAST)
    assert (found.turn, found.measure, found.value) == (None, "exact", 0.01)
    assert outcome(decide(answer(100.0, exact=0.03), LEAST)) == (90.0, "quarter")
    assert outcome(decide(answer(100.0), replace(LEAST, tilts=True))) == (100.0, "angle")


@pytest.mark.parametrize(
    ("angle", "expected"),
    [(40.0, (40.0, "angle")), (92.0, (90.0, "quarter")), (100.0, (100.0, "angle"))],
)
def test_an_object_on_plain_ground_lies_at_any_angle(
    angle: float, expected: tuple[float | None, str]
) -> None:
    assert outcome(decide(answer(angle), LEAST, around=PLAIN)) == expected


@pytest.mark.parametrize(("frame", "turn"), [(38.5, 38.5), (-41.0, 49.0), (44.0, 44.0)])
def test_the_rectangle_gives_the_angle_and_the_model_the_quarter(frame: float, turn: float) -> None:
    found = answer(turn + 4)
    assert outcome(decide(found, LEAST, around=Surroundings(frame))) == (turn, "frame")
    assert outcome(decide(answer(turn + 184), LEAST, around=Surroundings(frame))) == (
        turn + 180,
        "frame",
    )
    assert outcome(decide(found, LEAST, "none", Surroundings(frame))) == (turn + 4, "angle")


def test_a_picture_that_is_tilted_inside_its_rectangle_is_turned_by_its_own_angle() -> None:
    assert outcome(decide(answer(60.0), LEAST, around=Surroundings(38.0))) == (60.0, "angle")
    shy = answer(60.0, 0.5)
    assert outcome(decide(shy, replace(LEAST, confidence=0.55), around=Surroundings(38.0))) == (
        38.0,
        "frame",
    )


@pytest.mark.parametrize("frame", [-32.0, -13.3, 8.3, 45.0])
@pytest.mark.parametrize("angle", [0.0, 0.3, 1.5, 356.0])
@pytest.mark.parametrize("sharp", [1.0, 0.8])
def test_a_picture_that_was_turned_back_is_not_turned_by_its_cut_corners(
    frame: float, angle: float, sharp: float
) -> None:
    """Turned back by a, its corners are those of a picture that was rotated by −a."""
    found = decide(answer(angle, sharp), LEAST, around=Surroundings(frame, cut=True))
    assert outcome(found) == (None, "upright already")
    assert found.measure == "frame" and found.value is not None and found.value < 0.5


def test_a_cut_rectangle_must_be_clearly_more_probable_than_an_upright_picture() -> None:
    def between(towards: float) -> Answer:
        """The rest of the mass lies at 0°."""
        posterior = np.zeros(72, dtype=np.float32)
        posterior[[0, 2]] = (1 - towards, towards)
        return Answer(10.0, 0.95, 1, posterior, 1 - towards, 1 - towards)

    cut = Surroundings(10.0, cut=True)
    assert outcome(decide(between(0.9), LEAST, around=cut)) == (10.0, "frame")
    found = decide(between(0.6), LEAST, around=cut)
    assert (found.action, found.measure, found.threshold) == ("unsure", "frame", ROTATED)
    assert found.value == pytest.approx(0.6)
    assert outcome(decide(between(0.6), ALWAYS, around=cut)) == (10.0, "frame")
    assert outcome(decide(answer(1.0, 0.5), ALWAYS, around=cut)) == (1.0, "angle")
    assert outcome(decide(answer(25.0), LEAST, around=Surroundings(-2.0, cut=True))) == (
        *(25.0, "angle"),  # tilted inside its rectangle, and certainly not upright
    )


def test_a_levelled_picture_is_not_tilted_by_its_rectangle_again() -> None:
    """On an enlarged canvas too: the content was tilted in its rectangle, and was turned back."""
    found = decide(answer(0.0, 0.8), LEAST, around=Surroundings(-19.6))
    assert outcome(found) == (None, "upright already")
    assert outcome(decide(answer(340.0), LEAST, around=Surroundings(-19.6))) == (340.4, "frame")


def test_a_sure_tilt_of_a_picture_that_fills_its_canvas_is_the_reason() -> None:
    for angle in (39.8, 30.0):  # whatever the probability of its nearest quarter
        found = decide(answer(angle, 0.987, exact=0.001), LEAST)
        assert (found.action, found.measure, found.value) == ("unsure", "exact", 0.001)
    assert decide(answer(39.8, 0.3, exact=0.01), LEAST).measure == "quarter"


def test_beyond_the_first_quarter_a_cut_rectangle_counts_as_any_other() -> None:
    cut = Surroundings(8.0, cut=True)
    assert outcome(decide(answer(97.0), LEAST, around=cut)) == (98.0, "frame")


def test_a_model_without_a_posterior_takes_the_nearer_of_upright_and_cut_rectangle() -> None:
    cut = Surroundings(10.0, cut=True)
    assert outcome(decide(Answer(7.0, 0.95), LEAST, around=cut)) == (10.0, "frame")
    assert outcome(decide(Answer(3.0, 0.95), LEAST, around=cut)) == (None, "upright already")


@pytest.mark.parametrize("angle", [0.07, 0.29, 359.2])
def test_no_rectangle_makes_a_turn_below_the_least_angle(angle: float) -> None:
    for cut in (False, True):
        around = Surroundings(-30.0, cut)
        assert outcome(decide(answer(angle), LEAST, around=around)) == (None, "upright already")
        found = decide(answer(angle), replace(LEAST, tilts=True), around=around)
        assert outcome(found) == (None, "upright already")
        assert (found.measure, found.threshold) == ("angle", LEAST.angle)


@pytest.mark.parametrize("snap", ["auto", "90", "none"])
def test_each_reason_has_its_own_name(snap: Snap) -> None:
    assert decide(answer(40.0, 0.3), LEAST, snap).reason == "unsure"
    assert decide(answer(40.0, 0.3, symmetry=0), LEAST, snap).reason == "no up"
    assert decide(answer(0.4), LEAST, snap).reason == "upright already"
    page = answer(90.0, 0.3, kind="document")
    assert decide(page, LEAST, snap).reason == "document without a clear quarter"
    assert decide(page, LEAST, snap).action == "unsure"
    assert decide(answer(0.4), LEAST, snap).action == "left"


def test_each_reason_has_its_number_and_its_threshold() -> None:
    for found in (
        decide(answer(40.0, 0.3), LEAST),
        decide(answer(0.4), LEAST, "none"),
        decide(answer(40.0, 0.3, kind="document"), LEAST),
        decide(answer(40.0, 0.3), LEAST, around=Surroundings(38.0)),
    ):
        assert found.value is not None and found.threshold > 0


def test_a_page_is_levelled_by_its_angle_and_snaps_only_when_straight() -> None:
    assert outcome(decide(answer(92.3, kind="document"), LEAST)) == (92.3, "angle")
    assert outcome(decide(answer(90.3, kind="document"), LEAST)) == (90.0, "quarter")
    assert outcome(decide(answer(0.3, kind="document"), LEAST)) == (None, "upright already")


def test_without_thresholds_every_picture_is_turned() -> None:
    assert outcome(decide(answer(40.0, 0.05, symmetry=0), ALWAYS)) == (40.0, "angle")
    assert outcome(decide(answer(3.0, 0.05), ALWAYS)) == (3.0, "angle")


@pytest.mark.parametrize(
    ("angle", "confidence", "snap", "expected"),
    [
        (40.0, None, "auto", (40.0, "angle")),  # the paper's network knows no confidence
        (92.0, None, "auto", (90.0, "quarter")),
        (40.0, 0.8, "auto", (None, "unsure")),
        (44.0, 0.99, "90", (None, "upright already")),
        (46.0, 0.99, "90", (90.0, "quarter")),
        (0.6, 0.95, "none", (None, "upright already")),
    ],
)
def test_a_model_without_a_posterior_counts_as_sure_of_its_quarter(
    angle: float, confidence: float | None, snap: Snap, expected: tuple[float | None, str]
) -> None:
    assert outcome(decide(Answer(angle, confidence), LEAST, snap)) == expected


def test_what_may_be_upright_already_is_left_alone() -> None:
    assert decide(Answer(90.0, 0.95, upright=0.03), LEAST, "none").action == "unsure"
    assert decide(Answer(90.0, 0.95, upright=0.005), LEAST, "none").action == "turned"


def test_an_angle_by_hand_is_applied_as_it_is() -> None:
    assert outcome(by_hand(12.5)) == (12.5, "hand")
    assert outcome(by_hand(270.0)) == (270.0, "quarter")
    assert outcome(by_hand(None)) == (None, "upright already")


def test_the_mass_of_the_four_quarters() -> None:
    posterior = np.zeros(8, dtype=np.float32)
    posterior[[0, 1, 2]] = (0.5, 0.2, 0.3)  # 0°, 45° on the border, 90°
    assert quarter_masses(posterior).tolist() == pytest.approx([0.6, 0.4, 0, 0])
    assert quarter_masses(posterior, 45.0).tolist() == pytest.approx([0.6, 0.15, 0, 0.25])
    assert nearest_quarter(Answer(0.0, posterior=posterior)) == (0, pytest.approx(0.6))


@pytest.mark.parametrize(("angle", "expected"), [(0, 0), (180, 180), (181, -179), (357.9, -2.1)])
def test_signed_angles(angle: float, expected: float) -> None:
    assert signed(angle) == pytest.approx(expected)
