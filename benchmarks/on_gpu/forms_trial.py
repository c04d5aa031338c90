"""A trial of the forms of the kernels on a GPU: which are right, and which is the fastest where.

    python -m benchmarks.on_gpu.forms_trial OUT.json [--seconds 140] [--processes 14]

Processes at the same time compile everything first. Then each part is measured: µs, and how far the
largest error is from exact, as a share of the deviation. OUT.json is written after every part; a
part that fails leaves its error there, and the others go on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.on_gpu import floor
from benchmarks.on_gpu.inference import _network
from benchmarks.on_gpu.kernels_trial import Trial, _calls, _Recorded
from benchmarks.on_gpu.photos import photos
from benchmarks.on_gpu.timing import back_to_back, captured, device, give_back, in_turns, kernels
from radialbeams.front.folding import folded, with_kernels
from radialbeams.front.module import Canonicalizer
from radialbeams.front.view_geometry import ViewGeometry
from radialbeams.nn.kernels import attention, convolution, ends, pair, viewing
from radialbeams.nn.kernels.convolution import Tile
from radialbeams.nn.kernels.using import without_kernels
from radialbeams.nn.kernels.viewing import ViewTile
from radialbeams.nn.ring_network import RingBIC, RingConfig
from radialbeams.stored import JsonDict

HALF, FLOAT = torch.float16, torch.float32
NAMES = {HALF: "half", FLOAT: "float", torch.bfloat16: "bfloat16"}
SHORT = 0.03  # seconds to time one case
WARMING = 0.5  # of the time
FEWER = 40  # beams of another `ring`
# maps, channels, warps of `with_whole` for few views
WHOLES: tuple[tuple[int, int, int], ...] = (
    (64, 256, 8),
    (64, 64, 4),
    (64, 128, 4),
    (64, 256, 4),
    (32, 256, 8),
    (32, 128, 4),
)
WHOLES += ((128, 128, 8), (256, 64, 8), (128, 64, 4), (16, 256, 8))
ATTENTIONS = ((1, 4), (1, 2), (1, 1), (1, 8), (2, 4), (2, 2), (4, 4))  # heads, warps
VIEWS = tuple(
    ViewTile(*tile)
    for tile in (
        *((64, 64, 32, 8, 3), (128, 64, 64, 8, 2), (64, 64, 64, 8, 3), (128, 64, 32, 8, 3)),
        *((128, 128, 64, 8, 2), (256, 64, 32, 8, 2), (128, 32, 64, 8, 4), (256, 32, 32, 8, 3)),
        *((128, 64, 64, 8, 3), (128, 64, 16, 8, 3)),
    )
)
COMPARED = VIEWS[1]  # in all layouts
SIDES = (150, 151, 160, 224, 300)
PARENTS = ((176, 79), (128, 57))  # and views, in pixels
TILES = tuple(
    Tile(*tile)
    for tile in (
        *((64, 32, 64, 4, 4), (64, 64, 64, 4, 3), (64, 64, 64, 4, 4), (128, 64, 64, 4, 3)),
        *((128, 64, 64, 8, 3), (64, 128, 64, 4, 3), (128, 128, 64, 8, 3), (32, 64, 64, 4, 4)),
        *((64, 64, 128, 4, 3), (128, 32, 64, 4, 4), (64, 32, 128, 4, 3), (128, 64, 64, 4, 4)),
        *((64, 64, 32, 4, 4), (64, 128, 64, 8, 4)),
    )
)
WIDE_PAIRS = (Tile(64, 64, 64, 8, 3), Tile(64, 64, 64, 4, 3), Tile(32, 64, 64, 4, 3))


class Case(NamedTuple):
    """One form: what it changes, what it computes, and the exact result if there is one."""

    name: str
    call: Callable[[], Any]
    module: Any = None
    changes: JsonDict | None = None
    exact: Callable[[], Tensor] | None = None
    compiles: bool = True
    seconds: float = SHORT

    def changed(self) -> Any:
        return patch.multiple(self.module, **self.changes) if self.changes else nullcontext()


Cases = Iterator[Case]


def wholes() -> Cases:
    sizes = ((64, 48, 256), (64, FEWER, 256), (1, 48, 256), (4096, 48, 256))
    for dtype, count, beams, channels in (
        *((HALF, *size) for size in (*sizes, (64, 32, 128), (4096, 32, 128))),
        *((FLOAT, *size) for size in ((64, 32, 128), (4096, 32, 128), (4096, 48, 256))),
    ):
        x = torch.randn(count, beams, 1, channels, device=device()).to(dtype)
        weight = (torch.randn(channels, channels, device=device()) / channels**0.5).to(dtype)
        bias = torch.randn(channels, device=device()).to(dtype)

        def exact(x: Tensor = x, weight: Tensor = weight, bias: Tensor = bias) -> Tensor:
            mean = x.double().mean(1, keepdim=True)
            return x.double() + mean @ weight.double() + bias.double()

        call = lambda x=x, weight=weight, bias=bias: ends.with_whole(x, weight, bias)  # noqa: E731
        text = f"{NAMES[dtype]} {count}x{beams}x{channels}"
        if dtype == HALF:
            yield Case(f"{text} many", call, ends, {"ENOUGH": 0}, exact)
        for maps, step, warps in WHOLES:
            changes = {"ENOUGH": 1 << 30, "MAPS": maps, "CHANNELS": step, "FEW_WARPS": warps}
            if maps <= channels and step <= channels:
                yield Case(f"{text} {(maps, step, warps)}", call, ends, changes, exact)


def attentions() -> Cases:
    for dtype, count, beams in (
        *((HALF, *size) for size in ((64, 48), (64, FEWER), (1, 48), (4096, 48))),
        *((FLOAT, *size) for size in ((64, 48), (4096, 48))),
    ):
        projected = torch.randn(count, beams, 1, 768, device=device()).to(dtype)
        bias = torch.randn(8, beams, beams, device=device()).to(dtype)
        text = f"{NAMES[dtype]} {count}x{beams}"
        exact = lambda p=projected, b=bias: _by_torch(p.float(), b.float())  # noqa: E731
        plain = lambda p=projected, b=bias: _by_torch(p, b)  # noqa: E731
        call = lambda p=projected, b=bias: attention.attended(p, b)  # noqa: E731
        yield Case(f"{text} torch", plain, exact=exact, compiles=False)
        for heads, warps in ATTENTIONS:
            changes = {"HEADS": heads, "WARPS": warps}
            yield Case(f"{text} {(heads, warps)}", call, attention, changes, exact)


def _by_torch(projected: Tensor, bias: Tensor) -> Tensor:
    count, beams = projected.shape[:2]
    parts = projected.reshape(count, beams, 3, len(bias), -1).permute(2, 0, 3, 1, 4)
    heads = F.scaled_dot_product_attention(*parts.unbind(), attn_mask=bias[None])
    return heads.transpose(1, 2).reshape(count, beams, 1, -1)


def views() -> Cases:
    for parent, size in PARENTS:
        for dtype in (HALF, FLOAT):
            for tile in VIEWS if dtype == HALF else VIEWS[:2]:
                name = f"{size} {NAMES[dtype]} {tuple(tile)}"
                yield _view(name, parent, size, 224, dtype, tile, "whole", 64)


def views_everywhere() -> Cases:
    """The new tile in all layouts."""
    for parent, size in PARENTS:
        for dtype in (HALF, FLOAT):
            for side in SIDES:
                for form in ("whole", "cut", "channels last"):
                    name = f"{size} {NAMES[dtype]} {side} {form}"
                    yield _view(name, parent, size, side, dtype, COMPARED, form, 4)


def _view(
    name: str, parent: int, size: int, side: int, dtype: torch.dtype, tile: Any, form: str, n: int
) -> Case:
    geometry = ViewGeometry(size, 3, parent).to(device())
    wide = photos(4, 3, side + 10)[..., :side, :].repeat(n // 4, 1, 1, 1).to(device(), dtype)
    images = wide if form == "cut" else wide[..., :side].contiguous()
    if form == "channels last":
        images = images.contiguous(memory_format=torch.channels_last)

    def exact() -> Tensor:
        with without_kernels():
            return geometry(images)

    changes = {"tile_for": lambda _size: tile}
    return Case(name, lambda: geometry(images), viewing, changes, exact)


def layers() -> Cases:
    for call in _calls("ring", 64):
        if call.name != "convolution":
            continue
        yield Case(f"{call.text} x{call.times} own", call)
        for tile in TILES:
            changes = {"tile_for": lambda _r, c, _m, t=tile: _stepped(t, c)}
            name = f"{call.text} x{call.times} {tuple(tile)[:5]}"
            yield Case(name, call, convolution, changes, lambda call=call: call())


def _stepped(tile: Tile, channels: int) -> Tile:
    return tile._replace(channels=convolution.step_for(channels, tile.channels))


def networks() -> Cases:
    """In both precisions, with and without kernels, against the exact logits of photos."""
    for model in ("general", "ring.coil100", "ring"):
        config = _network(model, FLOAT, "cpu").config
        for dtype in (FLOAT, HALF):
            network = _network(model, dtype)
            for batch in (4096, 64, 1):
                shown = photos(min(batch, 64), config.channels, config.view_size).to(device())
                given = shown.repeat(batch // len(shown), 1, 1, 1)
                given = given if dtype == FLOAT else given.half()
                exact = lambda m=model, s=shown, b=batch: _exact(m, s)  # noqa: E731
                for name in ("kernels", "plain"):
                    plain = name == "plain"
                    if plain and model == "general" and batch > 64:
                        continue  # cuDNN takes long to choose, and it is known to be slower
                    call = lambda n=network, v=given, p=plain: _logits(n, v, p)  # noqa: E731
                    yield Case(
                        f"{model} {NAMES[dtype]} {batch} {name}",
                        *(call, None, None, exact if batch == 64 else None, not plain, 0.2),
                    )


def _logits(network: Any, given: Tensor, plain: bool) -> Tensor:
    with without_kernels() if plain else nullcontext():
        logits: Tensor = network(given)[0]
    return logits


def _exact(model: str, given: Tensor) -> Tensor:
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        return _logits(_network(model, FLOAT), given, True)
    finally:
        torch.backends.cudnn.allow_tf32 = before


def floors() -> Iterator[tuple[str, Any]]:
    for dtype in (FLOAT, HALF):
        speed = floor.speeds(dtype)
        for model in ("general", "ring.coil100", "ring"):
            network = _network(model, FLOAT, "cpu")
            config = network.config
            shape = (2, config.channels, config.view_size, config.view_size)
            found = floor.layers(network, torch.rand(shape))
            least = floor.seconds(found, 4096, dtype.itemsize, speed)["layers"]
            yield f"{model} {NAMES[dtype]} 4096", round(1e6 * least, 1)


def fronts() -> Cases:
    """`ring` in front of a model, as in `benchmarks.on_gpu.front`, and its kernels."""
    images = torch.rand(64, 3, 224, 224, device=device(), dtype=HALF)
    for name in ("ring", "ring.coil100", f"ring with {FEWER} beams"):
        module = _front(name)
        call = lambda m=module, x=images: m(x)  # noqa: E731
        # The others are compiled with `networks` and `views`.
        yield Case(name, call, compiles=" " in name, seconds=0.3)
        sizes = (module.view_geometry.view_size,)
        for tile in VIEWS[:4] if sizes[0] > 64 else VIEWS[:2]:
            yield Case(
                f"{name}, views by {tuple(tile)}",
                *(call, viewing, {"tile_for": lambda _size, t=tile: t}),
                compiles=False,
                seconds=0.3,
            )
        if name == "ring":
            for wide in WIDE_PAIRS:
                table = {"TILES": {**pair.TILES, 256: wide}}
                text = f"{name}, pairs by {tuple(wide)}"
                yield Case(text, call, pair, table, compiles=False, seconds=0.3)


def _front(name: str) -> Any:
    made = Canonicalizer.from_pretrained(
        name.split()[0], abstain=None, snap="none", returns="image"
    )
    ready: Any = made.for_inference(HALF)
    if " " in name:
        stored = ready.network.config.to_dict()
        network = RingBIC(RingConfig.from_dict(stored | {"num_beams": FEWER})).eval()
        ready.network = folded(network).to(HALF)
        ready.network.beams.float()
        with_kernels(ready.network)
    return ready.to(device(), memory_format=torch.channels_last)


# --- how the cases are run ---

SECTIONS: dict[str, Callable[[], Cases]] = {
    "networks": networks,  # first, because each compiles most
    "fronts": fronts,
    "layers of ring, batch 64": layers,
    "with_whole": wholes,
    "attention": attentions,
    "views": views,
    "views everywhere": views_everywhere,
}


def measured(case: Case) -> JsonDict:
    exact = case.exact() if case.exact else None
    with case.changed():
        y = case.call()
        row: JsonDict = {}
        if exact is not None and isinstance(y, Tensor):
            apart = (y.double() - exact.double()).abs()
            row["largest"] = float(f"{float(apart.max() / exact.double().std()):.2g}")
            rms = apart.square().mean().sqrt() / exact.double().std()
            row["typical"] = float(f"{float(rms):.2g}")
        del y, exact
        row["us"] = float(f"{1e6 * back_to_back(captured(case.call), case.seconds):.4g}")
    return row


@torch.inference_mode()
def rows(cases: Callable[[], Cases]) -> Iterator[tuple[str, Any]]:
    for case in cases():
        try:
            yield case.name, measured(case)
        except Exception as error:  # of this form: too large, say
            yield case.name, f"{type(error).__name__}: {error}"[:160]
        if case.seconds > SHORT:
            give_back()


@torch.inference_mode()
def warm(part: int, of: int, until: float) -> None:
    """Compiles every so many-th case."""
    number = -1
    for cases in SECTIONS.values():
        for case in cases():
            number += case.compiles
            if not case.compiles or number % of != part:
                continue
            if time.monotonic() > until:
                return
            try:
                with case.changed():
                    case.call()
            except Exception as error:  # it is reported where the case is measured
                print(case.name, repr(error)[:200], flush=True)
            give_back()


@torch.inference_mode()
def best_tiles(found: JsonDict) -> Iterator[tuple[str, Any]]:
    """The front with the best tile of each layer."""
    chosen: dict[tuple[int, int, int], dict[Tile, float]] = {}
    own: dict[str, float] = {}
    for call in _calls("ring", 64):
        if call.name == "convolution":
            text = f"{call.text} x{call.times} "
            key = _key(call)
            for name, row in found.items():
                if name.startswith(text) and isinstance(row, dict) and row.get("largest", 1) < 0.02:
                    tile = _stepped(Tile(*map(int, name[len(text) + 1 : -1].split(","))), key[1])
                    spent = chosen.setdefault(key, {})
                    spent[tile] = spent.get(tile, 0) + call.times * row["us"]
            if isinstance(found.get(text + "own"), dict):
                own[str(key)] = own.get(str(key), 0) + call.times * found[text + "own"]["us"]
    for key, spent in chosen.items():
        ranked = sorted((us, tuple(tile)[:5]) for tile, us in spent.items())
        yield str(key), {"own": round(own.get(str(key), 0), 1), "best": ranked[:5]}
    best = {key: min(spent, key=spent.__getitem__) for key, spent in chosen.items()}
    usual = convolution.tile_for
    module = _front("ring")
    images = torch.rand(64, 3, 224, 224, device=device(), dtype=HALF)
    forms = {"own": captured(lambda: module(images))}
    changes: JsonDict = {"tile_for": lambda r, c, m: best.get((r, c, m)) or usual(r, c, m)}
    with patch.multiple(convolution, **changes):
        forms["best"] = captured(lambda: module(images))
    with (
        patch.multiple(convolution, **changes),
        patch.object(viewing, "tile_for", lambda _: COMPARED),
    ):
        forms["best, and of views"] = captured(lambda: module(images))
    yield "front, us", {k: round(1e6 * v, 1) for k, v in in_turns(forms, 40).items()}
    yield "kernels", kernels(lambda: module(images), 12)


def _key(call: _Recorded) -> tuple[int, int, int]:
    y, x = call(), call.args[0]
    return y.numel() // y.shape[3], x.shape[3], y.shape[3]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=140)
    parser.add_argument("--processes", type=int, default=14, help="that compile (default: 14)")
    parser.add_argument("--sections", nargs="*", default=list(SECTIONS))
    parser.add_argument("--warm", type=float, nargs=3, metavar=("PART", "OF", "SECONDS"))
    options = parser.parse_args()
    for name in set(SECTIONS) - set(options.sections):
        del SECTIONS[name]
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    if options.warm:
        part, of, seconds = options.warm
        warm(int(part), int(of), time.monotonic() + seconds)
        return
    trial = Trial(options.out, options.seconds)
    compile_all(options)
    for name, cases in SECTIONS.items():
        trial.part(name, lambda cases=cases: rows(cases))  # type: ignore[misc]
        if name.startswith("layers"):
            found = trial.results[name]
            trial.part("best tiles", lambda found=found: best_tiles(found))  # type: ignore[misc]
        if name == "networks":
            trial.part("floors", floors)
    summarise(trial.results)


def summarise(results: JsonDict) -> None:
    """Prints the fastest forms of each group that are right, and the networks in floors."""
    for name in ("with_whole", "attention", "views", "views everywhere"):
        groups: dict[str, list[tuple[float, str]]] = {}
        for text, row in results.get(name, {}).items():
            if isinstance(row, dict):
                group, form = text.rsplit(" (" if "(" in text else " ", 1)
                wrong = f" OFF BY {row['largest']}" if row.get("largest", 0) > 0.02 else ""
                groups.setdefault(group, []).append((row["us"], form + wrong))
        for group, forms in groups.items():
            print(name, group, *sorted(forms)[:4], [form for form in forms if "OFF" in form[1]])
    for name in ("fronts", "networks", "floors"):
        for text, row in results.get(name, {}).items():
            print(name, text, row)
    for text, row in results.get("best tiles", {}).items():
        print("tiles", text, row)


def compile_all(options: argparse.Namespace) -> None:
    limit = WARMING * options.seconds
    running = []
    for part in range(options.processes):
        command = [sys.executable, "-m", "benchmarks.on_gpu.forms_trial", str(options.out)]
        command += ["--sections", *options.sections]
        command += ["--warm", str(part), str(options.processes), str(limit - 8)]
        running.append(subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}))
    until = time.monotonic() + limit
    for process in running:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    print(f"compiled until {limit - until + time.monotonic():.0f} s", flush=True)


if __name__ == "__main__":
    main()
