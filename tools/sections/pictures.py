"""The pictures of the results page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sections.models import with_curves
from sections.text import TITLES, Measured

# Okabe and Ito's colours, which colour-blind readers can tell apart; markers differ as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
DASHES = ("-", "--", ":", "-.")
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "radialbeams",
    "svg.fonttype": "none",
}


def look(series: int) -> dict[str, Any]:
    """Colour, marker and dashes of a series; no two of the first 49 share colour and marker."""
    turn = series // len(COLOURS)  # how often all colours have been used
    return {
        "color": COLOURS[series % len(COLOURS)],
        "marker": MARKERS[(series + turn) % len(MARKERS)],
        "linestyle": DASHES[turn % len(DASHES)],
    }


def draw_risk_coverage(entries: Sequence[Measured], folder: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    curves = with_curves(entries)
    if not curves:
        return
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
        for i, entry in enumerate(curves):
            points = sorted(entry.figures["risk_coverage"], key=lambda point: point["coverage"])
            share = [100 * point["coverage"] for point in points]
            several = sum(other.name == entry.name for other in curves) > 1
            where = TITLES.get(entry.data, entry.data)
            label = f"{entry.name}, {where}" if several else entry.name
            means = [point["mean"] for point in points]
            left.plot(share, means, label=label, markersize=5, linewidth=1.6, **look(i))
            if all("within_10" in point for point in points):
                within = [100 * point["within_10"] for point in points]
                right.plot(share, within, markersize=5, linewidth=1.6, **look(i))
        left.set(yscale="log", ylabel="mean error of these views")
        left.yaxis.set_major_locator(matplotlib.ticker.LogLocator(10, (1, 2, 5)))
        left.yaxis.set_major_formatter("{x:g}°")
        left.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        right.set(ylabel="of these, within 10°")
        right.yaxis.set_major_formatter("{x:g} %")
        for axes in (left, right):
            axes.set(xlabel="most confident share of views", xlim=(5, 103))
            axes.xaxis.set_major_formatter("{x:g} %")
            axes.grid(axis="y", color="0.9", linewidth=0.8)
            axes.set_axisbelow(True)
        columns = len(curves) if len(curves) <= 3 else math.ceil(len(curves) / 2)
        figure.legend(loc="outside upper center", ncols=columns, frameon=False)
        for ending in ("png", "svg"):
            metadata = {"Date": None} if ending == "svg" else None
            figure.savefig(folder / f"risk-coverage.{ending}", dpi=160, metadata=metadata)
        plt.close(figure)


ANGLES = (0, 20, 45)
DRAWS = 8192


def draw_leak(folder: Path, parent: int = 128) -> None:
    """White noise turned in two ways, and how much each pixel varies from draw to draw."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    import torch

    from radialbeams.nn.rotation import blur, disc, gaussian_matrix, largest_view, render, rotate

    view, kernel = largest_view(parent), gaussian_matrix(parent, 1.0)

    def same_resolution(noise: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        return rotate(noise, angle) * disc(parent)

    def leak_free(noise: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        return render(blur(noise, kernel), angle, view)

    ways = (
        (f"bilinear, same\nresolution\n({parent} px)", same_resolution, parent),
        (f"leak-free\n({view} px)", leak_free, view),
    )
    with plt.rc_context({"font.size": 11}):
        figure = plt.figure(figsize=(13, 4.5), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(1.08, 1), wspace=0.02)
        shown_in, mapped_in = left.subplots(2, 3), right.subplots(2, 3)
        for row, maps, (name, turn, size) in zip(shown_in, mapped_in, ways, strict=True):
            inside = disc(size) > 0
            middle = slice(size // 3, size - size // 3)
            row[0].text(-0.08, 0.5, name, transform=row[0].transAxes, ha="right", va="center")
            unit = None
            for view_axes, map_axes, turned in zip(row, maps, ANGLES, strict=True):
                shown, variance = _noise_views(turn, turned, parent)
                unit = variance[inside].mean() if unit is None else unit
                centre, spread = shown[inside].mean(), 2.2 * shown[inside].std()
                view_axes.imshow(
                    torch.where(inside, shown, torch.nan),
                    cmap="gray",
                    vmin=centre - spread,
                    vmax=centre + spread,
                    interpolation="nearest",
                )
                image = map_axes.imshow(
                    (variance / unit)[middle, middle],
                    cmap="viridis",
                    vmin=0.2,
                    vmax=1.05,
                    interpolation="nearest",
                )
        for axes, turned in zip((*shown_in[0], *mapped_in[0]), ANGLES * 2, strict=True):
            axes.set_title(f"{turned}°")
        for axes in (*shown_in.flat, *mapped_in.flat):
            axes.set_axis_off()
        left.suptitle("the same white noise, turned")
        right.suptitle(f"variance of each pixel over {DRAWS:,} such views, middle third")
        bar = right.colorbar(image, ax=mapped_in, aspect=24, pad=0.02)
        bar.set_label("1 = mean at 0°")
        bar.outline.set_visible(False)
        figure.savefig(folder / "leak.png", dpi=150)
        plt.close(figure)


def _noise_views(turn: Any, degrees_: float, parent: int) -> tuple[Any, Any]:
    """One view of noise turned by this angle, and each pixel's variance over DRAWS of them."""
    import torch

    angle, generator = torch.tensor([math.radians(degrees_)]), torch.Generator().manual_seed(0)
    total, squares, shown = torch.zeros(()), torch.zeros(()), None
    for _ in range(0, DRAWS, 512):
        # The draws lie in the channels, which turn alike; the seed is the same for every angle.
        noise = torch.rand(1, 512, parent, parent, generator=generator)
        views = turn(noise, angle)[0]
        total, squares = total + views.sum(0), squares + views.square().sum(0)
        shown = views[0] if shown is None else shown
    return shown, squares / DRAWS - (total / DRAWS).square()
