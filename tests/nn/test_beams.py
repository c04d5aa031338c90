"""Beams: which pixels they read, their symmetry under quarter turns, and the paper's lemmas."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from radialbeams.nn.beams import (
    MIXED_AT_ONCE,
    BresenhamBeams,
    Length,
    PolarBeams,
    bresenham_pixels,
    count_pixels,
    coverage,
    margin,
    named_length,
    overlap,
    polar_positions,
    upper_bound,
)
from radialbeams.nn.rotation import rotate


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def smooth(size: int) -> Tensor:
    """An image without any symmetry that bilinear interpolation hardly changes: (1, 1, W, W)."""
    offsets = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(offsets, offsets, indexing="ij")
    return (0.5 + 0.3 * torch.sin(2 * x + y) + 0.2 * torch.cos(3 * y - x + 1))[None, None]


def quarter_turn(images: Tensor) -> Tensor:
    return torch.rot90(images, 1, (-2, -1))


# --- convention ------------------------------------------------------------------------------

UPPER_LEFT, LEFT, LOWER_LEFT, DOWN = range(4)
# The pixels (x, y), y downwards, of the thinnest beams of two samples, counter-clockwise from the
# upper left. Without a centre pixel the beam to the left starts below the middle: the tie between
# the rows 1 and 2 goes to the counter-clockwise side.
EIGHT_BEAMS = {
    4: [
        [(1, 1), (0, 0)],
        [(1, 2), (0, 2)],
        [(1, 2), (0, 3)],
        [(2, 2), (2, 3)],
        [(2, 2), (3, 3)],
        [(2, 1), (3, 1)],
        [(2, 1), (3, 0)],
        [(1, 1), (1, 0)],
    ],
    5: [
        [(2, 2), (1, 1)],
        [(2, 2), (1, 2)],
        [(2, 2), (1, 3)],
        [(2, 2), (2, 3)],
        [(2, 2), (3, 3)],
        [(2, 2), (3, 2)],
        [(2, 2), (3, 1)],
        [(2, 2), (2, 1)],
    ],
}


def as_lists(beams: list[list[tuple[int, int]]]) -> list[list[list[int]]]:
    return [[list(pixel) for pixel in beam] for beam in beams]


@pytest.mark.parametrize("size", [4, 5])
def test_eight_beams_run_counter_clockwise_from_the_upper_left(size: int) -> None:
    pixels = bresenham_pixels(8, 2, 0, size)
    assert pixels.shape == (8, 1, 2, 2)
    assert pixels[:, 0].tolist() == as_lists(EIGHT_BEAMS[size])


@pytest.mark.parametrize("size", [4, 5])
def test_four_beams_are_the_diagonals(size: int) -> None:
    assert bresenham_pixels(4, 2, 0, size)[:, 0].tolist() == as_lists(EIGHT_BEAMS[size][::2])


def test_the_first_row_across_a_beam_is_its_clockwise_edge() -> None:
    pixels = bresenham_pixels(8, 2, 1, 5)
    # Of the beam to the left that is the upper row, of the beam downwards the left column.
    assert pixels[LEFT].tolist() == [[[2, 1], [1, 1]], [[2, 2], [1, 2]], [[2, 3], [1, 3]]]
    assert pixels[DOWN].tolist() == [[[1, 2], [1, 3]], [[2, 2], [2, 3]], [[3, 2], [3, 3]]]


def test_polar_beams_share_the_convention() -> None:
    positions = polar_positions(8, 4, 1, 9)  # centre 4, radius √15
    half, step = math.sqrt(15) / 8, math.sqrt(15) / 4
    left = [[[4 - half - d * step, 4 + row] for d in range(4)] for row in (-1, 0, 1)]
    torch.testing.assert_close(positions[LEFT], torch.tensor(left, dtype=torch.float64))
    first = positions[UPPER_LEFT, 1, 0] - 4
    torch.testing.assert_close(first, torch.full((2,), -half / math.sqrt(2), dtype=torch.float64))


@pytest.mark.parametrize("sampler", [BresenhamBeams, PolarBeams])
def test_a_bright_spot_at_the_upper_left_lights_the_first_beam(
    sampler: type[BresenhamBeams] | type[PolarBeams],
) -> None:
    images = torch.zeros(1, 1, 33, 33)
    images[..., 6:11, 6:11] = 1
    light = sampler(8, 16, 1, 33)(images).sum(dim=(0, 2, 3, 4))
    assert light.argmax() == UPPER_LEFT
    assert (light > 0).sum() == 1


# --- symmetry --------------------------------------------------------------------------------

layouts = pytest.mark.parametrize("num_beams", [4, 8, 12, 32, 64])


@pytest.mark.parametrize("size", [30, 128])
def test_around_the_papers_centre_a_quarter_turn_is_no_roll(size: int) -> None:
    """Laid out for one pixel more, beams have their centre at ⌊W/2⌉ of an even W."""
    images = noise(1, 1, size, size)

    def unlike(laid_out_for: int) -> float:
        x, y = bresenham_pixels(8, 10, 0, laid_out_for)[:, 0].unbind(-1)
        read = [one[0, 0][y, x] for one in (images, quarter_turn(images))]
        return (read[1] != read[0].roll(2, dims=0)).float().mean().item()

    assert unlike(size) == 0
    assert unlike(size + 1) > 0.5


@layouts
@pytest.mark.parametrize("size", [30, 31])
@pytest.mark.parametrize("epsilon", [0, 1, 2])
def test_a_quarter_turn_rolls_bresenham_beams_to_the_bit(
    num_beams: int, size: int, epsilon: int
) -> None:
    beams, images = BresenhamBeams(num_beams, 15, epsilon, size), noise(2, 3, size, size)
    rolled = beams(images).roll(num_beams // 4, dims=1)
    assert torch.equal(beams(quarter_turn(images)), rolled)
    assert torch.equal(beams(rotate(images, math.pi / 2)), rolled)
    assert not torch.equal(beams(images), rolled)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    quarter=st.integers(1, 40),
    length=st.integers(1, 40),
    epsilon=st.integers(0, 3),
    room=st.integers(0, 5),
)
def test_a_quarter_turn_rolls_the_pixels_of_any_layout(
    quarter: int, length: int, epsilon: int, room: int
) -> None:
    size = 2 * length + room
    pixels = bresenham_pixels(4 * quarter, length, epsilon, size)
    x, y = pixels.unbind(-1)
    turned = torch.stack((y, size - 1 - x), dim=-1)  # counter-clockwise about (W − 1)/2
    assert torch.equal(turned, pixels.roll(-quarter, dims=0))


def naive_lines(num_beams: int, beam_length: int, size: int) -> Tensor:
    """Each beam for itself, from pixel W // 2 to its own end pixel: (|B|, D, 2)."""
    start, last = size // 2, beam_length - 1
    lines = []
    for k in range(num_beams):
        angle = 3 * math.pi / 4 + 2 * math.pi * k / num_beams
        x, y = math.cos(angle), -math.sin(angle)
        longer = max(abs(x), abs(y))
        end_x, end_y = round(last * x / longer), round(last * y / longer)
        # In integers, rounded to the nearest pixel with ties upwards.
        lines.append(
            [
                (
                    start + (2 * step * end_x + last) // (2 * last),
                    start + (2 * step * end_y + last) // (2 * last),
                )
                for step in range(beam_length)
            ]
        )
    return torch.tensor(lines)


