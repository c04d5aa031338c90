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
from statistics import mean
from typing import TYPE_CHECKING, Any

from radialbeams.experiments.experiment import Experiment, Finding, Record, Records
from radialbeams.experiments.joint import Joint, Way
from radialbeams.experiments.joint_fit import AVERAGED, Design, JointFit, joint_fit, judge_fully
from radialbeams.experiments.settings import Settings
from radialbeams.experiments.trainings import Trained, Training
from radialbeams.nn.bic import BICConfig
from radialbeams.training.recipe import Recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "end-to-end"
WAYS = {
    "plain": Way("no canonicaliser", localises=False, shown="upright"),
    "augmented": Way("rotation augmentation", localises=False, shown="turned"),
    "apart": Way("trained apart", angle=1.0, shown="upright"),
    "angle": Way("end to end, angle loss", angle=1.0),
    "downstream": Way("end to end, downstream loss", downstream=True, answers="mean"),
    "both": Way("end to end, both losses", angle=1.0, downstream=True),
}
# The downstream loss alone, with other gradients of the answer; on the first data set only.
VARIANTS = {
    "downstream-through": Way("straight-through", downstream=True, answers="through"),
    "downstream-beam": Way("likeliest beam", downstream=True, answers="beam"),
}
AVERAGES = {"plain": "no canonicaliser, averaged", "augmented": "augmentation, averaged"}
VALIDATIONS = 16


