"""What happens unless something else is asked for: one place for all entry points.

The command, `canonicalize`, `Canonicalizer.predict`, the transforms and the torch module read their
defaults here, so the same picture has the same fate everywhere. A model's card may name thresholds
of its own; `thresholds_of` is the only reader of them.
"""

from __future__ import annotations

from numbers import Real
from typing import Literal, get_args

from radialbeams.cards import Card
from radialbeams.posterior import Thresholds

# What a turn is undone by. auto: by a quarter where the picture fills its canvas, by the angle of
# its rectangle where that shows on a plain canvas, else by the estimated angle. 90: always by the
# nearest quarter. none: always by the estimated angle.
Snap = Literal["auto", "90", "none"]
SNAP: Snap = "auto"

# What becomes of the canvas. restore: the original rectangle where the picture shows one, else as
# expand. expand: all of the picture. crop: the largest rectangle without empty corners. same: the
# canvas as it is.
Corners = Literal["restore", "expand", "crop", "same"]
CORNERS: Corners = "restore"
# Where pictures of a batch must keep one size: the torch module and arrays in a stack.
FIXED_CORNERS: Literal["same"] = "same"

LOOKS = 1  # views of each picture whose answers are averaged
FILL = None  # the colour of the picture's own filled corners, else black or transparent

# The thresholds of the card; a confidence that replaces them; None: every picture is turned.
Abstain = float | Literal["card"] | None
ABSTAIN: Abstain = "card"


ALWAYS = Thresholds(0.0, 0.0, 1.0, 0.0, 0.0, True)  # every picture is turned
# No picture is turned: no chance is above 1.
NEVER = Thresholds(confidence=2.0, upright=0.0, quarter=2.0, exact=2.0)


def thresholds_of(card: Card) -> Thresholds:
    """Those that a model's card names, and the defaults for the rest.

    A model that its card calls untrusted turns nothing, unless other thresholds are asked for.
    """
    return NEVER if card.trust else card.abstain or Thresholds()


def thresholds_for(card: Card, abstain: Abstain) -> Thresholds:
    """What `abstain` means for the model of this card.

    A number is a confidence and replaces all of the card's chances.
    """
    return chosen(thresholds_of(card), abstain, card.name or "a model")


def chosen(measured: Thresholds, abstain: Abstain, name: str) -> Thresholds:
    """The thresholds that were measured, those of a confidence, or none."""
    if abstain is None:
        return ALWAYS
    if isinstance(abstain, str) and abstain == "card":
        return measured
    if isinstance(abstain, bool) or not isinstance(abstain, Real) or not abstain >= 0:
        raise ValueError(
            "abstain is a confidence, 'card' for the thresholds of the model, or None to turn "
            f"every picture; got {abstain!r} for {name}. Give a number "
            "from 0, which turns every picture, to 1; a larger one turns none."
        )
    return Thresholds(float(abstain), 0.0, 1.0, float(abstain), 0.0, True)


def check_snap(snap: str) -> None:
    if snap not in get_args(Snap):
        raise ValueError(f"snap must be one of {', '.join(get_args(Snap))}; got {snap!r}.")
