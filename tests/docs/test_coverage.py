"""Which planned row makes a published number: as reports would take its run, and only with all the
tasks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from docs.coverage import NO_FILE, Source, find_sources, plan_runs
from harness.runs.experiment import read_experiment
from reports.papers import definition

BERT = "google-bert/bert-base-uncased"
BLOCKS = {"one": {"suites": ["sts"]}, "two": {"suites": ["transfer"]}}
SCD = {"name": "our SCD", "method": "scd", "preset": "paper"}


def sources(*rows: dict[str, Any], **keys: Any) -> dict[tuple[str, str, str], Source]:
    """(table, model, task) of SCD's numbers on BERT-base -> source, of a file with two blocks."""
    tree = {
        "name": "mine",
        "base_models": [BERT],
        "corpus": "wiki1m",
        "blocks": BLOCKS,
        "methods": list(rows),
        **keys,
    }
    runs = plan_runs("mine", read_experiment(tree), {BERT: "bert-base"}.get)
    found = find_sources(definition.load("scd"), runs)
    return {tuple(s.published[k] for k in ("table", "model", "task")): s for s in found}


def test_a_number_is_made_by_the_block_that_has_its_tasks():
    found = sources(SCD)
    average, transfer = found["Table 1", "SCD-BERT", "Avg."], found["Table 2", "SCD-BERT", "MR"]
    assert (average.file, average.block, average.row) == ("mine", "one", "our SCD")
    assert transfer.block == "two"
    assert (
        found["Fig. 2 / Sec. 3.4.2 text", "SCD-BERT", "uniformity"].reason == NO_FILE
    )  # no block has the geometry
    assert found["Table 1", "SCD-RoBERTa", "Avg."].reason == NO_FILE


@pytest.mark.parametrize(
    "change",
    [
        {"config": {"learning_rate": 1e-3}},
        {"corpus": "embedded:sentences"},
        {"corpus": {"uri": "wiki1m", "limit": 1000}},
        {"base_models": ["FacebookAI/roberta-base"]},
        {"config": {"max_steps": 100}},
        {"blocks": ["two"]},
    ],
)
def test_what_a_report_would_not_compare_makes_no_number(change):
    kept = {"name": "keeps the blocks", "method": "pooling"}
    assert sources({**SCD, **change}, kept)["Table 1", "SCD-BERT", "Avg."].reason == NO_FILE


def test_how_often_the_dev_set_is_scored_may_differ():
    assert (
        sources({**SCD, "config": {"eval_every": 10}})["Table 1", "SCD-BERT", "Avg."].file == "mine"
    )


def test_a_difference_needs_both_rows():
    alone = {
        "name": "L_C",
        "method": "scd",
        "preset": "paper",
        "config": {"terms": "decorrelation"},
    }
    definitions = definition.load("self-guided")
    assert definitions is not None
    delta = "STS Avg. delta to SG-OPT"
    rows = {
        name: {
            "name": name,
            "method": "self_guided",
            "preset": "paper",
            "config": {"objective": name},
        }
        for name in ("opt2", "opt3")
    }
    for chosen, made in ((["opt2"], False), (["opt2", "opt3"], True)):
        tree = {
            "name": "mine",
            "base_models": [BERT],
            "corpus": "stsb-sentences",
            "suites": ["sts"],
            "methods": [rows[name] for name in chosen],
        }
        runs = plan_runs("mine", read_experiment(tree), {BERT: "bert-base"}.get)
        found = [
            s for s in find_sources(definitions, runs) if s.published["task"] == delta and s.file
        ]
        assert [s.published["model"] for s in found] == (
            ["L_opt2 (single sampled view)"] if made else []
        )
    assert sources(alone)["Table 3", "SCD (L_C only)", "STS-B"].row == "L_C"


@pytest.mark.parametrize(("pair", "made"), [("different", 21), ("disjoint", 0)])
def test_an_option_at_its_unwritten_default_is_compared_too(pair, made):
    """Runs do not write the default of `crop_pair`: all the same it tells the paper's crops from
    others.
    """
    base = "microsoft/mpnet-base"
    row = {"method": "infonce", "preset": "paper", "config": {"crop_pair": pair}}
    corpus = {"uri": "iclr24v2.parquet", "kind": "documents"}
    tree = {
        "name": "mine",
        "base_models": [base],
        "corpus": corpus,
        "suites": ["paper-cropping"],
        "methods": [row],
    }
    found = find_sources(
        definition.load("cropping"),
        plan_runs("mine", read_experiment(tree), {base: "mpnet-base"}.get),
    )
    assert sum(bool(s.file) for s in found) == made


def test_a_reason_stands_in_the_definition():
    found = sources(SCD)
    assert "BookCorpus" in found["Table 2", "Skip-thought", "MR"].reason
    assert found["Sec. 3.3 text", "SCD-BERT", "STS-B margin over SimCSE-BERT"].place is None


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("scd", 232),
        ("noncontrastive", 652),
        ("declutr", 367),
        ("self-guided", 37),
        ("cropping", 73),
        ("simcse", 390),
    ],
)
def test_every_number_has_one_source(name, count):
    found = find_sources(definition.load(name), [])
    assert len(found) == count
    assert Counter(bool(s.reason) != bool(s.file) for s in found) == {True: count}
