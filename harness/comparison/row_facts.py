"""What a row is trained and selected under, of a plan and of records alike: what can differ between rows.

`harness.comparison.row_differences` says of which of it rows differ, and how each fact is put in words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness import registry
from harness.comparison.run_length import length_of
from harness.errors import InputError
from harness.method import Method
from harness.recipes import Recipe, declared

if TYPE_CHECKING:
    from harness.comparison.plan import Plan, PlannedCell
    from harness.comparison.rows import Row
    from harness.results.record import Record

NOT_RECORDED = "not recorded"
_DEFAULT = "default of the method"


@dataclass(frozen=True)
class RowFacts:
    """What is known of one row on one base model, or of one run of it; None: there is no such thing.

    Attributes:
        by_updates: is it trained by updates? Else it has no batches, rates and evaluations.
        corpus, dev: as a record keeps them.
        updates, planned: updates made (or to be made) and planned.
        seen: items of the text in all updates.
        batch: items of an update.
        evaluated: updates after which the dev set is evaluated.
        rate_from: where the learning rate comes from.
        device: the name of what it was run on; of a plan nothing.
    """

    label: str
    base_model: str
    method: str
    config: Mapping[str, Any]
    by_updates: bool
    corpus: Mapping[str, Any] | None = None
    dev: Mapping[str, Any] | None = None
    updates: int | None = None
    planned: int | None = None
    seen: int | None = None
    batch: int | None = None
    evaluated: tuple[int, ...] | None = None
    rate_from: str | None = None
    precision: str | None = None
    device: str | None = None


def of_plan(plan: Plan, cell: PlannedCell) -> RowFacts:
    """The row of a cell as it is to be run."""
    row, e = cell.row, plan.experiment
    corpus = plan.corpus(row)
    length = length_of(row, corpus, cell.seed) if not cell.fault else None
    config = row.config.model_dump(mode="json")
    selects = row.method.uses_dev(row.config)
    dev = (
        {"task": e.dev.task, "source": e.dev.where} if selects and plan.dev is not None and e.dev is not None else None
    )
    return RowFacts(
        row.label,
        cell.base_model,
        row.method.name,
        config,
        length is not None,
        corpus=corpus.describe() if corpus is not None else None,
        dev=dev,
        updates=length.updates if length is not None else None,
        planned=length.updates if length is not None else None,
        seen=length.seen if length is not None else None,
        batch=length.batch if length is not None else None,
        evaluated=evaluations(config, length.updates) if length is not None and dev is not None else None,
        rate_from=planned_rate(plan, row),
        precision=e.precision if "learning_rate" in config else None,
    )


def planned_rate(plan: Plan, row: Row, tuned: Mapping[str, Any] | None = None) -> str | None:
    """Where the learning rate of a row comes from; None where it has none, or the row does not stand in the file.

    Args:
        tuned: what `--tune` found, as the manifest keeps it.
    """
    entry = next((one for one in plan.experiment.methods if (one.name or one.method) == row.label), None)
    rate = getattr(row.config, "learning_rate", None)
    if entry is None or rate is None or row.fault:
        return None
    return rate_from(entry.model_dump(), plan.experiment.model_dump(), row.method, rate, row.base_model, tuned)


def evaluations(config: Mapping[str, Any], updates: int) -> tuple[int, ...] | None:
    """After which updates the training loop evaluates the dev set; None where the configuration does not say."""
    every = config.get("eval_every")
    return tuple(dict.fromkeys((*range(0, updates, every), updates))) if every else None


def of_run(record: Record, log: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any] | None) -> RowFacts:
    """A run as its record, its training log (`RunFolder.curves`) and its comparison's manifest tell it."""
    config, training = record.config, record.training
    by_updates = "steps" in training or ("learning_rate" in config and "batch_size" in config)
    seen = record.cost.get("corpus_sentences_seen")
    batch = config.get("batch_size")
    count = (record.corpus or {}).get("count")
    if isinstance(batch, int) and isinstance(count, int):
        batch = min(batch, count)  # as `BatchStream`
    evaluated = tuple(line["step"] for line in log if line.get("kind") == "dev") or None
    if evaluated is None and record.dev and "steps" in training:  # a log that is lost
        evaluated = evaluations(config, training["steps"])
    precision = training.get("precision")
    return RowFacts(
        record.row,
        record.base_model,
        record.method,
        config,
        by_updates,
        corpus=record.corpus,
        dev=record.dev,
        updates=training.get("steps") if by_updates else None,
        planned=training.get("planned_steps", training.get("steps")) if by_updates else None,
        seen=round(seen) if by_updates and seen is not None else None,
        batch=batch if by_updates else None,
        evaluated=evaluated,
        rate_from=_rate_of_run(record, manifest) if "learning_rate" in config else None,
        precision=precision if isinstance(precision, str) else None,
        device=record.environment.get("device_name"),
    )


