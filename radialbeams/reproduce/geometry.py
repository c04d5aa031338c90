"""The lemmas on beams against exact counts, and the drawings of beams, kernel and overlap.

Coverage, overlap and upper bound are counted pixel by pixel, for beams at equal angles, as in the
paper's text, and for beams whose ends lie in equal steps along the border, as in its proof. The
margin is measured by rotating.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from radialbeams.demo import PICTURES
from radialbeams.nn.beams import (
    Spacing,
    bresenham_pixels,
    count_pixels,
    coverage,
    margin,
    named_length,
    overlap,
    upper_bound,
)
from radialbeams.nn.rotation import rotate
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.reproduce.thumbnails import encode
from radialbeams.stored import JsonDict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPACINGS: tuple[Spacing, ...] = get_args(Spacing)
LENGTH, EPSILON, BEAMS = 64, 1, 32  # the paper's COIL-100 setting
SETTING = f"{BEAMS} beams, D = {LENGTH}, ε = {EPSILON}"
EPSILONS = (0, 1, 2, 3)

# --- counting ---


def lemmas(beams: int, length: int, epsilon: int) -> dict[str, float]:
    """Coverage and overlap: by both formulas, and counted for both spacings."""
    row: dict[str, float] = {"beams": beams, "length": length, "epsilon": epsilon}
    for name, printed in (("printed", True), ("corrected", False)):
        row[f"cover_{name}"] = coverage(beams, length, epsilon, as_printed=printed)
        row[f"over_{name}"] = overlap(beams, length, epsilon, as_printed=printed)
    for spacing in SPACINGS:
        row[f"cover_{spacing}"], row[f"over_{spacing}"] = count_pixels(
            beams, length, epsilon, spacing
        )
    return {name: round(value, 1) for name, value in row.items()}


def readers(beams: int, length: int, epsilon: int, spacing: Spacing) -> tuple[Any, Any]:
    """How many beams sample each pixel (S, S), and the same for the pixels of each beam."""
    size = 2 * (length + epsilon)
    pixels = bresenham_pixels(beams, length, epsilon, size, spacing).numpy()
    flat = (pixels[..., 1] * size + pixels[..., 0]).reshape(beams, -1)
    # No beam reads a pixel twice, so counting readings counts beams.
    counts = np.bincount(flat.ravel(), minlength=size * size)
    return counts.reshape(size, size), counts[flat]


def limits(length: int, epsilon: int, spacing: Spacing) -> dict[str, float]:
    """The upper bound in both meanings that the paper gives it, counted in steps of 4 beams.

    `full`: the fewest beams that read every pixel of the square. `redundant`: the fewest beams at
    which some beam has no pixel of its own.
    """
    fewest: dict[str, float] = {}
    side = slice(epsilon, epsilon + 2 * length)
    beams = 8
    while len(fewest) < 2:
        counts, by_beam = readers(beams, length, epsilon, spacing)
        if (counts[side, side] > 0).all():
            fewest.setdefault("full", beams)
        if not (by_beam == 1).any(axis=1).all():
            fewest.setdefault("redundant", beams)
        beams += 4
    bound = upper_bound(length, epsilon)
    return {"length": length, "epsilon": epsilon, "bound": round(bound, 1), **fewest}


def margins(size: int) -> dict[str, int]:
    """The paper's δ, and the least padding under which a rotation loses nothing.

    `centres`: the centre of every pixel stays on the canvas. `bilinear`: every pixel to which
    interpolation gives a share of the image stays on it, as measured by rotating.
    """
    corner = math.sqrt(2) * (size - 1) / 2
    centres = math.ceil(corner - (size - 1) / 2 - 0.5)  # a pixel reaches half a pixel further
    bright = torch.ones(1, 1, size, size)
    angles = torch.deg2rad(torch.arange(0.0, 46.0, 1.0))
    padding = margin(size) + 3
    rotated = torch.cat([rotate(bright, angle, width=padding) for angle in angles[:, None]])
    rows = (rotated.amax(dim=(0, 1, 3)) > 1e-6).nonzero()
    return {
        "size": size,
        "paper": margin(size),
        "centres": centres,
        "bilinear": padding - int(rows.min()),
    }


def padding_read(size: int) -> JsonDict:
    """The share of samples that fall on padding for the lengths A, B, C, over all rotations."""
    width = margin(size)
    canvas, centre = size + 2 * width, (size + 2 * width - 1) / 2
    shares_by_length: JsonDict = {"size": size}
    for name in ("A", "B", "C"):
        length = min(named_length(name, size), (canvas + 1) // 2)
        offsets = bresenham_pixels(BEAMS, length, EPSILON, canvas).double() - centre
        x, y = offsets[..., 0].flatten(), offsets[..., 1].flatten()
        shares = []
        for angle in np.deg2rad(np.arange(0, 90, 1.0)):
            u, v = (
                x * math.cos(angle) - y * math.sin(angle),
                x * math.sin(angle) + y * math.cos(angle),
            )
            outside = torch.maximum(u.abs(), v.abs()) > (size - 1) / 2 + 1e-9
            shares.append(outside.double().mean().item())
        shares_by_length[name] = {
            "length": length,
            "mean": float(np.mean(shares)),
            "most": max(shares),
        }
    # The longest beams whose outermost sample stays within the circle inside the image.
    length = 1
    while _reach(length + 1, canvas) <= (size - 1) / 2:
        length += 1
    return {**shares_by_length, "longest_without": length}


def _reach(length: int, canvas: int) -> float:
    offsets = bresenham_pixels(BEAMS, length, EPSILON, canvas).double() - (canvas - 1) / 2
    return float(offsets.norm(dim=-1).max())


# --- the experiment ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    steps = settings.pick(
        quick=(8, 16, 32, 64, 128), full=(*range(8, 128, 4), *range(128, 516, 16))
    )
    lengths = settings.pick(quick=(16, 32), full=(16, 24, 32, 48, 64, 96, 128))
    sizes = settings.pick(quick=(28, 32, 128), full=tuple(range(8, 257, 4)))
    by_beams, by_length, bounds = [], [], []
    for number, epsilon in enumerate(EPSILONS):
        settings.show(number, len(EPSILONS), f"counting, ε = {epsilon}")
        below = [beams for beams in steps if beams <= upper_bound(LENGTH, epsilon)]
        by_beams += [lemmas(beams, LENGTH, epsilon) for beams in below]
        by_length += [
            lemmas(BEAMS, length, epsilon)
            for length in lengths
            if upper_bound(length, epsilon) >= BEAMS
        ]
        bounds += [
            {"spacing": spacing, **limits(length, epsilon, spacing)}
            for length in lengths
            for spacing in SPACINGS
            if length <= settings.pick(quick=32, full=96)
        ]
    settings.show(len(EPSILONS), len(EPSILONS), "rotating")
    data = {
        "by_beams": by_beams,
        "by_length": by_length,
        "bounds": bounds,
        "margins": [margins(size) for size in sizes],
        "padding": [padding_read(size) for size in (128, 250)],
        "drawing": drawing(),
    }
    return Finding(*conclude(data), data)


def conclude(data: Record) -> Conclusion:
    ours = _numbers(data)
    error = "largest error of the corrected coverage formula"
    why = (
        "The printed lemma uses tan(360°/|B|), but the triangle in its own proof has the slope "
        f"8/|B|. With 8/|B| the formula is within {ours[f'{error}, equal steps on the border']} of "
        "the counted pixels for beams whose ends are equally spaced along the border, and within "
        f"{ours[f'{error}, equal angles']} for beams at equal angles."
    )
    return ours, why


def _numbers(data: JsonDict) -> JsonDict:
    paper_setting = lemmas(BEAMS, LENGTH, EPSILON)
    ours: JsonDict = {f"pixels covered, {SETTING}": int(paper_setting["cover_angle"])}
    ours[f"samples that overlap, {SETTING}"] = int(paper_setting["over_angle"])
    for formula in ("printed", "corrected"):
        for spacing, words in (("angle", "equal angles"), ("border", "equal steps on the border")):
            worst = max(
                abs(row[f"cover_{formula}"] / row[f"cover_{spacing}"] - 1)
                for row in data["by_beams"]
            )
            ours[f"largest error of the {formula} coverage formula, {words}"] = f"{worst:.1%}"
    for words, spacing in (("equal angles", "angle"), ("equal steps on the border", "border")):
        rows = [row for row in data["bounds"] if row["spacing"] == spacing]
        ratios = [row["full"] / row["bound"] for row in rows]
        ours[f"beams that cover the whole square, as a multiple of the upper bound, {words}"] = (
            f"{min(ratios):.2f} to {max(ratios):.2f}"
        )
        ratios = [row["redundant"] / row["bound"] for row in rows]
        ours[f"beams of which one is redundant, as a multiple of the upper bound, {words}"] = (
            f"{min(ratios):.2f} to {max(ratios):.2f}"
        )
    rows = [*data["by_beams"], *data["by_length"]]
    not_above = [row for row in rows if row["cover_angle"] <= row["over_angle"]]
    ours["settings in which coverage is not above overlap"] = f"{len(not_above)} of {len(rows)}"
    wide = [row for row in data["margins"] if row["centres"] < row["paper"]]
    ours["image sizes at which less than the margin δ holds every pixel's centre"] = (
        f"{len(wide)} of {len(data['margins'])}"
    )
    short = [row for row in data["margins"] if row["bilinear"] > row["paper"]]
    ours["image sizes at which bilinear rotation needs more than the margin"] = (
        f"{len(short)} of {len(data['margins'])}, by at most "
        f"{max((row['bilinear'] - row['paper'] for row in short), default=0)} pixel"
    )
    coil = data["padding"][0]
    ours["samples that fall on padding at W = 128, lengths A, B, C"] = ", ".join(
        f"{coil[name]['mean']:.0%}" for name in ("A", "B", "C")
    )
    ours["longest beams that never read padding at W = 128"] = coil["longest_without"]
    return ours


PAPER = {
    f"pixels covered, {SETTING}": round(coverage(BEAMS, LENGTH, EPSILON, as_printed=True)),
    f"samples that overlap, {SETTING}": round(overlap(BEAMS, LENGTH, EPSILON, as_printed=True)),
    "beams that cover the whole square, as a multiple of the upper bound, equal angles": "1",
    "longest beams that never read padding at W = 128": named_length("A", 128),
    "settings in which coverage is not above overlap": "none",
    "image sizes at which less than the margin δ holds every pixel's centre": "none",
}


# --- the drawings ---

DRAWN_SIZE, DRAWN_BEAMS, DRAWN_TURN = 48, 16, 20.0


def drawing() -> JsonDict:
    """A small picture, padded and rotated, and the pixels that the beams sample."""
    width = margin(DRAWN_SIZE)
    canvas, length = DRAWN_SIZE + 2 * width, DRAWN_SIZE // 2
    upright = torch.from_numpy(_picture()).permute(2, 0, 1)[None].float() / 255
    turn = math.radians(DRAWN_TURN)
    turned = rotate(upright, turn, width=width)
    inside = rotate(torch.ones_like(upright[:, :1]), turn, width=width)
    pixels = bresenham_pixels(DRAWN_BEAMS, length, EPSILON, canvas).numpy()
    counts = np.zeros((canvas, canvas), dtype=np.uint8)
    np.add.at(counts, (pixels[..., 1], pixels[..., 0]), 1)
    return {
        "size": DRAWN_SIZE,
        "margin": width,
        "beams": DRAWN_BEAMS,
        "turn": DRAWN_TURN,
        "length": length,
        "picture": _encoded(turned[0].permute(1, 2, 0).numpy() * 255),
        "inside": _encoded(inside[0, 0].numpy() * 255),
        "readers": _encoded(counts),
        "core": pixels[:, EPSILON].tolist(),  # (|B|, D, 2): the middle row of each beam
        "thick": pixels[:, [0, 2]].tolist(),  # (|B|, 2, D, 2): its two edges
        "lengths": {name: named_length(name, DRAWN_SIZE) for name in ("A", "B", "C")},
    }


def _picture() -> NDArray[np.uint8]:
    with Image.open(PICTURES / "astronaut.webp") as file:
        whole = file.convert("RGB")
    side = min(whole.size)
    left, top = (whole.width - side) // 2, (whole.height - side) // 2
    square = whole.crop((left, top, left + side, top + side))
    return np.array(square.resize((DRAWN_SIZE, DRAWN_SIZE), Image.Resampling.LANCZOS))


def _encoded(values: NDArray[Any]) -> str:
    return encode(np.clip(np.round(values), 0, 255).astype(np.uint8))


def draw(record: Record) -> dict[str, Figure]:
    from radialbeams.reproduce import geometry_figures  # it needs matplotlib

    return geometry_figures.draw(record)


EXPERIMENT = Experiment(
    name="geometry",
    claim=(
        "Closed formulas give the number of pixels that the beams cover and their overlap. At most "
        "8D/(2ε + 1) beams are useful. A margin δ keeps every pixel on the canvas under rotation, "
        "and beams of length W/2 − δ never read padding"
    ),
    paper=PAPER,
    run=run,
    draw=draw,
    conclude=conclude,
)
