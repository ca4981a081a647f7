"""Holds the ledgers against the code: what has changed without a word, and the entries that say what it means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import tomlkit

from harness.config import nearest
from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.identity.ledger import FILE, Ledger, Part, Parts, read_ledger
from harness.identity.normal_form import NormalForm
from harness.identity.sources import Sources


class Review:
    """The ledgers of some packages beside their code."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Read both.

        Raises:
            InputError: a package without a ledger.
        """
        self.ledgers: list[Ledger] = []
        for folder in folders:
            ledger = read_ledger(folder)
            if ledger is None:
                raise InputError(f"{folder}: no {FILE} in it")
            self.ledgers.append(ledger)
        self.sources = Sources(folders)
        self.parts = Parts(self.ledgers)

    def form(self, key: str) -> NormalForm:
        """The code of a key: of "module:name", or of a module without the names that have keys of their own."""
        module, _, name = key.partition(":")
        return self._piece(
            module, name, [k.partition(":")[2] for k in self.parts.by_code if k.startswith(f"{module}:")]
        )

    def _piece(self, module: str, name: str, apart: Iterable[str]) -> NormalForm:
        """One name of a module, or for "" all of it but the names that stand `apart`."""
        return self.sources.form(module, name, without=() if name else [other for other in apart if other])

    def uses(self, part: Part) -> list[str]:
        """The other parts that the code of a part calls."""
        called: set[str] = set()
        for key in part.code:
            form, module = self.form(key), key.partition(":")[0]
            for imported in form.imported:
                called |= self.parts.holding(self.sources.home(imported))
            source = self.sources.source(module)
            for name in form.names & set(source.defined if source is not None else ()):
                called |= {other.name} if (other := self.parts.of(module, name)) is not None else set()
        return sorted(called - {part.name})

    @cached_property
    def changed(self) -> dict[str, list[str]]:
        """Part -> what in its code is not as its ledger has it."""
        changes: dict[str, list[str]] = {}
        for part in self.parts.by_name.values():
            keys = [key for key, hash_ in part.code.items() if self.form(key).hash != hash_]
            told = [f"{key} {'has changed' if self.form(key).tree else 'is not there any more'}" for key in keys]
            calls = sorted(set(self.uses(part)) ^ set(part.uses))
            if told or calls:
                changes[part.name] = told or [f"it calls other parts than it says ({', '.join(calls)})"]
        return changes

    def faults(self) -> list[str]:
        """One line for each place where ledger and code disagree; none: no number changes unnoticed."""
        lines = [f"{module} is in no part: what it computes is in no id" for module in self.unlisted]
        lines += [f"{name}: {what}" for name, told in self.changed.items() for what in told]
        for part in self.parts.by_name.values():
            unknown = sorted(set(part.also) - set(self.parts.by_name))
            lines += [f'{part.name}: no part "{name}", which it names under "also"' for name in unknown]
        return lines

    @cached_property
    def unlisted(self) -> list[str]:
        """Modules with code that are neither in a part nor outside."""
        return [
            module
            for ledger in self.ledgers
            for module in self.sources.modules(ledger.package)
            if not ledger.is_outside(module) and module not in self.parts.by_code and self.form(module).tree
        ]

    def moved(self) -> dict[str, str]:
        """Old key -> new key of the modules that now lie elsewhere with the same code."""
        code: dict[str, dict[str, str]] = {}  # module -> name -> hash
        for part in self.parts.by_name.values():
            for key, hash_ in part.code.items():
                module, _, name = key.partition(":")
                code.setdefault(module, {})[name] = hash_
        new_keys: dict[str, str] = {}
        for old, hashes in code.items():
            for new in self.unlisted if self.sources.file(old) is None else ():
                if hashes == {name: self._piece(new, name, hashes).hash for name in hashes}:
                    new_keys |= {f"{old}:{name}".rstrip(":"): f"{new}:{name}".rstrip(":") for name in hashes}
        return new_keys

    def ids_with(self, name: str) -> list[str]:
        """The parts whose own id, in records, a part enters."""
        return sorted(other for other in self.parts.by_name if name in self.parts.closure([other]))

    def follow(self) -> dict[str, str]:
        """Write the new places of the modules that have moved; returns them."""
        moves = self.moved()

        def rename(part: Part, table: Any) -> None:
            table["code"] = {moves.get(key, key): hash_ for key, hash_ in part.code.items()}

        self._write([part.name for part in self.parts.by_name.values() if set(part.code) & set(moves)], rename)
        return moves

    def enter(self, names: Iterable[str], *, because: str, bump: bool) -> None:
        """Take the present code of parts into their ledgers, as a new version if `bump`, and write down why.

        Raises:
            InputError: no such part, or no reason given.
        """
        if not because.strip():
            raise InputError("--because: say in one line why; the ledger keeps it")

        def take(part: Part, table: Any) -> None:
            version = part.version + bump
            table["version"] = version
            table["uses"] = self.uses(part)
            table["code"] = {key: self.form(key).hash for key in part.code}
            note = f"version {version}" if bump else "no effect"
            history = [*table.get("history", ()), f"{datetime.now(UTC):%Y-%m-%d}, {note}: {because.strip()}"]
            table["history"] = tomlkit.array()
            table["history"].extend(history)
            table["history"].multiline(len(history) > 1)

        self._write(names, take)

    def _write(self, names: Iterable[str], change: Callable[[Part, Any], None]) -> None:
        wanted = set(names)
        for name in sorted(wanted - set(self.parts.by_name)):
            raise InputError(f'no part "{name}"{nearest(name, sorted(self.parts.by_name))}')
        for ledger in self.ledgers:
            document = tomlkit.parse(ledger.file.read_text(encoding="utf-8"))
            for name in wanted & set(ledger.parts):
                change(ledger.parts[name], document["parts"][name.partition(".")[2]])
            write_atomic(ledger.file, tomlkit.dumps(document))
