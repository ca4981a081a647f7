"""The trials of a study that have a score, as a frame, and the best of them as an experiment file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.files.toml_text import toml_comment, toml_lines
from reports.stats.search import quartile
from studies.definition.space import Space
from studies.definition.study import Study
from studies.trials import best_trials, result_of

if TYPE_CHECKING:
    import optuna
    import pandas as pd
    from optuna.trial import FrozenTrial


def value_label(study: Study) -> str:
    """The axis of the objective."""
    return f"{study.objective_name} ×100"


def scored(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that have a value. Pruned ones have none: their score was cut short."""
    return [t for t in trials if t.state.name == "COMPLETE" and math.isfinite(t.values[0])]


def top(trials: Sequence[FrozenTrial], share: float = 1.0) -> float:
    """The best score of the trials times 100, or the quantile that `share` of them do not exceed."""
    return 100 * quartile([t.values[0] for t in trials], share)


def trials_frame(study: Study, space: Space, trials: Sequence[FrozenTrial]) -> pd.DataFrame:
    """Every trial: configuration, values (correlations, not times 100), state, seeds, seconds, ids of its runs."""
    import pandas as pd

    columns = ["trial", *space.names, study.objective_name, "state", "status", "seeds", "reused",
               "seconds", "last step", "runs", "reason"]  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for t in trials:
        result = result_of(t)
        rows.append((
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
        ))  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def best_config(stored: optuna.Study, study: Study) -> dict[str, Any]:
    """The config of the best trial, as an experiment file would hold it.

    Raises:
        InputError: no trial has a value yet.
    """
    best = best_trials(stored)
    if not best:
        raise InputError(f'study "{study.name}": no trial has a value yet')
    return {**study.config, **best[0].params}


def experiment_file(stored: optuna.Study, study: Study, seeds: Sequence[int]) -> str:
    """An experiment for `harness compare` with the best configuration; with the study's own seeds nothing is trained
    again."""
    config = best_config(stored, study)
    trial = best_trials(stored)[0].number
    experiment: dict[str, Any] = {
        "name": study.name + "-best",
        "base_models": [study.base_model],
        "seeds": list(seeds),
        "suites": study.suites or ["embedded" if study.dev.where == "embedded" else "sts"],
        "source": study.source,
        "precision": study.precision,
        "corpus": study.corpus.model_dump(exclude_none=True),
        "dev": study.dev.model_dump(exclude_none=True),
    }
    corpora = {kind: corpus.model_dump(exclude_none=True) for kind, corpus in study.corpora.items()}
    experiment |= {key: value for key, value in {"max_steps": study.steps, "corpora": corpora}.items() if value}
    row: dict[str, Any] = {"method": study.method, "name": f"{study.method} (tuned)", "config": config}
    row |= {"preset": study.preset} if study.preset else {}
    about = f"The best configuration of study {study.name} (trial {trial}); seeds that chose it: {study.seeds}."
    return f"{toml_comment(about)}{toml_lines(experiment)}\n[[methods]]\n{toml_lines(row)}"
