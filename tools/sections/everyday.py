"""Sections: everyday photos as files, other tools, and several views of one picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sections.text import Record, Rows, count, degrees, percent, section, table

# Published by the authors of other tools, on COCO-1030 with their own rotations.
PEERS: list[Record] = [
    {"who": "RightWayUp 1.0, ViT-L", "parameters": 306_000_000, "mean": 2.04, "within_10": 0.988},
    {"who": "Woehrer 2026", "parameters": 83_000_000, "mean": 2.84, "jpeg": 23.8},
    {"who": "Deep-OAD", "mean": 10.09},
]


def photos_section(cards: Sequence[Record], indicative: Sequence[Record] = ()) -> Iterator[str]:
    """The default model on files of everyday photos, beside published figures of other tools."""
    by_name = {card["name"]: card for card in cards}
    card = by_name.get("general")
    files = card.get("end_to_end") if card else None
    if not (card and files and "corners" in files):
        return
    names = {
        "rotated on their own canvas": files,
        "a third with filled or transparent corners": files["corners"],
        "halved in size before rotation": files["halved"],
        "blurred before rotation": files["deblocked"],
    }
    if inner := files.get("inner"):
        names["cut out of the rotated photo, without a canvas"] = inner
    for name, what in (("light", "the fast model"), ("ring", "the equivariant model")):
        if others := by_name.get(name, {}).get("end_to_end"):
            names[f"`{name}`, {what}: rotated on their own canvas"] = others
            if inner := others.get("inner"):
                names[f"`{name}`: cut out of the rotated photo"] = inner
    for figures in indicative:
        names[f"*COCO-1030, `{figures['model']}`, {figures['n']} of its photos, indicative*"] = (
            figures
        )
    rows = [
        [
            name,
            count(figures["n"]),
            degrees(figures["mean"]),
            degrees(figures["median"]),
            percent(figures["within_5"]),
            percent(figures["within_10"]),
            percent(figures["flips"]),
            percent(figures["surer_half_within_10"]),
        ]
        for name, figures in names.items()
    ]
    head = "photos|n|mean|median|within 5°|within 10°|flips|more confident half, within 10°"
    turned, upright = files["turned"], files["upright"]
    yield section(
        "Everyday photos",
        "Printed by `python tools/photos/measure_photos.py PHOTOS`: native COCO val2017 photos "
        "with people, none of which was used for training, rotated at full size by Pillow, saved "
        "as JPEG q90 and read by `radialbeams angle`.",
        "What to look for: the median and the share within 10°. The mean is dominated by the few "
        "photos that come out upside down or on their side.",
        table(head.split("|"), rows),
        f"By default, `radialbeams upright` acts on {percent(turned['acted_on'])} of the rotated "
        f"photos, and {percent(turned['acted_on_within_5'])} of those end within 5°. Of the same "
        f"photos in their upright form, {percent(upright['worse_than_it_came'])} come out worse.",
        "COCO-1030 is the list on which others report. Our copies were made from squashed 256 px "
        "JPEGs, whose block grid is aligned with the upright direction, so the row is only "
        "indicative."
        if indicative
        else "",
        "Published figures of other tools follow. *Not the same views*: other photos, rotated and "
        "cropped in their own ways. Read the rows as what to expect of a kind of tool, not as a "
        "ranking.",
        table(
            ("tool", "parameters", "mean", "within 10°", "mean after JPEG q90"), _peer_rows(card)
        ),
        "What it means: on everyday photos we lose to tools that are 15 to 60 times as large and "
        "were pretrained on far more images. In return, `general` is small and fast, abstains if "
        "it is not confident, and its figures were measured on files.",
    )


def _peer_rows(card: Record) -> Rows:
    ours = card["end_to_end"]
    own = ["`general`, files as above", count(card["parameters"]), degrees(ours["mean"])]
    rows = [[*own, percent(ours["within_10"]), degrees(ours["mean"])]]
    for peer in PEERS:
        cells = [peer["who"], count(peer.get("parameters")), degrees(peer["mean"])]
        rows.append([*cells, percent(peer.get("within_10")), degrees(peer.get("jpeg"))])
    return rows


def looks_section(rows: Sequence[Record]) -> Iterator[str]:
    if not rows:
        return
    lines = [
        [
            f"`{row['model']}`",
            count(row["looks"]),
            count(row["n"]),
            *(degrees(row[name]) for name in ("mean", "median", "p95")),
            percent(row["flips"], 2),
        ]
        for row in rows
    ]
    yield section(
        "Several views of one picture",
        "Printed by `python benchmarks/refine.py`. `refine=k` averages the estimates of k views "
        "on the circle. The views are rotated by fractions of the angle between two beams; a "
        "quarter turn would add nothing, because the ring is equivariant to it.",
        "What to look for: how little the mean falls from one view to eight.",
        table(("model", "views", "images", "mean", "median", "P95", "flips"), lines),
        "What it means: it takes at least k times as long, and the gain is small. The averaging "
        "was chosen among twelve variants on held-out images that include these, so even the "
        "small gain is optimistic. It is off by default.",
    )


def ends_section(records: Sequence[Record]) -> Iterator[str]:
    """What an oblong photo gains by the squares at its ends, where the model is unsure."""
    for record in records:
        shipped, before = (record["rows"][record[name]] for name in ("shipped", "before"))
        marks = {record["shipped"]: " (shipped)", record["before"]: " (shipped before)"}
        lines = [
            [
                title + marks.get(title, ""),
                f"{row['views']:.2f}",
                *(percent(row[name]) for name in ("within_10", "within_5")),
                degrees(row["mean"]),
                percent(row["flips"]),
                percent(row["surer_half"]),
                f"{row['calibration_error']:.3f}",
            ]
            for title, row in record["rows"].items()
        ]
        head = "further views|views|within 10°|within 5°|mean|flips|surer half|calibration error"
        named = ("before", "shipped", "temperature × 1")
        old, new, plain = (record["files"][name] for name in named)
        yield section(
            "Both ends of an oblong photo",
            f"Printed by `{record['command']}`: {count(record['n'])} held-out photos of COCO "
            "train2017 in their native shape, rotated by random angles and cut to the largest "
            "upright rectangle inside, so that no canvas gives the angle away.",
            "What to look for: the share within 10° at a similar number of views. “Both ends” are "
            "the squares at the ends of the photo, each at another quarter turn.",
            table(head.split("|"), lines),
            f"What it means: with {shipped['views']:.2f} views a photo instead of "
            f"{before['views']:.2f}, {percent(shipped['within_10'])} instead of "
            f"{percent(before['within_10'])} are within 10°. The rule was chosen on these photos. "
            f"On the {count(new['n'])} files of val2017, cut in the same way, it is "
            f"{percent(new['within_10'])} instead of {percent(old['within_10'])}, and the mean "
            f"error {degrees(new['mean'])} instead of {degrees(old['mean'])}; their confidence is "
            "less well calibrated than before, with an error of "
            f"{new['calibration_error']:.3f} instead of {old['calibration_error']:.3f} "
            f"({plain['calibration_error']:.3f} at the temperature of one view). Where "
            "the corners of a file have one colour, they may be fill, and the ends are not looked "
            "at.",
        )


def surest_section(records: Sequence[Record]) -> Iterator[str]:
    """The wrong ones among the surer half of the files, and how they were judged."""
    for record in records:
        rows = [
            [
                row["photo"].removesuffix(".jpg").lstrip("0"),
                degrees(abs(row["error"])),
                percent(row["confidence"]),
                row["judged"],
            ]
            for row in record["wrong"]
        ]
        yield section(
            "What is wrong among the surest files",
            f"Printed by `{record['command']}`, which also draws a sheet of these photos, each as "
            f"it was taken and as `{record['model']}` turns it. The last column was judged by eye "
            "from this sheet, by one person who knew the estimates.",
            "What to look for: the size of the errors. A wrong quarter would be about 90° or more.",
            table(("COCO id", "error", "confidence", "judged"), rows),
            f"What it means: {len(rows)} of the {record['surer_half']} more confident files count "
            "as wrong, and none of them by a quarter: the largest error is "
            f"{degrees(record['largest_error'])}. Of these photos, {record['tilted']} were taken "
            "with a tilted camera, and the estimate levels the sea, the walls or the fence in "
            f"them. As judged, {percent(record['right_as_judged'])} of the more confident half are "
            f"right instead of {percent(record['right'])}.",
        )


def students_section(records: Sequence[Record]) -> Iterator[str]:
    """Smaller networks that were trained with the posteriors of the default model."""
    for record in records:
        rows = [
            [
                f"`{row['model']}`",
                row["role"],
                f"{row['views']} px",
                count(row.get("training_views")),
                *(percent(row[looks]["within_10"]) for looks in ("one", "four")),
                *(degrees(row[looks]["mean"]) for looks in ("one", "four")),
                percent(row["one"]["surer_half_within_10"]),
            ]
            for row in record["rows"]
        ]
        head = "model|role|view|views in training|within 10°, one view|four views"
        head += "|mean, one view|four views"
        general, light, ring, fewer = record["rows"]
        yield section(
            "Distilled into smaller networks",
            f"Printed by `{record['command']}`: {count(record['photos'])} photos of COCO train2017 "
            f"that no row was trained on, two angles each. Half of the students' target was the "
            f"posterior of `{general['model']}`, averaged over rotations of each training photo "
            f"({count(record['training_images'])} photos); both were trained at the same time on "
            "one GPU.",
            "What to look for: what a student loses against its teacher, and whether distillation "
            "improves the ring.",
            table([*head.split("|"), "surer half"], rows),
            f"What it means: with one view, `light` is within 10° on "
            f"{percent(light['one']['within_10'])} of the views, the teacher on "
            f"{percent(general['one']['within_10'])} and `ring` on "
            f"{percent(ring['one']['within_10'])}. Of the more confident half, `light` has "
            f"{percent(light['one']['surer_half_within_10'])} right and the teacher "
            f"{percent(general['one']['surer_half_within_10'])}. Trained further with the same "
            "posteriors, and with COIL-100 and LFW beside the photos, a ring of 40 instead of 48 "
            f"beams comes to {percent(fewer['one']['within_10'])}: no gain for fewer beams and "
            "more training. Its weights were not kept, and `ring` stays as it was.",
        )


CLEAR = 0.005  # a gain of less than half a point on either half of the photos is chance


def ranking_section(records: Sequence[Record]) -> Iterator[str]:
    """Measures other than the confidence for choosing the more confident half of the photos."""
    for record in records:
        head = "photos|ranked by|views|within 10°, all|surer half|of half the photos|of the others"
        rows = [
            [
                f"{name} ({count(photos['n'])})",
                f"**{title}** (shipped)" if title == record["shipped"] else title,
                f"{row['views']:.2f}",
                percent(row["within_10"]),
                *(percent(row[part]) for part in ("surer_half", "first_half", "second_half")),
            ]
            for name, photos in record["sets"].items()
            for title, row in photos["rows"].items()
        ]
        yield section(
            "What ranks photos best",
            f"Printed by `{record['command']}`: photos that `{record['model']}` was not trained "
            "on, rotated by random angles and saved as JPEG q90. The photos of COCO are the "
            "centred squares of squashed 256 px files without their block grid.",
            "What to look for: the share within 10° among the half of the photos that a measure "
            "ranks higher, on both halves of each set.",
            table(head.split("|"), rows),
            f"What it means: {_better(record)}",
        )


def _better(record: Record) -> str:
    """The candidates that are clearly better on both halves of every set, at no more views."""
    winners: list[str] = []
    sets = [photos["rows"] for photos in record["sets"].values()]
    shipped = [rows[record["shipped"]] for rows in sets]
    for title in sets[0]:
        pairs = list(zip([rows[title] for rows in sets], shipped, strict=True))
        gains = [a[h] - b[h] for a, b in pairs for h in ("first_half", "second_half")]
        if min(gains) >= CLEAR and all(a["views"] <= b["views"] for a, b in pairs):
            winners.append(title)
    if winners:
        return f"{', '.join(winners)} would be better."
    return (
        "no measure with at most as many views is better by half a point on both halves of both "
        "sets. More views help where the model is often unsure, as on ImageNet's close-ups, and "
        "not on photos of COCO. So the confidence stays as it is."
    )
