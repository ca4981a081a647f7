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
    """Counts of hashed words, (n, 97), fillers with little weight: enough to read every label of
    these files.
    """
    counts = np.zeros((len(texts), 97), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.split():
            counts[row, zlib.crc32(word.encode()) % 97] += 0.25 if word[0] in "wx" else 1
    return counts


def noise(texts: list[str]) -> Array:
    """A random vector a text: knows nothing about it."""
    return np.stack(
        [np.random.default_rng(zlib.crc32(t.encode())).standard_normal(16) for t in texts]
    ).astype(np.float32)


def sentence(rng: np.random.Generator, *marks: str, length: int = 0) -> str:
    """Filler words, as many as make `length` (or 3 to 8) with the given marks among them."""
    n = length or int(rng.integers(3, 9))
    filler = [f"w{i}" for i in rng.integers(0, 40, max(0, n - len(marks)))]
    return " ".join(rng.permutation([*filler, *marks]))


def downstream(root: Path, n: int = 60) -> Path:
    """All ten classification sets, SICK and STS-B, each with about n examples a part."""
    rng = np.random.default_rng(7)
    folder = root / "downstream"

    def write(name: str, lines: list[str], encoding: str = "utf-8") -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes("".join(line + "\n" for line in lines).encode(encoding))

    pairs = {
        "MR/rt-polarity": ("pos", "neg"),
        "CR/custrev": ("pos", "neg"),
        "MPQA/mpqa": ("pos", "neg"),
        "SUBJ/subj": ("objective", "subjective"),
    }
    for stem, (one, zero) in pairs.items():
        write(f"{stem}.{one}", [sentence(rng, "good") for _ in range(n)])
        write(f"{stem}.{zero}", [sentence(rng, "bad") for _ in range(n)])
    for part in ("train", "dev", "test"):
        labels = rng.integers(0, 2, n)
        write(f"SST/binary/sentiment-{part}", [f"{sentence(rng, f'mark{y}')}\t{y}" for y in labels])
        labels = np.concatenate([np.arange(5), rng.integers(0, 5, n)])
        write(f"SST/fine/sentiment-{part}", [f"{y} {sentence(rng, f'mark{y}')}" for y in labels])
    for file in ("train_5500", "TREC_10"):
        labels = np.tile(np.arange(6), n // 5)
        lines = [f"{TREC[y]}:sub {sentence(rng, TREC[y])} caf\xe9" for y in labels]
        write(f"TREC/{file}.label", lines, "latin-1")

    def same(y: int) -> tuple[str, str]:
        a = sentence(rng)
        return a, a if y else sentence(rng)

    for part in ("train", "test"):
        rows = [f"{y}\t1\t2\t" + "\t".join(same(int(y))) for y in rng.integers(0, 2, n)]
        write(
            f"MRPC/msr_paraphrase_{part}.txt",
            ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", *rows],
        )
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    judgments = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
    for file in ("SICK_train", "SICK_trial", "SICK_test_annotated"):
        rows = []
        for i in range(n):
            y = i % 3
            a, b = sentence(rng, f"left{y}"), sentence(rng, f"right{y}")
            rows.append(f"{i}\t{a}\t{b}\t{1.5 + y * 1.5}\t{judgments[y]}")
        write(f"SICK/{file}.txt", [header, *rows])
    for part in ("train", "dev", "test"):
        rows = []
        for i in range(n):
            y = i % 6
            a = sentence(rng)
            b = " ".join([*a.split()[: y + 1], *(f"x{j}" for j in rng.integers(0, 40, 5 - y))])
            rows.append(f"genre\tfile\t2012\t{i}\t{y:.3f}\t{a}\t{b}")
        write(f"STS/STSBenchmark/sts-{part}.csv", rows)
    for part in ("train", "dev", "test"):
        names = [("entailment", "neutral", "contradiction")[i % 3] for i in range(n)]
        write(f"SNLI/labels.{part}", names)
        write(f"SNLI/s1.{part}", [sentence(rng, f"a{name}") for name in names])
        write(f"SNLI/s2.{part}", [sentence(rng, f"b{name}") for name in names])
    return root


def probing(root: Path, file: str, rows: dict[str, list[tuple[str, str]]]) -> Path:
    """One probing file of (label, sentence) by tr, va, te."""
    folder = root / "probing"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{part}\t{label}\t{text}\n" for part, some in rows.items() for label, text in some]
    (folder / file).write_text("".join(lines), encoding="utf-8")
    return root