def rate_from(
    entry: Mapping[str, Any],
    experiment: Mapping[str, Any],
    method: type[Method],
    rate: float,
    base_model: str | None = None,
    tuned: Mapping[str, Any] | None = None,
) -> str:
    """Where the learning rate of a row comes from; `NOT_RECORDED` where what stands there gives another one today.

    Args:
        entry, experiment: the row's table and the whole file, with defaults, as the manifest keeps them.
        rate: the learning rate.
        base_model: whose values a preset has; without it any family's that gives this rate.
        tuned: what `--tune` found, as the manifest keeps it.
    """
    label = entry.get("name") or entry.get("method")
    for search in (tuned or {}).get("rows", ()):
        if search["label"] == label and "learning_rate" in search["values"]:
            return f"searched: {search['trials']} trials on the dev set"
    for given, where in ((entry.get("config"), "given in the file"), (experiment.get("shared"), "given for all rows")):
        if "learning_rate" in (given or {}):
            return where
    default = method.Config.model_fields["learning_rate"].default
    preset = entry.get("preset")
    if not preset:
        return _DEFAULT if rate == default else NOT_RECORDED
    recipes = _recipes(method, preset, entry.get("family") or experiment.get("family"), base_model)
    fitting = [recipe for recipe in recipes if recipe.values.get("learning_rate", default) == rate]
    if not fitting:
        return NOT_RECORDED
    if all("learning_rate" not in recipe.values for recipe in fitting):
        return _DEFAULT
    sources = {re.sub(r" \([^()]*\)$", "", recipe.source) for recipe in fitting}  # without the file in brackets
    source = sources.pop() if len(sources) == 1 else ""
    return source or f"preset {preset}"


def _recipes(method: type[Method], preset: str, family: str | None, base_model: str | None) -> list[Recipe]:
    """What a preset may stand for: for every family, where neither that nor the base model is known."""
    families = [family] if family or base_model else list(dict.fromkeys(f for _, f in declared(method.presets)))
    recipes = []
    for one in families or [None]:
        with suppress(InputError):  # the preset has none of this family, or is not there any more
            recipes.append(method.recipe(preset, one, base_model=base_model))
    return recipes


def _rate_of_run(record: Record, manifest: Mapping[str, Any] | None) -> str:
    """As the manifest says; one of before by what its experiment says, as far as it still gives this rate."""
    for cell in (manifest or {}).get("cells", ()):
        if (cell["id"], cell["row"]) == (record.id, record.row) and isinstance(cell.get("rate_from"), str):
            return str(cell["rate_from"])
    experiment = (manifest or {}).get("experiment") or {}
    entries = [e for e in experiment.get("methods", ()) if (e.get("name") or e.get("method")) == record.row]
    if not entries or manifest is None:
        return NOT_RECORDED
    try:
        method: type[Method] = registry.load(registry.METHODS, record.method)
    except InputError:
        return NOT_RECORDED
    rate = record.config["learning_rate"]
    return rate_from(entries[0], experiment, method, rate, tuned=manifest.get("tuned"))
