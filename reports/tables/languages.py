"""STS in other languages, as a table."""

from __future__ import annotations

from reports.document.table import Column, Table
from reports.read.comparison_runs import Comparison
from reports.stats.significance import Significance
from reports.stats.targets import Measure, alone
from reports.tables.judged import judged_rows
from reports.tables.score_cells import HEAD, head_cells, mark_unlike, score_cell, size_text

LANGUAGES = {
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "zh": "Chinese",
}


def multilingual_table(comparison: Comparison, significance: Significance | None = None) -> Table | None:
    """The STS benchmark's test pairs in the languages that were scored."""
    tasks = comparison.columns("multilingual")
    if not tasks:
        return None
    rows = comparison.rows
    columns, cells = list(HEAD), [list(head_cells(row)) for row in rows]
    for task, source in tasks:
        name = task.rsplit("-", 1)[-1]
        size = size_text(rows, task, source, "spearman", "all", "pairs")
        columns.append(Column(task, LANGUAGES.get(name, task), size, better="higher"))
        for line, row in zip(cells, rows, strict=True):
            line.append(score_cell(row, task, source, "spearman", "all", scale=100, digits=2))
        mark_unlike(rows, cells, len(columns) - 1, task, source, "spearman", "all")
    by_column = {len(HEAD) + i: alone(Measure(task, source)) for i, (task, source) in enumerate(tasks)}
    body, said = judged_rows(comparison, significance, columns, cells, by_column, list(by_column))
    return Table(
        "multilingual",
        "Semantic textual similarity in other languages",
        "The test pairs of the STS benchmark, machine-translated (STSb Multi MT): the same pairs and scores in every "
        "language.",
        tuple(columns),
        body,
        ("Spearman's correlation ×100, mean ± standard deviation over seeds.", *said),
    )
