"""What a study found, as tables: all trials, max / q75 / q50 by category, values by bins. Read from the storage."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reports.stats.search import bin_of, bins, quartile
from studies.definition.space import Space
from studies.definition.study import Study
from studies.trials import result_of

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

Value = str | int | float | None


@dataclass(frozen=True)
class Sheet:
    """A table of plain values: what is printed, and what a CSV file holds."""

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(["" if cell is None else cell for cell in row] for row in self.rows)
        return out.getvalue()

    def text(self) -> list[list[str]]:
        """Cells as a terminal shows them; correlations keep four digits."""
        return [["" if c is None else f"{c:.4g}" if isinstance(c, float) else str(c) for c in row] for row in self.rows]


def value_label(study: Study) -> str:
    """The axis of the objective."""
    return f"{study.objective_name} ×100"


def trials_sheet(study: Study, space: Space, trials: Sequence[FrozenTrial]) -> Sheet:
    """Every trial: configuration, values (correlations, not times 100), state, seeds, seconds, ids of its runs."""
    columns = ("trial", *space.names, study.objective_name, "state", "status", "seeds", "reused",
               "seconds", "last step", "runs", "reason")  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for t in trials:
        result = result_of(t)
        rows.append((
            t.number,
            *(t.params.get(name) for name in space.names),
            t.value if t.state.name == "COMPLETE" else None,
            t.state.name.lower(),
            result.status,
            " ".join(map(str, result.seeds)),
            "yes" if result.reused else "no",
            round(result.seconds, 3),
            t.last_step,
            " ".join(result.runs),
            result.reason,
        ))  # fmt: skip
    return Sheet("trials", "Trials", columns, tuple(rows))


def scored(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that have a value. Pruned ones have none: their score was cut short."""
    return [t for t in trials if t.state.name == "COMPLETE" and math.isfinite(t.values[0])]


def top(values: Sequence[float], share: float = 1.0) -> float:
    """The best of the values times 100, or the quantile that `share` of them do not exceed."""
    return 100 * quartile(values, share)


def summary_sheet(study: Study, space: Space, trials: Sequence[FrozenTrial]) -> Sheet:
    """max, q75 and q50 of the objective by category, as in Table 1 of Farina & Pappadopulo (NAACL 2024).

    Categories are the values of `by`; without one there is the line of all trials alone.
    """
    groups: list[tuple[str, list[FrozenTrial]]] = [("all", list(trials))]
    if study.by is not None:
        values_ = space[study.by].values()
        groups = [(f"{study.by} = {v}", [t for t in trials if t.params.get(study.by) == v]) for v in values_] + groups
    rows: list[tuple[Value, ...]] = []
    for name, group in groups:
        values = [t.values[0] for t in scored(group)]
        numbers: list[Value] = [None, None, None]
        if values:
            numbers = [top(values, share) for share in (1.0, 0.75, 0.5)]
        pruned = sum(t.state.name == "PRUNED" for t in group)
        failed = sum(t.state.name == "FAIL" for t in group)
        distinct = len({tuple(result_of(t).runs) for t in group})
        rows.append((name, *numbers, len(values), pruned, failed, distinct))
    title = f"{study.objective_name} x 100 over trials (q75, q50: linear interpolation)"
    columns = ("category", "max", "q75", "q50", "scored trials", "pruned", "failed", "different configurations")
    return Sheet("summary", title, columns, tuple(rows))


def binned_sheet(study: Study, space: Space, trials: Sequence[FrozenTrial], name: str) -> Sheet:
    """max and q75 after binning the trials by one number, a line for each category and bin (their Figure 1)."""
    parameter = space[name]
    have = [t for t in scored(trials) if name in t.params]
    spread = parameter.log or _spans_decades([float(t.params[name]) for t in have])
    intervals = bins([float(t.params[name]) for t in have], log=spread, listed=parameter.finite) if have else []
    categories: list[Any] = list(space[study.by].values()) if study.by and study.by != name else []
    rows: list[tuple[Value, ...]] = []
    for category in [*categories, None]:
        group = [t for t in have if category is None or t.params.get(study.by or "") == category]
        for i, (low, high) in enumerate(intervals):
            values = [t.values[0] for t in group if bin_of(float(t.params[name]), intervals) == i]
            if values:
                numbers = (top(values), top(values, 0.75), len(values))
                rows.append(("all" if category is None else str(category), low, high, *numbers))
    columns = (study.by or "category", f"{name} from", f"{name} to", "max", "q75", "trials")
    return Sheet(f"binned-{name}", f"{study.objective_name} x 100 by {name}", columns, tuple(rows))


def heat_sheet(study: Study, space: Space, trials: Sequence[FrozenTrial], a: str, b: str, count: int = 6) -> Sheet:
    """max and q75 of each cell of two numbers' bins (their Figure 2: lambda_C x lambda_V)."""
    have = [t for t in scored(trials) if a in t.params and b in t.params]
    grids = []
    for name in (a, b):
        values = [float(t.params[name]) for t in have]
        log = space[name].log or _spans_decades(values)
        grids.append(bins(values, log=log, count=count, listed=space[name].finite) if have else [])
    rows: list[tuple[Value, ...]] = []
    for i, (low_a, high_a) in enumerate(grids[0]):
        for j, (low_b, high_b) in enumerate(grids[1]):
            values = [
                t.values[0]
                for t in have
                if bin_of(float(t.params[a]), grids[0]) == i and bin_of(float(t.params[b]), grids[1]) == j
            ]
            numbers = (top(values), top(values, 0.75)) if values else (None, None)
            rows.append((low_a, high_a, low_b, high_b, *numbers, len(values)))
    columns = (f"{a} from", f"{a} to", f"{b} from", f"{b} to", "max", "q75", "trials")
    return Sheet(f"heat-{a}-{b}", f"{study.objective_name} x 100 by {a} and {b}", columns, tuple(rows))


def _spans_decades(values: Sequence[float]) -> bool:
    """Numbers that are best seen on a log scale: all positive, and over a factor of ten apart."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > 10
