"""Many files: a plan, a pool of workers, and a journal from which a killed run resumes.

Whatever depends on the operating system is in `system`.
"""

from radialbeams.batch.job import Job, Outcome, refusal, with_thresholds
from radialbeams.batch.landing import OutputError
from radialbeams.batch.locks import JournalError
from radialbeams.batch.plan import OUTPUTS, Plan, PlanError, plan_for
from radialbeams.batch.pool import PoolError
from radialbeams.batch.run import Run, journaled, piped, unjournaled
from radialbeams.batch.walk import Wanted

__all__ = [
    "OUTPUTS",
    "Job",
    "JournalError",
    "Outcome",
    "OutputError",
    "Plan",
    "PlanError",
    "PoolError",
    "Run",
    "Wanted",
    "journaled",
    "piped",
    "plan_for",
    "refusal",
    "unjournaled",
    "with_thresholds",
]
