"""A run's report: one HTML page without scripts that shows how it went and what came out."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from radialbeams.cards import Card, to_json

WIDTH, HEIGHT, LEFT, BOTTOM = 720, 260, 64, 36

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
 body {{ font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; max-width: 46rem;
         margin: 2rem auto; padding: 0 1rem; }}
 table {{ border-collapse: collapse; margin: 1rem 0; }}
 td, th {{ padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid #d0d7de; }}
 pre {{ background: #f6f8fa; padding: 1rem; overflow: auto; font-size: 13px; }}
 svg text {{ font: 12px system-ui, sans-serif; fill: #57606a; }}
</style>
<h1>{title}</h1>
<p>{summary}</p>
<h2>Held-out images</h2>
{figures}
<h2>Training</h2>
{curve}
<h2>Recipe</h2>
<pre>{recipe}</pre>
</html>
"""


def write_report(path: Path, card: Card, lines: Sequence[dict[str, Any]]) -> None:
    """From the finished card and the lines of metrics.jsonl."""
    (protocol, measured), *_ = card.metrics.items()
    data, training = card.data, card.training
    if data is None or training is None:
        raise ValueError("A report is about a training; this card knows of none.")
    page = PAGE.format(
        title=html.escape(card.name),
        summary=html.escape(
            f"{card.parameters or 0:,} parameters, trained on {data.training_images or 0:,} "
            f"images of {data.name} for {training.steps_done or 0:,} steps in "
            f"{training.seconds or 0:.0f} s."
        ),
        figures=_table(protocol, measured.evaluation.to_dict()),
        curve=_curve([(line["step"], line["circle_loss"]) for line in lines if "epoch" in line]),
        recipe=html.escape(json.dumps(to_json(card)["training"], indent=1, ensure_ascii=False)),
    )
    path.write_text(page, encoding="utf-8")


def _table(protocol: str, figures: dict[str, Any]) -> str:
    rows = [("protocol", protocol), ("views", f"{figures['n']:,}")]
    for name in ("mean", "median", "p95", "paper_equivalent"):
        rows.append((name.replace("_", "-"), f"{figures[name]:.2f}°"))
    for name, text in (("within_5", "within 5°"), ("within_10", "within 10°"), ("flips", "flips")):
        rows.append((text, f"{figures[name]:.1%}"))
    cells = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{cells}</table>"


def _curve(points: Sequence[tuple[int, float]]) -> str:
    """The circle loss over steps, on a logarithmic axis labelled in degrees as well."""
    if len(points) < 2:
        return "<p>Too short a run for a curve.</p>"
    logs = [math.log10(max(loss, 1e-7)) for _, loss in points]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    last = points[-1][0]

    def place(step: float, log: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - 8) * step / last
        return x, 8 + (HEIGHT - BOTTOM - 8) * (high - log) / max(high - low, 1)

    marks = []
    for power in range(low, high + 1):
        _, y = place(0, power)
        degrees = math.degrees(math.acos(max(-1.0, 1 - 10.0**power / 2)))
        label = f"{degrees:.0f}" if degrees >= 10 else f"{degrees:.2g}"
        marks.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d0d7de"/>'
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}°</text>'
        )
    path = " ".join(
        "{:.1f},{:.1f}".format(*place(step, log))
        for (step, _), log in zip(points, logs, strict=True)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Loss over steps">'
        f'{"".join(marks)}<polyline points="{path}" fill="none" stroke="#c2410c" stroke-width="2"/>'
        f'<text x="{LEFT}" y="{HEIGHT - 12}">0</text>'
        f'<text x="{WIDTH - 8}" y="{HEIGHT - 12}" text-anchor="end">{last:,} steps; '
        "circle loss of the training views, as degrees</text></svg>"
    )
