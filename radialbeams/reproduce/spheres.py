"""A sphere lit from nine positions, by a physically based renderer (Mitsuba 3).

Light is linear: twice the light gives twice the radiance in every pixel. One rendering of linear
radiance per position is therefore scaled to all intensities. The non-linear steps follow: values
are clipped at white and encoded with the sRGB curve.
"""

from __future__ import annotations

import math
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radialbeams.extras import install_command
from radialbeams.files import write_whole
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.stored import JsonDict

Linear = NDArray[np.float32]
Bytes = NDArray[np.uint8]


class LightPosition(NamedTuple):
    """Where the light is, as the camera sees it: x to the right, y up."""

    name: str
    x: int
    y: int

    @property
    def degrees(self) -> float | None:
        """The rotation from "light above" to here, counter-clockwise; None for the front."""
        return None if self.x == self.y == 0 else math.degrees(math.atan2(-self.x, self.y))


POSITIONS = tuple(
    LightPosition(" ".join(word for word in (row, column) if word) or "front", x, y)
    for y, row in ((1, "top"), (0, ""), (-1, "bottom"))
    for x, column in ((-1, "left"), (0, ""), (1, "right"))
)

# The scene, in radii of the sphere. The camera looks along −z. The lights are behind it, so that
# none is visible, and those at the sides shine at 45°.
CAMERA, LIGHTS, LIGHT_RADIUS = 7.0, 9.0, 1.0
FIELD_OF_VIEW = 22.0  # degrees; the sphere fills three quarters of the width
GREY, ROUGHNESS = 0.5, 0.15  # of the plastic: diffuse colour under a glossy coat
RADIANCE = 100.0


def scene(position: LightPosition, size: int, samples: int, transform: Any) -> JsonDict:
    """The scene for Mitsuba; `transform` is its class of 4 × 4 matrices."""
    return {
        "type": "scene",
        "integrator": {"type": "path", "max_depth": 4},
        "sensor": {
            "type": "perspective",
            "fov": FIELD_OF_VIEW,
            "to_world": transform().look_at(origin=[0, 0, CAMERA], target=[0, 0, 0], up=[0, 1, 0]),
            "film": {
                "type": "hdrfilm",
                "width": size,
                "height": size,
                "pixel_format": "rgba",
                "rfilter": {"type": "gaussian"},
            },
            "sampler": {"type": "multijitter", "sample_count": samples, "seed": 0},
        },
        "light": {
            "type": "sphere",
            "center": [LIGHTS * position.x, LIGHTS * position.y, LIGHTS],
            "radius": LIGHT_RADIUS,
            "emitter": {"type": "area", "radiance": {"type": "rgb", "value": RADIANCE}},
        },
        "sphere": {
            "type": "sphere",
            "radius": 1.0,
            "bsdf": {
                "type": "roughplastic",
                "diffuse_reflectance": {"type": "rgb", "value": GREY},
                "alpha": ROUGHNESS,
            },
        },
    }


def render(position: LightPosition, size: int, samples: int) -> Linear:
    """(S, S, 4): linear red, green and blue, and the share of the pixel that the sphere covers."""
    if find_spec("mitsuba") is None:
        raise ValueError(
            "The spheres are rendered by Mitsuba, which is not installed. Install it in your "
            f"clone with: {install_command('render')}"
        )
    mitsuba: Any = import_module("mitsuba")
    mitsuba.set_variant("scalar_rgb")
    description = scene(position, size, samples, mitsuba.ScalarTransform4f)
    return np.asarray(mitsuba.render(mitsuba.load_dict(description)), dtype=np.float32)


def spheres(settings: ReproduceSettings, size: int, samples: int) -> Linear:
    """(9, S, S, 4): a rendering for each position, from the cache if it is there."""
    path = cache(settings, size, samples)
    if not path.is_file():
        renderings = []
        for number, position in enumerate(POSITIONS):
            settings.show(number, len(POSITIONS), f"rendering, light {position.name}")
            renderings.append(render(position, size, samples))
        write_whole(path, partial(_write, np.stack(renderings)))
    with np.load(path) as file:
        linear: Linear = file["linear"]
    return linear


def cache(settings: ReproduceSettings, size: int, samples: int) -> Path:
    return settings.folder / "cache" / f"spheres-{size}px-{samples}samples.npz"


def _write(linear: Linear, path: Path) -> None:
    with path.open("wb") as file:  # numpy would add a suffix to a path
        np.savez_compressed(file, linear=linear)


# --- from radiance to files ---


def unit(linear: Linear) -> float:
    """The scale at which the centre of the sphere, lit from the front, is just white."""
    front = linear[[position.name for position in POSITIONS].index("front")]
    middle = len(front) // 2
    return 1 / float(front[middle - 2 : middle + 2, middle - 2 : middle + 2, :3].mean())


def photographed(linear: Linear, scales: NDArray[np.float64], ground: NDArray[Any]) -> Bytes:
    """One rendering (S, S, 4) in N intensities → bytes (N, 3, S, S), on a background (3,) of bytes.

    The background is not lit: it has exactly this colour in the file.
    """
    share = np.clip(linear[..., 3], 0, 1)
    lit = scales[:, None, None, None] * np.maximum(linear[..., :3], 0)  # (N, S, S, 3)
    behind = to_linear(np.asarray(ground, dtype=float) / 255) * (1 - share)[..., None]
    pixels = np.round(255 * to_srgb(lit + behind)).astype(np.uint8)
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))


def to_srgb(linear: NDArray[Any]) -> NDArray[Any]:
    """[0, ∞) → [0, 1], clipped at white."""
    clipped = np.clip(linear, 0, 1)
    curved: NDArray[Any] = 1.055 * clipped ** (1 / 2.4) - 0.055
    return np.where(clipped <= 0.0031308, 12.92 * clipped, curved)


def to_linear(srgb: NDArray[Any]) -> NDArray[Any]:
    linear: NDArray[Any] = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return linear
