"""Variants of an experiment: `--only` (blocks, patterns of rows), `--rehearse`, and the tuned rows
of `--tune`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from harness import registry
from harness.config import nearest
from harness.errors import HarnessError, InputError
from harness.results.comparison import Tuning
from harness.runs.conditions import CorpusSettings, DevSettings
from harness.runs.experiment import BudgetSettings, Entry, Experiment
from harness.runs.inputs import load_dev, load_text
from harness.runs.rows import apply_schedule, resolve_rows

T = TypeVar("T", CorpusSettings, DevSettings)
ALWAYS = "Embedded-STS-natural"  # what every row of a rehearsal is scored on, and the dev set where there is no other


def select(
    whole: Experiment,
    only: Sequence[str],
    where: str,
    *,
    tuned: bool = False,
) -> Experiment:
    """The experiment, or the part of it that `only` selects, with the dev schedule of the whole.

    Args:
        tuned: its rows are searched one by one first, under the same schedule.

    Raises:
        InputError: as `resolve_rows` and `select_part`.
    """
    if whole.dev is not None and (only or tuned):
        rows = resolve_rows(whole, where, tolerant=True)
        _, schedule = apply_schedule(rows, whole.dev)
        if schedule.instead_of:
            whole = whole.model_copy(
                update={"dev": whole.dev.model_copy(update={"every": schedule.every})}
            )
    return select_part(whole, only)


def select_part(experiment: Experiment, only: Sequence[str]) -> Experiment:
    """The part of the experiment that `only` selects, under its own name; all of it where `only` is
    empty.

    Parts have their own files and locks, so they can run at the same time, and the whole reuses
    their runs.

    Args:
        only: names of blocks, patterns of them ("table-*"), or patterns of rows ("SCD*"). Rows
            together with blocks mean these rows in these blocks.

    Raises:
        InputError: an unknown name (the message has the nearest one), or rows that are in none of
            the blocks.
    """
    if not only:
        return experiment
    blocks, rows = _find_selected(experiment, only)
    names = [name for name in experiment.blocks if not blocks or name in blocks]
    entries = _select_entries(experiment, names, rows)
    labels = {entry.label for entry in entries}
    chosen = ", ".join(only)
    title = f"{experiment.title or experiment.name}: {chosen}"
    update = {
        "name": _name(experiment.name, only),
        "title": title,
        "blocks": _blocks_of(entries, names, experiment),
        "methods": entries,
        "baseline": experiment.baseline if experiment.baseline in labels else "",
        "incumbent": experiment.incumbent if experiment.incumbent in labels else "",
    }
    if len(entries) < len(experiment.methods):
        update["shared"] = _narrow_shared(experiment, entries)
    contrasts = [one for one in experiment.contrasts if {one.row, one.against} <= labels]
    update["contrasts"] = contrasts
    return experiment.model_copy(update=update)


def _select_entries(experiment: Experiment, names: Sequence[str], rows: set[str]) -> list[Entry]:
    """Return the rows that are in one of the blocks `names`, with those of their blocks.

    Raises:
        InputError: there are none.
    """
    entries = []
    for entry in experiment.methods:
        if rows and entry.label not in rows:
            continue
        own = [name for name in names if name in (entry.blocks or names)]
        if own or not experiment.blocks:
            entries.append(entry.model_copy(update={"blocks": own}))
    if not entries:
        message = f"--only: no row of {', '.join(rows)} is in {', '.join(names)}"
        raise InputError(message, key="--only")
    return entries


def _find_selected(experiment: Experiment, only: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the names of the blocks and the labels of the rows that `only` names.

    Raises:
        InputError: an unknown name.
    """
    known = list(experiment.blocks)
    labels = [entry.label for entry in experiment.methods]
    blocks = set[str]()
    rows = set[str]()
    for pattern in only:
        if some := _matches(pattern, known):
            blocks |= some
        elif some := _matches(pattern, labels):
            rows |= some
        else:
            hint = nearest(pattern, [*known, *labels])
            raise InputError(
                f'--only "{pattern}": no block and no row{hint}; known: {", ".join(known or labels[:8])}',
                key="--only",
            )
    return blocks, rows


def _blocks_of(
    entries: Sequence[Entry],
    names: Sequence[str],
    experiment: Experiment,
) -> dict[str, Any]:
    """Return those of the blocks `names` that one of the entries is in."""
    blocks = {}
    for name in names:
        if any(name in entry.blocks for entry in entries):
            blocks[name] = experiment.blocks[name]
    return blocks


