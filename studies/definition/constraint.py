"""The key `where` of a study: comparisons that every configuration of the space has to meet, read without eval.

They are written as in Python: `0 < dropout_a < dropout_b and view == "dropout"`. An operand is a key of the method's
config, a number, `true`, `false` or a text.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.config import nearest
from harness.errors import InputError

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
_CONSTANTS = {"true": True, "false": False}
_EXAMPLE = 'as in "dropout_a < dropout_b and temperature <= 0.1"'


@dataclass(frozen=True)
class Constraint:
    """Comparisons that must all hold: (left, comparison, right). A key of the config is an `ast.Name`."""

    comparisons: tuple[tuple[Any, Callable[[Any, Any], bool], Any], ...]

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Do all comparisons hold for these values?

        Raises:
            TypeError: a text or nothing is to be smaller or larger than something.
        """

        def value(operand: Any) -> Any:
            return values[operand.id] if isinstance(operand, ast.Name) else operand

        return all(compare(value(left), value(right)) for left, compare, right in self.comparisons)


def read_constraint(text: str, keys: Mapping[str, Any], searched: list[str], place: str) -> Constraint:
    """The constraint that a file states.

    Args:
        keys: every key that may be named, with its value where the space does not change it.
        searched: those that the space changes; each comparison names at least one.

    Raises:
        InputError: no comparisons, an unknown key, a comparison that is the same for all configurations.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f'{place}: "{text}" is no comparison, {_EXAMPLE}') from None
    comparisons: list[tuple[Any, Callable[[Any, Any], bool], Any]] = []
    for clause in tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]:
        if not isinstance(clause, ast.Compare) or not all(type(op) in _COMPARISONS for op in clause.ops):
            raise InputError(f'{place}: "{ast.unparse(clause)}" is no comparison, {_EXAMPLE}')
        operands = [_operand(node, keys, place) for node in (clause.left, *clause.comparators)]
        if not any(isinstance(operand, ast.Name) and operand.id in searched for operand in operands):
            raise InputError(f'{place}: "{ast.unparse(clause)}" names no parameter of the space: {", ".join(searched)}')
        compare = [_COMPARISONS[type(op)] for op in clause.ops]
        comparisons += zip(operands, compare, operands[1:], strict=False)
    return Constraint(tuple(comparisons))


def _operand(node: ast.expr, keys: Mapping[str, Any], place: str) -> Any:
    """A key itself, the value of anything else."""
    if isinstance(node, ast.Name) and node.id not in _CONSTANTS:
        if node.id not in keys:
            raise InputError(f'{place}: no key "{node.id}"{nearest(node.id, sorted(keys))}')
        return node
    try:
        return _CONSTANTS[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node)
    except (ValueError, TypeError):
        raise InputError(f'{place}: cannot read "{ast.unparse(node)}", {_EXAMPLE}') from None
