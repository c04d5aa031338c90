"""`python tools/documents/document_head.py MATERIAL PHOTOS SIZES UNPACKED`: a page, or a drawing?

Adds a score to the published quarter network: a logistic regression on its last features, averaged
over the four turns, of rendered pages against photos, drawings and signs that the cheap rule lets
pass. Nothing else in the network changes. MATERIAL is that of the renderer, PHOTOS has
photos of COCO's training part, SIZES is a table of their own sizes (id, width, height), and
UNPACKED contains Debian's openclipart-png. No drawing of the test part is used, and none that
resembles one. The threshold is chosen on scores of rows that were left out of the fit.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

from radialbeams import Canonicalizer, images
from radialbeams.documents import FOLDER, READ_AT, SMALLEST, four_turns, gray_page, levelled_view
from radialbeams.files import sha256
from radialbeams.images.corners import without_corners
from radialbeams.images.levelling import measure_skew
from radialbeams.images.likeness import LEAST, document_likeness
from radialbeams.runtime import open_session
from radialbeams.training.data.documents import Material, render
from tools.documents.drawings import LONGEST, NARROWEST, drawings
from tools.documents.drawn_squares import unlike, version_of
from tools.documents.material import DRAWN, WITHOUT_UP, is_test_drawing
from tools.documents.measure import opened, saved

PAGES, PHOTOS, DRAWINGS, SIGNS = 1200, 2500, 1001, 500  # of renderings, and of files
SEEDS = {"pages": 517, "photos": 901, "drawings": 0, "signs": 5}
WEIGHT, BIAS = "scorer.head.2.weight", "scorer.head.2.bias"
OWN = 2  # rows of the last layer that the training of the network made
PAGE = "page"  # the output
KEPT = 0.99  # share of the pages that pass the rule and reach the threshold
FOLDS = 5
Features = Callable[[Image.Image], np.ndarray | None]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="document_head.py")
    parser.add_argument("material", type=Path)
    parser.add_argument("photos", type=Path, help="a folder of *.jpg, none of them a test photo")
    parser.add_argument("sizes", type=Path, help="a gzipped CSV table: id, width, height")
    parser.add_argument("unpacked", type=Path)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="quarter.onnx and quarter.json")
    arguments = parser.parse_args(argv)
    sources = {
        "pages": pages(Material(arguments.material)),
        "photos": photos(arguments.photos, arguments.sizes),
        "drawings": plain_drawings(arguments.unpacked),
        "signs": signs(arguments.unpacked),
    }
    features, model = reader(arguments.folder), onnx.load(arguments.folder / "quarter.onnx")
    counts, rows = {}, {}
    for name, source in sources.items():
        found = [features(image) for image in source]
        counts[name] = len(found)
        rows[name] = np.array([row for row in found if row is not None])
        print(name, counts[name], "of which pass the rule:", len(rows[name]), flush=True)
    scores = crosswise(rows)
    threshold = round(float(np.quantile(scores["pages"], 1 - KEPT)), 2)
    others = [rows[name] for name in ("photos", "drawings", "signs")]
    write(arguments.folder, model, *logistic(np.concatenate(others), rows["pages"]))
    called = {
        name: [counts[name], round(float((found >= threshold).sum()) / counts[name], 4)]
        for name, found in scores.items()
    }
    note(arguments.folder, threshold, called)
    print(json.dumps({"threshold": threshold, "called pages": called}))
    return 0


# --- what is told apart ---


def pages(material: Material) -> Iterator[Image.Image]:
    for number in range(PAGES):
        page = render(material, SEEDS["pages"], number)
        if page.has_text:
            yield turned(Image.fromarray(page.pixels), Random(number))


def photos(folder: Path, sizes: Path) -> Iterator[Image.Image]:
    """Every other one in its own size: the files are squares of 256 pixels."""
    with gzip.open(sizes, "rt") as table:
        size = {row["id"]: (int(row["width"]), int(row["height"])) for row in csv.DictReader(table)}
    files = Random(SEEDS["photos"]).sample(sorted(folder.glob("*.jpg")), PHOTOS)
    for number, path in enumerate(files):
        photo = Image.open(path).convert("RGB")
        own = size.get(str(int(path.stem)))
        if number % 2 and own:
            photo = photo.resize(own, Image.Resampling.BICUBIC)
        yield turned(photo, Random(number))


def plain_drawings(unpacked: Path) -> Iterator[Image.Image]:
    files = drawings(unpacked, test=False)
    Random(SEEDS["drawings"]).shuffle(files)
    for path in unlike(files[:DRAWINGS], drawings(unpacked, test=True)):
        yield opened(path)


def signs(unpacked: Path) -> Iterator[Image.Image]:
    """Signs, flags, icons and shapes: categories that the quarter network was not trained on."""
    root = unpacked / "usr/share/openclipart/png"
    paths = sorted(root.rglob("*.png"))
    tested = {version_of(path.name) for path in paths if is_test_drawing(path.name)}
    files: dict[str, Path] = {}
    for path in paths:
        place = path.relative_to(root).as_posix()
        drawn = place.startswith(DRAWN) and not place.startswith(WITHOUT_UP)
        if drawn or place.startswith("special/patterns") or version_of(path.name) in tested:
            continue
        if path.name not in files and _fits(path):
            files[path.name] = path
    chosen = Random(SEEDS["signs"]).sample(list(files.values()), SIGNS)
    for number, path in enumerate(chosen):
        yield turned(opened(path), Random(number))


def _fits(path: Path) -> bool:
    with Image.open(path) as file:
        short, long = sorted(file.size)
    return long <= LONGEST * 2 / 3 and short >= NARROWEST * long


def turned(image: Image.Image, rng: Random) -> Image.Image:
    """The image, turned by a quarter turn, by a small angle or by any angle."""
    truth = rng.choice((0.0, 90.0, 180.0, 270.0, rng.uniform(0, 360), rng.uniform(-10, 10)))
    fill = rng.choice((0, 0, 255))
    return image.rotate(
        truth,
        Image.Resampling.BICUBIC,
        expand=True,
        fillcolor=(fill,) * 3 if image.mode == "RGB" else fill,
    )


# --- the features, and the fit ---


def reader(folder: Path) -> Features:
    """The mean of the last features over the four turns; None if the rule or the lines reject."""
    model = onnx.load(folder / "quarter.onnx")
    (layer,) = (node for node in model.graph.node if WEIGHT in node.input)
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(layer.input[0]))
    session, pictures = open_session(model.SerializeToString(), 1), Canonicalizer(threads=1)

    def features(image: Image.Image) -> np.ndarray | None:
        data = saved(image)
        small = images.read_small(data, pictures.parent_size)
        likeness = document_likeness(without_corners(small))
        if min(small.size) < SMALLEST or likeness < LEAST:
            return None
        if min(small.size) < 2 * READ_AT and small.info.get("reduced"):
            page = gray_page(images.read_small(data, READ_AT, gray=True))
        else:
            page = gray_page(small)
        level = measure_skew(page)
        if not level.has_evidence:
            return None
        views = four_turns(levelled_view(page, level.skew_degrees, config_size(folder)))
        (last,) = session.run(
            [layer.input[0]], {"views": views[:, None].astype(np.float32) / np.float32(255)}
        )
        mean: np.ndarray = last.mean(0)
        return mean

    return features


def config_size(folder: Path) -> int:
    card = json.loads((folder / "quarter.json").read_text(encoding="utf-8"))
    return int(card["config"]["size"])


def crosswise(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The scores of all rows, each by a fit that did not see it."""
    rng = np.random.default_rng(0)
    fold = {name: rng.integers(0, FOLDS, len(found)) for name, found in rows.items()}
    scores = {name: np.zeros(len(found)) for name, found in rows.items()}
    for k in range(FOLDS):
        seen = {name: found[fold[name] != k] for name, found in rows.items()}
        others = [found for name, found in seen.items() if name != "pages"]
        weights, bias = logistic(np.concatenate(others), seen["pages"])
        for name, found in rows.items():
            scores[name][fold[name] == k] = found[fold[name] == k] @ weights + bias
    return scores


