"""Which files a run reads, in which order, and where each output goes; fixed before the run."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

from radialbeams.batch.names import problem_with
from radialbeams.batch.walk import FORMATS, FileFilter, SkippedFiles, WalkedFile, is_image, walk

# Small enough to spread a few large photos over the workers, large enough that writing a line of
# the journal costs next to nothing.
BATCH = 16
UPRIGHT = "-upright"
NO_ALPHA = ("jpeg", "bmp", "ppm")
# Reasons for leaving out a file; the others are file extensions.
NOT_CORRECTED = "without a correction"
OUTPUTS = "outputs"


class PlanError(ValueError):
    """The command asks for outputs in a place where they cannot go."""


@dataclass(frozen=True)
class Item:
    """One file to read, and where its output goes (None: nothing is written).

    An item with an `error` has failed before it is read. `part` is the temporary output path.
    """

    path: str
    out: str | None = None
    error: str | None = None
    part: str | None = None


@dataclass(frozen=True)
class Plan:
    """The files and folders given on the command line, and where their outputs go.

    With `folder`, an output has the same relative path as its input has below the folder that all
    inputs share: the content of a single input folder goes there directly, several input folders
    keep their names. So the name of an output does not depend on which other files exist. Without
    `folder`, `file` and `in_place`, an output goes next to its input. Without `writes`, nothing is
    written.
    """

    sources: tuple[str, ...]
    writes: bool = True
    folder: Path | None = None
    file: Path | None = None
    in_place: bool = False
    overwrite: bool = False
    format: str | None = None
    # Which files in the given folders are read: whether in subfolders too, and by which patterns.
    recursive: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    only: frozenset[str] | None = None  # absolute paths; None: all
    # When the command was started, in nanoseconds since the epoch; None: unknown.
    since: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.in_place and self.format:
            raise PlanError("A file turned in place keeps its format; leave out one of the two.")
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise PlanError(f"{self.folder} is a file; choose a folder for the outputs.")
        if self.file is not None and os.path.realpath(self.file) in map(
            os.path.realpath, self.sources
        ):
            raise PlanError(f"{self.file} is the input itself. Use --in-place to replace it.")
        for source in self.sources if self.folder is not None else ():
            if os.path.realpath(_holder(source)) == os.path.realpath(str(self.folder)):
                raise PlanError(
                    f"{self.folder} holds the inputs themselves. Choose another folder, or use "
                    "--in-place to replace them."
                )

    @property
    def home(self) -> Path:
        """The folder of the journal: the output folder, or else the first input folder."""
        if self.folder is not None:
            return self.folder
        if self.file is not None:
            return self.file.parent
        return next(filter(Path.is_dir, map(Path, map(_holder, self.sources))), Path())

    @property
    def roots(self) -> list[Path]:
        """The folders that the run locks; the one with the journal comes first."""
        others = dict.fromkeys(map(_holder, self.sources)) if self.in_place else ()
        return list(dict.fromkeys([self.home, *filter(Path.is_dir, map(Path, others))]))

    def items(self, skipped: SkippedFiles | None = None) -> Iterator[Item]:
        """The items in plan order. Each input comes once, and no two have the same output."""
        inputs = _Inputs(self)
        inputs_so_far: set[int] = set()  # hashes, which take a tenth of the memory of the paths
        taken: set[int] = set()
        for file in self.files(skipped):
            path = file.path
            place = self.place(path)
            if hash(place) in inputs_so_far:
                continue
            inputs_so_far.add(hash(place))
            if file.error is not None or not self.writes:
                yield Item(path, error=file.error)
                continue
            if self.in_place:
                self._check_untouched(path, place)
                # The target of a link is replaced, so that the link stays a link.
                yield Item(path, place if os.path.islink(path) else path)
                continue
            out = _free(self._output_path(path, place), taken)
            inputs.check(path, out)
            problem = problem_with(out)
            yield Item(path, None if problem else out, problem)

    def place(self, path: str) -> str:
        """What identifies an input: in place, a link and its target are one."""
        return os.path.realpath(path) if self.in_place else os.path.abspath(path)

    def check_output_folder(self) -> None:
        """Refuses an output folder that lies inside an input folder and holds other images.

        These images lie below an input, but would be skipped without notice. Outputs of an
        earlier run of the same command may lie there.
        """
        inside = self.output_inside()
        if inside is None or not os.path.isdir(inside):
            return
        outputs = {_key(os.path.abspath(item.out)) for item in self.items() if item.out}
        for file in walk(inside, None, SkippedFiles()):
            if file.error is None and _key(os.path.abspath(file.path)) not in outputs:
                raise PlanError(
                    f"The output folder {self.folder} lies inside an input folder and holds "
                    f"images that would be skipped, such as {os.path.basename(file.path)}. "
                    "Choose a new folder, or one elsewhere, with -o."
                )

    def output_inside(self) -> str | None:
        """The output folder if it lies inside an input folder, else None; it is never read."""
        if self.folder is None:
            return None
        output = os.path.realpath(self.folder)
        sources = (os.path.realpath(source) for source in self.sources if os.path.isdir(source))
        return (
            output if any(output.startswith(os.path.join(place, "")) for place in sources) else None
        )

    def first_without_alpha(self) -> str | None:
        """The first input whose output format cannot store transparency, or None."""
        if self.format is not None:
            return str(self.file or self.sources[0]) if self.format in NO_ALPHA else None
        paths = (file.path for file in self.files())
        return next((path for path in paths if format_of(path) in NO_ALPHA), None)

    def _check_untouched(self, path: str, place: str) -> None:
        """Refuses files that changed since this command was started.

        Another run that has just ended may have turned them already.
        """
        with suppress(OSError):
            if self.since is not None and os.stat(place).st_ctime_ns > self.since:
                raise PlanError(
                    f"{path} changed after this command was started; another run may have turned "
                    "files here already. Check them, and run the command again if necessary."
                )

    def files(self, skipped: SkippedFiles | None = None) -> Iterator[WalkedFile]:
        """Each input file, repeated if it is given twice; `skipped` records what is skipped."""
        skipped = SkippedFiles() if skipped is None else skipped
        next_to_inputs = self.writes and not (self.folder or self.file or self.in_place)
        images = _Stems()
        wanted = FileFilter(self.recursive, self.include, self.exclude)
        for source in self.sources:
            isdir = os.path.isdir(source)
            for file in (
                walk(source, self.folder, skipped, wanted) if isdir else (WalkedFile(source),)
            ):
                if self.only is not None and os.path.abspath(file.path) not in self.only:
                    skipped.left_out[NOT_CORRECTED] += 1
                elif next_to_inputs and file.error is None and images.has_original(file.path):
                    skipped.left_out[OUTPUTS] += 1
                else:
                    yield file

    @cached_property
    def _shared(self) -> str:
        """The deepest folder that contains all inputs."""
        return os.path.commonpath([os.path.abspath(_holder(source)) for source in self.sources])

    def _output_path(self, path: str, place: str) -> str:
        if self.file is not None:
            return str(self.file)
        if self.folder is not None:
            below = os.path.relpath(place, self._shared)
            stem, suffix = os.path.splitext(os.path.join(self.folder, below))
            return stem + self._suffix(suffix)
        stem, suffix = os.path.splitext(path)
        return stem + UPRIGHT + self._suffix(suffix)

    def _suffix(self, suffix: str) -> str:
        """The extension of the input, unless it does not fit the requested format."""
        if self.format is None or suffix.lower() in FORMATS[self.format]:
            return suffix
        return FORMATS[self.format][0]


def plan_for(
    sources: Sequence[str],
    out: str | None,
    *,
    in_place: bool = False,
    overwrite: bool = False,
    format: str | None = None,
    since: int | None = None,
    wanted: FileFilter | None = None,
    only: Iterable[str] | None = None,
) -> Plan:
    """The plan for these inputs. `only` limits it to the files with these paths.

    `out` is a file if it has the extension of an image format and is not an existing folder;
    otherwise it is a folder. For a single input file, other extensions are refused.
    """
    wanted = wanted or FileFilter()
    plan = Plan(
        tuple(sources),
        in_place=in_place,
        overwrite=overwrite,
        format=format,
        since=since,
        recursive=wanted.recursive,
        include=wanted.include,
        exclude=wanted.exclude,
        only=None if only is None else frozenset(map(os.path.abspath, only)),
    )
    if out is None:
        return plan
    if in_place:
        raise PlanError("-o and --in-place exclude each other; leave out one of the two.")
    ending = format_of(out)
    several = len(sources) > 1 or os.path.isdir(sources[0])
    if ending is None or os.path.isdir(out):
        if not several:
            _check_folder_name(out)
        return replace(plan, folder=Path(out))
    if several:
        raise PlanError(
            f"{out} is the name of one file, but the input is a folder or several files. Choose a "
            "folder for the outputs."
        )
    if format not in (None, ending):
        raise PlanError(f"{out} does not have an extension of the format {format}.")
    return replace(plan, file=Path(out), format=ending)


def _check_folder_name(out: str) -> None:
    """Refuses a new folder for one file if its name looks like that of a file."""
    if os.path.isdir(out) or not re.search(r"[^/]\.[A-Za-z][A-Za-z0-9]{1,4}$", out):
        return
    endings = ", ".join(suffix for suffixes in FORMATS.values() for suffix in suffixes)
    raise PlanError(
        f"{out} has the ending {os.path.splitext(out)[1]}, in which no image can be written. "
        f"Expected one of {endings}; or end the name with / for a folder."
    )


def batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Cuts the plan into batches of a fixed size.

    The cuts do not depend on the number of workers or on a restart, so neither do the estimates.
    """
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch


