"""What "module:name" names, imported."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.exits import ENDS, refuse_exits
from harness.files.printable import first_line


def names_code(text: str) -> bool:
    """Return True for "module:name", both of Python's names with dots.

    >>> names_code("encoders:embed"), names_code("embedded:mini-bert"), names_code("ORG/NAME")
    (True, False, False)
    """
    module, colon, name = text.partition(":")
    parts = f"{module}.{name}".split(".")
    return bool(colon) and all(part.isidentifier() for part in parts)


def import_path(path: str, *, key: str) -> Any:
    """Return what "module:name" names; modules of the working folder are found too.

        >>> import_path("math:sqrt", key="loss")(4)
        2.0

    Args:
        key: what an error names.

    Raises:
        InputError: there is none.
    """
    module, colon, name = path.partition(":")
    if not colon or not module or not name:
        raise InputError(f'expected "module:name", not "{path}"', key=key)
    stem, dot, end = module.rpartition(".")
    if dot and end == "py":
        raise InputError(
            f'"{path}" names a file', key=key, remedy=f'write its module: "{stem}:{name}"'
        )
    folder = str(Path.cwd())
    added = folder not in sys.path
    if added:
        sys.path.append(folder)
    try:
        with refuse_exits():
            found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ENDS as error:  # whatever a module does when it is imported
        said = f"{type(error).__name__}: {first_line(error):.200}"
        message = f'"{path}" cannot be imported: {said}'
        raise InputError(message, key=key) from error
    finally:
        if added and folder in sys.path:
            sys.path.remove(folder)
    return found
