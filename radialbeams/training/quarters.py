"""`python -m radialbeams.training.quarters POOL --out RUN`: trains the quarter network.

The pool may still be growing: new pages are used as they appear. The schedule follows the clock or
a number of steps. A killed run resumes from its checkpoint. It does not reproduce an uninterrupted
run exactly, since the pool grows independently.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from radialbeams.nn.quarter import QuarterConfig, QuarterNetwork, quarter_loss
from radialbeams.stored import JsonDict
from radialbeams.training.checkpoint import TrainingPosition, read_checkpoint, write_checkpoint
from radialbeams.training.data.documents.device import DevicePool
from radialbeams.training.data.documents.pool import (
    DOCUMENT,
    HAS_UP,
    PHOTO,
    open_pool,
)
from radialbeams.training.process import cudnn_search, random_numbers_kept
from radialbeams.training.quarter_report import QuarterCard, fit_temperature, held_out_report
from radialbeams.training.quarter_views import page_views
from radialbeams.training.weights import pick_device, sha256, write_json, write_tensors

AVERAGE_EVERY = 10  # steps


@dataclass(frozen=True)
class QuarterRecipe:
    """Every setting of a run, except for the pool and the time limit."""

    model: QuarterConfig = field(default_factory=QuarterConfig)
    batch: int = 128
    steps: int = 12_000  # only a limit if the schedule follows the clock
    learning_rate: float = 2e-3
    weight_decay: float = 0.05
    warm_up: float = 0.08
    average: float = 0.999
    clip: float = 1.0
    document_weight: float = 0.3
    held_out: int = 2_000  # the pool's first pages, never trained on
    seed: int = 0


class QuarterFit:
    """One run in one folder: call `run()`. A new `QuarterFit` in the same folder resumes it."""

    def __init__(
        self,
        recipe: QuarterRecipe,
        pool: Path,
        folder: Path,
        *,
        device: torch.device,
        minutes: float | None = None,
        log_every: int = 100,
        least_pages: int = 6_000,
        save_seconds: float = 30.0,
        start: Path | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        self.on_line = on_line
        self.recipe, self.folder, self.device = recipe, folder, device
        self.minutes, self.log_every, self.save_seconds = minutes, log_every, save_seconds
        self.pool = DevicePool(open_pool(pool), device)
        self.least_pages = max(least_pages, recipe.held_out + recipe.batch)
        with random_numbers_kept(device):
            torch.manual_seed(recipe.seed)
            self.model = QuarterNetwork(recipe.model).to(device)
        self.started_from = None if start is None else load_weights(self.model, start)
        if device.type == "cuda":
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.average = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )
        self.at = TrainingPosition()
        folder.mkdir(parents=True, exist_ok=True)
        if self.checkpoint.exists():
            self.at = read_checkpoint(self.checkpoint, self.model, self.average, self.optimizer)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint.safetensors"

    # --- the loop ---

    def run(self) -> QuarterCard:
        """Trains to the end, calibrates, writes weights and card, and returns the card."""
        self._wait_for_pages()
        self.model.train()
        generator = torch.Generator(self.device).manual_seed(self.recipe.seed + self.at.step)
        self.order = torch.Generator().manual_seed(self.recipe.seed + self.at.step)
        started, before = time.monotonic(), self.at.seconds
        logged, saved = (self.at.step, before), before
        while self._done() < 1:
            with cudnn_search(self.device.type == "cuda"):  # all batches have the same shape
                losses = self._step(generator)
            self.at.step += 1
            self.at.seconds = before + time.monotonic() - started
            if self.at.step % AVERAGE_EVERY == 0:
                self._update_average()
            if self.at.step % self.log_every == 0:
                self._log_progress(losses, logged)
                logged = (self.at.step, self.at.seconds)
            if self.at.seconds - saved >= self.save_seconds:
                self.save()
                saved = self.at.seconds
                self.pool.take_up()
        self.save()
        return self._finish()

    def _step(self, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        recipe = self.recipe
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.learning_rate * self._rate()
        pages, marks = self.pool.sample(recipe.batch, recipe.held_out, self.order)
        views = page_views(pages, recipe.model.size, generator)
        if self.device.type == "cuda":
            views = views.to(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.device.type == "cuda"):
            quarters, document = self.model(views)
        turn, kind = losses_of(quarters.float(), document.float(), marks)
        self.optimizer.zero_grad(set_to_none=True)
        (turn + recipe.document_weight * kind).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        self.optimizer.step()
        right = (quarters.argmax(1) == 0)[(marks[:, 0] & HAS_UP > 0) & (marks[:, 0] & PHOTO == 0)]
        return turn.detach(), kind.detach(), right.float().mean()

    def _done(self) -> float:
        """The fraction of the schedule that is done, by minutes or by steps."""
        steps = self.at.step / self.recipe.steps
        return steps if self.minutes is None else max(self.at.seconds / (60 * self.minutes), steps)

    def _rate(self) -> float:
        done, up = self._done(), self.recipe.warm_up
        if done < up:
            return max(done / up, 0.01)
        return 0.5 * (1 + math.cos(math.pi * min(1, (done - up) / (1 - up)))) + 1e-4

    def _update_average(self) -> None:
        decay = min(self.recipe.average**AVERAGE_EVERY, self.at.step / (self.at.step + 100))
        for name, value in self.model.state_dict().items():
            if value.is_floating_point():
                self.average[name].lerp_(value, 1 - decay)
            else:
                self.average[name].copy_(value)

    def _wait_for_pages(self) -> None:
        while self.pool.take_up() < min(self.least_pages, self.pool.capacity):
            self._log({"step": self.at.step, "pages": self.pool.count, "waiting": True})
            time.sleep(5)

    # --- measuring and saving ---

    def averaged(self) -> QuarterNetwork:
        model = QuarterNetwork(self.recipe.model).to(self.device)
        model.load_state_dict(self.average)
        return model.eval()

    @torch.inference_mode()
    def predict(self, model: QuarterNetwork) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of turns and "document", and marks, of the held-out pages with a small skew."""
        generator = torch.Generator(self.device).manual_seed(1)
        batches = []
        for pages, marks in self.pool.first(self.recipe.held_out, self.recipe.batch):
            views = page_views(pages, self.recipe.model.size, generator, strength=0.4)
            quarters, document = model(views)
            batches.append((quarters, document, marks))
        quarters, document, marks = (torch.cat(parts) for parts in zip(*batches, strict=True))
        return quarters, document, marks

    def save(self) -> None:
        write_checkpoint(self.checkpoint, self.model, self.average, self.optimizer, self.at)

    def _finish(self) -> QuarterCard:
        self.pool.take_up()
        model = self.averaged()
        quarters, document, marks = self.predict(model)
        temperature = fit_temperature(quarters, marks)
        model.temperature.fill_(temperature)
        report = held_out_report(quarters / temperature, document, marks)
        self._log({"step": self.at.step, "held_out": report})
        weights = self.folder / "model.safetensors"
        write_tensors(weights, model.state_dict(), {"format": "radialbeams"})
        card = QuarterCard(
            name=self.folder.name,
            config=self.recipe.model.to_dict(),
            parameters=sum(p.numel() for p in model.parameters()),
            data={"name": "own renderings", "pages": self.pool.count},
            training={
                **asdict(self.recipe),
                "minutes": self.minutes,
                "start_sha256": self.started_from,
                "steps_done": self.at.step,
                "seconds": round(self.at.seconds, 1),
                "hardware": self.device.type,
            },
            temperature=temperature,
            held_out=report,
            sha256={"safetensors": sha256(weights)},
        )
        write_json(self.folder / "model.json", asdict(card))
        return card

    def _log_progress(
        self, losses: tuple[Tensor, Tensor, Tensor], logged: tuple[int, float]
    ) -> None:
        turn, kind, right = (value.item() for value in losses)
        if not math.isfinite(turn):
            raise FloatingPointError(
                f"The loss is {turn} at step {self.at.step}. Lower the learning rate; the last "
                "checkpoint is intact."
            )
        seconds = max(self.at.seconds - logged[1], 1e-9)
        done = self._done()
        self._log(
            {
                "step": self.at.step,
                "turn_loss": round(turn, 4),
                "document_loss": round(kind, 4),
                "right": round(right, 3),
                "pages": self.pool.count,
                "pages_per_second": round((self.at.step - logged[0]) * self.recipe.batch / seconds),
                "seconds_left": round(self.at.seconds * (1 - done) / max(done, 1e-9)),
            }
        )

    def _log(self, line: JsonDict) -> None:
        text = json.dumps(line)
        if self.on_line is not None:
            self.on_line(text)
        with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(text + "\n")


