"""The plain keywords that `harness.compare`, `study` and `train` share: options of methods by their
names, and texts, pairs and frames that a program holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

from harness import registry
from harness.config import nearest
from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.files.hashing import content_id
from harness.files.links import refuse_link
from harness.files.reading import inline
from harness.files.tables import read_table
from harness.sources import Corpus, corpus_of
from harness.sources.corpus.corpus import Pair
from harness.sources.corpus.selected_texts import Kind
from harness.sources.corpus.tables_in_hand import is_table
from harness.tasks.own.data import TaskFile
from harness.tasks.own.open_file import to_pandas

IN_HAND = "data"  # folder of a work directory: texts and pairs that a call was given
_PAIRS = ("anchor", "positive", "negative", "label")


def as_overrides(**given: Any) -> list[str]:
    """Return the keywords of a call, or options of a command, as `--set` takes them."""
    for key in ("suites", "base_models"):
        one = given.get(key)
        if isinstance(one, str | Path | Mapping | TaskFile):
            given[key] = [one]
    overrides = []
    for key, value in given.items():
        if value is not None:
            overrides.append(f"{key}={_toml_of(key, value)}")
    return overrides


def check_table(key: str, values: Any, example: str) -> None:
    """Check that a keyword holds a dictionary, or nothing.

    Raises:
        InputError: it holds something else.
    """
    if values is not None and not isinstance(values, Mapping):
        message = f"expected a dictionary, not {type(values).__name__}"
        raise InputError(message, key=key, remedy=f"write {key}={example}")


def table_overrides(table: str, values: Any) -> list[str]:
    """Return values of a table of an experiment as `--set` takes them: the others of it stay.

    Raises:
        InputError: it is no table of values.
    """
    check_table(table, values, '{"pooling": "mean"}')
    options = {}
    for key, value in (values or {}).items():
        options[f"{table}.{key}"] = value
    return as_overrides(**options)


def check_options(call: Any, options: Iterable[str], methods: Iterable[str]) -> None:
    """Check the further keywords of a call: each is an option of one of the methods.

    Raises:
        InputError: one is not; with the nearest keyword or option.
    """
    known: set[str] = set()
    for method in methods:
        known |= set(registry.load(registry.METHODS, method).Config.model_fields)
    own = [name for name in signature(call).parameters if name != "options"]
    for name in options:
        if name not in known:
            hint = nearest(name, sorted({*own, *known}))
            no_option = " and no option of these methods" if known else ""
            message = f"is no keyword{no_option}{hint}"
            remedy = "help(harness.NAME) and `harness list methods NAME` list them"
            call_name = f"harness.{call.__name__}"
            raise InputError(message, file=call_name, key=name, remedy=remedy)


def is_in_hand(given: Any) -> bool:
    """True for texts, pairs, frames and data sets; not for names, paths and tables of settings."""
    if given is None:
        return False
    return not isinstance(given, str | Path | Mapping | TaskFile)


@contextmanager
def storing(workdir: str | Path) -> Iterator[Store]:
    """Have what a call is given in hand written into a work directory; removed where the input turns
    out to be wrong.
    """
    store = Store(Path(workdir))
    try:
        yield store
    except InputError:
        store.remove()
        raise


@dataclass
class Store:
    """Files of texts and pairs in a work directory, under hashes of their content: other processes
    and later calls read them.

    Attributes:
        written: the files and folders that were not there before.
    """

    workdir: Path
    written: list[Path] = field(default_factory=list)

    def corpus(
        self,
        given: Any,
        columns: Mapping[str, str] | None,
        limit: int | None,
    ) -> dict[str, Any] | None:
        """Return training text as an experiment file names it.

        Args:
            given: a name, a path, a table of settings, a list of texts or pairs, a frame or data
                set.
            columns: role -> name of the column.

        Raises:
            InputError: it is no text.
        """
        check_table("columns", columns, '{"text": "body"}')
        further: dict[str, Any] = {}
        if columns:
            further["columns"] = dict(columns)
        if limit is not None:
            further["limit"] = limit
        if given is None:
            return further or None
        if isinstance(given, Mapping):
            return {**given, **further}
        if not is_in_hand(given):
            return {"uri": str(given), **further}
        try:
            corpus = corpus_of(given, _kind_of(given, columns), limit=limit, columns=columns)
        except InputError as error:
            error.key = error.key or "corpus"
            raise
        rows = [_row_of(item) for item in corpus]
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        name = f"{corpus.kind}-{corpus.sha256[:16]}.jsonl"
        file = self.write(name, "\n".join(lines) + "\n")
        settings = {"uri": str(file), "kind": corpus.kind}
        if any("label" in row for row in rows):  # it is read only where it is named
            return {**settings, "columns": {"label": "label"}}
        return settings

    def frames(self, key: str, given: Any) -> Any:
        """Return `suites` or `dev` with the path of a file in place of each frame.

        Raises:
            InputError: something is neither a name, a file nor a frame.
        """
        if isinstance(given, list | tuple):
            return [self.frames(key, one) for one in given]
        if not is_in_hand(given):
            return given
        try:
            table = read_table(to_pandas(given))
        except InputError as error:
            error.rename_key(key)
            raise
        text = table.to_json(orient="records", lines=True, force_ascii=False)
        file = self.write(f"frame-{content_id(text)}.jsonl", text)
        return {"task": str(file)}

    def write(self, name: str, text: str) -> Path:
        """Write a file unless it is there; return its path."""
        file = self.workdir / IN_HAND / name
        if not file.is_file():
            refuse_link(file.parent, self.workdir)
            folders = (self.workdir, file.parent)
            self.written += [folder for folder in folders if not folder.exists()]
            write_atomic(file, text)
            self.written.append(file)
        return file

    def remove(self) -> None:
        """Remove what was written; folders unless somebody else has put something into them."""
        for path in reversed(self.written):
            if path.is_file():
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()


def _row_of(item: str | Pair) -> dict[str, str]:
    """Return the columns of a text or pair that hold something."""
    if isinstance(item, str):
        return {"text": item}
    columns = {}
    for name in _PAIRS:
        text = getattr(item, name)
        if text is not None:
            columns[name] = text
    return columns


def _kind_of(given: Any, columns: Mapping[str, str] | None) -> Kind:
    if isinstance(given, Corpus):
        return given.kind
    if is_table(given):
        names: Any = getattr(given, "column_names", None)
        if names is None:
            names = getattr(given, "columns", ())
        is_pairs = "anchor" in (columns or {}) or "anchor" in map(str, names)
        return "pairs" if is_pairs else "sentences"
    if isinstance(given, Sequence):
        first = next(iter(given), "")
    else:
        first = ""
    return "sentences" if isinstance(first, str) else "pairs"


def _toml_of(key: str, value: Any) -> str:
    """Return a value as TOML on one line.

    Raises:
        InputError: TOML has no such value, as a data frame.
    """
    try:
        return inline(_plain(value)).as_string()
    except (TypeError, ValueError):  # of tomlkit
        kind = type(value).__name__
        message = f"expected what an experiment file can hold (a name, a path, a table), not {kind}"
        raise InputError(message, file="experiment", key=f'key "{key}"') from None


def _plain(value: Any) -> Any:
    """Return a value as TOML has it."""
    if isinstance(value, TaskFile):
        return value.model_dump(exclude_defaults=True)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    return value