@pytest.mark.parametrize(("num_beams", "size"), [(8, 30), (32, 30), (32, 31), (64, 31)])
def test_lines_drawn_beam_by_beam_are_not_rolled(num_beams: int, size: int) -> None:
    """So the symmetry is owed to the layout, and the tests above could fail."""
    lines, images = naive_lines(num_beams, 15, size), noise(1, 1, size, size)

    def read(images: Tensor) -> Tensor:
        return images[0, 0][lines[..., 1], lines[..., 0]]

    rolled = read(images).roll(num_beams // 4, dims=0)
    different = (read(quarter_turn(images)) != rolled).float().mean().item()
    assert different > 0.01
    # Nearly the same lines as ours, so it is the same kind of beam that fails.
    ours = bresenham_pixels(num_beams, 15, 0, size)[:, 0]
    assert (ours - lines).abs().max() <= 2


@layouts
@pytest.mark.parametrize("size", [30, 31])
@pytest.mark.parametrize("epsilon", [0, 1, 2])
def test_a_quarter_turn_rolls_polar_beams(num_beams: int, size: int, epsilon: int) -> None:
    beams, images = PolarBeams(num_beams, 15, epsilon, size), noise(2, 3, size, size)
    rolled = beams(images).roll(num_beams // 4, dims=1)
    torch.testing.assert_close(beams(quarter_turn(images)), rolled, atol=1e-5, rtol=0)
    assert (beams(images) - rolled).abs().max() > 0.1


@pytest.mark.parametrize("num_beams", [3, 8, 10, 32])
def test_a_turn_by_one_step_rolls_polar_beams_by_one(num_beams: int) -> None:
    beams, image = PolarBeams(num_beams, 30, 1, 64), smooth(64)
    before, after = beams(image), beams(rotate(image, 2 * math.pi / num_beams))

    def difference(roll: int) -> Tensor:
        # Without the outermost samples: next to the border lies what the rotation brought in.
        return (after - before.roll(roll, dims=1))[..., :28].abs()

    assert difference(1).max() < 1e-3
    assert difference(0).mean() > 0.03
    assert difference(-1).mean() > 0.06


# --- layout ----------------------------------------------------------------------------------


@pytest.mark.parametrize("num_beams", [3, 7, 10, 32])
@pytest.mark.parametrize("size", [60, 61])
def test_beams_are_equally_spaced(num_beams: int, size: int) -> None:
    centre, reach = (size - 1) / 2, 29 + (0.5 if size % 2 == 0 else 0)
    ends = bresenham_pixels(num_beams, 30, 0, size)[:, 0, -1].double() - centre
    for k in range(num_beams):
        angle = 3 * math.pi / 4 + 2 * math.pi * k / num_beams
        x, y = math.cos(angle), -math.sin(angle)
        longer = max(abs(x), abs(y))
        # The exact direction, ended where its longer coordinate is that of the last sample.
        expected = torch.tensor([x, y], dtype=torch.float64) * reach / longer
        assert (ends[k] - expected).abs().max() <= 0.5 + 1e-6


@pytest.mark.parametrize("num_beams", [3, 10])
@pytest.mark.parametrize("sampler", [BresenhamBeams, PolarBeams])
def test_any_number_of_beams_is_accepted(
    num_beams: int, sampler: type[BresenhamBeams] | type[PolarBeams]
) -> None:
    assert sampler(num_beams, 10, 1, 24)(noise(2, 3, 24, 24)).shape == (2, num_beams, 3, 3, 10)


@pytest.mark.parametrize("num_beams", [3, 8, 10, 32])
@pytest.mark.parametrize("size", [40, 41])
def test_a_beam_steps_from_pixel_to_touching_pixel(num_beams: int, size: int) -> None:
    for beam in bresenham_pixels(num_beams, 20, 0, size)[:, 0].tolist():
        assert len({tuple(pixel) for pixel in beam}) == 20
        for (x, y), (next_x, next_y) in pairwise(beam):
            assert max(abs(next_x - x), abs(next_y - y)) == 1
        assert all(0 <= value < size for pixel in beam for value in pixel)


@pytest.mark.parametrize("num_beams", [3, 8, 10, 32])
@pytest.mark.parametrize("epsilon", [1, 2, 3])
@pytest.mark.parametrize("size", [40, 41])
def test_the_rows_of_a_thick_beam_are_adjacent_pixels(
    num_beams: int, epsilon: int, size: int
) -> None:
    thick = bresenham_pixels(num_beams, 15, epsilon, size)
    assert thick.shape == (num_beams, 2 * epsilon + 1, 15, 2)
    assert torch.equal(thick[:, epsilon], bresenham_pixels(num_beams, 15, 0, size)[:, 0])
    steps = thick.diff(dim=1)
    assert (steps.abs().sum(dim=-1) == 1).all()  # one pixel sideways, never diagonal
    assert (steps == steps[:, :1, :1]).all()  # the same way along the whole beam
    # Across the beam to its counter-clockwise side: along × across < 0 where y points down.
    along, across = (thick[:, epsilon, -1] - thick[:, epsilon, 0]), steps[:, 0, 0]
    assert (along[:, 0] * across[:, 1] - along[:, 1] * across[:, 0] < 0).all()


@pytest.mark.parametrize("epsilon", [0, 2])
@pytest.mark.parametrize("size", [12, 13])
def test_the_gather_reads_the_pixels_one_by_one(epsilon: int, size: int) -> None:
    images = noise(2, 3, size, size)
    samples = BresenhamBeams(10, 6, epsilon, size)(images)
    pixels = bresenham_pixels(10, 6, epsilon, size).tolist()
    expected = torch.empty(2, 10, 3, 2 * epsilon + 1, 6)
    for b, beam in enumerate(pixels):
        for r, row in enumerate(beam):
            for d, (x, y) in enumerate(row):
                x, y = min(max(x, 0), size - 1), min(max(y, 0), size - 1)
                expected[:, b, :, r, d] = images[:, :, y, x]
    assert torch.equal(samples, expected)


def test_polar_samples_are_bilinear() -> None:
    size = 12
    y, x = torch.meshgrid(*[torch.arange(size, dtype=torch.float32)] * 2, indexing="ij")
    # A product of two linear functions is what bilinear interpolation gets exactly right.
    samples = PolarBeams(10, 6, 1, size)((2 * x + 1)[None, None] * (3 - y))
    positions = polar_positions(10, 6, 1, size)
    expected = (2 * positions[..., 0] + 1) * (3 - positions[..., 1])
    torch.testing.assert_close(samples[0, :, 0].double(), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("num_beams", [3, 10, 32])
@pytest.mark.parametrize("size", [40, 41])
def test_polar_beams_are_equally_long_and_stay_inside(num_beams: int, size: int) -> None:
    positions = polar_positions(num_beams, 20, 2, size)
    reach = (positions[:, 2, -1] - (size - 1) / 2).norm(dim=-1)
    torch.testing.assert_close(reach, reach[:1].expand(num_beams))
    assert positions.min() >= 0
    assert positions.max() <= size - 1
    # A diagonal Bresenham beam reaches √2 further than a straight one.
    ends = bresenham_pixels(8, 20, 0, size)[:, 0, -1].double() - (size - 1) / 2
    assert ends.norm(dim=-1).max() > 1.35 * ends.norm(dim=-1).min()


WHOLE = MIXED_AT_ONCE // (4 * 3 * 14 * 14)  # such images in the largest part


@pytest.mark.parametrize("sampler", [BresenhamBeams, PolarBeams])
@pytest.mark.parametrize("channels_last", [False, True])
def test_a_large_batch_is_sampled_in_parts_to_the_same_bits(
    sampler: type[BresenhamBeams] | type[PolarBeams], channels_last: bool
) -> None:
    beams, images = sampler(12, 6, 1, 14), noise(2 * WHOLE + 3, 3, 14, 14)
    if channels_last:
        images = images.to(memory_format=torch.channels_last)
    each = torch.cat([beams(image[None]) for image in images])
    together = beams(images)
    assert torch.equal(together, each)
    assert together.is_contiguous()
    with_gradient = beams(images.clone().requires_grad_())
    assert with_gradient.requires_grad
    assert torch.equal(with_gradient, each)


@pytest.mark.parametrize("sampler", [BresenhamBeams, PolarBeams])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_a_large_batch_has_the_precision_of_a_small_one(
    sampler: type[BresenhamBeams] | type[PolarBeams], dtype: torch.dtype
) -> None:
    beams, images = sampler(12, 6, 1, 14), noise(WHOLE + 1, 3, 14, 14).to(dtype)
    assert beams(images).dtype == beams(images[:1]).dtype


def test_geometry_is_no_weight_and_passes_gradients() -> None:
    for sampler in (BresenhamBeams, PolarBeams):
        beams = sampler(8, 6, 1, 14)
        assert beams.state_dict() == {}
        images = noise(1, 1, 14, 14).requires_grad_()
        beams(images).sum().backward()
        assert images.grad is not None
        assert images.grad[0, 0, 7, 7] > 0


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "longest"), [(20, 10), (21, 11)])
def test_beams_longer_than_the_image_are_refused(size: int, longest: int) -> None:
    bresenham_pixels(8, longest, 0, size)
    with pytest.raises(ValueError, match="beam_length") as error:
        BresenhamBeams(8, longest + 1, 0, size)
    assert str(error.value) == (
        f"beam_length must be at most {longest} for images of {size} × {size} pixels; "
        f"got {longest + 1}. Pad the images (by margin(W) for any rotation) or shorten the beams."
    )


@pytest.mark.parametrize("sampler", [BresenhamBeams, PolarBeams])
@pytest.mark.parametrize("shape", [(2, 3, 21, 21), (2, 3, 20, 21), (3, 20, 20)])
def test_images_of_another_size_are_refused(
    sampler: type[BresenhamBeams] | type[PolarBeams], shape: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="beams were built") as error:
        sampler(8, 10, 1, 20)(torch.zeros(shape))
    assert str(error.value) == (
        f"Expected images of shape (N, C, 20, 20), for which these beams were built; got {shape}. "
        "Resize the images or build beams for their size."
    )


@pytest.mark.parametrize(("num_beams", "epsilon", "size"), [(10, 1, 25), (12, 0, 30), (7, 2, 41)])
def test_a_gpus_sampler_reads_the_same(num_beams: int, epsilon: int, size: int) -> None:
    beams, images = PolarBeams(num_beams, 11, epsilon, size), noise(2, 3, size, size)
    torch.testing.assert_close(beams._sampled(images), beams(images), atol=1e-5, rtol=0)


@pytest.mark.parametrize("layout", [bresenham_pixels, polar_positions])
@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0, 5, 1), "num_beams must be at least 1; got 0."),
        ((8, 0, 1), "beam_length must be at least 1; got 0."),
        ((8, 5, -1), "epsilon must be at least 0; got -1."),
    ],
)
def test_impossible_beams_are_refused(
    layout: type[Tensor], values: tuple[int, int, int], text: str
) -> None:
    with pytest.raises(ValueError, match="must be at least") as error:
        layout(*values, 20)
    assert str(error.value) == text


