"""The report as one HTML page: every file before and after, filters, and corrections of angles.

The page is self-contained. Its security policy allows only the script in this folder, by its hash,
so that nothing in the name of a file can be executed.
"""

from __future__ import annotations

import hashlib
import html
import shutil
from base64 import b64encode
from collections import Counter
from pathlib import Path
from tempfile import TemporaryFile

from radialbeams.batch import Outcome
from radialbeams.escaping import as_json, shown
from radialbeams.files import write_whole

PICTURES = 2000  # files shown with thumbnails; more would make the page too large for browsers
KINDS = {
    "turned": "turned upright",
    "upright already": "upright or nearly upright, left alone",
    "unsure": "unsure, left alone",
    "between quarter turns": "at no quarter turn, left alone",
    "no up": "no clear up found, left alone",
    "document without a clear quarter": "document without a clear quarter",
    "camera raw": "camera raw, left alone",
    "exists": "done before, skipped",
    "several frames": "several frames or pages, skipped",
    "failed": "failed",
}
HERE = Path(__file__).parent

HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
{filters_style}
</style>
<header>
<h1>{title}</h1>
<p>{summary}</p>
<p>Left: before. Right: after. The estimate is the rotation that the picture has,
 counter-clockwise if positive, with the probability that it is correct to within 10°; “turned by”
 is the rotation that was applied to undo it, with the opposite sign. Click a picture to enlarge
 it and to correct its angle.{limit}</p>
<div class="tools"><fieldset><legend>Show</legend>{filters}</fieldset>
<label class="sort">Sort by <select id="sort"><option value="order">order of the run
<option value="least">least confident first<option value="most">most confident first
<option value="angle">largest angle first<option value="name">name</select></label></div>
</header>
<ol id="files">
"""
FOOT = """</ol>
<p id="empty" hidden>There are no files of this kind.</p>
<footer id="corrections" hidden><span id="count"></span>
<button id="save" type="button">Save corrections.json</button>
<button id="discard" type="button">Discard them</button>
<span class="hint">Then repeat the command with
<code>--corrections corrections.json{overwrite}</code>, with the path of the saved file. It turns
 only the corrected files; their report gets a new name, and this page stays.</span></footer>
<dialog id="detail" aria-labelledby="detail-name"><form method="dialog"><header>
<h2 id="detail-name"></h2><button id="close" aria-label="Close">×</button></header></form>
<div class="views"><figure><div class="stage"><img id="detail-before" alt="before"></div>
<figcaption>before, turned back by the angle below</figcaption></figure>
<figure id="detail-after-box"><div class="stage"><img id="detail-after" alt="after"></div>
<figcaption>after</figcaption></figure>
<figure><div class="stage dial" id="detail-dial"></div><figcaption>the model's estimate: the longer
 the ray, the more probable that up is in this direction</figcaption></figure></div>
<p id="detail-note"></p>
<div class="correct"><label>The picture is rotated by <input id="angle" type="number" min="-180"
 max="180" step="0.1" aria-label="angle in degrees">°</label>