@dataclass(frozen=True)
class Task:
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

    def model(self) -> BICConfig:
        """Of the localisation network: small parents give leak-free views of 12 px only."""
        small = self.parent_size < 64
        return BICConfig(
            view_size=12 if small else self.design.side,
            channels=self.channels,
            num_beams=32,
            beam_length=12 if small else 28,
            epsilon=0,
            sampler="polar",
            decoder="ring",
            ring_stem=32,
            ring_stem_stride=2 if small else 4,
            ring_stages=(32, 48),
            ring_width=64,
            ring_dilations=(1, 2, 4),
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


def tasks(settings: Settings) -> list[Task]:
    full, quick = Design(56, (32, 64, 128)), Design(40, (16, 32, 64))
    design = settings.pick(quick=quick, full=full)
    batch = settings.pick(quick=64, full=256)
    images, coil = settings.pick(quick=(6000, 1500), full=(None, None))
    held_out = settings.pick(quick=300, full=None)
    steps, few = settings.pick(quick=(120, 80), full=(4000, 1500))
    return [
        Task("fashion-mnist", "Fashion-MNIST", 28, 1, steps, images, held_out, design, batch),
        Task("coil100", "COIL-100", 128, 3, few, coil, held_out, design, batch),
    ]


def trainings(settings: Settings) -> list[Training]:
    first, second = tasks(settings)
    seeds = settings.seeds_of(quick=1, full=3)
    runs = [(first, name, way) for name, way in WAYS.items()]
    runs += [(second, name, way) for name, way in WAYS.items()]
    runs += [] if settings.quick else [(first, name, way) for name, way in VARIANTS.items()]
    return [
        Training(
            f"{task.data}-{name}-{seed}",
            task.recipe(seed),
            {"data": task.data, "way": name},
            task.images,
            task.held_out,
            validations=settings.pick(quick=4, full=VALIDATIONS),
            measure=measure,
            fit=joint_fit(way, task.design),
        )
        for task, name, way in runs
        for seed in seeds
    ]


def measure(trained: Trained) -> dict[str, Any]:
    fit, model = trained.fit, trained.model
    if not isinstance(fit, JointFit) or not isinstance(model, Joint):
        raise TypeError(f"Expected a joint training; got {type(fit).__name__}.")
    probe = fit.probe(trained.held_out)
    return {"along": fit.along(), **judge_fully(model, probe)}


# --- what was found ---


def run(settings: Settings, records: Records) -> Finding:
    data = {task.data: _of_task(task, records) for task in tasks(settings)}
    fashion = data["fashion-mnist"]["ways"]
    apart, both = (fashion[way]["turned"]["mean"] for way in ("apart", "both"))
    ours = {
        "fashion_mnist_both": round(both, 4),
        "fashion_mnist_apart": round(apart, 4),
        "reached": both >= apart,
    }
    return Finding(ours, _why(fashion), {"tasks": data, "averaged_turns": AVERAGED})


def _of_task(task: Task, records: Records) -> Record:
    ways = {}
    for name, way in {**WAYS, **VARIANTS}.items():
        runs = [
            record
            for record in records.values()
            if record["tags"] == {"data": task.data, "way": name}
        ]
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
    found["classes"] = runs[0]["measured"].get("classes", [])
    return found


def _why(ways: Record) -> str:
    turned = {name: 100 * way["turned"]["mean"] for name, way in ways.items()}
    alone = ways["downstream"]
    verb = "reaches" if turned["both"] >= turned["apart"] else "misses"
    return (
        f"On rotated Fashion-MNIST training with both losses {verb} the pipeline trained apart "
        f"({turned['both']:.1f} % against {turned['apart']:.1f} %): its classifier learns on the "
        "images that the canonicaliser makes, errors included. The downstream loss alone gives "
        f"{turned['downstream']:.1f} %: it turns an image to the same pose from any angle (two "
        f"turns end {alone['between_turns']['mean']:.0f}° apart), but not to the upright one "
        f"({alone['mean']['mean']:.0f}° off on average)."
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
    from radialbeams.experiments import figures as f

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
    rows += [
        (name, "turned", f"downstream loss, {ways[name]['title']}")
        for name in VARIANTS
        if name in ways
    ]
    return rows


def _dots(data: Sequence[Record]) -> Figure:
    """Accuracy of every way, one dot for each seed; hollow: upright images."""
    from radialbeams.experiments import figures

    longest = max(len(_rows(task["ways"])) for task in data)
    figure = figures.new(figures.PAGE, 0.8 + 0.21 * longest)
    for axes, task in zip(figure.subplots(1, len(data)), data, strict=True):
        rows = _rows(task["ways"])
        for y, (name, key, _) in enumerate(rows):
            values = [100 * value for value in task["ways"][name][key]["values"]]
            centre = mean(values)
            axes.plot(values, [y] * len(values), "o", markersize=3, alpha=0.6, **_look(name))
            axes.plot([centre], [y], "|", markersize=9, markeredgewidth=1.6, **_look(name))
            axes.annotate(
                f"{centre:.1f}",
                (centre, y),
                xytext=(0, 4.5),
                textcoords="offset points",
                ha="center",
                fontsize=6,
            )
            if key == "turned":
                upright = [100 * value for value in task["ways"][name]["upright"]["values"]]
                axes.plot(
                    [mean(upright)], [y], "o", markersize=4, markerfacecolor="none", **_look(name)
                )
        axes.set_yticks(range(len(rows)), [title for _, _, title in rows])
        axes.set_ylim(len(rows) - 0.4, -0.7)
        axes.set_xlabel("accuracy, %   (dots: any angle, one a seed; rings: upright)")
        axes.set_title(task["title"])
    return figure


def _lines(
    axes: Any, task: Record, names: Sequence[str], key: str, split: str, scale: float
) -> None:
    """The mean over the seeds, and the range of them."""
    for name in names:
        curves = task["ways"][name]["along"]
        steps = [line["step"] for line in curves[0]]
        values = [[scale * line[split][key] for line in curve] for curve in curves]
        middle = [mean(at) for at in zip(*values, strict=True)]
        if split == "train":
            axes.plot(steps, middle, ":", linewidth=0.8, label=f"_{name}", **_look(name))
            continue
        axes.plot(steps, middle, label=task["ways"][name]["title"], **_look(name))
        low, high = ([choose(at) for at in zip(*values, strict=True)] for choose in (min, max))
        axes.fill_between(steps, low, high, alpha=0.15, linewidth=0, **_look(name))


def _curves(data: Sequence[Record]) -> Figure:
    """Accuracy on turned images over training; dotted: of training images."""
    from radialbeams.experiments import figures

    figure = figures.new(figures.PAGE, 2.7)
    panels = figure.subplots(1, len(data))
    for axes, task in zip(panels, data, strict=True):
        _lines(axes, task, list(WAYS), "turned", "train", 100)
        _lines(axes, task, list(WAYS), "turned", "test", 100)
        axes.set(title=task["title"], xlabel="training step", ylim=(0, 100))
    panels[0].set_ylabel("accuracy at any angle, %\n(dotted: training images)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _angles(data: Sequence[Record]) -> Figure:
    """The error of the angle over training, for every way that has an angle."""
    from radialbeams.experiments import figures

    names = [name for name, way in WAYS.items() if way.localises]
    figure = figures.new(figures.PAGE, 2.7)
    panels = figure.subplots(1, len(data))
    for axes, task in zip(panels, data, strict=True):
        _lines(axes, task, names, "mean", "test", 1)
        axes.axhline(90, color="0.6", linewidth=0.8, linestyle="--")
        axes.annotate(
            "chance",
            (1, 90),
            xytext=(0, 2),
            textcoords="offset points",
            xycoords=("axes fraction", "data"),
            ha="right",
            fontsize=6.5,
            color="0.4",
        )
        axes.set(title=task["title"], xlabel="training step", yscale="log")
        axes.set_yticks([1, 2, 5, 10, 20, 50, 100], ["1°", "2°", "5°", "10°", "20°", "50°", "100°"])
        axes.minorticks_off()
    panels[0].set_ylabel("mean error of the angle")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _poses(task: Record) -> Figure:
    """Where each class comes to lie: an arrow up is upright, a long one is always the same."""
    from radialbeams.experiments import figures

    names = [name for name in ("apart", "downstream", "both") if name in task["ways"]]
    figure = figures.new(figures.PAGE, 2.6)
    panels = figure.subplots(1, len(names), subplot_kw={"projection": "polar"})
    for axes, name in zip(panels, names, strict=True):
        way = task["ways"][name]
        axes.set_theta_zero_location("N")
        for number, row in enumerate(way["classes"]):
            # What is left of the turn after turning back, counter-clockwise: −residual.
            radians = -math.radians(row["direction"])
            colour = figures.COLOURS[number % len(figures.COLOURS)]
            axes.plot([radians, radians], [0, row["length"]], color=colour, linewidth=1.2)
            axes.plot([radians], [row["length"]], "o", markersize=2.5, color=colour)
        axes.set_ylim(0, 1.05)
        axes.set_yticks([0.5, 1], ["", ""])
        axes.set_xticks([k * math.pi / 2 for k in range(4)], ["up", "90°", "180°", "270°"])
        apart = way["between_turns"]["mean"]
        axes.set_title(f"{way['title']}\ntwo turns of an image end {apart:.1f}° apart", fontsize=7)
    return figure


EXPERIMENT = Experiment(
    name=NAME,
    claim="future work: train the canonicaliser end to end with what comes after it",
    paper={},
    run=run,
    draw=draw,
    trainings=trainings,
)
