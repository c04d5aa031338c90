"""Pages and screens through the library and the command: levelled, turned, and told from photos."""

from __future__ import annotations

import io
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from radialbeams import Canonicalizer, documents, images, zoo
from radialbeams.batch import JobSettings
from radialbeams.decisions import FILLED
from radialbeams.demo import PICTURES
from radialbeams.documents import (
    DocumentReader,
    document_card,
    from_two_turns,
    gray_page,
    looked_closely,
)
from radialbeams.images.likeness import likeness, may_be_document
from radialbeams.images.page import page_view
from radialbeams.images.reading import read_small
from radialbeams.posterior import Answer, read_quarters

TEXT = (
    "The quick brown fox jumps over the lazy dog while seven wizards, tired of their quest, "
    "gather by the fire to judge a box of pickled liquor jugs. Every letter has its place. "
)


def printed_page(
    size: tuple[int, int] = (850, 1100), paper: int = 255, ink: int = 0
) -> Image.Image:
    """A heading and paragraphs with ragged ends, upright."""
    page = Image.new("RGB", size, (paper,) * 3)
    draw = ImageDraw.Draw(page)
    draw.text((90, 70), "On foxes and dogs", fill=(ink,) * 3, font=ImageFont.load_default(36))
    font, words, y = ImageFont.load_default(19), (TEXT * 12).split(), 140
    while y < size[1] - 120:
        line = ""
        while words and font.getlength(line + words[0]) < size[0] - 200:
            line += words.pop(0) + " "
        if not line:
            break
        draw.text((90, y), line, fill=(ink,) * 3, font=font)
        y += 26 if y % 5 else 44
    return page


@pytest.fixture(scope="module")
def model() -> Canonicalizer:
    return Canonicalizer("ring", threads=1)


@pytest.fixture(scope="module")
def page() -> Image.Image:
    return printed_page()


def as_jpeg(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=90)
    return file.getvalue()


def apart(first: float, second: float) -> float:
    return abs((first - second + 180) % 360 - 180)


@pytest.mark.parametrize("fill", ["black", "white"])
@pytest.mark.parametrize("degrees", [0, 90, 180, 270, 33.0, 187.5, 356.0])
def test_a_printed_page_is_found_at_any_angle(
    model: Canonicalizer, page: Image.Image, degrees: float, fill: str
) -> None:
    turned = page.rotate(degrees, Image.Resampling.BICUBIC, expand=True, fillcolor=fill)
    (answer,) = model.answers([as_jpeg(turned)])
    assert answer.kind == "document"
    assert apart(answer.angle_degrees, degrees) < 0.5
    assert answer.confidence is not None and answer.confidence > 0.8
    assert answer.posterior is not None and len(answer.posterior) == model.card.network.num_bins


def test_light_text_on_dark_and_text_on_nothing_are_documents(model: Canonicalizer) -> None:
    dark = printed_page(paper=25, ink=235).rotate(180)
    clear = Image.new("RGBA", dark.size, (0, 0, 0, 0))
    strokes = printed_page().convert("L").point(lambda v: 255 - v)
    clear.paste((0, 0, 0, 255), mask=strokes)
    first, second = model.answers([dark, clear])
    assert first.kind == second.kind == "document"
    assert apart(first.angle_degrees, 180) < 1 and apart(second.angle_degrees, 0) < 1


def test_a_photo_is_no_document_and_its_answer_stays_as_it_was(model: Canonicalizer) -> None:
    plain = Canonicalizer("ring", threads=1, documents=False)
    for degrees in (0, 40):
        with Image.open(PICTURES / "astronaut.webp") as opened:
            photo = opened.convert("RGB").rotate(degrees, expand=True)
        (found,), (before,) = model.answers([photo]), plain.answers([photo])
        assert found.kind == before.kind == "picture"
        assert found.angle_degrees == before.angle_degrees


def test_a_model_whose_card_does_not_name_documents_judges_them_itself(page: Image.Image) -> None:
    (answer,) = Canonicalizer("ring.lfw", threads=1).answers([page])
    assert answer.kind == "picture"


@pytest.mark.parametrize("size", [(1, 1), (3, 900), (24, 24), (2000, 30)])
def test_pictures_of_any_shape_have_an_answer(model: Canonicalizer, size: tuple[int, int]) -> None:
    blank, noise = Image.new("RGB", size, "white"), Image.effect_noise(size, 80).convert("RGB")
    assert len(model.answers([blank, noise])) == 2


