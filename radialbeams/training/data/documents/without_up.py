"""Sheets without an upright direction: blank, patterned, symmetric, or with several directions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from PIL import Image

from radialbeams.training.data.documents.sheet import Sheet


def blank(sheet: Sheet, script: str) -> None:
    """Blank paper, at most with some smooth shade."""
    if sheet.rng.random() < 0.5:
        values = np.random.default_rng(sheet.rng.getrandbits(32)).normal(sheet.paper, 6, (5, 5))
        shade = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
        sheet.paste(shade.resize(sheet.image.size, Image.Resampling.BICUBIC), 0, 0)


def grid(sheet: Sheet, script: str) -> None:
    """Squared paper, ruled paper, dots."""
    step, tone = sheet.size_unit() * sheet.rng.uniform(0.01, 0.1), sheet.rng.uniform(0.2, 1)
    kind = sheet.rng.choice(("squares", "lines", "dots"))
    for k in range(1, int(max(sheet.width, sheet.height) / step) + 1):
        if kind == "dots":
            for j in range(1, int(sheet.width / step) + 1):
                x, y = j * step, k * step
                sheet.draw.ellipse((x - 1, y - 1, x + 1, y + 1), fill=sheet.tone(tone))
            continue
        sheet.rule(0, k * step, sheet.width, k * step, tone)
        if kind == "squares":
            sheet.rule(k * step, 0, k * step, sheet.height, tone)


def disc(sheet: Sheet, script: str) -> None:
    """A figure that looks the same after quarter turns."""
    x, y = sheet.width / 2, sheet.height / 2
    radius = min(x, y) * sheet.rng.uniform(0.3, 0.9)
    points = sheet.rng.choice((4, 8, 12, 360))
    spread = sheet.rng.uniform(0.4, 1)
    star = [
        (x + radius * (1 if k % 2 else spread) * math.cos(k * math.pi / points),
         y + radius * (1 if k % 2 else spread) * math.sin(k * math.pi / points))
        for k in range(2 * points)
    ]  # fmt: skip
    sheet.draw.polygon(star, fill=sheet.tone(sheet.rng.uniform(0, 0.8)), outline=sheet.ink)


def tiles(sheet: Sheet, script: str) -> None:
    """A small random patch, turned and mirrored into a symmetric wallpaper."""
    noise = np.random.default_rng(sheet.rng.getrandbits(32))
    size = sheet.rng.choice((6, 12, 24))
    patch = noise.choice((sheet.paper, sheet.ink, sheet.tone(0.5)), (size, size))
    half = np.concatenate((patch, np.rot90(patch)), axis=1)
    full = np.concatenate((half, np.rot90(half, 2)), axis=0).astype(np.uint8)
    pixels = round(2 * size * sheet.rng.uniform(2, 8))
    tile = Image.fromarray(full).resize((pixels, pixels), Image.Resampling.NEAREST)
    for x in range(0, sheet.width, pixels):
        for y in range(0, sheet.height, pixels):
            sheet.paste(tile, x, y)


def any_way(sheet: Sheet, script: str) -> None:
    """A square with text in all four directions, as on a playing card or a seating plan."""
    side = min(sheet.width, sheet.height) // 2
    part = Sheet(sheet.material, sheet.rng, (side, side), sheet.paper, sheet.ink)
    face = sheet.material.face(sheet.rng, script, sheet.rng.choice(("sans", "serif")))
    text = sheet.material.paragraph(sheet.rng, script, 400)
    edge = side * 0.08
    size = side * sheet.rng.uniform(0.05, 0.09)
    part.paragraph((edge, edge, side - edge, side - edge), text, face, size)
    x, y = sheet.width // 2 - side, sheet.height // 2 - side
    for turns, (column, row) in enumerate(((0, 0), (0, 1), (1, 1), (1, 0))):
        quarter = Image.fromarray(np.rot90(np.asarray(part.image), turns))
        sheet.paste(quarter, x + column * side, y + row * side)


# layout: (frequency, shapes as height over width)
WITHOUT_UP: dict[Callable[[Sheet, str], None], tuple[float, tuple[float, ...]]] = {
    blank: (3, (1.41, 1, 0.75)),
    grid: (3, (1.41, 1, 0.75)),
    disc: (2, (1, 1.41, 0.75)),
    tiles: (2, (1, 1.41, 0.75)),
    any_way: (3, (1, 1, 1.2)),
}
