"""`python tools/documents/turns.py MATERIAL`: how often two of the four quarter turns suffice.

Rendered pages, turned by any angle. Reported, in percent of the pages that pass the rule: how many
have lines along the axis that the levelling step names, and how many are decided by two turns; the
views of the network for each page; and for the decided ones, how many get another best turn or are
no longer clear documents if all four turns are scored, and the largest change of a probability.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

from radialbeams.documents import CLEAR, DocumentReader, from_two_turns, softmax
from radialbeams.training.data.documents import Material, render
from tools.documents.card import row_of

SEED = 902  # of the renderings; training and calibration use others


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="turns.py")
    parser.add_argument("material", type=Path)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    arguments = parser.parse_args(argv)
    material, reader = Material(arguments.material), DocumentReader(threads=1)
    rows = []
    for number in range(arguments.pages):
        page = render(material, SEED, number)
        if page.has_text:
            rows.append(row_of(reader, Image.fromarray(page.pixels), Random(number), page.kind))
    report = json.dumps(summary([row for row in rows if row["passes"]], reader), indent=1)
    print(report)
    if arguments.out:
        arguments.out.write_text(report + "\n", encoding="utf-8")
    return 0


def summary(rows: list[dict[str, Any]], reader: DocumentReader) -> dict[str, Any]:
    card, changes = reader.card, []
    early = turned = unclear = 0
    for row in rows:
        scores, document = row["whole"], row["document"]
        prior = card.prior(row["evidence"][0], float(np.exp(row["evidence"][1])))
        likely = [0, 2] if row["horizontal"] else [1, 3]
        quarters = from_two_turns(scores, document, likely, prior, card)
        if quarters is None:
            continue
        mass = softmax(scores / card.temperature)
        early += 1
        turned += int(quarters.mass.argmax() != mass.argmax())
        unclear += int(document.mean() + prior < CLEAR)
        changes.append(float(np.abs(quarters.mass - mass).max()))
    along = [(row["errors"].argmin() % 2 == 0) == row["horizontal"] for row in rows]
    return {
        "pages": len(rows),
        "axis named rightly": round(100 * float(np.mean(along)), 1),
        "decided by two turns": round(100 * early / len(rows), 1),
        "views a page": round(4 - 2 * early / len(rows), 2),
        "other best turn": turned,
        "not clearly a document": unclear,
        "largest change": round(max(changes, default=0.0), 4),
        "mean change": round(float(np.mean(changes or [0.0])), 5),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
