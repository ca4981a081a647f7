"""Build reports: a paper's, a comparison's, or one of another package, from the records of a work directory alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config import nearest
from harness.errors import InputError
from harness.results.store import comparison_files
from reports.comparison.terminal_summary import summary_table as summary_table  # `harness compare` prints it
from reports.decide.power_answer import power as power
from reports.decide.verdict_answer import verdict as verdict
from reports.document.blocks import Document, slug
from reports.document.rehearsal import marked
from reports.open_report import OpenReport
from reports.read.comparison_runs import comparisons, read_comparison
from reports.write.report_folder import FORMATS, check_formats, write

if TYPE_CHECKING:
    from reports.papers.definition import Definition


@dataclass(frozen=True)
class Report:
    """A report before it is written: the document, further files by their path, and further keys of data.json."""

    document: Document
    data: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)


def build_report(
    name: str,
    workdir: Path,
    *,
    out: Path | None = None,
    formats: Sequence[str] = FORMATS,
    without_overlap: bool = False,
    with_texts: bool = False,
) -> dict[str, Path]:
    """Write a report: a definition's (its name or file), else a comparison's, else that of another package.

    Args:
        name: a definition, a definition file (.toml), a comparison, or what a source of `harness.reports` knows.
        workdir: the work directory whose runs are read.
        out: the folder to write to; `WORKDIR/reports/NAME` when left out.
        formats: any of "html" (`index.html`), "md" (`report.md`), "latex" (`report.tex`, `tables/*.tex`), "csv"
            (`tables/*.csv`), "siunitx" (LaTeX whose columns of numbers are siunitx's) and "pdf" (`report.pdf`).
            `data.json` is always written; the figures, as SVG and PNG, with all but "csv" (as PDF beside LaTeX).
        without_overlap: of a comparison: without the examples of which a text stood in the training text of a row;
            to `WORKDIR/reports/NAME-without-overlap`.
        with_texts: of a comparison: its page holds texts of all data sets, also of those whose licence forbids to hand
            them on.

    Returns:
        Format -> what was written ("csv" -> the folder of tables; also "json" -> data.json).

    Raises:
        InputError: nothing of that name, unknown format, a definition that is none.
        RunError: the folder cannot be written, or the PDF cannot be made.
    """
    check_formats(formats)
    from reports.papers import definition

    if without_overlap:
        if name not in comparison_files(workdir) and name not in comparisons(workdir):
            raise InputError(f'--without-overlap: goes with a comparison; {workdir} has none that is called "{name}"')
        return build_comparison(workdir, name, formats=formats, out=out, without_overlap=True, with_texts=with_texts)
    if (defined := definition.load(name)) is not None:
        return _write(describe_paper(workdir, defined), out or _folder(workdir, defined.name), formats)
    if name in comparison_files(workdir):
        return build_comparison(workdir, name, formats=formats, out=out, with_texts=with_texts)
    if (document := describe_study(workdir, name)) is not None:
        return _write(Report(document, {"report": name}), out or _folder(workdir, name), formats)
    known = comparisons(workdir)
    if name in known:  # runs without a manifest
        return build_comparison(workdir, name, formats=formats, out=out, with_texts=with_texts)
    names = [*definition.names(), *known]
    where = "" if known else f"; {workdir} holds no runs: run `harness compare` first"
    raise InputError(f'{workdir}: no report "{name}"{nearest(name, names)}; known: {", ".join(names)}{where}')


def open_report(name: str, workdir: Path) -> OpenReport:
    """A report to look at piece by piece; nothing is written. `name` as in `build_report`, but for papers.

    Raises:
        InputError: nothing of that name, damaged record.
    """
    if name not in comparison_files(workdir) and (document := describe_study(workdir, name)) is not None:
        return OpenReport(document)
    return OpenReport(describe_comparison(workdir, name).document)


def build_comparison(
    workdir: Path,
    name: str,
    *,
    formats: Sequence[str] = FORMATS,
    out: Path | None = None,
    without_overlap: bool = False,
    with_texts: bool = False,
) -> dict[str, Path]:
    """Write the report of a comparison; as `build_report` does. The same records give the same bytes.

    Raises:
        InputError: no such comparison, unknown format, damaged record.
        RunError: the folder cannot be written.
    """
    check_formats(formats)
    report = describe_comparison(
        workdir, name, every_score="csv" in formats, without_overlap=without_overlap, with_texts=with_texts
    )
    folder = _folder(workdir, f"{name}-without-overlap" if without_overlap else name)
    return _write(report, out or folder, formats)


def describe_comparison(
    workdir: Path, name: str, *, every_score: bool = False, without_overlap: bool = False, with_texts: bool = False
) -> Report:
    """The report of a comparison; `every_score`: with the file of all scores; the others as in `build_report`.

    Raises:
        InputError: no such comparison, damaged record.
    """
    from reports.comparison.all_scores import all_scores
    from reports.comparison.comparison_document import describe

    comparison = replace(read_comparison(workdir, name), show_texts=with_texts)
    if without_overlap:
        from reports.read import without_overlap as fewer_examples

        comparison = fewer_examples.without_overlap(comparison)
    files = {"tables/all-scores.csv": all_scores(comparison)} if every_score else {}
    document, data = describe(comparison), {"comparison": comparison.name}
    if any(row.rehearsal for row in comparison.rows):
        return Report(marked(document), {**data, "rehearsal": True}, files)
    return Report(document, data, files)


def describe_paper(workdir: Path, definition: Definition) -> Report:
    """The report of a paper, of all runs of a work directory."""
    from reports.papers.paper_document import describe
    from reports.read.run_library import read_library

    document, files, data = describe(definition, read_library(workdir))
    return Report(document, data, files)


def describe_study(workdir: Path, name: str) -> Document | None:
    """The report of a study; None where there is none of that name."""
    from studies.show.study_report import document

    return document(workdir, name)


def _folder(workdir: Path, name: str) -> Path:
    return workdir / "reports" / slug(name)


def _write(report: Report, folder: Path, formats: Sequence[str]) -> dict[str, Path]:
    return write(report.document, folder, formats, extra=report.files, data=report.data)
