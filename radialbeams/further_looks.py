"""Further looks at pictures of which a model is unsure, or should be.

A second look at the same square is another sample of the same evidence: each quarter turn of it
gives a network that is not equivariant another chance. An oblong picture has more to show: the
squares at its two ends, which the first look has not seen. Of drawings, a model trained on photos
is too sure after one look, so it looks again even if it is sure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from radialbeams.cards import Card, Looks
from radialbeams.images.drawn import drawn
from radialbeams.posterior import Answer, read_posteriors

Floats = NDArray[np.float32]
Run = Callable[[Floats], list[Floats]]  # views (N, C, S, S) → logits and offsets, (N, bins) each
Views = Callable[[], Floats]  # (2, C, S, S): of both ends, made only where they are needed

QUARTERS = (1, 2, 3)  # of further looks at one square
AT_ENDS = (1, 3)  # of the squares at the left or upper end, and at the other one


def looked_again(
    card: Card,
    run: Run,
    views: Floats,
    outputs: Sequence[Floats],
    answers: Sequence[Answer],
    ends: Sequence[Views | None],
) -> list[Answer]:
    """The estimates, with unsure ones replaced by averages over several looks.

    Views are (N, C, S, S); `ends` makes two more of each oblong picture. `looks` on the card says
    below which confidence it looks again, and which square pictures count as drawings. The card of
    a network that is equivariant to quarter turns has no `looks`, since further views would add
    nothing.
    """
    looks = card.looks
    if looks is None:
        return list(answers)
    square: dict[int, Floats] = {}  # the further views of each unsure picture, rotated
    oblong: dict[int, Floats] = {}
    for n, answer in enumerate(answers):
        confidence, both_ends = answer.confidence or 0.0, ends[n]
        if both_ends is not None and looks.oblong_below is not None:
            if confidence < looks.oblong_below:
                oblong[n] = _rotated(both_ends(), AT_ENDS)
        elif confidence < looks.below or looks_drawn(views[n], looks):
            square[n] = _rotated([views[n]] * len(QUARTERS), QUARTERS)
    surer = list(answers)
    temperature, spread = card.calibration
    for more, quarters, heat in (
        (square, QUARTERS, temperature),
        (oblong, AT_ENDS, looks.oblong_temperature or temperature),
    ):
        if not more:
            continue
        further, rows = run(np.concatenate(list(more.values()))), list(more)
        both = [
            np.concatenate((first[rows][:, None], new.reshape(len(rows), len(quarters), -1)), 1)
            for first, new in zip(outputs, further, strict=True)
        ]  # two of (n, looks, bins)
        shifts = np.array((0, *quarters), np.float32) * np.float32(card.network.num_bins / 4)
        again = read_posteriors(both[0], both[1], shifts, heat, spread)
        for n, answer in zip(rows, again, strict=True):
            surer[n] = answer
    return surer


def looks_drawn(view: Floats, looks: Looks | None) -> bool:
    """Whether a view (C, S, S), or the first of several, counts as drawn for this card."""
    first = view.reshape(-1, *view.shape[-3:])[0]
    return looks is not None and looks.drawn is not None and drawn(first) >= looks.drawn


def _rotated(views: Sequence[Floats] | Floats, quarters: Sequence[int]) -> Floats:
    """Each view (C, S, S), rotated by its number of quarter turns: (k, C, S, S)."""
    pairs = zip(views, quarters, strict=True)
    return np.stack([np.rot90(view, k, (-2, -1)) for view, k in pairs])
