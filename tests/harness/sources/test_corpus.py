"""Corpora of files and of text in hand: what comes out, how much memory it takes, and one line for
each wrong input.
"""

from __future__ import annotations

import csv
import errno
import gzip
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch.utils.data
from datasets import Dataset, DatasetDict
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import registry
from harness.errors import InputError
from harness.sources import Kind, Pair, TrainingText, corpus_of, load_corpus
from harness.sources.corpus import rows, selected_texts
from methods.parts.word_vectors import read_word_vectors
from tests.support.errors import raises_input_error

TEXTS = [
    "A first sentence.",
    "Zwölf Boxkämpfer 🥊 jagen",
    "NA",
    "1984",
    "2020-01-01",
    "日本語 の 文",
]
TRIPLES = [("a dog", "a hound", "a cat"), ("rain", "wet weather", "sunshine")]
ROLES = ("anchor", "positive", "negative")
DICTS = [dict(zip(ROLES, triple, strict=True)) for triple in TRIPLES]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write(path: Path, data: bytes | str) -> Path:
    raw = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def as_csv(path: Path, header: list[str], rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def error(uri: str | Path, **kwargs: Any) -> str:
    with raises_input_error() as caught:
        load_corpus(str(uri), **kwargs)
    return str(caught.value)


# --- what comes out


def test_embedded_corpora_have_the_rows_that_their_readme_states() -> None:
    assert len(load_corpus("embedded:sentences")) == 3 * 700 + 5 * 1000
    assert len(load_corpus("embedded:pairs", kind="pairs")) == 3 * 150
    assert len(load_corpus("embedded:documents", kind="documents")) == 3 * 8
    assert load_corpus("embedded:pairs", kind="pairs")[0] == Pair(
        "A man in waders is casting a line into a fast river.",
        "Somebody is trying to catch fish.",
        "The man is dry and asleep on the bank.",
    )


def test_text_is_read_without_pandas() -> None:
    read = "from harness.sources import load_corpus; load_corpus('embedded:sentences')"
    ask = f"import sys; {read}; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_content_hashes_are_those_of_earlier_versions() -> None:
    """Ids of runs contain them."""
    assert load_corpus("embedded:sentences").sha256.startswith("289ba2b5c21c9e1d9de308edf2944556")
    assert load_corpus("embedded:pairs", kind="pairs").sha256.startswith(
        "f31338231095b47bedbe3afa49bbf311"
    )
    assert load_corpus("embedded:documents", kind="documents").sha256.startswith(
        "539093433822b0da992462283493db39"
    )
    assert corpus_of(["a b", "c", "", "  d "], "sentences").sha256.startswith(
        "b67bdf10c5178ee5162a4ea4be48b896"
    )


def test_every_format_gives_the_same_texts_and_the_same_hash(tmp_path: Path) -> None:
    table = as_csv(tmp_path / "t.csv", ["id", "text"], [["1", text] for text in TEXTS]).read_bytes()
    files = [tmp_path / "a.parquet"]
    Dataset.from_dict({"text": TEXTS}).to_parquet(files[0])
    for zipped in ("", ".gz"):
        files += [
            write(tmp_path / f"a.txt{zipped}", "\n".join(TEXTS)),
            write(tmp_path / f"b.csv{zipped}", table),
            write(
                tmp_path / f"c.tsv{zipped}",
                "text\tid\n" + "".join(f"{text}\t1\n" for text in TEXTS),
            ),
            write(
                tmp_path / f"d.jsonl{zipped}",
                "".join(json.dumps({"text": text, "n": 3}) + "\n" for text in TEXTS),
            ),
        ]
    corpora = [load_corpus(str(file)) for file in files]
    assert [list(corpus) for corpus in corpora] == [TEXTS] * 9
    assert len({corpus.sha256 for corpus in corpora}) == 1


HARD = [
    'He said "hello".',
    '"Quoted."',
    "two\nlines",
    "a\ttab",
    "semi; colon, comma",
    "plain",
    "NA",
]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(("name", "separator"), [("x.tsv", "\t"), ("x.csv", ","), ("x.csv", ";")])
def test_tables_that_pandas_writes_are_read_with_their_quotes(
    tmp_path: Path, name: str, separator: str, ending: str, quoting: Any
) -> None:
    frame = pd.DataFrame({"id": range(len(HARD)), "text": HARD})
    options: dict[str, Any] = {"sep": separator, "lineterminator": ending, "quoting": quoting}
    for encoding in ("utf-8", "utf-8-sig"):
        frame.to_csv(tmp_path / name, index=False, encoding=encoding, **options)
        assert list(load_corpus(str(tmp_path / name))) == HARD
        frame["text"].to_csv(tmp_path / name, index=False, encoding=encoding, **options)
        assert list(load_corpus(str(tmp_path / name))) == HARD


def test_quotes_of_a_tsv_file_that_does_not_quote_are_characters(tmp_path: Path) -> None:
    texts = ['"Stop" is a word.', '"Never closed', 'She said "no', "b, c; d"]
    content = "id\ttext\n" + "".join(f"1\t{text}\n" for text in texts)
    assert list(load_corpus(str(write(tmp_path / "x.tsv", content)))) == texts
    assert list(load_corpus(str(write(tmp_path / "x.tsv.gz", content)))) == texts


def test_names_of_columns_have_no_blanks_around_them(tmp_path: Path) -> None:
    for name, content in (
        ("x.csv", "id, text \n1, a \n2,NA\n"),
        ("x.csv", "id; text \n1; a \n2;NA\n"),
        ("x.tsv", "id\t text \n1\t a \n2\tNA\n"),
        ("x.jsonl", '{" text ": "a"}\n{" text ": "NA"}\n'),
    ):
        assert list(load_corpus(str(write(tmp_path / name, content)))) == ["a", "NA"]


def test_lines_are_split_at_newlines_only_and_stripped_and_empty_ones_are_left_out(
    tmp_path: Path,
) -> None:
    content = "\ufeff  one \r\n\n \t\u3000\ntwo\u2028still two\x85\u00a0\n\x0bthree\x0cmore\n"
    for name in ("x.txt", "x.txt.gz"):
        assert list(load_corpus(str(write(tmp_path / name, content)))) == [
            "one",
            "two\u2028still two",
            "three\x0cmore",
        ]


def test_pairs_with_named_columns_missing_negatives_and_labels(tmp_path: Path) -> None:
    rows = [
        ["p", "e", "c", "0"],
        ["p2", "e2", "", "02"],
        ["", "no anchor", "x", "1"],
        ["a, b", "two\nlines", "c3", ""],
    ]
    file = as_csv(tmp_path / "nli.csv", ["sent0", "sent1", "hard_neg", "label"], rows)
    columns = {"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"}
    corpus = load_corpus(str(file), kind="pairs", columns=columns)
    assert list(corpus) == [Pair("p", "e", "c"), Pair("p2", "e2"), Pair("a, b", "two\nlines", "c3")]
    labelled = load_corpus(str(file), kind="pairs", columns={**columns, "label": "label"})
    assert [pair.label for pair in labelled] == ["0", "02", None]
    without = load_corpus(str(file), kind="pairs", columns={"anchor": "sent0", "positive": "sent1"})
    assert [pair.negative for pair in without] == [None] * 3
    assert len({corpus.sha256, labelled.sha256, without.sha256}) == 3
    both = load_corpus(str(file), columns={"text": "sent0+sent1"}, limit=3)
    assert list(both) == ["p", "e", "p2"]


def test_a_corpus_is_a_sequence(tmp_path: Path) -> None:
    corpus = load_corpus(str(write(tmp_path / "x.txt", "\n".join(TEXTS))))
    assert corpus[-1] == TEXTS[-1]
    assert corpus[np.int64(1)] == TEXTS[1]  # type: ignore[call-overload]
    assert corpus[1:3] == TEXTS[1:3]
    assert TEXTS[2] in corpus
    for outside in (6, -7):
        with pytest.raises(IndexError):
            corpus[outside]
    assert corpus.describe() == {
        "uri": corpus.uri,
        "kind": "sentences",
        "count": 6,
        "sha256": corpus.sha256,
    }


def test_limit_takes_the_first_and_reads_no_further(tmp_path: Path) -> None:
    for name in ("x.txt", "x.txt.gz"):
        file = write(tmp_path / name, b"one\n\ntwo\nthree\n\xff\xfe\n")
        assert list(load_corpus(str(file), limit=3)) == ["one", "two", "three"]
        assert load_corpus(str(file), limit=2).sha256 != load_corpus(str(file), limit=3).sha256


def test_embedded_documents_are_selected_by_their_number_of_tokens() -> None:
    selected = load_corpus(
        "embedded:documents?min_tokens=700&tokenizer=embedded:mini-bert", kind="documents"
    )
    assert (len(selected), selected.describe()["left_out"]) == (7, 17)
    assert "after 24 were left out" in error(
        "embedded:documents?min_tokens=5000&tokenizer=embedded:mini-bert", kind="documents"
    )


@settings(max_examples=60)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0\ufeff")),
        min_size=2,
    )
)
def test_any_text_is_the_same_from_memory_and_from_the_cache(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    wanted = [line.strip() for line in lines if line.strip()]
    if len(wanted) < 2:
        return
    folder = tmp_path_factory.mktemp("any")
    in_memory = load_corpus(str(write(folder / "x.txt", "\n".join(lines))))
    stored = load_corpus(str(write(folder / "x.txt.gz", "\n".join(lines))))
    assert list(in_memory) == list(stored) == [stored[i] for i in range(len(stored))] == wanted
    assert in_memory.sha256 == stored.sha256


# --- the cache


def test_large_text_is_stored_once_for_its_content_and_mapped_to_memory(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa

    monkeypatch.setattr(selected_texts, "_SMALL", 1000)
    lines = [f"sentence number {i} äöü" for i in range(30_000)]
    file = write(tmp_path / "x.txt", "\n".join(lines))
    first = load_corpus(str(file))
    before = pa.total_allocated_bytes()
    again = load_corpus(str(write(tmp_path / "copy.txt", "\n".join(lines))))
    assert pa.total_allocated_bytes() - before < 50_000  # of almost a million bytes of text
    assert again.sha256 == first.sha256
    assert again[12_345] == lines[12_345]
    assert len(list((cache / "corpora").glob("*/about.json"))) == 1
    assert list(load_corpus(str(file), limit=2)) == lines[:2]
    write(file, "\n".join(lines[::-1]))
    assert load_corpus(str(file))[0] == lines[-1]
    for stored in (cache / "corpora").glob("*/texts.arrow"):
        stored.write_bytes(stored.read_bytes()[:100])
    assert list(load_corpus(str(file))) == lines[::-1]


def test_a_full_disk_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("harness.sources.remote.cache_folder.settle", full)
    assert error(write(tmp_path / "x.txt.gz", "one\ntwo")).startswith(f"{cache / 'corpora'}: ")
    assert not [path for path in (cache / "corpora").iterdir() if path.is_dir()]


# --- wrong input


@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz", "x.csv", "x.tsv", "x.jsonl"])
def test_not_utf8_names_file_and_line(tmp_path: Path, name: str) -> None:
    first = b'{"text": "a"}\n' if name == "x.jsonl" else b"text\n"
    file = write(tmp_path / name, first + b"caf\xe9\n")
    assert error(file).startswith(f"{file}, line 2: not UTF-8 (byte 0xe9 at position 4)")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.txt", "\n \n\r\n", "is empty"),
        ("x.txt.gz", "", "is empty"),
        ("x.csv", "", "is empty"),
        ("x.csv", "text\n", "is empty"),
        ("x.jsonl", '{"text": "a"}\n{"text": ""}\n{"text": null}', "holds only one"),
        ("x.csv", 'text\n"never closed\nb\nc\n', "line 2: "),
        ("x.csv", 'text,id\n"a\nb",1\n"c\n\nd,2\n"e",3\n', "line 4: "),
        ("x.csv", "text,id\na,1\nb, c,2\n", "line 3: has 3 cells"),
        ("x.csv", "text\nHello, world\n", "line 2: has 2 cells"),
        ("x.csv", "id,text\n1,Hello,\n", "line 2: has 3 cells"),
        ("x.tsv", 'a\ttext\n1\t"x ""y"" z"\n1\t"two\nlines"\n1\n', "line 5: has 1 cells"),
        ("x.tsv", 'a\ttext\n1\t"x\n1\ty" z\n1\n', "line 4: has 1 cells"),
        ("x.csv", "text,text\na,b\n", 'no column "text"; its columns are: text (1), text (2)'),
        ("x.csv", "sent0,sent1\na,b\n", 'no column "text"; its columns are: sent0, sent1'),
        ("x.tsv", "text\tid\none\rtwo\t1\n", "line 2: a carriage return"),
        ("x.csv", "text\rone\rtwo\r", "line 1: a carriage return"),
        ("x.tsv", "text\tid\rone\t1\r", "line 1: a carriage return"),
        ("x.csv", "n" * 200_000 + "\na\nb\n", 'no column "text"'),
        ("x.tsv", "text\tid\na\n", "line 2: has 1 cells"),
        ("x.txt", "one\ntwo\rthree\n", "line 2: a carriage return at position 4"),
        ("x.txt", "one\ntw\0o\n", "line 2: UTF-16 or not a text (NUL bytes)"),
        ("x.txt.gz", "one\ntwo\n".encode("utf-16"), "line 1: UTF-16 or not a text"),
        ("x.jsonl", '{"text": "a"}\n{"text": \n', "line 2: not JSON"),
        ("x.jsonl", '["a"]\n', "line 1: expected a JSON object"),
        ("x.jsonl", '{"text": 3}\n', 'line 1: column "text"'),
        (
            "x.jsonl",
            '{"text": "a"}\n{"txt": "b"}\n',
            'line 2: no column "text"; its columns are: txt',
        ),
        ("x.jsonl", '{"text": "half \\ud83d"}\n', "line 1: "),
        ("x.parquet", "no such file format", "not readable as Parquet"),
        ("x.docx", "", "unknown kind of file"),
    ],
)
def test_a_wrong_file_is_one_line(
    tmp_path: Path, name: str, content: str | bytes, problem: str
) -> None:
    file = write(tmp_path / name, content)
    message = error(file)
    assert str(file) in message
    assert problem in message


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no such file format", b"PAR1" * 50])
def test_a_damaged_parquet_file_is_one_line_without_those_of_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(
        logging.getLogger("datasets"), "handle", lambda line: lines.append(line.getMessage())
    )
    file = tmp_path / "x.parquet"
    file.write_bytes(content)
    assert error(file).startswith(f"{file}: not readable as Parquet")
    assert lines == []


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("x.csv", "sentence\na\nb\n", 1),
        ("x.csv", "\n\nsentence\na\nb\n", 3),
        ("x.csv", "sep=;\nsentence;n\na;1\nb;2\n", 2),
        ("x.tsv", "a\tb\nc\td\n", 1),
        ("x.csv", '"a\nb",n\nc,1\n', 1),
        ("x.jsonl", '{"text": "a"}\n\n{"txt": "b"}\n', 3),
    ],
)
def test_a_column_that_lacks_is_missed_where_the_names_are(
    tmp_path: Path, name: str, content: str, line: int
) -> None:
    file = write(tmp_path / name, content)
    with raises_input_error(file=file, line=line, key="text"):
        load_corpus(str(file))


