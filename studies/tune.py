"""`harness compare --tune`: each row of a comparison becomes an ordinary study, COMPARISON--ROW."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
from studies.storage import default_url, definition_of, difference, load, open_storage
from studies.trials import SLOT, best_trials, has_result, result_of

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class Search:
    """A row's study, checked and ready to run."""

    row: str
    study: Study
    space: Space


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
    url = default_url(workdir)
    searches = [_prepare(experiment, *pair, budget, workdir) for pair in zip(experiment.methods, rows, strict=True)]
    earlier = [_stored(search.study, url, workdir) if isinstance(search, Search) else None for search in searches]
    answers: list[RowSearch] = []
    for search, stored in zip(searches, earlier, strict=True):
        if isinstance(search, Search) and dry:
            search = _answer(stored, search, budget, workdir) if stored else RowSearch(search.row, search.study.name)
        elif isinstance(search, Search):
            if not quiet:
                tell(f"{search.study.title}: {budget.trials} trials of {budget.steps} training steps")
            stored = run_trials(search.study, search.space, workdir, experiment.executor, url=url, where="--tune",
                                tracked=tracked, tracking_uri=tracking_uri, quiet=quiet)  # fmt: skip
            search = _answer(stored, search, budget, workdir)
        answers.append(search)
    return Tuning(budget, answers)


def study_of(experiment: Experiment, entry: Entry, row: Row, budget: Budget) -> Study:
    """The study of a row: its `space`, or all declared ranges that row and comparison leave open, are searched."""
    assert experiment.dev is not None
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


def _prepare(experiment: Experiment, entry: Entry, row: Row, budget: Budget, workdir: Path) -> Search | RowSearch:
    if not (row.method.uses_dev(row.config) and hasattr(row.config, "learning_rate")):  # or its parts alone have one
        return RowSearch(row.label, reason="not searched: no dev score of its training")
    study = study_of(experiment, entry, row, budget)
    try:
        space = make_space(study, f'--tune: row "{row.label}"')
    except NothingToSearchError:
        return RowSearch(row.label, reason="not searched: no range declared that the row leaves open")
    samplers.check(study, space, f'--tune: row "{row.label}"')
    plan_trial(study, space.first_point(), workdir)  # input that cannot work is reported before anything is trained
    return Search(row.label, study, space)


def _stored(study: Study, url: str, workdir: Path) -> optuna.Study | None:
    """What earlier calls stored of a row's study; None where there is none yet.

    Raises:
        InputError: it has another definition, which is reported before the first search and not after hours.
    """
    try:
        stored = load(open_storage(url, create=False), study.name, url)
    except InputError:
        return None
    if different := difference(definition_of(stored), study):
        raise InputError(
            f'--tune: study "{study.name}" exists with another definition ({different}); give the comparison another '
            f"name (--set name=NEW) or another --workdir than {workdir}"
        )
    return stored


def _answer(stored: optuna.Study, search: Search, budget: Budget, workdir: Path) -> RowSearch:
    """What a finished study says about its row. An earlier call may have had more trials: they do not count."""
    mine = [t for t in stored.get_trials(deepcopy=False) if t.user_attrs.get(SLOT, budget.trials) < budget.trials]
    results = {t.user_attrs[SLOT]: result_of(t) for t in reversed(mine) if has_result(t)}
    runs = sorted({run for result in results.values() for run in result.runs})
    records = [record for run in runs if (record := RunFolder(workdir, run).read()) is not None]
    seconds = sum(r.cost.get(key, 0.0) for r in records for key in ("train_seconds", "dev_seconds"))
    numbers = {t.number for t in mine}
    best = next((t for t in best_trials(stored) if t.number in numbers), None)
    reason = ""
    if best is None:
        last = next(iter(results.values()), None)
        reason = f"no trial has a score: {last.reason if last else 'their workers died'}"
    values = dict(best.params) if best is not None else {}
    return RowSearch(search.row, search.study.name, len(results), len(runs), seconds, values, reason)
