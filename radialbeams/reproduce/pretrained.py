"""Pretrained models for the experiments: in torch, with the views that they expect."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from radialbeams import zoo
from radialbeams.nn.architectures import Network
from radialbeams.nn.pretrained import load_model
from radialbeams.posterior import Calibration
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.training.data import ImageSet, load
from radialbeams.training.views import Views, views_of
from radialbeams.training.weights import pick_device

# Both networks, trained on COIL-100: the paper's and the ring.
COIL100 = {"bic": "bic.coil100", "ring": "ring.coil100"}


@dataclass(frozen=True)
class Pretrained:
    model: Network
    views: Views
    parent_size: int  # of the upright images that its views are rendered from
    device: torch.device
    calibration: Calibration  # of its confidence, if it has one


def load_pretrained(name: str, devices: str = "auto") -> Pretrained:
    model, card = load_model(zoo.find(name).stem)
    views = views_of(card.protocol, model.config.view_size)
    device = pick_device(devices)
    return Pretrained(model.to(device), views, card.parent_size, device, card.calibration)


@dataclass(frozen=True)
class HeldOut:
    """A model, upright images that it was not trained on, and the views made from them."""

    name: str
    model: Network
    images: ImageSet
    views: Views
    device: torch.device


def open_pretrained(
    name: str, settings: ReproduceSettings, *, limit: int | None = None, data: str | None = None
) -> HeldOut:
    """A pretrained model with held-out images of `data`, by default the data set on its card.

    `limit` takes that many evenly spaced images.
    """
    pretrained, card = load_pretrained(name, settings.devices), zoo.find(name).card
    images = load(
        data or ("" if card.data is None else card.data.name),
        root=settings.data,
        split="test",
        split_by="default" if data or card.data is None else card.data.split_by,
        size=pretrained.parent_size,
        channels=pretrained.model.config.channels,
        limit=limit,
    )
    return HeldOut(name, pretrained.model, images, pretrained.views, pretrained.device)
