"""The results page: every figure on it is read from a card or from a file in results/.

    python experiments/page.py [--text]

Writes docs/results.md, the table in docs/leaks.md and, without --text, the pictures beside them.
A section appears once its files exist. Nothing here measures anything but the leak picture.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
Record = dict[str, Any]
Rows = list[list[str]]

TABLE = "<!-- this table is written by: python experiments/page.py -->"
TABLE_END = "<!-- end of the table -->"

# What is held out, by the data's name and the card's `split_by`.
HELD_OUT = {
    ("coil100", "default"): "COIL-100, a random fifth of the pictures",
    ("coil100", "object"): "COIL-100, objects 81–100, unseen",
    ("lfw", "default"): "LFW, a fifth of the people, unseen",
    ("photos", "default"): "everyday photos, one in fifty",
}
TITLES = {"coil100": "COIL-100", "lfw": "LFW", "photos": "everyday photos"}

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

RENDERINGS = {
    "bilinear": "bilinear, same resolution, disc only",
    "paper": "paper: padded, bilinear, same resolution",
    "gaussian": "Gaussian, then bicubic at under half the size",
    "leakfree": "leak-free",
}
# What the makers of other tools publish for everyday photos, on COCO-1030 and their own rotations.
PEERS: list[Record] = [
    {"who": "RightWayUp 1.0, ViT-L", "parameters": 306_000_000, "mean": 2.04, "within_10": 0.988},
    {"who": "Woehrer 2026", "parameters": 83_000_000, "mean": 2.84, "jpeg": 23.8},
    {"who": "Deep-OAD", "mean": 10.09},
]
# Said beside figures that are older than the correction of the blur.
BEFORE = (
    "Measured on views with a plain Gaussian before the bicubic resample; the shipped models, "
    "measured on both, differ by less than 0.1° ([leaks](leaks.md))."
)
NOISES = ("white", "pink", "blurred", "jpeg75", "jpeg85", "jpeg95")

# Okabe and Ito's colours, which colour-blind readers can tell apart; markers differ as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"


class Measured(NamedTuple):
    """One entry of a card's `metrics`."""

    card: Record
    protocol: str
    jpeg: int | None
    figures: Record

    @property
    def name(self) -> str:
        return str(self.card["name"])

    @property
    def data(self) -> str:
        return str(self.figures.get("data") or _data(self.card).get("name", ""))

    @property
    def held_out(self) -> str:
        if self.data != _data(self.card).get("name", ""):
            return TITLES.get(self.data, self.data)
        split = (self.data, _data(self.card).get("split_by", "default"))
        return HELD_OUT.get(split, f"{TITLES.get(self.data, self.data)}, held out")


# --- reading -----------------------------------------------------------------------------------


def read(folder: Path, pattern: str) -> list[Record]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(pattern))]


