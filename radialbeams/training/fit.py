"""The training loop: from a recipe and images to a run folder with weights and a card.

A run can be killed at any time and resumes from its checkpoint: every random number depends only on
seed, epoch and index. On a CPU with a fixed number of threads, a resumed run equals an
uninterrupted one to the bit if its length is given in steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import torch

from radialbeams.cards import Card, DataCard, Evaluation, TrainingCard, ViewProtocol
from radialbeams.nn.architectures import Network
from radialbeams.nn.losses import Losses
from radialbeams.stored import JsonDict
from radialbeams.training.augment import COLUMNS
from radialbeams.training.checkpoint import TrainingPosition, read_checkpoint, write_checkpoint
from radialbeams.training.data import ImageSet
from radialbeams.training.distributed import ALONE, World
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.freezing import set_training
from radialbeams.training.fusing import fuse
from radialbeams.training.parts import Parts, check_images
from radialbeams.training.process import cudnn_search, interrupt_noted, random_numbers_kept
from radialbeams.training.recipe import Recipe
from radialbeams.training.run_folder import MetricsLine, RunFolder
from radialbeams.training.schedule import learning_rate, make_optimizer, set_rate
from radialbeams.training.shared_norm import share_norms
from radialbeams.training.start import begin_with
from radialbeams.training.step import Batch, Step, make_step, parents_on
from radialbeams.training.views import Group, draw_angles, draws
from radialbeams.training.weights import new_card, save_model

AVERAGE_EVERY = 10  # steps; the cost of averaging is then negligible
RELEASE_EVERY = 16  # steps between releases of a memory-mapped file's pages


@dataclass(frozen=True)
class Progress:
    """The state of a run, as one line of metrics.jsonl."""

    step: int
    steps: int
    epoch: int
    circle_loss: float
    prior_loss: float
    learning_rate: float
    views_per_second: float
    seconds_left: float


DEFAULT_PARTS = Parts()


class Fit:
    """One run in one folder: call `run()`. A new `Fit` in the same folder resumes it.

    `parts` replaces what an experiment trains, trains on, or minimises.
    """

    def __init__(
        self,
        recipe: Recipe,
        images: ImageSet,
        folder: Path,
        *,
        device: torch.device,
        parts: Parts = DEFAULT_PARTS,
        minutes: float | None = None,
        start: Path | None = None,
        compiled: bool = False,
        tuned: bool = False,
        fused: bool = False,
        held_out: ImageSet | None = None,
        validate_every: int = 0,
        validations: int = 0,
        validate_start: bool = False,
        log_every: int | None = None,
        log_seconds: float = math.inf,
        save_seconds: float = 15.0,
        world: World = ALONE,
    ) -> None:
        self.recipe, self.parts = recipe, parts
        self.world = world  # the processes of the run; the first one writes files
        self.images = parts.images(recipe, images)
        self.folder = RunFolder(folder)
        self.device = device
        self.minutes = minutes
        # Initial weights: the STEM of an earlier run's, or the file of a pretrained encoder's.
        self.start = start
        self.compiled = compiled  # by torch.compile
        self.fused = fused  # uses our own kernels for the convolutional network
        self.tuned = tuned  # lets cuDNN time its algorithms and take the fastest
        self.held_out = held_out
        self.validate_every = validate_every  # steps
        self.validations = validations  # in the whole run, evenly spaced
        self.validate_start = validate_start  # before the first step too
        self.log_every = log_every or max(1, min(50, recipe.steps // 40))
        self.log_seconds = log_seconds
        self.save_seconds = save_seconds
        self.views = parts.views(recipe)
        check_images(self.images.images, recipe, self.views)
        self.rows = self._rows()
        self.angles = None if parts.angles is None else parts.angles(self.images).to(device)
        with random_numbers_kept(device):
            torch.manual_seed(recipe.seed)
            self.model = self.build()
        self.started_from = None if start is None else begin_with(self.model, start, recipe)
        self.model.to(device)
        if device.type == "cuda":
            # The layout in which half-precision convolutions are fast.
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        share_norms(self.model, world)
        self.average = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.optimizer = make_optimizer(self.model, recipe, device)
        self.at = TrainingPosition()
        self._open()

    def _open(self) -> None:
        """Starts a run in the folder, or resumes from its checkpoint."""
        if self.world.is_first:
            self.folder.open(self.recipe)
        self.world.wait()
        if self.folder.checkpoint.exists():
            self.at = read_checkpoint(
                self.folder.checkpoint, self.model, self.average, self.optimizer
            )
        self.world.wait()
        if self.world.is_first:
            self.folder.forget_lines_after(self.at.step)

    # --- the loop ---

    def run(
        self,
        on_progress: Callable[[Progress], None] | None = None,
        on_validation: Callable[[MetricsLine], None] | None = None,
    ) -> Card | None:
        """Trains to the end, writes weights and card, and returns the card.

        With several processes, only the first one writes; the others return None.
        """
        if self.minutes is not None:
            self.minutes = self.world.of_first(self.minutes)
        with interrupt_noted() as noted, cudnn_search(self.tuned), random_numbers_kept(self.device):
            interrupted = self.world.agreed(noted)
            self._train(interrupted, on_progress, on_validation)
            stopped = interrupted()
        self.save()
        if stopped:
            raise KeyboardInterrupt
        return self._finish() if self.parts.keeps_model and self.world.is_first else None

    def _train(
        self,
        interrupted: Callable[[], bool],
        on_progress: Callable[[Progress], None] | None,
        on_validation: Callable[[MetricsLine], None] | None,
    ) -> None:
        set_training(self.model, self.recipe.frozen)
        step = self.step()
        run_step: Callable[[Batch, int], Losses] | None = None
        started, earlier = time.monotonic(), self.at.seconds
        logged = TrainingPosition(self.at.step, earlier)
        saved, validated = earlier, self._validations_due()
        if self.validate_start and self.at.step == 0:
            self._log_validation(on_validation)
        for epoch, batch in self._batches():
            if self._done() >= 1 or interrupted():
                break
            run_step = run_step or make_step(step, batch)
            set_rate(self.optimizer, self._learning_rate())
            torch.manual_seed(self.recipe.seed + self.at.step)  # for the noise in this step's views
            losses = run_step(batch, epoch)
            self.at.step += 1
            if self.at.step % AVERAGE_EVERY == 0 or self.at.step == self.recipe.steps:
                self._update_average()
            if self.at.step % RELEASE_EVERY == 0:
                self.images.release()
            self.at.seconds = self.world.of_first(earlier + time.monotonic() - started)
            if self._is_logged(logged):
                progress = self._progress(epoch, losses, logged)
                logged = TrainingPosition(self.at.step, self.at.seconds)
                self._log(asdict(progress))
                if on_progress is not None and self.world.is_first:
                    on_progress(progress)
            every = self.validate_every
            if (every and self.at.step % every == 0) or self._validations_due() > validated:
                validated = self._validations_due()
                self._log_validation(on_validation)
            if self.at.seconds - saved >= self.save_seconds:
                self.save()
                saved = self.at.seconds

    def _is_logged(self, logged: TrainingPosition) -> bool:
        """Whether a line is due: every `log_every` steps or `log_seconds`, and at the end."""
        by_step = self.at.step % self.log_every == 0 or self._done() >= 1
        return by_step or self.at.seconds - logged.seconds >= self.log_seconds

    def _validations_due(self) -> int:
        """How many of the evenly spaced validations are due by now."""
        return int(self._done() * self.validations)

    def _log(self, line: JsonDict) -> None:
        if self.world.is_first:
            self.folder.log(line)

    def _log_validation(self, on_validation: Callable[[MetricsLine], None] | None) -> None:
        if not self.world.is_first:
            return  # the next step waits for the first process
        line = cast(MetricsLine, {"step": self.at.step, **self.validation()})
        self.folder.log(line)
        if on_validation is not None:
            on_validation(line)

    def _batches(self) -> Iterator[tuple[int, Batch]]:
        """Yields (epoch from 1, batch), from the current step on, without end."""
        recipe, count = self.recipe, len(self.rows)
        size = self._batch_size()
        per_epoch = count // size
        while True:
            epoch, first = divmod(self.at.step, per_epoch)
            order = np.argsort(draws("order", recipe.seed, epoch, count), kind="stable")
            shuffled = torch.from_numpy(order).to(self.device)
            angles = self._angles(0 if recipe.draw == "image" else epoch)
            uniform = draws("augment", recipe.seed, epoch, (count, COLUMNS)).astype(np.float32)
            numbers = torch.from_numpy(uniform).to(self.device)
            for k in range(first, per_epoch):
                chosen = self.world.part(shuffled[k * size : (k + 1) * size])
                yield epoch + 1, Batch(self.rows[chosen], angles[chosen], numbers[chosen])

    def _batch_size(self) -> int:
        """The size over all processes, a multiple of their number."""
        most = len(self.rows) // self.world.size * self.world.size
        return min(self.recipe.batch * self.world.size, most)

    def _angles(self, epoch: int) -> torch.Tensor:
        """(rows of an epoch,) radians: drawn, or the known angles of the images."""
        if self.angles is not None:
            return self.angles[self.rows]
        recipe = self.recipe
        return draw_angles(
            "angles",
            recipe.seed,
            epoch,
            len(self.rows),
            group=recipe.group,
            num_beams=recipe.model.num_bins,
        ).to(self.device)

    def _rows(self) -> torch.Tensor:
        """The images of an epoch, by index: each once, those of a repeated group more often."""
        groups, repeats = self.images.groups, self.recipe.repeats
        if unknown := sorted(set(repeats) - set(groups)):
            raise ValueError(
                f"The recipe repeats {', '.join(unknown)}; the groups of {self.images.name} are "
                f"{', '.join(sorted(set(groups))[:20])}."
            )
        chosen = self.parts.rows
        rows = np.arange(len(groups)) if chosen is None else np.asarray(chosen(self.images))
        times = [repeats.get(groups[row], 1) for row in rows]
        return torch.from_numpy(np.repeat(rows, times)).to(self.device)

    def _learning_rate(self) -> float:
        return learning_rate(self.recipe, self._done())

    def _done(self) -> float:
        """The fraction of the run that is done, by steps or minutes, whichever ends it first."""
        done = self.at.step / self.recipe.steps
        if self.minutes is not None:
            done = max(done, self.at.seconds / (60 * self.minutes))
        return min(done, 1.0)

    @torch.no_grad()
    def _update_average(self) -> None:
        # Not torch's `AveragedModel`: its decay has no warm-up, and checkpoints of earlier versions
        # would not load.
        if not self.recipe.average:
            return
        # A small decay at first, so that the average forgets the initial weights.
        decay = min(self.recipe.average**AVERAGE_EVERY, self.at.step / (self.at.step + 100))
        for name, value in self.model.state_dict().items():
            if value.is_floating_point():
                self.average[name].lerp_(value, 1 - decay)
            else:  # a counter
                self.average[name].copy_(value)

    # --- what is trained, measured and kept ---

    def step(self) -> Step:
        recipe, parts = self.recipe, self.parts
        if self.fused:
            fuse(self.model, self.device)
        return Step(
            recipe,
            parents_on(self.images.images, self.device),
            self.views if parts.training_views is None else parts.training_views(recipe),
            self.model,
            self.optimizer,
            loss=parts.loss(recipe, self.images, self.device),
            prior=parts.prior(recipe.model.num_bins),
            forward=torch.compile(self.model, dynamic=False) if self.compiled else None,
            world=self.world,
        )

    def build(self) -> Network:
        return self.parts.network(self.recipe, self.images)

    def averaged(self) -> Network:
        """The model to save: the running average of the weights if the recipe has one."""
        with random_numbers_kept(self.device):
            model = self.build().to(self.device)
        model.load_state_dict(self.average if self.recipe.average else self.model.state_dict())
        return model.eval()

    def validation(self) -> JsonDict:
        """Errors on the whole circle; for training on C_|B| alone, also on C_|B|."""
        if self.parts.validation is not None:
            return self.parts.validation(self)
        line = {"held_out": self.validate().to_dict()}
        if self.recipe.group == "cyclic":
            line["held_out_cyclic"] = self.validate("cyclic").to_dict()
        return line

    def validate(self, group: Group = "so2") -> Evaluation:
        if self.held_out is None:
            raise ValueError("validate_every needs held_out images; pass some, or set it to 0.")
        with cudnn_search(False):  # a validation is too short to gain from it
            return evaluate(
                partial(predict_with, self.averaged()),
                self.held_out,
                self.views,
                seeds=1,
                group=group,
                num_beams=self.recipe.model.num_bins,
                device=self.device,
            )

    def save(self) -> None:
        if not self.world.is_first:
            return
        write_checkpoint(self.folder.checkpoint, self.model, self.average, self.optimizer, self.at)

    def _progress(self, epoch: int, losses: Losses, logged: TrainingPosition) -> Progress:
        circle, prior = (self.world.mean(loss).item() for loss in (losses.circle, losses.prior))
        if not math.isfinite(circle):
            raise FloatingPointError(
                f"The loss is {circle} at step {self.at.step}. Lower the learning rate or clip "
                "the gradient; the last checkpoint is intact."
            )
        done = self._done()
        rate = (self.at.step - logged.step) / max(self.at.seconds - logged.seconds, 1e-9)
        return Progress(
            step=self.at.step,
            steps=self.recipe.steps,
            epoch=epoch,
            circle_loss=circle,
            prior_loss=prior,
            learning_rate=self._learning_rate(),
            views_per_second=rate * self._batch_size(),
            seconds_left=self.at.seconds * (1 - done) / max(done, 1e-9),
        )

    def _finish(self) -> Card:
        recipe, model = self.recipe, self.averaged().cpu()
        protocol = ViewProtocol(
            recipe.protocol, recipe.parent_size, recipe.padding, recipe.sigma, recipe.reach
        )
        card = replace(
            new_card(model, protocol, self.folder.path.name),
            data=DataCard(self.images.name, len(self.images), split_by=recipe.split_by),
            training=TrainingCard(
                recipe.to_dict(),
                minutes=self.minutes,
                start=self.started_from,
                steps_done=self.at.step,
                seconds=round(self.at.seconds, 1),
                hardware=self.device.type,
            ),
        )
        return save_model(self.folder.path / "model", model, card)
