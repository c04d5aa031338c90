"""Layouts of screens, light and dark: each draws one upright capture of its kind."""

from __future__ import annotations

from collections.abc import Callable

from radialbeams.training.data.documents import marks
from radialbeams.training.data.documents.blocks import table
from radialbeams.training.data.documents.material import Typeface
from radialbeams.training.data.documents.sheet import Sheet
from radialbeams.training.data.documents.widgets import Box, button, title_bar, widget_row

CODE = """\
def {0}({1}, {2}):
    if {0} is None:
        return {1}.{2}({3})
    for {1} in range({3}):
import {0}
class {0}({1}):
    self.{0} = {1}
{0} = [{1} for {1} in {2}]
# {0} {1} {2}
int {0} = {3};
    while ({0} < {3}) {{
    }}
}}
const {0} = ({1}) => {2};
return {0};
<div class="{0}">
    <p>{1} {2}</p>
</div>
SELECT {0}, {1} FROM {2};
try:
    {0}[{3}] += 1

""".splitlines()
SHELL = """\
$ {0} -{1} {2}
{0}: {1} {2} {3}
drwxr-xr-x  2 {0} {1}  {3} {2}
[{3}] {0} {1} {2}
{0}@{1}:~$ {2}
{3}  {0}  {1}
Error: {0} {1}
   {0} {1} {2} {0}

""".splitlines()


def _face(sheet: Sheet, script: str) -> Typeface:
    return sheet.material.face(sheet.rng, script, "sans")


def _words(sheet: Sheet) -> list[str]:
    words = sheet.material.words(sheet.rng, "latin", 5).lower().split() or ["x"]
    words = ["".join(c for c in word if c.isalnum()) or "x" for word in words]
    return [*(words * 3)[:3], str(sheet.rng.randrange(5000))]


def window(sheet: Sheet, script: str) -> None:
    """A program's window: title, menu or tabs, rows of controls in one to three columns."""
    rng = sheet.rng
    face = _face(sheet, script)
    size = max(8, sheet.size_unit() * rng.uniform(0.014, 0.034))
    y = 0.0
    if rng.random() < 0.8:
        y = title_bar(sheet, (0, 0, sheet.width, sheet.height), script, face, size)
    if rng.random() < 0.35:
        x = size * 0.6
        for _ in range(rng.randint(2, 7)):
            x += sheet.line(x, y + size * 0.3, sheet.label(script)[:9], face, size) + size
        y += size * 1.9
        sheet.rule(0, y, sheet.width, y, 0.3)
    y += size * 0.8
    columns = rng.choices((1, 2, 3), (60, 30, 10))[0]
    width = sheet.width / columns
    bottom = sheet.height - size * 3.2
    for column in range(columns):
        at = y
        while at < bottom - size * 2:
            box = (column * width + size * 0.8, at, (column + 1) * width - size * 0.8, bottom)
            part = rng.random()
            if part < 0.06:
                marks.chart(
                    sheet, (box[0], at, box[2], min(at + size * 14, bottom)), face, size * 0.8
                )
                at += size * 15
            elif part < 0.12:
                at = table(sheet, box, script, face, size * 0.9, rows=rng.randint(4, 12)) + size
            elif part < 0.18:
                marks.picture(sheet, (box[0], at, box[2], min(at + size * 10, bottom)))
                at += size * 11
            else:
                at = widget_row(sheet, box, script, face, size)
            if rng.random() < 0.04:
                break
    x = rng.choice((size, sheet.width * 0.5))
    for _ in range(rng.randint(0, 4)):
        if x < sheet.width - size * 7:
            x = (
                button(sheet, x, sheet.height - size * 2.6, sheet.label(script)[:10], face, size)
                + size
            )
    if rng.random() < 0.3:
        sheet.rule(0, sheet.height - size * 0.4, sheet.width, sheet.height - size * 0.4, 0.3)


