"""The material of pages: typefaces by script and style, texts by script, drawings.

tools/documents/material.py writes the folder: fonts/STYLE or fonts/STYLE-SCRIPT, texts/SCRIPT.txt
with one paragraph per line, drawings/*.png in gray and alpha. photos/*.jpg may hold upright photos
for figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

from PIL import Image, ImageFont, features

EUROPEAN = ("latin", "cyrillic", "greek")
RIGHT_TO_LEFT = ("arabic", "hebrew")
VERTICAL = ("japanese", "chinese")
WITHOUT_SPACES = ("japanese", "chinese", "thai")
# Scripts whose letters depend on their neighbours in shape and position: these need Raqm.
SHAPED = ("arabic", "hebrew", "devanagari", "bengali", "tamil", "thai")
STYLES = ("sans", "serif", "mono", "hand", "old", "ocr")
# How often a page is written in each script; Latin has the most layouts.
SCRIPT_WEIGHTS = {
    "latin": 52,
    "cyrillic": 7,
    "greek": 3,
    "arabic": 6,
    "hebrew": 4,
    "devanagari": 4,
    "bengali": 1.5,
    "tamil": 1.5,
    "thai": 4,
    "georgian": 1,
    "armenian": 1,
    "japanese": 6,
    "chinese": 6,
    "korean": 5,
}


@lru_cache(maxsize=600)
def _open_font(path: str, size: int, raqm: bool) -> ImageFont.FreeTypeFont:
    engine = ImageFont.Layout.RAQM if raqm else ImageFont.Layout.BASIC
    return ImageFont.truetype(path, size, layout_engine=engine)


@dataclass(frozen=True)
class Typeface:
    """One font file as used for one script."""

    path: str
    script: str

    def at(self, size: float) -> ImageFont.FreeTypeFont:
        return _open_font(self.path, max(5, round(size)), self.script in SHAPED)

    @property
    def right_to_left(self) -> bool:
        return self.script in RIGHT_TO_LEFT


class Material:
    """Typefaces, texts and drawings of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.texts = _read_texts(folder / "texts")
        self.faces = _find_faces(folder / "fonts")
        self.drawings = sorted(str(path) for path in (folder / "drawings").glob("*.png"))
        self.photos = sorted(str(path) for path in (folder / "photos").rglob("*.jpg"))
        shaping = features.check("raqm")
        self.scripts = [
            script
            for script in SCRIPT_WEIGHTS
            if script in self.texts
            and any(s == script for s, _ in self.faces)
            and (shaping or script not in SHAPED)
        ]
        if not self.scripts:
            raise ValueError(
                f"Expected fonts/STYLE/*.ttf and texts/SCRIPT.txt in {folder}; found no script "
                "with both. Make them with tools/documents/material.py."
            )

    def script(self, rng: Random) -> str:
        weights = [SCRIPT_WEIGHTS[script] for script in self.scripts]
        return rng.choices(self.scripts, weights)[0]

    def face(self, rng: Random, script: str, style: str) -> Typeface:
        """A typeface of the style, or any of the script if it has no such style."""
        paths = self.faces.get((script, style)) or self.faces.get((script, "any"))
        if not paths:
            choices = [paths for (s, _), paths in self.faces.items() if s == script]
            paths = rng.choice(choices)
        return Typeface(rng.choice(paths), script)

    def paragraph(self, rng: Random, script: str, characters: int) -> str:
        """Running text of about that many characters."""
        text = rng.choice(self.texts[script])
        while len(text) < characters:
            text += " " + rng.choice(self.texts[script])
        if len(text) <= characters:
            return text
        if script in WITHOUT_SPACES:
            return text[:characters]
        cut = text.rfind(" ", 0, characters)
        return text[: cut if cut > 0 else characters]

    def words(self, rng: Random, script: str, count: int) -> str:
        """A few neighbouring words, as in a label or a title."""
        text = self.paragraph(rng, script, 60)
        if script in WITHOUT_SPACES:
            at = rng.randrange(max(1, len(text) - 4 * count))
            return text[at : at + 4 * count].strip(" ,.;:") or text[: 2 * count]
        parts = text.split()
        at = rng.randrange(max(1, len(parts) - count))
        return " ".join(parts[at : at + count]).strip(" ,.;:") or parts[0]

    def drawing(self, rng: Random) -> Image.Image | None:
        """A drawing in gray and alpha; None if the folder has none."""
        if not self.drawings:
            return None
        with Image.open(rng.choice(self.drawings)) as opened:
            return opened.convert("LA")

    def photo(self, rng: Random) -> Image.Image | None:
        """A photo in gray; None if the folder has none."""
        if not self.photos:
            return None
        with Image.open(rng.choice(self.photos)) as opened:
            opened.draft("L", (256, 256))
            return opened.convert("L")


def _read_texts(folder: Path) -> dict[str, list[str]]:
    texts = {}
    for path in sorted(folder.glob("*.txt")):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        if lines:
            texts[path.stem] = lines
    return texts


def _find_faces(folder: Path) -> dict[tuple[str, str], list[str]]:
    """(script, style) → paths; the style of a folder named for its script is "any"."""
    faces: dict[tuple[str, str], list[str]] = {}
    for place in sorted(path for path in folder.glob("*") if path.is_dir()):
        style, _, script = place.name.partition("-")
        paths = sorted(str(path) for path in place.iterdir() if path.suffix in (".ttf", ".otf"))
        if style not in STYLES:
            style, script = "any", style
        scripts = (
            (script,) if script else EUROPEAN if style in ("sans", "serif", "mono") else ("latin",)
        )
        for name in scripts:
            faces.setdefault((name, style), []).extend(paths)
    return faces
