"""Rotate, pad, render: the one place that fixes centre, sign and interpolation.

Convention, for every function here and everywhere else in the project:

- images are (N, C, W, W), rows downwards;
- angles are radians, positive = counter-clockwise *as displayed*, one per image;
- the centre is the pixel index (W − 1)/2, so a quarter turn maps pixels onto pixels for even and
  odd W alike, and `rotate(x, π/2)` is `torch.rot90(x, 1, (-2, -1))`.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Padding = Literal["zeros", "corner"]
# The padding that the paper starts from, and its adaptive one that removes the border.
PADDINGS: tuple[Padding, ...] = ("zeros", "corner")

# An angle this close to a multiple of 90° is that multiple: float32 holds 2π to about 5e-7.
QUARTER_TOLERANCE = 1e-6


def pad(images: Tensor, width: int, padding: Padding = "zeros") -> Tensor:
    """(N, C, W, W) → (N, C, W + 2·width, W + 2·width), filled with 0 or the image's own corner."""
    return _surround(images, _fill(images, padding), width)


def rotate(
    images: Tensor,
    angles: Tensor | float,
    *,
    width: int = 0,
    padding: Padding = "zeros",
    exact: bool = True,
) -> Tensor:
    """Turns each image counter-clockwise by its angle, bilinearly; outside lies the fill.

    With `width` it equals `rotate(pad(images, width), angles)` in one resample instead of two
    passes. Multiples of 90° are exact: they only move pixels. Where there are none, or 1e-4 is
    near enough, `exact=False` spares a GPU a second sampling.
    """
    _check_square(images)
    # Whole turns go in double precision: in single, 1001 quarter turns would not be exact.
    turns = torch.remainder(torch.as_tensor(angles, dtype=torch.float64), 2 * math.pi).float()
    if turns.ndim and len(turns) != len(images):
        raise ValueError(
            f"rotate expects one angle, or one for each of {len(images)} images; got {len(turns)}."
        )
    turns = turns.expand(len(images)).to(images.device)
    grid = _rotation_grid(turns, images.shape[-1], width)
    if padding == "zeros":
        out = _sampled(images, grid, "bilinear")
    else:
        fill = _fill(images, padding)
        out = _sampled(images - fill, grid, "bilinear") + fill
    return _exact_quarters(images, out, turns, grid, width, padding) if exact else out


def _rotation_grid(angles: Tensor, size: int, width: int) -> Tensor:
    """Where each output pixel comes from: (N,) → (N, S, S, 2), S = size + 2·width.

    `grid_sample` wants the output-to-input map, so this is the *inverse* turn; y points down.
    """
    centre = (size - 1) / 2
    # With align_corners, ±1 are the centres of the outermost pixels: index offset / centre.
    scale = max(centre, 0.5)
    offsets = (torch.arange(size + 2 * width, device=angles.device) - centre - width) / scale
    y, x = torch.meshgrid(offsets, offsets, indexing="ij")
    # A turn is a product of complex numbers: one pass over the grid instead of six.
    turns = torch.complex(torch.cos(angles), torch.sin(angles))
    return torch.view_as_real(torch.complex(x, y) * turns[:, None, None])


def _sampled(images: Tensor, grid: Tensor, mode: str) -> Tensor:
    return F.grid_sample(images, grid, mode=mode, padding_mode="zeros", align_corners=True)


# --- views that do not give the angle away ----------------------------------------------------

# The disc that a view shows, as a share of the parent's half-width: the rest is reach for blur
# and interpolation, so that nothing in the view ever depends on where the parent ends. Views with
# a narrow blur may show more of the parent (`ViewProtocol.reach`).
REACH = 0.9
# The largest view of a parent, as a share of its width: from here down the blur hides the grid.
LARGEST_VIEW = 0.45
# The sharpness of torch's bicubic kernel.
BICUBIC = -0.75


def largest_view(parent_size: int) -> int:
    return int(LARGEST_VIEW * parent_size)


def blur_sigma(parent_size: int, view_size: int, sigma: float | None = None) -> float:
    """In parent pixels: as given, or 1 for the largest view and in proportion for smaller ones.

    Without a sigma, the blur is known to hide the grid only up to the largest view. With one,
    whoever chose it has measured it at these sizes (`radialbeams leaks`).
    """
    if sigma is not None:
        return sigma
    if view_size > largest_view(parent_size):
        raise ValueError(
            f"A leak-free view of a {parent_size} px parent has at most {largest_view(parent_size)}"
            f" px; got {view_size}. Use larger parents or a smaller view."
        )
    return largest_view(parent_size) / view_size


def gaussian_matrix(size: int, sigma: float) -> Tensor:
    """(W, W): row i holds the weights of pixel i's neighbours; rows sum to 1 at the border too.

    Not a Gaussian itself, but what makes one *together with* the bicubic kernel of the resample.
    That kernel alone passes fine detail along the axes 4 % worse than along the diagonals, which
    turns with the parent: a plain CNN read the angle modulo 90° off white noise by it (ρ₄ = 0.34).
    A Gaussian is the one separable filter that treats all directions alike.
    """
    frequency = (torch.arange(BANDS, dtype=torch.float64) + 0.5) / (2 * BANDS)  # cycles a pixel
    gaussian = torch.exp(-2 * (math.pi * sigma * frequency) ** 2)
    distance = torch.arange(size, dtype=torch.float64)
    waves = torch.cos(2 * math.pi * frequency * distance[:, None])  # (W, BANDS)
    taps = (waves * gaussian / _bicubic_response(frequency)).mean(1)
    taps[distance > 4 * sigma + 2] = 0
    index = torch.arange(size)
    weights = taps[(index[:, None] - index).abs()]
    return (weights / weights.sum(1, keepdim=True)).float()


