"""Sections: the pretrained models, from their cards."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from sections.text import (
    HELD_OUT,
    TITLES,
    Measured,
    Record,
    Rows,
    as_text,
    count,
    degrees,
    errors,
    percent,
    ranged,
    section,
    table,
)

# Paper-equivalent degrees: what the paper prints.
CLAIMS = {"coil100": 13.0, "lfw": 12.0}
AUTHORS = Path(__file__).parent.parent.parent / "results" / "authors.json"


def published(place: Path = AUTHORS) -> dict[str, list[Record]]:
    """What the paper prints, and what its authors' models measure."""
    authors = json.loads(place.read_text(encoding="utf-8")) if place.is_file() else {}
    weights = {"who": "its authors' weights", "protocol": "theirs, training images included"}
    return {
        data: [
            {
                "who": "the paper's claim",
                "protocol": "paper, as printed",
                "paper_equivalent": claim,
            },
            *([{**authors[data], **weights}] if data in authors else []),
        ]
        for data, claim in CLAIMS.items()
    }


PUBLISHED = published()


def models_section(entries: Sequence[Measured]) -> Iterator[str]:
    plain = [entry for entry in entries if entry.jpeg is None]
    if not plain:
        return
    head = "model|held out|protocol|parameters|views|mean [95% CI]|median|P95|paper-equivalent"
    head += "|within 5°|within 10°|flips"
    rows = [
        [
            f"`{entry.name}`",
            entry.held_out,
            entry.protocol,
            count(entry.card.get("parameters")),
            count(entry.figures.get("n")),
            *errors(entry.figures),
        ]
        for entry in plain
    ]
    same_objects = any(entry.held_out == HELD_OUT["coil100", "default"] for entry in plain)
    yield section(
        "The pretrained models",
        "Printed by `python tools/publish.py RUN NAME`, which measures a finished run and "
        "writes the model's card. `radialbeams evaluate NAME DATA --protocol PROTOCOL --seeds N "
        "--json` measures a row again.",
        "What to look for: the mean and the median, within rows of the same protocol. If the "
        "mean is far above the median, a few estimates are very wrong and most are good.",
        table(head.split("|"), rows, left=3),
        "What it means: rows of different protocols cannot be compared. A `paper` view gives part "
        "of the angle away through its border and its interpolation; a `leakfree` view does not, "
        "as far as we can measure ([leaks](leaks.md)). Only `leakfree` figures show how well a "
        "model reads the image content."
        + (
            " A random fifth of COIL-100's images shows objects that were seen in training from "
            "other sides; only the row with unseen objects shows the error on new objects."
            if same_objects
            else ""
        ),
        "The confidence interval is a bootstrap over images. *Paper-equivalent* is "
        "arccos(1 − mean(L_circle)/2), the paper's own measure; it is not a mean error. *Flips* "
        "are errors of 150° or more.",
    )


def paper_section(entries: Sequence[Measured]) -> Iterator[str]:
    """The paper's figures beside ours, for each data set with a pretrained model."""
    tables = []
    for data, published in PUBLISHED.items():
        ours = [entry for entry in entries if entry.jpeg is None and entry.data == data]
        if not ours:
            continue
        rows = [[row["who"], row["protocol"], *_figures_of(row)] for row in published]
        rows += [
            [
                f"`{entry.name}`",
                f"{entry.protocol}; {_after_comma(entry.held_out)}",
                *_figures_of(entry.figures, 1),
            ]
            for entry in ours
        ]
        head = f"{TITLES[data]}|protocol|views|paper-equivalent|mean|median|within 5°|within 10°"
        tables.append(table(head.split("|"), rows, left=2))
    if tables:
        yield section(
            "Comparison with the paper",
            "Our rows are those of the table above, printed by the same command. The claims are "
            "the paper's own. Its authors' trained models (16 beams of D = 64, also for LFW, "
            "560,226 parameters) were measured by `python studies/authors_weights.py`.",
            "What to look for: compare the paper's claim only with the column *paper-equivalent*, "
            "and only with rows of the protocol `paper`.",
            *tables,
            "What it means: the authors' weights were tested on images that include their training "
            "images, ours on held-out images. Their rows and our `paper` rows share a protocol "
            "that leaks; a `leakfree` row solves a harder task.",
        )


