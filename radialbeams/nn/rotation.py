"""Rotates, pads and renders images: the only place that defines centre, sign and interpolation.

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
# The paper's basic padding, and its adaptive one, which removes the visible border.
PADDINGS: tuple[Padding, ...] = ("zeros", "corner")

# An angle this close to a multiple of 90° counts as exact: float32 represents 2π to about 5e-7.
QUARTER_TOLERANCE = 1e-6


def pad(images: Tensor, width: int, padding: Padding = "zeros") -> Tensor:
    """(N, C, W, W) → (N, C, W + 2·width, W + 2·width), filled with 0 or with the corner pixel."""
    return _surround(images, _fill(images, padding), width)


def rotate(
    images: Tensor,
    angles: Tensor | float,
    *,
    width: int = 0,
    padding: Padding = "zeros",
    exact: bool = True,
) -> Tensor:
    """Rotates each image counter-clockwise by its angle, bilinearly; `padding` fills the outside.

    With `width`, it equals `rotate(pad(images, width), angles)`, but needs one pass instead of two.
    Multiples of 90° are exact: they only move pixels. If there are none, or an error of 1e-4 is
    acceptable, `exact=False` saves a second sampling on a GPU.
    """
    _check_square(images)
    # Full turns are removed in double precision; in float32, 1001 quarter turns would be inexact.
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
    """The source of each output pixel: (N,) → (N, S, S, 2), S = size + 2·width.

    `grid_sample` needs the map from output to input, so this is the *inverse* rotation; y points
    down.
    """
    centre = (size - 1) / 2
    # With align_corners, ±1 are the centres of the outermost pixels: index offset / centre.
    scale = max(centre, 0.5)
    offsets = (torch.arange(size + 2 * width, device=angles.device) - centre - width) / scale
    y, x = torch.meshgrid(offsets, offsets, indexing="ij")
    # A rotation as a product of complex numbers needs one pass over the grid instead of six.
    turns = torch.complex(torch.cos(angles), torch.sin(angles))
    return torch.view_as_real(torch.complex(x, y) * turns[:, None, None])


def _sampled(images: Tensor, grid: Tensor, mode: str) -> Tensor:
    return F.grid_sample(images, grid, mode=mode, padding_mode="zeros", align_corners=True)


# --- leak-free views: nothing but the content of the image shows the angle ---------------------

# The radius of the disc that a view shows, as a share of the parent's half-width. The rest is a
# margin for blur and interpolation, so that a view never depends on where the parent ends. Views
# with a narrow blur may show a larger disc (`ViewProtocol.reach`).
REACH = 0.9
# The largest view of a parent, as a share of its width. Up to this size the blur hides the grid.
LARGEST_VIEW = 0.45
# The sharpness of torch's bicubic kernel.
BICUBIC = -0.75


def largest_view(parent_size: int) -> int:
    return int(LARGEST_VIEW * parent_size)


def blur_sigma(parent_size: int, view_size: int, sigma: float | None = None) -> float:
    """The sigma of the blur in parent pixels; the default is 1 for the largest view.

    For smaller views it is proportionally larger. The default is known to hide the grid only up to
    the largest view. Check a `sigma` of your own with `radialbeams leaks` at these sizes.
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
    """(W, W): row i has the weights of pixel i's neighbours; rows sum to 1, also at the border.

    This is not a Gaussian itself, but *combined with* the bicubic kernel of the resampling it is
    one. The bicubic kernel alone passes fine detail 4 % less along the axes than along the
    diagonals, and this anisotropy rotates with the parent: a plain CNN used it to read the angle
    modulo 90° from white noise (ρ₄ = 0.34). The Gaussian is the only isotropic separable filter.
    """
    frequency = (torch.arange(BANDS, dtype=torch.float64) + 0.5) / (2 * BANDS)  # cycles per pixel
    gaussian = torch.exp(-2 * (math.pi * sigma * frequency) ** 2)
    distance = torch.arange(size, dtype=torch.float64)
    waves = torch.cos(2 * math.pi * frequency * distance[:, None])  # (W, BANDS)
    taps = (waves * gaussian / _bicubic_response(frequency)).mean(1)
    taps[distance > 4 * sigma + 2] = 0
    index = torch.arange(size)
    weights = taps[(index[:, None] - index).abs()]
    return (weights / weights.sum(1, keepdim=True)).float()


# Number of steps in the numerical integrals over frequency and distance; enough for 1e-6.
BANDS = 512


def _bicubic_response(frequency: Tensor) -> Tensor:
    """The Fourier transform of torch's bicubic kernel; frequencies in cycles per pixel."""
    distance = (torch.arange(2 * BANDS, dtype=torch.float64) + 0.5) / BANDS  # (0, 2)
    a, d = BICUBIC, distance
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * (d**3 - 5 * d**2 + 8 * d - 4)
    kernel = torch.where(d <= 1, near, far)
    waves = torch.cos(2 * math.pi * frequency[:, None] * distance)
    return 2 * (waves * kernel).sum(1) / BANDS


def blur(parents: Tensor, kernel: Tensor) -> Tensor:
    """Blurs both axes with two matrix products: (N, C, W, W), (W, W) → (N, C, W, W)."""
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
    """Blurred parents (N, C, W, W) → rotated views (N, C, S, S), with one bicubic resampling.

    The view spans `reach` of the parent's width and shows only the disc inside it; outside, it is
    0. `zoom` (N, 2) ≥ 1 enlarges columns and rows, `shift` (N, 2) moves the centre by a share of
    the parent's half-width; the caller must keep the disc within `reach` of the parent.
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


# --- helpers ---------------------------------------------------------------------------------


def _exact_quarters(
    images: Tensor, out: Tensor, angles: Tensor, grid: Tensor, width: int, padding: Padding
) -> Tensor:
    """Replaces interpolated pixels by exact ones in images rotated by a multiple of 90°."""
    quarters = angles / (math.pi / 2)
    exact = (quarters - torch.round(quarters)).abs() < QUARTER_TOLERANCE
    if images.is_cuda:  # finding out which images they are costs more than moving all
        moved = _moved(images, grid, width, padding)
        return torch.where(exact[:, None, None, None], moved, out)
    rows = exact.nonzero().squeeze(1)
    if not len(rows):
        return out
    return out.index_copy(0, rows, _moved(images[rows], grid[rows], width, padding))


def _moved(images: Tensor, grid: Tensor, width: int, padding: Padding) -> Tensor:
    """The nearest pixel for each position, and the fill around the image."""
    moved = _sampled(images, grid, "nearest")
    if not width:
        return moved
    return torch.where(_window(moved, width), moved, _fill(images, padding))


def _window(canvas: Tensor, width: int) -> Tensor:
    """(S, S) of booleans: the part of a padded canvas that the image covers."""
    index = torch.arange(canvas.shape[-1], device=canvas.device)
    inside = (index >= width) & (index < canvas.shape[-1] - width)
    return inside & inside[:, None]


def _surround(images: Tensor, fill: Tensor, width: int) -> Tensor:
    """Pastes the pixels unchanged onto the fill; subtracting and adding it would round them."""
    count, channels, size, _ = images.shape
    canvas = fill.repeat(1, 1, size + 2 * width, size + 2 * width)
    canvas = canvas.expand(count, channels, -1, -1).contiguous()
    canvas[..., width : width + size, width : width + size] = images
    return canvas


def _fill(images: Tensor, padding: Padding) -> Tensor:
    """The colour of the padding, (N, C, 1, 1) or (1, 1, 1, 1)."""
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
