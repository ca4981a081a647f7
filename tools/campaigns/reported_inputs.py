"""Points on what users bring that nobody foresaw: tables as tasks (own-tasks), text (own-texts),
folders (own-folders), scores (own-scores) and functions as models (own-models); and on odd
surroundings of a process (own-surroundings). Each is right by a computation of this file, or
refused in one line.
"""

from __future__ import annotations

import gzip
import inspect
import itertools
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from tools.campaigns import forked
from tools.campaigns.reported import Finding, point
from tools.campaigns.reported_faults import is_one_line
from tools.campaigns.reported_scores import run_command, write

SUBJECTS = ("A dog", "A child", "The old man", "My sister", "Rain", "The committee", "A red car")
VERBS = ("runs home", "sleeps", "falls on roofs", "was late again", "sings a song", "costs little")
Row = tuple[Any, ...]
PAIRS: list[Row] = [
    (
        f"{SUBJECTS[n % 7]} {VERBS[n % 6]}.",
        f"{SUBJECTS[n % 5]} {VERBS[(n + 1 + n // 9) % 6]}.",
        n * 7 % 11,
    )
    for n in range(40)
]
NAMES = ["sentence1", "sentence2", "score"]


def letters(texts: Sequence[str]) -> np.ndarray:
    """Return counts of letters (n, 26)."""
    counts = [[text.lower().count(chr(97 + place)) + 0.1 for place in range(26)] for text in texts]
    return np.array(counts, np.float64)


MODEL = f"""
from __future__ import annotations

import numpy as np

{inspect.getsource(letters)}"""


def cosines(pairs: Sequence[Row]) -> np.ndarray:
    one = letters([str(pair[0]).strip() for pair in pairs])
    other = letters([str(pair[1]).strip() for pair in pairs])
    products = (one * other).sum(1)
    found: np.ndarray = products / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    return found.round(10)  # equal pairs are ties


def correlation(pairs: Sequence[Row]) -> float:
    """Return what SciPy gives for cosines and scores."""
    return float(spearmanr(cosines(pairs), [float(pair[2]) for pair in pairs]).statistic)


def csv_of(pairs: Sequence[Row], names: Sequence[str] = NAMES, **options: Any) -> str:
    return str(pd.DataFrame(pairs, columns=list(names)).to_csv(index=False, **options))


def jsonl_of(pairs: Sequence[Row], names: Sequence[str] = NAMES) -> str:
    rows = [dict(zip(names, pair, strict=True)) for pair in pairs]
    return "".join(json.dumps(row) + "\n" for row in rows)


def evaluate(own: Path, suite: str, seconds: float = 120) -> forked.Ended:
    """Score the model on a task, in the folder of a case."""
    write(own, "own_letters.py", MODEL)
    words = ["evaluate", "own_letters:letters", "--suite", suite, "--json", "--quiet", "--no-cache"]
    return forked.run(words, seconds=seconds, before=lambda: os.chdir(own))


def judge(name: str, ended: forked.Ended, expected: float | str, file: str) -> Finding:
    """Find whether a command gave a value, or one line with these words that names the file."""
    if fault := ended.fault((0, 1, 2)):
        return Finding(name, str(expected), fault, ok=False)
    if isinstance(expected, str):
        seen = f"exit {ended.code}: {(ended.err or ended.out).strip()[:300]}"
        ok = is_one_line(ended) and expected in ended.err and file in ended.err
        return Finding(name, f"one line: {expected}", seen, ok)
    if ended.code:
        return Finding(name, f"{expected:.6f}", f"exit {ended.code}: {ended.err[-300:]}", ok=False)
    scores = json.loads(ended.out)["scores"]
    near = [one for one in scores if abs(one["value"] - expected) < 1e-5]
    return Finding(name, f"{expected:.6f}", f"{[one['value'] for one in scores]}", bool(near))


# ----------------------------------------------------------------------------- tables as tasks


def _parquet(file: Path, **columns: Any) -> None:
    frame = pd.DataFrame(PAIRS, columns=NAMES)
    frame.assign(**{name: make(frame) for name, make in columns.items()}).to_parquet(file)


def _beir(folder: Path, grades: Sequence[Row], more: Mapping[str, str]) -> None:
    texts = [pair[0] for pair in PAIRS[:12]]
    corpus = [{"_id": f"p{n}", "text": text} for n, text in enumerate(texts)]
    queries = [{"_id": f"q{n}", "text": PAIRS[n][1]} for n in range(4)]
    write(folder, "corpus.jsonl", "".join(json.dumps(one) + "\n" for one in corpus))
    write(folder, "queries.jsonl", "".join(json.dumps(one) + "\n" for one in queries))
    lines = [("query-id", "corpus-id", "score"), *grades]
    write(folder, "qrels/test.tsv", "".join("\t".join(map(str, one)) + "\n" for one in lines))
    for name, text in more.items():
        write(folder, name, text)


