"""The options in the URL of a request: parsed, checked, and described for OpenAPI."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, get_args

from PIL import ImageColor

from radialbeams.batch import JobSettings, with_thresholds
from radialbeams.defaults import CORNERS, FILL, SNAP, Corners, Snap
from radialbeams.serving.errors import Problem
from radialbeams.serving.models import card_of
from radialbeams.serving.settings import ServiceSettings
from radialbeams.stored import JsonDict

FORMATS = ("jpeg", "png", "webp", "tiff", "bmp", "gif", "avif", "jpeg2000", "ppm")
OUTPUTS = ("image", "json", "zip")
Schema = JsonDict  # of JSON Schema, for the OpenAPI description
T = TypeVar("T")
Parser = tuple[Schema, Callable[[str], T]]

LONGEST = 200  # an error message repeats at most this many characters of a value


@dataclass(frozen=True)
class FileTask:
    """What a worker does with one file; sent to the worker as JSON."""

    model: str
    turns: bool = False  # False: only estimate the angle
    first_frame: bool = False
    posterior: bool = False
    beams: bool = False
    angle: float | None = None  # the rotation to undo, instead of the model's estimate
    corners: Corners = CORNERS
    fill: str | None = FILL
    snap: Snap = SNAP
    format: str | None = None
    quality: int | None = None
    min_confidence: float | None = None
    min_angle: float | None = None
    output: str | None = None  # "image", "json" or "zip"

    def job(self, settings: ServiceSettings) -> JobSettings:
        """The same settings in the form the batch uses, with the thresholds of the model's card."""
        job = JobSettings(
            model=self.model,
            first_frame=self.first_frame,
            turns=self.turns,
            snap=self.snap,
            corners=self.corners,
            fill=self.fill,
            quality=self.quality,
            format=self.format,
            limits=settings.limits,
        )
        return with_thresholds(job, card_of(self.model), self.min_confidence, self.min_angle)


@dataclass(frozen=True)
class Option:
    """A URL parameter: its name, description and schema, and the function that parses it."""

    name: str
    meaning: str
    schema: Schema
    read: Callable[[str], Any]


# --- parsing values ---


def _choice(*values: str) -> Parser[str]:
    def read(text: str) -> str:
        if text not in values:
            raise ValueError(f"one of {', '.join(values)}")
        return text

    return {"type": "string", "enum": list(values)}, read


def _number(least: float, most: float) -> Parser[float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise ValueError(f"a number from {least:g} to {most:g}")
        return value

    return {"type": "number", "minimum": least, "maximum": most}, read


def _whole(least: int, most: int) -> Parser[int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text[:9]) <= most):
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text[:9])

    return {"type": "integer", "minimum": least, "maximum": most}, read


def _flag() -> Parser[bool]:
    def read(text: str) -> bool:
        if text not in ("true", "false"):
            raise ValueError("true or false")
        return text == "true"

    return {"type": "boolean"}, read


def _colour() -> Parser[str]:
    def read(text: str) -> str:
        if text != "transparent":
            try:
                ImageColor.getrgb(text)
            except ValueError as error:
                raise ValueError("transparent, the name of a colour, or #rrggbb") from error
        return text

    return {"type": "string", "examples": ["white", "#ff8800", "transparent"]}, read


# --- the options ---


def of_angle(settings: ServiceSettings) -> list[Option]:
    """The options of /v1/angle, which are also options of /v1/upright."""
    model, read_model = _choice(*settings.offered)
    return [
        Option(
            "model",
            "Name of the model.",
            {**model, "default": settings.default_model},
            read_model,
        ),
        Option("first_frame", "Use the first frame of animated images.", *_flag()),
        Option("posterior", "Add the probability of each direction.", *_flag()),
        Option("beams", "Add how much each direction contributes; much slower.", *_flag()),
        Option(
            "min_confidence",
            "Minimum confidence for `turned`. Default: from the model's card.",
            *_number(0, 1),
        ),
        Option(
            "min_angle",
            "Minimum angle in degrees for `turned`. Default: from the model's card.",
            *_number(0, 180),
        ),
        Option(
            "snap",
            "`auto`: turn by exactly a multiple of 90° if the image fills its canvas and its angle "
            "is near one, otherwise by its angle. `90`: always by the nearest multiple of 90°. "
            "`none`: always by the estimated angle.",
            *_choice(*get_args(Snap)),
        ),
    ]


def of_upright(settings: ServiceSettings) -> list[Option]:
    return [
        *of_angle(settings),
        Option(
            "output",
            "`image`: the file itself (default for one file). `json`: records with the file in "
            "base64 (default for several). `zip`: an archive.",
            *_choice(*OUTPUTS),
        ),
        Option(
            "angle",
            "Rotation of the image in degrees, counter-clockwise, instead of the estimate.",
            *_number(-360, 360),
        ),
        Option(
            "corners",
            "What to do with the canvas: `restore` the original rectangle if it is visible, "
            "otherwise like `expand`; `expand` it to hold the whole image; `crop` empty corners; "
            "or keep the `same` size.",
            *_choice(*get_args(Corners)),
        ),
        Option("fill", "Colour of the corners.", *_colour()),
        Option("format", "Format of the result. Default: that of the file.", *_choice(*FORMATS)),
        Option("quality", "Quality of JPEG, WebP and AVIF.", *_whole(1, 100)),
    ]


def task_of(query: Iterable[tuple[str, str]], options: list[Option], default: FileTask) -> FileTask:
    """The task for the query of a URL; refuses unknown and repeated options."""
    by_name = {option.name: option for option in options}
    values: dict[str, Any] = {}  # values for fields of FileTask
    for name, text in query:
        if name not in by_name:
            names = ", ".join(by_name)
            raise Problem("bad_option", f"Expected one of {names}; got {_short(name)}.")
        if name in values:
            raise Problem("bad_option", f"Expected {name} once; got it twice.")
        try:
            values[name] = by_name[name].read(text)
        except ValueError as error:
            raise Problem("bad_option", f"{name} must be {error}; got {_short(text)}.") from error
    return replace(default, **values)


def _short(text: str) -> str:
    return repr(text if len(text) <= LONGEST else text[:LONGEST] + "…")
