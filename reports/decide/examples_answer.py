"""The answer of `harness examples`, in Python and on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from harness.config import as_list, nearest
from harness.errors import InputError
from harness.files.printable import one_line
from harness.results.answer import Answer
from reports.decide.question import comparison_of, two_rows_of
from reports.explore.examples import (
    Chosen,
    ExploredTask,
    choose_differing,
    choose_hard,
    read_tasks,
)
from reports.load import RecordedResults, RecordedRow
from reports.with_report import WithReport

_ERRORS = (
    "error, 0 to 1: of a pair, how far its rank by cosine is from its rank by gold score; of a text, "
    "1 if its label is wrong; of a query, 1 minus its score"
)


def examples(
    found: WithReport | str | Path,
    a: str = "",
    b: str = "",
    *,
    task: str | Sequence[str] = (),
    top: int = 10,
    text: str = "",
    comparison: str = "",
    base_model: str = "",
) -> Answer:
    """The examples on which rows `a` and `b` differ most; without them, those that most rows get
    wrong.

        >>> answer = harness.examples(work, "mean", "cls", top=2, comparison="poolings")
        >>> answer.frame()[["task", "example", "mean", "cls"]].shape
        (2, 4)

    Args:
        found: a comparison, or the work directory of one.
        a, b: labels of rows.
        task: only this task, or these.
        top: examples per task.
        text: only examples that contain these words.
        comparison, base_model: as `harness.verdict` has them.

    Returns:
        In `data`: "examples" (of each its task, number, texts, gold score, and the score and error
        of each row) and "without_texts" (task -> why its texts are unknown). `frame()`: one row an
        example, with a column for the error of each row.

    Raises:
        InputError: no such comparison, row or task, or no run stored its examples.
    """
    if bool(a) != bool(b):
        raise InputError("examples: name two rows, or none", key="examples")
    if top < 1:
        raise InputError(f"--top {top}: a number of examples, 1 or more", key="--top")
    read = comparison_of(found, comparison)
    rows: tuple[RecordedRow, ...] = ()
    if a:
        rows = two_rows_of(read.rows, a, b, base_model)
    wanted = as_list(task)
    tasks = []
    for one in read_tasks(read, lambda name: not wanted or name in wanted):
        if all(row.key in one.runs for row in rows):
            tasks.append(one)
    _check_stored(read, wanted, {one.task for one in tasks})
    chosen: list[Chosen] = []
    for one in tasks:
        if rows:
            chosen += choose_differing(one, rows[0], rows[1], top, text)
        elif some := one.rows(read, base_model):
            chosen += choose_hard(one, some, top, text)
    reasons = _reasons_of(tasks)
    lines = _describe(chosen, bool(rows), reasons)
    data = {"examples": [asdict(one) for one in chosen], "without_texts": reasons}
    table = []
    for line in chosen:
        texts = " | ".join(line.texts)
        about = {"task": line.task, "example": line.example, "texts": texts, "gold": line.gold}
        table.append({**about, **line.errors})
    return Answer("\n".join(lines), data, table)


def _reasons_of(tasks: Iterable[ExploredTask]) -> dict[str, str]:
    """Return why the texts of tasks are unknown."""
    reasons = {}
    for one in tasks:
        if why := one.known[2]:
            reasons[one.task] = why
    return reasons


def _check_stored(
    comparison: RecordedResults,
    wanted: Sequence[str],
    available: set[str],
) -> None:
    """Raises:
    InputError: no run stored the examples of a wanted task, or of any.
    """
    for name in wanted:
        if name not in available:
            hint = nearest(name, sorted(comparison.scored_tasks))
            message = f"--task {name}: no run of these rows stored its examples{hint}"
            raise InputError(message, key="--task")
    if not available:
        raise InputError("no run stored examples", file=comparison.name)


def _describe(found: list[Chosen], two: bool, reasons: dict[str, str]) -> list[str]:
    """Return the examples of each task in words."""
    lines = []
    before = ""
    for one in found:
        if one.task != before:
            before = one.task
            lines.append(one_line(f"{one.task} ({one.source})"))
            if one.task in reasons:
                lines.append("  " + one_line(f"no texts: {reasons[one.task]}"))
        sides = []
        for row, score in one.scores.items():
            error = one.errors[row]
            sides.append(f"{row} {score:.3f} (error {error:.2f})")
        if two:
            said = "; ".join(sides)
        else:
            said = f"median error of {len(sides)} rows {one.by:.2f}"
        if one.gold:
            gold = f"gold {one.gold}, "
        else:
            gold = ""
        lines.append("  " + one_line(f"{one.example}: {gold}{said}"))
        for text in one.texts or [f"[{', '.join(one.ids)}]"]:
            lines.append("      " + one_line(text))
    if not found:
        return ["no example found"]
    return [*lines, _ERRORS]
