"""Where a configuration is wrong: the key, what was expected, what was given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from reprlib import Repr
from typing import Any

from pydantic import ValidationError

_SHORT = Repr()  # of what was given: however long and deeply nested, a few words
_SHORT.maxstring = _SHORT.maxother = 80


def phrase(fault: Mapping[str, Any]) -> str:
    """One entry of `ValidationError.errors()` as "expected a valid number, not 'abc'"."""
    if fault["type"] == "missing":
        return "is missing"
    rule = fault["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    rule = re.sub(", (unable to parse|got a number) .*", "", rule)  # what is wrong follows from what was given
    rule = re.sub("a valid dictionary( or instance of .*)?", "a table", rule)
    rule = rule.replace("Input should be", "expected", 1).replace("Input should", "expected to", 1)
    rule = rule.replace("String should", "expected to", 1)
    return f"{rule}, not {_SHORT.repr(fault['input'])}"


def first_fault(error: ValidationError) -> str:
    """The first fault as "KEY: PHRASE", or the phrase alone where it concerns the whole."""
    fault = error.errors()[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place}: {phrase(fault)}" if place else phrase(fault)
