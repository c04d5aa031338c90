"""How much the inner and the outer parts of the beams contribute: errors with a part masked.

The networks were trained on whole beams, so a mask is out of distribution. Two fills bracket its
effect: `mean`, the average over all beams at that radius, which has no direction and is closest to
real content; and `zero`, black, which adds an edge. Besides the inner and the outer part, the masks
hide one eighth of the beam at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from radialbeams.nn.angles import angular_error, from_unit
from radialbeams.nn.architectures import Network, with_beams
from radialbeams.nn.bic import BIC
from radialbeams.nn.encoder import spatial_table
from radialbeams.nn.posterior import answer, posterior
from radialbeams.nn.ring_network import RingBIC
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.pretrained import HeldOut, open_pretrained
from radialbeams.reproduce.settings import QUICK, ReproduceSettings
from radialbeams.stored import JsonDict, JsonFields
from radialbeams.training.evaluate import summarise
from radialbeams.training.views import draw_angles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRETRAINED = ("bic.coil100", "ring.coil100", "bic.lfw", "ring.lfw")
Part = Literal["inner", "outer", "band"]
Fill = Literal["mean", "zero"]
FILLS: tuple[Fill, ...] = ("mean", "zero")
BANDS = 8
STILL_GOOD = 10.0  # the highest mean error, in degrees, at which a part of the beam suffices


class Mask(NamedTuple):
    """Samples from `start` up to `end` of the beam are hidden, as shares of its length."""

    part: Part
    start: float
    end: float


def masks(steps: int) -> list[Mask]:
    """All masks: from the centre outwards, from the tip inwards, and one band at a time."""
    shares = [step / steps for step in range(1, steps)]
    planned = [Mask("inner", 0.0, share) for share in shares]
    planned += [Mask("outer", share, 1.0) for share in reversed(shares)]
    return planned + [Mask("band", k / BANDS, (k + 1) / BANDS) for k in range(BANDS)]


def masked(beams: Tensor, mask: Mask, fill: Tensor | float) -> Tensor:
    """(N, |B|, C, 2ε + 1, D) with a part of every beam replaced by `fill`, a number or (…, D)."""
    length = beams.shape[-1]
    sample = torch.arange(length, device=beams.device)
    hidden = (sample >= round(mask.start * length)) & (sample < round(mask.end * length))
    return torch.where(hidden, fill, beams)


def answers(model: Network, beams: Tensor) -> Tensor:
    """(N, |B|, C, 2ε + 1, D) → (N,) radians: the estimates from sampled beams."""
    if isinstance(model, BIC):
        return from_unit(model.decoder(model.context(model.encoder(beams))))
    if isinstance(model, RingBIC):
        return answer(posterior(*model.ring(beams)))
    raise TypeError(f"Expected a network that reads beams; got {type(model).__name__}.")


def beams_of(model: Network, views: Tensor) -> Tensor:
    if not isinstance(model, BIC | RingBIC):
        raise TypeError(f"Expected a network that reads beams; got {type(model).__name__}.")
    beams: Tensor = model.beams(views)
    return beams


@torch.inference_mode()
def mean_beam(held_out: HeldOut, batch: int = 64) -> Tensor:
    """(C, 1, D): the mean over images, rotations, beams and their width, at each radius.

    It is the same for every beam, so it contains no angle.
    """
    total, count = torch.zeros(()), 0
    for beams, _ in batches(held_out, batch):
        total = total + beams.mean(dim=(1, 3), keepdim=True).sum(0)[0].cpu()
        count += len(beams)
    return total.to(held_out.device) / count


def batches(held_out: HeldOut, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The beams of every held-out image at one angle each, and those angles."""
    turns = draw_angles("evaluation", 0, 0, len(held_out.images))
    for start in range(0, len(held_out.images), batch):
        chunk = slice(start, start + batch)
        prepared = held_out.views.prepare(held_out.images.images[chunk].to(held_out.device))
        yield beams_of(held_out.model, held_out.views.turn(prepared, turns[chunk])), turns[chunk]


