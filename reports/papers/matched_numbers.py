"""Every published number beside ours as plain data, CSV and counts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reports.papers.matching import MatchedNumber
from reports.stats.estimate import mean_sd
from reports.write.markdown import csv_text

HEAD = (
    "table", "model", "base_model", "task", "metric", "published", "source_mark", "notes", "our row", "our base model",
    "ours", "sd", "n", "low", "high", "difference", "verdict", "reason", "remarks", "protocols", "runs", "report",
)  # fmt: skip


def plain(rows: Iterable[MatchedNumber], report: str = "") -> list[dict[str, Any]]:
    """The joined numbers as plain data: what the CSV and JSON hold. `report`: what kind of one it is, "rehearsal"."""
    lines = []
    for j in rows:
        mean, sd = mean_sd(j.ours.values) if j.ours.by_seed else (None, None)
        p = j.published
        values: Sequence[Any] = (
            p["table"], p["model"], p["base_model"], p["task"], p["metric"], j.value, p["source_mark"], p["notes"],
            j.row.label if j.row else None, j.row.base_model if j.row else None,
            mean, sd, len(j.ours.by_seed) or None, j.verdict.low, j.verdict.high, j.difference,
            j.verdict.kind, j.verdict.text, "; ".join(j.remarks), list(j.ours.protocols), list(j.ours.records), report,
        )  # fmt: skip
        lines.append(dict(zip(HEAD, values, strict=True)))
    return lines


def as_csv(rows: Iterable[MatchedNumber], report: str = "") -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    for line in plain(rows, report):
        writer.writerow([_field(value) for value in line.values()])
    return out.getvalue()


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return csv_text(" ".join(value) if isinstance(value, list) else str(value))


def counts(rows: Iterable[MatchedNumber]) -> Mapping[str, int]:
    """Verdict -> how many published numbers have it."""
    by_kind: dict[str, int] = {}
    for j in rows:
        by_kind[j.verdict.kind] = by_kind.get(j.verdict.kind, 0) + 1
    return by_kind
