"""End to end: the canonicaliser as the localisation network of a spatial transformer.

What the paper leaves for later. One network turns an image back by its own angle and another one
tells what it shows. The first learns from the angle loss, from the second one's loss, or from both,
and is compared at equal parameters, steps, batches and views with the paper's way (both trained
apart, then put together) and with classifiers that have no canonicaliser.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

from torch import Tensor

from radialbeams.front.view_geometry import ViewGeometry
from radialbeams.nn.ring_network import RingConfig
from radialbeams.reproduce.experiment import Experiment, Finding, Record, Records
from radialbeams.reproduce.joint import Joint, Way
from radialbeams.reproduce.joint_fit import (
    AVERAGED,
    Design,
    TurnedImages,
    along,
    joint_parts,
    judge_fully,
    probe_of,
)
from radialbeams.reproduce.settings import Settings
from radialbeams.reproduce.trainings import Trained, Training
from radialbeams.training.leaks import FULL, Canary, Effort, Render, Rendering, measure_leak
from radialbeams.training.recipe import Recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "end-to-end"
WAYS = {
    "plain": Way("no canonicaliser", localises=False, shown="upright"),
    "augmented": Way("rotation augmentation", localises=False, shown="turned"),
    "apart": Way("trained apart", angle=1.0, shown="upright"),
    "angle": Way("end to end, angle loss", angle=1.0),
    "downstream": Way("end to end, downstream loss", downstream=1.0, answers="mean"),
    "both": Way("end to end, both losses", angle=1.0, downstream=1.0),
}
# Other gradients of the answer, on the first data set only.
VARIANTS = {
    "both-through": Way("both, straight-through", angle=1.0, downstream=1.0, answers="through"),
    "downstream-through": Way("downstream, straight-through", downstream=1.0, answers="through"),
    "downstream-beam": Way("downstream, likeliest beam", downstream=1.0, answers="beam"),
}
AVERAGES = {"plain": "no canonicaliser, averaged", "augmented": "augmentation, averaged"}
VALIDATIONS = 16


@dataclass(frozen=True)
class JointTask:
    """A data set, and how long and how large its networks are trained."""

    data: str
    title: str
    parent_size: int
    channels: int
    steps: int
    images: int | None
    held_out: int | None
    design: Design
    batch: int

    def model(self) -> RingConfig:
        """Of the localisation network: small parents give leak-free views of 12 px only."""
        small = self.parent_size < 64
        return RingConfig(
            view_size=12 if small else self.design.side,
            channels=self.channels,
            num_beams=32,
            beam_length=12 if small else 28,
            epsilon=0,
            sampler="polar",
            stem=32,
            stem_stride=2 if small else 4,
            stages=(32, 48),
            width=64,
            dilations=(1, 2, 4),
        )

    def recipe(self, seed: int) -> Recipe:
        return Recipe(
            self.data,
            self.model(),
            self.parent_size,
            protocol="leakfree",
            batch=self.batch,
            steps=self.steps,
            learning_rate=3e-3,
            schedule="one-cycle",
            weight_decay=0.05,
            seed=seed,
        )


def tasks(settings: Settings) -> list[JointTask]:
    full, quick = Design(56, (32, 64, 128)), Design(40, (16, 32, 64))
    design = settings.pick(quick=quick, full=full)
    batch = settings.pick(quick=64, full=256)
    images, coil = settings.pick(quick=(6000, 1500), full=(None, None))
    held_out = settings.pick(quick=300, full=None)
    steps, few = settings.pick(quick=(120, 80), full=(4000, 1500))
    return [
        JointTask("fashion-mnist", "Fashion-MNIST", 28, 1, steps, images, held_out, design, batch),
        JointTask("coil100", "COIL-100", 128, 3, few, coil, held_out, design, batch),
    ]


def trainings(settings: Settings) -> list[Training]:
    first, second = tasks(settings)
    seeds = settings.seeds_of(quick=1, full=3)
    runs = [(task, name, way) for task in (first, second) for name, way in WAYS.items()]
    runs += [] if settings.quick else [(first, name, way) for name, way in VARIANTS.items()]
    # Once is enough: the views are the same in every training.
    checked = None if settings.quick else (first, "apart", 0)
    return [
        Training(
            f"{task.data}-{name}-{seed}",
            task.recipe(seed),
            {"data": task.data, "way": name},
            task.images,
            task.held_out,
            validations=settings.pick(quick=4, full=VALIDATIONS),
            measure=partial(
                measure_with_canaries if (task, name, seed) == checked else measure, task.design
            ),
            parts=joint_parts(way, task.design),
        )
        for task, name, way in runs
        for seed in seeds
    ]


def measure(design: Design, trained: Trained) -> dict[str, Any]:
    fit, model = trained.fit, trained.model
    if not isinstance(model, Joint):
        raise TypeError(f"Expected a joint training; got {type(model).__name__}.")
    return {"along": along(fit), **judge_fully(model, probe_of(fit, design, trained.held_out))}


def measure_with_canaries(
    design: Design, trained: Trained, effort: Effort = FULL
) -> dict[str, Any]:
    """Whether the angle can be read off the making of the views: of noise, and with a control."""
    recipe, turned = trained.recipe, TurnedImages(design.side)
    geometry = ViewGeometry(recipe.model.view_size, 3, recipe.parent_size).to(trained.device)

    def sighted(parents: Tensor, angles: Tensor) -> Tensor:
        views: Tensor = geometry(turned.turn(turned.prepare(parents), angles))
        return views

    effort = {**effort, "parent": recipe.parent_size}
    ways: tuple[tuple[Rendering | Render, Canary], ...] = (
        (sighted, "cnn"),
        (sighted, "ring"),
        ("bilinear", "cnn"),
    )
    leaks = [
        measure_leak(way, canary, "white", device=trained.device, **effort) for way, canary in ways
    ]
    return {**measure(design, trained), "canaries": [leak.record() for leak in leaks]}


# --- what was found ---


def run(settings: Settings, records: Records) -> Finding:
    data = {task.data: _of_task(task, records) for task in tasks(settings)}
    fashion = data["fashion-mnist"]["ways"]
    apart, both = (fashion[way]["turned"]["mean"] for way in ("apart", "both"))
    reached = "yes" if both >= apart else "no"
    ours = {"end to end reaches what is trained apart, Fashion-MNIST": reached, **accuracies(data)}
    canaries = [line for record in records.values() for line in _measured(record, "canaries", [])]
    found = {"tasks": data, "averaged_turns": AVERAGED, "canaries": canaries}
    return Finding(ours, _why(fashion), found)


def accuracies(data: dict[str, Record]) -> dict[str, str]:
    """Of every task in every way, on images at any angle."""
    return {
        f"accuracy at any angle, {task['title']}, {way['title']}": f"{way['turned']['mean']:.1%}"
        for task in data.values()
        for way in task["ways"].values()
    }


def _measured(record: Record, name: str, otherwise: Any) -> Any:
    return record["measured"].get(name, otherwise)


def _of_task(task: JointTask, records: Records) -> Record:
    ways = {}
    for name, way in {**WAYS, **VARIANTS}.items():
        mine = {"data": task.data, "way": name}
        runs = [record for record in records.values() if record["tags"] == mine]
        if lost := [run["name"] for run in runs if "diverged" in run]:
            raise ValueError(f"{', '.join(lost)} diverged; lower the learning rate.")
        if runs:
            ways[name] = {"title": way.title, **_summary(runs)}
    return {"title": task.title, "ways": ways}


FIGURES = ("turned", "upright", "averaged", "mean", "median", "flips", "between_turns")


def _summary(runs: Sequence[Record]) -> Record:
    """Over the seeds: of each figure the mean and every value, and the curves one by one."""
    found: Record = {"parameters": runs[0]["parameters"], "n": runs[0]["measured"]["n"]}
    for name in (*FIGURES, "within_class"):
        values = [run["measured"][name] for run in runs if name in run["measured"]]
        if values:
            found[name] = {"mean": mean(values), "values": values}
    found["seconds"] = [run["seconds"] for run in runs]
    found["along"] = [run["measured"]["along"] for run in runs]
    found["classes"] = _measured(runs[0], "classes", [])
    return found


def _why(ways: Record) -> str:
    turned = {name: 100 * way["turned"]["mean"] for name, way in ways.items()}
    alone, ahead = ways["downstream"], turned["angle"] - turned["apart"]
    verb = "reaches" if turned["both"] >= turned["apart"] else "misses"
    return (
        f"On rotated Fashion-MNIST training with both losses {verb} the pipeline trained apart "
        f"({turned['both']:.1f} % against {turned['apart']:.1f} %). With the angle loss alone the "
        "canonicaliser is the same as apart, and a classifier that learns behind it, on its "
        f"errors too, is {abs(ahead):.1f} points {'better' if ahead >= 0 else 'worse'}"
        f"{_no_gradient_needed(turned)}. The downstream loss alone gives "
        f"{turned['downstream']:.1f} %: an image is turned to the same pose from any angle (two "
        f"turns end {alone['between_turns']['mean']:.0f}° apart), by the symmetry of the ring, but "
        f"not to the upright one ({alone['mean']['mean']:.0f}° off on average, "
        f"{alone['within_class']['mean']:.0f}° with a constant for each class)."
        f"{_pull(ways)}"
    )


def _no_gradient_needed(turned: dict[str, float]) -> str:
    """Whether the angle loss alone is as good as both."""
    if turned["angle"] < turned["both"]:
        return ""
    return (
        f" ({turned['angle']:.1f} %): the gain comes from what the classifier sees, and its "
        "gradient adds nothing to the angle"
    )


def _pull(ways: Record) -> str:
    """What the class loss does to the angle when it may move every beam."""
    if "both-through" not in ways:
        return ""
    errors = [ways[name]["mean"]["mean"] for name in ("both", "both-through")]
    return (
        " Where a class loss may move every beam (straight-through), both losses together give "
        f"{100 * ways['both-through']['turned']['mean']:.1f} %, and an angle that errs by "
        f"{errors[1]:.1f}° instead of {errors[0]:.1f}°."
    )


# --- figures ---


def draw(record: Record) -> dict[str, Figure]:
    data = list(record["data"]["tasks"].values())
    return {
        "": _dots(data),
        "curves": _curves(data),
        "angles": _angles(data),
        "poses": _poses(data[0]),
    }


def _look(name: str) -> dict[str, Any]:
    from radialbeams.reproduce import figures as f

    colours = {
        "plain": f.GREY,
        "augmented": f.YELLOW,
        "apart": f.BLACK,
        "angle": f.SKY,
        "downstream": f.ORANGE,
        "both": f.BLUE,
    }
    return {"color": colours[name.partition("-")[0]]}


def _rows(ways: Record) -> list[tuple[str, str, str]]:
    """Way, key of the accuracy, and what to call it, from top to bottom."""
    rows = []
    for name in WAYS:
        rows.append((name, "turned", ways[name]["title"]))
        if name in AVERAGES:
            rows.append((name, "averaged", AVERAGES[name]))
    return rows + [(name, "turned", ways[name]["title"]) for name in VARIANTS if name in ways]


def _dots(data: Sequence[Record]) -> Figure:
    """Accuracy of every way: a dot for each seed, a bar at their mean; rings: upright images."""
    from radialbeams.reproduce import figures

    rows = _rows(data[0]["ways"])
    figure = figures.new(figures.PAGE, 0.8 + 0.21 * len(rows))
    panels = figure.subplots(1, len(data), sharey=True)
    for axes, task in zip(panels, data, strict=True):
        axes.set(title=task["title"], xlabel="accuracy, %", xlim=_room(task["ways"]))
        for y, (name, key, _) in enumerate(rows):
            if name in task["ways"]:
                _row(axes, y, task["ways"][name], key, _look(name))
    panels[0].set_yticks(range(len(rows)), [title for _, _, title in rows])
    panels[0].set_ylim(len(rows) - 0.4, -0.8)
    figure.suptitle("dots: images at any angle, one for each seed; rings: upright images", size=7)
    return figure


def _room(ways: Record) -> tuple[float, float]:
    """For what is more often right than wrong; what is not is told by a number at the edge."""
    values = [
        100 * value
        for way in ways.values()
        for key in ("turned", "upright")
        for value in way[key]["values"]
    ]
    least, most = min((value for value in values if value > 50), default=0.0), max(values)
    room = max(most - least, 1.0)
    return least - 0.25 * room, most + 0.06 * room


def _row(axes: Any, y: int, way: Record, key: str, look: dict[str, Any]) -> None:
    values = [100 * value for value in way[key]["values"]]
    centre = mean(values)
    if max(values) < axes.get_xlim()[0]:
        beside = {"xytext": (3, 0), "textcoords": "offset points", "fontsize": 6.5}
        axes.annotate(f"← {centre:.1f}", (axes.get_xlim()[0], y), va="center", **beside, **look)
    else:
        axes.plot(values, [y] * len(values), "o", markersize=3, alpha=0.6, **look)
        axes.plot([centre], [y], "|", markersize=8, markeredgewidth=1.4, **look)
        beside = {"xytext": (-5, 0), "textcoords": "offset points", "fontsize": 6.5}
        where = (min(*values, 100 * way["upright"]["mean"]), y)
        axes.annotate(f"{centre:.1f}", where, ha="right", va="center", **beside)
    if key == "turned":
        upright = 100 * way["upright"]["mean"]
        axes.plot([upright], [y], "o", markersize=4.5, markerfacecolor="none", **look)


def _lines(axes: Any, task: Record, names: Sequence[str], key: str, split: str) -> None:
    """The mean over the seeds, and the range of them."""
    for name in names:
        curves = task["ways"][name]["along"]
        steps = [line["step"] for line in curves[0]]
        values = [[_shown(key, line[split][key]) for line in curve] for curve in curves]
        middle = [mean(at) for at in zip(*values, strict=True)]
        if split == "train":
            axes.plot(steps, middle, ":", linewidth=0.8, label=f"_{name}", **_look(name))
            continue
        # Dashed on top: it lies on another line where both learn the same angle.
        style = {"linestyle": "--", "zorder": 3} if name == "apart" else {}
        axes.plot(steps, middle, label=task["ways"][name]["title"], **style, **_look(name))
        low, high = ([choose(at) for at in zip(*values, strict=True)] for choose in (min, max))
        axes.fill_between(steps, low, high, alpha=0.15, linewidth=0, **_look(name))


def _shown(key: str, value: float) -> float:
    """Angles as they are; of an accuracy the percents that are missing, which a log scale shows."""
    return value if key == "mean" else max(100 * (1 - value), LEAST)


LEAST = 0.05  # percent: the lower end of that scale


def _curves(data: Sequence[Record]) -> Figure:
    """Accuracy on turned images over training; dotted: of training images."""
    from radialbeams.reproduce import figures

    figure = figures.new(figures.PAGE, 2.9)
    panels = figure.subplots(1, len(data))
    for axes, task in zip(panels, data, strict=True):
        _lines(axes, task, list(WAYS), "turned", "train")
        _lines(axes, task, list(WAYS), "turned", "test")
        axes.set(title=task["title"], xlabel="training step", yscale="log")
        ticks = [100 - share for share in (10, 30, 50, 70, 80, 85, 90, 95, 98, 99, 99.5, 99.9)]
        low, high = axes.get_ylim()
        ticks = [tick for tick in ticks if low <= tick <= high]
        axes.set_yticks(ticks, [f"{100 - tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(high, low)
    panels[0].set_ylabel("accuracy at any angle, %\n(dotted: training images)")
    _legend(figure, panels[0], columns=3)
    return figure


def _angles(data: Sequence[Record]) -> Figure:
    """The error of the angle over training, for every way that has an angle."""
    from radialbeams.reproduce import figures

    names = [name for name, way in WAYS.items() if way.localises]
    figure = figures.new(figures.PAGE, 2.7)
    panels = figure.subplots(1, len(data))
    for axes, task in zip(panels, data, strict=True):
        _lines(axes, task, names, "mean", "test")
        axes.axhline(90, color="0.6", linewidth=0.8, linestyle=":")
        axes.annotate(
            "chance",
            (1, 90),
            xytext=(-2, 2),
            textcoords="offset points",
            xycoords=("axes fraction", "data"),
            ha="right",
            fontsize=6.5,
            color="0.4",
        )
        axes.set(title=task["title"], xlabel="training step", yscale="log")
        axes.set_ylim(top=180)
        ticks = [tick for tick in (0.5, 1, 2, 5, 10, 20, 50, 100) if tick >= axes.get_ylim()[0]]
        axes.set_yticks(ticks, [f"{tick:g}°" for tick in ticks])
        axes.minorticks_off()
    panels[0].set_ylabel("mean error of the angle")
    _legend(figure, panels[0], columns=2)
    return figure


def _poses(task: Record) -> Figure:
    """Where each class comes to lie: up is upright, a long arrow is always the same pose."""
    from matplotlib import colormaps

    from radialbeams.reproduce import figures

    names = [name for name in ("apart", "downstream", "both") if name in task["ways"]]
    figure = figures.new(figures.PAGE, 3.2)
    panels = figure.subplots(1, len(names), subplot_kw={"projection": "polar"})
    for axes, name in zip(panels, names, strict=True):
        way = task["ways"][name]
        axes.set_theta_zero_location("N")
        for number, row in enumerate(way["classes"]):
            # The turn that is left after turning back, counter-clockwise.
            left = -math.radians(row["direction"])
            colour = colormaps["tab10"](number % 10)
            label = row["name"] if number < 10 else None
            axes.plot([left, left], [0, row["length"]], "o-", markevery=[1], markersize=3,
                      linewidth=1.2, color=colour, label=label)  # fmt: skip
        axes.set_ylim(0, 1.05)
        axes.set_yticks([0.5, 1], ["", ""])
        axes.set_xticks([k * math.pi / 2 for k in range(4)], ["up", "90°", "180°", "270°"])
        apart = way["between_turns"]["mean"]
        axes.set_title(f"{way['title']}\n(two turns of an image end {apart:.1f}° apart)", size=7)
    _legend(figure, panels[0], columns=5)
    return figure


def _legend(figure: Figure, axes: Any, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)


EXPERIMENT = Experiment(
    name=NAME,
    claim="future work: train the canonicaliser end to end with what comes after it",
    paper={},
    run=run,
    draw=draw,
    trainings=trainings,
)
