"""How one run of a comparison is made again, alone: the words that its record keeps."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from harness.comparison.experiment import Experiment
from harness.comparison.plan import PlannedCell
from harness.comparison.tuning import Tuning


def repeated(
    source: str | Experiment,
    overrides: Sequence[str],
    cell: PlannedCell,
    tuned: Tuning | None = None,
    *,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """The command that makes the run of `cell` again; the call in Python, for an experiment that is in no file.

    Args:
        source: the experiment's file or preset, or the experiment itself, before `overrides`.
        tuned: where it is given, the values that were found for the cell's row are among the overrides.
        options: what else of `harness.compare` makes it that run: `only` with the row in a file with parts, `rehearse`.
    """
    keep = [f"seeds=[{cell.seed}]", f'base_models=["{cell.base_model}"]']
    changes = [*overrides, *keep, *(tuned.overrides(cell.row.label) if tuned else [])]
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
