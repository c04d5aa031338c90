"""The ring against other networks on the same views, and against variants of itself.

    python studies/ring.py side-by-side --data DIR --out results/ring
    python studies/ring.py ablation --data DIR --out results/ring
    python studies/ring.py photos --data DIR --out results/ring

Each run writes one JSON file. A run whose file exists is skipped, so a killed table can be resumed,
and several processes can share it: each claims a run with a lock that ends with the process. The
ablation is measured on a part of the training split that is not trained on (sha256 % 5 == 1), so
that no choice is made on test images. The ablation of the default model uses the photos that are
held out for such choices.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from radialbeams.files import bucket, claimed, write_whole
from radialbeams.nn.angles import circle_loss, from_unit, to_unit
from radialbeams.nn.architectures import Network
from radialbeams.nn.losses import Losses, LossInputs
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.fit import Fit
from radialbeams.training.parts import Parts
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import read_images
from radialbeams.training.weights import pick_device

RECIPES = Path(__file__).parent.parent / "recipes"
STEPS = 2500
PHOTO_STEPS = 1000  # a thirtieth of the published run: what helps early need not help late
SEEDS = 3
Changes = dict[str, Any]

SIDE_BY_SIDE: dict[str, Changes] = {
    "ring": {},
    "bic": {
        "model": {
            "architecture": "lstm",
            "sampler": "bresenham",
            "num_beams": 32,
            "beam_length": 29,
            "epsilon": 1,
        },
        "learning_rate": 1e-3,
    },
    "resnet18-vector": {"network": "vector", "learning_rate": 1e-3},
    "resnet18-360": {"network": "360", "learning_rate": 1e-3},
}

ABLATION: dict[str, Changes] = {
    "48 beams": {},
    "three times the steps": {"steps": 3 * STEPS},  # first, because it takes longest
    "32 beams": {"model": {"num_beams": 32}},
    "64 beams": {"model": {"num_beams": 64}},
    "16 radii": {"model": {"beam_length": 16}},
    "56 radii": {"model": {"beam_length": 56}},
    "half width": {"model": {"stem": 24, "stages": (32, 48), "width": 64}},
    "no ring blocks": {"model": {"dilations": ()}},
    "Bresenham beams": {"model": {"sampler": "bresenham", "beam_length": 28}},
    "no augmentation": {"augmentation": {}},
    "strong augmentation": {
        "augmentation": {"mirror": True, "zoom": 0.3, "aspect": 0.2, "jitter": 0.4, "noise": 0.04}
    },
    "no circle loss": {"loss": {"circle": 0.0}},
    "circle loss ten times": {"loss": {"circle": 10.0}},
    "no loss of offsets": {"loss": {"offset": 0.0}},
    "target half as wide": {"loss": {"width": 0.5}},
    "target twice as wide": {"loss": {"width": 2.0}},
    "no weight averaging": {"average": 0.0},
    "constant rate": {"schedule": "constant", "learning_rate": 1e-3},
}


STOCHASTIC_DEPTH = {
    "drop": 0.1
}  # stochastic depth: drops each residual branch for 10% of the views
PHOTOS: dict[str, Changes] = {
    "as shipped": {},
    "no attention": {"model": {"attention": 0, "dilations": (1, 2, 4, 8, 16, 1)}},
    "views of 58 px": {"model": {"view_size": 58, "beam_length": 29}},
    "64 beams": {"model": {"num_beams": 64}},
    "target twice as wide": {"loss": {"width": 2.0}},
    "branches left out": {"model": STOCHASTIC_DEPTH},
    "branches left out, no attention": {
        "model": {**STOCHASTIC_DEPTH, "attention": 0, "dilations": (1, 2, 4, 8, 16, 1)}
    },
    "branches left out, views of 58 px": {
        "model": {**STOCHASTIC_DEPTH, "view_size": 58, "beam_length": 29}
    },
    "branches left out, thin beams": {"model": {**STOCHASTIC_DEPTH, "epsilon": 0}},
    "branches left out, 64 beams": {"model": {**STOCHASTIC_DEPTH, "num_beams": 64}},
    "branches left out, less zoom": {"model": STOCHASTIC_DEPTH, "augmentation": {"zoom": 0.25}},
    "branches left out, no fill": {"model": STOCHASTIC_DEPTH, "augmentation": {"fill": 0.0}},
}


class Table(NamedTuple):
    """The rows of a table, and the settings that they share."""

    recipe: str
    steps: int
    rows: dict[str, Changes]
    split: str
    base: Changes | None = None  # the changes that all rows share


# The first `ring.coil100` had 48 beams. The pretrained one has 32, since that row is no worse.
FIRST: Changes = {"model": {"num_beams": 48}}
VALIDATION = "validation, a fifth of the training split"
TABLES = {
    "side-by-side": Table("ring.coil100", STEPS, SIDE_BY_SIDE, "test", FIRST),
    "ablation": Table("ring.coil100", STEPS, ABLATION, VALIDATION, FIRST),
    "photos": Table("ring", PHOTO_STEPS, PHOTOS, "photos held out"),
}


class ResNet18(nn.Module):
    """The usual ResNet-18: 7 × 7 stem, four stages of two basic blocks, a linear head."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        ]
        channels = 64
        for maps, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [BasicBlock(channels, maps, stride), BasicBlock(maps, maps, 1)]
            channels = maps
        self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(512, outputs)

    def forward(self, views: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.body(views)).float()
        return outputs

    def angles(self, views: Tensor) -> Tensor:
        outputs = self(views)
        if outputs.shape[1] == 2:
            return from_unit(outputs)
        return torch.deg2rad(outputs.argmax(1).float() + 0.5)


