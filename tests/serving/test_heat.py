"""Which directions decided: the wedges, and a picture of which only one part says anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from radialbeams.posterior import Answer
from radialbeams.serving import heat


def test_the_wedges_divide_the_disc_from_the_upper_left_on() -> None:
    wedges, disc = heat._wedges(41)
    assert (wedges.sum(0) == disc).all()
    upper_left, left = wedges[0], wedges[heat.WEDGES // 8]
    assert upper_left[10, 10] and not upper_left[10, 30]
    assert left[20, 2]  # 45° further, counter-clockwise


class LooksLeft:
    """Is sure of 0° as long as the left edge of the view is bright."""

    def first_answers(self, views: Any) -> list[Answer]:
        return [answer(0.9 if view[0, 20, 2] > 0.9 else 0.3) for view in views]


def answer(chance: float) -> Answer:
    posterior = np.full(36, (1 - chance) / 35, np.float32)
    posterior[0] = chance
    return Answer(0.0, chance, 1, posterior)


def test_heat_is_where_hiding_changes_the_answer() -> None:
    view = np.zeros((1, 41, 41), np.float32)
    view[0, :, :10] = 1
    found = heat.heat(LooksLeft(), view)  # type: ignore[arg-type]
    hot = heat.WEDGES // 8
    assert found[hot] == max(found) > 1
    assert sum(found) == pytest.approx(found[hot])
