"""SimCSE's paper at full size: runs of every row of its file, with invented scores, get the verdicts
that the intervals give by hand.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.runs.experiment import read_experiment
from harness.runs.rows import Row, resolve_rows
from reports.document.blocks import Text
from reports.papers import definition, paper_document
from reports.papers.paper_results import Match, PaperResults
from reports.papers.paper_tables import paper_table
from reports.records.run_library import read_library
from tests.support import invented_runs as made
from tests.support.configurations import know_base_models

MEAN = 75.0
# Three seeds one point apart: t(2; 0.975) = 4.30265 times sqrt(1 + 1/3).
HALF = 4.96827
# Entries of the public texts; the labelled pairs have two sentences each.
COUNTS = {
    ("wiki1m", "sentences"): 1_000_000,
    ("nli", "pairs"): 275_601,
    ("nli-labelled", "pairs"): 942_069,
    ("nli-labelled", "sentences"): 1_884_138,
    ("openwebtext", "documents"): 25_000,
}
NOT_TO_BE_HAD = {
    "CT-BERT",
    "CT-SBERT",
    "Skip-thought",
    "sup SimCSE | contradiction + neutral, alpha=1.0",
}


def scores_of(value: float) -> list[Any]:
    transfer = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
    accuracy = {"metric": "accuracy", "aggregation": "", "suite": "transfer"}
    return [
        *made.sts(value),
        *[made.score(task, value, aggregation="wmean") for task in made.STS[:5]],
        made.score("STS-B-dev", value, split="dev"),
        *[made.score(task, value, **accuracy) for task in transfer],
    ]


def write_runs(workdir: Path, row: Row) -> None:
    """Write a run for each seed of a row; one for a row without any."""
    corpus: dict[str, Any] | None = None
    if row.corpus is not None:
        corpus = row.corpus.model_dump(mode="json", exclude_none=True)
        corpus |= {"count": COUNTS[row.corpus.uri, row.corpus.kind], "sha256": "ab" * 32}
    seeds = list(row.seeds)
    if row.instance.deterministic:
        seeds = seeds[:1]
    for place, seed in enumerate(seeds, start=-1 if len(seeds) > 1 else 0):
        made.run(
            workdir,
            row.method.name,
            row.config.model_dump(mode="json"),
            seed,
            row=row.label,
            base=row.start_model,
            corpus=corpus,
            scores=scores_of(MEAN + place),
            supervision=row.instance.supervision,
            max_steps=row.max_steps,
            deterministic=row.instance.deterministic,
        )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> PaperResults:
    workdir = tmp_path_factory.mktemp("work")
    with pytest.MonkeyPatch.context() as patch:
        know_base_models(patch)
        for row in resolve_rows(read_experiment("simcse"), "simcse"):
            write_runs(workdir, row)
    made.write_paper_comparisons(workdir)
    return PaperResults(definition.load("simcse"), read_library(workdir))


def expect(match: Match, half: float) -> str:
    assert match.value is not None
    if match.value > MEAN + half:
        return "above"
    if match.value < MEAN - half:
        return "below"
    return "inside"


def test_every_number_has_the_verdict_of_its_interval(results: PaperResults) -> None:
    kinds = Counter[str]()
    for match in results.numbers:
        kind = match.verdict.kind
        kinds[kind] += 1
        if kind in ("inside", "above", "below"):
            assert match.ours is not None
            is_fixed = len(match.ours.records) == 1
            assert kind == expect(match, 0.05 if is_fixed else HALF), match.published
        else:
            assert match.published["model"] in NOT_TO_BE_HAD
    compared = kinds["inside"] + kinds["above"] + kinds["below"]
    # Two rows of CT and one of Skip-thought with eight numbers each, and one number of Table 7.
    assert (compared, kinds["not comparable"], kinds["not measured"]) == (365, 16, 9)
    assert min(kinds.values()) > 0


@pytest.mark.parametrize("key", ["next-sentence", "batch-rate", "mlm-weight", "course"])
def test_a_table_without_published_numbers_shows_ours_and_no_verdict(
    results: PaperResults, key: str
) -> None:
    table = next(one for one in results.definition.tables if one.key == key)
    assert not [match for match in results.numbers if match.published["table"] in table.published]
    shown, _ = paper_table(results, table)
    assert shown is not None
    assert {row.block for row in shown.rows} == {"bert-base-uncased · measured here"}
    assert len(shown.rows) == len(table.rows)
    states = {cell.state for row in shown.rows for cell in row.cells[2:]}
    assert "value" in states


def test_a_table_has_no_rows_on_base_models_that_the_paper_has_in_other_tables_alone(
    results: PaperResults,
) -> None:
    """Unsupervised SimCSE is a row of tables on three base models and of tables on BERT alone."""
    bases = {}
    for table in results.definition.tables:
        shown, _ = paper_table(results, table)
        assert shown is not None
        own = [row.block for row in shown.rows if row.block.endswith("measured here")]
        bases[table.key] = {block.partition(" · ")[0] for block in own} - {"other models"}
    alone = {"bert-base-uncased"}
    assert bases.pop("table-5") == alone | {"roberta-base", "roberta-large"}
    assert bases.pop("table-e1") == alone | {"roberta-base"}
    assert bases.pop("released") == set()
    assert set(map(frozenset, bases.values())) == {frozenset(alone)}


def test_a_row_of_batch_size_and_rate_has_the_paper_s_dropout_and_length(
    results: PaperResults,
) -> None:
    """Rows of other dropout rates and of 20 and 100 training steps have this batch size and rate too."""
    table = next(one for one in results.definition.tables if one.key == "batch-rate")
    for row in table.rows:
        (found, *_) = results.candidates(row)["google-bert/bert-base-uncased"]
        config = found.records[0].config
        assert (config["dropout"], config["max_steps"]) == (None, None), row.label


def test_what_cannot_be_measured_is_no_reason_for_a_command(results: PaperResults) -> None:
    document = paper_document.describe(results.definition, results.library)[0]
    texts = {}
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Text):
                texts[section.key] = block.items[0]
    assert texts["table-7"].startswith("1 of 5 published rows")
    assert "harness compare" not in texts["table-7"]
    assert "harness compare" not in texts["table-5"]
