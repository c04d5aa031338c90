"""One training step, and the same step captured as a CUDA graph.

With a small network, a GPU waits for the CPU to launch its kernels. The whole step (render,
forward, backward, update) has fixed shapes and never synchronises with the CPU, so it is recorded
once and replayed: one launch instead of hundreds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from radialbeams.nn.architectures import architecture
from radialbeams.nn.losses import Loss, Losses, LossInputs
from radialbeams.nn.prior import ToeplitzPrior, loss_weights
from radialbeams.nn.rotation import disc
from radialbeams.training.distributed import ALONE, World
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import LeakfreeViews, PaperViews, Views

SHARE_GPU = 0.5  # largest share of a GPU's free memory for the images as bytes
ROOM_GPU, ROOM_CPU = 24 * 2**30, 2 * 2**30  # largest memory for prepared parents, in bytes


@dataclass(frozen=True)
class Batch:
    """The inputs of a step, on the device of the model."""

    rows: Tensor  # (N,) indices of the parents
    angles: Tensor  # (N,) radians
    uniform: Tensor  # (N, COLUMNS) for the augmentation


class Step:
    """Parents, views, network, loss and optimizer. Calling it with a batch and an epoch trains."""

    def __init__(
        self,
        recipe: Recipe,
        parents: Tensor,
        views: Views,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        loss: Loss | None = None,  # None: the architecture's
        prior: nn.Module | None = None,  # None: the paper's, if the recipe has a prior
        forward: Callable[..., Any] | None = None,  # a compiled form of the model
        world: World = ALONE,  # the processes that share a batch
    ) -> None:
        self.recipe = recipe
        self.views = views
        self.device = next(model.parameters()).device
        self.prepared = _prepared(parents, views)
        self.model, self.forward = model, forward if forward is not None else model
        self.optimizer = optimizer
        self.world = world
        self.loss = loss or architecture(recipe.model).loss
        self.prior: nn.Module | None = None
        if recipe.prior != "off":
            self.prior = (prior or ToeplitzPrior(recipe.model.num_bins)).to(self.device)
        self.mixed = self.device.type == "cuda"
        self.epoch = 0  # to which the weights belong
        self.weights = torch.ones(2, device=self.device)  # of L_circle and L_prior

    def __call__(self, batch: Batch, epoch: int) -> Losses:
        self.weigh(epoch)
        return self.run(batch)

    def weigh(self, epoch: int) -> None:
        """Sets the weights of the two losses for this epoch.

        They are on the device, from which a CUDA graph reads them at every replay.
        """
        if epoch != self.epoch:
            self.epoch = epoch
            for buffer, weight in zip(
                self.weights, loss_weights(self.recipe.prior, epoch), strict=True
            ):
                buffer.fill_(weight)

    def run(self, batch: Batch) -> Losses:
        parents, views = self.render(batch)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.mixed, cache_enabled=False):
            loss, losses = self.losses(parents, views, batch)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        self.world.average_gradients(self.model.parameters())
        if self.recipe.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimizer.step()
        return losses

    @torch.no_grad()
    def render(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The prepared parents of the batch, and its views."""
        augmentation = self.recipe.augmentation
        parents = augmentation.mirrored(self._parents(batch.rows), batch.uniform)
        if parents.dtype == torch.uint8:
            parents = self.views.prepare(parents)
        zoom, shift = augmentation.geometry(batch.uniform, self.recipe.reach)
        views = self.views.turn(parents, batch.angles, zoom, shift)
        return parents, self._photometric(views, batch)

    def _parents(self, rows: Tensor) -> Tensor:
        """Prepared parents on the model's device, copied from main memory for large sets."""
        return self.prepared[rows.to(self.prepared.device)].to(self.device)

    def _photometric(self, views: Tensor, batch: Batch) -> Tensor:
        augmentation = self.recipe.augmentation
        if not augmentation.active:
            return views
        noise = self._noise(views) if augmentation.noise else None
        views = augmentation.photometric(views, batch.uniform, noise)
        if isinstance(self.views, LeakfreeViews):  # outside the disc, views stay black
            views = views * disc(views.shape[-1], views.device)
        return views

    def _noise(self, views: Tensor) -> Tensor:
        """Standard normal, shaped like the views; a process takes its part of the batch's noise."""
        if self.world.size == 1:
            return torch.randn_like(views)
        shape = (self.world.size * len(views), *views.shape[1:])
        return self.world.part(torch.randn(shape, device=views.device))

    def losses(self, parents: Tensor, views: Tensor, batch: Batch) -> tuple[Tensor, Losses]:
        """The loss to minimise, and the losses to report."""

        def upright() -> Tensor:
            # Both images of a pair get the same colours: they differ by the rotation only.
            return self._photometric(self._unturned(parents, batch), batch)

        inputs = LossInputs(
            views,
            batch.angles,
            batch.rows,
            upright,
            prior=self.prior,
            weights=self.weights,
            settings=self.recipe.loss,
        )
        return self.loss(self.forward, inputs)

    def _unturned(self, parents: Tensor, batch: Batch) -> Tensor:
        if isinstance(self.views, PaperViews):  # a rotation by 0 without resampling
            return self.views.upright(parents)
        zoom, shift = self.recipe.augmentation.geometry(batch.uniform, self.recipe.reach)
        return self.views.turn(parents, torch.zeros_like(batch.angles), zoom, shift)


