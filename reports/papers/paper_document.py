"""A paper's report: its tables with our runs and the published rows, its figures, and every number
with its verdict.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from harness.results.record import Record
from reports.document.blocks import Block, Document, Section, Text
from reports.load import RecordedRow
from reports.papers.definition import Definition, PaperRow, PaperTable
from reports.papers.figures import blocks_of_file, paper_figures
from reports.papers.paper_results import Match, PaperResults
from reports.papers.paper_tables import paper_table, summary_table
from reports.papers.public_runs import seed_table
from reports.papers.search_spaces import search_spaces
from reports.records.run_library import RunLibrary
from reports.results import base_name
from reports.stats.estimate import mean_sd
from reports.write.markdown import csv_text

HEAD = (
    "table",
    "model",
    "base_model",
    "task",
    "metric",
    "published",
    "source_mark",
    "notes",
    "our row",
    "our base model",
    "ours",
    "sd",
    "n",
    "low",
    "high",
    "difference",
    "verdict",
    "reason",
    "remarks",
    "protocols",
    "runs",
    "report",
)
_KINDS = {
    "one seed": "compared with a single run",
    "not comparable": "measured but not comparable",
    "not measured": "not measured",
    "not published": "not legible",
}


def describe(
    definition: Definition, library: RunLibrary
) -> tuple[Document, dict[str, str], dict[str, Any]]:
    """The document; further files of the report by their path; further keys of data.json.

    Raises:
        InputError: several configurations of ours suit one row.
    """
    from reports.read.provenance import provenance_of
    from reports.tables.row_differences import difference_table
    from reports.tables.run_details import how_it_was_run

    paper = PaperResults(definition, library)
    paper.check_candidates()
    sections: list[Section] = []
    shown: list[RecordedRow] = []
    for table in definition.tables:
        heading = table.title.partition(" · ")[0]
        if not table.columns:
            spaces = search_spaces(paper, table)
            if spaces:
                sections += [Section(table.key, heading, [spaces])]
            continue
        filled, rows = paper_table(paper, table)
        blocks: list[Block] = [filled] if filled else []
        sections.append(Section(table.key, heading, blocks + _missing_rows(paper, table)))
        known = {row.key for row in shown}
        shown += [row for row in rows if row.key not in known]
    figures = paper_figures(paper, shown)
    comparison = replace(library, name=definition.name, rows=tuple(shown), title=definition.title)
    for key, title, block in (
        ("seeds", "What seeds do", seed_table(paper.public_runs, paper.published)),
        ("joined", "Published and measured", summary_table(paper)),
        ("differences", "Differences between our rows", difference_table(comparison)),
    ):
        if block is not None:
            figures += [Section(key, title, [block])]
    sections += figures
    if shown:
        sections.append(Section("run", "How it was run", how_it_was_run(comparison)))
    sections.append(Section("limits", "Limits", [_limits(paper, shown)]))
    document = Document(
        definition.title,
        _headline(paper.numbers),
        _facts(paper, shown),
        sections,
        definition.description,
    )
    document.origin = provenance_of(_records_behind(paper, shown))
    lines = plain(paper.numbers, "rehearsal" if any(row.rehearsal for row in shown) else "")
    return (
        document,
        {"tables/joined.csv": as_csv(lines)},
        {"report": definition.name, "joined": lines},
    )


def _records_behind(paper: PaperResults, shown: Sequence[RecordedRow]) -> list[Record]:
    """Return the records of the rows that are shown, and of the numbers of studies."""
    by_id = paper.library.by_id
    used = {}
    for row in shown:
        for record in row.records:
            used[record.id] = record
    for one in paper.numbers:
        used |= {run: by_id[run] for run in one.measured.records if run in by_id}
    return list(used.values())


def plain(numbers: Iterable[Match], report: str = "") -> list[dict[str, Any]]:
    """Every published number with ours, as plain data for CSV and JSON. `report`: its kind,
    "rehearsal".
    """
    lines = []
    for one in numbers:
        measured = one.measured
        p = one.published
        verdict = one.verdict
        if measured.by_seed:
            mean, sd = mean_sd(measured.values)
        else:
            mean = None
            sd = None
        values = (
            p["table"],
            p["model"],
            p["base_model"],
            p["task"],
            p["metric"],
            one.value,
            p["source_mark"],
            p["notes"],
            one.ours.label if one.ours else None,
            one.ours.base_model if one.ours else None,
            mean,
            sd,
            len(measured.by_seed) or None,
            verdict.low,
            verdict.high,
            one.difference,
            verdict.kind,
            verdict.text,
            " ".join(one.remarks),
            list(measured.protocols),
            list(measured.records),
            report,
        )
        lines.append(dict(zip(HEAD, values, strict=True)))
    return lines


def as_csv(lines: Iterable[dict[str, Any]]) -> str:
    """The lines of `plain` as CSV; numbers in full."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows([_field(value) for value in line.values()] for line in lines)
    return out.getvalue()


