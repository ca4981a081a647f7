"""Names and addresses of training text: the catalogue of corpora, and the files or the data set
behind a URI.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from harness.config import nearest
from harness.errors import InputError
from harness.files.reading import expand_user, is_there, read_toml
from harness.sources.embedded import PREFIX as EMBEDDED
from harness.sources.embedded import list_embedded_files
from harness.sources.remote.hub import hub_file


@dataclass(frozen=True)
class NamedCorpus:
    """A corpus with a name that experiment files may use.

    Attributes:
        uri: the text of that name. kind: the kind of its items. columns: role -> column, see
            `load_corpus`.
        items: how many items it has, without empty ones; 0: not known. size: the size of the
            download.
        paper: where the text comes from. purpose: which methods train on it, and what differs from
            their text.
        parts: names in `?parts=` -> splits of the data set. Without `?parts=`: `default_parts`, or
            all of them.
        labels: names of whole-number labels, for data sets that do not name them.
        written_by: who wrote the text where people did not, such as "a language model".
        untried: tested only on a generated file of the same layout, not on the data set itself.
    """

    uri: str
    kind: str
    size: str
    licence: str
    paper: str
    purpose: str
    items: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    default_parts: Sequence[str] = ()
    labels: Sequence[str] = ()
    written_by: str = ""
    untried: bool = False


CATALOGUE: dict[str, NamedCorpus] = {
    name: NamedCorpus(**entry)
    for name, entry in read_toml(Path(__file__).with_suffix(".toml")).items()
}

HUB = "hf://"
_SELECTION = ("min_tokens", "tokenizer")
_FILE_OPTIONS = ("revision", "columns", *_SELECTION)
_SET_OPTIONS = ("config", "split", *_FILE_OPTIONS)

# name -> default columns; the name is also the kind
EMBEDDED_CORPORA: dict[str, dict[str, str]] = {
    "sentences": {},
    "pairs": {"negative": "hard_negative"},
    "documents": {},
}


@dataclass(frozen=True)
class Location:
    """The files or the data set behind a URI, and what is known about the text.

    Attributes:
        files: the files in order; empty where `repository` has the text.
        repository: a whole data set of the hub ("ORG/NAME"), with `config` ("": the only one),
            `split` ("train+test": both) and `labels`, names of whole-number labels, for data sets
            that do not name them.
        revision: as the URI names it; of a file of the hub the commit.
        kind: the kind of its items, where that is known.
        columns: default columns that differ from the usual names. named: the columns that the URI
            names.
        min_tokens: use only texts of at least so many tokens of the model `tokenizer`, special ones
            not counted.
        name: the catalogue's name of the text, or "". source: the URI of a name.
    """

    files: tuple[Path, ...] = ()
    repository: str = ""
    config: str = ""
    split: str = "train"
    labels: Sequence[str] = ()
    revision: str = ""
    kind: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    min_tokens: int = 0
    tokenizer: str = ""
    name: str = ""
    source: str = ""

    @property
    def selection(self) -> str:
        """In words, which texts are used; "" for all."""
        if self.min_tokens:
            return f"at least {self.min_tokens:,} tokens of {self.tokenizer}"
        return ""

    @property
    def data_set(self) -> str:
        """The address of the hub's data set, for messages."""
        if self.revision:
            at = f"@{self.revision}"
        else:
            at = ""
        if self.config:
            config = f"config={self.config}&"
        else:
            config = ""
        address = f"hf://datasets/{self.repository}{at}"
        return f"{address}?{config}split={self.split}"


def locate(uri: str) -> Location:
    """Find the text of `uri`; a file of the hub is downloaded unless it is cached.

    Raises:
        InputError: unknown name (with the nearest one), malformed URI, missing file, hub out of
            reach.
    """
    base, _, query = uri.partition("?")
    if base.startswith(EMBEDDED):
        name = base.removeprefix(EMBEDDED)
        if name not in EMBEDDED_CORPORA:
            known = [EMBEDDED + known for known in EMBEDDED_CORPORA]
            raise _name_error(uri, "", base, known)
        found = _select(uri, _options(uri, query, _SELECTION))
        return replace(
            found,
            files=tuple(list_embedded_files(name)),
            kind=name,
            columns=EMBEDDED_CORPORA[name],
        )
    if base.startswith(HUB):
        whole = base.count("/") == HUB.count("/") + 2
        options = _options(uri, query, _SET_OPTIONS if whole else _FILE_OPTIONS)
        name = ""
        if not options:
            name = _name_of_address(base.replace("@main/", "/"))
        return replace(_locate_on_hub(uri, base, options), name=name)
    if base not in CATALOGUE:
        return Location((_local_file(uri),))
    return _locate_named(uri, base, query)


def _name_of_address(address: str) -> str:
    """Return the name in the catalogue of an address of the hub; "" if it has none."""
    for name, entry in CATALOGUE.items():
        if entry.uri == address:
            return name
    return ""


