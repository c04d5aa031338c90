"""From findings to charts, each with a caption that says what it shows."""

from __future__ import annotations

from collections.abc import Sequence

from radialbeams.training.report.charts import Axis, Chart, linear, log_degrees, percent, steps
from radialbeams.training.report.findings import EDGES, Findings, Point
from radialbeams.training.report.markup import figure, table, text
from radialbeams.training.report.words import degrees, share

SMOOTHED = 9  # lines of the log that the bold curve takes the median of


def curves(findings: Findings) -> str:
    """The error of training and held-out views over the steps."""
    training, held_out = findings.training, findings.validation
    if max(len(training), len(held_out)) < 2:
        return figure("", "Error during training", "The run was too short for a curve.")
    points = (*training, *held_out)
    values = [value for p in points for value in (p.mean, p.low, p.high) if value is not None]
    last = max(point.step for point in points)
    chart = Chart(steps(last), log_degrees("error", values), "Error over training steps")
    plain: list[tuple[float, float]] = [(point.step, point.mean) for point in training]
    if len(plain) >= 3 * SMOOTHED:
        chart.line(plain, "first faint")
        plain = _smoothed(training)
    chart.line(plain, "first")
    chart.band(
        [(p.step, p.low, p.high) for p in held_out if p.low is not None and p.high is not None],
        "second",
    )
    chart.line([(point.step, point.mean) for point in held_out], "second")
    caption = _entry("first", "training views, augmented: the angle that has their loss")
    if held_out:
        caption += _entry("second", "held-out images: mean error and its 95% interval")
    else:
        caption += "Held-out images were not measured during the training."
    return figure(chart.svg(), "Error during training", caption, _curve_table(training, held_out))


def _entry(kind: str, words: str) -> str:
    return f'<span class="entry"><span class="key {kind}"></span> {text(words)}</span>'


