"""Calibration and thresholds of a model with several looks, from stored outputs.

`studies/looks.py` stores the outputs of held-out views at all four quarter turns. The answers
follow from them as in `Canonicalizer`: from one look, or from the average of four if the confidence
of the first is less than `below`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from radialbeams.posterior import (
    Answer,
    Calibration,
    Thresholds,
    read_posterior,
    read_posteriors,
)
from radialbeams.training.calibrate import best
from radialbeams.training.evaluate import expected_calibration_error
from radialbeams.training.thresholds import NEAR, HeldOutAnswers, thresholds

Floats = NDArray[np.float32]
RIGHT = 10.0  # degrees; a confidence is the probability of an error up to this


@dataclass(frozen=True)
class LookOutputs:
    """Outputs for N held-out views, each at four quarter turns."""

    logits: Floats  # (N, 4, bins)
    offsets: Floats  # (N, 4, bins)
    degrees: Floats  # (N,): by which each view is rotated
    keys: tuple[str, ...]  # (N,): the photos' keys

    @classmethod
    def read(cls, path: Path) -> LookOutputs:
        with np.load(path) as stored:
            degrees = stored["degrees"].astype(np.float32)
            keys = tuple(str(key) for key in stored["keys"])
            logits, offsets = (stored[name].astype(np.float32) for name in ("logits", "offsets"))
        return cls(logits, offsets, degrees, keys * (len(degrees) // len(keys)))

    def __len__(self) -> int:
        return len(self.degrees)

    def select(self, rows: NDArray[np.bool_]) -> LookOutputs:
        keys = tuple(key for key, chosen in zip(self.keys, rows, strict=True) if chosen)
        return LookOutputs(self.logits[rows], self.offsets[rows], self.degrees[rows], keys)

    def turned_upright(self) -> LookOutputs:
        """The outputs as if every view were upright: angles relative to the true one."""
        steps = self.degrees * np.float32(self.logits.shape[-1] / 360)
        return LookOutputs(
            self.logits, self.offsets - steps[:, None, None], 0 * self.degrees, self.keys
        )


def fitted(outputs: LookOutputs) -> Calibration:
    """Temperature and spread, fitted on the first look at each view."""
    logits, offsets = outputs.logits[:, 0], outputs.offsets[:, 0]
    answers = read_posterior(logits, offsets)
    right = torch.from_numpy(errors(answers, outputs.degrees) <= RIGHT)
    temperature, spread = best(torch.tensor(logits), torch.tensor(offsets), right)
    return Calibration(round(temperature, 4), spread)


def answers_by_rule(outputs: LookOutputs, calibration: Calibration, below: float) -> list[Answer]:
    """The answer of one look, or of four if the first is less confident than `below`."""
    logits, offsets = outputs.logits, outputs.offsets
    answers = read_posterior(logits[:, 0], offsets[:, 0], *calibration)
    unsure = [n for n, answer in enumerate(answers) if (answer.confidence or 0.0) < below]
    if unsure:
        quarters = np.arange(4, dtype=np.float32) * np.float32(logits.shape[-1] / 4)
        averaged = read_posteriors(logits[unsure], offsets[unsure], quarters, *calibration)
        for n, answer in zip(unsure, averaged, strict=True):
            answers[n] = answer
    return answers


def errors(answers: Sequence[Answer], degrees: Floats) -> NDArray[np.float64]:
    angles = np.array([answer.angle_degrees for answer in answers])
    return np.abs((angles - degrees + 180) % 360 - 180)


def held_out_answers(
    outputs: LookOutputs, calibration: Calibration, below: float
) -> HeldOutAnswers:
    """The answers for held-out views, from which thresholds are chosen."""
    answers = answers_by_rule(outputs, calibration, below)
    upright = answers_by_rule(outputs.turned_upright(), calibration, below)
    tilts = errors(answers, np.zeros_like(outputs.degrees))
    columns = (
        errors(answers, outputs.degrees),
        tilts,
        [answer.confidence for answer in answers],
        [answer.upright for answer in answers],
        [answer.upright for answer in upright],
    )
    return HeldOutAnswers(
        *(torch.tensor(np.asarray(column, dtype=np.float64)) for column in columns)
    )


def acting(answers: HeldOutAnswers, least: Thresholds) -> dict[str, float]:
    """The shares of rotated photos acted on and of upright photos made worse."""
    sure = answers.sure >= least.confidence
    turned = sure & (answers.upright <= least.upright) & (answers.turned >= least.angle)
    worse = sure & (answers.truth <= least.upright) & (answers.errors >= least.angle)
    accurate = answers.errors[turned] <= NEAR
    return {
        "acted_on": turned.double().mean().item(),
        "acted_on_within_5": accurate.double().mean().item() if turned.any() else 0.0,
        "upright_worse": worse.double().mean().item(),
    }


def crosswise(
    outputs: LookOutputs, first: NDArray[np.bool_], below: float, spoilt: float, right: float
) -> dict[str, float]:
    """Cross-validated figures: each half is measured with the thresholds from the other."""
    parts: list[tuple[int, dict[str, float]]] = []
    sure, hits = [], []
    for chosen_on, measured_on in ((first, ~first), (~first, first)):
        chosen, measured = outputs.select(chosen_on), outputs.select(measured_on)
        calibration = fitted(chosen)
        least = thresholds(held_out_answers(chosen, calibration, below), spoilt=spoilt, right=right)
        result = held_out_answers(measured, calibration, below)
        parts.append((len(measured), acting(result, least)))
        sure.append(result.sure)
        hits.append(result.errors <= RIGHT)
    shares = {
        name: sum(count * part[name] for count, part in parts) / len(outputs)
        for name in parts[0][1]
    }
    error = expected_calibration_error(torch.cat(hits), torch.cat(sure))
    return {"expected_error": error, "n": len(outputs), **shares}
