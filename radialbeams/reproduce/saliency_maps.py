"""Saliency maps: computing them, comparing them under rotation, and locating them.

The map is the gradient of the estimated angle with respect to each pixel, the largest of the three
colours. Up to a factor it is the gradient of the circle loss. For the ring, the estimate is the
mean of the posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from radialbeams.nn.angles import angular_error, to_unit
from radialbeams.nn.architectures import Network, with_beams
from radialbeams.nn.posterior import posterior
from radialbeams.nn.ring_network import RingBIC
from radialbeams.nn.rotation import Padding, disc, rotate
from radialbeams.reproduce.seed_statistics import spread
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet
from radialbeams.training.views import PaperViews, Views

BLUR = 60  # maps are blurred by 1/60 of the view's width
OBJECT = 24  # grey levels: a pixel of the object differs from the background by more
BAND = 2  # pixels to both sides of the border between image and padding

# --- maps ---


def direction(model: Network, views: Tensor) -> Tensor:
    """The estimate as a vector, (N, 2); for the ring, the mean of its posterior."""
    if not isinstance(model, RingBIC):
        unit: Tensor = model(views)
        return unit
    distribution = posterior(*model(views))
    return (distribution.log_probabilities.exp()[..., None] * to_unit(distribution.angles)).sum(-2)


def saliency(model: Network, views: Tensor) -> Tensor:
    """(N, C, S, S) → (N, 1, S, S): how much the estimated angle changes with each pixel."""
    views = views.detach().requires_grad_(True)
    # cuDNN has no gradient of an LSTM that is not in training.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        unit = direction(model, views)
        angles = torch.atan2(unit[:, 1], unit[:, 0])
        (gradient,) = torch.autograd.grad(angles.sum(), views)
    return gradient.abs().amax(1, keepdim=True)


def blurred(maps: Tensor) -> Tensor:
    """The maps, blurred by a Gaussian of 1/60 of their width along both axes."""
    sigma = maps.shape[-1] / BLUR
    reach = int(3 * sigma + 1)
    offsets = torch.arange(-reach, reach + 1, device=maps.device)
    taps = torch.exp(-0.5 * (offsets / sigma) ** 2)
    taps = taps / taps.sum()
    maps = F.conv2d(maps, taps[None, None, :, None], padding=(reach, 0))
    return F.conv2d(maps, taps[None, None, None, :], padding=(0, reach))


def correlation(first: Tensor, second: Tensor, inside: Tensor) -> Tensor:
    """Pearson correlation of each image, (N,), over the pixels inside the mask (S, S)."""
    x, y = (maps[:, 0][:, inside > 0].double() for maps in (first, second))
    x, y = x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True)
    scale = (x.square().sum(1) * y.square().sum(1)).sqrt()
    return (x * y).sum(1) / scale.clamp(min=1e-30)


# --- a network and its images ---


@dataclass(frozen=True)
class SaliencyProbe:
    """A network, and the images on which its saliency is mapped."""

    name: str
    model: Network
    views: Views
    images: ImageSet

    @property
    def padding(self) -> Padding | None:
        """The padding around the image; None if a view never shows it."""
        return self.views.padding if isinstance(self.views, PaperViews) else None

    def maps(self, angles: Tensor, batch: int = 25) -> Tensor:
        """(N,) radians → maps (N, 1, S, S), on the CPU."""
        device = next(self.model.parameters()).device
        batches = []
        for start in range(0, len(angles), batch):
            chunk = slice(start, start + batch)
            views = self.views.render(self.images.images[chunk].to(device), angles[chunk])
            batches.append(saliency(self.model, views).cpu())
        return torch.cat(batches)

    @torch.inference_mode()
    def errors(self, angles: Tensor) -> Tensor:
        """(N,) radians: the errors at these angles."""
        device = next(self.model.parameters()).device
        views = self.views.render(self.images.images.to(device), angles)
        estimates: Tensor = self.model.angles(views).cpu()
        return angular_error(estimates, angles)

    def sampled(self) -> Tensor:
        """A mask (S, S) of the pixels that beams sample."""
        config = self.model.config
        size = config.view_size
        if isinstance(self.model, RingBIC):
            return disc(size)
        mask = torch.zeros(size * size)
        mask[torch.as_tensor(self.model.beams.index).flatten().cpu()] = 1
        return mask.reshape(size, size)

    def inside(self) -> Tensor:
        """A mask (S, S) of the circle that beams of every direction reach."""
        config = self.model.config
        if isinstance(self.model, RingBIC):
            return disc(config.view_size)
        offsets = torch.arange(config.view_size) - (config.view_size - 1) / 2
        return ((offsets**2 + offsets[:, None] ** 2) <= with_beams(config).beam_length ** 2).float()


def equivariance(probe: SaliencyProbe, turns: Sequence[Tensor], upright: Tensor) -> JsonDict:
    """Correlations of maps of rotated and upright images; `turns` are radians (N,) each."""
    inside = probe.inside()
    shift = len(upright) // 2  # images are in natural order, so this is another object
    correlations: dict[str, list[Tensor]] = {"back": [], "other": [], "unturned": []}
    for angles in turns:
        turned = probe.maps(angles)
        back = blurred(rotate(turned, -angles))
        correlations["back"].append(correlation(back, upright, inside))
        correlations["other"].append(correlation(back.roll(shift, 0), upright, inside))
        correlations["unturned"].append(correlation(blurred(turned), upright, inside))
    # Rotations of one image are averaged first: the spread is over images.
    means = {name: torch.stack(parts).mean(0) for name, parts in correlations.items()}
    return {name: _over_images(values) for name, values in means.items()}


def _over_images(values: Tensor) -> dict[str, float]:
    statistics = spread(values.tolist())
    return {name: float(f"{statistics[name]:.4g}") for name in ("mean", "std")}


# --- location of the map ---


def object_masks(images: Tensor) -> Tensor:
    """Bytes (N, 3, W, W) → 255 on the object and 0 on the background.

    The background has the median colour of the border: a single corner may be a stray pixel.
    """
    edges = (images[..., 0, :], images[..., -1, :], images[..., 0], images[..., -1])
    ground = torch.cat(edges, dim=-1).median(-1).values[..., None, None]  # (N, 3, 1, 1)
    difference = (images.int() - ground.int()).abs().amax(1, keepdim=True)
    return ((difference > OBJECT) * 255).byte().expand_as(images)


def border(size: int, angles: Tensor) -> Tensor:
    """A mask (N, 1, S, S) of the border between image and padding, for images of this size."""
    white = torch.full((len(angles), 1, size, size), 255, dtype=torch.uint8)
    image = (PaperViews("zeros").render(white, angles) > 0.5).float()
    width = 2 * BAND + 1
    wide = F.max_pool2d(image, width, 1, BAND)
    narrow = 1 - F.max_pool2d(1 - image, width, 1, BAND)
    return wide - narrow


def contrast(probe: SaliencyProbe) -> float | None:
    """The median difference between the image's edge and the padding, grey levels of 255."""
    if probe.padding is None:
        return None
    images = probe.images.images.int()
    fill = images[..., :1, :1] if probe.padding == "corner" else torch.zeros(1, 1, 1, 1).int()
    difference = (images - fill).abs().amax(1)  # (N, W, W)
    edges = (difference[:, 0], difference[:, -1], difference[:, :, 0], difference[:, :, -1])
    return float(torch.cat(edges, dim=1).float().median())


def densities(probe: SaliencyProbe, angles: Tensor) -> dict[str, float]:
    """Saliency of a pixel on the object, at the border and elsewhere, relative to the mean.

    Only pixels that beams read count. Without padding there is no border.
    """
    maps, sampled = probe.maps(angles), probe.sampled()
    masks = object_masks(probe.images.images)
    on_object = (probe.views.render(masks, angles)[:, :1] > 0.5).float()
    at_border = torch.zeros_like(on_object)
    if probe.padding is not None:
        at_border = border(probe.images.images.shape[-1], angles)
    regions = {
        "object": on_object * (1 - at_border),
        "border": at_border,
        "rest": (1 - on_object) * (1 - at_border),  # the ground, and the padding
    }
    total, pixels = maps.sum((1, 2, 3)), sampled.sum()
    density = {}
    for name, region in regions.items():
        share = (maps * region).sum((1, 2, 3)) / total
        area = (sampled * region).sum((1, 2, 3)) / pixels
        if area.sum():
            density[name] = float(f"{(share.sum() / area.sum()).item():.4g}")
    return density
