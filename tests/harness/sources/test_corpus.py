"""Corpora: what comes out of each kind of source, how much memory it takes, and the one line for each wrong input."""

from __future__ import annotations

import csv
import errno
import gzip
import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.sources import Pair, load_corpus
from harness.sources.corpus import text_store as store

TEXTS = ["A first sentence.", "Zwölf Boxkämpfer 🥊 jagen", 'with "quotes", a comma', "日本語 の 文"]


def write(path: Path, data: bytes | str) -> Path:
    raw = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def as_csv(path: Path, header: list[str], rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def error(uri: str | Path, **kwargs: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_corpus(str(uri), **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return message


# --- what comes out


def test_embedded_corpora_have_the_rows_that_their_readme_states() -> None:
    assert len(load_corpus("embedded:sentences")) == 3 * 700
    assert len(load_corpus("embedded:pairs", kind="pairs")) == 3 * 150
    documents = load_corpus("embedded:documents", kind="documents")
    assert len(documents) == 3 * 8
    assert all(450 <= len(text.split()) <= 700 for text in documents)
    pair = load_corpus("embedded:pairs", kind="pairs")[0]
    assert pair == Pair(
        "A man in waders is casting a line into a fast river.",
        "Somebody is trying to catch fish.",
        "The man is dry and asleep on the bank.",
    )


@pytest.mark.parametrize("zipped", ["", ".gz"])
def test_every_format_gives_the_same_texts_and_the_same_fingerprint(tmp_path: Path, zipped: str) -> None:
    plain = [text for text in TEXTS if '"' not in text]  # a .tsv has no quoting
    table = as_csv(tmp_path / "t.csv", ["id", "text"], [["1", text] for text in plain]).read_bytes()
    files = [
        write(tmp_path / f"a.txt{zipped}", "\n".join(plain)),
        write(tmp_path / f"b.csv{zipped}", table),
        write(tmp_path / f"c.tsv{zipped}", "text\tid\n" + "".join(f"{text}\t1\n" for text in plain)),
        write(tmp_path / f"d.jsonl{zipped}", "".join(json.dumps({"text": text}) + "\n" for text in plain)),
    ]
    corpora = [load_corpus(str(file)) for file in files]
    assert [list(corpus) for corpus in corpora] == [plain] * 4
    assert len({corpus.sha256 for corpus in corpora}) == 1


def test_lines_are_split_at_newlines_only_and_stripped_and_empty_ones_are_left_out(tmp_path: Path) -> None:
    content = "\ufeff  one \r\n\n \t\u3000\ntwo\u2028still two\x85\u00a0\n\x0bthree\x0cmore\n"
    for name in ("x.txt", "x.txt.gz"):
        corpus = load_corpus(str(write(tmp_path / name, content)))
        assert list(corpus) == ["one", "two\u2028still two", "three\x0cmore"]
        assert corpus.skipped == 2


def test_pairs_with_named_columns_and_missing_negatives(tmp_path: Path) -> None:
    rows = [["p", "e", "c"], ["p2", "e2", ""], ["", "no anchor", "x"], ["a, b", "multi\nline", "c3"]]
    file = as_csv(tmp_path / "nli.csv", ["sent0", "sent1", "hard_neg"], rows)
    columns = {"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"}
    corpus = load_corpus(str(file), kind="pairs", columns=columns)
    assert list(corpus) == [Pair("p", "e", "c"), Pair("p2", "e2"), Pair("a, b", "multi\nline", "c3")]
    assert corpus.skipped == 1
    without = load_corpus(str(file), kind="pairs", columns={"anchor": "sent0", "positive": "sent1"})
    assert [pair.negative for pair in without] == [None] * 3
    assert without.sha256 != corpus.sha256


def test_a_corpus_is_a_sequence(tmp_path: Path) -> None:
    corpus = load_corpus(str(write(tmp_path / "x.txt", "\n".join(TEXTS))))
    assert corpus[-1] == TEXTS[-1]
    assert corpus[np.int64(1)] == TEXTS[1]  # type: ignore[call-overload]
    assert corpus[1:3] == TEXTS[1:3]
    assert TEXTS[2] in corpus
    for outside in (4, -5):
        with pytest.raises(IndexError):
            corpus[outside]
    assert corpus.path == tmp_path / "x.txt"
    described = corpus.describe()
    assert described == {"uri": corpus.uri, "kind": "sentences", "count": 4, "sha256": corpus.sha256}


def test_limit_takes_the_first_and_reads_no_further(tmp_path: Path) -> None:
    for name in ("x.txt", "x.txt.gz"):
        file = write(tmp_path / name, b"one\n\ntwo\nthree\n\xff\xfe\n")
        assert list(load_corpus(str(file), limit=3)) == ["one", "two", "three"]
        assert load_corpus(str(file), limit=2).sha256 != load_corpus(str(file), limit=3).sha256


def test_the_fingerprint_tells_apart_what_only_looks_alike(tmp_path: Path) -> None:
    def sha(text: str) -> str:
        return load_corpus(str(write(tmp_path / "x.txt", text))).sha256

    assert len({sha("ab\nc"), sha("a\nbc"), sha("c\nab"), sha("ab\nc\nd"), sha("ab\nC")}) == 5
    assert sha("ab\nc") == sha("ab\r\n\r\nc\r\n")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0\ufeff")), min_size=2))
def test_any_text_survives_the_memory_map(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    wanted = [line.strip() for line in lines if line.strip()]
    if len(wanted) < 2:
        return
    folder = tmp_path_factory.mktemp("any")
    raw = "\n".join(lines)
    mapped = load_corpus(str(write(folder / "x.txt", raw)))
    copied = load_corpus(str(write(folder / "x.txt.gz", raw)))
    assert list(mapped) == list(copied) == wanted
    assert mapped.sha256 == copied.sha256


def test_what_does_not_fit_in_memory_goes_to_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"sentence number {i} äöü" for i in range(3000)]
    file = write(tmp_path / "x.txt.gz", "\n".join(lines))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store, "IN_MEMORY", 1000)
    corpus = load_corpus(str(file))
    assert list(corpus) == lines
    assert list((tmp_path / "cache").iterdir()) == []


def test_memory_is_the_places_of_the_texts_not_the_texts(tmp_path: Path) -> None:
    count = 50_000
    rng = random.Random(0)
    content = "\n".join(f"{i} " + "word " * rng.randint(5, 40) for i in range(count))
    file = write(tmp_path / "x.txt", content)
    del content
    tracemalloc.start()
    try:
        corpus = load_corpus(str(file))
        order = np.random.default_rng(0).permutation(count)
        assert all(corpus[i].startswith(f"{i} ") for i in order[:2000].tolist())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60 * count  # 16 bytes a sentence and the slack of a growing array; as str objects it would be 250


# --- wrong input


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.txt", "", "is empty"),
        ("x.txt", "\n \n\r\n", "is empty"),
        ("x.txt.gz", "", "is empty"),
        ("x.csv", "", "is empty"),
        ("x.csv", "text\n", "is empty"),
        ("x.jsonl", "", "is empty"),
        ("x.txt", "only one\n\n", "holds only one"),
        ("x.jsonl", '{"text": "a"}\n{"text": ""}\n{"text": null}', "holds only one"),
    ],
)
def test_fewer_than_two_texts(tmp_path: Path, name: str, content: str, problem: str) -> None:
    file = write(tmp_path / name, content)
    message = error(file)
    assert str(file) in message
    assert problem in message


