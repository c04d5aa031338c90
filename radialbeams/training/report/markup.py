"""Pieces of HTML. Text from files is escaped by `text`."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from radialbeams.escaping import shown
from radialbeams.training.report.pictures import Pixels, data_uri

OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*[a-z](?: \d+(?:\.\d+)?)?")


def text(value: object) -> str:
    """Safe inside elements and quoted attributes, and on one line."""
    return html.escape(shown(str(value)))


def prose(sentences: str) -> str:
    """As `text`, with options of commands as code, which no line break tears apart."""
    return OPTION.sub(r'<code class="option">\g<0></code>', text(sentences))


def paragraph(words: str, kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f"<p{mark}>{prose(words)}</p>"


def table(head: Sequence[str], rows: Sequence[Sequence[object]], caption: str) -> str:
    """The first column names the row; the others are figures or short notes."""
    header = "".join(f'<th scope="col">{text(name)}</th>' for name in head)
    lines = "".join(
        f'<tr><th scope="row">{text(first)}</th>'
        + "".join(f"<td>{text(value)}</td>" for value in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<p class="caption">{text(caption)}</p>'
        f'<div class="wide" tabindex="0" role="region" aria-label="{text(caption)}"><table>'
        f"<thead><tr>{header}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def folded(summary: str, inside: str) -> str:
    return f"<details><summary>{text(summary)}</summary>{inside}</details>"


def figure(chart: str, title: str, caption: str, numbers: str = "") -> str:
    """A chart with its title, a caption, and its numbers as a table for those who cannot see it."""
    more = folded("The numbers", numbers) if numbers else ""
    return (
        f'<figure class="chart"><h3>{text(title)}</h3>{chart}'
        f"<figcaption>{caption}</figcaption>{more}</figure>"
    )


def picture(pixels: Pixels, words: str) -> str:
    return (
        f'<img class="disc" src="{data_uri(pixels)}" alt="{text(words)}" '
        'width="96" height="96" loading="lazy" decoding="async">'
    )


def pair(before: Pixels, after: Pixels, between: str = "<span aria-hidden=true>→</span>") -> str:
    return f'<div class="pair">{picture(before, "before")}{between}{picture(after, "after")}</div>'


def section(slug: str, title: str, inside: str) -> str:
    head = f'<h2 id="{slug}-h">{text(title)}</h2>'
    return f'<section id="{slug}" aria-labelledby="{slug}-h">{head}{inside}</section>'
