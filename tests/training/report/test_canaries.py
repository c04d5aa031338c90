"""The canary of a run: stored figures are those of results/leaks, and the right one is chosen."""

from __future__ import annotations

import json

import pytest
import torch
from conftest import ROOT

from radialbeams.cards import ViewProtocol
from radialbeams.training.leaks import QUICK
from radialbeams.training.report import words
from radialbeams.training.report.canaries import (
    LEAKFREE,
    LEAKFREE_192,
    PAPER,
    Canary,
    measure_here,
    on_file,
)
from radialbeams.training.views import LeakfreeViews

FILES = {
    "leakfree-ring-white-28px": LEAKFREE[0],
    "leakfree-ring-white-32px": LEAKFREE[1],
    "leakfree-cnn-white": LEAKFREE[2],
    "leakfree-192-192-sigma1.1-reach0.95-cnn-white": LEAKFREE_192,
    "paper-ring-white": PAPER,
}


@pytest.mark.parametrize("name", FILES)
def test_stored_figures_are_those_that_were_measured(name: str) -> None:
    measured = json.loads((ROOT / "results" / "leaks" / f"{name}.json").read_text())
    stored = FILES[name]
    for ours, theirs in (("rho4", "rho4"), ("low", "rho4_low"), ("high", "rho4_high")):
        assert getattr(stored, ours) == pytest.approx(measured[theirs], abs=1e-4)
    assert (stored.views, stored.parent_size) == (measured["views"], measured["parent"])
    assert stored.network == measured["canary"]


def test_of_the_two_networks_the_one_that_read_more_is_shown() -> None:
    for stored, ending in zip(LEAKFREE, ("-28px", "-32px", ""), strict=True):
        found = [
            json.loads((ROOT / "results/leaks" / f"leakfree-{kind}-white{ending}.json").read_text())
            for kind in ("ring", "cnn")
        ]
        assert abs(stored.rho4) == pytest.approx(max(abs(one["rho4"]) for one in found), abs=1e-4)


@pytest.mark.parametrize(
    ("protocol", "view_size", "expected"),
    [
        (ViewProtocol("leakfree", 128), 57, LEAKFREE[2]),
        (ViewProtocol("leakfree", 256), 115, LEAKFREE[2]),
        (ViewProtocol("leakfree", 28), 12, LEAKFREE[0]),
        (ViewProtocol("leakfree", 192, sigma=1.1, reach=0.95), 192, LEAKFREE_192),
        (ViewProtocol("leakfree", 192, sigma=1.1), 192, None),
        (ViewProtocol("leakfree", 192, sigma=0.5), 192, None),
        (ViewProtocol("paper", 128), 182, PAPER),
    ],
)
def test_the_nearest_geometry_under_the_same_rule_is_taken(
    protocol: ViewProtocol, view_size: int, expected: Canary | None
) -> None:
    assert on_file(protocol, view_size) == expected


def test_the_page_says_whether_it_was_measured_here() -> None:
    here = Canary(0.01, -0.01, 0.03, "cnn", 64, 20_000, here=True)
    assert words.leak_source(here, 64).startswith("Measured with the views of this run")
    assert "on file for the same image size" in words.leak_source(LEAKFREE[2], 128)
    assert "from 128 px images; this run has 96 px" in words.leak_source(LEAKFREE[2], 96)
    assert "chance" in words.leak(LEAKFREE[2]) and "give the angle away" in words.leak(PAPER)
    assert words.leak(None).startswith("No canary")


def test_a_canary_can_be_measured_on_the_views_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUICK, "views", 64)  # the real effort takes minutes
    found = measure_here(LeakfreeViews(12), 28, torch.device("cpu"))
    assert (found.here, found.parent_size, found.views) == (True, 28, 64)
    assert found.low <= found.rho4 <= found.high
