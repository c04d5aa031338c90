"""`python -m radialbeams.reproduce NAME --trainings-only --data DIR --out DIR --jobs N`.

For machines that have torch, but neither matplotlib nor the packages of the command line. Where
those are installed, use `radialbeams reproduce`, which does the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from radialbeams.reproduce import registry
from radialbeams.reproduce.runner import reproduce, reproduce_each
from radialbeams.reproduce.settings import ReproduceSettings

INTERVAL_SECONDS = 5.0


class Lines:
    """Prints progress as occasional lines, with the expected time of completion."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.last_printed = 0.0
        self.done = 0.0

    def __call__(self, done: float, total: float, text: str) -> None:
        now = time.monotonic()
        if done < self.done:  # a new part of the work has begun
            self.started = now
        self.done = done
        if now - self.last_printed < INTERVAL_SECONDS and done < total:
            return
        self.last_printed = now
        left = (now - self.started) * (total - done) / done if done > 0 else None
        end = "" if left is None else f", ends {datetime.now() + timedelta(seconds=left):%H:%M:%S}"
        print(f"{done / max(total, 1e-9):4.0%} {text}{end}", file=sys.stderr, flush=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m radialbeams.reproduce")
    parser.add_argument("name", choices=[*registry.names(), registry.ALL])
    parser.add_argument("--quick", action="store_true", help="minutes on two cores")
    parser.add_argument("--trainings-only", action="store_true", help="write no results or figures")
    parser.add_argument(
        "--redraw", action="store_true", help="word and draw NAME.json again; measure nothing"
    )
    parser.add_argument(
        "--finished-only",
        action="store_true",
        help="train nothing; use the trainings that are done",
    )
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="trainings in parallel")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--devices", default="auto")
    parser.add_argument("--classifier", help="for downstream: an .onnx or .pt2 file")
    arguments = parser.parse_args(argv)
    settings = ReproduceSettings(
        quick=arguments.quick,
        data=arguments.data,
        out=arguments.out,
        seeds=arguments.seeds,
        jobs=arguments.jobs,
        devices=arguments.devices,
        classifier=arguments.classifier,
        show=Lines(),
    )
    run_experiment = partial(
        reproduce,
        redraw=arguments.redraw,
        trainings_only=arguments.trainings_only,
        finished_only=arguments.finished_only,
    )

    def run_and_list(name: str) -> None:
        for path in run_experiment(name, settings):
            print(path, flush=True)

    def failed(name: str, error: Exception) -> None:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)

    return 1 if reproduce_each(registry.chosen(arguments.name), run_and_list, failed) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
