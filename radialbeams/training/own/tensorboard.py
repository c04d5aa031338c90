"""Loss and held-out error for TensorBoard, which is not installed with this package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from radialbeams.training.own.fitting import Status


def open_board(out: Path) -> Callable[[Status], None]:
    """A function that writes each status to OUT/tensorboard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ValueError(
            "--tensorboard needs the package tensorboard. Install it with `pip install "
            "tensorboard`, or leave the option out: RUN/metrics.jsonl has the same numbers."
        ) from error
    writer: Any = None  # made for the first figures: a refused training leaves no folder

    def show(status: Status) -> None:
        nonlocal writer
        if status.step is None:
            return
        writer = writer or SummaryWriter(str(out / "tensorboard"))
        for name, value in (("loss", status.loss), ("held-out error", status.held_out)):
            if value is not None:
                writer.add_scalar(name, value, status.step)
        writer.flush()

    return show
