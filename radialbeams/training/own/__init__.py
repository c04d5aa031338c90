"""A model from a folder of one's own: what is in it, how it is split, cached and trained on."""

from radialbeams.training.own.fitting import Status, Watch, fit_folder
from radialbeams.training.own.run import TrainedRun

Run = TrainedRun  # the name that earlier versions used

__all__ = ["Run", "Status", "TrainedRun", "Watch", "fit_folder"]
