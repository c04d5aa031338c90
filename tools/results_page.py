"""The results page: every figure on it is read from a card or from a file in results/.

    python tools/results_page.py [--text]

Writes docs/results.md, the table in docs/leaks.md and, without --text, the pictures beside them.
A section appears once its files exist. Nothing here measures anything but the leak picture.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sections.everyday import looks_section, photos_section
from sections.front import centring_section, half_section, overhead_section
from sections.leaks import leaks_section, with_leak_table
from sections.models import (
    cost_section,
    groups_section,
    jpeg_section,
    least_sure_section,
    models_section,
    paper_section,
    risk_section,
)
from sections.paper import experiments_section
from sections.pictures import draw_leak, draw_risk_coverage
from sections.rings import ablation_section, side_by_side_section
from sections.speed import files_section, speed_section
from sections.text import lines, measured, read

ROOT = Path(__file__).parent.parent


def results_page(root: Path = ROOT) -> str:
    cards = read(root / "radialbeams" / "zoo", "*.json")
    entries = measured(cards)
    ring = root / "results" / "ring"
    parts = [
        "# Results",
        "Written by `python tools/results_page.py` from the models' cards "
        "(`radialbeams/zoo/*.json`) and from `results/`. Do not edit it by hand. Errors are "
        "in degrees; lower is better.",
        *models_section(entries),
        *paper_section(entries),
        *jpeg_section(entries),
        *risk_section(entries),
        *groups_section(entries),
        *least_sure_section(cards),
        *cost_section(
            cards,
            "cost",
            "Cost",
            "figures of one machine; compare rows with each other, not with other machines.",
        ),
        *cost_section(
            cards,
            "end_to_end",
            "End to end",
            "held-out originals turned by Pillow with a random fill, saved as JPEG and put "
            "through `Canonicalizer`: what users get. Errors in degrees, shares as fractions.",
        ),
        *photos_section(cards, read(root / "results", "coco-1030.json")),
        *files_section(lines(root / "results" / "speed" / "files.json")),
        *side_by_side_section(read(ring, "side-by-side-*.json")),
        *ablation_section(read(ring, "ablation-*.json")),
        *ablation_section(read(ring, "photos-*.json"), "photos"),
        *looks_section(lines(root / "results" / "refine.json")),
        *speed_section(
            lines(root / "results" / "speed" / "step.json"),
            lines(root / "results" / "speed" / "training.json"),
        ),
        *leaks_section(read(root / "results" / "leaks", "*.json")),
        *overhead_section(read(root / "results" / "speed", "overhead.json")),
        *half_section(read(root / "results", "half*.json")),
        *centring_section(read(root / "results", "centring.json")),
        *experiments_section(root),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", action="store_true", help="leave the pictures as they are")
    arguments = parser.parse_args()
    docs = ROOT / "docs"
    docs.mkdir(exist_ok=True)
    (docs / "results.md").write_text(results_page(), encoding="utf-8")
    leaks, records = docs / "leaks.md", read(ROOT / "results" / "leaks", "*.json")
    if records:
        text = leaks.read_text(encoding="utf-8")
        leaks.write_text(with_leak_table(text, records), encoding="utf-8")
    if not arguments.text:
        draw_risk_coverage(measured(read(ROOT / "radialbeams" / "zoo", "*.json")), docs)
        draw_leak(docs)


if __name__ == "__main__":
    main()
