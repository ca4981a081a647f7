"""The code of others that runs of a comparison used: files of plugins, losses and scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from harness import registry
from harness.errors import InputError
from harness.files.code import Source, find_sources, is_library, is_shipped, read_again
from harness.files.imports import names_code
from harness.files.printable import join_some
from harness.results.code import file_in_package
from harness.results.record import Record


class PackedCode:
    """The code behind runs, as far as it has files here.

    Attributes:
        files: place in the folder of the experiment -> file.
        plugins: what has entry points: group, name, value ("module:attribute"), package, version.
        remarks: sentences on code that is not here.

    Raises:
        InputError: a file has changed since runs used it.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.files: dict[str, Path] = {}
        self.remarks: list[str] = []
        self.plugins = _find_plugins(records)
        hashes: dict[str, str] = {}
        modules: dict[str, None] = {}
        for record in records:
            hashes |= record.spec.code
            for code in record.task_code.values():
                hashes |= code
            modules |= dict.fromkeys(_modules_of(record))
            self.files |= _script_of(record)
        for module, file in _sources(list(modules)).items():
            self.files[file_in_package(module, file)] = file
        self._compare(hashes)

    def _compare(self, hashes: dict[str, str]) -> None:
        """Compare files with the hashes of the runs; find further ones in the working folder."""
        lost = []
        for name, digest in hashes.items():
            file = self.files.get(name, Path(name))
            if file.is_file():
                found = _digest(file)
            else:
                found = ""
            if found == digest:
                self.files[name] = file
            elif name in self.files:
                message = "has changed since runs used it"
                raise InputError(message, file=file, remedy="run the comparison again")
            elif name.endswith(".py") or name.startswith("cell "):
                lost.append(name)
        if lost:
            self.remarks.append(f"code without a file here, so not included: {join_some(lost)}")


def _digest(file: Path) -> str:
    source = read_again(Source(file, "", None, None))
    return "" if source is None else source.digest


def _sources(modules: list[str]) -> dict[str, Path]:
    """Return module -> file, of modules and what they import of the same package or folder."""
    folder = str(Path.cwd())
    added = folder not in sys.path
    if added:
        sys.path.append(folder)
    try:
        sources = find_sources(modules)
        return {name: source.file for name, source in sources.items()}
    finally:
        if added:
            sys.path.remove(folder)


def _modules_of(record: Record) -> Iterator[str]:
    """Yield the modules of others that a run imports; libraries are known by their versions."""
    method = record.spec.method
    if method.startswith(registry.LOSS):
        path = method.removeprefix(registry.LOSS)
        yield from _unless_library(path.partition(":")[0])
    elif method != registry.COMMAND:
        yield from _modules_of_plugin(registry.METHODS, method)
    for value in record.spec.config.values():
        if isinstance(value, str) and names_code(value):
            yield from _unless_library(value.partition(":")[0])
    for key in record.task_code:
        yield from _modules_of_plugin(registry.TASKS, key.partition(":")[2])


def _unless_library(module: str) -> Iterator[str]:
    file = _sources([module]).get(module)
    if file is None or is_library(file) or is_shipped(file):
        return
    yield module


def _modules_of_plugin(group: registry.Group, name: str) -> Iterator[str]:
    for point in registry.points(group):
        package, _ = registry.package(point)
        if point.name == name and package != registry.OWN:
            yield point.module
    if name in registry.names_of_process(group):
        found = registry.load(group, name)
        module = getattr(found, "__module__", "__main__")
        if module != "__main__":
            yield module


def _script_of(record: Record) -> dict[str, Path]:
    """Return the files of a command, at the place where its row says that they are; none where that
    is outside of the working folder, which is a path of this machine.
    """
    if record.spec.method != registry.COMMAND:
        return {}
    folder = Path(record.spec.config["folder"])
    if folder.is_absolute() or ".." in folder.parts:
        return {}
    files = {}
    for pattern in record.spec.config["files"]:
        for file in sorted(folder.glob(pattern)):
            if file.is_file():
                inside = file.relative_to(folder).as_posix()
                place = PurePosixPath(folder.as_posix(), inside)
                files[str(place)] = file
    return files


def _find_plugins(records: Sequence[Record]) -> list[dict[str, str]]:
    methods = {record.spec.method for record in records}
    tasks = set()
    for record in records:
        for key in record.task_code:
            tasks.add(key.partition(":")[2])
    found = []
    by_group = ((registry.METHODS, methods), (registry.TASKS, tasks))
    for group, names in by_group:
        for point in registry.points(group):
            package, version = registry.package(point)
            if point.name in names and package != registry.OWN:
                found.append(
                    {
                        "group": group.entry_points,
                        "name": point.name,
                        "package": package,
                        "version": version,
                        "value": point.value,
                    }
                )
    return found