@torch.inference_mode()
def profile(held_out: HeldOut, steps: int, show: Any = None, batch: int = 64) -> JsonDict:
    """The errors with nothing hidden, and with each mask and fill."""
    fills: dict[Fill, Tensor | float] = {"mean": mean_beam(held_out, batch), "zero": 0.0}
    cases: list[tuple[Mask, Fill]] = [(mask, fill) for mask in masks(steps) for fill in FILLS]
    errors: list[list[Tensor]] = [[] for _ in range(1 + len(cases))]
    done = 0
    for beams, turns in batches(held_out, batch):
        errors[0].append(angular_error(answers(held_out.model, beams).cpu(), turns))
        for row, (mask, fill) in enumerate(cases, 1):
            estimates = answers(held_out.model, masked(beams, mask, fills[fill]))
            errors[row].append(angular_error(estimates.cpu(), turns))
        done += len(turns)
        if show is not None:
            show(done, len(held_out.images))
    whole, *rest = (statistics(torch.cat(parts)) for parts in errors)
    config = held_out.model.config
    return {
        "images": len(held_out.images),
        "length": with_beams(config).beam_length,
        "unread": unread(held_out.model),
        "whole": whole,
        "cells": [
            {**mask._asdict(), "fill": fill, **result}
            for (mask, fill), result in zip(cases, rest, strict=True)
        ],
    }


def statistics(errors: Tensor) -> dict[str, float]:
    evaluation = summarise(errors[None])
    names = ("mean", "median", "within_10", "paper_equivalent")
    return {name: float(f"{getattr(evaluation, name):.4g}") for name in names}


def unread(model: Network) -> int:
    """The number of samples at the tip that no stride of the encoder reaches."""
    if not isinstance(model, BIC):
        return 0  # the ring pads along the radius, so every sample is read
    length = model.config.beam_length
    used = 1
    for layer in reversed(spatial_table(length)):
        used = (used - 1) * layer.stride + layer.kernel
    return length - 2 - used  # the proximity encoder takes one sample at each end


# --- the experiment ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    steps = settings.pick(quick=4, full=16)
    models = {}
    for number, name in enumerate(PRETRAINED):
        limit = settings.pick(quick=24, full=493 if name.endswith("coil100") else 300)
        held_out = open_pretrained(name, settings, limit=limit)

        def show(done: int, total: int, name: str = name, number: int = number) -> None:
            settings.show(number + done / total, len(PRETRAINED), f"masks, {name}")

        models[name] = profile(held_out, steps, show)
    data = {"models": models, "steps": steps}
    ours, why = conclude(data)
    return Finding(ours, settings.pick(quick=QUICK, full="") + why, data)


def conclude(data: Record) -> Conclusion:
    models = data["models"]
    ours: JsonDict = {}
    for name, model in models.items():
        halves = {part: _half(model, part)["mean"] for part in ("inner", "outer")}
        ours[f"mean error, {name}: whole beams, inner half masked, outer half masked"] = (
            f"{model['whole']['mean']:.2f}°, {halves['inner']:.1f}°, {halves['outer']:.1f}°"
        )
        ours[f"outer part that suffices for {STILL_GOOD:g}°, {name}"] = _sufficient_part(
            model, "inner"
        )
        ours[f"inner part that suffices for {STILL_GOOD:g}°, {name}"] = _sufficient_part(
            model, "outer"
        )
        band = max(_cells(model, "band", "mean"), key=lambda cell: float(cell["mean"]))
        ours[f"eighth of the beam that matters most, {name}"] = (
            f"{band['start']:.0%} to {band['end']:.0%} of the radius ({band['mean']:.1f}°)"
        )
        if model["unread"]:
            ours[f"outermost samples that are never read, {name}"] = model["unread"]
    ours["half of the beam that matters more"] = ", ".join(
        f"{name}: {more_important_half(model)}" for name, model in models.items()
    )
    return ours, sentence(models)


def _cells(model: JsonFields, part: str, fill: str) -> list[Record]:
    return [cell for cell in model["cells"] if cell["part"] == part and cell["fill"] == fill]


def _half(model: JsonFields, part: str, fill: str = "mean") -> Record:
    edge = "end" if part == "inner" else "start"
    return next(cell for cell in _cells(model, part, fill) if cell[edge] == 0.5)


def _sufficient_part(model: JsonFields, hidden: str) -> str:
    """The smallest part of the beam with a mean error of at most STILL_GOOD, filled by the mean."""
    remaining = [
        1 - (cell["end"] - cell["start"])
        for cell in _cells(model, hidden, "mean")
        if cell["mean"] <= STILL_GOOD
    ]
    return f"{min(remaining):.0%} of the beam" if remaining else "only the whole beam"


def more_important_half(model: JsonFields) -> str:
    """The half whose masking raises the mean error more with both fills, if they agree."""
    halves = {
        "outer"
        if _half(model, "outer", fill)["mean"] > _half(model, "inner", fill)["mean"]
        else "inner"
        for fill in FILLS
    }
    return halves.pop() if len(halves) == 1 else "depends on the fill"


