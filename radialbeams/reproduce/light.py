"""Whether a network trained on COIL-100 reads the light: spheres lit from nine positions.

The upright direction of a sphere can only be read from its light. As in the paper, the rendered
picture counts as upright, wherever the light is, and is rotated by random angles. The paper does
not state the background of its spheres. Here it is black, where only the light can be read, or
COIL-100's own dark grey, where the black padding of the canvas leaves a border.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from radialbeams.nn.angles import paper_equivalent, wrap
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.pretrained import COIL100, Pretrained, load_pretrained
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.reproduce.spheres import POSITIONS, Linear, photographed, spheres, unit
from radialbeams.reproduce.thumbnails import decode, encode
from radialbeams.stored import JsonDict
from radialbeams.training.data import ImageSet, load
from radialbeams.training.evaluate import FLIP, predict_with
from radialbeams.training.views import draw_angles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = 128
DIMMEST, BRIGHTEST = 1 / 8, 4.0  # 1: lit from the front, the centre of the sphere is just white
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
GROUNDS = ("black", "COIL-100's")
BATCH = 128
THUMBNAIL_SIZE = 48  # pixels of the spheres in the figure

# --- the light in COIL-100 ---


def lighting(images: ImageSet) -> JsonDict:
    """The background's colour, and the direction in which the mean picture is brightest."""
    mean = images.images.double().mean((0, 1)).numpy()  # (W, W)
    offsets = np.arange(len(mean)) - (len(mean) - 1) / 2
    # Only the inscribed circle: corners would bias the direction.
    mean = mean * (offsets**2 + offsets[:, None] ** 2 <= (len(mean) / 2) ** 2)
    right, down = (mean * offsets).sum(), (mean * offsets[:, None]).sum()
    corners = images.images[:, :, [0, 0, -1, -1], [0, -1, 0, -1]].double()  # (N, 3, 4)
    return {
        "ground": corners.mean((0, 2)).round().int().tolist(),
        "degrees": math.degrees(math.atan2(-right, -down)),
    }


# --- measuring ---


