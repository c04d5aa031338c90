"""Thumbnails for the page: discs of turned images, as data URIs."""

from __future__ import annotations

import io
from base64 import b64encode

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from radialbeams.nn.rotation import rotate

SIDE = 128  # pixels; the page shows it at about two thirds, sharp on dense screens
QUALITY = 78
BATCH = 64

Pixels = NDArray[np.uint8]  # (SIDE, SIDE) or (SIDE, SIDE, 3)


@torch.inference_mode()
def thumbnails(parents: Tensor, degrees: Tensor) -> list[Pixels]:
    """Bytes (N, C, W, W), each turned counter-clockwise by its degrees (N,).

    Corners hold what turned in from outside; the page cuts them off with a circle.
    """
    parts = [
        _thumbnails(parents[start : start + BATCH], degrees[start : start + BATCH])
        for start in range(0, len(parents), BATCH)
    ]
    return [picture for part in parts for picture in part]


def _thumbnails(parents: Tensor, degrees: Tensor) -> list[Pixels]:
    turned = rotate(parents.cpu().float().div(255), torch.deg2rad(degrees.float()))
    small = F.interpolate(
        turned, size=(SIDE, SIDE), mode="bicubic", antialias=True, align_corners=False
    )
    pixels: Pixels = small.clamp(0, 1).mul(255).round().byte().permute(0, 2, 3, 1).numpy()
    return [picture if picture.shape[-1] == 3 else picture[..., 0] for picture in pixels]


def data_uri(pixels: Pixels) -> str:
    """A small lossy WebP inside the address itself, so that the page needs no other file."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "WEBP", quality=QUALITY)
    return "data:image/webp;base64," + b64encode(buffer.getvalue()).decode("ascii")
