"""What a run says of its configuration: the values of the objectives, and whether another seed is worth it."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from studies.definition.study import DEV, Study
from studies.run.desk import split_objective
from studies.run.trial_result import result_of

if TYPE_CHECKING:
    import optuna

RACE_AFTER = 4  # trials with as many seeds that a trial's further seeds are judged by


def dev_scores(record: Record, workdir: Path) -> list[tuple[int, float]]:
    """Update and score of each evaluation on the dev set after the first update."""
    lines = RunFolder(workdir, record.id).curves()
    return [(line["step"], line["spearman"]) for line in lines if line["kind"] == "dev" and line["step"] > 0]


def outcome(record: Record, study: Study, workdir: Path) -> list[float]:
    """The values of the objectives for one run. A run that collapsed or diverged has the dev score that it fell to.

    Raises:
        InputError: the record lacks a score that is an objective.
    """
    if record.status == "failed":
        return [0.0] * len(study.objectives)
    values = []
    for objective in study.objectives:
        value: float | None
        if objective == DEV and record.status == "finished":
            value = record.training.get("best_dev")
        elif objective == DEV:
            scores = [line["spearman"] for line in RunFolder(workdir, record.id).curves() if line["kind"] == "dev"]
            value = scores[-1] if scores and math.isfinite(scores[-1]) else 0.0
        else:
            parts = split_objective(objective, [*(score.task for score in record.scores), *record.missing])
            value = record.score(*parts) if parts else None
        if value is None or not math.isfinite(value):
            raise InputError(f'objectives: the run has no score "{objective}" ({record.status} {record.reason})')
        values.append(float(value))
    return values


def in_contention(stored: optuna.Study, study: Study, outcomes: list[list[float]]) -> bool:
    """Is a trial worth another seed: no worse than the median trial with as many seeds (always at the beginning)?"""
    from optuna.trial import TrialState

    done = len(outcomes)
    others = [
        [fmean(column) for column in zip(*values[:done], strict=True)]
        for t in stored.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if len(values := result_of(t).seed_values) >= done
    ]
    if len(others) < RACE_AFTER:
        return True
    mine = [fmean(column) for column in zip(*outcomes, strict=True)]
    return any(
        (value >= bar) if sign == "maximize" else (value <= bar)
        for value, bar, sign in zip(mine, map(median, zip(*others, strict=True)), study.signs, strict=True)
    )
