"""How much each direction contributes to an estimate: an occlusion test with wedges of the view.

Convention: wedge 0 is centred on the direction of beam 0, the upper left (135°); the others
follow counter-clockwise.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from radialbeams.canonicalizer import Canonicalizer
from radialbeams.posterior import WITHIN, Answer

WEDGES = 24
LEAST = 1e-4  # probabilities are clipped to [LEAST, 1 − LEAST], so that log-odds are finite
Floats = NDArray[np.float32]


def heat(canonicalizer: Canonicalizer, view: Floats) -> list[float]:
    """(C, S, S) → (WEDGES,): how much the estimate loses if each wedge is hidden; at least 0.

    For a posterior, the drop in log-odds of the mass near the estimate; for a unit vector, the
    change of the angle in degrees. Estimates are those of this view alone: further looks at an
    unsure picture would hide other parts of it, or none.
    """
    answer, *answers = canonicalizer.first_answers(np.concatenate((view[None], _hidden(view))))
    if answer.confidence is None:
        return [round(_apart(answer, without), 3) for without in answers]
    masses = [_mass_near(answer, without) for without in answers]
    before = _log_odds(_mass_near(answer, answer))
    return [round(max(0.0, before - _log_odds(mass)), 3) for mass in masses]


def _hidden(view: Floats) -> Floats:
    """(WEDGES, C, S, S): the view with each wedge filled with the mean colour of its disc."""
    wedges, disc = _wedges(view.shape[-1])
    mean = view[:, disc].mean(1)[None, :, None, None]
    return np.where(wedges[:, None], mean, view[None]).astype(np.float32)


@lru_cache(maxsize=8)
def _wedges(side: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks of the wedges (WEDGES, S, S), and of the disc (S, S) that they divide."""
    offset = np.arange(side) - (side - 1) / 2
    x, y = offset[None, :], -offset[:, None]  # y up
    direction = np.degrees(np.arctan2(y, x)) - 135
    number = np.rint(direction * WEDGES / 360).astype(int) % WEDGES
    disc = x**2 + y**2 <= (side / 2) ** 2
    return (number == np.arange(WEDGES)[:, None, None]) & disc, disc


def _mass_near(answer: Answer, without: Answer) -> float:
    """The mass of the other posterior within 10° (plus half a bin) of the first estimate."""
    if without.posterior is None:
        return 0.0
    bins = len(without.posterior)
    step = 360 / bins
    away = np.abs((np.arange(bins) * step - answer.angle_degrees + 180) % 360 - 180)
    return float(without.posterior[away <= WITHIN + step / 2].sum())


def _apart(answer: Answer, without: Answer) -> float:
    return abs((without.angle_degrees - answer.angle_degrees + 180) % 360 - 180)


def _log_odds(probability: float) -> float:
    probability = min(max(probability, LEAST), 1 - LEAST)
    return float(np.log(probability / (1 - probability)))
