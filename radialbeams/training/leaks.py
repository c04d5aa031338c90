"""The canary: a network trained to predict the angle of views that have no content.

Noise has no upright direction. If a network predicts the angle of rotated noise, it uses traces of
the rotation: interpolation, borders, block grids. ρ_k = mean cos k(prediction − truth) is 0 at
chance. ρ₄ near 1 means that views reveal the angle modulo 90°, ρ₁ near 1 that they reveal it fully.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypedDict

import numpy as np
import torch
from torch import Tensor, nn

from radialbeams.nn.angles import circle_loss, to_unit
from radialbeams.nn.posterior import answer, posterior, ring_loss
from radialbeams.nn.ring_network import RingBIC, RingConfig
from radialbeams.nn.rotation import disc, rotate
from radialbeams.training.noise import JPEG_NOISES, NOISES, Noise, NoiseSource
from radialbeams.training.process import one_thread, random_numbers_kept
from radialbeams.training.views import LeakfreeViews, PaperViews

Rendering = Literal["leakfree", "paper", "bilinear"]
# `bilinear` is the paper's rotation without its border: the same resolution, only the disc.
RENDERINGS: tuple[Rendering, ...] = ("leakfree", "paper", "bilinear")
Render = Callable[[Tensor, Tensor], Tensor]

Canary = Literal["ring", "cnn"]
CANARIES: tuple[Canary, ...] = ("ring", "cnn")

BEAMS = 64
PARENT = 128

CHANCE = 0.05  # |ρ| below this is chance, whose deviation is 0.011 with 4,096 test views
ALERT = 0.5  # ρ₄ that a canary must reach on the control; below it, it could miss a leak


class CanaryEffort(TypedDict):
    """How long a canary is trained, and on what."""

    views: int
    parent: int
    batch: int
    small: bool
    fourfold: float


# As used for results/leaks, on a GPU.
FULL: CanaryEffort = {
    "views": 600_000,
    "parent": 128,
    "batch": 512,
    "small": False,
    "fourfold": 5.0,
}
# A ring takes a minute on one CPU core, and still finds a leak: bilinear views reach ρ₄ > 0.6.
QUICK: CanaryEffort = {"views": 20_000, "parent": 64, "batch": 32, "small": True, "fourfold": 5.0}


@dataclass(frozen=True)
class Leak:
    """How much of the angle one canary predicted from one kind of noise."""

    rendering: str
    canary: str
    noise: str
    views: int  # seen in training
    test_views: int
    rho4: float
    rho4_low: float  # 95 % bootstrap interval
    rho4_high: float
    rho1: float
    rho1_low: float
    rho1_high: float

    def record(self) -> dict[str, str | int | float]:
        """What `radialbeams leaks --json` prints."""
        fields = asdict(self)
        return {"protocol": fields.pop("rendering"), **fields}

    def row(self) -> str:
        """The line that `radialbeams leaks` prints without --json: each ρ with its interval."""
        rho4 = f"{self.rho4:+.3f} [{self.rho4_low:+.3f}, {self.rho4_high:+.3f}]"
        rho1 = f"{self.rho1:+.3f} [{self.rho1_low:+.3f}, {self.rho1_high:+.3f}]"
        names = f"{self.rendering:<10}{self.canary:<8}{self.noise:<9}"
        return f"{names}{rho4:<25}{rho1:<25}{self.views:>7}"


class PlainCNN(nn.Module):
    """Not equivariant, on pixels: it can find traces that polar sampling would hide."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for maps, stride in ((width, 1), (2 * width, 2), (2 * width, 1), (4 * width, 2)):
            layers += [nn.Conv2d(channels, maps, 3, stride, 1, bias=False), nn.BatchNorm2d(maps)]
            layers += [nn.ReLU()]
            channels = maps
        self.features = nn.Sequential(*layers)
        # Traces at a border depend on position, so the map is pooled to 4 × 4, not to one vector.
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(64 * width, 256),
            nn.BatchNorm1d(256),  # without it, this layer's activations die on views without a leak
            nn.ReLU(),
            nn.Linear(256, 2 * BEAMS),
        )

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        logits, offsets = self.head(self.features(views)).float().chunk(2, dim=-1)
        return logits, torch.tanh(offsets)


