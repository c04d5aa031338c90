"""Pose: how images were turned upright, and the way back for what was found in them.

Convention, for every function here:

- a point is (x, y) in pixel indices, rows downwards: (0, 0) is the middle of the first pixel and
  ((W − 1)/2, (H − 1)/2) the middle of the image. Where a detector counts from the first pixel's
  corner, its coordinates are 0.5 larger: `pose.invert_points(points - 0.5) + 0.5`;
- an angle is the turn that the image has undergone, radians, counter-clockwise as displayed, so
  upright is the image turned by −angle about its middle;
- `transform` takes points of the original to points of the upright image.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, SupportsIndex, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

Size = tuple[int, int]  # height, width
# The canvas of the upright image: that of the original, or one that holds it at any angle.
Canvas = Literal["same", "expand"]
Kind = Literal["images", "masks", "features", "points", "boxes"]
Sampler = Callable[[Tensor, Tensor, Size, float], Tensor]

# A sine or cosine this small is 0: float32 holds 2π to about 5e-7.
QUARTER_TOLERANCE = 1e-6
# Pixels: half-way between two, the later one is the nearest, whatever the last bits of a sum say.
TIE = 1e-3


@dataclass(frozen=True, eq=False)
class Pose:
    """What was found of N images (or objects in them), and what was done about it."""

    angle: Tensor  # (N,) radians in [0, 2π)
    confidence: Tensor  # (N,) chance that the angle is within 10°; NaN: none is known
    applied: Tensor  # (N,) bool; False: left alone, so the transform does not turn
    transform: Tensor  # (N, 2, 3): the original's (x, y, 1) → the upright image's (x, y)
    source: Tensor  # (N,) integers: which image of the batch each belongs to
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
        """Of N images of one size whose turns are known; all are turned if nothing else is said."""
        if confidence is None:
            confidence = torch.full_like(angle, math.nan)
        after = canvas_size(size, canvas)
        turn = angle if applied is None else torch.where(applied, angle, torch.zeros_like(angle))
        transform = turned_back(turn, middle(size), middle(after))
        if torch.compiler.is_compiling() or sum(size) % 2:  # a graph for odd and for even sums
            transform = on_whole_pixels(transform)
        if applied is None:
            applied = torch.ones_like(angle, dtype=torch.bool)
        source = torch.arange(angle.shape[0], device=angle.device)
        return cls(angle, confidence, applied, transform, source, size, after)

    def __len__(self) -> int:
        return self.angle.shape[0]

    def __getitem__(self, which: SupportsIndex | slice | Tensor) -> Pose:
        """The pose of some of the items, or of one, as a batch of one."""
        if isinstance(which, SupportsIndex) and not isinstance(which, Tensor):
            number = range(len(self))[which]  # past the end it is an IndexError, as a loop expects
            which = slice(number, number + 1)
        return self._with_each(lambda tensor: tensor[which])

    def to(self, device: torch.device | str) -> Pose:
        """The same on another device, for results that were brought there."""
        return self._with_each(lambda tensor: tensor.to(device))

    def _with_each(self, change: Callable[[Tensor], Tensor]) -> Pose:
        names = [field.name for field in fields(self) if field.name not in ("before", "after")]
        tensors: dict[str, Any] = {name: change(getattr(self, name)) for name in names}
        return replace(self, **tensors)

    # --- there ---

    def apply_images(self, images: Tensor, fill: float = 0.0, *, exact: bool = True) -> Tensor:
        """(N, C, H, W) → (N, C, H', W'), bilinearly; `fill` is what lies outside.

        What is turned by a multiple of 90°, or not at all, is exact to the bit. Where there is
        none of that, or 1e-4 is near enough, `exact=False` spares a GPU a second sampling.
        """
        _check_size("apply_images", images, self.before)
        sampler = blend if exact else interpolate
        origin = inverted(self.transform)
        return _transferred(images, origin, self.before, self.after, sampler, fill)

    def apply_masks(self, masks: Tensor, fill: float = 0) -> Tensor:
        """(N, …, H, W) of any type → (N, …, H', W'): the nearest pixel, so no new values."""
        return _transferred(masks, inverted(self.transform), self.before, self.after, pick, fill)

    def apply_features(
        self, features: Tensor, fill: float = 0.0, *, size: Size | None = None
    ) -> Tensor:
        """(N, C, h, w) of any resolution → (N, C, h', w'): the same, unless `size` says another."""
        origin = inverted(self.transform)
        return _transferred(features, origin, self.before, self.after, blend, fill, size)

    def apply_points(self, points: Tensor) -> Tensor:
        """(N, …, 2) → (N, …, 2)."""
        _check_last("points", points, 2, len(self))
        return moved(points, self.transform)

    def apply_boxes(self, boxes: Tensor, *, enclosing: bool = False) -> Tensor:
        """(N, K, 4) as x₀, y₀, x₁, y₁ → corners (N, K, 4, 2), or the upright box around them."""
        _check_last("boxes", boxes, 4, len(self))
        found = self.apply_points(corners(boxes))
        return enclosed(found) if enclosing else found

    # --- and back ---

    def invert_images(self, images: Tensor, fill: float = 0.0) -> Tensor:
        """(N, C, H', W') in the upright frame → (N, C, H, W) in the original one."""
        _check_size("invert_images", images, self.after)
        return _transferred(images, self.transform, self.after, self.before, blend, fill)

    def invert_masks(self, masks: Tensor, fill: float = 0) -> Tensor:
        """(N, …, H', W') of any type → (N, …, H, W): the nearest pixel, so no new values."""
        return _transferred(masks, self.transform, self.after, self.before, pick, fill)

    def invert_features(
        self, features: Tensor, fill: float = 0.0, *, size: Size | None = None
    ) -> Tensor:
        """(N, C, h', w') of any resolution → (N, C, h, w): the same, unless `size` says another."""
        return _transferred(features, self.transform, self.after, self.before, blend, fill, size)

    def invert_points(self, points: Tensor) -> Tensor:
        """(N, …, 2) → (N, …, 2)."""
        _check_last("points", points, 2, len(self))
        return moved(points, inverted(self.transform))

    def invert_boxes(self, boxes: Tensor, *, enclosing: bool = False) -> Tensor:
        """(N, K, 4) as x₀, y₀, x₁, y₁ → corners (N, K, 4, 2), or the upright box around them.

        The corners come in the order upper left, upper right, lower right, lower left *of the
        upright image*: the box lies turned in the original.
        """
        _check_last("boxes", boxes, 4, len(self))
        found = self.invert_points(corners(boxes))
        return enclosed(found) if enclosing else found

    def invert(self, found: Tensor, kind: Kind = "images", **options: Any) -> Tensor:
        """Back into the original frame, whatever it is; options as of `invert_images` and so on."""
        if kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}; got {kind!r}.")
        way: Callable[..., Tensor] = getattr(self, f"invert_{kind}")
        return way(found, **options)


torch.export.register_dataclass(Pose, serialized_type_name="radialbeams.nn.pose.Pose")


# --- geometry ----------------------------------------------------------------------------------


def middle(size: Size) -> tuple[float, float]:
    """(x, y)."""
    return (size[1] - 1) / 2, (size[0] - 1) / 2


def canvas_size(size: Size, canvas: Canvas) -> Size:
    """The same for all angles, so that a batch stays a batch."""
    if canvas == "same":
        return size
    if canvas != "expand":
        raise ValueError(f"canvas must be one of {', '.join(get_args(Canvas))}; got {canvas!r}.")
    diagonal = math.ceil(math.hypot(*size))
    # Odd stays odd and even stays even: what is not turned falls on whole pixels.
    height, width = (diagonal + (diagonal - side) % 2 for side in size)
    return height, width


def turned_back(
    angles: Tensor,
    before: tuple[float | Tensor, float | Tensor],
    after: tuple[float, float],
    scale: Tensor | None = None,
) -> Tensor:
    """(N,) → (N, 2, 3): turns by −angle about the point `before`, which lands on `after`."""
    right = _unit(angles)  # (N, 2): where a step to the right goes
    if scale is not None:
        right = scale[..., None] * right
    cos, sin = right.unbind(-1)
    below = torch.stack((-sin, cos), dim=-1)  # (N, 2): and one downwards
    (x, y), (u, v) = before, after
    shift = -(_each(x) * right) - _each(y) * below  # (N, 2)
    if _square(u, v):
        shift = shift + u
    else:
        shift = torch.stack((shift[..., 0] + u, shift[..., 1] + v), dim=-1)
    return torch.stack((right, below, shift), dim=-1)


def _square(one: float, other: float) -> bool:
    """Whether one step will do for both, which spares a GPU some of its launches.

    A compiler spares them anyway, and would need a graph for either case.
    """
    return not torch.compiler.is_compiling() and one == other


def _each(number: float | Tensor) -> float | Tensor:
    """One for all, or one of each of N, (N, 1)."""
    return number[..., None] if isinstance(number, Tensor) else number


def on_whole_pixels(transform: Tensor) -> Tensor:
    """Shifts of quarter turns by whole pixels, (N, 2, 3) each.

    Where one side of an image is odd and the other even, a quarter turn about the middle falls
    between the pixels. Half a pixel beside it, it only moves them; the pose knows.
    """
    grid, shift = transform[..., :2], transform[..., 2:]
    quarter = (grid == grid.round()).flatten(1).all(1)[:, None, None]
    whole = _with_gradient_of((shift + (0.5 + TIE)).floor(), shift)
    return torch.cat((grid, torch.where(quarter, whole, shift)), dim=-1)


def _unit(angles: Tensor) -> Tensor:
    """(N,) → (N, 2): whole numbers at multiples of 90°, where rounding would blur.

    The gradients are as ever.
    """
    unit = torch.stack((torch.cos(angles), torch.sin(angles)), dim=-1)
    quarter = unit.abs().amin(-1, keepdim=True) < QUARTER_TOLERANCE
    return torch.where(quarter, _with_gradient_of(unit.round(), unit), unit)


def inverted(transform: Tensor) -> Tensor:
    """(N, 2, 3) → (N, 2, 3), the way back."""
    turn, shift = transform[..., :2], transform[..., 2]  # (N, 2, 2), (N, 2)
    (a, b), (c, d) = (row.unbind(-1) for row in turn.unbind(-2))
    adjoint = torch.stack((d, -b, -c, a), dim=-1) / (a * d - b * c)[..., None]
    back = adjoint.reshape_as(turn)
    return torch.cat((back, -(back * shift[..., None, :]).sum(-1, keepdim=True)), dim=-1)


def moved(points: Tensor, transform: Tensor) -> Tensor:
    """(N, …, 2), (N, 2, 3) → (N, …, 2)."""
    return _moved(points[..., :1], points[..., 1:], transform)


def _moved(x: Tensor, y: Tensor, transform: Tensor) -> Tensor:
    """(N, …, 1) each → (N, …, 2), in two passes, of which the first is that of x alone."""
    # Not as a matrix product: under autocast that would lose whole pixels.
    columns = transform.mT.reshape(-1, 3, *(1 for _ in x.shape[1:-1]), 2)  # (N, 3, …, 2)
    a, b, shift = columns.unbind(1)
    return torch.addcmul(torch.addcmul(shift, a, x), b, y)


def corners(boxes: Tensor) -> Tensor:
    """(…, 4) as x₀, y₀, x₁, y₁ → (…, 4, 2), clockwise from the upper left."""
    return boxes[..., [0, 1, 2, 1, 2, 3, 0, 3]].reshape(*boxes.shape[:-1], 4, 2)


def enclosed(points: Tensor) -> Tensor:
    """(…, K, 2) → (…, 4): the smallest upright box around them."""
    return torch.cat((points.amin(-2), points.amax(-2)), dim=-1)


# --- pixels ------------------------------------------------------------------------------------


def _transferred(
    pixels: Tensor,
    origin: Tensor,
    here: Size,
    there: Size,
    sampler: Sampler,
    fill: float,
    size: Size | None = None,
) -> Tensor:
    """(N, …, h, w) of the frame `here`, at any resolution, → the frame `there` at the same one.

    `origin` takes points of `there` to where they come from, both at full resolution.
    """
    if pixels.ndim < 3 or pixels.shape[0] != origin.shape[0]:
        raise ValueError(
            f"Expected something of each of {origin.shape[0]} items: (N, …, H, W); got "
            f"{tuple(pixels.shape)}. Objects of crops are found in images[pose.source]."
        )
    rows, columns = pixels.shape[-2:]
    if size is None:
        size = (_share(there[0], rows, here[0]), _share(there[1], columns, here[1]))
    steps = (there[1] / size[1], there[0] / size[0])
    ratios = (here[1] / columns, here[0] / rows)
    planes = pixels[:, None] if pixels.ndim == 3 else pixels.flatten(1, -3)  # (N, C, h, w)
    out = sampler(planes, _rescaled(origin, steps, ratios), size, fill)
    return out.reshape(*pixels.shape[:-2], *size)


def _share(there: int, found: int, here: int) -> int:
    return max(1, round(there * found / here))


def _rescaled(origin: Tensor, steps: tuple[float, float], ratios: tuple[float, float]) -> Tensor:
    """The same map between coarser pixels, `steps` of the image's apart there, `ratios` here.

    In x and y. Pixels tile the image: the middle of pixel i is at (i + ½)·step − ½.
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
    """Where each output pixel comes from: x and y, (N, H, W, 2)."""
    y = torch.arange(size[0], device=origin.device, dtype=origin.dtype)[None, :, None, None]
    x = torch.arange(size[1], device=origin.device, dtype=origin.dtype)[None, None, :, None]
    return _moved(x, y, origin)


