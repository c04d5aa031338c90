"""Sections: the speed of training and of the command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sections.text import Record, count, degrees, percent, section, table


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
    head += "|rendering|views per second"
    run = runs[0]
    yield section(
        "Training speed on one GPU",
        "Printed by `python benchmarks/rendering.py [--recipe FILE] [--batch N]`: one training "
        "step, captured as a CUDA graph. Times in milliseconds.",
        "What to look for: *rendering*, the share of a step that is spent on making the views.",
        table(head.split("|"), rows),
        f"`python benchmarks/training_speed.py` on COIL-100, batch {count(run['batch'])}, "
        f"{count(run['steps'])} steps: a mean error of {degrees(run['held_out_mean'])} on held-out "
        f"views after {run['seconds']:.1f} s of training, at {count(run['views_per_second'])} "
        "views per second.",
    )


def files_section(runs: Sequence[Record]) -> Iterator[str]:
    if not runs:
        return
    run = runs[0]
    parts, times = run["milliseconds"], run["times_faster_than_vit"]
    rows = [
        ["`angle` on small JPEG files", f"{run['images_a_second']:.0f} per second", "400 or more"],
        ["angle of one 12-megapixel JPEG", f"{run['large_jpeg_ms']:.0f} ms", "120 ms or less"],
        ["`radialbeams --help`, beyond starting Python", f"{run['help_s']:.2f} s", "0.4 s or less"],
        [
            "`import radialbeams`, beyond starting Python",
            f"{run['import_s']:.2f} s",
            "0.3 s or less",
        ],
        [
            "`ring.coil100` against a ViT-S/14",
            f"{times['ring.coil100']:.0f} times as fast",
            "50 or more",
        ],
        ["`ring` against a ViT-S/14", f"{times['ring']:.0f} times as fast", "12 or more"],
    ]
    split = ", ".join(f"{name} {value:.1f} ms" for name, value in parts.items())
    yield section(
        "Speed of the command",
        f"Printed by `python -m benchmarks.files --images DIR` on two CPU cores: {run['files']:,} "
        f"of LFW's JPEGs, {run['workers']} workers, `{run['model']}`.",
        table(("what", "measured", "goal"), rows),
        f"What it means: one small picture on one thread takes {split}; `angle` does not write. "
        "A ViT-S/14 at 224 px is the smallest model of the strongest comparable tool; both were "
        "measured on one thread in the same run.",
    )