Make = str | bytes | Callable[[Path], Any]
TRUTH = correlation(PAIRS)
TWICE = [*PAIRS, *PAIRS]
HUGE = [(a, b, 10**30 + 10**20 * score) for a, b, score in PAIRS]
SIGNED = [(a, b, "-0.0" if score < 4 else "0" if score < 6 else score) for a, b, score in PAIRS]
TASKS: dict[str, tuple[str, Make, float | str]] = {
    "columns nobody knows": (
        "a.csv",
        csv_of([(*p, "\U0001f600", 1) for p in PAIRS], [*NAMES, "\U0001f600 x", "note (old)"]),
        TRUTH,
    ),
    "columns in another order": (
        "a.csv",
        csv_of([(s, b, a) for a, b, s in PAIRS], ["score", "sentence2", "sentence1"]),
        TRUTH,
    ),
    "rows backwards": ("a.csv", csv_of(PAIRS[::-1]), TRUTH),
    "each row twice": ("a.csv", csv_of(TWICE), correlation(TWICE)),
    "one row": ("a.csv", csv_of(PAIRS[:1]), "rank nothing"),
    "two rows": ("a.csv", csv_of(PAIRS[:2]), correlation(PAIRS[:2])),
    "scores beyond whole numbers": ("a.csv", csv_of(HUGE), TRUTH),
    "scores that differ in the 19th digit": (
        "a.jsonl",
        jsonl_of([(a, b, 10**18 + s) for a, b, s in PAIRS]),
        "rank nothing",
    ),
    "two zeros": (
        "a.csv",
        csv_of(SIGNED),
        correlation([(a, b, float(s)) for a, b, s in SIGNED]),
    ),
    "a score that is no number": ("a.csv", csv_of([*PAIRS, ("a", "b", "NaN")]), "line 42"),
    "a score that is true": (
        "a.parquet",
        lambda file: _parquet(file, score=lambda frame: frame["score"] > 5),
        correlation([(a, b, s > 5) for a, b, s in PAIRS]),
    ),
    "scores of half precision": (
        "a.parquet",
        lambda file: _parquet(file, score=lambda frame: frame["score"].astype("float32")),
        TRUTH,
    ),
    "categories": (
        "a.parquet",
        lambda file: _parquet(file, sentence1=lambda frame: frame["sentence1"].astype("category")),
        TRUTH,
    ),
    "a table beside": (
        "a.parquet",
        lambda file: _parquet(file, more=lambda frame: [{"x": [{"y": 2}]}] * len(frame)),
        TRUTH,
    ),
    "lists in place of texts": (
        "a.parquet",
        lambda file: _parquet(file, sentence1=lambda frame: frame["sentence1"].str.split()),
        "sentence1",
    ),
    "bytes in place of texts": (
        "a.parquet",
        lambda file: _parquet(file, sentence1=lambda frame: frame["sentence1"].str.encode("utf-8")),
        "sentence1",
    ),
    "an object in place of a text": (
        "a.jsonl",
        jsonl_of([*PAIRS, ({"text": "A dog."}, "b", 1)]),
        "line 41",
    ),
    "a list in place of a text": ("a.jsonl", jsonl_of([*PAIRS, (["A dog."], "b", 1)]), "line 41"),
    "a text that is null": ("a.jsonl", jsonl_of([*PAIRS, (None, "b", 1)]), "line 41"),
    "a row without a score": (
        "a.jsonl",
        jsonl_of(PAIRS) + '{"sentence1": "a", "sentence2": "b"}\n',
        "line 41",
    ),
    "scores in quotes": ("a.jsonl", jsonl_of([(a, b, f" {s} ") for a, b, s in PAIRS]), TRUTH),
    "packed, in capitals": ("A.CSV.GZ", gzip.compress(csv_of(PAIRS).encode()), TRUTH),
    "a name with signs of URLs": ("a b#c%20d?e=1 \u65e5\u672c.csv", csv_of(PAIRS), TRUTH),
    "a name with a colon": ("12:30 pairs.csv", csv_of(PAIRS), TRUTH),
    "a name that begins with a dash": ("-x.csv", csv_of(PAIRS), TRUTH),
    "a folder far below": ("x/" * 40 + "a.csv", csv_of(PAIRS), TRUTH),
    "a line separator in a text": (
        "a.csv",
        csv_of([(f"{a}\u2028\x0b", b, s) for a, b, s in PAIRS]),
        TRUTH,
    ),
    "a line break in a text": (
        "a.csv",
        csv_of([(a.replace(" ", "\r\n"), b, s) for a, b, s in PAIRS]),
        TRUTH,
    ),
    "numbers so small that they are none": (
        "a.csv",
        csv_of([(a, b, f"{s}e-320") for a, b, s in PAIRS]),
        TRUTH,
    ),
    "two columns in two cases": (
        "a.csv",
        csv_of([(*p, 99 - p[2]) for p in PAIRS], [*NAMES, "Score"]),
        TRUTH,
    ),
    "names in capitals": ("a.csv", csv_of(PAIRS, ["SENTENCE1", "Sentence2", "sCore"]), TRUTH),
    "the same text everywhere": ("a.csv", csv_of([("a", "a", s) for *_, s in PAIRS]), 0.0),
    "labels that are words": (
        "a.csv",
        csv_of([(a, b, s > 5) for a, b, s in PAIRS], ["sentence1", "sentence2", "label"]),
        float(average_precision_score([s > 5 for *_, s in PAIRS], cosines(PAIRS))),
    ),
    "a label in three cases": (
        "a.csv",
        csv_of([(a, b, ("Yes", "yes", "No")[s % 3]) for a, b, s in PAIRS], [*NAMES[:2], "label"]),
        "label",
    ),
    "a label of one text": (
        "a.csv",
        csv_of([(a, "x" if n else "y") for n, (a, *_) in enumerate(PAIRS)], ["text", "label"]),
        39 / 40,
    ),
    "one label": ("a.csv", csv_of([(a, "x") for a, *_ in PAIRS], ["text", "label"]), "label"),
    "a part that is empty": (
        "a.csv",
        csv_of([(*p, "" if p[2] == 3 else "test") for p in PAIRS], [*NAMES, "split"]),
        "split",
    ),
}


