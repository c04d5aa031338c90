"""Measures what one view costs with every pretrained model, all in one run, and updates the cards.

    python tools/costs.py [NAME …] [--dry-run]

Milliseconds of one view through ONNX Runtime on one CPU thread: the median of processor time. Times
of different machines cannot be compared, so after a change of one model all are measured again, in
turns: each runs a few times in a row, as in a folder of pictures, then the next one does.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime

from radialbeams import zoo
from radialbeams.cards import Cost
from radialbeams.training.weights import write_card

TURNS, IN_A_ROW = 30, 10


def milliseconds(names: Sequence[str], turns: int = TURNS) -> dict[str, float]:
    """The median processor time of one view by name, measured in turns."""
    sessions = {name: _session(name) for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(turns):
        for name, (session, view) in sessions.items():
            session.run(None, {"views": view})  # brings the weights back into the cache
            for _ in range(IN_A_ROW):
                started = time.process_time()  # unaffected by other processes
                session.run(None, {"views": view})
                times[name].append(time.process_time() - started)
    return {name: round(1000 * statistics.median(spent), 2) for name, spent in times.items()}


def _session(name: str) -> tuple[Any, Any]:
    model = zoo.find(name)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        zoo.verified_onnx(model), options, providers=["CPUExecutionProvider"]
    )
    size, channels = model.card.network.view_size, model.card.network.channels
    return session, np.random.default_rng(0).random((1, channels, size, size), dtype=np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="default: all models")
    parser.add_argument("--dry-run", action="store_true", help="print, and leave the cards alone")
    arguments = parser.parse_args()
    for name, spent in milliseconds(arguments.names or zoo.names()).items():
        print(f"{name}: {spent} ms", flush=True)
        if not arguments.dry_run:
            model = zoo.find(name)
            path = model.stem.with_name(f"{name}.json")
            write_card(path, replace(model.card, cost=Cost(spent)))


if __name__ == "__main__":
    main()