def make_canary(kind: Canary, view_size: int, *, small: bool) -> nn.Module:
    if kind == "cnn":
        return PlainCNN(3, 12 if small else 32)
    config = RingConfig(
        view_size=view_size,
        num_beams=BEAMS,
        beam_length=32,
        epsilon=0,
        sampler="polar",
        stem=24 if small else 48,
        stages=(32, 48) if small else (64, 96),
        width=64 if small else 128,
    )
    return RingBIC(config)


def renderer(
    rendering: Rendering | Render, parent: int = PARENT, device: torch.device | None = None
) -> tuple[Render, int]:
    """The function that renders noise to views, and the side of those views."""
    if callable(rendering):
        return rendering, _view_size(rendering, parent, device)
    if rendering == "leakfree":
        views = LeakfreeViews()
        return views.render, views.size(parent)
    if rendering == "paper":
        return PaperViews().render, PaperViews().size(parent)
    if rendering == "bilinear":
        return _same_resolution, parent
    raise ValueError(f"protocol must be one of {', '.join(RENDERINGS)}; got {rendering!r}.")


def _view_size(render: Render, parent: int, device: torch.device | None) -> int:
    black = torch.zeros(2, 3, parent, parent, dtype=torch.uint8, device=device)
    views = render(black, torch.zeros(2, device=device))
    shape = tuple(views.shape)
    if (
        len(shape) != 4
        or shape[:2] != (2, 3)
        or shape[2] != shape[3]
        or not views.is_floating_point()
    ):
        raise ValueError(
            "render must turn bytes (N, 3, W, W) and radians (N,) into square float views "
            f"(N, 3, S, S) in [0, 1]; from (2, 3, {parent}, {parent}) it made {shape} of "
            f"{views.dtype}. Convert or crop them before they are returned."
        )
    return shape[3]


def _same_resolution(parents: Tensor, angles: Tensor) -> Tensor:
    return rotate(parents.float() / 255, angles) * disc(parents.shape[-1], parents.device)


def measure_leak(
    rendering: Rendering | Render,
    canary: Canary,
    noise: Noise,
    *,
    views: int = FULL["views"],
    parent: int = FULL["parent"],
    batch: int = FULL["batch"],
    small: bool = FULL["small"],
    fourfold: float = FULL["fourfold"],
    test_views: int = 4096,
    learning_rate: float = 3e-3,
    seed: int = 0,
    device: torch.device,
    on_progress: Callable[[int, str], None] | None = None,
) -> Leak:
    """Trains one canary on fresh noise and measures it on unseen noise.

    `rendering` is one of RENDERINGS or your own function. It takes bytes (N, 3, W, W) and radians
    (N,), counter-clockwise, and returns float views (N, 3, S, S) in [0, 1] on the same device. The
    report shows the function's name.

        def mine(parents, angles):
            turned = [rotate(image, a) for image, a in zip(parents, angles.rad2deg().tolist())]
            return torch.stack(turned).float() / 255
        leak = measure_leak(mine, "cnn", "white", device=torch.device("cpu"), **QUICK)
        print(leak.rendering, leak.rho4)  # 0 is chance; 1 reveals the angle modulo 90°

    `fourfold` weights a second loss for the angle modulo 90°, since a square grid reveals no more
    than that. With it, a canary learns from thousands of views; without it, the small CNN learned
    nothing from 12,000 bilinear views of 64 px.
    """
    name = _name(rendering)
    with random_numbers_kept(device), one_thread(small and device.type == "cpu"):
        torch.manual_seed(seed)
        generator = torch.Generator(device).manual_seed(seed + 1)
        render, view_size = renderer(rendering, parent, device)
        model = make_canary(canary, view_size, small=small).to(device)
        if device.type == "cuda":  # the layout in which half-precision convolutions are fast
            model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        steps = max(1, math.ceil(views / batch))
        optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, learning_rate, steps, pct_start=0.1
        )
        draw = NoiseSource(noise, parent, generator)
        for step in range(steps):
            rendered, angles = _views(draw, render, batch, generator)
            with torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda"):
                logits, offsets = model(rendered)
                loss = ring_loss(angles, logits, offsets)[0].mean()
                if fourfold:
                    loss = loss + fourfold * _fourfold_loss(angles, logits, offsets).mean()
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if on_progress is not None:
                on_progress((step + 1) * batch, f"{name} {canary} {noise}")
        unseen = NoiseSource(noise, parent, torch.Generator(device).manual_seed(seed + 2))
        errors = _errors(model.eval(), unseen, render, test_views, batch, generator)
        rho4, rho1 = rho(errors, 4), rho(errors, 1)
    return Leak(name, canary, noise, steps * batch, len(errors), *rho4, *rho1)


