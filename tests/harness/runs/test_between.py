"""The rows between two rows: factors, joined ones, and the runs that exist already."""

from __future__ import annotations

import csv
import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.cli import main
from harness.errors import InputError
from harness.results.answer import Answer
from harness.runs.between import (
    OTHERS,
    Between,
    Factor,
    choose_factors,
    find_factors,
    join_impossible,
    make_between,
    rows_before_budget,
)
from harness.runs.experiment import read_experiment
from harness.runs.plan import make_plan
from harness.runs.rows import Row
from harness.sources import embedded_rows
from reports.why.equal_runs import first_difference
from tests.support.bases import narrow_bert
from tests.support.forks import start_fork

SMALL = {
    "name": "small",
    "seeds": [1, 2, 3],
    "suites": ["Embedded-STS-natural"],
    "corpus": {"uri": "embedded:sentences", "limit": 64},
    "budget": {"steps": 2},
    "dev": {"task": "Embedded-STS-natural", "source": "embedded"},
    "shared": {"batch_size": 8},
}


def rows_of(*methods: dict[str, Any]) -> list[Row]:
    plan = make_plan(read_experiment({**SMALL, "methods": list(methods)}), "small")
    return rows_before_budget(plan, "small")


def named(text: str) -> Factor:
    return Factor(text, frozenset({text}), ((text, "a", "b"),))


A = {"method": "simcse", "name": "A", "config": {"temperature": 0.1, "pooling": "mean"}}
B = {"method": "simcse", "name": "B", "config": {"learning_rate": 1e-4, "warmup": 0.5}}


def test_settings_that_belong_together_are_one_factor() -> None:
    a, b, *_ = rows_of(A, B)
    factors = {factor.name: factor for factor in find_factors(a, b)}
    assert list(factors) == ["pooling", "batch size and learning rate", "temperature"]
    changed = [key for key, _, _ in factors["batch size and learning rate"].changes]
    assert changed == ["learning rate", "warmup"]


def test_an_option_of_one_method_goes_with_the_method() -> None:
    a, b, *_ = rows_of({"method": "simcse", "name": "A"}, {"method": "barlow_twins", "name": "B"})
    names = [factor.name for factor in find_factors(a, b)]
    assert names[0] == "method"
    assert not {"temperature", "off diagonal weight"} & set(names)
    bounded = [factor.name for factor in find_factors(a, b, same_steps=True)]
    assert "training steps" in names
    assert "training steps" not in bounded


@pytest.mark.parametrize(("steps", "same"), [(8, True), (9, False), (None, False)])
def test_epochs_make_no_difference_where_all_rows_end_within_the_first(
    steps: int | None, same: bool
) -> None:
    rows = [
        {"method": "simcse", "name": name, "config": {"epochs": n}}
        for name, n in zip("ab", (1, 2), strict=True)
    ]
    made = {**SMALL, "budget": {}, "max_steps": steps, "methods": rows}  # 64 texts: 8 batches of 8
    plan = make_plan(read_experiment(made), "small")
    a, b, *_ = rows_before_budget(plan, "small")
    assert Between(plan, a, b, (1, 2, 3)).same_steps is same


def test_a_row_between_has_some_settings_of_each() -> None:
    a, b, *_ = rows_of(A, B)
    factors = find_factors(a, b)
    row = make_between(a, b, factors, frozenset({0, 2}))
    config: Any = row.config
    assert (config.pooling, config.temperature) == ("mean", 0.1)
    assert (config.learning_rate, config.warmup) == (1e-4, 0.5)
    assert make_between(a, b, factors, frozenset({0, 1, 2})) is a
    assert make_between(a, b, factors, frozenset()) is b


def test_an_empty_option_stays_empty_in_the_file_of_a_row_between() -> None:
    never = {"method": "self_guided", "name": "never", "config": {"patience": None}}
    warm = {"method": "self_guided", "name": "warm", "config": {"patience": None, "warmup": 0.5}}
    plan = make_plan(read_experiment({**SMALL, "methods": [never, warm]}), "small")
    first, second = rows_before_budget(plan, "small")[:2]
    factors = find_factors(first, second)
    between = make_between(first, second, factors, frozenset())
    made = Between(plan, first, second, (1, 2, 3)).plan_of({frozenset(): between})
    (entry,) = made.experiment.methods
    assert entry.config["patience"] is None
    assert between.method.configure(entry.config).patience is None


