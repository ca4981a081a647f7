"""How one run of a comparison is made again, alone: the words that its record keeps."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from harness.comparison.budget import BudgetSettings
from harness.comparison.experiment import Experiment
from harness.comparison.plan import PlannedCell
from harness.comparison.tuning import Tuning
from harness.seeds import PartSeed


def repeated(
    source: str | Experiment,
    overrides: Sequence[str],
    cell: PlannedCell,
    tuned: Tuning | None = None,
    *,
    budget: BudgetSettings | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """The command that makes the run of `cell` again; the call in Python, for an experiment that is in no file.

    Args:
        source: the experiment's file or preset, or the experiment itself, before `overrides`.
        tuned: where it is given, the values that were found for the cell's row are among the overrides.
        budget: that of the experiment; one that is measured, or searched for, is not so again.
        options: what else of `harness.compare` makes it that run: `only` with the row in a file with parts, `rehearse`.
    """
    keep = [f"seeds=[{int(cell.seed)}]", f'base_models=["{cell.base_model}"]']
    if isinstance(cell.seed, PartSeed):
        keep += [f"vary={json.dumps(cell.seed.vary)}", f"held_seed={cell.seed.held}"]
    found = tuned.overrides(cell.row.label) if tuned else []
    changes = [*overrides, *keep, *found, *_without_measuring(budget, cell)]
    if isinstance(source, Experiment):
        keys = source.model_dump(mode="json", exclude_unset=True)
        more = "".join(f", {name}={value!r}" for name, value in options.items())
        return f'harness.compare({keys!r}, workdir="NEW_FOLDER", overrides={changes!r}{more})'
    words = ["harness", "compare", source, "--workdir", "NEW_FOLDER"]
    for pattern in options.get("only", ()):
        words += ["--only", pattern]
    words += ["--rehearse"] if options.get("rehearse") else []
    for change in changes:
        words += ["--set", change]
    return shlex.join(words)


def _without_measuring(budget: BudgetSettings | None, cell: PlannedCell) -> list[str]:
    """What takes the place of a budget that would be measured, or searched for, anew."""
    updates = cell.row.max_steps
    if budget is not None and budget.kind == "seconds" and updates is not None:
        return [f'budget={{kind = "updates", updates = {updates}}}']
    if budget is not None and budget.kind == "trials":
        return ["budget=own", *([f"max_steps={updates}"] if updates is not None else [])]
    return []