GRADES: list[Row] = [("q0", "p0", 1), ("q1", "p1", 1), ("q1", "p5", 1), ("q2", "p7", 1)]
FOLDERS: dict[str, tuple[Sequence[Row], Mapping[str, str], float | str]] = {
    "one relevant passage a query": (GRADES, {}, -1.0),
    "grades in another order": (GRADES[::-1], {}, -1.0),
    "a grade twice": ([*GRADES, GRADES[0]], {}, -1.0),
    "grades that are written as floats": ([(q, p, f"{g}.0") for q, p, g in GRADES], {}, -1.0),
    "half a grade": ([*GRADES, ("q3", "p9", 0.5)], {}, "line 6"),
    "two grades of a pair": ([*GRADES, ("q0", "p0", 2)], {}, "line 6"),
    "a grade that is a word": ([*GRADES, ("q3", "p9", "yes")], {}, "line 6"),
    "a passage that is not there": ([*GRADES, ("q3", "p99", 1)], {}, "line 6"),
    "no passage is relevant": ([(q, p, 0) for q, p, _ in GRADES], {}, "test.tsv"),
    "an id that is a list": (
        GRADES,
        {"queries.jsonl": '{"_id": ["q0"], "text": "A dog."}\n'},
        "line 1",
    ),
    "a text that is an object": (
        GRADES,
        {"queries.jsonl": '{"_id": "q0", "text": "A dog."}\n{"_id": "q1", "text": {"a": 1}}\n'},
        "line 2",
    ),
    "an id twice": (GRADES, {"queries.jsonl": '{"_id": "q0", "text": "A dog."}\n' * 2}, "line 2"),
}


def gain_of(grades: Sequence[Row]) -> float:
    """Return nDCG at ten, the mean over queries, by its equation."""
    texts = [pair[0] for pair in PAIRS[:12]]
    found = []
    for query in sorted({query for query, *_ in grades}):
        pairs = [(PAIRS[int(query[1:])][1], text) for text in texts]
        order = np.argsort(-cosines(pairs), kind="stable")[:10]
        relevant = {int(passage[1:]) for one, passage, _ in grades if one == query}
        gains = [1 / np.log2(place + 2) for place, n in enumerate(order) if n in relevant]
        best = [1 / np.log2(place + 2) for place in range(len(relevant))]
        found.append(sum(gains) / sum(best))
    return float(np.mean(found))


def _make(place: Path, make: Make) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if callable(make):
        make(place)
    else:
        place.write_bytes(make.encode() if isinstance(make, str) else make)


@point("own-tasks")
def tables_as_tasks(folder: Path, room: Path) -> Iterator[Finding]:
    """The score is that of SciPy, or the file is refused in one line."""
    write(room, "first.csv", csv_of(PAIRS))
    write(room, "own_letters.py", MODEL)
    words = ["evaluate", "own_letters:letters", "--suite", "first.csv", "--quiet"]
    with chdir(room):
        assert forked.import_what_is_used_by(words)[0].code == 0
    for number, (name, (file, make, expected)) in enumerate(TASKS.items()):
        own = room / str(number)
        _make(own / file, make)
        suite = f"./{file}" if file.startswith("-") else file
        yield judge(name, evaluate(own, suite), expected, Path(file).name)


# -------------------------------------------------------------------------------------- models

