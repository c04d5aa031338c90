"""The floor of a network counts its bytes and operations; bars that are missed are named."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.on_gpu.__main__ import missed, parts
from benchmarks.on_gpu.floor import Layer, Speeds, layers, seconds
from benchmarks.on_gpu.front import Front
from benchmarks.on_gpu.inference import Inference
from benchmarks.on_gpu.models import MODELS
from benchmarks.on_gpu.photos import photos


class Skipping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.head = nn.Linear(4 * 25, 7)

    def forward(self, views: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head((views + self.convolution(views)).flatten(1))
        return out


def test_layers_are_counted_for_one_view() -> None:
    views, convolution, skip, head = layers(Skipping(), torch.rand(2, 4, 5, 5))
    assert views == Layer(100, 0, 0)
    assert convolution == Layer(200, 144, 2 * 100 * 36)
    assert skip == Layer(100, 0, 0)
    assert head == Layer(107, 700, 2 * 700)


def test_a_layer_takes_the_longer_of_its_two_times() -> None:
    found = [Layer(10, 0, 0), Layer(10, 5, 1000)]
    least = seconds(found, 2, bytes_each=4, speed=Speeds(1.0, 100.0))
    assert least["layers"] == 4 * 20 + max(4 * 25, 2 * 1000 / 100)
    assert least["one_kernel"] == max(4 * 25, 20)


def test_missed_bars_are_named() -> None:
    record = {
        "model": "ring.coil100",
        "batch 1": {"plain": {"until_answer_us": 200.0}, "compiled": {"until_answer_us": 160.0}},
        "batch 4096": {"plain": {"times_floor": 4.0}, "compiled": {"times_floor": 2.5}},
    }
    found = {
        "inference-ring.coil100-half": record,
        "front-half-compiled": {"share": {"ring.coil100": 0.2, "ring": 0.25}},
        "sampling": {"prepared_s": 0.1, "batch 128": {"ratio": {"gather": 4.5}}},
    }
    assert missed(found) == [
        "ring.coil100 takes 20.0% of the classifier; at most 15%",
        "beams, batch 128: 4.5 copies; at most 4",
        "inference-ring.coil100-half: 160 µs for one view; at most 150",
    ]


def test_every_model_that_there_is_has_its_parts() -> None:
    assert {"ring.coil100", "ring", "general"} <= set(MODELS)
    for model in MODELS:
        assert {f"inference-{model}-{precision}" for precision in ("half", "float")} <= set(
            parts(True)
        )


def test_uncompiled_compiles_the_classifier_alone() -> None:
    assert Front("half", True, compiles=False).models == ()
    assert Front("half", True).models == Front("half", False, compiles=False).models == MODELS
    part = parts(True, compiles=False)["inference-ring.coil100-half"]()
    assert isinstance(part, Inference)
    part.prepare()
    assert not part.compiled and not part.errors


def test_photos_are_views_of_the_pictures_and_always_the_same() -> None:
    views = photos(5, 3, 40)
    assert views.shape == (5, 3, 40, 40)
    assert views.min() >= 0 and views.max() <= 1 and views.std() > 0.1
    assert (views[:, :, 0, 0] == 0).all()  # outside the disc
    assert torch.equal(views, photos(5, 3, 40))
    assert not torch.equal(views, photos(5, 3, 40, seed=1))
