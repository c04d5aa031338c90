"""The demo page, also as static files with the models: then it needs no server for the images."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import radialbeams
from radialbeams import zoo
from radialbeams.files import write_whole
from radialbeams.serving.models import described
from radialbeams.serving.settings import ServiceSettings
from radialbeams.stored import JsonDict

WEB = Path(__file__).parents[1] / "web"
SAMPLES = Path(__file__).parents[1] / "pictures"
# Each sample image with a model that was trained on its kind.
SHOWN = {"rocket": "general", "astronaut": "ring.lfw", "horse": "ring"}
# The files of the npm package onnxruntime-web that a browser needs.
RUNTIME = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")


class PageError(ValueError):
    """The page cannot be written as requested."""


def page_settings(backend: str, settings: ServiceSettings) -> JsonDict:
    """The page's configuration: where the model runs, the models, the limits and the samples."""
    return {
        "backend": backend,
        "version": radialbeams.__version__,
        "default": settings.default_model,
        "needs_token": settings.token is not None,
        "models": [described(name) for name in settings.offered],
        "limits": {
            "file_size": settings.max_file_size,
            "pixels": settings.max_pixels,
            "files": settings.max_files,
        },
        "samples": [
            {"name": name, "path": f"samples/{name}.webp", "model": model}
            for name, model in SHOWN.items()
        ],
    }


def page_files() -> dict[str, bytes]:
    """The files of the page and its samples, by their paths on it."""
    paths = {path.relative_to(WEB).as_posix(): path for path in sorted(WEB.rglob("*.*"))}
    paths |= {f"samples/{name}.webp": SAMPLES / f"{name}.webp" for name in SHOWN}
    return {name: path.read_bytes() for name, path in paths.items()}


def write_page(folder: Path, runtime: Path, models: Sequence[str] = ()) -> list[Path]:
    """Writes the page into a new or empty folder; `runtime` holds onnxruntime-web's files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PageError(f"Expected a new or empty folder; {folder} is neither. Choose another.")
    missing = [name for name in RUNTIME if not (runtime / name).is_file()]
    if missing:
        raise PageError(
            f"Expected onnxruntime-web's files in {runtime}; {missing[0]} is missing. Get them "
            "with `npm install onnxruntime-web` and give node_modules/onnxruntime-web/dist."
        )
    default = zoo.DEFAULT if not models or zoo.DEFAULT in models else models[0]
    settings = ServiceSettings(models=tuple(models), default_model=default)
    contents = page_files()
    contents |= {f"runtime/{name}": (runtime / name).read_bytes() for name in RUNTIME}
    for name in settings.offered:
        contents[f"models/{name}.onnx"] = zoo.verified_onnx(zoo.find(name))
    contents["page.json"] = json.dumps(page_settings("browser", settings)).encode()
    return [_written(folder / name, content) for name, content in contents.items()]


def _written(path: Path, content: bytes) -> Path:
    write_whole(path, lambda partial: partial.write_bytes(content))
    return path
