"""`python tools/documents/card.py RUN MATERIAL PHOTOS`: the published model for documents.

Exports the quarter network of RUN into the zoo, calibrates it and chooses its thresholds on
held-out renderings, and writes its card. It uses no real documents.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

from radialbeams.documents import (
    FOLDER,
    DocumentCard,
    DocumentReader,
    four_turns,
    gray_page,
    levelled,
    looked_closely,
    softmax,
)
from radialbeams.files import sha256
from radialbeams.images import likeness as rule
from radialbeams.images.corners import without_corners
from radialbeams.images.levelling import measure_skew
from radialbeams.images.likeness import document_likeness
from radialbeams.images.page import Box, close_views, content_box, page_view
from radialbeams.posterior import Thresholds
from radialbeams.training.data.documents import Material, render
from radialbeams.training.quarter_export import export_quarter_network, load_quarter_network
from radialbeams.training.quarter_report import calibration_error
from tools.documents.likeness import fit

SEED = 901  # of the renderings; training uses others
NOT_FITTED = -1e6  # `document_head.py` adds the score for drawings, and its threshold
CLOSE_VIEWS, CLOSE_BELOW = 2, 0.97
WRONG = 0.004  # of the documents that are acted on
LEAST = 0.95  # confidence to act: turning an upright page is worse than leaving a turned one
ANGLE = 2.0  # degrees; scans are often a degree off level, which is acceptable
PHOTOS = 0.0025  # of the photos may be taken for documents
LICENCE = (
    "Apache-2.0. Trained from scratch on own renderings and, for the answer that a picture is no "
    "document, on photos of COCO's training part. Fonts: Noto, Liberation, URW base 35, DejaVu, "
    "Lohit, TLWG, IPA, Nanum, Culmus, Kacst, Amiri and others from Debian, all free. Texts: "
    "Debian's fortunes and handbook. Drawings: Open Clip Art (public domain)."
)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="card.py")
    parser.add_argument("run", type=Path)
    parser.add_argument("material", type=Path)
    parser.add_argument("photos", type=Path, help="a folder of *.jpg, none of them a test photo")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--photo-count", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    network = load_quarter_network(arguments.run / "model")
    parity = export_quarter_network(network, arguments.out / "quarter.onnx")
    card = first_card(arguments.run, arguments.out, parity)
    write(card, arguments.out)
    jobs = [
        (arguments.out, arguments.material, k, arguments.workers, arguments.pages)
        for k in range(arguments.workers)
    ]
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        rows = [row for part in pool.map(rendered_rows, jobs) for row in part]
    photos = Random(SEED).sample(sorted(arguments.photos.glob("*.jpg")), arguments.photo_count)
    card |= chosen(rows, np.array(photo_evidence(arguments.out, photos)), len(photos))
    write(card, arguments.out)
    print(json.dumps({key: card[key] for key in ("reading", "abstain", "calibrated")}, indent=1))
    return 0


def first_card(run: Path, out: Path, parity: float) -> dict[str, Any]:
    trained = json.loads((run / "model.json").read_text(encoding="utf-8"))
    return {
        "name": "quarter",
        "summary": "Pages and screens: which of four quarter turns makes a levelled page upright.",
        "licence": LICENCE,
        "works_on": "Printed pages, forms, receipts, screens, slides, notes, in many scripts.",
        "fails_on": "Single icons, boards without words, drawings, pages without an up.",
        "data": trained["data"],
        "config": trained["config"],
        "parameters": trained["parameters"],
        "training": trained["training"],
        "held_out": trained["held_out"],
        "reading": {
            "temperature": trained["temperature"],
            "close_temperature": 1.0,
            "close_views": CLOSE_VIEWS,
            "close_below": CLOSE_BELOW,
            "likeness": 0.0,
            "lines": 0.0,
            "document": 0.0,
            "drawn": NOT_FITTED,
        },
        "abstain": {"confidence": LEAST, "angle": ANGLE},
        "parity": parity,
        "sha256": {"onnx": sha256((out / "quarter.onnx").read_bytes())},
    }


def write(card: dict[str, Any], out: Path) -> None:
    text = json.dumps(card, indent=1, ensure_ascii=False)
    (out / "quarter.json").write_text(text + "\n", encoding="utf-8")


# --- scores of renderings and photos ---


def rendered_rows(job: tuple[Path, Path, int, int, int]) -> list[dict[str, Any]]:
    """Scores of every `workers`-th page or drawing, turned by any angle, as a JPEG."""
    out, folder, worker, workers, count = job
    material, reader = Material(folder), DocumentReader(1, out)
    rows = []
    for number in range(worker, count, workers):
        page = render(material, SEED, number)
        if page.has_text or page.kind == "drawing":
            rows.append(row_of(reader, Image.fromarray(page.pixels), Random(number), page.kind))
    return rows


def row_of(reader: DocumentReader, image: Image.Image, rng: Random, kind: str) -> dict[str, Any]:
    truth = rng.choice((0.0, 90.0, 180.0, 270.0, rng.uniform(0, 360), rng.uniform(-10, 10)))
    fill = rng.choice((0, 0, 255))
    image = image.rotate(truth, Image.Resampling.BICUBIC, expand=True, fillcolor=fill)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=90)
    picture = Image.open(file).convert("RGB")
    page = gray_page(picture)
    level = measure_skew(page)
    flat = levelled(page, level.skew_degrees)
    box = content_box(flat)
    whole, document, _ = reader.scores(four_turns(page_view(flat, reader.card.size, box)))
    likeness = document_likeness(without_corners(picture))
    angles = level.skew_degrees - 90 * np.arange(4)
    return {
        "kind": kind,
        "passes": likeness >= rule.LEAST and level.has_evidence,
        "evidence": (likeness, np.log(max(level.strength, 1)), float(document.mean())),
        "whole": whole,
        "document": document,
        "horizontal": level.horizontal,
        "closer": closer_scores(reader, flat, box, whole),
        "errors": np.abs((angles - truth + 180) % 360 - 180),  # (4,)
    }


def closer_scores(
    reader: DocumentReader, page: Image.Image, box: Box, whole: np.ndarray
) -> list[np.ndarray]:
    """Scores of close-up views; none if the page is clear at twice the trained temperature."""
    if softmax(whole / (2 * reader.card.temperature)).max() >= CLOSE_BELOW:
        return []
    views = close_views(page, reader.card.size, CLOSE_VIEWS, box)
    return [reader.scores(four_turns(view))[0] for view in views]


def photo_evidence(out: Path, files: list[Path]) -> list[tuple[float, float, float]]:
    """The evidence from the photos, half of them turned, that reach the network."""
    reader, evidence = DocumentReader(1, out), []
    for number, path in enumerate(files):
        with Image.open(path) as file:
            photo = file.convert("RGB")
        if number % 2:
            photo = photo.rotate(Random(number).uniform(0, 360), expand=True)
        likeness, page = document_likeness(without_corners(photo)), gray_page(photo)
        level = measure_skew(page) if likeness >= rule.LEAST else None
        if level is not None and level.has_evidence:
            view = page_view(levelled(page, level.skew_degrees), reader.card.size)
            document = float(reader.scores(four_turns(view))[1].mean())
            evidence.append((likeness, float(np.log(level.strength)), document))
    return evidence


# --- the values of the card ---


def chosen(
    everything: list[dict[str, Any]], photos: np.ndarray, photo_count: int
) -> dict[str, Any]:
    rows = [row for row in everything if row["kind"] != "drawing"]
    drawings = [row["evidence"] for row in everything if row["kind"] == "drawing" and row["passes"]]
    likeness, lines = evidence_weights(rows, photos, drawings)
    weights = np.array((likeness, lines, 1.0))
    document = document_threshold(photos @ weights, photo_count)
    temperature = best_temperature([row["whole"] for row in rows], rows)
    first = [softmax(row["whole"] / temperature) for row in rows]
    unsure = [k for k, mass in enumerate(first) if mass.max() < CLOSE_BELOW and rows[k]["closer"]]
    close, close_masses = best_close([rows[k] for k in unsure], [first[k] for k in unsure])
    masses = list(first)
    for k, mass in zip(unsure, close_masses, strict=True):
        masses[k] = mass
    documents = [
        k for k, row in enumerate(rows) if row["passes"] and weights @ row["evidence"] >= document
    ]
    chances = np.array([masses[k].max() for k in documents])
    errors = np.array([rows[k]["errors"][masses[k].argmax()] for k in documents])
    least = threshold(chances, errors < 10)
    return {
        "reading": {
            "temperature": round(temperature, 3),
            "close_temperature": round(close, 3),
            "close_views": CLOSE_VIEWS,
            "close_below": CLOSE_BELOW,
            "likeness": likeness,
            "lines": lines,
            "document": document,
            "drawn": NOT_FITTED,
        },
        "abstain": {"confidence": round(least, 3), "angle": ANGLE},
        "calibrated": {
            "pages": len(rows),
            "documents": round(len(documents) / len(rows), 4),
            "within_10": _share(errors < 10),
            "within_2": _share(errors < 2),
            "expected_error": calibration_error(chances, errors < 10),
            "acted_on": _share(chances >= least),
            "acted_rightly": _share(errors[chances >= least] < 10),
            "looked_closely": round(len(unsure) / len(rows), 4),
            "drawings_called_documents": _share(np.array(drawings) @ weights >= document),
            "photos": photo_count,
            "photos_that_reach_the_network": round(len(photos) / photo_count, 4),
            "photos_called_documents": round(
                float((photos @ weights >= document).sum()) / photo_count, 4
            ),
        },
    }


def evidence_weights(
    rows: list[dict[str, Any]], photos: np.ndarray, drawings: list[tuple[float, ...]]
) -> tuple[float, float]:
    """Weights of rule and lines relative to the network's score, from a logistic regression."""
    documents = np.array([row["evidence"] for row in rows if row["passes"]])
    others = np.concatenate((photos, np.array(drawings).reshape(-1, 3)))
    (likeness, lines, document), _ = fit(others, documents)
    return round(max(0.0, likeness / document), 3), round(max(0.0, lines / document), 3)


