"""Build reports: a paper's, a comparison's, or one of another package, from the records of a work directory alone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import registry
from harness.config import nearest
from harness.errors import InputError, RunError
from harness.results.manifest import manifest_file
from reports.document.blocks import Document
from reports.read.comparison_runs import Comparison, base_name, load

if TYPE_CHECKING:
    from reports.papers.definition import Definition

FORMATS = ("html", "md", "latex", "csv")  # those that are written unless others are asked for
ALL_FORMATS = (*FORMATS, "pdf")
# Entry points: name -> callable `(workdir, name) -> Document | None`; None where the name is not one of its reports.
SOURCES = "harness.reports"
_OWNED = ("tables", "figures", "experiments")  # folders of a report in which a build removes what it no longer writes


def build(workdir: Path, name: str, *, formats: Sequence[str] = FORMATS, out: Path | None = None) -> dict[str, Path]:
    """Write a report: a definition's (its name or file), else a comparison's, else that of another package.

    Args:
        workdir: the work directory whose runs are read.
        name: a definition, a definition file (.toml), a comparison, or what a source of `harness.reports` knows.
        formats: any of "html" (`index.html`), "md" (`report.md`), "latex" (`report.tex`, `tables/*.tex`), "csv"
            (`tables/*.csv`) and "pdf" (`report.pdf`). `data.json` is always written, and the figures, as SVG and PNG
            (PDF beside LaTeX).
        out: the folder to write to; `WORKDIR/reports/NAME` when left out.

    Returns:
        Format -> what was written ("csv" -> the folder of tables; also "json" -> data.json).

    Raises:
        InputError: nothing of that name, unknown format, a definition that is none.
        RunError: the folder cannot be written, or the PDF cannot be made.
    """
    _check(formats)
    from reports.papers import definition
    from reports.read.comparison_runs import comparisons

    if (defined := definition.load(name)) is not None:
        return build_paper(workdir, defined, formats=formats, out=out)
    if manifest_file(workdir, name).is_file():
        return build_comparison(workdir, name, formats=formats, out=out)
    for source in registry.names(SOURCES):
        describe: Callable[[Path, str], Document | None] = registry.load(SOURCES, source)
        if (document := describe(workdir, name)) is not None:
            return write(document, _folder(workdir, name, out), formats, data={"report": name})
    known = comparisons(workdir)
    if name in known:  # runs without a manifest, as they come from a tracking store
        return build_comparison(workdir, name, formats=formats, out=out)
    names = [*definition.names(), *known]
    where = "" if known else f"; {workdir} holds no runs: run `harness compare` first"
    raise InputError(f'{workdir}: no report "{name}"{nearest(name, names)}; known: {", ".join(names)}{where}')


def build_paper(
    workdir: Path, definition: Definition, *, formats: Sequence[str] = FORMATS, out: Path | None = None
) -> dict[str, Path]:
    """Write a paper's report; as `build` does."""
    _check(formats)
    from reports.papers import paper_document as paper
    from reports.read import all_runs as library

    document, files, data = paper.describe(definition, library.read(workdir))
    return write(document, _folder(workdir, definition.name, out), formats, extra=files, data=data)


def build_comparison(
    workdir: Path, name: str, *, formats: Sequence[str] = FORMATS, out: Path | None = None
) -> dict[str, Path]:
    """Write the report of a comparison; as `build` does. The same records give the same bytes.

    Raises:
        InputError: no such comparison, unknown format, damaged record.
        RunError: the folder cannot be written.
    """
    _check(formats)
    from reports.comparison import describe

    comparison = load(workdir, name)
    document = describe(comparison)
    extra = {"tables/all-scores.csv": _all_scores(comparison)} if "csv" in formats else {}
    return write(document, _folder(workdir, name, out), formats, extra=extra, data={"comparison": comparison.name})


def _check(formats: Sequence[str]) -> None:
    for one in formats:
        if one not in ALL_FORMATS:
            known = list(ALL_FORMATS)
            raise InputError(f'unknown report format "{one}"{nearest(one, known)}; known: {", ".join(known)}')


def _folder(workdir: Path, name: str, out: Path | None) -> Path:
    from reports.document.blocks import slug

    return out if out is not None else workdir / "reports" / slug(name)


def write(
    document: Document,
    folder: Path,
    formats: Sequence[str] = FORMATS,
    *,
    extra: Mapping[str, str] | None = None,
    data: Mapping[str, Any] | None = None,
) -> dict[str, Path]:
    """Write a document into a folder.

    Args:
        extra: further files of the report by their path ("tables/joined.csv").
        data: further keys of data.json and of the data in the page.

    Raises:
        RunError: the folder cannot be written, or the PDF cannot be made.
    """
    try:
        return _write(document, folder, formats, extra or {}, data or {})
    except OSError as error:
        raise RunError(f"{folder}: cannot write the report ({error.strerror}); the runs are untouched") from None


