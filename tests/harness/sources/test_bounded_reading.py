"""Files made to exhaust the memory, or to be waited for, are refused early and in bounded memory."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.sources import load_corpus
from harness.sources.corpus import rows
from harness.sources.senteval.similarity import STS_SUBSETS, read_year
from methods.parts.word_vectors import read_word_vectors

READERS = {
    ".txt": b"a sentence\n%s",
    ".txt.gz": b"a sentence\n%s",
    ".csv": b'text\na sentence\n"%s',
    ".csv.gz": b"text\na sentence\n%s",
    ".tsv": b"text\na sentence\n%s",
    ".jsonl": b'{"text": "a sentence"}\n{"text": "%s"}',
}


@pytest.mark.parametrize("ending", READERS)
def test_a_line_without_an_end_is_told(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LONGEST", 4096)
    file = tmp_path / f"corpus{ending}"
    content = READERS[ending] % (b"a" * 10_000)
    file.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    with pytest.raises(InputError, match=r"line [23]: longer than"):
        load_corpus(str(file))


def test_a_quote_that_is_never_closed_is_not_gathered_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "LONGEST", 4096)
    file = tmp_path / "corpus.csv"
    file.write_text('text\n"' + "a line of the value\n" * 1000)
    with pytest.raises(InputError, match="field larger than field limit"):
        load_corpus(str(file))


def test_a_gzip_bomb_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    file = tmp_path / "bomb.txt.gz"
    with gzip.open(file, "wb", compresslevel=1) as packed:
        for _ in range(1000):
            packed.write(b"a" * 2**20)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_DATA, (600 * 2**20,) * 2)\n"
        "from harness.errors import InputError\nfrom harness.sources import load_corpus\n"
        "try: load_corpus(sys.argv[1])\n"
        "except InputError as error: print(error)"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=100)
    assert "unpacks to more than 40 times its size" in done.stdout


def test_a_gzip_bomb_of_many_short_lines_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LEAST_UNPACKED", 2**20)
    file = tmp_path / "bomb.txt.gz"
    text = b"".join(b"%d %d\n" % (n, n * n) for n in range(5_000))
    for content in (b"a\n" * 2**20, b"\n" * 2**22, text + b"\n" * 2**22):  # also where it begins as a text does
        file.write_bytes(gzip.compress(content, compresslevel=1))
        with pytest.raises(InputError, match="unpacks to more than 40 times its size"):
            load_corpus(str(file))
    file.write_bytes(gzip.compress(b"a\n" * 2**18))  # as monotonous, and small
    assert len(load_corpus(str(file))) == 2**18


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    for read in (load_corpus, read_word_vectors):
        with pytest.raises(InputError, match="no ordinary file"):
            read(str(pipe))


def test_a_byte_order_mark_is_left_out_of_a_mapped_file(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_bytes(b"\xef\xbb\xbf  first  \nsecond\n\nthird")
    assert list(load_corpus(str(file))) == ["first", "second", "third"]


def test_a_pipe_among_the_files_of_senteval_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "STS" / "STS12-en-test"
    folder.mkdir(parents=True)
    os.mkfifo(folder / f"STS.input.{STS_SUBSETS['STS12'][0]}.txt")
    with pytest.raises(InputError, match="no ordinary file"):
        list(read_year(tmp_path, "STS12"))
