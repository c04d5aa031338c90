"""Layouts of small paper: till receipts, cards and tickets."""

from __future__ import annotations

from radialbeams.training.data.documents import marks
from radialbeams.training.data.documents.blocks import Box, margins, pick_faces
from radialbeams.training.data.documents.material import RIGHT_TO_LEFT, Typeface
from radialbeams.training.data.documents.sheet import Sheet


def receipt(sheet: Sheet, script: str) -> None:
    """A till receipt: centred header, items with prices at the right, totals, thanks, a code."""
    rng = sheet.rng
    style = rng.choice(("mono", "mono", "sans", "ocr"))
    face = sheet.material.face(rng, script, style)
    size = sheet.width / rng.uniform(15, 27)
    side = sheet.width * rng.uniform(0.02, 0.1)
    x0, x1, y = side, sheet.width - side, size * rng.uniform(0.5, 3)
    if rng.random() < 0.4:
        marks.logo(sheet, sheet.width / 2 - size * 2, y, size * rng.uniform(3, 5), face)
        y += size * 5.5
    for row in range(rng.randint(3, 8)):
        big = size * (rng.uniform(1.1, 1.6) if row == 0 else 1)
        text = rng.choice(
            (
                sheet.title(script, 1, 4),
                sheet.title(script, 1, 3),
                f"{sheet.label(script)}: {sheet.number(8)}",
            )
        )
        sheet.line(
            sheet.width / 2, y, text[: int((x1 - x0) / size * 1.7)], face, big, align="centre"
        )
        y += big * 1.25
    for _ in range(rng.randint(1, 4)):
        sheet.line(
            x0,
            y,
            f"{sheet.label(script)[:14]}: {rng.choice((sheet.date(), sheet.number(6)))}",
            face,
            size,
        )
        y += size * 1.25
    y = _till(sheet, (x0, y, x1, sheet.height - size * 6), script, face, size)
    for _ in range(rng.randint(1, 4)):
        sheet.line(sheet.width / 2, y, sheet.title(script, 2, 4)[:28], face, size, align="centre")
        y += size * 1.3
    if y < sheet.height - size * 5 and rng.random() < 0.4:
        marks.barcode(sheet, (x0 + size * 2, y + size, x1 - size * 2, y + size * 3.5))
        sheet.line(sheet.width / 2, y + size * 3.6, sheet.number(12), face, size, align="centre")


def _till(sheet: Sheet, box: Box, script: str, face: Typeface, size: float) -> float:
    """Items, then totals; returns their bottom."""
    rng = sheet.rng
    x0, y, x1, y1 = box
    wide = rng.random() < 0.4
    fence = rng.choice(("dash", "line", "stars", "none"))
    ends = y + (y1 - y) * rng.uniform(0.45, 1)
    room = int((x1 - x0) / size * 1.15)
    for total in (False, True):
        if fence == "dash":
            sheet.dashes(x0, x1, y + size * 0.6, 6)
        elif fence == "line":
            sheet.rule(x0, y + size * 0.6, x1, y + size * 0.6)
        elif fence == "stars":
            sheet.line(x0, y, "*" * room, face, size)
        y += size * 1.3
        count = rng.randint(2, 6) if total else 999
        while count and y < (y1 if total else ends - size * 8):
            count -= 1
            big = size * (1.3 if total and rng.random() < 0.3 else 1)
            sheet.line(x0, y, sheet.title(script, 1, 3)[: room - 9], face, big)
            if wide and not total:
                y += size * 1.2
                sheet.line(x0 + size * 2, y, f"{rng.randint(1, 9)} x {sheet.amount()}", face, size)
            sheet.line(x1, y, sheet.amount(), face, big, align="right")
            y += big * 1.25
            if rng.random() < 0.03:
                break
    return y + size


def card(sheet: Sheet, script: str) -> None:
    """Identity and business cards, tickets, labels: a picture, names, numbers, a code."""
    rng = sheet.rng
    body, head = pick_faces(sheet, script)
    unit = min(sheet.width, sheet.height)
    size = unit * rng.uniform(0.035, 0.06)
    x0, y, x1, y1 = margins(sheet, 0.05, 0.08)
    if rng.random() < 0.6:
        sheet.frame((0, 0, sheet.width, y + size * 1.8), fill=sheet.tone(rng.uniform(0.2, 0.8)))
        dark = sheet.gray_at((2, 2))
        sheet.line(
            x0,
            y,
            sheet.title(script, 2, 4),
            head,
            size * 1.3,
            ink=sheet.paper if abs(dark - sheet.paper) > 90 else sheet.ink,
        )
        y += size * 2.4
    left = x0
    if rng.random() < 0.6:
        side = unit * 0.32
        marks.picture(sheet, (x0, y, x0 + side * 0.8, y + side))
        left = x0 + side
    if script in RIGHT_TO_LEFT:
        left = x0
    while y < y1 - size * 2.6:
        sheet.line(left, y, sheet.label(script)[:16], body, size * 0.7)
        sheet.line(
            left,
            y + size * 0.85,
            rng.choice((sheet.date(), sheet.title(script, 1, 3), sheet.number(9))),
            body,
            size,
        )
        y += size * 2.4
    if rng.random() < 0.5:
        marks.barcode(sheet, (x1 - unit * 0.4, y1 - size * 2.2, x1, y1))
    elif rng.random() < 0.5:
        marks.matrix_code(sheet, x1 - unit * 0.25, y1 - unit * 0.25, round(unit * 0.25))
