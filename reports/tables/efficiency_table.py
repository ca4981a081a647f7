"""What the `efficiency` tasks measured: training and inference apart, with the conditions of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.results.record import Record, Score
from reports.document.table import Cell, Column, Table, TableRow
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.estimate import mean_sd
from reports.stats.targets import SOURCES
from reports.tables.score_cells import HEAD, absent_cell, block_of, head_cells, mark_unlike

# Group, score, title, digits; what the protocol says of the phase; what is better.
_TIMES = {
    "Training": [("train_seconds", "Seconds", 1)],
    "Inference": [
        ("encode_seconds", "Seconds", 2),
        ("sentences_per_second", "Sentences/s", 0),
    ],
}
_CONDITIONS = {
    "Training": [("steps", "Steps"), ("batch_size", "Batch"), ("precision", "Precision")],
    "Inference": [("batch_size", "Batch"), ("precision", "Precision")],
}


def efficiency_tables(comparison: Comparison) -> list[Table]:
    """One table for each pair set whose encoding was timed."""
    return [_table(comparison, task, source) for task, source in comparison.columns("efficiency")]


def _table(comparison: Comparison, task: str, source: str) -> Table:
    rows = comparison.rows
    columns, cells = [HEAD[0], HEAD[2]], [[head_cells(row)[0], head_cells(row)[2]] for row in rows]
    for phase, times in _TIMES.items():
        if not any(row.scores(task, source, metric) for row in rows for metric, *_ in times):
            continue
        for metric, title, digits in times:
            columns.append(Column(metric, title, _size(rows, task, source, metric), group=phase))
            for line, row in zip(cells, rows, strict=True):
                line.append(
                    _time(
                        row,
                        task,
                        row.scores(task, source, metric),
                        digits,
                        optional=phase == "Training",
                    )
                )
            if phase == "Inference":
                mark_unlike(rows, cells, len(columns) - 1, task, source, metric, "")
        for key, title in _CONDITIONS[phase]:
            columns.append(Column(f"{phase.lower()} {key}", title, group=phase, numeric=key != "precision"))
            for line, row in zip(cells, rows, strict=True):
                line.append(_condition(row.scores(task, source, times[0][0]), key))
    columns.append(Column("device", "Device", numeric=False))
    devices = set()
    for line, row in zip(cells, rows, strict=True):
        timed = row.scores(task, source, "encode_seconds")
        names = _texts(
            f"{d['device']}, {(n := d.get('threads', '?'))} thread{'' if n == 1 else 's'}"
            for d in _conditions_of(timed)
            if "device" in d
        )
        devices.add(names)
        line.append(Cell(names) if names else Cell("–", state="empty"))
    pairs = task.removeprefix("efficiency:")
    legend = [
        "Mean ± standard deviation over seeds. Training: fitting alone, without data loading before it and evaluation "
        "after it; –: nothing was trained. Inference: from strings to vectors in main memory, both sides of all pairs, "
        f"median of {_repeats(rows, task, source)} passes after a warm-up.",
    ]
    if len(devices - {""}) > 1:
        legend.append("Times on unlike devices are not comparable.")
    return Table(
        f"efficiency-{source}-{pairs}",
        f"Efficiency · {pairs}",
        f"What training cost, and what encoding {pairs} ({SOURCES.get(source, source)}) costs, on the machine named.",
        tuple(columns),
        tuple(TableRow(tuple(line), block_of(row)) for row, line in zip(rows, cells, strict=True)),
        tuple(legend),
    )


def _conditions_of(scored: Iterable[tuple[Record, Score]]) -> list[dict[str, Any]]:
    return [record.protocols.get(s.protocol) or record.protocols.get(s.comparable) or {} for record, s in scored]


def _texts(values: Iterable[object]) -> str:
    return " / ".join(dict.fromkeys(str(v) for v in values))


def _size(rows: Iterable[ResultRow], task: str, source: str, metric: str) -> str:
    if metric != "encode_seconds":
        return ""
    sizes = sorted({s.n for row in rows for _, s in row.scores(task, source, metric)})
    return f"{' / '.join(f'{n:,}' for n in sizes)} sentences" if sizes else ""


def _time(row: ResultRow, task: str, scored: list[tuple[Record, Score]], digits: int, *, optional: bool) -> Cell:
    if not scored:
        untrained = optional and bool(row.finished) and task not in {t for r in row.finished for t in r.missing}
        return Cell("–", state="empty") if untrained else absent_cell(row, task)
    mean, sd = mean_sd([s.value for _, s in scored])
    spread = "" if sd is None else f"± {sd:,.{digits}f}"
    return Cell(f"{mean:,.{digits}f}", spread, mean, sd, len(scored), "value", records=tuple(r.id for r, _ in scored))


def _condition(scored: list[tuple[Record, Score]], key: str) -> Cell:
    values = [d[key] for d in _conditions_of(scored) if d.get(key) is not None]
    if not values:
        return Cell("–", state="empty")
    alone = values[0] if isinstance(values[0], int | float) and len(set(values)) == 1 else None
    return Cell(_texts(f"{v:,}" if isinstance(v, int) else v for v in values), value=alone)


def _repeats(rows: Iterable[ResultRow], task: str, source: str) -> str:
    repeats = [d.get("repeats") for row in rows for d in _conditions_of(row.scores(task, source, "encode_seconds"))]
    return _texts(v for v in repeats if v is not None) or "several"