def _smoothed(points: Sequence[Point]) -> list[tuple[float, float]]:
    """A running median, which one odd batch does not move."""
    reach = SMOOTHED // 2
    return [
        (point.step, sorted(neighbour.mean for neighbour in near)[len(near) // 2])
        for k, point in enumerate(points)
        for near in [points[max(0, k - reach) : k + reach + 1]]
    ]


def _curve_table(training: Sequence[Point], held_out: Sequence[Point]) -> str:
    at = {point.step: point.mean for point in held_out}
    shown = [p for k, p in enumerate(training) if k % max(1, len(training) // 12) == 0]
    near = {point.step: point.mean for point in shown}
    rows = [
        (
            f"{step:,}",
            degrees(near[step]) if step in near else "–",
            degrees(at[step]) if step in at else "–",
        )
        for step in sorted({*near, *at})
    ]
    return table(("step", "training", "held out"), rows, "Error over training steps")


def histogram(findings: Findings) -> str:
    edges = (0.0, *EDGES)
    labels = [f"{low:g}–{high:g}" for low, high in zip(edges, EDGES, strict=False)]
    ticks = tuple((k + 0.5, label) for k, label in enumerate(_ends()))
    x = Axis("error in degrees, up to", 0, len(EDGES), ticks)
    highest = max(100 * max(findings.histogram), 1)
    y = linear("share of views", 0, min(highest * 1.08, 100), unit="%")
    chart = Chart(x, y, "Histogram of errors")
    chart.bars(
        [(k, k + 1, 100 * v, _bar_label(v)) for k, v in enumerate(findings.histogram)], "first"
    )
    flips = findings.evaluation.flips
    caption = (
        f"{text(share(findings.evaluation.within_5))} of the views are within 5°; "
        f"{text(share(flips))} are upside down (150° or more)."
    )
    rows = [(f"{a}°", f"{v:.1%}") for a, v in zip(labels, findings.histogram, strict=True)]
    return figure(
        chart.svg(), "How large the errors are", caption, table(("error", "views"), rows, "Errors")
    )


def _ends() -> list[str]:
    return [f"{end:g}" for end in EDGES]


def _bar_label(value: float) -> str:
    return "" if value == 0 else "<1" if value < 0.01 else f"{value:.0%}"


def over_angle(findings: Findings) -> str:
    parts = findings.by_angle
    width = 360 / len(parts)
    rows = [(width * (k + 0.5), cell) for k, cell in enumerate(parts) if cell.views]
    if not rows:
        return ""
    ticks = tuple((90.0 * k, f"{90 * k}°") for k in range(5))
    top = max(max(cell.high, cell.mean) for _, cell in rows)
    chart = Chart(
        Axis("how far the view was turned", 0, 360, ticks),
        linear("mean error", 0, max(top, 0.1), unit="°"),
        "Mean error over the true angle",
    )
    chart.whiskers([(x, cell.low, cell.high) for x, cell in rows], "first")
    chart.dots([(x, cell.mean) for x, cell in rows], "first")
    numbers = [
        (
            f"{x - width / 2:.0f}° to {x + width / 2:.0f}°",
            cell.views,
            degrees(cell.mean),
            f"{degrees(cell.low)} to {degrees(cell.high)}",
        )
        for x, cell in rows
    ]
    caption = (
        "Dots are means, lines 95% intervals. A model that has learned what is up is equally "
        "good at every angle."
    )
    head = ("turned by", "views", "mean", "95% interval")
    return figure(
        chart.svg(), "Error over the true angle", caption, table(head, numbers, "Error by angle")
    )


def reliability(findings: Findings) -> str:
    rows = findings.reliability
    chart = Chart(percent("how sure the model is"), percent("how often it is right"), "Calibration")
    chart.line([(0, 0), (1, 1)], "plain")
    chart.whiskers([(row.confidence, row.right.low, row.right.high) for row in rows], "first")
    chart.dots([(row.confidence, row.right.mean) for row in rows], "first")
    if findings.acting is not None:
        chart.upright(findings.acting.thresholds.confidence, _threshold_label(findings), "second")
    error = findings.evaluation.calibration_error
    words = "" if error is None else f" The mean distance from it is {error:.3f}."
    caption = (
        "On the diagonal, a confidence of 90% is right nine times in ten. Right means within 10°."
        + text(words)
        + " Lines are 95% intervals."
    )
    numbers = [
        (
            share(row.confidence),
            row.right.views,
            share(row.right.mean),
            f"{share(row.right.low)} to {share(row.right.high)}",
        )
        for row in rows
    ]
    head = ("confidence", "views", "right", "95% interval")
    return figure(chart.svg(), "Calibration", caption, table(head, numbers, "Calibration"))


def _threshold_label(findings: Findings) -> str:
    if findings.acting is None:
        return ""
    return f"threshold {findings.acting.thresholds.confidence:.0%}"


def risk_coverage(findings: Findings) -> str:
    points = [(point.coverage, point.mean) for point in findings.risk_coverage]
    top = max(max(mean for _, mean in points), 0.1)
    chart = Chart(
        percent("share of views answered, surest first"),
        linear("mean error of those", 0, top, unit="°"),
        "Risk and coverage",
    )
    chart.line(points, "first")
    words = "The curve falls to the left if the model knows when it is unsure."
    acting = findings.acting
    if acting is not None and acting.confident_mean is not None:
        chart.upright(acting.confident, _threshold_label(findings), "second")
        words = (
            f"At the chosen threshold of {acting.thresholds.confidence:.0%}, "
            f"{share(acting.confident)} of the views are answered, with a mean error of "
            f"{degrees(acting.confident_mean)}."
        )
    elif acting is not None:
        words = f"No view reaches the chosen threshold of {acting.thresholds.confidence:.0%}."
    numbers = [
        (f"{row.coverage:.0%}", degrees(row.mean), share(row.within_10))
        for row in findings.evaluation.risk_coverage
    ]
    return figure(
        chart.svg(),
        "Risk and coverage",
        text(words),
        table(("answered", "mean error", "within 10°"), numbers, "Risk and coverage")
        if numbers
        else "",
    )
