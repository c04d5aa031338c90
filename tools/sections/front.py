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
            "Printed by `python studies/centring.py`: "
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
    "gpu": "torch, a GPU, the front by `for_inference(torch.float16)`",
    "gpu_as_loaded": "the front as it is loaded",
    "gpu_half": "classifier and images in half precision too",
    "gpu_compiled": "both compiled",
    "gpu_compiled_half": "both compiled, classifier and images in half precision",
}


CPU_BARS = {"ring.coil100": 0.20, "ring": 0.60}  # of the classifier's time, on one thread
GPU_BAR = 0.15  # of the classifier's time, in batches of 64


def _on_a_cpu(record: Record) -> str:
    """Where the goals hold and where not, batch by batch."""
    said = []
    for row in (record["cpu"], record["cpu_batch_1"]):
        above = [name for name, bar in CPU_BARS.items() if row[name]["share"] > bar]
        but = "".join(
            f", but not with `{name}`: {percent(row[name]['share'], 0)}" for name in above
        )
        said.append(f"in batches of {row['batch']}{but}")
    goals = " and ".join(f"{percent(bar, 0)} with `{name}`" for name, bar in CPU_BARS.items())
    return f"On one CPU thread the goals of {goals} hold {'; '.join(said)}."


def _on_a_gpu(record: Record, models: Sequence[str]) -> str:
    """What there is to say of it, or nothing."""
    if "gpu" not in record:
        return ""
    kept = {name: record["gpu"][name]["share"] <= GPU_BAR for name in models}
    verdicts = [
        f"{'holds' if held else 'does not hold'} with `{name}` "
        f"({percent(record['gpu'][name]['share'])})"
        for name, held in kept.items()
    ]
    others = [key for key in ON_A_GPU if key in record and key != "gpu"]
    above = [
        ON_A_GPU[key] for key in others if max(record[key][n]["share"] for n in models) > GPU_BAR
    ]
    text = (
        " Rows of a GPU are from another machine, all kernels of a batch launched as one graph. "
        f"The goal of {percent(GPU_BAR, 0)} in batches of 64, of a classifier as it is, "
        f"{' and '.join(verdicts)}."
    )
    if above:
        text += (
            f" It is more where the front is not made ready or the classifier is made faster "
            f"({'; '.join(above)}): what is left of the front is sampling and many small kernels, "
            "which half precision and a compiler shorten less than a large network."
        )
    return text


DATA = {"coil100": "COIL-100", "coco-1030": "COCO-1030"}


def half_section(found: Sequence[Record]) -> Iterator[str]:
    rows = [
        [
            f"`{model['model']}`, {DATA.get(model['data'], model['data'])}",
            {"cpu": "a CPU", "cuda": "a GPU"}[record["device"]],
            count(model["n"]),
            {"folded": "folded", "half": "and in half precision"}[way],
            f"{figures['moved_median']:.3f}°, {figures['moved_p99']:.3f}°",
            percent(figures["moved_over_1"]),
            f"{100 * (figures['within_10'] - model['loaded']['within_10']):+.1f} points",
        ]
        for record in found
        for model in record["models"]
        for way, figures in ((way, model[way]) for way in ("folded", "half"))
    ]
    if rows:
        models = [model for record in found for model in record["models"]]
        lost = max(model["loaded"]["within_10"] - model["half"]["within_10"] for model in models)
        moved = max(model["half"]["moved_over_1"] for model in models)
        yield section(
            "What making it ready changes",
            "Printed by `python studies/half_precision.py`: the same turned images (as tensors, "
            "seen leak-free) through a canonicaliser as it is loaded and by `for_inference`. How "
            "far answers moved, the share that moved by more than 1°, and what that does to the "
            "share within 10° of the truth.",
            table(
                ["", "on", "n", "network", "moved, median and p99", "> 1°", "within 10°"],
                rows,
            ),
            "What it means: "
            + ("as many" if lost <= 0 else f"{percent(lost)} fewer")
            + " answers are within 10°, and "
            + (f"{percent(moved)} move" if moved else "none moves")
            + " by more than 1°.",
        )


def _milliseconds(value: float) -> str:
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


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
            "Printed by `python benchmarks/overhead.py`: canonicaliser and rotation beside "
            "EfficientNet-Lite0 at 224 px, in turns in one run; milliseconds an image, and the "
            "share of the classifier's own.",
            table(["where", "batch", "classifier, ms", *(f"`{name}`" for name in models)], rows),
            "What it means: shares differ with the runtime more than with the machine. ONNX "
            "Runtime makes this classifier faster than torch does by more than it does the "
            "canonicaliser and its rotation, so the same front is a larger share there. "
            + _on_a_cpu(record)
            + _on_a_gpu(record, models),
        )
