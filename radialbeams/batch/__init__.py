"""Batches of files: the plan, the worker pool, and the journal from which a killed run resumes.

Everything that depends on the operating system is in `system`.
"""

from radialbeams.batch.job import JobSettings, with_thresholds
from radialbeams.batch.landing import OutputError
from radialbeams.batch.locks import JournalError
from radialbeams.batch.outcome import Outcome
from radialbeams.batch.plan import NOT_CORRECTED, OUTPUTS, Plan, PlanError, plan_for
from radialbeams.batch.pool import PoolError
from radialbeams.batch.run import BatchRun, journaled, piped, unjournaled
from radialbeams.batch.sources import refusal
from radialbeams.batch.walk import FileFilter

# The names that earlier versions used.
Job = JobSettings
Run = BatchRun

__all__ = [
    "NOT_CORRECTED",
    "OUTPUTS",
    "BatchRun",
    "FileFilter",
    "Job",
    "JobSettings",
    "JournalError",
    "Outcome",
    "OutputError",
    "Plan",
    "PlanError",
    "PoolError",
    "Run",
    "journaled",
    "piped",
    "plan_for",
    "refusal",
    "unjournaled",
    "with_thresholds",
]
