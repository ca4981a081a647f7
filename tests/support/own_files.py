"""Small files of a user's, made of the embedded data."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.sources import load_sts
from harness.sources.embedded import embedded_rows

NATURAL = "Embedded-STS-natural"


def write_table(file: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write a CSV file (or TSV, by its name)."""
    separator = "\t" if file.suffix == ".tsv" else ","
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=separator)
        writer.writerow(header)
        writer.writerows(rows)
    return file


def embedded_pairs(split: str = "test") -> list[tuple[str, str, float]]:
    """Return the natural embedded pairs in the order of their task."""
    return [
        (left, right, gold)
        for subset in load_sts(NATURAL, source="embedded", split=split).subsets
        for left, right, gold in zip(
            subset.sentences1, subset.sentences2, subset.gold.tolist(), strict=True
        )
    ]


def pairs_file(file: Path, count: int | None = None) -> Path:
    """Write scored pairs: the first `count` of the embedded ones."""
    return write_table(file, ("sentence1", "sentence2", "score"), embedded_pairs()[:count])


def texts_file(file: Path, count: int) -> Path:
    """Write texts with their topics."""
    rows = embedded_rows("sentences", ("a",))
    step = max(1, len(rows) // count)
    chosen = [(row["text"], row["topic"]) for row in rows[::step][:count]]
    return write_table(file, ("text", "label"), chosen)


def beir_folder(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write rows of the embedded retrieval data as BEIR's files."""
    (folder / "qrels").mkdir(parents=True)
    passages = [{"_id": f"p-{r['id']}", "title": "", "text": r["passage"]} for r in rows]
    queries = [{"_id": f"q-{r['id']}", "text": r["query"]} for r in rows]
    for name, lines in (("corpus", passages), ("queries", queries)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    grades = [(f"q-{r['id']}", f"p-{r['id']}", 1) for r in rows]
    write_table(folder / "qrels" / "test.tsv", ("query-id", "corpus-id", "score"), grades)
    return folder
