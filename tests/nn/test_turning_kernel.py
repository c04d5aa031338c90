"""The kernels for inference compute what torch computes, in Triton's interpreter.

Each program runs in a process of its own, since the interpreter is chosen when Triton is imported.
"""

from __future__ import annotations

import importlib.util

import pytest
import torch

from radialbeams.front import view_geometry
from radialbeams.front.module import Canonicalizer
from radialbeams.front.straight import goes_straight
from radialbeams.front.view_geometry import ViewGeometry
from radialbeams.nn.kernels import using
from tests.interpreting import interpreted

PRECISIONS = (torch.float16, torch.float32, torch.bfloat16)
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed"
)

START = """
import itertools, math, torch
from radialbeams.front.affine import QUARTER_TOLERANCE, TIE, inverted, middle
from radialbeams.front.pose import Pose
from radialbeams.front.sampling import blend
from radialbeams.nn.kernels import reading, turning, viewing
torch.manual_seed(0)
"""

TURNING = """
angles = torch.tensor([0.3, 2.5, 0.0, 1.0, 2.0, 3.0])
angles[2:] = angles[2:].round() * (math.pi / 2)
angles[2] = 0
sizes = ((33, 33), (20, 20), (19, 26), (40, 17), (1, 5))
choices = itertools.product(sizes, ("same", "expand"), (0.0, 0.7), (1, 3, 4))
for number, ((height, width), canvas, fill, channels) in enumerate(choices):
    for dtype, close in ((torch.float32, 1e-5), (torch.float16, 6e-4)):
        images = torch.rand(6, channels, height, width).to(dtype)
        if number % 2:
            images = images.contiguous(memory_format=torch.channels_last)
        pose = Pose.from_angles(angles, (height, width), canvas=canvas)
        plain = pose.apply_images(images, fill)
        fast = turning.turned(images, inverted(pose.transform), *pose.after, fill)
        assert fast.dtype == dtype
        torch.testing.assert_close(fast, plain, rtol=0, atol=close)
        assert torch.equal(fast[2:], plain[2:])  # quarter turns only move pixels
"""

STRIDES = """
images = torch.rand(2, 3, 30, 40)
origin = inverted(Pose.from_angles(torch.tensor([0.4, 1.9]), (20, 20)).transform)
grey = images[:, :1, :20, :20].expand(-1, 3, -1, -1)
for part in (images[..., 5:25, 7:27], images.mT[..., 3:23, 2:22], grey):
    fast = turning.turned(part, origin, 20, 20, 0.3)
    torch.testing.assert_close(fast, blend(part, origin, (20, 20), 0.3), rtol=0, atol=1e-5)
last = images.contiguous(memory_format=torch.channels_last)
fast = turning.turned(last, origin, 30, 40, 0.0)
assert fast.is_contiguous(memory_format=torch.channels_last)
"""

OTHER_MAPS = """
# Pixels beyond an infinite one with weight 0, far outside, and maps with a scale.
images = torch.rand(3, 2, 12, 12)
images[0, 0, 5, 5] = math.inf
maps = torch.tensor([[1.0, 0, 0, 0, 1, 0], [1, 0, 1e12, 0, 1, 0], [0.5, 0.1, 2, 0, 0.7, 1]])
maps = maps.reshape(3, 2, 3)
fast = turning.turned(images, maps, 12, 12, 0.5)
assert torch.equal(fast[0], images[0])
assert (fast[1] == 0.5).all()
torch.testing.assert_close(fast[2:], blend(images[2:], maps[2:], (12, 12), 0.5), rtol=0, atol=1e-5)
assert turning.turned(images[:0], maps[:0], 12, 12, 0.0).shape == (0, 2, 12, 12)
for tile in ({"wide": 16, "tall": 16, "across": 8}, {"wide": 64, "tall": 8, "across": 32}):
    other = turning.launch_turning(images[2:], maps[2:], 12, 12, 0.5, **tile)
    assert torch.equal(other, fast[2:])
"""

