"""Files of a user's as data of tasks: scored or labelled pairs, triplets and labelled texts, by the
columns of a table, and retrieval from a BEIR folder.

Without a column "split" everything is the test part, or a share of it is drawn as the dev part.
Examples that share a text, or are joined by examples that do, are a group, and groups are drawn
whole by a hash of their first text: lines that are added later move no other group.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from harness.config import Config, nearest, option
from harness.errors import InputError
from harness.files.reading import is_there
from harness.files.tables import (
    SUFFIXES,
    clean_name,
    is_table,
    name_remedy,
    read_table,
    require_texts,
    to_numbers,
)
from harness.results.text_ids import text_ids

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal[
    "similarity", "pair-classification", "triplets", "classification", "clustering", "retrieval"
]
Split = Literal["whole", "column", "drawn"]

COLUMNS: dict[Kind, tuple[str, ...]] = {
    "similarity": ("sentence1", "sentence2", "score"),
    "pair-classification": ("sentence1", "sentence2", "label"),
    "triplets": ("anchor", "positive", "negative"),
    "classification": ("text", "label"),
    "clustering": ("text", "label"),
}
"""The columns of each kind; of those with the same columns the first is meant."""

BEIR = ("corpus.jsonl", "queries.jsonl", "qrels")  # what such a folder holds
SHARE = 0.5  # of the examples: the dev part, where the same file selects and tests
FEW = 30  # examples: fewer say next to nothing
FAR = 0.2  # relative difference of a part from its share that is worth a line
_NO_TEXT = ("score", "label", "split")
_PARTS = {
    "train": "train",
    "dev": "dev",
    "validation": "dev",
    "valid": "dev",
    "val": "dev",
    "test": "test",
}
_TRUE = ("1", "true", "yes", "positive", "duplicate", "paraphrase")
_FALSE = ("0", "-1", "false", "no", "negative", "not duplicate", "not paraphrase")
_VERSIONED = re.compile(r"\.v\d+", re.IGNORECASE)  # of mteb's names
_PREFIX = re.compile(r"(compression|layers|efficiency|knn):")


class TaskFile(Config):
    """A file or folder as a task.

    >>> TaskFile(task="compression:data/pairs.csv").path.name
    'pairs.csv'
    """

    task: str = option(..., "a file (.csv, .tsv, .jsonl, .parquet) or a BEIR folder")
    kind: Kind | None = option(None, "what it is; default: by its columns")
    columns: dict[str, str] = option({}, "column of the kind -> what the file calls it")
    share: float | None = option(
        None, "share of the examples that is the dev part, where no column split says", gt=0, lt=1
    )
    name: str = option("", "what its scores are called; default: the file's name")

    @property
    def prefix(self) -> str:
        """What is examined instead of plain scores: "compression:" and others; mostly empty."""
        return _prefix_of(self.task)

    @property
    def path(self) -> Path:
        """The file or folder, absolute."""
        return Path(self.task.removeprefix(self.prefix)).expanduser().absolute()

    def with_full_path(self) -> TaskFile:
        """Return the same with the absolute path, for another process."""
        return self.model_copy(update={"task": f"{self.prefix}{self.path}"})

    def __str__(self) -> str:
        return self.task


def _prefix_of(task: str) -> str:
    found = _PREFIX.match(task)
    return found[0] if found else ""


def names_file(name: str) -> bool:
    """True if a name that is no suite or task is meant as a file or folder.

    >>> names_file("data/pairs.csv"), names_file("./pairs"), names_file("mteb:SciFact.v2")
    (True, True, False)
    """
    bare = name.removeprefix(_prefix_of(name))
    path = Path(bare).expanduser()
    if bare.startswith(("/", "./", "../", "~")) or is_table(path):
        return True
    if bare and is_there(path):
        return True
    has_suffix = bool(path.suffix) and not _VERSIONED.fullmatch(path.suffix)
    return has_suffix and ":" not in bare


def name_files(files: Sequence[TaskFile]) -> list[TaskFile]:
    """Return files with names: those of one name have their folders behind it.

    Raises:
        InputError: two files have one name by their key `name`, or one file has two readings.
    """
    named = []
    readings: dict[str, TaskFile] = {}
    for file in files:
        name = file.name or clean_name(file.path.name)
        first = readings.setdefault(f"{name} {file.path}", file)
        if first != file.model_copy(update={"task": first.task}):  # "p.csv" is "./p.csv"
            message = "this file is named twice with different settings, which would be one task"
            remedy = 'give one of them a name, as name = "..."'
            raise InputError(message, file=file.task, key="suites", remedy=remedy)
        others = set()
        for other in files:
            other_name = other.name or clean_name(other.path.name)
            if other_name == name and other.path != file.path:
                others.add(other.path)
        if others and file.name:
            message = f'several files are called "{name}"'
            raise InputError(message, file=file.task, key='key "name"', remedy="rename one")
        if others:
            parents = {path.parent.name for path in others}
            folder = file.path.parent
            shown = folder if folder.name in parents else folder.name
            name = f"{name} ({clean_name(shown)})"
        named.append(file.model_copy(update={"name": name}))
    return named


@dataclass(frozen=True)
class OwnData:
    """The examples of a file.

    Attributes:
        name: what the task is called.
        where: the file, for messages.
        frame: the columns of the kind as text, the line in the file as index.
        part: "train", "dev" or "test" of each example.
        split: how the parts came about: all is "test", the file has a column, or they were drawn.
        share: of the dev part, where it was drawn.
        others: further kinds whose columns it has, where nobody has said which is meant.
    """

    name: str
    where: str
    kind: Kind
    frame: pd.DataFrame
    part: pd.Series[str]
    split: Split
    share: float | None = None
    others: tuple[Kind, ...] = ()

    def rows(self, part: str) -> pd.DataFrame:
        """Return the examples of a part.

        Raises:
            InputError: there are none.
        """
        rows = self.frame[(self.part == part).to_numpy()]
        if not len(rows):
            key = 'column "split"' if self.split == "column" else "share"
            message = f"no example is in the {part} part"
            remedy = "the parts are train, dev (or validation) and test"
            raise InputError(message, file=self.where, key=key, remedy=remedy)
        return rows

    @cached_property
    def counts(self) -> dict[str, int]:
        """Examples of each part that has some."""
        counted = Counter(self.part)
        parts = [part for part in ("train", "dev", "test") if counted[part]]
        return {part: counted[part] for part in parts}

    @property
    def text_columns(self) -> list[str]:
        """The columns that hold texts."""
        return [name for name in self.frame.columns if name not in _NO_TEXT]

    @property
    def remarks(self) -> list[str]:
        """Sentences about its size, its parts and its texts that a reader should know."""
        if self.text_columns == ["text"]:
            noun = "texts"
        else:
            noun = self.kind_noun
        parts = []
        for part, count in self.counts.items():
            parts.append(f"{count:,} {part}")
        sizes = ", ".join(parts)
        remarks = []
        if self.others:
            remarks.append(
                f"read as {self.kind}; it also has the columns of {', '.join(self.others)}"
                f" (key kind)"
            )
        if self.split == "drawn":
            remarks.append(
                f"{sizes} {noun}, drawn by groups of {noun} that share a text"
                f" (share of the dev part: {self.share:g})"
            )
            dev = self.counts.get("dev", 0) / len(self.frame)
            is_far = self.share is not None and abs(dev - self.share) > FAR * self.share
            if self.share and is_far:
                remarks.append(
                    f"the dev part has {100 * dev:.0f} % of the {noun} instead of"
                    f" {100 * self.share:.0f} %, as large groups are drawn whole"
                )
        elif self.split == "column":
            remarks.append(f"{sizes} {noun}, by the column split")
        for part, count in self.counts.items():
            if count < FEW and part != "train":
                few = f"only {count} {part} {noun}"
                remarks.append(f"{few}: scores of fewer than {FEW} say little")
        remarks += self._remark_on_labels()
        texts: list[str] = []
        for name in self.text_columns:
            texts.extend(self.frame[name])
        occurrences = Counter(texts).values()
        repeated = sum(count for count in occurrences if count > 1)
        if 2 * repeated > len(texts):
            remarks.append(
                f"{repeated:,} of {len(texts):,} texts occur more than once: {noun} that share one"
                " are drawn together, so the intervals are wider"
            )
        return remarks

    def _remark_on_labels(self) -> list[str]:
        """A sentence about labels that differ in the case of letters alone."""
        if "label" not in self.frame.columns:
            return []
        first: dict[str, str] = {}
        for label in dict.fromkeys(self.frame["label"]):
            alike = first.setdefault(label.casefold(), label)
            if alike != label:
                both = f"{alike!r:.30} and {label!r:.30}"
                return [f"the labels {both} differ in case alone, and count as two"]
        return []

    @property
    def kind_noun(self) -> str:
        """What an example is, in the plural."""
        return "triplets" if self.kind == "triplets" else "pairs"


def read_own(source: Path | Any, settings: TaskFile) -> OwnData:
    """Read a table as the data of a task.

    Args:
        source: a file, or a frame of pandas.

    Raises:
        InputError: no such file, no known kind, an empty or wrong cell; with file, line and column.
    """
    if isinstance(source, Path):
        where = str(settings.task)
    else:
        where = settings.name or "frame"
    if isinstance(source, Path) and not is_there(source):
        raise InputError("no such file", file=where, remedy="check the path")
    if isinstance(source, Path) and not is_table(source):
        suffixes = ", ".join(SUFFIXES)
        expected = f"{suffixes}, or a folder with {', '.join(BEIR)}"
        message = f"is no table by its name; expected {expected}"
        raise InputError(message, file=where, remedy=name_remedy(source))
    table = read_table(source)
    table = _rename(table, settings.columns, where)
    kind = settings.kind or _find_kind(table, where)
    others = () if settings.kind else _other_kinds(table, kind)
    if kind == "retrieval":
        message = f"retrieval needs a folder with {', '.join(BEIR)}"
        raise InputError(message, file=where, key='key "kind"')
    _check_columns(table, kind, where)
    frame = table[[*COLUMNS[kind]]]
    _check_cells(frame, where)
    part, split = _split(table, frame, settings.share, where)
    return OwnData(
        name=settings.name or where,
        where=where,
        kind=kind,
        frame=frame,
        part=part,
        split=split,
        share=settings.share,
        others=others,
    )


def _rename(table: pd.DataFrame, columns: Mapping[str, str], where: str) -> pd.DataFrame:
    """Return a table whose columns have the names of the kinds, in any case of letters."""
    roles: list[str] = []
    for names in COLUMNS.values():
        roles.extend(names)
    known = [*dict.fromkeys(roles), "split"]
    new: dict[str, str] = {}
    for role, name in columns.items():
        if role not in known:
            message = f'no kind has a column "{role}"{nearest(role, known)}'
            raise InputError(message, file=where, key='key "columns"')
        if name not in table.columns:
            columns_there = list(table.columns)
            message = f'no column "{name}"{nearest(name, columns_there)}'
            remedy = f"its columns are {', '.join(columns_there)}"
            raise InputError(message, file=where, key='key "columns"', remedy=remedy)
        if name in new:
            message = f'column "{name}" is named for "{new[name]}" and for "{role}"'
            raise InputError(
                message, file=where, key='key "columns"', remedy="leave one of them out"
            )
        new[name] = role
    hidden = [role for role in columns if role in table.columns and role not in new]
    kept = table.drop(columns=hidden)
    kept = kept.rename(columns=new)
    lower: dict[str, str] = {}
    for name in kept.columns:
        role = name.lower()
        if role not in known or role in kept.columns:
            continue
        if role in lower.values():
            message = "two columns have this name, but for the case of letters"
            key = f'column "{name}"'
            raise InputError(message, file=where, key=key, remedy="rename one")
        lower[name] = role
    return kept.rename(columns=lower)


def _find_kind(table: pd.DataFrame, where: str) -> Kind:
    for kind, names in COLUMNS.items():
        if set(names) <= set(table.columns):
            return kind
    raise _kind_error(table, where)


def _other_kinds(table: pd.DataFrame, kind: Kind) -> tuple[Kind, ...]:
    """Return the kinds with other columns than `kind` that a table has the columns of, too."""
    found: list[Kind] = []
    for other, names in COLUMNS.items():
        if names != COLUMNS[kind] and set(names) <= set(table.columns):
            found.append(other)
    return tuple(found)


def _kind_error(table: pd.DataFrame, where: str) -> InputError:
    texts = []
    for kind, names in COLUMNS.items():
        texts.append(f"{kind}: {', '.join(names)}")
    kinds = "; ".join(texts)
    first = next(iter(COLUMNS.values()))[0]
    has = ", ".join(table.columns)
    return InputError(
        f"its columns ({has}) are those of no kind of task; expected {kinds}",
        file=where,
        remedy=_name_columns(where, first, table.columns[0]),
    )


def _name_columns(where: str, role: str, name: str) -> str:
    """Return what to do about a column with another name."""
    if not names_file(where):
        return "rename the columns of the frame"
    columns = f'{{ {role} = "{name}", ... }}'
    return f'write {{ task = "{where}", columns = {columns} }} in place of the name of the file'


def _check_columns(table: pd.DataFrame, kind: Kind, where: str) -> None:
    missing = [name for name in COLUMNS[kind] if name not in table.columns]
    if missing:
        has = ", ".join(table.columns)
        remedy = _name_columns(where, missing[0], "...")
        message = f'{kind} needs a column "{missing[0]}"; its columns are {has}'
        raise InputError(message, file=where, remedy=remedy)


def _check_cells(frame: pd.DataFrame, where: str) -> None:
    require_texts(frame, frame.columns, where)
    for name in frame.columns:
        empty = frame.index[(frame[name] == "").to_numpy()]
        if len(empty):
            place = f"{where}, line {empty[0]}"
            remedy = "fill it, or remove the line"
            key = f'column "{name}"'
            raise InputError("is empty", file=place, key=key, remedy=remedy)


def _split(
    table: pd.DataFrame,
    frame: pd.DataFrame,
    share: float | None,
    where: str,
) -> tuple[pd.Series[str], Split]:
    """Return the part of each example, and how the parts came about."""
    import pandas as pd

    if "split" in table.columns:
        parts = []
        for line, name in zip(table.index, table["split"], strict=True):
            part = _PARTS.get(name.lower())
            if part is None:
                message = f"expected train, dev (or validation) or test, not {name!r:.40}"
                raise InputError(message, file=where, line=line, key='column "split"')
            parts.append(part)
        if share is not None:
            message = "the file has a column split, which says what the dev part is"
            raise InputError(message, file=where, key='key "share"', remedy="leave one of them out")
        return pd.Series(parts, index=frame.index, dtype=str), "column"
    if share is None:
        return pd.Series("test", index=frame.index, dtype=str), "whole"
    texts = []
    for name in frame.columns:
        if name not in _NO_TEXT:
            texts.append(frame[name].tolist())
    drawn = np.where(draw_groups(texts, share), "dev", "test")
    return pd.Series(drawn, index=frame.index, dtype=str), "drawn"


def draw_groups(texts: Sequence[Sequence[str]], share: float) -> NDArray[np.bool_]:
    """Draw whole groups of examples that share a text, or are joined by examples that do.

    Args:
        texts: the texts of n examples by column.

    Returns:
        (n,) True for the drawn examples. A group is drawn if the hash of the text that is first in
        the file, as a number from 0 to 1, is below `share`.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ids = [text_ids(column) for column in texts]
    n = len(ids[0])
    distinct, place = np.unique(np.concatenate(ids), return_inverse=True)
    first = place[:n]
    columns = len(ids)
    # an example joins its first text with each of its texts
    edges = (np.tile(first, columns), place)
    graph = coo_array(
        (np.ones(len(place)), edges),
        shape=(len(distinct), len(distinct)),
    )
    _, group = connected_components(graph, directed=False)
    of_examples = group[first]
    # the first example of each group
    _, begins, number = np.unique(of_examples, return_index=True, return_inverse=True)
    hashes = ids[0][begins].view(np.uint64) / 2.0**64
    is_drawn = hashes < share
    drawn: NDArray[np.bool_] = is_drawn[number]
    return drawn


