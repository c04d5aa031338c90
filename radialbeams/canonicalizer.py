"""Canonicalizer: estimates the rotation of pictures and turns them upright. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, cast, overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from radialbeams import images, zoo
from radialbeams.decisions import Decision, Reason, Surroundings, decide
from radialbeams.defaults import (
    ABSTAIN,
    CORNERS,
    FILL,
    LOOKS,
    SNAP,
    Abstain,
    Snap,
    check_snap,
    thresholds_for,
)
from radialbeams.documents import READ_AT, DocumentReader, document_thresholds
from radialbeams.further_looks import looked_again, looks_drawn
from radialbeams.images import Corners, Frame, ImageError, ImageSource
from radialbeams.limits import DEFAULT, Limits
from radialbeams.posterior import Answer, read_posterior, read_posteriors, read_unit, rounded
from radialbeams.runtime import model_session, output_widths
from radialbeams.undoing import Undo, undone

BATCH = 64
PICTURE = 0.8  # the confidence with which a picture is preferred to a doubtful document


@dataclass(frozen=True)
class Canonicalization:
    """The estimated rotation of the input, and the upright image, or the input if left alone.

    A model without a posterior (the paper's own network) gives no confidence and no symmetry.
    """

    # Of the same type as the input: a Pillow image, an array, or bytes of the same format. For an
    # open file it is a BytesIO, and for a path a Pillow image, so that nothing is overwritten.
    image: Any
    angle_degrees: float  # counter-clockwise, in [0, 360), rounded to a hundredth
    confidence: float | None  # probability that the angle is correct to within 10°
    symmetry: int | None  # 1 = one clear upright direction, k = the same every 360°/k, 0 = none
    # (|B|,): probability of each direction; dozens of numbers, so not printed
    posterior: NDArray[np.float32] | None = field(repr=False)
    # The rotation that was undone: the estimate, the nearest quarter turn, or the angle of the
    # picture's own rectangle. None: the picture was left alone, for the given `reason`.
    applied_degrees: float | None = None
    reason: Reason | None = None
    kind: str = "picture"  # or "document": a page or a screen, levelled by its lines


Ends = tuple[Image.Image, Image.Image]


class Look(NamedTuple):
    """What is extracted from a picture before the model runs."""

    view: NDArray[np.float32] | None  # (C, S, S), or (k, C, S, S); None for a clear document
    document: Answer | None = None  # the estimate for what may be a document
    frame: Frame | None = None  # the rectangle of a picture that was rotated on a plain canvas
    plain: bool = False  # the corners have one colour
    colour: str | None = None  # that colour
    ends: Ends | None = None  # the squares at both ends of an oblong picture

    @property
    def around(self) -> Surroundings:
        frame = self.frame
        if frame is None:
            return Surroundings(plain=self.plain, colour=self.colour)
        return Surroundings(frame.angle, frame.cut, self.plain, self.colour)


class Canonicalizer:
    """A model, loaded once, for any number of pictures and threads.

    `refine` is the number of views per picture, rotated by fractions of the angle between two
    beams, whose estimates are averaged. There is no time limit: an ONNX file is a program that may
    loop forever, so load only models that you trust into your own process.

    If the model's card has the field `documents`, a separate network handles pages and screens;
    with `documents=False`, the model handles them like any other picture.
    """

    def __init__(
        self,
        model: str | Path = zoo.DEFAULT,
        *,
        threads: int = 0,
        refine: int = LOOKS,
        limits: Limits = DEFAULT,
        documents: bool = True,
    ) -> None:
        if refine < 1:
            raise ValueError(f"refine, the number of views, must be at least 1; got {refine}.")
        pretrained = zoo.find(model)
        self.name, self.card, self.refine = pretrained.name, pretrained.card, refine
        self.limits = limits
        self._session = model_session(pretrained, threads)
        wanted = documents and self.card.documents is not None
        self._documents = DocumentReader(threads) if wanted else None

    @property
    def parent_size(self) -> int:
        """The side of the square from which a view is made, in pixels."""
        return self.card.parent_size

    @overload
    def predict(
        self,
        image: ImageSource,
        *,
        corners: Corners = CORNERS,
        fill: str | None = FILL,
        first_frame: bool = False,
        abstain: Abstain = ABSTAIN,
        snap: Snap = SNAP,
    ) -> Canonicalization: ...

    @overload
    def predict(
        self,
        image: list[Any],
        *,
        corners: Corners = CORNERS,
        fill: str | None = FILL,
        first_frame: bool = False,
        abstain: Abstain = ABSTAIN,
        snap: Snap = SNAP,
    ) -> list[Canonicalization]: ...

    def predict(
        self,
        image: ImageSource | list[Any],
        *,
        corners: Corners = CORNERS,
        fill: str | None = FILL,
        first_frame: bool = False,
        abstain: Abstain = ABSTAIN,
        snap: Snap = SNAP,
    ) -> Canonicalization | list[Canonicalization]:
        """Estimates the rotation of a picture and turns it upright; for a list, returns a list.

        As in the command, the thresholds of the model's card decide whether a picture is turned.
        A number as `abstain` is a confidence that raises or replaces them; None turns every
        picture. `snap` controls what happens near a quarter turn, `corners` and `fill` control the
        new canvas.
        """
        check_snap(snap)
        least = thresholds_for(self.card, abstain)
        pages = document_thresholds(abstain)
        sources = list(image) if isinstance(image, list) else [image]
        for number, source in enumerate(sources):
            with _named(sources, number):
                sources[number] = _rereadable(source, self.limits)
        answers, looks = self.answers_and_looks(sources, first_frame=first_frame)
        results = []
        for number, (source, answer) in enumerate(zip(sources, answers, strict=True)):
            limits = pages if answer.kind == "document" else least
            decision = decide(answer, limits, snap, looks[number].around)
            undo = Undo(decision, looks[number].frame, corners, fill or looks[number].colour)
            with _named(sources, number):
                upright = undone(source, undo, first_frame=first_frame, limits=self.limits)
            results.append(_canonicalization(upright, answer, decision))
        return results if isinstance(image, list) else results[0]

    def answers_and_looks(
        self, sources: Sequence[ImageSource], *, first_frame: bool = False
    ) -> tuple[list[Answer], list[Look]]:
        """The estimate for each picture, and the look from which it was made."""
        answers: list[Answer] = []
        looks: list[Look] = []
        for start in range(0, len(sources), BATCH):
            for number in range(start, min(start + BATCH, len(sources))):
                with _named(sources, number):
                    looks.append(self.look(sources[number], first_frame=first_frame))
            answers += self.answers_from_looks(looks[start:])
            # What is left is needed to turn the pictures; the views of thousands would fill memory.
            looks[start:] = [look._replace(view=None, ends=None) for look in looks[start:]]
        return answers, looks

    def answers(self, sources: Sequence[ImageSource], *, first_frame: bool = False) -> list[Answer]:
        """The estimate for each picture, in batches; nothing is turned."""
        answers: list[Answer] = []
        for start in range(0, len(sources), BATCH):
            looks = []
            for number in range(start, min(start + BATCH, len(sources))):
                with _named(sources, number):
                    looks.append(self.look(sources[number], first_frame=first_frame, framed=False))
            answers += self.answers_from_looks(looks)
        return answers

    def look(self, source: ImageSource, *, first_frame: bool = False, framed: bool = True) -> Look:
        """The view for the model, or the estimate if the picture is a document.

        With `framed`, it also finds the frame and the colour around the picture, which are needed
        only to turn it.
        """
        source = _rereadable(source, self.limits)
        small = self._small(source, self.parent_size, first_frame)
        frame = images.frame_of(small) if framed else None
        plain = framed and images.has_plain_ground(small)
        colour = images.ground_colour(small) if plain else None
        if self._documents is not None:

            def larger() -> Image.Image:
                if min(small.size) >= 2 * READ_AT or not small.info.get("reduced"):
                    return small  # there are enough pixels, or no more of them
                return images.read_small(
                    source, READ_AT, first_frame=first_frame, gray=True, limits=self.limits
                )

            page = self._documents.answer(small, larger, self.card.network.num_bins)
            if page is not None and page.clear and not page.drawn:
                return Look(None, page.answer, frame, plain, colour)
            view = self._view(small)
            drawn = page is not None and page.drawn and looks_drawn(view, self.card.looks)
            document = None if page is None or drawn else page.answer
            return Look(view, document, frame, plain, colour, self._ends(small))
        return Look(self._view(small), None, frame, plain, colour, self._ends(small))

    def answers_from_looks(self, looks: Sequence[Look]) -> list[Answer]:
        """One estimate for each look; the model runs on all but clear documents."""
        views = [look.view for look in looks if look.view is not None]
        ends = [look.ends for look in looks if look.view is not None]
        pictures = iter(self.answers_from_views(np.stack(views), ends) if views else ())
        return [
            _preferred(look.document, None if look.view is None else next(pictures))
            for look in looks
        ]

    def view(self, source: ImageSource, *, first_frame: bool = False) -> NDArray[np.float32]:
        """The input of the model for a picture: (C, S, S), or (k, C, S, S) with `refine` = k."""
        return self._view(self._small(source, self.parent_size, first_frame))

    def _small(self, source: ImageSource, side: int, first_frame: bool) -> Image.Image:
        return images.read_small(source, side, first_frame=first_frame, limits=self.limits)

    def _view(self, small: Image.Image) -> NDArray[np.float32]:
        network = self.card.network
        views = images.looks(
            small,
            self.card.protocol,
            network.view_size,
            network.channels,
            self._turns.tolist(),
        )
        return views[0] if self.refine == 1 else np.stack(views)

    def _ends(self, small: Image.Image) -> Ends | None:
        """The squares at both ends, if the card's rule of further looks may ask for them."""
        card = self.card
        wanted = card.looks is not None and card.looks.oblong_below is not None
        if not wanted or self.refine > 1 or card.protocol.name != "leakfree":
            return None
        return images.ends(small, self.parent_size)

    def answers_from_views(
        self, views: NDArray[np.float32], ends: Sequence[Ends | None] | None = None
    ) -> list[Answer]:
        """One estimate for each view in (N, C, S, S), or for each k views in (N, k, C, S, S).

        `ends` has the squares at both ends of oblong pictures, used where a model is unsure.
        """
        outputs = self._run(views.reshape(-1, *views.shape[-3:]))
        posterior = self.card.network.reading == "posterior"
        if self.refine == 1:
            first = self._read(outputs)
            if not posterior:
                return first
            more = [end and partial(self._views_of, end) for end in ends or [None] * len(views)]
            return looked_again(self.card, self._run, views, outputs, first, more)
        looks = [output.reshape(len(views), self.refine, -1) for output in outputs]
        if posterior:
            return read_posteriors(looks[0], looks[1], self._shifts, *self.card.calibration)
        return read_unit(looks[0], self._turns)

    def first_answers(self, views: NDArray[np.float32]) -> list[Answer]:
        """One estimate for each view in (N, C, S, S), without further looks."""
        return self._read(self._run(views))

    def _read(self, outputs: Sequence[NDArray[np.float32]]) -> list[Answer]:
        if self.card.network.reading == "posterior":
            return read_posterior(outputs[0], outputs[1], *self.card.calibration)
        return read_unit(outputs[0])

    def _views_of(self, squares: Ends) -> NDArray[np.float32]:
        """(2, C, S, S): the views of two squares."""
        network = self.card.network
        return images.views_of(squares, self.card.protocol, network.view_size, network.channels)

    def _run(self, views: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """(N, C, S, S) → the outputs of the model; raises DamagedModel if they are not valid."""
        try:
            outputs: list[NDArray[np.float32]] = self._session.run(None, {"views": views})
        except Exception as error:  # the runtime's own errors have no common class
            raise zoo.DamagedModel(
                f"The model {self.name} does not run on views of shape {views.shape[1:]}, as on "
                "its card. Export it again, weights and card together."
            ) from error
        expected = (len(views), *output_widths(self.card)[:1])
        for output in outputs:
            if output.shape != expected or not np.isfinite(output).all():
                raise zoo.DamagedModel(
                    f"The outputs of the model {self.name} do not match its card: expected finite "
                    f"numbers of shape {expected}; got {output.shape}. Export it again."
                )
        return outputs

    @property
    def _shifts(self) -> NDArray[np.float32]:
        """(k,): the rotation of each view of a picture, in steps from beam to beam.

        All are less than one step: by equivariance, whole steps would add nothing.
        """
        return np.arange(self.refine, dtype=np.float32) / np.float32(self.refine)

    @property
    def _turns(self) -> NDArray[np.float32]:
        return self._shifts * np.float32(360 / self.card.network.num_bins)


def canonicalize(
    image: ImageSource,
    model: str | Path = zoo.DEFAULT,
    *,
    corners: Corners = CORNERS,
    fill: str | None = FILL,
    first_frame: bool = False,
    refine: int = LOOKS,
    abstain: Abstain = ABSTAIN,
    snap: Snap = SNAP,
) -> Canonicalization:
    """Estimates the rotation of one picture and turns it upright, as the type of the input.

    Options as for `Canonicalizer.predict`. The first call loads the model; later calls reuse it.
    """
    return _loaded(str(model), refine).predict(
        image, corners=corners, fill=fill, first_frame=first_frame, abstain=abstain, snap=snap
    )


@lru_cache(maxsize=8)
def _loaded(model: str, refine: int) -> Canonicalizer:
    return Canonicalizer(model, refine=refine)


@contextmanager
def _named(sources: Sequence[Any], number: int) -> Iterator[None]:
    """Adds to an error which of the pictures it is about."""
    try:
        yield
    except ImageError as error:
        source = sources[number]
        if isinstance(source, str | Path):
            raise ImageError(f"{source}: {error}") from error
        if len(sources) > 1:
            raise ImageError(f"Picture {number + 1} of {len(sources)}: {error}") from error
        raise


def _preferred(document: Answer | None, picture: Answer | None) -> Answer:
    """The estimate for a document or for a picture; at least one of them is given."""
    if document is None or picture is None:
        return cast(Answer, document or picture)
    sure = picture.confidence is not None and picture.confidence >= PICTURE
    return picture if sure else document


def _rereadable(source: Any, limits: Limits) -> Any:
    """Reads an open file into memory, since a pipe can be read only once."""
    return BytesIO(images.content_of(source, limits)) if hasattr(source, "read") else source


def _canonicalization(image: Any, answer: Answer, decision: Decision) -> Canonicalization:
    return Canonicalization(
        image,
        rounded(answer),
        answer.confidence,
        answer.symmetry,
        answer.posterior,
        decision.turn,
        decision.reason,
        answer.kind,
    )
