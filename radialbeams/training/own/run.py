"""The folder of a run: what it was started with, and its result."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from radialbeams.cards import Card, Evaluation
from radialbeams.stored import check_fields, read_object
from radialbeams.training.data import ImageSet
from radialbeams.training.distributed import World
from radialbeams.training.own.pixels import read
from radialbeams.training.own.scan import Scan, scan
from radialbeams.training.own.split import Split
from radialbeams.training.weights import write_json


@dataclass(frozen=True)
class TrainedRun:
    """A finished run. Its folder contains weights, ONNX file, card and report."""

    folder: Path
    card: Card
    summary: tuple[str, ...]  # what was learned, how sure, whether to trust it, what it does

    @property
    def evaluation(self) -> Evaluation:
        """The figures on the held-out images."""
        return self.card.metrics[self.card.protocol.name].evaluation

    @property
    def trusted(self) -> bool:
        return not self.card.trust

    @property
    def report(self) -> Path:
        return self.folder / "report.html"


@dataclass(frozen=True)
class Begun:
    """RUN/folder.json: a run belongs to these images, this split and this start."""

    folder: str
    images: str  # sha256 of their names and contents
    held_out: tuple[str, ...]  # their names
    by: str  # what the split is by
    start: str
    chosen: str = ""  # the sentence on how the start was chosen
    minutes: float | None = None  # that the run was finished with
    steps: int | None = None
    realigned: bool = False  # whether crooked images were corrected
    canary: bool = False  # whether a canary was trained on the views of this run
    summary: tuple[str, ...] = ()  # of the finished run

    @property
    def finished(self) -> bool:
        return bool(self.summary)

    def covers(
        self, minutes: float | None, steps: int | None, *, realign: bool, canary: bool
    ) -> bool:
        """Whether the finished run is at least as long, and measured as much, as now requested."""
        if not self.finished or (realign and not self.realigned) or (canary and not self.canary):
            return False
        if steps is not None:
            return self.steps is not None and self.steps >= steps
        return self.minutes is not None and minutes is not None and self.minutes >= minutes


def state_path(out: Path) -> Path:
    return out / "folder.json"


@contextmanager
def removed_if_refused(out: Path, world: World) -> Iterator[None]:
    """Removes the folder of a run that is refused, if it is new and training has not begun."""
    is_new = not out.exists()
    try:
        yield
    except ValueError:
        if is_new and world.is_first and out.exists():
            _remove_prepared(out)
        raise


def _remove_prepared(out: Path) -> None:
    """Removes what is written before training; anything else keeps the folder as it is."""
    state, cache = state_path(out), out / "cache"
    if all(path in (state, cache) for path in out.iterdir()):
        shutil.rmtree(out)


def check_place(out: Path) -> None:
    """Refuses a folder with files of somebody else, which a run would replace or mix with its own.

    Killed before its state is written, a run leaves only its cache and perhaps a hidden file.
    """
    if not out.is_dir() or state_path(out).exists():
        return
    names = sorted(path.name for path in out.iterdir() if path != out / "cache")
    others = [name for name in names if not name.startswith(".")]
    if others:
        raise ValueError(
            f"{out} has files that are not of a run ({', '.join(others[:3])}"
            f"{', …' if len(others) > 3 else ''}). Name a new or empty folder with --out."
        )


def read_begun(out: Path) -> Begun | None:
    """What the run in this folder was started with; None if there is no such run."""
    path = state_path(out)
    if not path.exists():
        return None
    values = read_object(path, "the state of a run")
    check_fields("the state of a run", values, Begun)
    for name in ("held_out", "summary"):
        values[name] = tuple(values.get(name, ()))
    return Begun(**values)


def write_begun(out: Path, begun: Begun) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_json(state_path(out), asdict(begun))


def images_of(out: Path, folder: Path, split: str, size: int, channels: int) -> ImageSet | None:
    """The images of a split of this run; None if the run was made with another folder."""
    begun = read_begun(out)
    if begun is None or not folder.exists() or str(folder.resolve()) != begun.folder:
        return None
    scanned = scan(folder)
    held_out = set(begun.held_out)
    rows = [
        i
        for i, image in enumerate(scanned.images)
        if split == "all" or (image.path in held_out) == (split == "test")
    ]
    return read(scanned, rows, size, channels, out / "cache")


def digest(scanned: Scan) -> str:
    rows = (f"{image.path}\0{image.group}\0{image.sha256}\n" for image in scanned.images)
    return hashlib.sha256("".join(rows).encode(errors="surrogateescape")).hexdigest()


def check_same(begun: Begun, scanned: Scan, split: Split, out: Path) -> None:
    """Raises ValueError if the images or the split differ from those that the run started with."""
    held_out = tuple(scanned.images[i].path for i in split.held_out)
    if begun.images == digest(scanned) and begun.held_out == held_out and begun.by == split.by:
        return
    raise ValueError(
        f"Expected the images that the run in {out} was begun with; {scanned.folder} holds others "
        "(files were added, removed or changed). Restore them, or train in a new folder with "
        f"--out NEW --start {out}."
    )
