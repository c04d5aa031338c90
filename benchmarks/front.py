"""What a canonicaliser in front of a classifier adds, both as one ONNX file on one thread."""

from __future__ import annotations

import torch

from benchmarks.overhead import CPU_BATCH, MODELS, as_onnx
from radialbeams.stored import JsonDict

# The most that each may add, as a share of the classifier's time.
MOST = {"ring.coil100": 0.25, "ring": 0.80}


def measure(quick: bool) -> JsonDict:
    torch.set_num_threads(1)
    shares = as_onnx((1,) if quick else (1, CPU_BATCH))
    return {
        f"EfficientNet-Lite0 as ONNX, batch {row['batch']}": {
            "classifier, ms": row["classifier_ms"],
            **{f"{name}, share": row[name]["share"] for name in MODELS},
        }
        for row in shares.values()
    }
