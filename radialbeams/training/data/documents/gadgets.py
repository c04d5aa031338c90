"""Layouts of small windows with few words: readouts, boards, rows of icons, graphs, strips."""

from __future__ import annotations

from collections.abc import Callable

from radialbeams.training.data.documents import marks
from radialbeams.training.data.documents.material import Typeface
from radialbeams.training.data.documents.panels import digits_of, figure, gauge
from radialbeams.training.data.documents.sheet import Sheet
from radialbeams.training.data.documents.widgets import Box, button, title_bar


def _face(sheet: Sheet, script: str) -> Typeface:
    style = sheet.rng.choice(("sans", "sans", "sans", "mono", "hand"))
    return sheet.material.face(sheet.rng, script, style)


def _whole(sheet: Sheet) -> Box:
    return 0, 0, sheet.width, sheet.height


def _border(sheet: Sheet) -> float:
    """A frame of another shade around the window, or none; returns its width in pixels."""
    if sheet.rng.random() < 0.6:
        return 0.0
    width = max(2.0, min(sheet.width, sheet.height) * sheet.rng.uniform(0.01, 0.06))
    box = (0, 0, sheet.width - 1, sheet.height - 1)
    sheet.frame(box, outline=sheet.tone(sheet.rng.uniform(-0.3, 0.6)), width=round(width))
    return width


def _title(sheet: Sheet, script: str, chance: float) -> float:
    """A title bar, or none; returns the top of the window's content."""
    if sheet.rng.random() >= chance:
        return 0.0
    face = sheet.material.face(sheet.rng, script, "sans")
    size = max(7.0, min(sheet.width * 0.05, sheet.height * 0.09, 15.0))
    return title_bar(sheet, _whole(sheet), script, face, size)


def readout(sheet: Sheet, script: str) -> None:
    """One to five centred lines of different sizes, perhaps over a rising level or a dial."""
    rng = sheet.rng
    edge = _border(sheet)
    top, bottom = max(edge, _title(sheet, script, 0.15)), sheet.height - edge
    if rng.random() < 0.3:  # a level that rises behind the lines
        level = bottom - (bottom - top) * rng.uniform(0.05, 0.95)
        shade = sheet.tone(rng.uniform(0.08, 0.35))
        sheet.frame((edge, level, sheet.width - edge, bottom), fill=shade)
    if rng.random() < 0.25:
        height = (bottom - top) * rng.uniform(0.3, 0.5)
        at = rng.choice((top + height * 0.05, bottom - height))
        gauge(sheet, (edge, at, sheet.width - edge, at + height))
        top, bottom = (top + height, bottom) if at < bottom - height else (top, bottom - height)
    count = rng.choice((1, 1, 2, 2, 3, 4, 5))
    weights = [rng.choice((1, 1, 1.6, 2.5)) for _ in range(count)]
    pitch = (bottom - top) / sum(weights) * rng.uniform(0.6, 0.95)
    y = top + (bottom - top - pitch * sum(weights)) * rng.uniform(0.2, 0.8)
    face = _face(sheet, script)
    digits, ink = digits_of(sheet, face), sheet.tone(rng.uniform(0.55, 1))
    for weight in weights:
        written = rng.random() < 0.35
        text = sheet.label(script)[:16] if written else figure(sheet)
        room = (sheet.width - 2 * edge) * 0.94 / (0.6 * len(text) + 0.6)
        size = max(6.0, min(pitch * weight * 0.8, room))
        used = face if written else digits
        sheet.line(sheet.width / 2, y, text, used, size, align="centre", ink=ink)
        y += pitch * weight


