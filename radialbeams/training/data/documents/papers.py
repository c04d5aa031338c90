"""Layouts of paper: each draws one upright sheet of its kind.

A layout takes a sheet and the script of its text. Sizes follow from the sheet's, so that one
layout serves every resolution.
"""

from __future__ import annotations

from collections.abc import Callable

from radialbeams.training.data.documents import marks
from radialbeams.training.data.documents.blocks import (
    Box,
    body_size,
    flow,
    footer,
    margins,
    pick_faces,
    table,
)
from radialbeams.training.data.documents.material import VERTICAL, Typeface
from radialbeams.training.data.documents.plates import plate
from radialbeams.training.data.documents.sheet import Sheet
from radialbeams.training.data.documents.slips import card, receipt


def article(sheet: Sheet, script: str) -> None:
    """A title over one, two or three columns; journals, papers, reports, newspapers."""
    rng = sheet.rng
    box = margins(sheet)
    body, head = pick_faces(sheet, script)
    columns = rng.choices((1, 2, 3, 4), (40, 40, 14, 6))[0]
    size = body_size(sheet) * (1 if columns < 3 else 0.9)
    x0, y, x1, y1 = box
    if rng.random() < 0.5:
        align = rng.choice(("centre", "centre", "natural"))
        y = sheet.paragraph(
            (x0, y, x1, y1),
            sheet.title(script, 3, 12),
            head,
            size * rng.uniform(1.5, 2.8),
            align=align,
        )
        if rng.random() < 0.7:
            y = sheet.paragraph(
                (x0, y + size, x1, y1), sheet.title(script, 2, 8), body, size, align=align
            )
        if rng.random() < 0.4:
            inset = (x1 - x0) * 0.12
            text = sheet.material.paragraph(rng, script, rng.randint(200, 600))
            y = sheet.paragraph(
                (x0 + inset, y + size, x1 - inset, y1), text, body, size * 0.9, align="justified"
            )
        y += size * 1.5
    gutter = size * rng.uniform(1.2, 2.5)
    width = (x1 - x0 - gutter * (columns - 1)) / columns
    for column in range(columns):
        left = x0 + column * (width + gutter)
        ends = y1 if column < columns - 1 or rng.random() < 0.6 else y + (y1 - y) * rng.random()
        flow(sheet, (left, y, left + width, ends), script, body, head, size)
    footer(sheet, body, size)


def letter(sheet: Sheet, script: str) -> None:
    """Letterhead, address, date, a few paragraphs, a signature below; often half empty."""
    rng, material = sheet.rng, sheet.material
    x0, y, x1, y1 = margins(sheet, 0.06, 0.14)
    body, head = pick_faces(sheet, script)
    size = body_size(sheet, 0.011, 0.017)
    if rng.random() < 0.7:
        marks.logo(
            sheet, rng.choice((x0, (x0 + x1) / 2, x1 - size * 5)), y, size * rng.uniform(3, 5), head
        )
        if rng.random() < 0.7:
            sheet.line(x1, y, sheet.title(script, 2, 4), head, size * 1.4, align="right")
            sheet.line(x1, y + size * 2, sheet.title(script, 3, 5), body, size * 0.8, align="right")
        y += size * 7
    for _ in range(rng.randint(2, 5)):
        sheet.line(
            x1 if body.right_to_left else x0,
            y,
            sheet.title(script, 2, 4),
            body,
            size,
            align="right" if body.right_to_left else "left",
        )
        y += size * 1.35
    sheet.line(
        x0 if body.right_to_left else x1,
        y,
        sheet.date(),
        body,
        size,
        align="left" if body.right_to_left else "right",
    )
    y += size * 3
    align = rng.choice(("natural", "natural", "justified"))
    for _ in range(rng.randint(1, 6)):
        text = material.paragraph(rng, script, rng.randint(80, 600))
        y = sheet.paragraph((x0, y, x1, y1), text, body, size, align=align, leading=1.4) + size
    if y < y1 - size * 7 and rng.random() < 0.8:
        marks.signature(sheet, rng.choice((x0, (x0 + x1) / 2)), y + size * 4, size * 9)
        sheet.line(x0, y + size * 5, sheet.title(script, 2, 3), body, size)
    if rng.random() < 0.2:
        marks.stamp(sheet, rng.uniform(x0, x1 * 0.7), min(y, y1 - size * 9), round(size * 9), head)
    footer(sheet, body, size)


