"""Small folders in SentEval's format whose labels can be read off the words, and encoders that can
and cannot.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
TREC = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


def words(texts: list[str]) -> Array:
    """Count hashed words, (n, 97), fillers with little weight: enough to read every label of
    these files.
    """
    counts = np.zeros((len(texts), 97), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.split():
            counts[row, zlib.crc32(word.encode()) % 97] += 0.25 if word[0] in "wx" else 1
    return counts


def noise(texts: list[str]) -> Array:
    """Draw a random vector a text, which knows nothing about it."""
    rows = []
    for text in texts:
        rng = np.random.default_rng(zlib.crc32(text.encode()))
        rows.append(rng.standard_normal(16))
    return np.stack(rows).astype(np.float32)


def sentence(rng: np.random.Generator, *marks: str, length: int = 0) -> str:
    """Make a sentence of filler words, as many as make `length` (or 3 to 8) with the given marks among them."""
    n = length or int(rng.integers(3, 9))
    filler = [f"w{i}" for i in rng.integers(0, 40, max(0, n - len(marks)))]
    return " ".join(rng.permutation([*filler, *marks]))


def downstream(root: Path, n: int = 60) -> Path:
    """Write all ten classification sets, SICK and STS-B, each with about n examples a part."""
    rng = np.random.default_rng(7)
    folder = root / "downstream"
    _write_binary(folder, rng, n)
    _write_sst(folder, rng, n)
    _write_trec(folder, rng, n)
    _write_mrpc(folder, rng, n)
    _write_sick(folder, rng, n)
    _write_sts_benchmark(folder, rng, n)
    _write_snli(folder, rng, n)
    return root


def _write(file: Path, lines: list[str], encoding: str = "utf-8") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes("".join(line + "\n" for line in lines).encode(encoding))


def _write_binary(folder: Path, rng: np.random.Generator, n: int) -> None:
    pairs = {
        "MR/rt-polarity": ("pos", "neg"),
        "CR/custrev": ("pos", "neg"),
        "MPQA/mpqa": ("pos", "neg"),
        "SUBJ/subj": ("objective", "subjective"),
    }
    for stem, (one, zero) in pairs.items():
        _write(folder / f"{stem}.{one}", [sentence(rng, "good") for _ in range(n)])
        _write(folder / f"{stem}.{zero}", [sentence(rng, "bad") for _ in range(n)])


def _write_sst(folder: Path, rng: np.random.Generator, n: int) -> None:
    for part in ("train", "dev", "test"):
        labels = rng.integers(0, 2, n)
        lines = [f"{sentence(rng, f'mark{y}')}\t{y}" for y in labels]
        _write(folder / f"SST/binary/sentiment-{part}", lines)

        labels = np.concatenate([np.arange(5), rng.integers(0, 5, n)])
        lines = [f"{y} {sentence(rng, f'mark{y}')}" for y in labels]
        _write(folder / f"SST/fine/sentiment-{part}", lines)


def _write_trec(folder: Path, rng: np.random.Generator, n: int) -> None:
    for file in ("train_5500", "TREC_10"):
        labels = np.tile(np.arange(6), n // 5)
        lines = [f"{TREC[y]}:sub {sentence(rng, TREC[y])} caf\xe9" for y in labels]
        _write(folder / f"TREC/{file}.label", lines, "latin-1")


def _write_mrpc(folder: Path, rng: np.random.Generator, n: int) -> None:
    for part in ("train", "test"):
        lines = ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
        for y in rng.integers(0, 2, n):
            first = sentence(rng)
            second = first if y else sentence(rng)
            lines.append(f"{y}\t1\t2\t{first}\t{second}")
        _write(folder / f"MRPC/msr_paraphrase_{part}.txt", lines)


def _write_sick(folder: Path, rng: np.random.Generator, n: int) -> None:
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    judgments = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
    for file in ("SICK_train", "SICK_trial", "SICK_test_annotated"):
        rows = []
        for i in range(n):
            y = i % 3
            a = sentence(rng, f"left{y}")
            b = sentence(rng, f"right{y}")
            rows.append(f"{i}\t{a}\t{b}\t{1.5 + y * 1.5}\t{judgments[y]}")
        _write(folder / f"SICK/{file}.txt", [header, *rows])


def _write_sts_benchmark(folder: Path, rng: np.random.Generator, n: int) -> None:
    for part in ("train", "dev", "test"):
        rows = []
        for i in range(n):
            y = i % 6
            a = sentence(rng)
            other_words = [f"x{j}" for j in rng.integers(0, 40, 5 - y)]
            b = " ".join([*a.split()[: y + 1], *other_words])
            rows.append(f"genre\tfile\t2012\t{i}\t{y:.3f}\t{a}\t{b}")
        _write(folder / f"STS/STSBenchmark/sts-{part}.csv", rows)


def _write_snli(folder: Path, rng: np.random.Generator, n: int) -> None:
    for part in ("train", "dev", "test"):
        names = [("entailment", "neutral", "contradiction")[i % 3] for i in range(n)]
        _write(folder / f"SNLI/labels.{part}", names)
        _write(folder / f"SNLI/s1.{part}", [sentence(rng, f"a{name}") for name in names])
        _write(folder / f"SNLI/s2.{part}", [sentence(rng, f"b{name}") for name in names])


def probing(root: Path, file: str, rows: dict[str, list[tuple[str, str]]]) -> Path:
    """Write one probing file of (label, sentence) by tr, va, te."""
    folder = root / "probing"
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for part, examples in rows.items():
        lines += [f"{part}\t{label}\t{text}\n" for label, text in examples]
    (folder / file).write_text("".join(lines), encoding="utf-8")
    return root