def test_polar_beams_wider_than_the_image_are_refused() -> None:
    with pytest.raises(ValueError, match="wider than 5 pixels; got 5") as error:
        polar_positions(8, 2, 2, 5)
    assert str(error.value).endswith("Use larger images or a smaller epsilon.")


# --- the lemmas ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "delta", "lengths"),
    [(128, 27, {"A": 37, "B": 64, "C": 91}), (250, 52, {"A": 73, "B": 125, "C": 177})],
)
def test_margin_and_lengths_of_the_paper(size: int, delta: int, lengths: dict[Length, int]) -> None:
    assert margin(size) == delta
    assert {name: named_length(name, size) for name in lengths} == lengths


def test_an_unknown_length_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"^A beam length is named A, B or C; got 'D'\.$"):
        named_length("D", 128)  # type: ignore[arg-type]


def test_the_margin_is_the_least_that_loses_no_corner() -> None:
    for size in range(1, 513):
        corner = size / math.sqrt(2)  # of the square itself, not of the centre of its last pixel
        assert corner <= size / 2 + margin(size), size
        assert corner > size / 2 + margin(size) - 1, size


@pytest.mark.parametrize("size", [9, 28, 128])
def test_padded_by_the_margin_no_pixel_leaves_the_image(size: int) -> None:
    centre, wide = (size - 1) / 2, size + 2 * margin(size)
    angles = torch.linspace(0, math.pi / 2, 91, dtype=torch.float64)
    offsets = torch.tensor([[-centre, -centre], [centre, -centre]], dtype=torch.float64)
    x, y = offsets[:, :1], offsets[:, 1:]
    turned = torch.stack((x * angles.cos() + y * angles.sin(), y * angles.cos() - x * angles.sin()))
    assert turned.abs().max() <= (wide - 1) / 2
    # A single white pixel in the corner is still there at 45°, but for the rim of its blur.
    image = torch.zeros(1, 1, size, size)
    image[..., 0, 0] = 1
    kept = rotate(image, math.pi / 4, width=margin(size)).sum().item()
    room = rotate(image, math.pi / 4, width=margin(size) + 5).sum().item()
    assert kept > 0.99 * room > 0.5
    assert rotate(image, math.pi / 4).sum().item() == 0


