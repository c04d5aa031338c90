"""One page from a seed and a number: `render(material, seed, number)` is always the same page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams.images.page import close_places
from radialbeams.training.data.documents.gadgets import GADGET_LENGTHS, GADGETS
from radialbeams.training.data.documents.material import VERTICAL, Material
from radialbeams.training.data.documents.panels import LENGTHS, PANELS
from radialbeams.training.data.documents.papers import PAPERS, upright_columns
from radialbeams.training.data.documents.screens import SCREENS as WINDOWS
from radialbeams.training.data.documents.screens import editor
from radialbeams.training.data.documents.sheet import Sheet
from radialbeams.training.data.documents.slips import receipt
from radialbeams.training.data.documents.wear import softened, wear_paper, wear_screen
from radialbeams.training.data.documents.without_up import WITHOUT_UP

Layout = Callable[[Sheet, str], None]
SCREENS = {**WINDOWS, **PANELS, **GADGETS}
SMALL = {**LENGTHS, **GADGET_LENGTHS}  # ranges of the longer side in pixels
KINDS = ("paper", "screen", "drawing", "without up")
SHARES = (50, 38, 8, 4)


@dataclass(frozen=True)
class RenderedPage:
    """An upright page in gray."""

    pixels: NDArray[np.uint8]  # (H, W)
    kind: str  # one of KINDS
    layout: str
    script: str

    @property
    def has_up(self) -> bool:
        return self.kind != "without up"

    @property
    def has_text(self) -> bool:
        return self.kind in ("paper", "screen")


def render(
    material: Material, seed: int, number: int, *, flat: bool = False, close: bool = False
) -> RenderedPage:
    """The page of that number. With `flat`, it is scanned or captured, never photographed.

    With `close`, it is drawn with about twice as many pixels, and only a part is returned.
    """
    rng = Random(f"{seed} {number}")
    kind = rng.choices(KINDS, SHARES)[0]
    if kind == "drawing" and material.drawings:
        return RenderedPage(np.asarray(_drawing(material, rng)), kind, "drawing", "none")
    if kind == "without up":
        layout, image, script = _laid_out(material, rng, WITHOUT_UP, screen=rng.random() < 0.3)
        image = softened(image, rng)  # no shadow or edge, which would show a direction
        return RenderedPage(np.asarray(image), kind, layout, script)
    screen = kind == "screen"
    zoom = rng.uniform(1.5, 2.3) if close else rng.choice((1.0, 1.0, 1.0, 1.6))
    layout, image, script = _laid_out(
        material, rng, SCREENS if screen else PAPERS, screen=screen, zoom=zoom
    )
    if close:
        image = _close_part(image, rng)
    wear = wear_screen if screen else wear_paper
    image = wear(image, rng, flat=flat or close)
    return RenderedPage(np.asarray(image), "screen" if screen else "paper", layout, script)


def _close_part(image: Image.Image, rng: Random) -> Image.Image:
    """A square part with much detail, of about the size of the network's view."""
    side, centres = close_places(image, 3)
    x, y = rng.choice(centres) if centres else (image.width / 2, image.height / 2)
    side *= rng.uniform(0.7, 1.25)
    x, y = (v + side * rng.uniform(-0.2, 0.2) for v in (x, y))
    left, top = max(0, round(x - side / 2)), max(0, round(y - side / 2))
    right, bottom = min(image.width, round(x + side / 2)), min(image.height, round(y + side / 2))
    if min(right - left, bottom - top) < 32:
        return image
    return image.crop((left, top, right, bottom))


def _laid_out(
    material: Material,
    rng: Random,
    layouts: dict[Layout, tuple[float, tuple[float, ...]]],
    *,
    screen: bool,
    zoom: float = 1.0,
) -> tuple[str, Image.Image, str]:
    """The name of the layout, the image, and the script."""
    layout = rng.choices(list(layouts), [weight for weight, _ in layouts.values()])[0]
    script = material.script(rng)
    if layout is upright_columns:
        script = rng.choice([s for s in VERTICAL if s in material.scripts] or [script])
    if layout is editor or (layout is receipt and rng.random() < 0.4):
        script = "latin" if "latin" in material.scripts else script
    shape = rng.choice(layouts[layout][1]) * rng.uniform(0.9, 1.1)
    long = rng.randint(680, 920)
    if screen:
        long = rng.randint(360, 960)
    if layout is receipt:
        long = rng.randint(760, 1000)
    if layout in SMALL:
        long = rng.randint(*SMALL[layout])
    long = round(long * zoom)
    size = (round(long / shape), long) if shape > 1 else (long, round(long * shape))
    paper, ink = _palette(rng, screen=screen)
    sheet = Sheet(material, rng, size, paper, ink)
    layout(sheet, script)
    return layout.__name__, sheet.image, script


def _palette(rng: Random, *, screen: bool) -> tuple[int, int]:
    """Gray values of ground and ink: paper is light; screens are light, dark or in between."""
    if not screen:
        return rng.choice((255, 255, 250, rng.randint(215, 250))), rng.choice(
            (0, 0, 20, rng.randint(0, 90))
        )
    kind = rng.random()
    if kind < 0.5:
        return rng.choice((255, 245, 240, rng.randint(200, 250))), rng.randint(0, 60)
    if kind < 0.8:
        return rng.choice((0, 20, 30, rng.randint(10, 70))), rng.randint(190, 255)
    ground = rng.randint(60, 190)
    return ground, 255 if ground < 120 else 0


def _drawing(material: Material, rng: Random) -> Image.Image:
    """One drawing, or a few, on a plain ground."""
    side = rng.randint(300, 700)
    image = Image.new(
        "L",
        (side, round(side * rng.uniform(0.7, 1.4))),
        rng.choice((255, 255, 255, 230, 0, rng.randint(0, 255))),
    )
    count = rng.choice((1, 1, 1, 1, 2, 4))
    for k in range(count):
        drawing = material.drawing(rng)
        if drawing is None:
            break
        room = image.width / (1 if count == 1 else 2), image.height / (1 if count < 3 else 2)
        scale = min(room[0] / drawing.width, room[1] / drawing.height) * rng.uniform(0.55, 0.98)
        size = max(2, round(drawing.width * scale)), max(2, round(drawing.height * scale))
        drawing = drawing.resize(size, Image.Resampling.BICUBIC)
        x = room[0] * (k % 2) + (room[0] - size[0]) / 2
        y = room[1] * (k // 2) + (room[1] - size[1]) / 2
        image.paste(drawing.getchannel("L"), (round(x), round(y)), drawing.getchannel("A"))
    return softened(image, rng)
