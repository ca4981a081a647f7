"""Values written as TOML, one key a line: experiment files that the program makes are read and edited by people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness.files.printable import one_line

if TYPE_CHECKING:
    from tomlkit.items import Item


def inline(value: Any) -> Item:
    """A value as TOML on one line; mappings become `{key = value}` at any depth."""
    import tomlkit

    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        for key, part in value.items():
            table.append(key, inline(part))
        return table
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        for part in value:
            array.append(inline(part))
        return array
    item: Item = tomlkit.item(value)
    return item


def toml_lines(values: Mapping[str, Any]) -> str:
    """`key = value` for each, without section headers, so that any header may precede it."""
    import tomlkit

    return tomlkit.dumps({key: inline(value) for key, value in values.items()})


def toml_comment(text: str) -> str:
    """A comment of one line, whatever the text holds."""
    return f"# {one_line(text)}\n"