@pytest.mark.parametrize(("kind", "size", "reads"), [
    ("PNG", (600, 700), 1),
    ("JPEG", (600, 700), 1),
    ("JPEG", (1200, 1400), 2),
])  # fmt: skip
def test_a_page_is_decoded_again_only_if_that_gives_more_pixels(
    model: Canonicalizer,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    size: tuple[int, int],
    reads: int,
) -> None:
    file, sides = io.BytesIO(), []
    printed_page(size).save(file, kind)

    def counted(source: images.ImageSource, side: int, **rest: Any) -> Image.Image:
        sides.append(side)
        return read_small(source, side, **rest)

    monkeypatch.setattr(images, "read_small", counted)
    assert model.look(file.getvalue()).document is not None
    assert len(sides) == reads


def test_a_page_is_reduced_before_it_is_turned() -> None:
    assert max(gray_page(Image.new("RGB", (9000, 4000))).size) < 2 * documents.LONGEST
    assert gray_page(Image.new("RGB", (900, 400))).size == (900, 400)


def house() -> Image.Image:
    """A drawing: flat colours and steep edges."""
    drawing = Image.new("RGB", (500, 500), "white")
    draw = ImageDraw.Draw(drawing)
    draw.rectangle((110, 230, 390, 450), fill="orange", outline="black", width=6)
    draw.polygon([(80, 230), (250, 90), (420, 230)], fill="brown", outline="black", width=6)
    draw.rectangle((220, 330, 290, 450), fill="white", outline="black", width=6)
    return drawing


def grainy() -> Image.Image:
    """The same with noise, as a photo of it would have."""
    grain = Image.effect_noise((500, 500), 40).convert("RGB")
    return Image.blend(house(), grain, 0.4)


@pytest.mark.parametrize(
    ("picture", "drawn", "kind"),
    [(house, True, "picture"), (grainy, True, "document"), (house, False, "document")],
)
def test_a_drawing_is_a_picture_if_the_network_and_its_view_say_so(
    monkeypatch: pytest.MonkeyPatch, picture: Callable[[], Image.Image], drawn: bool, kind: str
) -> None:
    page = documents.Page(Answer(90.0, 0.99, kind="document"), clear=True, drawn=drawn)
    monkeypatch.setattr(DocumentReader, "answer", lambda *_: page)
    general = Canonicalizer("general", threads=1)
    unsure = lambda views, ends: [Answer(10.0, 0.5) for _ in views]  # noqa: E731
    monkeypatch.setattr(general, "answers_from_views", unsure)
    assert general.answers([picture()])[0].kind == kind


def test_the_network_knows_a_page_from_a_drawing(page: Image.Image) -> None:
    reader = DocumentReader(threads=1)
    for turn in range(4):
        sideways = page.rotate(90 * turn, expand=True)
        answer = reader.answer(sideways, lambda: sideways, 72)  # noqa: B023
        assert answer is not None and not answer.drawn
        found = reader.quarters(gray_page(house().rotate(90 * turn)), prior=100.0)
        assert found is not None and found.unlike_drawings < reader.card.drawn


def test_the_rule_tells_a_page_from_a_photo(page: Image.Image) -> None:
    with Image.open(PICTURES / "astronaut.webp") as photo:
        assert not may_be_document(photo)
    assert may_be_document(page)
    assert likeness(Image.new("L", (1, 1))).shape == (12,)


def test_convention_turns_and_skew_add_up_to_the_angle() -> None:
    """Turned by 93° counter-clockwise: its lines are 3° off, and three more quarters undo 90°."""
    mass = np.array([0.02, 0.02, 0.01, 0.95])
    answer = read_quarters(mass, 3.0, 72)
    assert answer.angle_degrees == pytest.approx(93)
    assert answer.confidence == pytest.approx(0.95)
    assert answer.upright == pytest.approx(0.02)  # of no turns, which 3° is near enough to
    assert answer.posterior is not None and answer.posterior.sum() == pytest.approx(1)
    assert (answer.symmetry, answer.kind) == (1, "document")
    assert read_quarters(np.array([0.5, 0, 0.5, 0]), 0.0, 72).symmetry == 2


