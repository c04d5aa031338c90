"""The paper's training settings, which several experiments share, in full and quick form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypedDict

from radialbeams.nn.bic import BICConfig
from radialbeams.nn.context import Hub
from radialbeams.nn.rotation import largest_view
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import Protocol

# The hub of all experiments that do not compare hubs: the default when they were run. `staircase`
# compares it with the hub of the paper's text, which is the default today.
HUB: Hub = "mean"


class Effort(TypedDict):
    batch: int
    steps: int
    learning_rate: float


def effort(settings: ReproduceSettings, *, quick_steps: int, quick_rate: float = 2e-3) -> Effort:
    """The effort of a `Recipe`: Adam at a constant rate."""
    return {
        "batch": settings.pick(quick=32, full=128),
        "steps": settings.pick(quick=quick_steps, full=4096),
        "learning_rate": settings.pick(quick=quick_rate, full=1e-4),
    }


def fitting(recipe: Recipe, settings: ReproduceSettings) -> Recipe:
    """The recipe with the rate and schedule of the pretrained models, which converge."""
    rate = settings.pick(quick=2e-3, full=1e-3)
    return replace(recipe, learning_rate=rate, schedule="one-cycle", clip=1.0)


def network(
    protocol: Protocol, size: int, settings: ReproduceSettings, latent: int = 64, **changes: Any
) -> BICConfig:
    """The network for W × W images under either protocol, with beams from centre to border.

    `latent` applies to quick settings; full settings use the paper's.
    """
    changes = {"latent": settings.pick(quick=latent, full=128), "hub": HUB, **changes}
    if protocol == "paper":
        return BICConfig.for_images(size, **changes)
    view = largest_view(size)
    return BICConfig(**{"view_size": view, "beam_length": view // 2, **changes})
