"""The shipped models as the experiments measure them: in torch, on images that they held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from radialbeams import zoo
from radialbeams.experiments.settings import Settings
from radialbeams.nn.bic import Network
from radialbeams.training.data import ImageSet, load
from radialbeams.training.views import Views, make_views
from radialbeams.training.weights import load_model, pick_device


@dataclass(frozen=True)
class Shipped:
    """A model, upright images that it was not trained on, and how its views are made of them."""

    name: str
    model: Network
    images: ImageSet
    views: Views
    device: torch.device


def open_shipped(
    name: str, settings: Settings, *, limit: int | None = None, data: str | None = None
) -> Shipped:
    """`data` is another set than the one that its card names; `limit` images are evenly spaced."""
    device = pick_device(settings.devices)
    model, card = load_model(zoo.find(name).stem)
    protocol: dict[str, Any] = card["protocol"]
    images = load(
        data or card["data"]["name"],
        root=settings.data,
        split="test",
        split_by="default" if data else card["data"].get("split_by", "default"),
        size=protocol["parent_size"],
        channels=model.config.channels,
        limit=limit,
    )
    views = make_views(
        protocol["name"], padding=protocol["padding"], view_size=model.config.view_size
    )
    return Shipped(name, model.to(device), images, views, device)
