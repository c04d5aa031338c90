"""Parts of program windows: title bars, buttons, and rows of controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

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


@dataclass(frozen=True)
class ControlRow:
    """The style and the position of a row of controls."""

    sheet: Sheet
    box: Box
    script: str
    face: Typeface
    size: float
    field: int  # the shade of entries, boxes and lists

    @property
    def ink(self) -> int:
        return 15 if self.field > 128 else 240


def widget_row(sheet: Sheet, box: Box, script: str, face: Typeface, size: float) -> float:
    """One row of controls, of any kind; returns its bottom."""
    draw = sheet.rng.choice(WIDGETS)
    field = sheet.rng.choice((255, sheet.tone(0.08), sheet.tone(0.15)))
    return draw(ControlRow(sheet, box, script, face, size, field))


def _entry(row: ControlRow, *, combo: bool = False) -> float:
    """A label and a field to type in, or to choose from."""
    sheet, size, rng = row.sheet, row.size, row.sheet.rng
    x0, y, x1, _ = row.box
    label = sheet.label(row.script)[:20]
    left = x0 + sheet.line(x0, y + size * 0.3, label, row.face, size) + size
    left = max(left, x0 + (x1 - x0) * 0.3)
    right = min(left + (x1 - x0) * rng.uniform(0.25, 0.7), x1)
    sheet.frame((left, y, right, y + size * 1.8), fill=row.field, outline=sheet.tone(0.5))
    if rng.random() < 0.6:
        text = sheet.label(row.script)[: int((right - left) / size)]
        sheet.line(left + 4, y + size * 0.3, text, row.face, size, ink=row.ink)
    if combo:
        x, top = right - size, y + size * 0.7
        sheet.draw.polygon(((x - 4, top), (x + 4, top), (x, y + size * 1.2)), fill=row.ink)
    return y + size * 2.4


def _choices(row: ControlRow, *, check: bool) -> float:
    """Check boxes, some of them ticked, or radio buttons."""
    sheet, size, rng = row.sheet, row.size, row.sheet.rng
    x0, y, _, _ = row.box
    for _ in range(rng.randint(1, 5)):
        place = (x0, y + 1, x0 + size, y + size + 1)
        if check:
            sheet.frame(place, fill=row.field, outline=sheet.tone(0.7))
            if rng.random() < 0.5:
                tick = (x0 + 2, y + size * 0.6, x0 + size * 0.4, y + size, x0 + size, y + 2)
                sheet.draw.line(tick, fill=row.ink, width=2)
        else:
            sheet.draw.ellipse(place, fill=row.field, outline=sheet.tone(0.7))
        sheet.line(x0 + size * 1.5, y, sheet.title(row.script, 1, 4)[:30], row.face, size)
        y += size * 1.6
    return y + size * 0.4


def _gauge(row: ControlRow, *, slider: bool) -> float:
    """A slider, or a progress bar."""
    sheet, size, rng = row.sheet, row.size, row.sheet.rng
    x0, y, x1, _ = row.box
    right, at = x0 + (x1 - x0) * rng.uniform(0.4, 1), rng.random()
    top = y + size * 0.5
    bottom = top + size * (0.25 if slider else 0.9)
    sheet.frame((x0, top, right, bottom), fill=sheet.tone(0.2), outline=sheet.tone(0.4))
    x = x0 + (right - x0) * at
    if slider:
        sheet.frame((x - 4, y, x + 4, y + size * 1.4), fill=sheet.tone(0.6))
    else:
        sheet.frame((x0, top, x, bottom), fill=sheet.tone(0.7))
    return y + size * 2.2


def _buttons(row: ControlRow) -> float:
    sheet, size = row.sheet, row.size
    x, y, x1, _ = row.box
    for _ in range(sheet.rng.randint(1, 4)):
        if x > x1 - size * 7:
            break
        x = button(sheet, x, y, sheet.label(row.script)[:12], row.face, size) + size * 0.7
    return y + size * 2.7


def _list(row: ControlRow) -> float:
    """A framed list with one selected line."""
    sheet, size, rng = row.sheet, row.size, row.sheet.rng
    x0, y, x1, y1 = row.box
    bottom = min(y + size * rng.uniform(4, 14), y1)
    sheet.frame((x0, y, x1, bottom), fill=row.field, outline=sheet.tone(0.5))
    chosen = rng.randrange(12)
    for number in range(int((bottom - y) / (size * 1.5))):
        top = y + number * size * 1.5
        if number == chosen:
            sheet.frame((x0 + 1, top, x1 - 1, top + size * 1.5), fill=sheet.tone(0.5))
        text = sheet.title(row.script, 1, 5)[: int((x1 - x0) / size * 1.6)]
        sheet.line(x0 + 5, top + 2, text, row.face, size, ink=row.ink)
    return bottom + size


def _text(row: ControlRow) -> float:
    sheet = row.sheet
    text = sheet.material.paragraph(sheet.rng, row.script, sheet.rng.randint(15, 200))
    return sheet.paragraph(row.box, text, row.face, row.size) + row.size * 0.6


# One is drawn at random; entries are twice as frequent. Reordering them changes every page.
WIDGETS: tuple[Callable[[ControlRow], float], ...] = (
    _entry,
    _entry,
    partial(_choices, check=True),
    partial(_choices, check=False),
    partial(_gauge, slider=True),
    partial(_gauge, slider=False),
    _text,
    _buttons,
    _list,
    partial(_entry, combo=True),
)
