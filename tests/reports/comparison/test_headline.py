"""The sentences that a referee quotes: two at most, with the margin, and which differences are
significant.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.results.store import read_records
from reports.comparison.headline import headline
from reports.read.comparison_runs import read_comparison
from reports.stats.significance import SAME, Significance
from reports.stats.verdicts import Block
from tests.support import synthetic

TASKS = ("STS12", "STS-B")


@pytest.fixture
def made(tmp_path: Path) -> synthetic.Invented:
    return synthetic.Invented(tmp_path, scale=0.1)


def add(
    made: synthetic.Invented,
    label: str,
    noise: float,
    seeds: int = 3,
    base: str = "embedded:mini-bert",
) -> None:
    for seed in range(1, seeds + 1):
        made.add(label, seed, noise=noise, base=base, tasks=TASKS, curves=False, geometry=False)


def said(made: synthetic.Invented) -> str:
    comparison = read_comparison(made.workdir, "invented")
    sentences = headline(comparison, Significance(comparison))
    assert len(sentences) <= 2
    return " ".join(sentences)


def test_a_winner_with_its_margin_and_seeds(made: synthetic.Invented) -> None:
    add(made, "SimCSE", 0.5)
    add(made, "SCD", 3.0)
    form = (
        r"SimCSE \(\d+\.\d\d, 3 seeds\) beats SCD by \d+\.\d\d points \[\d+\.\d\d, \d+\.\d\d\] "
        r"on the average of 2 STS"
    )
    assert re.match(form, said(made))


@pytest.mark.parametrize("noise", [0.8, 0.82, 0.86, 0.9])
def test_of_two_rows_one_beats_the_other_where_their_difference_is_significant(
    made: synthetic.Invented, noise: float
) -> None:
    add(made, "SimCSE", 0.7)
    add(made, "SCD", noise)
    text = said(made)
    comparison = read_comparison(made.workdir, "invented")
    significance = Significance(comparison)
    assert significance.first is not None
    verdict = Block(comparison.rows, significance, significance.first).differences[0, 1].verdict
    assert (" beats " in text) == (verdict != SAME)


def test_rows_not_significantly_different_are_named(made: synthetic.Invented) -> None:
    add(made, "SimCSE", 0.7)
    add(made, "Barlow Twins", 0.71)
    add(made, "SCD", 4.0)
    text = said(made)
    first = "SimCSE" if text.startswith("SimCSE") else "Barlow Twins"
    other = {"SimCSE": "Barlow Twins", "Barlow Twins": "SimCSE"}[first]
    assert f"of 3 rows the best may also be {other} (95 % confidence)." in text


def test_two_base_models_are_two_sentences_still(made: synthetic.Invented) -> None:
    for base in ("a/bert-one", "a/bert-two"):
        add(made, "SimCSE", 0.5, base=base)
        add(made, "SCD", 3.0, base=base)
        made.add(
            "mean", 0, noise=2.0, base=base, supervision="untrained", tasks=TASKS, geometry=False
        )
    text = said(made)
    assert text.startswith("On bert-one, SimCSE (")
    assert "; on bert-two, SimCSE (" in text


def test_own_rows_are_first_compared_with_those_made_elsewhere(made: synthetic.Invented) -> None:
    for label, noise in (("mine", 1.0), ("SimCSE (shipped)", 0.2), ("SCD (shipped)", 6.0)):
        add(made, label, noise)
    made.add("mean (shipped)", 0, noise=5.0, supervision="untrained", tasks=TASKS, geometry=False)
    records = read_records(made.workdir, "invented")
    tasks = sorted({s.task_key for r in records for s in r.scores})
    elsewhere = {
        r.row: {"source": "shipped", "tasks": tasks} for r in records if "shipped" in r.row
    }
    synthetic.write_comparison(made.workdir, records, elsewhere)
    comparison = read_comparison(made.workdir, "invented")
    significance = Significance(comparison)
    first, second, *gains = headline(comparison, significance)
    form = (
        r"Against 3 rows made elsewhere, on the average of 2 STS tasks \(SentEval\): mine \(\d+\.\d\d, 3 seeds\) is "
        r"above SCD \(shipped\) \(\+\d+\.\d\d\) and mean \(shipped\) \(\+\d+\.\d\d\); "
        r"below SimCSE \(shipped\) \(−\d+\.\d\d\)\."
    )
    assert re.fullmatch(form, first)
    assert second.startswith("SimCSE (shipped) (")
    assert "shipped" not in "".join(gains)  # what training gained is said of own rows alone
    rows = {row.label: row for row in comparison.rows}
    pairs = [(rows["mine"], row) for label, row in rows.items() if label != "mine"]
    planned = significance.differences(pairs, significance.targets[0], "as planned")
    assert {d.verdict for d in planned if d} == {"better", "worse"}
