"""Sections: the shipped models, from their cards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

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

# Not measured by this package: what the paper prints, and its authors' two trained models run once
# on the real images at uniform angles. Those images include the ones that they were trained on.
PUBLISHED: dict[str, list[Record]] = {
    "coil100": [
        {"who": "the paper's claim", "protocol": "paper, as printed", "paper_equivalent": 13.0},
        {
            "who": "its authors' weights",
            "protocol": "paper, training images included",
            "n": 1500,
            "mean": 7.26,
            "median": 5.73,
            "within_5": 0.44,
            "within_10": 0.75,
            "paper_equivalent": 9.5,
        },
    ],
    "lfw": [
        {"who": "the paper's claim", "protocol": "paper, as printed", "paper_equivalent": 12.0},
        {
            "who": "its authors' weights",
            "protocol": "paper, training images included",
            "n": 1200,
            "mean": 11.50,
            "median": 8.56,
            "within_5": 0.31,
            "within_10": 0.56,
            "paper_equivalent": 16.1,
        },
    ],
}


def models_section(entries: Sequence[Measured]) -> Iterator[str]:
    plain = [entry for entry in entries if entry.jpeg is None]
    if not plain:
        return
    head = "model|held out|protocol|parameters|views|mean [95 %]|median|P95|paper-equivalent"
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
        "The shipped models",
        "Printed by `python tools/publish.py RUN NAME`, which measures a finished run and "
        "writes the model's card. `radialbeams evaluate NAME DATA --protocol PROTOCOL --seeds N "
        "--json` measures a row again.",
        table(head.split("|"), rows, left=3),
        "What it means: rows of different protocols do not compare. A `paper` view gives part of "
        "the angle away by its border and its interpolation; a `leakfree` view does not, as far as "
        "we can measure ([leaks](leaks.md)). Only `leakfree` figures say how well a model reads "
        "the picture."
        + (
            " A random fifth of COIL-100's pictures shows objects that were trained on from other "
            "sides; only unseen objects say what happens with new ones."
            if same_objects
            else ""
        ),
        "The interval is a bootstrap over images. *Paper-equivalent* is "
        "arccos(1 − mean(L_circle)/2), the paper's own measure; it is not a mean error. *Flips* "
        "are answers that are off by 150° or more.",
    )


def paper_section(entries: Sequence[Measured]) -> Iterator[str]:
    """The paper's figures beside ours, for each data set that a shipped model knows."""
    tables = []
    for data, published in PUBLISHED.items():
        ours = [entry for entry in entries if entry.jpeg is None and entry.data == data]
        if not ours:
            continue
        rows = [[row["who"], row["protocol"], *_beside(row)] for row in published]
        rows += [
            [
                f"`{entry.name}`",
                f"{entry.protocol}; {_after_comma(entry.held_out)}",
                *_beside(entry.figures, 1),
            ]
            for entry in ours
        ]
        head = f"{TITLES[data]}|protocol|views|paper-equivalent|mean|median|within 5°|within 10°"
        tables.append(table(head.split("|"), rows, left=2))
    if tables:
        yield section(
            "Beside the paper",
            "Our rows are those of the table above, printed by the same command. The other rows "
            "were not measured by this package: the claims are the paper's own, and its authors' "
            "trained models (560,226 parameters) were run once on the real images.",
            *tables,
            "What it means: the claims are paper-equivalent errors, so they stand beside that "
            "column and no other. The authors' weights were tested on images that include their "
            "training images, ours on held-out ones. Their rows and our `paper` rows share "
            "a protocol that leaks; a `leakfree` row solves a harder task.",
        )


def _after_comma(text: str) -> str:
    return text.split(", ", 1)[-1]


