"""The demo on the package's pictures: rotates each, estimates the rotation, and undoes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from radialbeams.canonicalizer import Canonicalizer
from radialbeams.images import read

PICTURES = Path(__file__).parent / "pictures"
# Each picture with a model trained on its kind, and the colour that fills its corners.
SHOWN = {
    "rocket": ("general", "black"),
    "astronaut": ("ring.lfw", "black"),
    "horse": ("ring", "white"),
}
TURNS = (40, 95, 160, 215, 290, 335)
TILE, GAP, CAPTION = 144, 8, 20
INK, PAPER, ACCENT = "#1b1f24", "#ffffff", "#c2410c"


@dataclass(frozen=True)
class DemoRow:
    """One rotated picture, with the true rotation and the estimate."""

    picture: str
    model: str
    rotation: float
    estimate: float
    confidence: float
    before: Image.Image
    after: Image.Image

    @property
    def error(self) -> float:
        return abs((self.estimate - self.rotation + 180) % 360 - 180)


def rows() -> Iterator[DemoRow]:
    for name, (model, fill) in SHOWN.items():
        canonicalizer = Canonicalizer(model)
        picture = read(PICTURES / f"{name}.webp").image
        for angle in TURNS:
            before = picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor=fill)
            # Every picture is turned by the estimated angle itself, to show the estimate.
            result = canonicalizer.predict(
                before, corners="same", fill=fill, abstain=None, snap="none"
            )
            yield DemoRow(
                name,
                model,
                angle,
                result.angle_degrees,
                result.confidence or 0.0,
                before,
                result.image,
            )


def contact_sheet(rows: list[DemoRow]) -> Image.Image:
    """Two lines per picture: the input with its rotation, and the output with the estimate."""
    columns = len(TURNS)
    lines = len(rows) // columns
    width = GAP + columns * (TILE + GAP)
    height = GAP + lines * 2 * (TILE + CAPTION + GAP)
    sheet = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(sheet)
    for number, row in enumerate(rows):
        line, column = divmod(number, columns)
        x, y = GAP + column * (TILE + GAP), GAP + 2 * line * (TILE + CAPTION + GAP)
        for tile, text, colour in (
            (row.before, f"turned {row.rotation:.0f}°", INK),
            (row.after, f"found {row.estimate:.1f}°", ACCENT),
        ):
            sheet.paste(tile.resize((TILE, TILE), Image.Resampling.LANCZOS), (x, y))
            pen.rectangle((x, y, x + TILE - 1, y + TILE - 1), outline="#d0d7de")
            pen.text((x + TILE / 2, y + TILE + 3), text, fill=colour, anchor="ma", font_size=14)
            y += TILE + CAPTION + GAP
    return sheet
