"""Budgets: what every row gets as much of as every other becomes a number of updates, the same at every call."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from harness.comparison import timed_updates
from harness.comparison.experiment import DevSettings, read_experiment
from harness.comparison.part import asked_of
from harness.comparison.plan import LoadedData, Plan, make_plan
from harness.comparison.rehearsal import StandIns, rehearsed
from harness.comparison.repeat import repeated
from harness.comparison.rows import Row
from harness.comparison.run_length import RunLength, length_of
from harness.comparison.timed_updates import TimedUpdates, timed
from harness.comparison.tuning import Budget, asked_budget, checked_budget
from harness.errors import InputError, TrainingStopped

pytestmark = pytest.mark.usefixtures("few_pairs")

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
PARTS = '[[methods]]\nmethod = "concat"\npreset = "mini"\n'
UPDATES = 'budget={kind="updates", updates=%d}'
SENTENCES = 'budget={kind="sentences", sentences=%d}'
SECONDS = 'budget={kind="seconds", seconds=%g}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def data() -> LoadedData:
    return LoadedData()


@pytest.fixture
def plan(file: Path, data: LoadedData, tmp_path: Path) -> Callable[..., Plan]:
    def planned(*overrides: str, workdir: Path | None = tmp_path / "work") -> Plan:
        return make_plan(read_experiment(str(file), overrides), str(file), workdir, data=data)

    return planned


@pytest.fixture
def half_a_second(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An update of a row of batch 10 takes half a second, and of others in proportion; the rows that were timed."""
    measured: list[str] = []

    def take(row: Row, *_: object) -> float:
        measured.append(row.label)
        return float(row.config.batch_size / 20)  # type: ignore[attr-defined]

    monkeypatch.setattr(timed_updates, "timed", take)
    return measured


def updates(plan: Plan) -> dict[str, int]:
    lengths = {row.label: length_of(row, plan.corpus(row)) for row in plan.rows}
    return {label: length.updates for label, length in lengths.items() if length is not None}


def ids(plan: Plan) -> dict[str, str]:
    return {cell.row.label: cell.id for cell in plan.cells}


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("budget=updates", 'key "budget": expected the key "updates" beside kind = "updates"'),
        ('budget={kind="updates", sentences=3}', 'key "budget": expected no key "sentences" beside kind = "updates"'),
        ('budget={kind="steps"}', "key \"budget.kind\": expected 'own', 'updates', 'sentences', 'seconds' or 'trials'"),
        (SECONDS % 0, 'key "budget.seconds": expected a number above 0'),
    ],
)
def test_a_budget_that_cannot_be_is_one_line(file: Path, override: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read_experiment(str(file), [override])
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("addition", "place"),
    [
        ("max_steps = 5\n", 'key "max_steps"'),
        ("shared = { epochs = 2 }\n", 'shared: key "epochs"'),
        ("[blocks.one]\nmax_steps = 5\n", 'blocks.one: key "max_steps"'),
        ('[[methods]]\nname = "x"\nmethod = "scd"\nmax_steps = 5\n', 'methods[1] (x): key "max_steps"'),
        ('[[methods]]\nname = "x"\nmethod = "scd"\nconfig = { epochs = 5 }\n', 'methods[1] (x): key "epochs"'),
    ],
)
def test_two_keys_that_both_say_how_long_a_row_trains_are_refused(file: Path, addition: str, place: str) -> None:
    top, table = ("", addition) if addition.startswith("[") else (addition, "")
    before, rows = FILE.split("[[methods]]", 1)
    file.write_text(f'{top}budget = {{ kind = "updates", updates = 7 }}\n{before}{table}[[methods]]{rows}')
    with pytest.raises(InputError, match="both say how long a row trains; leave one of them out") as error:
        read_experiment(str(file))
    assert place in str(error.value)


def test_what_is_typed_takes_the_place_of_the_files_other_key(file: Path) -> None:
    file.write_text("max_steps = 5\n" + FILE)
    typed = read_experiment(str(file), [UPDATES % 7])
    assert (typed.max_steps, typed.budget.updates) == (None, 7)
    file.write_text('budget = { kind = "updates", updates = 7 }\n' + FILE)
    typed = read_experiment(str(file), ["max_steps=5"])
    assert (typed.max_steps, typed.budget.kind) == (5, "own")
    with pytest.raises(InputError, match="both say how long"):
        read_experiment(str(file), ["max_steps=5", UPDATES % 7])
    file.write_text('max_steps = 5\nbudget = { kind = "trials", trials = 2 }\n' + FILE)
    for override in ("budget.trials=3", "max_steps=6"):  # trials say how often a row trains, not how long
        typed = read_experiment(str(file), [override])
        assert (typed.max_steps, typed.budget.trials) in ((5, 3), (6, 2))


