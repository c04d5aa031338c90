"""Publishes a finished run: exports ONNX, measures it on the held-out split, writes its card.

    python tools/publish.py RUN NAME [--data DIR]
    python tools/publish.py RUN NAME --looks FILE --below 0.8 --squares DIR --photos DIR

The figures on a card are measured by this command. Confidence is calibrated on the held-out images;
its error is measured on each half of them with the calibration of the other half. For a model that
uses several views, both come from the outputs that `looks.py` stored.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from costs import milliseconds
from measure_files import measure_files
from photos.measure_photos import measure_photos
from safetensors.torch import load_file

from radialbeams import zoo
from radialbeams.canonicalizer import Canonicalizer
from radialbeams.cards import (
    Card,
    Cost,
    DataCard,
    Evaluation,
    Looks,
    Measurement,
)
from radialbeams.nn.architectures import Network
from radialbeams.nn.onnx_weights import read_weights
from radialbeams.posterior import Calibration
from radialbeams.training import looks
from radialbeams.training.data import ImageSet, load
from radialbeams.training.evaluate import evaluate, summarise
from radialbeams.training.judging import (
    calibrated,
    first_half,
    least_confident,
    rounded,
    rounded_values,
)
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import card_views, export_run, measure, measure_on, read_images
from radialbeams.training.thresholds import thresholds
from radialbeams.training.views import Views
from radialbeams.training.weights import load_model, new_card, read_card, save_model, write_card

# Models that leave documents to a network of their own.
DOCUMENTS: dict[str, Literal["quarter"]] = {"general": "quarter", "light": "quarter"}
# Models that look at both ends of an oblong picture: below which confidence, and the factor of the
# temperature for what is averaged then (studies/ends.py).
OBLONG: dict[str, tuple[float, float]] = {"general": (0.9, 0.6), "light": (0.9, 0.6)}
# Models that look again at whatever looks drawn: the least that counts (tools/documents/drawn.py).
DRAWN: dict[str, float] = {"general": 0.7}
ALSO_SEEDS = 10  # as for the specialised models
# For a model that uses several views, with a margin to what is promised: 0.5% of upright photos may
# come out worse, and 90% of those acted on should end within 5°.
SPOILT, RIGHT = 0.002, 0.92

# Statements that cannot be measured.
ABOUT: dict[str, dict[str, str]] = {
    "bic.coil100": {
        "summary": "The paper's network for single objects on a dark background.",
        "licence": "Weights: research use, as COIL-100 itself.",
        "works_on": "COIL-100's objects, centred, on a black canvas that rotates with them.",
        "fails_on": "Everything else: under the paper's protocol the network learns to read the "
        "rotated border and the interpolation as well as the object.",
    },
    "bic.lfw": {
        "summary": "The paper's network for centred faces.",
        "licence": "Weights: research use, as LFW itself; trained on photographs of real people.",
        "works_on": "Faces framed as in LFW, rotated bilinearly on a black canvas.",
        "fails_on": "Everything else, including faces rotated by another program: under the "
        "paper's protocol the network learns to read the border and the interpolation.",
    },
    "ring.coil100": {
        "summary": "The ring for COIL-100's objects, which it has seen from other sides.",
        "licence": "Weights: research use, as COIL-100 itself.",
        "works_on": "Known objects, centred and lit as in COIL-100, with any background in the "
        "corners.",
        "fails_on": "Objects that it has not seen (see ring.coil100-objects) and scenes.",
    },
    "ring.coil100-objects": {
        "summary": "The ring for single objects that it has not seen.",
        "licence": "Weights: research use, as COIL-100 itself.",
        "works_on": "Centred objects on a plain background, lit from above.",
        "fails_on": "Objects that look the same upside down, lit from below, or in a scene.",
    },
    "general.coil100-objects": {
        "summary": "The default model's network for single objects that it has not seen.",
        "licence": "Weights: research use, as COIL-100 itself. Fine-tuned from general.",
        "works_on": "Centred objects on a plain background, lit from above.",
        "fails_on": "Objects that look the same upside down, lit from below, or in a scene.",
    },
    "general": {
        "summary": "The default: everyday photos; with the network for documents, pages and "
        "screens too.",
        "licence": "Weights: Apache-2.0. Fine-tuned from EfficientNet-Lite2's weights "
        "(Apache-2.0), which were trained on ImageNet, on photos of COCO train2017 (Flickr photos "
        "under their authors' Creative Commons terms, many of real people) and on pages rendered "
        "for this purpose.",
        "works_on": "Photos of streets, rooms, landscapes, animals and people in which it is "
        "clear which way is up.",
        "fails_on": "Pictures with no clear up (plates from above, slopes, textures), where it is "
        "meant to be unsure. It finds the axis of a page but not which way up it is; the network "
        "for documents does.",
    },
    "light": {
        "summary": "The fast one on a CPU: everyday photos; with the network for documents, pages "
        "and screens too.",
        "licence": "Weights: Apache-2.0. Fine-tuned from EfficientNet-Lite0's weights "
        "(Apache-2.0), which were trained on ImageNet, on photos of COCO train2017 (Flickr photos "
        "under their authors' Creative Commons terms, many of real people). Half of its target "
        "was the posterior of general.",
        "works_on": "Photos of streets, rooms, landscapes, animals and people in which it is "
        "clear which way is up.",
        "fails_on": "Pictures with no clear up (plates from above, slopes, textures), where it is "
        "meant to be unsure; drawings, which it has not seen.",
    },
    "ring": {
        "summary": "The equivariant one: everyday photos, and single objects and faces as well.",
        "licence": "Weights: research use, as the photos they were trained on (COCO, Flickr8k, "
        "scenes, animals, cars, rooms, sports, COIL-100, LFW; many of them photographs of real "
        "people).",
        "works_on": "Photos of streets, rooms, landscapes, animals and people in which it is "
        "clear which way is up.",
        "fails_on": "Pictures with no clear up (plates from above, the sky, textures), where it is "
        "meant to be unsure; text and drawings, which it has not seen; tilts of a few degrees.",
    },
    "ring.lfw": {
        "summary": "The ring for centred faces of people it has not seen.",
        "licence": "Weights: research use, as LFW itself; trained on photographs of real people.",
        "works_on": "Faces framed as in LFW: centred, about a third of the picture's width.",
        "fails_on": "Off-centre faces, several faces, anything that is not a face.",
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
    parser.add_argument(
        "--without", metavar="PREFIX", help="leave out held-out images whose keys begin with this"
    )
    parser.add_argument("--below", type=float, help="the confidence below which it looks again")
    parser.add_argument(
        "--also", action="append", default=[], help="another data set to measure on"
    )
    arguments = parser.parse_args()
    if (arguments.looks is None) != (arguments.below is None):
        parser.error("--looks and --below go together")
    model, run_card = load_model(arguments.run / "model")
    card = replace(
        new_card(model, run_card.protocol, arguments.name),
        data=run_card.data,
        training=run_card.training,
        documents=DOCUMENTS.get(arguments.name),
        **ABOUT[arguments.name],
    )
    stem = zoo.FOLDER / arguments.name
    if arguments.looks:
        card = publish_with_looks(stem, model, card, arguments)
    else:
        card = publish_one_look(stem, model, card, arguments)
    card = replace(card, cost=Cost(milliseconds([arguments.name])[arguments.name]))
    write_card(stem.with_name(arguments.name + ".json"), card)
    if arguments.photos:
        card = replace(card, end_to_end=measure_photos(arguments.photos, arguments.name))
    print(card.end_to_end, card.cost, flush=True)
    write_card(stem.with_name(arguments.name + ".json"), card)


def publish_one_look(stem: Path, model: Network, card: Card, arguments: argparse.Namespace) -> Card:
    """Writes weights, ONNX and card, calibrated and measured on the held-out images."""
    recipe = Recipe.of_card(card)
    images = read_images(recipe, "test", root=arguments.data)
    card = replace(card, data=_tested_on(card, len(images), recipe.split_by))
    if card.network.reading == "posterior":
        card = calibrated(card, model, images, by_group=recipe.split_by == "object")
        if recipe.data == "coil100":
            uncertain = least_confident(card, model, images, card_views(card))
            card = replace(card, least_confident=uncertain)
    card = exported(stem, model, card)
    metrics: dict[str, Measurement] = {}
    for key, jpeg in ((recipe.protocol, None), (f"{recipe.protocol}_jpeg_90", 90)):
        # Saving every parent as JPEG is slow, and only the difference matters.
        seeds = arguments.seeds if jpeg is None else min(2, arguments.seeds)
        metrics[key] = rounded(measure_on(stem, images, seeds=seeds, jpeg=jpeg))
        evaluation = metrics[key].evaluation
        print(key, evaluation.mean, evaluation.calibration_error, flush=True)
    for data in arguments.also:
        measured = rounded(measure(stem, data, seeds=ALSO_SEEDS, root=arguments.data))
        metrics[f"{recipe.protocol}_{data}"] = measured
        print(data, measured.evaluation.mean, measured.evaluation.median, flush=True)
    card = replace(card, metrics=metrics)
    if not arguments.photos:
        card = replace(card, end_to_end=measure_files(arguments.name, images, seeds=2))
    return card


def publish_with_looks(
    stem: Path, model: Network, card: Card, arguments: argparse.Namespace
) -> Card:
    """The same from stored outputs, on the images for which the rule of looks was chosen."""
    outputs = looks.LookOutputs.read(arguments.looks)
    if arguments.without:
        outputs = outputs.select(
            np.array([not key.startswith(arguments.without) for key in outputs.keys])
        )
    images = len(set(outputs.keys))
    card = replace(card, data=_tested_on(card, images, "default"))
    card = exported(stem, model, decided(card, outputs, arguments.below))
    protocol = card.protocol.name
    figures = figures_by_rule(outputs, card.calibration, arguments.below)
    measured = Measurement(figures, protocol, seeds=len(outputs) // images)
    metrics = {protocol: rounded(measured)}
    if arguments.squares:
        squares = load(arguments.squares, split="all", size=card.parent_size)
        figures = figures_after_jpeg(arguments.name, squares, card_views(card))
        metrics[f"{protocol}_jpeg_90"] = rounded(Measurement(figures, protocol, jpeg=90))
    return replace(card, metrics=metrics)


def _looks(name: str, below: float, again: float, calibration: Calibration) -> Looks:
    """The rule of further looks; `again` is the share of square pictures that need them."""
    looks = Looks(below, round(1 + 3 * again, 3), drawn=DRAWN.get(name))
    if name not in OBLONG:
        return looks
    oblong_below, factor = OBLONG[name]
    return replace(
        looks,
        oblong_below=oblong_below,
        oblong_temperature=round(factor * calibration.temperature, 3),
    )


def _tested_on(card: Card, images: int, split_by: str) -> DataCard:
    if card.data is None:
        raise ValueError("Expected a run whose card names its training data; it names none.")
    return replace(card.data, test_images=images, split_by=split_by)


def decided(card: Card, outputs: looks.LookOutputs, below: float) -> Card:
    """The card with calibration, the rule of looks, thresholds, and their expected errors."""
    calibration = looks.fitted(outputs)
    answers = looks.held_out_answers(outputs, calibration, below)
    first = looks.answers_by_rule(outputs, calibration, 0.0)
    again = np.mean([answer.confidence < below for answer in first])
    half = np.array([first_half(key) for key in outputs.keys])
    expected = looks.crosswise(outputs, half, below, SPOILT, RIGHT)
    return replace(
        card,
        calibration=calibration,
        calibrated=rounded_values(expected),
        looks=_looks(card.name, below, float(again), calibration),
        abstain=thresholds(answers, spoilt=SPOILT, right=RIGHT),
    )


def figures_by_rule(
    outputs: looks.LookOutputs, calibration: Calibration, below: float
) -> Evaluation:
    """The evaluation of held-out views, with several looks as in the commands."""
    answers = looks.answers_by_rule(outputs, calibration, below)
    shape = (-1, len(set(outputs.keys)))  # seeds, images
    errors = np.radians(looks.errors(answers, outputs.degrees)).reshape(shape)
    sure = np.array([answer.confidence for answer in answers]).reshape(shape)
    return summarise(torch.from_numpy(errors), confidences=torch.from_numpy(sure))


def figures_after_jpeg(name: str, images: ImageSet, views: Views) -> Evaluation:
    """The same evaluation for parents that were saved as JPEG after rotation."""
    canonicalizer = Canonicalizer(name, threads=1)

    def predict(batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        answers = canonicalizer.answers_from_views(batch.numpy())
        degrees = torch.tensor([answer.angle_degrees for answer in answers])
        return torch.deg2rad(degrees), torch.tensor([answer.confidence for answer in answers])

    return evaluate(predict, images, views, seeds=1, jpeg=90)


def exported(stem: Path, model: Network, card: Card) -> Card:
    """Weights in half precision, ONNX with parity, and the card that names both."""
    save_model(stem, model, card, half=True)
    onnx = stem.with_name(stem.name + ".onnx")
    print(f"{onnx.name}: within {export_run(stem, onnx):.1e} of torch", flush=True)
    return stored_once(stem)


def stored_once(stem: Path) -> Card:
    """Removes the safetensors file if the ONNX file contains the same numbers; returns the card."""
    card_path, weights, onnx = (
        stem.with_name(stem.name + ending) for ending in (".json", ".safetensors", ".onnx")
    )
    card, in_onnx = read_card(card_path), read_weights(onnx)
    in_safetensors = {
        name: value.float()
        for name, value in load_file(weights).items()
        if value.is_floating_point()
    }
    if not all(
        name in in_onnx and torch.equal(in_onnx[name], in_safetensors[name])
        for name in in_safetensors
    ):
        return card
    card = replace(card, sha256=replace(card.sha256, safetensors=None))
    write_card(card_path, card)
    weights.unlink()
    return card


if __name__ == "__main__":
    main()
