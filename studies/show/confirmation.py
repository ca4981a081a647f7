"""Runs of a study's best configuration under seeds that chose nothing: what is left of the chosen score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.results.record import Record
from harness.results.store import read_records
from reports.stats.estimate import Interval, mean_sd, predict
from studies.definition.study import Study
from studies.proposer import objective_value
from studies.trials import result_of

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class Confirmation:
    """The objective times 100: by the seeds that chose, and by those that did not."""

    trial: int
    chosen_by: tuple[tuple[Record, float], ...]
    held_out: tuple[tuple[Record, float], ...]

    @property
    def chosen(self) -> float:
        """The trial's value: the mean over the seeds that chose it."""
        return mean_sd([value for _, value in self.chosen_by])[0]

    @property
    def optimism(self) -> Interval | None:
        """The chosen score minus the held-out mean, with an interval; None below two held-out seeds.

        The best of k noisy scores is too high by the very choice (Jensen & Cohen, Machine Learning 38, 2000; Cawley &
        Talbot, JMLR 11, 2010); scores that had no part in it are not.
        """
        values = [value for _, value in self.held_out]
        return predict(self.chosen - mean_sd(values)[0], [values], runs=math.inf) if len(values) > 1 else None


def confirm(best: FrozenTrial, study: Study, workdir: Path) -> Confirmation | None:
    """The runs of the best trial and those of the same configuration under other seeds, whichever comparison they were
    made for; None where the records of the trial itself are not in the work directory."""
    records = {r.id: r for r in read_records(workdir, damaged={})}
    own = [records[run] for run in result_of(best).runs if run in records]
    chosen = [(r, value) for r in own if (value := _value(r, study, workdir)) is not None]
    if not chosen:
        return None
    wanted = _same(own[0])
    others = [r for r in records.values() if r.seed not in study.seeds and r.status == "finished"]
    by_seed: dict[int, tuple[Record, float]] = {}
    for r in sorted(others, key=lambda r: (r.seed, r.id)):
        if _same(r) == wanted and r.seed not in by_seed and (value := _value(r, study, workdir)) is not None:
            by_seed[r.seed] = r, value
    return Confirmation(best.number, tuple(chosen), tuple(by_seed[seed] for seed in sorted(by_seed)))


def _same(r: Record) -> dict[str, Any]:
    """What two runs share that differ by their seed alone."""
    return {
        "config": {key: value for key, value in r.config.items() if key != "seed"},
        "method": r.method,
        "base_model": r.base_model,
        "corpus": (r.corpus or {}).get("sha256"),
        "dev": (r.dev or {}).get("sha256"),
        "inputs": r.inputs,
        "steps": r.training.get("planned_steps"),
    }


def _value(record: Record, study: Study, workdir: Path) -> float | None:
    try:
        return 100 * objective_value(record, study, workdir)
    except (InputError, OSError, ValueError, KeyError):
        return None