def test_equal_updates_are_the_runs_of_max_steps_where_these_are_equal(plan: Callable[..., Plan]) -> None:
    assert ids(plan(UPDATES % 3)) == ids(plan("max_steps=3"))
    assert ids(plan("budget=own")) == ids(plan())


def test_equal_updates_are_made_whatever_the_epochs(plan: Callable[..., Plan]) -> None:
    assert updates(plan("max_steps=25")) == {
        "small": 10,
        "large": 4,
    }  # of one epoch: 100 / 10, 100 / 32 and a rest of 4
    longer = plan(UPDATES % 25)
    assert updates(longer) == {"small": 25, "large": 25}
    epochs = {row.label: row.config.epochs for row in longer.rows if hasattr(row.config, "epochs")}
    assert epochs == {"small": 3, "large": 7}


def test_equal_sentences_are_updates_in_proportion_to_the_batch(plan: Callable[..., Plan]) -> None:
    assert updates(plan(SENTENCES % 200)) == {"small": 20, "large": 7}  # 200 / 32 = 6.25


def test_rows_without_updates_keep_their_ids(plan: Callable[..., Plan]) -> None:
    without, under = ids(plan()), ids(plan(SENTENCES % 200))
    assert {label for label in without if without[label] == under[label]} == {"mean", "whitening"}


def test_what_has_been_seen_counts_the_short_batch_of_each_epoch() -> None:
    length = RunLength(updates=9, batch=32, epoch=4, items=100)  # 32 + 32 + 32 + 4, twice, and one more
    assert length.seen == 232