def test_a_parquet_file_without_rows_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    pd.DataFrame({"text": pd.Series([], dtype=str)}).to_parquet(file)
    assert "is empty" in error(file)


def test_wrong_columns_of_pairs(tmp_path: Path) -> None:
    table = as_csv(tmp_path / "x.csv", ["sent0", "sent1"], [["a", "b"], ["c", "d"]])
    message = error(
        table,
        kind="pairs",
        columns={"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"},
    )
    assert 'no column "hard_neg"' in message
    assert '(did you mean "anchor"?)' in error(table, kind="pairs", columns={"anchr": "sent0"})
    assert 'no column "anchor"' in error(write(tmp_path / "x.txt", "a\nb"), kind="pairs")
    numbers = tmp_path / "x.parquet"
    Dataset.from_dict({"text": [1, 2]}).to_parquet(numbers)
    assert 'column "text" holds no text' in error(numbers)


def test_long_documents_are_read_and_too_long_lines_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = as_csv(tmp_path / "x.csv", ["text"], [["word " * 100_000], ["short"]])
    before = csv.field_size_limit()
    assert load_corpus(str(file), kind="documents")[0] == ("word " * 100_000).strip()
    assert csv.field_size_limit() == before
    monkeypatch.setattr(rows, "LONGEST", 4096)
    for name, begin in (
        ("x.txt", "a\n"),
        ("x.txt.gz", "a\n"),
        ("x.jsonl", '{"text": "a"}\n{"text": "'),
    ):
        assert "line 2: longer than" in error(write(tmp_path / name, begin + "a" * 10_000))
    assert "x.csv, line 2: " in error(
        write(tmp_path / "x.csv", 'text\n"' + "a line of the value\n" * 1000)
    )


