"""What a verdict is about: a comparison of a work directory, what its rows are compared by, and two
of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import one_line
from harness.files.reading import is_there, require_ordinary
from harness.results.store import DESIGN, comparison_files
from reports.load import RecordedResults, comparisons, read_comparison
from reports.results import AnyRow, base_name
from reports.stats.significance import Significance
from reports.stats.verdicts import Question
from reports.suite_targets import known_targets, primary_target
from reports.targets import Target
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
    if isinstance(found, str | Path):
        workdir = Path(found)
    else:
        workdir = found.workdir
        name = found.name
    if is_there(workdir) and not workdir.is_dir():
        require_ordinary(workdir)
        raise InputError("is a file; expected a work directory", file=workdir)
    if not workdir.is_dir():
        raise InputError(
            "no such file or folder; expected a work directory, or a file of scores", file=workdir
        )
    comparison = read_comparison(workdir, name or _only_comparison(workdir))
    if not part:
        return comparison
    parts = {one.name: one for one in comparison.parts}
    if part not in parts:
        said = "its file has no blocks"
        if parts:
            said = f"its blocks: {', '.join(parts)}"
        other = nearest(part, list(parts))
        raise InputError(
            f'--block {part}: {comparison.name} has no block "{part}"{other}; {said}',
            key="--block",
        )
    return parts[part]


def _only_comparison(workdir: Path) -> str:
    """Return the name of the only comparison of a work directory.

    Raises:
        InputError: it holds none, or several.
    """
    known = list(comparison_files(workdir)) or list(comparisons(workdir))
    known = [one for one in known if DESIGN not in one] or known
    if not known:
        raise InputError("it holds no runs", file=workdir)
    if len(known) > 1:
        several = f"it holds {', '.join(known)}: name one with --comparison"
        raise InputError(several, file=workdir)
    return known[0]


def question_of(comparison: RecordedResults, on: str) -> Question:
    """What rows are compared by: "STS", a task, a suite, a block of the file (its rows and what its
    table goes by), or, without a word, what the report goes by.

    Raises:
        InputError: nothing of that name, or no run saved the scores of its examples.
    """
    known = list(known_targets(comparison))
    by_word: dict[str, Target] = {}
    for words, target in known:
        for word in words:
            by_word.setdefault(word.lower(), target)
    parts = {part.name: part for part in comparison.parts}
    if on in parts and on.lower() not in by_word:
        comparison = parts[on]
        on = ""
        known = list(known_targets(comparison))
    if not known:
        raise InputError("no run has scores by which rows could be compared", file=comparison.name)
    significance = Significance(comparison)
    if not on:
        target = _usual_target(comparison, significance, [target for _, target in known])
    elif on.lower() in by_word:
        target = by_word[on.lower()]
    else:
        raise _describe_unknown(comparison, on, [words[0] for words, _ in known])
    if why := significance.unknown(target):
        raise InputError(f"on {target.title} nothing can be judged: {why}", file=comparison.name)
    return Question(comparison, target, significance)


def _usual_target(
    comparison: RecordedResults,
    significance: Significance,
    known: list[Target],
) -> Target:
    """Return what the report goes by: the first target that can be judged, the primary score before
    the others; the first one where none can.
    """
    usual = known
    primary = primary_target(comparison)
    if primary is not None:
        usual = [primary, *known]
    for target in usual:
        if not significance.unknown(target):
            return target
    return usual[0]


def _describe_unknown(comparison: RecordedResults, on: str, known: Sequence[str]) -> InputError:
    """Return the error of a word that names nothing that rows can be compared by."""
    apart = [task for task, _ in comparison.columns(on.lower())]
    if apart:
        scored = comparison.scored_tasks
        lacking = [task for task in apart if task not in scored]
        why = "its tasks are unlike"
        if lacking:
            why = f"no run has a score of {', '.join(lacking)}"
        return InputError(
            f"--on {on}: {why}, so there is no average",
            key="--on",
            remedy=f"name a task: {', '.join(apart)}",
        )
    names = list(dict.fromkeys(known))
    hint = nearest(on, names)
    some = ", ".join(names[:_NAMED])
    more = len(names) - _NAMED
    if more > 0:
        some += f" and {more} more"
    return InputError(f"--on {on}: not known{hint}; known: {some}", key="--on")


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
    a = row_of(rows, first, base_model)
    b = row_of(rows, second, base_model)
    if a.key == b.key:
        label = one_line(a.label)
        raise InputError(f'"{label}" is one row: name two', key=label)
    return a, b


def row_of(rows: Sequence[AnyRow], label: str, base_model: str) -> AnyRow:
    """The row of that label.

    Raises:
        InputError: none, or several on unlike base models.
    """
    found = []
    for row in rows:
        names = ("", row.base_model, base_name(row.base_model))
        if row.label == label and base_model in names:
            found.append(row)
    if len(found) == 1:
        return found[0]
    if found:
        bases = ", ".join(base_name(row.base_model) for row in found)
        raise InputError(
            f'row "{label}" has several base models, {bases}: name one with --base-model', key=label
        )
    labels = list(dict.fromkeys(row.label for row in rows))
    other = nearest(label, labels)
    message = f'no row "{label}"{other}; rows: {", ".join(labels)}'
    raise InputError(message, key=label)
