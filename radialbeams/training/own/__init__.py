"""Trains a model on a user's folder: scans, splits and caches its images, trains, reports."""

from radialbeams.training.own.fitting import Status, Watch, fit_folder
from radialbeams.training.own.run import TrainedRun

Run = TrainedRun  # the name that earlier versions used

__all__ = ["Run", "Status", "TrainedRun", "Watch", "fit_folder"]
