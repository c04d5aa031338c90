"""Reasons not to trust a run. They are stored on its card, and `upright` then turns nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from radialbeams.cards import Card, Evaluation
from radialbeams.training.thresholds import LARGEST_ANGLE

LEAST_HELD_OUT = 8  # images; from here on at most a third may be wrong if none of them was
CHANCE = 90.0  # degrees: the mean error of guessing
NEAR_CHANCE = 45.0  # degrees
LEAST_RIGHT = 0.3  # share of views within 10°; guessing gives 0.06
SYMMETRIC = 0.3  # share of the images or groups that have no single up
# Both are measured on one half of the held-out images with what was fitted on the other, so with
# few images they come out too large rather than too small.
CALIBRATION_ERROR = 0.1
UNSEEN = {"expected_error": "images", "expected_error_by_object": "groups"}
UPRIGHT_WORSE = 0.02  # share of the upright images that `upright` may make worse
MORE = " More images, or a longer training, help."
CROOKED = 0.3  # share of the images that are not upright themselves


class Ambiguous(Protocol):
    """An image or a group without a single up."""

    @property
    def name(self) -> str: ...
    @property
    def pixel_order(self) -> int: ...  # of its symmetry; 0: no direction stands out


def reasons(
    card: Card,
    figures: Evaluation,
    held_out: int,
    *,
    ambiguous: Sequence[Ambiguous] = (),
    units: int = 0,  # images or groups that were checked for a single up
    crooked: int = 0,
    images: int = 0,  # that were checked for being upright
    memorised: bool = False,
) -> tuple[str, ...]:
    """All reasons against acting on this model's answers; empty if there are none."""
    symmetric = list(_symmetric(ambiguous, units))
    return (
        *_few(held_out),
        *symmetric,
        *_crooked(crooked, images),
        *_chance(figures, memorised and not symmetric),
        *_no_threshold(card),
        *_advised(list(_unreliable(card)), "" if symmetric else MORE),
    )


def _few(held_out: int) -> Iterator[str]:
    if held_out < LEAST_HELD_OUT:
        yield (
            f"Only {held_out} images were held out; {LEAST_HELD_OUT} are the least that say "
            "anything about new ones."
        )


def _chance(figures: Evaluation, memorised: bool) -> Iterator[str]:
    if figures.mean < NEAR_CHANCE and figures.within_10 >= LEAST_RIGHT:
        return
    text = (
        f"Its mean error of {figures.mean:.0f}° is near chance ({CHANCE:.0f}°): "
        f"{figures.within_10:.0%} of the answers are within 10°."
    )
    if memorised:
        text += (
            " It knows the training images but not the held-out ones: the images are probably not "
            "upright, or have no up in common."
        )
    yield text


def _symmetric(ambiguous: Sequence[Ambiguous], units: int) -> Iterator[str]:
    if not units or len(ambiguous) < SYMMETRIC * units:
        return
    orders = sorted({one.pixel_order for one in ambiguous})
    looks = "at every angle" if orders[0] == 0 else f"when turned by {360 // orders[0]}°"
    names = ", ".join(one.name for one in ambiguous[:3])
    more = f" and {len(ambiguous) - 3} more" if len(ambiguous) > 3 else ""
    yield (
        f"The data is symmetric: {len(ambiguous)} of {units} look the same {looks} "
        f"({names}{more}), so no single angle is right."
    )


def _crooked(crooked: int, images: int) -> Iterator[str]:
    if images and crooked >= CROOKED * images:
        yield (
            f"The images are not upright: {crooked} of {images} are turned themselves. "
            "Straighten them, or train with --realign."
        )


def _advised(reasons: list[str], advice: str) -> list[str]:
    """The reasons, with the advice once, after the last of them."""
    return [*reasons[:-1], reasons[-1] + advice] if reasons else []


def _unreliable(card: Card) -> Iterator[str]:
    """Confidences and thresholds that do not hold for images that they were not fitted on."""
    errors = [(card.calibrated.get(name, 0.0), unseen) for name, unseen in UNSEEN.items()]
    error, unseen = max(errors, key=lambda pair: pair[0])
    if error > CALIBRATION_ERROR:
        yield (
            f"Its confidence is off by {100 * error:.1f} percentage points on {unseen} that the "
            f"calibration has not seen; at most {100 * CALIBRATION_ERROR:.0f} are allowed."
        )
    worse = card.calibrated.get("expected_upright_worse", 0.0)
    if worse > UPRIGHT_WORSE:
        yield (
            f"Thresholds from one half of the held-out images make {worse:.0%} of the other half "
            f"worse when those are upright; at most {UPRIGHT_WORSE:.0%} are allowed."
        )


def _no_threshold(card: Card) -> Iterator[str]:
    least = card.abstain
    if least is not None and least.confidence >= 1 and least.angle >= LARGEST_ANGLE:
        yield "At no confidence are its answers right often enough to act on them."
