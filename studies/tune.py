"""`harness compare --tune`: each row of a comparison becomes an ordinary study, COMPARISON--ROW."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna

from harness.files.printable import tell
from harness.results.comparison import TunedRow, Tuning
from harness.results.store import RunFolder
from harness.runs.experiment import Entry, Experiment
from harness.runs.rows import Row, preset_of, resolve_rows
from harness.runs.selection import Budget
from studies import samplers
from studies.definition.space import NothingToSearchError, make_space
from studies.definition.study import Study
from studies.proposer import content_of, plan_first_trial, run_trials
from studies.storage import check_content, check_same, definition_of, studies_in
from studies.trials import SLOT, best_trials, ended_trials, has_result, result_of


def tune_rows(
    experiment: Experiment,
    budget: Budget,
    workdir: Path,
    *,
    quiet: bool = True,
    **options: Any,
) -> Tuning:
    """Run the studies of all rows one after the other; a call that was interrupted resumes.

    Args:
        budget: as `harness.runs.selection.check_budget` returns it.
        quiet, options: as in `run_trials`.

    Raises:
        InputError: as `plan_searches`; nothing has been run then. RunError: from a study.
    """
    rows = []
    for entry, study in zip(
        experiment.methods, plan_searches(experiment, budget, workdir), strict=True
    ):
        if isinstance(study, str):
            rows.append(_describe_search(entry.label, reason=study))
            continue
        if not quiet:
            tell(f"{study.title}: {budget.trials} trials of {budget.steps} training steps")
        space = make_space(study, "--tune")
        stored = run_trials(
            study,
            space,
            workdir,
            experiment.executor,
            content=content_of(plan_first_trial(study, space)),
            where="--tune",
            quiet=quiet,
            **options,
        )
        rows.append(_describe_search(entry.label, **_result(stored, budget, workdir)))
    assert budget.steps is not None
    return Tuning(
        trials=budget.trials,
        steps=budget.steps,
        seeds=budget.seeds,
        rows=tuple(rows),
    )


def _describe_search(row: str, **found: Any) -> TunedRow:
    nothing = {
        "study": "",
        "trials": 0,
        "runs": 0,
        "seconds": 0.0,
        "values": {},
        "reason": "",
    }
    return TunedRow(row=row, label=f"{row} · tuned", **{**nothing, **found})


def plan_searches(experiment: Experiment, budget: Budget, workdir: Path) -> list[Study | str]:
    """The study of each row, or why the row is not searched.

    Raises:
        InputError: a study cannot be made, or exists with another definition.
    """
    rows = []
    for row in resolve_rows(experiment, "--tune"):
        if row.base_model == experiment.base_models[0]:
            rows.append(row)
    return [
        _plan_search(experiment, *pair, budget, workdir)
        for pair in zip(experiment.methods, rows, strict=True)
    ]


def study_of(experiment: Experiment, entry: Entry, row: Row, budget: Budget) -> Study:
    """The study of a row: its `space`, or all declared ranges that row and comparison leave open,
    are searched.
    """
    shared = {}
    for key, value in experiment.shared.items():
        if key in row.method.Config.model_fields:
            shared[key] = value
    corpus = row.corpus or experiment.corpus
    others = {kind: text for kind, text in experiment.corpora.items() if kind != corpus.kind}
    return Study(
        **experiment.conditions()
        | {
            "name": f"{experiment.name}--{row.label}",
            "description": "",
            "corpus": corpus,
            "corpora": others,
            "title": f"{row.label}, tuned for {experiment.title or experiment.name}",
            "family": entry.family or experiment.family,
            "base_model": experiment.base_models[0],
            "method": entry.method,
            "preset": preset_of(experiment, entry, row.method),
            "config": {**shared, **entry.config},
            "space": entry.space,
            "steps": budget.steps,
            "seeds": list(budget.seeds),
            "held_out_seeds": experiment.seeds,
            "trials": budget.trials,
            "defaults_first": True,  # the row itself is the first trial
        },
    )


def _plan_search(
    experiment: Experiment,
    entry: Entry,
    row: Row,
    budget: Budget,
    workdir: Path,
) -> Study | str:
    where = f'--tune: row "{row.label}"'
    if not (
        row.instance.uses_dev and hasattr(row.config, "learning_rate")
    ):  # or its parts alone have one
        return "not searched: no dev score of its training"
    study = study_of(experiment, entry, row, budget)
    try:
        space = make_space(study, where)
    except NothingToSearchError:
        return "not searched: no range declared that the row leaves open"
    samplers.check(study, space, where)
    # Input that cannot work is reported before anything is trained.
    content = content_of(plan_first_trial(study, space))
    stored = studies_in(workdir).get(study.name)
    if stored is not None:
        check_same(definition_of(stored), study, where)
        check_content(stored, content, where)
    return study


def _result(stored: optuna.Study, budget: Budget, workdir: Path) -> dict[str, Any]:
    """What the study of a row found. An earlier call may have had more trials: they do not count."""
    mine = []
    for t in ended_trials(stored):
        if t.user_attrs[SLOT] < budget.trials and has_result(t):
            mine.append(t)
    runs = sorted({run for trial in mine for run in result_of(trial).runs})
    records = []
    for run in runs:
        if (record := RunFolder(workdir, run).read()) is not None:
            records.append(record)
    seconds = 0.0
    for record in records:
        seconds += record.cost.get("train_seconds", 0.0)
        seconds += record.cost.get("dev_seconds", 0.0)
    found = {
        "study": stored.study_name,
        "trials": len(mine),
        "runs": len(runs),
        "seconds": seconds,
    }
    if best := next((t for t in best_trials(stored) if t in mine), None):
        return {**found, "values": dict(best.params)}
    return {
        **found,
        "reason": f"no trial has a score: {result_of(mine[-1]).reason if mine else 'their workers died'}",
    }
