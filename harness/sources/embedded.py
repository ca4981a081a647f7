"""The embedded suite: original data and a small base model that ship inside the package; base
models by content.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from harness.config import nearest
from harness.errors import InputError
from harness.files.reading import expand_user, is_there, read_json
from harness.sources.remote.hub import hub_file

# A folder on disk, also in an installed wheel: transformers can read a model from nothing else.
FOLDER = Path(__file__).resolve().parent.parent / "embedded"
PARTS = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
PREFIX = "embedded:"

EMBEDDED_MODELS: dict[str, Path] = {"mini-bert": FOLDER / "model"}


def list_embedded_files(name: str, parts: Iterable[str] = PARTS) -> list[Path]:
    """The files `name`.jsonl of those parts that have one, in the order of the parts."""
    files = [FOLDER / part / f"{name}.jsonl" for part in parts]
    return [file for file in files if file.is_file()]


def embedded_rows(name: str, parts: Iterable[str] = PARTS) -> list[dict[str, Any]]:
    """The rows of `name` ("sts", "sentences", "retrieval" ...) as dicts, each with its part under
    "part".
    """
    found = []
    for file in list_embedded_files(name, parts):
        part = file.parent.name
        found += [{"part": part, **row} for row in _read_rows(file)]
    return found


@cache
def _read_rows(file: Path) -> tuple[dict[str, Any], ...]:
    """Return the rows of a file of this package, which does not change while a process runs."""
    lines = file.read_text(encoding="utf-8").split("\n")
    return tuple(json.loads(line) for line in lines if line)


def topic_rows(parts: Iterable[str], count: int) -> list[dict[str, Any]]:
    """The first `count` sentences of every topic of each of these parts."""
    chosen = []
    met: Counter[tuple[str, str]] = Counter()
    for row in embedded_rows("sentences", parts):
        topic = row["part"], row["topic"]
        met[topic] += 1
        if met[topic] <= count:
            chosen.append(row)
    return chosen


def resolve_model(name: str) -> str:
    """What transformers can load: a folder for "embedded:NAME" or a path, else the hub id `name`,
    unchanged.

    Raises:
        InputError: unknown embedded model (with the nearest one), or what can only be a path does
            not exist.
    """
    if name.startswith(PREFIX):
        known = sorted(PREFIX + model for model in EMBEDDED_MODELS)
        if name not in known:
            raise InputError(
                f'base model "{name}": unknown{nearest(name, known)}; known: {", ".join(known)}',
                file=name,
            )
        return str(EMBEDDED_MODELS[name.removeprefix(PREFIX)])
    path = expand_user(name)
    if name and is_there(path) and path.is_dir():
        return str(path)
    if name and is_there(path):
        raise InputError(
            f'base model "{name}": is a file',
            file=name,
            remedy="give the folder that holds config.json and the weights; vectors are .npz or .parquet",
        )
    begins_as_path = name.startswith(("/", ".", "~"))
    is_path = begins_as_path or name.count("/") > 1 or "\\" in name
    if not name.strip() or is_path:
        raise InputError(
            f'base model "{name}": no such folder; give a model folder, a hub id such as ORG/NAME, or '
            + " / ".join(PREFIX + model for model in EMBEDDED_MODELS),
            file=name,
        )
    return name


_ADAPTER = "adapter_config.json"
_SEGMENTED = ("xlnet", "funnel")  # types of models whose segments are not zeros
_SUFFIXES = {".safetensors", ".json", ".txt", ".model", ".bin"}  # of weights and settings


def _base_of(adapter: Path) -> str:
    """Return the base model that an adapter names; empty where its weights lie beside it."""
    base = read_json(adapter).get("base_model_name_or_path")
    lies_beside = (adapter.parent / "config.json").is_file()
    if lies_beside or not isinstance(base, str):
        return ""
    if expand_user(base).resolve() == adapter.parent.resolve():  # itself
        return ""
    return base


def _base_fingerprint(adapter: Path) -> str:
    """Fingerprint of the base model that an adapter names; empty where its weights lie beside it."""
    base = _base_of(adapter)
    if base:
        return model_fingerprint(base)
    return ""


def _files_of(folder: Path) -> list[Path]:
    """Return the files of weights and settings in a model folder, sorted."""
    files = [file for file in folder.rglob("*") if file.suffix in _SUFFIXES]
    return sorted(file for file in files if file.is_file())


State = tuple[tuple[str, int, int], ...]


def _state_of(name: str) -> State:
    """Return path, size and time of change of the files of a model folder, and of those of the base
    models of its adapters; nothing of other models, which do not change while a process runs.
    """
    try:
        folder = Path(resolve_model(name))
        if name.startswith(PREFIX) or not folder.is_dir():
            return ()
        state: State = ()
        for file in _files_of(folder):
            about = file.stat()
            state += ((str(file), about.st_size, about.st_mtime_ns),)
            base = _base_of(file) if file.name == _ADAPTER else ""
            if base:
                state += _state_of(base)
    except (InputError, OSError):  # who reads the model reports it
        return ()
    return state


P = ParamSpec("P")
T = TypeVar("T")


def cached_by_model(read: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Return a function of the name of a model, and of what can be hashed, that reads once as long
    as the files of the model's folder do not change.

    >>> depth = cached_by_model(lambda name: len(resolve_model(name).split("/")))
    >>> depth("embedded:mini-bert") == depth("embedded:mini-bert")
    True
    """

    known: dict[Hashable, T] = {}

    @wraps(read)
    def of_name(name: str, /, *args: P.args, **options: P.kwargs) -> T:
        key = (_state_of(name), name, args, tuple(options.items()))
        if key not in known:
            known[key] = read(name, *args, **options)
        return known[key]

    return of_name


def _own_segments(folder: Path) -> str:
    """Return " segments" for models that number segments in a way of their own: runs of a version
    that gave them zeros have other ids.
    """
    for place in (folder, folder / "0_Transformer"):
        with suppress(OSError, ValueError):
            config = json.loads((place / "config.json").read_text("utf-8"))
            if isinstance(config, dict) and config.get("model_type") in _SEGMENTED:
                return " segments"
    return ""


@cached_by_model
def model_fingerprint(name: str) -> str:
    """Content hash of a model folder, or the commit of a model on the hub.

    Raises:
        InputError: there is no such model.
    """
    where = resolve_model(name)
    folder = Path(where)
    if folder.is_dir():
        digest = hashlib.sha256()
        for file in _files_of(folder):
            digest.update(str(file.relative_to(folder)).encode())
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        for adapter in sorted(folder.rglob(_ADAPTER)):
            digest.update(f"merged {_base_fingerprint(adapter)}".encode())
        return digest.hexdigest()[:16] + _own_segments(folder)
    try:
        snapshot = hub_file(where, "config.json", kind="model").parent
        return snapshot.name + _own_segments(snapshot)  # its name is the commit
    except InputError as error:
        with suppress(InputError):  # an adapter alone
            adapter = hub_file(where, _ADAPTER, kind="model")
            return f"{adapter.parent.name} {_base_fingerprint(adapter)}"
        raise type(error)(
            f'base model "{name}": not a folder here and not found on the hub ({error})'
        ) from None
