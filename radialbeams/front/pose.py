"""Pose: how images were turned upright, to map results back into the original images.

Convention, for every function here:

- a point is (x, y) in pixel indices, rows downwards: (0, 0) is the middle of the first pixel and
  ((W − 1)/2, (H − 1)/2) the middle of the image. If a detector counts from the corner of the first
  pixel, its coordinates are 0.5 larger: `pose.invert_points(points - 0.5) + 0.5`;
- an angle is the rotation that the image has undergone, in radians, counter-clockwise as displayed,
  so the upright image is the image rotated by −angle about its middle;
- `transform` maps points of the original to points of the upright image.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, SupportsIndex, TypeVar, get_args

import torch
from torch import Tensor

from radialbeams.front.affine import (
    Canvas,
    Size,
    canvas_size,
    corners,
    enclosed,
    inverted,
    middle,
    moved,
    on_whole_pixels,
    turned_back,
)
from radialbeams.front.sampling import blend, interpolate, pick, transferred

Kind = Literal["images", "masks", "features", "points", "boxes"]
# Results for all items in one tensor, or in a list with one tensor for each item.
Results = TypeVar("Results", Tensor, Sequence[Tensor])


@dataclass(frozen=True, eq=False)
class Pose:
    """The estimates for N images (or objects in them), and how each was turned."""

    angle: Tensor  # (N,) radians in [0, 2π)
    confidence: Tensor  # (N,) probability that the angle is within 10°; NaN: unknown
    applied: Tensor  # (N,) bool; False: left alone, so the transform does not rotate
    transform: Tensor  # (N, 2, 3): (x, y, 1) in the original → (x, y) in the upright image
    source: Tensor  # (N,) integers: the index in the batch of the image each belongs to
    before: Size  # of the originals
    after: Size  # of the upright images

    @classmethod
    def from_angles(
        cls,
        angle: Tensor,
        size: Size,
        *,
        canvas: Canvas = "same",
        confidence: Tensor | None = None,
        applied: Tensor | None = None,
    ) -> Pose:
        """The pose of N images of one size whose angles are known; by default, all are turned."""
        if confidence is None:
            confidence = torch.full_like(angle, math.nan)
        after = canvas_size(size, canvas)
        turn = angle if applied is None else torch.where(applied, angle, torch.zeros_like(angle))
        transform = turned_back(turn, middle(size), middle(after))
        if torch.compiler.is_compiling() or sum(size) % 2:  # one graph for odd and even sums
            transform = on_whole_pixels(transform)
        if applied is None:
            applied = torch.ones_like(angle, dtype=torch.bool)
        source = torch.arange(angle.shape[0], device=angle.device)
        return cls(angle, confidence, applied, transform, source, size, after)

    def __len__(self) -> int:
        return self.angle.shape[0]

    def __getitem__(self, which: SupportsIndex | slice | Tensor) -> Pose:
        """The pose of some of the items; a single one is a batch of one."""
        if isinstance(which, SupportsIndex) and not isinstance(which, Tensor):
            number = range(len(self))[which]  # raises IndexError past the end
            which = slice(number, number + 1)
        return self._with_each(lambda tensor: tensor[which])

    def __iter__(self) -> Iterator[Pose]:
        """The poses of the items, each as a batch of one."""
        return (self[number] for number in range(len(self)))

    def to(self, device: torch.device | str) -> Pose:
        """The same pose on another device, for results on that device."""
        return self._with_each(lambda tensor: tensor.to(device))

    def _with_each(self, change: Callable[[Tensor], Tensor]) -> Pose:
        names = [field.name for field in fields(self) if field.name not in ("before", "after")]
        tensors: dict[str, Any] = {name: change(getattr(self, name)) for name in names}
        return replace(self, **tensors)

    # --- from the original to the upright image ---

    def apply_images(self, images: Tensor, fill: float = 0.0, *, exact: bool = True) -> Tensor:
        """(N, C, H, W) → (N, C, H', W'), bilinearly; `fill` is the value outside the image.

        Images turned by a multiple of 90°, or not at all, are exact. If there are none, or an error
        of 1e-4 is acceptable, `exact=False` saves a second sampling on a GPU.
        """
        _check_size("apply_images", images, self.before)
        sampler = blend if exact else interpolate
        origin = inverted(self.transform)
        return transferred(images, origin, self.before, self.after, sampler, fill)

    def apply_masks(self, masks: Tensor, fill: float = 0) -> Tensor:
        """(N, …, H, W) of any type → (N, …, H', W'): nearest neighbour, so no new values."""
        return transferred(masks, inverted(self.transform), self.before, self.after, pick, fill)

    def apply_features(
        self, features: Tensor, fill: float = 0.0, *, size: Size | None = None
    ) -> Tensor:
        """(N, C, h, w) of any resolution → (N, C, h', w') of the same, unless `size` is given."""
        origin = inverted(self.transform)
        return transferred(features, origin, self.before, self.after, blend, fill, size)

    def apply_points(self, points: Results) -> Results:
        """(N, …, 2) → (N, …, 2), or lists with one tensor for each item, as in `invert_boxes`."""
        return self._moved("points", points, 2, lambda pose, batch: moved(batch, pose.transform))

    def apply_boxes(self, boxes: Results, *, enclosing: bool = False) -> Results:
        """(N, K, 4) as x₀, y₀, x₁, y₁ → corners (N, K, 4, 2), or the box that encloses them."""
        return self._moved(
            "boxes", boxes, 4, lambda pose, batch: _boxes(batch, pose.transform, enclosing)
        )

    # --- from the upright image back to the original ---

    def invert_images(self, images: Tensor, fill: float = 0.0) -> Tensor:
        """(N, C, H', W') in the upright frame → (N, C, H, W) in the original one."""
        _check_size("invert_images", images, self.after)
        return transferred(images, self.transform, self.after, self.before, blend, fill)

    def invert_masks(self, masks: Tensor, fill: float = 0) -> Tensor:
        """(N, …, H', W') of any type → (N, …, H, W): nearest neighbour, so no new values."""
        return transferred(masks, self.transform, self.after, self.before, pick, fill)

    def invert_features(
        self, features: Tensor, fill: float = 0.0, *, size: Size | None = None
    ) -> Tensor:
        """(N, C, h', w') of any resolution → (N, C, h, w) of the same, unless `size` is given."""
        return transferred(features, self.transform, self.after, self.before, blend, fill, size)

    def invert_points(self, points: Results) -> Results:
        """(N, …, 2) → (N, …, 2), or lists with one tensor for each item, as in `invert_boxes`."""
        return self._moved(
            "points", points, 2, lambda pose, batch: moved(batch, inverted(pose.transform))
        )

    def invert_boxes(self, boxes: Results, *, enclosing: bool = False) -> Results:
        """(N, K, 4) as x₀, y₀, x₁, y₁ → corners (N, K, 4, 2), or the box that encloses them.

        A list of (Kᵢ, 4), one for each item as detectors return them, gives a list. The order of
        the corners is upper left, upper right, lower right, lower left *in the upright image*: in
        the original, the box is rotated.
        """
        return self._moved(
            "boxes",
            boxes,
            4,
            lambda pose, batch: _boxes(batch, inverted(pose.transform), enclosing),
        )

    def invert(self, found: Results, kind: Kind = "images", **options: Any) -> Results:
        """Maps results of any kind back; options as for `invert_images` and the others."""
        if kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}; got {kind!r}.")
        invert: Callable[..., Results] = getattr(self, f"invert_{kind}")
        return invert(found, **options)

    def _moved(
        self, name: str, results: Results, numbers: int, function: Callable[[Pose, Tensor], Tensor]
    ) -> Results:
        """Applies `function` to a tensor (N, …, numbers), or to a list of N tensors in one call."""
        if isinstance(results, Tensor):
            _check_last(name, results, numbers, len(self))
            return function(self, results)
        tensors = [torch.as_tensor(result, device=self.angle.device) for result in results]
        rows = _rows(name, tensors, numbers, len(self))
        counts = torch.tensor([len(result) for result in rows], dtype=torch.long)
        owners = torch.arange(len(self)).repeat_interleave(counts).to(self.angle.device)
        every = torch.cat(rows) if rows else self.angle.new_zeros(0, numbers)  # (K₁ + K₂ + …, …)
        return list(torch.split(function(self[owners], every[:, None])[:, 0], counts.tolist()))


# Exported programs contain the name of the type, so it must not change with the file's place.
torch.export.register_dataclass(Pose, serialized_type_name="radialbeams.nn.pose.Pose")


def _boxes(boxes: Tensor, transform: Tensor, enclosing: bool) -> Tensor:
    points = moved(corners(boxes), transform)
    return enclosed(points) if enclosing else points


def _rows(name: str, results: Sequence[Tensor], numbers: int, count: int) -> list[Tensor]:
    """The tensors as (Kᵢ, …, numbers); an empty tensor from a detector may have any shape."""
    shape = next((result.shape[1:] for result in results if result.numel()), torch.Size((numbers,)))
    rows = [result if result.numel() else result.reshape(0, *shape) for result in results]
    if (
        len(rows) != count
        or any(result.shape[1:] != shape for result in rows)
        or shape[-1:] != (numbers,)
    ):
        raise ValueError(
            f"Expected the {name} of {count} items, one tensor (K, …, {numbers}) for each; got "
            f"{', '.join(str(tuple(result.shape)) for result in results) or 'none'}. For an item "
            f"without {name}, pass torch.zeros(0, {numbers})."
        )
    return rows


def _check_last(name: str, results: Tensor, numbers: int, count: int) -> None:
    if results.shape[-1] != numbers or results.shape[0] != count:
        raise ValueError(
            f"Expected the {name} of {count} items, (N, …, {numbers}); got {tuple(results.shape)}. "
            "Pass only the coordinates, without scores or other columns."
        )


def _check_size(name: str, images: Tensor, size: Size) -> None:
    if tuple(images.shape[-2:]) != tuple(size):
        other = name.replace("images", "features")
        raise ValueError(
            f"{name} expects images of {size[0]} × {size[1]} pixels; got "
            f"{images.shape[-2]} × {images.shape[-1]}. For maps of another resolution, use "
            f"{other}."
        )
