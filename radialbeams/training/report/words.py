"""The findings in sentences without markup, for the page and for a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from radialbeams.cards import Card, Evaluation
from radialbeams.escaping import shown
from radialbeams.posterior import Thresholds
from radialbeams.training.report.ambiguous import AmbiguousUnit
from radialbeams.training.report.canaries import Canary
from radialbeams.training.report.certainty import Acting
from radialbeams.training.report.findings import Findings, worse_than_start
from radialbeams.training.report.intervals import share_interval

CHANCE = 90.0  # degrees: the mean error of random answers
FEW_STEPS = 50  # after which little has been learned
# Held-out images from which thresholds vary less: the 95% interval of a share is then at most
# 14 percentage points to either side.
FEW_IMAGES = 50
# In place of the thresholds of a model that is not to be trusted.
OVERRIDDEN = (
    "The upright command leaves every picture alone, since the model is not to be trusted. With "
    "--min-confidence 0.5, it acts if the model is at least 50% sure."
)


def degrees(value: float) -> str:
    return f"{value:.2f}°" if abs(value) < 10 else f"{value:.1f}°"


def share(value: float) -> str:
    """Per cent, with one decimal near 0 and 100."""
    return f"{value:.0%}" if 0.1 <= value <= 0.9 or value in (0, 1) else f"{value:.1%}"


def counted(count: int, noun: str) -> str:
    """A number and a noun, in the plural unless the number is 1."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def command(run: str | Path, doubts: Sequence[str] | None = None) -> tuple[str, str]:
    """What to call the command that uses the model, and the command itself.

    Without --min-confidence, `upright` turns nothing with a model that is not to be trusted.
    """
    use = f"radialbeams upright PICTURES -o UPRIGHT --model {shlex.quote(shown(str(run)))}"
    return ("Use it anyway", f"{use} --min-confidence 0.5") if doubts else ("Use it", use)


def summary(findings: Findings) -> tuple[str, str, str, str]:
    """Four lines: the error, the confidence, whether to trust it, what `upright` will do."""
    error = learned(findings.evaluation, findings.held_out)
    return (
        " ".join((*discarded(findings), error, *warnings(findings))),
        certainty(findings.evaluation, findings.card),
        trusted(findings.trust),
        effect(findings.acting, findings.held_out, findings.trust or ()),
    )


def learned(figures: Evaluation, images: int) -> str:
    return (
        f"The mean error is {degrees(figures.mean)} (95% interval {degrees(figures.mean_low)} to "
        f"{degrees(figures.mean_high)}) on {counted(figures.n, 'turned view')} of "
        f"{counted(images, 'held-out image')}; half of the views are within "
        f"{degrees(figures.median)}. "
        f"Guessing would give {CHANCE:.0f}°."
    )


def start_name(card: Card) -> str:
    start = None if card.training is None else card.training.start
    return "its start" if start is None else f"its start ({start.name})"


def discarded(findings: Findings) -> tuple[str, ...]:
    """Where the weights come from, if training made the error larger than at its start."""
    worse = worse_than_start(findings.validation)
    if worse is None:
        return ()
    training = findings.card.training
    steps = 0 if training is None else training.steps_done or 0
    before, after = worse
    verb = "was" if steps == 1 else "were"
    return (
        f"The model has the weights of {start_name(findings.card)}, calibrated on your images: "
        f"{counted(steps, 'step')} of training {verb} discarded, because the error on the same "
        f"held-out views was {degrees(before)} before the first step and {degrees(after)} at the "
        "end.",
    )


def warnings(findings: Findings) -> tuple[str, ...]:
    """What speaks for a longer training or more images, though not against the model."""
    longer = "The same command with more --minutes or --steps continues."
    if worse_than_start(findings.validation) is not None:
        return longer, "If that does not help, train on more images."
    training = findings.card.training
    steps = None if training is None else training.steps_done
    if steps is None or steps >= FEW_STEPS:
        return ()
    return f"Warning: it was trained for only {counted(steps, 'step')}.", longer


def certainty(figures: Evaluation, card: Card) -> str:
    if figures.calibration_error is None:
        return "This network gives no confidence, so no answer can be held back."
    crosswise = next(iter(card.calibrated.values()), None)
    unseen = (
        ""
        if crosswise is None
        else f" ({100 * crosswise:.1f} on images that were not used for calibration)"
    )
    return (
        f"{share(figures.within_10)} of the answers are within 10°. Its calibrated confidence is "
        f"off by {100 * figures.calibration_error:.1f} percentage points on average{unseen}."
    )