def editor(sheet: Sheet, script: str) -> None:
    """Source code with line numbers, or a terminal."""
    rng = sheet.rng
    face = sheet.material.face(rng, "latin", "mono")
    size = max(8, sheet.size_unit() * rng.uniform(0.011, 0.025))
    y = size * 0.5
    if rng.random() < 0.6:
        y = title_bar(sheet, (0, 0, sheet.width, sheet.height), script, face, size) + size * 0.4
    shell, numbers = rng.random() < 0.4, rng.random() < 0.6
    left = size * (3.5 if numbers and not shell else 0.6)
    ends = sheet.height * rng.choice((0.3, 0.6, 1, 1, 1))
    indent, row = 0, 1
    while y < ends - size * 1.5:
        text = rng.choice(SHELL if shell else CODE).format(*_words(sheet))
        indent = max(0, min(6, indent + rng.choice((-1, 0, 0, 0, 1))))
        if numbers and not shell:
            sheet.line(size * 2.8, y, str(row), face, size, align="right", ink=sheet.tone(0.45))
        room = int((sheet.width - left) / (size * 0.6))
        text = (text if shell else "    " * indent + text)[:room]
        sheet.line(left, y, text, face, size, ink=sheet.tone(rng.choice((1, 1, 0.8, 0.6))))
        y += size * 1.3
        row += 1


def spreadsheet(sheet: Sheet, script: str) -> None:
    """A spreadsheet: lettered columns, numbered rows, cells mostly filled from the top left."""
    rng = sheet.rng
    face = _face(sheet, script)
    size = max(8, sheet.size_unit() * rng.uniform(0.012, 0.022))
    y = (
        title_bar(sheet, (0, 0, sheet.width, sheet.height), script, face, size)
        if rng.random() < 0.6
        else 0.0
    )
    if rng.random() < 0.6:
        for k in range(rng.randint(4, 14)):
            x = size * (0.6 + 2 * k)
            sheet.frame(
                (x, y + size * 0.4, x + size * 1.2, y + size * 1.6),
                fill=sheet.tone(rng.uniform(0.1, 0.6)),
            )
        y += size * 2.2
    pitch, wide, head = size * rng.uniform(1.4, 1.9), size * rng.uniform(4.5, 9), size * 2.2
    sheet.frame((0, y, sheet.width, y + pitch), fill=sheet.tone(0.1))
    sheet.frame((0, y, head, sheet.height), fill=sheet.tone(0.1))
    columns, rows = int((sheet.width - head) / wide) + 1, int((sheet.height - y) / pitch)
    used, filled = rng.randint(1, columns), rng.randint(2, max(3, rows))
    numeric = [rng.random() < 0.6 for _ in range(columns)]
    for column in range(columns):
        x = head + column * wide
        sheet.rule(x, y, x, sheet.height, 0.25)
        sheet.line(x + wide / 2, y + 1, chr(65 + column % 26), face, size, align="centre")
    for row in range(1, rows):
        top = y + row * pitch
        sheet.rule(0, top, sheet.width, top, 0.25)
        sheet.line(head - 3, top + 1, str(row), face, size * 0.9, align="right")
        if row > filled:
            continue
        for column in range(used):
            x, right = head + column * wide, numeric[column] and row > 1
            text = sheet.amount() if right else sheet.label(script)[: int(wide / size * 1.6)]
            if rng.random() < 0.9:
                sheet.line(
                    x + wide - 3 if right else x + 3,
                    top + 1,
                    text,
                    face,
                    size,
                    align="right" if right else "left",
                )


def web(sheet: Sheet, script: str) -> None:
    """A bar with links, a banner, cards or an article, a footer."""
    rng = sheet.rng
    face = _face(sheet, script)
    size = max(8, sheet.size_unit() * rng.uniform(0.013, 0.024))
    y = _address_bar(sheet, script, face, size) if rng.random() < 0.5 else 0.0
    y = _links(sheet, y, script, face, size)
    if rng.random() < 0.6:
        y = _banner(sheet, y, script, face, size)
    columns = rng.choice((1, 2, 3, 3, 4))
    width = (sheet.width - size) / columns
    while y < sheet.height - size * 5:
        height = size * rng.uniform(9, 20)
        for column in range(columns):
            left = size + column * width
            box = (left, y, left + width - size, min(y + height, sheet.height))
            _card(sheet, box, height, script, face, size)
        y += height + size


