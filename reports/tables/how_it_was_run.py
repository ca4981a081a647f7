"""How a comparison was run and what it cannot say: configurations, machines, data, protocols, limits."""

from __future__ import annotations

import json
from typing import Any

from harness import registry
from harness.errors import InputError
from harness.results.published import published_rows, summary
from harness.results.record import Record
from harness.tracking.tracker import logged_runs
from reports.document.blocks import Block, Facts, Text
from reports.document.table import Cell, Column, Table, TableRow
from reports.read.comparison_runs import Comparison, Row
from reports.stats.resamples import Analysis
from reports.tables.scores import anchor, block_of

_RERUN = (
    "Every number names its runs, and every run its configuration, data and seed. harness reproduce REPORT lists the "
    "cells of a report, harness reproduce REPORT#CELL says what made one, and with --run makes it again."
)


def _text(value: Any) -> str:
    """A value as it would be typed; no quotes around words, and no more digits than mean something."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _shared(records: list[Record], field: str) -> dict[str, list[str]]:
    """Key -> distinct values of a dict field over records; nested dicts give dotted keys."""
    found: dict[str, dict[str, None]] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        else:
            found.setdefault(prefix, {})[_text(value)] = None

    for record in records:
        walk("", getattr(record, field))
    return {key: list(values) for key, values in sorted(found.items()) if key}


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


def _card(row: Row, tracked: dict[tuple[str, str, str], str]) -> Facts:
    """All there is to know about a row; `tracked` as `logged_runs` gives it."""
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
        items.append(("corpus", ", ".join(f"{k} {_text(v)}" for k, v in first.corpus.items())))
    items += [(f"input: {name}", fingerprint) for name, fingerprint in first.inputs.items()]
    if first.dev:
        items.append(("selected on", ", ".join(f"{k} {_text(v)}" for k, v in first.dev.items())))
    items += [(f"config: {k}", " / ".join(v)) for k, v in _shared(list(row.records), "config").items() if k != "seed"]
    for key, values in _shared(list(row.records), "training").items():
        items.append((f"training: {key}", " / ".join(values)))
    for r in row.records:
        logged = tracked.get((r.comparison, r.row, r.id))
        items.append((f"record id, seed {r.seed}", r.id + (f" (MLflow run {logged})" if logged else "")))
    commands = tuple(dict.fromkeys(r.command for r in row.records if r.command))
    runs = tuple(r.id for r in row.records)
    return Facts(anchor(row), f"{row.label} · {block_of(row)}", tuple(items), commands, runs)


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
        text = "; ".join(f"{k} {_text(v)}" for k, v in rest.items()) or "not described in the record"
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


def how_it_was_run(comparison: Comparison) -> list[Block]:
    """Row cards, machines, data, protocols."""
    tracked = logged_runs(comparison.workdir)
    blocks: list[Block] = [Text((_RERUN,)), *(_card(row, tracked) for row in comparison.rows)]
    machine = _shared(comparison.records, "environment")
    blocks.append(
        Facts("run-environment", "Hardware and versions", tuple((k, " / ".join(v)) for k, v in machine.items()))
    )
    blocks += [table for table in (data_table(comparison), protocol_table(comparison)) if table is not None]
    return blocks


def limits(comparison: Comparison, analysis: Analysis) -> Text:
    """What a reader must not conclude. Call last: reading pairs and curves fills the comparison's warnings."""
    said = []
    counts = {len(row.finished) for row in comparison.rows if row.supervision != "untrained" and row.finished}
    if counts and min(counts) < 5:
        few = min(counts)
        said.append(
            f"{'A single seed says' if few == 1 else f'Few seeds ({few} for some rows) say'} little about the spread "
            "between runs. Intervals are widened for few seeds (Student's t in place of the normal), but with fewer "
            "than five they rest on that assumption more than on data"
            + ("; with one seed they leave seeds out." if few == 1 else ".")
        )
    said.append(
        "Intervals hold the chance of the drawn test pairs and seeds. They do not hold the choice of hyperparameters, "
        "corpus or base model: another setting of a method may reverse its place."
    )
    selected = sorted({str(r.dev["task"]) for r in comparison.records if r.dev and r.dev.get("task")})
    if selected:
        said.append(
            f"Trained rows kept the checkpoint that scored best on the dev part of {', '.join(selected)}: no "
            "test score was looked at, but tasks like it are favoured."
        )
    if comparison.columns("embedded"):
        said.append(
            "The embedded tasks are small and scored by one author without a second annotator: they show direction, "
            "not rank on public benchmarks, and are not STS-B or any of its kin."
        )
    lost = [row for row in comparison.rows if row.unfinished]
    if any(row.finished for row in lost):
        names = ", ".join(row.label for row in lost if row.finished)
        said.append(
            f"Means of {names} are over the seeds that finished, which flatters a method that sometimes collapses."
        )
    keys = [key for target in analysis.targets for key in target.tasks]
    finished = [r for row in comparison.rows for r in row.finished]
    stored = [r.id for r in finished if keys and all(comparison.pairs(r, *key) is None for key in keys)]
    if stored:
        said.append(f"Without stored pairs, so left out of intervals and separation marks: {', '.join(stored)}.")
    if analysis.unlike:
        runs = ", ".join(sorted({run for run, _, _ in analysis.unlike}))
        said.append(f"Scored on other pairs than the rest, so left out of intervals and separation marks: {runs}.")
    if comparison.set_aside:
        ids = ", ".join(r.id for r in comparison.set_aside)
        said.append(f"Set aside, since their row has newer runs or another configuration: {ids}.")
    said += [f"Warning: {text}." for text in dict.fromkeys(comparison.warnings)]
    return Text(tuple(said), bullets=True)
