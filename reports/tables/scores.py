"""The main tables of a comparison: scores, and differences to the untrained base."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.results.record import Record, Score
from harness.tasks.averages import Average, mean_of
from reports.document.table import Cell, Column, State, Table, TableRow, absent, number, number_text, ranked
from reports.read.comparison_runs import Comparison, Row, base_name
from reports.stats.bootstrap import mean_sd
from reports.stats.resamples import SOURCES, Analysis, Target, targets, untrained_base

_NAMED = 16  # missing tasks that a footnote names


def block_of(row: Row) -> str:
    """Rows are ranked within their base model; supervised rows stand apart and are not ranked."""
    name = base_name(row.base_model)
    return f"{name} · supervised, not ranked" if row.supervision == "supervised" else name


def anchor(row: Row) -> str:
    """Id of the row's card on the page: readable, unique, and unbreakable by odd labels."""
    text = "".join(c if c.isascii() and c.isalnum() else "-" for c in f"{base_name(row.base_model)}-{row.label}")
    digest = hashlib.sha256("\n".join(row.key).encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"run-{text.lower()[:50]}-{digest}"


def head_cells(row: Row) -> tuple[Cell, Cell, Cell]:
    """Name, supervision, number of finished seeds (of all seeds)."""
    ended: dict[tuple[str, str], list[str]] = {}
    for r in row.unfinished:
        ended.setdefault((r.status, r.reason or "no reason recorded"), []).append(str(r.seed))
    notes = [
        f"{row.label}, seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)} {status}: {reason}"
        for (status, reason), seeds in ended.items()
    ]
    done, total = len(row.finished), len(row.records)
    count = Cell(str(done) if done == total else f"{done} of {total}", value=done, notes=tuple(notes))
    ids = tuple(r.id for r in row.records)
    return Cell(row.label, link=anchor(row), records=ids), Cell(row.supervision), count


HEAD = (
    Column("row", "Method", numeric=False),
    Column("supervision", "Supervision", numeric=False, aside=True),
    Column("seeds", "Seeds", aside=True),
)


def absent_cell(row: Row, *tasks: str) -> Cell:
    """Why a row has no number here, where it would be that of `tasks`."""
    runs = tuple(r.id for r in row.records)
    if row.finished:
        reasons = (reason for task in tasks for reason in row.reasons(task))
        return replace(absent("missing", *reasons), records=runs)
    state: State = "failed"
    for known in ("collapsed", "diverged"):
        if row.status == known:
            state = known
    return replace(absent(state), records=runs)


def mean_cell(row: Row, found: Sequence[tuple[Record, Score]], task: str, *, scale: float, digits: int) -> Cell:
    """Mean and deviation over the finished seeds whose score of `task` was found."""
    if not found:
        return absent_cell(row, task)
    mean, sd = mean_sd([scale * s.value for _, s in found])
    cell = number(mean, digits=digits, sd=sd, n=len(found), records=[r.id for r, _ in found])
    if len(found) < len(row.finished):
        cell = cell.noted(f"mean of {len(found)} seeds: the others lack this score")
    return cell


def score_cell(row: Row, task: str, source: str, metric: str, aggregation: str, *, scale: float, digits: int) -> Cell:
    """Mean and deviation over the finished seeds that have the score."""
    return mean_cell(row, row.scores(task, source, metric, aggregation), task, scale=scale, digits=digits)


def average_cell(row: Row, averages: Mapping[str, Average]) -> Cell:
    """Average over tasks of each seed (record id -> average), then over seeds; only of seeds that have every task."""
    whole = {run: average.value for run, average in averages.items() if average.value is not None}
    if whole:
        mean, sd = mean_sd(list(whole.values()))
        cell = number(mean, sd=sd, n=len(whole), records=whole)
        return cell if len(whole) == len(row.finished) else cell.noted(f"mean of {len(whole)} seeds with all tasks")
    if not row.finished or not averages:
        return absent_cell(row)
    by_seed = [average.missing for average in averages.values()]
    if all(len(missing) == average.of for missing, average in zip(by_seed, averages.values(), strict=True)):
        return absent_cell(row)
    lacking = [task for task in by_seed[0] if all(task in missing for missing in by_seed)]
    if not lacking:
        return absent_cell(row).noted("incomplete: no seed has all tasks")
    more = f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
    return absent_cell(row).noted(f"incomplete, no average: without {', '.join(lacking[:_NAMED])}{more}")


def _average_cell(row: Row, target: Target) -> Cell:
    """Mean over the tasks for each seed, then over seeds; only where every task is there."""
    by_run: dict[str, dict[str, float]] = {}
    for task, source in target.tasks:
        for record, s in row.scores(task, source, "spearman", "all"):
            by_run.setdefault(record.id, {})[task] = 100 * s.value
    wanted = [task for task, _ in target.tasks]
    return average_cell(row, {run: mean_of(values, wanted) for run, values in by_run.items()})


def mark_unlike(
    rows: Sequence[Row], cells: list[list[Cell]], column: int, task: str, source: str, metric: str, aggregation: str
) -> None:
    """Footnote every cell whose protocol is not the one that most runs of the column share."""
    mark_others(
        [{s.comparable for _, s in row.scores(task, source, metric, aggregation)} for row in rows], cells, column
    )


def mark_others(ids: Sequence[set[str]], cells: list[list[Cell]], column: int) -> None:
    """The same, from the protocol ids of each row."""
    count: dict[str, int] = {}
    for group in ids:
        for one in group:
            count[one] = count.get(one, 0) + 1
    if len(count) < 2:
        return
    usual = max(sorted(count), key=lambda one: count[one])
    for i, group in enumerate(ids):
        if group - {usual}:
            other = ", ".join(sorted(group - {usual}))
            cells[i][column] = cells[i][column].noted(
                f"measured under protocol {other}, unlike the rest of the column ({usual}): not comparable with it"
            )


def size_text(rows: Sequence[Row], task: str, source: str, metric: str, aggregation: str, noun: str) -> str:
    sizes = sorted({s.n for row in rows for _, s in row.scores(task, source, metric, aggregation)})
    return f"{' / '.join(f'{n:,}' for n in sizes)} {noun}" if sizes else ""


def score_tables(comparison: Comparison, analysis: Analysis | None) -> list[Table]:
    """One table for each source of the STS tasks, one for the embedded tasks. Without `analysis`, no marks of it."""
    groups: dict[str, list[Target]] = {}
    for target in analysis.targets if analysis else targets(comparison):
        groups.setdefault("embedded" if target.key.startswith("embedded-") else target.key, []).append(target)
    return [_score_table(comparison, analysis, key, members) for key, members in groups.items()]


def _score_table(comparison: Comparison, analysis: Analysis | None, key: str, members: list[Target]) -> Table:
    rows = comparison.rows
    tasks = [task for target in members for task in target.tasks]
    columns = list(HEAD)
    cells = [list(head_cells(row)) for row in rows]
    for task, source in tasks:
        size = size_text(rows, task, source, "spearman", "all", "pairs")
        columns.append(Column(f"{task}", task, size, better="higher"))
        for i, row in enumerate(rows):
            cells[i].append(score_cell(row, task, source, "spearman", "all", scale=100, digits=2))
        mark_unlike(rows, cells, len(columns) - 1, task, source, "spearman", "all")
    deciding = {target.key: len(HEAD) + i for i, target in enumerate(members)}
    if len(members[0].tasks) > 1:
        deciding = {members[0].key: len(columns)}
        columns.append(Column("average", "Avg.", f"{len(members[0].tasks)} tasks", better="higher"))
        for i, row in enumerate(rows):
            cells[i].append(_average_cell(row, members[0]))
    body = ranked(
        columns,
        [
            TableRow(tuple(c), block_of(row), row.supervision != "supervised")
            for row, c in zip(rows, cells, strict=True)
        ],
    )
    legend = ["Spearman's correlation ×100, mean ± standard deviation over seeds."]
    if analysis:
        body = _mark_tied(comparison, analysis, members, deciding, body)
        where = columns[next(iter(deciding.values()))].title if len(deciding) == 1 else "each column"
        legend.append(
            f"Separation is judged on {where}: paired hierarchical bootstrap over seeds and pairs, "
            f"{analysis.replicates:,} resamples, Holm-corrected at 0.05."
        )
        if any(len(row.finished) == 1 and row.supervision == "unsupervised" for row in rows):
            legend.append("Of a row with one seed only the chance of the pairs is known, not that of the seed.")
    if any(row.supervision == "transductive" for row in rows):
        legend.append("Transductive rows were fitted on the text of the test set (without its scores).")
    if key == "embedded":
        title = "Embedded suite"
        caption = (
            "Tasks that ship with the harness, under their own names: natural pairs, where word overlap helps, and "
            "contrast pairs, where it says nothing. They are reported apart and never averaged."
        )
    else:
        source = members[0].tasks[0][1]
        title = f"Semantic textual similarity · {SOURCES.get(source, source)}"
        caption = 'Test splits, cosine similarity; aggregation "all": one correlation over all pairs of a task.'
    return Table(f"scores-{key}", title, caption, tuple(columns), body, tuple(legend))


def _mark_tied(
    comparison: Comparison,
    analysis: Analysis,
    members: Sequence[Target],
    deciding: dict[str, int],
    body: tuple[TableRow, ...],
) -> tuple[TableRow, ...]:
    """Mark the rows that the bootstrap does not separate from the best of their block."""
    tied: set[tuple[tuple[str, str], int]] = set()
    for target in members:
        for base in comparison.base_models:
            rows = [r for r in comparison.rows if r.base_model == base and r.supervision != "supervised"]
            found = analysis.leaders(rows, target)
            tied |= {(row.key, deciding[target.key]) for row in found[1]} if found else set()
    return tuple(
        replace(line, cells=tuple(replace(c, tied=(row.key, j) in tied) for j, c in enumerate(line.cells)))
        for row, line in zip(comparison.rows, body, strict=True)
    )


def against_base(comparison: Comparison, analysis: Analysis) -> Table | None:
    """Each trained row against its untrained base, by every target; None when there is nothing to compare."""
    if not analysis.targets:
        return None
    first = analysis.targets[0]
    found = [(row, b) for row in comparison.rows if (b := untrained_base(row, comparison.rows, analysis, first))]
    if not found:
        return None
    columns = [
        HEAD[0],
        Column("base", "Untrained base", numeric=False, aside=True),
        Column("seeds", "Seeds", "trained · base", aside=True),
    ]
    cells = [
        [head_cells(row)[0], Cell(base.label, notes=(remark,) if remark else (), link=anchor(base)),
         Cell(f"{len(row.finished)} · {len(base.finished)}", value=len(row.finished), notes=head_cells(row)[2].notes)]
        for row, (base, remark) in found
    ]  # fmt: skip
    for target in analysis.targets:
        columns += [
            Column(f"{target.key} difference", "Difference", "points, 95 % interval", group=target.short),
            Column(f"{target.key} p", "p", "Holm", group=target.short),
            Column(f"{target.key} verdict", "Verdict", group=target.short, numeric=False),
        ]
        results = analysis.differences([(row, base) for row, (base, _) in found], target)
        for line, (row, (base, _)), d in zip(cells, found, results, strict=True):
            if d is None:
                line += [absent_cell(row), Cell("", state="empty"), Cell("", state="empty")]
                continue
            e = d.estimate
            low, high = (number_text(100 * x, 2, signed=True) for x in (e.low, e.high))
            line.append(
                Cell(
                    number_text(100 * e.value, 2, signed=True),
                    f"[{low}, {high}]",
                    100 * e.value,
                    None,
                    d.seeds[0],
                    "value",
                    records=(runs := tuple(r.id for r in (*row.finished, *base.finished))),
                )
            )
            line.append(Cell(p_text(d.holm), value=d.holm, state="value", records=runs))
            line.append(Cell(d.verdict, records=runs))
    legend = [
        "Difference of the means over seeds, in points of Spearman ×100; the same resampled pairs for both rows.",
        "Base: the untrained row with the same base model and pooling; where there is none, the best untrained row of "
        "that base model.",
        "p: Holm-corrected over the rows of this table, column by column; the smallest that "
        f"{analysis.replicates:,} resamples can show for one row is {p_text(2 / (analysis.replicates + 1))}.",
    ]
    if any(len(row.finished) < 2 for row, _ in found):
        legend.append(
            "A row with one seed: its interval holds the sampling of pairs only, not the spread between seeds."
        )
    body = tuple(TableRow(tuple(c), block_of(row)) for (row, _), c in zip(found, cells, strict=True))
    return Table(
        "against-base",
        "Difference to the untrained base",
        "What training added to the same encoder.",
        tuple(columns),
        body,
        tuple(legend),
    )


def p_text(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
