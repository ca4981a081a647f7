"""A report's LaTeX as PDF, by pdflatex. The same text and figures give the same bytes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.errors import InputError, RunError
from harness.files.printable import one_line

_SECONDS = 300
_COMMAND = ("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "report.tex")
# Dates from nowhere, and (kpathsea) no reading or writing outside of the folder, whatever the text says.
_FIXED = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1", "openin_any": "p", "openout_any": "p"}


def pdf(tex: str, folder: Path) -> bytes:
    """The PDF of a LaTeX document.

    Args:
        tex: the whole document.
        folder: where its `figures` lie. It is only read.

    Raises:
        InputError: pdflatex is not installed.
        RunError: the document does not compile.
    """
    if not shutil.which("pdflatex"):
        raise InputError("--format pdf: pdflatex is not installed; install TeX, as Debian's texlive-latex-recommended "
                         "with lmodern; the other formats are written")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="report-") as place:
        work = Path(place)
        (work / "report.tex").write_text(tex, encoding="utf-8")
        if (folder / "figures").is_dir():
            shutil.copytree(folder / "figures", work / "figures", ignore=shutil.ignore_patterns("*.svg", "*.png", ".*"))
        if "Rerun to get" in _compile(work):
            _compile(work)
        return (work / "report.pdf").read_bytes()


def _compile(work: Path) -> str:
    environment = {**os.environ, **_FIXED, "max_print_line": "1000"}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(
            _COMMAND, cwd=work, env=environment, **streams, text=True, errors="replace", timeout=_SECONDS, check=False
        )  # type: ignore[call-overload]
    except subprocess.TimeoutExpired:
        raise RunError(f"pdflatex: not done after {_SECONDS} s; report.tex is written") from None
    if done.returncode or not (work / "report.pdf").is_file():
        fault = re.search(r"^! *(.+)$", done.stdout, re.MULTILINE)
        raise RunError(f"pdflatex: report.tex does not compile ({one_line(fault[1]) if fault else 'no message'})")
    return str(done.stdout)
