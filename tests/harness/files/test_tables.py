"""The reader of tables: text as it stands in the file, in every form that tables have."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from harness.files.tables import clean_name, read_table, require_texts, to_numbers
from tests.support.errors import raises_input_error

TEXT = 'row,score\n"a, ""b""",NA\nc,02\n'
CELLS = [['a, "b"', "NA"], ["c", "02"]]


def write(folder: Path, content: bytes, name: str) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.csv", TEXT.encode()),
        ("CAPITALS.CSV", TEXT.encode()),
        ("mark.csv", TEXT.encode("utf-8-sig")),
        ("windows.csv", TEXT.replace("\n", "\r\n").encode()),
        ("packed.csv.gz", gzip.compress(TEXT.encode(), mtime=0)),
        ("PACKED.CSV.GZ", gzip.compress(TEXT.encode(), mtime=0)),
        ("semicolons.csv", b'row;score\n"a, ""b""";NA\nc;02\n'),
        ("tabs.tsv", b'row\tscore\n"a, ""b"""\tNA\nc\t02\n'),
        ("excel.csv", b'sep=;\nrow;score\n"a, ""b""";NA\nc;02\n'),
        ("blanks.csv", b'row, score\n"a, ""b""", NA\n c , 02\n'),
        ("ends.csv", b'row,score,,\n"a, ""b""",NA,,\n,,,\nc,02,,\n'),
        ("index.csv", b',row,score\n0,"a, ""b""",NA\n1,c,02\n'),
        ("lines.jsonl", b'{"row": "a, \\"b\\"", "score": "NA"}\n\n{"row": "c", "score": "02"}\n'),
    ],
)
def test_the_same_table_in_every_form(tmp_path: Path, name: str, content: bytes) -> None:
    frame = read_table(write(tmp_path, content, name))
    assert list(frame.columns) == ["row", "score"]
    assert frame.to_numpy().tolist() == CELLS


def test_lines_of_json_end_at_line_feeds_alone(tmp_path: Path) -> None:
    file = write(tmp_path, '{"row": "a\u2028b\u0085c"}\n{"row": "d"}\n'.encode(), "t.jsonl")
    assert read_table(file)["row"].tolist() == ["a\u2028b\u0085c", "d"]
    assert read_table(file).index.tolist() == [1, 2]


def test_parquet_keeps_a_named_index_and_categories(tmp_path: Path) -> None:
    frame = pd.DataFrame({"row": ["a", "b"], "n": [1, 2], "kind": pd.Categorical([None, "x"])})
    frame["n"] = pd.array([None, 2], dtype="Int64")
    frame.set_index("row").to_parquet(tmp_path / "named.parquet")
    read = read_table(tmp_path / "named.parquet")
    assert read[["row", "n", "kind"]].to_numpy().tolist() == [["a", "", ""], ["b", "2", "x"]]
    frame.iloc[[1, 0]].to_parquet(tmp_path / "unnamed.parquet")
    assert list(read_table(tmp_path / "unnamed.parquet").columns) == ["row", "n", "kind"]


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (b'row,score\na,1\n"b,2\nc,3\n', 3, "quote"),
        (b"row,score\n\na,1\nb,2,3\n", 4, "3 cells"),
        (b"row,score\na\n", 2, "1 cells"),
        ("row\nä\n".encode("latin-1"), 2, "UTF-8"),
        ("row\na\n".encode("utf-16"), None, "UTF-16"),
        ("row\na\n".encode("utf-16-le"), 1, "NUL"),
        (b"row,row\na,b\n", None, "two columns"),
        (b"row,,score\na,b,c\n", None, "no name"),
        (b"", None, "empty"),
        (b"row\n", None, "no rows"),
    ],
)
def test_faults_name_the_place(tmp_path: Path, content: bytes, line: int | None, said: str) -> None:
    file = write(tmp_path, content, "t.csv")
    with raises_input_error(file=file, line=line) as caught:
        read_table(file)
    assert said in str(caught.value)


def test_a_small_file_that_unpacks_to_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.files.tables.LARGEST", 1 << 20)
    with raises_input_error(file=tmp_path / "t.csv.gz"):
        read_table(write(tmp_path, gzip.compress(b"a" * (2 << 20)), "t.csv.gz"))


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("80,5", "point"),
        ("3,100", "thousands"),  # 3.1 or 3100
        ("1,000,000.5", "thousands"),
        ("80.5%", "%"),
        ("\u22121.5", "minus"),
        ("", "remove"),
        ("-", "remove"),  # what a table shows where there is no score
        ("n/a", "remove"),
        ("1_000", None),
    ],
)
def test_what_is_no_number_says_how_to_write_it(text: str, remedy: str | None) -> None:
    frame = read_table(pd.DataFrame({"score": ["1e3", text]}))
    with raises_input_error(file="t.csv", line=2, key="score") as caught:
        to_numbers(frame, "score", "t.csv")
    assert (remedy or "") in (caught.value.remedy or "")


def test_names_have_nothing_that_cannot_be_seen() -> None:
    assert clean_name("\ufeff new\u00a0 mo\u00addel\u200b ") == "new model"
    assert clean_name("cafe\u0301") == "caf\u00e9"


@pytest.mark.parametrize(
    "value",
    [["a"], {"a": 1}, b"a", ("a", "b"), {"a"}, np.ones(2)],
    ids=lambda one: type(one).__name__,
)
def test_what_is_no_text_is_refused_only_in_columns_that_are_read(value: object) -> None:
    frame = read_table(pd.DataFrame({"one": ["a", "b"], "two": ["c", value]}))
    require_texts(frame, ["one"], "x")
    with raises_input_error(file="x", line=2, key="two"):
        require_texts(frame, ["two"], "x")
    with raises_input_error(file="x", line=1, key="one"):
        to_numbers(frame, "one", "x")


def test_a_quote_of_a_tsv_file_does_not_take_the_next_rows_with_it(tmp_path: Path) -> None:
    content = b'a\tb\tn\n"Go\tshe left\t1\nhe stayed"\tno\t2\n'
    frame = read_table(write(tmp_path, content, "t.tsv"))
    assert frame.to_numpy().tolist() == [['"Go', "she left", "1"], ['he stayed"', "no", "2"]]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b'a\tn\n"one\ntwo"\t1\nthree\t2\n', [["one\ntwo", "1"], ["three", "2"]]),
        (b'a\n"one\ntwo"\nthree\n', [["one\ntwo"], ["three"]]),
    ],
    ids=["two columns", "one column"],
)
def test_a_quoted_cell_of_a_tsv_file_may_hold_a_line_break(
    tmp_path: Path, content: bytes, rows: list[list[str]]
) -> None:
    frame = read_table(write(tmp_path, content, "t.tsv"))
    assert frame.to_numpy().tolist() == rows


@pytest.mark.parametrize("second", ["a", " a"])
def test_two_values_of_one_key_of_json_are_refused(tmp_path: Path, second: str) -> None:
    content = f'{{"a": "x"}}\n{{"a": "x", "{second}": "y"}}\n'
    with raises_input_error(file=tmp_path / "t.jsonl", line=2):
        read_table(write(tmp_path, content.encode(), "t.jsonl"))
