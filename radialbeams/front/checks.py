"""What comes into the module: refused in words where it cannot be meant."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from radialbeams.front.sampling import can_ask

CHANNELS = (1, 3, 4)


def check_images(images: Tensor) -> None:
    if not isinstance(images, Tensor):
        raise ValueError(
            f"Expected images as one tensor (N, C, H, W); got {type(images).__name__}. Images of "
            "one size become one by torch.stack; those of several sizes go in one by one."
        )
    if images.ndim != 4:
        raise ValueError(
            f"Expected images of shape (N, C, H, W); got {tuple(images.shape)}. One image alone "
            "is a batch of one: image[None]."
        )
    if 0 in images.shape[1:]:
        raise ValueError(
            f"Expected images with at least one channel and one pixel; got {tuple(images.shape)}."
        )
    if images.shape[1] not in CHANNELS and images.shape[-1] in CHANNELS:
        raise ValueError(
            f"Expected images of shape (N, C, H, W); got {tuple(images.shape)}, which looks like "
            "(N, H, W, C). Put the channels first: images.permute(0, 3, 1, 2)."
        )
    if not images.is_floating_point():
        raise ValueError(
            f"Expected float images in [0, 1]; got {images.dtype}. Convert bytes: x.float() / 255."
        )
    if images.numel() and can_ask(images):  # the least and the most that noise or sharpening make
        low, high = (bound.item() for bound in images.detach().aminmax())
        if math.isnan(low):
            raise ValueError(
                "Expected float images in [0, 1]; some values are NaN. Look for a division by zero "
                "where they are normalised."
            )
        if low < -0.5 or high > 1.5:
            raise ValueError(
                f"Expected float images in [0, 1]; got values from {low:.3g} to {high:.3g}. Divide "
                "bytes by 255, and normalise after the canonicalizer, not before it."
            )


def check_boxes(boxes: Tensor, count: int) -> None:
    number, corners = boxes[:, 0], boxes[:, 1:]
    if not ((number >= 0) & (number < count) & (number == number.round())).all():
        raise ValueError(f"A box has the number of its image in front, 0 to {count - 1}; see them.")
    if not (corners.isfinite().all() and (corners[:, 2:] >= corners[:, :2]).all()):
        raise ValueError("Expected boxes as x₀, y₀, x₁, y₁ in pixels with x₁ ≥ x₀ and y₁ ≥ y₀.")


def check_dtype(dtype: torch.dtype | None) -> None:
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise ValueError(
            f"dtype is a type of floats, torch.float16 for a GPU; got {dtype!r}. To another device "
            "it goes by .to(device), before or after."
        )


def check_number(name: str, value: float, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is a number; got {value!r}.")
    if not least <= value <= most:
        raise ValueError(f"{name} must lie between {least:g} and {most:g}; got {value}.")
