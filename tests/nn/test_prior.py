"""The Toeplitz prior: a turn of the image is a shift of its beams, and nearer shifts cost less."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from radialbeams.nn.angles import TURN
from radialbeams.nn.beams import BresenhamBeams
from radialbeams.nn.prior import (
    PRIOR_MODES,
    PriorMode,
    ToeplitzPrior,
    angle_matrix,
    extraction_tensor,
    loss_weights,
    prior_loss,
    similarity,
)
from radialbeams.nn.rotation import rotate


def embeddings(num_beams: int, batch: int = 4, latent: int = 16) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(batch, num_beams, latent, generator=generator)


# --- matrices --------------------------------------------------------------------------------


def test_the_angle_matrix_of_three_beams() -> None:
    assert angle_matrix(3).tolist() == [[0, 1, 2], [2, 0, 1], [1, 2, 0]]


def test_the_extraction_tensor_of_three_beams() -> None:
    assert extraction_tensor(3).tolist() == [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
        [[0, 0, 1], [1, 0, 0], [0, 1, 0]],
    ]


@pytest.mark.parametrize("num_beams", [1, 3, 4, 10, 32])
def test_the_extraction_tensor_cuts_the_matrix_into_its_diagonals(num_beams: int) -> None:
    extractor = extraction_tensor(num_beams)
    assert set(extractor.unique().tolist()) <= {0, 1}
    assert torch.equal(extractor.sum(dim=0), torch.ones(num_beams, num_beams))
    assert extractor.sum(dim=(1, 2)).tolist() == [num_beams] * num_beams
    for k in range(num_beams):
        # One mark in each row and column, and it is the shift that the angle matrix names.
        assert torch.equal(extractor[k].sum(dim=0), torch.ones(num_beams))
        assert torch.equal(extractor[k].sum(dim=1), torch.ones(num_beams))
        assert (angle_matrix(num_beams)[extractor[k] == 1] == k).all()


def test_similarity_is_1_for_equal_beams_and_falls_with_the_distance() -> None:
    upright = torch.tensor([[[0.0, 0.0], [3.0, 4.0]]])
    # The distance is 5; the squared one would give 1/26.
    expected = torch.tensor([[[1, 1 / 6], [1 / 6, 1]]])
    torch.testing.assert_close(similarity(upright, upright), expected)


def test_similarity_of_equal_beams_is_exactly_1_however_far_from_the_origin() -> None:
    far = embeddings(32, latent=128) + 1000
    assert (similarity(far, far).diagonal(dim1=1, dim2=2) == 1).all()


def test_rows_are_the_upright_beams_and_columns_the_turned_ones() -> None:
    upright, turned = embeddings(5), embeddings(5).flip(0)
    values = similarity(upright, turned)
    distance = (upright[1, 2] - turned[1, 4]).norm()
    torch.testing.assert_close(values[1, 2, 4], 1 / (1 + distance))


# --- shifts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("num_beams", [3, 8, 32])
def test_every_known_roll_is_predicted(num_beams: int) -> None:
    upright, prior = embeddings(num_beams), ToeplitzPrior(num_beams)
    for k in range(num_beams):
        log_probabilities = prior(upright, upright.roll(k, 1))
        assert log_probabilities.argmax(dim=-1).tolist() == [k] * len(upright)
        torch.testing.assert_close(log_probabilities.exp().sum(dim=-1), torch.ones(4))


@pytest.mark.parametrize("size", [64, 65])
@pytest.mark.parametrize(("quarters", "shift"), [(0, 0), (1, 8), (2, 16), (3, 24)])
def test_a_quarter_turn_of_the_image_is_eight_of_32_beams(
    size: int, quarters: int, shift: int
) -> None:
    images = torch.rand(3, 3, size, size, generator=torch.Generator().manual_seed(0))
    beams, angle = BresenhamBeams(32, size // 2, 1, size), quarters * math.pi / 2
    upright = beams(images).flatten(2)
    turned = beams(rotate(images, angle)).flatten(2)
    log_probabilities = ToeplitzPrior(32)(upright, turned)
    assert log_probabilities.argmax(dim=-1).tolist() == [shift] * 3
    angles = torch.full((3,), angle)
    right, wrong = (prior_loss(angles + off, log_probabilities) for off in (0.0, TURN / 32))
    assert (right < wrong).all()


# --- the loss --------------------------------------------------------------------------------


def test_a_better_match_has_a_lower_loss() -> None:
    """As printed, without the minus, the loss would fall as the match gets worse."""
    upright, prior = embeddings(8), ToeplitzPrior(8)
    noise = torch.randn(upright.shape, generator=torch.Generator().manual_seed(9))
    angles = torch.full((4,), 3 * TURN / 8)
    losses = torch.stack(
        [
            prior_loss(angles, prior(upright, upright.roll(3, 1) + level * noise))
            for level in (0.0, 0.1, 0.5)
        ]
    )
    assert (losses >= 0).all()
    assert (losses.diff(dim=0) > 0).all()


def test_the_loss_is_the_negative_log_probability_of_the_true_shift() -> None:
    log_probabilities = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log().expand(6, 4)
    angles = torch.tensor([0, math.pi / 2, math.pi, -math.pi / 2, TURN, TURN + math.pi / 2])
    expected = torch.log(torch.tensor([2.0, 4, 8, 8, 2, 4]))
    torch.testing.assert_close(prior_loss(angles, log_probabilities), expected)


def test_an_angle_between_two_beams_counts_as_the_nearer_one() -> None:
    log_probabilities = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log().expand(4, 4)
    angles = torch.deg2rad(torch.tensor([44.0, 46.0, 314.0, 316.0]))
    expected = torch.log(torch.tensor([2.0, 4, 8, 2]))
    torch.testing.assert_close(prior_loss(angles, log_probabilities), expected)


def test_gradients_are_finite_for_identical_embeddings() -> None:
    upright = embeddings(8).requires_grad_()
    turned = upright.detach().clone().requires_grad_()
    prior_loss(torch.zeros(4), ToeplitzPrior(8)(upright, turned)).sum().backward()
    for leaf in (upright, turned):
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()
        assert leaf.grad.abs().sum() > 0


def test_all_beams_alike_leave_the_prior_undecided_and_finite() -> None:
    same = torch.ones(2, 8, 16, requires_grad=True)
    log_probabilities = ToeplitzPrior(8)(same, same)
    torch.testing.assert_close(log_probabilities.exp(), torch.full((2, 8), 1 / 8))
    prior_loss(torch.zeros(2), log_probabilities).sum().backward()
    assert same.grad is not None
    assert same.grad.isfinite().all()


# --- weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "epoch", "weights"),
    [
        ("off", 1, (1, 0)),
        ("off", 9, (1, 0)),
        ("full", 1, (1, 1)),
        ("full", 9, (1, 1)),
        ("dynamic", 1, (0, 1)),
        ("dynamic", 4, (0.75, 0.25)),
    ],
)
def test_loss_weights(mode: PriorMode, epoch: int, weights: tuple[float, float]) -> None:
    assert loss_weights(mode, epoch) == weights


def test_an_unknown_mode_is_refused_with_the_known_ones() -> None:
    assert PRIOR_MODES == ("off", "full", "dynamic")
    text = r"^The prior is one of off, full, dynamic; got 'half'\.$"
    with pytest.raises(ValueError, match=text):
        loss_weights("half", 1)  # type: ignore[arg-type]