def _after_comma(text: str) -> str:
    return text.split(", ", 1)[-1]


def _figures_of(figures: Record, digits: int = 0) -> list[str]:
    return [
        count(figures.get("n")),
        degrees(figures.get("paper_equivalent"), 1),
        degrees(figures.get("mean")),
        degrees(figures.get("median")),
        percent(figures.get("within_5"), digits),
        percent(figures.get("within_10"), digits),
    ]


def jpeg_section(entries: Sequence[Measured]) -> Iterator[str]:
    plain = {
        (entry.name, entry.protocol, entry.data): entry for entry in entries if entry.jpeg is None
    }
    rows: Rows = []
    ratios = []
    for entry in entries:
        before = plain.get((entry.name, entry.protocol, entry.data))
        if entry.jpeg is None or before is None:
            continue
        names = [f"`{entry.name}`", before.held_out, entry.protocol, f"q{entry.jpeg}"]
        rows.append(names + _pairs(before.figures, entry.figures))
        ratios.append(entry.figures["mean"] / before.figures["mean"])
    if rows:
        head = "model|held out|protocol|JPEG|mean|after|median|after|within 10°|after"
        yield section(
            "Robustness to JPEG",
            "Printed by `python tools/publish.py RUN NAME`. `radialbeams evaluate NAME DATA "
            "--protocol PROTOCOL --jpeg 90 --seeds N --json` measures a row again. The rotated "
            "parent is saved once as JPEG (4:2:0) before the view is made; a `paper` view is the "
            "rotated parent itself.",
            "What to look for: each figure stands beside the same figure *after* that save.",
            table(head.split("|"), rows, left=4),
            "What it means: a model that reads the angle from traces of interpolation loses it "
            f"here. The mean error grows by a factor of {ranged(ratios, 2)}. JPEG does not hide "
            "the border of a `paper` view, so a small change there says nothing about that leak.",
        )


def _pairs(before: Record, after: Record) -> list[str]:
    both = (before, after)
    errors = [degrees(figures.get(name)) for name in ("mean", "median") for figures in both]
    return errors + [percent(figures.get("within_10")) for figures in both]


def risk_section(entries: Sequence[Measured]) -> Iterator[str]:
    curves = with_curves(entries)
    if not curves:
        return
    head = "model|held out|protocol|all: mean|within 10°|most confident 80%: mean|within 10°"
    head += "|most confident 50%: mean|within 10°|calibration error"
    rows = []
    for entry in curves:
        cells = [f"`{entry.name}`", entry.held_out, entry.protocol]
        for coverage in (1.0, 0.8, 0.5):
            point = _at(entry.figures["risk_coverage"], coverage)
            cells += [degrees(point.get("mean")), percent(point.get("within_10"))]
        # Of the half of the held-out keys that the calibration was not fitted on.
        rows.append([*cells, percent(entry.card.get("calibrated", {}).get("expected_error"))])
    yield section(
        "Confidence: risk and coverage",
        "Printed by `python tools/publish.py RUN NAME`; drawn by `python tools/results_page.py`.",
        "What to look for: the error should fall from left to right in the table as the least "
        "confident views are left out, and the calibration error should be small.",
        "![Mean error and share within 10° of the more confident share of views]"
        "(risk-coverage.png)",
        table(head.split("|"), rows, left=3),
        "What it means: views are ranked by the model's confidence, and the least confident are "
        "left out. Where the error falls, the confidence shows which estimates to trust. The "
        "calibration error is the mean gap between the confidence and the share of estimates "
        "within 10°, over ten bins of equal size. Each half of the held-out images is measured "
        "with the calibration that was fitted on the other half.",
    )


def with_curves(entries: Sequence[Measured]) -> list[Measured]:
    return [e for e in entries if e.jpeg is None and e.figures.get("risk_coverage")]


def _at(curve: Sequence[Record], coverage: float) -> Record:
    return next((point for point in curve if math.isclose(point["coverage"], coverage)), {})


