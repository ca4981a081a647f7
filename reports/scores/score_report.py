"""The report of scores that others made: the answer, a figure of all rows, their scores, and all pairs."""

from __future__ import annotations

from pathlib import Path

from harness.files.printable import join_some
from reports.document.blocks import Document, Figure, Section, Text
from reports.document.table import Cell, Column, Table, TableRow, number, number_text, ranked
from reports.figures.intervals import name_lines
from reports.figures.style import COLOURS, MUTED, finish, new, style
from reports.scores.score_table import question_of_scores
from reports.stats.estimate import mean_sd
from reports.stats.simultaneous import mean_over_seeds
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
    answer, note, tasks = _answer(block), question.significance.note, len(block.target.measures)
    limits = f"{note[0].upper()}{note[1:]}." if note else "Seeds and examples are known."
    facts = [(str(len(block.rows)), "rows"), (str(tasks), "tasks" if tasks > 1 else "task")]
    facts.append((str(sum(len(row.records) for row in block.rows)), "runs"))
    sections = [
        Section("scores", "Scores", [_figure(block), _scores(block)]),
        Section("pairs", "All pairs", [pairs_table(block, "")], folded=True),
        Section("limits", "Limits", [Text((limits,))]),
    ]
    return Document(f"Scores of {source.name}", answer, facts, sections, answer=answer)


def _answer(block: Block) -> str:
    best, title = block.rows[0], block.target.title
    if not block.judged:
        return (
            f"{best.label} scores highest on {title}, which may be chance: neither several runs of a row nor scores of "
            "single examples are known."
        )
    others = [row.label for row in block.candidates if row is not best]
    place = "scores highest" if others else f"is the best of {len(block.rows)} rows"
    alike = f"; the best may also be {join_some(others, 6)}" if others else ""
    found = sum(difference.verdict in ("better", "worse") for difference in block.differences.values())
    return (
        f"{best.label} ({number_text(block.mean(best), 2)}) {place} on {title}{alike} (95 % confidence). "
        f"{found} of {len(block.differences)} pairs differ significantly."
    )


def _figure(block: Block) -> Figure:
    """A dot and an interval for each row, best first."""
    count, said, title = len(block.rows), [], block.target.title
    with style():
        plot = new(7.2, 0.75 + 0.27 * count)
        axes = plot.subplots()
        for place, row in enumerate(block.rows):
            y, mean = count - 1 - place, block.mean(row)
            colour = COLOURS[0] if row in block.candidates or not block.judged else MUTED
            axes.plot([mean], [y], "o", color=colour, markersize=5)
            said.append(f"{row.label} {mean:.2f}")
            if block.judged:
                of_examples = block.significance.examples_variance(row, block.target)
                interval = mean_over_seeds(block.runs(row), of_examples)
                sides = [100 * interval.low, 100 * interval.high]
                axes.plot(sides, [y, y], color=colour, linewidth=4, alpha=0.35)
        name_lines([axes], [row.label for row in reversed(block.rows)])
        axes.set_title(title)
        axes.set_xlabel("points")
        caption = (
            "Bar: 95 % interval over what is known of seeds and examples. Blue: may be the best (95 %). Rows share the "
            "examples, so rows whose bars overlap can differ significantly."
        )
        return finish(plot, "overview", "All rows, best first", caption, f"{title}: {'; '.join(said)}.")


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
        scores = [number(100 * float(found.scores.mean())) for found in by_task if found is not None]
        mean, spread = mean_sd(runs)
        rows.append(TableRow((Cell(row.label), number(mean, sd=spread, n=len(runs)), Cell(str(len(runs))), *scores)))
    left = len(measures) - len(tasks)
    legend = [f"The mean is that of {len(measures)} tasks; {left} are not shown."] if tasks and left else []
    caption = "Means over runs in points, ± standard deviation over runs."
    return Table("scores", "Scores of all rows", caption, tuple(columns), tuple(ranked(columns, rows)), tuple(legend))
