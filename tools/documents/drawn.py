"""`python tools/documents/drawn.py MATERIAL UNPACKED PHOTOS`: what counts as drawn, and what then?

Drawings of openclipart outside the test part, rendered pages, and a folder of photos, at quarter
turns. Reported for each: the share whose views count as drawn by the card of the default model,
the share that the network for documents takes for documents, and the share that both hold for
below a document score: these are called drawings (`DRAWN` in radialbeams/documents.py).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, cast

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

from radialbeams import Canonicalizer, zoo
from radialbeams.documents import CLEAR, DocumentReader, Page
from radialbeams.further_looks import looks_drawn
from radialbeams.training.data.documents import Material, render
from tools.documents.drawings import drawings
from tools.documents.measure import opened, saved

SCORES = (1.5, 2.0, 3.0, 4.0, 5.0, CLEAR)
SEED = 777  # of pages that are rendered nowhere else
COUNTS = {"drawings": 1200, "pages": 1000, "photos": 1500}


class Watched(DocumentReader):
    """Keeps the last estimate of a document."""

    page: Page | None = None

    def answer(self, *arguments: Any) -> Page | None:
        self.page = super().answer(*arguments)
        return self.page


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="drawn.py")
    parser.add_argument("material", type=Path)
    parser.add_argument("unpacked", type=Path)
    parser.add_argument("photos", type=Path, help="a folder of *.jpg, none of them a test photo")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    arguments = parser.parse_args(argv)
    model = Canonicalizer(zoo.DEFAULT, threads=1)
    model._documents = Watched(threads=1)
    sources = {
        "drawings": (opened(path) for path in shuffled(drawings(arguments.unpacked, test=False))),
        "pages": pages(Material(arguments.material)),
        "photos": (opened(path) for path in shuffled(list(arguments.photos.glob("*.jpg")))),
    }
    results = {}
    for name, source in sources.items():
        results[name] = measured(source, COUNTS[name], model)
        print(json.dumps({name: results[name]}), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


def shuffled(files: list[Path]) -> list[Path]:
    return Random(0).sample(sorted(files), len(files))


def pages(material: Material) -> Iterator[Image.Image]:
    for number in range(COUNTS["pages"]):
        page = render(material, SEED, number)
        if page.has_text:
            yield Image.fromarray(page.pixels).convert("RGB")


def measured(pictures: Iterable[Image.Image], most: int, model: Canonicalizer) -> dict[str, Any]:
    """The shares in percent; every picture at one quarter turn."""
    rows = []
    for number, picture in zip(range(most), pictures, strict=False):
        rows.append(judged(saved(picture.rotate(90 * (number % 4), expand=True)), model))
    return shares(rows)


def judged(data: bytes, model: Canonicalizer) -> tuple[bool, float | None]:
    """Whether a file counts as drawn, and its document score if it is taken for a document."""
    watched = cast(Watched, model._documents)
    watched.page = None
    # Without `drawn` on the card, nothing is called a drawing meanwhile.
    card, model.card = model.card, replace(model.card, looks=None)
    model.look(data, framed=False)
    model.card = card
    return looks_drawn(model.view(data), card.looks), watched.page and watched.page.score


def shares(rows: list[tuple[bool, float | None]]) -> dict[str, Any]:
    def percent(count: int) -> float:
        return round(100 * count / len(rows), 2)

    return {
        "files": len(rows),
        "count as drawn": percent(sum(is_drawn for is_drawn, _ in rows)),
        "taken for documents": percent(sum(score is not None for _, score in rows)),
        "drawn, below a document score": {
            f"{most:g}": percent(
                sum(is_drawn and score is not None and score < most for is_drawn, score in rows)
            )
            for most in SCORES
        },
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
