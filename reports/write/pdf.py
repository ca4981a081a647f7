"""A report's LaTeX as PDF, by whatever TeX there is. The same text and figures give the same bytes."""

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
_PDFLATEX = ("-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape")  # latexmk hands them on
_ENGINES: dict[str, tuple[str, ...]] = {
    "latexmk": ("latexmk", "-pdf", "-norc", *_PDFLATEX),
    "pdflatex": ("pdflatex", *_PDFLATEX),
    "tectonic": ("tectonic", "--untrusted", "--chatter", "minimal"),
}


def engine() -> str | None:
    """The first of the TeX programs that are here; latexmk only beside the pdflatex that it calls."""
    installed = [name for name in _ENGINES if shutil.which(name)]
    if "pdflatex" not in installed and "latexmk" in installed:
        installed.remove("latexmk")
    return installed[0] if installed else None


def pdf(tex: str, folder: Path) -> bytes:
    """The PDF of a LaTeX document.

    Args:
        tex: the whole document.
        folder: where its `figures` lie. It is only read.

    Raises:
        InputError: there is no TeX here.
        RunError: the document does not compile.
    """
    name = engine()
    if name is None:
        raise InputError("--format pdf: no TeX found (latexmk, pdflatex or tectonic); install one, as Debian's "
                         "texlive-latex-recommended with lmodern; the other formats are written")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="report-") as place:
        work = Path(place)
        (work / "report.tex").write_text(tex, encoding="utf-8")
        if (folder / "figures").is_dir():
            shutil.copytree(folder / "figures", work / "figures", ignore=shutil.ignore_patterns("*.svg", "*.png", ".*"))
        for _ in range(2):  # once more where it asks for it
            log = _compile(name, work)
            if "Rerun to get" not in log:
                break
        return (work / "report.pdf").read_bytes()


def _compile(name: str, work: Path) -> str:
    # Dates from nowhere, and (kpathsea) no reading or writing outside of the folder, whatever the text says.
    fixed = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1", "openin_any": "p", "openout_any": "p"}
    try:
        done = subprocess.run(
            [*_ENGINES[name], "report.tex"],
            cwd=work,
            env={**os.environ, **fixed, "max_print_line": "1000"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"{name}: not done after {_SECONDS} s; report.tex is written") from None
    if done.returncode or not (work / "report.pdf").is_file():
        said = re.search(r"^(?:!|error:) *(.+)$", done.stdout + done.stderr, re.MULTILINE)
        raise RunError(f"{name}: report.tex does not compile ({one_line(said[1]) if said else 'no message'})")
    return done.stdout
