"""Which examples are chosen: by errors worked out by hand, with their own texts; and the command
line.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from harness.cli import main
from harness.errors import InputError
from harness.sources.pair_sets import load_sts
from reports.explore import examples as module
from reports.explore.examples import ExploredTask, choose_differing, choose_hard, error, read_tasks
from reports.load import RecordedResults, read_comparison
from reports.read.examples import Examples
from tests.reports.explore.conftest import CLASSES, PAIRS


def one(metric: str, target: list[float], outcome: list[float]) -> Examples:
    n = len(outcome)
    numbers = np.array(target, dtype=float), np.array(outcome, dtype=float)
    return Examples(
        ("T", "s", "test", metric), np.zeros(n, np.int64), *numbers, np.arange(n)[:, None], b""
    )


def read(workdir: Path, name: str) -> tuple[RecordedResults, ExploredTask]:
    comparison = read_comparison(workdir, "invented")
    (task,) = read_tasks(comparison, lambda task: task == name)
    return comparison, task


def test_errors_are_distances_of_ranks_or_what_a_score_lacks() -> None:
    assert error(one("spearman", [0, 1, 2], [0.1, 0.9, 0.5])).tolist() == [0, 0.5, 0.5]
    by_cosine = one("cosine_spearman", [0, 1, 2], [0.1, 0.9, 0.5])  # as mteb calls it
    assert error(by_cosine).tolist() == [0, 0.5, 0.5]
    assert error(one("spearman", [0, 1, 2], [-9, 0, 0.1])).tolist() == [
        0,
        0,
        0,
    ]  # ranks alone count
    assert error(one("accuracy", [np.nan] * 2, [1, 0])).tolist() == [0, 1]
    assert error(one("ndcg_at_10", [np.nan] * 2, [0.25, 1])).tolist() == [0.75, 0]
    assert error(one("f1", [1, 0], [0, 0])).tolist() == [1, 0]


def test_texts_and_gold_are_those_of_the_scored_examples(explored: Path) -> None:
    texts, gold, why = read(explored, PAIRS)[1].known
    pairs = load_sts(PAIRS, source="embedded")
    first = [text for subset in pairs.subsets for text in subset.sentences1]
    second = [text for subset in pairs.subsets for text in subset.sentences2]
    assert texts == list(zip(first, second, strict=True))
    assert [float(g) for g in gold] == pytest.approx(
        [g for s in pairs.subsets for g in s.gold], abs=1e-3
    )
    assert why == ""
    texts, gold, why = read(explored, CLASSES)[1].known
    assert set(gold) == {"0", "1"}
    assert all(len(some) == 1 for some in texts)


def test_the_largest_differences_and_the_largest_median_errors(explored: Path) -> None:
    comparison, task = read(explored, PAIRS)
    a, b = comparison.rows
    gaps = task.errors[b.key] - task.errors[a.key]
    shown = choose_differing(task, a, b, 5)
    assert [abs(s.by) for s in shown] == pytest.approx(
        sorted(abs(gaps), reverse=True)[:5], abs=1e-4
    )
    assert all(
        s.errors[b.label] - s.errors[a.label] == pytest.approx(s.by, abs=2e-4) for s in shown
    )
    medians = np.median([task.errors[a.key], task.errors[b.key]], axis=0)
    worst = choose_hard(task, [a, b], 3)
    assert [s.by for s in worst] == pytest.approx(sorted(medians, reverse=True)[:3], abs=1e-4)
    assert [task.known[0][s.example - 1] for s in worst] == [s.texts for s in worst]


def test_the_command(explored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["examples", "--workdir", str(explored), "words", "letters"]
    assert main([*command, "--task", PAIRS, "--top", "3"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("(error ") == 6
    assert "rank by cosine" in shown.splitlines()[-1]
    assert main([*command, "--json", "--top", "2"]) == 0
    found = json.loads(capsys.readouterr().out)["examples"]
    assert {example["task"] for example in found} == {PAIRS, CLASSES}
    assert set(found[0]["scores"]) == {"words", "letters"}
    assert main([*command, "--json", "--task", PAIRS, "--text", "NOT"]) == 0
    found = json.loads(capsys.readouterr().out)["examples"]
    assert found
    assert all("not" in " ".join(example["texts"]).lower() for example in found)
    assert main(["examples", "--workdir", str(explored), "--top", "1"]) == 0
    assert "median error of 2 rows" in capsys.readouterr().out


def test_without_the_data_ids_and_the_reason_are_printed(
    explored: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise InputError("no hub can be reached")

    monkeypatch.setattr(module, "resolve_tasks", gone)
    assert (
        main(
            [
                "examples",
                "--workdir",
                str(explored),
                "words",
                "letters",
                "--task",
                PAIRS,
                "--top",
                "1",
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "no hub can be reached" in printed
    ids = [line for line in printed.splitlines() if line.startswith("      [")]
    assert ids, "texts that are not here are named by their ids"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["words", "leters"], '"letters"'),
        (["words"], "name two or none"),
        (["words", "words"], '"words"'),
        (["words", "letters", "--task", "Embedded-STS-natura"], "--task Embedded-STS-natura"),
        (["--top", "0"], "--top 0"),
    ],
)
def test_wrong_input_is_one_line(
    explored: Path, capsys: pytest.CaptureFixture[str], words: list[str], named: str
) -> None:
    assert main(["examples", "--workdir", str(explored), *words]) == 2
    error = capsys.readouterr().err
    assert named in error
    assert error.count("\n") == 1
