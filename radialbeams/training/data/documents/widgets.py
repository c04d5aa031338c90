"""Parts of program windows: title bars, buttons, and rows of controls."""

from __future__ import annotations

from radialbeams.training.data.documents.material import Typeface
from radialbeams.training.data.documents.sheet import Sheet

Box = tuple[float, float, float, float]


def title_bar(sheet: Sheet, box: Box, script: str, face: Typeface, size: float) -> float:
    """The bar of a window with its name and buttons; returns its bottom."""
    rng = sheet.rng
    x0, y0, x1, _ = box
    bottom = y0 + size * rng.uniform(1.8, 2.6)
    shade = rng.choice((sheet.tone(0), 255, 240, 30, sheet.tone(0.2), sheet.tone(0.8)))
    ink = 20 if shade > 128 else 235
    sheet.frame((x0, y0, x1, bottom), fill=shade)
    middle = (y0 + bottom) / 2
    look = rng.choice(("windows", "mac", "gnome"))
    name = sheet.title(script, 1, 4)[: max(6, int((x1 - x0) / size))]
    if look == "mac":
        for k in range(3):
            x = x0 + size * (0.8 + 1.2 * k)
            sheet.draw.ellipse(
                (x, middle - size * 0.35, x + size * 0.7, middle + size * 0.35),
                fill=(90, 170, 130)[k],
            )
        sheet.line((x0 + x1) / 2, middle - size * 0.6, name, face, size, align="centre", ink=ink)
        return bottom
    left = x0 + size * 0.5
    if look == "windows":
        sheet.frame(
            (left, middle - size * 0.5, left + size, middle + size * 0.5), fill=rng.randint(60, 200)
        )
        left += size * 1.5
        for k, x in enumerate((x1 - size * 6, x1 - size * 3.8, x1 - size * 1.6)):
            if k == 0:
                sheet.draw.line((x, middle, x + size * 0.7, middle), fill=ink)
            elif k == 1:
                sheet.frame(
                    (x, middle - size * 0.35, x + size * 0.7, middle + size * 0.35), outline=ink
                )
    for a, b in ((-1, 1), (1, -1)):
        x, d = x1 - size * 1.25, size * 0.35
        sheet.draw.line((x - d, middle + a * d, x + d, middle + b * d), fill=ink)
    sheet.line(left, middle - size * 0.6, name, face, size, ink=ink)
    return bottom


def button(sheet: Sheet, x: float, y: float, text: str, face: Typeface, size: float) -> float:
    """Returns its right edge."""
    width = face.at(size).getlength(text) + size * 1.6
    fill = sheet.tone(sheet.rng.choice((0.1, 0.15, 0.5, 0.75)))
    light = abs(fill - sheet.paper) < 100
    sheet.frame(
        (x, y, x + width, y + size * 1.9),
        fill=fill,
        outline=sheet.tone(0.4),
        radius=sheet.rng.choice((0, 2, 4)),
    )
    sheet.line(
        x + width / 2,
        y + size * 0.35,
        text,
        face,
        size,
        align="centre",
        ink=sheet.ink if light else sheet.paper,
    )
    return float(x + width)


def widget_row(sheet: Sheet, box: Box, script: str, face: Typeface, size: float) -> float:
    """One row of controls, of any kind; returns where it ends."""
    rng = sheet.rng
    x0, y, x1, y1 = box
    kind = rng.choice(
        ("entry", "entry", "check", "radio", "slider", "bar", "text", "buttons", "list", "combo")
    )
    field = rng.choice((255, sheet.tone(0.08), sheet.tone(0.15)))
    ink = 15 if field > 128 else 240
    if kind in ("entry", "combo"):
        left = x0 + sheet.line(x0, y + size * 0.3, sheet.label(script)[:20], face, size) + size
        left = max(left, x0 + (x1 - x0) * 0.3)
        right = min(left + (x1 - x0) * rng.uniform(0.25, 0.7), x1)
        sheet.frame((left, y, right, y + size * 1.8), fill=field, outline=sheet.tone(0.5))
        if rng.random() < 0.6:
            sheet.line(
                left + 4,
                y + size * 0.3,
                sheet.label(script)[: int((right - left) / size)],
                face,
                size,
                ink=ink,
            )
        if kind == "combo":
            x = right - size
            sheet.draw.polygon(
                ((x - 4, y + size * 0.7), (x + 4, y + size * 0.7), (x, y + size * 1.2)), fill=ink
            )
        return y + size * 2.4
    if kind in ("check", "radio"):
        for _ in range(rng.randint(1, 5)):
            place = (x0, y + 1, x0 + size, y + size + 1)
            if kind == "check":
                sheet.frame(place, fill=field, outline=sheet.tone(0.7))
                if rng.random() < 0.5:
                    sheet.draw.line(
                        (x0 + 2, y + size * 0.6, x0 + size * 0.4, y + size, x0 + size, y + 2),
                        fill=ink,
                        width=2,
                    )
            else:
                sheet.draw.ellipse(place, fill=field, outline=sheet.tone(0.7))
            sheet.line(x0 + size * 1.5, y, sheet.title(script, 1, 4)[:30], face, size)
            y += size * 1.6
        return y + size * 0.4
    if kind in ("slider", "bar"):
        right, at = x0 + (x1 - x0) * rng.uniform(0.4, 1), rng.random()
        thick = size * (0.25 if kind == "slider" else 0.9)
        sheet.frame(
            (x0, y + size * 0.5, right, y + size * 0.5 + thick),
            fill=sheet.tone(0.2),
            outline=sheet.tone(0.4),
        )
        x = x0 + (right - x0) * at
        if kind == "bar":
            sheet.frame((x0, y + size * 0.5, x, y + size * 0.5 + thick), fill=sheet.tone(0.7))
        else:
            sheet.frame((x - 4, y, x + 4, y + size * 1.4), fill=sheet.tone(0.6))
        return y + size * 2.2
    if kind == "buttons":
        x = x0
        for _ in range(rng.randint(1, 4)):
            if x > x1 - size * 7:
                break
            x = button(sheet, x, y, sheet.label(script)[:12], face, size) + size * 0.7
        return y + size * 2.7
    if kind == "list":
        bottom = min(y + size * rng.uniform(4, 14), y1)
        sheet.frame((x0, y, x1, bottom), fill=field, outline=sheet.tone(0.5))
        chosen = rng.randrange(12)
        for row in range(int((bottom - y) / (size * 1.5))):
            top = y + row * size * 1.5
            if row == chosen:
                sheet.frame((x0 + 1, top, x1 - 1, top + size * 1.5), fill=sheet.tone(0.5))
            sheet.line(
                x0 + 5,
                top + 2,
                sheet.title(script, 1, 5)[: int((x1 - x0) / size * 1.6)],
                face,
                size,
                ink=ink,
            )
        return bottom + size
    text = sheet.material.paragraph(rng, script, rng.randint(15, 200))
    return sheet.paragraph((x0, y, x1, y1), text, face, size) + size * 0.6
