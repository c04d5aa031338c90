"""Building blocks of sections: records read from files, and numbers as text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

Record = dict[str, Any]


Rows = list[list[str]]
# What is held out, by the data's name and the card's `split_by`.
HELD_OUT = {
    ("coil100", "default"): "COIL-100, a random fifth of the images",
    ("coil100", "object"): "COIL-100, unseen objects 81–100",
    ("lfw", "default"): "LFW, an unseen fifth of the people",
    ("photos", "default"): "everyday photos, one in fifty",
    ("coco", "default"): "photos of COCO, one in fifty",
}
TITLES = {"coil100": "COIL-100", "lfw": "LFW", "photos": "everyday photos"}
# Stands beside figures that are older than the correction of the blur.
BEFORE = (
    "These views had a plain Gaussian blur before the bicubic resampling, which leaks slightly; "
    "the pretrained models, measured on both kinds of views, differ by less than 0.1° "
    "([leaks](leaks.md))."
)


class Measured(NamedTuple):
    """One entry of a card's `metrics`."""

    card: Record
    protocol: str
    jpeg: int | None
    figures: Record

    @property
    def name(self) -> str:
        return str(self.card["name"])

    @property
    def data(self) -> str:
        return str(self.figures.get("data") or _data(self.card).get("name", ""))

    @property
    def held_out(self) -> str:
        if self.data != _data(self.card).get("name", ""):
            return TITLES.get(self.data, self.data)
        split = (self.data, _data(self.card).get("split_by", "default"))
        return HELD_OUT.get(split, f"{TITLES.get(self.data, self.data)}, held out")


def read(folder: Path, pattern: str) -> list[Record]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(pattern))]


def lines(file: Path) -> list[Record]:
    """A file that holds a list of records; none where there is no file."""
    return list(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []


def measured(cards: Sequence[Record]) -> list[Measured]:
    """Keys are `paper`, `leakfree`, or either followed by `_jpeg_90`; the figures may repeat it."""
    rows = []
    for card in cards:
        for key, figures in card.get("metrics", {}).items():
            if not isinstance(figures, dict) or "mean" not in figures:
                continue
            match = re.fullmatch(r"(.+?)(?:_jpeg_(\d+))?", key)
            protocol, quality = match.groups() if match else (key, None)
            jpeg = figures.get("jpeg") or quality
            protocol = str(figures.get("protocol", protocol))
            rows.append(Measured(card, protocol, int(jpeg) if jpeg else None, figures))
    return rows


def degrees(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}°"


def percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f}%"


def count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def interval(figures: Record, name: str = "mean") -> str:
    """The mean in degrees, with its bootstrap interval where the file has one."""
    low, high = figures.get(f"{name}_low"), figures.get(f"{name}_high")
    text = degrees(figures.get(name))
    return text if low is None or high is None else f"{text} [{low:.2f}, {high:.2f}]"


def rho(leak: Record, name: str) -> str:
    low, high = leak[f"{name}_low"], leak[f"{name}_high"]
    return signed(f"{leak[name]:+.3f} [{low:+.3f}, {high:+.3f}]")


def signed(text: str) -> str:
    return text.replace("-", "−")


def table(head: Sequence[str], rows: Rows, left: int = 1) -> str:
    """GitHub's Markdown; all columns but the first `left` are figures and align right."""
    rule = ["---" if i < left else "--:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [list(head), rule, *rows])


def section(title: str, *paragraphs: str) -> str:
    return "\n\n".join([f"## {title}", *(text for text in paragraphs if text)])


def plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def ranged(factors: Sequence[float], digits: int = 1) -> str:
    low, high = f"{min(factors):.{digits}f}", f"{max(factors):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def hardware(run: Record) -> str:
    return {"cuda": "one GPU", "cpu": "CPU"}.get(run["hardware"], str(run["hardware"]))


def errors(figures: Record) -> list[str]:
    return [
        interval(figures),
        degrees(figures.get("median")),
        degrees(figures.get("p95")),
        degrees(figures.get("paper_equivalent")),
        percent(figures.get("within_5")),
        percent(figures.get("within_10")),
        percent(figures.get("flips"), 2),
    ]


def _data(card: Record) -> Record:
    data = card.get("data", {})
    return data if isinstance(data, dict) else {"name": data}


def as_text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).replace("|", "\\|")
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
