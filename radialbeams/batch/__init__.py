"""Many files: a plan, workers that carry it out, and a journal from which a killed run goes on."""

from radialbeams.batch.crew import CrewError
from radialbeams.batch.job import MIN_ANGLE, Job, Outcome, min_confidence_of
from radialbeams.batch.journal import JournalError
from radialbeams.batch.plan import Plan, PlanError, format_of, plan_for
from radialbeams.batch.run import Run, journaled, piped, unjournaled

__all__ = [
    "MIN_ANGLE",
    "CrewError",
    "Job",
    "JournalError",
    "Outcome",
    "Plan",
    "PlanError",
    "Run",
    "format_of",
    "journaled",
    "min_confidence_of",
    "piped",
    "plan_for",
    "unjournaled",
]
