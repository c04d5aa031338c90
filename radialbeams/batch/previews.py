"""What the HTML report shows of a file: thumbnails and the posterior."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import astuple
from io import BytesIO

from radialbeams import images
from radialbeams.batch.job import JobSettings
from radialbeams.limits import Limits
from radialbeams.posterior import Answer

THUMBNAIL = 240  # pixels
DIAL = 72  # the posterior is shown in at most this many directions


def dial_of(answer: Answer) -> str | None:
    """The posterior summed into few directions, so that the report stays small."""
    if answer.posterior is None:
        return None
    mass = answer.posterior
    step = -(-len(mass) // DIAL)
    if len(mass) % step == 0:
        mass = mass.reshape(-1, step).sum(1)
    levels = (15 * (mass / mass.max()) ** 0.5).round().astype(int)
    return "".join(f"{level:x}" for level in levels)


def thumbnail(data: bytes, job: JobSettings) -> str:
    """A thumbnail as a data URI; small images are not enlarged."""
    # An output on an enlarged canvas may exceed limits that its input did not.
    most = Limits(*(8 * value for value in astuple(job.limits)))
    small = images.read_small(data, THUMBNAIL, first_frame=job.first_frame, limits=most)
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    stream = BytesIO()
    small.save(stream, "WEBP", quality=70, method=2)
    return "data:image/webp;base64," + b64encode(stream.getvalue()).decode("ascii")