def interpolate(pixels: Tensor, origin: Tensor, size: Size, fill: float) -> Tensor:
    """(N, C, h, w) → (N, C, H, W), bilinearly."""
    values, grid = _values_and_grid(pixels, origin, size)
    return _sampled(values, grid, "bilinear", fill).to(pixels.dtype)


def blend(pixels: Tensor, origin: Tensor, size: Size, fill: float) -> Tensor:
    """(N, C, h, w) → (N, C, H, W): bilinear, and exact where it only moves pixels."""
    mixed = interpolate(pixels, origin, size, fill)
    if torch.compiler.is_exporting():
        # A second sampling would cost a runtime a millisecond; without, 1e-5 is all that differs.
        return mixed
    # A map of whole numbers only moves pixels. The values are then theirs to the bit, but the
    # gradient stays that of the interpolation: the angle must be able to leave a quarter turn.
    whole = (origin == origin.round()).flatten(1).all(1)[:, None, None, None]
    if can_ask(whole) and not whole.any():
        return mixed
    values, grid = _values_and_grid(pixels, origin.detach(), size)
    nearest = _sampled(values, grid, "nearest", fill).to(pixels.dtype)
    return torch.where(whole, _with_gradient_of(nearest, mixed), mixed)


def _values_and_grid(pixels: Tensor, origin: Tensor, size: Size) -> tuple[Tensor, Tensor]:
    """In the precision of both, which half the bits of a picture would not do for its places."""
    origin = origin.to(torch.promote_types(origin.dtype, pixels.dtype))
    grid = _sources(_normalised(origin, pixels), size)  # (N, H, W, 2)
    return pixels.to(origin.dtype), grid


