"""Text for the terminal: rows, summaries, the table of models, and a progress bar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from radialbeams.cli import streams
from radialbeams.cli.plain_progress import PlainProgress
from radialbeams.escaping import shown
from radialbeams.stored import JsonDict

if TYPE_CHECKING:  # importing it takes longer than `--help` may
    from radialbeams.batch import BatchRun, JobSettings, Outcome
    from radialbeams.cards import Card

ROWS = 40  # with more files than this, only files that need attention get a row
HEADER = f"{'angle':>8}  {'confidence':>10}  {'symmetry':>8}  file"
BETWEEN = "between quarter turns"  # a kind, as `Outcome` names it
# What was done, or why nothing was done, in the order of the summary.
KINDS = {
    "turned": "turned",
    "upright already": "left, upright or nearly upright",
    "unsure": "left, unsure",
    BETWEEN: "left, fills its canvas and is at no quarter turn",
    "no up": "left, no clear up found",
    "document without a clear quarter": "left, document without a clear quarter",
    "camera raw": "left, camera raw: --format jpeg writes the preview upright",
    "exists": "skipped, the output exists",
    "several frames": "skipped, several frames or pages",
    "failed": "failed",
}
UNSURE = (
    "unsure: --report PAGE.html shows these files and lets you correct them by hand; a lower "
    "--min-confidence turns more pictures, small tilts too, with more mistakes"
)
ANY_ANGLE = (
    "pictures that fill their canvas are turned by quarter turns only; --snap none turns them by "
    "any angle"
)
PDF = "to turn the pages of a PDF, save them as images first: pdftoppm -r 200 -png FILE.pdf PAGE"
CORRECTED = (
    "the corrections are applied; the same list turns them again: in place, use a list only once"
)
NOT_CORRECTED = "outputs that exist were not corrected: add --overwrite to replace them"
NOT_REPLACED = (
    "outputs that exist were kept, whatever model and options made them: add --overwrite to "
    "replace them"
)
# The same in the singular; reasons that are not here have one form.
ONE = {
    "hidden folders": "hidden folder",
    "pipes and devices": "pipe or device",
    "links to folders": "link to a folder",
    "broken links": "broken link",
}
LEFT_ALONE = ("upright already", "unsure", BETWEEN, "no up", "document without a clear quarter")
QUARTERS = "left, the nearest quarter turn is 0°"


def print_line(line: str) -> None:
    """Prints one line of data with unsafe characters replaced; JSON goes through `as_json`."""
    print(shown(line), flush=True)


def print_message(line: str) -> None:
    """Prints one line to standard error, unless its reader has gone."""
    streams.print_message(shown(line))


def words(kind: str, job: JobSettings) -> str:
    return QUARTERS if kind == "upright already" and job.snap == "90" else KINDS[kind]


def plural(text: str, count: int) -> str:
    """The text for several files."""
    if count == 1:
        return text
    text = text.replace("document without", "documents without")
    return text.replace("fills its canvas and is", "fill their canvas and are")


def signed_angle(degrees: float) -> str:
    """The angle with a proper minus sign."""
    return f"{degrees:.2f}°".replace("-", "−")


def row(outcome: Outcome, job: JobSettings) -> str:
    angle = "" if outcome.angle_signed is None else signed_angle(outcome.angle_signed)
    confidence = "" if outcome.confidence is None else f"{outcome.confidence:.0%}"
    symmetry = "" if outcome.symmetry is None else str(outcome.symmetry)
    lost = f", without {outcome.lost}" if outcome.lost else ""
    note = f"  ({_done(outcome, job)}{lost})" if outcome.action else ""
    return f"{angle:>8}  {confidence:>10}  {symmetry:>8}  {outcome.path}{note}"


def _done(outcome: Outcome, job: JobSettings) -> str:
    if outcome.applied_signed is None:
        return words(outcome.kind, job)
    methods = {"exif": ", EXIF tag", "pixels": ", lossless", "encoded": ", encoded again"}
    method = methods.get(outcome.method or "", "")
    return f"turned by {signed_angle(outcome.applied_signed)}{method}"


def failure(outcome: Outcome) -> str:
    skipped = "skipped. " if outcome.action == "skipped" else ""
    is_pdf = outcome.path.lower().endswith(".pdf") and Path(outcome.path).exists()
    hint = f" ({PDF})" if is_pdf else ""
    return f"radialbeams: {outcome.path}: {skipped}{outcome.problem}{hint}"


def not_in_output(counts: Counter[str], left_out: Counter[str], folder: Path) -> Iterator[str]:
    """A line on the files of the input folders that have no counterpart in the output folder."""
    from radialbeams.batch import NOT_CORRECTED

    parts = {
        "failed": counts["failed"],
        "skipped": counts["several frames"],
        "not read": left_out.total() - left_out[NOT_CORRECTED],
    }
    if missing := sum(parts.values()):
        which = ", ".join(f"{count:,} {name}" for name, count in parts.items() if count)
        yield f"{_files(missing)} {'is' if missing == 1 else 'are'} not in {folder} ({which})"


def summary(counts: Counter[str], seconds: float, job: JobSettings) -> str:
    kinds = [kind for kind in KINDS if counts[kind]]
    texts = {kind: plural(words(kind, job), counts[kind]) for kind in kinds}
    parts = "; ".join(f"{counts[kind]:,} {text}" for kind, text in texts.items())
    note = "" if job.writes else " (dry run, none written)"
    return f"{_files(counts.total())} in {seconds:.1f} s: {parts}{note}"


def thresholds(counts: Counter[str], job: JobSettings, card: Card) -> Iterator[str]:
    """A line on the thresholds and the model, if images were left alone by them."""
    if any(counts[kind] for kind in LEFT_ALONE):
        yield _thresholds(job, card)


def _thresholds(job: JobSettings, card: Card) -> str:
    """The thresholds for turning a picture, and the model."""
    if card.trust and job.min_confidence > 1:
        return (
            f"every picture is left alone: {untrusted(job.model, card)} To turn pictures anyway, "
            "add --min-confidence 0.5."
        )
    about = f" ({card.summary.rstrip('.')})" if card.summary else ""
    return f"{_needed(job)}; model {job.model}{about}"


def _needed(job: JobSettings) -> str:
    """The confidence that the model needs before a picture is turned."""
    quarter = f"a picture is turned by a quarter only if that is {100 * job.min_quarter:g}% sure"
    angle = f"only if that is {100 * job.min_confidence:g}% sure and at least {job.min_angle:g}°"
    if job.snap == "90":
        return quarter
    if job.snap == "auto":
        return f"{quarter}, and by another angle {angle}"
    upright = ""
    if job.max_upright < 1:
        upright = f", and at most {100 * job.max_upright:g}% likely to be upright already"
    return f"a picture is turned {angle}{upright}"


def untrusted(model: str, card: Card) -> str:
    """Why a model's estimates should not be acted on."""
    reasons = " ".join(f"{reason.rstrip('.')}." for reason in card.trust)
    return f"model {model} is not to be trusted: {reasons}"