<input id="slider" type="range" min="-180" max="180" step="0.5" aria-label="angle">
<button type="button" data-turn="-90">−90°</button>
<button type="button" data-turn="90">+90°</button>
<button type="button" data-turn="180">180°</button>
<button type="button" id="apply" class="main">Correct to this angle</button>
<button type="button" id="leave">Leave it as it was</button>
<button type="button" id="forget">Undo the correction</button></div>
<p class="hint">Arrow keys change the angle; Escape closes.</p>
</dialog>
<script>{script}</script>
</html>
"""
FILTER = """ .{slug} .what {{ color: var(--{slug}); }}
 body:has(#show-{slug}:checked) li:not(.{slug}) {{ display: none; }}"""
CARD = """<li class="{slug}"{data}>{pictures}
<div class="name" title="{path}"><bdi>{path}</bdi></div>
<div class="note"><span class="what">{what}</span><span>{estimate}</span></div>{error}</li>
"""
# The probabilities that decide, by their names in the records.
PROBABILITIES = {
    "confidence": "probability of the angle",
    "quarter": "probability of the quarter turn",
    "exact": "probability of an exact quarter turn",
    "frame": "probability of the rectangle's angle",
    "upright": "probability that it is upright",
}
# On a card whose confidence alone would let the picture be turned.
BETWEEN = (
    "A picture that fills its canvas is turned only by quarter turns, and this angle is none. "
    "--snap none turns it by the estimate."
)
PAIR = """<button class="pair" type="button" aria-label="Enlarge"><img src="{before}" \
alt="before" loading="lazy"><span>→</span><img src="{after}" alt="after" loading="lazy"></button>"""
SINGLE = """<button class="pair single" type="button" aria-label="Enlarge"><img src="{before}" \
alt="unchanged" loading="lazy"></button>"""


class ReportSheet:
    """Collects outcomes on disk, not in memory, and writes the page at the end."""

    def __init__(self, title: str, *, in_place: bool = False) -> None:
        self._title, self._in_place = title, in_place
        self._counts: Counter[str] = Counter()
        self._cards = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - until it is written

    def add(self, outcome: Outcome) -> None:
        self._counts[outcome.kind] += 1
        self._cards.write(_card(outcome, self._in_place))

    def write(self, path: Path) -> None:
        """Writes the page atomically."""
        with self._cards:
            write_whole(path, self._write)

    def _write(self, path: Path) -> None:
        script = (HERE / "page.js").read_text(encoding="utf-8")
        with open(path, "w", encoding="utf-8") as page:
            page.write(_head(self._title, self._counts, script))
            self._cards.seek(0)
            shutil.copyfileobj(self._cards, page)
            overwrite = "" if self._in_place else " --overwrite"
            page.write(FOOT.format(script=script, overwrite=overwrite))


def _head(title: str, counts: Counter[str], script: str) -> str:
    present = [kind for kind in KINDS if counts[kind]]
    total = counts.total()
    pills = [_pill("all", f"all {total:,}", checked=True)]
    pills += [_pill(_slug(kind), f"{KINDS[kind]} {counts[kind]:,}") for kind in present]
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return HEAD.format(
        digest=b64encode(digest).decode("ascii"),
        title=html.escape(shown(title)),
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        summary=f"{total:,} file{'' if total == 1 else 's'}: "
        + "; ".join(_counted(kind, counts[kind]) for kind in present),
        limit=f" Pictures are shown for the first {PICTURES:,} files." if total > PICTURES else "",
        filters="".join(pills),
        filters_style="\n".join(FILTER.format(slug=_slug(kind)) for kind in KINDS),
    )


def _counted(kind: str, count: int) -> str:
    words = KINDS[kind] if count == 1 else KINDS[kind].replace("document ", "documents ")
    return f"{count:,} {words}"


def _slug(kind: str) -> str:
    """A name for a kind that is valid in style sheets."""
    return kind.split()[0] if kind.startswith(("upright", "document")) else kind.replace(" ", "-")


def _pill(slug: str, text: str, *, checked: bool = False) -> str:
    state = " checked" if checked else ""
    return f'<label><input type="radio" name="show" id="show-{slug}"{state}>{text}</label>'


def _card(outcome: Outcome, in_place: bool) -> str:
    pictures, estimate, error = "", "", ""
    if outcome.before and outcome.after:
        pictures = PAIR.format(before=outcome.before, after=outcome.after)
    elif outcome.before:
        pictures = SINGLE.format(before=outcome.before)
    if outcome.angle_signed is not None:
        sure = "" if outcome.confidence is None else f" · {outcome.confidence:.0%}"
        estimate = f"estimate {outcome.angle_signed:.2f}°{sure}".replace("-", "−")
    if outcome.problem is not None:
        error = f'<div class="error">{html.escape(shown(outcome.problem))}</div>'
    elif outcome.kind == "between quarter turns":
        error = f'<div class="error">{BETWEEN}</div>'
    return CARD.format(
        slug=_slug(outcome.kind),
        data=_data(outcome, in_place),
        what=_what(outcome),
        pictures=pictures,
        path=html.escape(shown(outcome.path)),
        estimate=estimate,
        error=error,
    )


def _what(outcome: Outcome) -> str:
    if outcome.applied_signed is None:
        return KINDS[outcome.kind]
    return f"turned by {outcome.applied_signed:g}°".replace("-", "−")


def _data(outcome: Outcome, in_place: bool) -> str:
    """Attributes for the script. The path is JSON, because it may not be valid Unicode."""
    undone = -(outcome.applied_ccw or 0.0) % 360
    fields = {
        "path": as_json(outcome.path),
        "angle": outcome.angle_signed,
        "confidence": outcome.confidence,
        "dial": outcome.dial,
        "undone": f"{undone:g}" if outcome.applied_ccw is not None else None,
        # In place, the file is already turned, and a correction starts from there.
        "start": f"{undone:g}" if in_place else "0",
        "why": _why(outcome),
    }
    return "".join(
        f' data-{name}="{html.escape(str(value))}"'
        for name, value in fields.items()
        if value is not None
    )


def _why(outcome: Outcome) -> str | None:
    if outcome.value is None or outcome.measure is None:
        return None
    if outcome.measure == "angle":
        return f"angle {outcome.value:g}°, threshold {outcome.threshold:g}°"
    name = PROBABILITIES.get(outcome.measure, outcome.measure)
    return f"{name} {outcome.value:.1%}, threshold {outcome.threshold:.1%}"
