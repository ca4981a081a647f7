"""`harness compare --tune`: one budget for every row, seeds that are not reported, tuned rows after
their defaults.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from harness import api
from harness.api.experiments import plan_comparison, reproduce_command
from harness.api.studies import open_study
from harness.method import DEFAULT_BASE_MODEL
from harness.results.comparison import TunedRow, Tuning
from harness.results.record import Record
from harness.results.store import RunFolder, read_comparison_file, read_records
from harness.runs.experiment import read_experiment
from harness.runs.plan import make_plan
from harness.runs.selection import Budget, with_winners
from harness.runs.until import Until
from studies.trials import result_of
from studies.tune import plan_searches
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error
from tests.support.small_studies import record_times

pytestmark = pytest.mark.usefixtures("few_pairs", "no_report")

EXPERIMENT: dict[str, Any] = {
    "name": "small",
    "base_models": [narrow_bert()],
    "seeds": [1],
    "suites": ["Embedded-STS-contrast"],
    "max_steps": 2,
    "precision": "fp32",
    "shared": {"batch_size": 8, "eval_every": 2, "train_length": 12},
    "corpus": {"uri": "embedded:sentences", "limit": 40},
    "dev": {"task": "Embedded-STS-contrast"},
    "methods": [
        {"method": "pooling"},
        {
            "name": "SimCSE",
            "method": "simcse",
            "config": {"pooling": "mean", "dropout": 0.1, "learning_rate": 3e-4},
        },
        {
            "name": "SCD",
            "method": "scd",
            "config": {"pooling": "mean", "learning_rate": 3e-4, "projector": [32, 32, 32]},
        },
    ],
}


def compare(
    workdir: Path,
    tune: Budget | None = Budget(trials=2),  # noqa: B008 - frozen
    *,
    rehearse: bool = False,
    **more: Any,
) -> Any:
    return api.compare(
        {**EXPERIMENT, **more},
        workdir=workdir,
        tracking_uri="none",
        formats=[],
        tune=tune,
        rehearse=rehearse,
    )


def tuned(workdir: Path) -> dict[str, TunedRow]:
    file = read_comparison_file(workdir, "small")
    assert file is not None
    assert file.tuned is not None
    return {row.row: row for row in file.tuned.rows}


@pytest.fixture(scope="module")
def done(few_pairs: None, no_report: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interrupted in the search of the second row, then run to its end by the same call."""
    work = tmp_path_factory.mktemp("tune")
    with pytest.MonkeyPatch.context() as patch:
        from harness.runs import runner

        execute, calls = runner.execute, []

        def interrupted(*args: Any, **more: Any) -> Record:
            calls.append(args)
            if len(calls) == 4:
                raise KeyboardInterrupt
            return execute(*args, **more)

        patch.setattr(runner, "execute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compare(work)
    first = record_times(work)
    assert len(first) == 3
    compare(work)
    assert {run: record_times(work)[run] for run in first} == first
    return work


def test_tuned_rows_follow_their_defaults_with_the_seeds_of_the_comparison(done: Path) -> None:
    records = read_records(done, "small")
    assert [r.row for r in records] == ["pooling", "SimCSE", "SimCSE · tuned", "SCD", "SCD · tuned"]
    assert {r.seed for r in records} == {1}
    assert all(r.score("Embedded-STS-contrast") is not None for r in records)


@pytest.mark.parametrize("row", ["SimCSE", "SCD"])
def test_every_row_has_the_same_number_of_trials_on_seeds_of_their_own(
    done: Path, row: str
) -> None:
    trials = open_study(f"small--{row}", done).ended
    assert [t.state.name for t in trials] == ["COMPLETE"] * 2
    runs = [
        record
        for t in trials
        for run in result_of(t).runs
        if (record := RunFolder(done, run).read()) is not None
    ]
    assert [(r.seed, r.training["steps"]) for r in runs] == [(101, 2)] * 2
    (own,) = (r.config for r in read_records(done, "small") if r.row == row)
    assert {**runs[0].config, "seed": None} == {
        **own,
        "seed": None,
    }  # the search begins with the row itself
    best = max(trials, key=lambda t: t.value or 0.0)
    answer = tuned(done)[row]
    assert (answer.values, answer.trials, answer.runs) == (best.params, 2, 2)
    assert answer.seconds == pytest.approx(
        sum(r.cost["train_seconds"] + r.cost["dev_seconds"] for r in runs)
    )
    winner = next(r for r in read_records(done, "small") if r.row == f"{row} · tuned")
    assert best.params.items() <= winner.config.items()
    assert winner.config["batch_size"] == 8  # what the comparison fixes is not searched
    assert row != "SimCSE" or "dropout" not in answer.values  # nor what the row fixes


def test_the_same_call_again_trains_nothing(done: Path) -> None:
    before, answers = record_times(done), tuned(done)
    compare(done)
    assert record_times(done) == before
    assert tuned(done) == answers


def test_rows_without_a_search_have_a_reason(done: Path) -> None:
    assert tuned(done)["pooling"].reason
    assert len(open_study("small--SCD", done).ended) == 2


def test_a_tuned_run_has_a_command_that_repeats_it_alone(done: Path) -> None:
    record = next(r for r in read_records(done, "small") if r.row == "SCD · tuned")
    call = ast.parse(record.command, mode="eval").body
    assert isinstance(call, ast.Call)
    settings = next(
        ast.literal_eval(argument.value)
        for argument in call.keywords
        if argument.arg == "overrides"
    )
    plan = make_plan(read_experiment(EXPERIMENT, settings), "small")
    assert record.id in {job.id for job in plan.jobs}


def test_a_tuned_run_of_a_part_has_a_command_that_repeats_it() -> None:
    planned = plan_comparison(EXPERIMENT, only=["SCD"], tune=Budget(trials=2))
    (study,) = plan_searches(planned.plan.experiment, Budget(2, 2), Path("nowhere"))
    assert not isinstance(study, str)
    found = TunedRow(
        row="SCD",
        label="SCD · tuned",
        study=study.name,
        trials=2,
        runs=2,
        seconds=1.0,
        values={"learning_rate": 1e-4},
        reason="",
    )
    planned.tuned = Tuning(trials=2, steps=2, seeds=(101,), rows=(found,))
    plan = make_plan(with_winners(planned.plan.experiment, planned.tuned), "small")
    (job,) = [job for job in plan.jobs if job.row == found.label]
    call = ast.parse(reproduce_command(planned, plan, job), mode="eval").body
    assert isinstance(call, ast.Call)
    given = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
    again = plan_comparison(EXPERIMENT, overrides=given["overrides"], only=given["only"])
    assert job.id in {job.id for job in again.plan.jobs}


def test_the_rows_of_a_searched_rehearsal_are_rehearsed(tmp_path: Path) -> None:
    found = compare(tmp_path, Budget(trials=1), methods=EXPERIMENT["methods"][1:2], rehearse=True)
    assert [record.row for record in found.records][:2] == ["SimCSE", "SimCSE · tuned"]
    assert all(record.rehearsal for record in found.records)


def test_a_search_of_text_of_another_kind_has_one_text(tmp_path: Path) -> None:
    pairs = {"uri": "embedded:pairs"}
    row = {"method": "simcse_supervised", "preset": "mini"}
    tree = {**EXPERIMENT, "shared": {}, "corpora": {"pairs": pairs}, "methods": [row]}
    (study,) = plan_searches(read_experiment(tree), Budget(2, 2), tmp_path)
    assert not isinstance(study, str)
    assert (study.corpus.kind, study.corpus.uri) == ("pairs", "embedded:pairs")


def test_no_seed_of_a_search_may_be_added_later() -> None:
    until = Until(most=101)
    with raises_input_error(key="--max-seeds"):
        plan_comparison(EXPERIMENT, tune=Budget(trials=2), until=until)
    assert plan_comparison(EXPERIMENT, tune=Budget(trials=2), until=Until(most=100)).budget


def test_a_study_of_that_name_with_another_definition_is_refused_before_anything_runs(
    done: Path,
) -> None:
    before = record_times(done)
    with raises_input_error(file='--tune: row "SimCSE"'):
        compare(done, shared={**EXPERIMENT["shared"], "batch_size": 16})
    assert record_times(done) == before


@pytest.mark.parametrize(
    ("budget", "more"),
    [
        (Budget(0), {}),
        (Budget(2, 0), {}),
        (Budget(2, seeds=(5, 1)), {}),
        (Budget(2), {"seeds": [100, 101]}),
        (Budget(2), {"base_models": ["embedded:mini-bert", "x"]}),
        (Budget(2), {"max_steps": None}),
    ],
)
def test_wrong_input_is_refused_before_anything_runs(
    tmp_path: Path, budget: Budget, more: dict[str, Any]
) -> None:
    with raises_input_error(key="--tune"):
        compare(tmp_path, budget, **more)
    assert not (tmp_path / "runs").exists()


def test_a_row_of_which_only_parts_are_trained_is_not_searched(tmp_path: Path) -> None:
    row = {"name": "distilled", "method": "model2vec", "preset": "mini"}
    experiment = read_experiment(
        {**EXPERIMENT, "base_models": [DEFAULT_BASE_MODEL], "shared": {}, "methods": [row]}
    )
    (reason,) = plan_searches(experiment, Budget(2, 2), tmp_path)
    assert isinstance(reason, str)
