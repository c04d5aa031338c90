"""Further looks at unsure pictures: at quarter turns of one square, or at both ends."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from PIL import Image

from radialbeams import Canonicalizer, images
from radialbeams.cards import Card, Looks, NetworkCard, ViewProtocol
from radialbeams.further_looks import looked_again
from radialbeams.images.drawn import drawn
from radialbeams.images.views import view
from radialbeams.posterior import Answer, Calibration, read_posterior

BINS, SIDE = 8, 4
PROTOCOL = ViewProtocol("leakfree", parent_size=48, sigma=1.1, reach=0.95)


def card(**looks: float) -> Card:
    network = NetworkCard("convolutional", "posterior", SIDE, 3, BINS)
    rule = Looks(**looks) if looks else None
    return Card(network, {}, PROTOCOL, calibration=Calibration(1.0, 0.0), looks=rule)


def bright_corner(quarter: int) -> np.ndarray:
    """A view that shows how often it was rotated by 90°, counter-clockwise."""
    shown = np.zeros((3, SIDE, SIDE), np.float32)
    shown[:, 0, -1] = 1
    return np.rot90(shown, quarter, (-2, -1)).copy()


class Seer:
    """A network that sees the bright corner, as surely as it is told to."""

    def __init__(self, sharpness: float = 2.0) -> None:
        self.sharpness = sharpness
        self.seen = 0

    def __call__(self, views: Any) -> list[Any]:
        self.seen += len(views)
        corners = views[:, 0][:, [0, 0, -1, -1], [-1, 0, 0, -1]]
        logits = np.zeros((len(views), BINS), np.float32)
        logits[np.arange(len(views)), 2 * corners.argmax(1)] = self.sharpness
        return [logits, np.zeros_like(logits)]


def again(made: Card, views: Any, ends: list[Any], seer: Seer) -> list[Answer]:
    outputs = seer(views)
    seer.seen = 0
    first = read_posterior(outputs[0], outputs[1], *made.calibration)
    makers = [None if end is None else partial(np.copy, end) for end in ends]
    return looked_again(made, seer, views, outputs, first, makers)


@pytest.mark.parametrize("quarter", range(4))
def test_looks_at_both_ends_agree_once_they_are_turned_back(quarter: int) -> None:
    views, seer = bright_corner(quarter)[None], Seer()
    ends = [np.stack([bright_corner(quarter)] * 2)]
    rule = card(below=0.0, oblong_below=1.0)
    (answer,) = again(rule, views, ends, seer)
    assert seer.seen == 2
    assert answer.angle_degrees == pytest.approx(90 * quarter)
    once = read_posterior(*seer(views))[0]
    assert answer.confidence == pytest.approx(once.confidence)


def test_both_ends_may_overrule_the_middle() -> None:
    ends = [np.stack([bright_corner(1)] * 2)]
    (answer,) = again(card(below=0.0, oblong_below=1.0), bright_corner(0)[None], ends, Seer())
    assert answer.angle_degrees == pytest.approx(90)


def test_each_kind_of_picture_has_its_rule() -> None:
    views = np.stack([bright_corner(0)] * 2)
    ends = [None, np.stack([bright_corner(0)] * 2)]
    for looks, seen in (
        ({"below": 1.0, "oblong_below": 1.0}, 3 + 2),
        ({"below": 1.0, "oblong_below": 0.0}, 3),
        ({"below": 0.0, "oblong_below": 1.0}, 2),
        ({"below": 1.0}, 3 + 3),  # without a rule for ends, they count as square
        ({}, 0),
    ):
        seer = Seer()
        assert len(again(card(**looks), views, ends, seer)) == 2
        assert seer.seen == seen, looks


def test_what_looks_drawn_is_seen_again_even_if_it_seems_sure() -> None:
    noisy = np.random.default_rng(0).uniform(0.4, 0.5, (3, SIDE, SIDE)).astype(np.float32)
    views = np.stack([bright_corner(0), noisy, bright_corner(0)])
    assert drawn(views[0]) > 0.7 > drawn(noisy)
    ends = [None, None, np.stack([bright_corner(0)] * 2)]  # an oblong picture has its own rule
    for looks, seen in (({"drawn": 0.7}, 3), ({"drawn": 10.0}, 0), ({}, 0)):
        seer = Seer()
        again(card(below=0.0, oblong_below=0.0, **looks), views, ends, seer)
        assert seer.seen == seen, looks


def test_the_default_model_looks_again_at_drawings() -> None:
    looks = Canonicalizer("general", threads=1).card.looks
    assert looks is not None and looks.drawn is not None


def test_a_temperature_of_its_own_sharpens_what_was_averaged() -> None:
    ends, views = [np.stack([bright_corner(0)] * 2)], bright_corner(0)[None]
    usual, sharper = (
        again(card(below=0.0, oblong_below=1.0, **more), views, ends, Seer())[0].confidence
        for more in ({}, {"oblong_temperature": 0.5})
    )
    assert usual is not None and sharper is not None and sharper > usual + 0.1


# --- the squares at the ends, and their views ---


def noise(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(pixels)


@pytest.mark.parametrize("size", [(96, 60), (60, 96)])
def test_the_ends_are_the_outermost_squares(size: tuple[int, int]) -> None:
    picture = noise(*size)
    found = images.ends(picture, 48)
    assert found is not None
    width, height = size
    first, last = picture.crop((0, 0, 60, 60)), picture.crop((width - 60, height - 60, *size))
    for one, square in zip(found, (first, last), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(square))
    views = images.views_of(found, PROTOCOL, 40, 3)
    np.testing.assert_array_equal(views[1], view(last, PROTOCOL, 40, 3))


def test_large_ends_are_reduced_and_give_the_same_views() -> None:
    picture = noise(300, 200)
    found = images.ends(picture, 48)
    assert found is not None and found[0].size == (48, 48)
    expected = view(picture.crop((100, 0, 300, 200)), PROTOCOL, 40, 3)
    np.testing.assert_array_equal(images.views_of(found, PROTOCOL, 40, 3)[1], expected)


@pytest.mark.parametrize(
    ("size", "has_ends"), [((60, 60), False), ((65, 60), False), ((66, 60), True), ((60, 66), True)]
)
def test_only_oblong_pictures_have_ends(size: tuple[int, int], has_ends: bool) -> None:
    assert (images.ends(noise(*size), 48) is not None) is has_ends


@pytest.mark.parametrize("colour", ["black", "white"])
def test_filled_corners_give_nothing_away(colour: str) -> None:
    """The square in the middle of a rotated photo shows no fill; those at its ends would."""
    photo = noise(96, 60)
    assert images.ends(photo, 48) is not None
    for degrees in (10, 45, 100):
        assert images.ends(photo.rotate(degrees, fillcolor=colour), 48) is None
    assert images.ends(photo.convert("RGBA").rotate(30), 48) is None


def oblong_file() -> bytes:
    file = io.BytesIO()
    noise(300, 200).save(file, "PNG")
    return file.getvalue()


def test_of_an_oblong_file_the_default_model_sees_the_ends() -> None:
    model = Canonicalizer("general", threads=1, documents=False)
    assert model.card.looks is not None and model.card.looks.oblong_below is not None
    look = model.look(oblong_file())
    assert look.ends is not None
    runs, own = [], model._run
    model._run = lambda views: (runs.append(len(views)), own(views))[1]  # type: ignore
    (seen,) = model.answers_from_looks([look])
    assert runs == [1, 2]  # it is unsure of noise
    assert model.answers([oblong_file()])[0].angle_degrees == seen.angle_degrees
    model.card = replace(model.card, looks=replace(model.card.looks, oblong_below=None))
    assert model.look(oblong_file()).ends is None


def test_a_list_of_pictures_does_not_keep_their_views() -> None:
    _, looks = Canonicalizer("general", threads=1).answers_and_looks([oblong_file()] * 2)
    assert all(look.view is None and look.ends is None for look in looks)


def test_several_turned_views_of_one_picture_need_no_ends() -> None:
    assert Canonicalizer("general", threads=1, refine=2).look(oblong_file()).ends is None