def form(sheet: Sheet, script: str) -> None:
    """A form: labelled fields, check boxes, typed or handwritten entries, headed sections."""
    rng = sheet.rng
    x0, y, x1, y1 = margins(sheet, 0.04, 0.09)
    body, head = pick_faces(sheet, script)
    hand = sheet.material.face(rng, script, "hand")
    size = body_size(sheet, 0.010, 0.016)
    y = sheet.paragraph(
        (x0, y, x1, y1),
        sheet.title(script, 2, 7),
        head,
        size * 1.6,
        align=rng.choice(("centre", "natural")),
    )
    look = rng.choice(("boxes", "lines", "dots", "cells"))
    filled = rng.choice((0, 0.5, 0.9))
    by_hand = rng.random() < 0.5
    while y < y1 - size * 3:
        kind = rng.random()
        if kind < 0.1:
            sheet.frame(
                (x0, y + size * 0.5, x1, y + size * 2.1), fill=sheet.tone(rng.uniform(0.15, 0.9))
            )
            inverse = sheet.gray_at((int(x0) + 2, int(y + size)))
            light = abs(inverse - sheet.paper) < abs(inverse - sheet.ink)
            sheet.line(
                x0 + size / 2,
                y + size * 0.65,
                sheet.title(script, 1, 4),
                head,
                size,
                ink=sheet.ink if light else sheet.paper,
            )
            y += size * 2.8
        elif kind < 0.2:
            text = sheet.material.paragraph(rng, script, rng.randint(80, 300))
            y = sheet.paragraph((x0, y, x1, y1), text, body, size * 0.8) + size * 0.5
        elif kind < 0.3:
            x = x0
            while x < x1 - size * 8:
                sheet.frame((x, y + 2, x + size, y + size + 2), outline=sheet.ink)
                if rng.random() < 0.3:
                    sheet.rule(x, y + 2, x + size, y + size + 2)
                    sheet.rule(x + size, y + 2, x, y + size + 2)
                x += size * 2 + sheet.line(x + size * 1.4, y, sheet.label(script)[:18], body, size)
            y += size * 2
        else:
            y = _fields(
                sheet,
                (x0, y, x1, y1),
                script,
                (body, hand if by_hand else body),
                size,
                look,
                filled,
            )
    footer(sheet, body, size)


def _fields(
    sheet: Sheet,
    box: Box,
    script: str,
    faces: tuple[Typeface, Typeface],
    size: float,
    look: str,
    filled: float,
) -> float:
    """One row of one to four labelled fields; returns its bottom."""
    rng = sheet.rng
    x0, y, x1, _ = box
    count, pitch = rng.choice((1, 1, 2, 2, 3, 4)), size * rng.uniform(2, 3)
    width = (x1 - x0) / count
    for number in range(count):
        left, right = x0 + number * width, x0 + (number + 1) * width - size * 0.6
        label = sheet.label(script)[: max(4, int(width / size))]
        if look in ("boxes", "cells"):
            sheet.frame((left, y, right, y + pitch * 0.92), outline=sheet.tone(0.8))
            sheet.line(left + 2, y + 1, label, faces[0], size * 0.65)
            at, base = left + size * 0.6, y + pitch * 0.92 - size * 1.3
        else:
            at = (
                left
                + sheet.line(left, y + pitch - size * 1.5, label + ":", faces[0], size * 0.95)
                + 4
            )
            base = y + pitch - size * 1.5
            if look == "lines":
                sheet.rule(at, y + pitch - size * 0.2, right, y + pitch - size * 0.2, 0.8)
            else:
                sheet.dashes(at, right, y + pitch - size * 0.2)
        if rng.random() < filled:
            value = rng.choice(
                (
                    sheet.date(),
                    sheet.number(6),
                    sheet.title(script, 1, 3),
                    sheet.title(script, 1, 3),
                )
            )
            sheet.line(
                at,
                base - size * 0.1,
                value[: max(3, int((right - at) / size * 1.6))],
                faces[1],
                size * 1.1,
            )
    return y + pitch