def _narrow_shared(experiment: Experiment, entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the shared values without those that only rows which are left out have a key for."""

    def keys_of(some: Sequence[Entry]) -> set[str]:
        methods = [registry.load(registry.METHODS, entry.method) for entry in some]
        keys: set[str] = set()
        for method in methods:
            keys.update(method.Config.model_fields)
        return keys

    lost = keys_of(experiment.methods) - keys_of(entries)
    return {key: value for key, value in experiment.shared.items() if key not in lost}


def _matches(pattern: str, names: Sequence[str]) -> set[str]:
    """The names that a pattern selects; itself where it is one."""
    if pattern in names:
        return {pattern}
    return {name for name in names if fnmatchcase(name, pattern)}


def _name(name: str, only: Sequence[str]) -> str:
    """Name of the part: what `only` says, shortened to a file name with a hash where necessary."""
    stated = "+".join(only)
    plain = re.sub(r"[^\w.,+()=-]+", "-", stated)
    plain = plain[:40].strip("-.,=(")
    if plain != stated:
        digest = hashlib.sha256(stated.encode()).hexdigest()[:4]
        plain = f"{plain}-{digest}".lstrip("-")
    return f"{name}--{plain}"


def rehearse(experiment: Experiment, where: str = "experiment") -> Experiment:
    """The experiment as `--rehearse` runs it, under its own name: small model, little text, few
    training steps.

    Text and dev sets that are not available here are replaced by embedded ones.

    Raises:
        InputError: as `resolve_rows`.
    """
    r = experiment.rehearsal
    dev = experiment.selection()  # of a file that is scored too, its dev part
    if dev is not None:
        dev = _available(load_dev, dev, DevSettings(task=ALWAYS, every=dev.every))
        if len(load_dev(dev)) > r.limit:
            dev = dev.model_copy(update={"pairs": r.limit})
    blocks = {}
    for name, block in experiment.blocks.items():
        suites = block.suites and [*block.suites, ALWAYS]
        blocks[name] = block.model_copy(
            update={"base_models": [], "seeds": block.seeds[: r.seeds], "suites": suites}
        )
    small = experiment.model_copy(
        update={
            "name": f"{experiment.name}-rehearsal",
            "title": f"Rehearsal: {experiment.title or experiment.name}",
            "base_models": [r.base_model],
            "family": None,  # that of the rehearsal's model
            "seeds": experiment.seeds[: r.seeds],
            "max_steps": min(r.max_steps, experiment.max_steps or r.max_steps),
            "budget": BudgetSettings(),
            "suites": [*experiment.suites, ALWAYS],
            "dev": dev,
            "keep": [],
            "blocks": blocks,
            "methods": [_small(entry, r.seeds) for entry in experiment.methods],
        }
    )
    entries = []
    rows = resolve_rows(small, where, tolerant=True)
    for entry, row in zip(small.methods, rows, strict=True):
        text = row.corpus
        if text is not None:
            limit = min(r.limit, text.limit or r.limit)
            text = text.model_copy(update={"limit": limit})
            embedded = CorpusSettings(
                uri=f"embedded:{text.kind}",
                kind=text.kind,
                limit=limit,
            )
            text = _available(load_text, text, embedded)
        entries.append(entry.model_copy(update={"corpus": text}))
    return small.model_copy(update={"methods": entries})


def _small(entry: Entry, seeds: int) -> Entry:
    """Return a row of a rehearsal: without base models of its own, with a model for each seed."""
    config = dict(entry.config)
    if isinstance(config.get("model_by_seed"), list):
        config["model_by_seed"] = config["model_by_seed"][:seeds]
    return entry.model_copy(update={"base_models": [], "family": None, "config": config})


def _available(load: Callable[[T], Any], wanted: T, embedded: T) -> T:
    """The wanted data, or the embedded data where it is not available."""
    try:
        load(wanted)
    except HarnessError:
        return embedded
    return wanted


@dataclass(frozen=True)
class Budget:
    """The search budget of every row.

        >>> Budget(trials=8).seeds
        (101,)

    Attributes:
        trials: number of configurations that are tried.
        steps: the largest number of training steps of a trial; by default that of the comparison.
        seeds: of a trial; none of them may be one of the comparison's.
    """

    trials: int
    steps: int | None = None
    seeds: tuple[int, ...] = (101,)


def check_budget(budget: Budget | None, experiment: Experiment) -> Budget | None:
    """The budget of `--tune` with its steps, by default those of the experiment; None where rows
    are not searched.

    Raises:
        InputError: it does not suit the experiment.
    """
    if budget is None:
        return None
    steps = (
        budget.steps
        if budget.steps is not None
        else experiment.budget.steps or experiment.max_steps
    )
    both = set(budget.seeds) & set(experiment.seeds)
    own = any(entry.base_models for entry in experiment.methods)
    if budget.trials < 1:
        raise InputError(f"--tune {budget.trials}: expected 1 or more trials a row", key="--tune")
    if both:
        raise InputError(
            f"--tune: seed {min(both)} would be searched on and reported",
            key="--tune",
            remedy="choose another (--set seeds)",
        )
    if experiment.dev is None:
        raise InputError(
            "--tune: the experiment has no dev set to search on",
            key="--tune",
            remedy="give it a table [dev]",
        )
    if experiment.blocks or own:
        raise InputError(
            "--tune: not for a file with blocks, or with base models of rows", key="--tune"
        )
    if len(experiment.base_models) > 1:
        raise InputError(
            "--tune: one base model at a time",
            key="--tune",
            remedy="choose it with --set 'base_models=[\"NAME\"]'",
        )
    if (steps or 0) < 1:
        raise InputError(
            f"--tune: {steps or 0} training steps of a trial",
            key="--tune",
            remedy="give 1 or more (--set max_steps=N)",
        )
    return replace(budget, steps=steps)


def with_winners(experiment: Experiment, tuned: Tuning) -> Experiment:
    """The experiment with each tuned row after its untuned one."""
    rows = []
    for entry, search in zip(experiment.methods, tuned.rows, strict=True):
        rows.append(entry)
        if search.values:
            update = {"name": search.label, "config": {**entry.config, **search.values}}
            rows.append(entry.model_copy(update=update))
    return experiment.model_copy(update={"methods": rows})
