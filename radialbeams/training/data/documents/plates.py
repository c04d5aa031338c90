"""Pages that consist mostly of figures: maps, photos and curves with captions and some text."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageOps

from radialbeams.training.data.documents import marks
from radialbeams.training.data.documents.blocks import Box, body_size, flow, footer, margins
from radialbeams.training.data.documents.material import Typeface
from radialbeams.training.data.documents.sheet import Sheet


def plate(sheet: Sheet, script: str) -> None:
    """A grid of figures with a caption, with or without text above or below."""
    rng = sheet.rng
    x0, y, x1, y1 = margins(sheet)
    face = sheet.material.face(rng, script, rng.choice(("serif", "serif", "sans")))
    size = body_size(sheet)
    if rng.random() < 0.6:  # the running head
        sheet.line((x0 + x1) / 2, y - size * 1.5, sheet.title(script, 2, 6), face, size * 0.8,
                   align="centre")  # fmt: skip
    if rng.random() < 0.25:
        ends = y + (y1 - y) * rng.uniform(0.1, 0.35)
        flow(sheet, (x0, y, x1, ends), script, face, face, size)
        y = ends + size
    share = rng.choice((0.5, 0.7, 0.85, 0.95))
    bottom = y + (y1 - y) * share
    _grid(sheet, (x0, y, x1, bottom), face, size * rng.uniform(0.5, 0.85))
    caption = rng.choice(("Fig.", "Figure", "Abb.", "")) + f" {rng.randint(1, 40)}. "
    text = caption + sheet.material.paragraph(rng, script, rng.randint(20, 500))
    y = sheet.paragraph((x0, bottom + size * 0.5, x1, y1), text, face, size * 0.85) + size
    if y < y1 - size * 3:
        flow(sheet, (x0, y, x1, y1), script, face, face, size)
    footer(sheet, face, size)


def _grid(sheet: Sheet, box: Box, face: Typeface, size: float) -> None:
    rng = sheet.rng
    x0, y0, x1, y1 = box
    across, down = rng.choice(((1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 3), (2, 5), (3, 2)))
    if rng.random() < 0.3:
        inset = (x1 - x0) * rng.uniform(0.05, 0.2)
        x0, x1 = x0 + inset, x1 - inset
    width, height = (x1 - x0) / across, (y1 - y0) / down
    draw = rng.choice((_map, _map, _photo, _photo, _chart, None))
    for cell in range(across * down):
        left, top = x0 + (cell % across) * width, y0 + (cell // across) * height
        place = (left + size, top + size * 0.5, left + width - size, top + height - size * 0.5)
        (draw or rng.choice((_map, _photo, _chart)))(sheet, place, face, size)


def _chart(sheet: Sheet, box: Box, face: Typeface, size: float) -> None:
    marks.chart(sheet, box, face, size)


def _photo(sheet: Sheet, box: Box, face: Typeface, size: float) -> None:
    """A photo over a line such as "(a) before"."""
    x0, y0, x1, y1 = (round(v) for v in box)
    y1 -= round(size * 1.8)
    if x1 - x0 < 8 or y1 - y0 < 8:
        return
    photo = sheet.material.photo(sheet.rng)
    if photo is None:
        marks.picture(sheet, (x0, y0, x1, y1))
    elif sheet.rng.random() < 0.7:
        small = ImageOps.contain(photo, (x1 - x0, y1 - y0))
        x0 += (x1 - x0 - small.width) // 2
        sheet.paste(small, x0, y0)
        y1 = y0 + small.height
    else:
        sheet.paste(ImageOps.fit(photo, (x1 - x0, y1 - y0)), x0, y0)
    letter = chr(97 + sheet.rng.randrange(8))
    text = f"({letter}) {sheet.title(face.script, 1, 5)}"[: max(3, int((x1 - x0) / size * 1.5))]
    if sheet.rng.random() < 0.7:
        sheet.line((box[0] + box[2]) / 2, y1 + size * 0.2, text, face, size, align="centre")


def _map(sheet: Sheet, box: Box, face: Typeface, size: float) -> None:
    """Values in shades of gray over two numbered axes, with a scale on the right."""
    rng = sheet.rng
    x0, y0, x1, y1 = box
    left, bottom = round(x0 + size * 2.5), round(y1 - size * 2)
    right, top = round(x1 - size * 4), round(y0 + size * 1.2)
    width, height = right - left, bottom - top
    if width < 12 or height < 12:
        return
    noise = np.random.default_rng(rng.getrandbits(32))
    cells = rng.choice((4, 8, 16, 40, 90))
    coarse = noise.uniform(10, 245, (cells, cells)).astype(np.uint8)
    values = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    if rng.random() < 0.3:  # a map projection of a sphere
        mask = Image.new("L", (width, height), 0)
        ImageDraw.Draw(mask).ellipse((0, 0, width - 1, height - 1), fill=255)
        sheet.image.paste(values, (left, top), mask)
    else:
        sheet.paste(values, left, top)
        sheet.frame((left, top, right, bottom), outline=sheet.ink)
    for tick in range(rng.randint(2, 5)):
        share = (tick + 0.5) / 5
        number = f"{tick * rng.choice((1, 50, 0.2)):g}"
        sheet.line(left - 2, bottom - share * height - size / 2, number, face, size, align="right")
        sheet.line(left + share * width, bottom + 2, number, face, size, align="centre")
    if rng.random() < 0.6:
        sheet.line((left + right) / 2, y0, sheet.label(face.script)[:18], face, size,
                   align="centre")  # fmt: skip
    if rng.random() < 0.7:
        _scale(sheet, (right + size * 0.6, top, right + size * 1.4, bottom), face, size)


def _scale(sheet: Sheet, box: Box, face: Typeface, size: float) -> None:
    """A narrow bar of shades with numbers on its right."""
    x0, y0, x1, y1 = (round(v) for v in box)
    shades = np.linspace(245, 10, max(2, y1 - y0)).astype(np.uint8)[:, None]
    if sheet.rng.random() < 0.3:
        shades = shades[::-1]
    bar = Image.fromarray(np.repeat(shades, max(1, x1 - x0), axis=1))
    sheet.paste(bar, x0, y0)
    for tick in range(4):
        y = y0 + (y1 - y0) * tick / 4
        sheet.line(x1 + 2, y, f"{sheet.rng.randrange(100) / 10:g}", face, size * 0.9)
