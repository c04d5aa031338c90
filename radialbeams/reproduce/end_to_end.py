"""End to end: the canonicaliser as the localisation network of a spatial transformer.

The paper leaves this for future work. One network rotates an image back by its estimate, another
classifies the result. The first learns from the angle loss, from the loss of the second, or from
both. At equal parameters, steps, batches and views, it is compared with the paper's pipeline (both
networks trained separately, then combined) and with classifiers without a canonicaliser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

from torch import Tensor

from radialbeams.front.view_geometry import ViewGeometry
from radialbeams.nn.ring_network import RingConfig
from radialbeams.reproduce.experiment import Conclusion, Experiment, Finding, Record, Records
from radialbeams.reproduce.joint import Joint, JointWay
from radialbeams.reproduce.joint_fit import (
    AVERAGED,
    JointDesign,
    TurnedImages,
    evaluate_fully,
    joint_parts,
    learning_curve,
    probe_of,
)
from radialbeams.reproduce.settings import ReproduceSettings
from radialbeams.reproduce.training_record import TrainingRecord
from radialbeams.reproduce.trainings import PlannedTraining, Trained
from radialbeams.stored import JsonDict
from radialbeams.training.leaks import FULL, Canary, CanaryEffort, Render, Rendering, measure_leak
from radialbeams.training.recipe import Recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "end-to-end"
WAYS = {
    "plain": JointWay("no canonicaliser", localises=False, trained_on="upright"),
    "augmented": JointWay("rotation augmentation", localises=False, trained_on="turned"),
    "apart": JointWay("trained apart", angle=1.0, trained_on="upright"),
    "angle": JointWay("end to end, angle loss", angle=1.0),
    "downstream": JointWay("end to end, downstream loss", downstream=1.0, answers="mean"),
    "both": JointWay("end to end, both losses", angle=1.0, downstream=1.0),
}
# Other choices of the estimate's gradient, on the first data set only.
VARIANTS = {
    "both-through": JointWay(
        "both, straight-through", angle=1.0, downstream=1.0, answers="through"
    ),
    "downstream-through": JointWay(
        "downstream, straight-through", downstream=1.0, answers="through"
    ),
    "downstream-beam": JointWay("downstream, likeliest beam", downstream=1.0, answers="beam"),
}
AVERAGES = {"plain": "no canonicaliser, averaged", "augmented": "augmentation, averaged"}
VALIDATIONS = 16
REACHED = "end to end reaches separate training, Fashion-MNIST"


@dataclass(frozen=True)
class JointTask:
    """A data set, and the size and training length of its networks."""

    data: str
    title: str
    parent_size: int
    channels: int
    steps: int
    images: int | None
    held_out: int | None
    design: JointDesign
    batch: int

    def model(self) -> RingConfig:
        """The localisation network; from small parents, leak-free views have at most 12 px."""
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


def tasks(settings: ReproduceSettings) -> list[JointTask]:
    full, quick = JointDesign(56, (32, 64, 128)), JointDesign(40, (16, 32, 64))
    design = settings.pick(quick=quick, full=full)
    batch = settings.pick(quick=64, full=256)
    images, coil = settings.pick(quick=(6000, 1500), full=(None, None))
    held_out = settings.pick(quick=300, full=None)
    steps, few = settings.pick(quick=(120, 80), full=(4000, 1500))
    return [
        JointTask("fashion-mnist", "Fashion-MNIST", 28, 1, steps, images, held_out, design, batch),
        JointTask("coil100", "COIL-100", 128, 3, few, coil, held_out, design, batch),
    ]


def trainings(settings: ReproduceSettings) -> list[PlannedTraining]:
    first, second = tasks(settings)
    seeds = settings.seeds_of(quick=1, full=3)
    runs = [(task, name, way) for task in (first, second) for name, way in WAYS.items()]
    runs += [] if settings.quick else [(first, name, way) for name, way in VARIANTS.items()]
    # One check is enough: all trainings have the same views.
    checked = None if settings.quick else (first, "apart", 0)
    return [
        PlannedTraining(
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


def measure(design: JointDesign, trained: Trained) -> JsonDict:
    fit, model = trained.fit, trained.model
    if not isinstance(model, Joint):
        raise TypeError(f"Expected a joint training; got {type(model).__name__}.")
    return {
        "along": learning_curve(fit),
        **evaluate_fully(model, probe_of(fit, design, trained.held_out)),
    }


def measure_with_canaries(
    design: JointDesign, trained: Trained, effort: CanaryEffort = FULL
) -> JsonDict:
    """The measurements of `measure`, and those of canaries on views of noise and a control."""
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


# --- results ---


def run(settings: ReproduceSettings, records: Records) -> Finding:
    by_task = {task.data: _task_results(task, records) for task in tasks(settings)}
    canaries = [
        canary for record in records.values() for canary in _measured(record, "canaries", [])
    ]
    data = {"tasks": by_task, "averaged_turns": AVERAGED, "canaries": canaries}
    return Finding(*conclude(data), data)


def conclude(data: Record) -> Conclusion:
    fashion = data["tasks"]["fashion-mnist"]["ways"]
    apart, both = (fashion[way]["turned"]["mean"] for way in ("apart", "both"))
    ours = {REACHED: "yes" if both >= apart else "no", **accuracies(data["tasks"])}
    return ours, _why(fashion)


def accuracies(data: dict[str, Record]) -> dict[str, str]:
    """The accuracy of every way on every task, on images at any angle."""
    return {
        f"accuracy at any angle, {task['title']}, {way['title']}": f"{way['turned']['mean']:.1%}"
        for task in data.values()
        for way in task["ways"].values()
    }


def _measured(record: TrainingRecord, name: str, default: Any) -> Any:
    return record.measured.get(name, default)


def _task_results(task: JointTask, records: Records) -> Record:
    ways = {}
    for name, way in {**WAYS, **VARIANTS}.items():
        tags = {"data": task.data, "way": name}
        runs = [record for record in records.values() if record.tags == tags]
        if diverged := [run.name for run in runs if run.diverged]:
            raise ValueError(f"{', '.join(diverged)} diverged; lower the learning rate.")
        if runs:
            ways[name] = {"title": way.title, **_summary(runs)}
    return {"title": task.title, "ways": ways}


FIGURES = ("turned", "upright", "averaged", "mean", "median", "flips", "between_turns")


def _summary(runs: Sequence[TrainingRecord]) -> Record:
    """Mean and values of each figure over the seeds, and the learning curves."""
    summary: Record = {"parameters": runs[0].parameters, "n": runs[0].measured["n"]}
    for name in (*FIGURES, "within_class"):
        values = [run.measured[name] for run in runs if name in run.measured]
        if values:
            summary[name] = {"mean": mean(values), "values": values}
    summary["seconds"] = [run.seconds for run in runs]
    summary["along"] = [run.measured["along"] for run in runs]
    summary["classes"] = _measured(runs[0], "classes", [])
    return summary


def _why(ways: Record) -> str:
    turned = {name: 100 * way["turned"]["mean"] for name, way in ways.items()}
    alone, ahead = ways["downstream"], turned["angle"] - turned["apart"]
    verb = "reaches" if turned["both"] >= turned["apart"] else "does not reach"
    return (
        f"On rotated Fashion-MNIST, training with both losses {verb} the accuracy of the "
        f"separately trained pipeline ({turned['both']:.1f}% against {turned['apart']:.1f}%). With "
        "the angle loss alone, the canonicaliser is the same as in separate training, but the "
        f"classifier, which then learns from its output and its errors, is {abs(ahead):.1f} points "
        f"{'better' if ahead >= 0 else 'worse'}{_no_gradient_needed(turned)}. The downstream loss "
        f"alone gives {turned['downstream']:.1f}%: by the symmetry of the ring, an image is "
        "rotated to the same pose from any angle (two rotations end "
        f"{alone['between_turns']['mean']:.0f}° apart), but that pose is not upright "
        f"({alone['mean']['mean']:.0f}° off on average, {alone['within_class']['mean']:.0f}° with "
        f"a constant offset per class).{_pull(ways)}"
    )


def _no_gradient_needed(turned: dict[str, float]) -> str:
    """Whether the angle loss alone is as good as both."""
    if turned["angle"] < turned["both"]:
        return ""
    return (
        f" ({turned['angle']:.1f}%): the gain comes from the classifier's training images, and "
        "its gradient does not improve the angle"
    )


def _pull(ways: Record) -> str:
    """The effect of the class loss on the angle if its gradient reaches every beam."""
    if "both-through" not in ways:
        return ""
    errors = [ways[name]["mean"]["mean"] for name in ("both", "both-through")]
    return (
        " If the gradient of the class loss reaches every beam (straight-through), both losses "
        f"together give {100 * ways['both-through']['turned']['mean']:.1f}%, with a mean angle "
        f"error of {errors[1]:.1f}° instead of {errors[0]:.1f}°."
    )


def draw(record: Record) -> dict[str, Figure]:
    from radialbeams.reproduce import end_to_end_figures  # it needs matplotlib

    return end_to_end_figures.draw(record)


EXPERIMENT = Experiment(
    name=NAME,
    claim="Future work: train the canonicaliser end to end with the network behind it",
    paper={},
    run=run,
    draw=draw,
    conclude=conclude,
    trainings=trainings,
)