def _write(
    document: Document, folder: Path, formats: Sequence[str], extra: Mapping[str, str], more: Mapping[str, Any]
) -> dict[str, Path]:
    from reports.document.blocks import slug
    from reports.write import latex
    from reports.write import markdown as render
    from reports.write.html import page

    typeset = "latex" in formats or "pdf" in formats
    files: dict[str, str | bytes] = {}
    for figure in document.figures():
        files[f"figures/{slug(figure.key)}.svg"] = figure.svg
        files[f"figures/{slug(figure.key)}.png"] = figure.png
        if typeset:
            files[f"figures/{slug(figure.key)}.pdf"] = figure.pdf
    for table in document.tables():
        if "csv" in formats:
            files[f"tables/{slug(table.key)}.csv"] = render.csv_table(table)
        if "latex" in formats:
            files[f"tables/{slug(table.key)}.tex"] = latex.latex_table(table)
    files |= extra
    if "md" in formats:
        files["report.md"] = render.markdown(document)
    tex = latex.latex(document) if typeset else ""
    if "latex" in formats:
        files["report.tex"] = tex
    data: dict[str, Any] = {
        **more,
        "title": document.title,
        "headline": document.headline,
        "facts": [list(fact) for fact in document.facts],
        "tables": {table.key: table.as_dict() for table in document.tables()},
        **document.origin,
    }
    if "html" in formats:
        files["index.html"] = page(document, data)
    _remove_stale(folder, set(files))
    for name, content in files.items():
        _put(folder / name, content)
    # Last of the text, since it lists what is there: the next build removes what it no longer writes, and nothing else.
    listed = data | {"files": sorted(files)}
    _put(folder / "data.json", json.dumps(listed, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    if "pdf" in formats:
        from reports.write.pdf import pdf

        _put(folder / "report.pdf", pdf(tex, folder))
    places = {
        "html": "index.html", "md": "report.md", "latex": "report.tex", "csv": "tables", "pdf": "report.pdf",
        "json": "data.json",
    }  # fmt: skip
    return {kind: folder / places[kind] for kind in (*formats, "json")}


def _put(path: Path, content: str | bytes) -> None:
    """Replace a file in one step. No fsync and the usual permissions: a report can be rebuilt and is to be shared."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content if isinstance(content, bytes) else content.encode())
    temporary.replace(path)


def _remove_stale(folder: Path, wanted: set[str]) -> None:
    """Delete what an earlier build listed as its own in this folder and this one does not write."""
    try:
        listed = json.loads((folder / "data.json").read_text(encoding="utf-8"))["files"]
        names = {name for name in listed if isinstance(name, str)}
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name in names - wanted:
        parts = Path(name).parts
        if len(parts) == 2 and parts[0] in _OWNED and parts[1] != "..":
            (folder / name).unlink(missing_ok=True)


def _all_scores(comparison: Comparison) -> str:
    """Every score of every run, a line each: what no table has room for."""
    from reports.write.markdown import csv_text

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = ("task", "suite", "source", "split", "metric", "aggregation", "value", "n", "protocol", "comparable")
    writer.writerow(["record", "row", "base_model", "seed", "status", *fields])
    for r in comparison.records:
        for s in r.scores:
            values = [getattr(s, field) for field in fields]
            line = [r.id, r.row, r.base_model, r.seed, r.status, *values]
            writer.writerow([csv_text(value) if isinstance(value, str) else value for value in line])
    return out.getvalue()


def summary_table(workdir: Path, name: str) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of text for a terminal: every score as mean ± deviation, best marked with "*".

    No bootstrap: it answers at once. Where several sources or suites were run, their columns follow one another.

    Raises:
        InputError: no such comparison, damaged record.
    """
    from reports.stats.resamples import SOURCES
    from reports.tables.scores import HEAD, head_cells, score_tables

    comparison = load(workdir, name)
    tables = score_tables(comparison, None)
    several = len(comparison.base_models) > 1
    columns = ["Method", *(["Base model"] if several else []), "Seeds"]
    rows = [
        [row.label, *([base_name(row.base_model)] if several else []), head_cells(row)[2].text]
        for row in comparison.rows
    ]
    sources = {table.key: table.key.removeprefix("scores-sts-") for table in tables}
    for table in tables:
        source = sources[table.key]
        suffix = f" ({SOURCES.get(source, source)})" if "scores-embedded" not in table.key and len(tables) > 1 else ""
        columns += [f"{column.title}{suffix}" for column in table.columns[len(HEAD) :]]
        for line, row in zip(rows, table.rows, strict=True):
            for cell in row.cells[len(HEAD) :]:
                line.append(f"{cell.text}{'*' if cell.rank == 1 else ''} {cell.spread}".strip())
    if any(row.unfinished for row in comparison.rows) or not tables:
        columns.append("Status")
        for line, shown in zip(rows, comparison.rows, strict=True):
            ended = dict.fromkeys(r.status for r in shown.unfinished)
            line.append(", ".join(ended) or "finished")
    return columns, rows