def invoice(sheet: Sheet, script: str) -> None:
    """An invoice: two addresses, a table of items, totals on the right, small print below."""
    rng = sheet.rng
    x0, y, x1, y1 = margins(sheet, 0.05, 0.1)
    body, head = pick_faces(sheet, script)
    size = body_size(sheet, 0.010, 0.016)
    marks.logo(sheet, x0, y, size * 4, head)
    sheet.line(x1, y, sheet.title(script, 1, 2), head, size * rng.uniform(1.6, 2.6), align="right")
    y += size * 5.5
    for row in range(rng.randint(3, 5)):
        sheet.line(x0, y, sheet.title(script, 2, 4), body, size)
        sheet.line(
            x1,
            y,
            f"{sheet.label(script)}: {sheet.number(5)}" if row else sheet.date(),
            body,
            size,
            align="right",
        )
        y += size * 1.4
    y = (
        table(
            sheet,
            (x0, y + size * 2, x1, y1 - size * 10),
            script,
            body,
            size,
            rows=rng.randint(3, 18),
        )
        + size
    )
    for _ in range(rng.randint(2, 4)):
        sheet.line(x1 - size * 9, y, sheet.label(script)[:16], body, size, align="right")
        sheet.line(x1 - size * 0.4, y, sheet.amount(), body, size, align="right")
        y += size * 1.5
    text = sheet.material.paragraph(rng, script, rng.randint(100, 500))
    sheet.paragraph((x0, max(y + size * 2, y1 - size * 6), x1, y1), text, body, size * 0.75)
    if rng.random() < 0.3:
        marks.stamp(sheet, rng.uniform(x0, x1 * 0.6), y, round(size * 9), head)


def note(sheet: Sheet, script: str) -> None:
    """Handwriting on ruled, squared or plain paper."""
    rng = sheet.rng
    face = sheet.material.face(rng, script, "hand")
    x0, y, x1, y1 = margins(sheet, 0.03, 0.12)
    size = sheet.size_unit() * rng.uniform(0.018, 0.038)
    pitch = size * rng.uniform(1.15, 1.7)
    ground = rng.choice(("lines", "squares", "none", "none"))
    if ground != "none":
        step, tone = (pitch, 0.25) if ground == "lines" else (pitch / 2, 0.18)
        for k in range(int(sheet.height / step)):
            sheet.rule(0, y + size * 1.1 + k * step, sheet.width, y + size * 1.1 + k * step, tone)
        if ground == "squares":
            for k in range(int(sheet.width / step)):
                sheet.rule(k * step, 0, k * step, sheet.height, tone)
    if rng.random() < 0.4:
        sheet.line((x0 + x1) / 2, y, sheet.title(script, 1, 4), face, size * 1.3, align="centre")
        y += 2 * pitch
    ends = y + (y1 - y) * rng.uniform(0.2, 1)
    while y < ends - size:
        text = sheet.material.paragraph(rng, script, rng.choice((20, 40, 150, 300)))
        left = x0 + rng.uniform(0, size)
        y = sheet.paragraph((left, y, x1, ends), text, face, size, leading=pitch / size)
        y += rng.choice((0, pitch))
    if rng.random() < 0.3:
        marks.signature(sheet, x1 - size * 8, min(y + size * 3, y1), size * 6)


