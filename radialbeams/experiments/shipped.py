"""Shipped models as experiments look at them: the network, and the views that it was made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from radialbeams import zoo
from radialbeams.nn.bic import Network
from radialbeams.nn.pretrained import load_model
from radialbeams.training.views import Views, make_views
from radialbeams.training.weights import pick_device

# Both networks of the project, trained on COIL-100: the paper's and the ring.
COIL100 = {"bic": "bic.coil100", "ring": "ring.coil100"}


@dataclass(frozen=True)
class Shipped:
    model: Network
    views: Views
    parent_size: int  # of the upright images that its views are rendered from
    device: torch.device
    calibration: Mapping[str, Any]  # of its confidence, where it has one


def shipped(name: str, devices: str = "auto") -> Shipped:
    model, card = load_model(zoo.find(name).stem)
    training: dict[str, Any] = card["training"]
    views = make_views(
        training["protocol"],
        padding=training["padding"],
        view_size=card["config"]["view_size"],
    )
    device = pick_device(devices)
    return Shipped(
        model.to(device), views, training["parent_size"], device, card.get("calibration", {})
    )
