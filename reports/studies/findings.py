"""The trials of a study that have a score, as a frame; the best of them as an experiment file, and
confirmed by seeds that chose nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.reading import toml_comment, toml_lines
from harness.results.record import Record
from harness.results.store import RunFolder, read_records
from harness.runs.conditions import Conditions
from reports.stats.estimate import Interval, mean_sd, predict, quartile
from studies.definition.space import Space
from studies.definition.study import DEV, Study
from studies.proposer import objective_value
from studies.trials import START, best_trials, result_of

if TYPE_CHECKING:
    import optuna
    import pandas as pd
    from optuna.trial import FrozenTrial


def value_label(study: Study) -> str:
    """The axis of the objective."""
    return f"{study.objective_name} ×100"


def select_scored(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that have a value. Pruned ones have none: their score was cut short."""
    return [t for t in trials if t.state.name == "COMPLETE" and math.isfinite(t.values[0])]


def untrained_score(
    stored: optuna.Study,
    trial: FrozenTrial,
    study: Study,
    workdir: Path,
) -> float | None:
    """Return the objective of the model that a trial started from; None where it is not known.

    A dev score is known to the runs of the trial, and the mean over them; any other is that of a
    run without training.
    """
    if study.objective == DEV:
        return _initial_dev(trial, workdir)
    run = stored.user_attrs.get(START, "")
    record = RunFolder(workdir, run).read_if_sound() if run else None
    if record is None or record.status != "finished":
        return None
    return objective_value(record, study, workdir)


def _initial_dev(trial: FrozenTrial, workdir: Path) -> float | None:
    scores = []
    for run in result_of(trial).runs:
        record = RunFolder(workdir, run).read_if_sound()
        if record is not None:
            score = record.training.get("initial_dev")
        else:
            score = None
        if score is None:
            return None
        scores.append(float(score))
    return sum(scores) / len(scores) if scores else None


def compare_with_start(trial: FrozenTrial, start: float | None) -> str:
    """Return a sentence on what the best trial gained over not training; "" where that is not
    known.
    """
    if start is None:
        return ""
    gain = 100 * (trial.values[0] - start)
    text = f"Without training the score is {100 * start:.2f}"
    if gain <= 0:
        return f"{text}: no setting is better than not training."
    return f"{text}, {gain:.2f} points less; by a score that chose, so confirm it."


def top(trials: Sequence[FrozenTrial], share: float = 1.0) -> float:
    """The best score of the trials times 100, or the quantile that `share` of them do not exceed."""
    return 100 * quartile([t.values[0] for t in trials], share)


def trials_frame(study: Study, space: Space, trials: Sequence[FrozenTrial]) -> pd.DataFrame:
    """Every trial: configuration, values (correlations, not times 100), state, seeds, seconds, ids
    of its runs.
    """
    import pandas as pd

    columns = [
        "trial",
        *space.names,
        study.objective_name,
        "state",
        "status",
        "seeds",
        "reused",
        "seconds",
        "last step",
        "runs",
        "reason",
    ]
    rows: list[tuple[Any, ...]] = []
    for t in trials:
        result = result_of(t)
        rows.append(
            (
                t.number,
                *(t.params.get(name) for name in space.names),
                t.value if t.state.name == "COMPLETE" else None,
                t.state.name.lower(),
                result.status,
                " ".join(map(str, result.seeds)),
                "yes" if result.reused else "no",
                round(result.seconds, 3),
                t.last_step,
                " ".join(result.runs),
                result.reason,
            )
        )
    return pd.DataFrame(rows, columns=columns)


def best_config(stored: optuna.Study, study: Study) -> dict[str, Any]:
    """The config of the best trial, as an experiment file would hold it.

    Raises:
        InputError: no trial has a value yet.
    """
    best = best_trials(stored)
    if not best:
        raise InputError(f'study "{study.name}": no trial has a value yet', file=study.name)
    return {**study.config, **best[0].params}


def experiment_file(stored: optuna.Study, study: Study, seeds: Sequence[int]) -> str:
    """An experiment for `harness compare` with the best configuration; with the study's own seeds
    nothing is trained again.
    """
    config = best_config(stored, study)
    trial = best_trials(stored)[0].number
    usual = {"embedded": "embedded", "file": study.dev.task}.get(study.dev.where, "sts")
    suites = study.suites or [usual]
    conditions = study.model_dump(
        include=set(Conditions.model_fields) - {"name", "title", "description"},
        exclude_none=True,
    )
    experiment: dict[str, Any] = {
        "name": study.name + "-best",
        "base_models": [study.base_model],
        "seeds": list(seeds),
        "suites": [
            one if isinstance(one, str) else one.model_dump(exclude_defaults=True) for one in suites
        ],
        "max_steps": study.steps,
        **conditions,
    }
    experiment = {key: value for key, value in experiment.items() if value not in (None, {})}
    row: dict[str, Any] = {
        "method": study.method,
        "name": f"{study.method} (tuned)",
        "config": config,
    }
    if study.preset:
        row |= {"preset": study.preset}
    about = f"The best configuration of study {study.name} (trial {trial}); seeds that chose it: {study.seeds}."
    return f"{toml_comment(about)}{toml_lines(experiment)}\n[[methods]]\n{toml_lines(row)}"


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
        """The chosen score minus the held-out mean, with an interval; None below two held-out
        seeds.

        The best of k noisy scores is too high by the very choice (Jensen & Cohen, Machine Learning
        38, 2000; Cawley & Talbot, JMLR 11, 2010); scores that had no part in it are not.
        """
        values = [value for _, value in self.held_out]
        if len(values) > 1:
            return predict(self.chosen - mean_sd(values)[0], [values], runs=math.inf)
        return None


def confirm(best: FrozenTrial, study: Study, workdir: Path) -> Confirmation | None:
    """The runs of the best trial and those of the same configuration under other seeds, whichever
    comparison they were made for; None where the records of the trial itself are not in the work
    directory.
    """
    records = {r.id: r for r in read_records(workdir, damaged={})}
    own = [records[run] for run in result_of(best).runs if run in records]
    chosen = []
    for r in own:
        if (value := _value(r, study, workdir)) is not None:
            chosen.append((r, value))
    if not chosen:
        return None
    wanted = _same(own[0])
    others = []
    for r in records.values():
        is_other_seed = r.seed not in study.seeds and not r.spec.vary
        if is_other_seed and r.status == "finished":
            others.append(r)
    by_seed: dict[int, tuple[Record, float]] = {}
    for r in sorted(others, key=lambda r: (r.seed, r.id)):
        if (
            _same(r) == wanted
            and r.seed not in by_seed
            and (value := _value(r, study, workdir)) is not None
        ):
            by_seed[r.seed] = r, value
    return Confirmation(
        best.number,
        tuple(chosen),
        tuple(by_seed[seed] for seed in sorted(by_seed)),
    )


def _same(r: Record) -> dict[str, Any]:
    """What two runs share that differ by their seed alone."""
    return {
        "config": {key: value for key, value in r.config.items() if key != "seed"},
        "method": r.method,
        "versions": (r.spec.version, r.spec.numerics),
        "base_model": r.spec.model,  # by its content
        "corpus": (r.corpus or {}).get("sha256"),
        "dev": (r.dev or {}).get("sha256"),
        "inputs": r.inputs,
        "steps": r.training.get("planned_steps"),
        "precision": r.spec.precision,
    }


def _value(record: Record, study: Study, workdir: Path) -> float | None:
    try:
        return 100 * objective_value(record, study, workdir)
    except (InputError, OSError, ValueError, KeyError):
        return None
