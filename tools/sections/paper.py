"""Sections: the paper's experiments, from the results of `radialbeams reproduce`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sections.text import Record, count, percent, plural, section, table

LONG = 8  # rows from which on a table needs a hint
LOOK_FOR = {
    "geometry": "how far the printed formula is off, and how little the corrected one.",
    "loss": "the rows in which the two columns differ.",
    "beams": "rows in pairs: the same training on C_B and on SO(2), with angles drawn once per "
    "image or fresh for every view.",
    "beam-length": "whether the error falls from A to C, and how it changes if the padding does.",
    "prior": "for each variant, the error with the prior *off*, *full* and *dynamic*, and the "
    "share of shifts that the embeddings identify.",
    "prior-weight": "each row against *no prior* on the same views: its error, the shifts found, "
    "and the cosine of the two losses' gradients.",
    "orbit": "*trained* against its three controls: *untrained*, *pixels* and *shuffled*.",
    "topology": "*pretrained* against *before training*: whether the longest loop outlives those "
    "of shapeless clouds, and how many directions cross.",
    "light": "the distance between the best and the worst position of the light.",
    "saliency": "whether a map that is rotated back correlates with the upright one more than the "
    "map of another object does.",
    "translation": "the largest shift up to which the estimate stays within 5°.",
    "radius": "for each model, the error without the inner half against that without the outer.",
    "halves": "for each network, the inner against the outer part; every row is a training of its "
    "own.",
    "protocol": "the first rows, with the paper's optimizer: they are the reproduction.",
    "staircase": "the columns of each stair: the paper's views, leak-free views, and the same "
    "networks on files. A gain on the paper's views alone is the leak.",
    "ablation": "the rows that are marked *better* or *worse*; compare within a protocol.",
    "details": "rows in pairs: LeakyReLU against ReLU on the same views.",
    "downstream": "for each data set, *as given* (no canonicaliser), *ring*, and *rotated back by "
    "the true angle* (the best that can be reached).",
    "end-to-end": "*trained apart*, the paper's way, against the rows *end to end*.",
    "samples": "how much of the accuracy with all images each pipeline has with few.",
}


def read_experiments(root: Path) -> list[Record]:
    """Each NAME.json that `radialbeams reproduce` wrote, in the registry's order."""
    from radialbeams.reproduce import registry

    paths = [root / "results" / f"{name}.json" for name in registry.SUMMARIES]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]


def experiments_section(root: Path) -> Iterator[str]:
    records = read_experiments(root)
    if records:
        parts = [part for record in records for part in _experiment(root, record)]
        yield section(
            "The paper's experiments",
            "Printed by `radialbeams reproduce NAME`, which writes all measurements to "
            "`results/NAME.json`; `--redraw` draws the figures from it again. ± is one standard "
            "deviation over seeds. Welch's test is at the 5% level, without a correction for the "
            "number of comparisons: of twenty equal pairs, one will seem to differ.",
            *parts,
        )


# The sources of the photos that `ring` was trained on (tools/photos/README.md).
SOURCES_OF_RING = (
    *("coco", "flickr8k", "scenes", "pets", "animals", "dogs", "oxfordpets", "birds", "voc"),
    *("actions", "sports", "houses", "fashion", "scenes15", "sun", "cars"),
)


def overlap_section(records: Sequence[Record]) -> Iterator[str]:
    """Test photos that resemble training photos."""
    for record in records:
        against = record["against"]
        rows = [
            [
                name,
                count(source["photos"]),
                str(len(source["near"])),
                str(source["nearest_bits"]),
                "not looked at" if source["same_by_eye"] is None else str(source["same_by_eye"]),
            ]
            for name, source in against.items()
        ]
        head = ["training photos", "number", "test photos at most 26 bits away", "fewest bits"]
        missing = [f"`{name}`" for name in SOURCES_OF_RING if name not in against]
        yield section(
            "Test photos among the training photos",
            "Printed by `python studies/overlap.py`: the fingerprints (128 bits) of the "
            f"{count(record['n'])} ImageNet photos of [downstream](#downstream) beside those of "
            "training photos. Names are those of `tools/photos/README.md`.",
            table([*head, "the same picture, by eye"], rows),
            f"What it means: {_same(against)} `general` was trained on `coco` alone. `ring` was "
            f"trained on {len(SOURCES_OF_RING)} sources, of which {len(missing)} have not been "
            f"compared, because they have to be brought: {', '.join(missing)}.{_dogs(against)}",
        )


STANFORD_DOGS = 20580  # photos


