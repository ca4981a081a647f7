"""The key `where` of a study: comparisons that every configuration of the space has to meet, read without eval.

Grammar: `OPERAND OP OPERAND [OP OPERAND ...] [and ...]`, as in `0 < dropout_a < dropout_b and view == "dropout"`. An
operand is a key of the method's config, a number, `true`, `false` or a text in double quotes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.config import nearest
from harness.errors import InputError

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne
}  # fmt: skip
TOKEN = re.compile(r'\s*(?:(<=|>=|==|!=|<|>)|(-?\d[\w.+-]*|\.\d[\w.+-]*)|([A-Za-z_]\w*)|"([^"]*)")')
WORDS = {"true": True, "false": False}
EXAMPLE = 'as in "dropout_a < dropout_b and temperature <= 0.1"'


@dataclass(frozen=True)
class Key:
    """An operand that stands for the value of a key."""

    name: str


@dataclass(frozen=True)
class Constraint:
    """Comparisons that must all hold: (left, operator, right)."""

    comparisons: tuple[tuple[Any, str, Any], ...]

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Do all comparisons hold for these values?

        Raises:
            TypeError: a text or nothing is to be smaller or larger than something.
        """
        return all(COMPARISONS[op](_value(a, values), _value(b, values)) for a, op, b in self.comparisons)


def _value(operand: Any, values: Mapping[str, Any]) -> Any:
    return values[operand.name] if isinstance(operand, Key) else operand


def read_constraint(text: str, keys: Mapping[str, Any], searched: list[str], place: str) -> Constraint:
    """The constraint that a file states.

    Args:
        keys: every key that may be named, with its value where the space does not change it.
        searched: those that the space changes; each comparison names at least one.

    Raises:
        InputError: not of the grammar, an unknown key, a comparison that is the same for all configurations.
    """
    comparisons: list[tuple[Any, str, Any]] = []
    for clause in re.split(r"\s+and\s+", text.strip()):
        parts = _parts(clause, place)
        operands, operators = parts[::2], parts[1::2]
        alternate = all(map(_is_operator, operators)) and not any(map(_is_operator, operands))
        if len(parts) < 3 or len(parts) % 2 == 0 or not alternate:
            raise InputError(f'{place}: "{clause}" is no comparison, {EXAMPLE}')
        for operand in operands:
            if isinstance(operand, Key) and operand.name not in keys:
                raise InputError(f'{place}: no key "{operand.name}"{nearest(operand.name, sorted(keys))}')
        if not any(isinstance(o, Key) and o.name in searched for o in operands):
            raise InputError(f'{place}: "{clause}" names no parameter of the space: {", ".join(searched)}')
        comparisons += zip(operands, operators, operands[1:], strict=False)
    return Constraint(tuple(comparisons))


class _Operator(str):
    """A token that compares, told apart from a text of the same letters."""


def _is_operator(token: Any) -> bool:
    return isinstance(token, _Operator)


def _parts(clause: str, place: str) -> list[Any]:
    """The tokens of one clause: keys, values and operators."""
    parts: list[Any] = []
    rest = clause
    while rest.strip():
        match = TOKEN.match(rest)
        if match is None:
            raise InputError(f'{place}: cannot read "{rest.strip()}", {EXAMPLE}')
        op, number, word, quoted = match.groups()
        if number is not None:
            try:
                parts.append(float(number))
            except ValueError:
                raise InputError(f'{place}: "{number}" is no number') from None
        elif word is not None:
            parts.append(WORDS[word] if word in WORDS else Key(word))
        else:
            parts.append(_Operator(op) if op is not None else quoted)
        rest = rest[match.end() :]
    return parts