def _field(value: Any) -> str:
    if value is None or isinstance(value, float):
        if value is None:
            return ""
        return repr(value)
    return csv_text(" ".join(value) if isinstance(value, list) else str(value))


def _headline(numbers: list[Match]) -> str:
    """How many published numbers agree, in two sentences at most."""
    counts = Counter(str(one.verdict.kind) for one in numbers)
    inside = counts["inside"]
    above = counts["above"]
    below = counts["below"]
    texts = []
    for kind, text in _KINDS.items():
        if counts[kind]:
            texts.append(f"{counts[kind]} {text}")
    rest = ", ".join(texts)
    if not (compared := inside + above + below):
        return (
            f"None of {len(numbers)} published numbers was measured here with the paper's own base model, text, "
            f"settings and protocol and several seeds: {rest}."
        )
    return (
        f"{compared} of {len(numbers)} published numbers were measured here under the paper's own conditions: {inside} "
        f"inside the 95 % prediction interval of our runs, {above} above and {below} below."
        + (f" Of the others: {rest}." if rest else "")
    )


def _facts(paper: PaperResults, shown: list[RecordedRow]) -> list[tuple[str, str]]:
    rows = len(shown)
    runs = sum(len(row.records) for row in shown)
    bases = len({row.base_model for row in shown})
    return [
        (str(len(paper.definition.tables)), "tables"),
        (str(len(paper.numbers)), "published numbers"),
        (str(sum(bool(one.measured.by_seed) for one in paper.numbers)), "with a number of ours"),
        (str(rows), "row of ours" if rows == 1 else "rows of ours"),
        (str(runs), "run" if runs == 1 else "runs"),
        (str(bases), "base model" if bases == 1 else "base models"),
    ]


def _missing_rows(paper: PaperResults, table: PaperTable) -> list[Block]:
    """How many rows of the paper have no comparable number of ours, and the commands that measure
    those that can be measured.
    """
    printed, missing = _count_rows(paper, table)
    if not missing:
        return []
    have = "row has" if printed == 1 else "rows have"
    text = f"{len(missing)} of {printed} published {have} no comparable number of ours; the cells say why."
    if all(row.cannot for row in missing):
        return [Text((text,))]
    name = paper.definition.name
    blocks = blocks_of_file(name)
    commands = [f"harness study run {study} --workdir WORKDIR" for study in table.studies]
    if not commands and blocks is not None:
        part = ""
        if table.key in blocks:
            part = f" --only {table.key}"
        commands = [f"harness compare {name}{part} --workdir WORKDIR"]
    if commands:
        them = "the others" if any(row.cannot for row in missing) else "them"
        text += f" To measure {them}: {'; '.join(commands)}"
    return [Text((text,))]


def _count_rows(paper: PaperResults, table: PaperTable) -> tuple[int, list[PaperRow]]:
    """Return how many rows of a table have published numbers, and those of them of which we have no
    number that compares.
    """
    printed = 0
    missing = []
    for row in table.rows:
        numbers = paper.numbers_of(table, row)
        if not numbers:
            continue
        printed += 1
        if all(one.difference is None for one in numbers):
            missing.append(row)
    return printed, missing


def _limits(paper: PaperResults, shown: list[RecordedRow]) -> Text:
    limits = [
        "The interval of a row holds its standard deviation over seeds on the same test pairs, under a normal "
        "distribution. With few seeds it is wide, and a published number inside it is no proof of agreement.",
        "Comparable means: the same weights of the base model, the same training text and size, the settings that the "
        "paper states, and the same data, preparation and metric of the score, as the records say. How often the dev "
        "set was scored may differ; a note says so.",
    ]
    if any(len(row.finished) == 1 for row in shown):
        limits.append(
            "A row with one seed has no standard deviation; its difference to the paper says little."
        )
    if len({row.base_model for row in shown}) > 1 or any(
        base_name(r.base_model) == "mini-bert" for r in shown
    ):
        limits.append(
            "Small base models show how methods rank among themselves, not what a paper's model reaches."
        )
    every = dict.fromkeys(paper.library.warnings)
    return Text((*limits, *(f"Warning: {text}." for text in every)), bullets=True)
