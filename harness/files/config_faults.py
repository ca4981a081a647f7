"""Where a configuration is wrong, said in our words: the key, what was expected, what was given."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import Repr
from typing import Any

from pydantic import ValidationError

_SHORT = Repr()  # of what was given: however long and deeply nested, a few words
_SHORT.maxstring = _SHORT.maxother = 80

# pydantic's type of a fault -> what was expected; {names} are of the fault's context
_EXPECTED = {
    "bool_": "true or false",
    "dict_type": "a table",
    "finite_number": "a finite number",
    "float_": "a number",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "{ge} or more",
    "int_": "a whole number",
    "less_than": "a number below {lt}",
    "less_than_equal": "{le} or less",
    "list_type": "a list",
    "literal_error": "{expected}",
    "mapping_type": "a table",
    "model_": "a table",
    "none_required": "no value",
    "path_": "a path",
    "set_type": "a list",
    "string_pattern_mismatch": "a text of the form {pattern}",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_": "a text",
    "too_long": "at most {max_length} entries",
    "too_short": "at least {min_length} entries",
    "tuple_type": "a list",
}


def phrase(fault: Mapping[str, Any]) -> str:
    """One entry of `ValidationError.errors()` as "expected a number, not 'abc'"."""
    kind, context = fault["type"], dict(fault.get("ctx") or {})
    for name, value in context.items():
        if isinstance(value, float) and value.is_integer():  # the bound 0.0 reads better as 0
            context[name] = int(value)
    if kind == "missing":
        return "is missing"
    given = f", not {_SHORT.repr(fault['input'])}"
    if kind in ("value_error", "assertion_error"):  # a rule of ours, in its own words
        return f"{context['error']}{given}"
    for start, expected in _EXPECTED.items():
        if kind == start or (start.endswith("_") and kind.startswith(start)):
            return f"expected {expected.format_map(context)}{given}"
    return f"expected something else ({kind.replace('_', ' ')}){given}"


def first_fault(error: ValidationError) -> str:
    """The first fault as "KEY: PHRASE", or the phrase alone where it concerns the whole."""
    fault = error.errors()[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place}: {phrase(fault)}" if place else phrase(fault)
