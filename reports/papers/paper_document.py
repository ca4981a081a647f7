"""A paper's report: each of its tables with our runs beside the published rows, its figures, every number joined."""

from __future__ import annotations

from typing import Any

from harness.comparison.experiment import presets, read_experiment
from reports.document.blocks import Block, Document, Facts, Section, Text
from reports.document.rehearsal import marked
from reports.papers.definition import Definition, PaperTable
from reports.papers.joined_table import joined_table
from reports.papers.matched_numbers import as_csv, counts, plain
from reports.papers.matching import Matching
from reports.papers.paper_figures import figures
from reports.papers.paper_tables import Filled, paper_table
from reports.papers.search_spaces import search_spaces
from reports.papers.study_summaries import study_summaries
from reports.read.comparison_runs import ResultRow, base_name
from reports.read.run_library import RunLibrary

_COMPARED = ("inside", "above", "below")
_KINDS = {
    "one seed": "beside a single run",
    "not comparable": "measured but not comparable",
    "not measured": "not measured",
    "not published": "illegible",
}


def describe(definition: Definition, library: RunLibrary) -> tuple[Document, dict[str, str], dict[str, Any]]:
    """The document; further files of the report by their path; further data for data.json."""
    matching = Matching(definition, library)
    sections: list[Section] = []
    shown: list[ResultRow] = []
    blocks_of_file = _blocks_of(definition.name)
    for table in definition.tables:
        if table.kind == "spaces":
            spaces = search_spaces(matching, table)
            sections += [Section(table.key, _short(table), [spaces])] if spaces else []
            continue
        filled = paper_table(matching, table)
        blocks: list[Block] = [filled.table] if filled.table else []
        blocks += _said(matching, table, filled, blocks_of_file)
        sections.append(Section(table.key, _short(table), blocks))
        known = {row.key for row in shown}
        shown += [row for row in filled.rows if row.key not in known]
    sections += [
        section for section in (figures(matching, shown), study_summaries(library, definition)) if section.blocks
    ]
    if (together := joined_table(matching)) is not None:
        sections.append(Section("joined", "Published and measured", [together]))
    from reports.tables.row_cards import how_it_was_run
    from reports.tables.row_differences import difference_table

    comparison = library.as_comparison(definition.name, shown, definition.title)
    if (differences := difference_table(comparison)) is not None:
        sections.append(Section("differences", "What differs between our rows", [differences]))
    if shown:
        sections.append(Section("run", "How it was run", how_it_was_run(comparison)))
    sections.append(Section("limits", "Limits", [_limits(matching, shown, comparison.warnings)]))
    document = Document(
        definition.title,
        _headline(matching),
        _facts(matching, shown),
        sections,
        f"{definition.paper}. {definition.description}",
    )
    from reports.read.provenance import provenance_of

    cited = {r.id: r for row in shown for r in row.records}  # by the rows, and by the numbers of studies
    cited |= {i: library.by_id[i] for j in matching.rows for i in j.ours.records if i in library.by_id}
    document.origin = provenance_of(cited.values(), library.workdir)
    rehearsal = any(row.rehearsal for row in shown)
    report = "rehearsal" if rehearsal else ""
    files = {"tables/joined.csv": as_csv(matching.rows, report)}
    data = {"report": definition.name, "joined": plain(matching.rows, report)}
    if rehearsal:
        return marked(document), files, {**data, "rehearsal": True}
    return document, files, data


def _short(table: PaperTable) -> str:
    return table.title.partition(" · ")[0]


def _headline(matching: Matching) -> str:
    """What became of the published numbers, in two sentences at most."""
    by_kind = counts(matching.rows)
    total, compared = len(matching.rows), sum(by_kind.get(kind, 0) for kind in _COMPARED)
    rest = ", ".join(f"{by_kind[kind]} {text}" for kind, text in _KINDS.items() if by_kind.get(kind))
    if not compared:
        return (
            "No published number was measured here on the paper's own base model, text, recipe and protocol with "
            f"several seeds. Of {total}: {rest}."
        )
    inside, above, below = (by_kind.get(kind, 0) for kind in _COMPARED)
    return (
        f"{compared} of {total} published numbers were measured here under the paper's own conditions: {inside} within "
        f"what our runs let expect (95 %), {above} above and {below} below."
        + (f" Of the others: {rest}." if rest else "")
    )


def _facts(matching: Matching, shown: list[ResultRow]) -> list[tuple[str, str]]:
    bases = list(dict.fromkeys(row.base_model for row in shown))
    runs = sum(len(row.records) for row in shown)
    return [
        (str(len(matching.definition.tables)), "tables"),
        (str(len(matching.rows)), "published numbers"),
        (str(sum(bool(j.ours.by_seed) for j in matching.rows)), "with a number of ours"),
        (str(len(shown)), "row of ours" if len(shown) == 1 else "rows of ours"),
        (str(runs), "run" if runs == 1 else "runs"),
        (str(len(bases)), "base model" if len(bases) == 1 else "base models"),
    ]


def _blocks_of(paper: str) -> list[str] | None:
    """The blocks of the experiment file that is called as the paper is; None where none is installed."""
    return list(read_experiment(paper).blocks) if paper in presets() else None


def _said(matching: Matching, table: PaperTable, filled: Filled, blocks_of_file: list[str] | None) -> list[Block]:
    """What of the table could not be measured here, and the command that would."""
    if not filled.missing:
        return []
    items = tuple((label, reason) for label, reason in filled.missing)
    commands: list[str] = []
    if table.kind == "study":
        wanted = dict.fromkeys(row.study for row in table.rows if row.study and any(row.label == m for m, _ in items))
        commands += [f"harness study run {study} --workdir WORKDIR" for study in wanted]
    elif blocks_of_file is not None:
        part = f" --only {table.key}" if table.key in blocks_of_file else ""
        commands.append(f"harness compare {matching.definition.name}{part} --workdir WORKDIR")
    total = sum(bool(row.published) for row in table.rows)
    title = f"Published rows without a comparable number of ours: {len(items)} of {total}"
    blocks: list[Block] = [Facts(f"missing-{table.key}", title, items, tuple(commands))]
    if not filled.measured:
        how = f" To fill it: {commands[0]}" if commands else ""
        more = f" (and {len(commands) - 1} more below)" if len(commands) > 1 else ""
        why = f": {filled.reason}" if filled.reason else ""
        blocks.insert(0, Text((f"Nothing of this table was measured in this work directory{why}.{how}{more}",)))
    return blocks


def _limits(matching: Matching, shown: list[ResultRow], warnings: list[str]) -> Text:
    said = [
        "The interval of a row holds its spread over seeds on the same test pairs, under a normal distribution; with "
        "few seeds it is wide, and a published number inside of it is no proof of agreement.",
        "Comparable means: the same weights of the base model, the same training text and size, the hyperparameters "
        "that the paper states, the same data, preparation and metric of the score, as the records say. How often "
        "weights were selected on the dev set may differ, and is told.",
    ]
    if any(len(row.finished) == 1 for row in shown):
        said.append("A row with one seed has no spread: its difference to a published number says little.")
    if len({row.base_model for row in shown}) > 1 or any(base_name(r.base_model) == "mini-bert" for r in shown):
        said.append("Small base models show how methods order among themselves, not what a paper's model reaches.")
    all_warnings = [*matching.library.warnings, *warnings]
    return Text((*said, *(f"Warning: {text}." for text in dict.fromkeys(all_warnings))), bullets=True)
