"""The folder of a run: its recipe, its log, and where the checkpoint lies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radialbeams.stored import read_object
from radialbeams.training.recipe import Recipe
from radialbeams.training.weights import write_json, write_whole


@dataclass(frozen=True)
class RunFolder:
    """Paths and lines; a folder belongs to one recipe."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.safetensors"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    def open(self, recipe: Recipe) -> None:
        """Begins a run, or resumes the one that is there if it has the same recipe."""
        self.path.mkdir(parents=True, exist_ok=True)
        place, mine = self.path / "recipe.json", _as_json(recipe)
        if not place.exists():
            write_json(place, mine)
            return
        # Through the recipe: fields that are newer than the file have their defaults.
        theirs = _as_json(Recipe.from_dict(read_object(place, "a recipe")))
        differing = sorted(k for k in mine | theirs if mine.get(k) != theirs.get(k))
        if differing == ["steps"] and mine["steps"] > theirs["steps"]:  # lengthened
            write_json(place, mine)
        elif differing:
            raise ValueError(
                f"{self.path} holds a run with another recipe (different: "
                f"{', '.join(differing)}). Repeat that recipe to resume it, or use a new folder."
            )

    def log(self, line: Mapping[str, Any]) -> None:
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """What was logged; nothing where a run was too short to log, or was cut off."""
        if not self.metrics.exists():
            return []
        with self.metrics.open(encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def forget_lines_after(self, step: int) -> None:
        """What was logged after the checkpoint will be logged again."""
        if not self.metrics.exists():
            return
        lines = self.metrics.read_text(encoding="utf-8").splitlines(keepends=True)
        whole = [line for line in lines if line.endswith("\n")]
        try:
            kept = [line for line in whole if json.loads(line)["step"] <= step]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{self.metrics} is damaged: every line must be an object with a step. Remove it "
                "to go on without what was logged before."
            ) from error
        text = "".join(kept)
        write_whole(self.metrics, lambda partial: partial.write_text(text, encoding="utf-8"))


def _as_json(recipe: Recipe) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(json.dumps(recipe.to_dict()))
    return values
