"""Training text in tables that a program holds: data sets, frames of pandas and polars, and tables
of Arrow.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import join_some
from harness.sources.corpus.rows import warn_of_unread

_LOG = logging.getLogger(__name__)
_TEXT = ("text", "sentence", "document")  # columns that may hold the text, in this order
WHERE = "training text"


def is_table(given: Any) -> bool:
    """True if something has named columns; iteration over a frame would give their names."""
    marks = ("column_names", "collect_schema", "columns")
    return any(hasattr(given, mark) for mark in marks)


def items_of_table(
    given: Any,
    roles: Sequence[str],
    columns: Mapping[str, str] | None,
) -> list[tuple[str, ...]]:
    """Return the texts of each row, in the order of `roles`, "" where there is none.

    Args:
        given: what `is_table` is true of.
        roles: "text" alone, or "anchor", "positive", "negative" and "label".
        columns: role -> name of the column; the text may be in several, as "a+b". Without it a
            column is called like its role; a label is then read if it is text.

    Raises:
        InputError: a column is missing, or holds something else than text.
    """
    if hasattr(given, "collect"):  # a lazy frame of polars
        given = given.collect()
    named = dict(columns or {})
    for role in named:
        if role not in roles:
            known = ", ".join(roles)
            message = f'unknown key "{role}"{nearest(role, list(roles))}; known: {known}'
            raise InputError(message, file=WHERE, key="columns")
    names = _names(given)
    if roles == ("text",):
        return _single_texts(given, names, named.get("text"))
    found: list[list[str] | None] = []
    for role in roles:
        name = named.get(role, role)
        if name in names:
            is_label = role == "label" and role not in named
            found.append(_texts_of(given, name, is_label=is_label))
        elif role in named or role in roles[:2]:
            raise _no_column(name, names, role)
        else:
            warn_of_unread(WHERE, role, names)
            found.append(None)
    count = len(found[0] or ())
    columns_of_texts = []
    for texts in found:
        columns_of_texts.append([""] * count if texts is None else texts)
    return list(zip(*columns_of_texts, strict=True))


def _single_texts(given: Any, names: list[str], named: str | None) -> list[tuple[str, ...]]:
    if named:
        chosen = named.split("+")
    else:
        chosen = [name for name in _TEXT if name in names][:1]
    for name in chosen or ["text"]:
        if name not in names:
            raise _no_column(name, names, "text")
    columns = [_texts_of(given, name) or [] for name in chosen]
    items: list[tuple[str, ...]] = []
    for row in zip(*columns, strict=True):
        items.extend((text,) for text in row)
    return items


def _no_column(name: str, names: list[str], role: str) -> InputError:
    there = join_some(names, 10) or "none"
    message = f'no column "{name}"; there are: {there}'
    remedy = f'name the right one, as columns={{"{role}": ...}}'
    return InputError(message, file=WHERE, key="columns", remedy=remedy)


def _names(given: Any) -> list[str]:
    """Return the names of the columns.

    Raises:
        InputError: a set of splits, two columns of one name, or columns that are not known.
    """
    names = getattr(given, "column_names", None)
    if names is None:
        names = getattr(given, "columns", None)
    if isinstance(names, Mapping):
        splits = ", ".join(map(str, names))
        message = f"a set of splits ({splits})"
        raise InputError(message, file=WHERE, remedy="give one of them")
    if names is None:
        message = f"a {type(given).__name__} whose columns are not known"
        raise InputError(message, file=WHERE, remedy="give a list of its texts")
    names = [str(name) for name in names]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'two columns are called "{name}"', file=WHERE, remedy="rename one")
    return names


def _texts_of(given: Any, name: str, *, is_label: bool = False) -> list[str] | None:
    """Return the texts of a column; None for a label that is no text, and that nobody named.

    Raises:
        InputError: a value is no text.
    """
    values = _values(given, name)
    texts = []
    for row, value in enumerate(values, 1):
        if isinstance(value, str):
            texts.append(value)
        elif _is_missing(value):
            texts.append("")
        elif is_label:
            _LOG.warning(
                '%s: column "%s" holds %s, not text, and is not read', WHERE, name, _kind(value)
            )
            return None
        else:
            message = f"expected text, not {_kind(value)} {str(value)!r:.40}"
            place = f"{WHERE}, row {row}"
            raise InputError(message, file=place, key=f'column "{name}"')
    return texts


def _values(given: Any, name: str) -> list[Any]:
    """Return the values of a column; classes of a `datasets.Dataset` by name."""
    try:
        column = given[name]
    except (KeyError, TypeError, NotImplementedError):
        # A stream has rows alone; a frame may call a column 0 and not "0".
        if not hasattr(given, "column_names"):
            labels = [column for column in given.columns if str(column) == name]
            column = given[labels[0]]
        else:
            column = [row[name] for row in given]
    if isinstance(column, str | bytes) or not hasattr(column, "__iter__"):
        message = f"expected a list of texts, not {_kind(column)}"
        raise InputError(message, file=WHERE, key=f'column "{name}"')
    if hasattr(column, "to_pylist"):
        values: list[Any] = column.to_pylist()
    else:
        values = list(column)
    feature = (getattr(given, "features", None) or {}).get(name)
    classes = getattr(feature, "names", None)
    if not classes:
        return values
    found = []
    for value in values:
        is_class = type(value) is int and 0 <= value < len(classes)
        found.append(classes[value] if is_class else None)
    return found


def _is_missing(value: Any) -> bool:
    """True for None and what pandas and NumPy write in its place."""
    if value is None:
        return True
    import pandas as pd

    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _kind(value: Any) -> str:
    return type(value).__name__
