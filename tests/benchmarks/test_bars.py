"""The bars of the speed suite: what is missed is named, and parts that did not run are not."""

from __future__ import annotations

from benchmarks.__main__ import missed
from benchmarks.on_gpu.__main__ import missed as missed_on_gpu


def test_a_share_in_front_of_a_classifier_over_its_bar_is_named() -> None:
    row = {"classifier, ms": 10.0, "ring.coil100, share": 0.2, "ring, share": 0.9}
    assert missed({"front": {"batch 1": row}}) == ["batch 1: ring adds 90%; at most 80%"]


def test_nothing_is_missed_if_nothing_ran() -> None:
    assert missed({}) == []


def test_a_part_on_a_gpu_that_ended_early_is_no_error() -> None:
    early = {"inference-ring.coil100-half": {"model": "ring.coil100", "batch 1": {"floor_us": 1.0}}}
    assert missed_on_gpu(early) == []


def test_on_a_gpu_the_faster_form_counts() -> None:
    share = {"ring": 0.4, "ring, not compiled": 0.31}
    assert missed_on_gpu({"front-half-compiled": {"share": share}}) == [
        "ring takes 31.0% of the classifier; at most 30%"
    ]
