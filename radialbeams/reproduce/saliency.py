"""Which pixels decide the angle, and whether that map turns with the image.

The map is the gradient of the answered angle by each pixel, the largest of the three colours. Up
to a factor it is the gradient of the circle loss, and both networks have it: of the ring's
posterior the mean is taken. Maps are compared after both are blurred a little, since beams leave
gaps; and because all maps are denser at the centre, where beams meet, every correlation stands
beside two controls: the map of another object, and the map that is not turned back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from radialbeams.nn.angles import angular_error, to_unit
from radialbeams.nn.architectures import Network, with_beams
from radialbeams.nn.bic import BICConfig
from radialbeams.nn.posterior import posterior
from radialbeams.nn.ring_network import RingBIC
from radialbeams.nn.rotation import PADDINGS, Padding, disc, rotate
from radialbeams.reproduce.experiment import Experiment, Finding, Record, Records
from radialbeams.reproduce.pretrained import COIL100, shipped
from radialbeams.reproduce.seed_statistics import spread
from radialbeams.reproduce.settings import QUICK, Settings
from radialbeams.reproduce.thumbnails import decode, encode
from radialbeams.reproduce.trainings import Training
from radialbeams.reproduce.trainings import load as load_trained
from radialbeams.training.data import ImageSet, load
from radialbeams.training.recipe import Recipe
from radialbeams.training.views import PaperViews, Views, draw_angles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "saliency"
QUARTERS = (90.0, 180.0, 270.0)  # degrees: here no pixel is resampled
SHOWN_TURNS = (0.0, 60.0, 135.0, 270.0)
SHOWN = 64  # pixels of a picture or map in the figure
BLUR = 60  # maps are blurred by 1/60 of the view's width
OBJECT = 24  # levels by which a pixel differs from the corner to be one of the object
BAND = 2  # pixels to both sides of the border between image and padding
REGIONS = ("object", "border", "rest")
PADDED = {"zeros": "zero padding", "corner": "adaptive padding"}

# --- maps ---


def direction(model: Network, views: Tensor) -> Tensor:
    """(N, 2): what is answered, as a vector; the ring's is the mean of its posterior."""
    if not isinstance(model, RingBIC):
        unit: Tensor = model(views)
        return unit
    found = posterior(*model(views))
    return (found.log_probabilities.exp()[..., None] * to_unit(found.angles)).sum(-2)


def saliency(model: Network, views: Tensor) -> Tensor:
    """(N, C, S, S) → (N, 1, S, S): how much the answered angle changes with each pixel."""
    views = views.detach().requires_grad_(True)
    # cuDNN has no gradient of an LSTM that is not in training.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        unit = direction(model, views)
        angles = torch.atan2(unit[:, 1], unit[:, 0])
        (gradient,) = torch.autograd.grad(angles.sum(), views)
    return gradient.abs().amax(1, keepdim=True)


def blurred(maps: Tensor) -> Tensor:
    """By a Gaussian of 1/60 of the width, both axes."""
    sigma = maps.shape[-1] / BLUR
    reach = int(3 * sigma + 1)
    offsets = torch.arange(-reach, reach + 1, device=maps.device)
    taps = torch.exp(-0.5 * (offsets / sigma) ** 2)
    taps = taps / taps.sum()
    maps = F.conv2d(maps, taps[None, None, :, None], padding=(reach, 0))
    return F.conv2d(maps, taps[None, None, None, :], padding=(0, reach))


def correlation(first: Tensor, second: Tensor, inside: Tensor) -> Tensor:
    """Pearson's, image by image, over the pixels (S, S) that are inside: (N,)."""
    one, other = (maps[:, 0][:, inside > 0].double() for maps in (first, second))
    one, other = one - one.mean(1, keepdim=True), other - other.mean(1, keepdim=True)
    scale = (one.square().sum(1) * other.square().sum(1)).sqrt()
    return (one * other).sum(1) / scale.clamp(min=1e-30)