def board(sheet: Sheet, script: str) -> None:
    """A title over blocks of equal cells, most of them empty: puzzles, boards, calendars."""
    rng = sheet.rng
    top = _title(sheet, script, 0.9) or float(max(7, sheet.height * 0.03))
    if rng.random() < 0.3:
        face = sheet.material.face(rng, script, "sans")
        button(sheet, 4, sheet.height - 24, sheet.label(script)[:10], face, 11)
    blocks, cells = rng.choice(((1, 8), (1, 10), (3, 3), (2, 4), (4, 2), (1, 15)))
    side = min(sheet.width, sheet.height - top) if rng.random() < 0.4 else 0
    wide, high = (side or sheet.width) / blocks, (side or sheet.height - top) / blocks
    gap, fill = rng.uniform(0, 0.25), sheet.tone(rng.choice((0, 0.1, 0.8, 1)))
    face, filled = digits_of(sheet, _face(sheet, script)), rng.choice((0, 0, 0.02, 0.2))
    checked = rng.random() < 0.25
    for row in range(blocks * cells):
        for column in range(blocks * cells):
            x = (column // cells + 0.04) * wide + (column % cells) * 0.92 * wide / cells
            y = top + (row // cells + 0.04) * high + (row % cells) * 0.92 * high / cells
            w, h = 0.92 * wide / cells, 0.92 * high / cells
            shade = sheet.tone(0.7) if checked and (row + column) % 2 else fill
            box = (x + gap * w / 2, y + gap * h / 2, x + w - gap * w / 2, y + h - gap * h / 2)
            sheet.frame(box, fill=shade, outline=sheet.tone(0.5))
            if rng.random() < filled:
                ink = 0 if shade > 128 else 255
                sheet.line(x + w / 2, y + h * 0.2, str(rng.randint(1, 9)), face,
                           min(w, h) * 0.6, align="centre", ink=ink)  # fmt: skip


def icon_rows(sheet: Sheet, script: str) -> None:
    """Rows of small drawings, alike or different, under lines of text; buttons below."""
    rng = sheet.rng
    y, face = _title(sheet, script, 0.6), sheet.material.face(rng, script, "sans")
    rows = rng.choice((1, 2, 2, 3, 5))
    pitch = (sheet.height - y) / rows
    texts = rng.random() < 0.7
    for _ in range(rows):
        size = max(7.0, min(pitch * 0.22, 18))
        at = y
        if texts and pitch > 30:
            sheet.line(size * 0.5, at + 1, sheet.title(script, 2, 6)[:60], face, size)
            at += size * 1.4
        side = max(9.0, min(y + pitch - at - 2, sheet.width / 3))
        same = sheet.material.drawing(rng) if rng.random() < 0.5 else None
        x = 2.0
        for _ in range(min(40, int((sheet.width - 4) / side))):
            drawing = same or sheet.material.drawing(rng)
            if drawing is None:
                break
            small = drawing.copy()
            small.thumbnail((max(6, round(side * 0.92)), max(6, round(side * 0.92))))
            sheet.paste(small, x, at + (side - small.height) / 2)
            x += side * rng.choice((1, 1, 1.02))
        y += pitch


def splash(sheet: Sheet, script: str) -> None:
    """A drawing and a name in large letters, beside it or below."""
    rng = sheet.rng
    face, text = _face(sheet, script), sheet.title(script, 1, 3)[:20]
    short = min(sheet.width, sheet.height)
    if sheet.width > 2 * sheet.height and rng.random() < 0.5:
        side = sheet.height * 0.8
        marks.picture(sheet, (side * 0.1, side * 0.1, side * 1.1, side * 1.1))
        size = min(sheet.height * 0.4, (sheet.width - side * 1.3) / (0.6 * len(text) + 1))
        sheet.line(side * 1.25, sheet.height / 2 - size * 0.6, text, face, max(7, size))
        return
    size = max(7.0, min(sheet.height * 0.3, sheet.width * 0.95 / (0.6 * len(text) + 0.6)))
    edge = short * rng.uniform(0.02, 0.1)
    bottom = sheet.height - size * 1.5 - edge
    marks.picture(sheet, (sheet.width * 0.15, edge, sheet.width * 0.85, bottom))
    sheet.line(sheet.width / 2, bottom, text, face, size, align="centre")


def graphs(sheet: Sheet, script: str) -> None:
    """A live graph, or a grid of small ones, each with a label above."""
    rng = sheet.rng
    y, face = _title(sheet, script, 0.3), _face(sheet, script)
    size = max(7.0, min(sheet.height * 0.07, sheet.width * 0.05, 16))
    if rng.random() < 0.6:
        if rng.random() < 0.5:
            button(sheet, size * 0.5, y + 2, sheet.label(script)[:8], face, size)
        number = rng.random() < 0.5
        text = figure(sheet) if number else sheet.title(script, 1, 4)[:24]
        used = digits_of(sheet, face) if number else face
        sheet.line(sheet.width / 2, y + size * 0.3, text, used, size * 1.2, align="centre")
        y += size * 2.3
    across, down = rng.choice(((1, 1), (1, 1), (2, 2), (3, 2), (4, 3), (1, 3)))
    width, height = sheet.width / across, (sheet.height - y) / down
    filled, labelled = rng.random() < 0.6, across * down > 1 or rng.random() < 0.4
    for cell in range(across * down):
        left, top = (cell % across) * width + size * 0.4, y + (cell // across) * height
        if labelled and height > size * 3:
            number = rng.random() < 0.5
            label = f"{cell} {figure(sheet)}" if number else sheet.label(script)
            used = digits_of(sheet, face) if number else face
            sheet.line(left, top, label[: int(width / size * 1.5)], used, size)
            top += size * 1.3
        box = (left, top, left + width - size * 0.8, y + (cell // across + 1) * height - 3)
        _spikes(sheet, box, filled=filled)


def _spikes(sheet: Sheet, box: Box, *, filled: bool) -> None:
    """A jagged curve that stands on the bottom of its box."""
    rng = sheet.rng
    x0, y0, x1, y1 = box
    if x1 - x0 < 8 or y1 - y0 < 8:
        return
    high, calm = rng.uniform(0.1, 0.9), rng.uniform(1, 4)
    count = max(6, min(90, int((x1 - x0) / rng.choice((2, 3, 6)))))
    tops = [y1 - (y1 - y0) * high * rng.random() ** calm for _ in range(count)]
    step, tone = (x1 - x0) / count, sheet.tone(rng.uniform(0.35, 1))
    if filled:
        for k, top in enumerate(tops):
            sheet.frame((x0 + k * step, top, x0 + (k + 1) * step - 0.5, y1), fill=tone)
    else:
        points = [(x0 + k * step, top) for k, top in enumerate(tops)]
        sheet.draw.line(points, fill=tone, width=1)
    if rng.random() < 0.3:
        sheet.frame(box, outline=sheet.tone(0.4))


def strip(sheet: Sheet, script: str) -> None:
    """A wide, low window: a name, one or two rows of fields and buttons, a status line."""
    rng = sheet.rng
    face = sheet.material.face(rng, script, "sans")
    rows = rng.choice((1, 2, 2, 3))
    size = max(7.0, min(sheet.height / (2.4 * rows + 3), 16))
    y = title_bar(sheet, _whole(sheet), script, face, size) if rng.random() < 0.5 else size * 0.5
    if rng.random() < 0.5:
        sheet.line(size * 0.6, y, sheet.title(script, 2, 5)[:50], face, size)
        y += size * 1.7
    field = rng.choice((255, sheet.tone(0.08), sheet.tone(0), sheet.tone(0.2)))
    for _ in range(rows):
        x = size * 0.6
        if rng.random() < 0.8:
            x += sheet.line(x, y + size * 0.3, sheet.label(script)[:14], face, size) + size
        right = max(x + size * 4, sheet.width * rng.uniform(0.35, 0.9))
        sheet.frame((x, y, right, y + size * 1.7), fill=field, outline=sheet.tone(0.5))
        if rng.random() < 0.3:
            text = sheet.title(script, 1, 5)[: int((right - x) / size)]
            sheet.line(x + 3, y + size * 0.2, text, face, size, ink=15 if field > 128 else 240)
        if right < sheet.width - size * 7 and rng.random() < 0.8:
            button(sheet, right + size * 0.5, y, sheet.label(script)[:8], face, size)
        y += size * 2.3
    x = size * 0.6
    for _ in range(rng.randint(0, 3)):
        if rng.random() < 0.7 and x < sheet.width - size * 8:
            x = button(sheet, x, y, sheet.label(script)[:9], face, size) + size * 0.6
    if rng.random() < 0.3:
        status = f"{sheet.title(script, 1, 4)} {sheet.date()}"
        sheet.line(size * 0.6, sheet.height - size * 1.2, status, face, size * 0.7)


# layout: (frequency, shapes of the window as height over width)
GADGETS: dict[Callable[[Sheet, str], None], tuple[float, tuple[float, ...]]] = {
    readout: (7, (0.17, 0.35, 0.5, 0.8, 1, 1.3, 1.7)),
    board: (3, (0.7, 0.85, 1, 1.2)),
    icon_rows: (3, (0.08, 0.13, 0.3, 0.5, 0.8)),
    splash: (2, (0.35, 0.5, 0.8, 1)),
    graphs: (4, (0.3, 0.45, 0.6, 0.8, 1)),
    strip: (5, (0.1, 0.17, 0.25, 0.35, 0.5)),
}
# The longer side in pixels.
GADGET_LENGTHS: dict[Callable[[Sheet, str], None], tuple[int, int]] = {
    readout: (90, 520),
    board: (200, 640),
    icon_rows: (160, 1100),
    splash: (150, 760),
    graphs: (160, 640),
    strip: (220, 1000),
}