def _address_bar(sheet: Sheet, script: str, face: Typeface, size: float) -> float:
    """The window's title and an address; returns their bottom."""
    y = title_bar(sheet, (0, 0, sheet.width, sheet.height), script, face, size)
    place = (size * 4, y + size * 0.3, sheet.width - size * 3, y + size * 1.9)
    sheet.frame(place, fill=sheet.tone(0.08), radius=5)
    address = "https://" + ".".join(_words(sheet)[:2]) + ".org"
    sheet.line(size * 5, y + size * 0.5, address, face, size * 0.9)
    return y + size * 2.3


def _links(sheet: Sheet, y: float, script: str, face: Typeface, size: float) -> float:
    """The site's name and as many links as fit; returns their bottom."""
    shade = sheet.rng.choice((0.05, 0.3, 0.85))
    sheet.frame((0, y, sheet.width, y + size * 2.6), fill=sheet.tone(shade))
    ink = sheet.paper if shade > 0.5 else sheet.ink
    name = sheet.label(script)[:12]
    x = size + sheet.line(size, y + size * 0.5, name, face, size * 1.4, ink=ink) + size * 3
    while x < sheet.width - size * 6:
        link = sheet.label(script)[:10]
        x += sheet.line(x, y + size * 0.8, link, face, size, ink=ink) + size * 1.5
    return y + size * 3.2


def _banner(sheet: Sheet, y: float, script: str, face: Typeface, size: float) -> float:
    rng = sheet.rng
    bottom = y + size * rng.uniform(7, 14)
    sheet.frame((0, y, sheet.width, bottom), fill=sheet.tone(rng.uniform(0.05, 0.35)))
    box = (size * 2, y + size * 1.5, sheet.width * 0.7, bottom)
    at = sheet.paragraph(box, sheet.title(script, 3, 9), face, size * 2)
    box = (size * 2, at, sheet.width * 0.6, bottom)
    sheet.paragraph(box, sheet.material.paragraph(rng, script, 120), face, size)
    return bottom + size


def _card(sheet: Sheet, box: Box, height: float, script: str, face: Typeface, size: float) -> None:
    """A title over text, often with a picture above."""
    left, top, right, bottom = box
    at = top
    if sheet.rng.random() < 0.6:
        at = top + height * 0.45
        marks.picture(sheet, (left, top, right, at))
    title = sheet.title(script, 2, 6)
    at = sheet.paragraph((left, at + 3, right, bottom), title, face, size * 1.25)
    text = sheet.material.paragraph(sheet.rng, script, 220)
    sheet.paragraph((left, at, right, bottom), text, face, size, ink=sheet.tone(0.75))


def slide(sheet: Sheet, script: str) -> None:
    """A title over points, pictures or a chart."""
    rng = sheet.rng
    face = sheet.material.face(rng, script, rng.choice(("sans", "sans", "serif")))
    unit = sheet.height
    x0, x1, y = sheet.width * 0.06, sheet.width * 0.94, unit * 0.06
    if rng.random() < 0.3:
        sheet.frame((0, 0, sheet.width, unit * 0.18), fill=sheet.tone(rng.uniform(0.1, 0.4)))
    align = rng.choice(("natural", "centre"))
    if rng.random() < 0.15:
        y = unit * 0.35
    y = sheet.paragraph(
        (x0, y, x1, unit),
        sheet.title(script, 2, 8),
        face,
        unit * rng.uniform(0.055, 0.09),
        align=align,
    )
    y, size = y + unit * 0.05, unit * rng.uniform(0.03, 0.05)
    right = x1
    if rng.random() < 0.5:
        right = sheet.width * 0.5
        box = (right + size, y, x1, unit * 0.88)
        if rng.random() < 0.5:
            marks.chart(sheet, box, face, size * 0.6)
        else:
            marks.picture(sheet, box)
    for _ in range(rng.randint(0, 7)):
        depth = rng.choice((0, 0, 0, 1))
        left = x0 + size * 1.6 * depth
        if y > unit * 0.85:
            break
        if not face.right_to_left:
            sheet.line(left, y, rng.choice("•–▪"), face, size)
        y = sheet.paragraph(
            (left + size, y, right, unit * 0.9),
            sheet.material.paragraph(rng, script, rng.randint(15, 110)),
            face,
            size * (0.85 if depth else 1),
        )
        y += size * 0.5
    sheet.line(x1, unit * 0.94, sheet.number(2), face, unit * 0.028, align="right")
    sheet.line(x0, unit * 0.94, sheet.label(script), face, unit * 0.028)