def lines(file: Path) -> list[Record]:
    """A file that holds a list of records; none where there is no file."""
    return list(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []


def measured(cards: Sequence[Record]) -> list[Measured]:
    """Keys are `paper`, `leakfree`, or either followed by `_jpeg_90`; the figures may repeat it."""
    found = []
    for card in cards:
        for key, figures in card.get("metrics", {}).items():
            if not isinstance(figures, dict) or "mean" not in figures:
                continue
            match = re.fullmatch(r"(.+?)(?:_jpeg_(\d+))?", key)
            protocol, quality = match.groups() if match else (key, None)
            jpeg = figures.get("jpeg") or quality
            protocol = str(figures.get("protocol", protocol))
            found.append(Measured(card, protocol, int(jpeg) if jpeg else None, figures))
    return found


def _data(card: Record) -> Record:
    data = card.get("data", {})
    return data if isinstance(data, dict) else {"name": data}


# --- figures as text ---------------------------------------------------------------------------


def degrees(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}°"


def percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def interval(figures: Record, name: str = "mean") -> str:
    """The mean in degrees, with its bootstrap interval where the file has one."""
    low, high = figures.get(f"{name}_low"), figures.get(f"{name}_high")
    text = degrees(figures.get(name))
    return text if low is None or high is None else f"{text} [{low:.2f}, {high:.2f}]"


def rho(leak: Record, name: str) -> str:
    low, high = leak[f"{name}_low"], leak[f"{name}_high"]
    return signed(f"{leak[name]:+.3f} [{low:+.3f}, {high:+.3f}]")


def signed(text: str) -> str:
    return text.replace("-", "−")


def table(head: Sequence[str], rows: Rows, left: int = 1) -> str:
    """GitHub's Markdown; all columns but the first `left` are figures and align right."""
    rule = ["---" if i < left else "--:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [list(head), rule, *rows])


def section(title: str, *paragraphs: str) -> str:
    return "\n\n".join([f"## {title}", *(text for text in paragraphs if text)])


def plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


# --- sections: the shipped models ---------------------------------------------------------------


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
            *_errors(entry.figures),
        ]
        for entry in plain
    ]
    same_objects = any(entry.held_out == HELD_OUT["coil100", "default"] for entry in plain)
    yield section(
        "The shipped models",
        "Printed by `python experiments/publish.py RUN NAME`, which measures a finished run and "
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


def _errors(figures: Record) -> list[str]:
    return [
        interval(figures),
        degrees(figures.get("median")),
        degrees(figures.get("p95")),
        degrees(figures.get("paper_equivalent")),
        percent(figures.get("within_5")),
        percent(figures.get("within_10")),
        percent(figures.get("flips"), 2),
    ]


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
            "Printed by `python experiments/publish.py RUN NAME`; again by `radialbeams evaluate "
            "NAME DATA --protocol PROTOCOL --jpeg 90 --seeds N --json`.",
            table(head.split("|"), rows, left=4),
            "The rotated parent is saved once as JPEG (4:2:0) before the view is made; a `paper` "
            "view is the rotated parent itself. *After* is the figure with that save.",
            "What it means: a model that reads the angle off interpolation loses it here. The mean "
            f"error becomes {_range(ratios, 2)} times what it was. JPEG does not hide a border: "
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
        "Printed by `python experiments/publish.py RUN NAME`; drawn by "
        "`python experiments/page.py`.",
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
            "Printed by `python experiments/publish.py RUN NAME`; again by `radialbeams evaluate "
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
        rows = [[f"`{name}`", *(_plain(values.get(n)) for n in names)] for name, values in given]
        yield section(
            title,
            "Printed by `python experiments/publish.py RUN NAME`, which writes it to the card.",
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
            "Printed by `python experiments/publish.py RUN NAME`, which writes it to the card.",
            table(["model", "object", "mean confidence", "mean error"], rows, left=2),
            "What it means: the ten objects of COIL-100 of whose angle a model is least sure, with "
            "how far off it is there.",
        )


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).replace("|", "\\|")
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


# --- sections: experiments ---------------------------------------------------------------------


def side_by_side_section(runs: Sequence[Record]) -> Iterator[str]:
    if not runs:
        return
    runs = sorted(runs, key=lambda run: (run["mean"], run["name"]))
    head = "network|parameters|training|mean [95 %]|median|P95|paper-equivalent"
    head += "|within 5°|within 10°|flips"
    rows = [
        [
            str(run["name"]),
            count(run.get("parameters")),
            _seconds(run),
            *_errors(run),
        ]
        for run in runs
    ]
    rows += [
        [
            f"{known['who']} (other views: {known['protocol']})",
            count(known.get("parameters")),
            "–",
            *_errors(known),
        ]
        for known in PUBLISHED["coil100"]
    ]
    best = runs[0]
    means = f"What it means: on these views `{best['name']}` has the smallest mean error"
    if len(runs) > 1:
        factors = [run["mean"] / best["mean"] for run in runs[1:]]
        means += f"; the others have {_range(factors)} times as much"
    yield section(
        "Side by side on the same views",
        "Printed by `python experiments/ring.py side-by-side --data DIR --out results/ring`.",
        f"Protocol: leakfree, COIL-100, {_split(best)}; {_effort(best)}. Every network saw the "
        "same images, angles, augmentation and number of steps, and was trained once. "
        f"{BEFORE}",
        table(head.split("|"), rows),
        f"{means}. Each network has one learning rate, the one in `experiments/ring.py`; none was "
        "searched for at length, so a small gap is no ranking.",
    )


def _range(factors: Sequence[float], digits: int = 1) -> str:
    low, high = f"{min(factors):.{digits}f}", f"{max(factors):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def _split(run: Record) -> str:
    split = str(run.get("split", "test"))
    return {"test": "the held-out fifth of the pictures"}.get(split, split)


def _seconds(run: Record) -> str:
    seconds = run.get("training_seconds")
    return "–" if seconds is None else f"{seconds:.0f} s"