READING = """
from radialbeams.nn.posterior import answer, posterior
for size, canvas in itertools.product(((20, 20), (19, 26), (40, 17)), ("same", "expand")):
    both = torch.randn(40, 2, 24)
    logits, offsets = both.unbind(1)
    offsets = offsets.clone()
    offsets[:20] = 0  # among them are quarter turns
    logits[:8, ::6] += 10
    angles = answer(posterior(logits, offsets, 1.7))
    pose = Pose.from_angles(angles, size, canvas=canvas)
    middles = [*middle(size), *middle(pose.after)]
    maps = reading.origins(logits, offsets, middles, QUARTER_TOLERANCE, TIE)
    torch.testing.assert_close(maps, inverted(pose.transform), rtol=1e-6, atol=2e-5)
    assert torch.equal(maps[:8], inverted(pose.transform)[:8])
"""

VIEWS = """
from radialbeams.front.view_geometry import ViewGeometry
cases = (
    (128, 57, 3, (2, 3, 96, 96), torch.float16),
    (128, 57, 3, (1, 3, 70, 101), torch.float32),
    (128, 40, 3, (2, 3, 90, 77), torch.bfloat16),
    (176, 79, 3, (1, 1, 130, 130), torch.float16),
)
for parent, size, channels, shape, dtype in cases:
    geometry = ViewGeometry(size, channels, parent)
    images = (torch.rand(shape) > 0.5).to(dtype)  # so that Lanczos overshoots
    plain = geometry(images)
    side = min(shape[-2:])
    top, left = ((length - side) // 2 for length in shape[-2:])
    square = images[..., top : top + side, left : left + side].expand(-1, channels, -1, -1)
    fast = geometry._launched(square)
    assert fast.dtype == torch.float32
    torch.testing.assert_close(fast, plain, rtol=0, atol=2e-3)
    assert (fast - plain).square().mean() < 1e-6 * plain.square().mean().clamp(min=0.1)
    exact = geometry(images.float())
    assert torch.equal(fast == 0, exact == 0)
"""

BEAMS = """
from radialbeams.nn.beams import PolarBeams
for epsilon, size, length, channels in ((0, 57, 32, 3), (1, 40, 20, 1)):
    polar = PolarBeams(32, length, epsilon, size)
    views = torch.rand(3, channels, size, size)
    samples = turning.sampled(views, polar.grid)
    shape = (3, channels, 2 * epsilon + 1, 32, length)
    fast = samples.reshape(shape).permute(0, 3, 1, 2, 4)
    torch.testing.assert_close(fast, polar(views), rtol=0, atol=1e-5)
"""

WHOLE = """
import numpy as np
from pathlib import Path
from PIL import Image
import radialbeams
from radialbeams.front import sampling, straight, view_geometry
from radialbeams.front.module import Canonicalizer
from radialbeams.nn import beams
front = Canonicalizer.from_pretrained(
    "ring.coil100", abstain=None, snap="none", returns="image", fill=0.5
).for_inference()
places = sorted((Path(radialbeams.__file__).parent / "pictures").glob("*.webp"))[:3]
images = [Image.open(place).convert("RGB").resize((224, 224)) for place in places]
images = torch.stack([torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255 for image in images])
with torch.inference_mode():
    plain = front(images)
    launched = []
    def served(*tensors):
        launched.append(tensors)
        return True
    for part in (sampling, straight, view_geometry, beams):
        part.served = served
    beams.PolarBeams.forward = beams.PolarBeams._sampled
    fast = front(images)
    assert len(launched) == 4
# The views are rounded to 11 bits, as on a GPU; an angle changes by some hundredths of a degree.
assert (fast - plain).abs().mean() < 1e-3
assert (plain - images).abs().mean() > 0.05
"""

