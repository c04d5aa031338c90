"""A run's report: what a model has learned of its held-out images, as one HTML page."""

from radialbeams.training.report.canaries import Canary, measure_here
from radialbeams.training.report.findings import Findings, find
from radialbeams.training.report.page import write_report
from radialbeams.training.report.showing import CrookedImage, crooked_images
from radialbeams.training.report.words import command, summary

__all__ = [
    "Canary",
    "CrookedImage",
    "Findings",
    "command",
    "crooked_images",
    "find",
    "measure_here",
    "summary",
    "write_report",
]