def resumption(run: BatchRun) -> Iterator[str]:
    if run.done_before:
        yield f"radialbeams: resuming; {run.done_before:,} of {run.files:,} were done before."
    if run.added:
        yield (
            f"radialbeams: {_files(run.added)} added since; repeat the command afterwards to "
            f"process {'it' if run.added == 1 else 'them'}."
        )


def left_out(counts: Counter[str]) -> Iterator[str]:
    """Lines on the files in the folders that were not read."""
    from radialbeams.batch import OUTPUTS
    from radialbeams.images import EXTRA, missing_suffixes

    kinds = [kind for kind, _ in counts.most_common() if kind != OUTPUTS]
    if kinds:
        files = _files(sum(counts[kind] for kind in kinds))
        words = (ONE.get(kind, kind) if counts[kind] == 1 else kind for kind in kinds)
        each = (f"{counts[kind]:,} {word}" for kind, word in zip(kinds, words, strict=True))
        yield f"{files} not read ({', '.join(each)})"
    if ".pdf" in kinds:
        yield PDF
    if needed := sorted(missing_suffixes() & set(kinds)):
        yield f"to read {', '.join(needed)} files: {EXTRA}"
    if counts[OUTPUTS]:
        yield (
            f"{_files(counts[OUTPUTS])} not read: outputs of this command next to their originals "
            "(NAME-upright). Choose an output with -o to read them too."
        )


