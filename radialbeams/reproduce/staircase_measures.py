"""The measurements of `staircase`: errors on views and on files, and the hub's gradient."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from radialbeams.nn.angles import angular_error, circle_loss
from radialbeams.nn.bic import BIC
from radialbeams.nn.context import LEAK, WheelContext
from radialbeams.reproduce.trainings import SEEDS, Trained, summary
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import evaluate, predict_with, summarise
from radialbeams.training.views import Views, draw_angles

QUALITY = 90  # of the JPEG files
BATCH = 128


def measure(trained: Trained) -> JsonDict:
    """Errors on views of the training's own protocol and on files, and the hub's gradient."""
    model, views, device = trained.model, trained.fit.views, trained.device

    def predict(rendered: Tensor) -> Tensor:
        prediction = predict_with(model, rendered)
        return prediction[0] if isinstance(prediction, tuple) else prediction

    return {
        "so2": summary(evaluate(predict, trained.held_out, views, seeds=SEEDS, device=device)),
        "files": summary(summarise(file_errors(predict, trained.held_out, views, device))),
        "hub_share": share_of_hub(model, trained) if isinstance(model, BIC) else None,
    }


# --- files rotated by Pillow ---


def file_errors(
    predict: Any, images: ImageSet, views: Views, device: torch.device, seeds: int = SEEDS
) -> Tensor:
    """(seeds, images) radians: the errors on JPEG files that Pillow rotated."""
    errors = torch.empty(seeds, len(images))
    for seed in range(seeds):
        angles = draw_angles("evaluation", seed, 0, len(images))
        for start in range(0, len(images), BATCH):
            chunk = slice(start, start + BATCH)
            rendered = file_views(images.images[chunk], angles[chunk], views, device)
            errors[seed, chunk] = angular_error(predict(rendered).cpu().float(), angles[chunk])
    return errors


def file_views(images: Tensor, angles: Tensor, views: Views, device: torch.device) -> Tensor:
    """Bytes (N, C, W, W) → views of the rotated files, which are as large as the pictures.

    Pillow fills the corners with the colour of the picture's upper left pixel, as the paper's
    adaptive padding does, so only a faint edge rotates with the content.
    """
    pixels = images.permute(0, 2, 3, 1).numpy()  # (N, W, W, C)
    turned = [
        _saved(picture, angle) for picture, angle in zip(pixels, angles.tolist(), strict=True)
    ]
    files = torch.from_numpy(np.stack(turned)).permute(0, 3, 1, 2).contiguous().to(device)
    return views.upright(files)


def _saved(pixels: NDArray[np.uint8], radians: float) -> NDArray[np.uint8]:
    ground = tuple(pixels[0, 0].tolist())
    buffer = io.BytesIO()
    turned = Image.fromarray(pixels).rotate(
        math.degrees(radians), Image.Resampling.BICUBIC, fillcolor=ground
    )
    turned.save(buffer, "JPEG", quality=QUALITY)
    return np.asarray(Image.open(buffer))


# --- the gradient through the hub ---


def share_of_hub(model: BIC, trained: Trained) -> float:
    """The `hub_share` on a batch of held-out images."""
    angles = draw_angles("evaluation", 0, 0, len(trained.held_out))[:BATCH]
    parents = trained.held_out.images[:BATCH].to(trained.device)
    angles = angles.to(trained.device)
    return hub_share(model, trained.fit.views.render(parents, angles), angles)


def hub_share(model: BIC, views: Tensor, angles: Tensor) -> float:
    """The share of the loss's gradient at the beams' embeddings that passes through the hub.

    The gradient is computed twice: in full, and without what passes back through the hub. The
    difference belongs to the hub. Its norm is divided by the sum of both norms, image by image.
    """
    context = model.context
    if not isinstance(context, WheelContext):  # without a context encoder there is no hub
        return 0.0
    with torch.no_grad():
        embeddings = model.encoder(model.beams(views))  # (N, |B|, L)
    # cuDNN refuses gradients of an LSTM that is not in training.
    with torch.backends.cudnn.flags(enabled=False):
        whole = _gradient(model, context(leaf := _leaf(embeddings)), leaf, angles)
        cut = _gradient(model, _without_hub(context, leaf := _leaf(embeddings)), leaf, angles)
    through, around = (whole - cut).flatten(1).norm(dim=1), cut.flatten(1).norm(dim=1)
    return float((through / (through + around).clamp_min(1e-12)).mean())


def _leaf(embeddings: Tensor) -> Tensor:
    return embeddings.detach().clone().requires_grad_()


def _gradient(model: BIC, context: Tensor, leaf: Tensor, angles: Tensor) -> Tensor:
    loss = circle_loss(angles, model.decoder(context)).sum()
    return torch.autograd.grad(loss, leaf)[0]


def _without_hub(context: WheelContext, embeddings: Tensor) -> Tensor:
    """The context encoder's outputs, with no gradient through the hub."""
    nodes = F.pad(embeddings, (0, 0, 0, 1))  # (N, |B|+1, L)
    for layer in context.layers:
        gathered = context.edges @ nodes
        gathered = torch.cat((gathered[:, :-1], gathered[:, -1:].detach()), dim=1)
        nodes = F.leaky_relu(layer(gathered), LEAK)
    return embeddings + nodes[:, :-1] + nodes[:, -1:]
