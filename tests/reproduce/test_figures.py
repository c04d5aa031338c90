"""Figures as files: small, and the same drawing."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from radialbeams.reproduce import figures

NUMBERS = re.compile(r'(?<= d=")[^"]*')


def places(svg: str) -> list[float]:
    return [float(n) for path in NUMBERS.findall(svg) for n in re.findall(r"-?\d+\.?\d*", path)]


def test_an_svg_has_places_to_a_hundredth_of_a_point(tmp_path: Path) -> None:
    figure = figures.new()
    figure.subplots().plot(np.linspace(0, 1, 7) / 3, np.sin(np.arange(7)))
    svg = figures.save(figure, tmp_path / "curve", quick=False)[1].read_text(encoding="utf-8")
    assert places(svg) and not re.search(r"\.\d{3,}", "".join(NUMBERS.findall(svg)))


def test_rounding_moves_nothing_else() -> None:
    svg = '<path id="d1.23456" d="M 1.23456 -0.98765 L 3 4" style="opacity: 0.123456"/>'
    expected = '<path id="d1.23456" d="M 1.23 -0.99 L 3 4" style="opacity: 0.123456"/>'
    assert figures.rounded_places(svg) == expected
