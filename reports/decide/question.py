"""What a verdict is about: a comparison of a work directory, what its rows are compared by, and two
of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import one_line
from harness.results.store import DESIGN, comparison_files
from reports.load import RecordedResults, comparisons, read_comparison
from reports.results import AnyRow, base_name
from reports.stats.significance import Significance
from reports.stats.verdicts import Question
from reports.suite_targets import known_targets, primary_target
from reports.with_report import WithReport

_NAMED = 24  # words that a message lists


def comparison_of(
    found: WithReport | str | Path, name: str = "", part: str = ""
) -> RecordedResults:
    """A comparison of a work directory: that of this name, or the only one. `part`: a block of its
    file, by name.

    Raises:
        InputError: no such folder, comparison or block, or several comparisons to choose from.
    """
    workdir, name = (
        (Path(found), name) if isinstance(found, str | Path) else (found.workdir, found.name)
    )
    if not workdir.is_dir():
        raise InputError(
            "no such file or folder; expected a work directory, or a file of scores", file=workdir
        )
    if not name:
        known = list(comparison_files(workdir)) or list(comparisons(workdir))
        known = [one for one in known if DESIGN not in one] or known
        if len(known) != 1:
            said = (
                f"it holds {', '.join(known)}: name one with --comparison"
                if known
                else "it holds no runs"
            )
            raise InputError(said, file=workdir)
        name = known[0]
    comparison = read_comparison(workdir, name)
    if not part:
        return comparison
    parts = {one.name: one for one in comparison.parts}
    if part not in parts:
        said = f"its blocks: {', '.join(parts)}" if parts else "its file has no blocks"
        raise InputError(
            f'--block {part}: {comparison.name} has no block "{part}"{nearest(part, list(parts))}; {said}',
            key="--block",
        )
    return parts[part]


def question_of(comparison: RecordedResults, on: str) -> Question:
    """What rows are compared by: "STS", a task, a suite, a block of the file (its rows and what its
    table goes by), or, without a word, what the report goes by.

    Raises:
        InputError: nothing of that name, or no run saved the scores of its examples.
    """
    known = list(known_targets(comparison))
    by_word = {word.lower(): target for words, target in reversed(known) for word in words}
    part = next((one for one in comparison.parts if one.name == on), None)
    if part is not None and on.lower() not in by_word:
        comparison, on, known = part, "", list(known_targets(part))
    if not known:
        raise InputError("no run has scores by which rows could be compared", file=comparison.name)
    significance = Significance(comparison)
    if not on:
        usual = [target for _, target in known]
        primary = primary_target(comparison)
        if primary is not None:
            usual.insert(0, primary)
        target = next((one for one in usual if not significance.unknown(one)), usual[0])
    elif on.lower() in by_word:
        target = by_word[on.lower()]
    else:
        raise _describe_unknown(comparison, on, [words[0] for words, _ in known])
    if why := significance.unknown(target):
        raise InputError(f"on {target.title} nothing can be judged: {why}", file=comparison.name)
    return Question(comparison, target, significance)


def _describe_unknown(comparison: RecordedResults, on: str, known: Sequence[str]) -> InputError:
    """Return the error of a word that names nothing that rows can be compared by."""
    apart = [task for task, _ in comparison.columns(on.lower())]
    if apart:
        scored = {score.task for record in comparison.records for score in record.scores}
        lacking = [task for task in apart if task not in scored]
        why = f"no run has a score of {', '.join(lacking)}" if lacking else "its tasks are unlike"
        return InputError(
            f"--on {on}: {why}, so there is no average",
            key="--on",
            remedy=f"name a task: {', '.join(apart)}",
        )
    names = list(dict.fromkeys(known))
    some = ", ".join(names[:_NAMED])
    if len(names) > _NAMED:
        some += f" and {len(names) - _NAMED} more"
    return InputError(f"--on {on}: not known{nearest(on, names)}; known: {some}", key="--on")


def two_rows_of(
    rows: Sequence[AnyRow],
    first: str,
    second: str,
    base_model: str = "",
) -> tuple[AnyRow, AnyRow]:
    """The rows of two labels.

    Raises:
        InputError: no such row, or both are one.
    """
    a, b = row_of(rows, first, base_model), row_of(rows, second, base_model)
    if a.key == b.key:
        raise InputError(f'"{one_line(a.label)}" is one row: name two', key=one_line(a.label))
    return a, b


def row_of(rows: Sequence[AnyRow], label: str, base_model: str) -> AnyRow:
    """The row of that label.

    Raises:
        InputError: none, or several on unlike base models.
    """
    named = [row for row in rows if row.label == label]
    found = [row for row in named if base_model in ("", row.base_model, base_name(row.base_model))]
    if len(found) == 1:
        return found[0]
    if found:
        bases = ", ".join(base_name(row.base_model) for row in found)
        raise InputError(
            f'row "{label}" has several base models, {bases}: name one with --base-model', key=label
        )
    labels = list(dict.fromkeys(row.label for row in rows))
    raise InputError(
        f'no row "{label}"{nearest(label, labels)}; rows: {", ".join(labels)}', key=label
    )
