"""The report as one HTML file: no scripts, nothing from elsewhere, light and dark."""

from __future__ import annotations

from pathlib import Path

from radialbeams.files import write_whole
from radialbeams.training.report import sections, words
from radialbeams.training.report.findings import Findings, worse_than_start
from radialbeams.training.report.markup import prose, text

STYLE = Path(__file__).with_name("page.css")

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}
</style>
<body>
<header>
<h1>{title}</h1>
<p class="soft">{about}</p>
</header>
<main>
<section class="verdict {kind}" aria-label="Summary">
<p class="badge">{badge}</p>
<dl>{summary}</dl>
</section>
<nav aria-label="Sections"><ul>{contents}</ul></nav>
{body}
</main>
</body>
</html>
"""
CONTENTS = (
    ("error", "Error", sections.error),
    ("confidence", "Confidence", sections.confidence),
    ("worst", "Worst views", sections.worst),
    ("sheet", "Before and after", sections.sheet),
    ("groups", "Groups", sections.groups),
    ("symmetric", "Symmetry", sections.symmetric),
    ("crooked", "Not upright", sections.crooked),
    ("skipped", "Skipped", sections.skipped),
    ("views", "Views", sections.views),
    ("recipe", "Recipe", sections.recipe),
)


def write_report(path: Path, findings: Findings) -> None:
    """Writes the page atomically."""
    page = report_page(findings)
    write_whole(path, lambda partial: partial.write_text(page, encoding="utf-8"))


def report_page(findings: Findings) -> str:
    bodies = [(slug, name, make(findings)) for slug, name, make in CONTENTS]
    present = [(slug, name, body) for slug, name, body in bodies if body]
    kind, badge = verdict(findings)
    return PAGE.format(
        title=text(findings.card.name or "A trained model"),
        style=STYLE.read_text(encoding="utf-8"),
        about=text(about(findings)),
        kind=kind,
        badge=badge,
        summary=_summary(findings),
        contents="".join(f'<li><a href="#{slug}">{name}</a></li>' for slug, name, _ in present),
        body="\n".join(body for _, _, body in present),
    )


def verdict(findings: Findings) -> tuple[str, str]:
    """The style of the summary, and its heading."""
    if findings.trust is None:
        return "unchecked", "Trained"
    if findings.trust:
        return "doubted", "Do not trust this model"
    if worse_than_start(findings.validation):
        return "unchecked", "Checked; the start was better, and was kept"
    if words.warnings(findings):
        return "unchecked", "Checked; train it longer"
    return "trusted", "Trained and checked"


def about(findings: Findings) -> str:
    """The model and its training, in one line."""
    card = findings.card
    facts = [f"{card.parameters:,} parameters"] if card.parameters else []
    if worse_than_start(findings.validation):
        return ", ".join([*facts, *_kept_start(findings)]) + "."
    if card.data is not None:
        images = words.counted(card.data.training_images or 0, "image")
        facts.append(f"trained on {images} of {card.data.name}")
    if card.training is not None:
        steps = words.counted(card.training.steps_done or 0, "step")
        facts.append(f"{steps} in {_time(card.training.seconds)}")
        if card.training.start is not None:
            facts.append(f"started from {card.training.start.name}")
    return ", ".join(facts) + "."


def _kept_start(findings: Findings) -> tuple[str, str]:
    """The weights of the model and the fate of its training, where the start was better."""
    card = findings.card
    folder = "your folder" if card.data is None else card.data.name
    steps = 0 if card.training is None else card.training.steps_done or 0
    seconds = None if card.training is None else card.training.seconds
    it, was = ("it", "was") if steps == 1 else ("they", "were")
    return (
        f"with the weights of {words.start_name(card)}",
        f"calibrated on {words.counted(findings.held_out, 'held-out image')} of {folder}; "
        f"{words.counted(steps, 'step')} of training ({_time(seconds)}) {was} discarded, because "
        f"{it} made the error larger",
    )


def _time(seconds: float | None) -> str:
    seconds = seconds or 0.0
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def _summary(findings: Findings) -> str:
    leads = ("Error", "How sure", "Trust", "Effect")
    rows = [
        f"<div><dt>{lead}</dt><dd>{prose(line)}</dd></div>"
        for lead, line in zip(leads, words.summary(findings), strict=True)
    ]
    lead, command = words.command(findings.run, findings.trust)
    use = f"<div><dt>{lead}</dt><dd><code>{text(command)}</code></dd></div>"
    return "".join(rows) + use
