"""Published numbers beside ours: each joins once, and verdicts follow from the records."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from reports.document.table import MINUS
from reports.papers import definition
from reports.papers.agreement import judge, prediction_of_difference
from reports.papers.column_values import measure
from reports.papers.matched_numbers import as_csv, plain
from reports.papers.matching import Matching
from reports.papers.paper_tables import paper_table
from reports.papers.reported import prediction_interval
from reports.read.run_library import read_library
from tests.support import invented_runs as made

SCD = made.recipe("scd")
NAMES = definition.names()


def joined(workdir, name="scd"):
    return Matching(definition.load(name), read_library(workdir))


def verdict(workdir, model="SCD-BERT", task="STS-B", table="Table 1", name="scd", metric=None):
    matches = [
        j for j in joined(workdir, name).rows
        if (j.published["table"], j.published["model"], j.published["task"]) == (table, model, task)
        and metric in (None, j.published["metric"])
    ]  # fmt: skip
    assert len(matches) == 1
    return matches[0]


# --- verdicts by hand -------------------------------------------------------------------------------------------------


def test_prediction_interval_of_three_values():
    # mean 72, s 2, t(2; 0.975) = 4.30265: 4.30265 * 2 * sqrt(4/3) = 9.93655
    assert prediction_interval([70, 72, 74]) == pytest.approx((62.06345, 81.93655), abs=1e-4)


def test_prediction_interval_is_scipys():
    values = np.array([61.2, 63.9, 62.2, 60.4, 64.0])
    scale = values.std(ddof=1) * np.sqrt(1 + 1 / 5)
    assert prediction_interval(list(values)) == pytest.approx(stats.t.interval(0.95, 4, values.mean(), scale))


def test_prediction_interval_covers_one_more_run():
    rng = np.random.default_rng(7)
    draws = rng.normal(70, 1.3, size=(4000, 4))
    inside = 0
    for *values, more in draws.tolist():
        low, high = prediction_interval(values)
        inside += low <= more <= high
    assert inside / 4000 == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(("values", "confidence"), [([70.0], 0.95), ([70.0, 71.0], 1.0), ([], 0.95)])
def test_an_interval_needs_two_values(values, confidence):
    with pytest.raises(ValueError, match="two values"):
        prediction_interval(values, confidence)


def test_verdict_kinds():
    values = [70.0, 72.0, 74.0]
    assert judge(81.9, values).kind == "inside"
    assert judge(82.0, values).kind == "above"
    assert judge(62.0, values).kind == "below"
    assert judge(72.0, values, obstacles=["other base model (a, not b)"]).kind == "not comparable"
    assert judge(72.0, [72.0]).text == "one seed: no interval"
    assert judge(72.0, []).kind == "not measured"
    assert judge(None, values).kind == "not published"


def test_a_method_without_a_seed_agrees_within_rounding():
    assert judge(31.45, [31.4], deterministic=True).kind == "inside"
    assert judge(31.46, [31.4], deterministic=True).kind == "above"
    assert judge(31.34, [31.4, 31.4], deterministic=True).kind == "below"


# --- from records -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "kind"), [((75, 76, 77), "inside"), ((70, 70.1, 70.2), "above"),
                                              ((80, 80.1, 80.2), "below")])  # fmt: skip
def test_the_papers_own_conditions_give_a_verdict(tmp_path, values, kind):
    for seed, value in enumerate(values, 1):
        made.run(tmp_path, "scd", SCD, seed, scores=[made.score("STS-B", value)], corpus=made.WIKI)
    j = verdict(tmp_path)  # published: 76.30
    assert j.verdict.kind == kind
    assert j.difference == pytest.approx(np.mean(values) - 76.30)
    assert j.ours.records == tuple(f"{i:012x}" for i in (1, 2, 3))


def test_obstacles_are_read_from_the_records(tmp_path):
    for seed in (1, 2):
        made.run(tmp_path, "scd", SCD, seed, scores=[made.score("STS-B", 40 + seed)], base="embedded:mini-bert",
                 corpus={**made.WIKI, "count": 20_000})  # fmt: skip
        made.run(tmp_path, "simcse", made.recipe("simcse"), seed, corpus=made.WIKI,
                 scores=[made.score("STS-B", 70 + seed, source="mteb")])  # fmt: skip
    j = verdict(tmp_path)
    assert j.verdict.text == (
        "not comparable: other base model (embedded:mini-bert, not bert-base); "
        "other training data (20,000 of 1,000,000)"
    )
    assert j.difference is None
    assert verdict(tmp_path, "SimCSE-BERT (unsup)").verdict.text == (
        "not comparable: other protocol (source mteb, not senteval)"
    )
    assert verdict(tmp_path, "SCD-RoBERTa").verdict.kind == "not comparable"
    assert verdict(tmp_path, "IS-BERT").verdict.text == "not measured: no run of it"
    assert "BookCorpus, is no longer public" in verdict(tmp_path, "Skip-thought", "MR", "Table 2").verdict.text


def test_other_text_under_the_same_size_is_other_data(tmp_path):
    for seed in (1, 2):
        made.run(tmp_path, "scd", SCD, seed, scores=[made.score("STS-B", 76)], corpus={**made.WIKI, "uri": "mine.txt"})
    assert "other training data (mine.txt, 1,000,000 entries" in verdict(tmp_path).verdict.text


def test_a_run_that_saw_only_a_part_is_other_data(tmp_path):
    for seed in (1, 2):
        made.run(tmp_path, "scd", SCD, seed, scores=[made.score("STS-B", 76)], corpus=made.WIKI,
                 cost={"corpus_sentences_seen": 6400.0})  # fmt: skip
    assert verdict(tmp_path).verdict.text.endswith("other training data (6,400 of 1,000,000 seen)")


def test_one_seed_and_no_seed(tmp_path):
    made.run(tmp_path, "scd", SCD, scores=[made.score("STS-B", 76)], corpus=made.WIKI)
    made.run(tmp_path, "pooling", {"pooling": "cls"}, scores=[made.score("STS-B", 20.31)], supervision="untrained")
    assert verdict(tmp_path).verdict.kind == "one seed"
    assert verdict(tmp_path).difference == pytest.approx(-0.30)
    assert verdict(tmp_path, "BERT [CLS]-embedding").verdict.kind == "inside"  # 20.29


def test_the_papers_base_model_goes_before_others(tmp_path):
    for base, value in (("embedded:mini-bert", 30), ("bert-base-uncased", 76)):
        for seed in (1, 2, 3):
            made.run(
                tmp_path, "scd", SCD, seed, scores=[made.score("STS-B", value + seed)], base=base, corpus=made.WIKI
            )
    assert verdict(tmp_path).row.base_model == "bert-base-uncased"
    assert verdict(tmp_path).verdict.kind == "inside"


def test_collapsed_runs_are_told_apart_from_none(tmp_path):
    made.run(tmp_path, "scd", SCD, status="collapsed", corpus=made.WIKI)
    assert verdict(tmp_path).verdict.text == "not measured: every seed collapsed"


def test_an_average_of_fewer_tasks_is_none(tmp_path):
    for seed in (1, 2):
        made.run(tmp_path, "scd", SCD, seed, scores=made.sts(70)[:6], corpus=made.WIKI)
    j = verdict(tmp_path, task="Avg.")
    assert j.verdict.text == "not measured: incomplete, no average: without SICK-R (1 of 7)"
    assert not j.ours.by_seed


def test_deltas_go_to_the_reference_row_seed_by_seed(tmp_path):
    same = {"temperature": 0.01, "regularisation": 0.1, "head": "training"}
    for seed in (1, 2):
        made.run(tmp_path, "self_guided", {"objective": "opt3", **same}, seed, scores=made.sts(70 + seed))
        made.run(tmp_path, "self_guided", {"objective": "opt2", **same}, seed, scores=made.sts(69 + 2 * seed))
    j = verdict(tmp_path, "L_opt2 (single sampled view)", "STS Avg. delta to SG-OPT", "Ablation table", "self-guided")
    assert j.ours.by_seed == pytest.approx({1: 0.0, 2: 1.0})


def test_a_run_without_a_seed_goes_against_every_run_of_the_reference(tmp_path):
    for seed, value in ((1, 40), (2, 44)):
        made.run(tmp_path, "scd", SCD, seed, scores=made.sts(value))
    made.run(tmp_path, "pooling", {"pooling": "cls"}, scores=made.sts(37), supervision="untrained")
    matching = joined(tmp_path)
    table = next(t for t in matching.definition.tables if t.key == "table-3")
    spec = next(r for r in table.rows if r.label == "[CLS]")
    column = next(c for c in matching.columns(table) if c.title == "Δ STS-B")
    row = matching.candidates(spec)["google-bert/bert-base-uncased"][0]
    assert matching.value(table, spec, row, column).by_seed == pytest.approx({1: -3, 2: -7})


def test_differences_of_rows_with_other_seeds_have_the_spread_of_both(tmp_path):
    same = {"temperature": 0.01, "regularisation": 0.1, "head": "training"}
    for seed in (1, 2, 3):
        made.run(tmp_path, "self_guided", {"objective": "opt3", **same}, seed, scores=made.sts(70 + seed))
        made.run(tmp_path, "self_guided", {"objective": "opt2", **same}, 3 + seed, scores=made.sts(69 + 2 * seed))
    ours = verdict(
        tmp_path, "L_opt2 (single sampled view)", "STS Avg. delta to SG-OPT", "Ablation table", "self-guided"
    ).ours
    assert np.mean(ours.values) == pytest.approx(1)  # 73 - 72, however seeds are numbered
    assert sorted(map(sorted, ours.sides)) == [[71, 72, 73], [71, 73, 75]]


def test_a_side_with_one_run_that_a_seed_enters_gives_no_verdict():
    assert judge(0.0, [1.0, 2.0], sides=[(72.0, 73.0), (71.0,)]).kind == "one seed"
    # Variances 0.5 and 2, a half more each for two runs: 0.75 + 3 with 3.75^2 / (0.75^2 + 3^2) = 1.47 degrees.
    found = judge(0.0, [1.0, 2.0], sides=[(72.0, 73.0), (70.0, 72.0)])
    half = stats.t.ppf(0.975, 3.75**2 / (0.75**2 + 9)) * 3.75**0.5
    assert (found.low, found.high) == pytest.approx((1.5 - half, 1.5 + half))


def test_the_prediction_of_a_difference_covers_one_more_run_of_each_side():
    rng = np.random.default_rng(7)
    inside = 0
    for _ in range(2000):
        a, b = rng.normal(70, 1.3, size=4), rng.normal(68, 0.7, size=3)
        low, high = prediction_of_difference(a.mean() - b.mean(), [a, b])
        inside += low <= rng.normal(70, 1.3) - rng.normal(68, 0.7) <= high
    assert inside / 2000 == pytest.approx(0.95, abs=0.02)


def test_older_records_that_lack_an_option_have_its_default(tmp_path):
    older = made.recipe("simcse")
    del older["mlm_weight"], older["same_mask"]
    made.run(tmp_path, "simcse", older, scores=[made.score("STS-B", 75)], corpus=made.WIKI)
    assert verdict(tmp_path, "SimCSE-BERT (unsup)").verdict.kind == "one seed"


# --- every published number ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_published_number_is_there_exactly_once(name, tmp_path):
    matching = joined(tmp_path, name)
    keys = [tuple(p[k] for k in ("table", "model", "base_model", "task", "metric")) for p in matching.published]
    matched = [tuple(j.published[k] for k in ("table", "model", "base_model", "task", "metric")) for j in matching.rows]
    assert len(set(keys)) == len(keys)
    assert Counter(matched) == Counter(keys)
    text = ("Sec. 3.3 text", "Sec. 6.1 supplement text")  # statements, not tables
    lost = {(j.published["table"], j.published["model"], j.published["task"]) for j in matching.rows
            if j.place is None and j.published["table"] not in text}  # fmt: skip
    assert not lost
    assert len(plain(matching.rows)) == len(keys) == as_csv(matching.rows).count("\n") - 1


@pytest.mark.parametrize("name", NAMES)
def test_every_row_and_column_of_a_definition_is_used(name, tmp_path):
    """A misspelt model or task would silently join nothing."""
    matching = joined(tmp_path, name)
    used = {(id(j.place.row), model) for j in matching.rows if j.place for model in [j.published["model"]]}
    columns = {id(j.place.column) for j in matching.rows if j.place}
    for table in matching.definition.tables:
        for row in table.rows:
            assert all((id(row), model) in used for model in row.published), (table.key, row.label)
        printed = {p["task"] for p in matching.published}
        for column in matching.columns(table):
            assert id(column) in columns or column.published not in printed, (table.key, column.title)


# --- averages: the columns of the definitions give the printed averages back from the printed numbers -----------------


def rebuilt(tmp_path, name, table_key, make):
    """For each published (model, base): what the columns of a table give for a record of its printed numbers."""
    defined = definition.load(name)
    table = next(t for t in defined.tables if t.key == table_key)
    empty = tmp_path / "empty"
    empty.mkdir()
    rows: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for j in joined(empty, name).rows:
        if j.value is not None:
            key = (j.published["model"], j.published["base_model"])
            rows.setdefault(key, {})[j.published["table"], f"{j.published['task']}|{j.published['metric']}"] = j.value
    for i, values in enumerate(rows.values()):
        made.run(tmp_path, "pooling", {"pooling": "mean", "max_length": i + 4}, scores=make(values))
    library = read_library(tmp_path)
    by_length = {row.records[0].config["max_length"] - 4: row for row in library.rows}
    for i, (key, values) in enumerate(rows.items()):
        for column in defined.columns_of(table):
            printed = [v for (t, task), v in values.items()
                       if t in table.published and task.partition("|")[0] == column.published]  # fmt: skip
            if column.average and printed:
                yield key, column, measure(library, by_length[i], column), printed[0]


def test_scd_averages(tmp_path):
    def make(values):
        scores = []
        for (table, task), value in values.items():
            name = {"SST": "SST2"}.get(task.partition("|")[0], task.partition("|")[0])
            if table == "Table 1" and name != "Avg.":
                scores.append(made.score(name, value))
            if table == "Table 2" and name != "Avg.":
                scores.append(made.score(name, value, "accuracy", "", suite="transfer"))
        return scores

    for table, least, tolerance in (("table-1", 13, 0.0151), ("table-2", 10, 0.0201)):
        folder = tmp_path / table
        folder.mkdir()
        checked = [(m, p) for _, _, m, p in rebuilt(folder, "scd", table, make)]
        assert len(checked) >= least
        assert all(m.values == pytest.approx([p], abs=tolerance) for m, p in checked)


def test_declutr_averages(tmp_path):
    probing = {
        "SentLen": "Length", "WC": "WordContent", "TreeDepth": "Depth", "TopConst": "TopConstituents",
        "BShift": "BigramShift", "SubjNum": "SubjNumber", "ObjNum": "ObjNumber", "SOMO": "OddManOut",
        "CoordInv": "CoordinationInversion",
    }  # fmt: skip
    regressors = {"SICK-R": "regressor:SICK-R", "STSBenchmark": "regressor:STS-B"}

    def make(values):
        scores = []
        for (table, both), value in values.items():
            task, _, metric = both.partition("|")
            if table == "Table S4":
                scores.append(made.score(probing.get(task, task), value, "accuracy", "", suite="probing"))
            if table != "Table S3":
                continue
            if task in regressors:
                scores.append(made.score(regressors[task], value, "spearman", "", suite="downstream"))
            elif task.startswith("Caption"):
                scores.append(
                    made.score("caption-retrieval", value, "recall", "mean of six recalls", suite="downstream")
                )
            elif task.startswith("STS"):
                scores.append(made.score(task, value, "spearman", "mean"))
            else:
                kind = "f1" if metric.startswith("F1") else "accuracy"
                scores.append(made.score(task, value, kind, "", suite="transfer"))
        return scores

    checked = [(k, c, m, p) for k, c, m, p in rebuilt(tmp_path, "declutr", "table-1", make) if m.by_seed]
    assert Counter(c.title for _, c, _, _ in checked) == {"Downstream": 9, "Probing": 9, "Avg.": 9}
    assert all(m.values == pytest.approx([p], abs=0.0201) for _, _, m, p in checked)


def test_noncontrastive_averages(tmp_path):
    def make(values):
        return [
            made.score(f"mteb:{both.partition('|')[0]}", value, "main", "", source="mteb", suite="mteb")
            for (table, both), value in values.items()
            if table == "Table 4"
        ]

    checked = [(k, c, m, p) for k, c, m, p in rebuilt(tmp_path, "noncontrastive", "table-2", make) if m.by_seed]
    assert all(m.values == pytest.approx([p], abs=0.1001) for _, _, m, p in checked)
    assert sum(c.average == "mteb" for _, c, _, _ in checked) >= 1  # rows with a blank cell have no average
    assert len(checked) >= 30


def ablation(workdir, *runs) -> dict[str, list[str]]:
    """Cells of SCD's Table 3 by row, of runs (terms, value, entries of the text, updates) with two seeds each."""
    for terms, value, entries, steps in runs:
        for seed in (1, 2):
            made.run(workdir, "scd", {**SCD, "terms": terms}, seed, base="embedded:mini-bert", scores=made.sts(value),
                     corpus={"uri": "x", "count": entries, "sha256": str(entries)},
                     training={"planned_steps": steps})  # fmt: skip
    matching = Matching(definition.load("scd"), read_library(workdir))
    rows = paper_table(matching, next(t for t in matching.definition.tables if t.key == "table-3")).table.rows
    return {row.cells[0].text: [cell.text for cell in row.cells[2:]] for row in rows if "measured" in row.block}