class BasicBlock(nn.Module):
    def __init__(self, channels: int, maps: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, maps, 3, stride, 1, bias=False),
            nn.BatchNorm2d(maps),
            nn.ReLU(),
            nn.Conv2d(maps, maps, 3, 1, 1, bias=False),
            nn.BatchNorm2d(maps),
        )
        same = channels == maps and stride == 1
        self.skip = (
            nn.Identity()
            if same
            else nn.Sequential(
                nn.Conv2d(channels, maps, 1, stride, bias=False), nn.BatchNorm2d(maps)
            )
        )

    def forward(self, features: Tensor) -> Tensor:
        return F.relu(self.body(features) + self.skip(features))


def resnet_loss(network: nn.Module, inputs: LossInputs) -> tuple[Tensor, Losses]:
    outputs = network(inputs.views)
    if outputs.shape[1] == 2:
        circle = circle_loss(inputs.angles, F.normalize(outputs, dim=1)).mean()
        return circle, Losses(circle.detach(), circle.new_zeros(()))
    classes = torch.rad2deg(inputs.angles).long().clamp(0, 359)
    loss = F.cross_entropy(outputs, classes)
    estimates = torch.deg2rad(outputs.argmax(1).float() + 0.5)
    circle = circle_loss(inputs.angles, to_unit(estimates)).mean()
    return loss, Losses(circle.detach(), circle.new_zeros(()))


def resnet_parts(outputs: int) -> Parts:
    return Parts(
        network=lambda recipe, images: cast(Network, ResNet18(outputs)),
        loss=lambda recipe, images, device: resnet_loss,
        keeps_model=False,
    )


PARTS = {None: Parts(), "vector": resnet_parts(2), "360": resnet_parts(360)}


def recipe_of(table: Table) -> Changes:
    values: Changes = json.loads((RECIPES / f"{table.recipe}.json").read_text(encoding="utf-8"))
    return with_changes({**values, "steps": table.steps}, table.base or {})


def with_changes(base: Changes, changes: Changes) -> Changes:
    """The recipe with the changes applied; within a part, only the named fields are replaced."""
    values = {**base, **changes}
    for part in ("model", "augmentation", "loss"):
        # An empty part switches the part off.
        if changes.get(part):
            values[part] = {**base.get(part, {}), **changes[part]}
    return values


def run(
    values: Changes, changes: Changes, images: ImageSet, held_out: ImageSet, device: torch.device
) -> Changes:
    kind = values.pop("network", None)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        recipe = Recipe.from_dict(values)
        fit = Fit(recipe, images, Path(folder), device=device, parts=PARTS[kind])
        fit.run()
        seconds = time.monotonic() - started
        model = fit.averaged()
        result = evaluate(
            partial(predict_with, model), held_out, fit.views, seeds=SEEDS, device=device
        )
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "training_seconds": round(seconds, 1),
        **{
            key: value
            for key, value in result.to_dict().items()
            if key not in ("groups", "risk_coverage")
        },
        "changes": changes,
        "steps": values["steps"],
        "batch": values["batch"],
        "seeds": SEEDS,
        "hardware": device.type,
    }


def in_validation(key: str) -> bool:
    return bucket(key, 5) == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=sorted(TABLES))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="images, for a quick look")
    arguments = parser.parse_args()
    device, table = pick_device(), TABLES[arguments.table]
    base = recipe_of(table)
    recipe = Recipe.from_dict(base)
    images = read_images(recipe, "train", root=arguments.data, limit=arguments.limit)
    if table.split == VALIDATION:
        validation_rows = [row for row, key in enumerate(images.keys) if in_validation(key)]
        training_rows = [row for row, key in enumerate(images.keys) if not in_validation(key)]
        images, held_out = images.select(training_rows), images.select(validation_rows)
    else:
        held_out = read_images(recipe, "test", root=arguments.data, limit=arguments.limit)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, changes in table.rows.items():
        path = arguments.out / f"{arguments.table}-{name.replace(',', '').replace(' ', '-')}.json"
        with claimed(path.with_suffix(".claimed")) as acquired:
            if not acquired or path.exists():  # claimed by another process, or done
                continue
            result: dict[str, Any] = {"name": name, "split": table.split}
            result |= run(with_changes(base, changes), changes, images, held_out, device)
            text = json.dumps(result, indent=1) + "\n"
            write_whole(path, lambda part, text=text: part.write_text(text))  # type: ignore[misc]
        print(name, round(result["mean"], 3), round(result["median"], 3), flush=True)


if __name__ == "__main__":
    main()
