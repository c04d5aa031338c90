"""The figures of `beam-length`, from its JSON alone."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from radialbeams.nn.rotation import PADDINGS
from radialbeams.reproduce import figures
from radialbeams.reproduce.beam_length import DATA, LABELS, LENGTHS, find
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.thumbnails import decode
from radialbeams.stored import JsonDict, JsonFields


def draw(record: Record) -> dict[str, Figure]:
    data = record["data"]
    return {"": draw_lengths(data), "leak": draw_leak(data)}


def _colours() -> dict[str, str]:
    return {"A": figures.GREEN, "B": figures.BLUE, "C": figures.ORANGE}


def draw_lengths(data: JsonDict) -> Figure:
    figure = figures.new(figures.PAGE, 4.4)
    (*pictures, shares), (coil, lfw, dots) = figure.subplots(2, 3)
    lfw.sharey(coil)
    for axes, padding, letter in zip(pictures, PADDINGS, "ab", strict=True):
        _draw_picture(axes, data["drawing"], padding)
        axes.set_title(f"{letter}  lengths on {LABELS[padding]}")
    positions = range(len(LENGTHS))
    for shift, (name, title) in zip((-0.2, 0.2), DATA.items(), strict=True):
        values = [100 * data["padding"][name][length]["mean"] for length in LENGTHS]
        colour = figures.BLUE if name == "coil100" else figures.YELLOW
        shares.bar([p + shift for p in positions], values, 0.36, color=colour, label=title)
    shares.set_xticks(positions, LENGTHS)
    shares.yaxis.set_major_formatter("{x:g} %")
    shares.set_title("c  samples that read padding")
    shares.grid(axis="x", visible=False)
    shares.legend(loc="upper left")
    for axes, (name, title), letter in zip((coil, lfw), DATA.items(), "de", strict=True):
        for length, colour in _colours().items():
            for padding, line in (("zeros", "-"), ("corner", "--")):
                curve = data["curves"].get(f"{name}-{length}-{padding}")
                if curve is not None:
                    figures.band(axes, curve["step"], curve["test"], colour, line)
        axes.set(yscale="log", xlabel="training steps")
        axes.set_title(f"{letter}  {title}, test")
    figures.plain_log(coil.yaxis)
    coil.set_ylabel("circle loss")
    _draw_swapped(dots, data["cells"], data["shipped"])
    handles = {f"length {name}": colour for name, colour in _colours().items()}
    figures.legend_above(figure, handles, {LABELS["zeros"]: "-", LABELS["corner"]: "--"})
    return figure


def _draw_picture(axes: Axes, drawn: JsonDict, padding: str) -> None:
    image = decode(drawn[padding])
    centre = (len(image) - 1) / 2
    axes.imshow(image)
    figures.picture(axes)
    for (name, length), colour in zip(drawn["lengths"].items(), _colours().values(), strict=True):
        corner = centre - length
        axes.add_patch(
            Rectangle((corner, corner), 2 * length, 2 * length, fill=False, ec=colour, lw=1.6)
        )
        axes.text(
            corner + 2,
            corner + 2,
            name,
            color="white",
            va="top",
            fontsize=7,
            bbox={"facecolor": colour, "edgecolor": "none", "pad": 1},
        )


def _draw_swapped(axes: Axes, cells: Sequence[Record], pretrained: JsonFields) -> None:
    """A line for each model, from its error on the training's padding to that on the other."""
    rows: list[tuple[str, str, float, float]] = []  # label, length, before, after
    for data, title in DATA.items():
        for cell in (find(cells, data, "B", "zeros"), find(cells, data, "C", "zeros")):
            after = cell["mean_swapped"]["mean"]
            label = f"{title}, {cell['length']}"
            rows.append((label, cell["length"], cell["mean"]["mean"], after))
        errors = pretrained[data]
        rows.append((f"bic.{data}", "B", errors["zeros"]["mean"], errors["corner"]["mean"]))
    for y, (_, length, before, after) in enumerate(rows):
        colour = _colours()[length]
        axes.plot([before, after], [y, y], color=colour, lw=1)
        axes.plot([before], [y], "o", color=colour)
        axes.plot([after], [y], "o", color=colour, mfc="white")
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.set(ylim=(len(rows) - 0.5, -0.5), xscale="log", xlabel="mean error")
    axes.set_xlim(0.2, 130)
    axes.set_xticks([0.3, 1, 3, 10, 30, 90])
    axes.xaxis.set_major_formatter("{x:g}°")
    axes.minorticks_off()
    axes.grid(axis="y", visible=False)
    axes.set_title("f  ● on black, ○ on adaptive")


def draw_leak(data: JsonDict) -> Figure:
    """How well networks read the angle off white noise: ours by length, and those of `leaks`."""
    cited = [
        (f"{leak['rendering']}, {leak['canary']}", leak["rho4"], leak["rho1"])
        for leak in data["measured_leaks"]
    ]
    own = []
    for name, result in data["canaries"].items():
        protocol, length = name.split("-")
        words = f"length {length}" if protocol == "paper" else "leak-free views"
        own.append((words, result["rho4"][0], result["rho1"][0]))
    figure = figures.new(figures.PAGE, 2.3)
    panels = figure.subplots(1, 2 if cited else 1, squeeze=False)[0]
    _bars(panels[0], own)
    panels[0].set_title("a  the paper's network on white noise")
    if cited:
        _bars(panels[1], cited)
        panels[1].set_title("b  canaries of `radialbeams leaks`")
    for axes in panels:
        axes.set(xlabel="1: the angle is read; 0: chance", xlim=(-0.08, 1.05))
        axes.axvline(0, color="0.3", lw=0.7)
        axes.grid(axis="y", visible=False)
    figures.legend_above(
        figure,
        {"ρ₄: modulo 90°": figures.ORANGE, "ρ₁: the whole angle": figures.BLUE},
        {},
    )
    return figure


def _bars(axes: Axes, rows: Sequence[tuple[str, float, float]]) -> None:
    for y, (_, fourfold, whole) in enumerate(rows):
        axes.barh(y - 0.18, fourfold, 0.34, color=figures.ORANGE)
        axes.barh(y + 0.18, whole, 0.34, color=figures.BLUE)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
