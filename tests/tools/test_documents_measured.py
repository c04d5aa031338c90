"""What documents are measured by: a confidence is compared with what it promises."""

from __future__ import annotations

import numpy as np

from tools.documents.measure import Estimate, _of_the_confident


def test_a_confidence_is_compared_with_what_it_promises() -> None:
    """30° off, a document still has the right quarter, but a picture is not within 10°."""
    errors = np.full(4, 30.0)
    for kind, expected in (("document", 0.1), ("picture", 0.9)):
        found = [Estimate(30.0, 0.9, True, kind)] * 4
        assert _of_the_confident(found, errors)["calibration error"] == expected