def _beside(figures: Record, digits: int = 0) -> list[str]:
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
            "After one JPEG save",
            "Printed by `python tools/publish.py RUN NAME`; again by `radialbeams evaluate "
            "NAME DATA --protocol PROTOCOL --jpeg 90 --seeds N --json`.",
            table(head.split("|"), rows, left=4),
            "The rotated parent is saved once as JPEG (4:2:0) before the view is made; a `paper` "
            "view is the rotated parent itself. *After* is the figure with that save.",
            "What it means: a model that reads the angle off interpolation loses it here. The mean "
            f"error becomes {ranged(ratios, 2)} times what it was. JPEG does not hide a border: "
            "under `paper` a small change says nothing about that leak.",
        )


def _pairs(before: Record, after: Record) -> list[str]:
    both = (before, after)
    errors = [degrees(figures.get(name)) for name in ("mean", "median") for figures in both]
    return errors + [percent(figures.get("within_10")) for figures in both]


def risk_section(entries: Sequence[Measured]) -> Iterator[str]:
    curves = with_curves(entries)
    if not curves:
        return
    head = "model|held out|protocol|all: mean|within 10°|surest 80 %: mean|within 10°"
    head += "|surest 50 %: mean|within 10°|calibration error"
    rows = []
    for entry in curves:
        cells = [f"`{entry.name}`", entry.held_out, entry.protocol]
        for coverage in (1.0, 0.8, 0.5):
            point = _at(entry.figures["risk_coverage"], coverage)
            cells += [degrees(point.get("mean")), percent(point.get("within_10"))]
        # Of the half of the held-out keys that the calibration was not fitted on.
        rows.append([*cells, percent(entry.card.get("calibrated", {}).get("expected_error"))])
    yield section(
        "Risk and coverage",
        "Printed by `python tools/publish.py RUN NAME`; drawn by `python tools/results_page.py`.",
        "![Mean error and share within 10° of the more confident share of views]"
        "(risk-coverage.png)",
        table(head.split("|"), rows, left=3),
        "What it means: views are ranked by the model's own confidence and the least sure are "
        "left out. Where the error falls towards the left of the picture, the confidence knows "
        "which answers to trust. The calibration error is the mean gap between the confidence and "
        "the share of answers within 10°, over ten bins of equal size, each half of the held-out "
        "images with the calibration that was fitted on the other.",
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
            "Printed by `python tools/publish.py RUN NAME`; again by `radialbeams evaluate "
            "NAME DATA --group object --json` (or `person`).",
            table(head.split("|"), rows, left=3),
            "What it means: these are mean errors of single objects or people. Where the worst "
            "is far above the middle, a few of them, such as objects with a symmetry, make most "
            "of the mean error.",
        )


def cost_section(cards: Sequence[Record], key: str, title: str, means: str) -> Iterator[str]:
    """Whatever figures a card names: `cost` and `end_to_end` differ from model to model."""
    given = [
        (card["name"], {n: v for n, v in card[key].items() if not isinstance(v, dict | list)})
        for card in cards
        if card.get(key)
    ]
    if given:
        names = list(dict.fromkeys(name for _, values in given for name in values))
        rows = [[f"`{name}`", *(as_text(values.get(n)) for n in names)] for name, values in given]
        yield section(
            title,
            "Printed by `python tools/publish.py RUN NAME`, which writes it to the card.",
            table(["model", *(name.replace("_", " ") for name in names)], rows),
            f"What it means: {means}",
        )


def least_sure_section(cards: Sequence[Record]) -> Iterator[str]:
    rows = [
        [f"`{card['name']}`", row["object"], percent(row["confidence"]), degrees(row["mean"])]
        for card in cards
        for row in card.get("least_confident", ())
    ]
    if rows:
        yield section(
            "Least sure",
            "Printed by `python tools/publish.py RUN NAME`, which writes it to the card.",
            table(["model", "object", "mean confidence", "mean error"], rows, left=2),
            "What it means: the ten objects of COIL-100 of whose angle a model is least sure, with "
            "how far off it is there.",
        )
