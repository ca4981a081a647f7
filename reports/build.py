"""Build the report of a comparison from the records of a work directory alone."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.config import nearest
from harness.errors import InputError, RunError
from reports.document import Block, Document, Section
from reports.records import Comparison, base_name, load
from reports.tables import Table

FORMATS = ("html", "md", "latex", "csv")


def build_comparison(
    workdir: Path, name: str, *, formats: Sequence[str] = FORMATS, out: Path | None = None
) -> dict[str, Path]:
    """Write the report of a comparison; the same records give the same bytes.

    Args:
        workdir: the work directory whose `runs` are read.
        name: the comparison.
        formats: any of "html" (`index.html`), "md" (`report.md`), "latex" (`report.tex`, `tables/*.tex`) and "csv"
            (`tables/*.csv`). `data.json` is always written, and the figures, as SVG and PNG (PDF beside LaTeX).
        out: the folder to write to; `WORKDIR/reports/NAME` when left out.

    Returns:
        Format -> what was written ("csv" -> the folder of tables; also "json" -> data.json).

    Raises:
        InputError: no such comparison, unknown format, damaged record.
        RunError: the folder cannot be written.
    """
    for one in formats:
        if one not in FORMATS:
            raise InputError(f'unknown report format "{one}"{nearest(one, list(FORMATS))}; known: {", ".join(FORMATS)}')
    from reports.page import slug

    comparison = load(workdir, name)
    folder = out if out is not None else workdir / "reports" / slug(name)
    document = describe(comparison)
    try:
        return _write(document, comparison, folder, formats)
    except OSError as error:
        raise RunError(f"{folder}: cannot write the report ({error.strerror}); the runs are untouched") from None


def describe(comparison: Comparison) -> Document:
    """The comparison as a document: every table, figure and remark."""
    from reports import curves, figures, provenance
    from reports.accuracies import accuracy_tables
    from reports.analysis import Analysis, headline
    from reports.content import against_base, score_tables
    from reports.measures import cost_table, geometry_tables

    analysis = Analysis(comparison)
    logs = curves.read_curves(comparison)
    conclusion = headline(comparison, analysis)

    def section(key: str, title: str, *blocks: Block | None) -> Section:
        return Section(key, title, [block for block in blocks if block is not None])

    spaces = []
    for task, source in comparison.columns("geometry"):
        data = task.removeprefix("geometry:")
        own = [t for t in analysis.targets if t.key == f"embedded-{data}"]
        same = [t for t in analysis.targets if t.key == f"sts-{source}"]
        coloured_by = next(iter([*own, *same, *analysis.targets]), None)
        spaces.append(figures.scatter(comparison, task, source, coloured_by))
    tables = score_tables(comparison, analysis)
    sections = [
        section("scores", "Scores", *tables, *accuracy_tables(comparison)),
        section(
            "base",
            "Against the untrained base",
            against_base(comparison, analysis),
            figures.forest(comparison, analysis),
        ),
        section("space", "Alignment and uniformity", *geometry_tables(comparison), *spaces),
        section("training", "Training", curves.development(comparison, logs), curves.losses(comparison, logs)),
        section("cost", "Cost", cost_table(comparison)),
        section("run", "How it was run", *provenance.how_it_was_run(comparison)),
        section("limits", "Limits", provenance.limits(comparison, analysis)),
    ]
    kept = [s for s in sections if s.blocks]
    return Document(comparison.title, conclusion, _facts(comparison, tables), kept, comparison.description)


def _facts(comparison: Comparison, tables: list[Table]) -> list[tuple[str, str]]:
    seeds = sorted({len(row.records) for row in comparison.rows})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    tasks = {(s.task, s.source) for r in comparison.records for s in r.scores if s.suite in ("sts", "embedded")}
    tasks = {key for key in tasks if not key[0].startswith("geometry:")}
    facts = [
        (str(len(comparison.rows)), "row" if len(comparison.rows) == 1 else "rows"),
        (str(len(comparison.base_models)), "base model" if len(comparison.base_models) == 1 else "base models"),
        (count, "seed a row" if count == "1" else "seeds a row"),
        (str(len(comparison.records)), "run" if len(comparison.records) == 1 else "runs"),
        (str(len(tasks)), "task" if len(tasks) == 1 else "tasks"),
    ]
    last = max((r.finished for r in comparison.records), default="")
    return facts + ([(last[:10], "last run")] if last else [])


def _write(document: Document, comparison: Comparison, folder: Path, formats: Sequence[str]) -> dict[str, Path]:
    from reports import latex, render
    from reports.page import page, slug

    files: dict[str, str | bytes] = {}
    for figure in document.figures():
        files[f"figures/{slug(figure.key)}.svg"] = figure.svg
        files[f"figures/{slug(figure.key)}.png"] = figure.png
        if "latex" in formats:
            files[f"figures/{slug(figure.key)}.pdf"] = figure.pdf
    for table in document.tables():
        if "csv" in formats:
            files[f"tables/{slug(table.key)}.csv"] = render.csv_table(table)
        if "latex" in formats:
            files[f"tables/{slug(table.key)}.tex"] = latex.latex_table(table)
    if "csv" in formats:
        files["tables/all-scores.csv"] = _all_scores(comparison)
    if "md" in formats:
        files["report.md"] = render.markdown(document)
    if "latex" in formats:
        files["report.tex"] = latex.latex(document)
    data: dict[str, Any] = {
        "comparison": comparison.name,
        "title": document.title,
        "headline": document.headline,
        "facts": [list(fact) for fact in document.facts],
        "tables": {table.key: table.as_dict() for table in document.tables()},
    }
    if "html" in formats:
        files["index.html"] = page(document, data)
    _remove_stale(folder, set(files))
    for name, content in files.items():
        _put(folder / name, content)
    # Last, since it lists what is there: the next build removes what it no longer writes, and nothing else.
    listed = data | {"files": sorted(files)}
    _put(folder / "data.json", json.dumps(listed, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    places = {"html": "index.html", "md": "report.md", "latex": "report.tex", "csv": "tables", "json": "data.json"}
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
        if len(parts) == 2 and parts[0] in ("tables", "figures") and parts[1] != "..":
            (folder / name).unlink(missing_ok=True)


def _all_scores(comparison: Comparison) -> str:
    """Every score of every run, a line each: what no table has room for."""
    from reports.render import csv_text

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
    from reports.analysis import SOURCES
    from reports.content import HEAD, head_cells, score_tables

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
