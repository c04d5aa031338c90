"""How much centring helps if the object is off the centre, and what it costs otherwise.

    python studies/centring.py [--data DIR] [--photos PATH] [--limit N] [--out FILE]

Held-out views of COIL-100 are rotated and placed on a background of their own colour, at a given
distance from the centre in a random direction. `ring.coil100` sees a square of the object's size
around the centre of the canvas, or around the estimated centre of mass. Photos have no single
object on a plain background; `ring` sees their centre, or the point that centring chooses.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import harness
import torch
from torch import Tensor

from radialbeams.front.centring import border_colour, centred_boxes
from radialbeams.front.module import Canonicalizer
from radialbeams.nn.angles import angular_error
from radialbeams.nn.rotation import rotate
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import summarise
from radialbeams.training.views import draw_angles, draws

SHIFTS = (0, 4, 8, 16, 24, 32, 48)  # pixels, of objects in squares of 128
WAYS = ("none", "foreground", "saliency")
STORED_FIGURES = ("n", "mean", "median", "p95", "within_10", "flips")
BATCH = 64


def off_centre(parents: Tensor, angles: Tensor, directions: Tensor, shift: int) -> Tensor:
    """(N, C, W, W) → (N, C, 2·W, 2·W): rotated, and `shift` pixels off the centre.

    Only the disc is pasted: the corners of a rotated square would reveal its centre.
    """
    size = parents.shape[-1]
    offsets = torch.arange(size) - (size - 1) / 2
    inside = torch.hypot(offsets[:, None], offsets) <= (size - 1) / 2
    ground = border_colour(parents)[..., None, None]  # (N, C, 1, 1)
    turned = torch.where(inside, rotate(parents, angles), ground)
    canvas = ground.repeat(1, 1, 2 * size, 2 * size)
    for number, direction in enumerate(directions.tolist()):
        left = size // 2 + round(shift * math.cos(direction))
        top = size // 2 + round(shift * math.sin(direction))
        canvas[number, :, top : top + size, left : left + size] = turned[number]
    return canvas


def estimated_angles(front: Canonicalizer, images: Tensor, side: int, way: str) -> Tensor:
    """(N,) radians: the estimates on the squares that `way` chooses."""
    if way == "none":
        middle = (images.shape[-1] - 1) / 2
        box = torch.tensor([middle - side / 2] * 2 + [middle + side / 2] * 2)
        boxes = torch.cat((torch.arange(len(images))[:, None], box.expand(len(images), -1)), 1)
    else:
        boxes = centred_boxes(images, side=side, by=way)  # type: ignore[arg-type]
    return front.crops(images, boxes, margin=0, size=16)[1].angle


@torch.inference_mode()
def measure(front: Canonicalizer, images: ImageSet, shift: int | None) -> dict[str, Any]:
    """The errors by way; without a `shift`, images are rotated without a larger canvas."""
    angles = draw_angles("evaluation", 0, 0, len(images))
    directions = torch.from_numpy(draws("noise", 0, 0, len(images)) * 2 * math.pi)
    errors = {way: torch.empty(1, len(images)) for way in WAYS}
    for start in range(0, len(images), BATCH):
        chunk = slice(start, start + BATCH)
        parents = images.images[chunk].float() / 255
        if shift is None:
            views = rotate(parents, angles[chunk])
        else:
            views = off_centre(parents, angles[chunk], directions[chunk], shift)
        for way in WAYS:
            estimates = estimated_angles(front, views, parents.shape[-1], way)
            errors[way][0, chunk] = angular_error(estimates, angles[chunk])
    figures = {way: summarise(error).to_dict() for way, error in errors.items()}
    return {
        way: {name: round(way_figures[name], 4) for name in STORED_FIGURES}
        for way, way_figures in figures.items()
    }


def main() -> None:
    arguments = harness.arguments(__doc__, Path("results/centring.json"))
    objects = harness.objects(arguments)
    front = Canonicalizer.from_pretrained("ring.coil100", abstain=None, snap="none")
    results: dict[str, Any] = {
        "objects": {
            "model": "ring.coil100",
            "data": "coil100",
            "side": objects.images.shape[-1],
            "shifts": {str(shift): measure(front, objects, shift) for shift in SHIFTS},
        }
    }
    photos = harness.photos(arguments)
    if photos is not None:
        ring = Canonicalizer.from_pretrained("ring", abstain=None, snap="none")
        name = Path(photos.name).stem
        results["photos"] = {"model": "ring", "data": name, **measure(ring, photos, None)}
    harness.write(results, arguments.out)


if __name__ == "__main__":
    main()