def trusted(reasons: Sequence[str] | None) -> str:
    if reasons is None:
        return "Whether it can be trusted was not checked; compare the error with your needs."
    if not reasons:
        return "No check found a reason to distrust it on images like these."
    return " ".join(("Do not trust it.", *(f"{reason.rstrip('.')}." for reason in reasons)))


def effect(acting: Acting | None, held_out: int, doubts: Sequence[str] = ()) -> str:
    """What `upright` does with the model, and how much of that a few held-out images can tell."""
    if doubts:
        return "For these reasons, upright leaves every picture alone unless you override it."
    if acting is None:
        return "It has no thresholds of its own, so upright uses its defaults."
    if acting.right is None:
        sentence = "With its thresholds, upright leaves every picture alone."
    else:
        sentence = (
            f"With its thresholds, upright turns back {share(acting.acted)} of the turned views; "
            f"{share(acting.right)} of those end within 5° of upright, and {share(acting.spoilt)} "
            "of upright pictures end up worse."
        )
    return " ".join((sentence, *few_held_out(acting, held_out)))


def few_held_out(acting: Acting, held_out: int) -> tuple[str, ...]:
    """How uncertain thresholds from few images are, and what helps; nothing from FEW_IMAGES on."""
    if held_out >= FEW_IMAGES:
        return ()
    low, high = share_interval(acting.acted, held_out)
    return (
        f"These thresholds rest on only {counted(held_out, 'held-out image')} and are uncertain: "
        f"on other images like these, upright may turn back {low:.0%} to {high:.0%} of the turned "
        "views (95% interval), and another training may choose other thresholds. Add images to "
        f"the folder until at least {FEW_IMAGES} are held out.",
    )


def thresholds(least: Thresholds) -> str:
    """The thresholds from which `upright` acts."""
    if least.confidence >= 1:
        return (
            "The upright command leaves every picture alone: at no confidence are the answers "
            "right often enough."
        )
    needed = [
        f"the model is at least {least.confidence:.0%} sure",
        f"the turn is at least {least.angle:g}°",
    ]
    if least.upright < 1:
        needed.append(f"the probability that the picture is upright is at most {least.upright:.1%}")
    sentence = f"The upright command acts if {', '.join(needed[:-1])} and {needed[-1]}."
    if not least.tilts:
        sentence += (
            " For pictures that fill their canvas, it undoes quarter turns only; --snap none "
            "undoes any angle."
        )
    return sentence


def ambiguity(unit: AmbiguousUnit) -> str:
    """Whether the pixels are symmetric, or the model cannot tell."""
    if unit.pixel_order == 0:
        return "symmetric: the same at every angle"
    if unit.pixel_order > 1:
        return f"symmetric: the same every {360 // unit.pixel_order}°"
    return f"ambiguous: {directions(unit.order)}"


def directions(order: int) -> str:
    """What the symmetry order of a posterior means."""
    if order < 2:
        return "one clear up" if order else "no direction stands out"
    return f"{order} directions, {360 // order}° apart"


def leak(canary: Canary | None) -> str:
    """What the canary found about the views."""
    if canary is None:
        return (
            "No canary was measured for views of this geometry. "
            "`radialbeams leaks` measures those of the standard one."
        )
    verdict = (
        "which is chance: these views do not give the angle away"
        if canary.clean
        else "so these views give the angle away, and the errors above are too good to be true "
        "for real files"
    )
    return (
        f"ρ₄ = {_signed(canary.rho4)} (95% interval {_signed(canary.low)} to "
        f"{_signed(canary.high)}), {verdict}."
    )


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def leak_source(canary: Canary, parent: int) -> str:
    """Where the figure comes from, and for which views it was measured."""
    how = f"a {_NETWORKS[canary.network]} trained on {canary.views:,} views of white noise"
    if canary.here:
        return f"Measured with the views of this run: {how}."
    if canary.parent_size == parent:
        return f"Not measured in this run, but on file for the same image size: {how}."
    return (
        f"Not measured in this run, but on file for views that are made by the same rule from "
        f"{canary.parent_size} px images; this run has {parent} px images. The canary is {how}."
    )


_NETWORKS = {"ring": "ring network", "cnn": "convolutional network"}