def test_a_gzip_bomb_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    file = tmp_path / "bomb.txt.gz"
    part = gzip.compress(b"a" * (50 * 2**20), compresslevel=1)
    file.write_bytes(part * 20)  # a gigabyte: members of a gzip file follow each other
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_DATA, (600 * 2**20,) * 2)\n"
        "from harness.errors import InputError\nfrom harness.sources import load_corpus\n"
        "try: load_corpus(sys.argv[1])\n"
        "except InputError as error: print(error)"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=True, timeout=600
    )
    assert "line 1: longer than" in done.stdout


def test_a_damaged_gzip_file(tmp_path: Path) -> None:
    file = write(tmp_path / "x.txt.gz", "\n".join(f"sentence {i}" for i in range(1000)))
    file.write_bytes(file.read_bytes()[:-20])
    assert "gzip" in error(file)
    file.write_bytes(b"a plain text\nin disguise\n")
    assert "gzip" in error(file)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    for read in (load_corpus, read_word_vectors):
        with raises_input_error(file=pipe):
            read(str(pipe))


def test_unknown_names(tmp_path: Path) -> None:
    assert '(did you mean "embedded:sentences"?)' in error("embedded:sentence")
    assert '(did you mean "wiki1m"?)' in error("wiki1n")
    assert "no such file" in error(tmp_path / "none.txt")
    assert "is a folder" in error(tmp_path)
    assert "of several .txt files, one with the texts of all" in error(tmp_path / "*.txt")
    assert "hf://datasets/ORG/NAME/FILE" in error("hf://datasets/name")
    assert "holds documents, not sentences" in error("embedded:documents")
    assert "limit = 1" in error("embedded:sentences", limit=1)
    assert '(did you mean "pairs"?)' in error("embedded:pairs", kind="pair")


