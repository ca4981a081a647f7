"""Text URIs: what a corpus is called in an experiment file, and the files behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from harness.config import nearest
from harness.errors import InputError
from harness.files.reading import is_there
from harness.sources.embedded import PREFIX as EMBEDDED
from harness.sources.embedded import embedded_files
from harness.sources.remote.hub import hub_file

HUB = "hf://"
_HUB_FORM = "hf://datasets/ORG/NAME/FILE (with @REVISION after NAME for another than the newest)"
_SIMCSE = "hf://datasets/princeton-nlp/datasets-for-simcse/"

# name -> (URI behind it, kind, default columns)
PRESETS: dict[str, tuple[str, str, dict[str, str]]] = {
    "wiki1m": (_SIMCSE + "wiki1m_for_simcse.txt", "sentences", {}),
    "nli": (
        _SIMCSE + "nli_for_simcse.csv",
        "pairs",
        {"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"},
    ),
}
# name -> default columns; the name is also the kind
EMBEDDED_CORPORA: dict[str, dict[str, str]] = {
    "sentences": {},
    "pairs": {"negative": "hard_negative"},
    "documents": {},
}


@dataclass(frozen=True)
class Location:
    """The files of a corpus, in order, and what is known of their content."""

    files: tuple[Path, ...]
    kind: str | None = None  # the one kind that it holds, where that is known
    columns: Mapping[str, str] = field(default_factory=dict)  # default columns that differ from the usual names


def locate(uri: str) -> Location:
    """The files behind `uri`, downloaded where need be.

    Raises:
        InputError: unknown name or preset (with the nearest), malformed URI, missing file, hub out of reach.
    """
    if uri.startswith(EMBEDDED):
        name = uri.removeprefix(EMBEDDED)
        if name not in EMBEDDED_CORPORA:
            known = [EMBEDDED + n for n in EMBEDDED_CORPORA]
            raise InputError(f'corpus "{uri}": unknown{nearest(uri, known)}; known: {", ".join(known)}')
        return Location(tuple(embedded_files(name)), name, EMBEDDED_CORPORA[name])
    if uri.startswith(HUB):
        return Location((_from_hub(uri),))
    if uri in PRESETS:
        target, kind, columns = PRESETS[uri]
        return Location((_from_hub(target),), kind, columns)
    return Location((_local(uri),))


def _from_hub(uri: str) -> Path:
    parts = uri.removeprefix(HUB).split("/", 3)
    if len(parts) < 4 or parts[0] != "datasets" or not all(parts):
        raise InputError(f'corpus "{uri}": expected {_HUB_FORM}')
    organisation, named, file = parts[1:]
    name, _, revision = named.partition("@")
    return hub_file(f"{organisation}/{name}", file, unquote(revision) or None)


def _local(uri: str) -> Path:
    path = Path(uri).expanduser()
    if is_there(path) and path.is_dir():
        raise InputError(f'corpus "{uri}": is a folder; give a file')
    if not uri.strip() or not is_there(path):
        if "/" in uri or "." in uri:
            raise InputError(f'corpus "{uri}": no such file')
        known = [*PRESETS, *(EMBEDDED + name for name in EMBEDDED_CORPORA)]
        raise InputError(
            f'corpus "{uri}": neither a file nor a known name{nearest(uri, known)}; '
            f"known: {', '.join(known)}, {HUB}datasets/ORG/NAME/FILE"
        )
    return path
