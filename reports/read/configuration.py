"""The options of a run, also those that are newer than it: what the seeds of one row have in common."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from harness import registry
from harness.errors import InputError
from harness.results.record import Record


@cache
def default_of(method: str, key: str) -> Any:
    """What an option is that an older record does not know: what leaves everything as it was without it, else its
    default; None where the method is not installed."""
    try:
        field_ = registry.load(registry.METHODS, method).Config.model_fields.get(key)
    except InputError:
        return None
    if field_ is None:
        return None
    extra = field_.json_schema_extra
    return extra["neutral"] if isinstance(extra, dict) and "neutral" in extra else field_.default


def configuration(record: Record) -> str:
    """The options of a run that are not at their defaults, as text: equal for runs that differ in nothing but their
    seed and in which options there were when they were made."""
    options = {key: value for key, value in record.config.items() if key != "seed"}
    return _text({key: value for key, value in options.items() if _text(value) != _default(record.method, key)})


def same_configuration(a: Record, b: Record) -> bool:
    """Do two runs differ in nothing but their seed and in which options there were?"""
    if a.method != b.method:
        return False
    plain = [{key: value for key, value in record.config.items() if key != "seed"} for record in (a, b)]
    return plain[0] == plain[1] or configuration(a) == configuration(b)  # the second has to import the method


@cache
def _default(method: str, key: str) -> str:
    return _text(default_of(method, key))


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