# --- text in hand


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("sentences", TEXTS),
        ("sentences", [*TEXTS, ""]),
        ("documents", tuple(TEXTS)),
        ("sentences", Dataset.from_dict({"id": range(6), "text": TEXTS})),
        ("documents", Dataset.from_dict({"document": TEXTS})),
        ("sentences", np.array(TEXTS)),
        ("pairs", TRIPLES),
        ("pairs", [list(triple) for triple in TRIPLES]),
        ("pairs", [Pair(*triple) for triple in TRIPLES]),
        ("pairs", DICTS),
        ("pairs", Dataset.from_list(DICTS)),
    ],
)
def test_text_in_hand_is_the_corpus_of_its_file(
    tmp_path: Path, kind: Kind, given: TrainingText
) -> None:
    content = [{"text": text} for text in TEXTS] if kind != "pairs" else DICTS
    file = write(tmp_path / "x.jsonl", "".join(json.dumps(row) + "\n" for row in content))
    of_file, corpus = load_corpus(str(file), kind=kind), corpus_of(given, kind)
    assert (corpus.kind, corpus.sha256, list(corpus)) == (kind, of_file.sha256, list(of_file))
    assert corpus_of(of_file, "pairs") is of_file  # a method checks the kind itself
    assert corpus_of(file, kind).sha256 == corpus_of(str(file), kind).sha256 == corpus.sha256
    assert len(corpus_of(given, kind, limit=2)) == 2


