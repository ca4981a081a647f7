"""Published numbers and ours: each is matched once, and verdicts and reasons follow from the
records.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reports.papers import definition
from reports.papers.agreement import judge
from reports.papers.conditions import format_value, preset_options
from reports.papers.paper_document import as_csv, plain
from reports.papers.paper_results import Match, PaperResults
from reports.records.run_library import read_library
from reports.stats.estimate import predict
from tests.support import invented_runs as made

SCD = made.recipe("scd")
REVISION = "hf://datasets/princeton-nlp/datasets-for-simcse@b96a9a6/wiki1m_for_simcse.txt"
STSB = {"uri": "stsb-sentences", "kind": "sentences", "count": 17_256, "sha256": "cd" * 32}
NAMES = definition.names()


def matched(workdir: Path, name: str = "scd") -> PaperResults:
    return PaperResults(definition.load(name), read_library(workdir))


def number(workdir: Path, name: str = "scd", **keys: str) -> Match:
    """One published number: SCD's STS-B of Table 1, or as `keys` say."""
    wanted = {"table": "Table 1", "model": "SCD-BERT", "task": "STS-B", **keys}
    (found,) = [
        one for one in matched(workdir, name).numbers if wanted.items() <= one.published.items()
    ]
    return found


def scd(workdir: Path, corpus: dict[str, Any] | None = None, **values: Any) -> Match:
    """SCD's STS-B with three seeds of 76, 77 and 78; `values`: of the configuration or of the
    record.
    """
    record = {
        key: values.pop(key) for key in ("max_steps", "training", "cost", "base") if key in values
    }
    for seed in (1, 2, 3):
        config = {**SCD, **values}
        made.run(
            workdir,
            "scd",
            config,
            seed,
            scores=made.sts(75 + seed),
            corpus=corpus or made.WIKI,
            **record,
        )
    return number(workdir)


# --- intervals
# --------------------------------------------------------------------------------------------------------


def expect(value: float, sides: list, runs: int = 1) -> tuple[float, float]:
    found = predict(value, sides, runs=runs)
    return found.low, found.high


def test_intervals_by_hand():
    # mean 72, s 2, t(2; 0.975) = 4.30265: 4.30265 * 2 * sqrt(1 + 1/3), and sqrt(1/8 + 1/3) for a
    # mean of eight
    assert expect(72, [[70, 72, 74]]) == pytest.approx((62.06345, 81.93655), abs=1e-4)
    assert expect(72, [[70, 72, 74]], runs=8) == pytest.approx((66.17420, 77.82580), abs=1e-4)
    # variances 4 and 1 of three values each, means of five: 4 (1/5 + 1/3) + 1 (1/5 + 1/3) = 8/3,
    # Welch's freedom 2.941
    freedom = (8 / 3) ** 2 / ((4 * 8 / 15) ** 2 / 2 + (8 / 15) ** 2 / 2)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(8 / 3)
    assert expect(1.0, [[70, 72, 74], [69, 70, 71]], runs=5) == pytest.approx((1 - half, 1 + half))


def test_intervals_cover_new_runs():
    rng = np.random.default_rng(7)
    inside = Counter()
    for _ in range(4000):
        a, b = rng.normal(70, 1.3, size=4), rng.normal(68, 0.7, size=3)
        pairs = (
            ("one", expect(a.mean(), [a.tolist()]), rng.normal(70, 1.3)),
            ("mean", expect(a.mean(), [a.tolist()], runs=8), rng.normal(70, 1.3, size=8).mean()),
            ("gap", expect(a.mean() - b.mean(), [a, b]), rng.normal(70, 1.3) - rng.normal(68, 0.7)),
        )
        inside.update(name for name, (low, high), value in pairs if low <= value <= high)
    assert {name: count / 4000 for name, count in inside.items()} == pytest.approx(
        dict.fromkeys(("one", "mean", "gap"), 0.95), abs=0.02
    )


