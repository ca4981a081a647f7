"""What seeds do: public runs of one row of a paper with many seeds, next to its published numbers.

The file that a definition names has a list "12.3;12.5;..." of one value a run for each base model and
task, under the model of the published number.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import InputError
from reports.document.table import Cell, Column, Table, TableRow, number
from reports.papers.definition import Definition, Published
from reports.records.run_library import read_number
from reports.stats.estimate import mean_sd

KEY = "seeds"
SAME = ("model", "base_model", "task", "metric")  # of a published number and its public runs


def read_public_runs(definition: Definition) -> list[Published]:
    """Return the rows of the file; none where the definition names none.

    Raises:
        InputError: no such file, or a row that is no list of numbers.
    """
    file = definition.public_runs
    if not file:
        return []
    rows = definition.published_rows(file)
    for row in rows:
        for value in row["value"].split(";"):
            if read_number(value) is None:
                message = f'expected numbers, as "12.3;12.5", not "{row["value"]:.40}"'
                raise InputError(message, file=file, key='column "value"')
    return rows


def values_of(runs: Sequence[Published], p: Published) -> list[float]:
    """Return the values of the runs of a published number; empty where there are none."""
    for row in runs:
        if all(row[key] == p[key] for key in SAME):
            return _values(row)
    return []


def locate_among_runs(
    runs: Sequence[Published], p: Published, published: float | None
) -> tuple[str, ...]:
    """Say in a sentence where a published number lies among the public runs."""
    values = values_of(runs, p)
    if published is None or not values:
        return ()
    mean, sd = mean_sd(values)
    return (
        f"Of {len(values)} public runs with other seeds {_reaching(values, published)} reach the "
        f"published number; their mean is {mean:.2f}, their standard deviation {sd:.2f}.",
    )


def seed_table(runs: Sequence[Published], published: Sequence[Published]) -> Table | None:
    """Return the public runs by base model and task, next to the published numbers."""
    rows = []
    for row in runs:
        values = _values(row)
        mean, sd = mean_sd(values)
        found = []
        for p in published:
            if all(row[key] == p[key] for key in SAME):
                found.append(read_number(p["value"]))
        reaching = Cell("–", state="empty")
        printed = Cell("–", state="empty")
        first = next((value for value in found if value is not None), None)
        if first is not None:
            printed = number(first)
            count = _reaching(values, first)
            reaching = Cell(f"{count} of {len(values)}", value=count, state="value")
        cells = (
            Cell(row["task"]),
            printed,
            number(mean),
            number(sd or 0.0),
            number(min(values)),
            number(max(values)),
            reaching,
        )
        rows.append(TableRow(cells, row["base_model"]))
    if not rows:
        return None
    columns = (
        Column("task", "Task", numeric=False),
        Column("published", "Published"),
        Column("mean", "Mean", "public runs"),
        Column("sd", "SD", "public runs"),
        Column("lowest", "Lowest"),
        Column("highest", "Highest"),
        Column("reaching", "Runs that reach it"),
    )
    caption = (
        f"{runs[0]['notes']}, run by others ({runs[0]['paper']}): what the seed alone "
        "moves. A published number is of one run."
    )
    return Table(KEY, "What seeds do", caption, columns, tuple(rows))


def _values(row: Published) -> list[float]:
    return [float(value) for value in row["value"].split(";")]


def _reaching(values: Sequence[float], published: float) -> int:
    """Return how many runs are at the published number or above."""
    return sum(value >= published for value in values)
