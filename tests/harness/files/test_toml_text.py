"""What is written as TOML is read back as it was."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config import setting
from harness.files.reading import inline, toml_comment, toml_lines

# NUL and lone surrogates are no text of a TOML file; all else is.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
SCALARS = (
    TEXT
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=8
)


@given(st.dictionaries(TEXT, VALUES))
def test_any_values_are_read_back(values: dict[str, Any]) -> None:
    text = toml_lines(values)
    assert tomllib.loads(text) == values
    assert (
        tomllib.loads(f"# first\n[[methods]]\n{text}\n[[methods]]\nname = 'b'\n")["methods"][0]
        == values
    )
    assert text.count("\n") == len(values)


def test_nothing_is_an_empty_text() -> None:
    assert tomllib.loads(toml_lines({"a": {"b": None}})) == {"a": {"b": ""}}


@given(VALUES)
def test_a_value_for_set_is_read_back(value: Any) -> None:
    assert setting(f"a.b={inline(value).as_string()}") == ("a.b", value)


@given(TEXT, VALUES)
def test_a_comment_is_one_line_and_nothing_else(text: str, value: Any) -> None:
    written = toml_comment(text)
    assert tomllib.loads(written + toml_lines({"a": value})) == {"a": value}


@pytest.mark.parametrize(
    "name", ["SimCSE 🙂", "a\x7fb", 'quote " and \\', "zwei\nZeilen", "'", "é\u2028"]
)
def test_names_that_json_and_toml_write_differently(name: str) -> None:
    assert tomllib.loads(toml_lines({"name": name, name: [name]})) == {"name": name, name: [name]}