NOTED = "vectors with NaN or infinity, replaced by 0"
FUNCTIONS: dict[str, tuple[str, str]] = {
    # what the function returns, and "" where its numbers are right, else words of the note or refusal
    "half precision": ("x.astype(np.float16)", ""),
    "double precision": ("x.astype(np.float64)", ""),
    "whole numbers": ("x.astype(np.int64)", ""),
    "numbers of one byte": ("x.astype(np.uint8)", ""),
    "big-endian numbers": ("x.astype('>f4')", ""),
    "columns first in memory": ("np.asfortranarray(x)", ""),
    "a view backwards": ("x[::-1][::-1]", ""),
    "a read-only array": ("np.broadcast_to(x, x.shape)", ""),
    "a list of arrays": ("list(x)", ""),
    "a list of lists": ("x.tolist()", ""),
    "a tuple of tensors": ("tuple(map(torch.tensor, x))", ""),
    "a tensor with a gradient": ("torch.tensor(x, requires_grad=True) * 1", ""),
    "a tensor of half precision": ("torch.tensor(x).bfloat16()", ""),
    "a frame": ("pd.DataFrame(x)", ""),
    "a matrix": ("np.matrix(x)", ""),
    "objects that are numbers": ("x.astype(object)", ""),
    "the same memory each time": ("fill(x)", ""),
    "a generator": ("(row for row in x)", "own_"),
    "an empty list afterwards": ("[x, texts.clear()][0]", ""),
    "texts in capitals afterwards": ("[x, change(texts)][0]", ""),
    "another folder afterwards": ("[x, os.chdir('/')][0]", ""),
    "a tensor on meta": ("torch.tensor(x).to('meta')", "own_"),
    "a sparse tensor": ("torch.tensor(x).to_sparse()", "own_"),
    "a sparse matrix": ("scipy.sparse.csr_matrix(x)", "own_"),
    "a masked array": ("np.ma.masked_less(x, 0.5)", NOTED),
    "no number for one text": ("np.where(np.arange(len(x))[:, None] == 3, np.nan, x)", NOTED),
    "an infinite number": ("np.where(np.arange(len(x))[:, None] == 3, np.inf, x)", NOTED),
    "numbers beyond single precision": ("x.astype(np.float64) * 1e200", NOTED),
    "one vector too few": ("x[:-1]", "own_"),
    "one vector too many": ("np.vstack([x, x[:1]])", "own_"),
    "turned": ("x.T", "own_"),
    "three dimensions": ("x[:, None]", "own_"),
    "one dimension": ("x[:, 0]", "own_"),
    "no dimension": ("x[:, :0]", "own_"),
    "vectors of two lengths": ("[row[: 9 + n % 2] for n, row in enumerate(x)]", "own_"),
    "complex numbers": ("x + 1j", "own_"),
    "texts": ("x.astype(str)", "own_"),
    "dates": ("x.astype(np.int64).astype('datetime64[s]')", "own_"),
    "a table of names": ("{'vectors': x}", "own_"),
    "nothing": ("None", "own_"),
    "a function": ("lambda: x", "own_"),
    "an error without words": ("raise_from(Silent)", "own_"),
    "an exit": ("sys.exit(0)", "own_"),
    "an end of iteration": ("next(iter([]))", "own_"),
    "no memory": ("np.empty((1 << 60,))", "own_"),
}
FUNCTION = """
import os, sys
import numpy as np
import pandas as pd
import scipy.sparse
import torch

class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no words")

def raise_from(kind):
    raise kind

MEMORY = np.zeros((1000, 26), np.float32)

def fill(x):
    MEMORY[: len(x)] = x
    return MEMORY[: len(x)]

def change(texts):
    texts[:] = [text.upper() for text in texts]

def vectors(texts):
    counts = [[text.lower().count(chr(97 + place)) for place in range(26)] for text in texts]
    x = np.array(counts, np.float32)
    return {what}
"""


@point("own-models")
def functions_as_models(folder: Path, room: Path) -> Iterator[Finding]:
    """The score is that of the numbers that a function returns, or one line names the function."""
    write(room, "first.csv", csv_of(PAIRS))

    def command(number: int) -> list[str]:
        model = f"own_{number}:vectors"
        return ["evaluate", model, "--suite", "first.csv", "--json", "--quiet", "--no-cache"]

    write(room, "own_0.py", FUNCTION.replace("{what}", "x"))
    with chdir(room):
        (first,) = forked.import_what_is_used_by(command(0))
        assert first.code == 0, first.err
        truth = json.loads(first.out)["scores"][0]["value"]
        for number, (name, (what, expected)) in enumerate(FUNCTIONS.items(), 1):
            write(room, f"own_{number}.py", FUNCTION.replace("{what}", what))
            ended = forked.run(command(number), seconds=120)
            if not expected:
                yield judge(name, ended, truth, "")
            elif expected == NOTED:
                notes = ended.code == 0 and json.loads(ended.out)["notes"]
                yield Finding(name, expected, str(notes)[:300], expected in str(notes))
            else:
                fault = ended.fault((1, 2))
                is_one = len(ended.err.strip().splitlines()) == 1 and expected in ended.err
                seen = fault or f"exit {ended.code}: {ended.err[-300:]}"
                yield Finding(name, "one line", seen, is_one and not fault)


