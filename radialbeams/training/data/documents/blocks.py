"""Blocks shared by several layouts: columns of mixed content, lists, tables, footers."""

from __future__ import annotations

from radialbeams.training.data.documents import marks
from radialbeams.training.data.documents.material import Typeface
from radialbeams.training.data.documents.sheet import Sheet

Box = tuple[float, float, float, float]


def margins(sheet: Sheet, least: float = 0.04, most: float = 0.14) -> Box:
    side = sheet.width * sheet.rng.uniform(least, most)
    top = sheet.height * sheet.rng.uniform(least, most)
    bottom = sheet.height * (1 - sheet.rng.uniform(least, most))
    return side, top, sheet.width - side, bottom


def body_size(sheet: Sheet, least: float = 0.0105, most: float = 0.019) -> float:
    """The size of the body text, from fine print on A4 to large print."""
    return max(7, max(sheet.size_unit() * sheet.rng.uniform(least, most), 7))


def pick_faces(sheet: Sheet, script: str) -> tuple[Typeface, Typeface]:
    """Faces for the body and the headings."""
    style = sheet.rng.choices(("serif", "sans", "mono", "old", "ocr"), (45, 38, 8, 7, 2))[0]
    body = sheet.material.face(sheet.rng, script, style)
    if sheet.rng.random() < 0.5:
        return body, body
    return body, sheet.material.face(sheet.rng, script, sheet.rng.choice(("sans", "serif")))


def footer(sheet: Sheet, face: Typeface, size: float) -> None:
    rng = sheet.rng
    if rng.random() < 0.55:
        x = rng.choice((0.5, 0.5, 0.1, 0.9)) * sheet.width
        text = rng.choice(
            (sheet.number(2), f"– {sheet.number(2)} –", f"{sheet.number(1)} / {sheet.number(2)}")
        )
        place = sheet.height * (0.965 if rng.random() < 0.8 else 0.02)
        sheet.line(x, place - size, text, face, size * 0.9, align="centre")
    if rng.random() < 0.25:
        text = sheet.title(face.script, 3, 8)
        sheet.line(sheet.width / 2, sheet.height * 0.015, text, face, size * 0.85, align="centre")


def flow(sheet: Sheet, box: Box, script: str, body: Typeface, head: Typeface, size: float) -> None:
    """Paragraphs, headings, lists, pictures and small tables down a column."""
    rng, material = sheet.rng, sheet.material
    x0, y, x1, y1 = box
    align = rng.choices(("natural", "justified", "centre"), (48, 48, 4))[0]
    leading = rng.uniform(1.15, 1.75)
    indent = rng.choice((0, 0, size * 1.5))
    gap = rng.choice((0, size * 0.5, size))
    formulas = rng.random() < 0.3
    while y < y1 - size * 2:
        kind = rng.random()
        if kind < 0.13 and y < y1 - size * 6:
            big = size * rng.uniform(1.05, 1.7)
            y = sheet.paragraph((x0, y + size * 0.6, x1, y1), sheet.title(script), head, big)
            y += size * 0.4
        elif kind < 0.20:
            y = bullets(sheet, (x0, y, x1, y1), script, body, size) + gap
        elif kind < 0.25 and y < y1 - size * 14:
            height = size * rng.uniform(8, 16)
            part = (x0, y + size, x1, min(y + height, y1))
            if rng.random() < 0.5:
                marks.picture(sheet, part)
            else:
                marks.chart(sheet, part, body, size * 0.8)
            caption = material.paragraph(rng, script, rng.randint(20, 140))
            y = (
                sheet.paragraph((x0, part[3] + size * 0.4, x1, y1), caption, body, size * 0.85)
                + size
            )
        elif formulas and kind < 0.5 and y < y1 - size * 5:
            y = equation(sheet, (x0, y + size * 0.5, x1, y1), body, size) + size * 0.5
        elif kind < 0.29 and y < y1 - size * 10:
            y = (
                table(
                    sheet, (x0, y + size, x1, y1), script, body, size * 0.9, rows=rng.randint(3, 8)
                )
                + size
            )
        elif kind < 0.32:
            name, variable = rng.choice("fghxyz"), rng.choice("xytn")
            formula = f"{name}({variable}) = {rng.choice('abcαβ')}{variable} + {sheet.number(2)}"
            sheet.line((x0 + x1) / 2, y + size * 0.5, formula, body, size, align="centre")
            y += size * 2.5
        else:
            text = material.paragraph(
                rng, script, int(rng.choice((60, 150, 300, 600, 900)) * rng.uniform(0.6, 1.4))
            )
            y = (
                sheet.paragraph(
                    (x0, y, x1, y1), text, body, size, align=align, leading=leading, indent=indent
                )
                + gap
            )


