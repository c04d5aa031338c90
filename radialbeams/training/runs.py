"""The steps of a run behind the commands: plan a recipe, train, measure, export, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from radialbeams.cards import Card, Measurement
from radialbeams.nn.architectures import architecture
from radialbeams.stored import JsonDict, JsonFields, read_object, short
from radialbeams.training.data import FOLDER_SIZE, SOURCES, ImageSet, load
from radialbeams.training.distributed import join, own_device
from radialbeams.training.evaluate import evaluate, predict_with, quarter_turns
from radialbeams.training.export import export_onnx
from radialbeams.training.fit import Fit, Progress
from radialbeams.training.recipe import Recipe, RecipeFields
from radialbeams.training.report import find, write_report
from radialbeams.training.run_folder import RunFolder
from radialbeams.training.views import Protocol, Views, views_of
from radialbeams.training.weights import (
    load_model,
    pick_device,
    read_card,
    sha256,
    write_card,
)

Show = Callable[[int, str], None]


def plan(
    data: str,
    file: Path | None,
    changes: RecipeFields,
    model_changes: JsonFields,
    *,
    decoder: str = "lstm",
    size: int | None = None,
) -> Recipe:
    """The recipe of the file, or the decoder's default for this data, with changes applied."""
    values: JsonDict
    if file is None:
        width = size or (SOURCES[data].size if data in SOURCES else FOLDER_SIZE)
        values = {"parent_size": width, **architecture(decoder).defaults(width)}
    elif size is not None:
        raise ValueError("A recipe file fixes the size of the images; leave --size out.")
    else:
        values = read_object(file, "a recipe")
    model = values.get("model", {})
    if not isinstance(model, dict):
        raise ValueError(f"{file} is not a recipe: model must be an object; got {short(model)}.")
    model = {**model, **model_changes}
    return Recipe.from_dict({**values, **changes, "data": data, "model": model})


def complete(
    recipe: Recipe,
    folder: Path,
    *,
    root: Path | None = None,
    devices: str = "auto",
    minutes: float | None = None,
    limit: int | None = None,
    on_progress: Show = lambda step, text: None,
) -> Card:
    """Trains or resumes, exports, measures on the held-out split, reports; returns the card."""
    images = read_images(recipe, "train", root=root, limit=limit)
    held_out = read_images(
        recipe, "test", root=root, limit=limit
    )  # read now, so that a missing split fails early
    world, device = join(), own_device(devices)
    fit = Fit(recipe, images, folder, device=device, minutes=minutes, world=world)

    def show(progress: Progress) -> None:
        text = f"loss {progress.circle_loss:.4f}, {progress.views_per_second:,.0f} views/s"
        on_progress(progress.step, text)

    fit.run(show)
    if not world.is_first:
        world.wait()
        return read_card(folder / "model.json")
    stem, devices = folder / "model", str(device)
    on_progress(fit.at.step, "exporting")
    export_run(stem, folder / "model.onnx")
    on_progress(fit.at.step, "measuring on the held-out split")
    measured = measure_on(stem, held_out, devices=devices)
    metrics: dict[str, Measurement] = {recipe.protocol: replace(measured, data=recipe.data)}
    card = replace(read_card(folder / "model.json"), metrics=metrics)
    write_card(folder / "model.json", card)
    on_progress(fit.at.step, "writing the report")
    report_run(folder, held_out, devices=devices)
    world.wait()
    return card


def report_run(folder: Path, held_out: ImageSet, *, devices: str = "auto") -> None:
    """Writes report.html of a finished run, from its model, card and metrics."""
    model, card = load_model(folder / "model")
    device = pick_device(devices)
    findings = find(
        model.to(device),
        card,
        held_out,
        card_views(card),
        RunFolder(folder).lines(),
        run=folder,
        device=device,
    )
    write_report(folder / "report.html", findings)


def read_images(
    recipe: Recipe, split: str, *, root: Path | None = None, limit: int | None = None
) -> ImageSet:
    return load(
        recipe.data,
        root=root,
        split=split,
        split_by=recipe.split_by,
        size=recipe.parent_size,
        channels=recipe.model.channels,
        limit=limit,
    )


def measure(
    stem: Path,
    data: str,
    *,
    protocol: Protocol | None = None,
    split: str = "test",
    by_group: bool = False,
    jpeg: int | None = None,
    quarters: bool = False,
    seeds: int = 3,
    limit: int | None = None,
    root: Path | None = None,
    devices: str = "auto",
) -> Measurement:
    """The figures of a model on one split of a data set."""
    card = read_card(stem.with_name(stem.name + ".json"))
    if protocol not in (None, card.protocol.name):
        raise ValueError(
            f"{card.name} expects {card.protocol.name} views and cannot be measured on "
            f"{protocol} views. Leave --protocol out, or train a model on such views."
        )
    read = partial(
        load,
        data,
        root=root,
        split=split,
        size=card.parent_size,
        channels=card.network.channels,
        limit=limit,
    )
    images = _of_own_run(stem.parent, data, split, card, limit) or read()
    trained_on = card.data
    if trained_on and images.name == trained_on.name and trained_on.split_by == "object":
        images = read(split_by=trained_on.split_by)  # objects that it was not trained on
    measured = measure_on(stem, images, by_group=by_group, jpeg=jpeg, seeds=seeds, devices=devices)
    if quarters:
        device = pick_device(devices)
        model = load_model(stem)[0].to(device)
        turns = quarter_turns(partial(predict_with, model), images, card_views(card), device=device)
        measured = replace(measured, quarter=turns.quarter, quarter_plus_1=turns.quarter_plus_1)
    return replace(measured, data=data, split=split)


def _of_own_run(run: Path, data: str, split: str, card: Card, limit: int | None) -> ImageSet | None:
    """The split of a run on a user's folder; None for other data or other runs."""
    # Imported late: that module imports this one.
    from radialbeams.training.own.run import images_of

    images = images_of(run, Path(data), split, card.parent_size, card.network.channels)
    if images is None or limit is None or limit >= len(images):
        return images
    return images.select([i * len(images) // limit for i in range(limit)])


def measure_on(
    stem: Path,
    images: ImageSet,
    *,
    by_group: bool = False,
    jpeg: int | None = None,
    seeds: int = 3,
    devices: str = "auto",
) -> Measurement:
    """The figures of a model on these images, under its own protocol."""
    model, card = load_model(stem)
    device = pick_device(devices)
    result = evaluate(
        partial(predict_with, model.to(device), **card.calibration._asdict()),
        images,
        card_views(card),
        seeds=seeds,
        jpeg=jpeg,
        by_group=by_group,
        device=device,
    )
    return Measurement(result, card.protocol.name, seeds=seeds, jpeg=jpeg)


def card_views(card: Card) -> Views:
    """The views that a trained model expects."""
    return views_of(card.protocol, card.network.view_size)


def export_run(stem: Path, out: Path) -> float:
    """Writes OUT.onnx and its card next to it; returns the largest difference from torch."""
    model, card = load_model(stem)
    difference = export_onnx(model, out)
    hashes = replace(card.sha256, onnx=sha256(out))
    write_card(out.with_suffix(".json"), replace(card, parity=difference, sha256=hashes))
    return difference
