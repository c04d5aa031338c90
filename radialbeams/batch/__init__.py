"""Many files: a plan, workers that carry it out, and a journal from which a killed run goes on."""

from radialbeams.batch.crew import CrewError
from radialbeams.batch.job import MAX_UPRIGHT, Job, Outcome, refusal, thresholds_of
from radialbeams.batch.landing import OutputError
from radialbeams.batch.locks import JournalError
from radialbeams.batch.plan import OUTPUTS, Plan, PlanError, plan_for
from radialbeams.batch.run import Run, journaled, piped, unjournaled

__all__ = [
    "MAX_UPRIGHT",
    "OUTPUTS",
    "CrewError",
    "Job",
    "JournalError",
    "Outcome",
    "OutputError",
    "Plan",
    "PlanError",
    "Run",
    "journaled",
    "piped",
    "plan_for",
    "refusal",
    "thresholds_of",
    "unjournaled",
]
