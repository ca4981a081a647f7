"""How a comparison was run: a card for each row, machines, data, protocols."""

from __future__ import annotations

from typing import Any

from harness import registry
from harness.errors import InputError
from harness.results.published import published_rows, summary
from harness.results.record import Record
from reports.document.blocks import Block, Facts, Text
from reports.read.comparison_runs import Comparison, ResultRow
from reports.tables.data_and_protocols import data_table, protocol_table, typed
from reports.tables.score_cells import anchor, block_of

_RERUN = (
    "Every number names its runs, and every run its configuration, data and seed. harness reproduce REPORT#CELL prints "
    "the commands that repeat the runs of a cell; --run NEW runs them."
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
