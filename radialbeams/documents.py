"""Pages and screens: levelled by their lines, turned by a network that sees their text. No torch.

A cascade, so that photos cost little: a rule on a small picture, the lines, one view of the page,
its opposite, the other two quarter turns, and close-up views if these leave it unsure. Rule, lines,
first view and all four views together may each reject the picture as not a document. The opposite
view ends the search if it leaves no doubt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams import zoo
from radialbeams.defaults import Abstain, chosen
from radialbeams.files import sha256
from radialbeams.images.corners import without_corners
from radialbeams.images.levelling import Levelling, measure_skew
from radialbeams.images.likeness import LEAST, document_likeness
from radialbeams.images.page import close_views, content_box, ground, page_view, shown_side
from radialbeams.posterior import Answer, Thresholds, read_quarters
from radialbeams.runtime import open_session
from radialbeams.stored import JsonDict, JsonFields

FOLDER = zoo.FOLDER / "documents"  # quarter.onnx and quarter.json
LONGEST = 1000  # pixels of a page's longer side; twice as many do not help the network
DOUBTFUL = 4.0  # how far the document score of a single turn may lie below the threshold
# Below this document score, the estimate of the model for photos is preferred if that model is
# confident. A photo of the demo, taken for a document, scores up to 2.7.
CLEAR = 6.0
SMALLEST = 24  # pixels; smaller pictures are not pages
LEVEL = 0.2  # degrees; a page with a smaller skew is not levelled for the network
# Two opposite turns are enough for a clear document if one of them has at least this score and this
# probability. Of 1,257 rendered pages that they decide, the other two turns change none; with a
# score of 2.5, one was decided wrongly (tools/documents/turns.py).
HIGH, CERTAIN = 3.0, 0.99
# Half of a page must still have this many times the pixels of a view along its side. With 1.0, the
# quarter of 1.4 % of the test pages was lost: their text is as small as can be read.
HALVED = 1.5
READ_AT = 400  # pixels; a JPEG is decoded with a shorter side of twice this, to resolve text

Floats = NDArray[np.float32]
Gray = NDArray[np.uint8]
STRAIGHT = Levelling(0.0, strength=0.0)


@dataclass(frozen=True)
class DocumentCard:
    """The card of the quarter network, with values measured on held-out rendered pages."""

    size: int  # pixels of a view
    temperature: float  # divides the scores of the whole page
    close_temperature: float  # divides the sum over the whole page and its close-up views
    close_views: int  # the largest number of close-up views
    close_below: float  # close-up views are used if the confidence is below this
    likeness: float  # weight of the rule's log odds
    lines: float  # weight of the logarithm of the strength of the lines
    document: float  # threshold for their sum with the mean document score over the four turns
    drawn: float  # below this mean of the score for "no drawing", a page that looks drawn is none
    abstain: Thresholds

    @classmethod
    def of(cls, card: JsonFields) -> DocumentCard:
        try:
            return cls(
                size=card["config"]["size"],
                **card["reading"],
                abstain=Thresholds(**card["abstain"]),
            )
        except (KeyError, TypeError) as error:
            raise zoo.DamagedModel(
                f"The card of the model for documents is damaged ({error}). Install radialbeams "
                "again."
            ) from error

    def prior(self, likeness: float, strength: float) -> float:
        """The evidence for a document from the rule and from the lines of the page."""
        return self.likeness * likeness + self.lines * math.log(max(strength, 1.0))


@cache
def document_card(folder: Path = FOLDER) -> DocumentCard:
    return DocumentCard.of(_read_card(folder))


def document_thresholds(abstain: Abstain) -> Thresholds:
    """The thresholds that `abstain` selects for documents, which have their own."""
    return chosen(document_card().abstain, abstain, "documents")


def _read_card(folder: Path) -> JsonDict:
    card: JsonDict = json.loads((folder / "quarter.json").read_text(encoding="utf-8"))
    return card


def _verified_onnx(folder: Path) -> bytes:
    """The bytes of the network, after checking the sha256 on its card."""
    content = (folder / "quarter.onnx").read_bytes()
    if (digest := sha256(content)) != (expected := _read_card(folder)["sha256"]["onnx"]):
        raise zoo.DamagedModel(
            f"The model for documents has sha256 {digest[:12]}…, but its card has "
            f"{expected[:12]}…: it is damaged or was replaced. Install radialbeams again."
        )
    return content


class Page(NamedTuple):
    """The estimate for what may be a document, and the evidence that it is one."""

    answer: Answer
    clear: bool
    drawn: bool = False  # the network would call it a drawing, if it looks like one


class Quarters(NamedTuple):
    """The probability of each number of quarter turns, (4,), and the evidence for a document."""

    mass: NDArray[np.float64]
    score: float
    unlike_drawings: float = math.inf  # the evidence that it is a page and not a drawing


class DocumentReader:
    """The quarter network, loaded when the first picture may be a document."""

    def __init__(self, threads: int = 0, folder: Path = FOLDER) -> None:
        self._threads, self._folder = threads, folder

    @cached_property
    def card(self) -> DocumentCard:
        return document_card(self._folder)

    @cached_property
    def _session(self) -> Any:
        return open_session(_verified_onnx(self._folder), self._threads)

    def answer(
        self, small: Image.Image, larger: Callable[[], Image.Image], bins: int
    ) -> Page | None:
        """The estimate for a document; None if the picture is not one.

        `small` is enough to reject most photos; `larger` reads the picture with more pixels.
        """
        if min(small.size) < SMALLEST:
            return None
        likeness = document_likeness(without_corners(small))
        if likeness < LEAST:
            return None
        page = gray_page(larger())
        level = measure_skew(page)
        if not level.has_evidence:
            return None
        prior = self.card.prior(likeness, level.strength)
        quarters = self.quarters(page, prior, level)
        if quarters is None:
            return None
        answer = read_quarters(quarters.mass, level.skew_degrees, bins)
        drawn = quarters.unlike_drawings < self.card.drawn
        return Page(answer, quarters.score >= CLEAR, drawn)

    def quarters(
        self, page: Image.Image, prior: float, level: Levelling = STRAIGHT
    ) -> Quarters | None:
        """The quarter turns of a page with this skew; None if it is not a document.

        `prior` is the evidence for a document that does not come from the network. The two turns
        that make the lines horizontal come first, and usually suffice.
        """
        card = self.card
        views = four_turns(levelled_view(page, level.skew_degrees, card.size))
        scores, document, pages = np.zeros((3, 4), np.float32)

        def score(turns: list[int]) -> None:
            scores[turns], document[turns], pages[turns] = self.scores(views[turns])

        likely, other = ([0, 2], [1, 3]) if level.horizontal else ([1, 3], [0, 2])
        score(likely[:1])
        if document[likely[0]] + prior < card.document - DOUBTFUL:
            return None
        score(likely[1:])
        quarters = from_two_turns(scores, document, likely, prior, card)
        if quarters is not None:
            return quarters._replace(unlike_drawings=float(pages[likely].mean()))
        score(other)
        evidence = float(document.mean()) + prior
        if evidence < card.document:
            return None
        unlike_drawings = float(pages.mean())
        mass = softmax(scores / card.temperature)
        if mass.max() >= card.close_below:
            return Quarters(mass, evidence, unlike_drawings)
        pair = [int(turns) for turns in np.argsort(-scores)[:2]]
        closer = (
            self.scores(four_turns(close)[pair])[0]
            for close in close_views(
                levelled(page, level.skew_degrees), card.size, card.close_views
            )
        )
        mass = looked_closely(mass, scores, pair, closer, card)
        return Quarters(mass, evidence, unlike_drawings)

    def scores(self, views: Gray) -> tuple[Floats, Floats, Floats]:
        """(N, S, S) → logits: upright; a document and no photo; a page and no drawing, (N,) each.

        A network without the last one, which is fitted after its training, calls nothing a drawing.
        """
        inputs = views[:, None].astype(np.float32) / np.float32(255)
        upright, document, *pages = self._session.run(None, {"views": inputs})
        return upright, document, pages[0] if pages else np.full_like(document, np.inf)


def from_two_turns(
    scores: Floats, document: Floats, turns: list[int], prior: float, card: DocumentCard
) -> Quarters | None:
    """The estimate from the scores of two opposite `turns`; None if the other two are needed.

    The other two count as no more upright than the worse of these, and as no evidence for a
    document.
    """
    assumed = np.full(4, scores[turns].min(), np.float32)
    assumed[turns] = scores[turns]
    mass = softmax(assumed / card.temperature)
    evidence = float(document[turns].sum()) / 4 + prior
    enough = assumed.max() >= HIGH and mass.max() >= CERTAIN and evidence >= CLEAR
    return Quarters(mass, evidence) if enough else None


def looked_closely(
    mass: NDArray[np.float64],
    scores: Floats,
    pair: list[int],
    closer: Iterable[Floats],
    card: DocumentCard,
) -> NDArray[np.float64]:
    """(4,): the probabilities after close-up views have decided between the two best turns.

    Each of `closer` has the two scores of one view. Most often the two turns are 180° apart.
    """
    both, shared = mass[pair].sum(), mass.copy()
    difference = float(scores[pair[0]] - scores[pair[1]])
    for first, second in closer:
        difference += float(first - second)
        share = 1 / (1 + np.exp(-difference / card.close_temperature))
        shared[pair] = both * share, both * (1 - share)
        if shared.max() >= card.close_below:
            break
    return shared


def gray_page(picture: Image.Image) -> Image.Image:
    """The page in gray, shorter than twice LONGEST pixels, on a plain background if transparent."""
    if (times := max(picture.size) // LONGEST) > 1:
        picture = picture.reduce(times)
    if picture.mode != "RGBA":
        return picture.convert("L")
    gray, opaque = picture.convert("L"), picture.getchannel("A")
    weight = np.asarray(opaque, np.float64)
    ink = float((np.asarray(gray) * weight).sum() / max(weight.sum(), 1))
    paper = Image.new("L", gray.size, 255 if ink < 160 else 0)  # light strokes need a dark ground
    paper.paste(gray, (0, 0), opaque)
    return paper


def levelled_view(page: Image.Image, skew_degrees: float, size: int) -> Gray:
    """The network's view of the whole page.

    Rotating a large page takes as long as one run of the network, so it is first reduced to half
    its size, if HALVED allows it.
    """
    if shown_side((0, 0, *page.size)) >= 2 * HALVED * size:
        half = levelled(page.reduce(2), skew_degrees)
        box = content_box(half)
        if shown_side(box, 2) >= HALVED * size:
            return page_view(half, size, box, reduced=2)
    return page_view(levelled(page, skew_degrees), size)


def levelled(page: Image.Image, skew_degrees: float) -> Image.Image:
    """The page rotated so that its lines are horizontal or vertical; the fill is its rim's gray."""
    if abs(skew_degrees) <= LEVEL:
        return page
    return page.rotate(
        -skew_degrees, Image.Resampling.BILINEAR, expand=True, fillcolor=ground(page)
    )


def four_turns(view: Gray) -> Gray:
    """(S, S) → (4, S, S): rotated counter-clockwise by 0 to 3 quarter turns."""
    return np.stack([np.rot90(view, turns) for turns in range(4)])


def softmax(scores: Floats) -> NDArray[np.float64]:
    mass = np.exp(scores.astype(np.float64) - scores.max())
    probabilities: NDArray[np.float64] = mass / mass.sum()
    return probabilities
