"""`harness compare --tune`: each row of a comparison becomes an ordinary study, COMPARISON--ROW."""

from __future__ import annotations

from pathlib import Path

import optuna

from harness.errors import InputError
from harness.files.printable import tell
from harness.results.store import RunFolder
from harness.runs.experiment import Entry, Experiment
from harness.runs.rows import Row, resolve_rows
from harness.runs.tuning import Budget, RowSearch, Tuning
from studies import samplers
from studies.definition.space import NothingToSearchError, Space, make_space
from studies.definition.study import Study
from studies.proposer import plan_trial, run_trials
from studies.storage import check_same, definition_of, load
from studies.trials import SLOT, best_trials, finished_trials, has_result, result_of


def tune_rows(
    experiment: Experiment,
    budget: Budget,
    workdir: Path,
    *,
    tracked: bool = False,
    tracking_uri: str | None = None,
    quiet: bool = True,
    dry: bool = False,
) -> Tuning:
    """Run the studies of all rows one after the other; a call that was interrupted resumes.

    Args:
        budget: as `harness.runs.tuning.check_budget` returns it.
        dry: train and write nothing; the searches have what earlier calls found so far.

    Raises:
        InputError: a row's study cannot be made, or exists with another definition; nothing has been run then.
        RunError: from a study.
    """
    rows = [row for row in resolve_rows(experiment, "--tune") if row.base_model == experiment.base_models[0]]
    searches: list[tuple[RowSearch, Study | None, Space | None]] = []
    for entry, row in zip(experiment.methods, rows, strict=True):
        searches.append(_prepare(experiment, entry, row, budget, workdir))
    if dry:
        return Tuning(budget, [search for search, _, _ in searches])
    answers = []
    for search, study, space in searches:
        if study is not None and space is not None:
            if not quiet:
                tell(f"{study.title}: {budget.trials} trials of {budget.steps} training steps")
            stored = run_trials(study, space, workdir, experiment.executor, where="--tune", tracked=tracked,
                                tracking_uri=tracking_uri, quiet=quiet)  # fmt: skip
            search = _result(stored, search.row, budget, workdir)
        answers.append(search)
    return Tuning(budget, answers)


def study_of(experiment: Experiment, entry: Entry, row: Row, budget: Budget) -> Study:
    """The study of a row: its `space`, or all declared ranges that row and comparison leave open, are searched."""
    shared = {key: value for key, value in experiment.shared.items() if key in row.method.Config.model_fields}
    return Study(
        **{
            **experiment.conditions(),
            "name": f"{experiment.name}--{row.label}",
            "title": f"{row.label}, tuned for {experiment.title or experiment.name}",
            "description": "",
            "corpus": row.corpus or experiment.corpus,
            "family": entry.family or experiment.family,
        },
        method=entry.method,
        preset=entry.preset,
        config={**shared, **entry.config},
        base_model=experiment.base_models[0],
        steps=budget.steps,
        seeds=list(budget.seeds),
        held_out_seeds=experiment.seeds,
        trials=budget.trials,
        defaults_first=True,  # the row itself is the first trial
        space=entry.space,
    )


def _prepare(
    experiment: Experiment, entry: Entry, row: Row, budget: Budget, workdir: Path
) -> tuple[RowSearch, Study | None, Space | None]:
    """What earlier calls found for a row, and its study and space, checked and ready to run, if it is searched."""
    where = f'--tune: row "{row.label}"'
    if not (row.method.uses_dev(row.config) and hasattr(row.config, "learning_rate")):  # or its parts alone have one
        return RowSearch(row.label, reason="not searched: no dev score of its training"), None, None
    study = study_of(experiment, entry, row, budget)
    try:
        space = make_space(study, where)
    except NothingToSearchError:
        return RowSearch(row.label, reason="not searched: no range declared that the row leaves open"), None, None
    samplers.check(study, space, where)
    plan_trial(study, space.first_point(), workdir)  # input that cannot work is reported before anything is trained
    try:
        stored = load(workdir, study.name)
    except InputError:  # nothing was stored yet
        return RowSearch(row.label, study.name), study, space
    check_same(definition_of(stored), study, where)
    return _result(stored, row.label, budget, workdir), study, space


def _result(stored: optuna.Study, row: str, budget: Budget, workdir: Path) -> RowSearch:
    """What the study of a row found. An earlier call may have had more trials: they do not count."""
    mine = [t for t in finished_trials(stored) if t.user_attrs[SLOT] < budget.trials and has_result(t)]
    runs = sorted({run for trial in mine for run in result_of(trial).runs})
    records = [record for run in runs if (record := RunFolder(workdir, run).read()) is not None]
    seconds = sum(r.cost.get(key, 0.0) for r in records for key in ("train_seconds", "dev_seconds"))
    numbers = {t.number for t in mine}
    best = next((t for t in best_trials(stored) if t.number in numbers), None)
    last = result_of(mine[-1]).reason if mine else "their workers died"
    reason = "" if best is not None else f"no trial has a score: {last}"
    values = dict(best.params) if best is not None else {}
    return RowSearch(row, stored.study_name, len(mine), len(runs), seconds, values, reason)
