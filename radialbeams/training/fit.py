"""The loop: from a recipe and a set of images to a run folder with weights and card.

A run can be killed at any moment and goes on where it was: every random number follows from seed,
epoch and index alone, and the checkpoint holds the rest. On one CPU with a fixed number of threads
a resumed run equals an undisturbed one to the bit, as long as it is limited by steps.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from radialbeams.nn.angles import circle_loss
from radialbeams.nn.bic import BIC
from radialbeams.nn.prior import ToeplitzPrior, loss_weights, prior_loss
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import Evaluation, evaluate, predict_with
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import PaperViews, draw_angles, draws, jitter, mirror
from radialbeams.training.weights import save_model, write_card, write_tensors

WARM_UP = 0.1  # of a one-cycle run


@dataclass(frozen=True)
class Progress:
    """Where a run stands; one such line goes to metrics.jsonl now and then."""

    step: int
    steps: int
    epoch: int
    circle_loss: float
    prior_loss: float
    learning_rate: float
    views_per_second: float
    seconds_left: float


class Fit:
    """One run in one folder. Make it, call `run()`; make it again there and it goes on."""

    def __init__(
        self,
        recipe: Recipe,
        images: ImageSet,
        folder: Path,
        *,
        device: torch.device,
        minutes: float | None = None,
        held_out: ImageSet | None = None,
        validate_every: int = 0,
        log_every: int = 50,
        save_seconds: float = 30.0,
    ) -> None:
        _check_images(recipe, images)
        self.recipe = recipe
        self.folder = folder
        self.device = device
        self.minutes = minutes
        self.held_out = held_out
        self.validate_every = validate_every
        self.log_every = log_every
        self.save_seconds = save_seconds
        self.images = images
        self.parents = images.images.to(device)  # bytes: four times as many fit as of floats
        self.views = PaperViews(recipe.padding)
        torch.manual_seed(recipe.seed)
        self.model = BIC(recipe.model).to(device)
        self.average = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.prior = ToeplitzPrior(recipe.model.num_beams).to(device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=recipe.learning_rate,
            betas=(0.9, 0.999),
            weight_decay=recipe.weight_decay,  # 0 makes it plain Adam
            fused=device.type == "cuda",
        )
        self.step = 0
        self.seconds = 0.0  # spent in this run, earlier parts included
        self._open_folder()

    # --- the loop ---

    def run(self, on_progress: Callable[[Progress], None] | None = None) -> dict[str, Any]:
        """Trains to the end, writes weights and card, and returns the card."""
        self.model.train()
        started, before = time.monotonic(), self.seconds
        logged, saved = (self.step, before), before
        for epoch, rows, angles in self._batches():
            if self._over():
                break
            losses = self._step(epoch, rows, angles)
            self.step += 1
            if self.step % self.log_every == 0 or self.step == self.recipe.steps:
                circle, prior = (loss.item() for loss in losses)
                _check_finite(circle, self.step)
                self.seconds = before + time.monotonic() - started
                progress = self._progress(epoch, circle, prior, logged)
                logged = self.step, self.seconds
                self._log(asdict(progress))
                if on_progress is not None:
                    on_progress(progress)
            if self.validate_every and self.step % self.validate_every == 0:
                self._log({"step": self.step, "held_out": self.validate().to_dict()})
            if self.seconds - saved >= self.save_seconds:
                self.save()
                saved = self.seconds
        self.save()
        return self._finish()

    def _batches(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """(epoch from 1, rows, angles of those rows), from the present step on, without end."""
        count = len(self.images)
        batch = min(self.recipe.batch, count)
        per_epoch = count // batch
        while True:
            epoch, first = divmod(self.step, per_epoch)
            order = np.argsort(draws("order", self.recipe.seed, epoch, count), kind="stable")
            rows = torch.from_numpy(order).to(self.device)
            angles = draw_angles(
                "angles",
                self.recipe.seed,
                0 if self.recipe.draw == "image" else epoch,
                count,
                group=self.recipe.group,
                num_beams=self.recipe.model.num_beams,
            ).to(self.device)
            for k in range(first, per_epoch):
                chosen = rows[k * batch : (k + 1) * batch]
                yield epoch + 1, chosen, angles[chosen]

    def _step(self, epoch: int, rows: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        parents = self._parents(epoch, rows)
        views = self._photometric(self.views.render(parents, angles), epoch, rows)
        circle_weight, prior_weight = loss_weights(self.recipe.prior, epoch)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.device.type == "cuda"):
            context = self.model.embed(views)
            circle = circle_loss(angles, self.model.decoder(context)).mean()
            prior = circle.new_zeros(())
            if prior_weight:
                upright = self._photometric(self.views.upright(parents), epoch, rows)
                shifts = self.prior(self.model.embed(upright), context)
                prior = prior_loss(angles, shifts).mean()
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(circle_weight * circle + prior_weight * prior)
        if self.recipe.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimizer.step()
        self._update_average()
        return circle.detach(), prior.detach()

    def _parents(self, epoch: int, rows: Tensor) -> Tensor:
        parents = self.parents[rows]
        if self.recipe.mirror:
            parents = mirror(parents, self._uniform("mirror", epoch, rows, 1)[:, 0] < 0.5)
        return parents

    def _photometric(self, views: Tensor, epoch: int, rows: Tensor) -> Tensor:
        """The same for both images of a pair: only the turn may tell them apart."""
        if not self.recipe.jitter:
            return views
        uniform = self._uniform("jitter", epoch, rows, 1 + views.shape[1])
        return jitter(views, self.recipe.jitter, uniform)

    def _uniform(
        self, stream: Literal["mirror", "jitter"], epoch: int, rows: Tensor, columns: int
    ) -> Tensor:
        cached = self._uniforms.get(stream)
        if cached is None or cached[0] != epoch:
            numbers = draws(stream, self.recipe.seed, epoch, (len(self.images), columns))
            cached = epoch, torch.from_numpy(numbers.astype(np.float32)).to(self.device)
            self._uniforms[stream] = cached
        return cached[1][rows]

    def _learning_rate(self) -> float:
        if self.recipe.schedule == "constant":
            return self.recipe.learning_rate
        done = self._done()
        if done < WARM_UP:
            return self.recipe.learning_rate * (done + 1 / self.recipe.steps) / WARM_UP
        return (
            self.recipe.learning_rate
            * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP)))
            / 2
        )

    def _done(self) -> float:
        """The share of the run behind us, by steps or by minutes, whichever ends it first."""
        done = self.step / self.recipe.steps
        if self.minutes is not None:
            done = max(done, self.seconds / (60 * self.minutes))
        return min(done, 1.0)

    def _over(self) -> bool:
        return self._done() >= 1

    @torch.no_grad()
    def _update_average(self) -> None:
        if not self.recipe.average:
            return
        # A young average follows closely, so that it does not remember the initial weights.
        decay = min(self.recipe.average, self.step / (self.step + 10))
        for name, value in self.model.state_dict().items():
            self.average[name].lerp_(value, 1 - decay)

    # --- what is measured and kept ---

    def averaged(self) -> BIC:
        """The model to keep: the running average where the recipe asks for one."""
        model = BIC(self.recipe.model).to(self.device)
        model.load_state_dict(self.average if self.recipe.average else self.model.state_dict())
        return model.eval()

    def validate(self) -> Evaluation:
        if self.held_out is None:
            raise ValueError("validate_every needs held_out images; give some or leave it 0.")
        predict = partial(predict_with, self.averaged())
        return evaluate(predict, self.held_out, self.views, seeds=1, device=self.device)

    def save(self) -> None:
        optimizer = self.optimizer.state_dict()["state"]
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"average.{name}": value for name, value in self.average.items()}
        for index, state in optimizer.items():
            tensors |= {f"optimizer.{index}.{name}": value for name, value in state.items()}
        metadata = {"step": str(self.step), "seconds": repr(self.seconds)}
        write_tensors(self._checkpoint, tensors, metadata)

    def _restore(self) -> None:
        state: dict[str, dict[str, Tensor]] = {"model": {}, "average": {}}
        optimizer: dict[int, dict[str, Tensor]] = {}
        with safe_open(self._checkpoint, framework="pt") as file:
            for key in file.keys():  # noqa: SIM118 - not a dict
                part, name = key.split(".", 1)
                if part == "optimizer":
                    index, name = name.split(".", 1)
                    optimizer.setdefault(int(index), {})[name] = file.get_tensor(key)
                else:
                    state[part][name] = file.get_tensor(key)
            metadata = file.metadata()
        self.model.load_state_dict(state["model"])
        self.average = {name: value.to(self.device) for name, value in state["average"].items()}
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": optimizer, "param_groups": groups})
        self.step, self.seconds = int(metadata["step"]), float(metadata["seconds"])

    @property
    def _checkpoint(self) -> Path:
        return self.folder / "checkpoint.safetensors"

    @property
    def _metrics(self) -> Path:
        return self.folder / "metrics.jsonl"

    def _open_folder(self) -> None:
        """Begins a run, or takes up the one that is there if it has the same recipe."""
        self._uniforms: dict[str, tuple[int, Tensor]] = {}
        self.folder.mkdir(parents=True, exist_ok=True)
        recipe = self.folder / "recipe.json"
        mine = json.loads(json.dumps(self.recipe.to_dict()))
        if not recipe.exists():
            write_card(recipe, mine)
        elif (theirs := json.loads(recipe.read_text(encoding="utf-8"))) != mine:
            differing = sorted(k for k in mine | theirs if mine.get(k) != theirs.get(k))
            raise ValueError(
                f"{self.folder} holds a run with another recipe (different: "
                f"{', '.join(differing)}). Repeat that recipe to resume it, or use a new folder."
            )
        if self._checkpoint.exists():
            self._restore()
            self._forget_lines_after(self.step)

    def _forget_lines_after(self, step: int) -> None:
        """What was logged after the checkpoint will be logged again."""
        if not self._metrics.exists():
            return
        lines = self._metrics.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
        self._metrics.write_text("".join(kept), encoding="utf-8")

    def _log(self, line: dict[str, Any]) -> None:
        with self._metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _progress(
        self, epoch: int, circle: float, prior: float, logged: tuple[int, float]
    ) -> Progress:
        done = self._done()
        rate = (self.step - logged[0]) / max(self.seconds - logged[1], 1e-9)
        return Progress(
            step=self.step,
            steps=self.recipe.steps,
            epoch=epoch,
            circle_loss=circle,
            prior_loss=prior,
            learning_rate=self._learning_rate(),
            views_per_second=rate * min(self.recipe.batch, len(self.images)),
            seconds_left=self.seconds * (1 - done) / max(done, 1e-9),
        )

    def _finish(self) -> dict[str, Any]:
        card = {
            "name": self.folder.name,
            "data": {"name": self.images.name, "training_images": len(self.images)},
            "protocol": {
                "name": self.recipe.protocol,
                "parent_size": self.parents.shape[-1],
                "padding": self.recipe.padding,
            },
            "training": {
                **self.recipe.to_dict(),
                "steps_done": self.step,
                "seconds": round(self.seconds, 1),
                "hardware": self.device.type,
            },
        }
        return save_model(self.folder / "model", self.averaged().cpu(), card)


def _check_images(recipe: Recipe, images: ImageSet) -> None:
    size, expected = PaperViews().size(images.images.shape[-1]), recipe.model.view_size
    if size != expected:
        raise ValueError(
            f"The recipe's model sees views of {expected} pixels, but images of "
            f"{images.images.shape[-1]} pixels, padded, give {size}. "
            f"Set view_size to {size}, or load the images at another size."
        )
    if images.images.shape[1] != recipe.model.channels:
        raise ValueError(
            f"The recipe's model has {recipe.model.channels} channels, the images have "
            f"{images.images.shape[1]}. Load the images with as many channels as the model has."
        )


def _check_finite(loss: float, step: int) -> None:
    if not math.isfinite(loss):
        raise FloatingPointError(
            f"The loss is {loss} at step {step}. Lower the learning rate or clip the gradient; "
            "the last checkpoint is still whole."
        )
