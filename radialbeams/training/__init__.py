"""Training: data, views, the training loop, evaluation, calibration and export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from radialbeams.training.own import Run, TrainedRun, fit_folder

__all__ = ["Run", "TrainedRun", "fit_folder"]


def __getattr__(name: str) -> Any:
    # Imported on first use: it brings in all of the training code.
    if name in __all__:
        from radialbeams.training import own

        return getattr(own, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
