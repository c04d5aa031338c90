"""The model card: everything needed to use and to judge a model, as frozen dataclasses.

`reading` parses a card from JSON, `writing` converts it to JSON. Comments give the units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from radialbeams.posterior import Calibration, Thresholds
from radialbeams.stored import JsonDict

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]

# A network returns one unit vector, or a posterior of logits and offsets.
Reading = Literal["unit", "posterior"]
ProtocolName = Literal["paper", "leakfree"]

VERSION = 2  # of the format; cards without a version have the first format


class DamagedModel(ValueError):
    """The file does not match its card, or the card is not valid."""


@dataclass(frozen=True)
class NetworkCard:
    """What is needed to run an ONNX file; `Card.config` has the settings to rebuild the network."""

    architecture: str
    reading: Reading
    view_size: int  # pixels
    channels: int
    num_bins: int  # of the posterior: beams, or bins of a network without beams


@dataclass(frozen=True)
class ViewProtocol:
    """How views are made from upright parents."""

    name: ProtocolName
    parent_size: int | None = None  # pixels
    padding: str = "zeros"
    sigma: float | None = None  # of the leak-free blur, in parent pixels; None: from the sizes
    reach: float = 0.9  # radius of the leak-free disc, as a share of the parent's half-width


@dataclass(frozen=True)
class DataCard:
    """The training data of a model, and the held-out data."""

    name: str
    training_images: int | None = None
    test_images: int | None = None
    split_by: str = "default"


@dataclass(frozen=True)
class WeightsOrigin:
    """The weights of another run, by the name on its card and their sha256."""

    name: str
    sha256: str


@dataclass(frozen=True)
class AveragedWith:
    """One interpolation between the weights of two runs."""

    origin: WeightsOrigin
    share: float  # of the later run


@dataclass(frozen=True)
class TrainingCard:
    """The recipe, as `Recipe.from_dict` reads it, and how the run ended."""

    recipe: JsonObject
    minutes: float | None = None  # limit
    start: WeightsOrigin | None = None
    steps_done: int | None = None
    seconds: float | None = None
    hardware: str | None = None
    averaged: tuple[AveragedWith, ...] = ()


@dataclass(frozen=True)
class Looks:
    """Below this confidence, the model also runs on the other three quarter turns of a view.

    So it does at any confidence if the view looks drawn. If `oblong_below` is given, it runs on the
    squares at both ends of an oblong picture instead, unless the corners of the picture are plain.
    """

    below: float
    mean: float | None = None  # average number of runs per view on held-out square images
    oblong_below: float | None = None  # likewise `below`, for oblong pictures
    oblong_temperature: float | None = None  # of the posteriors that are averaged then
    drawn: float | None = None  # the least that `images/drawn.py` measures on a drawing


@dataclass(frozen=True)
class Hashes:
    """The sha256 of the files next to the card."""

    safetensors: str | None = None
    onnx: str | None = None

    @property
    def weights(self) -> str:
        """Of the file that torch reads: the ONNX file where it holds the only copy."""
        return self.safetensors or self.onnx or ""


@dataclass(frozen=True)
class Cost:
    milliseconds_a_view_one_cpu_thread: float


@dataclass(frozen=True)
class RiskCoverage:
    """Errors of the most confident share of the views."""

    coverage: float
    mean: float  # degrees
    within_10: float


@dataclass(frozen=True)
class Evaluation:
    """Errors in degrees; shares of views as fractions."""

    n: int
    mean: float
    mean_low: float  # 95 % bootstrap interval of the mean, over images
    mean_high: float
    median: float
    p90: float
    p95: float
    rmse: float
    paper_equivalent: float
    within_2: float
    within_5: float
    within_10: float
    flips: float
    groups: Mapping[str, float] = field(default_factory=dict)
    risk_coverage: tuple[RiskCoverage, ...] = ()
    calibration_error: float | None = None  # expected; confidence against the share within 10°

    def to_dict(self) -> JsonDict:
        values = asdict(self)
        return {**values, "risk_coverage": list(values["risk_coverage"])}


@dataclass(frozen=True)
class Measurement:
    """An evaluation of a model, and the settings of the evaluation."""

    evaluation: Evaluation
    protocol: ProtocolName
    split: str = "test"
    seeds: int = 1
    jpeg: int | None = None  # quality
    data: str | None = None  # None: the data set on the card
    quarter: float | None = None  # degrees: the mean error at multiples of 90°
    quarter_plus_1: float | None = None  # degrees: the mean error 1° away from them


@dataclass(frozen=True)
class UncertainObject:
    """One of the objects for which the model is least confident."""

    object: str
    confidence: float
    mean: float  # degrees


@dataclass(frozen=True)
class Card:
    """A model: what it computes, how to use it, its training data, and its measured errors."""

    network: NetworkCard
    config: JsonObject  # `nn.architectures.parse_config` reads it
    protocol: ViewProtocol
    name: str = ""
    summary: str = ""
    licence: str = ""
    works_on: str = ""
    fails_on: str = ""
    data: DataCard | None = None
    training: TrainingCard | None = None
    calibration: Calibration = field(default_factory=Calibration)
    # Calibration results on held-out images, cross-validated.
    calibrated: Mapping[str, float] = field(default_factory=dict)
    looks: Looks | None = None
    abstain: Thresholds | None = None
    trust: tuple[str, ...] = ()  # reasons not to act on its answers; empty: none is known
    documents: Literal["quarter"] | None = None  # the separate network for pages and screens
    least_confident: tuple[UncertainObject, ...] = ()
    parameters: int | None = None
    sha256: Hashes = field(default_factory=Hashes)
    parity: float | None = None  # largest difference between ONNX and torch
    metrics: Mapping[str, Measurement] = field(default_factory=dict)
    end_to_end: JsonObject = field(default_factory=dict)  # errors of the command on files
    cost: Cost | None = None
    other: JsonObject = field(default_factory=dict)  # fields unknown to this version
    version: int = VERSION

    @property
    def parent_size(self) -> int:
        """The side in pixels of the square that a view is made from."""
        return self.protocol.parent_size or self.network.view_size
