"""Parts and rehearsals of an experiment: `--only` with names of blocks and patterns of rows, and `--rehearse`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from harness import registry
from harness.config import nearest
from harness.errors import HarnessError, InputError
from harness.method import Method
from harness.runs.data import load_dev, load_text
from harness.runs.experiment import (
    BudgetSettings,
    CorpusSettings,
    DevSettings,
    Entry,
    Experiment,
    Rehearsal,
    read_experiment,
)
from harness.runs.rows import fix_schedule

SUFFIX = "-rehearsal"
ALWAYS = "Embedded-STS-natural"  # what every row of a rehearsal is scored on, and the dev set where there is no other


def select(
    experiment: str | Path | Mapping[str, Any] | Experiment,
    overrides: Sequence[str],
    only: Sequence[str],
    where: str,
    *,
    tuned: bool = False,
) -> Experiment:
    """The experiment, or the part of it that `only` selects, with the dev schedule of the whole.

    Args:
        tuned: its rows are searched one by one first, under the same schedule.

    Raises:
        InputError: as `read_experiment` and `select_part`.
    """
    whole = read_experiment(experiment, overrides)
    separate = bool(only) or tuned or whole.budget.trials is not None
    return select_part(fix_schedule(whole, where) if separate else whole, only)


def select_part(experiment: Experiment, only: Sequence[str]) -> Experiment:
    """The part of the experiment that `only` selects, under its own name; all of it where `only` is empty.

    Parts have their own files and locks, so they can run at the same time, and the whole reuses their runs.

    Args:
        only: names of blocks, patterns of them ("table-*"), or patterns of rows ("SCD*"). Rows together with
            blocks mean these rows in these blocks.

    Raises:
        InputError: an unknown name (the message has the nearest one), or rows that are in none of the blocks.
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
        raise InputError(f"--only: no row of {', '.join(rows)} is in {', '.join(kept)}")
    inhabited = {name: block for name, block in kept.items() if any(name in entry.blocks for entry in entries)}
    title = ": ".join(filter(None, (experiment.title or experiment.name, ", ".join(only))))
    update = {"name": _name(experiment.name, only), "title": title, "blocks": inhabited, "methods": entries}
    return experiment.model_copy(update=update)


def _named(wanted: str, names: list[str]) -> list[str]:
    """The names that `wanted` selects: itself, else those of its pattern, else those with the same letters."""
    tests: tuple[Callable[[str], bool], ...] = (
        lambda name: name == wanted,
        lambda name: fnmatchcase(name, wanted),
        lambda name: _letters(name) == _letters(wanted) != "",
    )
    return next((found for test in tests if (found := [name for name in names if test(name)])), [])


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _name(name: str, only: Sequence[str]) -> str:
    """Name of the part: what `only` says, shortened to a file name with a hash where necessary."""
    asked = "+".join(only)
    plain = re.sub(r"[^\w.,+()=-]+", "-", asked)[:40].strip("-.,=(")
    if plain != asked:
        plain = "-".join(filter(None, (plain, hashlib.sha256(asked.encode()).hexdigest()[:4])))
    return f"{name}--{plain}"


def rehearse(experiment: Experiment) -> Experiment:
    """The experiment as `--rehearse` runs it, under its own name: small model, little text, few training steps.

    Text and dev sets that are not available here are replaced by embedded ones.
    """
    r = experiment.rehearsal
    whole: dict[str, Any] = {"base_models": [], "max_steps": None}  # of a row or block: those of the comparison
    update = {
        "name": f"{experiment.name}{SUFFIX}",
        "title": f"Rehearsal: {experiment.title or experiment.name}",
        "base_models": [r.base_model],
        "family": None,  # that of the rehearsal's model
        "seeds": experiment.seeds[: r.seeds],
        "max_steps": min(r.max_steps, experiment.max_steps or r.max_steps),
        "budget": BudgetSettings(),
        "corpus": _replace_text(experiment.corpus, r),
        "corpora": {kind: _replace_text(c, r) for kind, c in experiment.corpora.items()},
        "suites": [*experiment.suites, ALWAYS],
        "dev": _replace_dev(experiment.dev),
        "keep": "none",
        "blocks": {
            name: block.model_copy(
                update={**whole, "seeds": block.seeds[: r.seeds], "suites": block.suites and [*block.suites, ALWAYS]}
            )
            for name, block in experiment.blocks.items()
        },
        "methods": [
            entry.model_copy(
                update={
                    **whole,
                    "seeds": entry.seeds[: r.seeds],
                    "family": None,
                    **({"corpus": _replace_text(_with_kind(entry, experiment), r)} if entry.corpus else {}),
                }
            )
            for entry in experiment.methods
        ],
    }
    return experiment.model_copy(update=update)


def _with_kind(entry: Entry, experiment: Experiment) -> CorpusSettings:
    """The text that a row names, with the kind that its method learns from where the row does not name it."""
    corpus: CorpusSettings = entry.corpus or experiment.corpus
    if "kind" in corpus.model_fields_set:
        return corpus
    try:
        method: type[Method] = registry.load(registry.METHODS, entry.method)
        shared = {key: value for key, value in experiment.shared.items() if key in method.Config.model_fields}
        config = method.configure(
            {**shared, **entry.config}, preset=entry.preset, family=None, base_model=experiment.rehearsal.base_model
        )
    except InputError:  # the plan says it, with the place in the file
        return corpus
    kind = method.text_for(config)
    return corpus if kind == "none" else corpus.model_copy(update={"kind": kind})


def _replace_text(c: CorpusSettings, r: Rehearsal) -> CorpusSettings:
    """The beginning of a text, or embedded text of its kind where it is not available."""
    limit = min(r.limit, c.limit or r.limit)
    given = r.corpora.get(c.uri)
    wanted = c.model_copy(update={"limit": limit} if given is None else {"limit": limit, "uri": given, "columns": None})
    try:
        load_text(wanted)
    except HarnessError:
        embedded = {"limit": limit, "uri": f"embedded:{c.kind}", "columns": None}
        return c.model_copy(update=embedded)
    return wanted


def _replace_dev(dev: DevSettings | None) -> DevSettings | None:
    """The selection set, or the embedded one where it is not available."""
    if dev is None:
        return None
    try:
        load_dev(dev)
    except HarnessError:
        return DevSettings(task=ALWAYS, every=dev.every)
    return dev
