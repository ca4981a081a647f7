"""What a terminal shows of a comparison: every suite's average, and what its marks mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.results.store import RunFolder
from harness.runs.grid import describe_record
from reports.comparison.terminal_summary import summary_table
from tests.support import synthetic
from tests.support.synthetic import STS, score

TRANSFER = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")


@pytest.fixture
def made(tmp_path: Path) -> synthetic.Invented:
    return synthetic.Invented(tmp_path, scale=0.05)


def test_one_suite_is_shown_whole_and_its_average_always(made: synthetic.Invented) -> None:
    for seed in (1, 2):
        made.add("SimCSE", seed, tasks=("STS12", "STS-B"), curves=False, geometry=False)
    columns, rows, legend = summary_table(made.workdir, "invented")
    assert columns == ["Method", "Seeds", "STS average", "STS12", "STS-B"]
    assert rows[0][:2] == ["SimCSE", "2"]
    assert len(legend) == 1
    for seed in (1, 2):
        made.add("S" * 70, seed, tasks=("STS12", "STS-B"), curves=False, geometry=False)
    columns, rows, legend = summary_table(made.workdir, "invented")
    assert columns == ["Method", "Seeds", "STS average", "STS12", "STS-B"]
    assert len(legend) == 1


def test_suites_that_describe_models_are_named(made: synthetic.Invented) -> None:
    record = made.add("SimCSE", 1, tasks=(), curves=False, geometry=False)
    made.extend(record, [score("compression:STS-B", "compression", "embedded", "spearman", 0.5)])
    _, _, legend = summary_table(made.workdir, "invented")
    assert any("report: compression" in line for line in legend)


def test_a_long_name_is_cut_before_a_score_is_left_out(made: synthetic.Invented) -> None:
    names = [f"a name that is as long as names are when people explain {end}" for end in "xy"]
    for label in (*names, "short"):
        made.add(label, 1, tasks=("STS12", "STS13", "STS14"), curves=False, geometry=False)
    columns, rows, _ = summary_table(made.workdir, "invented")
    assert columns == ["Method", "Seeds", "STS average", "STS12", "STS13", "STS14"]
    shown = [row[0] for row in rows]
    assert "short" in shown
    cut = [name for name in shown if name != "short"]
    assert all("…" in name for name in cut)
    assert {name[-1] for name in cut} == {"x", "y"}, "the ends of names tell them apart"
    for line in [columns, *rows]:
        widths = [max(len(other[i]) for other in [columns, *rows]) + 3 for i in range(len(line))]
        assert sum(widths) <= 99


def test_a_name_of_wide_signs_leaves_room_for_the_scores(made: synthetic.Invented) -> None:
    names = ["\u65e5\u672c\u8a9e" * 30 + end for end in "xy"]
    for label in (*names, "short"):
        made.add(label, 1, tasks=("STS12", "STS13", "STS14"), curves=False, geometry=False)
    columns, rows, _ = summary_table(made.workdir, "invented")
    assert columns[2:] == ["STS average", "STS12", "STS13", "STS14"]
    shown = [row[0] for row in rows]
    assert {name[-1] for name in shown} == {"x", "y", "t"}
    others = sum(len(column) + 3 for column in columns[1:])
    for name in shown:
        wide = sum(ord(sign) > 0x2FFF for sign in name)
        assert len(name) + wide + others <= 99


def test_runs_whose_dev_score_does_not_rise_are_counted_and_said_of_which_weights(
    made: synthetic.Invented,
) -> None:
    for seed, best, step in ((1, 0.61, 200), (2, 0.52, 0), (3, 0.50, 150)):
        record = made.add("SimCSE", seed, tasks=("STS12",), curves=False, geometry=False)
        training = {"steps": 250, "best_step": step, "best_dev": best, "initial_dev": 0.52}
        changed = record.model_copy(update={"training": training})
        RunFolder(made.workdir, record.id).write(changed)
        line = describe_record(changed)
        said = "never exceeded the untrained model's (52.00)" in line
        assert said == (best <= 0.52)
        if said:
            assert ("untrained weights were scored" in line) == (step == 0)
    columns, rows, legend = summary_table(made.workdir, "invented")
    assert rows[0][columns.index("Status")] == "no dev gain: 2 of 3"
    assert any(line.startswith("no dev gain: runs in which no dev score is") for line in legend)


def test_of_several_suites_the_averages_are_shown_with_a_legend(made: synthetic.Invented) -> None:
    for label, noise in (("SimCSE", 0.8), ("SCD", 2.0)):
        for seed in (1, 2):
            record = made.add(
                label, seed, noise=noise, tasks=tuple(STS), curves=False, geometry=False
            )
            values = [
                score(task, "transfer", "senteval", "accuracy", 0.7 + seed / 100)
                for task in TRANSFER
            ]
            probing = [
                score(task, "probing", "senteval", "accuracy", 0.5)
                for task in ("Length", "Depth", "Tense")
            ]
            made.extend(record, [*values, *probing])
    made.add("SCD lost", 1, status="collapsed", reason="constant")
    columns, rows, legend = summary_table(made.workdir, "invented")
    assert columns == ["Method", "Seeds", "STS average", "Transfer average", "Status"]
    by_label = {row[0]: row for row in rows}
    assert by_label["SimCSE"][2].split()[0].endswith("*")
    assert by_label["SimCSE"][3].startswith(f"{100 * np.mean([0.71, 0.72]):.2f}")
    assert by_label["SCD lost"][2:] == ["coll.", "coll.", "collapsed"]
    assert [part.split()[0] for part in legend[0].split("; ")] == ["*", "±", "coll."]
    assert "Probing" in legend[-1]


def test_a_suite_without_averages_shows_its_tasks_where_all_of_them_fit(
    made: synthetic.Invented,
) -> None:
    record = made.add("SimCSE", 1, tasks=tuple(STS), curves=False, geometry=False)
    three = [
        score(task, "probing", "senteval", "accuracy", 0.5) for task in ("Depth", "Length", "Tense")
    ]
    made.extend(record, three)
    columns, _, legend = summary_table(made.workdir, "invented")
    assert [name.removeprefix("Probing, ") for name in columns[2:]] == [
        "STS average",
        "Depth",
        "Length",
        "Tense",
    ]
    assert not any("only in the report" in line for line in legend)
    more = [
        score(task, "probing", "senteval", "accuracy", 0.5)
        for task in ("TopConstituents", "BigramShift")
    ]
    made.extend(record, [*three, *more])
    columns, _, legend = summary_table(made.workdir, "invented")
    assert columns == ["Method", "Seeds", "STS average"]
    assert legend[-1] == "only in the report: Probing"


def test_every_mark_in_the_table_is_explained(made: synthetic.Invented) -> None:
    for label, status in (("a", "finished"), ("b", "finished"), ("c", "diverged"), ("d", "failed")):
        made.add(
            label,
            1,
            noise=1.0 + ord(label) / 100,
            status=status,
            reason="r",
            curves=False,
            geometry=False,
        )
    _, rows, legend = summary_table(made.workdir, "invented")
    shown = " ".join(cell for row in rows for cell in row[2:])
    for mark in ("*", "±", "n/a", "coll.", "div.", "fail."):
        assert (mark in shown) == (mark in legend[0])