@point("own-folders")
def folders_as_tasks(folder: Path, room: Path) -> Iterator[Finding]:
    """nDCG at ten is that of its equation, or the folder is refused in one line."""
    for number, (name, (grades, more, expected)) in enumerate(FOLDERS.items()):
        own = room / str(number)
        _beir(own / "data", grades, more)
        value = gain_of(GRADES) if expected == -1.0 else expected
        yield judge(name, evaluate(own, "data"), value, "data")


# -------------------------------------------------------------------------------------- scores

SEEDS: dict[str, list[float]] = {"a": [70.1, 70.4, 70.2], "b": [75.3, 75.1, 75.6]}


def _lines(rows: Mapping[str, Sequence[object]] = SEEDS, **more: object) -> list[dict[str, object]]:
    found = []
    for row, scores in rows.items():
        for seed, value in enumerate(scores, 1):
            found.append({"row": row, "seed": seed, "task": "T", "score": value, **more})
    return found


def _csv(lines: Sequence[Mapping[str, object]]) -> str:
    return str(pd.DataFrame(lines).to_csv(index=False))


def _to_parquet(lines: Sequence[Mapping[str, object]], **changes: Any) -> Callable[[Path], None]:
    def save(file: Path) -> None:
        frame = pd.DataFrame(lines)
        for name, change in changes.items():
            frame[name] = change(frame[name])
        frame.to_parquet(file)

    return save


BETTER = "may be the best (95 %): b"
EQUAL = "may be the best (95 %): a, b"
WORDS_OF_ROWS = {
    "1": SEEDS["a"],
    "01": SEEDS["b"],
    "1.0": [60.1, 60.4, 60.3],
    "1e0": [50.2, 50.9, 50.1],
}
SCORES: dict[str, tuple[str, Make, str]] = {
    # file, content, and words of the verdict; or of a refusal, with a sign before them
    "lines backwards": ("s.csv", _csv(_lines()[::-1]), BETTER),
    "one run each": ("s.csv", _csv(_lines({"a": [70], "b": [75]})), "one run"),
    "one row": ("s.csv", _csv(_lines({"a": [70.1, 70.4, 70.2]})), "!one row"),
    "no spread, apart": ("s.csv", _csv(_lines({"a": [70] * 3, "b": [75] * 3})), BETTER),
    "no spread, equal": ("s.csv", _csv(_lines({"a": [70] * 3, "b": [70] * 3})), EQUAL),
    "scores of the same runs": ("s.csv", _csv(_lines({"a": SEEDS["a"], "b": SEEDS["a"]})), EQUAL),
    "all scores 0": ("s.csv", _csv(_lines({"a": [0] * 3, "b": [0] * 3})), EQUAL),
    "all scores 1": ("s.csv", _csv(_lines({"a": [1] * 3, "b": [1] * 3})), EQUAL),
    "seeds of forty digits": (
        "s.csv",
        _csv([{**one, "seed": 10**40 + int(str(one["seed"]))} for one in _lines()]),
        BETTER,
    ),
    "seeds that are words": (
        "s.csv",
        _csv([{**one, "seed": f"s{one['seed']}"} for one in _lines()]),
        BETTER,
    ),
    "other seeds in each row": (
        "s.csv",
        _csv([{**one, "seed": f"{one['row']}{one['seed']}"} for one in _lines()]),
        BETTER,
    ),
    "a score twice": ("s.csv", _csv([*_lines(), _lines()[0]]), "!second score"),
    "a task that one row lacks": (
        "s.csv",
        _csv([*_lines(), *_lines({"a": SEEDS["a"]}, task="U")]),
        BETTER,
    ),
    "rows that are numbers": ("s.csv", _csv(_lines(WORDS_OF_ROWS)), "may be the best (95 %): 01\n"),
    "rows that differ in case": (
        "s.csv",
        _csv(_lines({"a": SEEDS["a"], "A": SEEDS["b"]})),
        "may be the best (95 %): A\n",
    ),
    "scores that are true": (
        "s.parquet",
        _to_parquet(_lines(), score=lambda column: column > 75.2),
        "",
    ),
    "decimal scores": (
        "s.parquet",
        _to_parquet(_lines(), score=lambda column: column.map(lambda x: Decimal(str(x)))),
        BETTER,
    ),
    "categories": (
        "s.parquet",
        _to_parquet(_lines(), row=lambda column: column.astype("category")),
        BETTER,
    ),
    "rows as an index": (
        "s.parquet",
        lambda file: pd.DataFrame(_lines()).set_index("row").to_parquet(file),
        BETTER,
    ),
    "a list as a row": (
        "s.jsonl",
        "".join(json.dumps({**one, "row": [one["row"]]}) + "\n" for one in _lines()),
        "!row",
    ),
    "an object as a task": (
        "s.jsonl",
        "".join(json.dumps({**one, "task": {"name": "T"}}) + "\n" for one in _lines()),
        "!task",
    ),
    "no number": ("s.csv", _csv(_lines()).replace("75.6", "nan"), "!line 7"),
    "a number with blanks in it": ("s.csv", _csv(_lines()).replace("75.6", "75 .6"), "!line 7"),
    "digits of another script": (
        "s.csv",
        _csv(_lines()).replace("75.6", "\u0667\u0665.\u0666"),
        "!line 7",
    ),
    "a number with an underscore": ("s.csv", _csv(_lines()).replace("75.6", "7_5.6"), "!line 7"),
    "a column twice": ("s.csv", _csv(_lines()).replace("seed,task", "task,task"), "!task"),
    "a header alone": ("s.csv", "row,seed,task,score\n", "!no rows"),
    "nothing": ("s.csv", "", "!empty"),
    "one sign": ("s.csv", "x", "!"),
    "in capitals, packed": (
        "S.TSV.GZ",
        gzip.compress(_csv(_lines()).replace(",", "\t").encode()),
        BETTER,
    ),
    "two hundred rows with one run": (
        "s.csv",
        _csv(_lines({f"r{n}": [50 + n / 7] for n in range(200)})),
        "one run",
    ),
    "examples without spread": (
        "s.csv",
        _csv([{**one, "example": n, "score": 1} for one in _lines() for n in range(9)]),
        EQUAL,
    ),
    "a gold value for all": (
        "s.csv",
        _csv(
            [
                {**one, "example": n, "score": n * n % 7, "target": 3}
                for one in _lines()
                for n in range(9)
            ]
        ),
        "!target",
    ),
    "a name of line breaks": (
        "s.csv",
        _csv(_lines({"a": SEEDS["a"], "b\nc": SEEDS["b"]})),
        "may be the best (95 %): b c",
    ),
    "a name of escapes": (
        "s.csv",
        _csv(_lines({"a": SEEDS["a"], "\x1b[31mb": SEEDS["b"]})),
        "[31mb",
    ),
}