def test_differences_are_between_rows_trained_alike(tmp_path):
    cells = ablation(
        tmp_path, ("both", 50, 10_000, 157), ("both", 40, 4000, 63), ("both", 45, 4000, 20),
        ("decorrelation", 42, 4000, 63), ("self_contrast", 30, 4000, 63),
    )  # fmt: skip
    assert cells["both terms"][::2] == ["40.00"] * 3
    assert cells["decorrelation alone"] == ["42.00", "+2.00"] * 3
    assert cells["self-contrast alone"] == ["30.00", f"{MINUS}10.00"] * 3


def test_no_difference_to_a_row_trained_on_more(tmp_path):
    cells = ablation(tmp_path, ("both", 50, 10_000, 157), ("decorrelation", 42, 4000, 63))
    assert cells["decorrelation alone"] == ["42.00", "n/a"] * 3
    assert cells["both terms"][0] == "50.00"


def test_a_difference_to_a_row_that_is_not_shown_says_so(tmp_path):
    """Each training has as many rows as the other: more text is shown, and 4,000 entries keep their own reference."""
    runs = ("both", 40, 4000, 63), ("self_contrast", 30, 4000, 63), ("both", 50, 10_000, 157)
    cells = ablation(tmp_path, *runs, ("decorrelation", 42, 10_000, 157))
    assert cells["both terms"][0] == "50.00"
    assert cells["decorrelation alone"][:2] == ["42.00", f"{MINUS}8.00"]
    assert cells["self-contrast alone"][:2] == ["30.00", f"{MINUS}10.00"]
    matching = Matching(definition.load("scd"), read_library(tmp_path))
    rows = paper_table(matching, next(t for t in matching.definition.tables if t.key == "table-3")).table.rows
    notes = {row.cells[0].text: row.cells[3].notes for row in rows if "measured" in row.block}
    assert notes["decorrelation alone"] == ()
    assert notes["self-contrast alone"] == ('to a row "both terms" trained as this one, which the table does not show',)
