"""Puts a finished run into the zoo: ONNX with parity, measured on the held-out split, card.

    python tools/publish.py RUN NAME [--data DIR]

The figures on a card are the ones that this command measured. Confidence is calibrated on the
held-out images; its error is measured on each half of them with the calibration of the other.
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
from measure_files import measure_files
from photos.measure_photos import measure_photos

from radialbeams import zoo
from radialbeams.files import bucket
from radialbeams.nn.bic import RingBIC
from radialbeams.training.calibrate import calibrate
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import export_run, measure, measure_on, read_images
from radialbeams.training.thresholds import abstention
from radialbeams.training.views import make_views
from radialbeams.training.weights import load_model, read_card, save_model, write_card

ALSO_SEEDS = 10  # as many as the specialists were measured with

# What no run can know about itself.
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
    parser.add_argument(
        "--also", action="append", default=[], help="another data set to measure on"
    )
    arguments = parser.parse_args()
    model, run_card = load_model(arguments.run / "model")
    recipe = Recipe.from_dict(_recipe(run_card["training"]))
    images = read_images(recipe, "test", root=arguments.data)
    shipped = zoo.FOLDER / arguments.name
    kept = {part: run_card[part] for part in ("data", "protocol", "training")}
    card: dict[str, Any] = {"name": arguments.name, **ABOUT[arguments.name], **kept}
    card["data"] = {**card["data"], "test_images": len(images), "split_by": recipe.split_by}
    if isinstance(model, RingBIC):
        card |= calibrated(model, recipe, images)
    save_model(shipped, model, card, half=True)
    onnx = shipped.with_name(arguments.name + ".onnx")
    print(f"{onnx.name}: within {export_run(shipped, onnx):.1e} of torch", flush=True)
    card = read_card(shipped.with_name(arguments.name + ".json"))
    card["metrics"] = {}
    for key, jpeg in ((recipe.protocol, None), (f"{recipe.protocol}_jpeg_90", 90)):
        # A JPEG of every parent takes its time, and the question is only how much it costs.
        seeds = arguments.seeds if jpeg is None else min(2, arguments.seeds)
        figures = measure_on(shipped, images, seeds=seeds, jpeg=jpeg)
        card["metrics"][key] = _rounded({"split": "test", **figures})
        print(key, figures["mean"], figures["calibration_error"], flush=True)
    for data in arguments.also:
        figures = measure(shipped, data, seeds=ALSO_SEEDS, root=arguments.data)
        card["metrics"][f"{recipe.protocol}_{data}"] = _rounded(figures)
        print(data, figures["mean"], figures["median"], flush=True)
    if arguments.photos:
        card["end_to_end"] = measure_photos(arguments.photos, arguments.name)
    else:
        card["end_to_end"] = measure_files(arguments.name, images, seeds=2)
    card["cost"] = {"milliseconds_a_view_one_cpu_thread": milliseconds(arguments.name)}
    print(card["end_to_end"], card["cost"], flush=True)
    write_card(shipped.with_name(arguments.name + ".json"), card)


def calibrated(model: RingBIC, recipe: Recipe, images: ImageSet) -> dict[str, Any]:
    """Calibration from the held-out images, its error crosswise, and who is least sure."""
    views = make_views(recipe.protocol, view_size=recipe.model.view_size)

    def crosswise(names: Sequence[str]) -> tuple[dict[str, float], float]:
        return calibrate(model, images, views, in_first=lambda i: _first_half(names[i]), seeds=2)

    calibration, error = crosswise(images.keys)
    measured = {"expected_error": error, "n": 2 * len(images)}
    if recipe.split_by == "object":
        # Views of one object go wrong together: this is what objects that are new again may bring.
        measured["expected_error_by_object"] = crosswise(images.groups)[1]
    found: dict[str, Any] = {"calibration": calibration, "calibrated": _rounded(measured)}
    found["abstain"] = abstention(model, images, views, calibration, seeds=2)
    if recipe.data == "coil100":
        predict = partial(predict_with, model, **calibration)
        found["least_confident"] = least_confident(predict, images, recipe)
    return found


def least_confident(predict: Any, images: ImageSet, recipe: Recipe) -> list[dict[str, Any]]:
    """The ten objects of whose angle the model is least sure, with how far off it is."""
    views = make_views(recipe.protocol, view_size=recipe.model.view_size)
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
    """The median time of one view through ONNX Runtime on one thread."""
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
        started = time.perf_counter()
        session.run(None, {"views": view})
        times.append(time.perf_counter() - started)
    return round(1000 * statistics.median(times), 2)


def _first_half(key: str) -> bool:
    # With a word of its own: the bare hash of a key has already decided that it is held out.
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