def bullets(sheet: Sheet, box: Box, script: str, face: Typeface, size: float) -> float:
    rng = sheet.rng
    x0, y, x1, y1 = box
    mark = rng.choice(("•", "–", "1.", "a)", "☐", "*"))
    for number in range(rng.randint(2, 7)):
        sign = f"{number + 1}." if mark == "1." else mark
        text = sheet.material.paragraph(rng, script, rng.randint(15, 120))
        if face.right_to_left:
            sheet.line(x1, y, sign, face, size, align="right")
            y = sheet.paragraph((x0, y, x1 - size * 2, y1), text, face, size)
        else:
            sheet.line(x0 + size * 0.4, y, sign, face, size)
            y = sheet.paragraph((x0 + size * 2, y, x1, y1), text, face, size)
    return y


def table(
    sheet: Sheet, box: Box, script: str, face: Typeface, size: float, *, rows: int | None = None
) -> float:
    """A table of words on the left and numbers on the right, in any style; returns its bottom."""
    rng = sheet.rng
    x0, y0, x1, y1 = box
    columns, pitch = rng.randint(2, 6), size * rng.uniform(1.4, 2.3)
    count = min(rows or rng.randint(4, 30), int((y1 - y0) / pitch))
    if count < 2:
        return y0
    shares = [rng.uniform(0.6, 1.2) + (1.2 if k == 0 else 0) for k in range(columns)]
    edges = [x0]
    for share in shares:
        edges.append(edges[-1] + (x1 - x0) * share / sum(shares))
    look = rng.choice(("grid", "rules", "plain", "bands", "booktabs"))
    numeric = [False] + [rng.random() < 0.65 for _ in range(columns - 1)]
    for row in range(count):
        y = y0 + row * pitch
        if look == "bands" and row % 2:
            sheet.frame((x0, y, x1, y + pitch), fill=sheet.tone(0.1))
        if row == 0 and look in ("grid", "bands") and rng.random() < 0.5:
            sheet.frame((x0, y, x1, y + pitch), fill=sheet.tone(0.22))
        for column in range(columns):
            right = numeric[column] and row > 0
            text = sheet.amount() if right else sheet.label(script)
            room = int((edges[column + 1] - edges[column]) / (size * 0.55))
            at = edges[column + 1] - size * 0.4 if right else edges[column] + size * 0.4
            if rng.random() < 0.93:
                sheet.line(
                    at,
                    y + (pitch - size * 1.2) / 2,
                    text[: max(room, 3)],
                    face,
                    size,
                    align="right" if right else "left",
                )
        if look in ("grid", "rules") or (look == "booktabs" and row in (0, 1)):
            sheet.rule(x0, y, x1, y, 0.7)
    bottom = y0 + count * pitch
    if look != "plain":
        sheet.rule(x0, bottom, x1, bottom)
    if look == "grid":
        for edge in edges:
            sheet.rule(edge, y0, edge, bottom, 0.7)
    return bottom


SYMBOLS = "αβγδεζθλμνξπρστφχψωΓΔΘΛΣΦΨΩ"


def equation(sheet: Sheet, box: Box, face: Typeface, size: float) -> float:
    """A displayed formula: symbols with indices, fractions, and an equation number."""
    rng = sheet.rng
    x0, y, x1, _ = box
    middle = y + size * 1.4
    letters = "abcdfghijkmnpqrstuvwxyzABCDEFGHKLMNPQRSTXZ" + (
        SYMBOLS if face.script in ("latin", "greek") else ""
    )
    serif = sheet.material.face(rng, "latin", "serif")
    x = x0 + (x1 - x0) * rng.uniform(0.05, 0.3)
    ends = x + (x1 - x) * rng.uniform(0.3, 0.85)
    while x < ends:
        kind = rng.random()
        if kind < 0.2:
            x = _fraction(sheet, x, middle, letters, serif, size)
        else:
            x += sheet.line(x, middle - size * 0.6, rng.choice(letters), serif, size)
            if kind < 0.6:
                raised = rng.choice((-0.8, 0.0))
                place = middle + size * raised
                x += sheet.line(x, place, rng.choice(letters + "0123"), serif, size * 0.65)
        if rng.random() < 0.5:
            x += size * 0.25 + sheet.line(
                x + size * 0.25, middle - size * 0.6, rng.choice("=+-()<,|"), serif, size
            )
        x += size * 0.2
    if rng.random() < 0.7:
        number = f"({sheet.number(2)})" if rng.random() < 0.6 else f"({sheet.number(1)}.1)"
        sheet.line(x1, middle - size * 0.6, number, serif, size, align="right")
    return middle + size * 1.6


def _fraction(
    sheet: Sheet, x: float, middle: float, letters: str, face: Typeface, size: float
) -> float:
    """Returns its right end."""
    over, under = ("".join(sheet.rng.choices(letters, k=sheet.rng.randint(1, 5))) for _ in range(2))
    width = max(face.at(size * 0.9).getlength(part) for part in (over, under)) + size * 0.3
    sheet.line(x + width / 2, middle - size * 1.2, over, face, size * 0.9, align="centre")
    sheet.line(x + width / 2, middle + size * 0.1, under, face, size * 0.9, align="centre")
    sheet.rule(x, middle, x + width, middle)
    return float(x + width)
