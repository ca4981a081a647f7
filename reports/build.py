"""Build reports: a paper's, a comparison's or a study's, from the records of a work directory
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.config import as_list, nearest
from harness.errors import InputError
from harness.files.links import refuse_links
from harness.results.elsewhere import open_workdir
from harness.results.store import comparison_files
from reports.document.blocks import Document, add_marks, slug
from reports.load import RecordedResults, comparisons, read_comparison
from reports.scores.score_table import is_score_table, refuse_with_scores
from reports.write.exports import every_eval_ever
from reports.write.latex import bibliography
from reports.write.report_folder import FORMATS, check_formats, write
from studies import SHIPPED, SHIPPED_NAME


@dataclass(frozen=True)
class Report:
    """A report before it is written: the document, further keys of data.json, files by their path,
    its methods, and the comparison that it is of.
    """

    document: Document
    data: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    methods: frozenset[str] = frozenset()
    rehearsal: bool = False
    comparison: RecordedResults | None = None


def build_report(
    name: Any,
    workdir: str | Path = "work",
    *,
    formats: str | Sequence[str] = FORMATS,
    out: str | Path | None = None,
    without_overlap: bool = False,
    with_texts: bool = False,
    with_files: str | Path | Sequence[str | Path] = (),
) -> dict[str, Path]:
    """Build a report from records: a comparison's, a paper's or a study's; no run is repeated.

        >>> sorted(harness.report("poolings", work, formats=["md"]))
        ['json', 'md']

    Args:
        name: a paper, a definition file (.toml), a comparison or a study, by name or as `compare`
            and `study` return it; or scores that others made, as `harness.verdict` takes them.
        workdir: the work directory whose runs are read; of a result, its own.
        formats: any of "html" (`index.html`), "md" (`report.md`), "latex" (`report.tex`,
            `tables/*.tex`, `references.bib`), "csv" (`tables/*.csv`), "pdf" (`report.pdf`),
            "ro-crate" (`ro-crate-metadata.json`, of all the files) and, of a comparison,
            "every-eval-ever" (`data/`, a record for each run). `data.json` is always written;
            figures with the first three and "pdf".
        out: the folder to write to; `WORKDIR/reports/NAME` when left out.
        without_overlap: of a comparison: without the examples of which a text occurs in the
            training text of a row; to `WORKDIR/reports/NAME-without-overlap`.
        with_texts: of a comparison: its page shows texts of all data sets, whose licences may
            forbid passing it on.
        with_files: of a comparison: what others sent, archives of `harness.pack`, work directories
            or scores of examples; its page ranks all rows together, and shows incomplete ones
            apart. To `WORKDIR/reports/NAME-joined`.

    Returns:
        Format -> what was written ("csv" -> the folder of tables; also "json" -> data.json).

    Raises:
        InputError: nothing of that name, unknown format, a definition that is none, or links that
            lead out of the work directory or the folder.
        RunError: the folder cannot be written, or the PDF cannot be made.
    """
    from reports.papers import definition

    formats = as_list(formats)
    check_formats(formats)
    workdir = Path(workdir)
    out = None if out is None else Path(out)
    is_result = hasattr(name, "workdir")
    if is_result:
        workdir = Path(name.workdir)
        name = name.name
    if isinstance(name, Path):
        name = str(name)
    of_comparison = {"without_overlap": without_overlap, "with_texts": with_texts}
    if not isinstance(name, str):
        refuse_with_scores(**of_comparison)
        return _write_scores(name, workdir, out, formats)
    if with_files:
        joined = _join(name, workdir, [Path(file) for file in as_list(with_files)])
        return _write(joined, out or workdir / "reports" / slug(f"{name}-joined"), formats)
    if out is None:
        refuse_links(workdir)
    is_file = Path(name).suffix == ".toml"
    is_own = is_result or name in comparison_files(workdir)
    if not is_file and not is_own and is_score_table(name):
        refuse_with_scores(**of_comparison)
        return _write_scores(name, workdir, out, formats)
    defined = None
    if not without_overlap and not _is_only_study(name, workdir):
        defined = definition.load(name)
    if defined is not None:
        return _write(
            describe_paper(workdir, defined),
            out or workdir / "reports" / slug(defined.name),
            formats,
        )
    report = describe(name, workdir, without_overlap=without_overlap, with_texts=with_texts)
    folder = workdir / "reports" / slug(f"{name}-without-overlap" if without_overlap else name)
    return _write(report, out or folder, formats)


def _is_only_study(name: str, workdir: Path) -> bool:
    """True if a study of the work directory has the name, and no comparison. It may be that of a
    paper, as "simcse", which is a method too.
    """
    if name in comparison_files(workdir) or not (workdir / "studies.journal").exists():
        return False
    from studies.storage import studies_in

    return name in studies_in(workdir)


def _write_scores(
    source: Any, workdir: Path, out: Path | None, formats: Sequence[str]
) -> dict[str, Path]:
    """Write the report of scores that others made.

    Raises:
        InputError: they are none.
    """
    from reports.scores.score_report import describe_scores

    if not is_score_table(source):
        kind = type(source).__name__
        message = f"expected a name, the result of a call or scores, not {kind}"
        raise InputError(message, key="name")
    title = "scores"
    if isinstance(source, str | Path):
        title = Path(source).name
    report = Report(describe_scores(source, title), {"scores": title})
    return _write(report, out or workdir / "reports" / slug(Path(title).stem), formats)


def _join(name: str, workdir: Path, files: Sequence[Path]) -> Report:
    """Return the page of a comparison and of what others sent; "shipped" is the package's own."""
    from reports.joined.joined_document import describe_joined

    if name == SHIPPED_NAME and name not in comparison_files(workdir):
        with open_workdir(SHIPPED) as folder:
            return _join(name, folder, files)
    if name not in comparison_files(workdir):
        raise InputError(
            f'--with: goes with a comparison; {workdir} has none that is called "{name}"',
            key="--with",
        )
    found = describe_joined(read_comparison(workdir, name), files)
    return Report(found.document, {"comparison": name, "pairs": found.pairs})