@point("own-scores")
def scores_of_all_kinds(folder: Path, room: Path) -> Iterator[Finding]:
    """The verdict is the right one, or the file is refused in one line."""
    for number, (name, (file, make, expected)) in enumerate(SCORES.items()):
        place = room / str(number) / file
        _make(place, make)
        code, text = run_command("verdict", "--scores", str(place))
        seen = f"exit {code}: {text[-300:]}"
        ok = "\x1b" not in text
        if expected.startswith("!"):
            ok = ok and code == 2 and "\n" not in text and expected[1:] in text and file in text
        else:
            ok = ok and code == 0 and expected in text
        yield Finding(name, expected or "exit 0", seen, ok)


# ---------------------------------------------------------------------------------------- text

ONE = ["A first sentence.", "And a second."]


def _texts(column: Any, name: str = "text") -> Callable[[Path], None]:
    return lambda file: pq.write_table(pa.table({name: column}), file)


TEXTS: dict[str, tuple[str, Make, list[str] | str]] = {
    "a column that lacks": ("t.csv", "sentence,n\na,1\nb,2\n", "line 1"),
    "a column that lacks, behind blank lines": ("t.csv", "\n\nsentence,n\na,1\nb,2\n", "line 3"),
    "a column that lacks, behind sep=": ("t.csv", "sep=;\nsentence;n\na;1\nb;2\n", "line 2"),
    "a column that lacks, of several lines": ("t.csv", '"a\nb",n\nx,1\ny,2\n', "line 1"),
    "a key that lacks": ("t.jsonl", '{"text": "a"}\n\n{"txt": "b"}\n', "line 3"),
    "nulls": ("t.parquet", _texts(pa.array([ONE[0], None, ONE[1]])), ONE),
    "large strings": ("t.parquet", _texts(pa.array(ONE, pa.large_string())), ONE),
    "a dictionary": ("t.parquet", _texts(pa.array(ONE).dictionary_encode()), ONE),
    "views of strings": ("t.parquet", _texts(pa.array(ONE, pa.string_view())), ONE),
    "true and false": ("t.parquet", _texts(pa.array([True, False])), "text"),
    "lists of texts": ("t.parquet", _texts(pa.array([ONE, ONE])), "text"),
    "bytes": ("t.parquet", _texts(pa.array([b"a b", b"c d"])), "text"),
    "no rows": ("t.parquet", _texts(pa.array([], pa.string())), "is empty"),
    "in capitals, packed": ("T.TXT.GZ", gzip.compress("\n".join(ONE).encode()), ONE),
    "a name of a line break": ("a\nb.txt", "\n".join(ONE), ONE),
    "a name with a question mark": ("what?.txt", "\n".join(ONE), ONE),
    "a name with a bracket": ("[a-z]*.txt", "\n".join(ONE), ONE),
    "a link to a link": ("t.txt", lambda file: _link_twice(file), ONE),
    "one text twice": ("t.txt", f"{ONE[0]}\n{ONE[0]}\n", [ONE[0], ONE[0]]),
    "a text of signs that are not seen": (
        "t.txt",
        "\u200b\nA first sentence.\nAnd a second.\n",
        ["\u200b", *ONE],
    ),
    "blanks of other scripts": ("t.txt", "\u3000\u2003\nA first sentence.\nAnd a second.\n", ONE),
    "columns in capitals": ("t.csv", "TEXT\na\nb\n", "line 1"),
    "an object": ("t.jsonl", '{"text": "a"}\n{"text": {"a": 1}}\n', "line 2"),
    "a key twice": ("t.jsonl", '{"text": "a", "text": "b"}\n{"text": "c"}\n', ["b", "c"]),
}


