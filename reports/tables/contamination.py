"""The share of each task's texts that occurs in what rows were trained or selected on."""

from __future__ import annotations

from harness.contamination.check import TaskOverlap
from reports.document.blocks import Block, Text
from reports.document.table import EMPTY, Cell, Column, Table, TableRow
from reports.load import RecordedResults
from reports.records.overlap import (
    TRAINING,
    TextOverlap,
    find_scored_tasks,
    find_task_overlap,
    text_overlaps,
)
from reports.results import base_name

LARGE = 0.05  # share of a task's texts from which on the limits mention it
_COLUMNS = (
    Column("task", "Task", numeric=False),
    Column("texts", "Texts"),
    Column("equal", "Equal", "%"),
    Column("all", "Equal or nearly", "%"),
    Column("pairs", "Examples with one", "%"),
)


def contamination(comparison: RecordedResults) -> list[Block]:
    """One table of all overlaps, and the texts and tasks without overlap or without a check."""
    texts = text_overlaps(comparison)
    tasks = find_scored_tasks(comparison)
    rows: list[TableRow] = []
    notes: list[str] = []
    for text in texts:
        met = []
        clean = []
        unknown = []
        for (task, source), data in tasks.items():
            one = find_task_overlap(text, task, source, data)
            if one is None:
                unknown.append(task)
            elif one.share:
                met.append((task, one))
            else:
                clean.append(task)
        met.sort(key=lambda item: -item[1].share)
        block = f"{text.name}, {text.use} of {_some(text.rows, 4)}"
        for task, one in met:
            rows.append(TableRow(_cells_of(task, one), block))
        if clean:
            notes += [f"No overlap with {_name_text(text)}: {_some(clean)}."]
        if unknown:
            notes += [f"Not compared with {_name_text(text)}: {_some(unknown)}."]
    if not texts:
        return []
    said = Text((*notes, *_list_unchecked(comparison)), bullets=True)
    table = Table(
        "contamination",
        "Text of the tasks in the training data",
        "Distinct texts of each task that occur in what rows were trained or selected on: equal in their words, or "
        "nearly equal by shared word n-grams; and the scored examples that have such a text.",
        _COLUMNS,
        tuple(rows),
        (
            "The whole training text was compared. harness report build --without-overlap leaves these examples out.",
        ),
    )
    return [table, said] if rows else [said]


def _cells_of(task: str, one: TaskOverlap) -> tuple[Cell, ...]:
    """Return what of a task occurs in a text."""
    examples = EMPTY
    if one.pairs:
        examples = _percent(one.touched_share)
    return (
        Cell(task),
        Cell(f"{one.texts:,}", value=one.texts),
        _percent(one.equal / one.texts),
        _percent(one.share),
        examples,
    )


def remarks(comparison: RecordedResults) -> list[str]:
    """A sentence for each training text that holds much of the tasks' text."""
    said = []
    for text in text_overlaps(comparison):
        if text.use != TRAINING:
            continue
        much = []
        for (task, source), data in find_scored_tasks(comparison).items():
            one = find_task_overlap(text, task, source, data)
            if one is not None and one.share >= LARGE:
                much.append((task, one))
        much.sort(key=lambda pair: -pair[1].share)
        shares = [f"{task} {_percent(one.share).text} %" for task, one in much]
        if shares:
            said.append(
                f"Test sentences occur in the training text {text.name}: {', '.join(shares)}. "
                "harness report build --without-overlap leaves them out."
            )
    return said


def _percent(share: float) -> Cell:
    """A share, never rounded to all or nothing."""
    shown = f"{100 * share:.1f}"
    if shown == "100.0":
        shown = "100" if share == 1 else "> 99.9"
    if shown == "0.0" and share:
        shown = "< 0.1"
    return Cell(shown, value=100 * share, state="value")


def _list_unchecked(comparison: RecordedResults) -> list[str]:
    """What cannot be checked here."""
    bases = ", ".join(base_name(base) for base in comparison.base_models)
    elsewhere = []
    for row in comparison.rows:
        if row.supervision == "supervised" and not row.records[0].corpus:
            elsewhere.append(row.label)
    own = [row.label for row in comparison.rows if row.supervision == "transductive"]
    return [
        f"Overlap with the pretraining data of the base models ({bases}) was not checked.",
        *([f"Trained elsewhere, on unknown text: {_some(elsewhere)}."] if elsewhere else []),
        *([f"Fitted to the unlabelled sentences of each task: {_some(own)}."] if own else []),
    ]


def _name_text(text: TextOverlap) -> str:
    return f"{text.name} ({text.use})"


def _some(names: list[str] | tuple[str, ...], most: int = 12) -> str:
    names = list(dict.fromkeys(names))
    text = ", ".join(names[:most])
    if len(names) > most:
        text += f" and {len(names) - most} more"
    return text
