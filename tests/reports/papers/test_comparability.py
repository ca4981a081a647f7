"""What keeps a run from being held against a paper: its recipe, its text, that it is a rehearsal; and what does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reports.build import build_report
from reports.document.rehearsal import MARK
from reports.papers import definition
from reports.papers.definition import Data
from reports.papers.matching import MatchedNumber, Matching
from reports.papers.paper_tables import paper_table
from reports.papers.recipes import shown
from reports.read.run_library import read_library
from tests.support import invented_runs as made

SCD = made.recipe("scd")
MINI = "embedded:mini-bert"


def number(workdir: Path, name: str = "scd", **keys: str) -> MatchedNumber:
    wanted = {"table": "Table 1", "model": "SCD-BERT", "task": "STS-B", **keys}
    rows = Matching(definition.load(name), read_library(workdir)).rows
    found = [j for j in rows if wanted.items() <= j.published.items()]
    assert len(found) == 1
    return found[0]


def scd(workdir: Path, corpus: dict | None = None, **values: object) -> MatchedNumber:
    for seed in (1, 2, 3):
        more = {key: values.pop(key) for key in ("identity", "training") if key in values}
        made.run(
            workdir, "scd", {**SCD, **values}, seed, scores=made.sts(75 + seed), corpus=corpus or made.WIKI, **more
        )
    return number(workdir)


# --- recipes ----------------------------------------------------------------------------------------------------------


def test_a_run_that_differs_in_stated_values_is_another_recipe_and_says_in_which(tmp_path):
    projector = SCD["projector"]
    j = scd(tmp_path, learning_rate=3e-4, batch_size=64, projector=[1024, 1024, 1024])
    assert j.verdict.kind == "not comparable"
    assert j.verdict.text == (
        f"not comparable: other recipe: learning_rate 3e-4 instead of 3e-5, batch_size 64 instead of 192, "
        f"projector 1024 x 1024 x 1024 instead of {' x '.join(map(str, projector))}"
    )
    assert j.difference is None
    assert j.ours.values == pytest.approx([76, 77, 78])


def test_how_often_the_dev_set_is_scored_is_told_and_keeps_nothing_apart(tmp_path):
    j = scd(tmp_path, eval_every=50)
    assert j.verdict.kind == "inside"
    assert j.remarks == (f"scored on the dev set every 50 updates instead of {SCD['eval_every']}",)
    head = next(r for r in table(tmp_path, "scd", "table-1").rows if r.cells[0].text == "SCD").cells[0]
    assert head.notes == j.remarks


def test_a_run_that_was_cut_short_is_another_recipe(tmp_path):
    for seed in (1, 2):
        made.run(tmp_path, "scd", SCD, seed, scores=made.sts(75), corpus=made.WIKI, identity={"max_steps": 1000},
                 training={"planned_steps": 1000})  # fmt: skip
    assert number(tmp_path).verdict.text == "not comparable: other recipe: stopped after 1,000 updates"


def test_a_bound_that_was_not_reached_cuts_nothing(tmp_path):
    for seed in (1, 2):
        made.run(tmp_path, "scd", SCD, seed, scores=made.sts(75 + seed), corpus=made.WIKI,
                 identity={"max_steps": 100_000}, training={"planned_steps": 5208})  # fmt: skip
    assert number(tmp_path).verdict.kind == "inside"


def test_values_that_the_paper_searched_and_options_without_effect_are_free(tmp_path):
    config = made.recipe("vicreg", "paper-shuffle", learning_rate=5e-5, covariance_weight=0.02, dropout=0.3)
    scores = [made.score("geometry:STS-B", 0.2, "alignment", "", suite="geometry", split="all", scale=1)]
    for seed in (1, 2):
        made.run(tmp_path, "vicreg", config, seed, scores=scores, corpus=made.WIKI)
    keys = {"table": "Table 2", "model": "VICReg (p_shuffle=0.5)", "base_model": "bert-base", "task": "l_align"}
    j = number(tmp_path, "noncontrastive", **keys)
    assert [o.what for o in j.verdict.obstacles] == ["protocol"]  # the pair set, which the paper does not state
    made.run(tmp_path / "more", "vicreg", {**config, "batch_size": 64}, 1, scores=scores, corpus=made.WIKI)
    assert "batch_size 64 instead of 256" in number(tmp_path / "more", "noncontrastive", **keys).verdict.text


def test_the_run_by_the_papers_recipe_goes_before_one_with_more_seeds(tmp_path):
    for seed in range(1, 6):
        made.run(tmp_path, "scd", {**SCD, "learning_rate": 1e-3}, seed, scores=made.sts(30), corpus=made.WIKI)
    for seed in (1, 2):
        made.run(tmp_path, "scd", SCD, seed, scores=made.sts(75 + seed), corpus=made.WIKI)
    assert number(tmp_path).ours.values == pytest.approx([76, 77])
    assert number(tmp_path).verdict.kind == "inside"


def test_a_difference_to_a_row_of_another_recipe_is_not_comparable(tmp_path):
    text = {"uri": "stsb-sentences", "kind": "sentences", "count": 17_256, "sha256": "aa"}
    for seed in (1, 2):
        for objective, rate in (("opt3", 1e-3), ("opt2", 5e-5)):
            config = made.recipe("self_guided", objective=objective, learning_rate=rate)
            made.run(tmp_path, "self_guided", config, seed, scores=made.sts(70 + seed), corpus=text)
    keys = {"table": "Ablation table", "model": "L_opt2 (single sampled view)"}
    delta = number(tmp_path, "self-guided", task="STS Avg. delta to SG-OPT", **keys)
    assert "other recipe: learning_rate 0.001 instead of 5e-5" in delta.verdict.text
    assert number(tmp_path, "self-guided", task="STS Avg. (all STS test sets)", **keys).verdict.kind == "inside"


@pytest.mark.parametrize(
    ("value", "text"),
    [(3e-5, "3e-5"), (0.005225, "0.005225"), (2.5e-4, "2.5e-4"), (1.0, "1"), (64, "64"), (None, "none"), (True, "on"),
     ([4096, 4096], "4096 x 4096"), (0.0, "0")],
)  # fmt: skip
def test_values_are_shown_in_as_few_digits_as_tell_them(value, text):
    assert shown(value) == text


@pytest.mark.parametrize("name", definition.names())
def test_every_published_row_of_a_trained_method_states_a_recipe(name, tmp_path):
    """And the recipe is there for each base model that the paper has the row for."""
    matching = Matching(definition.load(name), read_library(tmp_path))
    from reports.papers.recipes import stated

    for j in matching.rows:
        if j.place is not None and j.place.row.method not in ("", "pooling", "pretrained"):
            assert stated(j.place.row, matching.definition.family(j.published["base_model"])), j.place.row.label


# --- texts ------------------------------------------------------------------------------------------------------------


def test_two_sentences_fewer_are_a_remark_and_a_tenth_fewer_another_text(tmp_path):
    j = scd(tmp_path / "a", {**made.WIKI, "count": 999_998})
    assert (j.verdict.kind, j.remarks) == ("inside", ("trained on 999,998 of 1,000,000 entries",))
    j = scd(tmp_path / "b", {**made.WIKI, "count": 900_000})
    assert j.verdict.text == "not comparable: other training data (900,000 of 1,000,000)"


@pytest.mark.parametrize("uri", ["/data/sts/wiki1m.txt", "wiki1m_for_simcse.txt", "hf://datasets/me/wiki1m/wiki1m.txt"])
def test_a_text_is_not_known_by_a_part_of_its_path(tmp_path, uri):
    assert "other training data" in scd(tmp_path, {**made.WIKI, "uri": uri}).verdict.text


@pytest.mark.parametrize(
    "text",
    [
        {"uri": "hf://datasets/princeton-nlp/datasets-for-simcse@b96a9a6/wiki1m_for_simcse.txt"},
        {"uri": "hf://datasets/x/y/z.txt", "name": "wiki1m"},
    ],
)
def test_a_revision_and_the_catalogues_name_are_the_same_text(tmp_path, text):
    assert scd(tmp_path, {**made.WIKI, **text}).verdict.kind == "inside"


def test_equal_content_is_the_same_text_by_any_name(tmp_path):
    from reports.papers.training_text import difference

    wanted = Data(text="t", uris=["wiki1m"], count=10, sha256=["ab" * 32])
    record = made.run(tmp_path, "scd", SCD, corpus={**made.WIKI, "uri": "my copy.txt"})
    assert difference(wanted, record) == ""
    assert "my copy.txt" in difference(wanted.model_copy(update={"sha256": []}), record)


def test_a_pattern_is_no_name_of_a_text():
    with pytest.raises(ValueError, match="is a pattern; name the text"):
        Data(text="STS", uris=["*sts*"])


def test_a_folders_name_is_no_row(tmp_path):
    """Vectors below a folder "glove" are not GloVe's."""
    for vectors in ("glove/crawl-300d-2M.vec", "crawl/glove.840B.300d.txt"):
        config = made.recipe("static", vectors=vectors)
        made.run(tmp_path, "static", config, scores=made.sts(55), base=vectors, supervision="untrained")
    j = number(tmp_path, model="GloVe embeddings (avg.)")
    assert j.row.base_model == "crawl/glove.840B.300d.txt"
    assert j.verdict.kind in ("inside", "above", "below")


