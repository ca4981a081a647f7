"""How a comparison was run: how rows were tuned, a card for each row, machines, data, protocols."""

from __future__ import annotations

import json
from typing import Any

from harness import registry
from harness.errors import InputError
from harness.results.published import published_rows, summary
from harness.results.record import Record
from harness.results.store import read_comparison_file
from reports.document.blocks import Block, Facts, Text
from reports.document.table import Cell, Column, Table, TableRow, number
from reports.read.comparison_runs import Comparison, ResultRow
from reports.tables.score_cells import anchor, block_of

_TUNING = (
    Column("row", "Row", numeric=False),
    Column("trials", "Trials"),
    Column("runs", "Runs", "different ones"),
    Column("seconds", "Search", "s"),
    Column("best", "Best configuration", numeric=False),
    Column("study", "Study", numeric=False, aside=True),
)


def tuning_table(comparison: Comparison) -> Table | None:
    """One line for each row that `harness compare --tune` considered, searched or not; None without a search."""
    tuned = (read_comparison_file(comparison.workdir, comparison.name) or {}).get("tuned")
    if not tuned:
        return None
    links = {row.label: anchor(row) for row in comparison.rows}
    seeds = ", ".join(map(str, tuned["seeds"]))
    caption = (
        f"Every row that can be searched had {tuned['trials']} trials of up to {tuned['steps']} training steps with "
        f"{'seed' if len(tuned['seeds']) == 1 else 'seeds'} {seeds}, none of which is in any other table; the best "
        'score on the dev set chose the configuration of the row called "tuned".'
    )
    legend = ("A configuration that was proposed twice was trained once. Search: training and dev evaluation.",)
    return Table("tuning", "Tuning", caption, _TUNING, tuple(_tuned_row(row, links) for row in tuned["rows"]), legend)


def _tuned_row(row: dict[str, Any], links: dict[str, str]) -> TableRow:
    head = Cell(row["row"], link=links.get(row["label"], ""))
    if not row["study"]:
        return TableRow((head, *[Cell("", state="empty")] * 3, Cell(row["reason"]), Cell("", state="empty")))
    values = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row["values"].items())
    return TableRow(
        (
            head,
            Cell(str(row["trials"]), value=row["trials"], state="value"),
            Cell(str(row["runs"]), value=row["runs"], state="value"),
            number(row["seconds"], digits=1),
            Cell(values or row["reason"]),
            Cell(row["study"], code=True),
        )
    )


_RERUN = (
    "Every number names its runs, and every run its configuration, data and seed. harness reproduce REPORT#CELL prints "
    "the commands that repeat the runs of a cell."
)


def _shared(records: list[Record], field: str) -> dict[str, list[str]]:
    """Key -> distinct values of a dict field over records; nested dicts give dotted keys."""
    by_key: dict[str, dict[str, None]] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        else:
            by_key.setdefault(prefix, {})[typed(value)] = None

    for record in records:
        walk("", getattr(record, field))
    return {key: list(values) for key, values in sorted(by_key.items()) if key}


def _method_card(name: str) -> list[tuple[str, str]]:
    """What the method says about itself; nothing where its package is not installed any more."""
    try:
        card = registry.load(registry.METHODS, name).card
    except InputError:
        return []
    shown = ("title", "paper", "equations", "reference", "cost", "kept", "notes")
    items = [(f"method: {key}", str(getattr(card, key))) for key in shown if getattr(card, key)]
    lines = [line for key in card.published for line in summary(published_rows(key))]
    return items + [("published", line) for line in lines]


def _card(row: ResultRow) -> Facts:
    """All there is to know about a row."""
    first = row.records[0]
    items = [
        ("method", first.method),
        *_method_card(first.method),
        ("base model", row.base_model),
        ("supervision", row.supervision),
        ("seeds", ", ".join(f"{r.seed} ({r.status})" if r.status != "finished" else str(r.seed) for r in row.records)),
    ]
    items += [(f"seed {r.seed} {r.status}", r.reason or "no reason recorded") for r in row.unfinished]
    if first.corpus:
        items.append(("corpus", ", ".join(f"{k} {typed(v)}" for k, v in first.corpus.items())))
    items += [(f"input: {name}", fingerprint) for name, fingerprint in first.inputs.items()]
    if first.dev:
        items.append(("selected on", ", ".join(f"{k} {typed(v)}" for k, v in first.dev.items())))
    items += [(f"config: {k}", " / ".join(v)) for k, v in _shared(list(row.records), "config").items() if k != "seed"]
    for key, values in _shared(list(row.records), "training").items():
        items.append((f"training: {key}", " / ".join(values)))
    items += [(f"record id, seed {r.seed}", r.id) for r in row.records]
    commands = tuple(dict.fromkeys(r.command for r in row.records if r.command))
    runs = tuple(r.id for r in row.records)
    return Facts(anchor(row), f"{row.label} · {block_of(row)}", tuple(items), commands, runs)


def how_it_was_run(comparison: Comparison) -> list[Block]:
    """Row cards, machines, data, protocols."""
    blocks: list[Block] = [Text((_RERUN,)), *(_card(row) for row in comparison.rows)]
    machine = _shared(comparison.records, "environment")
    blocks.append(
        Facts("run-environment", "Hardware and versions", tuple((k, " / ".join(v)) for k, v in machine.items()))
    )
    blocks += [table for table in (data_table(comparison), protocol_table(comparison)) if table is not None]
    return blocks


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
