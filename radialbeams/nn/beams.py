"""Radial beams: the pixels they read, computed once and read with one gather; and the lemmas.

Convention: beam 0 points to the upper left (135°), the others follow counter-clockwise in equal
steps of 360°/|B|. Along a beam, sample 0 is nearest to the centre (W − 1)/2. Across it, row 0 is
its clockwise edge. So a counter-clockwise quarter turn of the image rolls the beams by +|B|/4.
"""

from __future__ import annotations

import math
from typing import Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.kernels.using import MOST_CHANNELS, served

Length = Literal["A", "B", "C"]
# "angle": equal angles between beams, as in the text of the paper. "border": equal steps of their
# ends along the border of the square, as in its proofs and its authors' code. Only with "angle" is
# a rotation of the image a roll of the beams.
Spacing = Literal["angle", "border"]

# Bytes of images that a CPU samples together, so that its cache holds them: three RGB images of
# 128 pixels. Bilinear samples take more memory, and by measurement less time with more images.
AT_ONCE, MIXED_AT_ONCE = 600_000, 1_000_000

# --- which pixels a beam reads ---------------------------------------------------------------


def bresenham_pixels(
    num_beams: int, beam_length: int, epsilon: int, size: int, spacing: Spacing = "angle"
) -> Tensor:
    """The (x, y) pixel of every sample of every beam: (|B|, 2ε + 1, D, 2), integers.

    The modified Bresenham line: one pixel per step along the longer axis, the nearest one across
    it, and ε more on both sides. Every beam is drawn in the left quadrant (135° to 225°) and then
    rotated about the centre by whole quarter turns, in integers. So if 4 divides |B|, the quadrants
    are exact copies of one another. Ties go to the counter-clockwise side, in every quadrant.
    """
    _check_beams(num_beams, beam_length, epsilon)
    _check_reach(beam_length, size)
    quadrant, within = _quadrants(num_beams)
    # Even sizes have no centre pixel: their first sample lies half a pixel off the centre.
    steps = torch.arange(beam_length, dtype=torch.float64) + (0.5 if size % 2 == 0 else 0.0)
    # Differs from the paper: its ⌊W/2⌉ is half a pixel off for even W, and no quarter turn fits.
    centre = (size - 1) / 2
    # Rows per step to the left, from −1 up to +1.
    slope = torch.tan(within - math.pi / 4) if spacing == "angle" else within / (math.pi / 4) - 1
    across = centre + slope[:, None] * steps  # (|B|, D)
    # Counter-clockwise of "left" is down, so a tie rounds up; 1e-9 absorbs the rounding of tan.
    nearest = torch.floor(across + 0.5 + 1e-9)
    rows = nearest[:, None, :] + _sides(epsilon)[:, None]  # (|B|, 2ε + 1, D)
    columns = (centre - steps).expand_as(rows)
    offsets = torch.stack((columns - centre, rows - centre), dim=-1)
    return torch.round(_quarter_turns(offsets, quadrant) + centre).long()


def polar_positions(num_beams: int, beam_length: int, epsilon: int, size: int) -> Tensor:
    """The (x, y) position of every sample on a polar grid: (|B|, 2ε + 1, D, 2), between pixels.

    All beams have the same length: sample d lies at (d + ½)/D of the largest radius that keeps
    all rows inside the image. The rows lie one pixel apart across the beam.
    """
    _check_beams(num_beams, beam_length, epsilon)
    centre = (size - 1) / 2
    if centre <= epsilon:
        raise ValueError(
            f"Polar beams of thickness {2 * epsilon + 1} need images wider than {2 * epsilon + 1} "
            f"pixels; got {size}. Use larger images or a smaller epsilon."
        )
    quadrant, within = _quadrants(num_beams)
    radius = math.sqrt(centre**2 - epsilon**2)
    radii = radius * (torch.arange(beam_length, dtype=torch.float64) + 0.5) / beam_length
    angle = within + 3 * math.pi / 4
    along = torch.stack((torch.cos(angle), -torch.sin(angle)), dim=-1)  # y points down
    ccw = torch.stack((along[:, 1], -along[:, 0]), dim=-1)  # a quarter turn counter-clockwise
    offsets = (
        along[:, None, None, :] * radii[:, None]
        + ccw[:, None, None, :] * _sides(epsilon)[:, None, None]
    )
    return _quarter_turns(offsets, quadrant) + centre


