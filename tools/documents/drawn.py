"""`python tools/documents/drawn.py MATERIAL UNPACKED PHOTOS`: what counts as drawn, and what then?

Drawings of openclipart outside the test part, rendered pages, and a folder of photos, at quarter
turns. Reported for each, in percent: the files whose views count as drawn by the card of the
default model, those that the network takes for documents, and those of the latter that are called
drawings, because their views count as drawn and the network's score for "no drawing" is low.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, cast

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

from radialbeams import Canonicalizer, zoo
from radialbeams.documents import DocumentReader, Page
from radialbeams.further_looks import looks_drawn
from radialbeams.training.data.documents import Material, render
from tools.documents.drawings import drawings
from tools.documents.measure import opened, saved

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


def judged(data: bytes, model: Canonicalizer) -> tuple[bool, bool, bool]:
    """Whether a file counts as drawn, is taken for a document, and is called a drawing then."""
    watched = cast(Watched, model._documents)
    watched.page = None
    model.look(data, framed=False)
    page, is_drawn = watched.page, looks_drawn(model.view(data), model.card.looks)
    return is_drawn, page is not None, page is not None and page.drawn and is_drawn


def shares(rows: list[tuple[bool, bool, bool]]) -> dict[str, Any]:
    names = ("count as drawn", "taken for documents", "called drawings")
    columns = zip(*rows, strict=True)
    percent = {
        name: round(100 * sum(column) / len(rows), 2)
        for name, column in zip(names, columns, strict=True)
    }
    return {"files": len(rows), **percent}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
