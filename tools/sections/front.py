"""Sections: the canonicaliser in front of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sections.text import Record, count, degrees, percent, section, table


def centring_section(records: Sequence[Record]) -> Iterator[str]:
    for record in records:
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
            "Objects off the centre",
            "Printed by `python studies/centring.py`: "
            f"`{objects['model']}` on held-out views of COIL-100, placed off the centre of a "
            f"square of {objects['side']} px on a background of their own colour. Mean error, and "
            "share within 10°.",
            "What to look for: how fast the error grows without centring, and that it stays "
            "constant with centring on the foreground.",
            table(
                ["off the centre by", "no centring", "centred on the foreground", "by saliency"],
                rows,
            ),
            "What it means: if no box is known, centring on the pixels that differ from the "
            f"border's colour keeps the error at {degrees(last['foreground']['mean'])} at any "
            f"offset, where it would reach {degrees(last['none']['mean'])}. This centre is not "
            "exactly the one that the model was trained on, so objects that are already centred "
            f"get worse: {degrees(first['none']['mean'])} becomes "
            f"{degrees(first['foreground']['mean'])}. Do not centre photos, which have no single "
            "object on a plain background.",
        )


def _mean_and_within(figures: Record) -> str:
    return f"{degrees(figures['mean'])}, {percent(figures['within_10'])}"


ON_A_GPU = {
    "gpu": "torch, GPU, canonicaliser by `for_inference(torch.float16)`",
    "gpu_as_loaded": "canonicaliser as loaded",
    "gpu_half": "classifier and images also in half precision",
    "gpu_compiled": "both compiled",
    "gpu_compiled_half": "both compiled, classifier and images in half precision",
}


CPU_BARS = {"ring.coil100": 0.20, "ring": 0.60}  # of the classifier's time, on one thread
GPU_BAR = 0.15  # of the classifier's time, in batches of 64


def _on_a_cpu(record: Record) -> str:
    """Where the goals are met, batch by batch."""
    goals_by_batch = []
    for row in (record["cpu"], record["cpu_batch_1"]):
        above = [name for name, bar in CPU_BARS.items() if row[name]["share"] > bar]
        missed = " and ".join(f"`{name}` ({percent(row[name]['share'], 0)})" for name in above)
        goals_by_batch.append(
            f"batch {row['batch']}: " + (f"missed by {missed}" if missed else "met")
        )
    goals = " and ".join(f"{percent(bar, 0)} for `{name}`" for name, bar in CPU_BARS.items())
    return f"The goals on one CPU thread are {goals}; {'; '.join(goals_by_batch)}."


def _on_a_gpu(record: Record, models: Sequence[str]) -> str:
    """Whether the goal on a GPU is met; empty without such a measurement."""
    if "gpu" not in record:
        return ""
    goals_met = {name: record["gpu"][name]["share"] <= GPU_BAR for name in models}
    verdicts = [
        f"{'met' if is_met else 'missed'} by `{name}` ({percent(record['gpu'][name]['share'])})"
        for name, is_met in goals_met.items()
    ]
    others = [key for key in ON_A_GPU if key in record and key != "gpu"]
    above = [
        ON_A_GPU[key] for key in others if max(record[key][n]["share"] for n in models) > GPU_BAR
    ]
    text = (
        " The rows on a GPU are from another machine, with all kernels of a batch launched as one "
        f"graph. The goal of {percent(GPU_BAR, 0)} in batches of 64, with an unmodified "
        f"classifier, is {' and '.join(verdicts)}."
    )
    if above:
        text += (
            " The share is larger if the canonicaliser is not prepared for inference or the "
            f"classifier is made faster ({'; '.join(above)}): the canonicaliser consists of "
            "sampling and many small kernels, which gain less from half precision and a compiler "
            "than a large network does."
        )
    return text


DATA = {"coil100": "COIL-100", "coco-1030": "COCO-1030"}


def half_section(records: Sequence[Record]) -> Iterator[str]:
    rows = [
        [
            f"`{model['model']}`, {DATA.get(model['data'], model['data'])}",
            {"cpu": "CPU", "cuda": "GPU"}[record["device"]],
            count(model["n"]),
            {"folded": "folded", "half": "folded, half precision"}[way],
            f"{figures['moved_median']:.3f}°, {figures['moved_p99']:.3f}°",
            percent(figures["moved_over_1"]),
            f"{100 * (figures['within_10'] - model['loaded']['within_10']):+.1f} points",
        ]
        for record in records
        for model in record["models"]
        for way, figures in ((way, model[way]) for way in ("folded", "half"))
    ]
    if rows:
        models = [model for record in records for model in record["models"]]
        lost = max(model["loaded"]["within_10"] - model["half"]["within_10"] for model in models)
        moved = max(model["half"]["moved_over_1"] for model in models)
        yield section(
            "Accuracy after `for_inference`",
            "Printed by `python studies/half_precision.py`: the same rotated images (tensors, "
            "leak-free views) through a canonicaliser as loaded and after `for_inference`.",
            "What to look for: how far estimates move, the share that moves by more than 1°, and "
            "the change in the share within 10° of the true angle.",
            table(
                [
                    "model, data",
                    "on",
                    "images",
                    "network",
                    "moved: median, P99",
                    "> 1°",
                    "within 10°",
                ],
                rows,
            ),
            "What it means: "
            + ("as many" if lost <= 0 else f"{percent(lost)} fewer")
            + " estimates are within 10°, and "
            + (f"{percent(moved)} move" if moved else "none moves")
            + " by more than 1°.",
        )


def _milliseconds(value: float) -> str:
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def overhead_section(records: Sequence[Record]) -> Iterator[str]:
    for record in records:
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
                _milliseconds(row["classifier_ms"]),
                *(
                    f"{_milliseconds(row[name]['ms'])}, {percent(row[name]['share'], 0)}"
                    for name in models
                ),
            ]
            for title, row in measured
        ]
        yield section(
            "Cost in front of a classifier",
            "Printed by `python benchmarks/overhead.py`: estimating and undoing the rotation "
            "against EfficientNet-Lite0 at 224 px, measured alternately in one run. Milliseconds "
            "per image, and share of the classifier's time. The rows on a GPU are older: "
            "`ring.coil100` had 48 beams then, where it has 32 now, and our kernels did not exist "
            "([newer figures](scale.md#on-a-gpu)).",
            "What to look for: the share in the row that matches your runtime and batch size.",
            table(["where", "batch", "classifier, ms", *(f"`{name}`" for name in models)], rows),
            "What it means: the share depends more on the runtime than on the machine. ONNX "
            "Runtime speeds up this classifier more than the canonicaliser, so the share is "
            "larger there. " + _on_a_cpu(record) + _on_a_gpu(record, models),
        )
