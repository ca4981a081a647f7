"""Vectors kept on disk: nothing encoded twice, nothing wrong ever returned, whatever happens to the
files.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from safetensors.numpy import save

from harness.evaluation.vector_cache import (
    EmbeddingCache,
    StoredVectors,
    folder_hash,
    read_segment,
    text_key,
    write_segment,
)
from harness.tasks.vectors import encode_once
from tests.support.forks import start_fork

Array = np.ndarray[Any, Any]
TEXTS = [f"sentence {i}" for i in range(50)] + ["", "\ud800", "🙂"]


class Encoder:
    """Vectors that depend on the text alone; counts what it is asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, texts: list[str]) -> Array:
        self.asked += len(texts)
        return np.array(
            [[len(t), hash(t) % 997, i % 1 + 0.25] for i, t in enumerate(texts)], dtype=np.float32
        )


def opened(folder: Path, model: str = "model", limit: int = 1 << 20) -> StoredVectors:
    return EmbeddingCache(folder, limit=limit).of(
        model, "mean", code="harness.errors", device="cpu"
    )


def segments(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.safetensors"))


def test_a_second_process_encodes_only_what_is_new(tmp_path: Path) -> None:
    encode = Encoder()
    first = encode_once(encode, TEXTS, cache=opened(tmp_path))
    assert (encode.asked, first.fresh) == (len(TEXTS), len(TEXTS))
    again = encode_once(encode, TEXTS[::-1], cache=opened(tmp_path))
    assert (encode.asked, again.fresh, again.seconds) == (len(TEXTS), 0, 0.0)
    np.testing.assert_array_equal(again(TEXTS), first(TEXTS))
    more = encode_once(encode, ["new", *TEXTS, "newer"], cache=opened(tmp_path))
    assert more.fresh == 2
    np.testing.assert_array_equal(more([*TEXTS, "newer"]), encode([*TEXTS, "newer"]))


def test_many_vectors_are_stored_a_part_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.evaluation.vector_cache._SEGMENT", 20)
    copied: list[int] = []
    monkeypatch.setattr(
        "harness.evaluation.vector_cache.write_segment",
        lambda file, model, keys, matrix: (
            copied.append(len(matrix)) or write_segment(file, model, keys, matrix)
        ),
    )
    first = encode_once(Encoder(), TEXTS, cache=opened(tmp_path))
    assert copied == [20, 20, 13]
    again = opened(tmp_path)
    assert len(again) == len(TEXTS)
    np.testing.assert_array_equal(encode_once(Encoder(), TEXTS, cache=again)(TEXTS), first(TEXTS))


def test_another_model_pooling_or_device_shares_nothing(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path)
    encode_once(Encoder(), TEXTS, cache=cache.of("m", "mean", code="harness.errors", device="cpu"))
    for model, pooling, device in (
        ("n", "mean", "cpu"),
        ("m", "cls", "cpu"),
        ("m", "mean", "cuda"),
    ):
        assert TEXTS[0] not in cache.of(model, pooling, code="harness.errors", device=device)


def test_a_saved_model_is_known_by_its_content(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "1_Pooling").mkdir(parents=True)
        (tmp_path / name / "1_Pooling" / "config.json").write_text("{}")
        (tmp_path / name / "model.safetensors").write_bytes(b"weights")
        (tmp_path / name / "README.md").write_text(name)
    assert folder_hash(tmp_path / "a") == folder_hash(tmp_path / "b")
    (tmp_path / "b" / "model.safetensors").write_bytes(b"Weights")
    assert folder_hash(tmp_path / "a") != folder_hash(tmp_path / "b")


@pytest.mark.parametrize(
    "damage", ["cut in half", "one bit", "header", "empty", "a folder", "another's"]
)
def test_a_damaged_file_is_encoded_again_with_a_warning(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    sound = encode_once(Encoder(), TEXTS, cache=opened(tmp_path))
    encode_once(Encoder(), ["kept"], cache=opened(tmp_path))
    file = max(segments(tmp_path), key=lambda f: f.stat().st_size)
    raw = file.read_bytes()
    if damage == "a folder":
        file.unlink()
        file.mkdir()
    else:
        flipped = bytes([raw[-5] ^ 4])
        file.write_bytes(
            {
                "cut in half": raw[: len(raw) // 2],
                "one bit": raw[:-5] + flipped + raw[-4:],
                "header": b"X" + raw[1:],
                "empty": b"",
                "another's": save(
                    {"keys": np.zeros((1, 16), dtype=np.uint8), "vectors": np.ones((1, 3))}
                ),
            }[damage]
        )
    encode = Encoder()
    again = encode_once(encode, [*TEXTS, "kept"], cache=opened(tmp_path))
    assert encode.asked == len(TEXTS)
    np.testing.assert_array_equal(again(TEXTS), sound(TEXTS))
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert f"{file.name} is damaged" in caplog.text
    assert encode_once(encode, TEXTS, cache=opened(tmp_path)).fresh == 0  # made whole again


def test_the_vectors_of_another_model_are_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = opened(tmp_path, "one"), opened(tmp_path, "two")
    encode_once(Encoder(), TEXTS, cache=one)
    encode_once(Encoder(), TEXTS, cache=two)
    (file,), (other,) = one.folder.glob("*.safetensors"), two.folder.glob("*.safetensors")
    file.write_bytes(other.read_bytes())
    assert len(opened(tmp_path, "one")) == 0
    assert "another model" in caplog.text


def test_the_model_unused_for_longest_makes_room(tmp_path: Path) -> None:
    # 53 rows of 16 + 12 bytes and a head are some 1,700 bytes: two models fit into 3,500.
    for age, model in enumerate(("old", "older", "new")):
        store = opened(tmp_path, model, limit=3500)
        encode_once(Encoder(), TEXTS, cache=store)
        if model != "new":
            os.utime(store.folder, (1000 - age, 1000 - age))
    assert TEXTS[0] not in opened(tmp_path, "older")
    assert TEXTS[0] in opened(tmp_path, "old")
    assert TEXTS[0] in opened(tmp_path, "new")
    assert sum(f.stat().st_size for f in segments(tmp_path)) <= 3500


def test_vectors_beyond_the_limit_are_used_but_not_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(tmp_path, limit=1000)
    table = encode_once(Encoder(), TEXTS, cache=store)
    np.testing.assert_array_equal(table(TEXTS), Encoder()(TEXTS))
    assert "beyond its limit" in caplog.text
    assert not segments(tmp_path)


def test_a_full_disk_costs_the_cache_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    store, encode = opened(tmp_path), Encoder()
    for texts in (TEXTS, [*TEXTS, "one more"]):
        np.testing.assert_array_equal(
            encode_once(encode, texts, cache=store)(texts), Encoder()(texts)
        )
    assert len(caplog.records) == 1  # said once
    assert "No space left on device" in caplog.text
    assert [f.name for f in tmp_path.rglob("*") if f.is_file()] == [".lock"]  # no half file stays


def test_a_folder_that_cannot_be_made_costs_the_cache_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    table = encode_once(Encoder(), TEXTS, cache=opened(tmp_path / "file" / "cache"))
    assert table.fresh == len(TEXTS)
    assert "cannot be" in caplog.text


@pytest.mark.parametrize("shape", [(2, 0), (3, 1), (7, 768)])
def test_a_segment_gives_back_what_was_written(tmp_path: Path, shape: tuple[int, int]) -> None:
    keys = [text_key(str(i)) for i in range(shape[0])]
    rows = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    write_segment(tmp_path / "a.safetensors", "model", keys, rows)
    again, matrix = read_segment(tmp_path / "a.safetensors", "model")
    assert again == keys
    np.testing.assert_array_equal(matrix, rows)
    assert not matrix.flags.writeable


@pytest.mark.skipif(
    sys.platform != "linux", reason="where memory is mapped is told apart on Linux only"
)
def test_rows_are_mapped_and_take_no_memory_of_their_own(tmp_path: Path) -> None:
    def own() -> int:
        memory = psutil.Process().memory_info()
        return int(memory.rss - memory.shared)

    rows = np.ones((20_000, 768), dtype=np.float32)  # 61 MB
    write_segment(
        tmp_path / "a.safetensors", "model", [text_key(str(i)) for i in range(len(rows))], rows
    )
    before = own()
    _, matrix = read_segment(tmp_path / "a.safetensors", "model")
    assert own() - before < 20e6
    assert matrix.sum() == rows.size


def fill(folder: Path) -> None:
    """Store vectors of 400 sentences, twenty at a time."""
    store = opened(folder)
    for start in range(0, 400, 20):
        store.update([(f"sentence {i}", np.full(64, float(i))) for i in range(start, start + 20)])


def test_two_processes_fill_one_cache(tmp_path: Path) -> None:
    running = [start_fork(fill, tmp_path) for _ in range(2)]
    for process in running:
        process.join(120)
    assert [process.exitcode for process in running] == [0, 0]
    store = opened(tmp_path)
    assert len(store) == 400
    for i in range(0, 400, 7):
        np.testing.assert_array_equal(store[f"sentence {i}"], np.full(64, i, dtype=np.float32))
