"""Marks on pages other than text: logos, stamps, signatures, barcodes, pictures, charts."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw

from radialbeams.training.data.documents.material import Typeface
from radialbeams.training.data.documents.sheet import Sheet

Box = tuple[float, float, float, float]


def barcode(sheet: Sheet, box: Box) -> None:
    x0, y0, x1, y1 = box
    x = x0
    while x < x1 - 4:
        width = sheet.rng.choice((1, 1, 2, 3))
        sheet.draw.rectangle((int(x), y0, int(x) + width - 1, y1), fill=sheet.ink)
        x += width + sheet.rng.choice((1, 1, 2, 3))


def matrix_code(sheet: Sheet, x: float, y: float, size: int) -> None:
    """Random squares with finder patterns in three corners, like a QR code."""
    modules = sheet.rng.choice((21, 25, 29))
    bits = np.random.default_rng(sheet.rng.getrandbits(32)).random((modules, modules)) < 0.5
    for row, column in ((0, 0), (0, modules - 7), (modules - 7, 0)):
        bits[row : row + 7, column : column + 7] = True
        bits[row + 1 : row + 6, column + 1 : column + 6] = False
        bits[row + 2 : row + 5, column + 2 : column + 5] = True
    values = np.where(bits, sheet.ink, sheet.paper).astype(np.uint8)
    code = Image.fromarray(values).resize((size, size), Image.Resampling.NEAREST)
    sheet.paste(code, x, y)


def logo(sheet: Sheet, x: float, y: float, size: float, face: Typeface) -> None:
    """A simple shape, often with initials, or a drawing."""
    rng, draw = sheet.rng, sheet.draw
    tone = sheet.tone(rng.uniform(0.4, 1))
    kind = rng.random()
    if kind < 0.35 and (drawing := sheet.material.drawing(rng)) is not None:
        drawing.thumbnail((round(size), round(size)))
        sheet.paste(drawing, x, y)
        return
    box = (x, y, x + size, y + size)
    if kind < 0.6:
        draw.ellipse(box, fill=tone)
    elif kind < 0.8:
        draw.rectangle(box, fill=tone)
    else:
        draw.polygon(((x + size / 2, y), (x + size, y + size), (x, y + size)), fill=tone)
    letters = "".join(rng.choice("ABCDEFGHKLMNPRSTUVW") for _ in range(rng.randint(1, 3)))
    if rng.random() < 0.7:
        font = face.at(size * 0.45)
        middle = (x + size / 2, y + size / 2)
        draw.text(middle, letters, font=font, fill=sheet.paper, anchor="mm")


def stamp(sheet: Sheet, x: float, y: float, size: int, face: Typeface) -> None:
    """A stamp at any angle, so it says little about which way is up."""
    rng = sheet.rng
    mask = Image.new("L", (size, size), 0)
    draw = ImageDraw.Draw(mask)
    strength = rng.randint(110, 220)
    if rng.random() < 0.5:
        draw.ellipse((2, 2, size - 3, size - 3), outline=strength, width=3)
        draw.ellipse((9, 9, size - 10, size - 10), outline=strength, width=1)
    else:
        draw.rectangle((2, size * 0.3, size - 3, size * 0.7), outline=strength, width=3)
    text = sheet.title(face.script, 1, 2)[:14]
    for number, part in enumerate((text, sheet.date())):
        font = face.at(size / max(7, len(part) * 0.6))
        place = (size / 2, size * (0.42 + 0.15 * number))
        draw.text(place, part, font=font, fill=strength, anchor="mm")
    mask = mask.rotate(
        rng.choice((rng.gauss(0, 8), rng.uniform(-40, 40))), Image.Resampling.BILINEAR
    )
    sheet.image.paste(sheet.tone(rng.uniform(0.5, 0.9)), (round(x), round(y)), mask)


def signature(sheet: Sheet, x: float, y: float, width: float, script: str = "latin") -> None:
    """A scrawl, or a name in handwriting."""
    rng = sheet.rng
    if rng.random() < 0.5:
        face = sheet.material.face(rng, script, "hand")
        sheet.line(x, y - width * 0.15, sheet.title(script, 1, 2)[:16], face, width * 0.16)
        return
    points = []
    for step in range(40):
        t = step / 39
        height = width * 0.16 * math.exp(-2 * t)
        points.append(
            (x + width * t, y - height * math.sin(step * 1.7 + rng.uniform(0, 1.2)) - width * 0.05)
        )
    sheet.draw.line(
        points, fill=sheet.tone(rng.uniform(0.6, 1)), width=rng.choice((1, 2)), joint="curve"
    )


def picture(sheet: Sheet, box: Box) -> None:
    """A drawing with an upright direction, or a photo-like texture: light sky over dark ground."""
    x0, y0, x1, y1 = (round(v) for v in box)
    width, height = x1 - x0, y1 - y0
    if width < 8 or height < 8:
        return
    rng = sheet.rng
    drawing = sheet.material.drawing(rng) if rng.random() < 0.6 else None
    if drawing is not None:
        if rng.random() < 0.4:
            sheet.frame(box, fill=sheet.tone(rng.uniform(0, 0.3)), outline=sheet.tone(0.6))
        scale = min(width / drawing.width, height / drawing.height)
        drawing = drawing.resize(
            (max(1, int(drawing.width * scale)), max(1, int(drawing.height * scale)))
        )
        sheet.paste(drawing, x0 + (width - drawing.width) / 2, y0 + (height - drawing.height) / 2)
        return
    noise = np.random.default_rng(rng.getrandbits(32))
    coarse = noise.uniform(20, 235, (rng.randint(3, 8), rng.randint(3, 8)))
    if rng.random() < 0.6:
        coarse = np.sort(coarse, axis=0)[::-1] * 0.7 + coarse * 0.3
    texture = Image.fromarray(coarse.astype(np.uint8)).resize(
        (width, height), rng.choice((Image.Resampling.BICUBIC, Image.Resampling.BILINEAR))
    )
    sheet.paste(texture, x0, y0)


def chart(sheet: Sheet, box: Box, face: Typeface, size: float) -> None:
    """Bars, lines or points over labelled axes, or a pie with a legend."""
    rng, draw = sheet.rng, sheet.draw
    x0, y0, x1, y1 = box
    if rng.random() < 0.6:
        sheet.line(
            (x0 + x1) / 2, y0, sheet.title(face.script, 2, 5), face, size * 1.1, align="centre"
        )
        y0 += size * 1.8
    if rng.random() < 0.15:
        _pie(sheet, (x0, y0, x1, y1), face, size)
        return
    left, bottom = x0 + size * 3, y1 - size * 2.2
    if bottom - y0 < size or x1 - left < size:  # no room between title and labels
        return
    draw.line((left, y0, left, bottom, x1, bottom), fill=sheet.ink)
    for tick in range(rng.randint(3, 6)):
        y = bottom - tick * (bottom - y0) / 6
        sheet.line(left - 3, y - size / 2, str(tick * 20), face, size * 0.8, align="right")
        if rng.random() < 0.7:
            sheet.rule(left, y, x1, y, 0.2)
    count, kind = rng.randint(4, 14), rng.choice(("bars", "line", "points"))
    step = (x1 - left) / count
    tops = [bottom - (bottom - y0) * rng.uniform(0.05, 0.95) for _ in range(count)]
    tone = sheet.tone(rng.uniform(0.4, 1))
    middles = [(left + (k + 0.5) * step, y) for k, y in enumerate(tops)]
    if kind == "bars":
        for (x, y), _ in zip(middles, tops, strict=True):
            draw.rectangle((x - step * 0.3, y, x + step * 0.3, bottom), fill=tone)
    elif kind == "line":
        draw.line(middles, fill=tone, width=2)
    else:
        for x, y in middles:
            draw.ellipse((x - 2, y - 2, x + 2, y + 2), fill=tone)
    for number, (x, _) in enumerate(middles):
        if step > size * 2 or number % 3 == 0:
            sheet.line(x, bottom + 3, str(2000 + number), face, size * 0.75, align="centre")
    sheet.line(
        (left + x1) / 2, y1 - size, sheet.label(face.script)[:20], face, size * 0.8, align="centre"
    )


def _pie(sheet: Sheet, box: Box, face: Typeface, size: float) -> None:
    rng = sheet.rng
    x0, y0, x1, y1 = box
    radius = min((x1 - x0) / 4, (y1 - y0) / 2)
    if radius < 1:
        return
    place = (x0, y0, x0 + 2 * radius, y0 + 2 * radius)
    angle, x = 0.0, x0 + 2 * radius + size
    for part in range(rng.randint(3, 6)):
        step = rng.uniform(30, 90)
        tone = sheet.tone(rng.uniform(0.1, 1))
        sheet.draw.pieslice(place, angle, min(angle + step, 360), fill=tone, outline=sheet.ink)
        y = y0 + part * size * 1.7
        sheet.frame((x, y, x + size, y + size), fill=tone)
        sheet.line(x + size * 1.5, y, sheet.label(face.script)[:18], face, size)
        angle += step
