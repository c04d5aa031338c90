"""Latency and throughput of the pretrained models and of well-known networks in ONNX Runtime.

The networks take turns, so each finds its weights displaced from the processor's cache by those of
the others. Small networks suffer most from that, so single views on one thread are also measured
with each network running many times in a row, as it does on a folder of pictures.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.clock import Call, compared, in_turns
from benchmarks.resnet import ResNet18
from benchmarks.vit import ViT
from radialbeams import zoo
from radialbeams.front.classifiers import efficientnet_lite0
from radialbeams.stored import JsonDict
from radialbeams.training.export import write_onnx

SIDE = 224
IN_A_ROW = 20  # calls of one network, in the group of that name
THREADS, BATCHES = (1, 2), (1, 32)
REFERENCE = "ViT-S/14"
# How many times faster than the ViT a view must be, on one thread.
BARS = {"ring.coil100": 130, "general": 10}


def measure(quick: bool) -> JsonDict:
    with tempfile.TemporaryDirectory() as name:
        files = _files(Path(name))
        groups = {}
        for threads in THREADS:
            sessions = {model: _session(path, threads) for model, path in files.items()}
            for batch in BATCHES[:1] if quick else BATCHES:
                calls = {model: _call(session, batch) for model, session in sessions.items()}
                rounds = 3 if quick or batch > 1 else 7
                # With one thread: its CPU time, which other programs hardly affect.
                clock = time.thread_time if threads == 1 else time.perf_counter
                seconds = in_turns(calls, rounds, clock)
                group = compared(seconds, REFERENCE, batch)
                groups[f"{threads} threads, batch {batch}"] = group
                if (threads, batch) == (1, 1):
                    again = {model: partial(_repeated, call) for model, call in calls.items()}
                    seconds = in_turns(again, 3, clock)
                    groups["1 threads, batch 1, in a row"] = compared(seconds, REFERENCE, IN_A_ROW)
    return groups


def _repeated(call: Call) -> None:
    for _ in range(IN_A_ROW):
        call()


def _files(folder: Path) -> dict[str, Path]:
    """ONNX files of all networks."""
    torch.manual_seed(0)
    paths = {name: Path(zoo.find(name).onnx) for name in zoo.names()}
    others: dict[str, nn.Module] = {
        "EfficientNet-Lite0": efficientnet_lite0(),
        "ResNet-18": ResNet18().eval(),
        REFERENCE: ViT().eval(),
    }
    for name, network in others.items():
        path = folder / f"{name.replace('/', '-')}.onnx"
        write_onnx(network, torch.rand(1, 3, SIDE, SIDE), path, "images", ("output",))
        paths[name] = path
    return paths


def _session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _call(session: Any, batch: int) -> Call:
    declared = session.get_inputs()[0]
    shape = (batch, *declared.shape[1:])
    images = np.random.default_rng(0).random(shape, dtype=np.float32)
    return lambda: session.run(None, {declared.name: images})
