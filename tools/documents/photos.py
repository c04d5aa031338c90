"""`python tools/documents/photos.py PHOTOS`: what document handling does to photos.

Each photo as it is, and turned by any angle on an enlarged canvas. Reported: how many pass the
rule, how many are taken for documents, for how many the estimate gets better and worse, and the
CPU time of document handling per photo.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from radialbeams import Canonicalizer, zoo
from radialbeams.images.corners import without_corners
from radialbeams.images.likeness import may_be_document


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="photos.py")
    parser.add_argument("photos", type=Path)
    parser.add_argument("--model", default=zoo.DEFAULT)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--show", action="store_true", help="print the photos that change")
    arguments = parser.parse_args(argv)
    files = sorted(arguments.photos.rglob("*.jpg"))[: arguments.limit]
    reader, plain = (Canonicalizer(arguments.model, threads=1, documents=d) for d in (True, False))
    for turned in (False, True):
        print(json.dumps(measure(files, reader, plain, turned=turned, show=arguments.show)))
    return 0


def measure(
    files: list[Path], reader: Canonicalizer, plain: Canonicalizer, *, turned: bool, show: bool
) -> dict[str, object]:
    passing = changed = better = worse = 0
    extra = []
    for path in files:
        truth = Random(path.name).uniform(0, 360) if turned else 0.0
        data = saved(path, truth)
        passing += may_be_document(without_corners(Image.open(io.BytesIO(data)).convert("RGB")))
        begun = time.process_time()
        look = reader.look(data)
        middle = time.process_time()
        plain.look(data)
        extra.append(2 * middle - begun - time.process_time())
        answer = reader.answers_from_looks([look])[0]
        if answer.kind != "document":
            continue
        changed += 1
        before = plain.answers([data])[0].angle_degrees
        errors = [abs((a - truth + 180) % 360 - 180) for a in (answer.angle_degrees, before)]
        better += errors[0] < errors[1] - 5
        worse += errors[0] > errors[1] + 5
        if show:
            print(path.name, [round(error, 1) for error in errors], answer.confidence)
    return {
        "photos": len(files),
        "turned": turned,
        "pass the rule": round(100 * passing / len(files), 1),
        "taken for documents": round(100 * changed / len(files), 2),
        "better": better,
        "worse": worse,
        "ms a photo": round(1000 * float(np.mean(extra)), 2),
    }


def saved(path: Path, degrees: float) -> bytes:
    if not degrees:
        return path.read_bytes()
    with Image.open(path) as opened:
        image = opened.convert("RGB").rotate(degrees, Image.Resampling.BICUBIC, expand=True)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=90)
    return file.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
