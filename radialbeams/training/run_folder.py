"""The folder of a run: recipe, log and checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from radialbeams.stored import JsonDict, read_object
from radialbeams.training.recipe import Recipe
from radialbeams.training.weights import write_json, write_whole


class MetricsLine(TypedDict, total=False):
    """A line of metrics.jsonl: progress, or a validation. Experiments may add fields."""

    step: int
    steps: int  # of the whole run
    epoch: int  # from 1
    circle_loss: float
    prior_loss: float
    learning_rate: float
    views_per_second: float
    seconds_left: float
    held_out: JsonDict  # the fields of an Evaluation, over the whole circle
    held_out_cyclic: JsonDict  # the same over C_|B|


@dataclass(frozen=True)
class RunFolder:
    """Paths and log lines. A folder belongs to one recipe."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.safetensors"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    def open(self, recipe: Recipe) -> None:
        """Starts a run, or resumes the one in the folder if it has the same recipe."""
        self.path.mkdir(parents=True, exist_ok=True)
        path, fields = self.path / "recipe.json", _as_json(recipe)
        if not path.exists():
            write_json(path, fields)
            return
        # Read as a Recipe: fields that are newer than the file get their defaults.
        stored = _as_json(Recipe.from_dict(read_object(path, "a recipe")))
        differing = sorted(k for k in fields | stored if fields.get(k) != stored.get(k))
        if differing == ["steps"] and fields["steps"] > stored["steps"]:  # lengthened
            write_json(path, fields)
        elif differing:
            raise ValueError(
                f"{self.path} holds a run with another recipe (different: "
                f"{', '.join(differing)}). Use the same recipe to resume it, or a new folder."
            )

    def log(self, line: Mapping[str, object]) -> None:
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def lines(self) -> list[MetricsLine]:
        """The lines of the log, without an incomplete last one."""
        if not self.metrics.exists():
            return []
        with self.metrics.open(encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def forget_lines_after(self, step: int) -> None:
        """Removes lines after the checkpoint, which will be logged again."""
        if not self.metrics.exists():
            return
        lines = self.metrics.read_text(encoding="utf-8").splitlines(keepends=True)
        complete = [line for line in lines if line.endswith("\n")]
        try:
            # A line of step 0 comes before the first checkpoint, so it is logged again too.
            earlier = [line for line in complete if json.loads(line)["step"] <= step and step > 0]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{self.metrics} is damaged: every line must be an object with a step. Remove it "
                "to continue without the earlier log."
            ) from error
        text = "".join(earlier)
        write_whole(self.metrics, lambda partial: partial.write_text(text, encoding="utf-8"))


def _as_json(recipe: Recipe) -> JsonDict:
    values: JsonDict = json.loads(json.dumps(recipe.to_dict()))
    return values