def _effort(run: Record) -> str:
    parts = []
    if "steps" in run and "batch" in run:
        parts.append(f"{run['steps']:,} steps of {run['batch']} views")
    if "seeds" in run:
        parts.append(f"{plural(run['seeds'], 'angle')} for each test image")
    if "hardware" in run:
        parts.append(_hardware(run))
    return ", ".join(parts)


def _hardware(run: Record) -> str:
    return {"cuda": "one GPU", "cpu": "CPU"}.get(run["hardware"], str(run["hardware"]))


AS_SHIPPED = "as shipped"


def ablation_section(runs: Sequence[Record], which: str = "ablation") -> Iterator[str]:
    if not runs:
        return
    data, model = ("photos", "ring") if which == "photos" else ("COIL-100", "ring.coil100")
    base = next((run for run in runs if run["name"] == AS_SHIPPED), None)
    changed = sorted((r for r in runs if r is not base), key=lambda r: (r["mean"], r["name"]))
    head = "change|parameters|steps|training|mean [95 %]|Δ mean|median|within 5°|flips|against it"
    rows = [_ablated(run, base) for run in ([base] if base else []) + changed]
    first = base or changed[0]
    yield section(
        f"Ablation of `{model}`",
        f"Printed by `python experiments/ring.py {which} --data DIR --out results/ring`.",
        f"Protocol: leakfree, {data}, {_split(first)}; {_effort(first)} unless the row says "
        f"otherwise. *{AS_SHIPPED.capitalize()}* is the recipe of `{model}`, here with fewer "
        "steps and images than the shipped model had. No choice was made on test images. The rows "
        "were trained several at once, so their times say little. "
        f"{BEFORE if which == 'ablation' else ''}",
        table(head.split("|"), rows),
        _ablation_means(changed, base),
    )


def _ablated(run: Record, base: Record | None) -> list[str]:
    other = base is not None and run is not base
    return [
        str(run["name"]),
        count(run.get("parameters")),
        count(run.get("steps")),
        _seconds(run),
        interval(run),
        signed(f"{run['mean'] - base['mean']:+.2f}°") if base and other else "",
        degrees(run.get("median")),
        percent(run.get("within_5")),
        percent(run.get("flips"), 2),
        against(run, base) if base and other else "",
    ]


def against(run: Record, base: Record) -> str:
    """Better or worse only where the two intervals do not touch."""
    if not ("mean_low" in run and "mean_low" in base):
        return "one figure, no interval"
    if run.get("mean_high", run["mean"]) < base.get("mean_low", base["mean"]):
        return "better"
    if run.get("mean_low", run["mean"]) > base.get("mean_high", base["mean"]):
        return "worse"
    return "no clear difference"


def _ablation_means(changed: Sequence[Record], base: Record | None) -> str:
    if base is None or not changed:
        return "What it means: nothing yet; the other rows are missing."
    if not any("mean_low" in run for run in changed):
        return (
            "What it means: after so few steps, a row tells how soon a variant learns and not how "
            "far it gets; each is one run, and only its mean and median were kept. Leaving "
            "branches out slows the start, and a long run with it did not converge, so `ring` is "
            "trained without. Nothing here speaks for attention."
        )
    kinds: dict[str, list[str]] = {"better": [], "worse": [], "no clear difference": []}
    for run in changed:
        kinds[against(run, base)].append(str(run["name"]))
    text = f"What it means: of {plural(len(changed), 'change')}, "
    text += "; ".join(
        f"{len(names)} {kind} ({', '.join(names)})" if names else f"0 {kind}"
        for kind, names in kinds.items()
    )
    return (
        f"{text}. What is not better is a negative result and stays in the table. *Better* and "
        "*worse* mean that the intervals do not touch. The intervals cover the choice of images, "
        "not of training seeds: each row is one run."
    )


