"""The inference kernels on a GPU: whether they are right, and what they save in front of a model.

    python -m benchmarks.on_gpu.turning_trial OUT.json [--seconds 40] [--only TEXT]

OUT.json is written after each part. A part that fails leaves its error there; the others go on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
import traceback
from collections.abc import Callable
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.on_gpu.timing import Call, captured, device, in_turns, kernels, wait
from radialbeams.front.affine import QUARTER_TOLERANCE, TIE, inverted, middle
from radialbeams.front.module import Canonicalizer
from radialbeams.front.pose import Pose
from radialbeams.front.view_geometry import ViewGeometry
from radialbeams.nn.beams import PolarBeams
from radialbeams.nn.kernels.using import without_kernels
from radialbeams.nn.posterior import answer, posterior
from radialbeams.stored import JsonDict

BATCH, SIZE, ROUNDS = 64, 224, 40
MODELS = ("ring.coil100", "ring", "general")
PRECISIONS = {"half": torch.float16, "float": torch.float32}
VIEWS = ((128, 57), (176, 79))  # pixels of a parent and of a view
SIDES = (150, 151, 160, 224)  # of images; halves of some start where 16 bytes can be read at once
# Columns and rows of one program, columns of one warp, and warps.
TURNING_TILES = (
    *((32, 32, 16, 4), (32, 32, 8, 4), (32, 32, 32, 4), (32, 16, 16, 4), (32, 16, 8, 4)),
    *((32, 8, 8, 4), (32, 8, 16, 4), (64, 16, 16, 4), (32, 32, 8, 8), (16, 16, 8, 2)),
    *((16, 16, 8, 4), (64, 32, 8, 8)),
)
# Rows and columns of an image, columns of a view, warps, and stages.
VIEWING_TILES = (
    *((64, 64, 32, 8, 3), (64, 64, 64, 8, 3), (64, 64, 32, 4, 3), (64, 64, 64, 4, 3)),
    *((64, 64, 128, 8, 2), (64, 32, 64, 8, 4), (64, 64, 64, 8, 2), (128, 64, 64, 8, 2)),
    *((64, 64, 16, 8, 3), (64, 128, 32, 8, 2)),
)


def noise(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    values = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    # A share of smooth content, as photos have.
    return (0.5 * values + 0.5 * values.mean((-2, -1), keepdim=True)).to(device(), dtype)


def apart(call: Callable[[], Tensor]) -> JsonDict:
    """How far the result with kernels is from the one without."""
    fast = call().float()
    with without_kernels():
        plain = call().float()
    away = (fast - plain).abs()
    return {"most": away.max().item(), "mean": away.mean().item(), "shape": list(fast.shape)}


def same_turning(dtype: torch.dtype) -> JsonDict:
    result: JsonDict = {}
    quarters = torch.arange(4) * (torch.pi / 2)
    angles = torch.cat((quarters, 6 * torch.rand(4))).to(device())
    choices = product(((65, 65), (64, 64), (48, 65)), ("same", "expand"), (0.0, 0.7))
    for size, canvas, fill in choices:
        for layout in (torch.contiguous_format, torch.channels_last):
            images = noise(8, 3, *size, dtype=dtype).contiguous(memory_format=layout)
            pose = Pose.from_angles(angles, size, canvas=canvas)
            name = f"{size}, {canvas}, fill {fill}, {str(layout).removeprefix('torch.')}"
            exact = apart(lambda p=pose, x=images, f=fill: p.apply_images(x, f))
            quarter = apart(lambda p=pose, x=images, f=fill: p.apply_images(x, f)[:4])
            result[name] = {"most": exact["most"], "quarters": quarter["most"]}
    return {"most": max(row["most"] for row in result.values()), "cases": result}


def same_views(dtype: torch.dtype, parent: int, size: int) -> JsonDict:
    """From whole images, cut ones, and channels last: no further from exact than before."""
    geometry = ViewGeometry(size, 3, parent).to(device())
    result: JsonDict = {}
    for side in SIDES:
        wide = noise(4, 3, side, side + 10, dtype=dtype)
        whole = wide[..., :side].contiguous()
        last = whole.contiguous(memory_format=torch.channels_last)
        for form, images in {"whole": whole, "cut": wide, "channels last": last}.items():
            row = apart(lambda x=images: geometry(x))
            exact = geometry.cpu()(images.cpu().float())
            geometry.to(device())
            row["from exact"] = (geometry(images).cpu() - exact).abs().max().item()
            with without_kernels():
                row["from exact, before"] = (geometry(images).cpu() - exact).abs().max().item()
            result[f"{side}, {form}"] = row
    return {"most": max(row["most"] for row in result.values()), "cases": result}


def same_beams_and_maps() -> JsonDict:
    from radialbeams.nn.kernels.reading import origins

    polar = PolarBeams(48, 40, 1, 79).to(device())
    views = noise(8, 3, 79, 79)
    result: JsonDict = {"beams": apart(lambda: polar(views))}
    logits, offsets = torch.randn(64, 48, 2, device=device()).unbind(-1)
    for size in ((64, 64), (48, 65)):
        angles = answer(posterior(logits, offsets))
        before = inverted(Pose.from_angles(angles, size).transform)
        middles = [*middle(size), *middle(size)]
        after = origins(logits, offsets, middles, QUARTER_TOLERANCE, TIE)
        result[f"maps, {size}"] = (after - before).abs().max().item()
    return result


def front(name: str, dtype: torch.dtype) -> torch.nn.Module:
    made = Canonicalizer.from_pretrained(name, abstain=None, snap="none", returns="image")
    ready = made.for_inference(dtype)
    return ready.to(device(), memory_format=torch.channels_last)  # type: ignore[call-overload]


def fronts(name: str, precision: str, profiled: bool) -> JsonDict:
    dtype = PRECISIONS[precision]
    module, images = front(name, dtype), noise(BATCH, 3, SIZE, SIZE, dtype=dtype)

    def call() -> Tensor:
        return module(images)

    result: JsonDict = {"apart": apart(call)}
    graphs: dict[str, Call] = {"kernels on": captured(call)}
    with without_kernels():
        graphs["kernels off"] = captured(call)
    seconds = in_turns(graphs, ROUNDS)
    result["us"] = {key: round(1e6 * value, 1) for key, value in seconds.items()}
    if profiled:
        result["kernels on"] = kernels(call)
    return result


def turning_alone(precision: str) -> JsonDict:
    from radialbeams.nn.kernels.turning import launch_turning

    images = noise(BATCH, 3, SIZE, SIZE, dtype=PRECISIONS[precision])
    angles = (2 * torch.pi / BATCH * torch.arange(BATCH)).to(device()) + 0.01
    origin = inverted(Pose.from_angles(angles, (SIZE, SIZE)).transform)
    calls: dict[str, Call] = {"copy": lambda: images.clone()}
    for wide, tall, across, warps in TURNING_TILES:
        options = {"wide": wide, "tall": tall, "across": across, "warps": warps}
        calls[f"{wide} × {tall}, {across} across, {warps} warps"] = lambda o=options: (
            launch_turning(images, origin, SIZE, SIZE, 0.0, **o)
        )
    return alone(calls)


def viewing_alone(name: str) -> JsonDict:
    from radialbeams.nn.kernels.viewing import ViewTile, launch_viewing

    geometry = front(name, torch.float16).view_geometry
    images = noise(BATCH, 3, SIZE, SIZE, dtype=torch.float16)
    weights, mask = geometry._half_weights(SIZE), geometry.mask
    calls: dict[str, Call] = {"copy": lambda: images.clone()}
    for tile in VIEWING_TILES:
        calls[str(tile)] = lambda t=tile: launch_viewing(images, weights, mask, ViewTile(*t))
    return alone(calls)


def alone(calls: dict[str, Call], repeats: int = 10) -> JsonDict:
    """Microseconds of each, from graphs of many, so that launching a graph does not count."""
    graphs, result = {}, {}
    for name, call in calls.items():
        try:
            graphs[name] = captured(lambda c=call: [c() for _ in range(repeats)])
        except Exception as error:  # a tile that does not fit
            result[name] = repr(error)[:200]
    seconds = in_turns(graphs, ROUNDS // 2)
    return result | {name: round(1e6 * spent / repeats, 2) for name, spent in seconds.items()}


def parts() -> dict[str, Callable[[], object]]:
    """In the order of what one wants to know first."""
    first, *others = MODELS
    made: dict[str, Callable[[], object]] = {}
    for precision, dtype in PRECISIONS.items():
        made[f"turning is the same, {precision}"] = lambda d=dtype: same_turning(d)
        for parent, size in VIEWS:
            name = f"views of {size} are the same, {precision}"
            made[name] = lambda d=dtype, p=parent, s=size: same_views(d, p, s)
    made["beams and maps are the same"] = same_beams_and_maps
    made[f"{first}, half"] = lambda: fronts(first, "half", profiled=True)
    made["turning alone, half"] = lambda: turning_alone("half")
    for name in others:
        made[f"{name}, half"] = lambda n=name: fronts(n, "half", profiled=True)
    made[f"views of {first} alone"] = lambda: viewing_alone(first)
    made["views of ring alone"] = lambda: viewing_alone("ring")
    made[f"{first}, float"] = lambda: fronts(first, "float", profiled=False)
    made["turning alone, float"] = lambda: turning_alone("float")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--only", default="", metavar="TEXT", help="parts whose name has this text")
    given = parser.parse_args()
    started = time.monotonic()
    place = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    results: JsonDict = {"device": place, "torch": torch.__version__}
    chosen = {name: part for name, part in parts().items() if given.only in name}
    for name, part in chosen.items():
        begun = time.monotonic()
        if begun - started > given.seconds:
            results[name] = {"error": "no time was left"}
            continue
        try:
            with torch.inference_mode():
                results[name] = part()
                wait()
        except Exception:
            results[name] = {"error": traceback.format_exc()[-1500:]}
        results[f"seconds of {name}"] = round(time.monotonic() - begun, 1)
        with contextlib.suppress(OSError):
            given.out.write_text(json.dumps(results, indent=1), encoding="utf-8")
    given.out.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
