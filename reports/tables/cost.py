"""What each row cost: training and inference, by its runs and by the `efficiency` tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from harness.results.measurements import PROCESSOR
from harness.results.record import Record, Score
from reports.document.table import Cell, Column, Table, TableRow
from reports.read.comparison_runs import Comparison, ResultRow
from reports.stats.estimate import mean_sd
from reports.stats.measured_cost import Speed, busy, speeds
from reports.stats.targets import SOURCES
from reports.tables.score_cells import HEAD, absent_cell, block_of, head_cells, mark_unlike

# Times lean to one side: the first run of a process warms up, and others share the machine. A standard deviation beside
# the mean would reach below nothing, so they have their median and their range.
_TIMES = (
    "train_seconds",
    "train_cpu_seconds",
    "train_gpu_seconds",
    "dev_seconds",
    "train_tokens_per_second",
    "sentences_per_second",
    "encode_seconds",
    "evaluate_seconds",
)
_BY_THE_WALL = (
    "train_seconds",
    "train_gpu_seconds",
    "dev_seconds",
    "train_tokens_per_second",
    "sentences_per_second",
)


def cost_table(comparison: Comparison) -> Table:
    """What each row cost over its seeds; inference by its architecture."""
    shared = speeds(comparison)
    columns, cells = list(HEAD), [list(head_cells(row)) for row in comparison.rows]
    _add_inference(comparison, shared, columns, cells)
    whole = all(row.key in shared for row in comparison.rows if row.finished)
    wanted: list[tuple[str, str, str, Callable[[float], float], int]] = [
        ("train_seconds", "Training", "seconds", float, 1),
        ("train_cpu_seconds", "Training", "processor seconds", float, 1),
        ("train_gpu_seconds", "Training", "GPU seconds", float, 1),
        ("train_tokens_per_second", "Tokens/s", "in training", float, 0),
        ("dev_seconds", "Dev evaluation", "seconds", float, 1),
        ("steps", "Steps", "", float, 0),
        ("corpus_sentences_seen", "Sentences seen", "in training", float, 0),
        ("encode_seconds", "Encoding", "seconds", float, 1),
        *([] if whole else [("sentences_per_second", "Throughput", "sentences/s, while evaluating", float, 0)]),
        ("evaluate_seconds", "Evaluation", "seconds", float, 1),
        ("peak_memory_bytes", "Peak memory", "GiB", lambda b: b / 2**30, 2),
        ("parameters", "Parameters", "millions", lambda p: p / 1e6, 2),
    ]
    for key, title, unit, convert, digits in wanted:
        values = [[(r.id, _cost(r.cost.get(key), r.training.get(key))) for r in row.records] for row in comparison.rows]
        if not any(v is not None for line in values for _, v in line):
            continue
        columns.append(Column(key, title, unit))
        for line, row, by_run in zip(cells, comparison.rows, values, strict=True):
            have = [(run, convert(v)) for run, v in by_run if v is not None]
            if not have:
                line.append(Cell("–", state="empty"))
                continue
            found = [v for _, v in have]
            middle = float(np.median(found)) if key in _TIMES else float(np.mean(found))
            text = f"{middle:,.{digits}f}"
            ends = tuple(f"{end:,.{digits}f}" for end in (min(found), max(found)))
            shown = f"[{', '.join(ends)}]" if key in _TIMES and ends != (text, text) else ""
            sd = mean_sd(found)[1]  # for data.json; the table shows the range of times, and of all else the mean
            cell = Cell(text, shown, middle, sd, len(have), "value", records=tuple(run for run, _ in have))
            line.append(cell.noted(*_crowds(row)) if key in _BY_THE_WALL else cell)
    devices = sorted({str(r.environment.get("device", "")) for r in comparison.records} - {""})
    legend = "Times: median, least and most over all seeds; all else: mean. –: not recorded, or nothing to do."
    if shared:
        one = next(iter(shared.values())).measured
        clock = "processor time of one thread" if one.clock == PROCESSOR else "time until the GPU has finished"
        legend += f" Inference: {clock}, {one.sentences} sentences, measured once for an architecture."
    if len(devices) > 1:
        legend += f" Times of unlike devices ({', '.join(devices)}) are not comparable."
    body = tuple(TableRow(tuple(c), block_of(row)) for row, c in zip(comparison.rows, cells, strict=True))
    caption = "Wall-clock times as measured where each run ran, unless the column says otherwise."
    return Table("cost", "Cost", caption, tuple(columns), body, (legend,))


def _add_inference(
    comparison: Comparison, shared: dict[tuple[str, str], Speed], columns: list[Column], cells: list[list[Cell]]
) -> None:
    if not shared:
        return
    unit = next(iter(shared.values())).unit
    columns.append(Column("inference", "Inference", unit))
    for line, row in zip(cells, comparison.rows, strict=True):
        speed = shared.get(row.key)
        if speed is None:
            line.append(Cell("–", state="empty"))
            continue
        middle = f"[{speed.low:,.0f}, {speed.high:,.0f}]"
        runs = tuple(r.id for r in row.finished if r.architecture)
        line.append(Cell(f"{speed.median:,.0f}", middle, speed.median, None, None, "value", records=runs))


def _crowds(row: ResultRow) -> list[str]:
    """That a run of the row was made on a busy machine, with the highest load of them."""
    said = [remark for r in row.records if (remark := busy(r))]
    return said[:1] if len(said) < 2 else [max(said, key=lambda text: (len(text), text))]


def _cost(*candidates: object) -> float | None:
    for value in candidates:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


# Group, score, title, digits; what the protocol says of the phase; what is better.
_PHASES = {
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
    return [_efficiency_table(comparison, task, source) for task, source in comparison.columns("efficiency")]


def _efficiency_table(comparison: Comparison, task: str, source: str) -> Table:
    rows = comparison.rows
    columns, cells = [HEAD[0], HEAD[2]], [[head_cells(row)[0], head_cells(row)[2]] for row in rows]
    for phase, times in _PHASES.items():
        if not any(row.scores(task, source, metric) for row in rows for metric, *_ in times):
            continue
        for metric, title, digits in times:
            columns.append(Column(metric, title, _size(rows, task, source, metric), group=phase))
            for line, row in zip(cells, rows, strict=True):
                line.append(
                    _time_cell(
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
    legend = f"Mean ± standard deviation over seeds; inference: median of {_repeats(rows, task, source)} passes."
    if len(devices - {""}) > 1:
        legend += " Times on unlike devices are not comparable."
    return Table(
        f"efficiency-{source}-{pairs}",
        f"Efficiency · {pairs}",
        f"What training cost, and what encoding {pairs} ({SOURCES.get(source, source)}) costs, on the machine named.",
        tuple(columns),
        tuple(TableRow(tuple(line), block_of(row)) for row, line in zip(rows, cells, strict=True)),
        (legend,),
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


def _time_cell(row: ResultRow, task: str, scored: list[tuple[Record, Score]], digits: int, *, optional: bool) -> Cell:
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
