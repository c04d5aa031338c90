"""Sections: the paper's experiments, from what `radialbeams reproduce` left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sections.text import Record, plural, section, table


def experiments_section(root: Path) -> Iterator[str]:
    """One part for each NAME.json that `radialbeams reproduce` left, in the registry's order."""
    from radialbeams.reproduce import registry

    found = [root / "results" / f"{name}.json" for name in registry.SUMMARIES]
    records = [json.loads(path.read_text(encoding="utf-8")) for path in found if path.is_file()]
    if records:
        said = "Printed by `radialbeams reproduce NAME`, which leaves all that was measured in "
        said += (
            "`results/NAME.json`; `--redraw` makes the figures from it again. ± is one standard "
        )
        said += "deviation over seeds. Welch's test is at 5 % and not corrected for the number of "
        said += "comparisons: of twenty that do not differ, one seems to."
        parts = [part for record in records for part in _experiment(root, record)]
        yield section("The paper's experiments", said, *parts)


def _experiment(root: Path, record: Record) -> Iterator[str]:
    yield f"### {record['name']}"
    yield f"The paper: {record['claim']}."
    yield table(["", "the paper", "ours"], list(_beside_the_paper(record["paper"], record["ours"])))
    yield f"What it means: {record['why']}"
    seeds = len(record["seeds"])
    effort = plural(record["trainings"], "training") + ", " if record["trainings"] else ""
    yield (
        f"`{record['command']}`, {record['settings']} settings: {effort}"
        f"{_seeds(seeds)}{record['seconds']:,.0f} s of "
        f"{record['hardware']}."
    )
    figures = (root / "results").glob(f"{record['name']}*.png")
    for path in sorted(figures, key=lambda path: path.stem):
        # beam-length's figures are not those of beams-…: a suffix belongs to the longest name.
        if _owner(path.stem) == record["name"]:
            yield f"![{record['name']}: {path.stem}](../results/{path.name})"


def _seeds(count: int) -> str:
    """Not every kind of training has all of them."""
    return "" if not count else "1 seed, " if count == 1 else f"up to {count} seeds, "


def _owner(stem: str) -> str:
    from radialbeams.reproduce import registry

    names = [n for n in registry.SUMMARIES if stem == n or stem.startswith(f"{n}-")]
    return max(names, key=len, default="")


def _beside_the_paper(paper: Record, ours: Record) -> Iterator[list[str]]:
    for name in [*paper, *(name for name in ours if name not in paper)]:
        yield [_cell(name), _cell(paper.get(name)), _cell(ours.get(name))]


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_cell(part)}" for key, part in value.items())
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")