def _link_twice(file: Path) -> None:
    write(file.parent, "there.txt", "\n".join(ONE))
    file.with_name("between").symlink_to("there.txt")
    file.symlink_to("between")


@point("own-texts")
def text_of_all_kinds(folder: Path, room: Path) -> Iterator[Finding]:
    """The texts are those of the file, or it is refused in one line."""
    from harness.errors import InputError
    from harness.sources import load_corpus

    for number, (name, (file, make, expected)) in enumerate(TEXTS.items()):
        place = room / str(number) / file
        _make(place, make)
        try:
            seen: Any = list(load_corpus(str(place)))
        except InputError as error:
            seen = str(error)
        except Exception as error:
            seen = f"{type(error).__name__}: {error}", ""
        ok = seen == expected
        if isinstance(expected, str) and isinstance(seen, str):
            ok = expected in seen and "\n" not in seen and file in seen
        yield Finding(name, str(expected), str(seen)[:300], ok)


# ------------------------------------------------------------------------------- surroundings

COMPARISON = """\
name = "small"
seeds = [1]
suites = ["Embedded-STS-contrast"]
precision = "fp32"
methods = [{ method = "pooling" }]
"""


def _close(*numbers: int) -> Callable[[], None]:
    def close() -> None:
        for number in numbers:
            os.close(number)
            setattr(sys, ("stdin", "stdout", "stderr")[number], None)  # as Python then starts

    return close


def _open_as(number: int, path: str) -> Callable[[], None]:
    def open_it() -> None:
        os.dup2(os.open(path, os.O_RDWR), number)

    return open_it


