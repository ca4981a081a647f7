"""An error of the user's input is one line, and its parts can be read by programs."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from harness.errors import InputError, OutOfReach, naming
from harness.method import Method, own_line


def test_the_line_has_file_key_message_and_remedy_in_this_order() -> None:
    error = InputError("expected a number", file="a.toml", key="seeds", remedy="write seeds = [1]")
    assert str(error) == "a.toml: seeds: expected a number; write seeds = [1]"
    assert str(InputError("no runs", file="work")) == "work: no runs"
    assert str(InputError("no runs")) == "no runs"


@pytest.mark.parametrize(
    ("message", "parts", "line"),
    [
        ("not UTF-8", {"file": "a.csv", "line": 3}, "a.csv, line 3: not UTF-8"),
        ("not UTF-8", {"file": "a.csv, line 3"}, "a.csv, line 3: not UTF-8"),
        ("expected a number", {"key": 'column "score"'}, 'column "score": expected a number'),
        ('no row "b"', {"key": "b"}, 'no row "b"'),
        ("--top 0: expected 1 or more", {"key": "--top"}, "--top 0: expected 1 or more"),
        ("whitening: k=9 is too large", {"key": "k"}, "whitening: k=9 is too large"),
        ('corpus "x": no such file', {"file": "x"}, 'corpus "x": no such file'),
        ("expected a text", {"key": "text"}, "text: expected a text"),
        ("the rows differ", {"key": "row"}, "row: the rows differ"),
    ],
)
def test_a_part_that_the_message_names_is_not_written_twice(
    message: str, parts: dict[str, Any], line: str
) -> None:
    assert str(InputError(message, **parts)) == line


def test_the_key_and_the_line_are_parts_of_what_is_written() -> None:
    error = InputError("expected a number", file="a.csv, line 3", key='column "score"')
    assert (error.file, error.line, error.key) == ("a.csv", 3, "score")


def test_a_worker_sends_all_parts_to_its_parent() -> None:
    sent = InputError("expected a number", file="a.toml", line=3, key="seeds", remedy="give one")
    sent.within = "b.toml"
    received = pickle.loads(pickle.dumps(sent))
    assert (received.file, received.key, received.remedy) == ("a.toml", "seeds", "give one")
    assert (received.line, received.within) == (3, "b.toml")
    assert str(received) == str(sent)


def test_a_file_is_named_once() -> None:
    with pytest.raises(InputError) as caught, naming("a.toml"):
        raise InputError("expected a number", key="seeds")
    assert (caught.value.file, str(caught.value)) == ("a.toml", "a.toml: seeds: expected a number")
    with pytest.raises(InputError) as caught, naming("a.toml"), naming("a.toml"):
        raise InputError("expected a number", file="a.toml")
    assert str(caught.value) == "a.toml: expected a number"


def test_a_file_that_another_names_is_the_file_of_the_error() -> None:
    with pytest.raises(InputError) as caught, naming("a.toml"):
        raise InputError("no such file", file="text.txt")
    assert (caught.value.file, caught.value.within) == ("text.txt", "a.toml")
    assert str(caught.value) == "a.toml: text.txt: no such file"


def test_what_the_hub_does_not_give_is_no_fault_of_the_file() -> None:
    with pytest.raises(OutOfReach) as caught, naming("a.toml"):
        raise OutOfReach("cannot be fetched", file="wiki1m")
    assert caught.value.file == "wiki1m"


class Broken(Method):
    """Fails in a statement of several lines, and in a very long one."""

    name = "broken"

    def short(self) -> None:
        int(
            "x",
            base=10,
        )

    def long(self) -> None:
        text = "x"
        int(
            text.replace("x", "y")
            .replace("y", "z")
            .replace("z", "y")
            .replace("y", "z")
            .replace("z", "y")
            .replace("y", "z")
            .replace("z", "y")
            .replace("y", "z")
            .replace("z", "y")
            .replace("y", "z")
            .replace("z", "y")
            .replace("y", "z")
        )


@pytest.mark.parametrize(("name", "end"), [("short", 'int( "x", base=10, ))'), ("long", " ...)")])
def test_the_code_that_failed_is_named_whole_or_visibly_cut(name: str, end: str) -> None:
    with pytest.raises(ValueError, match="invalid literal") as caught:
        getattr(Broken, name)(None)
    said = own_line(caught.value, Broken)
    assert said.endswith(end)
    assert len(said) < 300 + len(__file__)