def test_text_goes_with_the_method_that_learns_from_it() -> None:
    documents = {
        "method": "declutr",
        "preset": "mini",
        "name": "A",
        "corpus": {"uri": "embedded:documents", "kind": "documents"},
    }
    a, b, *_ = rows_of(documents, {"method": "simcse", "name": "B"})
    factors = find_factors(a, b)
    names = [factor.name for factor in factors]
    alone = frozenset({names.index("method")})
    with pytest.raises(InputError):
        make_between(a, b, factors, alone)
    joined, told = join_impossible(factors, [alone])
    assert any({"method", "training text"} <= factor.parts for factor in joined) or told


def test_factors_join_until_no_impossible_row_is_left() -> None:
    factors = [named(text) for text in "abcd"]
    # "a" without "b", whatever the others are, cannot be made.
    impossible = [frozenset({0}), frozenset({0, 2}), frozenset({0, 3}), frozenset({0, 2, 3})]
    joined, told = join_impossible(factors, impossible)
    assert [factor.parts for factor in joined] == [{"a", "b"}, {"c"}, {"d"}]
    assert told == ["a + b"]
    assert join_impossible(factors, []) == (factors, [])


def test_more_than_six_factors_become_all_other_settings() -> None:
    found = [named(text) for text in ("method", "pooling", "c", "d", "e", "f", "g", "h")]
    chosen = choose_factors(found)
    assert [factor.name for factor in chosen] == ["method", "pooling", "c", "d", "e", OTHERS]
    assert chosen[-1].parts == {"f", "g", "h"}
    apart = choose_factors(found, only=["pooling"])
    assert [factor.name for factor in apart] == ["pooling", OTHERS]
    together = choose_factors(found[:3], join=["method+c"])
    assert [factor.parts for factor in together] == [{"method", "c"}, {"pooling"}]


@pytest.mark.parametrize("option", ["--factors", "--join"])
def test_an_unknown_factor_is_refused(option: str) -> None:
    found = [named("pooling"), named("view")]
    given = {"only": ["poling"]} if option == "--factors" else {"join": ["pooling+vew"]}
    with pytest.raises(InputError) as caught:
        choose_factors(found, **given)
    assert caught.value.key == option


