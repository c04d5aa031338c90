"""What the two turns along the lines decide, compared with all four."""

from __future__ import annotations

from typing import Any

import numpy as np

from radialbeams.documents import DocumentReader
from tools.documents.turns import summary


def row(scores: list[float], horizontal: bool, document: float = 20.0) -> dict[str, Any]:
    return {
        "whole": np.array(scores, np.float32),
        "document": np.full(4, document, np.float32),
        "evidence": (0.0, 0.0, document),
        "horizontal": horizontal,
        "errors": np.array([90.0, 0.0, 90.0, 180.0]),
    }


def test_pages_decided_by_two_turns_are_compared_with_all_four() -> None:
    rows = [
        row([-2, 4, -2, -2], horizontal=False),  # decided
        row([-2, 4, -2, -2], horizontal=True),  # the other axis is seen first
        row([6, 4, -2, -2], horizontal=False),  # decided, and wrong
        row([-2, 4, -2, -2], horizontal=False, document=2),  # not clearly a document
    ]
    found = summary(rows, DocumentReader(1))
    assert found["pages"] == 4 and found["axis named rightly"] == 75
    assert found["decided by two turns"] == 50 and found["views a page"] == 3
    assert found["other best turn"] == 1 and found["largest change"] > 0.9
