"""Analytic scenes: pictures with a clear upright direction, defined as functions of the plane.

A rotated scene is the same function at rotated coordinates, so nothing is resampled. Scenes are
therefore ground truth for the renderer of views, and data for tests without files.

Convention: x points right and y up, in half-widths of the image, from the pixel index (W − 1)/2.
Angles are those of `radialbeams.nn.rotation`: radians, counter-clockwise as displayed.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from radialbeams.nn.angles import TURN
from radialbeams.nn.rotation import QUARTER_TOLERANCE
from radialbeams.training.data import ImageSet
from radialbeams.training.data.members import Member

COUNT = 2000  # scenes in `load("scenes")`
SIZE = 128
WAVE_HEIGHT = 0.02

Colour = tuple[float, float, float]
Vector = tuple[float, float, float]


class SceneShape(NamedTuple):
    """One shape to paint. A slab is a trapezoid; `top` is its upper width over its lower width."""

    shape: Literal["ball", "slab", "shadow"]
    x: float  # of the centre
    y: float
    width: float  # half of the width
    height: float
    colour: Colour = (0.0, 0.0, 0.0)
    top: float = 1.0


class Scene(NamedTuple):
    kind: str  # of its main object
    parts: list[SceneShape]  # from back to front
    horizon: float
    above: Colour  # the sky at the horizon
    below: Colour  # the ground there
    slope: float  # increase in brightness per half-width upwards
    light: Vector  # unit vector to the light, which is above; z points to the viewer
    waves: list[Vector]  # in the background: kx, ky, phase


# --- from a seed to a scene --------------------------------------------------------------------


class _Draws:
    """A sequence of uniform numbers that depends only on the seed."""

    def __init__(self, seed: int) -> None:
        generator = np.random.Generator(np.random.Philox(key=seed))
        # Twice as many as any scene needs.
        self.numbers: Iterator[float] = iter(generator.random(256).tolist())

    def __call__(self, low: float = 0.0, high: float = 1.0) -> float:
        return low + (high - low) * next(self.numbers)

    def colour(self, saturation: tuple[float, float], value: tuple[float, float]) -> Colour:
        return colorsys.hsv_to_rgb(self(), self(*saturation), self(*value))

    def vivid(self) -> Colour:
        return self.colour((0.45, 0.9), (0.7, 0.95))


def make_scene(seed: int) -> Scene:
    if seed < 0:
        raise ValueError(f"A scene's seed must be at least 0; got {seed}.")
    draw = _Draws(seed)
    horizon = draw(-0.3, 0.2)
    kinds = [list(OBJECTS)[int(draw(0, len(OBJECTS)))] for _ in range(int(draw(2, 7)))]
    objects = []
    for index, kind in enumerate(kinds):
        main = index == 0
        depth = draw(0.2, 0.4) if main else draw(0.02, 0.6)  # further below the horizon is nearer
        x = draw(-0.2, 0.2) if main else math.copysign(draw(0.25, 1), draw(-1, 1))
        scale = draw(0.38, 0.5) if main else draw(0.13, 0.2) + 0.2 * depth
        objects.append((depth, OBJECTS[kind](draw, x, horizon - depth, scale)))
    objects.sort(key=lambda entry: entry[0])
    above, ground = draw.colour((0.1, 0.45), (0.72, 0.92)), draw.colour((0.2, 0.6), (0.35, 0.6))
    studio = draw() < 0.25  # no horizon, only a gradient
    side, lift = math.radians(draw(-10, 10)), draw(0.4, 0.8)
    return Scene(
        kind=kinds[0],
        parts=[part for _, parts in objects for part in parts],
        horizon=horizon,
        above=above,
        below=above if studio else ground,
        slope=draw(0.2, 0.3) if studio else draw(0.05, 0.15),
        light=(math.sin(side) * math.cos(lift), math.cos(side) * math.cos(lift), math.sin(lift)),
        waves=[_wave(draw) for _ in range(3)] if draw() < 0.5 else [],
    )


def _wave(draw: _Draws) -> Vector:
    """All directions are equally likely, so that waves do not reveal the angle."""
    direction, frequency = draw(0, TURN), draw(3, 9)
    return frequency * math.cos(direction), frequency * math.sin(direction), draw(0, TURN)


# Each object stands at (x, foot) and is about 2·scale high.


def _sphere(draw: _Draws, x: float, foot: float, scale: float) -> list[SceneShape]:
    width, height = scale * draw(0.7, 1), scale * draw(0.7, 1)
    return [
        SceneShape("shadow", x, foot, 1.3 * width, 0.35 * height),
        SceneShape("ball", x, foot + height, width, height, draw.vivid()),
    ]


def _house(draw: _Draws, x: float, foot: float, scale: float) -> list[SceneShape]:
    width, wall, roof = scale * draw(0.55, 0.85), scale * draw(0.5, 0.65), scale * draw(0.25, 0.4)
    front, door = draw.colour((0.1, 0.4), (0.75, 0.95)), draw.colour((0.4, 0.9), (0.2, 0.4))
    side = width * math.copysign(1, draw(-1, 1))
    return [
        SceneShape("shadow", x, foot, 1.4 * width, 0.3 * scale),
        SceneShape("slab", x, foot + wall, width, wall, front),
        SceneShape("slab", x, foot + 2 * wall + roof, 1.2 * width, roof, draw.vivid(), 0),
        SceneShape("slab", x + 0.45 * side, foot + 0.45 * wall, 0.2 * width, 0.45 * wall, door),
        SceneShape("slab", x - 0.4 * side, foot + 1.2 * wall, 0.28 * width, 0.28 * wall, door),
    ]


def _tree(draw: _Draws, x: float, foot: float, scale: float) -> list[SceneShape]:
    trunk, crown = scale * draw(0.35, 0.5), scale * draw(0.4, 0.6)
    leaves = colorsys.hsv_to_rgb(draw(-0.05, 0.5) % 1, draw(0.4, 0.9), draw(0.5, 0.85))
    stem = [
        SceneShape("shadow", x, foot, crown, 0.2 * scale),
        SceneShape(
            "slab", x, foot + trunk, 0.14 * scale, trunk, draw.colour((0.4, 0.7), (0.25, 0.5)), 0.7
        ),
    ]
    if draw() < 0.5:  # a round crown
        height = crown * draw(0.9, 1.3)
        return [*stem, SceneShape("ball", x, foot + 1.6 * trunk + height, crown, height, leaves)]
    tiers = ((0.5, 1.0), (0.85, 0.8), (1.15, 0.55))  # a fir tree
    return stem + [
        SceneShape("slab", x, foot + trunk + up * scale, wide * crown, 0.3 * scale, leaves, 0)
        for up, wide in tiers
    ]


def _arrow(draw: _Draws, x: float, foot: float, scale: float) -> list[SceneShape]:
    shaft, head, width = scale * draw(0.5, 0.65), scale * draw(0.35, 0.5), scale * draw(0.14, 0.22)
    colour = draw.vivid()
    return [
        SceneShape("shadow", x, foot, 2.5 * width, 0.8 * width),
        SceneShape("slab", x, foot + shaft, width, shaft, colour),
        SceneShape("slab", x, foot + 2 * shaft + 0.7 * head, head, 0.7 * head, colour, 0),
    ]


def _snowman(draw: _Draws, x: float, foot: float, scale: float) -> list[SceneShape]:
    colour, hat, y = draw.colour((0, 0.25), (0.88, 1)), draw.vivid(), foot
    parts = [SceneShape("shadow", x, foot, 0.75 * scale, 0.2 * scale)]
    for smallest in (0.45, 0.32, 0.22):
        radius = scale * draw(smallest, 1.25 * smallest)
        parts.append(SceneShape("ball", x, y + radius, radius, radius, colour))
        y += 1.7 * radius
    brim = SceneShape("slab", x, y + 0.05 * scale, 0.3 * scale, 0.05 * scale, hat)
    return [
        *parts,
        brim,
        SceneShape("slab", x, y + 0.2 * scale, 0.18 * scale, 0.15 * scale, hat, 0.9),
    ]


OBJECTS: dict[str, Callable[[_Draws, float, float, float], list[SceneShape]]] = {
    "sphere": _sphere,
    "house": _house,
    "tree": _tree,
    "arrow": _arrow,
    "snowman": _snowman,
}


# --- from a scene to pixels --------------------------------------------------------------------


class _Canvas:
    """The samples of one rotated image: their scene coordinates and their colours so far."""

    def __init__(self, samples: int, angle: float, softness: float) -> None:
        self.cos, self.sin = math.cos(angle), math.sin(angle)
        if min(abs(self.cos), abs(self.sin)) < QUARTER_TOLERANCE:  # an exact permutation of pixels
            self.cos, self.sin = float(round(self.cos)), float(round(self.sin))
        self.samples, self.softness = samples, softness
        right = (torch.arange(samples) - (samples - 1) / 2) / (samples / 2)
        up = -right[:, None]
        # Stored as a row and a column, so that a part adds up only the samples it covers.
        self.x = right * self.cos, up * self.sin
        self.y = right * -self.sin, up * self.cos
        self.colours = torch.empty(3, samples, samples)

    def paint_background(self, scene: Scene) -> None:
        x, y = self.x[0] + self.x[1], self.y[0] + self.y[1]
        above, below = (torch.tensor(c)[:, None, None] for c in (scene.above, scene.below))
        torch.lerp(below, above, self._coverage(scene.horizon - y), out=self.colours)
        shade = y * scene.slope
        for kx, ky, phase in scene.waves:
            shade += WAVE_HEIGHT * torch.sin(kx * x + ky * y + phase)
        self.colours += shade

    def paint(self, part: SceneShape, light: Vector) -> None:
        columns = self._near(part.x * self.cos - part.y * self.sin, part)
        rows = self._near(part.x * -self.sin - part.y * self.cos, part)
        region = self.colours[:, rows, columns]
        if not region.numel():
            return
        x = (
            self.x[0][columns] + (self.x[1][rows] - part.x)
        ) / part.width  # −1 to 1 inside the part
        y = (self.y[0][columns] + (self.y[1][rows] - part.y)) / part.height
        colour = torch.tensor(part.colour)[:, None, None]
        if part.shape == "shadow":
            region *= 1 - 0.5 * (1 - x * x - y * y).clamp_(min=0).square_()
        elif part.shape == "ball":
            distance, lit, shine = _ball(x, y, part, light)
            region.lerp_(colour * lit + shine, self._coverage(distance))
        else:
            region.lerp_(colour * (1 + 0.15 * y), self._coverage(_slab(x, y, part)))

    def _near(self, middle: float, part: SceneShape) -> slice:
        """The rows or columns that the part may touch at any rotation."""
        reach = math.hypot(part.width, part.height) + self.softness
        first, last = ((middle + side * reach + 1) * self.samples / 2 for side in (-1, 1))
        return slice(max(0, int(first)), max(0, math.ceil(last)))

    def _coverage(self, distance: Tensor) -> Tensor:
        """Signed distance, negative inside → coverage in [0, 1]."""
        return (0.5 - distance / self.softness).clamp_(0, 1)


def _slab(x: Tensor, y: Tensor, part: SceneShape) -> Tensor:
    """Signed distance to the trapezoid."""
    lean = (1 - part.top) / 2
    steep = part.height / math.hypot(part.height, lean * part.width)
    sides = (x.abs() - (1 - lean) + lean * y) * (part.width * steep)
    return torch.maximum(sides, (y.abs() - 1) * part.height)


def _ball(x: Tensor, y: Tensor, part: SceneShape, light: Vector) -> tuple[Tensor, Tensor, Tensor]:
    """Signed distance to the ellipse, and its diffuse and specular light."""
    squared = x * x + y * y
    z = (1 - squared).clamp_(min=0).sqrt_()
    facing = (light[0] * x + light[1] * y + light[2] * z).clamp_(min=0)
    # Blinn's highlight: normal · (light + viewer), over the length of that sum.
    shine = ((facing + z) / math.sqrt(2 + 2 * light[2])).pow(40)
    # Scaled by the shorter axis, so that no edge is sharper than a pixel.
    distance = (squared.sqrt_() - 1) * min(part.width, part.height)
    return distance, 0.3 + 0.75 * facing, 0.5 * shine


def render_scenes(
    seeds: Sequence[int], size: int, angles: Tensor, *, supersample: int = 2
) -> Tensor:
    """Scenes rotated by radians (N,) → (N, 3, size, size) in [0, 1].

    Edges are one pixel wide, and each pixel is the mean of supersample² samples.
    """
    if len(angles) != len(seeds):
        raise ValueError(
            f"render_scenes expects one angle for each of {len(seeds)} scenes; got {len(angles)}."
        )
    images = torch.zeros(len(seeds), 3, size, size)
    for image, seed, angle in zip(images, seeds, angles.tolist(), strict=True):
        canvas, scene = _Canvas(size * supersample, angle, 2 / size), make_scene(seed)
        canvas.paint_background(scene)
        for part in scene.parts:
            canvas.paint(part, scene.light)
        samples = canvas.colours.clamp_(0, 1)
        for row, column in product(range(supersample), repeat=2):
            image += samples[:, row::supersample, column::supersample]
    return images.div_(supersample**2)


def scene_set(
    count: int, *, size: int = SIZE, first_seed: int = 0, angles: Tensor | None = None
) -> ImageSet:
    """Scenes, upright or rotated by radians (N,), grouped by the kind of their main object."""
    turns = torch.zeros(count) if angles is None else angles
    members = scene_members(range(first_seed, first_seed + count), size)
    images = [_bytes(first_seed + i, size, turns[i : i + 1]) for i in range(count)]
    keys, groups = tuple(e.key for e in members), tuple(e.group for e in members)
    degrees = torch.rad2deg(turns.double()).remainder(360).tolist()
    return ImageSet(
        "scenes", torch.stack(images), keys, groups, None if angles is None else tuple(degrees)
    )


def scene_members(seeds: Iterable[int], size: int) -> list[Member]:
    """Members for upright scenes, which are rendered at this size when they are decoded."""
    return [
        Member(f"scene{seed}", f"scene{seed}", make_scene(seed).kind, partial(_picture, seed, size))
        for seed in seeds
    ]


def _picture(seed: int, size: int) -> Image.Image:
    return Image.fromarray(_bytes(seed, size, torch.zeros(1)).permute(1, 2, 0).numpy())


def _bytes(seed: int, size: int, angle: Tensor) -> Tensor:
    return render_scenes([seed], size, angle)[0].mul_(255).round_().byte()
