"""What a comparison's report says about its own certainty, and what it leaves out where the data does not suffice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reports.comparison.comparison_document import describe
from reports.figures.intervals import strip
from reports.read.comparison_runs import read_comparison
from reports.stats.significance import Significance
from reports.tables.seeds import best_seed_table
from tests.support import synthetic


def comparison(folder: Path, seeds: tuple[int, ...]) -> None:
    made = synthetic.Invented(folder, scale=0.05)
    made.add("mean", 0, noise=2.0, supervision="untrained", pooling="mean")
    for seed in seeds:
        made.add("SimCSE", seed, noise=0.98)
        made.add("SCD", seed, noise=1.27)
        tasks = ("STS12", "STS13", "STS14") if seed == 2 else tuple(made.gold)
        made.add("TSDAE", seed, noise=1.1, tasks=tasks)


def test_one_seed_pretends_nothing(tmp_path: Path) -> None:
    comparison(tmp_path, (1,))
    read = read_comparison(tmp_path, "invented")
    significance = Significance(read)
    assert strip(read, significance) is None
    assert best_seed_table(read, significance) is None
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
