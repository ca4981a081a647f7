"""A part of an experiment: `--only` with names of blocks and patterns of rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from harness.comparison.experiment import Experiment, read_experiment
from harness.comparison.schedule import settled
from harness.config import nearest
from harness.errors import InputError


def asked_of(
    experiment: str | Path | Mapping[str, Any] | Experiment,
    overrides: Sequence[str],
    only: Sequence[str],
    where: str,
    *,
    searched: bool = False,
) -> Experiment:
    """The experiment or the part of it that is asked for, with the dev schedule of the whole.

    `searched`: its rows are searched one by one first, under the same schedule; so are those of a file whose budget is
    one of trials.

    Raises:
        InputError: as `read_experiment` and `part_of`.
    """
    whole = read_experiment(experiment, overrides)
    apart = bool(only) or searched or whole.budget.trials is not None
    return part_of(settled(whole, where) if apart else whole, only)


def part_of(experiment: Experiment, only: Sequence[str]) -> Experiment:
    """The experiment without what `only` does not ask for, under a name of its own; all of it where nothing is asked.

    The part has its own manifest and lock: parts can run at the same time, and the whole finds their runs finished.

    Args:
        only: names of blocks, patterns of them ("table-*"), or patterns of rows ("SCD*"). Several blocks are all
            made, several rows too; rows beside blocks mean these rows in these blocks.

    Raises:
        InputError: something that is neither (with the nearest name), or rows that stand in none of the blocks.
    """
    if not only:
        return experiment
    labels = [entry.name or entry.method for entry in experiment.methods]
    blocks: list[str] = []
    rows: list[str] = []
    for wanted in only:
        if some := _named(wanted, list(experiment.blocks)):
            blocks += some
        elif some := _named(wanted, labels):
            rows += some
        else:
            known = [*experiment.blocks, *labels]
            shown = ", ".join(experiment.blocks) or ", ".join(labels[:8])
            kind = "blocks" if experiment.blocks else "rows"
            raise InputError(f'--only "{wanted}": no block and no row{nearest(wanted, known)}; {kind}: {shown}')
    kept = {name: block for name, block in experiment.blocks.items() if not blocks or name in blocks}
    entries = [
        entry.model_copy(update={"blocks": [name for name in kept if name in (entry.blocks or kept)]})
        for entry, label in zip(experiment.methods, labels, strict=True)
        if (not rows or label in rows) and (not experiment.blocks or any(n in (entry.blocks or kept) for n in kept))
    ]
    if not entries:
        raise InputError(f"--only: no row of {', '.join(rows)} stands in {', '.join(kept)}")
    inhabited = {name: block for name, block in kept.items() if any(name in entry.blocks for entry in entries)}
    title = ": ".join(filter(None, (experiment.title or experiment.name, ", ".join(only))))
    update = {"name": _name(experiment.name, only), "title": title, "blocks": inhabited, "methods": entries}
    return experiment.model_copy(update=update)


def _named(wanted: str, names: list[str]) -> list[str]:
    """The names that `wanted` means: itself, else those of its pattern, else one that differs in signs alone."""
    tests: tuple[Callable[[str], bool], ...] = (
        lambda name: name == wanted,
        lambda name: fnmatchcase(name, wanted),
        lambda name: _letters(name) == _letters(wanted) != "",
    )
    return next((found for test in tests if (found := [name for name in names if test(name)])), [])


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _name(name: str, only: Sequence[str]) -> str:
    """Of the part: what was asked for as far as a file may be called so, with a hash where that is not all of it."""
    asked = "+".join(only)
    plain = re.sub(r"[^\w.,+()=-]+", "-", asked)[:40].strip("-.,=(")
    if plain != asked:
        plain = "-".join(filter(None, (plain, hashlib.sha256(asked.encode()).hexdigest()[:4])))
    return f"{name}--{plain}"