def test_verdicts():
    values = [70.0, 72.0, 74.0]
    assert judge(81.9, values).kind == "inside"
    assert judge(82.0, values).kind == "above"
    assert judge(62.0, values).kind == "below"
    assert judge(78.0, values, runs=8).kind == "above"
    assert (
        judge(72.0, values, reasons=["Another base model: a instead of b."]).kind
        == "not comparable"
    )
    assert judge(72.0, [72.0]).kind == "one seed"
    assert judge(None, values).kind == "not published"
    assert judge(0.0, [1.0, 2.0], sides=[(72.0, 73.0), (71.0,)]).kind == "one seed"


def test_a_number_that_is_the_best_of_several_runs_is_expected_higher_and_named_so():
    """Of 400,000 simulated samples of 3 runs, the best of 8 further ones is 71.6 to 92.4 in 95 %."""
    values = [70.0, 72.0, 74.0]
    assert judge(71.0, values, best_of=8).kind == "below"
    assert judge(85.0, values, best_of=8).kind == "inside"
    assert judge(85.0, values).kind == "above"
    assert "best of 8 runs" in judge(85.0, values, best_of=8).text


def test_a_method_without_a_seed_agrees_within_rounding():
    assert judge(31.45, [31.4], deterministic=True).kind == "inside"
    assert judge(31.46, [31.4], deterministic=True).kind == "above"
    assert judge(31.34, [31.4, 31.4], deterministic=True, runs=8).kind == "below"


# --- verdicts from records
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind"),
    [((75, 76, 77), "inside"), ((70, 70.1, 70.2), "above"), ((80, 80.1, 80.2), "below")],
)
def test_the_papers_own_conditions_give_a_verdict(tmp_path, values, kind):
    ids = [
        made.run(
            tmp_path, "scd", SCD, seed, scores=[made.score("STS-B", value)], corpus=made.WIKI
        ).id
        for seed, value in enumerate(values, 1)
    ]
    found = number(tmp_path)  # published: 76.30
    assert found.verdict.kind == kind
    assert found.difference == pytest.approx(np.mean(values) - 76.30)
    assert sorted(found.measured.records) == sorted(ids)


def test_reasons_are_read_from_the_records(tmp_path):
    found = scd(tmp_path, {**made.WIKI, "count": 20_000}, base="embedded:mini-bert")
    base, text = found.verdict.reasons
    assert base.startswith("Another base model: embedded:mini-bert")
    assert text.startswith("Another training text: 20,000 of 1,000,000")
    assert (found.verdict.kind, found.difference) == ("not comparable", None)
    assert number(tmp_path, model="SCD-RoBERTa").verdict.kind == "not comparable"
    assert number(tmp_path, model="IS-BERT").verdict.reasons == ("it was not run",)
    assert (
        "BookCorpus"
        in number(tmp_path, table="Table 2", model="Skip-thought", task="MR").verdict.text
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"corpus": {**made.WIKI, "uri": "mine.txt"}}, "mine.txt, 1,000,000 entries"),
        ({"corpus": {**made.WIKI, "uri": "/data/sts/wiki1m.txt"}}, "/data/sts/wiki1m.txt"),
        (
            {"corpus": {**made.WIKI, "uri": "hf://datasets/me/wiki1m/wiki1m.txt"}},
            "hf://datasets/me",
        ),
        ({"corpus": {**made.WIKI, "count": 900_000}}, "900,000 of 1,000,000"),
        ({"cost": {"corpus_sentences_seen": 6400.0}}, "6,400 of 1,000,000"),
        (
            {"learning_rate": 3e-4, "batch_size": 64},
            "learning_rate 3e-4 instead of 3e-5, batch_size 64 instead of 192",
        ),
        (
            {"max_steps": 1000, "training": {"planned_steps": 1000}},
            "stopped after 1,000 training steps",
        ),
    ],
)
def test_another_text_or_setting_is_not_comparable(tmp_path, change, reason):
    found = scd(tmp_path, **change)
    assert found.verdict.kind == "not comparable"
    assert reason in found.verdict.text
    assert found.measured.values == pytest.approx([76, 77, 78])


