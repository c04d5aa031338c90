"""What happens unless something else is asked for: one place for all entry points.

The command, `canonicalize`, `Canonicalizer.predict`, the transforms and the torch module read their
defaults here, so the same picture has the same fate everywhere. A model's card may name thresholds
of its own; `thresholds_of` is the only reader of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Literal, get_args

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


@dataclass(frozen=True)
class Thresholds:
    """From where on a picture is turned. A card's `abstain` may name any of them.

    The default of `quarter` was chosen for `ring` on 1,500 photos, of which 0.4 % would be turned
    by a wrong quarter if they were upright.
    """

    confidence: float = 0.5  # chance that the angle is within 10°, at least
    angle: float = 1.0  # degrees, at least: less is invisible, and turning costs some sharpness
    upright: float = 1.0  # chance that the picture is upright as it is, at most
    quarter: float = 0.98  # chance of the quarter that is nearest to the turn, at least
    # Chance that the turn is an exact quarter, at least, for a picture that fills its canvas to be
    # turned by a quarter; if it is less, the picture contradicts its own rectangle.
    exact: float = 0.02
    # Whether such a picture may be turned by another angle than a quarter.
    tilts: bool = False


ALWAYS = Thresholds(0.0, 0.0, 1.0, 0.0, 0.0, True)  # every picture is turned


def thresholds_of(card: Mapping[str, Any]) -> Thresholds:
    """Those that a model's card names, and the defaults for the rest."""
    named = card.get("abstain", {})
    known = {field.name for field in fields(Thresholds)}
    return Thresholds(**{name: named[name] for name in known & set(named)})


def thresholds_for(card: Mapping[str, Any], abstain: Abstain) -> Thresholds:
    """What `abstain` means for the model of this card.

    A number is a confidence and replaces all of the card's chances.
    """
    if abstain is None:
        return ALWAYS
    if isinstance(abstain, str) and abstain == "card":
        return thresholds_of(card)
    if isinstance(abstain, bool) or not isinstance(abstain, Real) or not abstain >= 0:
        raise ValueError(
            "abstain is a confidence, 'card' for the thresholds of the model, or None to turn "
            f"every picture; got {abstain!r} for {card.get('name', 'a model')}. Give a number "
            "from 0, which turns every picture, to 1; a larger one turns none."
        )
    return Thresholds(float(abstain), 0.0, 1.0, float(abstain), 0.0, True)


def check_snap(snap: str) -> None:
    if snap not in get_args(Snap):
        raise ValueError(f"snap must be one of {', '.join(get_args(Snap))}; got {snap!r}.")
