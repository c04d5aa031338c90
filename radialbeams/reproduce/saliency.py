"""Which pixels decide the angle, and whether the map of these pixels rotates with the image.

The map is the gradient of the estimated angle with respect to each pixel (`saliency_maps`). Maps
are blurred slightly before they are compared, because beams leave gaps. All maps are denser at the
centre, where beams meet. Every correlation is therefore compared with two controls: the map of
another object, and the map that is not rotated back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from radialbeams.nn.bic import BICConfig
from radialbeams.nn.rotation import PADDINGS
from radialbeams.reproduce import paper
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.pretrained import COIL100, load_pretrained
from radialbeams.reproduce.saliency_maps import (
    BAND,
    BLUR,
    OBJECT,
    SaliencyProbe,
    blurred,
    contrast,
    densities,
    equivariance,
    object_masks,
)
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.thumbnails import encode
from radialbeams.reproduce.trainings import PlannedTraining
from radialbeams.reproduce.trainings import load as load_trained
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet, load
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import PaperViews, draw_angles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "saliency"
QUARTERS = (90.0, 180.0, 270.0)  # degrees: here no pixel is resampled
FIGURE_TURNS = (0.0, 60.0, 135.0, 270.0)
THUMBNAIL_SIZE = 64  # pixels of a picture or map in the figure
FIGURE_OBJECTS = (2, 1, 4)  # sixths of the way through the images
SALIENCY = "saliency of a pixel on the object, the border and the rest (mean: 1)"
REGIONS = ("object", "border", "rest")
SIZE, LATENT, BATCH, STEPS, RATE = 64, 64, 32, 1500, 1e-3  # of the short trainings
SETTINGS = (
    "Settings: a map is the largest of the three colours' gradients of the estimated angle, "
    f"blurred by 1/{BLUR} of the view's width; the object is all that differs from the median "
    f"colour of the image's edge by more than {OBJECT} grey levels, and the border is {BAND} "
    f"pixels to both sides of the edge of the image. *Short bic* has images of {SIZE} pixels, "
    f"L = {LATENT} and {STEPS:,} steps of {BATCH} views at a one-cycle rate of up to {RATE:g}."
)
PADDED = {"zeros": "zero padding", "corner": "adaptive padding"}


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    """The paper's network on both paddings, small enough for a CPU."""
    return [
        PlannedTraining(
            padding,
            Recipe(
                "coil100",
                BICConfig.for_images(SIZE, latent=LATENT, hub=paper.HUB),
                SIZE,
                padding=padding,
                batch=BATCH,
                steps=settings.pick(quick=200, full=STEPS),
                learning_rate=RATE,
                schedule="one-cycle",
                clip=1.0,
            ),
            {"padding": padding},
            images=settings.pick(quick=600, full=None),
            held_out=settings.pick(quick=100, full=None),
            keep=True,
        )
        for padding in PADDINGS
    ]


def probes(settings: ReproduceSettings, count: int) -> list[SaliencyProbe]:
    """Both pretrained networks, and two short trainings that differ only in the padding."""

    def pictures(size: int) -> ImageSet:
        return load("coil100", root=settings.data, split="test", size=size, limit=count)

    networks = []
    for name, model_name in COIL100.items():
        network = load_pretrained(model_name, settings.devices)
        networks.append(
            SaliencyProbe(name, network.model, network.views, pictures(network.parent_size))
        )
    for training in trainings(settings):
        padding = training.recipe.padding
        model = load_trained(training, settings, NAME)
        images = pictures(training.recipe.parent_size)
        networks.append(
            SaliencyProbe(f"short bic, {PADDED[padding]}", model, PaperViews(padding), images)
        )
    return networks


