"""A model from a folder of one's own: what is in it, how it is split, cached and trained on."""

from radialbeams.training.own.fitting import Status, Watch, fit_folder
from radialbeams.training.own.run import Run

__all__ = ["Run", "Status", "Watch", "fit_folder"]
