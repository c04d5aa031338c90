"""Publishes a finished run: exports ONNX, measures it on the held-out split, writes its card.

    python tools/publish.py RUN NAME [--data DIR]
    python tools/publish.py RUN NAME --looks FILE --below 0.8 --squares DIR --photos DIR

The figures on a card are measured by this command. Confidence is calibrated on the held-out images;
its error is measured on each half of them with the calibration of the other half. For a model that
uses several views, both come from the outputs that `looks.py` stored.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure_files import measure_files
from photos.measure_photos import measure_photos

from radialbeams import zoo
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.files import bucket
from radialbeams.nn.architectures import Network, architecture
from radialbeams.training import looks
from radialbeams.training.calibrate import calibrate
from radialbeams.training.data import ImageSet, load
from radialbeams.training.evaluate import evaluate, predict_with, summarise
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import card_views, export_run, measure, measure_on, read_images
from radialbeams.training.thresholds import abstention, thresholds
from radialbeams.training.views import Views
from radialbeams.training.weights import load_model, read_card, save_model, write_card

ALSO_SEEDS = 10  # as for the specialised models
# For a model that uses several views, with a margin to what is promised: 0.5% of upright photos may
# come out worse, and 90% of those acted on should end within 5°.
SPOILT, RIGHT = 0.002, 0.92

# Statements that cannot be measured.
ABOUT: dict[str, dict[str, Any]] = {
    "bic.coil100": {
        "summary": "The paper's network for single objects on a dark ground.",
        "licence": "Weights: research use, as COIL-100 itself.",
        "works_on": "COIL-100's objects, centred, on a black canvas that turns with them.",
        "fails_on": "Everything else: under the paper's protocol the network learns to read the "
        "turned border and the interpolation as well as the object.",
    },
    "bic.lfw": {
        "summary": "The paper's network for centred faces.",
        "licence": "Weights: research use, as LFW itself; trained on photographs of real people.",
        "works_on": "Faces framed as in LFW, turned bilinearly on a black canvas.",
        "fails_on": "Everything else, faces turned by another program included: under the paper's "
        "protocol the network learns to read border and interpolation.",
    },
    "ring.coil100": {
        "summary": "The ring for COIL-100's objects, other views of which it has seen.",
        "licence": "Weights: research use, as COIL-100 itself.",
        "works_on": "Known objects, centred and lit as in COIL-100, on any ground in the corners.",
        "fails_on": "Objects that it has not seen (see ring.coil100-objects) and scenes.",
    },
    "ring.coil100-objects": {
        "summary": "The ring for single objects that it has not seen.",
        "licence": "Weights: research use, as COIL-100 itself.",
        "works_on": "Centred objects on a plain ground, lit from above.",
        "fails_on": "Objects that look the same upside down, lit from below, or in a scene.",
    },
    "ring": {
        "summary": "The default: everyday photos, and single objects and faces as well.",
        "licence": "Weights: research use, as the photos they were trained on (COCO, Flickr8k, "
        "scenes, animals, cars, rooms, sports, COIL-100, LFW; many of them photographs of real "
        "people).",
        "works_on": "Photos of streets, rooms, landscapes, animals, people, with a clear up.",
        "fails_on": "Pictures without an up (plates from above, the sky, textures), where it is "
        "meant to be unsure; text and drawings, which it has not seen; tilts of a few degrees.",
    },
    "ring.lfw": {
        "summary": "The ring for centred faces of people it has not seen.",
        "licence": "Weights: research use, as LFW itself; trained on photographs of real people.",
        "works_on": "Faces framed as in LFW: centred, about a third of the picture's width.",
        "fails_on": "Faces off the centre, several faces, anything that is no face.",
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("name", choices=sorted(ABOUT))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--photos", type=Path, help="native photos, for the default model's files")
    parser.add_argument("--looks", type=Path, help="held-out outputs that looks.py stored")
    parser.add_argument("--squares", type=Path, help="the held-out images themselves, for JPEG")
    parser.add_argument("--below", type=float, help="the confidence below which it looks again")
    parser.add_argument(
        "--also", action="append", default=[], help="another data set to measure on"
    )
    arguments = parser.parse_args()
    if (arguments.looks is None) != (arguments.below is None):
        parser.error("--looks and --below go together")
    model, run_card = load_model(arguments.run / "model")
    kept = {part: run_card[part] for part in ("data", "protocol", "training")}
    card: dict[str, Any] = {"name": arguments.name, **ABOUT[arguments.name], **kept}
    shipped = zoo.FOLDER / arguments.name
    if arguments.looks:
        card = publish_looking_again(shipped, model, card, arguments)
    else:
        card = publish_one_look(shipped, model, card, arguments)
    card["cost"] = {"milliseconds_a_view_one_cpu_thread": milliseconds(arguments.name)}
    write_card(shipped.with_name(arguments.name + ".json"), card)
    if arguments.photos:
        card["end_to_end"] = measure_photos(arguments.photos, arguments.name)
    print(card.get("end_to_end"), card["cost"], flush=True)
    write_card(shipped.with_name(arguments.name + ".json"), card)


def publish_one_look(
    shipped: Path, model: Network, card: dict[str, Any], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Writes weights, ONNX and card, calibrated and measured on the held-out images."""
    recipe = Recipe.from_dict(_recipe(card["training"]))
    images = read_images(recipe, "test", root=arguments.data)
    card["data"] = {**card["data"], "test_images": len(images), "split_by": recipe.split_by}
    if architecture(model.config).reading == "posterior":
        card |= calibrated(model, recipe, images, _views(model, card))
    card = exported(shipped, model, card)
    for key, jpeg in ((recipe.protocol, None), (f"{recipe.protocol}_jpeg_90", 90)):
        # Saving every parent as JPEG is slow, and only the difference matters.
        seeds = arguments.seeds if jpeg is None else min(2, arguments.seeds)
        figures = measure_on(shipped, images, seeds=seeds, jpeg=jpeg)
        card["metrics"][key] = _rounded({"split": "test", **figures})
        print(key, figures["mean"], figures["calibration_error"], flush=True)
    for data in arguments.also:
        figures = measure(shipped, data, seeds=ALSO_SEEDS, root=arguments.data)
        card["metrics"][f"{recipe.protocol}_{data}"] = _rounded(figures)
        print(data, figures["mean"], figures["median"], flush=True)
    if not arguments.photos:
        card["end_to_end"] = measure_files(arguments.name, images, seeds=2)
    return card


