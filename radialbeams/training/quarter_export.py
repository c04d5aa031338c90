"""`python -m radialbeams.training.quarter_export RUN OUT.onnx`: the network for ONNX Runtime."""

from __future__ import annotations

import copy
import json
import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from radialbeams.nn.quarter import QuarterConfig, QuarterNetwork, ViewScores
from radialbeams.training.export import write_agreeing, write_onnx
from radialbeams.training.weights import DamagedWeights, sha256

TOLERANCE = 1e-3  # of logits


def load_quarter_network(stem: Path) -> QuarterNetwork:
    """The network of STEM.safetensors and STEM.json, after checking the sha256."""
    weights = stem.with_name(stem.name + ".safetensors")
    card = json.loads(stem.with_name(stem.name + ".json").read_text(encoding="utf-8"))
    if (actual := sha256(weights)) != (wanted := card["sha256"]["safetensors"]):
        raise DamagedWeights(
            f"Expected {weights.name} with sha256 {wanted}; got {actual}. Copy the run again."
        )
    model = QuarterNetwork(QuarterConfig(**card["config"]))
    model.load_state_dict(load_file(weights))
    return model.eval()


def export_quarter_network(model: QuarterNetwork, path: Path) -> float:
    """Input `views` (N, 1, S, S) in [0, 1]; returns the largest difference from torch.

    Kernels are rounded to 16 bits in the file; the model stays as it is.
    """
    model = copy.deepcopy(model).cpu().eval()
    with torch.no_grad():
        for value in model.parameters():
            if value.ndim > 1:
                value.copy_(value.half().float())
    scores = ViewScores(model)
    example = torch.zeros(1, 1, model.config.size, model.config.size)
    return write_agreeing(
        path,
        lambda part: write_onnx(scores, example, part, "views", scores.outputs),
        partial(_difference, scores),
        TOLERANCE,
        "Check the weights for NaN",
    )


def _difference(model: ViewScores, path: Path) -> float:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    generator = torch.Generator().manual_seed(0)
    worst = 0.0
    for batch in (1, 3):
        views = torch.rand(batch, 1, model.config.size, model.config.size, generator=generator)
        with torch.inference_mode():
            expected = model(views)
        for want, output in zip(expected, session.run(None, {"views": views.numpy()}), strict=True):
            difference = float(np.abs(output - want.numpy()).max())
            if math.isnan(difference):
                return difference
            worst = max(worst, difference)
    return worst


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        sys.stderr.write("Usage: python -m radialbeams.training.quarter_export RUN OUT.onnx\n")
        return 2
    worst = export_quarter_network(load_quarter_network(Path(argv[0]) / "model"), Path(argv[1]))
    sys.stdout.write(f"largest difference {worst:.2g}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
