"""Budgets: the amount that all rows share becomes training steps, the same at every call."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from harness.api.experiments import plan_comparison, reproduce_command
from harness.errors import RunError, TrainingStopped
from harness.runs import measure
from harness.runs.experiment import read_experiment
from harness.runs.plan import Plan, make_plan
from harness.runs.rows import RunLength
from harness.runs.selection import Budget, check_budget, rehearse, select
from tests.support.errors import raises_input_error

FILE = """
seeds = [1]
suites = ["Embedded-STS-natural"]
precision = "fp32"
corpus = { uri = "embedded:sentences", limit = 100 }
dev = { task = "Embedded-STS-natural" }
[[methods]]
name = "mean"
method = "pooling"
[[methods]]
name = "small"
method = "simcse"
config = { batch_size = 10 }
[[methods]]
name = "large"
method = "simcse"
config = { batch_size = 32 }
[[methods]]
method = "whitening"
"""
STEPS = "budget={steps=%d}"
SENTENCES = "budget={sentences=%d}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    return path


@pytest.fixture
def plan(file: Path) -> Callable[..., Plan]:
    def planned(*overrides: str) -> Plan:
        return make_plan(read_experiment(str(file), overrides), str(file), starts=False)

    return planned


def steps(plan: Plan) -> dict[str, int]:
    lengths = {row.label: row.length(plan.corpus(row)) for row in plan.rows}
    return {label: length.steps for label, length in lengths.items() if length is not None}


def ids(plan: Plan) -> dict[str, str]:
    return {job.row: job.id for job in plan.jobs}


@pytest.mark.parametrize(
    ("addition", "key"),
    [
        ("max_steps = 5\n", "max_steps"),
        ("shared = { epochs = 2 }\n", "epochs"),
        ('[[methods]]\nname = "x"\nmethod = "scd"\nconfig = { max_steps = 5 }\n', "max_steps"),
        ('[[methods]]\nname = "x"\nmethod = "scd"\nconfig = { epochs = 5 }\n', "epochs"),
    ],
)
def test_two_keys_that_bound_the_training_are_refused(file: Path, addition: str, key: str) -> None:
    top, table = ("", addition) if addition.startswith("[") else (addition, "")
    before, rows = FILE.split("[[methods]]", 1)
    file.write_text(f"{top}budget = {{ steps = 7 }}\n{before}{table}[[methods]]{rows}")
    with raises_input_error(file=file, key=key):
        read_experiment(str(file))


def test_the_command_line_replaces_the_other_key_of_the_file(file: Path) -> None:
    file.write_text("max_steps = 5\n" + FILE)
    typed = read_experiment(str(file), [STEPS % 7])
    assert (typed.max_steps, typed.budget.steps) == (None, 7)
    file.write_text("budget = { steps = 7 }\n" + FILE)
    typed = read_experiment(str(file), ["max_steps=5"])
    assert (typed.max_steps, typed.budget.kind) == (5, "")
    with raises_input_error(file=file, key="max_steps"):
        read_experiment(str(file), ["max_steps=5", STEPS % 7])


def test_equal_steps(plan: Callable[..., Plan]) -> None:
    assert ids(plan(STEPS % 3)) == ids(plan("max_steps=3"))
    assert ids(plan("budget={}")) == ids(plan())
    assert steps(plan("max_steps=25")) == {"small": 10, "large": 4}  # of one epoch
    longer = plan(STEPS % 25)
    assert steps(longer) == {"small": 25, "large": 25}
    assert {
        row.label: row.config.epochs for row in longer.rows if hasattr(row.config, "epochs")
    } == {
        "small": 3,
        "large": 7,
    }


def test_equal_sentences(plan: Callable[..., Plan]) -> None:
    under, without = plan(SENTENCES % 200), plan()
    assert steps(under) == {"small": 20, "large": 7}  # 200 / 32 = 6.25
    assert {label for label, run in ids(under).items() if ids(without)[label] == run} == {
        "mean",
        "whitening",
    }
    assert (
        RunLength(steps=9, batch=32, epoch=4, items=100).seen == 232
    )  # the last batch of an epoch has 4


def test_a_distilled_row_with_batches_of_its_own_has_equal_steps_only(
    file: Path, plan: Callable[..., Plan]
) -> None:
    file.write_text(FILE + '[[methods]]\nmethod = "model2vec"\npreset = "mini"\n')
    assert {row.label: row.max_steps for row in plan(STEPS % 3).rows}["model2vec"] == 3
    with raises_input_error(key="budget"):
        plan(SENTENCES % 100)


@pytest.mark.parametrize("change", [STEPS % 25, SENTENCES % 200, 'vary=["init"]', "max_steps=2"])
def test_the_command_of_a_run_gives_the_same_run(file: Path, change: str) -> None:
    planned = plan_comparison(str(file), overrides=[change, "seeds=[1, 2]"])
    for job in (job for job in planned.plan.jobs if job.row in ("small", "mean")):
        words = shlex.split(reproduce_command(planned, planned.plan, job))
        overrides = [word for before, word in pairwise(words) if before == "--set"]
        again = plan_comparison(str(file), overrides=overrides)
        assert ids(again.plan)[job.row] == job.id


def test_a_rehearsal_has_its_own_bound(file: Path) -> None:
    small = make_plan(rehearse(read_experiment(str(file), [STEPS % 100])), str(file), starts=False)
    assert steps(small) == {"small": 8, "large": 4}


def test_trials_of_tune_have_the_steps_of_the_comparison(file: Path) -> None:
    experiment = read_experiment(str(file), [STEPS % 4])
    assert check_budget(Budget(5, None, (7,)), experiment) == Budget(5, 4, (7,))
    assert check_budget(None, experiment) is None
    rows = ["methods.small.eval_every=7", "methods.large.eval_every=3"]
    searched = select(
        read_experiment(str(file), rows), (), "", tuned=True
    ).dev  # rows are searched alone, under the schedule of all
    assert searched is not None
    assert searched.every == 3


@pytest.mark.parametrize("budget", [Budget(0), Budget(1, 0), Budget(1, 1, (1,)), Budget(1)])
def test_a_search_that_cannot_be_is_one_line(file: Path, budget: Budget) -> None:
    with raises_input_error(key="--tune"):
        check_budget(budget, read_experiment(str(file)))


def test_a_row_is_timed_by_training_it(
    plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = plan("methods.small.batch_size=2", "methods.small.train_length=8")
    row = next(row for row in tiny.rows if row.label == "small")
    corpus = tiny.corpus(row)
    assert corpus is not None
    rates = measure.Rates(**measure.time_row(row, corpus, 10, "cpu", precision="fp32"))
    assert 1e-4 < rates.step < 60
    assert 1e-6 < rates.sentence < 1

    def fit(*_: object) -> None:
        raise TrainingStopped("diverged", "the loss is nan")

    monkeypatch.setattr(row.method, "fit", fit)
    with pytest.raises(RunError, match='row "small"'):
        measure.time_row(row, corpus, 10, "cpu", precision="fp32")
