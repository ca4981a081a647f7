"""Tests of errors of bad input: their class, file, line and key, not their prose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import InputError


@contextmanager
def raises_input_error(
    *,
    file: str | Path | None = None,
    line: int | None = None,
    key: str | None = None,
    kind: type[InputError] = InputError,
) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Expect an error that has these parts, and is one line. Parts that are None may be anything.

    >>> with raises_input_error(file="a.toml", key="seeds"):
    ...     raise InputError("expected a list", file="a.toml", key="seeds")
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    if file is not None:
        assert error.file == str(file), error
    if line is not None:
        assert error.line == line, error
    if key is not None:
        assert error.key == key, error
    assert "\n" not in str(error)
