"""What was trained and selected on, and what each number is: fingerprints and protocol ids."""

from __future__ import annotations

import json
from typing import Any

from reports.document.table import Cell, Column, Table, TableRow
from reports.read.comparison_runs import Comparison


def data_table(comparison: Comparison) -> Table | None:
    """Corpora and selection sets with their fingerprints."""
    met: dict[str, tuple[str, dict[str, Any], list[str]]] = {}
    for record in comparison.records:
        for use, part in (("training", record.corpus), ("selection", record.dev)):
            if part:
                key = use + json.dumps(part, sort_keys=True, default=str)
                met.setdefault(key, (use, part, []))[2].append(record.row)
    if not met:
        return None
    rows = []
    for use, part, labels in met.values():
        name = part.get("uri") or " ".join(str(part[k]) for k in ("task", "source", "split") if part.get(k))
        count = part.get("count")
        rows.append(
            TableRow(
                (
                    Cell(use),
                    Cell(str(name or "?"), code=True),
                    Cell("" if count is None else f"{count:,}" if isinstance(count, int) else str(count),
                         value=count if isinstance(count, int) else None),
                    Cell(str(part.get("sha256", "?"))[:16], code=True),
                    Cell(" · ".join(dict.fromkeys(labels))),
                )
            )
        )  # fmt: skip
    columns = (
        Column("use", "Used for", numeric=False),
        Column("data", "Data", numeric=False),
        Column("count", "Entries"),
        Column("sha256", "Fingerprint", "sha256, first 16 digits", numeric=False),
        Column("rows", "Rows", numeric=False),
    )
    return Table("data", "Data", "What was trained and selected on.", columns, tuple(rows))


def protocol_table(comparison: Comparison) -> Table | None:
    """What each number in the tables is, by protocol id (without the pooling, which belongs to the method)."""
    met: dict[str, tuple[str, str, str, str, str]] = {}
    described: dict[str, dict[str, Any]] = {}
    for record in comparison.records:
        for s in record.scores:
            met.setdefault(s.comparable, (s.task, s.source, s.split, s.metric, s.aggregation))
            what = record.protocols.get(s.comparable) or record.protocols.get(s.protocol)
            if what is not None:
                described.setdefault(s.comparable, what)
    if not met:
        return None
    rows = []
    for one, (task, source, split, metric, aggregation) in met.items():
        said = {"task", "source", "split", "metric", "aggregation", "pooling"}
        rest = {k: v for k, v in described.get(one, {}).items() if k not in said and v != ""}
        if "data" in rest:
            rest["data"] = str(rest["data"])[:12]
        text = "; ".join(f"{k} {typed(v)}" for k, v in rest.items()) or "not described in the record"
        how = f"{metric}, {aggregation}" if aggregation else metric
        rows.append(
            TableRow((Cell(one, code=True), Cell(task), Cell(source), Cell(split), Cell(how), Cell(text)), block=source)
        )
    columns = tuple(
        Column(key, title, numeric=False)
        for key, title in (
            ("id", "Id"), ("task", "Task"), ("source", "Source"), ("split", "Split"), ("metric", "Metric"),
            ("what", "What defines it"),
        )
    )  # fmt: skip
    return Table(
        "protocols",
        "Protocols",
        "Equal ids: the same data, preparation, metric and version. Only such numbers share a column unmarked.",
        columns,
        tuple(rows),
    )


def typed(value: Any) -> str:
    """A value as it would be typed; no quotes around words, and no more digits than mean something."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