# --- rehearsals -------------------------------------------------------------------------------------------------------


def table(workdir: Path, name: str, key: str):
    matching = Matching(definition.load(name), read_library(workdir))
    return paper_table(matching, next(t for t in matching.definition.tables if t.key == key)).table


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory) -> Path:
    """SCD by its mini recipe on stand-ins for base model and text, a row that failed and one without its data."""
    work = tmp_path_factory.mktemp("rehearsal")
    text = {"uri": "embedded:sentences", "kind": "sentences", "count": 512, "sha256": "cc"}
    rest = {"rehearsal": True, "base": MINI}
    made.run(work, "scd", made.recipe("scd", "mini", "mini"), row="SCD", scores=made.sts(40), corpus=text, **rest)
    made.run(work, "static", made.recipe("static", vectors="glove.txt"), row="GloVe", status="failed",
             supervision="untrained", rehearsal=True, base="glove.txt")  # fmt: skip
    made.run(work, "pooling", {"pooling": "cls"}, row="cls", scores=made.sts(30), supervision="untrained",
             missing={"MR": "the hub cannot be reached"}, **rest)  # fmt: skip
    made.run(work, "pooling", {"pooling": "mean"}, row="mean", scores=made.sts(45), supervision="untrained", **rest)
    return work


def test_a_rehearsal_joins_no_published_number(rehearsed):
    rows = Matching(definition.load("scd"), read_library(rehearsed)).rows
    assert {j.verdict.kind for j in rows} == {"not measured"}
    assert not any(j.ours.by_seed for j in rows)
    assert number(rehearsed).verdict.text == "not measured: rehearsed only"


