"""How much a view looks drawn: a drawing has areas of one colour and steep edges between them.

A photo has noise and shades nearly everywhere, and its view, which is blurred, few steep edges.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

# Differences of neighbouring pixels, in [0, 1], and the weight of steep ones. From a logistic
# regression on drawings of openclipart outside the test part and on photos of COCO's training part.
FLAT, STEEP, WEIGHT = 0.5 / 255, 32 / 255, 5.0


def drawn(view: Floats) -> float:
    """(C, S, S) in [0, 1] → the share of flat neighbours in the disc, and WEIGHT × steep ones."""
    across, down = _within(view.shape[-1])
    change = np.concatenate(
        (
            np.abs(view[:, :, 1:] - view[:, :, :-1]).max(0)[across],
            np.abs(view[:, 1:] - view[:, :-1]).max(0)[down],
        )
    )
    return float((change < FLAT).mean() + WEIGHT * (change >= STEEP).mean())


@cache
def _within(side: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(S, S − 1) and (S − 1, S): whether two neighbours in a row or column are in the disc."""
    offsets = np.arange(side) - (side - 1) / 2
    inside = offsets[:, None] ** 2 + offsets**2 <= (side / 2) ** 2
    return inside[:, 1:] & inside[:, :-1], inside[1:] & inside[:-1]