def document_threshold(evidence: np.ndarray, photo_count: int) -> float:
    """The smallest threshold for the evidence that few enough photos reach."""
    allowed = round(PHOTOS * photo_count)
    if len(evidence) <= allowed:
        return 0.0
    return round(float(np.sort(evidence)[::-1][allowed]) + 0.01, 2)


def best_temperature(scores: list[np.ndarray], rows: list[dict[str, Any]]) -> float:
    """The divisor of the scores with the least cross-entropy, on pages with the correct axis."""
    right = [(s, row["errors"].argmin()) for s, row in zip(scores, rows, strict=True)
             if row["errors"].min() < 10]  # fmt: skip
    candidates = np.logspace(-0.7, 1, 69)
    losses = [-np.mean([np.log(softmax(s / t)[k] + 1e-9) for s, k in right]) for t in candidates]
    return float(candidates[int(np.argmin(losses))])


def best_close(
    rows: list[dict[str, Any]], masses: list[np.ndarray]
) -> tuple[float, list[np.ndarray]]:
    """The best temperature for close-up views, and the probabilities that it gives."""

    def looked(temperature: float) -> list[np.ndarray]:
        card = DocumentCard(
            size=0,
            temperature=1.0,
            close_temperature=temperature,
            close_views=CLOSE_VIEWS,
            close_below=CLOSE_BELOW,
            likeness=0.0,
            lines=0.0,
            document=0.0,
            drawn=NOT_FITTED,
            abstain=Thresholds(0.0),
        )
        chances = []
        for row, mass in zip(rows, masses, strict=True):
            pair = [int(turns) for turns in np.argsort(-row["whole"])[:2]]
            closer = (scores[pair] for scores in row["closer"])
            chances.append(looked_closely(mass, row["whole"], pair, closer, card))
        return chances

    def loss(chances: list[np.ndarray]) -> float:
        right = [row["errors"].argmin() for row in rows]
        return -sum(float(np.log(mass[k] + 1e-9)) for mass, k in zip(chances, right, strict=True))

    best = min(np.logspace(-0.7, 1, 69), key=lambda t: loss(looked(float(t))))
    return float(best), looked(float(best))


def threshold(chances: np.ndarray, right: np.ndarray) -> float:
    """The smallest confidence, at least LEAST, above which at most WRONG of the pages are wrong."""
    order = np.argsort(-chances)
    wrong = np.cumsum(~right[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero(wrong <= WRONG)
    return max(LEAST, float(chances[order[good[-1]]])) if good.size else 1.0


def _share(values: Any) -> float:
    return round(float(np.mean(values)), 4) if len(values) else 0.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
