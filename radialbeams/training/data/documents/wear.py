"""The effects of cameras, scanners, faxes and age on a page, which stays upright."""

from __future__ import annotations

import io
import math
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

Gray = NDArray[np.uint8]


def wear_paper(image: Image.Image, rng: Random, *, flat: bool = False) -> Image.Image:
    """Paper that was scanned, photographed, faxed, copied or left clean."""
    weights = (25, 25, 0 if flat else 34, 7, 9)
    way = rng.choices(("clean", "scan", "photo", "fax", "copy"), weights)[0]
    if way == "scan":
        image = scanned(image, rng)
    elif way == "photo":
        image = photographed(image, rng)
    elif way == "fax":
        image = faxed(image, rng)
    elif way == "copy":
        image = aged(image, rng)
    return softened(image, rng)


def wear_screen(image: Image.Image, rng: Random, *, flat: bool = False) -> Image.Image:
    """A screen capture, clean except for its compression; sometimes a photo of a screen."""
    if rng.random() < 0.12 and not flat:
        image = photographed(image, rng)
    return softened(image, rng) if rng.random() < 0.4 else image


def _coarse(
    rng: Random, size: tuple[int, int], cells: int, low: float, high: float
) -> NDArray[np.float32]:
    """(H, W) smooth random values between low and high."""
    noise = np.random.default_rng(rng.getrandbits(32))
    small = noise.random((cells, cells), dtype=np.float32)
    grown = Image.fromarray(small).resize(size, Image.Resampling.BILINEAR)
    return np.float32(low) + np.float32(high - low) * np.asarray(grown, np.float32)


