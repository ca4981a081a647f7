"""Our rows for a row of a paper: by base model, the best known first."""

from __future__ import annotations

from typing import Any

from reports.papers.conditions import Conditions
from reports.papers.definition import Definition, PaperRow
from reports.read.comparison_runs import ResultRow
from reports.read.run_library import RunLibrary, trained_on

Training = tuple[Any, ...]


def trained(row: ResultRow) -> Training | None:
    """What rows trained alike share, the training text first; None of a row without training."""
    run = (row.finished or row.records)[0]
    return None if run.corpus is None else trained_on(run)


class Candidates:
    """The rows of a library that are rows of a definition, found once."""

    def __init__(self, definition: Definition, library: RunLibrary, conditions: Conditions) -> None:
        self.definition = definition
        self.library = library
        self.conditions = conditions
        self._by_row: dict[int, dict[str, list[ResultRow]]] = {}

    def of(self, row: PaperRow) -> dict[str, list[ResultRow]]:
        """Our rows for a row of the paper, by base model; the best known first: no rehearsal, on the paper's text and
        by its recipe, trained as most rows of a table of differences are, most finished seeds, most training data,
        newest. Never by score."""
        if id(row) in self._by_row:
            return self._by_row[id(row)]
        by_base = self._by_row[id(row)] = {}
        for one in self._found(row):
            by_base.setdefault(one.base_model, []).append(one)
        shared = self._shared(row)

        def order(one: ResultRow) -> tuple[Any, ...]:
            wanted, had = shared.get(one.base_model), trained(one)
            unlike = None not in (wanted, had) and had != wanted
            return one.rehearsal, len(self.conditions.of_training(row, one)), unlike, *self._rank(one)

        for members in by_base.values():
            members.sort(key=order)
        return by_base

    def _found(self, spec: PaperRow) -> list[ResultRow]:
        """Our rows that are a row of the paper, on whichever base model."""
        if not spec.method:
            return []
        return [row for row in self.library.find(spec.method) if self.conditions.is_of(spec, row.records[0])]

    def _shared(self, row: PaperRow) -> dict[str, Training]:
        """Base model -> the training that most rows have of the table of differences that `row` is in."""
        table = next((t for t in self.definition.tables if any(r is row for r in t.rows)), None)
        if table is None or not table.reference:
            return {}
        by_base: dict[str, dict[Training, list[ResultRow]]] = {}
        for spec in table.rows:
            seen: dict[tuple[str, Training], ResultRow] = {}
            for one in self._found(spec):
                if one.finished and (training := trained(one)) is not None:
                    seen.setdefault((one.base_model, training), one)
            for (base, training), one in seen.items():
                by_base.setdefault(base, {}).setdefault(training, []).append(one)

        def merit(item: tuple[Training, list[ResultRow]]) -> tuple[Any, ...]:
            training, rows = item
            count = (rows[0].finished[0].corpus or {}).get("count")
            seeds = sum(len(row.finished) for row in rows)
            tasks = len({s.task for row in rows for r in row.finished for s in r.scores})
            return len(rows), seeds, tasks, count if isinstance(count, int) else 0, repr(training)

        return {base: max(trainings.items(), key=merit)[0] for base, trainings in by_base.items()}

    @staticmethod
    def _rank(row: ResultRow) -> tuple[Any, ...]:
        count = max(((r.corpus or {}).get("count") or 0 for r in row.records), default=0)
        newest = max((r.finished for r in row.records), default="")
        backwards = tuple(-ord(c) for c in newest)
        return -len(row.finished), -len({s.task for r in row.finished for s in r.scores}), -count, backwards, row.key