def test_the_first_items_of_a_corpus_are_those_of_its_file(tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", "".join(json.dumps(row) + "\n" for row in DICTS))
    whole = load_corpus(str(file), kind="pairs")
    first = corpus_of(whole, "pairs", limit=2)
    assert list(first) == list(whole)[:2]
    assert first.sha256 == load_corpus(str(file), kind="pairs", limit=2).sha256
    assert corpus_of(whole, "pairs", limit=len(whole)) is whole
    with raises_input_error(key="limit"):
        corpus_of(whole, "pairs", limit=1)
    with raises_input_error(key="columns"):
        corpus_of(whole, "pairs", columns={"anchor": "a"})


@pytest.mark.parametrize("name", ["Negative", "hard_negative"])
def test_negatives_under_another_name_are_no_silent_loss(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    frame = pd.DataFrame([("a", "b", "c"), ("d", "e", "f")], columns=["anchor", "positive", name])
    frame.to_csv(tmp_path / "x.csv", index=False)
    of_file = load_corpus(str(tmp_path / "x.csv"), kind="pairs")
    assert corpus_of(frame, "pairs").sha256 == of_file.sha256
    assert [name in record.message for record in caplog.records] == [True, True]
    caplog.clear()
    named = load_corpus(str(tmp_path / "x.csv"), kind="pairs", columns={"negative": name})
    assert named[0] == Pair("a", "b", "c")
    assert not caplog.records


def test_pairs_in_hand_with_labels() -> None:
    labelled = [Pair("a", "b", label="neutral"), Pair("c", "d", "e")]
    assert list(corpus_of(labelled, "pairs")) == labelled


@pytest.mark.parametrize(
    ("kind", "given", "key"),
    [
        ("sentences", 3, None),
        ("sentences", {"text": TEXTS}, None),
        ("sentences", b"bytes", None),
        ("sentences", ["a", 2], "item 1"),
        ("sentences", TRIPLES, "item 0"),
        ("pairs", TEXTS, "item 0"),
        ("pairs", [("a", None), ("b", "c")], None),
        ("pairs", [("a", 1), ("b", "c")], "item 0"),
        ("pairs", [("a", "b", "c", "d", "e")], "item 0"),
        ("sentences", ["one", "", " "], None),
        ("sentences", ["fine", "half \ud83d"], "item 1"),
        ("sentences", Dataset.from_dict({"phrase": TEXTS}), "columns"),
        ("pairs", Dataset.from_dict({"anchor": TEXTS}), "columns"),
        ("sentences", DatasetDict(train=Dataset.from_dict({"text": TEXTS})), None),
    ],
)
def test_anything_else_in_hand_is_one_line(kind: Kind, given: Any, key: str | None) -> None:
    with raises_input_error(file="training text", key=key):
        corpus_of(given, kind)


def test_the_advice_on_a_dataset_of_torch_is_right() -> None:
    class Texts(torch.utils.data.Dataset[str]):
        def __len__(self) -> int:
            return len(TEXTS)

        def __getitem__(self, place: int) -> str:
            return TEXTS[place]

    data = Texts()
    with raises_input_error(file="training text") as caught:
        corpus_of(data, "sentences")
    assert "[data[i] for i in range(len(data))]" in str(caught.value.remedy)
    items = [data[i] for i in range(len(data))]
    assert list(corpus_of(items, "sentences")) == [text.strip() for text in TEXTS]


def test_methods_learn_from_lists_as_from_corpora() -> None:
    whitening = registry.load(registry.METHODS, "whitening")
    by_list, by_corpus = whitening().fit(TEXTS), whitening().fit(corpus_of(TEXTS, "sentences"))
    np.testing.assert_array_equal(by_list.encode(TEXTS), by_corpus.encode(TEXTS))
    with raises_input_error(file="training text", key="item 0"):
        registry.load(registry.METHODS, "simcse")().fit(TRIPLES)


# --- tables in hand

COLUMNS = {"id": [1, 2, 3], "text": ["A dog runs.", "", "It rains."], "source": ["web"] * 3}
PAIR_COLUMNS = {
    "label": [1, 0],
    "positive": ["A dog is running.", "Rain falls."],
    "anchor": ["A dog runs.", "It rains."],
}
FORMS = [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, Dataset.from_dict]


@pytest.mark.parametrize("form", FORMS)
def test_frames_are_read_by_their_columns(form: Any) -> None:
    corpus = corpus_of(form(COLUMNS), "sentences")
    assert list(corpus) == ["A dog runs.", "It rains."]
    assert corpus.describe()["empty"] == 1
    turned = {name: COLUMNS[name] for name in reversed(COLUMNS)}
    assert corpus_of(form(turned), "sentences").sha256 == corpus.sha256
    assert corpus_of(["A dog runs.", "It rains."], "sentences").sha256 == corpus.sha256
    renamed = {"body": COLUMNS["text"], "title": ["a", "b", "c"]}
    for kind in ("sentences", "documents"):
        found = corpus_of(form(renamed), kind, columns={"text": "title+body"})
        assert list(found) == ["a", "A dog runs.", "b", "c", "It rains."]
    with pytest.raises(InputError) as caught:
        corpus_of(form(renamed), "sentences")
    assert caught.value.key == "columns"


@pytest.mark.parametrize("form", FORMS)
def test_frames_of_pairs_need_no_label_and_numbers_are_none(form: Any) -> None:
    expected = [Pair("A dog runs.", "A dog is running."), Pair("It rains.", "Rain falls.")]
    corpus = corpus_of(form(PAIR_COLUMNS), "pairs")
    assert list(corpus) == expected
    rows = [
        dict(zip(PAIR_COLUMNS, row, strict=True))
        for row in zip(*PAIR_COLUMNS.values(), strict=True)
    ]
    assert corpus_of(rows, "pairs").sha256 == corpus.sha256
    labelled = corpus_of(form({**PAIR_COLUMNS, "label": ["entails", "neutral"]}), "pairs")
    assert [pair.label for pair in labelled] == ["entails", "neutral"]
    with pytest.raises(InputError) as caught:
        corpus_of(form(PAIR_COLUMNS), "pairs", columns={"label": "label"})
    assert caught.value.key == "label"


def test_what_pandas_writes_for_missing_text_is_no_text() -> None:
    for missing in (None, float("nan"), pd.NA, pd.NaT, ""):
        frame = pd.DataFrame({"text": pd.Series(["a", missing, "b"], dtype=object)})
        corpus = corpus_of(frame, "sentences")
        assert (list(corpus), corpus.describe()["empty"]) == (["a", "b"], 1)
    categories = pd.DataFrame({"text": pd.Categorical(["a", None, "b"])})
    assert list(corpus_of(categories, "sentences")) == ["a", "b"]
    assert list(corpus_of(pd.Series(["a", "b"]), "sentences")) == ["a", "b"]
    assert list(corpus_of(pa.array(["a", "b"]), "sentences")) == ["a", "b"]
    assert list(corpus_of(pl.Series(["a", "b"]), "sentences")) == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (pd.DataFrame({"text": [1, 2]}), "text"),
        (pd.DataFrame({"text": [b"a", b"b"]}), "text"),
        (pd.DataFrame([["a", "b"]], columns=["text", "text"]), None),
        (pd.DataFrame([["a"], ["b"]]), "columns"),
        ({"a": "first text", "b": "second text"}, None),
        ({"A", "B"}, None),
        (np.array("a text"), None),
        (frozenset({"A", "B"}), None),
        (DatasetDict({"train": Dataset.from_dict({"text": ["a", "b"]})}), None),
        (pd.DataFrame({"text": ["a", "b"], "n": [1, 2]}).groupby("n"), "item 0"),
        (np.array([["a", "b"], ["c", "d"]]), "item 0"),
        (pd.Series([1.5, 2.5]), "item 0"),
        (b"text", None),
    ],
)
def test_what_is_no_text_is_refused(given: Any, key: str | None) -> None:
    with raises_input_error() as caught:
        corpus_of(given, "sentences")
    assert caught.value.key == key