COMPILED = """
from radialbeams.front import sampling, straight, view_geometry
from radialbeams.front.module import Canonicalizer
front = Canonicalizer.from_pretrained("ring.coil100", abstain=None, snap="none", returns="image")
front = front.for_inference()
images = torch.rand(2, 3, 48, 48)
seen = []
def backend(graph, example):
    seen.extend(str(node.target) for node in graph.graph.nodes)
    return graph
for part in (sampling, straight, view_geometry):
    part.served = lambda *tensors: True
with torch.inference_mode():
    plain = front(images)
    compiled = torch.compile(front, backend=backend, fullgraph=True)(images)
torch.testing.assert_close(compiled, plain, rtol=0, atol=1e-5)
assert {f"radialbeams.{name}.default" for name in ("viewed", "origins", "turned")} <= set(seen)
"""

PROGRAMS = {
    "turning": TURNING,
    "strides": STRIDES,
    "other maps": OTHER_MAPS,
    "reading": READING,
    "views": VIEWS,
    "beams": BEAMS,
    "the whole front": WHOLE,
    "in one compiled graph": COMPILED,
}


@needs_triton
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_computes_what_torch_computes(name: str) -> None:
    interpreted(START + PROGRAMS[name])


# --- where they are used ---


class OnGpu:
    """As much of a tensor as the question needs."""

    def __init__(self, dtype: torch.dtype = torch.float16, requires_grad: bool = False) -> None:
        self.device, self.dtype = torch.device("cuda", 0), dtype
        self.requires_grad = requires_grad


@pytest.fixture
def new_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(using, "INSTALLED", True)
    monkeypatch.setattr(using, "_new_enough", lambda device: True)


@pytest.mark.usefixtures("new_gpu")
def test_kernels_serve_float_images_on_a_gpu_without_gradients() -> None:
    assert using.served(OnGpu(), OnGpu(torch.float32))
    assert not using.served(OnGpu(), torch.zeros(1))
    assert not using.served(OnGpu(torch.float64))
    assert not using.served(OnGpu(), OnGpu(requires_grad=True))
    with torch.no_grad():
        assert using.served(OnGpu(), OnGpu(requires_grad=True))
    with using.without_kernels():
        assert not using.served(OnGpu())
    assert using.served(OnGpu())


@pytest.mark.usefixtures("new_gpu")
def test_no_kernels_without_triton_or_in_an_exported_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(torch.compiler, "_is_exporting_flag", True)
        assert not using.served(OnGpu())
    monkeypatch.setattr(using, "INSTALLED", False)
    assert not using.served(OnGpu())


@pytest.mark.usefixtures("new_gpu")
def test_kernels_serve_a_compiled_graph_of_an_older_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    # Before 2.13, `is_exporting` is also true there.
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    assert using.served(OnGpu())


@needs_triton
@pytest.mark.parametrize(
    ("side", "size", "fits"),
    [(224, 57, True), (150, 57, False), (150, 79, True), (513, 79, False), (224, 257, False)],
)
def test_views_come_from_the_programs_that_are_right_on_a_gpu(
    side: int, size: int, fits: bool
) -> None:
    from radialbeams.nn.kernels import viewing

    squares = (torch.empty(1, 3, side, side, dtype=dtype) for dtype in PRECISIONS)
    assert [viewing.fits(square, size) for square in squares] == [fits, fits, False]


def test_the_paper_s_views_are_made_without_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_geometry, "served", lambda *tensors: True)
    assert not ViewGeometry(40, 3, None)._launches(torch.zeros(1, 3, 64, 64))


def test_a_cpu_needs_no_kernels() -> None:
    assert not using.served(torch.zeros(1))
    assert not goes_straight((torch.zeros(1, 8), torch.zeros(1, 8)))
    assert not goes_straight(torch.zeros(1, 2))


def test_without_kernels_only_the_angle_decides_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"abstain": None, "snap": "none"}
    image = Canonicalizer.from_pretrained("ring.coil100", returns="image", **options)
    both = Canonicalizer.from_pretrained("ring.coil100", **options)
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        assert torch.equal(image(images), both(images)[0])