def _name(rendering: Rendering | Render) -> str:
    if isinstance(rendering, str):
        return rendering
    return str(getattr(rendering, "__name__", type(rendering).__name__))


def _fourfold_loss(angles: Tensor, logits: Tensor, offsets: Tensor) -> Tensor:
    """The circle loss of four times the angle, against the posterior's fourth moment."""
    predicted = posterior(logits, offsets)
    mass = predicted.log_probabilities.exp()[..., None]
    return circle_loss(4 * angles, (mass * to_unit(4 * predicted.angles)).sum(-2))


@torch.no_grad()
def _views(
    draw: Callable[[int], Tensor],
    render: Render,
    count: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    angles = torch.rand(count, generator=generator, device=generator.device) * (2 * math.pi)
    return render(draw(count), angles), angles


@torch.no_grad()
def _errors(
    model: nn.Module,
    draw: Callable[[int], Tensor],
    render: Render,
    count: int,
    batch: int,
    generator: torch.Generator,
) -> np.ndarray:
    errors = []
    for _ in range(math.ceil(count / batch)):
        rendered, angles = _views(draw, render, batch, generator)
        errors.append(answer(posterior(*model(rendered))) - angles)
    return torch.cat(errors).double().cpu().numpy()


def rho(errors: np.ndarray, k: int, *, samples: int = 1000) -> tuple[float, float, float]:
    """ρ_k and its 95 % bootstrap interval over the test views."""
    cosines = np.cos(k * errors)
    rows = np.random.default_rng(0).integers(len(cosines), size=(samples, len(cosines)))
    low, high = np.quantile(cosines[rows].mean(1), (0.025, 0.975))
    return float(cosines.mean()), float(low), float(high)


# --- what `radialbeams leaks` runs and prints ----------------------------------------------------


def grid(
    rendering: str | None, canary: str | None, noises: Sequence[str], *, quick: bool
) -> list[tuple[Rendering, Canary, Noise]]:
    """The combinations to measure; None and empty mean all. A quick run includes its control."""
    control = quick and rendering is None
    return [
        (candidate, network, kind)
        for candidate in RENDERINGS
        for kind in (*NOISES, *JPEG_NOISES)
        for network in CANARIES
        if candidate == (rendering or "leakfree") or (control and candidate == "bilinear")
        if kind in (noises or (NOISES[:1] if quick else NOISES))
        if network == (canary or network)
    ]


def verdict(leaks: Sequence[Leak]) -> str:
    """What the figures mean: one sentence for each rendering."""
    sentences = []
    for rendering in dict.fromkeys(leak.rendering for leak in leaks):
        same_rendering = [leak for leak in leaks if leak.rendering == rendering]
        worst = max(max(abs(leak.rho4), abs(leak.rho1)) for leak in same_rendering)
        if rendering == "bilinear" and min(leak.rho4 for leak in same_rendering) < ALERT:
            sentences.append(
                f"bilinear: a canary reached less than ρ₄ = {ALERT} on views that are known to "
                "leak, so it was trained too briefly to find other leaks. Use more --views."
            )
        elif worst > CHANCE:
            sentences.append(f"{rendering}: the views give the angle away, |ρ| up to {worst:.2f}.")
        else:
            sentences.append(
                f"{rendering}: the views do not give the angle away, |ρ| ≤ {worst:.2f} "
                f"(chance is below {CHANCE})."
            )
    return "\n".join(sentences)
