"""The main job on pictures inside the package: turn each, find the turn, turn it back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from radialbeams.canonicalizer import Canonicalizer
from radialbeams.images import open_rgb

PICTURES = Path(__file__).parent / "pictures"
MODEL = "bic.coil100"  # the one that knows most about these two pictures
TURNS = (40, 95, 160, 215, 290, 335)
TILE, GAP, CAPTION = 144, 8, 20
INK, PAPER, ACCENT = "#1b1f24", "#ffffff", "#c2410c"


@dataclass(frozen=True)
class Row:
    """One turned picture: how far it was turned, and how far the model says."""

    picture: str
    turned: float
    found: float
    before: Image.Image
    after: Image.Image

    @property
    def error(self) -> float:
        return abs((self.found - self.turned + 180) % 360 - 180)


def rows() -> Iterator[Row]:
    canonicalizer = Canonicalizer(MODEL)
    for path in sorted(PICTURES.glob("*.webp")):
        canvas = _on_canvas(open_rgb(path))
        for angle in TURNS:
            before = canvas.rotate(angle, Image.Resampling.BICUBIC)
            result = canonicalizer.predict(before)
            yield Row(path.stem, angle, result.angle_degrees, before, result.image)


def _on_canvas(picture: Image.Image) -> Image.Image:
    """Wide enough that no corner is lost at any turn, as in the paper."""
    side = round(picture.width * 2**0.5)
    canvas = Image.new("RGB", (side, side))
    canvas.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return canvas


def contact_sheet(found: list[Row]) -> Image.Image:
    """Two lines per picture: as it came, with its turn; and as it goes, with the answer."""
    columns = len(TURNS)
    lines = len(found) // columns
    width = GAP + columns * (TILE + GAP)
    height = GAP + lines * 2 * (TILE + CAPTION + GAP)
    sheet = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(sheet)
    for number, row in enumerate(found):
        line, column = divmod(number, columns)
        x, y = GAP + column * (TILE + GAP), GAP + 2 * line * (TILE + CAPTION + GAP)
        for tile, text, colour in (
            (row.before, f"turned {row.turned:.0f}°", INK),
            (row.after, f"found {row.found:.1f}°", ACCENT),
        ):
            sheet.paste(tile.resize((TILE, TILE), Image.Resampling.LANCZOS), (x, y))
            pen.text((x + TILE / 2, y + TILE + 3), text, fill=colour, anchor="ma", font_size=14)
            y += TILE + CAPTION + GAP
    return sheet