def load_weights(model: QuarterNetwork, path: Path) -> str:
    """Puts the weights of a finished run into the model; returns their sha256."""
    weights = load_file(path)
    weights["temperature"] = torch.ones_like(weights["temperature"])  # fitted again at the end
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(
            f"Expected weights of a quarter network of the same shape in {path}; {error} "
            "Give the --size, --widths and --blocks that it was trained with."
        ) from error
    return sha256(path)


def wait_for_pool(folder: Path, seconds: float = 120) -> Path:
    """Waits for the pool: its renderer may have been started at the same time."""
    begun = time.monotonic()
    while not (folder / "pool.json").exists() and time.monotonic() - begun < seconds:
        time.sleep(1)
    return folder


def losses_of(quarters: Tensor, document: Tensor, marks: Tensor) -> tuple[Tensor, Tensor]:
    """Pages in the pool are upright, so turn 0 is right. Photos only train "document"."""
    flags = marks[:, 0].int()
    page = flags & PHOTO == 0
    turns = torch.zeros(int(page.sum()), dtype=torch.long, device=marks.device)
    has_up, is_document = flags & HAS_UP > 0, flags & DOCUMENT > 0
    turn, _ = quarter_loss(quarters[page], document[page], turns, has_up[page], is_document[page])
    _, kind = quarter_loss(
        quarters, document, torch.zeros_like(flags, dtype=torch.long), has_up, is_document
    )
    return turn, kind


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m radialbeams.training.quarters")
    parser.add_argument(
        "pool", type=Path, help="filled by python -m radialbeams.training.data.documents"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, help="the schedule follows the clock")
    parser.add_argument("--steps", type=int, default=QuarterRecipe.steps)
    parser.add_argument("--batch", type=int, default=QuarterRecipe.batch)
    parser.add_argument("--size", type=int, default=QuarterConfig.size)
    parser.add_argument("--widths", type=int, nargs="+", default=list(QuarterConfig.widths))
    parser.add_argument("--blocks", type=int, nargs="+", default=list(QuarterConfig.blocks))
    parser.add_argument("--learning-rate", type=float, default=QuarterRecipe.learning_rate)
    parser.add_argument("--held-out", type=int, default=QuarterRecipe.held_out)
    parser.add_argument(
        "--least-pages", type=int, default=6_000, help="pages to wait for before training starts"
    )
    parser.add_argument("--log-every", type=int, default=100)
    parser.add_argument("--start", type=Path, help="initial weights, from an earlier run")
    parser.add_argument("--devices", default="auto")
    arguments = parser.parse_args(argv)
    recipe = QuarterRecipe(
        model=QuarterConfig(
            size=arguments.size, widths=tuple(arguments.widths), blocks=tuple(arguments.blocks)
        ),
        batch=arguments.batch,
        steps=arguments.steps if arguments.minutes is None else 10**9,
        learning_rate=arguments.learning_rate,
        held_out=arguments.held_out,
    )
    fit = QuarterFit(
        recipe,
        wait_for_pool(arguments.pool),
        arguments.out,
        device=pick_device(arguments.devices),
        minutes=arguments.minutes,
        log_every=arguments.log_every,
        least_pages=arguments.least_pages,
        start=arguments.start,
        on_line=_say,
    )
    fit.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
