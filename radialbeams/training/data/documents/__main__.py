"""`python -m radialbeams.training.data.documents MATERIAL POOL --pages N`: a pool of pages."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from pathlib import Path

from PIL import features

from radialbeams.training.data.documents.material import Material
from radialbeams.training.data.documents.pool import create_pool, fill, worker_count


def say(line: dict[str, object]) -> None:
    print(json.dumps(line), flush=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m radialbeams.training.data.documents")
    parser.add_argument("material", type=Path, help="the folder with fonts, texts and drawings")
    parser.add_argument("pool", type=Path)
    parser.add_argument("--pages", type=int, default=80_000)
    parser.add_argument("--side", type=int, default=512, help="pixels of a page in the pool")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=worker_count())
    parser.add_argument("--photos", type=Path, help="a folder of upright photos, every tenth page")
    asked = parser.parse_args(argv)
    material = Material(asked.material)
    photos = sorted(str(p) for p in asked.photos.rglob("*.jpg")) if asked.photos else []
    print(
        json.dumps(
            {
                "scripts": material.scripts,
                "raqm": bool(features.check("raqm")),
                "drawings": len(material.drawings),
                "photos": len(photos),
                "workers": asked.workers,
            }
        ),
        flush=True,
    )
    create_pool(asked.pool, asked.pages, asked.side, asked.seed)
    context = multiprocessing.get_context("fork")
    crew = [
        context.Process(
            target=fill,
            args=(asked.pool, asked.material, photos),
            kwargs={"seed": asked.seed, "worker": k, "workers": asked.workers, "report": say},
        )
        for k in range(asked.workers)
    ]
    for process in crew:
        process.start()
    for process in crew:
        process.join()
    return max((process.exitcode or 0) for process in crew)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