def run(settings: ReproduceSettings, records: Records) -> Finding:
    count = settings.pick(quick=8, full=100)
    draws = settings.pick(quick=1, full=4)
    rows, pictures = [], []
    networks = probes(settings, count)
    for number, probe in enumerate(networks):
        settings.show(number, len(networks), f"maps of {probe.name}")
        rows.append(measure(probe, draws))
        objects = [thumbnails_of(probe, share * count // 6) for share in FIGURE_OBJECTS]
        pictures.append({"name": probe.name, "objects": objects})
    data = {
        "images": count,
        "draws": draws,
        "rows": rows,
        "pictures": pictures,
    }
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data, seeds=range(draws))


def conclude(data: Record) -> Conclusion:
    return numbers(data["rows"]), sentence(data["rows"])


def measure(probe: SaliencyProbe, draws: int) -> JsonDict:
    """All measurements of one network: its errors and its maps."""
    count = len(probe.images)
    anywhere = [draw_angles("evaluation", seed, 0, count) for seed in range(draws)]
    quarters = [torch.full((count,), degrees).deg2rad() for degrees in QUARTERS]
    upright = blurred(probe.maps(torch.zeros(count)))
    errors = torch.cat([probe.errors(angles) for angles in anywhere])
    return {
        "name": probe.name,
        "contrast": contrast(probe),
        "error": float(f"{torch.rad2deg(errors).mean().item():.4g}"),
        "quarters": equivariance(probe, quarters, upright),
        "anywhere": equivariance(probe, anywhere, upright),
        "density": densities(probe, anywhere[0]),
    }


def thumbnails_of(probe: SaliencyProbe, index: int) -> list[dict[str, str]]:
    """An image, its map and its object's mask at four rotations, as encoded thumbnails."""
    images = probe.images.select([index] * len(FIGURE_TURNS))
    angles = torch.tensor(FIGURE_TURNS).deg2rad()
    rotations = SaliencyProbe(probe.name, probe.model, probe.views, images)
    device = next(probe.model.parameters()).device
    views = probe.views.render(images.images.to(device), angles).cpu()
    maps = blurred(rotations.maps(angles))
    bright = [pixels / pixels.flatten().quantile(0.995) for pixels in maps[:, 0]]
    masks = masks_of(probe, index)
    return [
        {
            "input": _small(view.permute(1, 2, 0).numpy()),
            "map": _small(brightness.numpy()),
            "mask": mask,
        }
        for view, brightness, mask in zip(views, bright, masks, strict=True)
    ]


def masks_of(probe: SaliencyProbe, index: int) -> list[str]:
    """The masks of the object at the four rotations, as encoded thumbnails."""
    images = probe.images.images[index : index + 1].expand(len(FIGURE_TURNS), -1, -1, -1)
    angles = torch.tensor(FIGURE_TURNS).deg2rad()
    rendered = probe.views.render(object_masks(images), angles)
    return [_small(mask[0].numpy()) for mask in rendered]


def _small(values: NDArray[np.float32]) -> str:
    from PIL import Image

    picture = Image.fromarray(np.round(255 * np.clip(values, 0, 1)).astype(np.uint8))
    return encode(
        np.asarray(picture.resize((THUMBNAIL_SIZE, THUMBNAIL_SIZE), Image.Resampling.LANCZOS))
    )


def numbers(rows: Sequence[Record]) -> JsonDict:
    ours: JsonDict = {}
    for row in rows:
        name = row["name"]
        for kind, words in (("quarters", "quarter turns"), ("anywhere", "any angle")):
            part = row[kind]
            ours[f"correlation of the map, rotated back, with the upright one, {words}, {name}"] = (
                f"{part['back']['mean']:.2f} ± {part['back']['std']:.2f} (another object: "
                f"{part['other']['mean']:.2f}; not rotated back: {part['unturned']['mean']:.2f})"
            ).replace("-", "−")
        ours[f"{SALIENCY}, {name}"] = ", ".join(
            f"{row['density'][region]:.2f}" if region in row["density"] else "–"
            for region in REGIONS
        )
        if row["contrast"] is not None:
            ours[f"contrast at the border, grey levels of 255, {name}"] = f"{row['contrast']:.0f}"
        ours[f"mean error on these images, {name}"] = f"{row['error']:.1f}°"
    return ours


def sentence(rows: Sequence[Record]) -> str:
    by_name = {row["name"]: row for row in rows}
    sentences = []
    for name in COIL100:
        part = by_name[name]["anywhere"]
        sentences.append(
            f"The maps of {name}, rotated back, correlate with those of the upright images by "
            f"{part['back']['mean']:.2f}; maps of another object, by {part['other']['mean']:.2f}."
        )
    pretrained_bic = by_name["bic"]["density"]
    sentences.append(
        "The pretrained bic responds most to the border: a pixel there is "
        f"{pretrained_bic['border']:.1f} times as salient as the mean pixel, one on the object "
        f"{pretrained_bic['object']:.1f} times."
        if pretrained_bic["border"] > pretrained_bic["object"]
        else "The pretrained bic responds more to the object than to the border."
    )
    zero, adaptive = (by_name[f"short bic, {PADDED[p]}"] for p in PADDINGS)
    before, after = zero["density"]["border"], adaptive["density"]["border"]
    if max(before, after) <= 1:
        change = "neither padding draws the network to the border"
    elif after < before:
        change = "the adaptive padding draws the network away from the border"
    else:
        change = "the adaptive padding does not draw the network away from the border"
    sentences.append(
        f"In a short training, {change}: a pixel there is {before:.2f} times as salient as the "
        f"mean with zero padding and {after:.2f} times with adaptive padding, which leaves a "
        f"contrast of {adaptive['contrast']:.0f} grey levels where zeros leave "
        f"{zero['contrast']:.0f}."
    )
    return f"{' '.join(sentences)} {SETTINGS}"


# --- figures ---


def draw(record: Record) -> dict[str, Figure]:
    from radialbeams.reproduce import saliency_figures  # it needs matplotlib

    return saliency_figures.draw(record)


EXPERIMENT = Experiment(
    name=NAME,
    claim=(
        "Saliency maps rotate with the image. They lie on the outline and the shadows of the "
        "object, and with adaptive padding no longer on the border between image and padding"
    ),
    paper={
        "correlation of the map, rotated back, with the upright one, any angle, bic": "shown only",
        f"{SALIENCY}, short bic, adaptive padding": "the object's shape, not the border",
    },
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
