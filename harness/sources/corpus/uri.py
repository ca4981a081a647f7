"""Text URIs: what a corpus is called in an experiment file, and the files or the data set of the hub behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

from harness.config import nearest
from harness.errors import InputError
from harness.files.reading import is_there
from harness.sources.corpus.catalogue import CATALOGUE, NamedCorpus
from harness.sources.corpus.hub_table import HubTable
from harness.sources.corpus.selection import NO_SELECTION, Selection
from harness.sources.embedded import PREFIX as EMBEDDED
from harness.sources.embedded import embedded_files
from harness.sources.remote.hub import hub_file

HUB = "hf://"
_HUB_FORM = (
    "hf://datasets/ORG/NAME/FILE, or hf://datasets/ORG/NAME for a whole data set (with @REVISION after NAME for "
    "another than the newest, and ?config=...&split=...&columns=... after it)"
)
_SELECTION = ("min_words", "min_tokens", "tokenizer", "distinct")
_OF_FILE = ("revision", "columns", *_SELECTION)
_OF_TABLE = ("config", "split", *_OF_FILE)

# name -> default columns; the name is also the kind
EMBEDDED_CORPORA: dict[str, dict[str, str]] = {
    "sentences": {},
    "pairs": {"negative": "hard_negative"},
    "documents": {},
}


@dataclass(frozen=True)
class Location:
    """Where the text of a corpus lies, and what is known of it.

    Attributes:
        files: in order; empty where `table` has the text.
        kind: the one kind that it holds, where that is known.
        columns: default columns that differ from the usual names. asked: those that the URI itself names.
        name: that of the catalogue under which the text is known. source: the URI behind a name.
        revision: the commit of the hub's data set, of a file.
    """

    files: tuple[Path, ...] = ()
    table: HubTable | None = None
    kind: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    selection: Selection = NO_SELECTION
    name: str = ""
    source: str = ""
    revision: str = ""


def locate(uri: str) -> Location:
    """The text behind `uri`; files are downloaded where need be.

    Raises:
        InputError: unknown name (with the nearest), malformed URI, missing file, hub out of reach.
    """
    base, _, query = uri.partition("?")
    if base.startswith(EMBEDDED):
        name = base.removeprefix(EMBEDDED)
        if name not in EMBEDDED_CORPORA:
            known = [EMBEDDED + n for n in EMBEDDED_CORPORA]
            raise InputError(f'corpus "{uri}": unknown{nearest(base, known)}; known: {", ".join(known)}')
        options = _options(uri, query, _SELECTION)
        files = tuple(embedded_files(name))
        return Location(files, kind=name, columns=EMBEDDED_CORPORA[name], selection=_selection(uri, options))
    if base.startswith(HUB):
        return _from_hub(uri)
    if base in CATALOGUE:
        return _named(uri, base, CATALOGUE[base], query)
    return Location((_local(uri),))


def _named(uri: str, name: str, entry: NamedCorpus, query: str) -> Location:
    options = _options(uri, query, ("revision", *(["parts"] if entry.parts else []), *_SELECTION))
    target, _, fixed = entry.uri.partition("?")
    given = _options(entry.uri, fixed, _OF_TABLE)
    if entry.parts:
        parts = options.get("parts", ",".join(entry.default_parts or entry.parts)).split(",")
        for part in parts:
            if part not in entry.parts:
                known = ", ".join(entry.parts)
                raise InputError(
                    f'corpus "{uri}": unknown part "{part}"{nearest(part, list(entry.parts))}; known: {known}'
                )
        given["split"] = "+".join(entry.parts[part] for part in parts)
    given |= {key: value for key, value in options.items() if key != "parts"}
    found = _hub_location(uri, target, given, entry.labels)
    return replace(found, kind=entry.kind, columns=entry.columns, name=name, source=entry.uri)


def _from_hub(uri: str) -> Location:
    base, _, query = uri.partition("?")
    whole = base.count("/") == HUB.count("/") + 2
    return _hub_location(uri, base, _options(uri, query, _OF_TABLE if whole else _OF_FILE))


def _hub_location(uri: str, base: str, options: Mapping[str, str], labels: tuple[str, ...] = ()) -> Location:
    """A file, or a whole data set, of the hub: `base` is its address without options."""
    parts = base.removeprefix(HUB).split("/", 3)
    if len(parts) < 3 or parts[0] != "datasets" or not all(parts):
        raise InputError(f'corpus "{uri}": expected {_HUB_FORM}')
    name, _, after = parts[2].partition("@")
    revision = options.get("revision") or unquote(after)
    repository = f"{parts[1]}/{name}"
    selection, columns = _selection(uri, options), _columns(uri, options.get("columns", ""))
    known = _known_as(base, options)
    if len(parts) == 4:
        file = hub_file(repository, parts[3], revision or None)
        commit = next((after for at, after in zip(file.parts, file.parts[1:], strict=False) if at == "snapshots"), "")
        return Location((file,), asked=columns, selection=selection, name=known, revision=commit)
    table = HubTable(repository, revision, options.get("config", ""), options.get("split", "train"), labels)
    return Location(table=table, asked=columns, selection=selection, name=known)


def _known_as(base: str, options: Mapping[str, str]) -> str:
    """The name of a file that is written out as the catalogue has it."""
    address = base.replace("@main/", "/")
    names = [name for name, entry in CATALOGUE.items() if entry.uri == address and not options]
    return names[0] if names else ""


def _options(uri: str, query: str, known: tuple[str, ...]) -> dict[str, str]:
    """What stands after "?": KEY=VALUE, joined by "&"."""
    options: dict[str, str] = {}
    for setting in filter(None, query.split("&")):
        key, equals, value = setting.partition("=")
        if key not in known:
            raise InputError(
                f'corpus "{uri}": unknown option "{key}"{nearest(key, list(known))}; here they are: {", ".join(known)}'
            )
        if not equals or not value or key in options:
            raise InputError(f'corpus "{uri}": option "{key}" needs one value, as in {key}=...')
        options[key] = unquote(value)
    return options


def _columns(uri: str, text: str) -> dict[str, str]:
    """columns=ROLE:COLUMN,ROLE:COLUMN"""
    columns = {}
    for pair in filter(None, text.split(",")):
        role, colon, column = pair.partition(":")
        if not colon or not role or not column:
            raise InputError(
                f'corpus "{uri}": columns: expected role:column, as in columns=anchor:source,positive:target'
            )
        columns[role] = column
    return columns


def _selection(uri: str, options: Mapping[str, str]) -> Selection:
    numbers = {}
    for key in ("min_words", "min_tokens"):
        value = options.get(key, "0")
        if not value.isascii() or not value.isdigit() or len(value) > 9:
            raise InputError(f'corpus "{uri}": {key} = {value[:40]}; expected a whole number')
        numbers[key] = int(value)
    tokenizer = options.get("tokenizer", "")
    if bool(tokenizer) != bool(numbers["min_tokens"]):
        raise InputError(
            f'corpus "{uri}": min_tokens and tokenizer go together: min_tokens=2048&tokenizer=FacebookAI/roberta-base; '
            "without a tokenizer: min_words"
        )
    distinct = options.get("distinct", "no")
    if distinct not in ("yes", "no"):
        raise InputError(f'corpus "{uri}": distinct = {distinct}; expected yes or no')
    return Selection(**numbers, tokenizer=tokenizer, distinct=distinct == "yes")


def _local(uri: str) -> Path:
    path = Path(uri).expanduser()
    if uri.strip() and is_there(path) and path.is_dir():
        raise InputError(f'corpus "{uri}": is a folder; give a file')
    if not uri.strip() or not is_there(path):
        base = uri.partition("?")[0]
        known = [*CATALOGUE, *(EMBEDDED + name for name in EMBEDDED_CORPORA)]
        if "/" in base or "." in base:
            raise InputError(f'corpus "{uri}": no such file')
        raise InputError(
            f'corpus "{uri}": neither a file nor a known name{nearest(base, known)}; '
            f"known: {', '.join(known)}, {HUB}datasets/ORG/NAME, {HUB}datasets/ORG/NAME/FILE"
        )
    return path
