"""The effort that the experiments on open questions share: images, steps, and a small ring."""

from __future__ import annotations

from typing import NamedTuple

from radialbeams.nn.ring_network import RingConfig


class TrainingEffort(NamedTuple):
    """How much of COIL-100 is used, at which size, and for how long."""

    images: int
    held_out: int
    size: int  # pixels of the square parents
    batch: int
    steps: int


# Of COIL-100's 5,721 and 1,479 images: evenly spaced, few enough to copy to a borrowed GPU.
FULL = TrainingEffort(images=3100, held_out=440, size=128, batch=128, steps=4096)
QUICK = TrainingEffort(images=300, held_out=60, size=48, batch=32, steps=60)


def small_ring(view_size: int, beam_length: int) -> RingConfig:
    """A ring of 32 beams, for comparisons in which only the differences count."""
    return RingConfig(
        view_size=view_size,
        beam_length=beam_length,
        sampler="polar",
        num_beams=32,
        epsilon=0,
        stem=32,
        stem_stride=2,
        stages=(32, 48),
        width=64,
        dilations=(1, 2, 4),
    )