def _quadrants(num_beams: int) -> tuple[Tensor, Tensor]:
    """For each beam, the number of quarter turns from the left quadrant, and the angle within it.

    Computed in integers until the last step, so beams a quarter turn apart get the same angle.
    """
    quarters = 4 * torch.arange(num_beams)
    quadrant = quarters // num_beams
    within = (quarters % num_beams).double() * (math.pi / 2) / num_beams
    return quadrant, within


def _quarter_turns(offsets: Tensor, quadrant: Tensor) -> Tensor:
    """Rotates (x, y) offsets from the centre counter-clockwise: (x, y) → (y, −x), y down."""
    turned = offsets
    for k in (1, 2, 3):
        offsets = torch.stack((offsets[..., 1], -offsets[..., 0]), dim=-1)
        turned = torch.where((quadrant == k)[:, None, None, None], offsets, turned)
    return turned


def _sides(epsilon: int) -> Tensor:
    return torch.arange(-epsilon, epsilon + 1, dtype=torch.float64)


# --- one gather ------------------------------------------------------------------------------


class BresenhamBeams(nn.Module):
    """(N, C, W, W) → (N, |B|, C, 2ε + 1, D): the pixels themselves, nothing interpolated.

    A row that leaves the image (only the outer rows of the longest diagonal beams can) repeats
    the border pixel, which turns with the image like everything else.
    """

    def __init__(
        self,
        num_beams: int,
        beam_length: int,
        epsilon: int,
        size: int,
        spacing: Spacing = "angle",
    ) -> None:
        super().__init__()
        pixels = bresenham_pixels(num_beams, beam_length, epsilon, size, spacing)
        pixels = pixels.clamp(0, size - 1)
        self.size = size
        self.index: Tensor
        # The geometry follows from the configuration, so it is not stored with the weights.
        self.register_buffer("index", pixels[..., 1] * size + pixels[..., 0], persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        check_size(images, self.size)
        return _in_parts(_gather, images, self.index, AT_ONCE)  # (N, |B|, C, 2ε+1, D)


class PolarBeams(nn.Module):
    """(N, C, W, W) → (N, |B|, C, 2ε + 1, D): bilinear samples; all beams have the same length."""

    def __init__(self, num_beams: int, beam_length: int, epsilon: int, size: int) -> None:
        super().__init__()
        positions = polar_positions(num_beams, beam_length, epsilon, size)
        index, weight = _bilinear(positions, size)
        self.size = size
        self.index: Tensor
        self.weight: Tensor
        self.grid: Tensor
        self.register_buffer("index", index, persistent=False)
        self.register_buffer("weight", weight.float(), persistent=False)
        # From −1 to 1 between the middles of the outer pixels: ((2ε + 1)·|B|, D, 2).
        grid = positions.transpose(0, 1).flatten(0, 1) / ((size - 1) / 2) - 1
        self.register_buffer("grid", grid.float(), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        check_size(images, self.size)
        if images.is_cuda:
            return self._sampled(images)
        return _in_parts(self._mixed, images, self.index, MIXED_AT_ONCE)  # (N, |B|, C, 2ε+1, D)

    def _mixed(self, images: Tensor, index: Tensor, out: Tensor | None = None) -> Tensor:
        channels = images.shape[1] // self.size**2
        _, num_beams, width, length = self.index.shape
        shape = (images.shape[0], 4, num_beams, channels, width, length)
        corners = _gather(images, index).view(shape)  # (N, 4, |B|, C, 2ε+1, D)
        weight = self.weight.unsqueeze(-3)
        if out is None:
            return (corners * weight).sum(1).flatten(1)
        torch.sum(corners.mul_(weight), 1, out=out.view(shape[0], *shape[2:]))
        return out

    def _sampled(self, images: Tensor) -> Tensor:
        """The same with `grid_sample`, which takes a quarter of the time on a GPU."""
        count, channels = images.shape[:2]
        _, num_beams, width, length = self.index.shape
        if channels <= MOST_CHANNELS and served(images, self.grid):
            from radialbeams.nn.kernels.turning import sampled  # needs Triton

            samples: Tensor = sampled(images, self.grid)  # (N, C, (2ε+1)·|B|, D)
        else:
            grid = self.grid.float().expand(count, -1, -1, -1)  # (N, (2ε+1)·|B|, D, 2)
            samples = F.grid_sample(images.float(), grid, align_corners=True).to(images.dtype)
        return samples.reshape(count, channels, width, num_beams, length).permute(0, 3, 1, 2, 4)


class _Sampler(Protocol):
    """(N, C·W·W) → (N, |B|·C·(2ε + 1)·D), in a new tensor or in the given one."""

    def __call__(self, images: Tensor, index: Tensor, out: Tensor | None = None) -> Tensor: ...


def _in_parts(sampler: _Sampler, images: Tensor, index: Tensor, at_once: int) -> Tensor:
    """The beams of a batch, on a CPU a few images at a time: `at_once` bytes of them.

    Beams cross the rows of an image, so a processor that samples from memory waits for nearly every
    row. It reads ahead where bytes are read in order, so a sum brings the images into its cache.
    """
    count = max(1, at_once // (4 * images.shape[1:].numel()))
    in_parts = _can_write_in_parts(images) and images.shape[0] > count
    # In parts, the index is read again and again: 32 bits are half of the bytes.
    places = _with_channels(index.int() if in_parts else index, images)
    shape, places = (images.shape[0], *places.shape[-4:]), places.flatten()
    if not in_parts:
        return sampler(images.flatten(1), places).view(shape)
    flat, beams = images.flatten(1), images.new_empty(shape)
    parts = zip(torch.split(flat, count), torch.split(beams.flatten(1), count), strict=True)
    for some, out in parts:
        some.sum()
        sampler(some, places, out)
    return beams


def _can_write_in_parts(images: Tensor) -> bool:
    """Whether results can be written into a tensor: not in a graph, nor if a gradient is needed."""
    needs_gradient = images.requires_grad and torch.is_grad_enabled()
    plain = images.device.type == "cpu" and images.dtype == torch.float32
    return plain and not (needs_gradient or torch.compiler.is_compiling())


def _with_channels(index: Tensor, images: Tensor) -> Tensor:
    """Pixels (…, 2ε + 1, D) → the same in all channels of flat images: (…, C, 2ε + 1, D).

    With the channels in the index, the samples have the layout that the encoder reads. This takes
    half the time of a gather per channel and a transpose.
    """
    channels = torch.arange(images.shape[1], device=images.device, dtype=index.dtype)
    return index.unsqueeze(-3) + images.shape[-1] ** 2 * channels[:, None, None]


def _gather(images: Tensor, index: Tensor, out: Tensor | None = None) -> Tensor:
    """(N, C·W·W) at the given places (K,) → (N, K)."""
    if out is None:
        return images.index_select(1, index)
    return torch.index_select(images, 1, index, out=out)


def _bilinear(positions: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The four pixels around each position and their weights: (4, |B|, 2ε + 1, D) each."""
    low = positions.floor().clamp(0, size - 2)
    part = positions - low
    index, weight = [], []
    for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
        index.append((low[..., 1] + dy) * size + low[..., 0] + dx)
        weight.append(
            (part[..., 0] if dx else 1 - part[..., 0]) * (part[..., 1] if dy else 1 - part[..., 1])
        )
    return torch.stack(index).long(), torch.stack(weight)


def check_size(images: Tensor, size: int) -> None:
    if images.ndim != 4 or images.shape[-2:] != (size, size):
        raise ValueError(
            f"Expected images of shape (N, C, {size}, {size}), for which these beams were built; "
            f"got {tuple(images.shape)}. Resize the images or build beams for their size."
        )


# --- the lemmas ------------------------------------------------------------------------------


def margin(size: int) -> int:
    """The paper's δ = ⌈W(√2 − 1)/2⌉: a square padded by δ loses no pixel under any rotation."""
    return max(0, math.ceil(size * (math.sqrt(2) - 1) / 2))


def named_length(length: Length, size: int) -> int:
    """D for the paper's beam lengths: A sees no padding, B reaches the border, C the corners."""
    table = {"A": size // 2 - margin(size), "B": size // 2, "C": size // 2 + margin(size)}
    if length not in table:
        raise ValueError(f"A beam length is named A, B or C; got {length!r}.")
    return table[length]


def upper_bound(beam_length: int, epsilon: int) -> float:
    """8D/(2ε + 1): with this many beams, their outer ends cover the whole border."""
    return 8 * beam_length / (2 * epsilon + 1)


def coverage(num_beams: int, beam_length: int, epsilon: int, *, as_printed: bool = False) -> float:
    """The number of pixels that all beams together read, by the lemma; compare `count_pixels`.

    `as_printed` uses the formula as printed in the paper, for comparison: for 32 beams it gives
    half of the true value, and for thin beams it is negative.
    """
    _check_beams(num_beams, beam_length, epsilon)
    if num_beams < 8:
        raise ValueError(
            "The coverage lemma cuts the square into one triangle per beam and holds for "
            f"num_beams ≥ 8; got {num_beams}. Count the pixels with count_pixels instead."
        )
    # Differs from the paper: it prints tan(360°/|B|) where its own proof has a triangle of base
    # 8D/|B| and height D, whose slope is 8/|B|.
    slope = math.tan(2 * math.pi / num_beams) if as_printed else 8 / num_beams
    triangle = 4 * beam_length**2 / num_beams
    gap = 8 * beam_length / num_beams - (2 * epsilon + 1)
    return num_beams * (triangle - gap**2 / (2 * slope))


def overlap(num_beams: int, beam_length: int, epsilon: int, *, as_printed: bool = False) -> float:
    """The number of samples that repeat a pixel: all samples minus the coverage."""
    samples = num_beams * (2 * epsilon + 1) * beam_length
    return samples - coverage(num_beams, beam_length, epsilon, as_printed=as_printed)


def count_pixels(
    num_beams: int, beam_length: int, epsilon: int, spacing: Spacing = "angle"
) -> tuple[int, int]:
    """Coverage and overlap of Bresenham beams, counted pixel by pixel on an even grid."""
    size = 2 * (beam_length + epsilon)
    pixels = bresenham_pixels(num_beams, beam_length, epsilon, size, spacing).flatten(0, 2)
    covered = len(torch.unique(pixels, dim=0))
    return covered, len(pixels) - covered


def _check_beams(num_beams: int, beam_length: int, epsilon: int) -> None:
    for name, value, least in (
        ("num_beams", num_beams, 1),
        ("beam_length", beam_length, 1),
        ("epsilon", epsilon, 0),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}; got {value}.")


def _check_reach(beam_length: int, size: int) -> None:
    longest = (size + 1) // 2
    if beam_length > longest:
        raise ValueError(
            f"beam_length must be at most {longest} for images of {size} × {size} pixels; got "
            f"{beam_length}. Pad the images (by margin(W) for any rotation) or shorten the beams."
        )
