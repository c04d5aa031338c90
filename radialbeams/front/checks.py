"""Checks the inputs of the module and raises errors that say what to change."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from radialbeams.front.sampling import can_ask

CHANNELS = (1, 3, 4)


def check_images(images: Tensor) -> None:
    if not isinstance(images, Tensor):
        raise ValueError(
            f"Expected images as one tensor (N, C, H, W); got {type(images).__name__}. Combine "
            "images of one size with torch.stack; pass images of different sizes one by one."
        )
    if images.ndim != 4:
        raise ValueError(
            f"Expected images of shape (N, C, H, W); got {tuple(images.shape)}. Pass a single "
            "image as a batch of one: image[None]."
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
    if images.numel() and can_ask(images):  # noise or sharpening may exceed [0, 1] a little
        low, high = (bound.item() for bound in images.detach().aminmax())
        if math.isnan(low):
            raise ValueError(
                "Expected float images in [0, 1]; some values are NaN. Check their normalisation "
                "for a division by zero."
            )
        if low < -0.5 or high > 1.5:
            raise ValueError(
                f"Expected float images in [0, 1]; got values from {low:.3g} to {high:.3g}. Divide "
                "bytes by 255, and normalise after the canonicalizer, not before it."
            )


def check_boxes(boxes: Tensor, count: int) -> None:
    number, corners = boxes[:, 0], boxes[:, 1:]
    if not ((number >= 0) & (number < count) & (number == number.round())).all():
        raise ValueError(
            f"Expected boxes that start with the index of their image, 0 to {count - 1}; some do "
            "not."
        )
    if not (corners.isfinite().all() and (corners[:, 2:] >= corners[:, :2]).all()):
        raise ValueError("Expected boxes as x₀, y₀, x₁, y₁ in pixels with x₁ ≥ x₀ and y₁ ≥ y₀.")


def check_dtype(dtype: torch.dtype | None) -> None:
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise ValueError(
            f"dtype must be a floating-point type, such as torch.float16 for a GPU; got {dtype!r}. "
            "To change the device, use .to(device)."
        )


def check_number(name: str, value: float, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number; got {value!r}.")
    if not least <= value <= most:
        raise ValueError(f"{name} must lie between {least:g} and {most:g}; got {value}.")