def photos_section(cards: Sequence[Record], indicative: Sequence[Record] = ()) -> Iterator[str]:
    """The default model on files of everyday photos, with what others publish beside it."""
    card = next((card for card in cards if card["name"] == "ring"), None)
    files = card.get("end_to_end") if card else None
    if not (card and files and "corners" in files):
        return
    names = {
        "turned on their own canvas": files,
        "a third with filled or transparent corners": files["corners"],
        "halved before they were turned": files["halved"],
        "blurred before they were turned": files["deblocked"],
    }
    for found in indicative:
        names[f"*COCO-1030, {found['n']} of its photos, indicative*"] = found
    rows = [
        [
            name,
            count(found["n"]),
            degrees(found["mean"]),
            degrees(found["median"]),
            percent(found["within_5"]),
            percent(found["within_10"]),
            percent(found["flips"]),
            percent(found["surer_half_within_10"]),
        ]
        for name, found in names.items()
    ]
    head = "photos|n|mean|median|within 5°|within 10°|flips|surer half, within 10°"
    turned, upright = files["turned"], files["upright"]
    yield section(
        "Everyday photos, as users have them",
        "Printed by `python experiments/photos/files.py PHOTOS`: native COCO val2017 photos with "
        "people, none trained on, turned at full size by Pillow, saved as JPEG q90 and read by "
        "`radialbeams angle`.",
        table(head.split("|"), rows),
        f"`radialbeams upright` with its defaults turns {percent(turned['acted_on'])} of the "
        f"turned photos, and {percent(turned['acted_on_within_5'])} of those end within 5°. Of the "
        f"same photos as they are, upright, {percent(upright['worse_than_it_came'])} come out "
        "worse.",
        "COCO-1030 is the list on which others report. Its photos here were made from squashed "
        '256 px JPEGs whose block grid lies along "up", so its row is indicative only.'
        if indicative
        else "",
        "What others publish. *Not the same views*: other photos, turned and cropped in their own "
        "ways, so read the rows as what one may expect of a kind of tool, not as a ranking.",
        table(
            ("tool", "parameters", "mean", "within 10°", "mean after JPEG q90"), _peer_rows(card)
        ),
        "What it means: on everyday photos we lose to tools that are 30 to 100 times as large and "
        "were pretrained on far more pictures. What `ring` offers is its size, its speed, its "
        "abstention, and figures measured on files.",
    )


def _peer_rows(card: Record) -> Rows:
    ours = card["end_to_end"]
    own = ["`ring`, files as above", count(card["parameters"]), degrees(ours["mean"])]
    rows = [[*own, percent(ours["within_10"]), degrees(ours["mean"])]]
    for peer in PEERS:
        cells = [peer["who"], count(peer.get("parameters")), degrees(peer["mean"])]
        rows.append([*cells, percent(peer.get("within_10")), degrees(peer.get("jpeg"))])
    return rows


def looks_section(rows: Sequence[Record]) -> Iterator[str]:
    if not rows:
        return
    names = ("model", "looks", "n", "mean", "median", "p95", "flips")
    lines = [
        [
            f"`{row['model']}`",
            count(row["looks"]),
            count(row["n"]),
            *(degrees(row[name]) for name in names[3:6]),
            percent(row["flips"], 2),
        ]
        for row in rows
    ]
    yield section(
        "Several looks at one picture",
        "Printed by `python benchmarks/refine.py`. `refine=k` looks k times, at views turned by "
        "fractions of a beam step, and averages on the circle; a quarter turn would gain nothing, "
        "since the ring commutes with it.",
        table(names, lines),
        "What it means: it takes at least k times as long, and the gain is small. The way of "
        "averaging was chosen among twelve on held-out images, these among them, so even that is "
        "flattering. It is off unless asked for.",
    )


def speed_section(steps: Sequence[Record], runs: Sequence[Record]) -> Iterator[str]:
    if not (steps and runs):
        return
    names = ["render_ms", "forward_ms", "backward_and_update_ms", "step_ms"]
    rows = [
        [
            f"`{step['recipe']}`",
            f"{step['view_size']} px",
            count(step["parameters"]),
            count(step["batch"]),
            *(f"{step[name]:.2f}" for name in names),
            percent(step["share"]),
            count(step["views_per_second"]),
        ]
        for step in steps
    ]
    head = "recipe|views|parameters|batch|render|forward|backward and update|step, ms"
    head += "|rendering|views a second"
    run = runs[0]
    yield section(
        "Speed of training, one GPU",
        "Printed by `python benchmarks/rendering.py [--recipe FILE] [--batch N]`: the step alone, "
        "captured as a graph.",
        table(head.split("|"), rows),
        f"`python benchmarks/training_speed.py` on COIL-100, batch {count(run['batch'])}, "
        f"{count(run['steps'])} steps: {degrees(run['held_out_mean'])} on held-out views after "
        f"{run['seconds']:.1f} s of training, at {count(run['views_per_second'])} views a second.",
    )


