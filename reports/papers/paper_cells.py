"""The cells of a paper's tables: what was measured, what was printed, and the remarks on both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.tasks.mteb.benchmarks import EN_V1
from reports.document.table import MINUS, Cell, absent, number
from reports.papers.column_values import ENDED, NO_STUDY, NOT_EVALUATED, Lack, Measured
from reports.papers.definition import PaperColumn
from reports.papers.published_file import Published
from reports.read.comparison_runs import ResultRow
from reports.stats.estimate import mean_sd

SIGNS = {"club": "♣", "diamond": "♦", "heart": "♥", "spade": "♠"}

_OWN = ("", "own", "own evaluation", "summary")  # the document says where these come from

BLANK = Cell("–", state="empty")


def source_note(mark: str) -> str:
    """What a source mark of the published file means; empty for a paper's own numbers."""
    sign, colon, source = mark.partition(": ")
    if colon and sign in SIGNS:
        return f"{SIGNS[sign]} {source}"
    if mark.startswith(("own (", "own evaluation (")):
        return f"own result, marked {mark[mark.index('(') + 1 : -1]} in the paper"
    if mark == "repo":
        return "from the authors' repository, not printed in the paper"
    return "" if mark in _OWN else mark


def doubts(p: Published) -> tuple[str, ...]:
    """The remarks on a published number, without those that only describe its row."""
    kinds = ("parameters ", "embedding dim ", "BoW", "supervised", "unsupervised", "semi-supervised", "mean pooling")
    parts = (part.strip() for part in p["notes"].split(";"))
    kept = "; ".join(part for part in parts if part and part not in EN_V1 and not part.startswith(kinds))
    return (kept,) if kept else ()


def lacking(lacks: Iterable[Lack], column: PaperColumn) -> str:
    """Why a cell has no value; without the task's name in the column of that very task."""
    return "; ".join(lack.text if lack.task == column.task else str(lack) for lack in lacks)


def measured_cell(ours: Measured, column: PaperColumn, row: ResultRow | None = None) -> Cell:
    """Mean and spread over seeds, or why there is none."""
    if not ours.by_seed:
        if column.metric == "train_seconds" and row is not None and row.records[0].supervision == "untrained":
            return BLANK
        if not column.measured or ours.lacks in ((), (NO_STUDY,)):
            return BLANK
        silent = ours.lacks == (NOT_EVALUATED,) or ours.state in ENDED
        return absent(ours.state, *([] if silent else [lacking(ours.lacks, column)]))
    mean, sd = mean_sd(ours.values)
    notes = [ours.partly] if ours.partly else []
    notes += [f"other protocol than the paper's: {text}" for text in ours.unlike]
    return number(
        mean, digits=column.digits, sd=sd, n=len(ours.by_seed), records=ours.records, signed=bool(column.delta),
        notes=notes,
    )  # fmt: skip


def published_cell(p: Published | None, value: float | None, column: PaperColumn, notes: Sequence[str] = ()) -> Cell:
    """A printed number as it was printed."""
    if p is None:
        return BLANK
    if value is None:
        return Cell("illegible", state="empty").noted(*notes)
    text = p["value"].replace("-", MINUS)
    if column.delta and value > 0 and not text.startswith("+"):
        text = f"+{text}"
    return Cell(text, value=value, state="value", notes=tuple(notes))
