"""SI-SCORE: the full set of rotated objects, or its samples, composed upright or rotated.

The benchmark resizes a cut-out to a share of a 512 px background's area, rotates it about its
centre and pastes it at the centre of the background, if at least 95 % of the rotated bounding box
is in view. The background is not rotated, so no border or corner reveals the angle.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

from PIL import Image

from radialbeams.training.data.archives import Names, read_file
from radialbeams.training.data.members import IMAGES, Member, matches
from radialbeams.training.data.pixels import centred_square, open_image

TABLE, CLASSES = "metadata.csv", "foreground_classes.csv"
SCENE = 512  # pixels
ANGLES = tuple(range(1, 361, 20))  # no quarter turn, which would be sharper
AREAS = (0.2, 0.5, 0.8, 1.0)  # of a cut-out's bounding box, as shares of the scene's area
FEW_AREAS = (0.2, 0.5)  # if there are many cut-outs
IN_VIEW = 0.95  # least share of the rotated bounding box
UPRIGHT_SIDE = 0.6  # longer side of an upright cut-out, as a share of the scene's side

# ImageNet's indices of the samples' classes; the full set has its own table.
SAMPLE_CLASSES = {
    "bagel": 931,
    "koala": 105,
    "lemon": 951,
    "printer": 742,
    "starfish": 327,
    "strawberry": 949,
    "toaster": 859,
    "vase": 883,
    "zebra": 340,
}


def read(place: Path, names: Names) -> list[Member]:
    """The full set, which has no upright images; without it, the samples, upright."""
    return _full(place, names) or _upright_samples(place, names)


def read_turned(place: Path, names: Names) -> list[Member]:
    """The full set; without it, all images that the benchmark's rules make from the samples."""
    return _full(place, names) or _turned_samples(place, names)


def read_cutouts(place: Path, names: Names) -> list[Member]:
    """Many cut-outs: one image of each at every angle and area, cycling through backgrounds."""
    scenes = [as_scene(picture) for _, picture in _backgrounds(place, names)]
    members = []
    for number, (group, name, path, cutout) in enumerate(_cutouts(place, names)):
        for turn, (area, angle) in enumerate(product(FEW_AREAS, ANGLES)):
            if scenes and share_in_view(cutout.size, area, angle) >= IN_VIEW:
                scene = scenes[(number + turn) % len(scenes)]
                make = partial(compose, cutout, scene, area, angle)
                key = f"{name}-{area}-{angle}"
                members.append(Member(path, key, group, make, float(angle), object_key=name))
    return members


def imagenet_classes(place: Path, names: Names) -> dict[str, int]:
    """Class name → ImageNet's index, from the table of the full set if it is present."""
    if CLASSES not in names:
        return dict(SAMPLE_CLASSES)
    rows = _table(place, names[CLASSES])
    return {row["label"]: int(row["int"]) for row in rows}


# --- the full set ---


def _full(place: Path, names: Names) -> list[Member]:
    """CLASS/NUMBER.jpg; a table gives the angle and the cut-out of each image."""
    if TABLE not in names:
        return []
    rows = {row["image_id"]: row for row in _table(place, names[TABLE])}
    members = []
    for m, path in matches(r"([^/]+)/([0-9]+)\.jpg", names):
        if (row := rows.get(m[2])) is not None:
            angle = float(row["rotation"]) % 360
            cutout = f"{m[1]}/{row.get('foreground_instance', '')}"
            members.append(Member(path, m[2], m[1], angle_degrees=angle, object_key=cutout))
    return members


def _table(place: Path, path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(read_file(place, path).decode())))


# --- the samples ---


def _cutouts(place: Path, names: Names) -> Iterator[tuple[str, str, str, Image.Image]]:
    """Yields class, name, path and picture of each cut-out."""
    for m, path in matches(rf"foreground_samples/([^/]+)/([^/]+)\.{IMAGES}", names):
        yield m[1], m[2], path, open_image(read_file(place, path), SCENE).convert("RGBA")


def _backgrounds(place: Path, names: Names) -> Iterator[tuple[str, Image.Image]]:
    for m, path in matches(rf"background_samples/([^/]+)\.{IMAGES}", names):
        yield m[1], open_image(read_file(place, path), SCENE).convert("RGB")


def _upright_samples(place: Path, names: Names) -> list[Member]:
    scenes = {
        name: centred_square(picture).resize((SCENE, SCENE), Image.Resampling.LANCZOS)
        for name, picture in _backgrounds(place, names)
    }
    return [
        Member(path, f"{name}-{scene}", group, partial(_compose_upright, cutout, background))
        for group, name, path, cutout in _cutouts(place, names)
        for scene, background in scenes.items()
    ]


def _compose_upright(cutout: Image.Image, scene: Image.Image) -> Image.Image:
    """The cut-out, upright, in the centre of the scene."""
    scale = UPRIGHT_SIDE * scene.width / max(cutout.size)
    width, height = (round(n * scale) for n in cutout.size)
    piece = cutout.resize((width, height), Image.Resampling.LANCZOS)
    image = scene.copy()
    image.paste(piece, ((scene.width - width) // 2, (scene.height - height) // 2), piece)
    return image


def _turned_samples(place: Path, names: Names) -> list[Member]:
    scenes = {name: as_scene(picture) for name, picture in _backgrounds(place, names)}
    members = []
    for group, name, path, cutout in _cutouts(place, names):
        for scene, background in scenes.items():
            for area in AREAS:
                for angle in ANGLES:
                    if share_in_view(cutout.size, area, angle) < IN_VIEW:
                        continue
                    make = partial(compose, cutout, background, area, angle)
                    key = f"{name}-{scene}-{area}-{angle}"
                    members.append(
                        Member(path, key, group, make, float(angle), object_key=f"{group}/{name}")
                    )
    return members


def as_scene(picture: Image.Image) -> Image.Image:
    """The square at the upper left, as the benchmark crops it."""
    side = min(picture.size)
    square = picture.crop((0, 0, side, side))
    return square.resize((SCENE, SCENE), Image.Resampling.BILINEAR)


def compose(cutout: Image.Image, scene: Image.Image, area: float, degrees: float) -> Image.Image:
    """The cut-out in the centre of the scene, rotated counter-clockwise."""
    piece = cutout.resize(resized(cutout.size, area, scene.width), Image.Resampling.BILINEAR)
    piece = piece.rotate(degrees, Image.Resampling.BICUBIC, expand=True)
    left, top = (int(scene.width / 2 - side / 2) for side in piece.size)
    image = scene.copy()
    image.paste(piece, (left, top), piece)
    return image


def resized(size: tuple[int, int], area: float, scene: int = SCENE) -> tuple[int, int]:
    """The size with the same aspect ratio that covers `area` of a square scene."""
    factor = scene * math.sqrt(area / (size[0] * size[1]))
    return int(size[0] * factor), int(size[1] * factor)


def share_in_view(size: tuple[int, int], area: float, degrees: float, scene: int = SCENE) -> float:
    """The share of the rotated cut-out's bounding box that lies inside the scene."""
    width, height = resized(size, area, scene)
    cos, sin = (abs(f(math.radians(degrees))) for f in (math.cos, math.sin))
    bounds = (width * cos + height * sin, width * sin + height * cos)
    return math.prod(min(side, scene) / side for side in bounds)
