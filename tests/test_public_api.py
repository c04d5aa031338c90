"""The public names: few, there, and not changed by accident."""

from __future__ import annotations

import re

import pytest

import radialbeams


def test_the_public_names_are_these() -> None:
    assert sorted(radialbeams.__all__) == [
        "Canonicalization",
        "Canonicalizer",
        "__version__",
        "canonicalize",
    ]


@pytest.mark.parametrize("name", radialbeams.__all__)
def test_a_public_name_exists(name: str) -> None:
    assert getattr(radialbeams, name) is not None


def test_the_version_is_a_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", radialbeams.__version__)