def gold_scores(rows: pd.DataFrame, where: str) -> NDArray[np.float64]:
    """Return the column "score" as numbers.

    Raises:
        InputError: a cell is no number, or all are equal.
    """
    numbers = to_numbers(rows, "score", where)
    scores: NDArray[np.float64] = np.asarray(numbers, dtype=np.float64)
    if np.ptp(scores) == 0:
        same = f"all {len(scores):,} gold scores are {scores[0]:g}"
        message = f"{same}: they rank nothing"
        raise InputError(message, file=where, key='column "score"', remedy="give another column")
    return scores


def true_labels(rows: pd.DataFrame, where: str) -> NDArray[np.int64]:
    """Return the column "label" of pairs as 1 (alike) and 0.

    Raises:
        InputError: there are not two labels, or it is not known which one means alike.
    """
    found = list(dict.fromkeys(rows["label"]))
    key = 'column "label"'
    if len(found) == 1:
        message = f"all {len(rows):,} labels are {found[0]!r:.40}: expected two"
        raise InputError(message, file=where, key=key)
    if len(found) > 2:
        remedy = 'for graded pairs: columns = { score = "label" }'
        some = ", ".join(sorted(found)[:4])
        message = f"has {len(found)} labels ({some}, ...); expected two"
        raise InputError(message, file=where, key=key, remedy=remedy)
    true = [label for label in found if label.lower() in _TRUE]
    false = [label for label in found if label.lower() in _FALSE]
    if len(true) != 1 or len(false) != 1:
        one, other = found
        message = f"which of {one!r:.30} and {other!r:.30} means alike is not known"
        raise InputError(message, file=where, key=key, remedy="write 1 for alike and 0 for unlike")
    is_alike = [label == true[0] for label in rows["label"]]
    return np.array(is_alike, dtype=np.int64)


def has_split(file: TaskFile) -> bool:
    """True if a file says by a column which part an example is in; False for what cannot be read,
    which is reported where it is.
    """
    if not is_there(file.path) or not is_table(file.path):
        return False
    try:
        table = _rename(read_table(file.path), file.columns, file.task)
        return "split" in table.columns
    except InputError:
        return False


def is_beir(folder: Path) -> bool:
    """True if a folder has the files of BEIR."""
    files = [folder / name for name in BEIR]
    return folder.is_dir() and all(file.exists() for file in files)


KINDS = get_args(Kind)
