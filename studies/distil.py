"""Distils a model into another one, or into itself, with profiles of the training photos.

    python studies/distil.py profiles TEACHER --data cache:CACHE --out profiles.npz [--turns 2]
    python studies/distil.py train RECIPE.json --profiles profiles.npz --share 0.5 \
        --data cache:CACHE --out RUN [--without PREFIX …] [--start STEM] [--minutes 15] [--fuse] \
        [--half]

A profile is the teacher's posterior of one photo relative to its true angle, averaged over rotated
views and over their quarter turns. A plate from above has a flat profile, a building two peaks. The
student's target is a mixture of the usual narrow target and the profile, so that the student need
not learn what cannot be seen. The teacher processes each photo once, before the training. Its
views, size and number of bins may differ from the student's.

What the teacher has never seen (drawings, for a model of photos) should not teach its ignorance:
`--without PREFIX` keeps the narrow target for the images whose keys start with PREFIX; several
prefixes may be given, and such images need no profile.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from radialbeams.nn.losses import Loss, Losses, LossInputs
from radialbeams.nn.posterior import posterior, ring_loss
from radialbeams.stored import read_object
from radialbeams.training.data import ImageSet, cache, load
from radialbeams.training.fit import Fit
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import card_views
from radialbeams.training.views import draw_angles
from radialbeams.training.weights import load_model, pick_device, save_model

BINS = 72  # of a profile: 5° each
SEED = 3000  # of angles that are drawn nowhere else
TURN = 2 * math.pi


@torch.inference_mode()
def profiles(stem: Path, images: ImageSet, turns: int, batch: int = 512) -> np.ndarray:
    """(N, BINS): the posterior of each photo over the error of the angle, as probabilities."""
    device = pick_device()
    model, card = load_model(stem)
    model, views = model.to(device).eval(), card_views(card)
    total = torch.zeros(len(images), BINS)
    for turn in range(turns):
        angles = draw_angles("evaluation", SEED + turn, 0, len(images))
        for start in range(0, len(images), batch):
            chunk = slice(start, start + batch)
            rendered = views.render(images.images[chunk].to(device), angles[chunk].to(device))
            for quarter in range(4):
                with torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda"):
                    logits, offsets = model(torch.rot90(rendered, quarter, (-2, -1)))
                truth = angles[chunk].to(device) + quarter * math.pi / 2
                total[chunk] += relative(logits.float(), offsets.float(), truth).cpu()
    mean = total / (4 * turns)
    mirrored = mean.flip(1).roll(1, 1)  # photos are mirrored at random in training
    profile: np.ndarray = ((mean + mirrored) / 2).numpy().astype(np.float16)
    return profile


def relative(logits: Tensor, offsets: Tensor, truth: Tensor) -> Tensor:
    """(N, bins) each → (N, BINS): the mass by error of the angle, interpolated between bins."""
    distribution = posterior(logits, offsets)
    position = ((distribution.angles - truth[:, None]) / TURN * BINS) % BINS
    low = position.floor()
    part, mass = position - low, distribution.log_probabilities.exp()
    target = mass.new_zeros(len(mass), BINS)
    target.scatter_add_(1, low.long() % BINS, mass * (1 - part))
    return target.scatter_add_(1, (low.long() + 1) % BINS, mass * part)


def shifted(profile: Tensor, angles: Tensor, bins: int) -> Tensor:
    """(N, BINS) and radians (N,) → (N, bins): the profiles, moved to these angles."""
    centres = torch.arange(bins, device=angles.device) * (TURN / bins)
    position = ((centres - angles[:, None]) / TURN * BINS) % BINS
    low = position.floor()
    part = position - low
    first, second = (profile.gather(1, (low.long() + step) % BINS) for step in (0, 1))
    profile = first * (1 - part) + second * part
    return profile / profile.sum(1, keepdim=True).clamp(min=1e-6)


def softened(profile: Tensor, share: float) -> Loss:
    """The usual loss, with `share` of its target replaced by the profiles (images, BINS)."""

    def loss(network: object, inputs: LossInputs) -> tuple[Tensor, Losses]:
        logits, offsets = network(inputs.views)  # type: ignore[operator]
        hard, circle = ring_loss(inputs.angles, logits, offsets, inputs.settings)
        bins = logits.shape[-1]
        step = TURN / bins
        away = torch.arange(bins, device=logits.device) * step - inputs.angles[:, None]
        narrow = (torch.cos(away) / (inputs.settings.width * step) ** 2).softmax(-1)
        own = profile[inputs.rows].float()  # (N, BINS)
        wide = shifted(own, inputs.angles, bins)
        wide = torch.where(own.any(1, keepdim=True), wide, narrow)
        extra = -((wide - narrow) * logits.float().log_softmax(-1)).sum(-1)
        total = (hard + share * extra).mean()
        return total, Losses(circle.mean().detach(), circle.new_zeros(()))

    return loss


def in_order(path: Path, images: ImageSet, without: Sequence[str] = ()) -> Tensor:
    """The stored profiles in the order of the images; a photo without one is an error.

    Images whose keys start with one of `without` get zeros, which `softened` leaves out.
    """
    with np.load(path) as stored:
        by_key = dict(zip(stored["keys"].tolist(), stored["profiles"], strict=True))
    if without:
        none = np.zeros(BINS, np.float16)
        by_key |= {key: none for key in images.keys if key.startswith(tuple(without))}
    if missing := [key for key in images.keys if key not in by_key]:
        raise SystemExit(
            f"Expected a profile of every training image in {path}; {len(missing)} are missing, "
            f"such as {missing[0]}. Make the profiles from the same photos."
        )
    return torch.from_numpy(np.stack([by_key[key] for key in images.keys]))


def images_of(data: str, name: str, size: int, split: str, limit: int | None) -> ImageSet:
    if data.startswith(cache.PREFIX):
        return cache.read(Path(data.removeprefix(cache.PREFIX)), name, split=split, limit=limit)
    return load(data, split=split, size=size, limit=limit)


def make(arguments: argparse.Namespace) -> None:
    _, card = load_model(arguments.teacher)
    images = images_of(arguments.data, "cache", card.parent_size, "train", arguments.limit)
    stored = profiles(arguments.teacher, images, arguments.turns)
    np.savez(arguments.out, keys=np.array(images.keys), profiles=stored)
    near = stored[:, [0, 1, 2, -2, -1]].astype(np.float32).sum(1)
    print(json.dumps({"images": len(images), "mass within 10°": round(float(near.mean()), 4)}))


def train(arguments: argparse.Namespace) -> None:
    recipe = Recipe.from_dict(read_object(arguments.recipe, "a recipe"))
    size = recipe.parent_size
    images = images_of(arguments.data, recipe.data, size, "train", arguments.limit)
    profile = in_order(arguments.profiles, images, arguments.without)
    device = pick_device()
    parts = Parts(loss=lambda recipe, images, device: softened(profile.to(device), arguments.share))
    fit = Fit(
        recipe,
        images,
        arguments.out,
        device=device,
        parts=parts,
        minutes=arguments.minutes,
        start=arguments.start,
        fused=arguments.fuse,
        log_every=arguments.log_every,
        save_seconds=60.0,
    )
    fit.run(lambda progress: print(json.dumps(asdict(progress)), flush=True))
    if arguments.half:
        model, card = load_model(arguments.out / "model")
        save_model(arguments.out / "half", model, card, half=True)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("profiles", help="the teacher's posterior of every photo")
    first.add_argument("teacher", type=Path, help="RUN/model, or the stem of a pretrained model")
    first.add_argument("--turns", type=int, default=2, help="rotated views of each photo")
    first.set_defaults(run=make)
    second = commands.add_parser("train", help="a student with these profiles")
    second.add_argument("recipe", type=Path)
    second.add_argument("--profiles", type=Path, required=True)
    second.add_argument("--share", type=float, default=0.5, help="of the profile in the target")
    second.add_argument(
        "--without", metavar="PREFIX", nargs="+", default=(), help="keys of images without profiles"
    )
    second.add_argument("--minutes", type=float)
    second.add_argument("--start", type=Path)
    second.add_argument("--fuse", action="store_true")
    second.add_argument("--half", action="store_true")
    second.add_argument("--log-every", type=int, default=200)
    second.set_defaults(run=train)
    for command in (first, second):
        command.add_argument("--data", required=True, help="cache:FOLDER, or a data set's name")
        command.add_argument("--out", type=Path, required=True)
        command.add_argument("--limit", type=int)
    arguments = parser.parse_args(argv)
    arguments.run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
