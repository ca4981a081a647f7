"""Ids of code: in a run's id for the method that trained it, and in its record for the code that scored it."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from harness.files.hashing import content_id
from harness.identity.ledger import Ledger, Parts, kept_ledgers, ledger_of
from harness.identity.sources import Sources, folder_of

EVALUATION = "harness.evaluation"  # the part that every score rests on


def code_ids(kind: type) -> tuple[str, ...]:
    """The ids of the code of a method: the present one, then others under which runs of the same code are kept.

    The id stands for the versions of all parts that the method rests on. As long as none has changed since ledgers are
    kept, it is the id in the records from before them, where the version of Python made a difference.
    """
    return _ids(kind, ())


def evaluation_ids(kind: type) -> tuple[str, ...]:
    """As `code_ids`, for the code behind the scores of a task."""
    return _ids(kind, (EVALUATION,))


def twin(code: str, number: int) -> str:
    """Code id number `number` of the code whose first id `code` is; anything else is its own twin."""
    return _from_before().get(code, {}).get(number, code)


@cache
def _from_before() -> dict[str, dict[int, str]]:
    parts = Parts(ledger for folder in kept_ledgers() if (ledger := ledger_of(folder)) is not None)
    return {part.before[0]: dict(enumerate(part.before)) for part in parts.by_name.values() if part.before}


@cache
def _ids(kind: type, also: tuple[str, ...]) -> tuple[str, ...]:
    own = folder_of(kind)
    ledger = ledger_of(own) if own is not None else None
    parts = Parts(_ledgers(ledger.packages if ledger is not None else set()))
    part = parts.of(kind.__module__, kind.__qualname__.partition(".")[0])
    if part is None:
        return (_without_part(kind, own, also),)
    changed = _changed(parts, {part.name, *also})
    if part.before and not changed:
        return part.before
    return (content_id({part.name: part.version} | changed),)


def _without_part(kind: type, own: Path | None, also: tuple[str, ...]) -> str:
    """The code id of a class whose package keeps no ledger: its declared version, else a hash of its own files.

    Its own are the files of its package that its module imports, directly or through another. Of what was typed at a
    prompt there are none: only a declared version tells such classes apart.
    """
    near = Sources([own] if own is not None else [])
    modules = near.reached(kind.__module__)
    imported = {i.module.partition(".")[0] for module in modules for i in near.imports(module)}
    ledgers = _ledgers(imported)
    parts = Parts(ledgers)
    sources = Sources([*near.tops.values(), *(ledger.file.parent for ledger in ledgers)])
    forms = [sources.form(module) for module in sorted(modules)]
    reached = {part for form in forms for i in form.imported for part in parts.holding(sources.home(i))}
    if not modules:  # typed at a prompt: the text is not here to say what it rests on, but its bases are
        bases = (parts.of(base.__module__, base.__qualname__.partition(".")[0]) for base in kind.__mro__[1:])
        reached |= {part.name for part in bases if part is not None}
    version = getattr(kind, "version", None)
    code = sorted(form.hash for form in forms) if version is None else version
    return content_id({"code": code} | _changed(parts, reached | set(also)))


def _changed(parts: Parts, names: set[str]) -> dict[str, int]:
    """The versions above the first: a part that is cut in two, or called by one more, changes no id."""
    return {name: version for name, version in parts.closure(names).items() if version > 1}


def _ledgers(packages: set[str]) -> list[Ledger]:
    """The ledgers of the harness and of those of `packages` that keep one."""
    specs = [spec for name in sorted({"harness"} | packages) if (spec := importlib.util.find_spec(name)) is not None]
    folders = [Path(place) for spec in specs for place in spec.submodule_search_locations or ()]
    return [ledger for folder in folders if (ledger := ledger_of(folder)) is not None]
