"""Every score of every run of a comparison as CSV: what no table has room for."""

from __future__ import annotations

import csv
import io

from harness.seeds import seed_text
from reports.read.comparison_runs import Comparison
from reports.write.markdown import csv_text


def all_scores(comparison: Comparison) -> str:
    """The text of the CSV file, a line for each score."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = ("task", "suite", "source", "split", "metric", "aggregation", "value", "n", "protocol", "comparable")
    writer.writerow(["record", "row", "base_model", "seed", "status", *fields])
    for r in {r.id: r for r in [*comparison.records, *comparison.held]}.values():
        for s in r.scores:
            values = [getattr(s, field) for field in fields]
            line = [r.id, r.row, r.base_model, seed_text(r.random_seed), r.status, *values]
            writer.writerow([csv_text(value) if isinstance(value, str) else value for value in line])
    return out.getvalue()
