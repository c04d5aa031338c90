"""The stairs of `staircase` and its context encoders: what each changes, and its label."""

from __future__ import annotations

from dataclasses import dataclass, replace

from radialbeams.nn.beams import Spacing
from radialbeams.nn.context import Hub
from radialbeams.stored import JsonDict
from radialbeams.training.recipe import Draw, Schedule
from radialbeams.training.views import Protocol


@dataclass(frozen=True)
class StairDesign:
    """All that the stairs change; the defaults are the authors' code."""

    draw: Draw = "image"
    spacing: Spacing = "border"
    hub: Hub = "authors"
    layers: int = 3  # of the context encoder
    rate: float = 1e-4
    schedule: Schedule = "constant"
    clip: float = 0.0
    average: float = 0.0
    augmented: bool = False
    large: bool = False  # batches of 512
    ring: bool = False


# Applied in this order, each on top of the previous ones.
CHANGES: dict[str, JsonDict] = {
    "authors": {},
    "fresh": {"draw": "view"},
    "spacing": {"spacing": "angle"},
    "hub": {"hub": "mean"},
    "rate": {"rate": 1e-3},
    "schedule": {"schedule": "one-cycle"},
    "clipping": {"clip": 1.0},
    "averaging": {"average": 0.999},
    "jitter": {"augmented": True},
    "batch": {"large": True},
    "decoder": {"ring": True},
}
LABELS = {
    "authors": "authors' code: Adam 1e-4, 4,096 × 128",
    "fresh": "+ a fresh angle for every view",
    "spacing": "+ beams at equal angles",
    "hub": "+ a hub fed by the mean",
    "rate": "+ rate 1e-3",
    "schedule": "+ one-cycle schedule",
    "clipping": "+ gradient clipping",
    "averaging": "+ weight averaging",
    "jitter": "+ jitter, noise, zoom",
    "batch": "+ 2,500 steps of 512 views",
    "decoder": "+ the ring for the LSTM",
}
# The ring and the paper's network on the same leak-free views, for as many views.
SIDE_BY_SIDE = ("leakfree-decoder", "leakfree-batch")
REPRODUCTION = "hub"  # the stair that has the paper's optimiser and none of its authors' slips


def _stairs() -> dict[str, StairDesign]:
    designs, design = {}, StairDesign()
    for name, change in CHANGES.items():
        design = replace(design, **change)
        designs[name] = design
    return designs


STAIRS = _stairs()
# Context encoders: with the schedule that converges, and with the paper's constant rate.
CONTEXTS: dict[str, JsonDict] = {
    "none": {"layers": 0},
    "held-mean": {"hub": "held-mean"},
    "held-sum": {"hub": "held-sum"},
    "authors": {"hub": "authors"},
    "mean": {"hub": "mean"},
}
CONTEXT_LABELS = {
    "none": "no context encoder",
    "held-mean": "the text's, hub by mean",
    "held-sum": "the text's, hub by sum",
    "authors": "the authors' wheel",
    "mean": "hub by mean, in every layer, as in the pretrained bic",
}
# The series of context encoders: the protocol, and the stair that they vary, which has the hub of
# the pretrained `bic`.
CONTEXT_SERIES: dict[str, tuple[Protocol, str]] = {
    "one-cycle": ("leakfree", "clipping"),
    "constant": ("paper", REPRODUCTION),
}
CONSTANT = ("held-mean", "held-sum")  # trained at the constant rate as well