def parents_on(images: Tensor, device: torch.device) -> Tensor:
    """The images on the device, or unmoved if they would fill too much of its memory."""
    if device.type != "cuda":
        return images.to(device)
    free, _ = torch.cuda.mem_get_info(device)
    return images.to(device) if images.numel() <= SHARE_GPU * free else images


def _prepared(parents: Tensor, views: Views) -> Tensor:
    """Parents blurred in advance, if they fit: floats take four times the memory of bytes."""
    room = ROOM_GPU if parents.device.type == "cuda" else ROOM_CPU
    if isinstance(views, PaperViews) or 4 * parents.numel() > room:
        return parents
    prepared = torch.empty(parents.shape, device=parents.device)
    for start in range(0, len(parents), 256):
        prepared[start : start + 256] = views.prepare(parents[start : start + 256])
    return prepared


class GraphedStep:
    """A `Step` recorded on the first call and replayed afterwards."""

    def __init__(self, step: Step, example: Batch) -> None:
        self.step = step
        self.static = Batch(*(value.clone() for value in vars(example).values()))
        self.graph = torch.cuda.CUDAGraph()
        self.losses: Losses | None = None

    def __call__(self, batch: Batch, epoch: int) -> Losses:
        for buffer, new in zip(vars(self.static).values(), vars(batch).values(), strict=True):
            buffer.copy_(new)
        self.step.weigh(epoch)
        if self.losses is None:
            self.losses = self._record()
        else:
            self.graph.replay()
        return self.losses

    def _record(self) -> Losses:
        """Runs the step once for real on a side stream, as capture demands, then records it."""
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            losses = self.step.run(self.static)
        torch.cuda.current_stream().wait_stream(side)
        self.step.optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()  # a graph has its own memory pool, and a large step fits only once
        with torch.cuda.graph(self.graph):
            recorded = self.step.run(self.static)
        # Capturing computes nothing, so the losses come from the run on the side stream.
        for buffer, real in zip(vars(recorded).values(), vars(losses).values(), strict=True):
            buffer.copy_(real)
        return recorded


def make_step(step: Step, example: Batch) -> Callable[[Batch, int], Losses]:
    """The step as a CUDA graph, unless it needs the CPU for other processes or for parents."""
    alone = step.world.size == 1 and step.prepared.device == step.device
    return GraphedStep(step, example) if step.mixed and alone else step
