"""The beam encoder: the paper's tables literally, a rule for every other length, shared weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from radialbeams.nn.encoder import SPATIAL_TABLES, BeamEncoder, spatial_table

# The paper's tables at L = 128: kernel, stride, feature maps.
PAPER = {
    14: [(4, 1, 32), (4, 1, 64), (4, 1, 64), (3, 1, 128)],
    16: [(4, 1, 32), (4, 1, 64), (4, 1, 64), (4, 1, 128), (2, 1, 128)],
    64: [
        *[(5, 2, 32), (4, 2, 32), (4, 1, 64), (4, 1, 64), (4, 1, 64)],
        *[(3, 1, 128), (2, 1, 128)],
    ],
    125: [
        *[(4, 2, 32), (3, 2, 32), (4, 2, 32), (4, 1, 64), (4, 1, 64), (4, 1, 64)],
        *[(3, 1, 128), (2, 1, 128)],
    ],
}
# With these strides the paper's own tables never read this many samples of a beam's outer end.
UNREAD = {64: 3, 125: 7}


def beams(num_beams: int, channels: int, epsilon: int, length: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(2, num_beams, channels, 2 * epsilon + 1, length, generator=generator)


def lengths_after(beam_length: int) -> list[int]:
    """D − 2 and the length after each layer of its table."""
    lengths = [beam_length - 2]
    for layer in spatial_table(beam_length):
        lengths.append((lengths[-1] - layer.kernel) // layer.stride + 1)
    return lengths


def convolutions(encoder: BeamEncoder) -> list[nn.Conv1d]:
    return [module for module in encoder.spatial if isinstance(module, nn.Conv1d)]


# --- the tables ------------------------------------------------------------------------------


@pytest.mark.parametrize("length", PAPER)
def test_the_layers_are_those_of_the_paper(length: int) -> None:
    built = convolutions(BeamEncoder(3, length, 1, 128))
    assert [(c.kernel_size[0], c.stride[0], c.out_channels) for c in built] == PAPER[length]
    assert [c.in_channels for c in built] == [16] + [maps for *_, maps in PAPER[length][:-1]]
    assert all(c.padding == (0,) and c.dilation == (1,) for c in built)


def test_the_paper_has_four_tables() -> None:
    assert set(SPATIAL_TABLES) == set(PAPER)


@pytest.mark.parametrize(
    ("length", "lengths"),
    [
        (14, [12, 9, 6, 3, 1]),
        (16, [14, 11, 8, 5, 2, 1]),
        (64, [62, 29, 13, 10, 7, 4, 2, 1]),
        (125, [123, 60, 29, 13, 10, 7, 4, 2, 1]),
    ],
)
def test_each_table_of_the_paper_takes_d_minus_2_to_exactly_1(
    length: int, lengths: list[int]
) -> None:
    assert lengths_after(length) == lengths


def test_every_length_from_9_to_260_ends_at_exactly_1() -> None:
    for length in range(9, 261):
        lengths = lengths_after(length)
        assert lengths[-1] == 1, length
        assert min(lengths) == 1, length
        assert spatial_table(length)[-1].divisor == 1, length


def test_no_table_made_by_rule_drops_an_outer_sample() -> None:
    for length in set(range(9, 261)) - set(PAPER):
        for before, layer in zip(lengths_after(length), spatial_table(length), strict=False):
            assert (before - layer.kernel) % layer.stride == 0, (length, layer)


def test_tables_made_by_rule_widen_like_those_of_the_paper() -> None:
    for length in range(9, 261):
        divisors = [layer.divisor for layer in spatial_table(length)]
        assert divisors == sorted(divisors, reverse=True), length
        assert set(divisors) <= {4, 2, 1}, length


@pytest.mark.parametrize("length", [8, 1, 0])
def test_shorter_beams_are_refused(length: int) -> None:
    with pytest.raises(ValueError, match="at least 9") as error:
        spatial_table(length)
    assert str(error.value) == (
        f"The beam encoder needs a beam_length of at least 9; got {length}. "
        "Use larger images or longer beams."
    )
    with pytest.raises(ValueError, match="at least 9"):
        BeamEncoder(3, length, 1, 32)


# --- the network -----------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, 1, 2, 3])
def test_the_proximity_kernel_closes_the_width(epsilon: int) -> None:
    encoder = BeamEncoder(3, 29, epsilon, 32)
    kernel = encoder.proximity[0]
    assert isinstance(kernel, nn.Conv2d)
    assert kernel.kernel_size == (2 * epsilon + 1, 3)
    assert (kernel.in_channels, kernel.out_channels) == (3, 4)
    assert encoder.proximity(beams(1, 3, epsilon, 29)[0]).shape == (1, 4, 1, 27)
    assert encoder(beams(5, 3, epsilon, 29)).shape == (2, 5, 32)


@pytest.mark.parametrize("length", [9, 14, 16, 29, 64, 91, 125])
@pytest.mark.parametrize("channels", [1, 3])
def test_one_embedding_a_beam(length: int, channels: int) -> None:
    assert BeamEncoder(channels, length, 1, 16)(beams(7, channels, 1, length)).shape == (2, 7, 16)


def test_all_beams_share_the_weights() -> None:
    torch.manual_seed(0)
    encoder, inputs = BeamEncoder(3, 16, 1, 32), beams(8, 3, 1, 16)
    order = torch.tensor([3, 0, 7, 1, 6, 2, 5, 4])
    embeddings = encoder(inputs)
    torch.testing.assert_close(encoder(inputs[:, order]), embeddings[:, order])
    assert (embeddings[:, order] - embeddings).abs().max() > 1e-3


def test_every_activation_leaks_0_3() -> None:
    encoder = BeamEncoder(3, 64, 1, 32)
    leaks = [m for m in encoder.modules() if isinstance(m, nn.LeakyReLU)]
    assert len(leaks) == 1 + len(PAPER[64])
    for leak in leaks:
        assert leak(torch.tensor([-1.0, 2.0])).tolist() == pytest.approx([-0.3, 2.0])
    assert not [m for m in encoder.modules() if "Pool" in type(m).__name__]


@pytest.mark.parametrize("length", [9, 14, 16, 29, 64, 91, 125])
def test_which_samples_influence_the_embedding(length: int) -> None:
    """All of them, the outermost included, but for two tables of the paper."""
    torch.manual_seed(0)
    inputs = beams(2, 3, 1, length).requires_grad_()
    BeamEncoder(3, length, 1, 32)(inputs).square().sum().backward()
    assert inputs.grad is not None
    influence = inputs.grad.abs().amin(dim=(0, 1, 2, 3))  # (D,)
    largest = inputs.grad.abs().amax(dim=(0, 1, 2, 3))
    read = length - UNREAD.get(length, 0)
    assert (influence[:read] > 0).all()
    assert (largest[read:] == 0).all()
