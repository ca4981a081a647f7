"""What a verdict is asked about: a comparison of a work directory, what its rows are compared by, and two of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.config import nearest
from harness.errors import InputError
from reports.read.comparison_runs import Comparison, ResultRow, base_name, comparisons, read_comparison
from reports.stats.significance import PairedBootstrap
from reports.stats.targets import SOURCES, Target, targets
from reports.stats.verdicts import Block


def comparison_of(workdir: Path, name: str) -> Comparison:
    """The comparison of that name; without a name, the only one.

    Raises:
        InputError: no such folder or comparison, or several to choose from.
    """
    if not workdir.is_dir():
        raise InputError(f"{workdir}: no such folder; give the work directory of `harness compare`")
    if name:
        return read_comparison(workdir, name)
    known = comparisons(workdir)
    if len(known) != 1:
        said = f"it holds {', '.join(known)}: name one with --comparison" if known else "it holds no runs"
        raise InputError(f"{workdir}: {said}")
    return read_comparison(workdir, next(iter(known)))


def target_of(comparison: Comparison, on: str) -> Target:
    """What rows are compared by: "STS" (the average), a task, or, without a word, what the report goes by.

    Raises:
        InputError: nothing of that name has pairs, by which alone a verdict can be made.
    """
    known = targets(comparison)
    if not known:
        raise InputError(f"{comparison.name}: no run has scores of sentence pairs, on which alone verdicts are given")
    if not on:
        return known[0]
    for target in known:
        if on.lower() in (target.key.lower(), target.short.lower()) or (
            on.lower() == "sts" and target.key.startswith("sts-")
        ):
            return target
    for suite in ("sts", "embedded"):
        for task, source in comparison.columns(suite):
            if task.lower() == on.lower():
                return Target(
                    f"task-{source}-{task}", f"{task} ({SOURCES.get(source, source)})", task, ((task, source),)
                )
    tasks = [task for suite in ("sts", "embedded") for task, _ in comparison.columns(suite)]
    words = [*(["STS"] if comparison.columns("sts") else []), *dict.fromkeys(tasks)]
    raise InputError(
        f"--on {on}: not known{nearest(on, words)}; verdicts are given on {', '.join(words)} (of other tasks no run "
        "keeps what each example scored)"
    )


def row_of(rows: Sequence[ResultRow], label: str, base_model: str) -> ResultRow:
    """The row of that label.

    Raises:
        InputError: none, or several on unlike base models.
    """
    found = [
        row for row in rows if row.label == label and base_model in ("", row.base_model, base_name(row.base_model))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        bases = ", ".join(base_name(row.base_model) for row in found)
        raise InputError(f'row "{label}" stands on {bases}: name one with --base-model')
    labels = list(dict.fromkeys(row.label for row in rows))
    raise InputError(f'no row "{label}"{nearest(label, labels)}; rows: {", ".join(labels)}')


def block_of(comparison: Comparison, target: Target, bases: Sequence[str], also: Sequence[ResultRow] = ()) -> Block:
    """The rows of some base models, without supervised ones unless they are asked for."""
    keys = {row.key for row in also}
    rows = [r for r in comparison.rows if r.base_model in bases and (r.supervision != "supervised" or r.key in keys)]
    return Block(rows, PairedBootstrap(comparison), target)