def sparse(sheet: Sheet, script: str) -> None:
    """A nearly empty page: a line or two, a heading, a label, a page number."""
    rng = sheet.rng
    body, head = pick_faces(sheet, script)
    size = body_size(sheet, 0.012, 0.03)
    x0, y, x1, y1 = margins(sheet, 0.05, 0.2)
    top = y + (y1 - y) * rng.random() ** 2 * 0.9
    text = sheet.material.paragraph(rng, script, rng.choice((15, 40, 120, 300)))
    align = rng.choice(("natural", "centre", "natural", "right"))
    sheet.paragraph((x0, top, x1, y1), text, rng.choice((body, head)), size, align=align)
    footer(sheet, body, max(size * 0.8, 8))


def poster(sheet: Sheet, script: str) -> None:
    """Covers, certificates, menus, cards: centred lines of many sizes, a frame, a picture."""
    rng = sheet.rng
    x0, y, x1, y1 = margins(sheet, 0.06, 0.14)
    if rng.random() < 0.5:
        sheet.frame(
            (x0 / 2, y / 2, sheet.width - x0 / 2, sheet.height - y / 2),
            outline=sheet.tone(0.8),
            width=rng.choice((1, 2, 4)),
        )
    align = rng.choice(("centre", "centre", "natural"))
    unit = sheet.size_unit()
    while y < y1 - unit * 0.05:
        if rng.random() < 0.2:
            height = unit * rng.uniform(0.15, 0.35)
            marks.picture(sheet, (x0, y, x1, min(y + height, y1)))
            y += height + unit * 0.02
            continue
        style = rng.choice(("serif", "sans", "hand", "old"))
        face = sheet.material.face(rng, script, style)
        size = unit * rng.choice((0.018, 0.025, 0.04, 0.07))
        y = sheet.paragraph((x0, y, x1, y1), sheet.title(script, 2, 9), face, size, align=align)
        y += unit * rng.choice((0.005, 0.02, 0.06, 0.1))


def upright_columns(sheet: Sheet, script: str) -> None:
    """Vertical Japanese and Chinese: books, letters, notices."""
    rng = sheet.rng
    if script not in VERTICAL:
        article(sheet, script)
        return
    face = sheet.material.face(rng, script, rng.choice(("any", "any", "hand")))
    box = margins(sheet, 0.05, 0.14)
    size = sheet.size_unit() * rng.uniform(0.014, 0.035)
    bands = rng.choice((1, 1, 1, 2, 3))
    height = (box[3] - box[1]) / bands
    for band in range(bands):
        top = box[1] + band * height
        text = sheet.material.paragraph(
            rng, script, int(height * (box[2] - box[0]) / size**2 * rng.uniform(0.15, 0.75))
        )
        sheet.columns_down((box[0], top, box[2], top + height - size), text, face, size)
    footer(sheet, face, size * 0.8)


# layout: (frequency, shapes of the sheet as height over width, longest side in pixels)
PAPERS: dict[Callable[[Sheet, str], None], tuple[float, tuple[float, ...]]] = {
    article: (22, (1.41, 1.41, 1.29, 1.5, 0.71)),
    letter: (8, (1.41, 1.29, 1.41)),
    form: (12, (1.41, 1.29, 0.75, 1.1)),
    invoice: (6, (1.41, 1.29)),
    receipt: (13, (1.6, 2, 2.2, 2.6, 3.2, 1.3)),
    note: (9, (1.41, 1.3, 0.75, 1, 0.6)),
    sparse: (5, (1.41, 1.3, 0.75, 0.5)),
    poster: (5, (1.41, 1.5, 1, 0.7)),
    upright_columns: (5, (1.41, 1.3, 0.75)),
    card: (4, (0.63, 0.6, 1.5)),
    plate: (9, (1.41, 1.29, 1.41, 0.75)),
}
