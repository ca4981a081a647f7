"""Reports built from invented records: their numbers, that they hold together, and that they
rebuild to the byte.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from harness.cli import main
from harness.results.store import RunFolder, comparison_file, read_records
from reports.build import build_comparison, build_report
from reports.comparison.terminal_summary import summary_table
from tests.support import synthetic
from tests.support.errors import raises_input_error

SMALL = ("STS-B", "Embedded-STS-natural")
Built = tuple[Path, dict[str, Path]]
Cells = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    workdir = tmp_path_factory.mktemp("work")
    synthetic.full(workdir, scale=0.06)
    return workdir, build_comparison(workdir, "invented")


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def cells(written: dict[str, Path], table: str) -> Cells:
    """Row label -> cells of a table, from data.json."""
    data = json.loads(written["json"].read_text())
    return {row["cells"]["row"]["text"]: row["cells"] for row in data["tables"][table]["rows"]}


def test_everything_is_written_and_rebuilt_to_the_byte(built: Built, tmp_path: Path) -> None:
    workdir, written = built
    assert set(written) == {"html", "md", "latex", "csv", "json"}
    contents = files(workdir / "reports" / "invented")
    for name in ("overview", "development", "losses", "geometry-embedded-Embedded-STS-natural"):
        assert {f"figures/{name}.{kind}" for kind in ("svg", "png", "pdf")} <= set(contents)
        assert b"<text" in contents[f"figures/{name}.svg"]  # text is text, not outlines
    assert {
        "tables/scores-sts-senteval.csv",
        "tables/scores-embedded.csv",
        "tables/against-base.csv",
    } <= set(contents)
    build_report("invented", workdir, out=tmp_path / "again")
    assert files(tmp_path / "again") == contents


def test_tables_do_not_wait_for_the_layout_of_figures(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But of scatter plots, whose labels find their places in it."""
    measured: list[Figure] = []
    measure = Figure.draw_without_rendering

    def count(plot: Figure) -> None:
        measured.append(plot)
        measure(plot)

    monkeypatch.setattr(Figure, "draw_without_rendering", count)
    written = build_report("invented", built[0], out=tmp_path, formats=["csv"])
    figures = [name for name in files(built[1]["json"].parent) if name.endswith(".svg")]
    assert len(measured) < len(figures) / 2
    tables = [json.loads(files["json"].read_text())["tables"] for files in (written, built[1])]
    assert tables[0] == tables[1]


def test_means_marks_and_ends(built: Built) -> None:
    workdir, written = built
    rows = cells(written, "scores-sts-senteval")
    values = [100 * (r.score("STS12") or 0) for r in read_records(workdir) if r.row == "SimCSE"]
    one = rows["SimCSE"]["STS12"]
    assert (one["value"], one["sd"], one["n"]) == (
        pytest.approx(np.mean(values)),
        pytest.approx(np.std(values, ddof=1)),
        3,
    )
    assert rows["SCD, L_C only"]["STS12"]["state"] == "collapsed"
    assert rows["SCD, L_S only"]["STS14"]["state"] == "missing"
    assert rows["SCD, L_S only"]["average"]["state"] == "missing"  # never an average of fewer tasks
    assert rows["Barlow Twins"]["seeds"]["text"] == "2 of 3"
    best = [label for label, row in rows.items() if row["average"].get("rank") == 1]
    assert best == ["all-MiniLM-L6-v2"]  # made by others, and compared like all rows
    assert rows["random"]["average"]["worse"]
    natural_and_contrast = {"Embedded-STS-natural", "Embedded-STS-contrast"}  # never averaged
    assert set(cells(written, "scores-embedded")["SimCSE"]) == {
        "row",
        "supervision",
        "seeds",
        *natural_and_contrast,
    }


def test_base_is_the_untrained_row_with_the_same_pooling(built: Built) -> None:
    rows = cells(built[1], "against-base")
    assert rows["SimCSE"]["base"]["text"] == "cls"
    assert rows["SCD"]["base"]["text"] == "mean"
    assert "mean" not in rows  # an untrained row is compared with nothing
    assert rows["SimCSE"]["sts-senteval verdict"]["text"] == "better"


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def values(self, *names: str) -> list[str]:
        return [value for _, named in self.tags for name in names if (value := named.get(name))]


def test_page_is_self_contained_and_sane(built: Built) -> None:
    text = built[1]["html"].read_text()
    page = Page(text)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    links = page.values("href", "src", "xlink:href")
    assert all(link.startswith(("#", "data:")) for link in links)
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    for tag, named in page.tags:
        assert tag != "svg" or "aria-hidden" in named or named["aria-labelledby"] in ids
        assert tag != "th" or named.get("scope")
    assert sum(tag == "table" for tag, _ in page.tags) == sum(
        tag == "caption" for tag, _ in page.tags
    )
    assert len(text) < 3e6
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data
    assert json.loads(data[1])["tables"]["scores-embedded"]


def test_nothing_finished(tmp_path: Path) -> None:
    synthetic.Invented(tmp_path).add("a", status="failed", reason="out of memory")
    assert (
        "out of memory" in build_comparison(tmp_path, "invented", formats=["md"])["md"].read_text()
    )
    assert summary_table(tmp_path, "invented") == (
        ["Method", "Seeds", "Status"],
        [["a", "0 of 1", "failed"]],
        [],
    )


