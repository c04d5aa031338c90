"""The page: safe whatever files are called, the figures of the card, whole without any piece."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from radialbeams.cards import Card, DataCard, TrainingCard, WeightsOrigin
from radialbeams.nn.ring_network import RingBIC
from radialbeams.training.data import ImageSet
from radialbeams.training.report import Findings, command, find, markup, summary, write_report
from radialbeams.training.report.findings import Point
from radialbeams.training.report.page import report_page
from radialbeams.training.report.showing import CrookedImage
from radialbeams.training.report.words import degrees

from .conftest import LINES, VIEWS

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\n\u202egnp.{0}%s"
VOID = {"meta", "img", "br"}


@dataclass(frozen=True)
class Skipped:
    path: str
    reason: str


class Checker(HTMLParser):
    """Collects tags and what they point to; fails where tags do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def checked(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert "script" not in checker.tags
    assert not [name for name in checker.names if name.startswith("on")]
    assert len(set(checker.ids)) == len(checker.ids)
    for address in checker.addresses:
        assert address.startswith("data:image/webp;base64,") or address[1:] in checker.ids
    return checker


def text_of(page: str) -> str:
    return " ".join("".join(checked(page).words).split())


# --- safe ---


def test_nothing_in_a_name_becomes_markup(
    ring: RingBIC, ring_card: Card, held_out: ImageSet, findings: Findings
) -> None:
    names = tuple(f"{HOSTILE}{i}" for i in range(len(held_out)))
    groups = tuple(f"{HOSTILE}{i % 2}" for i in range(len(held_out)))
    images = replace(held_out, keys=names, groups=groups)
    card = replace(ring_card, name=HOSTILE, data=DataCard(HOSTILE, 10))
    pixels = findings.worst[0].before
    found = find(
        ring,
        card,
        images,
        VIEWS,
        LINES,
        run=HOSTILE,
        trust=[HOSTILE],
        skipped=[Skipped(HOSTILE, HOSTILE), Skipped("b", "It is blank.")],
        crooked=[CrookedImage(HOSTILE, 12.0, 0.9, pixels, pixels)],
    )
    page = report_page(found)
    assert checked(page).tags <= {
        *("html", "meta", "title", "style", "body", "header", "main", "nav", "section", "h1", "h2"),
        *("h3", "p", "dl", "div", "dt", "dd", "code", "ul", "ol", "li", "a", "table", "thead"),
        *("tbody", "tr", "th", "td", "figure", "figcaption", "svg", "line", "polyline", "polygon"),
        *("circle", "rect", "text", "details", "summary", "span", "img", "bdi", "br", "pre"),
    }
    assert "\u202e" not in page
    assert page.count("&lt;script&gt;") > 20


def test_the_page_needs_nothing_from_elsewhere(findings: Findings) -> None:
    page = report_page(findings)
    assert "Content-Security-Policy" in page and "default-src 'none'" in page
    assert not re.findall(r"(?:https?:)?//[a-z]", re.sub(r"data:[^\"]+", "", page))
    assert "url(" not in page and "@import" not in page


# --- true ---


def test_the_figures_are_those_of_the_card(findings: Findings, ring_card: Card) -> None:
    words = text_of(report_page(findings))
    figures = ring_card.metrics["leakfree"].evaluation
    interval = f"{degrees(figures.mean_low)} to {degrees(figures.mean_high)}"
    assert f"mean error is {degrees(figures.mean)} (95% interval {interval})" in words
    for value in (figures.median, figures.p95, figures.paper_equivalent):
        assert degrees(value) in words
    assert f"{figures.calibration_error:.3f}" in words
    assert f"{figures.n:,} views of 24 held-out images" in words
    least = ring_card.abstain
    assert least is not None
    assert f"at least {least.confidence:.0%} sure, the turn is at least 2°" in words


def test_the_summary_is_four_lines_and_a_command(findings: Findings) -> None:
    assert len(summary(findings)) == 4
    assert all(line.endswith(".") for line in summary(findings))
    use = "radialbeams upright PICTURES -o UPRIGHT --model runs/tiny"
    assert command("runs/tiny", ()) == ("Use it", use)
    assert text_of(report_page(findings)).count(use) == 1
    assert command("my runs/it's")[1].endswith("""--model 'my runs/it'"'"'s'""")


def test_the_command_for_a_model_that_is_not_trusted_overrides_that(findings: Findings) -> None:
    words = text_of(report_page(replace(findings, trust=("It is near chance.",))))
    _, use = command("runs/tiny", ("It is near chance.",))
    assert use.endswith("--model runs/tiny --min-confidence 0.5")
    assert f"Use it anyway{use}" in words
    trusted = text_of(report_page(replace(findings, trust=())))
    assert "--min-confidence" not in trusted and "anyway" not in trusted


def test_options_in_sentences_are_code_that_does_not_break() -> None:
    shown = markup.paragraph("Add --min-confidence 0.5. Or --snap none; a -- b, --<i>.")
    assert shown == (
        '<p>Add <code class="option">--min-confidence 0.5</code>. Or <code class="option">--snap'
        "</code> none; a -- b, --&lt;i&gt;.</p>"
    )


def test_nothing_is_turned_by_a_model_that_is_not_trusted(findings: Findings) -> None:
    view = replace(findings.sheet[0], acted=True)
    turned = replace(findings, trust=(), sheet=(view,), worst=(view,))
    words = text_of(report_page(turned))
    assert "The upright command acts if" in words and words.count("sure · turned") == 2
    words = text_of(report_page(replace(turned, trust=("It is near chance.",))))
    assert "leaves every picture alone, since the model is not to be trusted. With" in words
    for claim in (
        "The upright command acts if",
        "sure · turned",
        "whether upright would",
        "rest on",
    ):
        assert claim not in words


def test_thresholds_from_few_held_out_images_are_said_to_be_uncertain(findings: Findings) -> None:
    assert findings.acting is not None
    acting = replace(findings.acting, acted=0.25, right=1.0)
    few = replace(findings, trust=(), acting=acting)
    sentence = (
        "These thresholds rest on only 24 held-out images and are uncertain: on other images like "
        "these, upright may turn back 12% to 45% of the turned views (95% interval)"
    )
    assert sentence in summary(few)[3]
    assert text_of(report_page(few)).count(sentence) == 2  # in the summary and under Confidence
    assert "until at least 50 are held out." in summary(few)[3]
    idle = replace(few, acting=replace(acting, acted=0.0, right=None))
    assert "leaves every picture alone. These thresholds rest" in summary(idle)[3]
    enough = replace(few, held_out=50)
    assert "uncertain" not in text_of(report_page(enough))


def test_one_is_singular(findings: Findings, ring_card: Card) -> None:
    training = TrainingCard({}, steps_done=1, seconds=2.0)
    words = text_of(
        report_page(replace(findings, seeds=1, card=replace(ring_card, training=training)))
    )
    assert "1 step in 2 s" in words and "1 random turn each" in words


def test_a_model_that_is_hardly_trained_or_worse_than_its_start_is_not_shown_as_done(
    findings: Findings,
) -> None:
    trained = replace(findings.card, training=TrainingCard({}, steps_done=500, seconds=2.0))
    long = replace(findings, trust=(), card=trained)
    assert "Trained and checked" in report_page(long)
    short = text_of(report_page(replace(findings, trust=())))
    assert "Trained and checked" not in short
    assert "Warning: it was trained for only 10 steps. The same command" in short
    assert "train it longer" in short and "use the start" not in short
    worse = replace(long, validation=(Point(0, 2.5), Point(250, 13.0), Point(500, 3.9)))
    words = text_of(report_page(worse))
    assert "Trained and checked" not in words
    assert "Checked; the start was better, and was kept" in words and "train it longer" not in words
    assert "with more --minutes or --steps continues. If that does not help, train on" in words
    better = replace(worse, validation=(Point(0, 4.0), Point(500, 3.9)))
    assert "Trained and checked" in report_page(better)


def test_a_start_that_was_kept_is_said_before_any_figure(findings: Findings) -> None:
    start = WeightsOrigin("ring", "0" * 64)
    trained = TrainingCard({}, steps_done=500, seconds=30.0, start=start)
    kept = replace(
        findings,
        trust=(),
        card=replace(findings.card, training=trained),
        validation=(Point(0, 2.5), Point(500, 3.9)),
    )
    words = text_of(report_page(kept))
    assert (
        "with the weights of its start (ring), calibrated on 24 held-out images of photos; 500 "
        "steps of training (30 s) were discarded, because they made the error larger." in words
    )
    assert "trained on" not in words[: words.index("Held-out images")]
    assert summary(kept)[0].startswith(
        "The model has the weights of its start (ring), calibrated on your images: 500 steps of "
        "training were discarded, because the error on the same held-out views was 2.50° before "
        "the first step and 3.90° at the end. The mean error is "
    )


def test_reasons_not_to_trust_it_come_first(findings: Findings) -> None:
    doubted = replace(findings, trust=("Only 3 images were held out.", "It is near chance"))
    words = text_of(report_page(doubted))
    start = words.index("Do not trust this model")
    assert start < words.index("Held-out images")
    assert "Do not trust it. Only 3 images were held out. It is near chance." in words
    assert "upright leaves every picture alone" in words
    checked_well = text_of(report_page(replace(findings, trust=())))
    assert "Do not trust" not in checked_well and "No check found a reason" in checked_well
    unchecked = text_of(report_page(findings))
    assert "was not checked" in unchecked and "No check speaks" not in unchecked


def test_skipped_files_are_counted_by_reason(findings: Findings) -> None:
    skipped = (
        Skipped("a.png", "It is a copy of x.png."),
        Skipped("b.png", "It is a copy of y.png."),
        Skipped("c.png", "It is too small: 3 × 4 pixels."),
    )
    words = text_of(report_page(replace(findings, skipped=skipped)))
    assert "Not used: 3 files." in words
    assert "It is a copy: 2" in words and "It is too small: 1" in words
    assert "It is a copy of y.png." in words


def test_groups_of_few_images_are_marked(
    ring: RingBIC, ring_card: Card, held_out: ImageSet
) -> None:
    images = replace(held_out, groups=tuple("few" if i < 2 else "many" for i in range(24)))
    words = text_of(report_page(find(ring, ring_card, images, VIEWS, LINES)))
    assert "1 of the 2 groups have fewer than 5 held-out images" in words
    assert words.count("few images") == 2  # the group's row and the caption


# --- whole without any piece ---


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], "too short for a curve"),
        (LINES[:1], "too short for a curve"),
        (LINES[:2], "too short for a curve"),
        (LINES[:1] + LINES[2:3], "Held-out images were not measured during the training"),
        (LINES, "held-out images: mean error"),
    ],
)
def test_a_short_run_has_a_report(
    ring: RingBIC,
    ring_card: Card,
    held_out: ImageSet,
    lines: list[dict[str, Any]],
    expected: str,
) -> None:
    assert expected in text_of(report_page(find(ring, ring_card, held_out, VIEWS, lines)))


