"""How much `for_inference` changes the estimates, folded only and in half precision.

    python studies/half_precision.py [--data DIR] [--photos PATH] [--limit N] [--out FILE]

The same rotated images are estimated by a canonicaliser as loaded and after `for_inference`:
held-out views of COIL-100 by `ring.coil100`, photos by `ring`. Uses a GPU if there is one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import harness
import torch
from torch import Tensor

from radialbeams.front.module import Canonicalizer
from radialbeams.front.pose import Pose
from radialbeams.nn.angles import angular_error
from radialbeams.nn.rotation import rotate
from radialbeams.training.data import DataNotFound, ImageSet
from radialbeams.training.views import draw_angles
from radialbeams.training.weights import pick_device

WAYS = {"folded": torch.float32, "half": torch.float16}
BATCH = 32


def poses(front: Canonicalizer, images: ImageSet, angles: Tensor) -> tuple[Tensor, Tensor]:
    """Estimates (N,) in radians and confidences (N,)."""
    device = next(front.parameters()).device
    results: list[Pose] = []
    for start in range(0, len(images), BATCH):
        chunk = slice(start, start + BATCH)
        rotated = rotate(images.images[chunk].float() / 255, angles[chunk]).to(device)
        results.append(front.canonicalize(rotated)[1].to("cpu"))
    return torch.cat([pose.angle for pose in results]), torch.cat(
        [pose.confidence for pose in results]
    )


@torch.inference_mode()
def measure(name: str, images: ImageSet, device: torch.device) -> dict[str, Any]:
    front = Canonicalizer.from_pretrained(name, abstain=None, snap="none").to(device)
    angles = draw_angles("evaluation", 0, 0, len(images))
    reference, confidences = poses(front, images, angles)
    results: dict[str, Any] = {
        "model": name,
        "data": Path(images.name).stem,
        "n": len(images),
        "loaded": {"within_10": within_10(reference, angles)},
    }
    for way, dtype in WAYS.items():
        estimates, way_confidences = poses(front.for_inference(dtype), images, angles)
        changes = torch.rad2deg(angular_error(estimates, reference))
        results[way] = {
            "within_10": within_10(estimates, angles),
            "moved_median": round(changes.median().item(), 4),
            "moved_p99": round(changes.quantile(0.99).item(), 4),
            "moved_over_1": round((changes > 1).float().mean().item(), 4),
            "confidence_p99": round((way_confidences - confidences).abs().quantile(0.99).item(), 4),
        }
    return results


def within_10(estimates: Tensor, true: Tensor) -> float:
    return round((torch.rad2deg(angular_error(estimates, true)) <= 10).float().mean().item(), 4)


def main() -> None:
    arguments = harness.arguments(__doc__, Path("results/half.json"))
    device = pick_device()
    models = []
    try:
        models.append(measure("ring.coil100", harness.objects(arguments), device))
    except DataNotFound as missing:  # the photos can still be measured
        print(missing, file=sys.stderr)
    photos = harness.photos(arguments)
    if photos is not None:
        models.append(measure("ring", photos, device))
    harness.write({"device": device.type, "models": models}, arguments.out)


if __name__ == "__main__":
    main()