def _files(count: int) -> str:
    return f"{count:,} file{'s' if count != 1 else ''}"


def models_table(cards: Mapping[str, Card]) -> Iterator[str]:
    """One line for each evaluation of a model, and below them notes on the model."""
    columns = ("mean", "median", "within 10°", "paper-equivalent", "views")
    width = max(len(name) for name in (*cards, "model")) + 2
    titles = "".join(f"{name:>{len(name) + 3}}" for name in columns)
    yield f"{'model':<{width}}{'measured':<18}{titles}"
    for name, card in cards.items():
        yield ""
        yield from _figures(f"{name:<{width}}", card, columns)
        yield from (f"  {line}" for line in _notes(card))


def _figures(name: str, card: Card, columns: tuple[str, ...]) -> Iterator[str]:
    for number, (protocol, measured) in enumerate(card.metrics.items()):
        figures = measured.evaluation
        values = (
            f"{figures.mean:.2f}°",
            f"{figures.median:.2f}°",
            f"{figures.within_10:.1%}",
            f"{figures.paper_equivalent:.2f}°",
            f"{figures.n:,}",
        )
        cells = "".join(
            f"{value:>{len(column) + 3}}" for value, column in zip(values, columns, strict=True)
        )
        first = name if number == 0 else " " * len(name)
        yield f"{first}{protocol.replace('_', ' '):<18}{cells}"


def _notes(card: Card) -> Iterator[str]:
    """Notes on a model; the card of your own model may lack some of them."""
    cost = card.cost and card.cost.milliseconds_a_view_one_cpu_thread
    speed = "" if cost is None else f", {cost:.2f} ms per view on one CPU thread"
    yield card.summary or "no summary"
    if card.data is not None:
        yield f"data: {card.data.name}, {card.data.training_images or 0:,} training images"
    yield f"cost: {card.parameters or 0:,} parameters{speed}"
    yield f"works on: {card.works_on}"
    yield f"fails on: {card.fails_on}"
    yield f"licence: {card.licence}"


def measured(model: str | Path, data: str, figures: JsonDict) -> Iterator[str]:
    """The figures of `radialbeams evaluate --json` in words, one line each."""
    where = f"{figures['split']}, protocol {figures['protocol']}"
    images = figures["n"] // figures["seeds"]
    of = f"{images:,} image{'s' if images != 1 else ''}"
    yield f"{model} on {data}, {where}: {figures['n']:,} views of {of}"
    for name in ("mean", "median", "p95", "paper_equivalent"):
        yield f"  {name.replace('_', '-'):<17}{figures[name]:>8.2f}°"
    for name in ("quarter", "quarter_plus_1"):
        if name in figures:
            yield f"  {name.replace('_', ' '):<17}{figures[name]:>8.2f}°"
    for name in ("within_5", "within_10", "flips"):
        degree = "°" if name.startswith("within") else ""
        yield f"  {name.replace('_', ' ') + degree:<17}{figures[name]:>8.2%}"
    for name, mean in figures["groups"].items():
        yield f"    {name:<30}{mean:>8.2f}°"


@dataclass(frozen=True)
class Bar:
    """A progress bar: `show` sets the step and the text; `say` prints a line above the bar."""

    show: Callable[[int, str], None]
    say: Callable[[str], None]


@contextmanager
def progress_bar(steps: int, text: str) -> Iterator[Bar]:
    """Progress with the remaining time, on standard error: a bar, or lines if it is piped."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Bar(PlainProgress(steps, print_message).show, print_message)
        return
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeRemainingColumn(),
        console=console,
        redirect_stdout=False,  # data must still go to standard output
    ) as bar:
        task = bar.add_task(shown(text), total=steps)
        yield Bar(
            lambda step, text: bar.update(task, completed=step, description=shown(text)),
            lambda line: console.print(shown(line), markup=False, highlight=False, soft_wrap=True),
        )


@contextmanager
def share_bar(steps: int) -> Iterator[Bar]:
    """A bar whose text includes the remaining time."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (BarColumn(24), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, redirect_stdout=False) as bar:
        task = bar.add_task("", total=steps)
        yield Bar(
            lambda step, text: bar.update(task, completed=step, description=shown(text)),
            lambda line: console.print(shown(line), markup=False, highlight=False, soft_wrap=True),
        )