@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz", "x.csv", "x.tsv", "x.jsonl"])
def test_not_utf8_names_file_and_line(tmp_path: Path, name: str) -> None:
    first = b'{"text": "a"}\n' if name == "x.jsonl" else b"text\n"
    file = write(tmp_path / name, first + b"caf\xe9\n")
    assert error(file).startswith(f"{file}, line 2: not UTF-8 (byte 0xe9 at position 4)")


def test_a_column_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    table = as_csv(tmp_path / "x.csv", ["sent0", "sent1"], [["a", "b"], ["c", "d"]])
    assert 'no column "text"; its columns are: sent0, sent1' in error(table)
    message = error(table, kind="pairs", columns={"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"})
    assert 'no column "hard_neg"' in message
    lines = write(tmp_path / "x.jsonl", '{"text": "a"}\n{"txt": "b"}\n')
    assert "line 2" in error(lines)
    assert "its columns are: txt" in error(lines)
    assert 'unknown key "anchr" (did you mean "anchor"?)' in error(table, kind="pairs", columns={"anchr": "sent0"})
    assert 'has only "text"' in error(write(tmp_path / "x.txt", "a\nb"), kind="pairs")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.csv", 'text\n"never closed\nb\nc\n', "line 2: not readable as CSV (unexpected end of data in line 4"),
        ("x.csv", 'text,id\n"a\nb",1\n"c\n\nd,2\n"e",3\n', "line 4: not readable as CSV (',' expected"),
        ("x.txt", "one\ntwo\rthree\n", "line 2: a carriage return at position 4"),
        ("x.tsv", "text\tid\none\rtwo\t1\n", "line 2: a carriage return at position 4"),
        ("x.txt", "one\ntw\0o\n", "line 2: UTF-16 or not a text (NUL bytes)"),
        ("x.txt.gz", "one\ntwo\n".encode("utf-16"), "line 1: UTF-16 or not a text"),
        ("x.csv", "text,id\na,1\nb, c,2\n", "line 3: 3 values, but the header has 2 columns"),
        ("x.csv", "text,text\na,b\n", "is there 2 times"),
        ("x.tsv", "text\tid\na\n", "line 2: 1 values, but the header has 2 columns"),
        ("x.jsonl", '{"text": "a"}\n{"text": \n', "line 2: not JSON"),
        ("x.jsonl", '["a"]\n', "line 1: expected a JSON object"),
        ("x.jsonl", '{"text": 3}\n', 'line 1: column "text" is not a text but 3'),
        ("x.jsonl", '{"text": "half \\ud83d"}\n', "half of a surrogate pair"),
        ("x.parquet", "", "unknown kind of file"),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, content: str | bytes, problem: str) -> None:
    file = write(tmp_path / name, content)
    message = error(file)
    assert message.startswith(str(file))
    assert problem in message


