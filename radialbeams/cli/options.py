"""The options of the verbs for files, with their help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from radialbeams.limits import DEFAULT, GIB, MIB, Limits

QuarterTurn = StrEnum("QuarterTurn", {"quarter": "90"})
FileFormat = StrEnum(
    "FileFormat",
    ["jpeg", "jpg", "png", "webp", "tiff", "tif", "bmp", "gif", "avif", "jpeg2000", "ppm"],
)
ALIASES = {"jpg": "jpeg", "tif": "tiff"}

MAX_PIXELS, MAX_MEMORY, MAX_FILE_SIZE = (
    DEFAULT.pixels / 1e6,
    DEFAULT.memory / GIB,
    DEFAULT.file_size / MIB,
)


def limits_of(max_pixels: float, max_memory: float, max_file_size: float) -> Limits:
    """In the units of the options: millions, GiB and MiB."""
    return Limits(round(max_pixels * 1e6), round(max_memory * GIB), round(max_file_size * MIB))


Paths = Annotated[
    list[str], typer.Argument(help="Image files and folders, or - for standard input.")
]
Model = Annotated[
    str | None, typer.Option(help="A shipped model's name, a run's folder or an ONNX file.")
]
Refine = Annotated[
    int, typer.Option(min=1, max=64, help="Look at each picture so many times and average.")
]
FirstFrame = Annotated[
    bool, typer.Option("--first-frame", help="Of animated images take the first frame.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes; one for each core if not said.")
]
JsonLines = Annotated[bool, typer.Option("--json", help="One JSON object a line for each file.")]

Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        help="A folder, or a file for one file; beside the input as NAME-upright if not said. "
        "Several inputs lie in the folder as they lie below the folder that they share.",
    ),
]
InPlace = Annotated[bool, typer.Option("--in-place", help="Replace the inputs.")]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="With --in-place: replace also files that would lose something, such as further "
        "pictures, metadata that cannot be kept, or hard links.",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite", help="Replace outputs and a report that exist; else outputs are skipped."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Write no images; say what would be done.")]
Snap = Annotated[
    QuarterTurn | None,
    typer.Option(
        help="To the nearest quarter turn; a JPEG by its EXIF tag, others by their pixels, without "
        "loss but in lossy WebP and AVIF."
    ),
]
Exif = Annotated[
    bool, typer.Option("--exif", help="Quarter turns by a JPEG's EXIF tag and no other way.")
]
Expand = Annotated[
    bool, typer.Option("--expand", help="Cut nothing off, enlarge the canvas. The default.")
]
Crop = Annotated[
    bool, typer.Option("--crop", help="Cut to the largest rectangle without empty corners.")
]
SameSize = Annotated[bool, typer.Option("--same-size", help="Keep the canvas.")]
Fill = Annotated[
    str | None, typer.Option(help="The corners' colour or transparent; black if not said.")
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        min=0, max=1, help="Leave alone below this; if not said, what the model's card says or 0.5."
    ),
]
MinAngle = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=180,
        help="Leave alone if turned by fewer degrees; if not said, what the card says or 1.",
    ),
]
Quality = Annotated[
    int | None, typer.Option(min=1, max=100, help="Of JPEG, WebP and AVIF; 95 if not said.")
]
Format = Annotated[
    FileFormat | None, typer.Option("--format", help="Of the outputs; each input's if not said.")
]
MaxPixels = Annotated[
    float,
    typer.Option(min=0.001, help="Refuse images with more pixels, in millions; 200 by default."),
]
MaxMemory = Annotated[
    float,
    typer.Option(min=0.1, help="Memory for each worker in GiB; images that need more are refused."),
]
MaxFileSize = Annotated[float, typer.Option(min=0.001, help="Refuse larger files, in MiB.")]
Report = Annotated[Path | None, typer.Option(help="Write an HTML contact sheet, before and after.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Forget an unfinished run.")]
