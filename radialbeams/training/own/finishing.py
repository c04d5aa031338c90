"""Ends a run: calibration, thresholds, ONNX, measurement, whether to trust it, report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from radialbeams.cards import Card, DataCard, Evaluation, Measurement
from radialbeams.nn.architectures import Network
from radialbeams.training import judging
from radialbeams.training.data import ImageSet
from radialbeams.training.evaluate import evaluate, predict_with
from radialbeams.training.own import trust
from radialbeams.training.own.scan import UnusedFile
from radialbeams.training.report import (
    CrookedImage,
    find,
    measure_here,
    summary,
    write_report,
)
from radialbeams.training.report.findings import Findings, validation_curve, worse_than_start
from radialbeams.training.run_folder import MetricsLine
from radialbeams.training.runs import card_views, export_run
from radialbeams.training.weights import load_model, read_card, save_model, write_card

LEARNED = 0.05  # circle loss, about 13°: below it the training images are known

Show = Callable[[str, float], None]


def finish(
    out: Path,
    held_out: ImageSet,
    *,
    training_images: int,
    by: str,
    licence: str,
    seeds: int,
    lines: Sequence[MetricsLine],
    skipped: Sequence[UnusedFile],
    crooked: Sequence[CrookedImage] = (),
    unfit: int = 0,
    checked: int = 0,
    canary: bool = False,
    start: Path | None = None,
    device: torch.device,
    show: Show,
) -> tuple[str, ...]:
    """Measures the weights in OUT on the held-out images; writes the card, ONNX and report.

    `unfit` of `checked` images are crooked and were trained on as they are. `canary` measures one
    on the views of this run. If the weights of `start` had a smaller error on the held-out views,
    they are stored instead. Returns the report's summary, in four sentences.
    """
    stem = out / "model"
    model, card, kept = _better(stem, start, lines)
    model.to(device)
    show("calibrating", 0.0)
    card = judging.calibrated(card, model, held_out, by_group=by == "group", seeds=seeds)
    data = DataCard(held_out.name, training_images, len(held_out), by)
    card = replace(card, data=data, licence=licence, summary=_about(held_out.name, kept))
    write_card(out / "model.json", card)
    show("exporting", 0.2)
    export_run(stem, out / "model.onnx")
    show("measuring on the held-out images", 0.4)
    card = _measured(read_card(out / "model.json"), model, held_out, seeds, device)
    views = card_views(card)
    measured = None
    if canary:
        show("training a canary", 0.6)
        measured = measure_here(views, card.parent_size, device)
    show("writing the report", 0.7)
    findings = find(
        model,
        card,
        held_out,
        views,
        lines,
        run=out,
        skipped=skipped,
        crooked=crooked,
        canary=measured,
        device=device,
    )
    card = replace(card, trust=_reasons(card, findings, lines, unfit, checked))
    findings = replace(findings, card=card, trust=card.trust)
    write_card(out / "model.json", card)
    write_report(out / "report.html", findings)
    show("writing the report", 1.0)
    return summary(findings)


def _better(
    stem: Path, start: Path | None, lines: Sequence[MetricsLine]
) -> tuple[Network, Card, bool]:
    """The network of the run with its card, and whether it is the start, which was better."""
    model, card = load_model(stem)
    if start is None or worse_than_start(validation_curve(lines)) is None:
        return model, card, False
    model.load_state_dict(load_model(start)[0].state_dict())
    return model, save_model(stem, model, card), True


def _about(folder: str, kept: bool) -> str:
    if kept:
        return (
            f"The start of a training on a user's folder, calibrated for images like those in "
            f"{folder}: training did not improve on it."
        )
    return f"A model trained on a user's folder, for images like those in {folder}."


def _measured(
    card: Card, model: Network, held_out: ImageSet, seeds: int, device: torch.device
) -> Card:
    predict = partial(predict_with, model, **card.calibration._asdict())
    result = evaluate(predict, held_out, card_views(card), seeds=seeds, device=device)
    measured = Measurement(result, card.protocol.name, seeds=seeds)
    return replace(card, metrics={card.protocol.name: judging.rounded(measured)})


def _reasons(
    card: Card, findings: Findings, lines: Sequence[MetricsLine], unfit: int, checked: int
) -> tuple[str, ...]:
    figures: Evaluation = findings.evaluation
    losses = [line["circle_loss"] for line in lines if "circle_loss" in line]
    return trust.reasons(
        card,
        figures,
        findings.held_out,
        ambiguous=[one for one in findings.ambiguous if one.pixel_order != 1],
        units=findings.checked,
        crooked=unfit,
        images=checked,
        memorised=bool(losses) and sum(losses[-5:]) / len(losses[-5:]) < LEARNED,
    )
