"""Layouts of small screens: gauges, figures, tool bars, dialogs, grids of keys, plots in windows.

Their letters are large relative to the screen, and some have more shapes than words.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from radialbeams.training.data.documents import marks
from radialbeams.training.data.documents.material import EUROPEAN, Typeface
from radialbeams.training.data.documents.sheet import Sheet
from radialbeams.training.data.documents.widgets import button, title_bar, widget_row


def _face(sheet: Sheet, script: str) -> Typeface:
    style = sheet.rng.choice(("sans", "sans", "sans", "mono", "hand"))
    return sheet.material.face(sheet.rng, script, style)


def figure(sheet: Sheet) -> str:
    """The text of a small panel: a percentage, an amount, or a time."""
    rng = sheet.rng
    number, unit = rng.randrange(1000), rng.choice(("GB", "MB", "°C", "km/h", "W", "€", "%"))
    clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}"
    return rng.choice(
        (
            f"{rng.randrange(101)}%",
            f"{number} {unit}",
            clock,
            f"{clock}:{rng.randrange(60):02}",
            str(number),
            sheet.date(),
            sheet.amount(),
        )
    )


def digits_of(sheet: Sheet, face: Typeface) -> Typeface:
    """The face if it is known to have digits and units; otherwise a Latin one."""
    return face if face.script in EUROPEAN else sheet.material.face(sheet.rng, "latin", "sans")


def panel(sheet: Sheet, script: str) -> None:
    """One to six cells, each with a figure and a label, often with a gauge or a bar."""
    rng = sheet.rng
    face = _face(sheet, script)
    y = 0.0
    if rng.random() < 0.25:
        size = max(8.0, sheet.height * 0.07)
        y = title_bar(sheet, (0, 0, sheet.width, sheet.height), script, face, size)
    across, down = rng.choice(((1, 1), (1, 1), (1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (4, 3)))
    kinds = rng.choice((("gauge",), ("figure",), ("bar",), ("figure", "bar", "gauge")))
    width, height = sheet.width / across, (sheet.height - y) / down
    for number in range(across * down):
        left, top = (number % across) * width, y + (number // across) * height
        pad = min(width, height) * rng.uniform(0.04, 0.12)
        box = (left + pad, top + pad, left + width - pad, top + height - pad)
        _cell(sheet, box, script, face, rng.choice(kinds))


def _cell(
    sheet: Sheet,
    box: tuple[float, float, float, float],
    script: str,
    face: Typeface,
    kind: str,
) -> None:
    rng = sheet.rng
    x0, y0, x1, y1 = box
    height, middle = y1 - y0, (x0 + x1) / 2
    text, label = figure(sheet), sheet.label(script)[:14]
    digits = digits_of(sheet, face)
    small = max(7.0, min(height * rng.uniform(0.1, 0.18), (x1 - x0) / max(4, 0.6 * len(label))))
    big = max(8.0, min(height * rng.uniform(0.25, 0.5), (x1 - x0) / (0.62 * len(text) + 0.5)))
    labelled = rng.choice(("over", "over", "under", "none"))
    if labelled == "over":
        sheet.line(middle, y0, label, face, small, align="centre")
        y0 += small * 1.5
    elif labelled == "under":
        sheet.line(middle, y1 - small * 1.3, label, face, small, align="centre")
        y1 -= small * 1.5
    if kind == "gauge":
        big = min(big, (y1 - y0) * 0.28)
        gauge(sheet, (x0, y0, x1, y1 - big * 1.3))
        sheet.line(middle, y1 - big * 1.25, text, digits, big, align="centre")
        return
    if kind == "bar":
        thick = max(3.0, (y1 - y0) * 0.2)
        share = x0 + (x1 - x0) * rng.random()
        sheet.frame((x0, y1 - thick, x1, y1), fill=sheet.tone(0.15), outline=sheet.tone(0.5))
        sheet.frame((x0, y1 - thick, share, y1), fill=sheet.tone(rng.uniform(0.5, 1)))
        y1 -= thick * 1.3
        big = min(big, max(8.0, (y1 - y0) * 0.8))
    elif rng.random() < 0.25:  # a level is drawn behind the figure
        level = y1 - (y1 - y0) * rng.random()
        sheet.frame((x0, level, x1, y1), fill=sheet.tone(rng.uniform(0.1, 0.35)))
    sheet.line(middle, (y0 + y1 - big * 1.2) / 2, text, digits, big, align="centre")


def gauge(sheet: Sheet, box: tuple[float, float, float, float]) -> None:
    """A dial with a gap at the bottom, ticks and a needle."""
    rng = sheet.rng
    x0, y0, x1, y1 = box
    opening = rng.choice((180, 180, 90, 120))  # degrees without ticks, at the bottom
    radius = min((x1 - x0) / 2, (y1 - y0) / (1 if opening == 180 else 1.8)) * 0.95
    if radius < 6:
        return
    x, y = (x0 + x1) / 2, y0 + radius
    first, span = 90 + opening / 2, 360 - opening  # clockwise from the right, as Pillow counts
    width = max(1, round(radius * rng.choice((0.03, 0.08, 0.2))))
    place = (x - radius, y - radius, x + radius, y + radius)
    sheet.draw.arc(place, first, first + span, fill=sheet.tone(0.7), width=width)
    count = rng.choice((4, 8, 10, 20))
    for tick in range(count + 1):
        turn = math.radians(first + span * tick / count)
        a, b = radius * 0.82, radius
        sheet.rule(
            x + a * math.cos(turn), y + a * math.sin(turn), x + b * math.cos(turn),
            y + b * math.sin(turn), 0.9,
        )  # fmt: skip
    turn = math.radians(first + span * rng.random())
    tip = (x + 0.75 * radius * math.cos(turn), y + 0.75 * radius * math.sin(turn))
    sheet.rule(x, y, *tip, 1, max(1, round(radius * 0.05)))
    sheet.draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=sheet.ink)


def toolbar(sheet: Sheet, script: str) -> None:
    """A strip: drawings as icons, buttons and fields in one row."""
    rng = sheet.rng
    face = sheet.material.face(rng, script, "sans")
    height = sheet.height
    size = max(7.0, min(height * rng.uniform(0.25, 0.42), 16.0 * sheet.height / 40))
    if rng.random() < 0.4:
        sheet.frame((0, 0, sheet.width, height), outline=sheet.tone(0.5))
    x, icons = size * 0.4, rng.random()
    while x < sheet.width - height:
        if rng.random() < icons:
            side = height * rng.uniform(0.55, 0.9)
            marks.picture(sheet, (x, (height - side) / 2, x + side, (height + side) / 2))
            x += side + size * 0.5
        elif rng.random() < 0.5:
            x = button(sheet, x, height / 2 - size * 0.95, sheet.label(script)[:10], face, size)
            x += size * 0.6
        else:
            x += sheet.line(x, height / 2 - size * 0.6, sheet.label(script)[:12], face, size)
            x += size


def dialog(sheet: Sheet, script: str) -> None:
    """A small window: a question or a few controls, and buttons below."""
    rng = sheet.rng
    face = sheet.material.face(rng, script, "sans")
    size = max(8.0, min(sheet.width, 2 * sheet.height) * rng.uniform(0.03, 0.07))
    y = 0.0
    if rng.random() < 0.85:
        y = title_bar(sheet, (0, 0, sheet.width, sheet.height), script, face, size)
    y += size * 0.6
    ends, x1 = sheet.height - size * 2.6, sheet.width - size
    if rng.random() < 0.5:
        text = sheet.material.paragraph(rng, script, rng.randint(10, 160))
        y = sheet.paragraph((size, y, x1, ends), text, face, size) + size * 0.4
    while y < ends - size * 2 and rng.random() < 0.8:
        y = widget_row(sheet, (size, y, x1, ends), script, face, size)
    x = size if rng.random() < 0.6 else max(size, sheet.width - size * 14)
    for _ in range(rng.randint(1, 3)):
        if x > sheet.width - size * 4:
            break
        text = sheet.label(script)[:9]
        x = button(sheet, x, sheet.height - size * 2.3, text, face, size) + size * 0.6


def keys(sheet: Sheet, script: str) -> None:
    """A grid of keys or cells: calculators, calendars, boards, puzzles."""
    rng = sheet.rng
    face = sheet.material.face(rng, script, "sans")
    y = 0.0
    if rng.random() < 0.7:
        y = title_bar(sheet, (0, 0, sheet.width, sheet.height), script, face, sheet.width * 0.05)
    across, down = rng.randint(3, 9), rng.randint(3, 9)
    wide, high = sheet.width / across, (sheet.height - y) / down
    keys = rng.choice(("numbers", "digits", "letters", "words"))
    filled = rng.choice((1, 1, 0.5))
    inverse = rng.random() < 0.4
    for cell in range(across * down):
        x, top = (cell % across) * wide, y + (cell // across) * high
        gap = min(wide, high) * 0.04
        fill = sheet.tone(rng.uniform(0.6, 1) if inverse else rng.choice((0, 0.1, 0.2)))
        sheet.frame(
            (x + gap, top + gap, x + wide - gap, top + high - gap),
            fill=fill,
            outline=sheet.tone(0.5),
        )
        if rng.random() > filled:
            continue
        text = {
            "numbers": str(cell + 1),
            "digits": str(rng.randint(1, 9)),
            "letters": rng.choice("ABCDEFGHJKLMNPQRTUVWXYZ"),
            "words": sheet.label(script)[:7],
        }[keys]
        size = max(7.0, min(high * 0.5, wide / (0.65 * len(text) + 0.6)))
        sheet.line(
            x + wide / 2,
            top + (high - size * 1.2) / 2,
            text,
            face,
            size,
            align="centre",
            ink=sheet.paper if inverse else sheet.ink,
        )


def plot_window(sheet: Sheet, script: str) -> None:
    """Curves over two labelled axes, in a window or alone, and perhaps a button below."""
    rng = sheet.rng
    face = sheet.material.face(rng, script, "sans")
    size = max(7.0, sheet.width * rng.uniform(0.016, 0.028))
    y, y1 = 0.0, float(sheet.height)
    if rng.random() < 0.7:
        y = title_bar(sheet, (0, 0, sheet.width, sheet.height), script, face, size)
    if rng.random() < 0.5:
        sheet.line(size, y + size * 0.4, sheet.title(script, 1, 4), face, size)
        y += size * 2
    if rng.random() < 0.5:
        button(sheet, sheet.width * rng.uniform(0.1, 0.6), y1 - size * 2.4, "OK", face, size)
        y1 -= size * 3
    plane = (size, y + size * 0.5, sheet.width - size, y1 - size * 0.5)
    if rng.random() < 0.7:
        curves(sheet, plane, face, size)
    else:
        marks.chart(sheet, plane, face, size)


def curves(
    sheet: Sheet, box: tuple[float, float, float, float], face: Typeface, size: float
) -> None:
    """Waves within a frame, with numbers left of it and below."""
    rng = sheet.rng
    x0, y0, x1, y1 = box
    sheet.frame(box, fill=rng.choice((255, sheet.paper)))
    ground = sheet.gray_at((round((x0 + x1) / 2), round((y0 + y1) / 2)))
    ink = 0 if ground > 128 else 255
    left, right = x0 + size * 4, x1 - size * 1.5
    top, bottom = y0 + size * 2, y1 - size * 2.5
    if right - left < size * 4 or bottom - top < size * 4:
        return
    sheet.draw.rectangle((left, top, right, bottom), outline=ink)
    ticks, scale = rng.randint(4, 9), rng.choice((0.25, 1, 2, 50))
    start = rng.choice((0, 0, -ticks // 2))
    for tick in range(ticks):
        share = (tick + 0.5) / ticks
        x, y = left + (right - left) * share, bottom - (bottom - top) * share
        sheet.line(left - 4, y - size * 0.6, f"{(start + tick) * scale:g}", face, size,
                   align="right", ink=ink)  # fmt: skip
        sheet.line(x, bottom + 4, str(start + tick), face, size, align="centre", ink=ink)
        sheet.draw.line((left - 3, y, left, y), fill=ink)
        sheet.draw.line((x, bottom, x, bottom + 3), fill=ink)
    for _ in range(rng.randint(1, 4)):
        waves, phase, height = rng.uniform(0.3, 3), rng.uniform(0, 6), rng.uniform(0.15, 0.45)
        points = [
            (
                left + (right - left) * k / 80,
                (top + bottom) / 2
                - (bottom - top) * height * math.sin(phase + waves * math.tau * k / 80),
            )
            for k in range(81)
        ]
        sheet.draw.line(points, fill=rng.choice((ink, 120)), width=rng.choice((1, 2)))


# layout: (frequency, shapes of the screen as height over width)
PANELS: dict[Callable[[Sheet, str], None], tuple[float, tuple[float, ...]]] = {
    panel: (5, (0.4, 0.7, 1, 1.3, 0.2)),
    toolbar: (3, (0.06, 0.1, 0.2, 0.3)),
    dialog: (7, (0.3, 0.5, 0.7, 1, 1.3)),
    keys: (3, (0.7, 1, 1.3, 2)),
    plot_window: (3, (0.75, 0.9, 1, 0.6)),
}
# The longer side in pixels: these are small compared with other screens.
LENGTHS: dict[Callable[[Sheet, str], None], tuple[int, int]] = {
    panel: (110, 500),
    toolbar: (140, 900),
    dialog: (130, 560),
    keys: (150, 560),
}
