"""A sheet to draw on: gray pixels, a palette, and blocks of text that return where they end.

All lengths are pixels of the upright page; y grows downwards.
"""

from __future__ import annotations

from random import Random

from PIL import Image, ImageDraw

from radialbeams.training.data.documents.material import WITHOUT_SPACES, Material, Typeface


class Sheet:
    """An upright page that is being drawn."""

    def __init__(
        self, material: Material, rng: Random, size: tuple[int, int], paper: int, ink: int
    ) -> None:
        self.material, self.rng = material, rng
        self.width, self.height = size
        self.paper, self.ink = paper, ink
        self.image = Image.new("L", size, paper)
        self.draw = ImageDraw.Draw(self.image)

    def tone(self, share: float) -> int:
        """A gray between paper (0) and ink (1)."""
        return round(self.paper + (self.ink - self.paper) * share)

    def size_unit(self) -> float:
        """The longest side of an A4 page as wide as this sheet, or the sheet's own if shorter."""
        return min(max(self.width, self.height), 1.41 * self.width, 1.41 * self.height * 1.6)

    def gray_at(self, place: tuple[int, int]) -> int:
        gray = self.image.getpixel(place)
        return gray if isinstance(gray, int) else self.paper

    # --- text ---

    def line(
        self,
        x: float,
        y: float,
        text: str,
        face: Typeface,
        size: float,
        *,
        align: str = "left",
        ink: int | None = None,
    ) -> float:
        """One line with its top at y and x at its left, centre or right; returns its length."""
        font = face.at(size)
        length = font.getlength(text)
        left = {"left": x, "centre": x - length / 2, "right": x - length}[align]
        self.draw.text((left, y), text, font=font, fill=self.ink if ink is None else ink)
        return float(length)

    def wrap(self, text: str, face: Typeface, size: float, width: float) -> list[str]:
        """Lines of at most about `width`, broken by the mean width of a letter."""
        per_letter = max(face.at(size).getlength(text[:80]) / max(len(text[:80]), 1), 1)
        room = max(4, int(width / per_letter))
        if face.script in WITHOUT_SPACES:
            return [text[at : at + room] for at in range(0, len(text), room)]
        lines, current = [], ""
        for word in text.split():
            if current and len(current) + 1 + len(word) > room:
                lines.append(current)
                current = word
            else:
                current = f"{current} {word}" if current else word
        return [*lines, current] if current else lines

    def paragraph(
        self,
        box: tuple[float, float, float, float],
        text: str,
        face: Typeface,
        size: float,
        *,
        align: str = "natural",
        leading: float = 1.3,
        indent: float = 0,
        ink: int | None = None,
    ) -> float:
        """Text in a box (left, top, right, bottom), cut at the bottom; returns where it ends.

        `align` is natural (ragged at the end of the lines), justified, centre, left or right.
        """
        left, y, right, bottom = box
        lines = self.wrap(text, face, size, (right - left) * 0.98)
        for number, line in enumerate(lines):
            if y + size * 1.2 > bottom:
                break
            start = left + (indent if number == 0 else 0)
            if align == "justified" and number < len(lines) - 1:
                self._justified(start, right, y, line, face, size, ink)
            elif align == "centre":
                self.line((left + right) / 2, y, line, face, size, align="centre", ink=ink)
            elif align == "right" or (align in ("natural", "justified") and face.right_to_left):
                at = right - (indent if number == 0 else 0)
                self.line(at, y, line, face, size, align="right", ink=ink)
            else:
                self.line(start, y, line, face, size, ink=ink)
            y += size * leading
        return y

    def _justified(
        self,
        left: float,
        right: float,
        y: float,
        line: str,
        face: Typeface,
        size: float,
        ink: int | None,
    ) -> None:
        font, fill = face.at(size), self.ink if ink is None else ink
        pieces = list(line) if face.script in WITHOUT_SPACES else line.split()
        lengths = [font.getlength(piece) for piece in pieces]
        gap = (right - left - sum(lengths)) / max(len(pieces) - 1, 1)
        x = right if face.right_to_left else left
        for piece, length in zip(pieces, lengths, strict=True):
            at = x - length if face.right_to_left else x
            self.draw.text((at, y), piece, font=font, fill=fill)
            x += (-1 if face.right_to_left else 1) * (length + gap)

    def columns_down(
        self, box: tuple[float, float, float, float], text: str, face: Typeface, size: float
    ) -> None:
        """Vertical writing: letters downwards, columns from right to left."""
        left, top, right, bottom = box
        font = face.at(size)
        pitch, step = size * self.rng.uniform(1.35, 1.9), size * self.rng.uniform(1.0, 1.08)
        x, y = right - size, top
        for letter in text:
            if letter == " " or y + size > bottom:
                y += size * 0.5
                if y + size > bottom:
                    x, y = x - pitch, top
                if x < left:
                    return
                continue
            self.draw.text((x, y), letter, font=font, fill=self.ink)
            y += step

    # --- words from the material ---

    def title(self, script: str, least: int = 2, most: int = 7) -> str:
        text = self.material.words(self.rng, script, self.rng.randint(least, most))
        return text.upper() if self.rng.random() < 0.2 else text[:1].upper() + text[1:]

    def label(self, script: str) -> str:
        return self.title(script, 1, 3)

    def number(self, digits: int = 4) -> str:
        return str(self.rng.randrange(10**digits))

    def amount(self) -> str:
        value = self.rng.choice((9, 99, 999, 9999)) * self.rng.random()
        return f"{value:,.2f}" if self.rng.random() < 0.8 else f"{value:.0f}"

    def date(self) -> str:
        rng = self.rng
        day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1950, 2030)
        return rng.choice(
            (
                f"{day:02}.{month:02}.{year}",
                f"{year}-{month:02}-{day:02}",
                f"{month}/{day}/{year % 100:02}",
            )
        )

    # --- shapes ---

    def rule(
        self, x0: float, y0: float, x1: float, y1: float, tone: float = 1, width: int = 1
    ) -> None:
        self.draw.line((x0, y0, x1, y1), fill=self.tone(tone), width=width)

    def frame(
        self,
        box: tuple[float, float, float, float],
        *,
        fill: int | None = None,
        outline: int | None = None,
        radius: float = 0,
        width: int = 1,
    ) -> None:
        x0, y0, x1, y1 = box
        if x1 <= x0 or y1 <= y0:
            return
        radius = min(radius, (x1 - x0) / 2 - 1, (y1 - y0) / 2 - 1)
        if radius >= 1:
            self.draw.rounded_rectangle(box, radius, fill=fill, outline=outline, width=width)
        else:
            self.draw.rectangle(box, fill=fill, outline=outline, width=width)

    def dashes(self, x0: float, x1: float, y: float, pattern: int = 4) -> None:
        x = x0
        while x < x1:
            self.draw.line((x, y, min(x + pattern / 2, x1), y), fill=self.ink)
            x += pattern

    def paste(self, picture: Image.Image, x: float, y: float) -> None:
        """A picture in gray, or in gray and alpha, with its left top corner at (x, y)."""
        mask = picture.getchannel("A") if picture.mode == "LA" else None
        self.image.paste(picture.convert("L"), (round(x), round(y)), mask)