@torch.inference_mode()
def signed_errors(
    network: Pretrained, images: Tensor, angles: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Signed errors (T, N) in radians at the rotations (T, N), and confidences if there are any."""
    errors, confidences = torch.empty(angles.shape), torch.full(angles.shape, torch.nan)
    for start in range(0, len(images), BATCH):
        chunk = slice(start, start + BATCH)
        prepared = network.views.prepare(images[chunk].to(network.device))
        for turn, batch_angles in enumerate(angles[:, chunk]):
            views = network.views.turn(prepared, batch_angles)
            output = predict_with(network.model, views, *network.calibration)
            if isinstance(output, tuple):
                output, confidences[turn, chunk] = output[0], output[1].cpu().float()
            errors[turn, chunk] = wrap(output.cpu().float() - batch_angles)
    return errors, None if confidences.isnan().any() else confidences


def cell_of(signed: Tensor, confidences: Tensor | None) -> JsonDict:
    """One light position: the errors in degrees, and the mean estimate for the upright sphere."""
    degrees = torch.rad2deg(signed.abs().double()).flatten()
    mean = torch.polar(torch.ones_like(signed.double()), signed.double()).mean()
    cell = {
        "n": len(degrees),
        "mean": degrees.mean().item(),
        "quantiles": [degrees.quantile(q).item() for q in QUANTILES],
        "paper_equivalent": math.degrees(paper_equivalent(signed.abs().double()).item()),
        "within_10": (degrees <= 10).double().mean().item(),
        "flips": (degrees >= FLIP).double().mean().item(),
        "answer": math.degrees(math.atan2(mean.imag.item(), mean.real.item())),
        "agreement": mean.abs().item(),  # 1: all estimates equal; 0: spread evenly
    }
    if confidences is not None:
        cell["confidence"] = confidences.double().mean().item()
    return {name: _short(value) for name, value in cell.items()}


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def follows(signed: Sequence[Tensor]) -> dict[str, float]:
    """How closely estimates follow the light and the picture: two scores from 0 to 1.

    `light`: 1 if all estimates have the same angle to the light. `picture`: 1 if all have the same
    angle to the picture. The eight directions are equally spaced, so a network that follows only
    one scores 0 on the other. `up`: the light direction for which the estimate is 0, degrees.
    """
    turned = [
        (errors.double(), math.radians(position.degrees))
        for errors, position in zip(signed, POSITIONS, strict=True)
        if position.degrees is not None
    ]
    to_light = torch.stack([light - errors for errors, light in turned])
    to_picture = torch.stack([errors for errors, _ in turned])
    light, picture = (
        torch.polar(torch.ones_like(part), part).mean() for part in (to_light, to_picture)
    )
    return {
        "light": light.abs().item(),
        "picture": picture.abs().item(),
        "up": math.degrees(math.atan2(light.imag.item(), light.real.item())),
    }


def measure(
    network: Pretrained, linear: Linear, scales: NDArray[np.float64], ground: Any, turns: int
) -> JsonDict:
    """A cell for each light position on one background, and what the estimates follow."""
    images = np.concatenate([photographed(rendering, scales, ground) for rendering in linear])
    angles = torch.stack([draw_angles("evaluation", t, 0, len(images)) for t in range(turns)])
    signed, confidences = signed_errors(network, torch.from_numpy(images), angles)
    shape = (turns, len(linear), len(scales))
    by_position = signed.reshape(shape).unbind(1)
    confidences_by_position = (
        [None] * len(linear) if confidences is None else confidences.reshape(shape).unbind(1)
    )
    cells = [
        {"position": position.name, **cell_of(errors, confidence)}
        for position, errors, confidence in zip(
            POSITIONS, by_position, confidences_by_position, strict=True
        )
    ]
    return {"cells": cells, "follows": follows(by_position)}


# --- the experiment ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    linear = spheres(settings, SIZE, settings.pick(quick=16, full=256))
    limit = settings.pick(quick=500, full=None)
    coil = lighting(load("coil100", root=settings.data, split="train", size=SIZE, limit=limit))
    intensities = settings.pick(quick=6, full=100)
    turns = settings.pick(quick=2, full=10)
    scales = unit(linear) * np.geomspace(DIMMEST, BRIGHTEST, intensities)
    colours = dict(zip(GROUNDS, ([0, 0, 0], coil["ground"]), strict=True))
    rows = []
    for number, (name, model_name) in enumerate(COIL100.items()):
        network = load_pretrained(model_name, settings.devices)
        for ground_number, ground in enumerate(GROUNDS):
            settings.show(
                2 * number + ground_number, 2 * len(COIL100), f"{name} on {ground} ground"
            )
            result = measure(network, linear, scales, colours[ground], turns)
            rows.append({"model": name, "ground": ground, **result})
    middle = unit(linear) * np.ones(1)
    data = {
        "coil100": coil,
        "intensities": {"count": intensities, "from": DIMMEST, "to": BRIGHTEST},
        "turns": turns,
        "positions": [
            {
                "name": position.name,
                "degrees": position.degrees,
                "picture": _thumbnail(photographed(rendering, middle, colours["COIL-100's"])[0]),
            }
            for position, rendering in zip(POSITIONS, linear, strict=True)
        ],
        "rows": rows,
    }
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data, seeds=range(turns))


def conclude(data: Record) -> Conclusion:
    return numbers(data), sentence(data)


def _thumbnail(pixels: NDArray[np.uint8]) -> str:
    from PIL import Image

    picture = Image.fromarray(pixels.transpose(1, 2, 0))
    return encode(
        np.asarray(picture.resize((THUMBNAIL_SIZE, THUMBNAIL_SIZE), Image.Resampling.LANCZOS))
    )


def _ends(row: Record) -> tuple[Record, Record]:
    ranked = sorted(row["cells"], key=lambda cell: float(cell["mean"]))
    return ranked[0], ranked[-1]


def _front(row: Record) -> Record:
    front: Record = next(cell for cell in row["cells"] if cell["position"] == "front")
    return front


def numbers(data: Record) -> JsonDict:
    ours: JsonDict = {}
    for row in data["rows"]:
        setting = f"{row['model']}, {row['ground']} background"
        best, worst = _ends(row)
        ours[f"mean error, best and worst position, {setting}"] = (
            f"{best['mean']:.1f}° ({best['position']}), {worst['mean']:.1f}° ({worst['position']})"
        )
        ours[f"mean error, light in front, {setting}"] = f"{_front(row)['mean']:.1f}°"
        follows = row["follows"]
        ours[f"how closely estimates follow the light and the picture (0 to 1), {setting}"] = (
            f"{follows['light']:.2f}, {follows['picture']:.2f}"
        )
        ours[f"light direction that is taken for up, {setting}"] = _signed(follows["up"])
    ours["direction in which COIL-100's mean picture is brightest"] = _signed(
        data["coil100"]["degrees"]
    )
    return ours


def _signed(degrees: float) -> str:
    return f"{degrees:.0f}°".replace("-", "−")


def sentence(data: Record) -> str:
    """The results on black, where only the light can be read, and the effect of a border."""
    black = [row for row in data["rows"] if row["ground"] == "black"]
    ranges = [
        f"from {best['mean']:.0f}° to {worst['mean']:.0f}° for {row['model']}"
        for row in black
        for best, worst in [_ends(row)]
    ]
    front = [f"{_front(row)['mean']:.0f}° for {row['model']}" for row in black]
    on_black = (
        "On a black background, the mean error varies with the position of the light: "
        f"{' and '.join(ranges)}. With light from the front, which gives no direction, it is "
        f"{' and '.join(front)}."
    )
    first = data["rows"][0]
    bordered = next(
        row for row in data["rows"] if row["model"] == "bic" and row["ground"] != "black"
    )
    change = bordered["follows"]["light"] - first["follows"]["light"]
    if change > 0.2:
        border = (
            "The paper's network also needs the border of the padding: on a scale from 0 to 1, its "
            f"estimates follow the light by {first['follows']['light']:.2f} without a border and "
            f"by {bordered['follows']['light']:.2f} with one."
        )
    else:
        border = (
            "A border around the picture does not make the paper's network follow the light more "
            f"({first['follows']['light']:.2f} without, {bordered['follows']['light']:.2f} with, "
            "on a scale from 0 to 1)."
        )
    return f"{on_black} {border}"


# --- figures ---


def draw(record: Record) -> dict[str, Figure]:
    data = record["data"]
    return {"": draw_positions(data), "answers": draw_answers(data)}


def _colours() -> dict[str, str]:
    from radialbeams.reproduce import figures

    return {"bic": figures.ORANGE, "ring": figures.BLUE}


def draw_positions(data: Record) -> Figure:
    """The spheres, and below each the errors of both networks on both backgrounds."""
    from radialbeams.reproduce import figures

    figure = figures.new(figures.PAGE, 4.6)
    top, *panels = figure.subplots(3, 1, height_ratios=(0.62, 1, 1), sharex=True)
    _draw_spheres(top, data["positions"])
    for axes, ground, letter in zip(panels, GROUNDS, "ab", strict=True):
        for shift, row in zip(
            (-0.17, 0.17), [row for row in data["rows"] if row["ground"] == ground], strict=True
        ):
            _draw_boxes(axes, row, shift)
        axes.axhline(90, color=figures.GREY, lw=0.7, ls=":")
        axes.set(ylabel="error", ylim=(-5, 186), yticks=[0, 45, 90, 135, 180])
        axes.yaxis.set_major_formatter("{x:g}°")
        axes.grid(axis="x", visible=False)
        axes.set_title(f"{letter}  on {ground} ground")
    names = [position["name"].replace(" ", "\n") for position in data["positions"]]
    panels[-1].set_xticks(range(len(names)), names)
    panels[-1].set_xlabel("where the light is")
    for axes in (top, panels[0]):
        axes.tick_params(axis="x", labelbottom=False, length=0)
    figures.legend_above(figure, _colours(), {"chance": ":"})
    return figure


def _draw_spheres(axes: Axes, positions: Sequence[Record]) -> None:
    for x, position in enumerate(positions):
        axes.imshow(
            decode(position["picture"]),
            extent=(x - 0.42, x + 0.42, -0.42, 0.42),
            interpolation="lanczos",
        )
    axes.set(xlim=(-0.6, len(positions) - 0.4), ylim=(-0.45, 0.45), aspect="equal", yticks=[])
    axes.set_anchor("S")
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_boxes(axes: Axes, row: Record, shift: float) -> None:
    """Draws 5 to 95%, thick from 25 to 75%, a white line at the median and a dot at the mean."""
    colour = _colours()[row["model"]]
    for column, cell in enumerate(row["cells"]):
        low, quarter, median, three, high = cell["quantiles"]
        x = column + shift
        axes.plot([x, x], [low, high], color=colour, lw=1, solid_capstyle="butt")
        axes.bar(x, max(three - quarter, 1.2), 0.26, quarter, color=colour, lw=0)
        axes.plot([x - 0.13, x + 0.13], [median, median], color="white", lw=1)
        axes.plot([x], [cell["mean"]], "o", color=colour, mec="white", mew=0.6, ms=4.5)


def draw_answers(data: Record) -> Figure:
    """The mean estimate for the upright sphere, over the direction of the light."""
    from radialbeams.reproduce import figures

    figure = figures.new(figures.PAGE, 2.9)
    panels = figure.subplots(1, 2, sharey=True)
    degrees = {position["name"]: position["degrees"] for position in data["positions"]}
    up = data["coil100"]["degrees"]
    for axes, ground, letter in zip(panels, GROUNDS, "ab", strict=True):
        for turn in (-360, 0, 360):  # on the circle, these are one line
            ends = [-400 + turn, 400 + turn]
            axes.plot([up - 400, up + 400], ends, color="0.75", lw=0.8, zorder=1)
        axes.axhline(0, color="0.75", lw=0.8, ls="--", zorder=1)
        for row in (row for row in data["rows"] if row["ground"] == ground):
            for cell in row["cells"]:
                if degrees[cell["position"]] is not None:
                    _draw_answer(axes, degrees[cell["position"]], cell, _colours()[row["model"]])
        axes.set(xlim=(-203, 203), ylim=(-203, 203), xlabel="direction of the light, from up")
        axes.set(xticks=[-180, -90, 0, 90, 180], yticks=[-180, -90, 0, 90, 180])
        axes.xaxis.set_major_formatter("{x:g}°")
        axes.yaxis.set_major_formatter("{x:g}°")
        axes.set_title(f"{letter}  on {ground} ground")
    panels[0].set_ylabel("mean answer (area: agreement)")
    handles = {"stays with the picture": "--", "turns with the light, up where COIL-100's is": "-"}
    figures.legend_above(figure, _colours(), handles)
    return figure


def _draw_answer(axes: Axes, light: float, cell: Record, colour: str) -> None:
    """Draws a dot whose area is the agreement of the estimates; at ±180°, on both sides."""
    for x in (light, light - 360, light + 360):
        for y in (cell["answer"], cell["answer"] - 360, cell["answer"] + 360):
            if abs(x) < 200 and abs(y) < 200:
                size = 70 * cell["agreement"]
                axes.scatter([x], [y], size, color=colour, alpha=0.85, lw=0, zorder=3)


EXPERIMENT = Experiment(
    name="light",
    claim=(
        "A network trained on COIL-100, where the light never moves, reads reflections: on spheres "
        "lit from nine positions with 100 intensities each, its errors depend on the position of "
        "the light"
    ),
    paper={
        "mean error, best and worst position, bic, black background": (
            "differ noticeably; no numbers"
        ),
    },
    run=run,
    draw=draw,
    conclude=conclude,
)
