"""What the torch module loses because, unlike the command, it does not handle filled corners.

    python benchmarks/module_corners.py --photos FOLDER [--count 200] [--model general]

Photos are turned by random angles, on an enlarged canvas and on their own one, with black corners.
The table gives the share of angles within 10° by the command's canonicalizer, which looks at the
picture between the corners, and by the module, which sees the tensor as it is. It is also written
to results/module-corners.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from radialbeams.canonicalizer import Canonicalizer
from radialbeams.front import Canonicalizer as Module
from radialbeams.posterior import signed
from radialbeams.zoo import DEFAULT

WITHIN = 10.0


def measured(paths: list[Path], model: str, expand: bool) -> tuple[float, float]:
    """Shares within 10°: the command's, the module's."""
    rng = np.random.default_rng(0)
    light = Canonicalizer(model, threads=1)
    module = Module.from_pretrained(model, abstain=None, snap="none")
    near = np.zeros((len(paths), 2))
    for number, path in enumerate(paths):
        angle = float(rng.uniform(0, 360))
        with Image.open(path) as picture:
            turned = picture.convert("RGB").rotate(angle, Image.Resampling.BICUBIC, expand=expand)
        pixels = torch.from_numpy(np.asarray(turned).copy()).permute(2, 0, 1)[None] / 255
        with torch.inference_mode():
            estimate = float(torch.rad2deg(module.canonicalize(pixels)[1].angle))
        answers = (light.answers([turned])[0].angle_degrees, estimate)
        near[number] = [abs(signed(answer - angle)) <= WITHIN for answer in answers]
    command, front = near.mean(0)
    return float(command), float(front)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--model", default=DEFAULT)
    parser.add_argument("--out", type=Path, default=Path("results") / "module-corners.json")
    arguments = parser.parse_args(argv)
    paths = sorted(arguments.photos.glob("*.jpg"))[: arguments.count]
    if not paths:
        parser.error(f"expected a folder with .jpg files; got {arguments.photos}, which has none")
    rows = {}
    print("| canvas | command | module |\n|---|---|---|")
    for canvas, expand in (("enlarged", True), ("its own", False)):
        command, front = measured(paths, arguments.model, expand)
        rows[canvas] = {"command": command, "module": front}
        print(f"| {canvas} | {command:.1%} | {front:.1%} |")
    figures = {"model": arguments.model, "photos": len(paths), "within_10": rows}
    arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
