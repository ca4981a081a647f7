"""The sentences that a referee quotes: two at most, with the margin, and which differences are
significant.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.results.store import RunFolder, read_records
from reports.comparison.headline import headline
from reports.decide.verdict_answer import verdict
from reports.figures.intervals import overview
from reports.load import read_comparison
from reports.stats.significance import SAME, Significance
from reports.stats.verdicts import Ranking
from reports.tables.certainty import all_pairs
from reports.tables.suites import sts_tables
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


def test_a_rehearsal_names_no_best_row(made: synthetic.Invented) -> None:
    add(made, "SimCSE", 0.5)
    add(made, "SCD", 3.0)
    comparison = read_comparison(made.workdir, "invented")
    rows = tuple(replace(row, rehearsal=True) for row in comparison.rows)
    rehearsed = replace(comparison, rows=rows)
    (sentence,) = headline(rehearsed, Significance(rehearsed))
    assert sentence.startswith("The rehearsal worked for 2 of 2 rows")
    assert "beats" not in sentence
    for results, has_best in ((comparison, True), (rehearsed, False)):
        cells = [cell for table in sts_tables(results) for row in table.rows for cell in row.cells]
        assert any(cell.rank == 1 for cell in cells) is has_best


def test_a_score_without_outcomes_is_named_with_what_is_missing(made: synthetic.Invented) -> None:
    own = {"task": "word-order", "suite": "order", "metric": "accuracy"}
    for label in ("SimCSE", "SCD"):
        record = made.add(label, tasks=("STS-B",), curves=False, geometry=False)
        score = record.scores[0].model_copy(update=own)
        RunFolder(made.workdir, record.id).write(record.model_copy(update={"scores": [score]}))
    comparison = read_comparison(made.workdir, "invented")
    (sentence,) = headline(comparison, Significance(comparison))
    assert "word-order" in sentence
    assert "examples" in sentence


def test_seeds_that_ended_without_a_score_are_said(made: synthetic.Invented) -> None:
    add(made, "SimCSE", 0.5)
    for label, ends in (("SCD", ("collapsed", "collapsed")), ("TSDAE", ("diverged",))):
        add(made, label, 3.0)
        for seed, status in enumerate(ends, 4):
            made.add(label, seed, status=status, reason="", curves=False, geometry=False)
    comparison = read_comparison(made.workdir, "invented")
    last = headline(comparison, Significance(comparison))[-1]
    assert "2 of 5 seeds of SCD collapsed" in last
    assert "1 of 4 seeds of TSDAE diverged" in last


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
    verdict = Ranking(comparison.rows, significance, significance.first).differences[0, 1].verdict
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


def with_added_starts(made: synthetic.Invented, noise: float, **rows: float) -> list[str]:
    """The sentences of a comparison of trained rows whose untrained start was added.

    Args:
        noise: of the start; a row of more noise scores lower.
        rows: label -> noise.
    """
    for label, other in rows.items():
        add(made, label, other, seeds=3)
    made.add("start", 0, noise=noise, supervision="untrained", tasks=TASKS, geometry=False)
    records = read_records(made.workdir, "invented")
    synthetic.write_comparison(made.workdir, records, {"start": {"added": True}})
    comparison = read_comparison(made.workdir, "invented")
    return headline(comparison, Significance(comparison))


def test_rows_of_one_label_on_several_base_models_are_told_apart(made: synthetic.Invented) -> None:
    for base, noise in (("google/a", 0.3), ("google/b", 1.0), ("other/c", 3.0)):
        add(made, "SimCSE", noise, base=base)
    comparison = read_comparison(made.workdir, "invented")
    first, *_ = headline(comparison, Significance(comparison))
    assert first.startswith("SimCSE · a (")
    answer = verdict(made.workdir)
    names = ["SimCSE · a", "SimCSE · b", "SimCSE · c"]
    assert answer.data[0]["rows"] == names
    assert list(answer.data[0]["ranks"]) == names
    pair, *_ = answer.data[0]["pairs"]
    assert (pair["a"], pair["b"]) == ("SimCSE · a", "SimCSE · b")
    assert all(name in answer.text for name in names)


def test_one_row_and_random_vectors_are_compared(made: synthetic.Invented) -> None:
    add(made, "SimCSE", 0.5)
    for seed in (1, 2, 3):
        about = {"supervision": "untrained", "pooling": None, "tasks": TASKS, "geometry": False}
        made.add("random", seed, noise=15.0 * seed, **about)
    comparison = read_comparison(made.workdir, "invented")
    first, *_ = headline(comparison, Significance(comparison))
    assert re.match(r"SimCSE \(\d+\.\d\d, 3 seeds\) is above random \(\+\d+\.\d\d\) on", first)
    assert "fewer than three seeds" not in first


def test_where_no_training_helped_that_is_the_first_sentence(made: synthetic.Invented) -> None:
    first, second, *more = with_added_starts(made, 0.5, SimCSE=3.0, SCD=5.0)
    form = (
        r"Nothing that was trained is better than its untrained start on the average of 2 STS tasks "
        r"\(SentEval\): training worsened SCD \(−\d+\.\d\d\) and SimCSE \(−\d+\.\d\d\)\."
    )
    assert re.fullmatch(form, first)
    assert re.search(
        r"; higher is start \(\d+\.\d\d\), which was added as untrained start\.$", second
    )
    assert second.startswith("Of the rows of the file, SimCSE (")
    assert not more


def test_rows_whose_start_is_not_stored_are_not_called_no_better(made: synthetic.Invented) -> None:
    for seed in (1, 2, 3):
        made.add("SG", seed, noise=0.1, pooling="cls", tasks=TASKS, curves=False, geometry=False)
    first, *_ = with_added_starts(made, 0.5, SimCSE=3.0)
    assert first.startswith("Nothing that was trained is better than its untrained start")
    assert first.endswith("not known of SG, whose untrained start is not stored.")


def test_where_some_training_helped_the_start_is_named_with_the_gain(
    made: synthetic.Invented,
) -> None:
    text = " ".join(with_added_starts(made, 3.0, SimCSE=0.5, SCD=5.0))
    assert not text.startswith("Nothing")
    assert "Training improved SimCSE (+" in text
    assert "higher is" not in text


def test_untested_rows_below_their_start_are_called_untested(made: synthetic.Invented) -> None:
    add(made, "SimCSE", 3.0, seeds=1)
    first, second = with_added_starts(made, 0.5)
    assert first.startswith("Nothing that was trained is better than its untrained start")
    assert "not tested with fewer than three seeds: SimCSE (−" in first
    assert second.startswith("Of the rows of the file, SimCSE (")
    assert "is the only row on" in second
    assert "higher is start (" in second


def test_groups_pairs_and_figure_have_the_added_start_or_say_that_it_is_left_out(
    made: synthetic.Invented,
) -> None:
    with_added_starts(made, 0.5, SimCSE=3.0, SCD=5.0, SG=7.0)
    answer = verdict(made.workdir)
    assert answer.data[0]["left_out"] == ["start"]
    assert "Not among these rows: start, added as untrained start." in answer.text
    comparison = read_comparison(made.workdir, "invented")
    significance = Significance(comparison)
    (pairs,) = all_pairs(comparison, significance)
    assert "Not among these rows: start" in pairs.caption
    figure = overview(comparison, significance)
    assert figure is not None
    drawn = re.search(r": start (\d+\.\d\d) \(untrained start\); SimCSE", figure.alt)
    assert drawn is not None
    assert figure.alt.count(f", from {drawn[1]} untrained") == 3
    assert "Dashed: the untrained start of a row." in figure.caption
    assert "Square: an untrained start" in figure.caption


def test_one_row_without_a_partner_is_not_said_to_lack_examples(made: synthetic.Invented) -> None:
    add(made, "SimCSE", 1.0, seeds=1)
    comparison = read_comparison(made.workdir, "invented")
    sentence = headline(comparison, Significance(comparison))[0]
    assert re.match(r"SimCSE \(\d+\.\d\d, 1 seed\) is the only row on the average of ", sentence)