# Steps of the sums that stand for integrals over frequency and distance: enough for 1e-6.
BANDS = 512


def _bicubic_response(frequency: Tensor) -> Tensor:
    """What torch's bicubic kernel leaves of a wave: its Fourier transform, cycles a pixel."""
    distance = (torch.arange(2 * BANDS, dtype=torch.float64) + 0.5) / BANDS  # (0, 2)
    a, d = BICUBIC, distance
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * (d**3 - 5 * d**2 + 8 * d - 4)
    kernel = torch.where(d <= 1, near, far)
    waves = torch.cos(2 * math.pi * frequency[:, None] * distance)
    return 2 * (waves * kernel).sum(1) / BANDS


def blur(parents: Tensor, kernel: Tensor) -> Tensor:
    """Both axes at once as two matrix products: (N, C, W, W), (W, W) → (N, C, W, W)."""
    return kernel @ parents @ kernel.mT


def disc(size: int, device: torch.device | None = None) -> Tensor:
    """(S, S) of 1 inside the largest circle of a view and 0 outside."""
    offsets = torch.arange(size, device=device) - (size - 1) / 2
    return ((offsets**2 + offsets[:, None] ** 2) <= (size / 2) ** 2).float()


def render(
    blurred: Tensor,
    angles: Tensor,
    view_size: int,
    *,
    reach: float = REACH,
    zoom: Tensor | None = None,
    shift: Tensor | None = None,
) -> Tensor:
    """Blurred parents (N, C, W, W) → turned views (N, C, S, S), in one bicubic resample.

    The view spans `reach` of the parent's width, the disc inside it is all that is shown, and
    outside it is 0. `zoom` (N, 2) ≥ 1 enlarges columns and rows, `shift` (N, 2) moves the centre
    by a share of the parent's half-width; the caller keeps the disc within `reach`.
    """
    _check_square(blurred)
    size = blurred.shape[-1]
    step = reach * size / view_size  # parent pixels from one view pixel to the next
    offsets = torch.arange(view_size, device=blurred.device) - (view_size - 1) / 2
    y, x = torch.meshgrid(offsets * step, offsets * step, indexing="ij")
    cos, sin = torch.cos(angles)[:, None, None], torch.sin(angles)[:, None, None]
    source = torch.stack((x * cos - y * sin, x * sin + y * cos), dim=-1)  # (N, S, S, 2)
    if zoom is not None:
        source = source / zoom[:, None, None, :]
    if shift is not None:
        source = source + shift[:, None, None, :] * (size / 2)
    # With align_corners, ±1 are the centres of the outermost pixels.
    grid = source / ((size - 1) / 2)
    views = F.grid_sample(blurred, grid, mode="bicubic", padding_mode="border", align_corners=True)
    return views * disc(view_size, blurred.device)


# --- parts -----------------------------------------------------------------------------------


def _exact_quarters(
    images: Tensor, out: Tensor, angles: Tensor, grid: Tensor, width: int, padding: Padding
) -> Tensor:
    """Puts the pixels themselves where interpolation would only have come close."""
    quarters = angles / (math.pi / 2)
    exact = (quarters - torch.round(quarters)).abs() < QUARTER_TOLERANCE
    if not images.is_cuda and not exact.any():  # to ask a GPU costs more than to go on
        return out
    moved = _sampled(images, grid, "nearest")
    if width:
        moved = torch.where(_window(moved, width), moved, _fill(images, padding))
    return torch.where(exact[:, None, None, None], moved, out)


def _window(canvas: Tensor, width: int) -> Tensor:
    """(S, S) of booleans: where an image lies on its canvas before and after a quarter turn."""
    index = torch.arange(canvas.shape[-1], device=canvas.device)
    inside = (index >= width) & (index < canvas.shape[-1] - width)
    return inside & inside[:, None]


def _surround(images: Tensor, fill: Tensor, width: int) -> Tensor:
    """Lays the pixels on the fill as they are: subtracting and adding it back would round them."""
    count, channels, size, _ = images.shape
    canvas = fill.repeat(1, 1, size + 2 * width, size + 2 * width)
    canvas = canvas.expand(count, channels, -1, -1).contiguous()
    canvas[..., width : width + size, width : width + size] = images
    return canvas


def _fill(images: Tensor, padding: Padding) -> Tensor:
    """The colour outside, (N, C, 1, 1)."""
    if padding == "zeros":
        return images.new_zeros(1, 1, 1, 1)
    if padding == "corner":
        return images[..., :1, :1]
    raise ValueError(f"padding must be one of {', '.join(PADDINGS)}; got {padding!r}.")


def _check_square(images: Tensor) -> None:
    if images.ndim != 4 or images.shape[-1] != images.shape[-2]:
        raise ValueError(
            "Expected square images of shape (N, C, W, W); "
            f"got {tuple(images.shape)}. Crop or pad them to a square first."
        )
    if images.dtype != torch.float32:
        raise ValueError(
            f"Expected float32 images; got {images.dtype}. Convert them, e.g. by x.float()."
        )