def logistic(no: np.ndarray, yes: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights and bias of a regularized logistic regression, by Newton's method."""
    features = np.concatenate((no, yes)).astype(np.float64)
    scale = features.std(0) + 1e-6
    features = np.c_[features / scale, np.ones(len(features))]
    target = np.r_[np.zeros(len(no)), np.ones(len(yes))]
    weights = np.zeros(features.shape[1])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        gradient = features.T @ (chance - target) + 2.0 * weights
        hessian = (features * (chance * (1 - chance))[:, None]).T @ features + 2.0 * np.eye(
            len(weights)
        )
        weights -= np.linalg.solve(hessian, gradient)
    return weights[:-1] / scale, float(weights[-1])


# --- the published files ---


def write(folder: Path, model: Any, weights: np.ndarray, bias: float) -> None:
    """The network with a third row in its last layer, and the output of it; the rest stays."""
    for values in model.graph.initializer:
        if values.name in (WEIGHT, BIAS):
            rows = numpy_helper.to_array(values)[:OWN]
            row = np.asarray(weights if values.name == WEIGHT else [bias], rows.dtype)
            rows = np.concatenate((rows, row.reshape(1, *rows.shape[1:])))
            values.CopyFrom(numpy_helper.from_array(rows, values.name))
    if PAGE not in [output.name for output in model.graph.output]:
        _add_output(model.graph)
    (folder / "quarter.onnx").write_bytes(model.SerializeToString(deterministic=True))


def _add_output(graph: Any) -> None:
    """The third column of the last layer as an output, made as the one of "document" is."""
    (own,) = (node for node in graph.node if "document" in node.output)
    third = numpy_helper.from_array(np.array(OWN, np.int64), f"{PAGE}_row")
    graph.initializer.append(third)
    node = onnx.helper.make_node("Gather", [own.input[0], third.name], [PAGE])
    node.attribute.extend(own.attribute)
    graph.node.append(node)
    (documents,) = (output for output in graph.output if output.name == "document")
    graph.output.append(onnx.ValueInfoProto())
    graph.output[-1].CopyFrom(documents)
    graph.output[-1].name = PAGE


def note(folder: Path, threshold: float, called: dict[str, list[float]]) -> None:
    path = folder / "quarter.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    card["sha256"]["onnx"] = sha256((folder / "quarter.onnx").read_bytes())
    card["reading"]["drawn"] = threshold
    card["no_drawing"] = {"called_pages": called}
    text = json.dumps(card, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