def format_of(path: str | Path) -> str | None:
    suffix = os.path.splitext(path)[1].lower()
    return next((name for name, suffixes in FORMATS.items() if suffix in suffixes), None)


class _Inputs:
    """Refuses outputs that would replace an input, also through a link or another letter case.

    The inputs are collected by another walk, but only once the place of some output is taken.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def check(self, path: str, out: str) -> None:
        identity = _identity(out)
        if identity is not None and identity in self._identities:
            raise PlanError(
                f"{out}, where the output of {path} would go, is one of the inputs. "
                "Choose another folder, or say --in-place to replace the inputs."
            )

    @cached_property
    def _identities(self) -> set[int | None]:
        # An output of an earlier run that the user gives as an input must not be replaced.
        named = self._plan.sources if self._plan.overwrite else ()
        paths = (file.path for file in self._plan.files())
        return {_identity(path) for path in chain(paths, named)}


def _identity(path: str) -> int | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return hash((status.st_dev, status.st_ino))


class _Stems:
    """Recognises outputs that lie next to their inputs. Caches one folder at a time."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._stems: set[str] = set()

    def has_original(self, path: str) -> bool:
        """For photo-upright.jpg: whether photo.jpg, or photo in another format, lies next to it."""
        folder, name = os.path.split(path)
        stem, suffix = os.path.splitext(name)
        original = re.fullmatch(rf"(.+){UPRIGHT}(-\d+)?", stem)
        if original is None:
            return False
        return original[1] in self._in(folder) or os.path.exists(
            os.path.join(folder, original[1] + suffix)
        )

    def _in(self, folder: str) -> set[str]:
        if folder != self._folder:
            names = map(os.path.splitext, _names(folder))
            self._folder = folder
            self._stems = {stem for stem, suffix in names if is_image(suffix.lower())}
        return self._stems


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder or ".")
    except OSError:
        return []


def _holder(source: str) -> str:
    return source if os.path.isdir(source) else os.path.dirname(source)


def _free(wanted: str, taken: set[int]) -> str:
    """The wanted name, with a number added if an earlier output has it."""
    stem, suffix = os.path.splitext(wanted)
    free, number = wanted, 2
    while hash(_key(free)) in taken:
        free, number = f"{stem}-{number}{suffix}", number + 1
    taken.add(hash(_key(free)))
    return free


def _key(name: str) -> str:
    """Equal for names that a file system may treat as the same: other case or Unicode form."""
    if name.isascii():
        return name.casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
