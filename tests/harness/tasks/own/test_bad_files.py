"""What is wrong with a file is one line that names file, line and column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.errors import InputError
from harness.tasks.catalogue import resolve_tasks
from harness.tasks.own.data import TaskFile
from tests.support import own_files
from tests.support.errors import raises_input_error

PAIRS = "sentence1,sentence2,score\n"


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        (PAIRS + "a,b,1\na,c,2,5\n", 3, None),  # read by the one reader of tables
        (PAIRS + 'a,b,1\na,c,"2,5"\n', 3, "score"),
        (PAIRS + "a,b,1\na,c,high\n", 3, "score"),
        (PAIRS + "a,b,1\n\n,c,2\n", 4, "sentence1"),
        (PAIRS + "a,b,3\na,c,3\n", None, "score"),
        ("sentence1,sentence2,label\na,b,1\nc,d,2\ne,f,3\n", None, "label"),
        ("sentence1,sentence2,label\na,b,cat\nc,d,dog\n", None, "label"),
        ("sentence1,sentence2,label\na,b,1\nc,d,1\n", None, "label"),
        ("text,label\na,x\nb,x\n", None, "label"),
        ("text,label,split\na,x,train\nb,y,train\nc,z,test\n", 4, "label"),
        ("text,label,split\na,x,train\nb,y,tset\n", 3, "split"),
        ("sentence1,sentence2,score,split\na,b,1,train\na,c,2,dev\n", None, "split"),
    ],
)
def test_a_wrong_cell_is_named(
    tmp_path: Path, text: str, line: int | None, key: str | None
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(text, encoding="utf-8")
    with raises_input_error(file=file, line=line, key=key):
        resolve_tasks([str(file)])


def test_a_table_of_no_kind_says_which_columns_a_kind_needs(tmp_path: Path) -> None:
    file = own_files.write_table(tmp_path / "mine.csv", ("query", "passage"), [("a", "b")])
    with pytest.raises(InputError) as error:
        resolve_tasks([str(file)])
    assert error.value.file == str(file)
    for name in ("sentence1", "anchor", "text", "query"):
        assert name in str(error.value)


@pytest.mark.parametrize(
    "name", ["data/pairs.csv", "data/pairs", "./pairs", "pairs.csv", "pairs.xlsx", "~/pairs.jsonl"]
)
def test_a_path_is_never_taken_for_the_name_of_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError) as error:
        resolve_tasks([name])
    assert error.value.file == name


def test_a_folder_that_is_none_of_beirs_and_a_file_that_is_no_table_are_refused(
    tmp_path: Path,
) -> None:
    (tmp_path / "notes.txt").write_text("text", encoding="utf-8")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(InputError) as error:
            resolve_tasks([str(path)])
        assert error.value.file == str(path)


def test_a_grade_of_an_unknown_passage_is_named_with_its_line(tmp_path: Path) -> None:
    rows = [{"id": "1", "query": "q", "passage": "p"}, {"id": "2", "query": "r", "passage": "s"}]
    folder = own_files.beir_folder(tmp_path / "docs", rows)
    grades = folder / "qrels" / "test.tsv"
    grades.write_text(grades.read_text() + "q-1\tp-9\t1\n")
    with raises_input_error(file=grades, line=4):
        resolve_tasks([str(folder)])


def test_columns_that_differ_in_the_case_of_letters_are_refused(tmp_path: Path) -> None:
    rows = [(*pair, 1) for pair in own_files.embedded_pairs()[:40]]
    header = ("sentence1", "sentence2", "Score", "SCORE")
    file = own_files.write_table(tmp_path / "mine.csv", header, rows)
    with raises_input_error(file=file, key="SCORE"):
        resolve_tasks([str(file)])
    (task,) = resolve_tasks([TaskFile(task=str(file), columns={"score": "Score"})])
    assert len(task.texts()) == 80


@pytest.mark.parametrize("line", ["q-2\tp-1\t0.5", "q-1\tp-1\t2"])
def test_a_grade_that_is_cut_or_given_twice_is_refused(tmp_path: Path, line: str) -> None:
    rows = [{"id": "1", "query": "q", "passage": "p"}, {"id": "2", "query": "r", "passage": "s"}]
    folder = own_files.beir_folder(tmp_path / "docs", rows)
    grades = folder / "qrels" / "test.tsv"
    grades.write_text(f"{grades.read_text()}q-1\tp-1\t1\n{line}\n")
    with raises_input_error(file=grades, line=5, key="score"):
        resolve_tasks([str(folder)])


def test_queries_without_a_relevant_passage_are_remarked(tmp_path: Path) -> None:
    rows = [{"id": str(n), "query": f"q {n}", "passage": f"p {n}"} for n in range(40)]
    folder = own_files.beir_folder(tmp_path / "docs", rows)
    (task,) = resolve_tasks([str(folder)])
    assert task.data_remarks == []  # type: ignore[attr-defined]
    grades = folder / "qrels" / "test.tsv"
    grades.write_text(grades.read_text().replace("q-7\tp-7\t1", "q-7\tp-7\t0"))
    (task,) = resolve_tasks([str(folder)])
    (remark,) = task.data_remarks  # type: ignore[attr-defined]
    assert "1 of 40" in remark


def test_what_may_be_meant_otherwise_is_remarked(tmp_path: Path) -> None:
    pairs = [(f"a {n}", f"b {n}", n, n % 2) for n in range(40)]
    columns = ("sentence1", "sentence2", "score", "label")
    both = own_files.write_table(tmp_path / "both.csv", columns, pairs)
    labelled = [(f"text {n}", ("Yes", "yes", "no")[n % 3]) for n in range(240)]
    case = own_files.write_table(tmp_path / "case.csv", ("text", "label"), labelled)
    few = own_files.write_table(
        tmp_path / "few.csv", ("text", "label"), labelled[1::3] + labelled[2::3]
    )
    tasks: list[Any] = resolve_tasks([str(both), str(case), str(few)])
    ((first,), (second,), (third,)) = (task.data_remarks for task in tasks)
    assert "pair-classification" in first
    assert "case alone" in second
    assert "160 texts are few" in third
    named = TaskFile(task=str(both), kind="similarity")
    assert resolve_tasks([named])[0].data_remarks == []  # type: ignore[attr-defined]


def test_texts_that_are_classified_are_those_of_the_file(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["two  blanks", "one\nbreak"] * 15, "label": ["a", "b"] * 15})
    for kind in ("classification", "clustering"):
        (task,) = resolve_tasks([_written(frame, tmp_path, kind)])
        assert set(task.texts()) == {"two  blanks", "one\nbreak"}


def _written(frame: pd.DataFrame, folder: Path, kind: str) -> TaskFile:
    file = folder / f"{kind}.csv"
    frame.to_csv(file, index=False)
    return TaskFile.parse({"task": str(file), "kind": kind}, "suites")


def test_queries_and_passages_without_text_are_remarked(tmp_path: Path) -> None:
    rows = [{"id": str(n), "query": f"q {n}", "passage": f"p {n}"} for n in range(40)]
    folder = own_files.beir_folder(tmp_path / "docs", rows)
    queries = folder / "queries.jsonl"
    queries.write_text(queries.read_text().replace("q 7", ""))
    (task,) = resolve_tasks([str(folder)])
    (remark,) = task.data_remarks  # type: ignore[attr-defined]
    assert "1 queries and 0 passages" in remark


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("columns", {"columns": {"text": "body"}}),
        ("share", {"share": 0.5}),
        ("kind", {"kind": "clustering"}),
    ],
)
def test_settings_of_tables_are_refused_for_a_folder(
    tmp_path: Path, key: str, settings: dict[str, Any]
) -> None:
    folder = own_files.beir_folder(tmp_path, [{"id": "1", "query": "q", "passage": "p"}])
    with raises_input_error(file=folder, key=key):
        resolve_tasks([TaskFile(task=str(folder), **settings)])


def test_columns_and_share_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    header = ("sentence1", "sentence2", "score", "split")
    rows = [(*pair, "test") for pair in own_files.embedded_pairs()[:40]]
    file = own_files.write_table(tmp_path / "mine.csv", header, rows)
    for settings, key in (
        ({"columns": {"sentence1": "left"}}, "columns"),
        ({"columns": {"left": "sentence1"}}, "columns"),
        ({"columns": {"score": "split", "label": "split"}}, "columns"),
        ({"share": 0.5}, "share"),
    ):
        with raises_input_error(key=key):
            resolve_tasks([TaskFile(task=str(file), **settings)])


def test_few_examples_and_repeated_texts_are_remarked(tmp_path: Path) -> None:
    few = own_files.pairs_file(tmp_path / "few.csv", 20)
    rows = own_files.embedded_pairs()[:30] * 2
    twice = own_files.write_table(tmp_path / "d.csv", ("sentence1", "sentence2", "score"), rows)
    usual = own_files.write_table(
        tmp_path / "u.csv",
        ("sentence1", "sentence2", "score"),
        [
            (f"{a} {i}", f"{i} {b}", s)
            for i, (a, b, s) in enumerate(own_files.embedded_pairs()[:60])
        ],
    )
    remarks = [len(task.data_remarks) for task in resolve_tasks([str(few), str(twice), str(usual)])]  # type: ignore[attr-defined]
    assert remarks[1:] == [1, 0]
    assert remarks[0] >= 1


@pytest.mark.parametrize("value", ['["a"]', '{"a": 1}', "null"])
def test_a_line_of_json_without_a_text_is_named(tmp_path: Path, value: str) -> None:
    file = tmp_path / "mine.jsonl"
    line = '{"sentence1": %s, "sentence2": "b", "score": 1, "more": [1]}\n'
    file.write_text(line % '"a"' + line % value, encoding="utf-8")
    with raises_input_error(file=file, line=2, key="sentence1"):
        resolve_tasks([str(file)])


def test_grades_of_which_none_is_above_0_are_refused(tmp_path: Path) -> None:
    rows = [{"id": "1", "query": "q", "passage": "p"}, {"id": "2", "query": "r", "passage": "s"}]
    folder = own_files.beir_folder(tmp_path / "docs", rows)
    grades = folder / "qrels" / "test.tsv"
    grades.write_text(grades.read_text().replace("\t1\n", "\t0\n"))
    with raises_input_error(file=grades, key="score"):
        resolve_tasks([str(folder)])


def test_a_text_of_a_folder_that_is_a_list_is_named(tmp_path: Path) -> None:
    rows = [{"id": "1", "query": "q", "passage": "p"}, {"id": "2", "query": "r", "passage": "s"}]
    folder = own_files.beir_folder(tmp_path / "docs", rows)
    (folder / "corpus.jsonl").write_text('{"_id": "p-1", "text": ["p"]}\n')
    with raises_input_error(file=folder / "corpus.jsonl", line=1, key="text"):
        resolve_tasks([str(folder)])
