"""The two rows of `harness.why`: of one comparison, or a row and a preset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.config import nearest
from harness.errors import InputError
from harness.executors.executor import ExecutorSettings, check_known, executor_settings
from harness.results.store import read_comparison_file
from harness.runs.between import Between, rows_before_budget
from harness.runs.experiment import Entry, Experiment, read_experiment
from harness.runs.plan import Plan, make_plan
from harness.runs.rows import Row, apply_schedule, resolve_rows
from reports.results import base_name
from reports.stats.simultaneous import FEWEST_SEEDS

Executor = str | Mapping[str, Any] | ExecutorSettings | None


@dataclass(frozen=True)
class Ends:
    """Which two rows are meant: `a`, and `b` or a preset.

    Attributes:
        base_model: of both, where rows of that label have several.
    """

    a: str
    b: str
    preset: str
    base_model: str


def find_between(
    folder: Path,
    name: str,
    ends: Ends,
    seeds: int | None,
    executor: Executor,
) -> Between:
    """Return the two rows of a comparison, or one and a preset, with the seeds of a design.

    Raises:
        InputError: no such row or preset, rows of different blocks, too few seeds in common.
    """
    plan = _read_plan(folder, name, executor)
    rows = rows_before_budget(plan, f'comparison "{name}"')
    first = _find_row(rows, ends.a, ends.base_model)
    if ends.preset:
        second = _make_preset_row(plan.experiment, ends.preset, first)
    else:
        second = _find_row(rows, ends.b, ends.base_model)
        first = _share_blocks(first, second)
    return Between(plan, first, second, _choose_seeds(first, second, seeds))


def _read_plan(folder: Path, name: str, executor: Executor) -> Plan:
    file = read_comparison_file(folder, name)
    if file is None:
        raise InputError("no comparison of that name has a file", file=folder, key=name)
    experiment = read_experiment(file.experiment)
    settings = executor_settings(executor, experiment.executor)
    check_known(settings, (entry.method for entry in experiment.methods))
    experiment = experiment.model_copy(update={"executor": settings})
    return make_plan(experiment, f'comparison "{name}"')


def _find_row(rows: Sequence[Row], label: str, base_model: str) -> Row:
    named = [row for row in rows if row.label == label]
    if not named:
        labels = list(dict.fromkeys(row.label for row in rows))
        known = ", ".join(labels)
        message = f'no row "{label}"{nearest(label, labels)}; rows: {known}'
        raise InputError(message, key="why")
    wanted = []
    for row in named:
        if base_model in ("", row.base_model, base_name(row.base_model)):
            wanted.append(row)
    if len(wanted) != 1:
        bases = ", ".join(base_name(row.base_model) for row in named)
        raise InputError(
            f'row "{label}" has these base models: {bases}',
            key="why",
            remedy="name one with --base-model",
        )
    return wanted[0]


def _share_blocks(first: Row, second: Row) -> Row:
    """Return the first row in the blocks of the file that both are in.

    Raises:
        InputError: there are blocks, and none has both.
    """
    shared = tuple([block for block in first.blocks if block in second.blocks])
    if not shared and (first.blocks or second.blocks):
        raise InputError(
            f'"{first.label}" and "{second.label}" are in different blocks of the file', key="why"
        )
    return replace(first, seeds=dict.fromkeys(first.seeds, shared))


def _make_preset_row(experiment: Experiment, text: str, a: Row) -> Row:
    """Return the row that a preset would be in the comparison of row `a`.

    Raises:
        InputError: it is not METHOD:PRESET, or there is no such method or preset.
    """
    method, colon, preset = text.partition(":")
    if not colon or not preset:
        raise InputError(f'expected METHOD:PRESET, not "{text}"', key="--against-preset")
    entry = Entry(
        method=method,
        preset=preset,
        name=text,
        base_models=[a.base_model],
    )
    alone = experiment.model_copy(
        update={
            "methods": [entry],
            "shared": {},
            "blocks": {},
            "baseline": "",
            "contrasts": [],
        }
    )
    dev = experiment.dev
    every = getattr(a.config, "eval_every", None)
    if dev is not None and every is not None and a.instance.uses_dev:
        dev = dev.model_copy(update={"every": every})  # the comparison's, as all its rows have
    rows, _ = apply_schedule(resolve_rows(alone, "--against-preset"), dev)
    return rows[0]


def _choose_seeds(a: Row, b: Row, number: int | None) -> tuple[int, ...]:
    """Return the seeds of a design.

    Raises:
        InputError: fewer than three.
    """
    shared = tuple(seed for seed in a.seeds if seed in b.seeds)
    if a.instance.deterministic and b.instance.deterministic:
        return shared[:1]
    if number is not None:
        next_seed = max(shared, default=0) + 1
        further = range(next_seed, next_seed + number)
        shared = (*shared, *further)[:number]
    if len(shared) < FEWEST_SEEDS:
        raise InputError(
            f'"{a.label}" and "{b.label}" have {len(shared)} seeds in common; the spread of a share '
            f"needs {FEWEST_SEEDS}",
            key="why",
            remedy=f"give --seeds {FEWEST_SEEDS}",
        )
    return shared