def groups_section(entries: Sequence[Measured]) -> Iterator[str]:
    rows = []
    for entry in entries:
        groups = entry.figures.get("groups")
        if entry.jpeg is not None or not groups:
            continue
        ranked = sorted(groups.items(), key=lambda item: (item[1], item[0]))
        worst = ", ".join(f"{name} {degrees(mean)}" for name, mean in reversed(ranked[-3:]))
        if len(ranked) > 100 or entry.data == "lfw":  # people are not named
            worst = degrees(ranked[-1][1])
        middle = ranked[len(ranked) // 2][1]
        names = [f"`{entry.name}`", entry.held_out, entry.protocol, count(len(ranked))]
        rows.append([*names, degrees(ranked[0][1]), degrees(middle), worst])
    if rows:
        head = "model|held out|protocol|groups|best|middle|worst"
        yield section(
            "By object or person",
            "Printed by `python tools/publish.py RUN NAME`. `radialbeams evaluate NAME DATA "
            "--group object --json` (or `person`) measures a row again.",
            "What to look for: the distance between the middle and the worst group.",
            table(head.split("|"), rows, left=3),
            "What it means: these are mean errors of single objects or people. Where the worst "
            "is far above the middle, a few of them, such as symmetric objects, cause most of the "
            "mean error.",
        )


def cost_section(cards: Sequence[Record]) -> Iterator[str]:
    names = {
        "milliseconds_a_view_one_cpu_thread": "ms per view, one CPU thread",
    }
    costed = [card for card in cards if card.get("cost")]
    keys = list(dict.fromkeys(key for card in costed for key in _plain(card["cost"])))
    if keys:
        rows = [
            [f"`{card['name']}`", *(as_text(card["cost"].get(key)) for key in keys)]
            for card in costed
        ]
        yield section(
            "Cost of an estimate",
            "Printed by `python tools/costs.py`, which measures all models in turns and writes the "
            "cards.\n\n"
            "What to look for: the default model takes several times as long as a specialist.",
            table(["model", *(names.get(key, key.replace("_", " ")) for key in keys)], rows),
            "What it means: all figures are from one run on one machine. Compare rows with each "
            "other, not with other machines. Reading a picture, making its view and looking for "
            "documents come on top.",
        )


def files_of_users_section(cards: Sequence[Record]) -> Iterator[str]:
    """Held-out originals as rotated files: what users get."""
    measured = [(card["name"], card["end_to_end"]) for card in cards if card.get("end_to_end")]
    if measured:
        head = "model|files|JPEG|mean|median|P95|within 5°|within 10°|flips"
        rows = [
            [
                f"`{name}`",
                count(figures.get("n")),
                f"q{figures['jpeg']}" if figures.get("jpeg") else "–",
                *(degrees(figures.get(key)) for key in ("mean", "median", "p95")),
                *(percent(figures.get(key)) for key in ("within_5", "within_10")),
                percent(figures.get("flips"), 2),
            ]
            for name, figures in measured
        ]
        yield section(
            "Rotated files, as users have them",
            "Printed by `python tools/publish.py RUN NAME`, which writes it to the card. Held-out "
            "originals are rotated by Pillow with a random fill, saved as JPEG and read by "
            "`Canonicalizer`.",
            "What to look for: compare each row with the same model in the first table. A model "
            "that relied on leaks is much worse here.",
            table(head.split("|"), rows),
            "What it means: these are the errors to expect on files of the same kind. The paper's "
            "network (`bic`) fails on files, because it has learned to read the interpolation and "
            "the border of its own views.",
        )


def _plain(values: Record) -> list[str]:
    return [key for key, value in values.items() if not isinstance(value, dict | list)]


def least_sure_section(cards: Sequence[Record]) -> Iterator[str]:
    rows = [
        [f"`{card['name']}`", row["object"], percent(row["confidence"]), degrees(row["mean"])]
        for card in cards
        for row in card.get("least_confident", ())
    ]
    if rows:
        yield section(
            "Objects with the lowest confidence",
            "Printed by `python tools/publish.py RUN NAME`, which writes it to the card. The ten "
            "objects of COIL-100 on which each model is least confident.",
            "What to look for: on unseen objects (`ring.coil100-objects`), low confidence should "
            "come with large errors.",
            table(["model", "object", "mean confidence", "mean error"], rows, left=2),
            "What it means: where the mean error is large, the low confidence was justified; where "
            "it is small, the model was too cautious.",
        )