def test_upper_bound() -> None:
    assert upper_bound(64, 0) == 512
    assert upper_bound(64, 1) == pytest.approx(170.67, abs=5e-3)
    assert upper_bound(64, 2) == pytest.approx(102.4)


@pytest.mark.parametrize("epsilon", [0, 1, 2])
@pytest.mark.parametrize("length", [32, 64])
def test_beyond_the_upper_bound_the_outer_ends_of_beams_overlap(epsilon: int, length: int) -> None:
    def shared(num_beams: int) -> int:
        ends = bresenham_pixels(num_beams, length, epsilon, 2 * (length + epsilon))[:, :, -1]
        return num_beams * (2 * epsilon + 1) - len(ends.flatten(0, 1).unique(dim=0))

    bound = upper_bound(length, epsilon)
    assert shared(math.floor(bound) + 1) > 0
    # Equal angles are narrowest at the middle of a side, so the first ends meet at π/4 of it.
    assert shared(math.floor(0.75 * bound)) == 0


def test_coverage_as_printed_is_half_of_the_truth_or_negative() -> None:
    assert coverage(32, 64, 1, as_printed=True) == pytest.approx(2790, abs=1)
    assert coverage(16, 64, 0, as_printed=True) < 0


def test_coverage_corrected() -> None:
    assert coverage(32, 64, 1) == pytest.approx(5568, abs=1e-6)


