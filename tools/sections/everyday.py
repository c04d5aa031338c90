"""Sections: everyday photos as files, beside peers, and looked at more than once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sections.text import Record, Rows, count, degrees, percent, section, table

# What the makers of other tools publish for everyday photos, on COCO-1030 and their own rotations.
PEERS: list[Record] = [
    {"who": "RightWayUp 1.0, ViT-L", "parameters": 306_000_000, "mean": 2.04, "within_10": 0.988},
    {"who": "Woehrer 2026", "parameters": 83_000_000, "mean": 2.84, "jpeg": 23.8},
    {"who": "Deep-OAD", "mean": 10.09},
]


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
        "Printed by `python tools/photos/measure_photos.py PHOTOS`: native COCO val2017 photos "
        "with people, none trained on, turned at full size by Pillow, saved as JPEG q90 and read "
        "by `radialbeams angle`.",
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
