"""What each row cost: training and inference, by its runs and by the `efficiency` tasks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.results.measurements import PROCESSOR
from harness.results.record import Record
from reports.document.table import Cell, Column, Table, TableRow
from reports.read.comparison_runs import Comparison
from reports.stats.estimate import mean_sd
from reports.stats.measured_cost import Speed, speeds
from reports.stats.targets import SOURCES, Measure
from reports.tables.score_cells import HEAD, block_of, head_cells
from reports.tables.score_table import ScoreTable

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
ENERGY = "train_joules"
_JOULES = ("train_cpu_joules", "train_gpu_joules")


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
        (ENERGY, "Energy", "training, kJ", lambda joules: joules / 1000, 2),
        ("peak_memory_bytes", "Peak memory", "GiB", lambda b: b / 2**30, 2),
        ("parameters", "Parameters", "millions", lambda p: p / 1e6, 2),
    ]
    for key, title, unit, convert, digits in wanted:
        values = [[(r.id, _cost(_of(r, key), r.training.get(key))) for r in row.records] for row in comparison.rows]
        if not any(v is not None for line in values for _, v in line):
            continue
        columns.append(Column(key, title, unit))
        for line, by_run in zip(cells, values, strict=True):
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
            line.append(cell)
    devices = sorted({str(r.environment.get("device", "")) for r in comparison.records} - {""})
    legend = "Times: median, least and most over all seeds; all else: mean. –: not recorded, or nothing to do."
    if shared:
        one = next(iter(shared.values())).measured
        clock = "processor time of one thread" if one.clock == PROCESSOR else "time until the GPU has finished"
        legend += f" Inference: {clock}, {one.sentences} sentences, measured once for an architecture."
    if any(column.key == ENERGY for column in columns):
        legend += " Energy: of whole processors and GPUs while a row was trained, where the machine counts it."
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


def _of(record: Record, key: str) -> float | None:
    """A cost of a run; its energy is that of processors and GPU together."""
    if key == ENERGY:
        return sum(found) if (found := [record.cost[k] for k in _JOULES if k in record.cost]) else None
    return record.cost.get(key)


def _cost(*candidates: object) -> float | None:
    for value in candidates:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


# Score -> group, title, digits, what its n counts.
_EFFICIENCY = {
    "train_seconds": ("Training", "Seconds", 1, ""),
    "encode_seconds": ("Inference", "Seconds", 2, "sentences"),
    "sentences_per_second": ("Inference", "Sentences/s", 0, ""),
}


def efficiency_tables(comparison: Comparison) -> list[Table]:
    """One table for each pair set whose encoding was timed; its conditions are in the table of protocols."""
    return [_efficiency_table(comparison, task, source) for task, source in comparison.columns("efficiency")]


def _efficiency_table(comparison: Comparison, task: str, source: str) -> Table:
    made, pairs = ScoreTable(comparison, None), task.removeprefix("efficiency:")
    for metric, (group, title, digits, noun) in _EFFICIENCY.items():
        if any(row.scores(task, source, metric) for row in comparison.rows):
            measure = Measure(task, source, metric, "")
            made.add_task(Column(metric, title, group=group), measure, scale=1, digits=digits, noun=noun, decides=False)
    caption = f"What training cost, and what encoding {pairs} ({SOURCES.get(source, source)}) costs."
    legend = "Mean ± standard deviation over seeds. The conditions of each number are in the table of protocols."
    return made.table(f"efficiency-{source}-{pairs}", f"Efficiency · {pairs}", caption, legend)
