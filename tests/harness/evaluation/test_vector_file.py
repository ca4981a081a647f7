"""Vectors of many texts in a file: some of them in memory at a time, all of them or nothing on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness
from harness.encoder import Encoder
from harness.errors import InputError
from harness.evaluation import vector_file
from harness.evaluation.vector_file import write_vectors
from harness.sources import load_corpus


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_file, "AT_ONCE", 4)


def lengths(texts: list[str]) -> Any:
    assert len(texts) <= 4
    return np.array([[len(text), 1] for text in texts], dtype=np.float64).reshape(-1, 2)


def numbered(count: int) -> Iterator[str]:
    return ("x" * row for row in range(count))


@pytest.mark.parametrize("count", [0, 1, 4, 11, 1000])
def test_rows_stand_in_the_order_of_the_texts_whatever_their_number(tmp_path: Path, count: int) -> None:
    rows = write_vectors(lengths, numbered(count), tmp_path / "deep" / "v.npy")
    assert (rows.shape, rows.dtype) == ((count, 2), np.float32)
    assert rows[:, 0].tolist() == list(range(count))
    assert np.array_equal(np.load(tmp_path / "deep" / "v.npy"), rows)


def test_what_was_there_stays_until_all_is_made_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "v.npy"
    write_vectors(lengths, numbered(3), out)

    def broken() -> Iterator[str]:
        yield from numbered(9)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_vectors(lengths, broken(), out)
    assert len(np.load(out)) == 3
    assert os.listdir(tmp_path) == ["v.npy"]
    (tmp_path / ".v.npy.1.00000000").touch()  # of a process that was killed
    write_vectors(lengths, numbered(5), out)
    assert os.listdir(tmp_path) == ["v.npy"]


def test_bad_places_are_told_before_anything_is_encoded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ends with"):
        write_vectors(lengths, numbered(3), tmp_path / "v.bin")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        write_vectors(lengths, numbered(3), tmp_path / "file" / "v.npy")


def test_a_corpus_by_its_name_has_the_vectors_of_encode(tmp_path: Path) -> None:
    out = tmp_path / "v.npy"
    assert harness.encode("embedded:mini-bert", "embedded:sentences", limit=10, out=out, device="cpu").shape == (
        10,
        256,
    )
    sentences = load_corpus("embedded:sentences", limit=10)
    encoder = Encoder.from_pretrained("embedded:mini-bert")
    assert np.allclose(np.load(out), encoder.encode(sentences), atol=1e-5)
    rows = harness.encode(encoder, (text for text in sentences), out=out, normalize=True)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
