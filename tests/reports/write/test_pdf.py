"""The PDF of a report: compiles as it is, always to the same bytes, and cannot run or read
anything.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.errors import RunError
from reports.build import build_comparison
from reports.write.latex import pdf
from tests.support.errors import raises_input_error
from tests.support.synthetic import Invented

SMALL = ("STS12", "STS-B", "Embedded-STS-natural")
needs_tex = pytest.mark.skipif(
    not shutil.which("pdflatex"), reason="needs TeX (Debian: texlive-latex-recommended)"
)


@needs_tex
def test_a_report_compiles_to_the_same_bytes_twice(tmp_path: Path) -> None:
    made = Invented(tmp_path, scale=0.03)
    made.add("mean", 0, supervision="untrained", tasks=SMALL)
    for seed in (1, 2):
        made.add("SimCSE", seed, tasks=SMALL)
    written = build_comparison(tmp_path, "invented", formats=["latex", "pdf"])
    first = written["pdf"].read_bytes()
    assert first.startswith(b"%PDF")
    elsewhere = tmp_path / "with space" / "and #"
    elsewhere.mkdir(parents=True)
    shutil.copytree(written["latex"].parent / "figures", elsewhere / "figures")
    assert pdf(written["latex"].read_text(), elsewhere) == first
    assert sorted(p.name for p in elsewhere.iterdir()) == [
        "figures"
    ]  # nothing is left beside the report


@needs_tex
def test_an_error_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"does not compile \(Undefined control sequence"):
        pdf(r"\documentclass{article}\begin{document}\nothing\end{document}", tmp_path)


@needs_tex
def test_the_document_can_run_nothing(tmp_path: Path) -> None:
    out = tmp_path / "made"
    text = rf"\documentclass{{article}}\begin{{document}}x\immediate\write18{{touch {out}}}\end{{document}}"
    assert pdf(text, tmp_path).startswith(b"%PDF")
    assert not out.exists()


def test_without_tex_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    Invented(tmp_path, scale=0.03).add("a", tasks=SMALL)
    with raises_input_error(key="--format"):
        build_comparison(tmp_path, "invented", formats=["html", "md", "pdf"])
    assert (tmp_path / "reports" / "invented" / "index.html").exists()  # the others are written