def test_what_is_missing_is_left_out(ring: RingBIC, ring_card: Card, held_out: ImageSet) -> None:
    """No groups, no thresholds, no figures, no training, one held-out image."""
    card = replace(ring_card, abstain=None, metrics={}, data=None, training=None, calibrated={})
    images = replace(held_out.select([0]), groups=("",))
    checker = checked(report_page(find(ring, card, images, VIEWS, ())))
    assert not {"groups", "crooked"} & set(checker.ids)
    assert {"error", "confidence", "worst", "sheet", "skipped", "views"} <= set(checker.ids)


def test_the_file_is_written_whole(findings: Findings, tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", findings)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report_page(findings)


def test_training_leaves_a_report(finished_run: Path) -> None:
    words = text_of((finished_run / "report.html").read_text(encoding="utf-8"))
    assert "This network gives one angle and no confidence." in words
    assert "these views give the angle away" in words  # the paper's do


# --- in a browser ---

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium: apt install chromium")
def test_it_fits_a_phone_and_requests_nothing(findings: Findings, tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    write_report(tmp_path / "report.html", findings)
    address = (tmp_path / "report.html").as_uri()
    troubles: list[str] = []
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 360, "height": 700}, color_scheme=scheme)
            page.on("console", lambda message: troubles.append(message.text))
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on("request", lambda request: troubles.append(request.url))
            page.goto(address)
            page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            loaded = "[...document.images].every((one) => one.loading === 'lazy' || one.complete)"
            assert page.evaluate(loaded)
        browser.close()
    assert {one for one in troubles if not one.startswith("data:")} == {address}