def test_long_documents_are_no_damage(tmp_path: Path) -> None:
    long = "word " * 100_000
    file = as_csv(tmp_path / "x.csv", ["text"], [[long], ["short"]])
    before = csv.field_size_limit()
    assert load_corpus(str(file), kind="documents")[0] == long.strip()
    assert csv.field_size_limit() == before


def test_a_truncated_gzip_file(tmp_path: Path) -> None:
    file = write(tmp_path / "x.txt.gz", "\n".join(f"sentence {i}" for i in range(1000)))
    file.write_bytes(file.read_bytes()[:-20])
    assert "damaged or truncated gzip file" in error(file)
    file.write_bytes(b"a plain text\nin disguise\n")
    assert "damaged or truncated gzip file" in error(file)


def test_unknown_names(tmp_path: Path) -> None:
    assert '(did you mean "embedded:sentences"?)' in error("embedded:sentence")
    assert '(did you mean "wiki1m"?)' in error("wiki1n")
    assert "no such file" in error(tmp_path / "none.txt")
    assert "is a folder" in error(tmp_path)
    assert "hf://datasets/ORG/NAME/FILE" in error("hf://datasets/name")
    assert "hf://datasets/ORG/NAME/FILE" in error("hf://org/name/file.txt")
    assert "holds documents, not sentences" in error("embedded:documents")
    assert "limit = 1" in error("embedded:sentences", limit=1)
    assert '(did you mean "pairs"?)' in error("embedded:pairs", kind="pair")


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "x.txt.gz", "\n".join(f"sentence {i}" for i in range(1000)))
    cache = tmp_path / "cache"
    monkeypatch.setenv("HARNESS_CACHE", str(cache))
    monkeypatch.setattr(store, "IN_MEMORY", 1000)

    def full(**kwargs: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store.tempfile, "TemporaryFile", full)
    message = error(file)
    assert message.startswith(f"{cache}: no space left on the disk")
    assert list(cache.iterdir()) == []