def _close_pipe() -> None:
    """Give the process an output that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)


def _set(**values: str) -> Callable[[], None]:
    return lambda: os.environ.update(values)


def _turn_clock_back() -> None:
    """Let each look at the clock be an hour before the one before."""
    begun = time.time()
    looks = itertools.count()
    time.time = lambda: begun - 3600 * next(looks)


def _remove_folder() -> None:
    place = tempfile.mkdtemp()
    os.chdir(place)
    Path(place).rmdir()


def _limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))


SURROUNDINGS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    # what is done to the process, and the exit codes that it may have
    "no input": (_close(0), (0,)),
    "no output": (_close(1), (0, 1)),
    "no messages": (_close(2), (0,)),
    "no streams": (_close(0, 1, 2), (0, 1)),
    "an output that is full": (_open_as(1, "/dev/full"), (1,)),
    "messages to a full disk": (_open_as(2, "/dev/full"), (0, 1)),
    "an output that nobody reads": (_close_pipe, (0, 1)),
    "a time zone that is none": (_set(TZ=":/no/zone"), (0,)),
    "a locale that is none": (_set(LC_ALL="xx_YY.UTF-99", LANG="xx"), (0,)),
    "the locale C": (_set(LC_ALL="C", PYTHONUTF8="0"), (0,)),
    "a home that is not there": (_set(HOME="/no/home"), (0,)),
    "a home that is a file": (_set(HOME="/etc/hostname"), (0,)),
    "a folder for temporary files that is not there": (_set(TMPDIR="/no/tmp"), (0, 1)),
    "a folder that was removed": (_remove_folder, (0, 2)),
    "files for nobody": (lambda: os.umask(0o777), (0, 1, 2)),
    "twelve open files": (_limit_files, (0, 1)),
    "a clock that goes back": (_turn_clock_back, (0,)),
    "a terminal of one column": (_set(COLUMNS="1", LINES="1"), (0,)),
    "a terminal of no number": (_set(COLUMNS="x", TERM="\x1b[31m"), (0,)),
    "a cache that is a file": (_set(HARNESS_CACHE="/etc/hostname"), (0, 2)),
    "a cache that is a device": (_set(HARNESS_CACHE="/dev/null"), (0, 2)),
    "a cache below a file": (_set(HARNESS_CACHE="/etc/hostname/x"), (0, 2)),
    "a cache with a sign of TOML": (_set(HARNESS_CACHE="a\"b'c=[{"), (0, 2)),
    "a backend of figures that is none": (_set(MPLBACKEND="nonsense"), (0,)),
    "threads that are no number": (_set(OMP_NUM_THREADS="x", MKL_NUM_THREADS="-1"), (0, 2)),
    "a server of MLflow that is none": (_set(MLFLOW_TRACKING_URI="nonsense://x"), (0, 1, 2)),
    "an endless recursion at once": (lambda: sys.setrecursionlimit(200), (0, 1)),
    "a hub that is no address": (_set(HF_ENDPOINT="not an address"), (0,)),
    "no processors": (lambda: setattr(os, "cpu_count", lambda: None), (0,)),
}


@point("own-surroundings")
def processes_of_all_kinds(folder: Path, room: Path) -> Iterator[Finding]:
    """A command does its work, or ends with one line; it prints no traceback."""
    file = write(room, "small.toml", COMPARISON)
    scores = write(room, "scores.csv", _csv(_lines()))

    def compare(number: int) -> list[str]:
        work = str(room / f"work{number}")
        return ["compare", str(file), "--workdir", work, "--quiet", "--format", "md"]

    verdict = ["verdict", "--scores", str(scores)]
    first, _ = forked.import_what_is_used_by(compare(0), verdict)
    assert first.code == 0, first.err
    for number, (name, (act, codes)) in enumerate(SURROUNDINGS.items(), 1):
        commands = [verdict]
        if number % 3 == 1:  # a comparison takes ten times as long
            commands.append(compare(number))
        for command in commands:
            ended = forked.run(command, seconds=120, before=act)
            fault = ended.fault(codes)
            seen = fault or f"exit {ended.code}: {ended.err.strip()[-200:]}"
            yield Finding(f"{name}: {command[0]}", f"exit {codes}", seen, not fault)


# -------------------------------------------------------------------------------------- methods

ENCODINGS: dict[str, tuple[Callable[[np.ndarray, list[str]], Any], bool]] = {
    # what `encode` of a method makes of right vectors, and whether that has their score
    "single precision": (lambda x, texts: x, True),
    "double precision": (lambda x, texts: x.astype(np.float64), True),
    "half precision": (lambda x, texts: x.astype(np.float16), True),
    "columns first in memory": (lambda x, texts: np.asfortranarray(x), True),
    "a view backwards": (lambda x, texts: x[::-1][::-1], True),
    "a tensor with a gradient": (lambda x, texts: torch.tensor(x, requires_grad=True) * 1, True),
    "a tensor of half precision": (lambda x, texts: torch.tensor(x).bfloat16(), True),
    "an input that is empty afterwards": (lambda x, texts: _before(texts.clear, x), True),
    "an input in capitals afterwards": (lambda x, texts: _before(partial(_shout, texts), x), True),
    "a list of arrays": (lambda x, texts: list(x), True),
    "whole numbers": (lambda x, texts: x.astype(np.int64), False),
    "a tensor on meta": (lambda x, texts: torch.tensor(x).to("meta"), False),
    "a sparse tensor": (lambda x, texts: torch.tensor(x).to_sparse(), False),
    "a generator": (lambda x, texts: (row for row in x), False),
    "one vector too few": (lambda x, texts: x[:-1], False),
    "turned": (lambda x, texts: x.T, False),
    "three dimensions": (lambda x, texts: x[:, None], False),
    "no dimension": (lambda x, texts: x[:, :0], False),
    "complex numbers": (lambda x, texts: x + 1j, False),
    "vectors of two lengths": (
        lambda x, texts: [row[: 9 + n % 2] for n, row in enumerate(x)],
        False,
    ),
    "nothing": (lambda x, texts: None, False),
    "texts": (lambda x, texts: x.astype(str), False),
}


def _before(act: Callable[[], None], x: np.ndarray) -> np.ndarray:
    """Return vectors after a deed."""
    act()
    return x


def _shout(texts: list[str]) -> None:
    texts[:] = [text.upper() for text in texts]


@point("own-methods")
def vectors_of_methods(folder: Path, room: Path) -> Iterator[Finding]:
    """A row has the score of its vectors, or failed with a reason of one line."""
    import harness
    from methods.pooling import PoolingMethod

    file = write(room, "pairs.csv", csv_of(PAIRS))
    for number, (name, (change, is_right)) in enumerate(ENCODINGS.items()):

        class Mine(PoolingMethod):
            name = "mine"
            version = 1
            changes = staticmethod(change)

            def encode(self, sentences: Any, **options: Any) -> Any:
                if isinstance(sentences, str):
                    return letters([sentences])[0].astype(np.float32)
                return type(self).changes(letters(sentences).astype(np.float32), sentences)

        work = room / str(number)
        try:
            found = harness.compare(
                [Mine], seeds=1, suites=[str(file)], workdir=work, tracking_uri="none"
            )
        except Exception as error:
            yield Finding(name, "a record", f"{type(error).__name__}: {error}"[:300], ok=False)
            continue
        (record,) = [one for one in found.records if one.row == "mine"]
        value = record.score("pairs.csv")
        seen = f"{record.status}, {value}: {record.reason[:200]}"
        if is_right:
            ok = value is not None and abs(value - TRUTH) < 2e-3
        else:
            ok = value is None and record.status == "failed" and "\n" not in record.reason
        yield Finding(name, f"{TRUTH:.4f}" if is_right else "failed, one line", seen, ok)