@pytest.mark.parametrize(
    ("change", "remarks"),
    [
        ({"eval_every": 50}, 1),
        ({"corpus": {**made.WIKI, "count": 999_998}}, 1),
        ({"corpus": {**made.WIKI, "uri": REVISION}}, 0),
        ({"corpus": {**made.WIKI, "uri": "hf://datasets/x/y/z.txt", "name": "wiki1m"}}, 0),
        ({"max_steps": 100_000, "training": {"planned_steps": 5208}}, 0),
        ({"micro_batch": 7}, 0),
    ],
)
def test_what_may_differ_is_at_most_a_remark(tmp_path, change, remarks):
    found = scd(tmp_path, **change)
    assert (found.verdict.kind, len(found.remarks)) == ("inside", remarks)


def test_values_that_the_paper_searched_and_options_without_effect_are_free(tmp_path):
    config = made.recipe(
        "vicreg", "paper-shuffle", learning_rate=5e-5, covariance_weight=0.02, dropout=0.3
    )
    scores = [
        made.score("geometry:STS-B", 0.2, "alignment", "", suite="geometry", split="all", scale=1)
    ]
    keys = {
        "table": "Table 2",
        "model": "VICReg (p_shuffle=0.5)",
        "base_model": "bert-base",
        "task": "l_align",
    }
    for place, batch_size, count in (("a", 256, 1), ("b", 64, 2)):
        made.run(
            tmp_path / place,
            "vicreg",
            {**config, "batch_size": batch_size},
            scores=scores,
            corpus=made.WIKI,
        )
        reasons = number(tmp_path / place, "noncontrastive", **keys).verdict.reasons
        assert len(reasons) == count  # the pair set, which the paper does not state
    assert "batch_size 64 instead of 256" in reasons[0]


def test_another_source_or_preparation_is_another_protocol(tmp_path):
    for seed in (1, 2):
        made.run(
            tmp_path,
            "simcse",
            made.recipe("simcse"),
            seed,
            corpus=made.WIKI,
            scores=[made.score("STS-B", 70 + seed, source="mteb")],
        )
    (reason,) = number(tmp_path, model="SimCSE-BERT (unsup)").verdict.reasons
    assert reason.startswith("Another protocol: ")


def test_the_paper_s_base_model_and_settings_go_first_and_then_seeds(tmp_path):
    for seed in range(1, 6):
        made.run(
            tmp_path,
            "scd",
            {**SCD, "learning_rate": 1e-3},
            seed,
            scores=made.sts(30),
            corpus=made.WIKI,
        )
        made.run(
            tmp_path,
            "scd",
            SCD,
            seed,
            scores=made.sts(40),
            corpus=made.WIKI,
            base="embedded:mini-bert",
        )
    found = scd(tmp_path)
    assert found.measured.values == pytest.approx([76, 77, 78])
    assert found.verdict.kind == "inside"


def test_one_seed_no_seed_and_no_value(tmp_path):
    made.run(tmp_path, "scd", SCD, scores=made.sts(76)[:6], corpus=made.WIKI)
    made.run(
        tmp_path,
        "pooling",
        {"pooling": "cls"},
        scores=[made.score("STS-B", 20.31)],
        supervision="untrained",
    )
    made.run(tmp_path, "simcse", made.recipe("simcse"), status="collapsed", corpus=made.WIKI)
    assert number(tmp_path).verdict.kind == "one seed"
    assert number(tmp_path).difference == pytest.approx(-0.30)
    assert number(tmp_path, model="BERT [CLS]-embedding").verdict.kind == "inside"  # 20.29
    assert "collapsed" in number(tmp_path, model="SimCSE-BERT (unsup)").verdict.text
    average = number(tmp_path, task="Avg.")
    assert (average.verdict.kind, average.measured.values) == ("not measured", [])
    assert "SICK-R" in average.verdict.text


def test_vectors_are_known_by_their_file_and_not_by_its_folder(tmp_path):
    for vectors in ("glove/crawl-300d-2M.vec", "crawl/glove.840B.300d.txt"):
        config = made.recipe("static", vectors=vectors)
        made.run(
            tmp_path, "static", config, scores=made.sts(55), base=vectors, supervision="untrained"
        )
    found = number(tmp_path, model="GloVe embeddings (avg.)")
    assert found.ours.base_model == "crawl/glove.840B.300d.txt"
    assert found.difference is not None


