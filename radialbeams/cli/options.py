"""The options of the verbs for files, with their help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

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
    """In the units of the options: millions, GiB and MiB."""
    return Limits(round(max_pixels * 1e6), round(max_memory * GIB), round(max_file_size * MIB))


Paths = Annotated[
    list[str] | None,
    typer.Argument(help="Image files and folders, or - for an image on standard input."),
]
FilesFrom = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Also take the paths in this file, one per line or separated by zero bytes; - reads "
        "the list from standard input.",
    ),
]
Recursive = Annotated[
    bool, typer.Option(help="Whether folders inside the named folders are searched too.")
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="From folders take only files that match, such as '*.jpg' or 'holiday/*'. Can be "
        "repeated.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="From folders do not take files that match. As above."),
]
Model = Annotated[
    str | None, typer.Option(help="Name of a pretrained model, folder of a run, or ONNX file.")
]
Refine = Annotated[
    int, typer.Option(min=1, max=64, help="Number of looks at each image, which are averaged.")
]
FirstFrame = Annotated[
    bool, typer.Option("--first-frame", help="Take the first frame of animated images.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", "--workers", min=1, help="Number of processes. Default: one per core."
    ),
]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line and file.")]

Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        help="Output folder, or output file for one input; files that are left alone are copied "
        "there. Several inputs keep their paths relative to the folder that they share. Default: "
        "NAME-upright beside each input that is turned.",
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
        "such as further pictures, metadata that cannot be kept, or hard links.",
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
        "--explain", help="Say in words what is seen in each file and what follows; write nothing."
    ),
]
Corrections = Annotated[
    Path | None,
    typer.Option(
        help="Turn only the files in this list, by the angles in it. A report writes such lists."
    ),
]
Snap = Annotated[
    SnapTo,
    typer.Option(
        help="auto: near a quarter turn, and without filled corners, turn by exactly the quarter. "
        "90: always turn by the nearest quarter. none: turn by the estimated angle. Quarter turns "
        "are lossless: JPEG by its EXIF tag, other formats by moving pixels (except lossy WebP "
        "and AVIF)."
    ),
]
Exif = Annotated[
    bool, typer.Option("--exif", help="As --snap 90, and only by the EXIF tag of JPEG files.")
]
Expand = Annotated[
    bool, typer.Option("--expand", help="Enlarge the canvas so that nothing is cut off.")
]
Crop = Annotated[
    bool,
    typer.Option(
        "--crop",
        help="Crop to the largest upright rectangle without empty corners. Default: the original "
        "rectangle where the input shows one on a plain canvas, else as --expand.",
    ),
]
SameSize = Annotated[bool, typer.Option("--same-size", help="Keep the size of the canvas.")]
Fill = Annotated[
    str | None,
    typer.Option(
        help="Colour of empty corners, or transparent. Default: that of the input's own filled "
        "corners, else black, or transparent where the input has transparency."
    ),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Leave images below this confidence alone; it replaces all chances on the model's "
        "card. Default: the thresholds on the card, else 0.5.",
    ),
]
MinAngle = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=180,
        help="Leave smaller angles (degrees) alone. Default: from the model's card, else 1.",
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
        help="Write an HTML page with every image before and after. Angles can be corrected there."
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Forget an unfinished run.")]
EngineName = Annotated[
    Engine | None,
    typer.Option(
        "--engine",
        help="Run on Ray instead of this process: folders, Parquet files with image bytes, "
        "WebDataset shards, paths or addresses such as s3://bucket/folder.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(help="With --engine ray: address of a cluster. Default: this machine."),
]
Column = Annotated[
    str | None,
    typer.Option(help="With --engine ray: column of image bytes, if a Parquet file has several."),
]
