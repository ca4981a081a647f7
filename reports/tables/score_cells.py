"""What the tables of scores are made of: heads of rows, cells of means and averages, marks of
unlike protocols.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.tasks.averages import Average
from reports.document.table import Cell, Column, State, absent, number
from reports.load import RecordedRow, RunScore, describe_prompts
from reports.results import ResultRow, base_name
from reports.stats.estimate import mean_sd

ADDED = "added to the rows of the file: the untrained start of trained rows"
SUPERVISED = {
    "supervised": "trained with labels, or by others on text that is not known here",
    "transductive": "fitted on the text of the test set, without its scores",
}
_NAMED = 16  # missing tasks that a footnote names


def block_of(row: ResultRow) -> str:
    """Rows are ranked within their block."""
    return row.block


def anchor(row: ResultRow) -> str:
    """Id of the row's card on the page: readable, unique, and unbreakable by odd labels."""
    texts = []
    for c in f"{base_name(row.base_model)}-{row.label}":
        texts.append(c if c.isascii() and c.isalnum() else "-")
    text = "".join(texts)
    key = "\n".join(row.key).encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(key).hexdigest()[:6]
    return f"run-{text.lower()[:50]}-{digest}"


def name_cell(row: ResultRow) -> Cell:
    """Its label, which leads to its card."""
    return Cell(row.label, link=anchor(row), records=tuple(r.id for r in row.runs))


def head_cells(row: RecordedRow) -> tuple[Cell, Cell, Cell]:
    """Name, supervision, number of finished seeds (of all seeds)."""
    about = []
    if row.added:
        about.append(ADDED)
    if row.source:
        about.append(f"made elsewhere ({row.source}) under the same conditions")
    never, known_runs = never_beat_the_start(row)
    if never:
        if never == known_runs:
            some = ""
        else:
            some = f" in {never} of {known_runs} runs"
        about.append(f"no gain on dev{some}: no dev score is above that of the untrained model")
    if said := describe_prompts(row):
        about.append(said)
    supervision = Cell(row.supervision)
    if row.supervision in SUPERVISED:
        supervision = supervision.with_notes(SUPERVISED[row.supervision])
    return name_cell(row).with_notes(*about), supervision, _seeds_cell(row)


def _seeds_cell(row: RecordedRow) -> Cell:
    """Return the number of finished seeds, with why others have not."""
    ended: dict[tuple[str, str], list[str]] = {}
    for r in row.unfinished:
        reason = r.reason or "no reason recorded"
        ended.setdefault((r.status, reason), []).append(str(r.seed))
    notes = []
    for (status, reason), seeds in ended.items():
        noun = "seed" if len(seeds) == 1 else "seeds"
        listed = ", ".join(seeds)
        notes.append(f"{row.label}, {noun} {listed} {status}: {reason}")
    if row.unavailable:
        notes = [f"not run: {row.unavailable}"]
    return count_cell(row).with_notes(*notes)


def count_cell(row: RecordedRow) -> Cell:
    """Return the number of finished seeds, and of how many where others have not."""
    done = len(row.finished)
    total = len(row.records)
    if done == total:
        text = str(done)
    else:
        text = f"{done} of {total}"
    return Cell(text, value=done)


HEAD = (
    Column("row", "Method", numeric=False),
    Column("supervision", "Supervision", numeric=False, aside=True),
    Column("seeds", "Seeds", aside=True),
)


def absent_cell(row: ResultRow, *tasks: str) -> Cell:
    """Why a row has no number here, where it would be that of `tasks`."""
    runs = tuple(run.id for run in row.runs)
    if row.finished:
        reasons: list[str] = []
        for task in tasks:
            reasons.extend(row.reasons(task, named=len(tasks) > 1))
        return replace(absent("missing", *reasons), records=runs)
    if row.unavailable:
        return replace(
            absent("missing"), records=runs
        )  # the reason stands at the number of seeds, once
    state: State = "failed"
    for known in ("collapsed", "diverged"):
        if row.status == known:
            state = known
    return replace(absent(state), records=runs)


def mean_cell(
    row: RecordedRow,
    scored: Sequence[RunScore],
    task: str,
    *,
    scale: float,
    digits: int,
) -> Cell:
    """Mean and deviation over the finished seeds whose score of `task` was found."""
    if not scored:
        return absent_cell(row, task)
    mean, sd = mean_sd([scale * s.value for _, s in scored])
    cell = number(
        mean,
        digits=digits,
        sd=sd,
        n=len(scored),
        records=[r.id for r, _ in scored],
    )
    if len(scored) < len(row.finished):
        cell = cell.with_notes(f"mean of {len(scored)} seeds: the others lack this score")
    begins = (f"{task}: ", f"{task} ")  # some have the subset between name and colon
    return cell.with_notes(
        *(
            note
            for r, _ in scored
            for note in r.training.get("notes", ())
            if note.startswith(begins)
        )
    )


def average_cell(row: RecordedRow, averages: Mapping[str, Average]) -> Cell:
    """Average over tasks of each seed (record id -> average), then over seeds; only of seeds that
    have every task.
    """
    whole = {}
    for run, average in averages.items():
        if average.value is not None:
            whole[run] = average.value
    if whole:
        mean, sd = mean_sd(list(whole.values()))
        cell = number(mean, sd=sd, n=len(whole), records=whole)
        if len(whole) == len(row.finished):
            return cell
        return cell.with_notes(f"mean of {len(whole)} seeds with all tasks")
    if not row.finished or not averages:
        return absent_cell(row)
    by_seed = [average.missing for average in averages.values()]
    if all(
        len(missing) == average.of
        for missing, average in zip(by_seed, averages.values(), strict=True)
    ):
        return absent_cell(row)
    lacking = []
    for task in by_seed[0]:
        if all(task in missing for missing in by_seed):
            lacking.append(task)
    if not lacking:
        return absent_cell(row).with_notes("incomplete: no seed has all tasks")
    if len(lacking) > _NAMED:
        more = f" and {len(lacking) - _NAMED} more"
    else:
        more = ""
    return absent_cell(row).with_notes(
        f"incomplete, no average: without {', '.join(lacking[:_NAMED])}{more}"
    )


def mark_others(ids: Sequence[set[str]], cells: list[list[Cell]], column: int) -> None:
    """Footnote every cell whose protocol is not the one that most runs of the column share.

    `ids`: the protocol ids of each row.
    """
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
            cells[i][column] = cells[i][column].with_notes(
                f"measured under protocol {other}, unlike the rest of the column ({usual}): not comparable with it"
            )


def size_text(
    rows: Sequence[RecordedRow],
    task: str,
    source: str,
    metric: str,
    aggregation: str,
    noun: str,
) -> str:
    met: set[int] = set()
    for row in rows:
        met.update(s.n for _, s in row.scores(task, source, metric, aggregation))
    sizes = sorted(met)
    if sizes:
        return f"{' / '.join(f'{n:,}' for n in sizes)} {noun}"
    return ""


def never_beat_the_start(row: RecordedRow) -> tuple[int, int]:
    """Of how many finished runs no dev score was above the untrained one, and of how many both
    scores are known.
    """
    known = []
    for record in row.finished:
        if (best := record.training.get("best_dev")) is not None and (
            initial := record.training.get("initial_dev")
        ) is not None:
            known.append((best, initial))
    return sum(best <= initial for best, initial in known), len(known)
