"""Which files a run takes, in which order, and where each goes: fixed before any is touched."""

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
from radialbeams.batch.walk import FORMATS, SUFFIXES, Found, Passed, Wanted, walk

# Small enough to share out a few large photos, large enough that a journal line costs nothing.
BATCH = 16
UPRIGHT = "-upright"
NO_ALPHA = ("jpeg", "bmp", "ppm")
NOT_CORRECTED = "without a correction"  # a kind of files that are left out
OUTPUTS = "outputs"  # beside the endings, what files can be left out for


class PlanError(ValueError):
    """The command asks for outputs where they cannot go."""


@dataclass(frozen=True)
class Item:
    """One file to read, and where its output goes (None: nothing is written).

    With an `error` it has failed before it is read. `part` is where the output is made.
    """

    path: str
    out: str | None = None
    error: str | None = None
    part: str | None = None


@dataclass(frozen=True)
class Plan:
    """The files and folders that were named, and where the outputs go.

    In `folder`, an output lies where its input lies below the folder that all inputs share: one
    folder's content as it is, several folders under their names. So no output's name depends on
    which other files are there. With neither `folder`, `file` nor `in_place` an output goes beside
    its input; without `writes` nothing goes anywhere.
    """

    sources: tuple[str, ...]
    writes: bool = True
    folder: Path | None = None
    file: Path | None = None
    in_place: bool = False
    overwrite: bool = False
    format: str | None = None
    # Of the files in folders: whether those in folders inside are taken, and by which patterns.
    recursive: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    only: frozenset[str] | None = None  # absolute paths; None: all
    # When the command was given, in nanoseconds since the epoch; None: nobody knows.
    since: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.in_place and self.format:
            raise PlanError("A file turned in place keeps its format; leave out one of the two.")
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise PlanError(f"{self.folder} is a file; name a folder for the outputs.")
        if self.file is not None and os.path.realpath(self.file) in map(
            os.path.realpath, self.sources
        ):
            raise PlanError(f"{self.file} is the input itself. Say --in-place to replace it.")
        for source in self.sources if self.folder is not None else ():
            if os.path.realpath(_holder(source)) == os.path.realpath(str(self.folder)):
                raise PlanError(
                    f"{self.folder} holds the inputs themselves. Choose another folder, or say "
                    "--in-place to replace them."
                )

    @property
    def home(self) -> Path:
        """The folder that keeps the journal: the outputs' own, else the first of the inputs'."""
        if self.folder is not None:
            return self.folder
        if self.file is not None:
            return self.file.parent
        return next(filter(Path.is_dir, map(Path, map(_holder, self.sources))), Path())

    @property
    def roots(self) -> list[Path]:
        """The folders that no other run may work in meanwhile; the journal's comes first."""
        others = dict.fromkeys(map(_holder, self.sources)) if self.in_place else ()
        return list(dict.fromkeys([self.home, *filter(Path.is_dir, map(Path, others))]))

    def items(self, passed: Passed | None = None) -> Iterator[Item]:
        """In plan order; no input comes twice, and no two have the same output."""
        inputs = _Inputs(self)
        seen: set[int] = set()  # hashes: of very many paths they take a tenth of the memory
        taken: set[int] = set()
        for found in self.found(passed):
            path = found.path
            place = os.path.realpath(path) if self.in_place else os.path.abspath(path)
            if hash(place) in seen:
                continue
            seen.add(hash(place))
            if found.error is not None or not self.writes:
                yield Item(path, error=found.error)
                continue
            if self.in_place:
                self._check_untouched(path, place)
                # What a link points to is replaced, so that the link stays one.
                yield Item(path, place if os.path.islink(path) else path)
                continue
            out = _free(self._wanted(path, place), taken)
            inputs.check(path, out)
            problem = problem_with(out)
            yield Item(path, None if problem else out, problem)

    def check_output_folder(self) -> None:
        """Refuses an output folder inside an input that holds images of its own.

        They are inputs by their place, and would be neither read nor mentioned. Outputs of an
        earlier run of the same command may lie there.
        """
        inside = self._output_inside()
        if inside is None:
            return
        outputs = {_key(os.path.abspath(item.out)) for item in self.items() if item.out}
        for found in walk(inside, None, Passed()):
            if found.error is None and _key(os.path.abspath(found.path)) not in outputs:
                raise PlanError(
                    f"{self.folder}, the folder for outputs, lies inside an input and holds "
                    f"images that would be left out, such as {os.path.basename(found.path)}. "
                    "Name a folder elsewhere, or a new one, with -o."
                )

    def _output_inside(self) -> str | None:
        """The folder of the outputs, where it exists and lies in one of the inputs."""
        if self.folder is None or not self.folder.is_dir():
            return None
        place = os.path.realpath(self.folder)
        sources = (os.path.realpath(source) for source in self.sources if os.path.isdir(source))
        return place if any(place.startswith(os.path.join(one, "")) for one in sources) else None

    def first_without_alpha(self) -> str | None:
        """An input whose output would have a format that holds no transparency."""
        if self.format is not None:
            return str(self.file or self.sources[0]) if self.format in NO_ALPHA else None
        paths = (found.path for found in self.found())
        return next((path for path in paths if format_of(path) in NO_ALPHA), None)

    def _check_untouched(self, path: str, place: str) -> None:
        """A run that ended while this one started may have turned the files already."""
        with suppress(OSError):
            if self.since is not None and os.stat(place).st_ctime_ns > self.since:
                raise PlanError(
                    f"{path} changed after this command was started; another run may have turned "
                    "files here already. Look at them, and run the command again if they need it."
                )

    def found(self, passed: Passed | None = None) -> Iterator[Found]:
        """Each file, as often as it is named; `passed` takes what the folders hold besides."""
        passed = Passed() if passed is None else passed
        beside = self.writes and not (self.folder or self.file or self.in_place)
        images = _Stems()
        wanted = Wanted(self.recursive, self.include, self.exclude)
        for source in self.sources:
            isdir = os.path.isdir(source)
            for found in walk(source, self.folder, passed, wanted) if isdir else (Found(source),):
                if self.only is not None and os.path.abspath(found.path) not in self.only:
                    passed.left_out[NOT_CORRECTED] += 1
                elif beside and found.error is None and images.has_original(found.path):
                    passed.left_out[OUTPUTS] += 1
                else:
                    yield found

    @cached_property
    def _shared(self) -> str:
        """The folder that all inputs lie in."""
        return os.path.commonpath([os.path.abspath(_holder(source)) for source in self.sources])

    def _wanted(self, path: str, place: str) -> str:
        if self.file is not None:
            return str(self.file)
        if self.folder is not None:
            below = os.path.relpath(place, self._shared)
            stem, suffix = os.path.splitext(os.path.join(self.folder, below))
            return stem + self._suffix(suffix)
        stem, suffix = os.path.splitext(path)
        return stem + UPRIGHT + self._suffix(suffix)

    def _suffix(self, suffix: str) -> str:
        """The input's own, unless it does not fit the format that was asked for."""
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
    wanted: Wanted | None = None,
    only: Iterable[str] | None = None,
) -> Plan:
    """`out` is a file if it has an image's ending and is no folder already.

    `only` are the paths of files to which the plan is limited.
    """
    wanted = wanted or Wanted()
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
        raise PlanError("A file goes to an output or stays in its place; leave out one of the two.")
    ending = format_of(out)
    if ending is None or os.path.isdir(out):
        return replace(plan, folder=Path(out))
    if len(sources) > 1 or os.path.isdir(sources[0]):
        raise PlanError(
            f"{out} is the name of one file, but a folder or several inputs were named. Name a "
            "folder for the outputs."
        )
    if format not in (None, ending):
        raise PlanError(f"{out} does not end as a file of the format {format} does.")
    return replace(plan, file=Path(out), format=ending)


def batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Always cut at the same places, so that no answer depends on who works, or since when."""
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch


def format_of(path: str | Path) -> str | None:
    suffix = os.path.splitext(path)[1].lower()
    return next((name for name, suffixes in FORMATS.items() if suffix in suffixes), None)


class _Inputs:
    """Keeps outputs off the inputs, under whatever names, links or letter cases they are reached.

    Another walk finds the inputs, but only once some output's place is taken already.
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
        # Whoever names an output of an earlier run does not expect it to be replaced.
        named = self._plan.sources if self._plan.overwrite else ()
        paths = (found.path for found in self._plan.found())
        return {_identity(path) for path in chain(paths, named)}


def _identity(path: str) -> int | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return hash((found.st_dev, found.st_ino))


class _Stems:
    """Knows what an output beside its input was made from. Files come folder by folder."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._stems: set[str] = set()

    def has_original(self, path: str) -> bool:
        """Whether photo.jpg, or an image photo of another kind, is beside photo-upright.jpg."""
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
            self._stems = {stem for stem, suffix in names if suffix.lower() in SUFFIXES}
        return self._stems


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder or ".")
    except OSError:
        return []


def _holder(source: str) -> str:
    return source if os.path.isdir(source) else os.path.dirname(source)


def _free(wanted: str, taken: set[int]) -> str:
    """The name that is wanted, or the same with a number where an earlier output has it."""
    stem, suffix = os.path.splitext(wanted)
    free, number = wanted, 2
    while hash(_key(free)) in taken:
        free, number = f"{stem}-{number}{suffix}", number + 1
    taken.add(hash(_key(free)))
    return free


def _key(name: str) -> str:
    """Equal for names that some file system takes for one: A and a, é and e with an accent."""
    if name.isascii():
        return name.casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