def test_names_of_files_and_columns_of_a_list_are_refused(tmp_path: Path) -> None:
    files = [str(write(tmp_path / name, "a\nb\n")) for name in ("a.txt", "b.csv", "c.txt.gz")]
    with pytest.raises(InputError) as caught:
        corpus_of(files, "sentences")
    assert caught.value.file == "training text"
    assert list(corpus_of([*files, "a text"], "sentences")) == [*files, "a text"]
    with pytest.raises(InputError) as caught:
        corpus_of(["a", "b"], "sentences", columns={"text": "body"})
    assert caught.value.key == "columns"


def test_a_stream_of_the_hub_is_a_table() -> None:
    stream = Dataset.from_dict(COLUMNS).to_iterable_dataset()
    assert list(corpus_of(stream, "sentences")) == ["A dog runs.", "It rains."]


@pytest.mark.parametrize(
    ("name", "content", "empty"),
    [
        ("x.txt", "a\n\n \nb\n", 2),
        ("x.jsonl", '{"text": "a"}\n{"text": null}\n{"text": ""}\n{"text": "b"}\n', 2),
        ("x.csv", "id,text\n1,a\n2,\n3,b\n", 1),
        ("x.tsv", "id\ttext\n1\ta\n2\t \n3\tb\n", 1),
        ("x.jsonl.gz", '{"text": "a"}\n{}\n{"text": "b"}\n'.replace("{}", '{"text": null}'), 1),
        ("x.txt", "a\nb\n", 0),
    ],
)
def test_rows_without_text_are_counted(
    tmp_path: Path, name: str, content: str, empty: int, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = load_corpus(str(write(tmp_path / name, content)))
    assert list(corpus) == ["a", "b"]
    assert corpus.describe().get("empty", 0) == empty
    assert [str(empty) in record.message for record in caplog.records] == [True] * bool(empty)


@pytest.mark.parametrize("length", [None, 128])
def test_padding_of_a_tokenizer_file_is_no_token(tmp_path: Path, length: int | None) -> None:
    from tokenizers import Tokenizer

    from harness.sources.embedded import EMBEDDED_MODELS

    tokenizer = Tokenizer.from_file(str(EMBEDDED_MODELS["mini-bert"] / "tokenizer.json"))
    texts = list(load_corpus("embedded:sentences"))
    lengths = [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]", length=length)
    tokenizer.enable_truncation(128)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for least in (12, 30):
        corpus = load_corpus(f"embedded:sentences?min_tokens={least}&tokenizer={tmp_path}")
        assert len(corpus) == sum(count >= least for count in lengths)


def test_a_name_with_brackets_is_no_pattern(tmp_path: Path) -> None:
    """`datasets` reads data[12].parquet as a pattern, and read data1.parquet."""
    for name, texts in (("data1", ["one", "two"]), ("data[12]", ["three", "four"])):
        pd.DataFrame({"text": texts}).to_parquet(tmp_path / f"{name}.parquet")
    assert list(load_corpus(str(tmp_path / "data[12].parquet"))) == ["three", "four"]