def test_close_views_move_chances_between_the_two_best_turns_alone() -> None:
    card = replace(document_card(), close_temperature=2.0, close_below=0.97)
    mass, scores = np.array([0.5, 0.04, 0.4, 0.06]), np.array([2.0, 0, 1.8, 0], np.float32)
    views = iter([np.array([-6.0, 6.0], np.float32), np.array([-3.0, 3.0], np.float32)])
    found = looked_closely(mass, scores, [0, 2], views, card)
    assert found.argmax() == 2 and found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found[[1, 3]], mass[[1, 3]])


def test_rule_and_lines_count_beside_the_network() -> None:
    card = replace(document_card(), likeness=0.5, lines=2.0)
    assert card.prior(3.0, math.e) == pytest.approx(3.5)
    assert card.prior(3.0, 0.0) == pytest.approx(1.5)  # without lines


def test_two_opposite_turns_are_enough_only_if_they_leave_no_doubt() -> None:
    card = replace(document_card(), temperature=0.5)
    scores = np.array([9.0, 3.5, 9.0, -1.5], np.float32)  # of turns 1 and 3; 0 and 2 were not seen
    document = np.array([-90.0, 20.0, -90.0, 12.0], np.float32)

    def estimate(scores: np.ndarray[Any, Any], prior: float = 0.0) -> documents.Quarters | None:
        return from_two_turns(scores, document, [1, 3], prior, card)

    found = estimate(scores)
    assert found is not None and found.score == pytest.approx(8)
    others = math.exp(-10)  # each as likely as the worse of the two
    np.testing.assert_allclose(found.mass, np.array([others, 1, others, others]) / (1 + 3 * others))
    assert estimate(scores, prior=documents.CLEAR - 8.5) is None  # not clearly a document
    assert estimate(scores - np.array([0, 0, 0, -3], np.float32)) is None  # either may be upright
    assert estimate(scores - np.float32(2)) is None  # perhaps both are wrong


@pytest.mark.parametrize("degrees", [0, 90, 180, 267])
def test_a_clear_page_is_seen_at_the_two_turns_along_its_lines(
    model: Canonicalizer,
    monkeypatch: pytest.MonkeyPatch,
    page: Image.Image,
    degrees: int,
) -> None:
    views, scores = [], DocumentReader.scores

    def counted(reader: DocumentReader, given: documents.Gray) -> Any:
        views.extend(given)
        return scores(reader, given)

    monkeypatch.setattr(DocumentReader, "scores", counted)
    turned = page.rotate(degrees, Image.Resampling.BICUBIC, expand=True, fillcolor="white")
    assert apart(model.answers([turned])[0].angle_degrees, degrees) < 0.5
    assert len(views) == 2
    views.clear()
    monkeypatch.setattr(documents, "HIGH", math.inf)
    assert apart(model.answers([turned])[0].angle_degrees, degrees) < 0.5
    assert len(views) == 4


def test_more_evidence_from_elsewhere_makes_a_doubtful_page_a_document(page: Image.Image) -> None:
    reader = DocumentReader(threads=1)
    gray = gray_page(page)
    assert reader.quarters(gray, prior=0.0) is not None
    assert reader.quarters(gray, prior=-100.0) is None
    noise = gray_page(Image.effect_noise((400, 300), 60).convert("RGB"))
    assert reader.quarters(noise, prior=100.0) is not None


@pytest.mark.parametrize(
    ("clear", "confidence", "kind"),
    [(True, None, "document"), (False, 0.95, "picture"), (False, 0.5, "document")],
)
def test_a_doubtful_document_is_a_picture_if_the_model_is_confident(
    model: Canonicalizer,
    monkeypatch: pytest.MonkeyPatch,
    page: Image.Image,
    clear: bool,
    confidence: float | None,
    kind: str,
) -> None:
    """The model does not run on a clear document."""
    pages = documents.Page(Answer(90.0, 0.99, kind="document"), clear)
    monkeypatch.setattr(DocumentReader, "answer", lambda *_: pages)

    def estimates(views: np.ndarray[Any, Any], ends: Any) -> list[Answer]:
        assert confidence is not None
        return [Answer(10.0, confidence) for _ in views]

    monkeypatch.setattr(model, "answers_from_views", estimates)
    assert model.answers([page])[0].kind == kind


