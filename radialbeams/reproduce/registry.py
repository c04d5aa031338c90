"""The experiments by name, in the order of the paper's claims, imported when they run."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the module needs torch; a list of names does not
    from radialbeams.reproduce.experiment import Experiment

ALL = "all"
SUMMARIES = {
    "geometry": "coverage, overlap, upper bound and margin of beams, against exact counts",
    "loss": "surfaces, bounds and Lipschitz constant of the circle loss; loss against degrees",
    "beams": "errors over the number of beams, on C_|B| and SO(2), with fixed and fresh angles",
    "beam-length": "beams of length A, B and C, and what the border gives away",
    "prior": "the Toeplitz prior off, dynamic and full, and whether its harm was a bug",
    "prior-weight": "the prior at weights from 0.01 to 1, before and after the hub",
    "orbit": "whether the beam embeddings over an orbit form a circle",
    "topology": "the orbit at 1,024 rotations: loops against chance, crossings, a Möbius strip",
    "light": "spheres lit from nine positions",
    "saliency": "which pixels decide, and whether the maps rotate with the image",
    "translation": "errors under shifts of the image",
    "radius": "contribution of the inner and the outer parts of the beams",
    "halves": "networks that are trained on the inner or the outer part of the beams alone",
    "protocol": "the paper's network under the paper's protocol, over five seeds",
    "ablation": "contribution of context, hub, λ, layers and thickness",
    "staircase": "from the authors' settings to ours, one change at a time",
    "details": "LeakyReLU against ReLU, and CIFAR-10",
    "downstream": "accuracy of a classifier over rotation, with and without uprighting",
    "end-to-end": "the canonicaliser trained with the network behind it, by either loss or both",
    "samples": "accuracy over the number of training images, against augmentation and C8",
}


def names() -> list[str]:
    """The experiments that are installed, in order."""
    return [name for name in SUMMARIES if find_spec(_module(name)) is not None]


def find(name: str) -> Experiment:
    if name not in names():
        raise ValueError(f"Expected one of {', '.join(names())}; got {name!r}.")
    experiment: Experiment = import_module(_module(name)).EXPERIMENT
    return experiment


def chosen(name: str) -> list[str]:
    """The name itself, or all names for `all`."""
    if name == ALL:
        return names()
    if name not in names():
        available = ", ".join(names())
        raise ValueError(f"Expected one of {available}, or {ALL}; got {name!r}.")
    return [name]


def _module(name: str) -> str:
    return f"radialbeams.reproduce.{name.replace('-', '_')}"
