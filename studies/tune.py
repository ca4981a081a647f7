"""The tuner behind `harness compare --tune`: each row of a comparison becomes an ordinary study, COMPARISON--ROW."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.comparison.experiment import Entry, Experiment
from harness.comparison.rows import Row, resolve_rows
from harness.comparison.tuning import Budget, RowSearch
from harness.errors import InputError
from harness.files.printable import tell
from harness.results.run_folder import RunFolder
from studies import samplers
from studies.definition.space import NothingToSearchError, Space, make_space
from studies.definition.study import Study
from studies.run.attributes import SLOT
from studies.run.conduct import conduct
from studies.run.desk import Desk
from studies.run.engine import executor_for
from studies.run.storage import default_url, definition_of, difference, load, open_storage
from studies.run.tracking import tracker_of
from studies.run.trial_result import has_result, result_of
from studies.run.trials import best_trials

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class Search:
    """A row's study, checked and ready to run."""

    row: str
    study: Study
    space: Space
    desk: Desk


def tune(
    experiment: Experiment,
    budget: Budget,
    workdir: Path,
    *,
    tracked: bool,
    tracking_uri: str | None,
    quiet: bool,
    dry: bool = False,
) -> list[RowSearch]:
    """Run the studies of all rows one after the other; see `harness.comparison.tuning.Tuner`.

    Raises:
        InputError: a row's study cannot be made, or exists with another definition; nothing has been run then.
        RunError: from a study.
    """
    rows = [row for row in resolve_rows(experiment, "--tune") if row.base_model == experiment.base_models[0]]
    url = default_url(workdir)
    searches = [_prepare(experiment, *pair, budget, workdir) for pair in zip(experiment.methods, rows, strict=True)]
    for search in searches:
        if isinstance(search, Search):
            _refuse_another(search.study, url, workdir)
    if dry:
        return [_so_far(search, budget, url) if isinstance(search, Search) else search for search in searches]
    answers = []
    for search in searches:
        if isinstance(search, Search):
            if not quiet:
                tell(f"{search.study.title}: {budget.trials} trials of {budget.steps} updates")
            tracker = tracker_of(search.study, search.space, workdir, tracking_uri) if tracked else None
            executor = executor_for(search.study, experiment.executor, workdir, budget.trials)
            stored = conduct(search.study, search.space, search.desk, executor, url=url, where="--tune",
                             tracker=tracker, force_new=False, quiet=quiet)  # fmt: skip
            search = _answer(stored, search, budget)
        answers.append(search)
    return answers


def study_of(experiment: Experiment, entry: Entry, row: Row, budget: Budget) -> Study:
    """The study of a row: what row and comparison fix is kept; the row's `space`, or all else declared, is searched."""
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
        defaults_first=True,  # a search that knows less than the row itself would say nothing about tuning
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
    desk = Desk(study, workdir)
    desk.plan(space.first_point())  # what cannot be trained is told before anything is
    return Search(row.label, study, space, desk)


def _refuse_another(study: Study, url: str, workdir: Path) -> None:
    """A study of this name with another definition is told before the first search, not after hours."""
    try:
        stored = load(open_storage(url, create=False), study.name, url)
    except InputError:
        return  # there is none yet
    different = difference(definition_of(stored), study)
    if different:
        raise InputError(
            f'--tune: study "{study.name}" exists with another definition ({different}); give the comparison another '
            f"name (--set name=NEW) or another --workdir than {workdir}"
        )


def _so_far(search: Search, budget: Budget, url: str) -> RowSearch:
    """What earlier calls know of a row."""
    try:
        stored = load(open_storage(url, create=False), search.study.name, url)
    except InputError:
        return RowSearch(search.row, search.study.name)
    return _answer(stored, search, budget)


def _answer(stored: optuna.Study, search: Search, budget: Budget) -> RowSearch:
    """What a finished study says about its row. An earlier call may have had more trials: they do not count."""
    mine = [t for t in stored.get_trials(deepcopy=False) if t.user_attrs.get(SLOT, budget.trials) < budget.trials]
    results = {t.user_attrs[SLOT]: result_of(t) for t in reversed(mine) if has_result(t)}
    runs = sorted({run for result in results.values() for run in result.runs})
    records = [record for run in runs if (record := RunFolder(search.desk.workdir, run).read()) is not None]
    seconds = sum(r.cost.get(key, 0.0) for r in records for key in ("train_seconds", "dev_seconds"))
    numbers = {t.number for t in mine}
    best = next((t for t in best_trials(stored) if t.number in numbers), None)
    reason = ""
    if best is None:
        last = next(iter(results.values()), None)
        reason = f"no trial has a score: {last.reason if last else 'their workers died'}"
    values = dict(best.params) if best is not None else {}
    return RowSearch(search.row, search.study.name, len(results), len(runs), seconds, values, reason)
