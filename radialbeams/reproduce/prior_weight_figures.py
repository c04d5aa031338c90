"""The figure of `prior-weight`: errors and shifts over the weight, and the gradients' cosine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from radialbeams.reproduce import figures
from radialbeams.reproduce.experiment import Record
from radialbeams.reproduce.prior_weight import PROTOCOLS, WEIGHTS, WeightKind
from radialbeams.reproduce.prior_weight_measures import PLACES
from radialbeams.training.views import Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OFF = min(WEIGHTS) / 10  # stands for no prior on the logarithmic axis
DASHES = {0.0: ":", min(WEIGHTS): "--", max(WEIGHTS): "-"}  # of the cosines, by weight
COLOURS = {"before": figures.BLUE, "after": figures.ORANGE}
TITLES = {"paper": "paper's views", "leakfree": "leak-free views"}


def draw(record: Record) -> dict[str, Figure]:
    cells = record["data"]["cells"]
    trained = {cell["protocol"] for cell in cells.values() if cell["seeds"]}
    protocols = [protocol for protocol in PROTOCOLS if protocol in trained] or PROTOCOLS
    figure = figures.new(figures.PAGE, 4.6)
    panels = figure.subplots(3, len(protocols), sharex="row", sharey="row", squeeze=False)
    for column, protocol in enumerate(protocols):
        _over_weights(panels[0, column], cells, protocol, "cyclic")
        _over_weights(panels[1, column], cells, protocol, "shifts")
        _cosines(panels[2, column], cells, protocol)
        panels[0, column].set_title(f"{'ab'[column]}  {TITLES[protocol]}")
        panels[1, column].set_xlabel("weight of the prior")
        panels[2, column].set_xlabel("training steps")
    panels[0, 0].set_ylabel("mean error on C_B")
    panels[0, 0].set_ylim(0, 1.1 * panels[0, 0].get_ylim()[1])
    panels[0, 0].yaxis.set_major_formatter("{x:g}°")
    panels[1, 0].set_ylabel("shifts found")
    panels[1, 0].yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    panels[2, 0].set_ylabel("cosine of gradients")
    panels[2, 0].set_ylim(-1, 1)
    figures.legend_above(
        figure,
        {f"prior {place} the hub": COLOURS[place] for place in PLACES},
        {
            f"weight {weight:g}" if weight else "no prior": style
            for weight, style in DASHES.items()
            if any(cell["weight"] == weight and cell["seeds"] for cell in cells.values())
        },
    )
    return {"": figure}


def _over_weights(axes: Axes, cells: Mapping[str, Record], protocol: Protocol, name: str) -> None:
    for place in PLACES:
        key = name if name == "cyclic" else f"shifts_{place}"
        kinds = [WeightKind(protocol), *(WeightKind(protocol, place, weight) for weight in WEIGHTS)]
        xs = [OFF, *WEIGHTS]
        points = [
            (x, cells[kind.name][key])
            for x, kind in zip(xs, kinds, strict=True)
            if cells[kind.name]["seeds"]
        ]
        shift = 1.06 if place == "after" else 1 / 1.06
        axes.plot(
            [x * shift for x, _ in points],
            [statistics["mean"] for _, statistics in points],
            color=COLOURS[place],
        )
        for x, statistics in points:
            values = statistics["values"]
            axes.plot([x * shift] * len(values), values, "o", color=COLOURS[place], ms=2.5)
    axes.set_xscale("log")
    axes.set_xticks([OFF, *WEIGHTS], ["none", *(f"{weight:g}" for weight in WEIGHTS)])
    axes.minorticks_off()


def _cosines(axes: Axes, cells: Mapping[str, Record], protocol: Protocol) -> None:
    axes.axhline(0, color="0.4", lw=0.7)
    for place in PLACES:
        for weight, linestyle in DASHES.items():
            cell = cells[WeightKind(protocol, place, weight).name]
            if cell["seeds"]:
                mean = np.mean(cell[f"cosines_{place}"], axis=0)
                axes.plot(cell["judged"], mean, linestyle, color=COLOURS[place], lw=1.2)
