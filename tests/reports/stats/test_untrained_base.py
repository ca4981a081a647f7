"""The untrained start that a trained row is compared with; where it was not stored, nothing takes
its place.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from harness import api
from harness.results.record import Record
from harness.results.store import RunFolder, find_added_starts
from reports.comparison.terminal_summary import summary_table
from reports.document.table import MINUS
from reports.load import read_comparison
from reports.records.run_library import read_library
from reports.results import find_start
from reports.stats.significance import Significance
from reports.tables.certainty import against_base
from reports.tables.score_cells import ADDED
from reports.tables.suites import sts_tables
from tests.support import short_runs, synthetic
from tests.support.bases import narrow_bert

TASKS = ("STS12", "STS-B")
NATURAL = "Embedded-STS-natural"


@pytest.fixture
def made(tmp_path: Path) -> synthetic.Invented:
    return synthetic.Invented(tmp_path, scale=0.1)


def add(
    made: synthetic.Invented,
    label: str,
    pooling: str,
    *,
    noise: float = 1.0,
    seeds: tuple[int, ...] = (1, 2),
    **rest: Any,
) -> list[Record]:
    more = {"pooling": pooling, "tasks": TASKS, "geometry": False, "curves": False, **rest}
    return [made.add(label, seed, noise=noise, **more) for seed in seeds]


def untrained(made: synthetic.Invented, label: str, pooling: str, **rest: Any) -> list[Record]:
    return add(made, label, pooling, seeds=(0,), supervision="untrained", noise=4.0, **rest)


def base_of(made: synthetic.Invented, label: str) -> str | None:
    """The label of a row's base; None where there is none. A reason is given exactly where one was
    expected.
    """
    comparison = read_comparison(made.workdir, "invented")
    row = next(row for row in comparison.rows if row.label == label)
    base, reason = find_start(row, comparison.rows)
    assert bool(reason) == (base is None and row.supervision != "untrained")
    return base.label if base is not None else None


def test_no_other_untrained_row_takes_the_place_of_one_that_was_not_stored(
    made: synthetic.Invented,
) -> None:
    untrained(made, "mean", "mean")
    untrained(made, "cls", "max")  # called so, but not pooled so
    add(made, "SimCSE", "cls")
    add(made, "SCD", "mean")
    assert [base_of(made, label) for label in ("SCD", "SimCSE", "mean")] == ["mean", None, None]
    comparison = read_comparison(made.workdir, "invented")
    table = against_base(comparison, Significance(comparison))
    assert table is not None
    line = next(row for row in table.rows if row.cells[0].text == "SimCSE")
    assert line.cells[1].notes
    assert all(cell.value is None for cell in line.cells[3:])


def test_a_difference_to_the_start_is_shown_in_points(made: synthetic.Invented) -> None:
    starts = untrained(made, "mean", "mean")
    runs = add(made, "SCD", "mean", seeds=(1, 2, 3))

    def mean_of(records: list[Record]) -> float:
        return fmean(100 * s.value for r in records for s in r.scores if s.task in TASKS)

    comparison = read_comparison(made.workdir, "invented")
    table = against_base(comparison, Significance(comparison))
    assert table is not None
    line = next(row for row in table.rows if row.cells[0].text == "SCD")
    shown = float(line.cells[3].text.replace(MINUS, "-"))
    assert shown == pytest.approx(mean_of(runs) - mean_of(starts), abs=0.05)


def test_text_length_and_first_layer_belong_to_the_start(made: synthetic.Invented) -> None:
    untrained(made, "mean", "mean")
    untrained(made, "first-last", "first_last_avg", config={"first_layer": 0})
    add(made, "SimCSE", "mean", config={"max_length": 64})
    add(made, "SCD", "first_last_avg", config={"first_layer": 1})
    assert [base_of(made, label) for label in ("SimCSE", "SCD")] == [None, None]
    untrained(made, "cut", "mean", config={"max_length": 64})
    assert base_of(made, "SimCSE") == "cut"


def test_vectors_that_are_not_pooled_are_no_start_of_others_that_are_not(
    made: synthetic.Invented,
) -> None:
    untrained(made, "random", "none")
    add(made, "Skip-Thought", "none")
    assert base_of(made, "Skip-Thought") is None


def test_an_added_start_is_named_by_the_comparison_file_marked_and_in_no_library(
    made: synthetic.Invented,
) -> None:
    (start,) = untrained(made, "untrained start of both", "none")
    runs = add(made, "both", "none")
    about = {"both": {"start": start.id}, start.row: {"added": True}}
    synthetic.write_comparison(made.workdir, [*runs, start], about)
    assert base_of(made, "both") == "untrained start of both"
    table = next(sts_tables(read_comparison(made.workdir, "invented")))
    assert [ADDED in row.cells[0].notes for row in table.rows] == [True, False]
    assert find_added_starts(made.workdir) == {start.id}
    assert [row.label for row in read_library(made.workdir).rows] == ["both"]


def test_a_row_that_never_beat_its_start_is_named(made: synthetic.Invented) -> None:
    untrained(made, "mean", "mean")
    add(made, "SimCSE", "mean")
    for record in add(made, "SCD", "mean", noise=3.0):
        training = {**record.training, "best_dev": 0.5, "initial_dev": 0.52}
        RunFolder(made.workdir, record.id).write(record.model_copy(update={"training": training}))
    columns, rows, _ = summary_table(made.workdir, "invented")
    status = {row[0]: row[columns.index("Status")] for row in rows}
    assert status["mean"] == status["SimCSE"] != status["SCD"]


def test_each_row_of_a_new_user_s_file_has_its_own_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mean row, a loss with the defaults (mean pooling) and a method that pools CLS."""
    short_runs.few_pairs(monkeypatch, 140)  # of fewer the ranks stay what they were
    short_runs.no_report(monkeypatch)
    small = {"batch_size": 8, "train_length": 12}
    rows = [
        {"name": "mean", "method": "pooling"},
        {"name": "own loss", "method": "simcse", "config": {**small, "pooling": "mean"}},
        {
            "name": "SimCSE",
            "method": "simcse",
            "preset": "mini",
            "config": {**small, "pooling": "cls"},
        },
    ]
    text, dev = {"uri": "embedded:sentences", "limit": 96}, {"task": NATURAL}
    experiment = {
        "name": "new",
        "seeds": [1],
        "suites": [NATURAL],
        "max_steps": 2,
        "corpus": text,
        "dev": dev,
        "base_models": [narrow_bert()],
    }
    api.compare(
        {**experiment, "precision": "fp32", "methods": rows}, workdir=tmp_path, tracking_uri="none"
    )
    comparison = read_comparison(tmp_path, "new")
    (added,) = [row for row in comparison.rows if row.added]
    bases = {
        row.label: base.label
        for row in comparison.rows
        if (base := find_start(row, comparison.rows)[0])
    }
    assert bases == {"own loss": "mean", "SimCSE": added.label}
    columns, lines, _ = summary_table(tmp_path, "new")
    value = {row.label: row.records[0].score(NATURAL) or 0.0 for row in comparison.rows}
    for line in lines:
        gain = line[columns.index("Gain")]
        base = bases.get(line[0])
        assert gain == (
            "" if base is None else f"{100 * (value[line[0]] - value[base]):+.2f}".replace("-", "−")
        )
