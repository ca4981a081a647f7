"""The key `where` of a study: comparisons that every configuration of the space has to meet.

They are read without eval: chains such as `0 < dropout_a < dropout_b`, joined by `and`. An operand
is a key of the method's config or a number.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.config import nearest
from harness.errors import InputError

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


Side = str | float
Relation = tuple[Side, Callable[[Any, Any], bool], Side]


@dataclass(frozen=True)
class Constraint:
    """Comparisons that must all hold.

    Attributes:
        comparisons: (left, comparison, right); each side is a key of the config or a number.
    """

    comparisons: tuple[Relation, ...]

    def is_met(self, values: Mapping[str, Any]) -> bool:
        """True if all comparisons hold for these values.

        Raises:
            TypeError: a text or nothing is to be smaller or larger than something.
        """
        for left, compare, right in self.comparisons:
            if isinstance(left, str):
                left_value = values[left]
            else:
                left_value = left
            if isinstance(right, str):
                right_value = values[right]
            else:
                right_value = right
            if not compare(left_value, right_value):
                return False
        return True


def read_constraint(
    text: str,
    keys: Mapping[str, Any],
    searched: list[str],
    place: str,
) -> Constraint:
    """Read the constraint that a file states.

    Args:
        keys: every key that may be named, with its value where the space does not change it.
        searched: those that the space changes; each chain of comparisons names at least one.

    Raises:
        InputError: no comparisons, an unknown key, a comparison that is the same for all
            configurations.
    """
    comparisons: list[Relation] = []
    for chain in re.split(r"\s+and\s+", text.strip()):
        parts = [part.strip() for part in re.split("(<=|>=|==|!=|<|>)", chain)]
        if len(parts) < 3 or not all(parts):
            message = f'"{chain}" is no comparison, as in "dropout_a < dropout_b"'
            raise InputError(message, key=place)
        operands = [_read_operand(part, keys, place) for part in parts[::2]]
        if not any(operand in searched for operand in operands):
            message = f'"{chain}" names no parameter of the space: {", ".join(searched)}'
            raise InputError(message, key=place)
        for index, symbol in enumerate(parts[1::2]):
            comparisons.append((operands[index], _COMPARISONS[symbol], operands[index + 1]))
    return Constraint(tuple(comparisons))


def _read_operand(text: str, keys: Mapping[str, Any], place: str) -> Side:
    if text in keys:
        return text
    try:
        return float(text)
    except ValueError:
        message = f'no number and no key "{text}"{nearest(text, sorted(keys))}'
        raise InputError(message, key=place) from None
