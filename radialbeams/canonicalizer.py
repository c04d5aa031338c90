"""Canonicalizer: pictures in, their angles and the pictures turned back out. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, overload

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
from radialbeams.images import Corners, Frame, ImageError, Source
from radialbeams.limits import DEFAULT, Limits
from radialbeams.posterior import Answer, read_posterior, read_posteriors, read_unit, rounded
from radialbeams.undoing import Undo, undone

BATCH = 64


@dataclass(frozen=True)
class Canonicalization:
    """The turn that the input has undergone, and the input turned back, or left alone.

    A model without a posterior (the paper's own network) has no confidence and no symmetry.
    """

    # Of the type that came in: a Pillow image, an array, or bytes of the same format. A file
    # comes back as BytesIO and a path as a Pillow image, so that nothing is overwritten.
    image: Any
    angle_degrees: float  # counter-clockwise, in [0, 360), to a hundredth
    confidence: float | None  # chance that the angle is within 10°
    symmetry: int | None  # 1 = one clear up, k = the same every 360°/k, 0 = no up
    posterior: NDArray[np.float32] | None  # (|B|,): probability of each beam's direction
    # The turn that was undone: the angle, the nearest quarter turn, or the angle of the picture's
    # own rectangle. None: it was left alone, and `reason` says why.
    applied_degrees: float | None = None
    reason: Reason | None = None


class Look(NamedTuple):
    """What is made of a picture before the model answers."""

    view: NDArray[np.float32]  # (C, S, S), or (k, C, S, S)
    frame: Frame | None  # of a picture that lies turned on a plain canvas
    plain: bool = False  # its corners have one colour

    @property
    def around(self) -> Surroundings:
        return Surroundings(None if self.frame is None else self.frame.angle, self.plain)


class Canonicalizer:
    """A model, loaded once, that any number of pictures and threads can be put through.

    `refine` looks at each picture so many times, turned by fractions of the angle between two
    beams, and averages the answers. There is no time limit: an ONNX file is a program that may
    loop forever, so in a process of your own load only models that you trust.
    """

    def __init__(
        self,
        model: str | Path = zoo.DEFAULT,
        *,
        threads: int = 0,
        refine: int = LOOKS,
        limits: Limits = DEFAULT,
    ) -> None:
        if refine < 1:
            raise ValueError(f"refine counts views and is at least 1; got {refine}.")
        found = zoo.find(model)
        self.name, self.card, self.refine = found.name, found.card, refine
        self.limits = limits
        self._session = _session(found, threads)

    @property
    def parent_size(self) -> int:
        """The side of the square that a view is made from, in pixels."""
        size: int = self.card["protocol"].get("parent_size", self.card["config"]["view_size"])
        return size

    @overload
    def predict(
        self,
        image: Source,
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
        image: Source | list[Any],
        *,
        corners: Corners = CORNERS,
        fill: str | None = FILL,
        first_frame: bool = False,
        abstain: Abstain = ABSTAIN,
        snap: Snap = SNAP,
    ) -> Canonicalization | list[Canonicalization]:
        """The turn of a picture, and the picture turned back; a list of them for a list.

        Pictures are turned and left alone as the command does it, by the thresholds of the model's
        card. `abstain` replaces them with a confidence, and None turns every picture. `snap` says
        what is done near a quarter turn, `corners` and `fill` what becomes of the canvas.
        """
        check_snap(snap)
        least = thresholds_for(self.card, abstain)
        sources = list(image) if isinstance(image, list) else [image]
        for number, source in enumerate(sources):
            with _named(sources, number):
                sources[number] = _kept(source, self.limits)
        answers, looks = self.judged(sources, first_frame=first_frame)
        found = []
        for number, (source, answer) in enumerate(zip(sources, answers, strict=True)):
            decision = decide(answer, least, snap, looks[number].around)
            undo = Undo(decision, looks[number].frame, corners, fill)
            with _named(sources, number):
                made = undone(source, undo, first_frame=first_frame, limits=self.limits)
            found.append(_canonicalization(made, answer, decision))
        return found if isinstance(image, list) else found[0]

    def judged(
        self, sources: Sequence[Source], *, first_frame: bool = False
    ) -> tuple[list[Answer], list[Look]]:
        """What the model says of each picture, and what was looked at."""
        answers: list[Answer] = []
        looks: list[Look] = []
        for start in range(0, len(sources), BATCH):
            for number in range(start, min(start + BATCH, len(sources))):
                with _named(sources, number):
                    looks.append(self.look(sources[number], first_frame=first_frame))
            answers += self.answers_from_views(np.stack([look.view for look in looks[start:]]))
        return answers, looks

    def answers(self, sources: Sequence[Source], *, first_frame: bool = False) -> list[Answer]:
        """What the model says of each picture, in batches; nothing is turned."""
        found: list[Answer] = []
        for start in range(0, len(sources), BATCH):
            views = []
            for number in range(start, min(start + BATCH, len(sources))):
                with _named(sources, number):
                    views.append(self.view(sources[number], first_frame=first_frame))
            found += self.answers_from_views(np.stack(views))
        return found

    def view(self, source: Source, *, first_frame: bool = False) -> NDArray[np.float32]:
        """What the model sees of a picture: (C, S, S), or (k, C, S, S) with `refine` = k."""
        return self._view(self._small(source, first_frame))

    def look(self, source: Source, *, first_frame: bool = False) -> Look:
        """What the model sees of a picture, and the picture's frame."""
        small = self._small(source, first_frame)
        return Look(self._view(small), images.frame_of(small), images.has_plain_ground(small))

    def _small(self, source: Source, first_frame: bool) -> Image.Image:
        return images.read_small(
            source, self.parent_size, first_frame=first_frame, limits=self.limits
        )

    def _view(self, small: Image.Image) -> NDArray[np.float32]:
        config = self.card["config"]
        views = images.looks(
            small,
            self.card["protocol"],
            config["view_size"],
            config["channels"],
            self._turns.tolist(),
        )
        return views[0] if self.refine == 1 else np.stack(views)

    def answers_from_views(self, views: NDArray[np.float32]) -> list[Answer]:
        """One answer for each view in (N, C, S, S), or for each k of them in (N, k, C, S, S)."""
        outputs = self._run(views.reshape(-1, *views.shape[-3:]))
        calibration = self.card.get("calibration", {})
        posterior = zoo.reading(self.card) == "posterior"
        if self.refine == 1:
            if not posterior:
                return read_unit(outputs[0])
            first = read_posterior(outputs[0], outputs[1], **calibration)
            return self._surer(views, outputs, first)
        looks = [output.reshape(len(views), self.refine, -1) for output in outputs]
        if posterior:
            return read_posteriors(looks[0], looks[1], self._shifts, **calibration)
        return read_unit(looks[0], self._turns)

    def _run(self, views: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """(N, C, S, S) → the model's outputs, which are the model's fault if they are none."""
        try:
            outputs: list[NDArray[np.float32]] = self._session.run(None, {"views": views})
        except Exception as error:  # the runtime's own errors have no common class
            raise zoo.DamagedModel(
                f"The model {self.name} does not run on views of {views.shape[1:]}, which its "
                "card describes. Export it again, weights and card together."
            ) from error
        expected = (len(views), *_widths(self.card)[:1])
        for output in outputs:
            if output.shape != expected or not np.isfinite(output).all():
                raise zoo.DamagedModel(
                    f"The model {self.name} gives no numbers that its card describes: expected "
                    f"finite ones of shape {expected}; got {output.shape}. Export it again."
                )
        return outputs

    def _surer(
        self,
        views: NDArray[np.float32],
        outputs: Sequence[NDArray[np.float32]],
        answers: list[Answer],
    ) -> list[Answer]:
        """Where one look leaves the model unsure, the average of all four quarter turns.

        A card's `looks.below` is the confidence under which that is worth three more looks. To a
        network that commutes with turns the others show nothing new, and its card has no `looks`.
        """
        below = self.card.get("looks", {}).get("below", 0.0)
        unsure = [n for n, answer in enumerate(answers) if (answer.confidence or 0.0) < below]
        if not unsure:
            return answers
        turned = np.stack([np.rot90(views[unsure], k, (-2, -1)) for k in (1, 2, 3)], axis=1)
        others = self._run(turned.reshape(-1, *views.shape[-3:]))
        looks = [
            np.concatenate((first[unsure][:, None], more.reshape(len(unsure), 3, -1)), axis=1)
            for first, more in zip(outputs, others, strict=True)
        ]  # two of (n, 4, bins)
        calibration = self.card.get("calibration", {})
        for n, answer in zip(
            unsure, read_posteriors(looks[0], looks[1], self._quarters, **calibration), strict=True
        ):
            answers[n] = answer
        return answers

    @property
    def _quarters(self) -> NDArray[np.float32]:
        """(4,): how far each quarter turn moves the posterior, in bins."""
        return np.arange(4, dtype=np.float32) * np.float32(zoo.bins(self.card) / 4)

    @property
    def _shifts(self) -> NDArray[np.float32]:
        """(k,): how far each look at a picture is turned, in steps from beam to beam.

        Less than one: whole steps, quarter turns among them, show the network nothing new.
        """
        return np.arange(self.refine, dtype=np.float32) / np.float32(self.refine)

    @property
    def _turns(self) -> NDArray[np.float32]:
        return self._shifts * np.float32(360 / zoo.bins(self.card))


def canonicalize(
    image: Source,
    model: str | Path = zoo.DEFAULT,
    *,
    corners: Corners = CORNERS,
    fill: str | None = FILL,
    first_frame: bool = False,
    refine: int = LOOKS,
    abstain: Abstain = ABSTAIN,
    snap: Snap = SNAP,
) -> Canonicalization:
    """The turn of one picture, and the picture turned back, of the type that it came in.

    As `Canonicalizer.predict`. The model is loaded by the first call and kept for the next ones.
    """
    return _loaded(str(model), refine).predict(
        image, corners=corners, fill=fill, first_frame=first_frame, abstain=abstain, snap=snap
    )


@lru_cache(maxsize=8)
def _loaded(model: str, refine: int) -> Canonicalizer:
    return Canonicalizer(model, refine=refine)


def _session(model: zoo.Model, threads: int) -> Any:
    # Only here: it is most of the import time, and `--help` needs none of it.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads  # 0 lets the runtime choose
    # Its threads sleep while there is nothing to do: awake, they take the cores from other callers.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # what fails is said once, below
    content = zoo.verified_onnx(model)
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's own errors have no common class
        raise zoo.DamagedModel(
            f"{model.onnx} has the bytes that its card names, but they are no ONNX model that "
            "runs here. Export it again, or update onnxruntime."
        ) from error
    _check_signature(model, session)
    return session


def _check_signature(model: zoo.Model, session: Any) -> None:
    """The graph declares the input and the outputs that the card describes."""
    config = model.card["config"]
    side, widths = config["view_size"], _widths(model.card)
    expected = _signature(["views"], [(config["channels"], side, side)], [(w,) for w in widths])
    inputs, outputs = session.get_inputs(), session.get_outputs()
    found = _signature(
        [node.name for node in inputs],
        [tuple(node.shape[1:]) for node in inputs],
        [tuple(node.shape[1:]) for node in outputs],
    )
    fixed = any(not node.shape or isinstance(node.shape[0], int) for node in (*inputs, *outputs))
    if found != expected or fixed or {node.type for node in (*inputs, *outputs)} != {FLOATS}:
        raise zoo.DamagedModel(
            f"{model.onnx} is an ONNX model of something else: expected {expected}, as config on "
            f"its card says, of floats and for any number of views; got {found}."
        )


FLOATS = "tensor(float)"


def _widths(card: dict[str, Any]) -> list[int]:
    """Of the outputs: logits and offsets for each beam or bin, or one unit vector."""
    return [zoo.bins(card)] * 2 if zoo.reading(card) == "posterior" else [2]


def _signature(names: list[str], given: list[Any], out: list[Any]) -> str:
    return f"input {', '.join(names)} of {given} and outputs of {out}"


@contextmanager
def _named(sources: Sequence[Any], number: int) -> Iterator[None]:
    """Says which of the pictures it was that something is wrong with."""
    try:
        yield
    except ImageError as error:
        source = sources[number]
        if isinstance(source, str | Path):
            raise ImageError(f"{source}: {error}") from error
        if len(sources) > 1:
            raise ImageError(f"Picture {number + 1} of {len(sources)}: {error}") from error
        raise


def _kept(source: Any, limits: Limits) -> Any:
    """A file is read here, since a pipe can be read only once; its bytes stand for it."""
    return BytesIO(images.content_of(source, limits)) if hasattr(source, "read") else source


def _canonicalization(made: Any, answer: Answer, decision: Decision) -> Canonicalization:
    return Canonicalization(
        made,
        rounded(answer),
        answer.confidence,
        answer.symmetry,
        answer.posterior,
        decision.turn,
        decision.reason,
    )