def publish_looking_again(
    shipped: Path, model: Network, card: dict[str, Any], arguments: argparse.Namespace
) -> dict[str, Any]:
    """The same from stored outputs; the rule for further views was chosen on the same images."""
    outputs = looks.Outputs.read(arguments.looks)
    images = len(set(outputs.keys))
    card["data"] = {**card["data"], "test_images": images, "split_by": "default"}
    card |= decided(outputs, arguments.below)
    card = exported(shipped, model, card)
    protocol = card["protocol"]["name"]
    figures = figures_by_rule(outputs, card["calibration"], arguments.below)
    seeds = len(outputs) // images
    settings = {"split": "test", "protocol": protocol, "seeds": seeds, "jpeg": None}
    card["metrics"][protocol] = _rounded({**settings, **figures})
    if arguments.squares:
        squares = load(arguments.squares, split="all", size=card["protocol"]["parent_size"])
        again = figures_after_jpeg(arguments.name, squares, card_views(card))
        settings |= {"seeds": 1, "jpeg": 90}
        card["metrics"][f"{protocol}_jpeg_90"] = _rounded({**settings, **again})
    return card


def decided(outputs: looks.Outputs, below: float) -> dict[str, Any]:
    """Calibration, the rule for further views, thresholds, and their expected effect."""
    calibration = looks.fitted(outputs)
    seen = looks.seen(outputs, calibration, below)
    first = looks.answers_by_rule(outputs, calibration, 0.0)
    again = np.mean([answer.confidence < below for answer in first])
    half = np.array([_first_half(key) for key in outputs.keys])
    expected = looks.crosswise(outputs, half, below, SPOILT, RIGHT)
    return {
        "calibration": calibration,
        "calibrated": _rounded(expected),
        "looks": {"below": below, "mean": round(1 + 3 * float(again), 3)},
        "abstain": thresholds(seen, spoilt=SPOILT, right=RIGHT),
    }


