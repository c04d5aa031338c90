"""What documents are measured by: a confidence is compared with what it promises."""

from __future__ import annotations

import numpy as np

from tools.documents.measure import Estimate, _confidence_figures, by_chance


def test_a_confidence_is_compared_with_what_it_promises() -> None:
    """30° off, a document still has the right quarter, but a picture is not within 10°."""
    errors = np.full(4, 30.0)
    for kind, expected in (("document", 0.1), ("picture", 0.9)):
        found = [Estimate(30.0, 0.9, True, kind)] * 4
        assert _confidence_figures(found, errors)["calibration error"] == expected


def test_few_files_have_a_calibration_error_by_chance() -> None:
    few, many = (by_chance(np.tile(np.full(4, 0.5), files), draws=200) for files in (20, 2000))
    # The mean distance of a share of n throws of a coin from a half: 0.4 / √n
    assert abs(few[0] - 0.4 / 20**0.5) < 0.015 and few[1] < few[0]
    assert abs(many[0] - 0.4 / 2000**0.5) < 0.002
    assert by_chance(np.ones(8)) == [0, 0]
