"""How much additional views at quarter turns help, and below which confidence they are worthwhile.

    python studies/looks.py RUN/model --data cache:CACHE --out looks.json [--outputs looks.npz]

Every held-out image is rotated at random, and the model sees each view as it is and at the three
other quarter turns, which are exact. The table compares one view, always four views, and four views
only below a confidence: share within 10°, mean error, flips, and the mean number of views.
Calibrate the model first: the temperature and spread on its card are used if there are any.

On a CPU the ONNX file beside the card is used if there is one: ONNX Runtime is faster there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from radialbeams.cards import Card
from radialbeams.posterior import Answer, Calibration, read_posterior, read_posteriors
from radialbeams.runtime import open_session
from radialbeams.training.data import ImageSet, cache, load
from radialbeams.training.runs import card_views
from radialbeams.training.views import draw_angles
from radialbeams.training.weights import load_model, pick_device, read_card

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.99)
SEED = 2000  # of angles that are drawn nowhere else

Floats = NDArray[np.float32]
Network = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


@torch.inference_mode()
def outputs(stem: Path, images: ImageSet, seeds: int) -> tuple[Floats, Floats, Floats]:
    """Logits and offsets (seeds·N, 4, bins) of all views at quarter turns; degrees (seeds·N,)."""
    device = pick_device()
    model, views = network(stem, device), card_views(card_of(stem))
    batch = 128 if device.type == "cuda" else 16  # a CPU's cache holds few views
    logits, offsets, turns = [], [], []
    for seed in range(seeds):
        angles = draw_angles("evaluation", SEED + seed, 0, len(images))
        turns.append(torch.rad2deg(angles))
        for start in range(0, len(images), batch):
            chunk = slice(start, start + batch)
            rendered = views.render(images.images[chunk].to(device), angles[chunk].to(device))
            by_quarter = [model(torch.rot90(rendered, k, (-2, -1))) for k in range(4)]
            logits.append(torch.stack([first for first, _ in by_quarter], 1).cpu())
            offsets.append(torch.stack([second for _, second in by_quarter], 1).cpu())
    return torch.cat(logits).numpy(), torch.cat(offsets).numpy(), torch.cat(turns).numpy()


def card_of(stem: Path) -> Card:
    return read_card(stem.with_name(f"{stem.name}.json"))


def network(stem: Path, device: torch.device) -> Network:
    """A function of views (n, C, S, S) → logits and offsets (n, bins), fast on this device."""
    onnx = stem.with_name(f"{stem.name}.onnx")
    if device.type != "cpu" or not onnx.is_file():
        return load_model(stem)[0].to(device)
    session = open_session(onnx.read_bytes(), torch.get_num_threads())

    def run(views: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits, offsets = session.run(None, {"views": views.contiguous().numpy()})
        return torch.from_numpy(logits), torch.from_numpy(offsets)

    return run


def table(
    logits: Floats, offsets: Floats, degrees: Floats, calibration: Calibration
) -> dict[str, Any]:
    """The errors with one view, with four, and with every rule in between."""
    bins = logits.shape[-1]
    quarters = np.arange(4, dtype=np.float32) * np.float32(bins / 4)
    one_view = read_posterior(logits[:, 0], offsets[:, 0], *calibration)
    four_views = read_posteriors(logits, offsets, quarters, *calibration)
    result = {
        "views": len(degrees),
        "one": figures(one_view, degrees),
        "four": figures(four_views, degrees),
    }
    confidences = np.array([answer.confidence for answer in one_view])
    rows = []
    for below in THRESHOLDS:
        rule = [
            second if confidence < below else first
            for first, second, confidence in zip(one_view, four_views, confidences, strict=True)
        ]
        cost = float(1 + 3 * (confidences < below).mean())
        rows.append({"below": below, "looks": round(cost, 3), **figures(rule, degrees)})
    return {**result, "rules": rows}


def figures(answers: list[Answer], degrees: Floats) -> dict[str, float]:
    angles = np.array([answer.angle_degrees for answer in answers])
    errors = np.abs((angles - degrees + 180) % 360 - 180)
    confidences = np.array([answer.confidence for answer in answers])
    confident_half = errors[confidences >= np.median(confidences)]
    return {
        "within_10": round(float((errors <= 10).mean()), 4),
        "within_5": round(float((errors <= 5).mean()), 4),
        "mean": round(float(errors.mean()), 3),
        "median": round(float(np.median(errors)), 3),
        "flips": round(float((errors >= 150).mean()), 4),
        "surer_half_within_10": round(float((confident_half <= 10).mean()), 4),
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stem", type=Path, help="RUN/model")
    parser.add_argument("--data", required=True, help="cache:FOLDER, a data set's name or a folder")
    parser.add_argument("--split", default="test")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--outputs", type=Path, help="logits, offsets and angles, for later")
    arguments = parser.parse_args(argv)
    card = card_of(arguments.stem)
    if arguments.data.startswith(cache.PREFIX):
        folder = Path(arguments.data.removeprefix(cache.PREFIX))
        images = cache.read(folder, "cache", split=arguments.split, limit=arguments.limit)
    else:
        size = card.parent_size
        images = load(arguments.data, split=arguments.split, size=size, limit=arguments.limit)
    logits, offsets, degrees = outputs(arguments.stem, images, arguments.seeds)
    if arguments.outputs:
        half = {"logits": logits.astype(np.float16), "offsets": offsets.astype(np.float16)}
        np.savez(arguments.outputs, **half, degrees=degrees, keys=np.array(images.keys))
    rows = table(logits, offsets, degrees, card.calibration)
    arguments.out.write_text(json.dumps(rows, indent=1) + "\n")
    print(json.dumps({name: rows[name] for name in ("views", "one", "four")}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
