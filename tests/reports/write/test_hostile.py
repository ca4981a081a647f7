"""Text from data stays text in every format, whatever it holds: names, reasons, notes, titles,
sentences.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

import reports
from harness.files.printable import markdown_text, one_line, visible
from harness.results.record import Missing
from harness.results.store import RunFolder
from reports.build import build_comparison
from reports.write.latex import latex_text
from reports.write.markdown import csv_text
from tests.support.synthetic import Invented, write_comparison

TEXTS = {
    "script": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "end of data": "</script><!--<script>",
    "template": "{{ 7*7 }}{% raw %}",
    "tex": r"\input{/etc/passwd}\write18{id}^^5cinput{x}",
    "tex signs": r"50 % of $5 & #1 _a_ ~ ^ \ {",
    "formula": '=cmd|"/c calc"!A1',
    "plus": "+1+cmd",
    "at": "@SUM(A1)",
    "markdown": "[x](javascript:alert(1)) **b** `c` | d\n# e\n- f\n1. g",
    "rich": "[red]x[/] [/nothing] [link=file:///x]y[/link]",
    "terminal": "\x1b[2J\x1b]0;title\x07\x00\x7f\x9b31m",
    "direction": "abc \u202e dcba \u2066 \u200f שלום مرحبا",
    "long": "x" * 3000,
    "many words": "word " * 400,
    "scripts": "日本語 Ελληνικά Ĳ ﬁ 🙂 e\u0301",
    "quotes": "\"'><svg/onload=alert(1)>`${1}`",
}
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report in which every text of a user's is hostile."""
    workdir = tmp_path_factory.mktemp("work")
    made = Invented(workdir, scale=0.02)
    records = []
    for i, text in enumerate(TEXTS.values()):
        failed = i % 4 == 1
        ended = {"status": "failed", "reason": text} if failed else {}
        record = made.add(
            "named",
            i,
            tasks=("Embedded-STS-natural",),
            curves=i == 0,
            config={"note": text},
            **ended,
        )
        changes = {
            "row": text,
            "command": f"harness {text}",
            "missing": {} if failed else {"STS12": Missing("data", text)},
        }
        records.append(
            record.model_copy(
                update={**changes, "environment": {"cpu": text, "versions": {"torch": text}}}
            )
        )
        RunFolder(workdir, record.id).write(records[-1])
    write_comparison(workdir, records, title=" ".join(TEXTS.values()), description=TEXTS["script"])
    return build_comparison(workdir, "invented")


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.met: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.met.append(tag)
        self.attributes += attrs


def test_html(built: dict[str, Path]) -> None:
    text = built["html"].read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert tags.met.count("script") == 2  # the data and our own
    assert "img" not in tags.met
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    assert not [
        value
        for name, value in tags.attributes
        if name == "href" and (value or "").startswith("java")
    ]
    assert "{{ 7*7 }}" in text
    assert not ACTING.search(text)
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert data
    names = [row["name"] for row in json.loads(data[1])["tables"]["scores-embedded"]["rows"]]
    assert set(names) == set(TEXTS.values())  # the data is exact


def test_markdown(built: dict[str, Path]) -> None:
    text = built["md"].read_text(encoding="utf-8")
    prose = re.sub(
        r"^ {6}.*$", "", text, flags=re.MULTILINE
    )  # indented: code, in which nothing is read
    assert not re.search(r"<(script|img|svg|!--)", prose)
    assert not re.search(r"(?<!\\)\]\(java", prose)
    assert not re.search(r"^\s*(# e|- f|1\. g)", prose, re.MULTILINE)
    assert not ACTING.search(text)


def test_latex(built: dict[str, Path]) -> None:
    text = built["latex"].read_text(encoding="utf-8")
    assert r"\input{/" not in text
    assert r"\write18" not in text
    assert "^^" not in text
    assert not ACTING.search(text)
    body = re.sub(r"\\[{}]", "", text)
    assert body.count("{") == body.count("}")


def test_latex_compiles(built: dict[str, Path]) -> None:
    from reports.write.latex import pdf

    if shutil.which("pdflatex") is None:
        pytest.skip("needs TeX (Debian: texlive-latex-recommended)")
    made = pdf(built["latex"].read_text(encoding="utf-8"), built["latex"].parent)
    assert made.startswith(b"%PDF")


def test_csv(built: dict[str, Path]) -> None:
    for file in sorted(built["csv"].glob("*.csv")):
        rows = list(csv.reader(io.StringIO(file.read_text(encoding="utf-8"), newline="")))
        assert len({len(row) for row in rows}) == 1
        for cell in (cell for row in rows for cell in row):
            assert not re.match(r"[=@\t\r]|[+-](?![\d.]+([eE][+-]?\d+)?$)", cell), cell


def test_reproduce_on_a_terminal(
    built: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from harness.cli import main

    assert main(["reproduce", str(built["json"])]) == 0
    name = f"scores-embedded:{TEXTS['terminal']}:Embedded-STS-natural"
    assert main(["reproduce", f"{built['json']}#{name}"]) == 0
    assert main(["reproduce", f"{built['json']}#{TEXTS['terminal']}"]) == 2
    out, err = capsys.readouterr()
    assert not ACTING.search(out.replace("\n", ""))
    assert not ACTING.search(err.replace("\n", ""))
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("name", TEXTS)
def test_one_by_one(name: str) -> None:
    text = TEXTS[name]
    assert "\n" not in one_line(text)
    assert not ACTING.search(visible(text).replace("\n", ""))
    assert "<" not in markdown_text(text)
    assert csv_text(text)[0] not in "=+-@\t\r"
    assert latex_text(text).isascii() or name == "scripts"
    assert visible("שלום") == "שלום"


FORMULAS = (
    "=1+1",
    "+1",
    "-1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\nx",
    " =1",
    "\u00a0=1",
    "\ufeff=1",
    "\u200b=1",
    "\u3000-1",
    "\u2028=1",
    "\x00=1",
    "\uff1d1",
    "\uff0b1",
    "\uff0d1",
    "\uff20A",
    " \t\uff1d1",
)
PLAIN = ("", "a=1", "1", "SimCSE", " a", "\u22120.5", "(=1)", "\u200bab", "'=1")
TABLES_JS = Path(reports.__file__).parent / "write" / "templates" / "tables.js"


@pytest.mark.parametrize("text", FORMULAS)
def test_a_cell_that_a_spreadsheet_could_run_is_text(text: str) -> None:
    assert csv_text(text) == f"'{text}"


@pytest.mark.parametrize("text", PLAIN)
def test_any_other_cell_stays(text: str) -> None:
    assert csv_text(text) == text


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_page_guards_the_same_cells() -> None:
    code = re.search(r"  const FORMULA = .*?\n  };\n", TABLES_JS.read_text(), re.DOTALL)
    assert code is not None
    texts = json.dumps([*FORMULAS, *PLAIN])
    script = f"{code[0]}\nconsole.log(JSON.stringify({texts}.map(field)))"
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    fields = json.loads(done.stdout)
    cells = [next(csv.reader(io.StringIO(field, newline="")), [""])[0] for field in fields]
    assert cells == [csv_text(text) for text in (*FORMULAS, *PLAIN)]
