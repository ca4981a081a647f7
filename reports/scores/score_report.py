"""The report of scores that others made: the answer, a figure of all rows, their scores, and all
pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reports.comparison.headline import headline
from reports.document.blocks import Block as Part
from reports.document.blocks import Document, Section, Text
from reports.document.table import Cell, Column, Table, TableRow, number, rank_cells
from reports.figures.intervals import overview
from reports.read.score_contract import SHOWN_NEGATIVE
from reports.results import ResultRow
from reports.scores.score_table import question_of_scores
from reports.stats.estimate import mean_sd
from reports.stats.verdicts import Ranking
from reports.tables.certainty import pairs_table
from reports.targets import Measure, alone

if TYPE_CHECKING:
    from reports.read.score_tables import Source

_MOST_TASKS = 12  # columns of the table


def describe_scores(source: Source, name: str) -> Document:
    """Return the document of scores as `harness verdict --scores` takes them.

    Args:
        name: what the source is called.

    Raises:
        InputError: bad input, with file, line and column.
    """
    question = question_of_scores(source)
    (block,) = question.blocks().values()
    results = question.results
    sentences = headline(results, question.significance)
    has_negative = any(block.mean(row) < 0 for row in block.rows)
    if has_negative and SHOWN_NEGATIVE in results.note:
        sentences.append(f"Scores are {SHOWN_NEGATIVE}.")
    answer = " ".join(sentences)
    tasks = len(block.target.measures)
    facts = [
        (str(len(block.rows)), "rows"),
        (str(tasks), "tasks" if tasks > 1 else "task"),
        (str(len(results.runs)), "runs"),
    ]
    parts: list[Part] = [_scores(block)]
    figure = overview(results, question.significance)
    if figure is not None:
        known = _describe_known(block)
        caption = figure.caption.replace("over seeds and examples", f"over {known}")
        parts.insert(0, replace(figure, caption=caption))
    sections = [
        Section("scores", "Scores", parts),
        Section("pairs", "All pairs", [pairs_table(block, "")], folded=True),
        Section("limits", "Limits", [Text(_limits(block), bullets=True)]),
    ]
    return Document(f"Scores of {name}", answer, facts, sections, answer=answer)


def _has_examples(block: Ranking) -> bool:
    return block.significance.examples(block.target) > 0


def _describe_known(block: Ranking) -> str:
    """Return what the intervals of the rows cover."""
    has_seeds = any(len(block.runs(row)) > 1 for row in block.rows)
    if has_seeds and _has_examples(block):
        return "seeds and examples"
    return "examples" if _has_examples(block) else "seeds"


def _limits(block: Ranking) -> tuple[str, ...]:
    """Return what a reader cannot conclude from the scores, a sentence each."""
    clauses = [clause for clause in block.significance.results.note.split("; ") if clause]
    sentences = []
    for clause in clauses:
        sentences.append(f"{clause[0].upper()}{clause[1:]}.")
    return (
        *sentences,
        "The conclusions are about these tasks: nothing follows for others.",
        "How settings and checkpoints of each row were chosen is not known here: on the test sets, or with more trials "
        "for some rows than for others, differences are flattered.",
        "Whether rows differ in data, size or training in other ways is not known here either.",
    )


def _scores(block: Ranking) -> Table:
    """Return the table of all rows; with their files where there are several."""
    with_files = len({file for row in block.rows for file in row.files}) > 1
    measures = block.target.measures
    if len(measures) > 1:
        tasks = measures[:_MOST_TASKS]
    else:
        tasks = ()
    columns = [
        Column("row", "Row", numeric=False),
        Column("mean", "Mean" if tasks else block.target.title, better="higher"),
        Column("runs", "Runs", aside=True),
        *(Column(f"task-{one.task}", one.task, better="higher") for one in tasks),
    ]
    if with_files:
        columns.append(Column("file", "File", numeric=False, aside=True))
    rows = []
    for row in block.rows:
        cells = _cells_of(block, row, tasks)
        if with_files:
            cells.append(Cell(", ".join(Path(file).name for file in row.files)))
        rows.append(TableRow(tuple(cells)))
    if len(block.judged) < 2:  # nothing was tested: no mark says which row is the best
        columns = [replace(column, better="") for column in columns]
    left = len(measures) - len(tasks)
    legend = []
    if tasks and left:
        legend.append(f"The mean is that of {len(measures)} tasks; {left} are not shown.")
    caption = "Means over runs in points, ± standard deviation over runs."
    return Table(
        "scores",
        "Scores of all rows",
        caption,
        tuple(columns),
        tuple(rank_cells(columns, rows)),
        tuple(legend),
    )


def _cells_of(block: Ranking, row: ResultRow, tasks: Sequence[Measure]) -> list[Cell]:
    """Return a row's label, its mean, its number of runs and its score of each task."""
    runs = 100 * block.runs(row)
    mean, spread = mean_sd(runs)
    cells = [
        Cell(row.label),
        number(mean, sd=spread, n=len(runs)),
        Cell(str(len(runs))),
    ]
    for task in tasks:
        found = block.significance.by_seed(row, alone(task))
        if found is not None:
            cells.append(number(100 * float(found.scores.mean())))
    return cells
