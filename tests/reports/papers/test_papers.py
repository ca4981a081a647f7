"""The papers' reports: definitions, the library of all runs, the pages, the way back from a tracking store, speed."""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import time
from pathlib import Path

import pytest

from harness.comparison.experiment import read_experiment
from harness.comparison.part import part_of
from harness.errors import InputError
from harness.results.run_folder import RunFolder
from reports.build import build_report
from reports.document.table import MINUS
from reports.papers import definition, published_alignment
from reports.papers.matching import Matching
from reports.papers.paper_cells import source_note
from reports.papers.paper_tables import paper_table
from reports.read.run_library import read_library
from reports.report_command import register
from tests.support import invented_runs as made
from tests.support import synthetic

SCD = made.recipe("scd")


def geometry(alignment: float, uniformity: float) -> list:
    rest = {"aggregation": "", "suite": "geometry", "split": "all", "scale": 1}
    return [made.score("geometry:STS-B", alignment, "alignment", **rest),
            made.score("geometry:STS-B", uniformity, "uniformity", **rest)]  # fmt: skip


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Two base models, a study, a collapsed row, a damaged record."""
    workdir = tmp_path_factory.mktemp("work")
    mini = "embedded:mini-bert"
    made.run(workdir, "pooling", {"pooling": "cls"}, row="cls", base=mini, supervision="untrained",
             scores=made.sts(37) + geometry(0.14, -1.03))  # fmt: skip
    for seed in (1, 2, 3):
        for base, value in ((mini, 40), ("google-bert/bert-base-uncased", 73)):
            made.run(workdir, "scd", SCD, seed, row="SCD", base=base, corpus=made.WIKI,
                     scores=made.sts(value + seed) + geometry(0.3 + seed / 100, -2))  # fmt: skip
        made.run(workdir, "scd", {**SCD, "terms": "decorrelation"}, seed, base=mini, corpus=made.WIKI,
                 status="collapsed")  # fmt: skip
        made.run(workdir, "declutr", {"objective": "both", "anchors": seed, "temperature": 0.05}, 1, base=mini,
                 row=f"A {seed}", scores=made.sts(45 + seed, aggregation="mean")[:5]
                 + made.sts(45 + seed)[5:])  # fmt: skip
    trials = ["trial,dropout,STS-B dev,state,runs"]
    for i, value in enumerate((0.70, 0.74, 0.76, 0.60)):
        config = made.recipe("barlow_twins", view="dropout", dropout=0.05, learning_rate=1e-5 * (i + 1))
        record = made.run(workdir, "barlow_twins", config, corpus=made.WIKI, comparison="bt",
                          dev={"task": "STS-B", "source": "senteval"})  # fmt: skip
        trials.append(f"{i},0.05,{value},{'complete' if i < 3 else 'pruned'},{record.id}")
    folder = workdir / "studies" / "bt"
    folder.mkdir(parents=True)
    (folder / "trials.csv").write_text("\n".join(trials) + "\n")
    (folder / "summary.csv").write_text("category,max,q75,q50,scored trials\nall,76.0,75.0,74.0,3\n")
    damaged = RunFolder(workdir, "feedfeedfeed")
    damaged.path.mkdir(parents=True)
    damaged.record_file.write_text("{")
    return workdir


def table(workdir, name, key):
    matching = Matching(definition.load(name), read_library(workdir))
    return paper_table(matching, next(t for t in matching.definition.tables if t.key == key))


def blocks(filled):
    return {block: [row.cells[0].text for row in rows] for block, rows in filled.table.blocks()}


# --- definitions ------------------------------------------------------------------------------------------------------


def test_the_four_papers_are_there():
    assert definition.names() == ["declutr", "noncontrastive", "scd", "self-guided"]


USER = """
name = "mine"
title = "Mine"
paper = "me"
published = "mine.csv"
bases = { bert-base = ["google-bert/bert-base-uncased"] }
[[columns.c]]
title = "STS-B"
published = "STS-B"
task = "STS-B"
aggregation = "all"
[[tables]]
key = "t"
title = "T"
published = ["T 1"]
columns = "c"
headline = ["STS-B"]
rows = [{ label = "SCD", published = ["S"], method = "scd" }]
"""
HEAD = "paper,table,model,base_model,task,metric,value,source_mark,notes\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('columns = "c"', 'columns = "d"', 'no column set "d"'),
        ('task = "STS-B"', 'average = "stss"', 'unknown average "stss" (did you mean "sts"?)'),
        ('task = "STS-B"', 'task = "x"\ndelta = "STS-B"', "exclude each other"),
        ('key = "t"', 'key = "t"\nreference = "SCDD"', 'no row "SCDD" (did you mean "SCD"?)'),
        ('key = "t"', 'key = "t"\nfoo = 1', 'unknown key "tables.0.foo"'),
        ('title = "Mine"', "", 'key "title": is missing'),
        ('published = "mine.csv"', 'published = "mine.csv"\nfigures = ["layer"]', 'did you mean "layers"?'),
    ],
)
def test_a_wrong_definition_is_one_clear_line(tmp_path, old, new, said):
    file = tmp_path / "mine.toml"
    file.write_text(USER.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        definition.load(str(file))
    assert said in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_users_own_definition_with_its_own_numbers(tmp_path, work):
    evil = "<script>alert(1)</script> $x$ \\input{y}"
    (tmp_path / "mine.toml").write_text(USER.replace('"Mine"', json.dumps(evil)))
    cells = ["p", "T 1", "S", "bert-base", "STS-B", "m", "75.0", "", evil]
    with (tmp_path / "mine.csv").open("w", newline="") as stream:
        stream.write(HEAD)
        csv.writer(stream).writerow(cells)
    written = build_report(str(tmp_path / "mine.toml"), work, out=tmp_path / "out")
    page, tex = written["html"].read_text(), written["latex"].read_text()
    assert "<script>alert(1)" not in page
    assert "\\input{y}" not in tex
    data = json.loads(written["json"].read_text())
    assert [j["verdict"] for j in data["joined"]] == ["inside"]  # 74, 75, 76 measured
    assert data["joined"][0]["n"] == 3
    with pytest.raises(InputError, match="cannot be read"):
        build_report(str(tmp_path / "none.toml"), work)


# --- the library ------------------------------------------------------------------------------------------------------


def test_rows_are_found_by_method_and_configuration(work):
    library = read_library(work)
    assert [len(r.records) for r in library.find("scd", {"terms": "both"})] == [3, 3]
    assert [r.base_model for r in library.find("scd", {"terms": "both"}, "embedded:mini-bert")] == [
        "embedded:mini-bert"
    ]
    assert len(library.find("scd", {"terms": ["both", "decorrelation"]})) == 3
    assert len(library.find("declutr", {"anchors": 2})) == 1
    assert len(library.find("scd", {"corpus.uri": "wiki*"})) == 3
    assert not library.find("scd", {"corpus.uri": "nli"})
    assert len(library.warnings) == 1
    assert "feedfeedfeed" in library.warnings[0]


def test_unlike_text_or_length_of_training_are_unlike_rows(tmp_path):
    for count, steps in ((10, 5), (20, 5), (20, 7)):
        made.run(tmp_path, "scd", SCD, corpus={**made.WIKI, "sha256": str(count)}, training={"planned_steps": steps})
    assert len(read_library(tmp_path).find("scd")) == 3


def test_scores_of_earlier_runs_of_the_same_cell_are_kept(tmp_path):
    made.run(tmp_path, "scd", SCD, scores=[made.score("STS-B", 60), made.score("STS12", 50)], finished="2025-01-01")
    made.run(tmp_path, "scd", SCD, scores=[made.score("STS-B", 61)], finished="2025-02-01")
    library = read_library(tmp_path)
    assert len(library.rows) == 1
    record = library.rows[0].records[0]
    by_task = {s.task: (round(100 * s.value), r.id) for r, s in library.scores(record)}
    assert by_task == {"STS-B": (61, "000000000002"), "STS12": (50, "000000000001")}


def test_a_run_that_failed_early_stays_with_its_row(tmp_path):
    made.run(tmp_path, "scd", SCD, 1, corpus=made.WIKI, training={"planned_steps": 5})
    made.run(tmp_path, "scd", SCD, 2, status="failed")
    assert [r.status for r in read_library(tmp_path).rows[0].records] == ["finished", "failed"]


# --- tables -----------------------------------------------------------------------------------------------------------


def test_our_rows_stand_above_the_published_ones_in_the_same_columns(work):
    filled = table(work, "scd", "table-1")
    by_block = blocks(filled)
    assert list(by_block) == [
        "bert-base-uncased · measured here", "mini-bert · measured here", "other models · measured here",
        "other models · published", "bert-base · published", "roberta-base · published",
    ]  # fmt: skip
    assert by_block["mini-bert · measured here"] == [
        "[CLS]", "first-last average", "flow", "whitening", "IS-BERT", "CT", "SimCSE", "SCD",
    ]  # fmt: skip
    assert by_block["other models · measured here"] == ["GloVe, average"]
    assert by_block["bert-base · published"][-2:] == ["SimCSE-BERT (unsup)", "SCD-BERT"]
    row = next(r for r in filled.table.rows if r.block.startswith("mini-bert") and r.cells[0].text == "SCD")
    average = row.cells[-1]
    assert (average.text, average.spread, average.n, average.rank) == ("42.00", "± 1.00", 3, 1)
    assert len(average.records) == 3
    assert row.cells[0].link


def test_collapsed_and_missing_are_told_apart(work):
    rows = [r for r in table(work, "scd", "table-3").table.rows if r.block == "mini-bert · measured here"]
    assert [(r.cells[0].text, r.cells[2].state) for r in rows] == [
        ("[CLS]", "value"), ("self-contrast alone", "missing"), ("decorrelation alone", "collapsed"),
        ("both terms", "value"),
    ]  # fmt: skip
    declutr = table(work, "declutr", "table-1")
    row = next(r for r in declutr.table.rows if r.cells[0].text == "DeCLUTR")
    assert row.cells[2].text == "n/a"
    assert any("incomplete, no average: without" in note for note in row.cells[2].notes)


def test_deltas_of_published_rows_come_from_printed_numbers(work):
    rows = {r.cells[0].text: r for r in table(work, "scd", "table-3").table.rows}
    assert rows["SCD (L_S only)"].cells[3].text == f"{MINUS}38.26"  # 35.70 - 73.96
    assert rows["SCD (L_S + L_C)"].cells[3].text == "–"


def test_repaired_and_doubtful_cells_carry_their_note(work):
    rows = {r.cells[0].text: r for r in table(work, "scd", "table-2").table.rows}
    assert any("implausible" in note for note in rows["SCD-BERT"].cells[1].notes)
    mteb = table(work, "noncontrastive", "table-4").table
    illegible = [c for row in mteb.rows for c in row.cells if c.text == "illegible"]
    assert len(illegible) == 6
    assert all(c.notes for c in illegible)
    assert len(mteb.rows) == 56


def test_source_marks():
    assert source_note("club: Reimers & Gurevych 2019") == "♣ Reimers & Gurevych 2019"
    assert source_note("own (*)") == "own result, marked * in the paper"
    assert source_note("own") == ""


def test_augmentations_come_from_the_studies_runs(work):
    row = table(work, "noncontrastive", "table-1").table.rows[0]
    # 70, 74, 76: the pruned trial does not count; upper quartile by linear interpolation
    assert [c.text for c in row.cells] == ["Barlow Twins, dropout 0.05", "3 runs", "76.0", "75.0", "74.0"]
    j = next(j for j in Matching(definition.load("noncontrastive"), read_library(work)).rows if j.ours.by_seed)
    assert (j.published["model"], j.verdict.text) == (
        "Barlow Twins | dropout p_do=0.05", "one study: no interval",
    )  # fmt: skip


# --- pages ------------------------------------------------------------------------------------------------------------


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def built(work, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return {name: build_report(name, work, out=out / name) for name in definition.names()}


@pytest.mark.parametrize("name", definition.names())
def test_a_report_is_whole_and_rebuilds_to_the_byte(name, built, work, tmp_path):
    folder = built[name]["html"].parent
    build_report(name, work, out=tmp_path / name)
    assert files(tmp_path / name) == files(folder)
    data = json.loads(built[name]["json"].read_text())
    defined = definition.load(name)
    assert set(data["tables"]) >= {t.key for t in defined.tables}
    assert len(data["joined"]) == len(Matching(defined, read_library(work)).published)
    assert (folder / "tables" / "joined.csv").exists()
    page = built[name]["html"].read_text()
    assert len(page.encode()) < 3_000_000
    assert "feedfeedfeed" in page  # the damaged record is a warning, not the end


def test_figures_of_the_papers_are_drawn_from_runs(built):
    assert (built["scd"]["html"].parent / "figures" / "alignment-uniformity.svg").exists()
    assert (built["declutr"]["html"].parent / "figures" / "declutr-sampling.svg").exists()
    said = built["declutr"]["md"].read_text()
    assert "Not drawn: objectives and amount of text" in said
    assert "Not drawn: projection head and memory bank" in said


def test_what_is_missing_comes_with_the_part_of_the_papers_file_that_fills_it(built):
    text = built["scd"]["md"].read_text()
    commands = set(re.findall(r"harness compare \S+(?: --only \S+)? --workdir WORKDIR", text))
    assert "harness compare scd --only table-3 --workdir WORKDIR" in commands
    for command in commands:
        words = command.split()
        experiment = read_experiment(words[2])
        assert part_of(experiment, [words[4]]).methods
    assert not (built["scd"]["html"].parent / "experiments").exists()


def test_an_empty_work_directory_still_shows_the_paper(tmp_path):
    written = build_report("scd", tmp_path, out=tmp_path / "out")
    text = written["md"].read_text()
    assert "Nothing of this table was measured in this work directory" in text
    assert "232 not measured" in text


def test_names_are_papers_then_comparisons_and_unknown_ones_are_refused(work, tmp_path):
    assert build_report("bt", work, out=tmp_path)["json"].exists()
    with pytest.raises(InputError, match='no report "scdd"') as caught:
        build_report("scdd", work)
    assert "scd" in str(caught.value)


# --- the command ------------------------------------------------------------------------------------------------------


def run_command(*words: str) -> int:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    args = parser.parse_args(["report", *words])
    return args.run(args)


def test_list_names_papers_comparisons_and_studies(work, capsys):
    assert run_command("list") == 0
    assert "self-guided" in capsys.readouterr().out
    assert run_command("list", "--from", str(work)) == 0
    out = capsys.readouterr().out
    assert "bt  study, 4 runs" in out
    assert "invented  comparison, 13 runs" in out


def test_from_a_tracking_store(tmp_path, capsys):
    from harness.tracking.tracker import sync

    workdir = tmp_path / "work"
    source = synthetic.Invented(workdir, scale=0.02)
    for seed in (1, 2):
        source.add("SCD", seed, config=SCD, curves=False)
    uri = f"sqlite:///{tmp_path / 'store.db'}"
    sync(workdir, uri)
    out = tmp_path / "out"
    assert run_command("build", "scd", "--from", uri, "--out", str(out), "--format", "csv") == 0
    direct = build_report("scd", workdir, out=tmp_path / "direct", formats=("csv",))
    joined = (out / "tables" / "joined.csv").read_bytes()
    assert joined == (direct["csv"] / "joined.csv").read_bytes()
    assert b"000000000001 000000000002" in joined
    capsys.readouterr()
    assert run_command("list", "--from", uri) == 0
    assert "invented  comparison, 2 runs" in capsys.readouterr().out
    with pytest.raises(InputError, match="no such folder"):
        run_command("list", "--from", str(tmp_path / "none"))


def test_all_reports_of_two_hundred_records_take_seconds(tmp_path):
    for i in range(40):
        for seed in range(1, 6):
            made.run(tmp_path, "scd", {**SCD, "learning_rate": i * 1e-6}, seed, row=f"SCD {i}", corpus=made.WIKI,
                     scores=made.sts(40 + i / 2 + seed) + geometry(0.3, -2))  # fmt: skip
    begun = time.process_time()
    for name in definition.names():
        build_report(name, tmp_path, out=tmp_path / "out" / name)
    assert time.process_time() - begun < 20


def test_best_and_worst_layer_of_the_untrained_models(tmp_path):
    scores = {"0:cls": 1, "0:max": 30, "1:cls": 20, "1:max": 49.5, "2:cls": 25, "2:max": 48}
    for method, config, supervision, shift in (("pooling", {"pooling": "cls"}, "untrained", 0), ("scd", SCD, "", 10)):
        made.run(tmp_path, method, config, base="embedded:mini-bert", supervision=supervision or "unsupervised",
                 scores=[made.score(f"STS-B@layer:{k}", v + shift, suite="layers")
                         for k, v in scores.items()])  # fmt: skip
    made.run(tmp_path, "pooling", {"pooling": "mean"}, base="other", supervision="untrained",
             scores=[made.score("STS-B@layer:1:max", math.nan, suite="layers")])  # fmt: skip
    shown = table(tmp_path, "self-guided", "layers").table.rows
    rows = [[c.text for c in row.cells] for row in shown if "measured here" in row.block]
    assert rows == [["best of 5: max of layer 1", "1", "49.50"], ["worst of 5: [CLS] of layer 1", "1", "20.00"]]


def test_a_table_that_could_not_be_measured_says_why(tmp_path):
    why = "the files are not on the hub"
    made.run(tmp_path, "pooling", {"pooling": "mean"}, base="embedded:mini-bert", supervision="untrained",
             missing={"Length": why, "WordContent": why})  # fmt: skip
    page = build_report("declutr", tmp_path, formats=("md",), out=tmp_path / "out")["md"].read_text()
    assert f"Nothing of this table was measured in this work directory: {why}. To fill it" in page


def test_runs_without_a_study_and_studies_without_runs_build(tmp_path):
    """The table of studies asks the runs for no score; a difference is no reason."""
    made.run(tmp_path, "vicreg", {"view": "shuffle", "shuffle": 0.5}, base="embedded:mini-bert",
             scores=geometry(0.2, -1))  # fmt: skip
    page = build_report("noncontrastive", tmp_path, formats=("md",), out=tmp_path / "nc")["md"].read_text()
    assert "Nothing of this table was measured in this work directory. To fill it: harness study run" in page
    made.run(tmp_path, "scd", {**SCD, "terms": "decorrelation"}, base="embedded:mini-bert", corpus=made.WIKI,
             scores=[made.score("MR", 60, "accuracy", suite="transfer")])  # fmt: skip
    page = build_report("scd", tmp_path, formats=("md",), out=tmp_path / "scd")["md"].read_text()
    assert "no difference" not in page.split("## Table 3")[1].split("## ")[0]


def test_a_crowd_of_dots_is_numbered_with_a_key(tmp_path):
    views = {"shuffle": (0.05, 0.1, 0.2, 0.3, 0.5), "dropout": (0.05, 0.1, 0.2), "eda": (0.1, 0.2)}
    for view, strengths in views.items():
        for strength in strengths:
            made.run(tmp_path, "vicreg", {"view": view, view: strength}, base="embedded:mini-bert",
                     row=f"{view} {strength}", scores=geometry(strength, -1 - strength))  # fmt: skip
    made.run(tmp_path, "pooling", {"pooling": "mean"}, base="embedded:mini-bert", scores=geometry(0.1, -1))
    figure = published_alignment.alignment_uniformity(
        Matching(definition.load("noncontrastive"), read_library(tmp_path))
    )
    assert ">25<" in figure.svg
    assert figure.svg.count("dropout 0.05<") == 1
    few = published_alignment.alignment_uniformity(Matching(definition.load("scd"), read_library(tmp_path)))
    assert ">1<" not in few.svg
