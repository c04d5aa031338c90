"""View geometry: makes the views for a network from float images of any size, differentiably.

The axes of a view that is not rotated separate: cropping a square, resizing, blurring and
resampling it are one matrix for the rows and one for the columns. The two products give the same
views as Pillow and `images.views` for files, up to their rounding to bytes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.nn.exporting import is_exporting
from radialbeams.nn.kernels.using import served
from radialbeams.nn.rotation import REACH, blur_sigma, disc, gaussian_matrix

LOBES = 3  # of the Lanczos kernel
LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in a grey image


class ViewGeometry(nn.Module):
    """Images (N, C, H, W) in [0, 1] → views (N, channels, S, S) by a protocol.

    With `parent_size`, by the leak-free protocol: the central square at that size, blurred, and
    only its central disc; `sigma` is that of the blur, in pixels of the parent, and `reach` the
    radius of the disc, as a share of the parent's half-width. Without `parent_size`, by the
    paper's: the central square itself.
    """

    def __init__(
        self,
        view_size: int,
        channels: int,
        parent_size: int | None,
        sigma: float | None = None,
        reach: float = REACH,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.view_size, self.parent_size = view_size, parent_size
        self.sigma, self.reach = sigma, reach
        self.square_size = parent_size or view_size
        reduce = (
            blur_and_resample(parent_size, view_size, sigma, reach)
            if parent_size
            else torch.eye(view_size)
        )
        # These follow from the sizes, so they are not saved.
        self.reduce: Tensor
        self.mask: Tensor
        self.register_buffer("reduce", reduce, persistent=False)  # (S, P)
        self.register_buffer("mask", disc(view_size), persistent=False)  # (S, S)

    def forward(self, images: Tensor) -> Tensor:
        """The views of the central squares of whole images."""
        height, width = images.shape[-2:]
        if is_exporting():
            return self._rendered(images, *self._weights_of_any_size(height, width))
        side = min(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        square = images[..., top : top + side, left : left + side]
        if self._launches(square):
            return self._launched(in_channels(square, self.channels))
        weights = self._square_weights(side)  # (S, side)
        return self._rendered(square, weights, weights)

    def _launches(self, square: Tensor) -> bool:
        """Whether our kernel makes the views; it rounds as the convolutions do by default."""
        if self.parent_size is None or not served(square, self.reduce):
            return False
        if not torch.backends.cudnn.allow_tf32:
            return False
        from radialbeams.nn.kernels.viewing import fits  # needs Triton

        return fits(square, self.view_size)

    def _launched(self, square: Tensor) -> Tensor:
        """(N, channels, side, side) → leak-free views, with one kernel."""
        from radialbeams.nn.kernels.viewing import viewed

        views: Tensor = viewed(square, self._half_weights(square.shape[-1]), self.mask)
        return views

    def _half_weights(self, side: int) -> Tensor:
        """`_square_weights` for tensor cores, which take 11 bits."""
        if torch.compiler.is_compiling():
            return self._square_weights(side).half()
        sizes = side, self.view_size, self.parent_size
        return square_weights(*sizes, self.reduce.device, self.sigma, self.reach, torch.float16)

    def around(self, images: Tensor, centres: Tensor, sides: Tensor) -> Tensor:
        """The views of one square per image: centres (N, 2) as x, y and sides (N,), in pixels."""
        x, y = (centres - sides[:, None] / 2).unbind(-1)
        columns = self._weights(images.shape[-1], x, sides)[:, None]  # (N, 1, S, W)
        rows = self._weights(images.shape[-2], y, sides)[:, None]  # (N, 1, S, H)
        return self._rendered(images, rows, columns)

    def _square_weights(self, side: int) -> Tensor:
        """The weights for whole images; they depend only on the size, so they are cached."""
        device = self.reduce.device
        if not torch.compiler.is_compiling():
            sizes = side, self.view_size, self.parent_size
            return square_weights(*sizes, device, self.sigma, self.reach)
        # A graph may be for any size, so it computes its own.
        start, whole = (torch.full((), value, device=device) for value in (-0.5, float(side)))
        return aligned(self._weights(side, start, whole))

    def weights_of_square(self, side: int) -> Tensor:
        """(S, side): the weights from the rows of a square image to those of its view."""
        return self._square_weights(side)[: self.view_size]

    def _weights_of_any_size(self, height: int, width: int) -> tuple[Tensor, Tensor]:
        """(S, H) and (S, W), in operations that a graph can do for sizes yet unknown."""
        side = torch.sym_min(height, width)  # type: ignore[no-untyped-call]
        weights = (in_the_middle(length, side, self.square_size) for length in (height, width))
        rows, columns = (self.reduce.float() @ weight.to(self.reduce.device) for weight in weights)
        return rows, columns

    def _weights(self, length: int, start: Tensor, side: Tensor) -> Tensor:
        with full_precision(self.reduce.device):
            return self.reduce.float() @ lanczos(length, start, side, self.square_size)

    def _rendered(self, images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        images = in_channels(images, self.channels)
        views = both_axes(images, rows, columns, self.limits)
        return self.masked(views[..., : self.view_size, : self.view_size])

    @property
    def limits(self) -> tuple[float, float] | None:
        """Of views. Lanczos overshoots at edges, unlike bytes; the leak-free blur hides that."""
        return None if self.parent_size else (0.0, 1.0)

    def masked(self, views: Tensor) -> Tensor:
        return views * self.mask if self.parent_size else views


def aligned(weights: Tensor) -> Tensor:
    """(S, side) → (S', side): padded with zero rows to a multiple of 8, for speed on a GPU."""
    return F.pad(weights, (0, 0, 0, -weights.shape[0] % 8))


@lru_cache(maxsize=32)
def square_weights(
    side: int,
    view_size: int,
    parent_size: int | None,
    device: torch.device,
    sigma: float | None = None,
    reach: float = REACH,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """(S', side): the weights from the rows of a square to those of a view, all steps combined."""
    # The cached tensor must also be usable in later calls that train.
    with torch.inference_mode(False), torch.no_grad(), full_precision(device):
        start, whole = torch.tensor(-0.5), torch.tensor(float(side))
        weights = lanczos(side, start, whole, parent_size or view_size)
        if parent_size is not None:
            weights = blur_and_resample(parent_size, view_size, sigma, reach) @ weights
        return aligned(weights).to(device, dtype)


def cut(images: Tensor, centres: Tensor, sides: Tensor, size: int, fill: float = 0.0) -> Tensor:
    """One square of each image, resized: (N, C, H, W) → (N, C, size, size)."""
    x, y = (centres - sides[:, None] / 2).unbind(-1)
    columns = lanczos(images.shape[-1], x, sides, size)[:, None]  # (N, 1, size, W)
    rows = lanczos(images.shape[-2], y, sides, size)[:, None]  # (N, 1, size, H)
    return (both_axes(images - fill, rows, columns) + fill).to(images.dtype)


def both_axes(
    images: Tensor,
    rows: Tensor,
    columns: Tensor,
    limits: tuple[float, float] | None = None,
) -> Tensor:
    """(N, C, H, W) → (N, C, S, S); the values are clamped to the limits after each axis."""
    with full_precision(images.device):
        if images.is_cuda and columns.ndim == 2:
            across = _convolved(images.float().mT, columns).mT  # (N, C, H, S)
            return _within(_convolved(_within(across, limits), rows), limits)
        across = images.float() @ columns.mT  # (N, C, H, S)
        return _within(rows @ _within(across, limits), limits)


def _within(values: Tensor, limits: tuple[float, float] | None) -> Tensor:
    return values if limits is None else values.clamp(*limits)


def _convolved(images: Tensor, weights: Tensor) -> Tensor:
    """`weights @ images` as a 1 × 1 convolution whose channels are the rows: (N, C, S, W).

    On a GPU it takes a third of the time. Its tensor cores then round to 11 bits, as they do in
    the network, unless `torch.backends.cudnn.allow_tf32` is off.
    """
    rows = images.flatten(0, 1)[:, :, None]  # (N·C, H, 1, W)
    convolved = F.conv2d(rows, weights[:, :, None, None])  # (N·C, S, 1, W)
    return convolved.reshape(*images.shape[:2], *convolved.shape[1::2])


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Disables autocast, which would store intermediate results in half precision."""
    if device.type != "meta" and torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def lanczos(length: int, start: Tensor, side: Tensor, size: int) -> Tensor:
    """(…, size, length): the weight of each of `length` pixels in each of `size` new ones.

    The new pixels tile `side` old ones, starting at the edge `start`; an edge lies half a pixel
    before the index of its pixel. As in Pillow, the kernel scales with the new pixels, so that no
    pixel is skipped, and its weights sum to 1. New pixels outside the image are 0.
    """
    step = (side / size)[..., None]  # (…, 1)
    places = start[..., None] + (torch.arange(size, device=start.device) + 0.5) * step  # (…, size)
    apart = torch.arange(length, device=start.device) - places[..., None]  # (…, size, length)
    apart = apart / step.clamp(min=1)[..., None]
    near = torch.sinc(apart) * torch.sinc(apart / LOBES) * (apart.abs() < LOBES)
    inside = ((places > -0.5) & (places < length - 0.5))[..., None]
    return torch.where(inside, near / near.sum(-1, keepdim=True), torch.zeros_like(near))


def in_the_middle(length: int, side: int, size: int) -> Tensor:
    """(size, length): the weights of `lanczos` for the central `side` pixels alone."""
    first = torch.full((), (length - side) // 2)
    index = torch.arange(length)
    weights = lanczos(length, first - 0.5, torch.full((), side).float(), size)
    weights = weights * ((index >= first) & (index < first + side))
    return weights / weights.sum(-1, keepdim=True)


def blur_and_resample(
    parent_size: int, view_size: int, sigma: float | None = None, reach: float = REACH
) -> Tensor:
    """(S, P): the leak-free blur followed by the bicubic resampling, along one axis.

    The blur matrix is treated as an image: resampling its rows with the function that training
    uses gives the combined matrix.
    """
    blur = gaussian_matrix(parent_size, blur_sigma(parent_size, view_size, sigma))  # (P, P)
    offsets = torch.arange(view_size) - (view_size - 1) / 2
    # With align_corners, ±1 are the centres of the outermost pixels.
    rows = offsets * (reach * parent_size / view_size) / ((parent_size - 1) / 2)
    y, x = torch.meshgrid(rows, torch.linspace(-1, 1, parent_size), indexing="ij")
    grid = torch.stack((x, y), dim=-1)
    both = F.grid_sample(
        blur[None, None], grid[None], mode="bicubic", padding_mode="border", align_corners=True
    )
    return both[0, 0]


def in_channels(images: Tensor, channels: int) -> Tensor:
    """Converts between colour and grey images if the number of channels differs."""
    received = images.shape[1]
    if received == channels:
        return images
    if received == 1:
        return images.expand(-1, channels, -1, -1)
    if received == 3 and channels == 1:
        return (images * images.new_tensor(LUMA)[:, None, None]).sum(1, keepdim=True)
    raise ValueError(
        f"Expected images with {channels} channel(s) for this network; got {received}. Pass grey "
        "images with 1 channel or colour images with 3."
    )
