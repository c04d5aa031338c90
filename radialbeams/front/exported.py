"""Views and turning as they are exported to ONNX for images of one size: the same in less time.

A view pixel depends on an eighth of the rows and columns of its image. So views are made in bands,
each from the rows or columns that it depends on. Images are turned in bands of rows: of every pixel
ONNX Runtime notes its source and weights in 56 bytes, which for many pixels do not fit the cache.

ONNX Runtime spends one to two microseconds on every operation, however small its tensors are, and
`Pose` takes more than a hundred of them to build, invert and normalise a map of six numbers.
About the middles of both images, the sources that `grid_sample` expects are a product of cosine
and sine with constants.
"""

from __future__ import annotations

import copy
from typing import NamedTuple, cast

import torch
from torch import Tensor

from radialbeams.front.affine import Size, cosine_and_sine
from radialbeams.front.pose import Pose
from radialbeams.front.sampling import sampled_with_fill
from radialbeams.front.view_geometry import ViewGeometry, in_channels

BANDS = 3  # with more, copying the rows takes the time that their products save
AT_ONCE = 1800  # pixels in a band of an upright image, about
MOST_BANDS = 64
TOGETHER = 8  # bands whose sources are computed together


class Band(NamedTuple):
    """Some pixels of a view, from the pixels `first` to `end` of the image."""

    first: int
    end: int
    weights: Tensor  # (pixels of the view, end − first)


class ExportedViews(ViewGeometry):
    """Images of one size, (N, C, H, W) → leak-free views (N, channels, S, S)."""

    rows: list[Band]
    columns: list[Band]

    @classmethod
    def of(cls, geometry: ViewGeometry, size: Size) -> ViewGeometry:
        """The same views of images of this size.

        The paper's views stay as they are: they are clamped after the columns, and it is faster to
        begin with the rows.
        """
        if geometry.limits is not None:
            return geometry
        exported = cast(ExportedViews, copy.copy(geometry))
        exported.__class__ = cls
        weights = geometry.weights_of_square(min(size))  # (S, side)
        margins = ((length - min(size)) // 2 for length in size)
        exported.rows, exported.columns = (bands(weights, margin) for margin in margins)
        return exported

    def forward(self, images: Tensor) -> Tensor:
        images = in_channels(images, self.channels)
        rows = torch.cat([w @ images[:, :, first:end] for first, end, w in self.rows], dim=2)
        views = torch.cat([rows[..., first:end] @ w.mT for first, end, w in self.columns], dim=3)
        return self.masked(views)


def bands(weights: Tensor, margin: int) -> list[Band]:
    """The bands of (S, side), for images with a margin before the square."""
    result = []
    for part in weights.tensor_split(BANDS):
        used = part.any(0).nonzero()
        first, end = int(used.min()), int(used.max()) + 1
        result.append(Band(margin + first, margin + end, part[:, first:end].contiguous()))
    return result


def turned(pose: Pose, images: Tensor, fill: float, *, exact: bool) -> Tensor:
    """`pose.apply_images`, for a pose made from angles alone."""
    if not _has_closed_form(pose, images):
        return pose.apply_images(images, fill, exact=exact)
    angle = torch.where(pose.applied, pose.angle, 0.0) if exact else pose.angle
    grids = sources(cosine_and_sine(angle), pose.before, pose.after)
    return torch.cat([sampled_with_fill(images, grid, "bilinear", fill) for grid in grids], dim=2)


def _has_closed_form(pose: Pose, images: Tensor) -> bool:
    """Sizes must be known, and no quarter turn may fall between the pixels (`on_whole_pixels`)."""
    sizes = (*pose.before, *pose.after)
    are_known = all(isinstance(side, int) for side in sizes)
    return are_known and sum(pose.before) % 2 == 0 and images.dtype == torch.float32


def sources(unit: Tensor, before: Size, after: Size) -> list[Tensor]:
    """Cosine and sine (N, 2) → the sources for `grid_sample`, in bands of rows: (N, h, W', 2) each.

    From −1 to 1 between the outer edges of the image. With x and y from the middle of the upright
    image, the source lies at (c·x + s·y)/(W/2) and (c·y − s·x)/(H/2).
    """
    height, width = after
    across, down = 2 / before[1], 2 / before[0]
    x, y = (torch.arange(side, dtype=torch.float32) - (side - 1) / 2 for side in (width, height))
    none, each = torch.zeros_like(x), torch.ones_like(x)
    # (W', 2) each, as (x, y): what cosine and sine contribute for every unit of y, and without it.
    cosine_by_y, sine_by_y = _pairs(none, down * each), _pairs(across * each, none)
    cosine, sine = _pairs(across * x, none), _pairs(none, -down * x)
    shares = torch.stack((torch.cat((cosine_by_y, cosine)), torch.cat((sine_by_y, sine))))
    factors = (unit @ shares.flatten(1)).reshape(-1, 2, 2 * width)  # (N, 2, W'·2)
    rows = torch.stack((y, torch.ones_like(y)), dim=-1)  # (H', 2)
    bands = rows.tensor_split(min(MOST_BANDS, max(1, height * width // AT_ONCE)))
    grids: list[Tensor] = []
    for first in range(0, len(bands), TOGETHER):
        some = bands[first : first + TOGETHER]
        sizes = [len(band) for band in some]
        grid = (torch.cat(some) @ factors).reshape(-1, sum(sizes), width, 2)
        grids += torch.split(grid, sizes, dim=1) if len(some) > 1 else [grid]
    return grids


def _pairs(x: Tensor, y: Tensor) -> Tensor:
    return torch.stack((x, y), dim=-1)