def files_section(runs: Sequence[Record]) -> Iterator[str]:
    if not runs:
        return
    run = runs[0]
    parts, times = run["milliseconds"], run["times_faster_than_vit"]
    rows = [
        ["files to JSON, small JPEGs", f"{run['images_a_second']:.0f} a second", "400 or more"],
        ["one 12-megapixel JPEG to its angle", f"{run['large_jpeg_ms']:.0f} ms", "120 ms or less"],
        ["`radialbeams --help`, over bare Python", f"{run['help_s']:.2f} s", "0.4 s or less"],
        ["`import radialbeams`, over bare Python", f"{run['import_s']:.2f} s", "0.3 s or less"],
        ["`ring.coil100` against a ViT-S/14", f"{times['ring.coil100']:.0f} times", "50 or more"],
        ["`ring` against a ViT-S/14", f"{times['ring']:.0f} times", "12 or more"],
    ]
    split = ", ".join(f"{name} {value:.1f} ms" for name, value in parts.items())
    yield section(
        "Speed of the tool",
        f"Printed by `python benchmarks/files.py --images DIR` on two CPU cores: {run['files']:,} "
        f"of LFW's JPEGs, {run['workers']} workers, `{run['model']}`.",
        table(("what", "measured", "asked for"), rows),
        f"What it means: of one small picture's time on one thread {split}; `angle` writes "
        "nothing. A ViT-S/14 at 224 px is the smallest model of the strongest peer; both run on "
        "one thread in the same run.",
    )


def leak_table(leaks: Sequence[Record]) -> str:
    order = list(RENDERINGS)
    rows = [
        [
            RENDERINGS.get(leak["rendering"], leak["rendering"]),
            leak["noise"].replace("jpeg", "pink, JPEG q"),
            leak["canary"],
            rho(leak, "rho4"),
            rho(leak, "rho1"),
            f"{leak['parent']} px",
            count(leak["views"]),
            count(leak["test_views"]),
            _hardware(leak),
        ]
        for leak in sorted(
            leaks,
            key=lambda leak: (
                order.index(leak["rendering"]) if leak["rendering"] in order else len(order),
                NOISES.index(leak["noise"]) if leak["noise"] in NOISES else len(NOISES),
                leak["canary"],
            ),
        )
    ]
    head = "views are made by|noise|canary|ρ₄ [95 %]|ρ₁ [95 %]|parents|training views|test views|on"
    return table(head.split("|"), rows, left=3)


def leaks_section(leaks: Sequence[Record]) -> Iterator[str]:
    if leaks:
        yield section(
            "Leaks",
            "Printed by `python experiments/leaks.py --out results/leaks`.",
            leak_table(leaks),
            f"{leaks_mean(leaks)} [How to read this](leaks.md).",
        )


def leaks_mean(leaks: Sequence[Record]) -> str:
    sentences = []
    for rendering, name in RENDERINGS.items():
        ours = [leak for leak in leaks if leak["rendering"] == rendering]
        if not ours:
            continue
        worst = max(max(abs(leak["rho4"]), abs(leak["rho1"])) for leak in ours)
        of = f"{plural(len(ours), 'canary', 'canaries')}"
        sentences.append(f"{name}: {of}, |ρ| up to {worst:.3f}")
    spread = 1 / math.sqrt(2 * min(leak["test_views"] for leak in leaks))
    text = f"What it means: {'; '.join(sentences)}. Chance has a standard deviation of {spread:.3f}"
    text += ", so a canary at that level read nothing."
    groups = same_answers(leaks)
    if groups:
        listed = "; ".join(", ".join(names) for names in groups)
        text += (
            f" Rows with equal figures ({listed}) come from canaries that gave one and the same "
            "answer to every view. A canary that finds nothing does that, but so does one whose "
            "units have all gone silent, so these rows alone are no evidence of absence."
        )
    return text


def same_answers(leaks: Sequence[Record]) -> list[list[str]]:
    """Rows whose figures agree to five digits, which two networks that look do not produce."""
    found: dict[tuple[float, float], list[str]] = {}
    for leak in leaks:
        key = (round(leak["rho4"], 5), round(leak["rho1"], 5))
        name = f"{leak['rendering']} {leak['canary']} on {leak['noise']}"
        found.setdefault(key, []).append(name)
    return [names for names in found.values() if len(names) > 1]


# --- sections: in front of a model --------------------------------------------------------------


