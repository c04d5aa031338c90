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

OFF = min(WEIGHTS) / 10  # where no prior is drawn on the logarithmic axis
DASHES = {0.0: ":", min(WEIGHTS): "--", max(WEIGHTS): "-"}  # of the cosines, by weight
COLOURS = {"before": figures.BLUE, "after": figures.ORANGE}
TITLES = {"paper": "paper's views", "leakfree": "leak-free views"}


def draw(record: Record) -> dict[str, Figure]:
    cells = record["data"]["cells"]
    trained = {one["protocol"] for one in cells.values() if one["seeds"]}
    shown = [protocol for protocol in PROTOCOLS if protocol in trained] or PROTOCOLS
    figure = figures.new(figures.PAGE, 4.6)
    panels = figure.subplots(3, len(shown), sharex="row", sharey="row", squeeze=False)
    for column, protocol in enumerate(shown):
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
            if any(one["weight"] == weight and one["seeds"] for one in cells.values())
        },
    )
    return {"": figure}


def _over_weights(axes: Axes, cells: Mapping[str, Record], protocol: Protocol, name: str) -> None:
    for place in PLACES:
        key = name if name == "cyclic" else f"shifts_{place}"
        kinds = [WeightKind(protocol), *(WeightKind(protocol, place, weight) for weight in WEIGHTS)]
        places = [OFF, *WEIGHTS]
        found = [
            (x, cells[kind.name][key])
            for x, kind in zip(places, kinds, strict=True)
            if cells[kind.name]["seeds"]
        ]
        off = 1.06 if place == "after" else 1 / 1.06
        axes.plot([x * off for x, _ in found], [s["mean"] for _, s in found], color=COLOURS[place])
        for x, one in found:
            values = one["values"]
            axes.plot([x * off] * len(values), values, "o", color=COLOURS[place], ms=2.5)
    axes.set_xscale("log")
    axes.set_xticks([OFF, *WEIGHTS], ["none", *(f"{weight:g}" for weight in WEIGHTS)])
    axes.minorticks_off()


def _cosines(axes: Axes, cells: Mapping[str, Record], protocol: Protocol) -> None:
    axes.axhline(0, color="0.4", lw=0.7)
    for place in PLACES:
        for weight, look in DASHES.items():
            one = cells[WeightKind(protocol, place, weight).name]
            if one["seeds"]:
                mean = np.mean(one[f"cosines_{place}"], axis=0)
                axes.plot(one["judged"], mean, look, color=COLOURS[place], lw=1.2)