def test_seconds_become_updates_once(
    plan: Callable[..., Plan], tmp_path: Path, half_a_second: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = plan(SECONDS % 4)
    assert updates(first) == {"small": 8, "large": 2}  # 4 / 0.5, 4 / 1.6
    assert half_a_second == ["small", "large"]
    monkeypatch.setattr(timed_updates, "timed", lambda *_: 1e-3)  # a faster machine, or a quieter one
    assert ids(plan(SECONDS % 4)) == ids(first)
    assert updates(plan(SECONDS % 8)) == {"small": 16, "large": 5}
    kept = json.loads((tmp_path / "work" / "budget.json").read_text()).values()
    assert [(one["row"], one["seconds"]) for one in kept] == [("small", 0.5), ("large", 1.6)]
    assert all(one["clock"] == "processor time" for one in kept)
    (tmp_path / "work" / "budget.json").write_text("[")
    assert updates(plan(SECONDS % 0.004)) == {"small": 4, "large": 4}


def test_a_time_that_another_process_kept_meanwhile_holds(tmp_path: Path, half_a_second: list[str]) -> None:
    mine, theirs = TimedUpdates(tmp_path, "cpu"), TimedUpdates(tmp_path, "cpu")
    theirs._keep("row", {"seconds": 2.0})
    assert mine._keep("row", {"seconds": 1.0})["seconds"] == 2.0


def test_seconds_that_are_too_few_or_of_another_machine_are_told(
    plan: Callable[..., Plan], half_a_second: list[str]
) -> None:
    with pytest.raises(InputError, match=r'row "large" makes no update in 1 s, as one takes 1\.6 s'):
        plan(SECONDS % 1)
    with pytest.raises(InputError, match='no time of row "small" on it'):
        plan('budget={kind="seconds", seconds=4, device="NVIDIA H100"}')


def test_parts_with_batches_of_their_own_have_equal_updates_only(file: Path, plan: Callable[..., Plan]) -> None:
    file.write_text(FILE + PARTS)
    assert {row.label: row.max_steps for row in plan(UPDATES % 3).rows}["concat"] == 3
    with pytest.raises(InputError, match='row "concat" trains parts with batches of their own'):
        plan(SENTENCES % 100)


def test_the_command_of_a_run_measures_nothing(
    file: Path, plan: Callable[..., Plan], half_a_second: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    timed_plan = plan(SECONDS % 16)
    cell = next(cell for cell in timed_plan.cells if cell.row.label == "small")  # 32 updates, of more than one epoch
    words = shlex.split(repeated(str(file), [SECONDS % 16], cell, budget=timed_plan.experiment.budget))
    overrides = [word for before, word in pairwise(words) if before == "--set"]

    def never(*_: object) -> float:
        raise AssertionError("measured again")

    monkeypatch.setattr(timed_updates, "timed", never)
    again = plan(*overrides[1:], workdir=None)  # the last budget that is typed holds, as on the command line
    assert ids(again)["small"] == cell.id
    assert ids(plan(*overrides, workdir=None))["small"] == cell.id


def test_a_rehearsal_has_its_own_bound(file: Path, half_a_second: list[str]) -> None:
    asked = read_experiment(str(file), [SECONDS % 4])
    data = StandIns(asked.rehearsal)
    small = make_plan(rehearsed(asked, data), str(file), data=data)
    assert updates(small) == {"small": 8, "large": 4}
    assert not half_a_second


def test_equal_trials_are_those_of_tune(file: Path) -> None:
    asked = read_experiment(str(file), ['budget={kind="trials", trials=6, updates=4}'])
    assert (budget := asked_budget(None, asked)) is not None
    assert checked_budget(budget, asked) == Budget(6, 4, (101,))
    assert asked_budget(Budget(6, None, (7,)), asked) == Budget(6, 4, (7,))
    with pytest.raises(InputError, match="--tune 5: the file's budget is 6 trials a row"):
        asked_budget(Budget(5), asked)
    assert asked_budget(None, read_experiment(str(file))) is None


def test_trials_are_under_the_dev_schedule_of_the_whole(file: Path) -> None:
    """Rows of unlike `eval_every`: a search of one of them alone has the densest of the rows, as its tuned row has."""
    rows = ["methods.small.eval_every=7", "methods.large.eval_every=3"]
    trials = 'budget={kind="trials", trials=2, updates=2}'
    assert asked_of(str(file), [*rows, trials], (), "").dev == DevSettings(task="Embedded-STS-natural", every=3)
    assert asked_of(str(file), rows, (), "").dev == DevSettings(task="Embedded-STS-natural")


def test_the_first_updates_are_not_timed(plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(row for row in plan().rows if row.label == "small")
    stamps = iter([10.0, 14.0, 15.0, 16.0, 17.5, 20.0, 99.0])  # after each update: the first two pay for setting up
    monkeypatch.setattr(timed_updates, "_clock", lambda device: lambda: next(stamps))

    class Fitted:
        def __init__(self, config: object, base_model: str) -> None:
            assert config.epochs * 10 >= 50  # type: ignore[attr-defined]

        def fit(self, corpus: object, context: object) -> None:
            context.progress(0, 0, "encoding the corpus")  # type: ignore[attr-defined]
            for step in range(1, 50):
                context.progress(step, 50, "loss 1")  # type: ignore[attr-defined]

    stands_in = replace(row, method=Fitted)  # type: ignore[arg-type]
    assert timed(stands_in, [], "cpu", "fp32", 10) == pytest.approx((20.0 - 14.0) / 4)  # type: ignore[arg-type]


def test_a_row_that_collapses_at_once_cannot_be_timed(
    plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = next(row for row in plan().rows if row.label == "small")

    def fit(*_: object) -> None:
        raise TrainingStopped("diverged", "the loss is nan")

    monkeypatch.setattr(row.method, "fit", fit)
    with pytest.raises(Exception, match='row "small" cannot be timed: the loss is nan'):
        timed(row, [], "cpu", "fp32", 10)  # type: ignore[arg-type]


def test_a_real_row_is_timed_in_processor_time(plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_updates, "_SECONDS", 0.0)
    tiny = plan("methods.small.batch_size=2", "methods.small.train_length=8")
    row = next(row for row in tiny.rows if row.label == "small")
    corpus = tiny.corpus(row)
    assert corpus is not None
    assert 1e-4 < timed(row, corpus, "cpu", "fp32", 50) < 20


def test_a_gpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    monkeypatch.setattr("torch.cuda.synchronize", waited.append)
    now = timed_updates._clock("cuda:1")
    assert now() <= now()
    assert waited == ["cuda:1", "cuda:1"]
    assert timed_updates._clock("cpu") is timed_updates.time.process_time  # type: ignore[attr-defined]