def can_ask(answer: Tensor) -> bool:
    """A graph has no answer yet, and asking a GPU would hold it up."""
    return answer.device.type == "cpu" and not torch.compiler.is_compiling()


def _sampled(pixels: Tensor, grid: Tensor, mode: str, fill: float) -> Tensor:
    aligned = _between_middles(pixels)
    out = F.grid_sample(pixels, grid, mode, "zeros", align_corners=aligned)
    if fill == 0:
        return out
    # Added where there is no picture; taken off and put back, it would round the picture.
    picture = torch.ones_like(pixels[:, :1])
    covered = F.grid_sample(picture, grid, mode, "zeros", align_corners=aligned)
    return out + fill * (1 - covered)


def _between_middles(pixels: Tensor) -> bool:
    """Whether `grid_sample` is to count from −1 to 1 between the middles of the outer pixels.

    Otherwise it counts between their outer edges, of which a single pixel has two as well. cuDNN
    has a fast kernel for the first, ONNX Runtime for the second.
    """
    return pixels.is_cuda and all(side > 1 for side in pixels.shape[-2:])


def _normalised(origin: Tensor, pixels: Tensor) -> Tensor:
    """From pixels to what `grid_sample` counts in.

    By plain numbers: a tensor made of them here would hold up a GPU, and cannot be in its graphs.
    """
    middles = _between_middles(pixels)
    height, width = pixels.shape[-2:]
    if _square(height, width):
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
    """From one pixel to the next, and where the middle of the first one is."""
    return (2 / (side - 1), -1.0) if middles else (2 / side, 1 / side - 1)


