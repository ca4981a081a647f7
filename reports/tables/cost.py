"""What each row cost: training and inference, by its runs and by the `efficiency` tasks."""

from __future__ import annotations

from statistics import median

from harness.results.measurements import PROCESSOR
from harness.results.record import Record
from reports.document.table import EMPTY, Cell, Column, Table
from reports.load import RecordedResults, RecordedRow
from reports.records.measured_cost import Speed, speeds
from reports.stats.estimate import mean_sd
from reports.tables.score_table import ScoreTable
from reports.targets import SOURCES, Measure

# What a run cost -> title, unit, factor, digits.
_COSTS = {
    "train_seconds": ("Training", "seconds", 1, 1),
    "train_cpu_seconds": ("Training", "processor seconds", 1, 1),
    "train_gpu_seconds": ("Training", "GPU seconds", 1, 1),
    "train_tokens_per_second": ("Tokens/s", "in training", 1, 0),
    "steps": ("Steps", "", 1, 0),
    "train_joules": ("Energy", "training, kJ", 1e-3, 2),
    "peak_memory_bytes": ("Peak memory", "GiB", 2**-30, 2),
    "parameters": ("Parameters", "millions", 1e-6, 2),
}


def cost_table(comparison: RecordedResults) -> Table:
    """What each row cost over its seeds; inference by its architecture."""
    shared = speeds(comparison)
    made = ScoreTable(comparison, None)
    legend = "Median [lowest, highest] over seeds; –: not recorded, or nothing to do."
    if shared:
        first = next(iter(shared.values()))
        made.add_cells(
            Column("inference", "Inference", first.unit),
            [
                _speed_cell(row, shared[row.key]) if row.key in shared else EMPTY
                for row in comparison.rows
            ],
        )
        if first.measured.clock == PROCESSOR:
            clock = "processor time of one thread"
        else:
            clock = "time until the GPU is done"
        legend += f" Inference: {clock}, {first.measured.sentences} sentences, measured once for an architecture: "
        legend += "median [quartiles] of its passes."
    for key, (title, unit, factor, digits) in _COSTS.items():
        found = []
        for row in comparison.rows:
            found.append(
                {r.id: factor * value for r in row.records if (value := _cost(r, key)) is not None}
            )
        if any(found):
            made.add_cells(
                Column(key, title, unit), [_cost_cell(values, digits) for values in found]
            )
            if key == "train_joules":
                legend += " Energy: of whole processors and GPUs while a row was trained, where the machine counts it."
    named = {str(r.environment.get("device", "")) for r in comparison.records}
    devices = sorted(named - {""})
    if len(devices) > 1:
        legend += f" Times of unlike devices ({', '.join(devices)}) are not comparable."
    return made.table("cost", "Cost", "Measured on the machine of each run.", legend)


def _speed_cell(row: RecordedRow, speed: Speed) -> Cell:
    runs = tuple(r.id for r in row.finished if r.architecture)
    ends = f"[{speed.low:,.0f}, {speed.high:,.0f}]"
    return Cell(
        f"{speed.median:,.0f}",
        ends,
        speed.median,
        state="value",
        records=runs,
    )


def _cost(record: Record, key: str) -> float | None:
    if key == "train_joules":  # of processors and GPU together
        parts = [
            record.cost[k] for k in ("train_cpu_joules", "train_gpu_joules") if k in record.cost
        ]
        return sum(parts) if parts else None
    if key == "steps":
        value = record.training.get(key)
    else:
        value = record.cost.get(key)
    if value is None:
        return None
    return float(value)


def _cost_cell(values: dict[str, float], digits: int) -> Cell:
    """Times lean to one side: the first run of a process warms up, and others share the machine. A
    standard deviation would reach below nothing, so a cell has the median and the range.
    """
    if not values:
        return EMPTY
    some = list(values.values())
    text = f"{median(some):,.{digits}f}"
    low = f"{min(some):,.{digits}f}"
    high = f"{max(some):,.{digits}f}"
    if (low, high) != (text, text):
        spread = f"[{low}, {high}]"
    else:
        spread = ""
    return Cell(
        text,
        spread,
        median(some),
        mean_sd(some)[1],
        len(some),
        "value",
        records=tuple(values),
    )


# Score -> group, title, digits, what its n counts.
_EFFICIENCY = {
    "train_seconds": ("Training", "Seconds", 1, ""),
    "encode_seconds": ("Inference", "Seconds", 2, "sentences"),
    "sentences_per_second": ("Inference", "Sentences/s", 0, ""),
}


def efficiency_tables(comparison: RecordedResults) -> list[Table]:
    """One table for each pair set whose encoding was timed; its conditions are in the table of
    protocols.
    """
    return [
        _efficiency_table(comparison, task, source)
        for task, source in comparison.columns("efficiency")
    ]


def _efficiency_table(comparison: RecordedResults, task: str, source: str) -> Table:
    made = ScoreTable(comparison, None)
    pairs = task.removeprefix("efficiency:")
    for metric, (group, title, digits, noun) in _EFFICIENCY.items():
        if any(row.scores(task, source, metric) for row in comparison.rows):
            measure = Measure(task, source, metric, "")
            made.add_task(
                Column(metric, title, group=group),
                measure,
                scale=1,
                digits=digits,
                noun=noun,
                decides=False,
            )
    caption = (
        f"What training cost, and what encoding {pairs} ({SOURCES.get(source, source)}) costs."
    )
    legend = "Mean ± standard deviation over seeds. The conditions of each number are in the table of protocols."
    return made.table(f"efficiency-{source}-{pairs}", f"Efficiency · {pairs}", caption, legend)
