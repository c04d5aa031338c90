"""Samples images under affine maps: bilinearly, exactly if pixels only move, or nearest neighbour.

A map (N, 2, 3) takes points of the new frame to their sources in the old one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from radialbeams.front.affine import TIE, Size, is_square, moved_xy, with_gradient_of
from radialbeams.nn.exporting import is_exporting
from radialbeams.nn.kernels.using import MOST_CHANNELS, served

Sampler = Callable[[Tensor, Tensor, Size, float], Tensor]


def check_batch(images: Tensor) -> None:
    """Raises ValueError unless this is a batch of float images."""
    if images.ndim != 4:
        raise ValueError(
            f"Expected images of shape (N, C, H, W); got {tuple(images.shape)}. Pass a single "
            "image as a batch of one: image[None]."
        )
    if not images.is_floating_point():
        raise ValueError(
            f"Expected float images in [0, 1]; got {images.dtype}. Convert bytes: x.float() / 255."
        )


def transferred(
    pixels: Tensor,
    origin: Tensor,
    source: Size,
    target: Size,
    sampler: Sampler,
    fill: float,
    size: Size | None = None,
) -> Tensor:
    """(N, …, h, w) in the source frame → the target frame, at the same relative resolution.

    `source` and `target` are the full sizes of the frames; `origin` maps points of the target to
    points of the source, at full resolution.
    """
    if pixels.ndim < 3 or pixels.shape[0] != origin.shape[0]:
        raise ValueError(
            f"Expected (N, …, H, W) with N = {origin.shape[0]} items; got "
            f"{tuple(pixels.shape)}. For crops, use images[pose.source]."
        )
    rows, columns = pixels.shape[-2:]
    if size is None and (rows, columns) == source:  # full resolution; works in graphs of any size
        planes = pixels[:, None] if pixels.ndim == 3 else pixels.flatten(1, -3)
        return sampler(planes, origin, target, fill).reshape(*pixels.shape[:-2], *target)
    if size is None:
        size = (_share(target[0], rows, source[0]), _share(target[1], columns, source[1]))
    steps = (target[1] / size[1], target[0] / size[0])
    ratios = (source[1] / columns, source[0] / rows)
    planes = pixels[:, None] if pixels.ndim == 3 else pixels.flatten(1, -3)  # (N, C, h, w)
    out = sampler(planes, _rescaled(origin, steps, ratios), size, fill)
    return out.reshape(*pixels.shape[:-2], *size)


def _share(target: int, chosen: int, source: int) -> int:
    return max(1, round(target * chosen / source))


def _rescaled(origin: Tensor, steps: tuple[float, float], ratios: tuple[float, float]) -> Tensor:
    """The same map for coarser pixels.

    They are `steps` (x, y) apart in the target and `ratios` in the source, in pixels at full
    resolution. Pixels tile the image, so the middle of pixel i is at
    (i + ½)·step − ½.
    """
    if steps == ratios == (1, 1):
        return origin
    across, down = steps
    rows = []
    for row, ratio in zip(origin.unbind(-2), ratios, strict=True):
        a, b, shift = row.unbind(-1)
        shift = (shift + a * (across / 2 - 0.5) + b * (down / 2 - 0.5) + 0.5) / ratio - 0.5
        rows.append(torch.stack((a * across / ratio, b * down / ratio, shift), dim=-1))
    return torch.stack(rows, dim=-2)


def _sources(origin: Tensor, size: Size) -> Tensor:
    """The source (x, y) of each output pixel: (N, H, W, 2)."""
    if is_exporting():
        return _sources_as_product(origin, size)
    y = torch.arange(size[0], device=origin.device, dtype=origin.dtype)[None, :, None, None]
    x = torch.arange(size[1], device=origin.device, dtype=origin.dtype)[None, None, :, None]
    return moved_xy(x, y, origin)


def _sources_as_product(origin: Tensor, size: Size) -> Tensor:
    """The same as one matrix product: (H, 2) of y and 1 by (N, 2, W·2) of b and a·x + shift.

    ONNX Runtime adds slowly where tensors of two numbers in the last axis are broadcast: the sum
    would take two thirds of the time of the sampling itself.
    """
    height, width = size
    y, x = (torch.arange(side, device=origin.device, dtype=origin.dtype) for side in size)
    a, b, shift = (column[:, None] for column in origin.mT.unbind(1))  # (N, 1, 2) each
    along = a * x[:, None] + shift  # (N, W, 2)
    pairs = torch.stack((b.expand_as(along), along), dim=1).flatten(2)  # (N, 2, W·2)
    rows = torch.stack((y, torch.ones_like(y)), dim=1)  # (H, 2)
    return (rows @ pairs).reshape(-1, height, width, 2)


def interpolate(pixels: Tensor, origin: Tensor, size: Size, fill: float) -> Tensor:
    """(N, C, h, w) → (N, C, H, W), bilinearly."""
    if _launches(pixels, origin):
        return _launched(pixels, origin, size, fill)
    values, grid = _values_and_grid(pixels, origin, size)
    return sampled_with_fill(values, grid, "bilinear", fill).to(pixels.dtype)


def blend(pixels: Tensor, origin: Tensor, size: Size, fill: float) -> Tensor:
    """(N, C, h, w) → (N, C, H, W): bilinear, and exact if the map only moves pixels."""
    if _launches(pixels, origin):
        return _launched(pixels, origin, size, fill)
    mixed = interpolate(pixels, origin, size, fill)
    if is_exporting():
        # A second sampling would cost a millisecond at run time, and changes values by only 1e-5.
        return mixed
    # A map of whole numbers only moves pixels. The values are then exact, but the gradient is that
    # of the interpolation: in training, the angle must be able to leave a quarter turn.
    whole = (origin == origin.round()).flatten(1).all(1)[:, None, None, None]
    if can_ask(whole) and not whole.any():
        return mixed
    values, grid = _values_and_grid(pixels, origin.detach(), size)
    nearest = sampled_with_fill(values, grid, "nearest", fill).to(pixels.dtype)
    return torch.where(whole, with_gradient_of(nearest, mixed), mixed)


def _launches(pixels: Tensor, origin: Tensor) -> bool:
    return pixels.shape[1] <= MOST_CHANNELS and served(pixels, origin)


def _launched(pixels: Tensor, origin: Tensor, size: Size, fill: float) -> Tensor:
    """Bilinear, and exact if the map only moves pixels, in one kernel without a grid."""
    from radialbeams.nn.kernels.turning import turned  # needs Triton

    out: Tensor = turned(pixels, origin, *size, fill)
    return out


def _values_and_grid(pixels: Tensor, origin: Tensor, size: Size) -> tuple[Tensor, Tensor]:
    """The pixels and the grid in the higher precision of both: half would be too coarse for it."""
    origin = origin.to(torch.promote_types(origin.dtype, pixels.dtype))
    grid = _sources(_normalised(origin, pixels), size)  # (N, H, W, 2)
    return pixels.to(origin.dtype), grid


def can_ask(answer: Tensor) -> bool:
    """Whether values can be read now: not while compiling, nor from a GPU, which would wait."""
    return answer.device.type == "cpu" and not torch.compiler.is_compiling()


def sampled_with_fill(pixels: Tensor, grid: Tensor, mode: str, fill: float) -> Tensor:
    aligned = _between_middles(pixels)
    out = F.grid_sample(pixels, grid, mode, "zeros", align_corners=aligned)
    if fill == 0:
        return out
    # The fill is added only outside; subtracting it before and adding it after would round.
    picture = torch.ones_like(pixels[:, :1])
    covered = F.grid_sample(picture, grid, mode, "zeros", align_corners=aligned)
    return out + fill * (1 - covered)


def _between_middles(pixels: Tensor) -> bool:
    """Whether −1 and 1 are the middles of the outer pixels for `grid_sample` (align_corners).

    Otherwise they are their outer edges, which also works for a single pixel. cuDNN has a fast
    kernel for the first, ONNX Runtime for the second.
    """
    return pixels.is_cuda and all(side > 1 for side in pixels.shape[-2:])


def _normalised(origin: Tensor, pixels: Tensor) -> Tensor:
    """The map with its sources in the coordinates of `grid_sample` instead of pixels.

    It uses plain numbers: creating a tensor here would stall a GPU and break its graphs.
    """
    middles = _between_middles(pixels)
    height, width = pixels.shape[-2:]
    if is_square(height, width):
        step, first = _step_and_first(width, middles)
        whole = origin * step
        return torch.cat((whole[..., :2], whole[..., 2:] + first), dim=-1)
    rows = []
    for row, side in zip(origin.unbind(-2), (width, height), strict=True):
        step, first = _step_and_first(side, middles)
        a, b, shift = (row * step).unbind(-1)
        rows.append(torch.stack((a, b, shift + first), dim=-1))
    return torch.stack(rows, dim=-2)


def _step_and_first(side: int, middles: bool) -> tuple[float, float]:
    """The distance between two pixels, and the middle of the first one."""
    return (2 / (side - 1), -1.0) if middles else (2 / side, 1 / side - 1)


def pick(pixels: Tensor, origin: Tensor, size: Size, fill: float) -> Tensor:
    """(N, C, h, w) of any type → (N, C, H, W): nearest neighbour."""
    height, width = pixels.shape[-2:]
    sources = _sources(origin, size)
    column, row = (
        (coordinate + 0.5 + TIE).floor().long() for coordinate in sources.unbind(-1)
    )  # (N, H, W) each
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    index = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
    index = index.flatten(1)[:, None].expand(-1, pixels.shape[1], -1)  # (N, C, H·W)
    picked = pixels.flatten(2).gather(2, index).reshape(*pixels.shape[:2], *size)
    return picked.masked_fill(~inside[:, None], fill)
