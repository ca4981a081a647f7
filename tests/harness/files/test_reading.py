"""Files are read whole, or refused in one line: pipes, devices and folders in their place too."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from harness.files import reading
from harness.results.measurements import measure_once, measurements_file
from harness.results.store import RunFolder
from harness.runs.progress import read_progress
from tests.support.errors import raises_input_error

READERS: dict[str, Callable[[Path], Any]] = {
    "bytes": reading.read_bytes,
    "text": reading.read_text,
    "lines": reading.read_lines,
    "toml": reading.read_toml,
    "json": reading.read_json,
}
KINDS = ("pipe", "zeros", "folder", "link to itself", "link to nothing", "socket")


def put(file: Path, kind: str) -> None:
    """Make something else than a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "zeros":
        file.symlink_to("/dev/zero")
    elif kind == "folder":
        file.mkdir()
    elif kind == "link to itself":
        file.symlink_to(file)
    elif kind == "link to nothing":
        file.symlink_to(file.with_name("absent"))
    else:
        os.mknod(file, 0o140600)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, name: str, kind: str) -> None:
    put(tmp_path / "x", kind)
    with raises_input_error(file=tmp_path / "x"):
        READERS[name](tmp_path / "x")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", KINDS)
def test_files_of_a_work_directory_that_are_none_end_nothing(tmp_path: Path, kind: str) -> None:
    put(tmp_path / "progress.json", kind)
    put(measurements_file(tmp_path), kind)
    folder = RunFolder(tmp_path, "0" * 16)
    put(folder.examples_file, kind)
    assert read_progress(tmp_path) == []
    if kind != "folder":  # which is not replaced
        assert measure_once(tmp_path, "inference", "k", lambda: {"a": 1}) == {"a": 1}
    if not kind.startswith("link"):
        with raises_input_error(file=folder.examples_file):
            folder.examples()


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b"text"])
def test_damaged_examples_are_an_error_of_their_file(tmp_path: Path, content: bytes) -> None:
    folder = RunFolder(tmp_path, "0" * 16)
    folder.path.mkdir(parents=True)
    folder.examples_file.write_bytes(content)
    with pytest.raises(InputError) as refused:
        folder.examples()
    assert refused.value.file == str(folder.examples_file)


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path: Path) -> None:
    for name, text in {"a.toml": 'a = "b"\n', "a.json": '{"a": "b"}'}.items():
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert reading.read_toml(tmp_path / "a.toml") == {"a": "b"}
    assert reading.read_json(tmp_path / "a.json") == {"a": "b"}
    assert reading.read_text(tmp_path / "a.json").startswith("{")


def test_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    text = 'a\u2028b\nc\u0085d\r\n"e\x0cf\x1cg"\n'
    (tmp_path / "x").write_bytes(text.encode())
    assert reading.read_lines(tmp_path / "x") == ["a\u2028b", "c\u0085d", '"e\x0cf\x1cg"', ""]


def test_a_file_too_large_to_be_read_whole_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.truncate(reading.LARGEST + 1)  # a hole, which takes no room
    with pytest.raises(InputError) as refused:
        reading.read_json(tmp_path / "x")
    assert refused.value.file == str(tmp_path / "x")


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "line",
    [
        "{deep} = 1",
        "[{deep}]",
        "[[{deep}]]",
        'a = {{ b = "c = d", {deep} = 1 }}',
        "a = {{ {deep} = 1 }}",
    ],
)
@pytest.mark.parametrize("part", ["a.", '"a b".', "a . "])
def test_a_dotted_key_of_very_many_tables_is_refused_at_once(
    tmp_path: Path, line: str, part: str
) -> None:
    file = tmp_path / "x.toml"
    file.write_text("first = 1\n" + line.format(deep=part * 50_000 + "a"))
    with raises_input_error(file=file, line=2):
        reading.read_toml(file)


@pytest.mark.parametrize(
    "value", ['"' + "." * 5000 + '"', "[" + "1.5, " * 5000 + "]", "[\n" + "[0.5],\n" * 3000 + "]"]
)
def test_dots_of_values_are_none_of_keys(tmp_path: Path, value: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(f"a.b = {value}\nc = {{ d = {value.replace(chr(10), ' ')}, e = 1.5 }}\n")
    assert reading.read_toml(file)["c"]["e"] == 1.5


@pytest.mark.parametrize("name", ["toml", "json"])
def test_a_whole_number_of_thousands_of_digits_is_refused(tmp_path: Path, name: str) -> None:
    """Python's int takes none, by a ValueError."""
    file = tmp_path / "x"
    sign = {"toml": "a = -{}", "json": '{{"a": [-{}]}}'}[name]
    file.write_text(sign.format("1" * 5000))
    with raises_input_error(file=file):
        READERS[name](file)


@pytest.mark.parametrize("digits", [300, 400, 5000])
def test_a_whole_number_beyond_all_floats_is_refused(digits: int) -> None:
    """It would end arithmetic with floats by an OverflowError."""
    with pytest.raises(ValueError, match="digits"):
        reading.parse_json('{"a": [-' + "1" * digits + "]}")
    assert reading.parse_json("1" * 299) == int("1" * 299)


def test_digits_of_a_text_are_no_number() -> None:
    assert reading.parse_json('["' + "1" * 5000 + '", 3]') == ["1" * 5000, 3]