# --- a network, and what it is shown ---


@dataclass(frozen=True)
class Looker:
    name: str
    model: Network
    views: Views
    images: ImageSet

    @property
    def padding(self) -> Padding | None:
        """What lies around the image; None where a view never shows it."""
        return self.views.padding if isinstance(self.views, PaperViews) else None

    def maps(self, angles: Tensor, batch: int = 25) -> Tensor:
        """(N,) radians → (N, 1, S, S), on the CPU."""
        device = next(self.model.parameters()).device
        found = []
        for start in range(0, len(angles), batch):
            part = slice(start, start + batch)
            views = self.views.render(self.images.images[part].to(device), angles[part])
            found.append(saliency(self.model, views).cpu())
        return torch.cat(found)

    @torch.inference_mode()
    def errors(self, angles: Tensor) -> Tensor:
        """(N,) radians."""
        device = next(self.model.parameters()).device
        views = self.views.render(self.images.images.to(device), angles)
        found: Tensor = self.model.angles(views).cpu()
        return angular_error(found, angles)

    def read(self) -> Tensor:
        """(S, S) of 1 where a beam reads."""
        config = self.model.config
        size = config.view_size
        if isinstance(self.model, RingBIC):
            return disc(size)
        read = torch.zeros(size * size)
        read[torch.as_tensor(self.model.beams.index).flatten().cpu()] = 1
        return read.reshape(size, size)

    def inside(self) -> Tensor:
        """(S, S) of 1 in the circle that beams of every direction reach."""
        config = self.model.config
        if isinstance(self.model, RingBIC):
            return disc(config.view_size)
        offsets = torch.arange(config.view_size) - (config.view_size - 1) / 2
        return ((offsets**2 + offsets[:, None] ** 2) <= with_beams(config).beam_length ** 2).float()


def equivariance(looker: Looker, turns: Sequence[Tensor], upright: Tensor) -> dict[str, Any]:
    """Maps of turned images against those of upright ones; `turns` are radians (N,) each."""
    inside = looker.inside()
    other = len(upright) // 2  # in natural order: another object
    found: dict[str, list[Tensor]] = {"back": [], "other": [], "unturned": []}
    for angles in turns:
        turned = looker.maps(angles)
        back = blurred(rotate(turned, -angles))
        found["back"].append(correlation(back, upright, inside))
        found["other"].append(correlation(back.roll(other, 0), upright, inside))
        found["unturned"].append(correlation(blurred(turned), upright, inside))
    # Turns of one image go together: the spread is that over images.
    means = {name: torch.stack(parts).mean(0) for name, parts in found.items()}
    return {name: _of_images(values) for name, values in means.items()}


def _of_images(values: Tensor) -> dict[str, float]:
    found = spread(values.tolist())
    return {name: float(f"{found[name]:.4g}") for name in ("mean", "std")}


# --- where the map lies ---


def object_masks(images: Tensor) -> Tensor:
    """Bytes (N, 3, W, W) → the same of 255 on the object and 0 on the ground."""
    away = (images.int() - images[..., :1, :1].int()).abs().amax(1, keepdim=True)
    return ((away > OBJECT) * 255).byte().expand_as(images)


def border(size: int, angles: Tensor) -> Tensor:
    """(N, 1, S, S) of 1 near the border between image and padding, for images of this size."""
    white = torch.full((len(angles), 1, size, size), 255, dtype=torch.uint8)
    image = (PaperViews("zeros").render(white, angles) > 0.5).float()
    width = 2 * BAND + 1
    wide = F.max_pool2d(image, width, 1, BAND)
    narrow = 1 - F.max_pool2d(1 - image, width, 1, BAND)
    return wide - narrow


def contrast(looker: Looker) -> float | None:
    """By how many levels of 255 the image's edge differs from what is padded, the median."""
    if looker.padding is None:
        return None
    images = looker.images.images.int()
    fill = images[..., :1, :1] if looker.padding == "corner" else torch.zeros(1, 1, 1, 1).int()
    away = (images - fill).abs().amax(1)  # (N, W, W)
    edges = (away[:, 0], away[:, -1], away[:, :, 0], away[:, :, -1])
    return float(torch.cat(edges, dim=1).float().median())


