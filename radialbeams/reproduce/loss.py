"""The circle loss: its two surfaces, its bounds, its Lipschitz constant, and loss ↔ degrees."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from radialbeams.nn.angles import circle_loss, paper_equivalent, to_unit
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.stored import JsonDict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIAGONAL = math.sqrt(2) / 2  # re and im of the paper's z in its Lipschitz plot
POINTS = 61  # of a surface along each axis
SI_SCORE = "mean loss of 0.492 in degrees"
FLIPS = (0.0, 0.001, 0.01, 0.05, 0.1)


def terms(angles: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The two squares whose sum is the loss, on the grid angles × values."""
    unit = to_unit(angles)[:, None]  # (A, 1, 2)
    squares = (unit - values[None, :, None]).square()  # (A, V, 2)
    return squares[..., 1], squares[..., 0]  # imaginary, real


def extremes(count: int) -> dict[str, float]:
    """The largest loss on a grid: over unit vectors, and over the paper's [−1, 1]²."""
    angles = torch.linspace(0, 2 * math.pi, count, dtype=torch.float64)
    unit = circle_loss(angles[:, None], to_unit(angles)[None])
    side = torch.linspace(-1, 1, 2 * (count // 8) + 1, dtype=torch.float64)
    square = torch.stack(torch.meshgrid(side, side, indexing="ij"), dim=-1).reshape(-1, 2)
    anywhere = circle_loss(angles[:, None], square[None])
    # Where the paper looks for the maximum: re and im of the true angle exchanged.
    swapped = circle_loss(angles, to_unit(angles).flip(-1))
    return {
        "unit": unit.max().item(),
        "square": anywhere.max().item(),
        "exchanged": swapped.max().item(),
        "exchanged_at": math.degrees(angles[swapped.argmax()].item()),
        "least": unit.min().item(),
    }


def steepest(count: int, seed: int = 0) -> dict[str, float]:
    """The largest |ΔL| / |Δθ| over random pairs of angles, near and far, for two kinds of z."""
    generator = torch.Generator().manual_seed(seed)

    def uniform() -> Tensor:
        return torch.rand(count, generator=generator, dtype=torch.float64)

    first = 2 * math.pi * uniform()
    # Near pairs matter most: the constant is reached in their limit.
    second = first + 10 ** (-4 * uniform()) * torch.where(uniform() < 0.5, -1.0, 1.0)
    unit = to_unit(2 * math.pi * uniform())
    square = torch.stack((2 * uniform() - 1, 2 * uniform() - 1), dim=-1)
    slopes = {}
    for name, z in (("unit", unit), ("square", square)):
        change = (circle_loss(first, z) - circle_loss(second, z)).abs()
        slopes[name] = (change / (first - second).abs()).max().item()
    return slopes


def gradient_signs(count: int, seed: int = 0) -> dict[str, float]:
    """The share of points at which each printed partial derivative has the correct sign."""
    generator = torch.Generator().manual_seed(seed)
    angles = 2 * math.pi * torch.rand(count, generator=generator, dtype=torch.float64)
    z = 2 * torch.rand(count, 2, generator=generator, dtype=torch.float64) - 1
    angles.requires_grad_(True)
    z.requires_grad_(True)
    by_angle, by_z = torch.autograd.grad(circle_loss(angles, z).sum(), (angles, z))
    cos, sin = to_unit(angles.detach()).unbind(-1)
    re, im = z.detach().unbind(-1)
    printed = {"θ": 2 * (re * sin - im * cos), "re": 2 * (cos - re), "im": 2 * (sin - im)}
    true = {"θ": by_angle, "re": by_z[:, 0], "im": by_z[:, 1]}
    return {
        name: (printed[name].sign() == true[name].sign()).double().mean().item() for name in true
    }


def lipschitz_curves(count: int) -> dict[str, list[float]]:
    """Both sides of the inequality for θ' = 0 and the paper's z, over θ."""
    angles = torch.linspace(0, math.pi, count, dtype=torch.float64)
    z = torch.full((2,), DIAGONAL, dtype=torch.float64)
    change = (circle_loss(angles, z) - circle_loss(torch.zeros_like(angles), z)).abs()
    away = circle_loss(angles, to_unit(torch.tensor(math.pi / 2))) - 2
    return {
        "degrees": _round(torch.rad2deg(angles)),
        "change": _round(change),
        "steep": _round(away.abs()),
        "bound_2": _round(2 * angles),
        "bound_1": _round(angles),
    }


def conversion(count: int) -> dict[str, list[float]]:
    """The loss of an error, from 0° to 180°."""
    errors = torch.linspace(0, math.pi, count, dtype=torch.float64)
    loss = circle_loss(errors, to_unit(torch.zeros_like(errors)))
    return {"degrees": _round(torch.rad2deg(errors)), "loss": _round(loss)}


def with_flips(share: float) -> dict[str, float]:
    """Both error measures if a `share` of the estimates is upside down and the rest is perfect."""
    errors = torch.zeros(10_000, dtype=torch.float64)
    errors[: round(share * len(errors))] = math.pi
    return {
        "flips": share,
        "mean": math.degrees(errors.mean().item()),
        "paper_equivalent": math.degrees(paper_equivalent(errors).item()),
    }


def _round(values: Tensor) -> list[float]:
    return [round(value, 5) for value in values.tolist()]


def run(settings: ReproduceSettings, records: Records) -> Finding:
    count = settings.pick(quick=361, full=1441)
    draws = settings.pick(quick=100_000, full=10_000_000)
    angles = torch.linspace(0, 2 * math.pi, POINTS, dtype=torch.float64)
    values = torch.linspace(-1, 1, POINTS, dtype=torch.float64)
    imaginary, real = terms(angles, values)
    settings.show(1, 3, "bounds")
    bounds = extremes(count)
    settings.show(2, 3, "Lipschitz constant")
    constant, signs = steepest(draws), gradient_signs(draws // 10)
    data: JsonDict = {
        "surface": {
            "degrees": _round(torch.rad2deg(angles)),
            "values": _round(values),
            "imaginary": [_round(row) for row in imaginary],
            "real": [_round(row) for row in real],
        },
        "lipschitz": lipschitz_curves(181),
        "conversion": conversion(181),
        "flips": [with_flips(share) for share in FLIPS],
        "bounds": bounds,
        "constant": constant,
        "gradient_signs": signs,
    }
    return Finding(*conclude(data), data, seeds=[0])


def conclude(data: Record) -> Conclusion:
    bounds, constant, signs = data["bounds"], data["constant"], data["gradient_signs"]
    flips = with_flips(0.01)
    ours = {
        "upper bound, unit z": round(bounds["unit"], 6),
        "upper bound, z in [−1, 1]²": round(bounds["square"], 6),
        "Lipschitz constant in θ, unit z": round(constant["unit"], 6),
        "Lipschitz constant in θ, z in [−1, 1]²": round(constant["square"], 4),
        "loss of a 180° error": data["conversion"]["loss"][-1],
        SI_SCORE: f"{math.degrees(math.acos(1 - 0.492 / 2)):.2f}°",
        "paper-equivalent error if 1% of the answers are flips": (
            f"{flips['paper_equivalent']:.2f}°"
        ),
        "mean error if 1% of the answers are flips": f"{flips['mean']:.2f}°",
        "printed gradient has the right sign, re": f"{signs['re']:.0%}",
        "printed gradient has the right sign, θ": f"{signs['θ']:.0%}",
    }
    why = (
        "The bound 4 and the constant 2 hold for unit vectors z, which the network returns. On the "
        f"domain [−1, 1]² that the paper states they are {bounds['square']:.2f} and 2√2. The "
        "printed gradients in re(z) and im(z) have the wrong sign. Degrees that are computed from "
        "the mean loss are not a mean error."
    )
    return ours, why


def draw(record: Record) -> dict[str, Figure]:
    return {"": draw_surfaces(record["data"]), "degrees": draw_conversion(record["data"])}


def draw_surfaces(data: JsonDict) -> Figure:
    from radialbeams.reproduce import figures

    figure = figures.new(figures.PAGE, 2.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.15))
    surface = data["surface"]
    for axes, name, letter, curve in (
        (left, "imaginary", "a", "sin"),
        (middle, "real", "b", "cos"),
    ):
        grid = list(zip(*surface[name], strict=True))  # rows are values
        mesh = axes.pcolormesh(
            surface["degrees"],
            surface["values"],
            grid,
            cmap="viridis",
            vmin=0,
            vmax=4,
            shading="gouraud",
            rasterized=True,
        )
        wave = math.sin if curve == "sin" else math.cos
        turns = surface["degrees"]
        axes.plot(turns, [wave(math.radians(t)) for t in turns], color="white", lw=1)
        axes.set_xticks([0, 90, 180, 270, 360], ["0°", "90°", "180°", "270°", "360°"])
        axes.set(xlabel="true angle θ", ylabel=f"{name[:2]}(z)")
        axes.set_title(f"{letter}  ({curve} θ − {name[:2]} z)²")
        axes.grid(False)
    bar = figure.colorbar(mesh, ax=[left, middle], pad=0.01, shrink=0.9)
    bar.set_label("loss term; white: its minimum 0", fontsize=6.5)
    curves = data["lipschitz"]
    degrees = curves["degrees"]
    right.plot(degrees, curves["bound_2"], "--", color=figures.BLACK, label="2·|θ − θ′|")
    right.plot(degrees, curves["bound_1"], ":", color=figures.GREY, label="1·|θ − θ′|")
    right.plot(degrees, curves["steep"], color=figures.ORANGE, label="|ΔL|, z at 90°")
    right.plot(degrees, curves["change"], color=figures.BLUE, label="|ΔL|, z at 45°")
    right.set_xticks([0, 45, 90, 135, 180], ["0°", "45°", "90°", "135°", "180°"])
    right.set(xlabel="θ, with θ′ = 0", ylabel="loss", ylim=(0, 6.6))
    right.set_title("c  Lipschitz, K = 2")
    right.legend(loc="upper left", fontsize=6.5)
    return figure


def draw_conversion(data: JsonDict) -> Figure:
    from radialbeams.reproduce import figures

    figure = figures.new(figures.COLUMN * 1.55, 2.2)
    left, right = figure.subplots(1, 2)
    curve = data["conversion"]
    left.plot(curve["loss"], curve["degrees"], color=figures.BLUE)
    left.plot([0.492], [math.degrees(math.acos(1 - 0.492 / 2))], "o", color=figures.ORANGE)
    left.annotate(
        "SI-SCORE: 0.492\nis called 41°",
        (0.492, 41),
        xytext=(1.0, 22),
        color=figures.ORANGE,
        fontsize=7,
        arrowprops={"arrowstyle": "-", "color": figures.ORANGE, "lw": 0.6},
    )
    left.set_yticks([0, 45, 90, 135, 180])
    left.yaxis.set_major_formatter("{x:g}°")
    left.set(xlabel="circle loss", ylabel="error", xlim=(0, 4.05), ylim=(0, 183))
    left.set_title("a  loss of one error")
    rows = data["flips"]
    share = [100 * row["flips"] for row in rows]
    for name, colour, label in (
        ("paper_equivalent", figures.ORANGE, "paper's"),
        ("mean", figures.BLUE, "mean"),
    ):
        right.plot(share, [row[name] for row in rows], "o-", color=colour, label=label)
    right.yaxis.set_major_formatter("{x:g}°")
    right.xaxis.set_major_formatter("{x:g} %")
    right.set(xlabel="answers upside down", ylabel="error over all answers")
    right.set_title("b  the rest perfect")
    figures.label_ends(right, room=0.28)
    return figure


EXPERIMENT = Experiment(
    name="loss",
    claim=(
        "The circle loss is smooth across 0°, has its minima along sine and cosine, is at most 4, "
        "is Lipschitz continuous with K = 2, and can be converted into degrees"
    ),
    paper={
        "upper bound, unit z": 4,
        "upper bound, z in [−1, 1]²": 4,
        "Lipschitz constant in θ, unit z": 2,
        "loss of a 180° error": 4,
        SI_SCORE: "41°",
    },
    run=run,
    draw=draw,
    conclude=conclude,
)