def centring_section(found: Sequence[Record]) -> Iterator[str]:
    for record in found:
        objects = record["objects"]
        ways = ("none", "foreground", "saliency")
        rows = [
            [f"{shift} px", *(_mean_and_within(figures[way]) for way in ways)]
            for shift, figures in objects["shifts"].items()
        ]
        if photos := record.get("photos"):
            rows.append(["photos, `ring`", *(_mean_and_within(photos[way]) for way in ways)])
        first, last = (objects["shifts"][k] for k in ("0", list(objects["shifts"])[-1]))
        yield section(
            "Objects beside the middle, and centring",
            "Printed by `python experiments/centring.py`: "
            f"`{objects['model']}` on held-out views of COIL-100, laid on a ground of their own "
            f"colour beside the middle of a square of {objects['side']} px. Mean error, and the "
            "share within 10°.",
            table(
                ["off the middle by", "as it is", "centred on the foreground", "by saliency"], rows
            ),
            "What it means: without a box, the centre of mass of what differs from the border's "
            f"colour keeps the error at {degrees(last['foreground']['mean'])} however far the "
            f"object is off, where it would be {degrees(last['none']['mean'])}. It is not the "
            "middle that the model was trained on, which costs where nothing is off: "
            f"{degrees(first['none']['mean'])} becomes {degrees(first['foreground']['mean'])}. "
            "Photos have no single object on a plain ground: leave them as they are.",
        )


def _mean_and_within(figures: Record) -> str:
    return f"{degrees(figures['mean'])}, {percent(figures['within_10'])}"


ON_A_GPU = {
    "gpu": "torch, a GPU, as graphs",
    "gpu_half": "the same in half precision",
    "gpu_compiled": "torch, a GPU, compiled",
    "gpu_compiled_half": "the same in half precision",
}


def overhead_section(found: Sequence[Record]) -> Iterator[str]:
    for record in found:
        places = {
            "cpu": "torch, one CPU thread",
            "cpu_batch_1": "torch, one CPU thread",
        }
        for batch in ("", "_batch_1"):
            places |= {f"{way}{batch}": title for way, title in ON_A_GPU.items()}
        measured = [(title, record[key]) for key, title in places.items() if key in record]
        onnx = record.get("onnx", {}).values()
        measured += [("one ONNX file, one CPU thread", row) for row in onnx]
        models = [name for name in measured[0][1] if name.startswith("ring")]
        rows = [
            [
                title,
                count(row["batch"]),
                f"{row['classifier_ms']:.2f}",
                *(f"{row[name]['ms']:.2f}, {percent(row[name]['share'], 0)}" for name in models),
            ]
            for title, row in measured
        ]
        yield section(
            "Cost in front of a classifier",
            "Printed by `python benchmarks/overhead.py`: canonicaliser and rotation beside "
            "EfficientNet-Lite0 at 224 px, in turns in one run; milliseconds an image, and the "
            "share of the classifier's own.",
            table(["where", "batch", "classifier, ms", *(f"`{name}`" for name in models)], rows),
            "What it means: shares differ with the runtime more than with the machine. ONNX "
            "Runtime makes this classifier faster than torch does by more than it does the "
            "canonicaliser and its rotation, so the same front is a larger share there.",
        )


# --- sections: the paper's experiments ----------------------------------------------------------


def experiments_section(root: Path) -> Iterator[str]:
    """One part for each NAME.json that `radialbeams reproduce` left, in the registry's order."""
    from radialbeams.experiments import registry

    found = [root / "results" / f"{name}.json" for name in registry.SUMMARIES]
    records = [json.loads(path.read_text(encoding="utf-8")) for path in found if path.is_file()]
    if records:
        said = "Printed by `radialbeams reproduce NAME`, which leaves all that was measured in "
        said += "`results/NAME.json`; `--redraw` makes the figures from it again."
        parts = [part for record in records for part in _experiment(root, record)]
        yield section("The paper's experiments", said, *parts)


def _experiment(root: Path, record: Record) -> Iterator[str]:
    yield f"### {record['name']}"
    yield f"The paper: {record['claim']}."
    yield table(["", "the paper", "ours"], list(_beside_the_paper(record["paper"], record["ours"])))
    yield f"What it means: {record['why']}"
    seeds = len(record["seeds"])
    effort = plural(record["trainings"], "training") + ", " if record["trainings"] else ""
    yield (
        f"`{record['command']}`, {record['settings']} settings: {effort}"
        f"{plural(seeds, 'seed') + ', ' if seeds else ''}{record['seconds']:,.0f} s of "
        f"{record['hardware']}."
    )
    figures = (root / "results").glob(f"{record['name']}*.png")
    for path in sorted(figures, key=lambda path: path.stem):
        # beam-length's figures are not those of beams-…: a suffix belongs to the longest name.
        if _owner(path.stem) == record["name"]:
            yield f"![{record['name']}: {path.stem}](../results/{path.name})"


