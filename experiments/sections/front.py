"""Sections: in front of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sections.text import Record, count, degrees, percent, section, table


def centring_section(found: Sequence[Record]) -> Iterator[str]:
    for record in found:
        objects = record["objects"]
        ways = ("none", "foreground", "saliency")
        rows = [
            [f"{shift} px", *(_mean_and_within(figures[way]) for way in ways)]
            for shift, figures in objects["shifts"].items()
        ]
        if photos := record.get("photos"):
            cells = [_mean_and_within(photos[way]) for way in ways]
            rows.append([f"{photos['data'].replace('coco', 'COCO')}, `ring`", *cells])
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


GPU_BAR = 0.15  # of the classifier's time, in batches of 64


def _on_a_gpu(record: Record, models: Sequence[str]) -> str:
    """What there is to say of it, or nothing."""
    if "gpu" not in record:
        return ""
    kept = {name: record["gpu"][name]["share"] <= GPU_BAR for name in models}
    verdicts = [
        f"{'holds' if held else 'does not hold'} with `{name}`" for name, held in kept.items()
    ]
    return (
        " Rows of a GPU are from another machine. There the front is hundreds of small kernels, "
        f"each of which costs its launch; the goal of {percent(GPU_BAR, 0)} in batches of 64 "
        f"{' and '.join(verdicts)}."
    )


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
            "canonicaliser and its rotation, so the same front is a larger share there."
            + _on_a_gpu(record, models),
        )
