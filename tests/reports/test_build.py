"""Reports built from invented records: what they say, that they hold together, and that they rebuild to the byte."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.results.manifest import manifest_file
from harness.results.run_folder import RunFolder
from reports.build import build_comparison, summary_table
from reports.read.run_library import read_library
from tests.support import synthetic

SMALL = ("STS-B", "Embedded-STS-natural")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("work")
    synthetic.full(workdir, scale=0.06)
    return workdir, build_comparison(workdir, "invented")


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def cells(written: dict[str, Path], table: str) -> dict[str, dict]:
    """Row label -> cells of a table, from data.json."""
    data = json.loads(written["json"].read_text())
    return {row["cells"]["row"]["text"]: row["cells"] for row in data["tables"][table]["rows"]}


def test_everything_is_written(built):
    workdir, written = built
    assert set(written) == {"html", "md", "latex", "csv", "json"}
    assert all(path.exists() for path in written.values())
    contents = files(workdir / "reports" / "invented")
    for name in ("differences", "development", "losses", "geometry-embedded-Embedded-STS-natural"):
        assert {f"figures/{name}.{kind}" for kind in ("svg", "png", "pdf")} <= set(contents)
        assert b"<text" in contents[f"figures/{name}.svg"]  # text is text, not outlines
    assert {"tables/scores-sts-senteval.csv", "tables/scores-embedded.csv", "tables/against-base.csv"} <= set(contents)


def test_rebuild_is_byte_identical(built, tmp_path):
    workdir, _ = built
    again = tmp_path / "again"
    build_comparison(workdir, "invented", out=again)
    assert files(again) == files(workdir / "reports" / "invented")


def test_means_marks_and_ends(built):
    workdir, written = built
    rows = cells(written, "scores-sts-senteval")
    values = [
        100 * s.value
        for file in (workdir / "runs").glob("*/record.json")
        if (r := RunFolder(workdir, file.parent.name).read()) and r.row == "SimCSE"
        for s in r.scores
        if (s.task, s.metric) == ("STS12", "spearman")
    ]
    assert rows["SimCSE"]["STS12"]["value"] == pytest.approx(np.mean(values))
    assert rows["SimCSE"]["STS12"]["sd"] == pytest.approx(np.std(values, ddof=1))
    assert rows["SimCSE"]["STS12"]["n"] == 3
    assert rows["SCD, L_C only"]["STS12"]["state"] == "collapsed"
    assert "std of the embeddings" in rows["SCD, L_C only"]["seeds"]["notes"][0]
    assert rows["SCD, L_S only"]["STS14"]["state"] == "missing"
    assert rows["SCD, L_S only"]["average"]["state"] == "missing"  # never an average of fewer tasks
    assert rows["Barlow Twins"]["seeds"]["text"] == "2 of 3"
    # The supervised row is far ahead and in no ranking.
    assert "rank" not in rows["all-MiniLM-L6-v2"]["average"]
    best = [label for label, row in rows.items() if row["average"].get("rank") == 1]
    assert best in (["SimCSE"], ["SimCSE (paper)"])
    assert not rows["random"]["average"].get("tied")


def test_natural_and_contrast_are_never_averaged(built):
    _, written = built
    row = cells(written, "scores-embedded")["SimCSE"]
    assert set(row) == {"row", "supervision", "seeds", "Embedded-STS-natural", "Embedded-STS-contrast"}


def test_base_is_the_untrained_row_with_the_same_pooling(built):
    _, written = built
    rows = cells(written, "against-base")
    assert rows["SimCSE"]["base"]["text"] == "cls"
    assert rows["SCD"]["base"]["text"] == "mean"
    assert "mean" not in rows  # an untrained row is not held against anything
    assert rows["SimCSE"]["sts-senteval verdict"]["text"] == "better"


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.tags.append((tag, named))
        if "id" in named:
            self.ids.append(named["id"] or "")
        for key in ("href", "src", "xlink:href"):
            if named.get(key):
                self.links.append(named[key] or "")


def test_page_is_self_contained_and_sane(built):
    _, written = built
    text = written["html"].read_text()
    page = Page()
    page.feed(text)
    assert len(page.ids) == len(set(page.ids))
    outside = [link for link in page.links if not link.startswith(("#", "data:"))]
    assert outside == []
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    for tag, named in page.tags:
        if tag == "svg" and "aria-hidden" not in named:
            assert named["aria-labelledby"] in page.ids
        if tag == "th":
            assert named.get("scope")
    assert sum(tag == "table" for tag, _ in page.tags) == sum(tag == "caption" for tag, _ in page.tags)
    assert len(text) < 3e6
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data
    assert json.loads(data[1])["tables"]["scores-embedded"]


def test_hostile_names_stay_text(tmp_path):
    made = synthetic.Invented(tmp_path, comparison="<b>x</b> $y$", scale=0.03)
    hostile = '<img src=x onerror=alert(1)>"\\input{x}$%_^'
    made.add("mean", 0, supervision="untrained", tasks=SMALL)
    made.add(hostile, 1, tasks=SMALL)
    made.add("end", 1, status="failed", reason="</script><script>alert(1)</script>")
    written = build_comparison(tmp_path, "<b>x</b> $y$")
    page = Page()
    page.feed(written["html"].read_text())
    assert not any(tag == "img" for tag, _ in page.tags)
    assert sum(tag == "script" for tag, _ in page.tags) == 2  # the data and our own
    assert r"\input{" not in written["latex"].read_text()
    assert written["html"].parent.parent == tmp_path / "reports"


@pytest.mark.parametrize("rows", [1, 2])
def test_one_seed_and_few_rows(tmp_path, rows):
    made = synthetic.Invented(tmp_path, scale=0.03)
    for i in range(rows):
        made.add(f"method {i}", 1, tasks=SMALL, noise=1 + i)
    written = build_comparison(tmp_path, "invented")
    assert "A single seed says little" in written["html"].read_text()


def test_nothing_finished(tmp_path):
    synthetic.Invented(tmp_path).add("a", status="failed", reason="out of memory")
    written = build_comparison(tmp_path, "invented")
    assert "out of memory" in written["md"].read_text()
    assert summary_table(tmp_path, "invented") == (["Method", "Seeds", "Status"], [["a", "0 of 1", "failed"]], [])


def test_unlike_protocols_are_marked_and_not_compared(tmp_path):
    made = synthetic.Invented(tmp_path, scale=0.03)
    for label in ("a", "b"):
        made.add(label, tasks=("STS-B",), curves=False)
    made.gold["STS-B"] = made.gold["STS-B"][::-1].copy()
    made.add("c", tasks=("STS-B",), data="other", curves=False)
    written = build_comparison(tmp_path, "invented")
    rows = cells(written, "scores-sts-senteval")
    assert "notes" not in rows["a"]["STS-B"]
    assert "not comparable" in rows["c"]["STS-B"]["notes"][0]
    assert "Scored on other examples" in written["md"].read_text()


def test_older_configuration_is_set_aside(tmp_path):
    made = synthetic.Invented(tmp_path, scale=0.03)
    old = made.add("a", 2, tasks=SMALL, config={"temperature": 1.0}, finished="2025-01-01T00:00:00Z")
    made.add("a", 1, tasks=SMALL, config={"temperature": 0.05}, finished="2025-01-02T00:00:00Z")
    written = build_comparison(tmp_path, "invented")
    assert cells(written, "scores-embedded")["a"]["seeds"]["text"] == "1"
    assert old.id in written["md"].read_text()


@pytest.mark.parametrize(("packed", "rows"), [(False, [3]), (True, [1, 2])])
def test_runs_older_than_an_option_stand_with_those_that_leave_it_as_it_was(tmp_path, packed, rows):
    made = synthetic.Invented(tmp_path, scale=0.03)
    for seed in (1, 2):
        made.add("simcse", seed, tasks=SMALL, config={"batch_size": 8}, finished="2025-01-01T00:00:00Z")
    newer = {"batch_size": 8, "packed": packed}
    made.add("simcse", 3, tasks=SMALL, config=newer, finished="2025-01-02T00:00:00Z")
    written = build_comparison(tmp_path, "invented")
    assert cells(written, "scores-embedded")["simcse"]["seeds"]["text"] == str(rows[0])
    assert sorted(len(row.records) for row in read_library(tmp_path).rows) == rows


@pytest.mark.parametrize("damaged", ['{"step": 1, "ki', "null\n", '[1]\n{"a": 1}\n'])
def test_damaged_curves_and_missing_pairs_do_not_stop_the_report(tmp_path, damaged):
    made = synthetic.Invented(tmp_path, scale=0.03)
    first, second = (made.add("a", seed, tasks=SMALL) for seed in (1, 2))
    RunFolder(tmp_path, first.id).curves_file.write_text(damaged)
    RunFolder(tmp_path, second.id).pairs_file.unlink()
    text = build_comparison(tmp_path, "invented")["md"].read_text()
    assert f"curves of run {first.id} are unreadable" in text
    assert "Without stored examples" in text


def test_a_damaged_record_is_a_failed_run_of_its_row(tmp_path):
    made = synthetic.Invented(tmp_path, scale=0.03)
    records = [made.add(row, seed, tasks=SMALL) for row in ("a", "b") for seed in (1, 2)]
    runs = [{"id": r.id, "row": r.row, "base_model": r.base_model, "seed": r.seed} for r in records]
    write_atomic(manifest_file(tmp_path, "invented"), json.dumps({"name": "invented", "cells": runs}))
    file = RunFolder(tmp_path, records[1].id).record_file
    file.write_bytes(file.read_bytes()[:100])
    written = build_comparison(tmp_path, "invented")
    by_row = cells(written, "scores-embedded")
    assert by_row["a"]["seeds"]["text"].startswith("1")  # the run that is left
    assert by_row["b"]["seeds"]["text"] == "2"
    assert "damaged record" in written["md"].read_text()


def test_stale_files_go_and_foreign_files_stay(tmp_path):
    made = synthetic.Invented(tmp_path, scale=0.03)
    made.add("a", tasks=SMALL)
    out = tmp_path / "out"
    (out / "tables").mkdir(parents=True)
    (out / "tables" / "mine.csv").write_text("1")
    build_comparison(tmp_path, "invented", out=out)
    half = [out / name for name in (".report.md.part", "tables/.cost.csv.part")]  # a build was killed while writing
    for file in half:
        file.write_text("")
    build_comparison(tmp_path, "invented", out=out, formats=["html"])
    assert not any(file.exists() for file in half)
    assert (out / "tables" / "mine.csv").exists()
    assert not (out / "tables" / "cost.csv").exists()


@pytest.mark.parametrize(
    ("name", "formats", "said"),
    [("inventd", ("html",), 'did you mean "invented"'), ("invented", ("htm",), 'did you mean "html"')],
)
def test_wrong_input(tmp_path, name, formats, said):
    synthetic.Invented(tmp_path, scale=0.03).add("a", tasks=SMALL)
    with pytest.raises(InputError, match=re.escape(said)):
        build_comparison(tmp_path, name, formats=formats)
    assert not (tmp_path / "reports").exists()


def test_command(built, tmp_path, capsys):
    from reports.report_command import register

    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    workdir, _ = built
    args = parser.parse_args(["report", "list", "--from", str(workdir)])
    assert args.run(args) == 0
    assert "invented  comparison, 24 runs" in capsys.readouterr().out
    args = parser.parse_args(
        ["report", "build", "invented", "--from", str(workdir), "--format", "md", "--out", str(tmp_path / "o")]
    )
    assert args.run(args) == 0
    assert str(tmp_path / "o" / "report.md") in capsys.readouterr().out
    with pytest.raises(InputError, match="no such folder"):
        args.run(argparse.Namespace(name="x", workdir=str(tmp_path / "none"), format="md", out=None))


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="needs pdflatex (Debian: texlive-latex-recommended, lmodern)"
)
def test_latex_compiles_as_it_is(built, tmp_path):
    _, written = built
    done = subprocess.run(
        [
            "pdflatex",
            "-interaction=nonstopmode",
            "-halt-on-error",
            f"-output-directory={tmp_path}",
            written["latex"].name,
        ],
        cwd=written["latex"].parent,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:]