def test_documents_have_thresholds_of_their_own() -> None:
    job = JobSettings("ring", min_confidence=0.9, document_confidence=0.5, document_angle=1.0)
    answer = Answer(90.0, 0.7, kind="document")
    assert job.decision(answer, FILLED).action == "turned"
    assert job.decision(replace(answer, kind="picture"), FILLED).action == "unsure"
    assert job.decision(replace(answer, confidence=0.4), FILLED).action == "unsure"
    assert job.decision(replace(answer, angle_degrees=0.6), FILLED).action == "left"


def test_a_model_for_documents_that_was_exchanged_is_refused(
    tmp_path: Path, page: Image.Image
) -> None:
    folder = tmp_path / "documents"
    shutil.copytree(documents.FOLDER, folder)
    (folder / "quarter.onnx").write_bytes(b"something else")
    with pytest.raises(zoo.DamagedModel, match="damaged or was replaced"):
        DocumentReader(1, folder).answer(page, lambda: page, 72)
    folder = shutil.copytree(folder, tmp_path / "other")  # a card is read once
    card = json.loads((folder / "quarter.json").read_text(encoding="utf-8"))
    del card["reading"]["temperature"]
    (folder / "quarter.json").write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(zoo.DamagedModel, match="temperature"):
        documents.document_card(folder)


def test_the_command_turns_a_page_and_says_that_it_is_one(
    tmp_path: Path, page: Image.Image
) -> None:
    page.rotate(180).save(tmp_path / "scan.png")
    shutil.copy(PICTURES / "astronaut.webp", tmp_path)
    command = [sys.executable, "-m", "radialbeams", "upright", str(tmp_path), "--json"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "out")], capture_output=True, text=True, check=True
    )
    lines = {Path(line["path"]).name: line for line in map(json.loads, done.stdout.splitlines())}
    assert lines["scan.png"]["kind"] == "document" and lines["scan.png"]["action"] == "turned"
    assert lines["astronaut.webp"]["kind"] == "picture"
    with Image.open(tmp_path / "out" / "scan.png") as upright:
        assert np.abs(np.asarray(upright, np.int16) - np.asarray(page, np.int16)).mean() < 1


def test_a_page_that_is_levelled_keeps_its_own_ground_in_the_corners(
    model: Canonicalizer, page: Image.Image
) -> None:
    skewed = page.convert("RGB").rotate(8, Image.Resampling.BICUBIC, expand=True, fillcolor="white")
    found = model.predict(skewed)
    assert found.kind == "document" and found.applied_degrees == pytest.approx(8, abs=1)
    corners = np.asarray(found.image.convert("RGB"))[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert corners.min() > 240


def test_the_rule_counts_as_numpy_does() -> None:
    """Pillow's histograms give the shares of the plain definition, at odd sizes too."""
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (1, 9), (9, 1), (3, 3), (61, 83), (256, 192)):
        gray = (rng.integers(0, 256, shape) // rng.integers(1, 60)).astype(np.uint8)
        signed = gray.astype(np.int16)
        steps = np.abs(np.concatenate((np.diff(signed).ravel(), np.diff(signed, axis=0).ravel())))
        found = likeness(Image.fromarray(gray))
        if steps.size:
            expected = [(steps <= 2).mean(), ((steps > 2) & (steps <= 16)).mean()]
            assert found[3:6].tolist() == [*expected, (steps > 40).mean()]
        height, width = (length // 4 * 4 for length in shape)
        if height and width:
            cells = gray[:height, :width].reshape(height // 4, 4, width // 4, 4)
            spread = cells.max((1, 3)) - cells.min((1, 3))
            assert found[:2].tolist() == [(spread <= 4).mean(), (spread <= 8).mean()]


@pytest.mark.parametrize("size", [(1700, 2200), (700, 1900), (500, 640)])
def test_the_view_of_a_reduced_page_shows_the_same_part(size: tuple[int, int]) -> None:
    """Pages that are large enough are halved before they are levelled; others are not."""
    gray = printed_page(size).convert("L").rotate(3, Image.Resampling.BICUBIC, fillcolor=255)
    found = documents.levelled_view(gray, 3.0, 384).astype(float)
    plain = page_view(documents.levelled(gray, 3.0), 384).astype(float)
    if size == (500, 640):
        assert (found == plain).all()
    ink = [255 - shown for shown in (found, plain)]
    alike = (ink[0] * ink[1]).sum() / np.sqrt((ink[0] ** 2).sum() * (ink[1] ** 2).sum())
    assert alike > 0.9