def _owner(stem: str) -> str:
    from radialbeams.experiments import registry

    names = [n for n in registry.SUMMARIES if stem == n or stem.startswith(f"{n}-")]
    return max(names, key=len, default="")


def _beside_the_paper(paper: Record, ours: Record) -> Iterator[list[str]]:
    for name in [*paper, *(name for name in ours if name not in paper)]:
        yield [_cell(name), _cell(paper.get(name)), _cell(ours.get(name))]


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_cell(part)}" for key, part in value.items())
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


# --- the page ----------------------------------------------------------------------------------


def results_page(root: Path = ROOT) -> str:
    cards = read(root / "radialbeams" / "zoo", "*.json")
    entries = measured(cards)
    ring = root / "results" / "ring"
    parts = [
        "# Results",
        "Written by `python experiments/page.py` from the models' cards (`radialbeams/zoo/*.json`) "
        "and from `results/`. Do not edit it by hand. Errors are in degrees; lower is better.",
        *models_section(entries),
        *paper_section(entries),
        *jpeg_section(entries),
        *risk_section(entries),
        *groups_section(entries),
        *least_sure_section(cards),
        *cost_section(
            cards,
            "cost",
            "Cost",
            "figures of one machine; compare rows with each other, not with other machines.",
        ),
        *cost_section(
            cards,
            "end_to_end",
            "End to end",
            "held-out originals turned by Pillow with a random fill, saved as JPEG and put "
            "through `Canonicalizer`: what users get. Errors in degrees, shares as fractions.",
        ),
        *photos_section(cards, read(root / "results", "coco-1030.json")),
        *files_section(lines(root / "results" / "speed" / "files.json")),
        *side_by_side_section(read(ring, "side-by-side-*.json")),
        *ablation_section(read(ring, "ablation-*.json")),
        *ablation_section(read(ring, "photos-*.json"), "photos"),
        *looks_section(lines(root / "results" / "refine.json")),
        *speed_section(
            lines(root / "results" / "speed" / "step.json"),
            lines(root / "results" / "speed" / "training.json"),
        ),
        *leaks_section(read(root / "results" / "leaks", "*.json")),
        *overhead_section(read(root / "results" / "speed", "overhead.json")),
        *centring_section(read(root / "results", "centring.json")),
        *experiments_section(root),
    ]
    return "\n\n".join(parts) + "\n"


def with_leak_table(text: str, leaks: Sequence[Record]) -> str:
    """docs/leaks.md with the table and its meaning written anew between the two marks."""
    before, mark, rest = text.partition(TABLE)
    _, end, after = rest.partition(TABLE_END)
    if not (mark and end):
        raise ValueError(f"Expected {TABLE!r} and then {TABLE_END!r} in docs/leaks.md.")
    return f"{before}{TABLE}\n\n{leak_table(leaks)}\n\n{leaks_mean(leaks)}\n\n{TABLE_END}{after}"


# --- pictures ----------------------------------------------------------------------------------

STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "radialbeams",
    "svg.fonttype": "none",
}