def test_a_run_goes_before_a_rehearsal_of_it(rehearsed, tmp_path):
    made.run(tmp_path, "scd", SCD, scores=made.sts(40), corpus=made.WIKI, base=MINI, rehearsal=True)
    made.run(tmp_path, "scd", SCD, 2, scores=made.sts(60), corpus=made.WIKI, base=MINI)
    row = next(r for r in table(tmp_path, "scd", "table-1").rows if r.cells[0].text == "SCD")
    assert (row.block, row.cells[2].text) == ("mini-bert · measured here", "60.00")
    assert number(tmp_path).ours.by_seed == pytest.approx({2: 60})


@pytest.mark.parametrize("name", definition.names())
def test_every_row_of_every_table_has_a_line_of_ours_with_a_number_or_the_reason(rehearsed, name):
    """Of SCD's report; of the papers that the work directory has one untrained model of, too."""
    matching = Matching(definition.load(name), read_library(rehearsed))
    for spec in matching.definition.tables:
        if spec.kind == "spaces" or spec.transposed:
            continue
        shown = paper_table(matching, spec).table
        lines = [r for r in shown.rows if "published" not in r.block]
        by_label = {r.cells[0].text.partition(" (glove")[0]: r for r in lines}
        for row in spec.rows:
            if row.published:
                cells = {c.key: cell for c, cell in zip(shown.columns, by_label[row.label].cells, strict=True)}
                runs = cells.pop("seeds", None)
                absent = [c for c in cells.values() if c.state in ("missing", "failed")]
                assert absent or any(c.state == "value" for c in cells.values()), row.label
                if runs is None or runs.state == "empty":
                    assert absent
                    assert all(c.notes for c in absent), row.label


def test_what_the_records_say_of_missing_data_is_the_reason(rehearsed):
    lines = [r for r in table(rehearsed, "scd", "table-2").rows if r.cells[0].text == "[CLS]"]
    assert lines[0].block == "mini-bert · rehearsal"
    assert lines[0].cells[2].notes == ("the hub cannot be reached",)


def test_every_table_of_a_report_with_rehearsals_is_marked(rehearsed, tmp_path):
    written = build_report("scd", rehearsed, out=tmp_path)
    data = json.loads(written["json"].read_text())
    assert data["rehearsal"] is True
    assert all(t["title"].endswith(MARK) for t in data["tables"].values())
    titles = len(data["tables"])
    for kind in ("html", "md", "latex"):
        path = written[kind]
        text = path.read_text() if path.is_file() else ""
        assert text.count("join none of a paper") >= titles, kind
    joined = (tmp_path / "tables" / "joined.csv").read_text().splitlines()
    assert joined[0].endswith(",report")
    assert all(line.endswith(",rehearsal") for line in joined[1:])


def test_a_comparison_of_rehearsals_is_marked(rehearsed, tmp_path):
    written = build_report("invented", rehearsed, out=tmp_path, formats=("md",))
    titles = [t["title"] for t in json.loads(written["json"].read_text())["tables"].values()]
    assert titles
    assert all(title.endswith(MARK) for title in titles)


def test_no_mark_without_rehearsals(tmp_path):
    made.run(tmp_path, "scd", SCD, scores=made.sts(60), corpus=made.WIKI)
    assert MARK not in build_report("scd", tmp_path, out=tmp_path / "out", formats=("md",))["md"].read_text()