def test_a_base_model_without_a_recipe_in_the_preset_is_compared_without_settings(tmp_path):
    made.run(
        tmp_path,
        "is_bert",
        made.recipe("is_bert"),
        scores=made.sts(70),
        base="FacebookAI/roberta-base",
    )
    found = number(tmp_path, model="IS-BERT")
    assert found.verdict.kind == "not comparable"
    assert any(reason.startswith("Another base model") for reason in found.verdict.reasons)


def test_a_rehearsal_matches_no_published_number_and_goes_last(tmp_path):
    made.run(tmp_path, "scd", SCD, scores=made.sts(40), corpus=made.WIKI, most_sentences=2000)
    assert {one.verdict.kind for one in matched(tmp_path).numbers} == {"not measured"}
    assert not any(one.measured.by_seed for one in matched(tmp_path).numbers)
    made.run(tmp_path, "scd", SCD, 2, scores=made.sts(60), corpus=made.WIKI)
    assert number(tmp_path).measured.by_seed == pytest.approx({2: 60})


# --- differences
# ------------------------------------------------------------------------------------------------------

DELTA = {
    "table": "Ablation table",
    "model": "L_opt2 (single sampled view)",
    "task": "STS Avg. delta to SG-OPT",
}


@pytest.mark.parametrize("first", [1, 4])
def test_differences_are_seed_by_seed_or_have_the_spread_of_both(tmp_path, first):
    for i in range(3):
        rest = {"corpus": STSB, "scores": made.sts(71 + i)}
        made.run(
            tmp_path, "self_guided", made.recipe("self_guided", objective="opt3"), 1 + i, **rest
        )
        rest["scores"] = made.sts(71 + 2 * i)
        made.run(
            tmp_path, "self_guided", made.recipe("self_guided", objective="opt2"), first + i, **rest
        )
    found = number(tmp_path, "self-guided", **DELTA)
    assert np.mean(found.measured.values) == pytest.approx(1)
    if first == 1:
        assert found.measured.by_seed == pytest.approx({1: 0, 2: 1, 3: 2})
        assert (found.verdict.low, found.verdict.high) == pytest.approx(
            expect(1, [[0, 1, 2]], runs=8)
        )
    else:
        assert sorted(map(sorted, found.measured.sides)) == [[71, 72, 73], [71, 73, 75]]


def test_a_difference_to_a_row_with_other_settings_is_not_comparable(tmp_path):
    for seed in (1, 2):
        for objective, rate in (("opt3", 1e-3), ("opt2", 5e-5)):
            config = made.recipe("self_guided", objective=objective, learning_rate=rate)
            made.run(tmp_path, "self_guided", config, seed, scores=made.sts(70 + seed), corpus=STSB)
    assert (
        "learning_rate 0.001 instead of 5e-5"
        in number(tmp_path, "self-guided", **DELTA).verdict.text
    )
    keys = {**DELTA, "task": "STS Avg. (all STS test sets)"}
    assert number(tmp_path, "self-guided", **keys).verdict.kind == "inside"


# --- every published number
# -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_published_number_is_matched_once_and_every_row_and_column_is_used(name, tmp_path):
    """A misspelt model or task would silently match nothing."""
    paper = matched(tmp_path, name)
    keys = [
        tuple(p[k] for k in ("table", "model", "base_model", "task", "metric"))
        for p in paper.published
    ]
    assert len(set(keys)) == len(keys) == len(paper.numbers)
    assert len(plain(paper.numbers)) == len(keys) == as_csv(plain(paper.numbers)).count("\n") - 1
    text = {"Sec. 3.3 text", "Sec. 6.1 supplement text"}  # statements, not tables
    assert {one.published["table"] for one in paper.numbers if one.place is None} <= text
    used = {(id(one.place.row), one.published["model"]) for one in paper.numbers if one.place}
    columns = {id(one.place.column) for one in paper.numbers if one.place}
    models = {model for _, model in used}
    printed = {p["task"] for p in paper.published}
    for table in paper.definition.tables:
        for row in table.rows:
            assert set(row.published) <= models, (table.key, row.label)
        for column in paper.columns(table):
            assert id(column) in columns or column.published not in printed, (
                table.key,
                column.title,
            )


