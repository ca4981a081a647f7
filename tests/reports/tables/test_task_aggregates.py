"""What a comparison's report says about its own certainty, and what it leaves out where the data does not suffice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from reports.comparison.comparison_document import describe
from reports.document.table import Table
from reports.figures.intervals import strip
from reports.read.comparison_runs import read_comparison
from reports.stats.score_matrices import score_matrices
from reports.stats.significance import Significance
from reports.tables.seeds import aggregate_table, best_seed_table, reference_row
from tests.support import synthetic

BASELINES = frozenset({"simcse"})  # as papers' definitions name it


def comparison(folder: Path, seeds: tuple[int, ...]) -> None:
    made = synthetic.Invented(folder, scale=0.05)
    made.add("mean", 0, noise=2.0, supervision="untrained", pooling="mean")
    for seed in seeds:
        made.add("SimCSE", seed, noise=0.98)
        made.add("SCD", seed, noise=1.27)
        tasks = ("STS12", "STS13", "STS14") if seed == 2 else tuple(made.gold)
        made.add("TSDAE", seed, noise=1.1, tasks=tasks)


def cells(table: Table) -> dict[str, list[str]]:
    return {row.cells[0].text: [cell.spread for cell in row.cells[3:]] for row in table.rows}


def test_a_report_shows_intervals_only_where_seeds_suffice(tmp_path: Path) -> None:
    comparison(tmp_path, (1, 2, 3))
    read = read_comparison(tmp_path, "invented")
    bench = next(iter(score_matrices(read)))
    assert bench.tasks == ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
    assert {key[1]: len(scores) for key, scores in bench.scores.items()} == {
        "mean": 1,
        "SimCSE": 3,
        "SCD": 3,
        "TSDAE": 2,
    }
    reference = reference_row(read.rows, bench, BASELINES)
    assert reference is not None
    assert reference.label == "SimCSE"
    table = aggregate_table(read, bench, BASELINES)
    assert table is not None
    spreads = cells(table)
    assert spreads["SimCSE"][0].startswith("[")
    assert spreads["SCD"][1].startswith("[")
    assert spreads["TSDAE"] == ["", ""]  # two whole seeds
    assert spreads["mean"][0] == ""
    assert spreads["mean"][1].startswith("[")  # an untrained row has no seed to vary
    # The number itself, from the records alone.
    by_seed = [[100 * (r.score(task) or 0) for task in bench.tasks] for r in read.records if r.row == "SCD"]
    shown = next(row.cells[3].value for row in table.rows if row.cells[0].text == "SCD")
    assert shown == pytest.approx(stats.trim_mean(np.array(by_seed), 0.25, axis=None))


def test_one_seed_pretends_nothing(tmp_path: Path) -> None:
    comparison(tmp_path, (1,))
    read = read_comparison(tmp_path, "invented")
    significance = Significance(read)
    assert strip(read, significance) is None
    assert best_seed_table(read, significance) is None
    assert all(aggregate_table(read, bench) is None for bench in score_matrices(read))
    assert "certainty" not in {section.key for section in describe(read).sections}


def test_the_best_seed_is_chosen_by_dev_and_shown_with_what_is_left_on_test(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.05)
    for seed, dev in ((1, 0.60), (2, 0.66), (3, 0.63)):
        record = made.add("SimCSE", seed, noise=0.98)
        changed = record.model_copy(update={"training": {**record.training, "best_dev": dev}})
        (tmp_path / "runs" / record.id / "record.json").write_text(changed.model_dump_json())
    comparison = read_comparison(tmp_path, "invented")
    table = best_seed_table(comparison, Significance(comparison))
    assert table is not None
    values = [cell.value for cell in table.rows[0].cells[2:]]
    assert values[:3] == pytest.approx([63, 66, 3])
    tasks = [task for task, _ in comparison.columns("sts")]
    averages = [np.mean([100 * (r.score(task) or 0) for task in tasks]) for r in comparison.records]
    assert values[3:] == pytest.approx([np.mean(averages), averages[1], averages[1] - np.mean(averages)])
