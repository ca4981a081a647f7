"""Whether a run follows the recipe of a published row: the hyperparameters that its preset gives for its base model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from harness import registry
from harness.errors import InputError
from harness.method import Method, MethodConfig
from harness.results.record import Record
from reports.papers.definition import PaperRow
from reports.read.run_library import same_value, value_of

REHEARSED = "mini"  # the family whose recipe a rehearsal follows, whatever the paper's base model

# How often weights are selected, what fits into memory and how fast: told, but no part of what a row is.
SCHEDULE = ("eval_every",)
_MEMORY = ("micro_batch", "gradient_checkpointing", "packed")
# What decides a score most comes first in a list of differences; then the other options as the method declares them.
_FIRST = ("learning_rate", "batch_size", "epochs", "max_steps", "temperature", "projector", "pooling")
_SMALL = 1e-3  # a number below it is shown as 3e-5


@cache
def _options(method: str, preset: str, family: str) -> dict[str, Any]:
    """Every option of a method as a preset sets it for a family; {} where the method is not installed.

    Raises:
        InputError: no such preset, or it has no values for the family.
    """
    try:
        plugin: type[Method] = registry.load(registry.METHODS, method)
    except InputError:
        return {}
    return configured(plugin, {}, preset, family, f'recipe of method "{method}"').model_dump(mode="json")


def configured(
    method: type[Method], values: Mapping[str, Any], preset: str | None, family: str, where: str
) -> MethodConfig:
    """A method's config with a preset's values for a family of base models.

    Raises:
        InputError: no such preset or key, or no values for the family.
    """
    return method.configure(values, preset=preset, family=family, where=where)


def stated(spec: PaperRow, family: str) -> dict[str, Any]:
    """The options that a published row on a base model of `family` stands for, beyond what its `where` fixes.

    A row without a preset states nothing: it is an untrained model, and `where` is all there is to it.
    """
    if not spec.preset or not spec.method:
        return {}
    free = {*spec.where, *spec.scanned, *_MEMORY}
    return {key: value for key, value in _options(spec.method, spec.preset, family).items() if key not in free}


def differences(record: Record, spec: PaperRow, family: str) -> list[str]:
    """The options in which a run differs from a published row, as "learning_rate 3e-4 instead of 3e-5"; the most
    important first. Options that have no effect on this run are left out."""
    unlike = [key for key in _unlike(record, spec, family) if key not in SCHEDULE]
    wanted = stated(spec, family)
    said = [f"{key} {shown(value_of(record, key))} instead of {shown(wanted[key])}" for key in _ordered(unlike)]
    if (updates := _cut(record)) and "max_steps" not in unlike:
        said.insert(0, f"stopped after {updates:,} updates")
    return said


def schedule(record: Record, spec: PaperRow, family: str) -> list[str]:
    """What of a run's schedule differs from a published row's without making it another recipe."""
    wanted = stated(spec, family)
    return [
        f"scored on the dev set every {shown(value_of(record, key))} updates instead of {shown(wanted[key])}"
        for key in _unlike(record, spec, family)
        if key in SCHEDULE
    ]


def rehearsed_values(spec: PaperRow, families: Iterable[str], key: str, value: Any) -> Any:
    """What a rehearsal may have where `where` asks for `value`: also its own recipe's, where the paper's has it."""
    if not spec.preset or isinstance(value, list):
        return value
    try:
        paper = [_options(spec.method, spec.preset, family).get(key) for family in families]
        own = _options(spec.method, spec.preset, REHEARSED).get(key, value)
    except InputError:  # no recipe for one of them
        return value
    return [value, own] if any(same_value(one, value) for one in paper) else value


def shown(value: Any) -> str:
    """A value in as few digits as tell it: 3e-5, 0.005, 4096 x 4096, none."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        text = f"{value:.6g}" if abs(value) >= _SMALL or value == 0 else f"{value:.5e}"
        mantissa, exponent, power = text.partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}" if exponent else text
    if isinstance(value, list | tuple):
        return " x ".join(map(shown, value)) or "none"
    return str(value)


def _unlike(record: Record, spec: PaperRow, family: str) -> list[str]:
    wanted = stated(spec, family)
    return [
        key
        for key, value in wanted.items()
        if not _equal(value_of(record, key), value) and _matters(record, key, {**wanted, **_fixed(spec.where)})
    ]


def _equal(given: Any, wanted: Any) -> bool:
    if isinstance(given, list | tuple) and isinstance(wanted, list | tuple):
        return len(given) == len(wanted) and all(map(_equal, given, wanted))
    return same_value(given, wanted)


def _fixed(where: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in where.items() if not isinstance(value, list)}


def _matters(record: Record, key: str, wanted: Mapping[str, Any]) -> bool:
    """Whether an option has an effect on the run or on the published row: the strength of an unused view has none."""
    try:
        declared = registry.load(registry.METHODS, record.method).Config.sweeps().get(key, {})
    except InputError:
        return True
    when: Mapping[str, Any] = declared.get("when", {})
    return all(_meets(value_of(record, k), w) or _meets(wanted.get(k), w) for k, w in when.items())


def _meets(value: Any, wanted: Any) -> bool:
    """As conditions of options mean it: any of a list, and a part of "eda+shuffle" counts as equal."""
    if isinstance(wanted, list):
        return any(_meets(value, one) for one in wanted)
    return bool(value == wanted) or (isinstance(value, str) and wanted in value.split("+"))


def _cut(record: Record) -> int | None:
    """The updates after which the comparison ended a run that its recipe would have gone on with."""
    bound, planned = record.identity.get("max_steps"), record.training.get("planned_steps")
    cut = isinstance(bound, int) and planned in (None, bound) and value_of(record, "max_steps") != bound
    return bound if cut else None


def _ordered(keys: list[str]) -> list[str]:
    return sorted(keys, key=lambda key: _FIRST.index(key) if key in _FIRST else len(_FIRST))