counted = cache(count_pixels)
# Both ends, the paper's settings, and the layouts on which the lemma is worst.
CASES = [
    (num_beams, epsilon)
    for epsilon in (0, 1, 2)
    for num_beams in (8, 9, 11, 12, 16, 23, 32, 45, 64, 77, 90, 96, 102, 113, 122, 127, 128)
    if num_beams < upper_bound(64, epsilon)
]


@pytest.mark.parametrize(("num_beams", "epsilon"), CASES)
def test_corrected_coverage_is_within_4_percent_of_the_count(num_beams: int, epsilon: int) -> None:
    covered, _ = counted(num_beams, 64, epsilon)
    assert coverage(num_beams, 64, epsilon) == pytest.approx(covered, rel=0.04)


def test_the_printed_formula_is_off_by_more_than_40_percent() -> None:
    covered, _ = counted(32, 64, 1)
    assert abs(coverage(32, 64, 1, as_printed=True) / covered - 1) > 0.4


@pytest.mark.parametrize(("num_beams", "epsilon"), CASES[::5])
def test_coverage_and_overlap_add_up_to_the_samples(num_beams: int, epsilon: int) -> None:
    samples = num_beams * (2 * epsilon + 1) * 64
    assert sum(counted(num_beams, 64, epsilon)) == samples
    for printed in (False, True):
        covered = coverage(num_beams, 64, epsilon, as_printed=printed)
        repeated = overlap(num_beams, 64, epsilon, as_printed=printed)
        assert covered + repeated == pytest.approx(samples)


def test_a_count_by_hand() -> None:
    # Four diagonals of two pixels on 4 × 4; then eight beams, of which each straight one shares
    # its first pixel with the diagonal next to it.
    assert count_pixels(4, 2, 0) == (8, 0)
    assert count_pixels(8, 2, 0) == (12, 4)


@pytest.mark.parametrize("lemma", [coverage, overlap])
def test_the_lemma_refuses_fewer_than_8_beams(lemma: Callable[[int, int, int], float]) -> None:
    with pytest.raises(ValueError, match="lemma") as error:
        lemma(7, 64, 1)
    assert str(error.value) == (
        "The coverage lemma cuts the square into one triangle per beam and holds for "
        "num_beams ≥ 8; got 7. Count the pixels with count_pixels instead."
    )