def build_comparison(
    workdir: Path,
    name: str,
    *,
    formats: Sequence[str] = FORMATS,
) -> dict[str, Path]:
    """Write the report of a comparison at its end, as `build_report` does. The same records give
    the same bytes.

    Raises:
        InputError: no such comparison, unknown format, damaged record.
        RunError: the folder cannot be written.
    """
    check_formats(formats)
    refuse_links(workdir)
    return _write(describe(name, workdir), workdir / "reports" / slug(name), formats)


def build_study(
    workdir: Path,
    name: str,
    *,
    formats: Sequence[str] = FORMATS,
) -> dict[str, Path]:
    """Write the report of a study, as `build_report` does, whatever else has its name.

    Raises:
        InputError: no such study, unknown format, damaged journal.
        RunError: the folder cannot be written.
    """
    check_formats(formats)
    refuse_links(workdir)
    return _write(describe_study(workdir, name), workdir / "reports" / slug(name), formats)


def describe_study(workdir: Path, name: str) -> Report:
    """Return the report of a study.

    Raises:
        InputError: no such study, damaged journal.
    """
    from reports.studies import study_report

    found = study_report.document(workdir, name)
    if found is None:
        raise InputError(f'no study "{name}"', file=workdir)
    document, files = found
    return Report(document, {"report": name}, files)


def describe(
    name: str,
    workdir: Path,
    *,
    without_overlap: bool = False,
    with_texts: bool = False,
) -> Report:
    """The report of a comparison or study; arguments as in `build_report`.

    Raises:
        InputError: nothing of that name, damaged record.
    """
    from reports.comparison import comparison_document
    from reports.comparison.comparison_document import all_scores

    if name not in comparison_files(workdir):
        if without_overlap and name not in comparisons(workdir):
            raise InputError(
                f'--without-overlap: goes with a comparison; {workdir} has none that is called "{name}"',
                key="--without-overlap",
            )
        if not without_overlap and _is_only_study(name, workdir):
            return describe_study(workdir, name)
        _check_name(name, workdir)  # the runs of single trainings have no comparison file
    comparison = replace(read_comparison(workdir, name), show_texts=with_texts)
    if without_overlap:
        from reports.records.overlap import without_overlap as leave_out

        comparison = leave_out(comparison)[0]
    data = {"comparison": comparison.name}
    files = {"tables/all-scores.csv": all_scores(comparison)}
    rehearsal = any(row.rehearsal for row in comparison.rows)
    methods = frozenset(record.method for record in comparison.records)
    return Report(
        comparison_document.describe(comparison), data, files, methods, rehearsal, comparison
    )


def _check_name(name: str, workdir: Path) -> None:
    from reports.papers import definition

    known = comparisons(workdir)
    if name not in known:
        names = [*definition.names(), *known]
        if known:
            where = ""
        else:
            where = f"; {workdir} holds no runs: run `harness compare` first"
        raise InputError(
            f'no report "{name}"{nearest(name, names)}; known: {", ".join(names)}{where}',
            file=workdir,
        )


def describe_paper(workdir: Path, definition: Any) -> Report:
    """The report of a paper's definition, with all runs of a work directory."""
    from reports.papers import paper_document
    from reports.records.run_library import read_library
    from reports.studies.study_report import trials_on_dev

    library = read_library(
        workdir,
        lambda: trials_on_dev(workdir),
        comparisons=definition.comparisons,
        studies=definition.studies,
    )
    document, files, data = paper_document.describe(definition, library)
    methods = frozenset(
        row.method for table in definition.tables for row in table.rows if row.method
    )
    return Report(
        document,
        data,
        files,
        methods,
        rehearsal=any(line["report"] for line in data["joined"]),
    )


def _write(report: Report, folder: Path, formats: Sequence[str]) -> dict[str, Path]:
    document = report.document
    data = dict(report.data)
    if report.rehearsal:
        document, data["rehearsal"] = add_marks(document), True
    files = {}
    for path, text in report.files.items():
        if "csv" in formats or not path.startswith("tables/"):
            files[path] = text
    if "every-eval-ever" in formats:
        if report.comparison is None:
            raise InputError("--format every-eval-ever: goes with a comparison", key="--format")
        files |= every_eval_ever(report.comparison)
    if "latex" in formats and report.methods:
        files["references.bib"] = bibliography(report.methods)
    return write(document, folder, formats, extra=files, data=data)
