"""Writes docs/models.md, the model cards for people, from radialbeams/zoo/*.json.

    python tools/model_cards.py

Every sentence and every figure comes from a card; nothing is measured here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Card = dict[str, Any]

ROOT = Path(__file__).parents[1]
MILLISECONDS = "milliseconds_a_view_one_cpu_thread"
ORDER = {"general": 0, "light": 1, "ring": 2}  # the default, and the others for photos, come first

INTRODUCTION = """\
# Pretrained models

The package contains the models below as ONNX files. They run without torch, and torch reads its
weights from the same files. Choose one by name: `--model NAME` on the command line,
`Canonicalizer("NAME")` in Python. `radialbeams models` prints a summary of this page.

All errors are absolute differences between the estimated and the true angle, in degrees, on images
that were held out from training and rotated by uniformly random angles. *Flips* are errors of 150°
or more. Compare only rows of the same protocol: a `paper` view gives part of the angle away; a
`leakfree` view does not, as far as we can measure ([leaks](leaks.md)). The row *files* is closest
to what users experience: original images (for `general`, `light` and `ring`, native COCO photos)
are rotated by Pillow and saved as JPEG, then read from the file.

This page is generated from the models' cards by `python tools/model_cards.py`. Do not edit it.

## Licence

The weights of `general`, `light` and the network for documents are under the Apache License 2.0.
The others are for research use only, because the images they were trained on are. The [licence of
the weights](../radialbeams/zoo/LICENSE-WEIGHTS.md) names the data sets and their terms.
"""
DATA = {
    "coco": "COCO train2017",
    "coil100": "COIL-100",
    "lfw": "Labeled Faces in the Wild",
    "photos": "everyday photos from public data sets, COIL-100 and LFW",
}
WITH_PAGES = {"general"}  # trained on rendered pages too
SPLITS = {
    ("coil100", "default"): "a random fifth of the images; the same objects from other sides",
    ("coil100", "object"): "objects 81–100, none of which was trained on",
    ("lfw", "default"): "a fifth of the people, none of whom was trained on",
    ("coco", "default"): "one photo in fifty",
    ("photos", "default"): "one photo in fifty",
}
PROTOCOLS = {
    "paper": "the paper's views: padded, rotated bilinearly at the same resolution",
    "leakfree": "leak-free views: blurred and shrunk while rotating, shown in a disc",
}


def page(folder: Path = ROOT / "radialbeams" / "zoo") -> str:
    """The whole page: an overview, then one section for each card in `folder`."""
    cards = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    cards.sort(key=lambda card: (ORDER.get(card["name"], len(ORDER)), card["name"]))
    sections = ["\n".join(_section(card)) for card in cards]
    return "\n".join([INTRODUCTION, "\n".join(_overview(cards)), *sections])


def _overview(cards: list[Card]) -> Iterator[str]:
    yield "## Which one to use\n"
    yield "| model | for | parameters | ms per view, one CPU thread | files within 10° | licence |"
    yield "| --- | --- | --: | --: | --: | --- |"
    for card in cards:
        yield (
            f"| [`{card['name']}`](#{_anchor(card['name'])}) | {card['summary']} "
            f"| {card['parameters']:,} | {card['cost'][MILLISECONDS]} "
            f"| {100 * card['end_to_end']['within_10']:.1f}% | {_terms(card)} |"
        )
    yield ""


def _terms(card: Card) -> str:
    return "Apache-2.0" if "Apache-2.0" in card["licence"] else "research use"


def _section(card: Card) -> Iterator[str]:
    yield f"## `{card['name']}`\n"
    yield f"{card['summary']}\n"
    yield f"- **Works on:** {card['works_on']}"
    yield f"- **Fails on:** {card['fails_on']}"
    yield f"- **Trained on:** {_training_data(card)}"
    yield f"- **Held out:** {_held_out(card['data'])}"
    yield f"- **Views:** {_protocol(card['protocol'])}"
    yield from _confidence(card)
    yield f"- **Size and speed:** {_cost(card)}"
    yield f"- **Licence:** {card['licence']}"
    yield f"- **Files:** {_checksums(card)}"
    yield ""
    yield from _measured(card)


def _anchor(name: str) -> str:
    """The anchor of the heading `name`, on GitHub and on the docs site."""
    return name.replace(".", "")


def _training_data(card: Card) -> str:
    data = card["data"]
    name = DATA.get(data["name"], data["name"])
    pages = ", and pages that radialbeams renders itself" if card["name"] in WITH_PAGES else ""
    return f"{name}{pages}; {data['training_images']:,} images."


def _held_out(data: Card) -> str:
    split = SPLITS.get((data["name"], data["split_by"]), f"split by {data['split_by']}")
    return f"{data['test_images']:,} images: {split}."


def _protocol(protocol: Card) -> str:
    name = protocol["name"]
    return f"`{name}`, {PROTOCOLS.get(name, name)}; from images of {protocol['parent_size']} px."


def _confidence(card: Card) -> Iterator[str]:
    """How well the confidence is calibrated, and when `upright` leaves an image alone."""
    if "calibrated" not in card:
        yield "- **Confidence:** none; the model gives an estimate for every image."
        return
    error = card["calibrated"]["expected_error"]
    line = f"- **Confidence:** calibrated; expected calibration error {100 * error:.1f}%."
    yield line + (_abstention(card["abstain"]) if "abstain" in card else "")


def _abstention(rules: Card) -> str:
    needed = [
        f"a confidence of at least {100 * rules['confidence']:g}%",
        f"an angle of at least {rules['angle']:g}°",
    ]
    # A limit of 1 never applies: no probability is larger.
    if rules["upright"] < 1:
        upright = f"{100 * rules['upright']:g}%"
        needed.append(f"a probability of at most {upright} that the image is upright already")
    *most, last = needed
    words = f"{', '.join(most)} and {last}"
    return f" To turn an image by the estimated angle, `upright` needs {words}."


def _cost(card: Card) -> str:
    text = f"{card['parameters']:,} parameters"
    milliseconds = card.get("cost", {}).get("milliseconds_a_view_one_cpu_thread")
    return f"{text}; {milliseconds:g} ms per view on one CPU thread." if milliseconds else text


def _checksums(card: Card) -> str:
    parts = [f"`{ending}` `{digest[:16]}…`" for ending, digest in sorted(card["sha256"].items())]
    return f"sha256 of {', '.join(parts)}; the full hashes are in the card."


def _measured(card: Card) -> Iterator[str]:
    yield "| measured on | protocol | n | mean | median | 95th percentile | within 10° | flips |"
    yield "| --- | --- | --: | --: | --: | --: | --: | --: |"
    for figures in card["metrics"].values():
        data = figures.get("data", card["data"]["name"])
        where = "held-out images" if data == card["data"]["name"] else f"{DATA.get(data, data)}"
        if figures["jpeg"]:
            where += f" after JPEG at quality {figures['jpeg']}"
        yield _row(where, figures["protocol"], figures)
    if "end_to_end" in card:
        yield _row("files", f"JPEG at quality {card['end_to_end']['jpeg']}", card["end_to_end"])
    yield ""


def _row(where: str, protocol: str, figures: Card) -> str:
    degrees = " | ".join(f"{figures[name]:.2f}°" for name in ("mean", "median", "p95"))
    return (
        f"| {where} | {protocol} | {figures['n']:,} | {degrees} "
        f"| {100 * figures['within_10']:.1f}% | {100 * figures['flips']:.2f}% |"
    )


if __name__ == "__main__":
    (ROOT / "docs" / "models.md").write_text(page(), encoding="utf-8")
