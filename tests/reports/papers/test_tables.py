"""The tables and pages of the papers' reports, and the library of all runs behind them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from harness.results.record import Missing
from harness.results.store import RunFolder
from harness.runs.experiment import read_experiment
from harness.runs.selection import select_part
from reports.build import build_report
from reports.document.blocks import MARK
from reports.document.table import MINUS, Table
from reports.papers import definition
from reports.papers.paper_results import PaperResults
from reports.papers.paper_tables import paper_table
from reports.papers.published_lines import source_note
from tests.support import invented_runs as made
from tests.support.errors import raises_input_error
from tests.support.invented_runs import read_papers_library as read_library

SCD = made.recipe("scd")
MINI = "embedded:mini-bert"


def geometry(alignment: float, uniformity: float) -> list:
    rest = {"aggregation": "", "suite": "geometry", "split": "all", "scale": 1}
    return [
        made.score("geometry:STS-B", alignment, "alignment", **rest),
        made.score("geometry:STS-B", uniformity, "uniformity", **rest),
    ]


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """Two base models, a study, a collapsed row, a damaged record."""
    workdir = tmp_path_factory.mktemp("work")
    made.run(
        workdir,
        "pooling",
        {"pooling": "cls"},
        row="cls",
        base=MINI,
        supervision="untrained",
        scores=made.sts(37) + geometry(0.14, -1.03),
    )
    for seed in (1, 2, 3):
        for base, value in ((MINI, 40), ("google-bert/bert-base-uncased", 73)):
            made.run(
                workdir,
                "scd",
                SCD,
                seed,
                row="SCD",
                base=base,
                corpus=made.WIKI,
                scores=made.sts(value + seed) + geometry(0.3 + seed / 100, -2),
            )
        made.run(
            workdir,
            "scd",
            {**SCD, "terms": "decorrelation"},
            seed,
            base=MINI,
            corpus=made.WIKI,
            status="collapsed",
        )
        made.run(
            workdir,
            "declutr",
            {"objective": "both", "anchors": seed, "temperature": 0.05},
            1,
            base=MINI,
            row=f"A {seed}",
            scores=made.sts(45 + seed, aggregation="mean")[:5] + made.sts(45 + seed)[5:],
        )
    trials = []
    for i, value in enumerate((0.70, 0.74, 0.76, 0.60)):
        config = made.recipe(
            "barlow_twins", view="dropout", dropout=0.05, learning_rate=1e-5 * (i + 1)
        )
        record = made.run(
            workdir,
            "barlow_twins",
            config,
            corpus=made.WIKI,
            comparison="bt",
            dev={"task": "STS-B", "source": "senteval"},
        )
        trials.append((value, "COMPLETE" if i < 3 else "PRUNED", record.id))
    made.store_study(workdir, "bt", trials)
    damaged = RunFolder(workdir, "feedfeedfeed")
    damaged.path.mkdir(parents=True)
    damaged.record_file.write_text("{")
    return workdir


def table(workdir: Path, name: str, key: str) -> Table:
    paper = PaperResults(definition.load(name), read_library(workdir))
    return paper_table(paper, next(t for t in paper.definition.tables if t.key == key))[0]


# --- the library
# ------------------------------------------------------------------------------------------------------


def test_rows_are_found_by_method_and_configuration(work):
    library = read_library(work)
    assert [len(r.records) for r in library.find("scd", {"terms": "both"})] == [3, 3]
    assert len(library.find("scd", {"terms": ["both", "decorrelation"]})) == 3
    assert len(library.find("declutr", {"anchors": 2})) == 1
    assert len(library.find("scd", {"corpus.uri": "wiki*"})) == 3
    assert not library.find("scd", {"corpus.uri": "nli"})
    assert len(library.warnings) == 1
    assert "feedfeedfeed" in library.warnings[0]


def test_unlike_text_or_length_of_training_are_unlike_rows(tmp_path):
    for count, steps in ((10, 5), (20, 5), (20, 7)):
        made.run(
            tmp_path,
            "scd",
            SCD,
            corpus={**made.WIKI, "sha256": str(count)},
            training={"planned_steps": steps},
        )
    assert len(read_library(tmp_path).find("scd")) == 3


def test_a_run_that_failed_early_stays_with_its_row(tmp_path):
    made.run(tmp_path, "scd", SCD, 1, corpus=made.WIKI, training={"planned_steps": 5})
    made.run(tmp_path, "scd", SCD, 2, status="failed")
    assert [r.status for r in read_library(tmp_path).rows[0].records] == ["finished", "failed"]


# --- tables
# -----------------------------------------------------------------------------------------------------------


def test_our_rows_are_above_the_published_ones_in_the_same_columns(work):
    shown = table(work, "scd", "table-1")
    blocks = {block: [row.cells[0].text for row in rows] for block, rows in shown.blocks()}
    assert list(blocks) == [
        "bert-base-uncased · measured here",
        "mini-bert · measured here",
        "other models · measured here",
        "other models · published",
        "bert-base · published",
        "roberta-base · published",
    ]
    assert blocks["mini-bert · measured here"] == [
        "[CLS]",
        "first-last average",
        "flow",
        "whitening",
        "IS-BERT",
        "CT",
        "SimCSE",
        "SCD",
    ]
    assert blocks["other models · measured here"] == ["GloVe, average"]
    assert blocks["bert-base · published"][-2:] == ["SimCSE-BERT (unsup)", "SCD-BERT"]
    row = next(
        r for r in shown.rows if r.block.startswith("mini-bert") and r.cells[0].text == "SCD"
    )
    average = row.cells[-1]
    assert (average.text, average.spread, average.n, average.rank) == ("42.00", "± 1.00", 3, 1)
    assert len(average.records) == 3
    assert row.cells[0].link


def test_collapsed_and_missing_are_different_states(work):
    rows = [r for r in table(work, "scd", "table-3").rows if r.block == "mini-bert · measured here"]
    assert [(r.cells[0].text, r.cells[2].state) for r in rows] == [
        ("[CLS]", "value"),
        ("self-contrast alone", "missing"),
        ("decorrelation alone", "collapsed"),
        ("both terms", "value"),
    ]
    row = next(r for r in table(work, "declutr", "table-1").rows if r.cells[0].text == "DeCLUTR")
    assert row.cells[2].state == "missing"
    assert any("incomplete" in note for note in row.cells[2].notes)


def test_differences_of_published_rows_come_from_printed_numbers(work):
    rows = {r.cells[0].text: r for r in table(work, "scd", "table-3").rows}
    assert rows["SCD (L_S only)"].cells[3].text == f"{MINUS}38.26"  # 35.70 - 73.96
    assert rows["SCD (L_S + L_C)"].cells[3].state == "empty"


def test_repaired_and_doubtful_cells_carry_their_note(work):
    rows = {r.cells[0].text: r for r in table(work, "scd", "table-2").rows}
    assert any("implausible" in note for note in rows["SCD-BERT"].cells[1].notes)
    mteb = table(work, "noncontrastive", "table-4")
    illegible = [c for row in mteb.rows for c in row.cells if c.text == "illegible"]
    assert (len(illegible), len(mteb.rows)) == (6, 56)
    assert all(c.notes for c in illegible)


def test_source_marks():
    assert source_note("club: Reimers & Gurevych 2019") == "♣ Reimers & Gurevych 2019"
    assert "*" in source_note("own (*)")
    assert source_note("own") == ""
    assert source_note("paper copy").endswith("copy of the paper's text.")


def test_augmentations_come_from_the_studies_runs(work):
    row = table(work, "noncontrastive", "table-1").rows[0]
    # 70, 74, 76: the pruned trial does not count; upper quartile by linear interpolation
    assert [c.text for c in row.cells] == [
        "Barlow Twins, dropout 0.05",
        "3 runs",
        "76.0",
        "75.0",
        "74.0",
    ]
    numbers = PaperResults(definition.load("noncontrastive"), read_library(work)).numbers
    one = next(one for one in numbers if one.measured.by_seed)
    assert (one.published["model"], one.verdict.kind) == (
        "Barlow Twins | dropout p_do=0.05",
        "one seed",
    )


def ablation(workdir: Path, *runs: tuple[str, float, int, int]) -> dict[str, list]:
    """Cells of SCD's Table 3 by row, of runs (terms, value, entries of the text, steps) with two
    seeds each.
    """
    for terms, value, entries, steps in runs:
        for seed in (1, 2):
            made.run(
                workdir,
                "scd",
                {**SCD, "terms": terms},
                seed,
                base=MINI,
                scores=made.sts(value),
                corpus={"uri": "x", "count": entries, "sha256": str(entries)},
                training={"planned_steps": steps},
            )
    rows = table(workdir, "scd", "table-3").rows
    return {row.cells[0].text: list(row.cells[2:]) for row in rows if "measured" in row.block}


def texts(cells: list) -> list[str]:
    return [cell.text for cell in cells]


def test_differences_are_between_rows_trained_alike(tmp_path):
    cells = ablation(
        tmp_path,
        ("both", 50, 10_000, 157),
        ("both", 40, 4000, 63),
        ("both", 45, 4000, 20),
        ("decorrelation", 42, 4000, 63),
        ("self_contrast", 30, 4000, 63),
    )
    assert texts(cells["both terms"][::2]) == ["50.00"] * 3
    assert texts(cells["decorrelation alone"]) == ["42.00", "+2.00"] * 3
    assert texts(cells["self-contrast alone"]) == ["30.00", f"{MINUS}10.00"] * 3


def test_no_difference_to_a_row_trained_on_more(tmp_path):
    cells = ablation(tmp_path, ("both", 50, 10_000, 157), ("decorrelation", 42, 4000, 63))
    assert texts(cells["decorrelation alone"]) == ["42.00", "n/a"] * 3
    assert cells["both terms"][0].text == "50.00"


def test_a_difference_to_a_row_that_is_not_shown_has_a_note(tmp_path):
    """Each training has as many rows as the other: more text is shown, and 4,000 entries keep their
    own reference.
    """
    runs = ("both", 40, 4000, 63), ("self_contrast", 30, 4000, 63), ("both", 50, 10_000, 157)
    cells = ablation(tmp_path, *runs, ("decorrelation", 42, 10_000, 157))
    assert cells["both terms"][0].text == "50.00"
    assert texts(cells["decorrelation alone"][:2]) == ["42.00", f"{MINUS}8.00"]
    assert texts(cells["self-contrast alone"][:2]) == ["30.00", f"{MINUS}10.00"]
    assert cells["decorrelation alone"][1].notes == ()
    assert len(cells["self-contrast alone"][1].notes) == 1


def test_a_run_without_a_seed_is_compared_with_every_run_of_the_reference(tmp_path):
    for seed, value in ((1, 40), (2, 44)):
        made.run(tmp_path, "scd", SCD, seed, scores=made.sts(value), base=MINI)
    made.run(
        tmp_path,
        "pooling",
        {"pooling": "cls"},
        scores=made.sts(37),
        base=MINI,
        supervision="untrained",
    )
    row = next(r for r in table(tmp_path, "scd", "table-3").rows if r.cells[0].text == "[CLS]")
    assert (row.cells[3].value, row.cells[3].n) == (pytest.approx(-5), 2)


def test_best_and_worst_layer_of_the_untrained_models(tmp_path):
    scores = {"0:cls": 1, "0:max": 30, "1:cls": 20, "1:max": 49.5, "2:cls": 25, "2:max": 48}
    for method, config, supervision, shift in (
        ("pooling", {"pooling": "cls"}, "untrained", 0),
        ("scd", SCD, "", 10),
    ):
        made.run(
            tmp_path,
            method,
            config,
            base=MINI,
            supervision=supervision or "unsupervised",
            scores=[
                made.score(f"STS-B@layer:{k}", v + shift, suite="layers") for k, v in scores.items()
            ],
        )
    made.run(
        tmp_path,
        "pooling",
        {"pooling": "mean"},
        base="other",
        supervision="untrained",
        scores=[made.score("STS-B@layer:1:max", math.nan, suite="layers")],
    )
    shown = table(tmp_path, "self-guided", "layers").rows
    assert [texts(row.cells) for row in shown if "measured here" in row.block] == [
        ["best of 5: max of layer 1", "1", "49.50"],
        ["worst of 5: [CLS] of layer 1", "1", "20.00"],
    ]


# --- rehearsals
# -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory) -> Path:
    """SCD by its mini preset on stand-ins for base model and text, a row that failed and one
    without its data.
    """
    work = tmp_path_factory.mktemp("rehearsal")
    text = {"uri": "embedded:sentences", "kind": "sentences", "count": 512, "sha256": "cc"}
    rest = {"most_sentences": 2000, "base": MINI}
    made.run(
        work,
        "scd",
        made.recipe("scd", "mini", "mini"),
        row="SCD",
        scores=made.sts(40),
        corpus=text,
        **rest,
    )
    made.run(
        work,
        "static",
        made.recipe("static", vectors="glove.txt"),
        row="GloVe",
        status="failed",
        supervision="untrained",
        most_sentences=2000,
        base="glove.txt",
    )
    made.run(
        work,
        "pooling",
        {"pooling": "cls"},
        row="cls",
        scores=made.sts(30),
        supervision="untrained",
        missing={"MR": Missing("data", "the hub cannot be reached")},
        **rest,
    )
    made.run(
        work,
        "pooling",
        {"pooling": "mean"},
        row="mean",
        scores=made.sts(45),
        supervision="untrained",
        **rest,
    )
    return work


@pytest.mark.parametrize("name", definition.names())
def test_every_row_of_every_table_has_a_line_of_ours_with_a_number_or_the_reason(rehearsed, name):
    paper = PaperResults(definition.load(name), read_library(rehearsed))
    for spec in paper.definition.tables:
        if not spec.columns or len(paper.columns(spec)) > 20:
            continue
        shown, _ = paper_table(paper, spec)
        if shown is None:
            assert not spec.published
            continue
        lines = {
            r.cells[0].text.partition(" (glove")[0]: r
            for r in shown.rows
            if "published" not in r.block
        }
        for row in spec.rows:
            if paper.numbers_of(spec, row):
                cells = {
                    c.key: cell
                    for c, cell in zip(shown.columns, lines[row.label].cells, strict=True)
                }
                runs = cells.pop("seeds", None)
                absent = [c for c in cells.values() if c.state in ("missing", "failed")]
                assert absent or any(c.state == "value" for c in cells.values()), row.label
                if runs is None or runs.state == "empty":
                    assert absent
                    assert all(c.notes for c in absent), row.label


def test_the_reason_of_missing_data_is_that_of_the_records(rehearsed):
    line = next(r for r in table(rehearsed, "scd", "table-2").rows if r.cells[0].text == "[CLS]")
    assert line.block == "mini-bert · rehearsal"
    assert "the hub cannot be reached" in line.cells[2].notes[0].lower()


def test_weights_that_a_rehearsal_could_not_have_are_those_of_their_own_row_alone(tmp_path):
    for row, weights in (
        ("SBERT", "sentence-transformers/bert-base-nli-mean-tokens"),
        ("SRoBERTa", "sentence-transformers/roberta-base-nli-mean-tokens"),
    ):
        made.run(
            tmp_path,
            "pretrained",
            made.recipe("pretrained", "sbert-nli", model=weights),
            row=row,
            status="failed",
            most_sentences=2000,
            base=weights,
        )
    lines = [r for r in table(tmp_path, "simcse", "table-5").rows if "rehearsal" in r.block]
    named = [
        r.cells[0].text for r in lines if r.cells[0].text.startswith(("SBERT (", "SRoBERTa ("))
    ]
    assert named == [
        "SBERT (bert-base-nli-mean-tokens)",
        "SRoBERTa (roberta-base-nli-mean-tokens)",
    ]


def test_scores_of_a_rehearsal_have_no_best(rehearsed):
    lines = [r for r in table(rehearsed, "scd", "table-1").rows if "rehearsal" in r.block]
    assert lines
    assert not any(cell.rank for line in lines for cell in line.cells)


def test_every_table_of_a_report_with_rehearsals_is_marked(rehearsed, tmp_path):
    made.write_paper_comparisons(rehearsed)
    for name in ("scd", "invented"):
        data = json.loads(build_report(name, rehearsed, out=tmp_path / name)["json"].read_text())
        assert data["rehearsal"] is True
        assert all(t["title"].endswith(MARK) for t in data["tables"].values())
    joined = (tmp_path / "scd" / "tables" / "joined.csv").read_text().splitlines()
    assert all(line.endswith(",rehearsal") for line in joined[1:])


# --- pages and the command
# --------------------------------------------------------------------------------------------


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


@pytest.fixture(scope="module")
def built(work, tmp_path_factory) -> dict[str, dict[str, Path]]:
    out = tmp_path_factory.mktemp("out")
    made.write_paper_comparisons(work)
    return {name: build_report(name, work, out=out / name) for name in definition.names()}


@pytest.mark.parametrize("name", definition.names())
def test_a_report_is_whole_and_rebuilds_to_the_byte(name, built, work, tmp_path):
    folder = built[name]["html"].parent
    build_report(name, work, out=tmp_path / name)
    assert files(tmp_path / name) == files(folder)
    data = json.loads(built[name]["json"].read_text())
    defined = definition.load(name)
    with_numbers = {t.key for t in defined.tables if t.published}
    assert set(data["tables"]) >= with_numbers
    assert len(data["joined"]) == len(defined.published_rows())
    page = built[name]["html"].read_text()
    assert len(page.encode()) < 3_000_000
    assert "feedfeedfeed" in page  # the damaged record is a warning, not the end
    assert MARK not in page


def test_figures_of_the_papers_are_drawn_from_runs(built):
    assert (built["scd"]["html"].parent / "figures" / "alignment-uniformity.svg").exists()
    assert (built["declutr"]["html"].parent / "figures" / "figure-2.svg").exists()
    text = built["declutr"]["md"].read_text()
    for figure in ("figure-3", "figure-s1"):
        assert f"harness compare declutr --only {figure} --workdir WORKDIR" in text


def test_what_is_missing_comes_with_the_command_that_measures_it(built):
    commands = set(
        re.findall(
            r"harness compare \S+(?: --only \S+)? --workdir WORKDIR", built["scd"]["md"].read_text()
        )
    )
    assert "harness compare scd --only table-3 --workdir WORKDIR" in commands
    for command in commands:
        _, _, file, _, part, *_ = command.split()
        assert select_part(read_experiment(file), [part]).methods
    assert "harness study run barlow-twins-shuffle" in built["noncontrastive"]["md"].read_text()


def test_an_empty_work_directory_still_shows_the_paper(tmp_path):
    data = json.loads(build_report("scd", tmp_path, out=tmp_path / "out")["json"].read_text())
    assert {one["verdict"] for one in data["joined"]} == {"not measured"}
    assert data["tables"]["table-1"]["rows"]


def test_names_are_papers_then_comparisons_and_unknown_ones_are_refused(work, tmp_path):
    assert build_report("invented", work, out=tmp_path)["json"].exists()
    with raises_input_error(file=work):
        build_report("scdd", work)