JOIN = "pooling+temperature"
DEADLINE = 600  # seconds; the test takes about twenty


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work directory with the two rows alone."""
    folder = tmp_path_factory.mktemp("why")
    pairs = folder / "pairs.csv"
    with pairs.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("sentence1", "sentence2", "score"))
        for row in embedded_rows("sts", ("a",))[:30]:
            writer.writerow((row["sentence1"], row["sentence2"], row["score"]))
    experiment = {
        **SMALL,
        "base_models": [narrow_bert()],
        "suites": [str(pairs)],
        "dev": None,
        "methods": [A, B],
    }
    harness.compare(experiment, workdir=folder / "work", tracking_uri="none", formats=[])
    return folder / "work"


@pytest.fixture(scope="module")
def whole(work: Path) -> Path:
    """A copy of it, for the rows between."""
    folder = work.with_name("whole")
    shutil.copytree(work, folder)
    return folder


@pytest.fixture(scope="module")
def answer(whole: Path) -> Answer:
    return harness.why(whole, "A", "B", runs=6, join=[JOIN], tracking_uri="none")


def test_nothing_is_trained_without_a_number_of_runs(work: Path) -> None:
    before = sorted(path.name for path in (work / "runs").iterdir())
    answer = harness.why(work, "A", "B", join=[JOIN])
    assert (answer.data["runs"], answer.data["missing"]) == (12, 6)
    assert sorted(path.name for path in (work / "runs").iterdir()) == before
    with pytest.raises(InputError) as caught:
        harness.why(work, "A", "B", join=[JOIN], runs=5)
    assert caught.value.key == "--runs"
    with pytest.raises(InputError) as caught:
        harness.why(work, "A", "B", join=[JOIN], runs=6, published="scd.csv:SCD-BERT")
    assert caught.value.key == "--published"
    assert sorted(path.name for path in (work / "runs").iterdir()) == before


def test_shares_sum_to_the_difference_of_the_rows(whole: Path, answer: Answer) -> None:
    assert answer.data["difference"]["value"] != 0
    verdict = harness.verdict(whole, "A", "B").data
    shares = [share["value"] for share in answer.data["factors"]]
    assert sum(shares) == pytest.approx(verdict["difference"], abs=1e-9)
    assert answer.data["difference"]["value"] == pytest.approx(verdict["difference"], abs=1e-9)
    assert [row["runs"] for row in answer.data["rows"]] == [3, 3, 3, 3]
    report = next((whole / "reports").glob("small--why-*"))
    assert (report / "index.html").is_file()
    again = harness.why(
        whole, "A", "B", runs=0, join=[JOIN], tracking_uri="none"
    )  # all runs exist now
    assert again.data == answer.data
    assert harness.load(whole).name == "small"  # the design is not in the way


def finished(work: Path) -> set[Path]:
    records = work.glob("runs/*/record.json")
    return {path for path in records if json.loads(path.read_text())["status"] == "finished"}


def test_the_same_command_after_a_kill_gives_the_same_answer(
    work: Path, answer: Answer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "work"
    shutil.copytree(work, folder)
    words = ["why", "A", "B", "--runs", "6", "--join", JOIN, "--workdir", str(folder), "--json"]
    words += ["--quiet", "--tracking-uri", "none"]
    before = finished(folder)
    running = start_fork(main, words)
    end = time.monotonic() + DEADLINE
    while not finished(folder) - before and running.is_alive():
        assert time.monotonic() < end
        time.sleep(0.01)
    running.kill()
    running.join()
    assert running.exitcode == -signal.SIGKILL
    kept = finished(folder) - before
    assert 0 < len(kept) < 6
    began = {path: json.loads(path.read_text())["started"] for path in kept}

    capsys.readouterr()
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(answer.data))
    assert len(finished(folder) - before) == 6
    for path, started in began.items():  # none was trained again
        assert json.loads(path.read_text())["started"] == started


def test_rows_without_randomness_need_one_seed(tmp_path: Path, few_pairs: None) -> None:
    rows = [
        {"method": "pooling", "name": "cls", "config": {"pooling": "cls", "max_length": 8}},
        {"method": "pooling", "name": "mean", "config": {"pooling": "mean"}},
    ]
    made = {"name": "poolings", "suites": ["Embedded-STS-natural"], "methods": rows}
    harness.compare(made, workdir=tmp_path, tracking_uri="none", formats=[])
    answer = harness.why(tmp_path, "mean", "cls", runs=2, tracking_uri="none", formats=[])
    assert {share["factor"] for share in answer.data["factors"]} == {"pooling", "text length"}
    total = sum(share["value"] for share in answer.data["factors"])
    assert total == pytest.approx(answer.data["difference"]["value"])


def test_a_preset_takes_the_place_of_a_row(work: Path) -> None:
    answer = harness.why(work, "A", against_preset="simcse:mini", factors=["view"])
    assert answer.data["b"] == "simcse:mini"
    with pytest.raises(InputError) as caught:
        harness.why(work, "A", against_preset="simcse")
    assert caught.value.key == "--against-preset"


def test_runs_of_equal_settings_are_compared_by_environment_and_step(
    work: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(work, copy)
    answer = harness.why(work, "A", against=copy)
    assert [run["equal"] for run in answer.data] == [True, True, True]

    logs: list[list[dict[str, Any]]]
    logs = [[{"step": n, "kind": "train", "loss": 1.0 / n} for n in (1, 5, 10)] for _ in range(2)]
    assert first_difference(*logs) is None
    logs[1][1]["loss"] += 1e-6
    assert first_difference(*logs) == 5
    with pytest.raises(InputError) as caught:
        harness.why(work, "A", "B", against=copy)
    assert caught.value.key == "why"
