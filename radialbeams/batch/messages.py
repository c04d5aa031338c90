"""The messages between a run and its worker processes: one JSON object per line."""

from __future__ import annotations

from typing import TypedDict

from radialbeams.stored import JsonDict

ItemFields = tuple[str | None, ...]  # of an `Item`, in their order


class BatchOrder(TypedDict):
    """A batch for a worker, and how many of its files get thumbnails."""

    items: list[ItemFields]
    thumbnails: int


class WorkerMessage(TypedDict, total=False):
    """What a worker reports. Each message has exactly one of these fields."""

    ready: bool  # the model is loaded
    at: int  # index in the batch of the file that it opens next
    model: int  # number of views in the call of the model that comes next
    outcomes: list[JsonDict]  # the fields of one `Outcome` for each file
    broken: str  # why no worker can process this run
