"""Which examples are shown: by errors worked by hand, with their own texts, through the filters, and at the shell."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from harness.cli import main
from harness.errors import InputError
from harness.sources.pair_sets import load_sts
from reports.explore import known_texts
from reports.explore.chosen import Filters, differing, hard
from reports.explore.examples import error, explored_tasks
from reports.explore.examples_widget import examples_widget, sample
from reports.explore.traits import negations
from reports.read.comparison_runs import read_comparison
from reports.read.examples import Examples
from tests.reports.explore.conftest import CLASSES, PAIRS


def one(metric: str, target: list[float], outcome: list[float]) -> Examples:
    n = len(outcome)
    numbers = np.array(target, dtype=float), np.array(outcome, dtype=float)
    return Examples(("T", "s", "test", metric), np.zeros(n, np.int64), *numbers, None, b"")


def test_errors_are_places_apart_or_what_is_lacking_of_a_score() -> None:
    assert error(one("spearman", [0, 1, 2], [0.1, 0.9, 0.5])).tolist() == [0, 0.5, 0.5]
    assert error(one("spearman", [0, 1, 2], [-9, 0, 0.1])).tolist() == [0, 0, 0]  # no cosine is wrong by itself
    assert error(one("accuracy", [np.nan] * 2, [1, 0])).tolist() == [0, 1]
    assert error(one("ndcg_at_10", [np.nan] * 2, [0.25, 1])).tolist() == [0.75, 0]
    assert error(one("f1", [1, 0], [0, 0])).tolist() == [1, 0]


def test_texts_are_those_of_the_scored_pairs(explored: Path) -> None:
    task = next(t for t in explored_tasks(read_comparison(explored, "invented")) if t.task == PAIRS)
    pairs = load_sts(PAIRS, source="embedded")
    first = [text for subset in pairs.subsets for text in subset.sentences1]
    second = [text for subset in pairs.subsets for text in subset.sentences2]
    assert task.known.texts == list(zip(first, second, strict=True))
    assert [float(gold) for gold in task.gold] == pytest.approx([g for s in pairs.subsets for g in s.gold], abs=1e-3)


def test_classes_and_texts_of_a_classification(explored: Path) -> None:
    task = next(t for t in explored_tasks(read_comparison(explored, "invented")) if t.task == CLASSES)
    assert set(task.gold) == {"0", "1"}
    assert task.traits["gold"][0] == ("class 0", "class 1")
    assert all(len(texts) == 1 for texts in task.known.texts)


def test_the_examples_on_which_two_rows_differ_most(explored: Path) -> None:
    comparison = read_comparison(explored, "invented")
    task = next(t for t in explored_tasks(comparison) if t.task == PAIRS)
    a, b = comparison.rows
    shown = differing(task, a, b, Filters(), 5)
    gaps = task.errors[b.key] - task.errors[a.key]
    assert [abs(s.by) for s in shown] == pytest.approx(sorted(abs(gaps), reverse=True)[:5], abs=1e-4)
    assert all(s.errors[1] - s.errors[0] == pytest.approx(s.by, abs=2e-4) for s in shown)
    worst = hard(task, [a, b], Filters(), 3)
    assert [s.by for s in worst] == sorted((s.by for s in worst), reverse=True)


def test_filters(explored: Path) -> None:
    comparison = read_comparison(explored, "invented")
    task = next(t for t in explored_tasks(comparison) if t.task == PAIRS)
    negated = Filters(traits={"negation": frozenset((1, 2))}).passed(task)
    assert negated.tolist() == [any(negations(text) for text in texts) for texts in task.known.texts]
    assert 0 < negated.sum() < task.n
    near = Filters(gold=(4, 5)).passed(task)
    assert near.tolist() == [4 <= gold <= 5 for gold in np.round(task.examples.target, 3)]
    assert Filters(text="THE").passed(task).any()
    assert not Filters(length=(1000, 2000)).passed(task).any()


def test_the_page_has_a_bounded_sample(explored: Path) -> None:
    comparison = read_comparison(explored, "invented")
    tasks = explored_tasks(comparison)
    chosen = sample(tasks[0], list(comparison.rows), 20)
    assert len(chosen) == len(set(chosen)) == 20
    worst = np.argsort(-np.median([tasks[0].errors[r.key] for r in comparison.rows], axis=0), kind="stable")[:10]
    assert set(worst.tolist()) <= set(chosen)
    widget = examples_widget(comparison, tasks, None)
    assert widget is not None
    assert len(json.dumps(widget.data)) < 300_000


def test_texts_of_other_data_sets_stay_out_of_the_page(explored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = read_comparison(explored, "invented")
    monkeypatch.setattr("reports.explore.examples_widget.OURS", "another source")
    for allowed in (False, True):
        widget = examples_widget(comparison, explored_tasks(comparison), None, texts=allowed)
        assert widget is not None
        items = [item for task in widget.data["tasks"] for item in task["items"]]
        assert all(bool(item["texts"]) is allowed for item in items)
        assert all(bool(item["ids"]) is not allowed for item in items)
        assert ("licences may forbid it" in widget.caption) is not allowed


def test_without_the_data_ids_and_the_reason_stand_in(explored: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def gone(task: str, source: str) -> None:
        raise InputError("no hub can be reached")

    monkeypatch.setattr(known_texts, "_task", gone)
    assert main(["examples", str(explored), "words", "letters", "--task", PAIRS, "--top", "1"]) == 0
    said = capsys.readouterr().out
    assert f"the data of {PAIRS} cannot be had here: no hub can be reached" in said
    assert said.splitlines()[-1].startswith("      [")


def test_at_the_shell(explored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["examples", str(explored), "words", "letters"]
    assert main([*asked, "--task", PAIRS, "--negation", "--top", "3"]) == 0
    assert capsys.readouterr().out.count("error") == 6
    assert main([*asked, "--json", "--top", "2"]) == 0
    found = json.loads(capsys.readouterr().out)["examples"]
    assert {example["task"] for example in found} == {PAIRS, CLASSES}
    assert set(found[0]["scores"]) == {"words", "letters"}
    assert main([*asked, "--csv", "--gold", "4:", "--task", PAIRS]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert all(float(line["gold"]) >= 4 for line in lines)
    assert main(["examples", str(explored), "--top", "1"]) == 0
    assert "median error of 2 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["words", "leters"], 'did you mean "letters"?'),
        (["words"], "name two rows, or none"),
        (["words", "words"], "is one row"),
        (["words", "letters", "--gold", "4"], "expected LOW:HIGH"),
        (["words", "letters", "--task", "Embedded-STS-natura"], "kept its examples"),
        (["--top", "0"], "1 or more"),
    ],
)
def test_wrong_input_is_one_line(
    explored: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["examples", str(explored), *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
