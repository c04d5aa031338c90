"""A contact sheet as one HTML page: every file before and after, without scripts or other files."""

from __future__ import annotations

import html
import os
import shutil
from collections import Counter
from pathlib import Path
from tempfile import TemporaryFile

from radialbeams.batch import Outcome
from radialbeams.batch.system import open_new

PICTURES = 2000  # files shown with pictures: more would make a page that no browser likes
KINDS = {
    "turned": "turned upright",
    "left": "nearly upright",
    "unsure": "unsure, left alone",
    "exists": "done before, skipped",
    "failed": "failed",
}

HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
 :root {{ color-scheme: light dark; --paper: light-dark(#f6f8fa, #0d1117);
   --card: light-dark(#ffffff, #161b22); --ink: light-dark(#1b1f24, #e6edf3);
   --soft: light-dark(#57606a, #9aa4af); --line: light-dark(#d0d7de, #30363d);
   --turned: light-dark(#1a7f37, #3fb950); --left: light-dark(#57606a, #9aa4af);
   --unsure: light-dark(#9a6700, #d29922); --exists: light-dark(#0969da, #58a6ff);
   --failed: light-dark(#cf222e, #f85149); }}
 * {{ box-sizing: border-box; }}
 body {{ font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
   margin: 0 auto; max-width: 90rem; padding: 1.5rem 1.25rem 4rem; }}
 h1 {{ font-size: 1.5rem; margin: 0 0 .25rem; }}
 p {{ margin: .25rem 0; color: var(--soft); }}
 fieldset {{ border: 0; padding: 0; margin: 1rem 0; display: flex; flex-wrap: wrap; gap: .5rem; }}
 legend {{ position: absolute; opacity: 0; }}
 label {{ border: 1px solid var(--line); border-radius: 2rem; padding: .25rem .8rem;
   background: var(--card); cursor: pointer; }}
 label:has(:checked) {{ border-color: var(--ink); font-weight: 600; }}
 label:focus-within {{ outline: 2px solid var(--exists); outline-offset: 2px; }}
 input {{ position: absolute; opacity: 0; }}
 ol {{ list-style: none; margin: 0; padding: 0; display: grid; gap: .75rem;
   grid-template-columns: repeat(auto-fill, minmax(17.5rem, 1fr)); }}
 li {{ background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
   padding: .6rem; content-visibility: auto; contain-intrinsic-size: auto 13.5rem; }}
 .pair {{ display: grid; grid-template-columns: 1fr 1.2rem 1fr; align-items: center;
   height: 9rem; margin-bottom: .5rem; color: var(--soft); text-align: center; }}
 .pair img {{ max-width: 100%; max-height: 9rem; margin: auto; display: block;
   border-radius: .25rem; }}
 .name {{ overflow: hidden; text-overflow: ellipsis; white-space: nowrap; direction: rtl;
   text-align: left; font-weight: 600; }}
 .name bdi {{ unicode-bidi: isolate; direction: ltr; }}
 .note {{ display: flex; justify-content: space-between; gap: .75rem; color: var(--soft);
   font-variant-numeric: tabular-nums; }}
 .error {{ color: var(--soft); }}
{colours}
</style>
<h1>{title}</h1>
<p>{summary}</p>
<p>Left: as it came. Right: as it goes. Angles are how far the picture had been turned,
 counter-clockwise; confidence is the chance that the angle is within 10°.{limit}</p>
<fieldset><legend>Show</legend>{filters}</fieldset>
<ol>
"""
COLOUR = """ .{kind} .what {{ color: var(--{kind}); font-weight: 600; }}
 body:has(#show-{kind}:checked) li:not(.{kind}) {{ display: none; }}"""
CARD = """<li class="{kind}">{pictures}<div class="name" title="{path}"><bdi>{path}</bdi></div>
<div class="note"><span class="what">{what}</span><span>{found}</span></div>{error}</li>
"""
PAIR = """<div class="pair"><img src="{before}" alt="before"><span>→</span>\
<img src="{after}" alt="after"></div>"""


class Sheet:
    """Takes outcomes as they come, keeps none of them in memory, and writes the page at the end."""

    def __init__(self, title: str, *, snap: bool = False) -> None:
        self._title = title
        self._kinds = {**KINDS, "left": "nearest quarter turn is 0°"} if snap else KINDS
        self._counts: Counter[str] = Counter()
        self._cards = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - until it is written

    def add(self, outcome: Outcome) -> None:
        self._counts[outcome.kind] += 1
        self._cards.write(_card(outcome, self._kinds[outcome.kind]))

    def write(self, path: Path) -> None:
        """At once: whoever looks sees the whole page or none."""
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)  # left by a kill, or planted
        try:
            with self._cards, open(open_new(str(part)), "w", encoding="utf-8") as page:
                page.write(_head(self._title, self._counts, self._kinds))
                self._cards.seek(0)
                shutil.copyfileobj(self._cards, page)
                page.write("</ol>\n</html>\n")
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def _head(title: str, counts: Counter[str], kinds: dict[str, str]) -> str:
    present = [kind for kind in kinds if counts[kind]]
    total = counts.total()
    pills = [_pill("all", f"all {total:,}", checked=True)]
    pills += [_pill(kind, f"{kinds[kind]} {counts[kind]:,}") for kind in present]
    return HEAD.format(
        title=html.escape(title),
        summary=f"{total:,} files: "
        + ", ".join(f"{counts[kind]:,} {kinds[kind]}" for kind in present),
        limit=f" Pictures are shown for the first {PICTURES:,} files." if total > PICTURES else "",
        filters="".join(pills),
        colours="\n".join(COLOUR.format(kind=kind) for kind in KINDS),
    )


def _pill(kind: str, text: str, *, checked: bool = False) -> str:
    state = " checked" if checked else ""
    return f'<label><input type="radio" name="show" id="show-{kind}"{state}>{text}</label>'


def _card(outcome: Outcome, what: str) -> str:
    pictures, found, error = "", "", ""
    if outcome.before and outcome.after:
        pictures = PAIR.format(before=outcome.before, after=outcome.after)
    if outcome.angle_ccw is not None:
        sure = "" if outcome.confidence is None else f" · {outcome.confidence:.0%}"
        found = f"{outcome.angle_ccw:.2f}°{sure}"
    if outcome.error is not None:
        error = f'<div class="error">{html.escape(outcome.error)}</div>'
    path = html.escape(os.fsencode(outcome.path).decode("utf-8", "replace"))
    return CARD.format(
        kind=outcome.kind,
        what=what,
        pictures=pictures,
        path=path,
        found=found,
        error=error,
    )