@pytest.mark.parametrize("name", NAMES)
def test_every_published_row_of_a_trained_method_states_settings(name, tmp_path):
    """And its preset has values for each base model that the paper has the row for."""
    paper = matched(tmp_path, name)
    for one in paper.numbers:
        if one.place is not None and one.place.row.method not in ("", "pooling", "pretrained"):
            assert preset_options(
                one.place.row, paper.definition.family(one.published["base_model"])
            ), one.place.row.label


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3e-5, "3e-5"),
        (0.005225, "0.005225"),
        (2.5e-4, "2.5e-4"),
        (1.0, "1"),
        (64, "64"),
        (None, "none"),
        (True, "on"),
        ([4096, 4096], "4096 x 4096"),
        (0.0, "0"),
    ],
)
def test_values_are_shown_in_few_digits(value, text):
    assert format_value(value) == text


# --- averages
# ---------------------------------------------------------------------------------------------------------

PROBING = {
    "SentLen": "Length",
    "WC": "WordContent",
    "TreeDepth": "Depth",
    "TopConst": "TopConstituents",
    "BShift": "BigramShift",
    "SubjNum": "SubjNumber",
    "ObjNum": "ObjNumber",
    "SOMO": "OddManOut",
    "CoordInv": "CoordinationInversion",
}
REGRESSORS = {"SICK-R": "regressor:SICK-R", "STSBenchmark": "regressor:STS-B"}


def printed_score(name: str, table: str, task: str, metric: str, value: float) -> Any:
    """The score that a printed number is; None of averages."""
    if name == "noncontrastive":
        return (
            made.score(f"mteb:{task}", value, "main", "", source="mteb", suite="mteb")
            if table == "Table 4"
            else None
        )
    if name == "scd":
        if table == "Table 1":
            return made.score(task, value)
        return made.score(
            "SST2" if task == "SST" else task, value, "accuracy", "", suite="transfer"
        )
    if table == "Table S4":
        return made.score(PROBING.get(task, task), value, "accuracy", "", suite="probing")
    if task in REGRESSORS:
        return made.score(REGRESSORS[task], value, "spearman", "", suite="downstream")
    if task.startswith("Caption"):
        return made.score(
            "caption-retrieval", value, "recall", "mean of six recalls", suite="downstream"
        )
    if task.startswith("STS"):
        return made.score(task, value, "spearman", "mean")
    return made.score(
        task, value, "f1" if metric.startswith("F1") else "accuracy", "", suite="transfer"
    )


@pytest.mark.parametrize(
    ("name", "printed", "tables", "tolerance", "count"),
    [
        ("scd", "Table 1", ("table-1",), 0.0151, 13),
        ("scd", "Table 2", ("table-2",), 0.0201, 10),
        ("declutr", ("Table S3", "Table S4"), ("table-1",), 0.0201, 27),
        ("noncontrastive", "Table 4", ("table-2",), 0.1001, 30),
    ],
)
def test_printed_averages_are_those_of_the_printed_numbers(
    tmp_path, name, printed, tables, tolerance, count
):
    paper = matched(tmp_path, name)
    scores: dict[tuple[str, str], list[Any]] = {}
    for one in paper.numbers:
        p = one.published
        if p["table"] in printed and "Avg." not in p["task"] and one.value is not None:
            found = printed_score(name, p["table"], p["task"], p["metric"], one.value)
            scores.setdefault((p["model"], p["base_model"]), []).append(found)
    for i, own in enumerate(scores.values()):
        made.run(tmp_path, "pooling", {"pooling": "mean", "max_length": i + 4}, scores=own)
    library = PaperResults(paper.definition, read_library(tmp_path))
    rows = {row.records[0].config["max_length"] - 4: row for row in library.library.rows}
    order = list(scores)
    checked = 0
    for one in paper.numbers:
        key = one.published["model"], one.published["base_model"]
        place = one.place
        if (
            place is None
            or place.table.key not in tables
            or place.column.kind != "average"
            or key not in order
        ):
            continue
        values = library.measure(rows[order.index(key)], place.column).values
        if values and one.value is not None:
            assert values == pytest.approx([one.value], abs=tolerance)
            checked += 1
    assert checked >= count
