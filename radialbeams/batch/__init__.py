"""Many files: a plan, workers that carry it out, and a journal from which a killed run goes on."""

from radialbeams.batch.crew import CrewError
from radialbeams.batch.job import Job, Outcome
from radialbeams.batch.journal import JournalError
from radialbeams.batch.plan import FORMATS, Item, Plan, PlanError, format_of
from radialbeams.batch.run import Run, journaled, unjournaled

__all__ = [
    "FORMATS",
    "CrewError",
    "Item",
    "Job",
    "JournalError",
    "Outcome",
    "Plan",
    "PlanError",
    "Run",
    "format_of",
    "journaled",
    "unjournaled",
]
