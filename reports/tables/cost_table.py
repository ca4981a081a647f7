"""What each row cost."""

from __future__ import annotations

from collections.abc import Callable

from reports.document.table import Cell, Column, Table, TableRow
from reports.read.comparison_runs import Comparison
from reports.stats.bootstrap import mean_sd
from reports.tables.score_cells import HEAD, block_of, head_cells


def cost_table(comparison: Comparison) -> Table:
    """What each row cost, mean over its seeds."""
    wanted: list[tuple[str, str, str, Callable[[float], float], int]] = [
        ("train_seconds", "Training", "seconds", float, 1),
        ("steps", "Steps", "", float, 0),
        ("corpus_sentences_seen", "Sentences seen", "in training", float, 0),
        ("encode_seconds", "Encoding", "seconds", float, 1),
        ("sentences_per_second", "Throughput", "sentences/s", float, 0),
        ("evaluate_seconds", "Evaluation", "seconds", float, 1),
        ("peak_memory_bytes", "Peak memory", "GiB", lambda b: b / 2**30, 2),
        ("parameters", "Parameters", "millions", lambda p: p / 1e6, 2),
    ]
    columns, cells = list(HEAD), [list(head_cells(row)) for row in comparison.rows]
    for key, title, unit, convert, digits in wanted:
        values = [[(r.id, _cost(r.cost.get(key), r.training.get(key))) for r in row.records] for row in comparison.rows]
        if not any(v is not None for line in values for _, v in line):
            continue
        columns.append(Column(key, title, unit))
        for line, by_run in zip(cells, values, strict=True):
            have = [(run, convert(v)) for run, v in by_run if v is not None]
            if not have:
                line.append(Cell("–", state="empty"))
                continue
            mean, sd = mean_sd([v for _, v in have])
            text = f"{mean:,.{digits}f}"
            shown = f"± {sd:,.{digits}f}" if sd is not None and key in ("train_seconds", "sentences_per_second") else ""
            line.append(Cell(text, shown, mean, sd, len(have), "value", records=tuple(run for run, _ in have)))
    devices = sorted({str(r.environment.get("device", "")) for r in comparison.records} - {""})
    legend = ["Mean over all seeds, also of runs that ended early. –: not recorded, or nothing to do."]
    if len(devices) > 1:
        legend.append(f"Runs on unlike devices ({', '.join(devices)}): times are not comparable between them.")
    body = tuple(TableRow(tuple(c), block_of(row)) for row, c in zip(comparison.rows, cells, strict=True))
    return Table(
        "cost", "Cost", "Wall-clock times as measured where each run ran.", tuple(columns), body, tuple(legend)
    )


def _cost(*candidates: object) -> float | None:
    for value in candidates:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None
