"""Code without what cannot change a number: two files of one normal form compute the same.

Left out are layout, comments, docstrings, imports, annotations, types, assertions, error texts and the prose of configs
and cards. Imported names stand for what they name wherever that lies, so a file may move. The form is the same under
every version of Python that can read the code.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.files.hashing import content_id

# Arguments that no number depends on (texts, ranges, types): by the function's name, their places and keywords.
_PROSE: dict[str, set[int | str]] = {
    "option": {1, "help", "ge", "gt", "le", "lt", "sweep", "log", "when", "neutral"},
    "Field": {"description"},
    "MethodCard": {"title", "paper", "equations", "reference", "published", "cost", "kept", "notes"},
    "cast": {0},
}
_TYPE_MAKERS = {"TypeVar", "ParamSpec", "NewType", "TypeVarTuple"}
_TYPE_HOMES = ("typing.", "typing_extensions.", "collections.abc.", "numpy.typing.")
_LEFT_OUT = (ast.Import, ast.ImportFrom, ast.Pass, ast.Assert)
_SILENT = {"ctx", "kind", "returns", "type_comment", "type_params", "annotation", "simple", "is_async"}


@dataclass(frozen=True)
class Imported:
    """What a name stands for: `name` of `module`, or the module itself where `name` is empty."""

    module: str
    name: str = ""


@dataclass
class NormalForm:
    """A piece of code.

    Attributes:
        tree: nested lists, strings and numbers; empty where nothing is left.
        names: every name that the piece reads and does not import.
        imported: what it reads of other modules.
    """

    tree: list[Any]
    names: set[str] = field(default_factory=set)
    imported: set[Imported] = field(default_factory=set)

    @property
    def hash(self) -> str:
        """16 hex digits."""
        return content_id(json.dumps(self.tree))


def imported_names(tree: ast.Module, package: str) -> dict[str, Imported]:
    """Local name -> what it stands for, of all imports of a module that lies in `package`, wherever they stand."""
    known: dict[str, Imported] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                known[alias.asname or whole] = Imported(whole)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            known.update({alias.asname or alias.name: Imported(module, alias.name) for alias in node.names})
    return known


def normal_form(
    statements: Sequence[ast.stmt], imports: dict[str, Imported], is_ours: Callable[[Imported], bool | None]
) -> NormalForm:
    """The normal form of some statements of a module with these imports.

    `is_ours` tells of an import whether it is of code whose place does not matter: True for a function or class, None
    for a whole module, False for a library's.
    """
    reading = _Reading(imports, is_ours)
    return NormalForm(reading.block(statements, top=True), reading.names, reading.imported)


class _Reading:
    """One walk over some statements."""

    def __init__(self, imports: dict[str, Imported], is_ours: Callable[[Imported], bool | None]) -> None:
        self.imports, self.is_ours = imports, is_ours
        self.names: set[str] = set()
        self.imported: set[Imported] = set()

    def block(self, statements: Sequence[ast.stmt], *, top: bool = False) -> list[Any]:
        forms = []
        for statement in statements:
            if isinstance(statement, ast.If) and _name_of(statement.test) == "TYPE_CHECKING":
                forms += self.block(statement.orelse, top=top)
            elif not (_is_prose(statement) or (top and self._is_type(statement))):
                forms.append(self.form(statement))
        return [form for form in forms if form is not None]

    def _is_type(self, statement: ast.stmt) -> bool:
        """Does a statement of a module only name a type?"""
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            return type(statement).__name__ == "TypeAlias"  # `type X = ...`, unknown to Python 3.11
        value = statement.value
        if isinstance(value, ast.Call):
            return _name_of(value.func) in _TYPE_MAKERS
        if not isinstance(value, ast.Subscript):
            return False
        maker = self.imports.get(_name_of(value.value))
        return maker is not None and f"{maker.module}.".startswith(_TYPE_HOMES)

    def form(self, node: Any) -> Any:
        """The form of a node, a list of nodes or a plain value; None where nothing is left."""
        if isinstance(node, list):
            return self.block(node) if node and isinstance(node[0], ast.stmt) else [self.form(part) for part in node]
        if not isinstance(node, ast.AST):
            return node
        if isinstance(node, _LEFT_OUT):
            return None
        special = getattr(self, f"_{type(node).__name__.lower()}", None)
        return special(node) if special is not None else self._plain(node)

    def _plain(self, node: ast.AST) -> list[Any]:
        fields = [(name, self.form(value)) for name, value in ast.iter_fields(node) if name not in _SILENT]
        return [type(node).__name__, *([name, form] for name, form in fields if form is not None and form != [])]

    def _name(self, node: ast.Name) -> Any:
        imported = self.imports.get(node.id)
        if imported is None:
            self.names.add(node.id)
            return ["Name", node.id]
        self.imported.add(imported)
        ours = self.is_ours(imported)
        if ours is None:
            return ["Module"]
        return ["Name", imported.name if ours else f"{imported.module}.{imported.name}"]

    def _constant(self, node: ast.Constant) -> Any:
        return ["Constant", type(node.value).__name__, repr(node.value)]

    def _joinedstr(self, node: ast.JoinedStr) -> Any:
        parts: list[Any] = [""]
        for value in node.values:  # versions of Python cut the plain text between the braces differently
            if isinstance(value, ast.Constant):
                parts[-1] += str(value.value)
            else:
                parts += [self.form(value), ""]
        return ["JoinedStr", parts]

    def _annassign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ["Field", self.form(node.target)]
        return self._plain(ast.Assign(targets=[node.target], value=node.value))

    def _call(self, node: ast.Call) -> Any:
        prose = _PROSE.get(_name_of(node.func), set())
        places = [value for place, value in enumerate(node.args) if place not in prose]
        keywords = [keyword for keyword in node.keywords if keyword.arg not in prose]
        return self._plain(ast.Call(func=node.func, args=places, keywords=keywords))

    def _raise(self, node: ast.Raise) -> Any:
        raised = node.exc
        if not isinstance(raised, ast.Call):
            return ["Raise", self.form(raised)]
        return ["Raise", self.form(raised.func), [self.form(value) for value in raised.args if not _is_text(value)]]


def _is_prose(statement: ast.stmt) -> bool:
    """A docstring, the list of public names, the package's version."""
    if isinstance(statement, ast.Assign):
        return all(_name_of(target) in ("__all__", "__version__") for target in statement.targets)
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str | type(...))
    )


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _name_of(node: ast.expr) -> str:
    """The last word of a name: "option" of `option` and of `config.option`."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
