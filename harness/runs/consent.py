"""What an experiment file would run that is no part of this package: asked before a file of someone
else is used, such as one that came inside an archive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from harness import registry
from harness.errors import InputError
from harness.executors.executor import ExecutorSettings
from harness.files.model_names import calls_others

_HERE = ("serial", "processes")  # executors that start nothing but this program


class _Row(Protocol):
    """An entry of `methods`."""

    @property
    def label(self) -> str: ...

    @property
    def method(self) -> str: ...

    @property
    def config(self) -> dict[str, Any]: ...


class _Experiment(Protocol):
    """The parts of an experiment that can name code."""

    @property
    def shared(self) -> dict[str, Any]: ...

    @property
    def methods(self) -> Sequence[_Row]: ...

    @property
    def executor(self) -> ExecutorSettings: ...


def refuse_code(experiment: _Experiment, where: str) -> None:
    """Refuse an experiment that names code of its own, a command, an endpoint or a cluster.

    Raises:
        InputError: the first of them, with its row.
    """
    found = list(foreign_code(experiment))
    if found:
        key, what = found[0]
        if len(found) > 1:
            more = f" (and {len(found) - 1} more)"
        else:
            more = ""
        raise InputError(
            f"came with an archive, and {what}{more}",
            file=where,
            key=key,
            remedy="read it, then give --allow-code",
        )


def foreign_code(experiment: _Experiment) -> Iterator[tuple[str, str]]:
    """Yield the key of each such place, and what would happen there."""
    shared = "\n".join(_in_values(experiment.shared))
    if shared:
        yield "shared", shared.partition("\n")[0]
    for entry in experiment.methods:
        key = f'row "{entry.label}"'
        if entry.method == registry.COMMAND:
            command = entry.config.get("run", "")
            yield key, f"runs the command {command!r:.120}"
        elif entry.method.startswith(registry.LOSS):
            path = entry.method.removeprefix(registry.LOSS)
            yield key, f'imports "{path}"'
        else:
            for what in _in_values(entry.config):
                yield key, what
    executor = experiment.executor
    if executor.name not in _HERE or executor.address or executor.slurm:
        yield "executor", f'sends jobs to "{executor.name}"'


def _in_values(value: Any, key: str = "") -> Iterator[str]:
    """Yield what values of a config do, tables and lists in it too."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _in_values(inner, str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _in_values(inner, key)
    elif key == "trust_remote_code" and value is True:
        yield "runs the code of a repository (trust_remote_code)"
    elif key == "method" and str(value).startswith((registry.COMMAND, registry.LOSS)):
        yield f'has a part with the method "{value}"'
    elif key.startswith("model") and isinstance(value, str):
        what = calls_others(value)
        if what:
            yield what
