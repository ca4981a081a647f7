"""Budgets: the amount that all rows share becomes training steps, the same at every call."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from harness.api.experiments import plan_comparison, reproduce_command
from harness.errors import InputError, RunError, TrainingStopped
from harness.results.measurements import read_measurements
from harness.runs import measure
from harness.runs.experiment import read_experiment
from harness.runs.plan import Plan, make_plan
from harness.runs.rows import Row, RunLength
from harness.runs.selection import rehearse, select
from harness.runs.tuning import Budget, check_budget

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
SECONDS = "budget={seconds=%g}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    return path


@pytest.fixture
def plan(file: Path, tmp_path: Path) -> Callable[..., Plan]:
    def planned(*overrides: str, workdir: Path | None = tmp_path / "work") -> Plan:
        return make_plan(read_experiment(str(file), overrides), str(file), workdir, starts=False)

    return planned


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A step of a row of batch 10 takes half a second, and of others in proportion; the rows that were timed."""
    rows: list[str] = []

    def take(row: Row, *_: object) -> float:
        rows.append(row.label)
        return float(row.config.batch_size / 20)  # type: ignore[attr-defined]

    monkeypatch.setattr(measure, "time_steps", take)
    return rows


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
    with pytest.raises(InputError, match=f'mine.toml.*key "{key}"'):
        read_experiment(str(file))


def test_the_command_line_replaces_the_other_key_of_the_file(file: Path) -> None:
    file.write_text("max_steps = 5\n" + FILE)
    typed = read_experiment(str(file), [STEPS % 7])
    assert (typed.max_steps, typed.budget.steps) == (None, 7)
    file.write_text("budget = { steps = 7 }\n" + FILE)
    typed = read_experiment(str(file), ["max_steps=5"])
    assert (typed.max_steps, typed.budget.kind) == (5, "")
    with pytest.raises(InputError, match="max_steps"):
        read_experiment(str(file), ["max_steps=5", STEPS % 7])


def test_equal_steps(plan: Callable[..., Plan]) -> None:
    assert ids(plan(STEPS % 3)) == ids(plan("max_steps=3"))
    assert ids(plan("budget={}")) == ids(plan())
    assert steps(plan("max_steps=25")) == {"small": 10, "large": 4}  # of one epoch
    longer = plan(STEPS % 25)
    assert steps(longer) == {"small": 25, "large": 25}
    assert {row.label: row.config.epochs for row in longer.rows if hasattr(row.config, "epochs")} == {
        "small": 3, "large": 7,
    }  # fmt: skip


def test_equal_sentences(plan: Callable[..., Plan]) -> None:
    under, without = plan(SENTENCES % 200), plan()
    assert steps(under) == {"small": 20, "large": 7}  # 200 / 32 = 6.25
    assert {label for label, run in ids(under).items() if ids(without)[label] == run} == {"mean", "whitening"}
    assert RunLength(steps=9, batch=32, epoch=4, items=100).seen == 232  # the last batch of an epoch has 4


def test_equal_seconds_are_measured_once(
    plan: Callable[..., Plan], tmp_path: Path, timed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = plan(SECONDS % 4)
    assert steps(first) == {"small": 8, "large": 2}  # 4 / 0.5, 4 / 1.6
    assert timed == ["small", "large"]
    monkeypatch.setattr(measure, "time_steps", lambda *_: 1e-3)  # a quieter machine
    assert ids(plan(SECONDS % 4)) == ids(first)
    stored = read_measurements(tmp_path / "work")["step_seconds"].values()
    assert {one["row"]: one["seconds"] for one in stored} == {"small": 0.5, "large": 1.6}
    with pytest.raises(InputError, match='row "large"'):
        plan(SECONDS % 1)


def test_a_distilled_row_with_batches_of_its_own_has_equal_steps_only(file: Path, plan: Callable[..., Plan]) -> None:
    file.write_text(FILE + '[[methods]]\nmethod = "model2vec"\npreset = "mini"\n')
    assert {row.label: row.max_steps for row in plan(STEPS % 3).rows}["model2vec"] == 3
    with pytest.raises(InputError, match='row "model2vec"'):
        plan(SENTENCES % 100)


@pytest.mark.parametrize("change", [SECONDS % 16, SENTENCES % 200, 'vary=["init"]', "max_steps=2"])
def test_the_command_of_a_run_gives_the_same_run_and_measures_nothing(
    file: Path, tmp_path: Path, timed: list[str], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    planned = plan_comparison(str(file), tmp_path / "work", overrides=[change, "seeds=[1, 2]"])
    monkeypatch.setattr(measure, "time_steps", lambda *_: pytest.fail("measured again"))
    for job in (job for job in planned.plan.jobs if job.row in ("small", "mean")):
        words = shlex.split(reproduce_command(planned, planned.plan, job))
        overrides = [word for before, word in pairwise(words) if before == "--set"]
        again = plan_comparison(str(file), tmp_path / "elsewhere", overrides=overrides)
        assert ids(again.plan)[job.row] == job.id


def test_a_rehearsal_has_its_own_bound(file: Path, timed: list[str]) -> None:
    small = make_plan(rehearse(read_experiment(str(file), [SECONDS % 4])), str(file), starts=False)
    assert steps(small) == {"small": 8, "large": 4}
    assert not timed


def test_trials_of_tune_have_the_steps_of_the_comparison(file: Path) -> None:
    experiment = read_experiment(str(file), [STEPS % 4])
    assert check_budget(Budget(5, None, (7,)), experiment) == Budget(5, 4, (7,))
    assert check_budget(None, experiment) is None
    rows = ["methods.small.eval_every=7", "methods.large.eval_every=3"]
    searched = select(str(file), rows, (), "", tuned=True).dev  # rows are searched alone, under the schedule of all
    assert searched is not None
    assert searched.every == 3


@pytest.mark.parametrize(
    ("budget", "key"),
    [
        (Budget(0), "--tune 0"),
        (Budget(1, 0), "--tune-steps 0"),
        (Budget(1, 1, (1,)), "--tune"),
        (Budget(1), "max_steps"),
    ],
)
def test_a_search_that_cannot_be_is_one_line(file: Path, budget: Budget, key: str) -> None:
    with pytest.raises(InputError, match=key):
        check_budget(budget, read_experiment(str(file)))


def test_a_row_is_timed_by_training_it(plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = plan("methods.small.batch_size=2", "methods.small.train_length=8")
    row = next(row for row in tiny.rows if row.label == "small")
    corpus = tiny.corpus(row)
    assert corpus is not None
    assert 1e-4 < measure.time_steps(row, corpus, "cpu", "fp32", 50, most=2) < 60

    def fit(*_: object) -> None:
        raise TrainingStopped("diverged", "the loss is nan")

    monkeypatch.setattr(row.method, "fit", fit)
    with pytest.raises(RunError, match='row "small"'):
        measure.time_steps(row, corpus, "cpu", "fp32", 10)
