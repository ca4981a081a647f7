"""How a comparison was run: how rows were tuned, a card for each row, machines, protocols."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.results.comparison import TunedRow
from harness.results.record import Record, Score
from reports.document.blocks import Block, FactList, Text
from reports.document.table import EMPTY, Cell, Column, Table, TableRow, number
from reports.load import RecordedResults, RecordedRow
from reports.read.method_cards import read_card
from reports.tables.score_cells import anchor, block_of

_TUNING = (
    Column("row", "Row", numeric=False),
    Column("trials", "Trials"),
    Column("runs", "Runs", "different ones"),
    Column("seconds", "Search", "s"),
    Column("best", "Best configuration", numeric=False),
    Column("study", "Study", numeric=False, aside=True),
)


def tuning_table(comparison: RecordedResults) -> Table | None:
    """One line for each row that `harness compare --tune` considered, searched or not; None without
    a search.
    """
    tuned = comparison.file.tuned
    if tuned is None:
        return None
    links = {row.label: anchor(row) for row in comparison.rows}
    seeds = ", ".join(map(str, tuned.seeds))
    caption = (
        f"Every row that can be searched had {tuned.trials} trials of up to {tuned.steps} training steps with "
        f"{'seed' if len(tuned.seeds) == 1 else 'seeds'} {seeds}, none of which is in any other table; the best "
        'score on the dev set chose the configuration of the row called "tuned".'
    )
    legend = (
        "A configuration that was proposed twice was trained once. Search: training and dev evaluation.",
    )
    return Table(
        "tuning",
        "Tuning",
        caption,
        _TUNING,
        tuple(_describe_search(row, links) for row in tuned.rows),
        legend,
    )


def _describe_search(row: TunedRow, links: dict[str, str]) -> TableRow:
    head = Cell(row.row, link=links.get(row.label, ""))
    if not row.study:
        return TableRow((head, EMPTY, EMPTY, EMPTY, Cell(row.reason), EMPTY))
    values = []
    for key, value in row.values.items():
        if isinstance(value, float):
            text = f"{value:.3g}"
        else:
            text = f"{value}"
        values.append(f"{key} {text}")
    return TableRow(
        (
            head,
            Cell(str(row.trials), value=row.trials, state="value"),
            Cell(str(row.runs), value=row.runs, state="value"),
            number(row.seconds, digits=1),
            Cell(", ".join(values) or row.reason),
            Cell(row.study, code=True),
        )
    )


_OTHER_COLUMNS = ("task", "source", "split", "metric", "aggregation", "pooling")
_RERUN = (
    "Every number is the mean of runs, and every run has its configuration, data and seed here. harness reproduce "
    "REPORT#CELL prints the commands that repeat the runs of a cell, or runs them in a new folder."
)


def _collect_values(records: list[Record], field: str) -> dict[str, list[str]]:
    """Key -> distinct values of a dict field over records; nested dicts give dotted keys."""
    by_key: dict[str, dict[str, None]] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        else:
            by_key.setdefault(prefix, {})[format_option(value)] = None

    for record in records:
        walk("", getattr(record, field))
    return {key: list(values) for key, values in sorted(by_key.items()) if key}


def _method_card(name: str) -> list[tuple[str, str]]:
    """What the method says about itself; nothing where its package is not installed any more."""
    card = read_card(name)
    if card is None:
        return []
    shown = ("title", "paper", "equations", "reference", "cost", "kept", "notes")
    found = []
    for key in shown:
        if getattr(card, key):
            found.append((f"method: {key}", str(getattr(card, key))))
    return found


def describe_row_card(row: RecordedRow) -> FactList:
    """All there is to know about a row."""
    first = row.records[0]
    items = [
        ("method", first.method),
        *_method_card(first.method),
        ("base model", row.base_model),
        ("supervision", row.supervision),
        ("seeds", ", ".join(_describe_seed(record) for record in row.records)),
    ]
    for record in row.unfinished:
        reason = record.reason or "no reason recorded"
        items.append((f"seed {record.seed} {record.status}", reason))
    if first.corpus:
        items.append(("corpus", _join_options(first.corpus)))
    for name, fingerprint in first.inputs.items():
        items.append((f"input: {name}", fingerprint))
    if first.dev:
        items.append(("selected on", _join_options(first.dev)))
    for key, values in _collect_values(list(row.records), "config").items():
        if key != "seed":
            items.append((f"config: {key}", " / ".join(values)))
    for key, values in _collect_values(list(row.records), "training").items():
        items.append((f"training: {key}", " / ".join(values)))
    for record in row.records:
        items.append((f"record id, seed {record.seed}", record.id))
    commands = dict.fromkeys(record.command for record in row.records if record.command)
    return FactList(
        anchor(row),
        f"{row.label} · {block_of(row)}",
        tuple(items),
        tuple(commands),
        tuple(record.id for record in row.records),
    )


def _describe_seed(record: Record) -> str:
    if record.status == "finished":
        return str(record.seed)
    return f"{record.seed} ({record.status})"


def _join_options(options: Mapping[str, Any], between: str = ", ") -> str:
    return between.join(f"{key} {format_option(value)}" for key, value in options.items())


def how_it_was_run(comparison: RecordedResults) -> list[Block]:
    """Row cards, machines, protocols."""
    found = []
    for key, values in _collect_values(comparison.records, "environment").items():
        found.append((key, " / ".join(values)))
    about = FactList("run-environment", "Hardware and versions", tuple(found))
    cards = [describe_row_card(row) for row in comparison.rows]
    return [Text((_RERUN,)), *cards, about, *protocol_table(comparison)]


def protocol_table(comparison: RecordedResults) -> list[Table]:
    """What each number in the tables is, by protocol id (without the pooling, which belongs to the
    method).
    """
    met: dict[str, Score] = {}
    described: dict[str, dict[str, Any]] = {}
    for record in comparison.records:
        for s in record.scores:
            met.setdefault(s.comparable, s)
            protocol = record.protocol_of(s)
            if protocol:
                described.setdefault(s.comparable, protocol)
    rows = []
    for one, s in met.items():
        what = {}
        for k, v in described.get(one, {}).items():
            if k not in _OTHER_COLUMNS and v != "":
                what[k] = v
        if "data" in what:
            what["data"] = str(what["data"])[:12]
        cells = (
            Cell(one, code=True),
            Cell(s.task),
            Cell(s.source),
            Cell(s.split),
            Cell(", ".join(filter(None, (s.metric, s.aggregation)))),
            Cell(_join_options(what, "; ") or "not described in the record"),
        )
        rows.append(TableRow(cells, block=s.source))
    heads = {
        "id": "Id",
        "task": "Task",
        "source": "Source",
        "split": "Split",
        "metric": "Metric",
        "what": "Definition",
    }
    columns = tuple(Column(key, title, numeric=False) for key, title in heads.items())
    caption = "Numbers with the same id have the same data, preparation, metric and version, and may be compared."
    if rows:
        return [Table("protocols", "Protocols", caption, columns, tuple(rows))]
    return []


def format_option(value: Any) -> str:
    """A value as it would be typed; no quotes around words, and no more digits than mean something."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