def phone(sheet: Sheet, script: str) -> None:
    """A phone: clock on top, a header, a list or a chat, icons at the bottom."""
    rng = sheet.rng
    face = _face(sheet, script)
    size = sheet.width * rng.uniform(0.036, 0.05)
    sheet.line(size, size * 0.4, f"{rng.randint(0, 23)}:{rng.randint(0, 59):02}", face, size * 0.9)
    sheet.frame(
        (sheet.width - size * 2.5, size * 0.5, sheet.width - size, size * 1.2), outline=sheet.ink
    )
    y = size * 2
    x = size * 2.5 if rng.random() < 0.5 else size
    sheet.line(x, y + size * 0.4, sheet.title(script, 1, 3)[:18], face, size * 1.4)
    y += size * 3
    draw = _message if rng.random() < 0.4 else _contact
    while y < sheet.height - size * 7:
        y = draw(sheet, y, script, face, size)
    for k in range(4):
        x = sheet.width * (k + 0.5) / 4
        sheet.frame(
            (x - size * 0.7, sheet.height - size * 3.4, x + size * 0.7, sheet.height - size * 2),
            fill=sheet.tone(0.5),
            radius=4,
        )
        sheet.line(
            x, sheet.height - size * 1.8, sheet.label(script)[:9], face, size * 0.7, align="centre"
        )


def _message(sheet: Sheet, y: float, script: str, face: Typeface, size: float) -> float:
    """A chat bubble on the left or on the right; returns the top of the next one."""
    rng = sheet.rng
    is_own = rng.random() < 0.5
    width = sheet.width * rng.uniform(0.35, 0.72)
    x = sheet.width - width - size if is_own else size
    text = sheet.material.paragraph(rng, script, rng.randint(10, 140))
    lines = len(sheet.wrap(text, face, size, (width - size) * 0.98))
    height = size * (1.3 * lines + 0.9)
    fill = sheet.tone(0.6 if is_own else 0.12)
    sheet.frame((x, y, x + width, y + height), fill=fill, radius=size * 0.6)
    box = (x + size / 2, y + size * 0.4, x + width, y + height + size)
    sheet.paragraph(box, text, face, size, ink=sheet.paper if is_own else sheet.ink)
    return y + height + size * 0.6


def _contact(sheet: Sheet, y: float, script: str, face: Typeface, size: float) -> float:
    """A line of a list: a disc, a name, a note; returns the top of the next one."""
    disc = (size, y, size * 3.4, y + size * 2.4)
    sheet.draw.ellipse(disc, fill=sheet.tone(sheet.rng.uniform(0.15, 0.7)))
    sheet.line(size * 4, y, sheet.title(script, 1, 3)[:22], face, size * 1.05)
    note = sheet.title(script, 3, 7)[:34]
    sheet.line(size * 4, y + size * 1.3, note, face, size * 0.85, ink=sheet.tone(0.6))
    y += size * 3.4
    sheet.rule(size * 4, y - size * 0.4, sheet.width, y - size * 0.4, 0.15)
    return y


def plot(sheet: Sheet, script: str) -> None:
    """A single figure, or a few in a grid."""
    rng = sheet.rng
    face = _face(sheet, script)
    across, down = rng.choice(((1, 1), (1, 1), (2, 1), (1, 2), (2, 2)))
    size = max(7, sheet.size_unit() * rng.uniform(0.014, 0.028) / max(across, down) ** 0.5)
    width, height = sheet.width / across, sheet.height / down
    for k in range(across * down):
        x, y = (k % across) * width, (k // across) * height
        box = (x + size, y + size, x + width - size, y + height - size)
        marks.chart(sheet, box, face, size)


# layout: (frequency, shapes of the screen as height over width)
SCREENS: dict[Callable[[Sheet, str], None], tuple[float, tuple[float, ...]]] = {
    window: (14, (0.5, 0.62, 0.75, 1, 1.3, 0.3)),
    editor: (6, (0.56, 0.7, 1, 1.4)),
    spreadsheet: (4, (0.56, 0.7)),
    web: (6, (0.56, 0.65, 1, 1.6)),
    slide: (4, (0.5625, 0.75)),
    phone: (4, (1.8, 2.1)),
    plot: (3, (0.75, 0.62, 1)),
}