def figures_by_rule(
    outputs: looks.Outputs, calibration: dict[str, float], below: float
) -> dict[str, Any]:
    """The evaluation of held-out views, with further views as in the commands."""
    answers = looks.answers_by_rule(outputs, calibration, below)
    shape = (-1, len(set(outputs.keys)))  # seeds, images
    errors = np.radians(looks.errors(answers, outputs.degrees)).reshape(shape)
    sure = np.array([answer.confidence for answer in answers]).reshape(shape)
    return summarise(torch.from_numpy(errors), confidences=torch.from_numpy(sure)).to_dict()


def figures_after_jpeg(name: str, images: ImageSet, views: Views) -> dict[str, Any]:
    """The same for parents that were saved as JPEG after rotation."""
    canonicalizer = Canonicalizer(name, threads=1)

    def predict(batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        answers = canonicalizer.answers_from_views(batch.numpy())
        degrees = torch.tensor([answer.angle_degrees for answer in answers])
        return torch.deg2rad(degrees), torch.tensor([answer.confidence for answer in answers])

    return evaluate(predict, images, views, seeds=1, jpeg=90).to_dict()


def exported(shipped: Path, model: Network, card: dict[str, Any]) -> dict[str, Any]:
    """Weights in half precision, ONNX with parity, and the card that names both."""
    save_model(shipped, model, card, half=True)
    onnx = shipped.with_name(shipped.name + ".onnx")
    print(f"{onnx.name}: within {export_run(shipped, onnx):.1e} of torch", flush=True)
    return {**read_card(shipped.with_name(shipped.name + ".json")), "metrics": {}}


def _views(model: Network, card: dict[str, Any]) -> Views:
    return card_views({**card, "config": model.config.to_dict()})


def calibrated(model: Network, recipe: Recipe, images: ImageSet, views: Views) -> dict[str, Any]:
    """Calibration on the held-out images, its crosswise error, and the least confident objects."""

    def crosswise(names: Sequence[str]) -> tuple[dict[str, float], float]:
        return calibrate(model, images, views, in_first=lambda i: _first_half(names[i]), seeds=2)

    calibration, error = crosswise(images.keys)
    measured = {"expected_error": error, "n": 2 * len(images)}
    if recipe.split_by == "object":
        # Errors on views of one object are correlated: this bounds the effect of new objects.
        measured["expected_error_by_object"] = crosswise(images.groups)[1]
    found: dict[str, Any] = {"calibration": calibration, "calibrated": _rounded(measured)}
    found["abstain"] = abstention(model, images, views, calibration, seeds=2)
    if recipe.data == "coil100":
        predict = partial(predict_with, model, **calibration)
        found["least_confident"] = least_confident(predict, images, views)
    return found


def least_confident(predict: Any, images: ImageSet, views: Views) -> list[dict[str, Any]]:
    """The ten objects with the lowest confidence, and the mean error on each."""
    rows = []
    for name in sorted(set(images.groups)):
        members = images.select([i for i, group in enumerate(images.groups) if group == name])
        sure: list[float] = []

        def noted(batch: Any, sure: list[float] = sure) -> Any:
            angles, confidences = predict(batch)
            sure += confidences.tolist()
            return angles

        result = evaluate(noted, members, views, seeds=3)
        rows.append({"object": name, "confidence": float(np.mean(sure)), "mean": result.mean})
    rows.sort(key=lambda row: row["confidence"])
    return [_rounded(row) for row in rows[:10]]


def milliseconds(name: str) -> float:
    """The median CPU time of one view through ONNX Runtime on one thread."""
    import onnxruntime

    model = zoo.find(name)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        zoo.verified_onnx(model), options, providers=["CPUExecutionProvider"]
    )
    size = model.card["config"]["view_size"]
    view = np.random.default_rng(0).random((1, 3, size, size), dtype=np.float32)
    times = []
    for _ in range(300):
        started = time.process_time()  # unaffected by other processes
        session.run(None, {"views": view})
        times.append(time.process_time() - started)
    return round(1000 * statistics.median(times), 2)


def _first_half(key: str) -> bool:
    # With a prefix of its own: the plain hash of a key already decides that it is held out.
    return bucket(f"half of {key}", 2) == 0


def _recipe(training: dict[str, Any]) -> dict[str, Any]:
    outcome = ("minutes", "start", "averaged", "steps_done", "seconds", "hardware")
    return {name: value for name, value in training.items() if name not in outcome}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
