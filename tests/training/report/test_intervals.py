"""Means and bootstrap intervals in many cells at once."""

from __future__ import annotations

import pytest
import torch

from radialbeams.training.report.intervals import cells, share_interval


def test_means_and_counts_are_the_plain_ones() -> None:
    values = torch.tensor([[1.0, 2.0, 3.0, 9.0], [3.0, 4.0, 5.0, 9.0]])
    members = torch.tensor([[0, 0, 1, 2], [0, 1, 1, 2]])
    found = cells(values, members, 4)
    assert [cell.mean for cell in found] == pytest.approx([2, 4, 9, 0])
    assert [cell.views for cell in found] == [3, 3, 2, 0]
    assert [cell.images for cell in found] == [2, 2, 1, 0]


def test_one_image_has_no_interval() -> None:
    (found,) = cells(torch.tensor([[1.0], [3.0]]), torch.zeros(2, 1).long(), 1)
    assert (found.low, found.mean, found.high) == (2.0, 2.0, 2.0)


def test_an_interval_is_as_wide_as_the_standard_error_says() -> None:
    values = torch.randn(1, 400, generator=torch.Generator().manual_seed(0))
    (found,) = cells(values, torch.zeros(1, 400).long(), 1)
    assert found.low < found.mean < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 / 20, rel=0.2)


def test_more_views_of_the_same_images_do_not_narrow_it() -> None:
    values = torch.randn(1, 50, generator=torch.Generator().manual_seed(1))
    members = torch.zeros(1, 50).long()
    (once,) = cells(values, members, 1)
    (often,) = cells(values.repeat(8, 1), members.repeat(8, 1), 1)
    assert often.views == 8 * once.views
    assert often.high - often.low == pytest.approx(once.high - once.low)


def test_the_interval_of_a_share_has_a_width_even_if_all_images_are_right() -> None:
    low, high = share_interval(1.0, 370)
    assert low == pytest.approx(0.9897, abs=1e-4) and high == pytest.approx(1)
    assert share_interval(0.0, 12)[0] == 0.0 and share_interval(0.0, 12)[1] > 0.2
    assert share_interval(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