def _dogs(against: Record) -> str:
    """A note on Stanford Dogs, whose photos are ImageNet's; empty if they were not compared."""
    if "dogs" not in against:
        return ""
    dogs = against["dogs"]
    return (
        f" `dogs` is Stanford Dogs, whose photos are ImageNet's. Of its {count(STANFORD_DOGS)} "
        f"photos, the {count(dogs['photos'])} that could be brought were compared; the "
        f"{dogs['same_by_eye']} test photos found there are left out where `ring` is measured on "
        "ImageNet photos."
    )


def _same(against: Record) -> str:
    """The number of near pairs that show the same picture, as judged by eye."""
    inspected = [source for source in against.values() if source["same_by_eye"] is not None]
    same = sum(source["same_by_eye"] for source in inspected)
    pairs = sum(len(source["near"]) for source in inspected)
    return (
        f"of the {pairs} pairs within 26 bits that were looked at, {same or 'none'} "
        f"{'shows' if same == 1 else 'show'} the same picture."
    )


WAYS = {
    "always": "always acting",
    "decides": "with abstention",
    "likely_turns": "averaged over likely turns",
}


def gap_section(records: Sequence[Record], parts: Sequence[Record] = ()) -> Iterator[str]:
    """The accuracy that a model in front of a classifier regains."""
    for record in records:
        models = record["models"]
        rows = [
            [f"`{name}`, {words}", *_regained(model, way)]
            for name, model in models.items()
            for way, words in WAYS.items()
        ]
        first = next(iter(models.values()))
        rows.append(["no model, averaged over six rotations", *_regained(first, "six_rotations")])
        head = "in front|photos|runs of the classifier|accuracy|share of the gap|95% interval"
        yield section(
            "What a model in front of a classifier regains",
            f"Printed by `{record['command']}`: {count(record['n'])} ImageNet photos at random "
            f"angles, {record['classifier']} behind. A model's own training photos are left out "
            "([above](#test-photos-among-the-training-photos)).",
            "What to look for: the share of the gap between no model and the true angle.",
            table([*head.split("|"), "lost when upright"], rows),
            f"What it means: rotation lowers the accuracy from "
            f"{percent(first['accuracy']['ceiling'])} to {percent(first['accuracy']['plain'])}. "
            f"{_verdict(record)}",
            *(text for part in parts for text in _where_it_goes(part)),
        )


def _where_it_goes(record: Record) -> list[str]:
    """Several estimators of the angle from the same posteriors, and the share that each regains."""
    head = "angle|accuracy|share of the gap|of half the photos|of the others|within 10°|within 45°"
    rows = [
        [
            name,
            percent(row["accuracy"]),
            *(percent(row[part], 0) for part in ("share", "first_half", "second_half")),
            *(percent(row[part], 0) for part in ("within_10", "within_45")),
        ]
        for name, row in record["rows"].items()
    ]
    shares = {name: row["share"] for name, row in record["rows"].items()}
    bound = shares.pop("four views, right quarter given")
    best = max(shares.values())
    return [
        f"Other ways to take an angle from the posteriors of `{record['model']}`, printed by "
        f"`{record['command']}`. They need no training; the last one knows the true quarter.",
        table(head.split("|"), rows),
        f"No single angle regains more than {percent(best, 0)}. With the right quarter turn it "
        f"would be {percent(bound, 0)}, so wrong quarters cost {percent(bound - best, 0)} of the "
        f"gap and smaller errors {percent(1 - bound, 0)}.",
    ]


def _regained(model: Record, way: str) -> list[str]:
    share = model["share_of_the_gap"][way]
    low, high = share["interval"]
    upright = model["upright"].get(way)
    return [
        count(model["n"]),
        f"{model['runs_of_the_classifier'].get(way, 1):g}",
        percent(model["accuracy"][way]),
        percent(share["share"], 0),
        f"{percent(low, 0)} to {percent(high, 0)}",
        percent(upright["lost"]) if upright else "–",
    ]


GOAL = 0.8  # share of the gap that the default model ought to regain


def _verdict(record: Record) -> str:
    model = record["models"]["general"]
    shares = {way: float(model["share_of_the_gap"][way]["share"]) for way in WAYS}
    best = max(shares, key=lambda way: shares[way])
    near = percent(model["errors"]["within_10"], 0)
    reached = "reaches" if shares[best] >= GOAL else "falls short of"
    text = (
        f"`general`, {WAYS[best]}, regains {percent(shares[best], 0)} of the difference, which "
        f"{reached} our goal of {percent(GOAL, 0)}"
    )
    if best == "likely_turns":
        runs = model["runs_of_the_classifier"]
        text += (
            f"; one turn regains {percent(shares['always'], 0)}. The classifier then runs "
            f"{runs['likely_turns']:g} times for each photo ([how](in-front-of-your-model.md"
            "#average-over-likely-turns)). Six even rotations, averaged without a model, regain "
            f"{percent(model['share_of_the_gap']['six_rotations']['share'], 0)}"
        )
    return (
        f"{text}. {near} of the estimates of `general` are within 10°: the photos are crops, often "
        "close-ups of one object, and only a disc of them is visible."
    )