def draw_risk_coverage(entries: Sequence[Measured], folder: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    curves = with_curves(entries)
    if not curves:
        return
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
        for i, entry in enumerate(curves):
            points = sorted(entry.figures["risk_coverage"], key=lambda point: point["coverage"])
            share = [100 * point["coverage"] for point in points]
            look = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
            several = sum(other.name == entry.name for other in curves) > 1
            where = TITLES.get(entry.data, entry.data)
            label = f"{entry.name}, {where}" if several else entry.name
            means = [point["mean"] for point in points]
            left.plot(share, means, label=label, markersize=5, linewidth=1.6, **look)
            if all("within_10" in point for point in points):
                within = [100 * point["within_10"] for point in points]
                right.plot(share, within, markersize=5, linewidth=1.6, **look)
        left.set(yscale="log", ylabel="mean error of these views")
        left.yaxis.set_major_locator(matplotlib.ticker.LogLocator(10, (1, 2, 5)))
        left.yaxis.set_major_formatter("{x:g}°")
        left.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        right.set(ylabel="of these, within 10°")
        right.yaxis.set_major_formatter("{x:g} %")
        for axes in (left, right):
            axes.set(xlabel="most confident share of views", xlim=(5, 103))
            axes.xaxis.set_major_formatter("{x:g} %")
            axes.grid(axis="y", color="0.9", linewidth=0.8)
            axes.set_axisbelow(True)
        columns = len(curves) if len(curves) <= 3 else math.ceil(len(curves) / 2)
        figure.legend(loc="outside upper center", ncols=columns, frameon=False)
        for ending in ("png", "svg"):
            metadata = {"Date": None} if ending == "svg" else None
            figure.savefig(folder / f"risk-coverage.{ending}", dpi=160, metadata=metadata)
        plt.close(figure)


ANGLES = (0, 20, 45)
DRAWS = 8192


def draw_leak(folder: Path, parent: int = 128) -> None:
    """White noise turned in two ways, and how much each pixel varies from draw to draw."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    import torch

    from radialbeams.nn.rotation import blur, disc, gaussian_matrix, largest_view, render, rotate

    view, kernel = largest_view(parent), gaussian_matrix(parent, 1.0)

    def same_resolution(noise: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        return rotate(noise, angle) * disc(parent)

    def leak_free(noise: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        return render(blur(noise, kernel), angle, view)

    ways = (
        (f"bilinear, same\nresolution\n({parent} px)", same_resolution, parent),
        (f"leak-free\n({view} px)", leak_free, view),
    )
    with plt.rc_context({"font.size": 11}):
        figure = plt.figure(figsize=(13, 4.5), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(1.08, 1), wspace=0.02)
        shown_in, mapped_in = left.subplots(2, 3), right.subplots(2, 3)
        for row, maps, (name, turn, size) in zip(shown_in, mapped_in, ways, strict=True):
            inside = disc(size) > 0
            middle = slice(size // 3, size - size // 3)
            row[0].text(-0.08, 0.5, name, transform=row[0].transAxes, ha="right", va="center")
            unit = None
            for view_axes, map_axes, turned in zip(row, maps, ANGLES, strict=True):
                shown, variance = _noise_views(turn, turned, parent)
                unit = variance[inside].mean() if unit is None else unit
                centre, spread = shown[inside].mean(), 2.2 * shown[inside].std()
                view_axes.imshow(
                    torch.where(inside, shown, torch.nan),
                    cmap="gray",
                    vmin=centre - spread,
                    vmax=centre + spread,
                    interpolation="nearest",
                )
                image = map_axes.imshow(
                    (variance / unit)[middle, middle],
                    cmap="viridis",
                    vmin=0.2,
                    vmax=1.05,
                    interpolation="nearest",
                )
        for axes, turned in zip((*shown_in[0], *mapped_in[0]), ANGLES * 2, strict=True):
            axes.set_title(f"{turned}°")
        for axes in (*shown_in.flat, *mapped_in.flat):
            axes.set_axis_off()
        left.suptitle("the same white noise, turned")
        right.suptitle(f"variance of each pixel over {DRAWS:,} such views, middle third")
        bar = right.colorbar(image, ax=mapped_in, aspect=24, pad=0.02)
        bar.set_label("1 = mean at 0°")
        bar.outline.set_visible(False)
        figure.savefig(folder / "leak.png", dpi=150)
        plt.close(figure)


def _noise_views(turn: Any, degrees_: float, parent: int) -> tuple[Any, Any]:
    """One view of noise turned by this angle, and each pixel's variance over DRAWS of them."""
    import torch

    angle, generator = torch.tensor([math.radians(degrees_)]), torch.Generator().manual_seed(0)
    total, squares, shown = 0, 0, None
    for _ in range(0, DRAWS, 512):
        # The draws lie in the channels, which turn alike; the seed is the same for every angle.
        noise = torch.rand(1, 512, parent, parent, generator=generator)
        views = turn(noise, angle)[0]
        total, squares = total + views.sum(0), squares + views.square().sum(0)
        shown = views[0] if shown is None else shown
    return shown, squares / DRAWS - (total / DRAWS).square()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", action="store_true", help="leave the pictures as they are")
    arguments = parser.parse_args()
    docs = ROOT / "docs"
    docs.mkdir(exist_ok=True)
    (docs / "results.md").write_text(results_page(), encoding="utf-8")
    leaks, records = docs / "leaks.md", read(ROOT / "results" / "leaks", "*.json")
    if records:
        text = leaks.read_text(encoding="utf-8")
        leaks.write_text(with_leak_table(text, records), encoding="utf-8")
    if not arguments.text:
        draw_risk_coverage(measured(read(ROOT / "radialbeams" / "zoo", "*.json")), docs)
        draw_leak(docs)


if __name__ == "__main__":
    main()
