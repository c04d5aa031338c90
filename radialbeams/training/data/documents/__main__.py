"""`python -m radialbeams.training.data.documents MATERIAL POOL --pages N`: renders a pool."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from pathlib import Path

from PIL import features

from radialbeams.training.data.documents.material import Material
from radialbeams.training.data.documents.pool import create_pool, fill, worker_count


def print_json(line: dict[str, object]) -> None:
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
    arguments = parser.parse_args(argv)
    material = Material(arguments.material)
    photos = sorted(str(p) for p in arguments.photos.rglob("*.jpg")) if arguments.photos else []
    print(
        json.dumps(
            {
                "scripts": material.scripts,
                "raqm": bool(features.check("raqm")),
                "drawings": len(material.drawings),
                "photos": len(photos),
                "workers": arguments.workers,
            }
        ),
        flush=True,
    )
    create_pool(arguments.pool, arguments.pages, arguments.side, arguments.seed)
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(
            target=fill,
            args=(arguments.pool, arguments.material, photos),
            kwargs={
                "seed": arguments.seed,
                "worker": k,
                "workers": arguments.workers,
                "report": print_json,
            },
        )
        for k in range(arguments.workers)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return max((process.exitcode or 0) for process in processes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
