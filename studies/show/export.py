"""Files of a study: CSV tables, figures, and experiment files by which its best run enters a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import InputError, RunError
from harness.files.atomic import write_atomic
from harness.files.toml_text import toml_comment, toml_lines
from reports.stats.search import expected_maximum
from studies.definition.space import Space
from studies.definition.study import Study
from studies.show.findings import (
    Sheet,
    binned_sheet,
    heat_sheet,
    scored,
    summary_sheet,
    trials_sheet,
)
from studies.storage import folder_of
from studies.trials import best_trials

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

MOST_PAIRS = 3  # heat maps: of the first numbers of the space


def sheets(
    stored: optuna.Study, study: Study, space: Space, trials: Sequence[FrozenTrial], workdir: Path
) -> list[Sheet]:
    """All tables."""
    from studies.show.study_figures import importances

    numbers = [p.name for p in space.parameters if p.numeric and p.name != study.by]
    tables = [trials_sheet(study, space, trials), summary_sheet(study, space, trials)]
    tables += [binned_sheet(study, space, trials, name) for name in numbers]
    pairs = list(combinations(numbers, 2))[:MOST_PAIRS]
    tables += [heat_sheet(study, space, trials, a, b) for a, b in pairs]
    values = [t.values[0] for t in scored(trials)]
    if values:
        budgets = range(1, len(values) + 1)
        curve = expected_maximum(values, list(budgets))
        rows = tuple((n, 100 * float(v)) for n, v in zip(budgets, curve, strict=True))
        tables.append(Sheet("expected", "Expected best score by budget", ("trials", "expected best"), rows))
    weights = tuple(importances(stored).items())
    if weights:
        tables.append(Sheet("importance", "Importance of the parameters", ("parameter", "importance"), weights))
    return tables


def write(
    stored: optuna.Study, study: Study, space: Space, trials: Sequence[FrozenTrial], workdir: Path, out: Path | None
) -> Path:
    """Write every table (CSV) and figure (SVG, PNG, PDF) and the best configuration; returns the folder.

    Raises:
        RunError: the folder cannot be written.
    """
    from studies.show.study_figures import all_figures

    folder = out or folder_of(workdir, study.name)
    tables = sheets(stored, study, space, trials, workdir)
    files: dict[str, str | bytes] = {f"{table.key}.csv": table.csv() for table in tables}
    for figure in all_figures(stored, study, space, trials, tables):
        files |= {f"{figure.key}.svg": figure.svg, f"{figure.key}.png": figure.png, f"{figure.key}.pdf": figure.pdf}
    if best_trials(stored):
        files["best.toml"] = experiment_file(stored, study, study.seeds)
        files["held-out.toml"] = experiment_file(stored, study, study.held_out_seeds)
    try:
        for name, content in files.items():
            write_atomic(folder / name, content)
    except OSError as error:
        raise RunError(f"{folder}: cannot write ({error.strerror}); the study itself is untouched") from None
    return folder


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
