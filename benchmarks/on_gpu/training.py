"""Views per second of a training step, its parts, and the kernels that it spends its time in.

The parents are random bytes, because no part's time depends on the content.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.on_gpu.timing import back_to_back, captured, device, kernels
from radialbeams.stored import JsonDict
from radialbeams.training.augment import COLUMNS
from radialbeams.training.data import ImageSet
from radialbeams.training.fit import Fit
from radialbeams.training.freezing import set_training
from radialbeams.training.recipe import Recipe
from radialbeams.training.step import Batch, Step, make_step

RECIPES = Path(__file__).parents[2] / "recipes"
IMAGES = {"ring.coil100": 4096, "general": 2048}


class Training:
    """One recipe with its own batch size."""

    def __init__(self, recipe: str, images: int | None = None, batch: int | None = None) -> None:
        stored = json.loads((RECIPES / f"{recipe}.json").read_text(encoding="utf-8"))
        self.recipe = Recipe.from_dict(stored | ({"batch": batch} if batch else {}))
        self.fused = stored["model"]["architecture"] == "convolutional"
        self.images = images or IMAGES[recipe]

    def prepare(self) -> None:
        fused = self.fused and torch.cuda.is_available()
        self.folder = tempfile.TemporaryDirectory()
        place = Path(self.folder.name)
        fit = Fit(self.recipe, self._parents(), place, device=device(), fused=fused)
        set_training(fit.model, self.recipe.frozen)
        self.step: Step = fit.step()
        batch = self.batch()
        self.run_step = make_step(self.step, batch)
        for _ in range(3):
            self.run_step(batch, 1)

    def measure(self) -> Iterator[JsonDict]:
        batch = self.batch()
        whole = back_to_back(lambda: self.run_step(batch, 1), seconds=1.5)
        result: JsonDict = {
            "batch": self.recipe.batch,
            "step_us": round(1e6 * whole, 1),
            "views_per_second": round(self.recipe.batch / whole),
        }
        yield result
        parts = {"rendering": self._rendered, "rendering and network": self._forward}
        for name, part in parts.items():
            result[f"{name}_us"] = round(1e6 * back_to_back(captured(lambda p=part: p(batch))), 1)
            yield result
        result["kernels"] = kernels(lambda: self.step(batch, 1), 60)
        yield result

    def _rendered(self, batch: Batch) -> object:
        with torch.no_grad():
            return self.step.render(batch)

    def _forward(self, batch: Batch) -> object:
        """Without gradients, so that nothing is stored for a backward pass."""
        with torch.no_grad():
            _, views = self.step.render(batch)
            mixed = self.step.mixed
            with torch.autocast("cuda", torch.bfloat16, enabled=mixed, cache_enabled=False):
                return self.step.model(views)

    def batch(self) -> Batch:
        count, place = self.recipe.batch, device()
        return Batch(
            torch.randint(self.images, (count,), device=place),
            2 * math.pi * torch.rand(count, device=place),
            torch.rand(count, COLUMNS, device=place),
        )

    def _parents(self) -> ImageSet:
        side = self.recipe.parent_size
        images = torch.randint(0, 256, (self.images, 3, side, side), dtype=torch.uint8)
        names = tuple(str(number) for number in range(self.images))
        return ImageSet("random", images, names, names)