def _with_gradient_of(values: Tensor, smooth: Tensor) -> Tensor:
    return values.detach() + (smooth - smooth.detach()) if smooth.requires_grad else values


def pick(pixels: Tensor, origin: Tensor, size: Size, fill: float) -> Tensor:
    """(N, C, h, w) of any type → (N, C, H, W): the nearest pixel."""
    height, width = pixels.shape[-2:]
    places = _sources(origin, size)
    column, row = (
        (place + 0.5 + TIE).floor().long() for place in places.unbind(-1)
    )  # (N, H, W) each
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    index = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
    index = index.flatten(1)[:, None].expand(-1, pixels.shape[1], -1)  # (N, C, H·W)
    found = pixels.flatten(2).gather(2, index).reshape(*pixels.shape[:2], *size)
    return found.masked_fill(~inside[:, None], fill)


def _check_last(name: str, found: Tensor, numbers: int, count: int) -> None:
    if found.shape[-1] != numbers or found.shape[0] != count:
        raise ValueError(
            f"Expected the {name} of {count} items, (N, …, {numbers}); got {tuple(found.shape)}. "
            "Scores and the like stay with you: give the coordinates alone."
        )


def _check_size(name: str, images: Tensor, size: Size) -> None:
    if tuple(images.shape[-2:]) != tuple(size):
        other = name.replace("images", "features")
        raise ValueError(
            f"{name} expects images of {size[0]} × {size[1]} pixels; got "
            f"{images.shape[-2]} × {images.shape[-1]}. Maps of another resolution go through "
            f"{other}."
        )
