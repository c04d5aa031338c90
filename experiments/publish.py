"""Puts a finished run into the zoo: ONNX with parity, measured on the held-out split, card.

    python experiments/publish.py RUN NAME [--data DIR]

The figures on a card are the ones that this command measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from radialbeams import zoo
from radialbeams.training.runs import export_run, measure
from radialbeams.training.weights import load_model, save_model

SEEDS = 5

# What no run can know about itself.
ABOUT: dict[str, dict[str, Any]] = {
    "bic.coil100": {
        "summary": "The paper's network for single objects on a dark ground.",
        "licence": "Weights: research use, as COIL-100 itself.",
        "works_on": "COIL-100's objects, centred, on a black canvas that turns with them.",
        "fails_on": "Photographs that fill a square frame: under the paper's protocol the network "
        "learns to read the turned border as well as the object.",
    },
    "bic.lfw": {
        "summary": "The paper's network for centred faces.",
        "licence": "Weights: research use, as LFW itself; trained on photographs of real people.",
        "works_on": "Faces framed as in LFW, on a black canvas that turns with them.",
        "fails_on": "Photographs that fill a square frame, for the same reason as bic.coil100; "
        "faces off the centre.",
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("name", choices=sorted(ABOUT))
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    stem = arguments.run / "model"
    model, card = load_model(stem)
    metrics = {}
    for key, jpeg in (("paper", None), ("paper_jpeg_90", 90)):
        figures = measure(
            stem, card["training"]["data"], seeds=SEEDS, jpeg=jpeg, root=arguments.data
        )
        metrics[key] = {name: _rounded(value) for name, value in figures.items()}
        print(key, metrics[key], flush=True)
    shipped = zoo.FOLDER / arguments.name
    save_model(
        shipped,
        model,
        {
            "name": arguments.name,
            **ABOUT[arguments.name],
            **{part: card[part] for part in ("data", "protocol", "training")},
            "metrics": metrics,
        },
    )
    onnx = shipped.with_name(arguments.name + ".onnx")
    print(f"{onnx.name}: within {export_run(shipped, onnx):.1e} of torch")


def _rounded(value: object) -> object:
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
