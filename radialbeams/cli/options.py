"""The options of `upright` and `angle`, with their help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from radialbeams import zoo
from radialbeams.defaults import SNAP
from radialbeams.limits import DEFAULT, GIB, MIB, Limits

SnapTo = StrEnum("SnapTo", {"auto": "auto", "quarter": "90", "none": "none"})
SNAP_TO = SnapTo(SNAP)
Engine = StrEnum("Engine", ["ray"])
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
    """The limits, from options in millions of pixels, GiB and MiB."""
    return Limits(round(max_pixels * 1e6), round(max_memory * GIB), round(max_file_size * MIB))


Paths = Annotated[
    list[str] | None,
    typer.Argument(help="Image files and folders, or - for an image on standard input."),
]
FilesFrom = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Also read the paths in this file, one per line or separated by null bytes; - reads "
        "the list from standard input.",
    ),
]
Recursive = Annotated[
    bool, typer.Option(help="Whether to search the subfolders of the given folders too.")
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="In folders, read only files that match, such as '*.jpg' or 'holiday/*'. Can be "
        "repeated.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="In folders, skip files that match. Can be repeated."),
]
Model = Annotated[
    str | None,
    typer.Option(
        help=f"Name of a pretrained model, folder of a run, or ONNX file. Default: {zoo.DEFAULT}."
    ),
]
Refine = Annotated[
    int, typer.Option(min=1, max=64, help="Number of views per image whose estimates are averaged.")
]
FirstFrame = Annotated[
    bool, typer.Option("--first-frame", help="Use the first frame of animated images.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", "--workers", min=1, help="Number of processes. Default: one per core."
    ),
]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per file and line.")]

Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        help="Output folder, or output file for one input; files that are not turned are copied "
        "there. Several inputs keep their paths relative to their common folder. Default: "
        "NAME-upright next to each input that is turned.",
    ),
]
InPlace = Annotated[bool, typer.Option("--in-place", help="Replace the input files.")]
Backup = Annotated[
    bool, typer.Option("--backup", help="With --in-place: keep each original as NAME.orig.")
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="With --in-place: also replace read-only files, and files that would lose something, "
        "such as further images, metadata that cannot be kept, or hard links.",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace existing outputs and reports. Default: skip them."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Write nothing; report what would be done.")
]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain", help="Explain for each file what would be done and why; write nothing."
    ),
]
Corrections = Annotated[
    Path | None,
    typer.Option(
        help="Turn only the files in this list, by the angles in it. The page of --report saves "
        "such a list, and is never replaced by the report on the corrected files. "
        "With --in-place, use a list only once."
    ),
]
Snap = Annotated[
    SnapTo,
    typer.Option(
        help="auto: turn by exactly a multiple of 90° if the image fills its canvas and its angle "
        "is near one, otherwise by its angle. 90: always turn by the nearest multiple of 90°. "
        "none: always turn by the estimated angle. "
        "Multiples of 90° are lossless: JPEG by its EXIF tag, other formats by moving pixels "
        "(except lossy WebP and AVIF)."
    ),
]
Exif = Annotated[
    bool, typer.Option("--exif", help="Like --snap 90, but only by the EXIF tag of JPEG files.")
]
Pixels = Annotated[
    bool,
    typer.Option(
        "--pixels",
        help="Turn the pixels of JPEG files by multiples of 90° too, for programs that ignore the "
        "EXIF tag. They are encoded again with the tables of the file, or with --quality.",
    ),
]
Expand = Annotated[
    bool, typer.Option("--expand", help="Enlarge the canvas so that nothing is cropped.")
]
Crop = Annotated[
    bool,
    typer.Option(
        "--crop",
        help="Crop to the largest upright rectangle without empty corners. Default: the original "
        "rectangle if it is visible on a plain canvas, otherwise like --expand.",
    ),
]
SameSize = Annotated[bool, typer.Option("--same-size", help="Keep the size of the canvas.")]
Fill = Annotated[
    str | None,
    typer.Option(
        help="Colour of empty corners, or transparent. Default: the colour of the input's own "
        "filled corners, otherwise transparent if the input has transparency, else black."
    ),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Do not turn images below this confidence. Default: the thresholds of the model's "
        "card, else 0.5. A confidence above the card's leaves more images alone; a lower one "
        "replaces all probability thresholds of the card, and small tilts are turned too.",
    ),
]
MinAngle = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=180,
        help="Do not correct smaller angles (degrees). Default: from the model's card, else 1.",
    ),
]
Quality = Annotated[
    int | None, typer.Option(min=1, max=100, help="Quality of JPEG, WebP and AVIF. Default: 95.")
]
Format = Annotated[
    FileFormat | None,
    typer.Option("--format", help="Format of the outputs. Default: that of each input."),
]
MaxPixels = Annotated[
    float,
    typer.Option(min=0.001, help="Refuse images with more pixels than this, in millions."),
]
MaxMemory = Annotated[
    float,
    typer.Option(min=0.1, help="Memory for each worker in GiB; images that need more are refused."),
]
MaxFileSize = Annotated[float, typer.Option(min=0.001, help="Refuse larger files, in MiB.")]
Report = Annotated[
    Path | None,
    typer.Option(
        help="Write an HTML page that shows each image before and after, and where you can "
        "correct angles."
    ),
]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh",
        help="Start over instead of resuming an unfinished run. Outputs that exist are kept; add "
        "--overwrite to replace them. In place, files that were turned stay turned.",
    ),
]
EngineName = Annotated[
    Engine | None,
    typer.Option(
        "--engine",
        help="Run on Ray. Inputs are image folders, Parquet files with image bytes or WebDataset "
        "shards, as paths or URLs such as s3://bucket/folder.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(help="With --engine ray: address of a Ray cluster. Default: this machine."),
]
Column = Annotated[
    str | None,
    typer.Option(help="With --engine ray: column of image bytes, if a Parquet file has several."),
]