def sentence(models: JsonFields) -> str:
    listed = "; ".join(
        f"{name} {_half(model, 'outer')['mean']:.1f}° and {_half(model, 'inner')['mean']:.1f}°"
        for name, model in models.items()
    )
    halves = {more_important_half(model) for model in models.values()}
    meaning = (
        "As expected, the outer half matters more for every model."
        if halves == {"outer"}
        else "Contrary to the expectation, the outer half does not matter more for every model."
    )
    return (
        f"{meaning} Mean errors without the outer half and without the inner half, each radius "
        f"filled with its mean: {listed}."
    )


# --- figures ---


def draw(record: Record) -> dict[str, Figure]:
    return {"": draw_parts(record["data"]["models"]), "bands": draw_bands(record["data"]["models"])}


def draw_parts(models: JsonFields) -> Figure:
    """A panel per model: the error over the hidden share, inner or outer part, both fills."""
    from radialbeams.reproduce import figures

    figure = figures.new(figures.PAGE, 4.6)
    panels = figure.subplots(2, 2, sharex=True, sharey=True).flat
    colours = {"inner": figures.BLUE, "outer": figures.ORANGE}
    for axes, (name, model), letter in zip(panels, models.items(), "abcd", strict=False):
        for part, colour in colours.items():
            for fill, linestyle in (("mean", "o-"), ("zero", "--")):
                cells = _cells(model, part, fill)
                hidden = [0.0, *(cell["end"] - cell["start"] for cell in cells)]
                means = [model["whole"]["mean"], *(cell["mean"] for cell in cells)]
                axes.plot(100 * np.asarray(hidden), means, linestyle, color=colour, ms=2.5)
        axes.axhline(90, color="0.4", lw=0.7, ls=":")
        axes.set(yscale="log")
        axes.set_title(f"{letter}  {name}, D = {model['length']}")
        axes.set_xticks([0, 25, 50, 75, 100], ["0", "¼", "½", "¾", "1"])
        axes.set_xlim(-3, 103)
        if letter in "cd":
            axes.set_xlabel("share of the beam that is hidden")
        if letter in "ac":
            axes.set_ylabel("mean error")
        if letter == "a":
            axes.annotate("chance", (98, 90), fontsize=6.5, va="bottom", ha="right", color="0.3")
    lows = [model["whole"]["mean"] for model in models.values()]
    axes.set_ylim(0.7 * min(lows), 130)
    axes.set_yticks(
        [tick for tick in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 90) if tick > 0.7 * min(lows)]
    )
    axes.yaxis.set_major_formatter("{x:g}°")
    axes.minorticks_off()
    figures.legend_above(
        figure,
        {"inner part hidden": colours["inner"], "outer part hidden": colours["outer"]},
        {"filled with the mean": "-", "filled with black": "--"},
    )
    return figure


def draw_bands(models: JsonFields) -> Figure:
    """The error without each eighth of the beam."""
    from radialbeams.reproduce import figures

    figure = figures.new(figures.PAGE, 2.4)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, data, letter in zip(panels, ("coil100", "lfw"), "ab", strict=True):
        for kind, colour in (("bic", figures.BLUE), ("ring", figures.ORANGE)):
            model = models[f"{kind}.{data}"]
            for fill, linestyle, fill_colour in (("mean", "-", colour), ("zero", "--", "white")):
                cells = _cells(model, "band", fill)
                middles = [100 * (cell["start"] + cell["end"]) / 2 for cell in cells]
                means = [cell["mean"] for cell in cells]
                words = "the mean" if fill == "mean" else "black"
                label = f"{kind}, filled with {words}"
                axes.plot(
                    middles,
                    means,
                    f"o{linestyle}",
                    color=colour,
                    mfc=fill_colour,
                    label=label,
                    lw=1,
                )
            axes.axhline(model["whole"]["mean"], color=colour, lw=0.8, ls=":")
        axes.set(xlabel="eighth of the beam that is hidden, from centre to tip")
        axes.set_xticks([0, 25, 50, 75, 100], ["0", "¼", "½", "¾", "1"])
        axes.set_title(f"{letter}  {'COIL-100' if data == 'coil100' else 'LFW'}")
        axes.grid(axis="x", visible=False)
        axes.set(yscale="log")
        figures.plain_log(axes.yaxis)
        axes.yaxis.set_major_formatter("{x:g}°")
    panels[0].set_ylabel("mean error; ··· nothing hidden")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return figure


EXPERIMENT = Experiment(
    name="radius",
    claim=(
        "Information is expected to decrease along the beams towards the centre, because a "
        "rotation moves outer pixels further; a study of this is left for future work"
    ),
    paper={"half of the beam that matters more": "the outer (expected, not measured)"},
    run=run,
    draw=draw,
    conclude=conclude,
)
