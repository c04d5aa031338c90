"""The defaults of all entry points, in one place.

The command, `canonicalize`, `Canonicalizer.predict`, the transforms and the torch module read their
defaults here, so they treat the same picture alike. A model's card may have its own thresholds;
they are read only by `thresholds_of`.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Literal, get_args

from radialbeams.cards import Card
from radialbeams.posterior import Thresholds

# By which angle a picture is turned. auto: by a multiple of 90° if the picture fills its canvas, by
# the angle of its rectangle if that is visible on a plain canvas, otherwise by the estimated angle.
# 90: always by the nearest multiple of 90°. none: always by the estimated angle.
Snap = Literal["auto", "90", "none"]
SNAP: Snap = "auto"

# The new canvas. restore: the original rectangle if it is visible, otherwise like expand. expand:
# large enough for the whole picture. crop: the largest rectangle without empty corners. same: the
# size of the old canvas.
Corners = Literal["restore", "expand", "crop", "same"]
CORNERS: Corners = "restore"
# For the torch module and stacked arrays, where all pictures of a batch must keep one size.
FIXED_CORNERS: Literal["same"] = "same"

LOOKS = 1  # views per picture whose estimates are averaged
FILL = None  # the colour of the picture's own filled corners, otherwise black or transparent

# "card": the thresholds of the card. A number: a confidence that raises or replaces them
# (`thresholds_for`). None: turn every picture.
Abstain = float | Literal["card"] | None
ABSTAIN: Abstain = "card"


ALWAYS = Thresholds(0.0, 0.0, 1.0, 0.0, 0.0, True)  # turns every picture
# Turns no picture: no probability is above 1.
NEVER = Thresholds(confidence=2.0, upright=0.0, quarter=2.0, exact=2.0)


def thresholds_of(card: Card) -> Thresholds:
    """The thresholds on a model's card, with defaults for those it lacks.

    A model whose card gives reasons not to trust it turns nothing, unless the caller asks for other
    thresholds.
    """
    return NEVER if card.trust else card.abstain or Thresholds()


def thresholds_for(card: Card, abstain: Abstain) -> Thresholds:
    """The thresholds that `abstain` selects for the model of this card.

    A number is a confidence. Above that of the card it raises the thresholds; otherwise it replaces
    all probability thresholds of the card, so that more pictures are turned, small tilts too.
    """
    return chosen(thresholds_of(card), abstain, card.name or "a model")


def chosen(measured: Thresholds, abstain: Abstain, name: str) -> Thresholds:
    """The measured thresholds, those for a confidence, or ALWAYS, as `abstain` selects."""
    if abstain is None:
        return ALWAYS
    if isinstance(abstain, str) and abstain == "card":
        return measured
    if isinstance(abstain, bool) or not isinstance(abstain, Real) or not abstain >= 0:
        raise ValueError(
            "abstain must be a confidence, 'card' for the thresholds of the model, or None to turn "
            f"every picture; got {abstain!r} for {name}. Use a number "
            "from 0, which turns every picture, to 1; a larger one turns none."
        )
    least = float(abstain)
    if least > measured.confidence:  # nothing may be turned that would be left alone without it
        return replace(measured, confidence=least, quarter=max(least, measured.quarter))
    return Thresholds(least, 0.0, 1.0, least, 0.0, True)


def check_snap(snap: str) -> None:
    if snap not in get_args(Snap):
        raise ValueError(f"snap must be one of {', '.join(get_args(Snap))}; got {snap!r}.")
