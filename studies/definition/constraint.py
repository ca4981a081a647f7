"""The key `where` of a study: comparisons that every configuration of the space has to meet, read
without eval.

They are chains such as `0 < dropout_a < dropout_b`, joined by `and`. An operand is a key of the
method's config or a number.
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


@dataclass(frozen=True)
class Constraint:
    """Comparisons that must all hold: (left, comparison, right), each side a key of the config or a
    number.
    """

    comparisons: tuple[tuple[str | float, Callable[[Any, Any], bool], str | float], ...]

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Do all comparisons hold for these values?

        Raises:
            TypeError: a text or nothing is to be smaller or larger than something.
        """
        sides = [
            [values[x] if isinstance(x, str) else x for x in (left, right)]
            for left, _, right in self.comparisons
        ]
        return all(
            compare(*side) for (_, compare, _), side in zip(self.comparisons, sides, strict=True)
        )


def read_constraint(
    text: str, keys: Mapping[str, Any], searched: list[str], place: str
) -> Constraint:
    """The constraint that a file states.

    Args:
        keys: every key that may be named, with its value where the space does not change it.
        searched: those that the space changes; each chain of comparisons names at least one.

    Raises:
        InputError: no comparisons, an unknown key, a comparison that is the same for all
            configurations.
    """
    comparisons: list[tuple[str | float, Callable[[Any, Any], bool], str | float]] = []
    for chain in re.split(r"\s+and\s+", text.strip()):
        parts = [part.strip() for part in re.split("(<=|>=|==|!=|<|>)", chain)]
        if len(parts) < 3 or not all(parts):
            raise InputError(f'{place}: "{chain}" is no comparison, as in "dropout_a < dropout_b"')
        operands = [_operand(part, keys, place) for part in parts[::2]]
        if not any(operand in searched for operand in operands):
            raise InputError(
                f'{place}: "{chain}" names no parameter of the space: {", ".join(searched)}'
            )
        comparisons += zip(
            operands, [_COMPARISONS[part] for part in parts[1::2]], operands[1:], strict=False
        )
    return Constraint(tuple(comparisons))


def _operand(text: str, keys: Mapping[str, Any], place: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        if text in keys:
            return text
        raise InputError(
            f'{place}: no number and no key "{text}"{nearest(text, sorted(keys))}'
        ) from None
