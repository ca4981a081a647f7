"""The one shape of all tables of scores: a line for each row, a column for each task, and which
rows are worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from harness.results.facts import Facts
from harness.tasks.averages import Average
from reports.document.table import (
    EMPTY,
    Cell,
    Column,
    Table,
    TableRow,
    number,
    number_text,
    rank_cells,
)
from reports.load import RecordedResults, RunScore
from reports.stats.significance import Significance
from reports.stats.simultaneous import FEWEST_SEEDS
from reports.stats.verdicts import Ranking, describe_detectable
from reports.tables.score_cells import (
    HEAD,
    average_cell,
    block_of,
    head_cells,
    mark_others,
    mean_cell,
    size_text,
)
from reports.targets import Measure, Target, alone

WITHOUT_A_MODEL = "without a model"
_GUESSING = {
    "chance": ("guessing", "every class equally often"),
    "majority": ("commonest class", "always the most frequent class of the test data"),
    "agreement": ("second annotator", "the scores of a second annotator in place of cosines"),
    "human": ("people", "what two people score on the same examples, as published"),
}
_FINE = 0.05  # points: a standard error below it leaves a second decimal something to say


class ScoreTable:
    """A table of scores, column by column."""

    def __init__(self, comparison: RecordedResults, significance: Significance | None) -> None:
        """Without `significance` nothing is judged: it is quick."""
        self.comparison = comparison
        self.significance = significance
        self.columns = list(HEAD)
        self.cells = [list(head_cells(row)) for row in comparison.rows]
        self.targets: dict[
            int, Target
        ] = {}  # of columns of which it is known what they are the mean of
        self.deciding: list[int] = []  # columns in which rows are compared

    def add_task(
        self,
        column: Column,
        measure: Measure,
        *,
        scale: float = 100,
        digits: int = 2,
        noun: str = "",
        decides: bool = True,
    ) -> None:
        """A column for one score; `noun`: what its examples are, for their number in the head."""
        task, source, metric, how, _ = measure
        if noun:
            size = size_text(self.comparison.rows, task, source, metric, how, noun)
            column = replace(column, sub=" · ".join(filter(None, (column.sub, size))))
        scored = [row.scores(task, source, metric, how) for row in self.comparison.rows]
        self.add_scores(
            column,
            task,
            scored,
            alone(measure) if decides else None,
            scale=scale,
            digits=digits,
        )

    def add_scores(
        self,
        column: Column,
        task: str,
        scored: Sequence[Sequence[RunScore]],
        target: Target | None = None,
        *,
        scale: float = 100,
        digits: int = 2,
    ) -> None:
        """A column for the given scores of every row; those under other protocols than the most
        have a footnote.
        """
        cells = []
        for row, runs in zip(self.comparison.rows, scored, strict=True):
            cells.append(mean_cell(row, runs, task, scale=scale, digits=digits))
        self.add_cells(column, cells, target)
        mark_others(
            [{s.comparable for _, s in runs} for runs in scored],
            self.cells,
            len(self.columns) - 1,
        )

    def add_average(
        self,
        column: Column,
        averages: Sequence[Mapping[str, Average]],
        target: Target | None,
        *,
        decides: bool = True,
    ) -> None:
        """A column of averages, of each row by run id. Rows are compared in it, and not in the
        tasks before it.
        """
        cells = []
        for row, by_run in zip(self.comparison.rows, averages, strict=True):
            cells.append(average_cell(row, by_run))
        if decides and target is not None:
            self.deciding = []
        self.add_cells(column, cells, target, decides=decides)

    def add_cells(
        self,
        column: Column,
        cells: Sequence[Cell],
        target: Target | None = None,
        *,
        decides: bool = True,
    ) -> None:
        """A column of any cells; with a target rows are compared in it."""
        if target is not None:
            self.targets[len(self.columns)] = target
            if decides:
                self.deciding.append(len(self.columns))
        self.columns.append(column)
        for line, cell in zip(self.cells, cells, strict=True):
            line.append(cell)

    def table(self, key: str, title: str, caption: str, *legend: str) -> Table:
        """The table, judged: best and second of each block, rows that are significantly worse, and
        guessing.
        """
        digits = self._set_decimals()
        if self.significance is not None:
            said = self._judge(self.significance)
        else:
            said = []
        rows = []
        for row, c in zip(self.comparison.rows, self.cells, strict=True):
            rows.append(TableRow(tuple(c), block_of(row), ranked=not row.rehearsal))
        body = rank_cells(self.columns, rows)
        if self.significance is not None and self.deciding:
            body = self._without_untested_marks(body, self.significance)
        if self.significance is not None:
            body += self._guessing(digits)
        return Table(key, title, caption, tuple(self.columns), body, (*legend, *said))

    def _without_untested_marks(
        self,
        body: Sequence[TableRow],
        significance: Significance,
    ) -> tuple[TableRow, ...]:
        """Return the lines, best and second marked only in blocks where rows were tested."""
        tested = self._find_tested_blocks(significance)
        lines = []
        for line in body:
            if line.block not in tested:
                line = replace(line, cells=tuple(replace(cell, rank=0) for cell in line.cells))
            lines.append(line)
        return tuple(lines)

    def _find_tested_blocks(self, significance: Significance) -> set[str]:
        """Return the names of the blocks that have two judged rows or more in a deciding column."""
        tested = set()
        for j in self.deciding:
            if significance.unknown(self.targets[j]):
                continue
            for name, rows in self.comparison.blocks.items():
                if len(Ranking(rows, significance, self.targets[j]).judged) > 1:
                    tested.add(name)
        return tested

    def _set_decimals(self) -> dict[int, int]:
        """As many decimals as the noise allows: two where the median standard error of the rows is
        below 0.05 points or unknown, else one.
        """
        if self.significance is None:
            return {}
        digits = {}
        for j, target in self.targets.items():
            rows = [] if self.significance.unknown(target) else self.comparison.rows
            errors = []
            for row in rows:
                if (error := self.significance.standard_error(row, target)) is not None:
                    errors.append(error)
            if not errors or 100 * median(errors) < _FINE:
                digits[j] = 2
            else:
                digits[j] = 1
            for line in self.cells:
                line[j] = with_decimals(line[j], digits[j])
        return digits

    def _find_testable(self, significance: Significance) -> list[int]:
        """Return the deciding columns that can be tested; the others get a note why not."""
        known = []
        for j in self.deciding:
            why = significance.unknown(self.targets[j])
            if why:
                notes = (*self.columns[j].notes, f"not tested: {why}")
                self.columns[j] = replace(self.columns[j], notes=notes)
            else:
                known.append(j)
        return known

    def _judge(self, significance: Significance) -> list[str]:
        """Mark the cells of rows that are significantly worse than another; a sentence on what that
        rests on.
        """
        known = self._find_testable(significance)
        if not known:
            return []
        line_of = {
            row.key: line for row, line in zip(self.comparison.rows, self.cells, strict=True)
        }
        ranges: list[tuple[float, float]] = []
        for j in known:
            for rows in self.comparison.blocks.values():
                block = Ranking(rows, significance, self.targets[j])
                for row in block.judged:
                    line = line_of[row.key]
                    line[j] = replace(line[j], worse=block.not_the_best(row))
                if len(known) == 1 and block.detectable is not None:
                    ranges.append(block.detectable)
        self._mark_untested()
        if not self._find_tested_blocks(significance):
            return []
        said = "Tested over seeds and test examples, all rows of a block together"
        if len(known) == 1:
            said += f", on {self.columns[known[0]].title}"
        if ranges:
            least = min(first for first, _ in ranges)
            most = max(last for _, last in ranges)
            said += f"; {describe_detectable(least, most)}"
        return [f"{said}."]

    def _mark_untested(self) -> None:
        """Add a note to the number of seeds of random rows that have too few."""
        note = "fewer than three seeds, too few to estimate their spread: not tested"
        for row, line in zip(self.comparison.rows, self.cells, strict=True):
            if 0 < len(row.finished) < FEWEST_SEEDS and row.is_random:
                line[2] = line[2].with_notes(note)

    def _guessing(self, digits: Mapping[int, int]) -> tuple[TableRow, ...]:
        """Rows that no run is behind: what guessing scores; of an average only where it is known of
        every task.
        """
        rows = []
        for kind, (title, words) in _GUESSING.items():
            cells = [Cell(title, notes=(words,)), *(EMPTY for _ in self.columns[1:])]
            for j, target in self.targets.items():
                known = []
                for one in target.measures:
                    facts = self.comparison.facts.get(one.task)
                    guess = _guess_of(facts, kind, one.metric)
                    if guess is not None:
                        known.append(guess)
                if known and len(known) == len(target.measures):
                    mean = 100 * sum(known) / len(known)
                    cells[j] = number(mean, digits=digits.get(j, 2))
            # that guessing correlates with nothing need not be said
            if any(cell.value for cell in cells):
                rows.append(TableRow(tuple(cells), WITHOUT_A_MODEL, ranked=False))
        return tuple(rows)


def _guess_of(facts: Facts | None, kind: str, metric: str) -> float | None:
    if facts is None or facts.metric != metric:
        return None
    value: float | None = getattr(facts, kind)
    return value


def with_decimals(cell: Cell, digits: int) -> Cell:
    """The same number with so many decimals; its value, by which files keep it, stays whole."""
    if cell.state != "value" or cell.value is None or cell.digits is None or cell.digits <= digits:
        return cell
    if cell.sd is None:
        spread = cell.spread
    else:
        spread = f"± {number_text(cell.sd, digits)}"
    return replace(cell, text=number_text(cell.value, digits), spread=spread, digits=digits)