# What the paper states, and what its authors' code and weights have; None: not stated.
PAPER = ("32", "64 (COIL-100), 125 (LFW)", "not stated", "128", "Adam, 1e-4, constant", *["–"] * 4)
AUTHORS = ("16", "64 for both", "4,096", "128", "Adam, 1e-4, constant", *["–"] * 4)
SETTINGS = ("beams", "beam length D", "steps", "batch", "rate and schedule", "weight averaging",
            "weight decay", "clipping", "augmentation")  # fmt: skip


def settings_section(cards: Sequence[Record]) -> Iterator[str]:
    """What the pretrained `bic` had beside what the paper had."""
    ours = [
        card
        for card in cards
        if str(card["name"]).startswith("bic.") and "steps" in card.get("training", {})
    ]
    if not ours:
        return
    columns = [PAPER, AUTHORS, *(_settings(card["training"]) for card in ours)]
    rows = [[name, *values] for name, *values in zip(SETTINGS, *columns, strict=True)]
    head = ["", "the paper", "its authors' code and weights", *(f"`{c['name']}`" for c in ours)]
    yield section(
        "What the pretrained `bic` had, beside the paper",
        "Printed by `python tools/results_page.py` from the recipes on the cards.",
        "What to look for: the number of views (steps times batch), the rate, and the averaging.",
        table(head, rows),
        "What it means: the low errors of the pretrained `bic` are not a reproduction. They come "
        "from many more views and another optimizer, on views that leak. The reproduction is in "
        "[protocol](#protocol); [staircase](#staircase) measures the changes one by one.",
    )


def _settings(recipe: Record) -> tuple[str, ...]:
    model = recipe["model"]
    active = {name: value for name, value in recipe.get("augmentation", {}).items() if value}
    return (
        str(model["num_beams"]),
        str(model["beam_length"]),
        f"{recipe['steps']:,}",
        str(recipe["batch"]),
        f"Adam, up to {recipe['learning_rate']:g}, {recipe['schedule']}",
        f"{recipe['average']:g}",
        f"{recipe['weight_decay']:g}",
        f"{recipe['clip']:g}",
        ", ".join(name if v is True else f"{name} {v:g}" for name, v in active.items()) or "–",
    )


def _experiment(root: Path, record: Record) -> Iterator[str]:
    yield f"### {record['name']}"
    yield f"**The paper.** {record['claim']}."
    yield f"What it means: {record['why']}"
    rows = list(_beside_the_paper(record["paper"], record["ours"]))
    if len(rows) >= LONG:
        yield f"What to look for: {LOOK_FOR[record['name']]}"
    yield table(["", "the paper", "ours"], rows)
    seeds = len(record["seeds"])
    effort = plural(record["trainings"], "training") if record["trainings"] else ""
    effort += f" ({_listed(record['efforts'])} views)" if record.get("efforts") else ""
    effort += ", " if effort else ""
    yield (
        f"`{record['command']}`, {record['settings']} settings: {effort}"
        f"{_seeds(seeds)}{record['seconds']:,.0f} s on {_hardware(record['hardware'])}."
    )
    figures = (root / "results").glob(f"{record['name']}*.png")
    for path in sorted(figures, key=lambda path: path.stem):
        # beam-length's figures are not those of beams-…: a suffix belongs to the longest name.
        if _owner(path.stem) == record["name"]:
            yield f"![{record['name']}: {path.stem}](../results/{path.name})"


def _listed(efforts: Sequence[str]) -> str:
    """Steps × batch of the trainings of an experiment; the ends if there are many kinds."""
    return " or ".join(efforts) if len(efforts) <= 4 else f"{efforts[0]} to {efforts[-1]}"


def _seeds(count: int) -> str:
    """The largest number of seeds; some trainings have fewer."""
    return "" if not count else "1 seed, " if count == 1 else f"up to {count} seeds, "


def _hardware(names: str) -> str:
    return names.replace("cpu", "CPU").replace("cuda", "GPU")


def _owner(stem: str) -> str:
    from radialbeams.reproduce import registry

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