def _grain(rng: Random, shape: tuple[int, int], strength: float) -> NDArray[np.float32]:
    """(H, W) noise, cut from one tile at a random place, since generating it is slow."""
    tile = _tile()
    y, x = rng.randrange(256), rng.randrange(256)
    rows, columns = shape[0] + y, shape[1] + x
    repeats = (-(-rows // tile.shape[0]), -(-columns // tile.shape[1]))
    whole = np.tile(tile, repeats) if max(repeats) > 1 else tile
    return whole[y:rows, x:columns] * np.float32(strength)


_TILES: list[NDArray[np.float32]] = []


def _tile() -> NDArray[np.float32]:
    if not _TILES:
        _TILES.append(np.random.default_rng(0).standard_normal((1280, 1280), dtype=np.float32))
    return _TILES[0]


def _as_image(values: NDArray[np.float32]) -> Image.Image:
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def scanned(image: Image.Image, rng: Random) -> Image.Image:
    """A scan: slightly gray, some dark edges, punched holes, a page smaller than the glass."""
    pixels = np.asarray(image).astype(np.float32)
    height, width = pixels.shape
    for side in range(4):
        if rng.random() < 0.18:
            depth = rng.randint(2, max(3, min(height, width) // 25))
            slope = np.clip(np.linspace(rng.uniform(0, 0.6), 1.2, depth, dtype=np.float32), 0, 1)
            turned = np.rot90(pixels, side)  # a view: changing it changes the pixels
            turned[:depth] *= slope[:, None]
    if rng.random() < 0.3:
        pixels = pixels * _coarse(rng, (width, height), 3, 0.82, 1)
    image = _as_image(pixels + _grain(rng, (height, width), rng.uniform(0, 6)))
    if rng.random() < 0.25:
        ground = rng.choice((0, 15, 60, 235, 255))
        wide = round(width * rng.uniform(1.02, 1.5))
        high = round(height * rng.uniform(1.02, 1.4))
        glass = Image.new("L", (wide, high), ground)
        glass.paste(image, (rng.randint(0, wide - width), rng.randint(0, high - height)))
        image = glass
    return image


def photographed(image: Image.Image, rng: Random) -> Image.Image:
    """A photo on a desk or a dark ground: curl, perspective, light from one side, shadows."""
    width, height = image.size
    if rng.random() < 0.35:
        image = curled(image, rng)
    margin = rng.choice((0.02, 0.08, 0.2, 0.4))
    wide = round(width * (1 + margin * rng.uniform(0.5, 1.5)))
    high = round(height * (1 + margin * rng.uniform(0.3, 1.2)))
    ground = _desk(rng, (wide, high))
    left, top = rng.uniform(0, wide - width), rng.uniform(0, high - height)
    bend = rng.choice((0, 0.02, 0.05, 0.09)) * min(width, height)
    corners = [
        (left + x * width + rng.uniform(-bend, bend), top + y * height + rng.uniform(-bend, bend))
        for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))
    ]
    across = _perspective(corners, [(0, 0), (width, 0), (width, height), (0, height)])
    page = image.convert("LA")
    page = page.transform(
        (wide, high), Image.Transform.PERSPECTIVE, across, Image.Resampling.BILINEAR
    )
    ground.paste(page.getchannel("L"), (0, 0), page.getchannel("A"))
    pixels = np.asarray(ground).astype(np.float32)
    pixels *= _coarse(rng, (wide, high), rng.choice((2, 2, 3, 5)), rng.uniform(0.35, 0.85), 1)
    if rng.random() < 0.4:
        pixels += _grain(rng, pixels.shape, rng.uniform(1, 9))
    return _as_image(pixels)


def _desk(rng: Random, size: tuple[int, int]) -> Image.Image:
    """A background: plain, cloudy, like wood, or with the edge of another sheet."""
    width, height = size
    base = rng.choice((rng.uniform(0, 60), rng.uniform(60, 200), rng.uniform(0, 255)))
    values = np.full((height, width), base, np.float32)
    kind = rng.random()
    if kind < 0.4:
        values += _coarse(rng, size, rng.choice((3, 8, 30)), -30, 30)
    elif kind < 0.65:  # wood runs either way
        noise = np.random.default_rng(rng.getrandbits(32))
        along = np.repeat(noise.normal(0, 14, (height + 2) // 3).astype(np.float32), 3)[:height]
        values += along[:, None]
        if rng.random() < 0.5:
            across = np.repeat(noise.normal(0, 14, (width + 2) // 3).astype(np.float32), 3)[:width]
            values += across[None] - along[:, None]
    if rng.random() < 0.3:
        values += _grain(rng, (height, width), 8)
    return _as_image(values)


def _perspective(
    targets: list[tuple[float, float]], sources: list[tuple[float, float]]
) -> list[float]:
    """Eight coefficients of the map that takes each of the targets to its source."""
    rows, right = [], []
    for (x, y), (u, v) in zip(targets, sources, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    return [float(c) for c in np.linalg.solve(np.array(rows), np.array(right))]


def curled(image: Image.Image, rng: Random) -> Image.Image:
    """The page bent about a vertical axis, so that lines arch a little: strips move vertically."""
    width, height = image.size
    strength = height * rng.uniform(0.005, 0.025) * rng.choice((-1, 1))
    phase, waves = rng.uniform(0, math.pi), rng.uniform(0.4, 1.1)
    edges = [round(k * width / 24) for k in range(25)]
    shifts = [strength * math.sin(phase + waves * math.pi * k / 24) for k in range(25)]
    mesh = []
    for k in range(24):
        a, b, p, q = edges[k], edges[k + 1], shifts[k], shifts[k + 1]
        mesh.append(((a, 0, b, height), (a, p, a, height + p, b, height + q, b, q)))
    fill = int(np.median(np.asarray(image)[:: max(1, height // 20)]))
    return image.transform(
        (width, height), Image.Transform.MESH, mesh, Image.Resampling.BILINEAR, fillcolor=fill
    )


def faxed(image: Image.Image, rng: Random) -> Image.Image:
    """A fax: two tones, specks, lost lines."""
    pixels = np.asarray(image).astype(np.float32)
    level = float(np.median(pixels)) * rng.uniform(0.6, 0.9)
    noise = _grain(rng, pixels.shape, rng.uniform(5, 30))
    black = pixels + noise < level
    speck = _grain(rng, pixels.shape, 1) > rng.uniform(2.6, 4)
    out = np.where(black ^ speck, 0, 255).astype(np.uint8)
    for _ in range(rng.choice((0, 0, 1, 3))):
        out[:, rng.randrange(out.shape[1])] = rng.choice((0, 255))
    return Image.fromarray(out)


def aged(image: Image.Image, rng: Random) -> Image.Image:
    """An aged page: yellowed, stained, faded, with the other side shining through."""
    pixels = np.asarray(image).astype(np.float32)
    size = (pixels.shape[1], pixels.shape[0])
    low = rng.uniform(0.55, 0.9)
    pixels = 255 - (255 - pixels) * rng.uniform(0.45, 1)
    if rng.random() < 0.4:
        pixels -= rng.uniform(0.05, 0.2) * (255 - pixels[:, ::-1])
    pixels *= _coarse(rng, size, rng.choice((3, 6, 12)), low, 1)
    return _as_image(pixels + _grain(rng, pixels.shape, rng.uniform(1, 7)))


def softened(image: Image.Image, rng: Random) -> Image.Image:
    """The image after changes of contrast, blur, resolution and compression."""
    if rng.random() < 0.3:
        low = rng.uniform(0, 70)
        high = low + rng.uniform(70, 255 - low)
        image = image.point([round(low + (high - low) * v / 255) for v in range(256)])
    if rng.random() < 0.25:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 1.1)))
    if rng.random() < 0.2:
        share, size = rng.uniform(0.45, 0.9), image.size
        small = (max(8, round(size[0] * share)), max(8, round(size[1] * share)))
        image = image.resize(small, Image.Resampling.BILINEAR).resize(
            size, Image.Resampling.BILINEAR
        )
    if rng.random() < 0.5:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=rng.randint(15, 92))
        image = Image.open(file).convert("L")
    return image