def _locate_named(uri: str, name: str, query: str) -> Location:
    """Find a text of the catalogue, with the options of a query."""
    entry = CATALOGUE[name]
    keys = ["revision", *_SELECTION]
    if entry.parts:
        keys.insert(1, "parts")
    options = _options(uri, query, tuple(keys))
    address, _, fixed = entry.uri.partition("?")
    settings = _options(entry.uri, fixed, _SET_OPTIONS)
    if entry.parts:
        usual = ",".join(entry.default_parts or entry.parts)
        parts = options.pop("parts", usual).split(",")
        for part in parts:
            if part not in entry.parts:
                raise _name_error(uri, f' part "{part}"', part, list(entry.parts))
        splits = [entry.parts[part] for part in parts]
        settings["split"] = "+".join(splits)
    found = _locate_on_hub(uri, address, settings | options)
    return replace(
        found,
        kind=entry.kind,
        columns=entry.columns,
        labels=entry.labels,
        name=name,
        source=entry.uri,
    )


def _locate_on_hub(uri: str, base: str, options: Mapping[str, str]) -> Location:
    """A file or a whole data set of the hub; `base` is its address without options."""
    parts = base.removeprefix(HUB).split("/", 3)
    names_data_set = len(parts) >= 3 and parts[0] == "datasets"
    if not names_data_set or not all(parts):
        raise InputError(
            f'corpus "{uri}": expected hf://datasets/ORG/NAME/FILE, or hf://datasets/ORG/NAME for a whole data set '
            "(with @REVISION after NAME for another than the newest, and ?config=...&split=...&columns=... after it)",
            file=uri,
        )
    columns = []
    for pair in options.get("columns", "").split(","):
        if pair:
            columns.append(pair.partition(":"))
    if not all(role and column for role, _, column in columns):
        raise InputError(
            f'corpus "{uri}": columns: expected role:column, as in columns=anchor:source,positive:target',
            file=uri,
        )
    named = {role: column for role, _, column in columns}
    found = replace(_select(uri, options), named=named)
    name, _, after = parts[2].partition("@")
    repository = f"{parts[1]}/{name}"
    revision = options.get("revision") or unquote(after)
    if len(parts) == 4:
        file = hub_file(repository, parts[3], revision or None)
        commit = ""
        for at, after in pairwise(file.parts):
            if at == "snapshots":
                commit = after
                break
        return replace(found, files=(file,), revision=commit)
    config = options.get("config", "")
    split = options.get("split", "train")
    return replace(found, repository=repository, revision=revision, config=config, split=split)


def _options(uri: str, query: str, known: tuple[str, ...]) -> dict[str, str]:
    """What follows "?": KEY=VALUE, joined by "&"."""
    given = parse_qsl(
        query.replace("+", "%2B"), keep_blank_values=True
    )  # a plus sign joins columns and splits
    options = dict(given)
    for key, value in given:
        if key not in known:
            raise _name_error(uri, f' option "{key}"', key, list(known))
        if not value or len(options) < len(given):
            raise InputError(
                f'corpus "{uri}": option "{key}" needs one value, as in {key}=...',
                file=uri,
                key=key,
            )
    return options


def _select(uri: str, options: Mapping[str, str]) -> Location:
    """A location of which only the selection is known yet."""
    number = options.get("min_tokens", "")
    tokenizer = options.get("tokenizer", "")
    is_number = re.fullmatch("[0-9]{0,9}", number)
    if bool(tokenizer) != bool(number) or not is_number:
        raise InputError(
            f'corpus "{uri}": min_tokens = {number[:40]}; expected a whole number and a model, as in '
            "min_tokens=2048&tokenizer=FacebookAI/roberta-base",
            file=uri,
        )
    return Location(min_tokens=int(number or 0), tokenizer=tokenizer)


_JOIN = "give one file; of several .txt files, one with the texts of all"


def _local_file(uri: str) -> Path:
    path = expand_user(uri)
    if uri.strip() and is_there(path):
        if path.is_dir():
            raise InputError(f'corpus "{uri}": is a folder', file=uri, remedy=_JOIN)
        return path
    base = uri.partition("?")[0]
    if "*" in base:
        message = f'corpus "{uri}": no such file, and patterns are not read'
        raise InputError(message, file=uri, remedy=_JOIN)
    if "/" in base or "." in base:
        raise InputError(f'corpus "{uri}": no such file', file=uri)
    embedded = [EMBEDDED + name for name in EMBEDDED_CORPORA]
    known = [*CATALOGUE, *embedded]
    raise InputError(
        f'corpus "{uri}": neither a file nor a known name{nearest(base, known)}; '
        f"known: {', '.join(known)}, {HUB}datasets/ORG/NAME, {HUB}datasets/ORG/NAME/FILE",
        file=uri,
    )


def _name_error(uri: str, what: str, given: str, known: list[str]) -> InputError:
    return InputError(
        f'corpus "{uri}": unknown{what}{nearest(given, known)}; known: {", ".join(known)}', file=uri
    )