def densities(looker: Looker, angles: Tensor) -> dict[str, float]:
    """How salient a pixel is on the object, at the border and elsewhere; 1: as the mean of all.

    Only pixels that beams read count. Where nothing is padded there is no border.
    """
    maps, read = looker.maps(angles), looker.read()
    masks = object_masks(looker.images.images)
    on_object = (looker.views.render(masks, angles)[:, :1] > 0.5).float()
    near = torch.zeros_like(on_object)
    if looker.padding is not None:
        near = border(looker.images.images.shape[-1], angles)
    regions = {
        "object": on_object * (1 - near),
        "border": near,
        "rest": (1 - on_object) * (1 - near),  # the ground, and the padding
    }
    total, pixels = maps.sum((1, 2, 3)), read.sum()
    found = {}
    for name, region in regions.items():
        share = (maps * region).sum((1, 2, 3)) / total
        area = (read * region).sum((1, 2, 3)) / pixels
        if area.sum():
            found[name] = float(f"{(share.sum() / area.sum()).item():.4g}")
    return found


# --- the experiment ---


def trainings(settings: Settings) -> list[Training]:
    """The paper's network on both paddings. Small enough for a CPU: the maps are what counts."""
    size = 64
    return [
        Training(
            padding,
            Recipe(
                "coil100",
                BICConfig.for_images(size, latent=64),
                size,
                padding=padding,
                batch=32,
                steps=settings.pick(quick=200, full=1500),
                learning_rate=1e-3,
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


def lookers(settings: Settings, count: int) -> list[Looker]:
    """Both shipped networks, and the two that differ in nothing but the padding."""

    def pictures(size: int) -> ImageSet:
        return load("coil100", root=settings.data, split="test", size=size, limit=count)

    found = []
    for name, model_name in COIL100.items():
        network = shipped(model_name, settings.devices)
        found.append(Looker(name, network.model, network.views, pictures(network.parent_size)))
    for training in trainings(settings):
        padding = training.recipe.padding
        model = load_trained(training, settings, NAME)
        images = pictures(training.recipe.parent_size)
        found.append(Looker(f"short bic, {PADDED[padding]}", model, PaperViews(padding), images))
    return found


def run(settings: Settings, records: Records) -> Finding:
    count = settings.pick(quick=8, full=100)
    draws = settings.pick(quick=1, full=4)
    rows, pictures = [], []
    found = lookers(settings, count)
    for number, looker in enumerate(found):
        settings.show(number, len(found), f"maps of {looker.name}")
        rows.append(measure(looker, draws))
        pictures.append({"name": looker.name, "turns": shown(looker, count // 3)})
    data = {
        "images": count,
        "draws": draws,
        "rows": rows,
        "pictures": pictures,
    }
    why = settings.pick(quick=QUICK, full="") + sentence(rows)
    return Finding(numbers(rows), why, data, seeds=range(draws))


def measure(looker: Looker, draws: int) -> dict[str, Any]:
    """All figures of one network: how well it answers, and its maps."""
    count = len(looker.images)
    anywhere = [draw_angles("evaluation", seed, 0, count) for seed in range(draws)]
    quarters = [torch.full((count,), degrees).deg2rad() for degrees in QUARTERS]
    upright = blurred(looker.maps(torch.zeros(count)))
    errors = torch.cat([looker.errors(angles) for angles in anywhere])
    return {
        "name": looker.name,
        "contrast": contrast(looker),
        "error": float(f"{torch.rad2deg(errors).mean().item():.4g}"),
        "quarters": equivariance(looker, quarters, upright),
        "anywhere": equivariance(looker, anywhere, upright),
        "density": densities(looker, anywhere[0]),
    }


def shown(looker: Looker, which: int) -> list[dict[str, str]]:
    """One picture and its map in four turns, small, as text."""
    one = looker.images.select([which] * len(SHOWN_TURNS))
    angles = torch.tensor(SHOWN_TURNS).deg2rad()
    here = Looker(looker.name, looker.model, looker.views, one)
    device = next(looker.model.parameters()).device
    views = looker.views.render(one.images.to(device), angles).cpu()
    maps = blurred(here.maps(angles))
    bright = [one / one.flatten().quantile(0.995) for one in maps[:, 0]]
    return [
        {"input": _small(view.permute(1, 2, 0).numpy()), "map": _small(found.numpy())}
        for view, found in zip(views, bright, strict=True)
    ]


def _small(values: NDArray[np.float32]) -> str:
    from PIL import Image

    picture = Image.fromarray(np.round(255 * np.clip(values, 0, 1)).astype(np.uint8))
    return encode(np.asarray(picture.resize((SHOWN, SHOWN), Image.Resampling.LANCZOS)))


def numbers(rows: Sequence[Record]) -> dict[str, Any]:
    ours: dict[str, Any] = {}
    for row in rows:
        name = row["name"]
        for kind, words in (("quarters", "quarter turns"), ("anywhere", "any turn")):
            part = row[kind]
            ours[f"correlation of the map turned back with the upright one, {words}, {name}"] = (
                f"{part['back']['mean']:.2f} ± {part['back']['std']:.2f} (another object's "
                f"{part['other']['mean']:.2f}, not turned back {part['unturned']['mean']:.2f})"
            ).replace("-", "−")
        ours[f"saliency of a pixel on the object, the border, the rest, {name}"] = ", ".join(
            f"{row['density'][region]:.2f}" if region in row["density"] else "–"
            for region in REGIONS
        )
        if row["contrast"] is not None:
            ours[f"contrast at the border, levels of 255, {name}"] = f"{row['contrast']:.0f}"
        ours[f"mean error on these images, {name}"] = f"{row['error']:.1f}°"
    return ours


def sentence(rows: Sequence[Record]) -> str:
    by_name = {row["name"]: row for row in rows}
    said = []
    for name in COIL100:
        part = by_name[name]["anywhere"]
        said.append(
            f"{name}'s maps turned back correlate by {part['back']['mean']:.2f} with the upright "
            f"ones, another object's by {part['other']['mean']:.2f}"
        )
    shipped_bic = by_name["bic"]["density"]
    zero, adaptive = (by_name[f"short bic, {PADDED[p]}"] for p in PADDINGS)
    said.append(
        f"the shipped bic looks at the border (a pixel there is {shipped_bic['border']:.1f} times "
        f"as salient as the mean, one on the object {shipped_bic['object']:.1f} times)"
        if shipped_bic["border"] > shipped_bic["object"]
        else "the shipped bic looks at the object rather than at the border"
    )
    before, after = zero["density"]["border"], adaptive["density"]["border"]
    if max(before, after) <= 1:
        change = "no padding draws the network to the border"
    elif after < before:
        change = "the adaptive padding draws the network away from the border"
    else:
        change = "the adaptive padding does not draw the network away from the border"
    said.append(
        f"in a short training {change} ({before:.2f} times the mean with zeros, {after:.2f} with "
        f"the adaptive one, which leaves a contrast of {adaptive['contrast']:.0f} levels there "
        f"where zeros leave {zero['contrast']:.0f})"
    )
    return f"{'; '.join(said)}.".replace("bic's", "Bic's", 1)


# --- figures ---


def draw(record: Record) -> dict[str, Figure]:
    data = record["data"]
    return {"": draw_maps(data["pictures"]), "measured": draw_measured(data["rows"])}


TITLES: Mapping[str, str] = {
    "bic": "the shipped bic, zero padding",
    "ring": "the shipped ring, leak-free views",
    "short bic, zero padding": "bic, short training, zero padding",
    "short bic, adaptive padding": "bic, short training, adaptive padding",
}


def draw_maps(pictures: Sequence[Record]) -> Figure:
    from radialbeams.reproduce import figures

    figure = figures.new(figures.PAGE, 4.35)
    blocks: Any = figure.subfigures(2, 2, wspace=0.04, hspace=0.03)
    for block, found, letter in zip(blocks.flat, pictures, "abcd", strict=True):
        panels = block.subplots(2, len(found["turns"]))
        for column, (turn, degrees) in enumerate(zip(found["turns"], SHOWN_TURNS, strict=True)):
            for row, kind in enumerate(("input", "map")):
                axes = panels[row, column]
                figures.picture(axes)
                axes.imshow(decode(turn[kind]), cmap="magma", interpolation="none")
            panels[0, column].set_title(f"{degrees:g}°", loc="center", fontsize=7, pad=2)
        block.suptitle(f"{letter}  {TITLES[found['name']]}", x=0.02, ha="left", fontsize=8)
    return figure


KINDS = {
    "back": ("turned back", "o"),
    "other": ("another object's, turned back", "s"),
    "unturned": ("not turned back", "^"),
}


def draw_measured(rows: Sequence[Record]) -> Figure:
    from radialbeams.reproduce import figures

    figure = figures.new(figures.PAGE, 2.6)
    quarters, anywhere, where = figure.subplots(1, 3, width_ratios=(1, 1, 1.05))
    colours = dict(zip(KINDS, (figures.BLUE, figures.ORANGE, figures.GREY), strict=True))
    for axes, kind, title in (
        (quarters, "quarters", "a  quarter turns"),
        (anywhere, "anywhere", "b  any turn"),
    ):
        _draw_correlations(axes, [row[kind] for row in rows], colours)
        axes.set_title(title)
    places = range(len(rows))
    quarters.set_yticks(places, [row["name"].replace(", ", ",\n") for row in rows])
    for axes in (anywhere, where):
        axes.set_yticks(places, [""] * len(rows))
    shades = dict(zip(REGIONS, (figures.GREEN, figures.BLACK, figures.SKY), strict=True))
    for place, row in enumerate(rows):
        for shift, region in zip((-0.24, 0, 0.24), REGIONS, strict=True):
            if region in row["density"]:
                value = row["density"][region]
                where.barh(place + shift, value, 0.22, color=shades[region])
    for region, colour in shades.items():
        where.barh([0], [0], color=colour, label=region)
    where.axvline(1, color=figures.GREY, lw=0.7, ls=":")
    where.set(ylim=(len(rows) - 0.5, -0.5), xlabel="saliency of a pixel; 1 = mean")
    where.set_title("c  where the maps lie")
    where.grid(axis="y", visible=False)
    where.legend(loc="best", fontsize=6.5)
    handles, labels = quarters.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


def _draw_correlations(axes: Axes, parts: Sequence[Record], colours: Mapping[str, str]) -> None:
    for kind, (words, marker) in KINDS.items():
        axes.errorbar(
            [part[kind]["mean"] for part in parts],
            range(len(parts)),
            xerr=[part[kind]["std"] for part in parts],
            fmt=marker,
            color=colours[kind],
            label=words,
            capsize=2,
            elinewidth=0.7,
            ms=4,
        )
    axes.set(xlim=(-0.35, 1.05), ylim=(len(parts) - 0.5, -0.5), xlabel="correlation of maps")
    axes.grid(axis="y", visible=False)


EXPERIMENT = Experiment(
    name=NAME,
    claim=(
        "Saliency maps turn with the image, lie on the outline and the shadows of the object, and "
        "with the adaptive padding no longer on the border between image and padding"
    ),
    paper={
        "correlation of the map turned back with the upright one, any turn, bic": "shown only",
        "saliency of a pixel on the object, the border, the rest, short bic, adaptive padding": (
            "the object's shape, not the border"
        ),
    },
    run=run,
    draw=draw,
    trainings=trainings,
)