def test_unlike_protocols_are_marked_and_not_compared(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.03)
    for label in ("a", "b"):
        made.add(label, tasks=("STS-B",), curves=False)
    made.gold["STS-B"] = made.gold["STS-B"][::-1].copy()
    made.add("c", tasks=("STS-B",), data="other", curves=False)
    rows = cells(build_comparison(tmp_path, "invented", formats=["md"]), "scores-sts-senteval")
    assert "notes" not in rows["a"]["STS-B"]
    assert "not comparable" in rows["c"]["STS-B"]["notes"][0]


def test_an_older_configuration_is_in_no_table(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.03)
    old = made.add(
        "a", 2, tasks=SMALL, config={"temperature": 1.0}, finished="2025-01-01T00:00:00Z"
    )
    made.add("a", 1, tasks=SMALL, config={"temperature": 0.05}, finished="2025-01-02T00:00:00Z")
    written = build_comparison(tmp_path, "invented", formats=["md"])
    assert cells(written, "scores-embedded")["a"]["seeds"]["text"] == "1"
    assert old.id in written["md"].read_text()


def test_damaged_curves_and_missing_examples_do_not_stop_the_report(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.03)
    damaged = []
    for seed, text in enumerate(('{"step": 1, "ki', "null\n", '[1]\n{"a": 1}\n')):
        record = made.add("a", seed, tasks=SMALL)
        RunFolder(tmp_path, record.id).curves_file.write_text(text)
        damaged.append(record.id)
    RunFolder(tmp_path, made.add("a", 3, tasks=SMALL).id).examples_file.unlink()
    written = build_comparison(tmp_path, "invented", formats=["md"])["md"].read_text()
    assert all(name in written for name in damaged)


def test_a_damaged_record_is_left_out_with_a_warning(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.03)
    records = [made.add("a", seed, tasks=SMALL) for seed in (1, 2)]
    file = RunFolder(tmp_path, records[1].id).record_file
    file.write_bytes(file.read_bytes()[:100])
    written = build_comparison(tmp_path, "invented", formats=["md"])
    assert cells(written, "scores-embedded")["a"]["seeds"]["text"] == "1"
    assert records[1].id in written["md"].read_text()


def test_a_damaged_comparison_file_is_one_line(tmp_path: Path) -> None:
    synthetic.Invented(tmp_path, scale=0.03).add("a", tasks=SMALL)
    file = comparison_file(tmp_path, "invented")
    file.parent.mkdir()
    file.write_text("{")
    with raises_input_error(file=file):
        build_comparison(tmp_path, "invented")


def test_stale_files_go_and_foreign_files_stay(tmp_path: Path) -> None:
    made = synthetic.Invented(tmp_path, scale=0.03)
    made.add("a", tasks=SMALL)
    out = tmp_path / "out"
    (out / "tables").mkdir(parents=True)
    (out / "tables" / "mine.csv").write_text("1")
    build_report("invented", tmp_path, out=out, formats=["csv", "md"])
    # A build was killed while writing.
    half = [out / name for name in (".index.html.12.0a1b2c3d", "tables/.cost.csv.12.0a1b2c3d")]
    for file in half:
        file.write_text("")
    build_report("invented", tmp_path, out=out, formats=["html"])
    assert not any(file.exists() for file in half)
    assert (out / "tables" / "mine.csv").exists()
    assert not (out / "tables" / "cost.csv").exists()


def test_wrong_input(tmp_path: Path) -> None:
    synthetic.Invented(tmp_path, scale=0.03).add("a", tasks=SMALL)
    with raises_input_error(file=tmp_path):
        build_comparison(tmp_path, "inventd", formats=("html",))
    with raises_input_error(key="format"):
        build_comparison(tmp_path, "invented", formats=("htm",))
    assert not (tmp_path / "reports").exists()


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workdir = str(tmp_path)
    synthetic.Invented(tmp_path, scale=0.03).add("a", tasks=SMALL)
    out = tmp_path / "o"
    assert (
        main(
            [
                "report",
                "build",
                "invented",
                "--workdir",
                workdir,
                "--format",
                "md",
                "--out",
                str(out),
            ]
        )
        == 0
    )
    assert str(out / "report.md") in capsys.readouterr().out
    assert main(["report", "build", "invented", "--workdir", str(tmp_path / "none")]) == 2


@pytest.mark.skipif(
    shutil.which("pdflatex") is None,
    reason="needs pdflatex (Debian: texlive-latex-recommended)",
)
def test_latex_compiles_as_it_is(built: Built, tmp_path: Path) -> None:
    latex = built[1]["latex"]
    command = [
        "pdflatex",
        "-interaction=nonstopmode",
        "-halt-on-error",
        f"-output-directory={tmp_path}",
        latex.name,
    ]
    done = subprocess.run(command, cwd=latex.parent, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]


def test_no_table_has_more_than_two_short_notes(built: Built) -> None:
    tables = json.loads(built[1]["json"].read_text())["tables"]
    assert len(tables) >= 8
    for key, table in tables.items():
        assert len(table["explanations"]) <= 2, key
        assert all(len(line) <= 240 for line in table["explanations"]), key
