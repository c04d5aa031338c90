"""The convolutional network: shapes, configuration, pretrained weights, training, looks."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from radialbeams.canonicalizer import Canonicalizer
from radialbeams.cards import parse
from radialbeams.front.folding import folded
from radialbeams.front.module import Canonicalizer as Module
from radialbeams.nn.convolutional import (
    VARIANTS,
    Convolutional,
    ConvolutionalConfig,
    SameConv,
    load_encoder,
)
from radialbeams.training.data import ImageSet
from radialbeams.training.data.scenes import scene_set
from radialbeams.training.fit import Fit
from radialbeams.training.recipe import Recipe
from radialbeams.training.runs import export_run
from radialbeams.training.weights import write_tensors

TOOL = Path(__file__).parents[2] / "tools" / "pretrained.py"
SMALL = ConvolutionalConfig(variant="lite0", view_size=32, num_bins=8)


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pretrained_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def recipe(**changes: Any) -> Recipe:
    return Recipe(
        **{
            "data": "scenes",
            "model": SMALL,
            "parent_size": 32,
            "protocol": "leakfree",
            "sigma": 1.1,
            "batch": 2,
            "steps": 2,
            **changes,
        }
    )


@pytest.fixture
def scenes() -> ImageSet:
    return scene_set(4, size=32)


# --- the network ---


@pytest.mark.parametrize(
    ("variant", "parameters"),
    # Those of the published networks without their classifier, and our head of 2 × 72.
    [("lite0", 3_371_008), ("lite1", 4_135_680), ("lite2", 4_811_072)],
)
def test_a_variant_has_the_published_number_of_parameters(variant: str, parameters: int) -> None:
    network = Convolutional(ConvolutionalConfig(variant=variant))
    head = sum(p.numel() for p in network.head.parameters())
    assert sum(p.numel() for p in network.parameters()) == parameters + head


def test_a_view_becomes_a_posterior() -> None:
    logits, offsets = Convolutional(SMALL).eval()(torch.rand(3, 3, 32, 32))
    assert logits.shape == offsets.shape == (3, 8)
    assert offsets.abs().max() <= 1.5


def test_black_and_white_are_what_the_pretrained_weights_expect() -> None:
    """(x − 127)/128 of bytes."""
    seen = []
    network = Convolutional(SMALL).eval()
    network.stem.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    network(torch.stack((torch.zeros(3, 32, 32), torch.ones(3, 32, 32))))
    black, white = seen[0][:, 0, 0, 0].tolist()
    assert (black, white) == pytest.approx((-127 / 128, 1.0))


@pytest.mark.parametrize("size", [32, 33, 7])
@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_pads_so_that_sizes_are_divided_and_rounded_up(
    size: int, kernel: int, stride: int
) -> None:
    made = SameConv(1, 1, kernel, stride, size)(torch.zeros(1, 1, size, size))
    assert made.shape[-1] == -(-size // stride)


def test_an_odd_pixel_of_padding_comes_at_the_end() -> None:
    layer = SameConv(1, 1, 3, 2, 4)
    torch.nn.init.zeros_(layer.weight)
    with torch.no_grad():
        layer.weight[0, 0, 0, 0] = 1  # the first tap reads the first pixel, not the padding
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert layer(image)[0, 0].tolist() == [[0, 2], [8, 10]]


def test_folded_it_gives_the_same_answers() -> None:
    network = Convolutional(SMALL).eval()
    for part in network.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(part.running_mean)  # type: ignore[arg-type]
            torch.nn.init.uniform_(part.running_var, 0.5, 1.5)  # type: ignore[arg-type]
    views = torch.rand(2, 3, 32, 32)
    for found, expected in zip(folded(network)(views), network(views), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_stochastic_depth_grows_with_the_depth() -> None:
    network = Convolutional(ConvolutionalConfig(variant="lite0", view_size=32, drop_path=0.16))
    shares = [block.depth.share for block in network.blocks]  # type: ignore[union-attr]
    assert shares[0] == 0
    assert shares == sorted(shares)  # type: ignore[type-var]
    assert shares[-1] == pytest.approx(0.15)


def test_it_traces_as_one_graph() -> None:
    """A part that asked Python something would split what torch.compile makes of it."""
    network = Convolutional(SMALL).train()
    compiled = torch.compile(network, backend="eager", fullgraph=True)
    assert compiled(torch.rand(2, 3, 32, 32))[0].shape == (2, 8)


# --- its configuration ---


def test_a_configuration_survives_json() -> None:
    plain = json.loads(json.dumps(SMALL.to_dict()))
    assert ConvolutionalConfig.from_dict(plain) == SMALL


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"variant": "lite9"}, "variant must be one of lite0, lite1, lite2; got 'lite9'"),
        ({"view_size": 8}, "view_size must be at least 32; got 8"),
        ({"num_bins": 70}, "num_bins must be a multiple of 4; got 70"),
        ({"drop_path": 1.0}, r"drop_path must lie in \[0, 1\); got 1.0"),
        ({"beams": 3}, "Unknown in a model configuration: beams. Known: architecture, view_size"),
    ],
)
def test_a_wrong_configuration_is_refused_with_what_is_right(
    changes: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        ConvolutionalConfig.from_dict(changes)


# --- its weights ---


def test_pretrained_weights_leave_the_head_alone() -> None:
    given, network = Convolutional(SMALL), Convolutional(SMALL)
    head = network.head.weight.clone()
    load_encoder(network, given.state_dict())
    assert torch.equal(network.stem.weight, given.stem.weight)
    assert torch.equal(network.head.weight, head)


def test_the_weights_of_another_variant_are_refused() -> None:
    other = Convolutional(ConvolutionalConfig(variant="lite1", view_size=32))
    with pytest.raises(ValueError, match="Expected the encoder of lite0 with 3 channels"):
        load_encoder(Convolutional(SMALL), other.state_dict())


def test_the_parts_of_the_published_weights_have_names_here() -> None:
    renamed = _tool().renamed
    assert renamed("_blocks.3._bn0.weight") == "blocks.3.expand_norm.weight"
    assert renamed("_conv_head.weight") == "last.weight"
    assert renamed("_fc.bias") is None


def test_it_computes_what_the_package_of_its_weights_computes() -> None:
    package = pytest.importorskip("efficientnet_lite_pytorch")
    renamed = _tool().renamed
    theirs = package.EfficientNet.from_name("efficientnet-lite0", image_size=64).eval()
    ours = Convolutional(ConvolutionalConfig(variant="lite0", view_size=64)).eval()
    tensors = {renamed(name): value for name, value in theirs.state_dict().items()}
    load_encoder(ours, {name: value for name, value in tensors.items() if name is not None})
    views = torch.rand(2, 3, 64, 64)
    with torch.inference_mode():
        expected = theirs.extract_features((views * 255 - 127) / 128)
        torch.testing.assert_close(ours.features(views), expected, atol=1e-4, rtol=1e-4)


# --- training, export, use ---


def test_a_run_begins_with_pretrained_weights_and_says_so(tmp_path: Path, scenes: ImageSet) -> None:
    file = tmp_path / "lite0.safetensors"
    write_tensors(file, Convolutional(SMALL).state_dict(), {})
    fit = Fit(recipe(), scenes, tmp_path / "run", device=torch.device("cpu"), start=file)
    card = fit.run()
    assert card.training.start.name == "lite0"
    assert card.protocol.sigma == 1.1
    assert card.network.architecture == "convolutional"


def test_a_run_may_begin_with_weights_that_were_trained_with_another_dropout(
    tmp_path: Path, scenes: ImageSet
) -> None:
    before = recipe()
    Fit(before, scenes, tmp_path / "first", device=torch.device("cpu")).run()
    model = ConvolutionalConfig.from_dict(
        {**before.model.to_dict(), "drop_path": 0.1, "dropout": 0.2}
    )
    calmer = replace(before, model=model)
    start = tmp_path / "first" / "model"
    fit = Fit(calmer, scenes, tmp_path / "run", device=torch.device("cpu"), start=start)
    assert fit.model.config == calmer.model
    assert fit.started_from is not None and fit.started_from.name == "first"


@pytest.mark.long
def test_a_trained_network_is_exported_and_used(tmp_path: Path, scenes: ImageSet) -> None:
    run = tmp_path / "run"
    Fit(recipe(), scenes, run, device=torch.device("cpu")).run()
    assert export_run(run / "model", run / "model.onnx") <= 1e-4
    light = Canonicalizer(run, threads=1)
    pixels = scenes.images[0].permute(1, 2, 0).numpy()
    answer = light.answers([Image.fromarray(pixels)])[0]
    module = Module.from_pretrained(run)
    with torch.inference_mode():
        _, pose = module.canonicalize(scenes.images[:1].float() / 255)
    away = abs(answer.angle_degrees - float(torch.rad2deg(pose.angle[0])) + 180) % 360 - 180
    assert abs(away) <= 0.1
    assert answer.confidence == pytest.approx(float(pose.confidence[0]), abs=1e-3)


# --- looks ---


class Turning(Canonicalizer):
    """A model whose posterior follows the brightest corner, and whose sureness is given."""

    def __init__(self, below: float, sharpness: float) -> None:
        config = {"architecture": "convolutional", "num_bins": 8, "view_size": 4, "channels": 3}
        looks = {"below": below}
        self.card = parse({"config": config, "looks": looks, "protocol": {"name": "paper"}})
        self.refine, self.sharpness, self.seen = 1, sharpness, 0

    def _run(self, views: np.ndarray) -> list[np.ndarray]:
        views = views.reshape(-1, 3, 4, 4)
        self.seen += len(views)
        # Corners counter-clockwise from the top right, where an upright picture is bright.
        corners = views[:, 0][:, [0, 0, 3, 3], [3, 0, 0, 3]]
        logits = np.zeros((len(views), 8), np.float32)
        logits[np.arange(len(views)), 2 * corners.argmax(1)] = self.sharpness
        return [logits, np.zeros_like(logits)]


def bright_corner(quarter: int) -> np.ndarray:
    view = np.zeros((3, 4, 4), np.float32)
    view[:, 0, 3] = 1
    return np.rot90(view, quarter, (-2, -1)).copy()


@pytest.mark.parametrize("quarter", range(4))
def test_four_looks_agree_once_they_are_turned_back(quarter: int) -> None:
    model = Turning(below=1.0, sharpness=5.0)
    answer = model.answers_from_views(bright_corner(quarter)[None])[0]
    assert model.seen == 4
    assert answer.angle_degrees == pytest.approx(90 * quarter)
    once = Turning(below=0.0, sharpness=5.0).answers_from_views(bright_corner(quarter)[None])[0]
    assert answer.confidence == pytest.approx(once.confidence)
    np.testing.assert_allclose(answer.posterior, once.posterior, atol=1e-6)


def test_a_sure_model_looks_once() -> None:
    model = Turning(below=0.5, sharpness=20.0)
    model.answers_from_views(np.stack([bright_corner(0), bright_corner(1)]))
    assert model.seen == 2


def test_only_the_unsure_are_looked_at_again() -> None:
    model = Turning(below=0.9, sharpness=2.0)
    views = np.stack([bright_corner(0), bright_corner(1)])
    model._run = lambda views, own=model._run: [  # type: ignore[method-assign]
        output * (np.array([[20.0], [1.0]], np.float32) if len(views) == 2 else 1)
        for output in own(views)
    ]
    model.answers_from_views(views)
    assert model.seen == 2 + 3


def test_every_variant_is_a_row_of_both_tables() -> None:
    for variant in VARIANTS.values():
        assert len(variant.widths) == len(variant.depths) == 7
