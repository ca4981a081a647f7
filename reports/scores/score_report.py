"""The report of scores that others made: the answer, a figure of all rows, their scores, and all
pairs.
"""

from __future__ import annotations

from pathlib import Path

from reports.comparison.headline import headline
from reports.document.blocks import Block as Part
from reports.document.blocks import Document, Section, Text
from reports.document.table import Cell, Column, Table, TableRow, number, ranked
from reports.figures.intervals import overview
from reports.scores.score_table import question_of_scores
from reports.stats.estimate import mean_sd
from reports.stats.targets import alone
from reports.stats.verdicts import Block
from reports.tables.certainty import pairs_table

_MOST_TASKS = 12  # columns of the table


def describe_scores(source: Path) -> Document:
    """The document of a file or folder that `harness verdict --scores` takes.

    Raises:
        InputError: bad input, with file, line and column.
    """
    question = question_of_scores(source)
    (block,) = question.blocks().values()
    answer, note = (
        " ".join(headline(question.comparison, question.significance)),
        question.significance.note,
    )
    tasks, figure = len(block.target.measures), overview(question.comparison, question.significance)
    limits = f"{note[0].upper()}{note[1:]}." if note else "Seeds and examples are known."
    facts = [(str(len(block.rows)), "rows"), (str(tasks), "tasks" if tasks > 1 else "task")]
    facts.append((str(len(question.comparison.records)), "runs"))
    parts: list[Part] = [figure] if figure is not None else []
    sections = [
        Section("scores", "Scores", [*parts, _scores(block)]),
        Section("pairs", "All pairs", [pairs_table(block, "")], folded=True),
        Section("limits", "Limits", [Text((limits,))]),
    ]
    return Document(f"Scores of {source.name}", answer, facts, sections, answer=answer)


def _scores(block: Block) -> Table:
    measures = block.target.measures
    tasks = measures[:_MOST_TASKS] if len(measures) > 1 else ()
    columns = [
        Column("row", "Row", numeric=False),
        Column("mean", "Mean" if tasks else block.target.title, better="higher"),
        Column("runs", "Runs", aside=True),
        *(Column(f"task-{one.task}", one.task, better="higher") for one in tasks),
    ]
    rows = []
    for row in block.rows:
        runs = 100 * block.runs(row)
        by_task = [block.significance.by_seed(row, alone(one)) for one in tasks]
        scores = [
            number(100 * float(found.scores.mean())) for found in by_task if found is not None
        ]
        mean, spread = mean_sd(runs)
        rows.append(
            TableRow(
                (
                    Cell(row.label),
                    number(mean, sd=spread, n=len(runs)),
                    Cell(str(len(runs))),
                    *scores,
                )
            )
        )
    left = len(measures) - len(tasks)
    legend = (
        [f"The mean is that of {len(measures)} tasks; {left} are not shown."]
        if tasks and left
        else []
    )
    caption = "Means over runs in points, ± standard deviation over runs."
    return Table(
        "scores",
        "Scores of all rows",
        caption,
        tuple(columns),
        tuple(ranked(columns, rows)),
        tuple(legend),
    )
