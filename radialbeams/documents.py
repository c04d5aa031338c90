"""Pages and screens: levelled by their lines, turned by a network that sees their text. No torch.

A cascade, so that photos cost little: a rule on a small picture, the lines, one view of the page,
its other three turns, and close views where these leave it unsure. Each step may say that the
picture is no document.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams import zoo
from radialbeams.defaults import Abstain, chosen
from radialbeams.files import sha256
from radialbeams.images.corners import without_corners
from radialbeams.images.levelling import measure_skew
from radialbeams.images.likeness import may_be_document
from radialbeams.images.page import close_views, content_box, ground, page_view
from radialbeams.posterior import Answer, Thresholds, read_quarters
from radialbeams.runtime import open_session

FOLDER = zoo.FOLDER / "documents"  # quarter.onnx and quarter.json
LONGEST = 1000  # pixels of a page's longer side; twice as much shows the network nothing more
DOUBTFUL = 4.0  # how far one turn's score of a document may lie below the least average
SMALLEST = 24  # pixels; less is no page
LEVEL = 0.2  # degrees; a page that is this level is not turned for the network
READ_AT = 400  # pixels; half of the short side of a JPEG as it is read, so that text can be seen

Floats = NDArray[np.float32]
Gray = NDArray[np.uint8]


@dataclass(frozen=True)
class DocumentCard:
    """What the card of the quarter network has measured on held-out renderings."""

    size: int  # pixels of a view
    temperature: float  # divides the scores of the whole page
    close_temperature: float  # divides the sum over the whole page and its close views
    close_views: int  # at most
    close_below: float  # confidence in the whole page under which close views are worth it
    document: float  # the least score of a document, on average over its four turns
    abstain: Thresholds

    @classmethod
    def of(cls, card: dict[str, Any]) -> DocumentCard:
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


@cache
def document_card(folder: Path = FOLDER) -> DocumentCard:
    return DocumentCard.of(_read_card(folder))


def document_thresholds(abstain: Abstain) -> Thresholds:
    """What `abstain` means for documents, whose thresholds are their own."""
    return chosen(document_card().abstain, abstain, "documents")


def _read_card(folder: Path) -> dict[str, Any]:
    card: dict[str, Any] = json.loads((folder / "quarter.json").read_text(encoding="utf-8"))
    return card


def _verified_onnx(folder: Path) -> bytes:
    """The bytes of the network, once they have the sha256 that its card names."""
    content = (folder / "quarter.onnx").read_bytes()
    if (found := sha256(content)) != (expected := _read_card(folder)["sha256"]["onnx"]):
        raise zoo.DamagedModel(
            f"The model for documents has sha256 {found[:12]}…, its card says {expected[:12]}…: "
            "it is damaged or was exchanged. Install radialbeams again."
        )
    return content


class DocumentReader:
    """The quarter network, loaded with the first picture that may be a document."""

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
    ) -> Answer | None:
        """The turn of a document; None for a picture that is none.

        `small` is enough to tell most photos; `larger` reads the picture with more pixels.
        """
        if min(small.size) < SMALLEST or not may_be_document(without_corners(small)):
            return None
        page = gray_page(larger())
        level = measure_skew(page)
        if not level.has_evidence:
            return None
        upright = levelled(page, level.skew_degrees)
        mass = self.quarters(upright)
        return None if mass is None else read_quarters(mass, level.skew_degrees, bins)

    def quarters(self, page: Image.Image) -> NDArray[np.float64] | None:
        """(4,): the chance of each number of quarter turns; None if it is no document."""
        card = self.card
        box = content_box(page)
        view = page_view(page, card.size, box)
        first, likely = self.scores(view[None])
        if likely[0] < card.document - DOUBTFUL:
            return None
        others, document = self.scores(four_turns(view)[1:])
        if (likely[0] + document.sum()) / 4 < card.document:
            return None
        scores = np.concatenate((first, others))
        mass = softmax(scores / card.temperature)
        if mass.max() >= card.close_below:
            return mass
        pair = [int(turns) for turns in np.argsort(-scores)[:2]]
        closer = (
            self.scores(four_turns(close)[pair])[0]
            for close in close_views(page, card.size, card.close_views, box)
        )
        return looked_closely(mass, scores, pair, closer, card)

    def scores(self, views: Gray) -> tuple[Floats, Floats]:
        """(N, S, S) → how upright each view is, and how much of a document, as logits."""
        given = views[:, None].astype(np.float32) / np.float32(255)
        upright, document = self._session.run(None, {"views": given})
        return upright, document


def looked_closely(
    mass: NDArray[np.float64],
    scores: Floats,
    pair: list[int],
    closer: Iterable[Floats],
    card: DocumentCard,
) -> NDArray[np.float64]:
    """(4,): the chances once close views, one by one, have decided between the two best turns.

    Each of `closer` has the two scores of one view. Most often the two are half a turn apart.
    """
    both, found = mass[pair].sum(), mass.copy()
    difference = float(scores[pair[0]] - scores[pair[1]])
    for first, second in closer:
        difference += float(first - second)
        share = 1 / (1 + np.exp(-difference / card.close_temperature))
        found[pair] = both * share, both * (1 - share)
        if found.max() >= card.close_below:
            break
    return found


def gray_page(picture: Image.Image) -> Image.Image:
    """In gray, less than twice LONGEST pixels long, on a plain ground where it is transparent."""
    if (times := max(picture.size) // LONGEST) > 1:
        picture = picture.reduce(times)
    if picture.mode != "RGBA":
        return picture.convert("L")
    gray, opaque = picture.convert("L"), picture.getchannel("A")
    weight = np.asarray(opaque, np.float64)
    ink = float((np.asarray(gray) * weight).sum() / max(weight.sum(), 1))
    paper = Image.new("L", gray.size, 255 if ink < 160 else 0)  # light strokes want a dark ground
    paper.paste(gray, (0, 0), opaque)
    return paper


def levelled(page: Image.Image, skew_degrees: float) -> Image.Image:
    """Turned so that its lines are level or upright; what comes into view has the rim's gray."""
    if abs(skew_degrees) <= LEVEL:
        return page
    return page.rotate(
        -skew_degrees, Image.Resampling.BILINEAR, expand=True, fillcolor=ground(page)
    )


def four_turns(view: Gray) -> Gray:
    """(S, S) → (4, S, S): turned counter-clockwise by 0 to 3 quarters."""
    return np.stack([np.rot90(view, turns) for turns in range(4)])


def softmax(scores: Floats) -> NDArray[np.float64]:
    mass = np.exp(scores.astype(np.float64) - scores.max())
    found: NDArray[np.float64] = mass / mass.sum()
    return found
