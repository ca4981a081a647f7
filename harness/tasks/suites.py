"""Names to tasks: the bundles that `--suite` and experiment files speak of, and single tasks by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from harness.config import nearest
from harness.errors import InputError
from harness.tasks.base import Task
from harness.tasks.classifier import CONFIGURATIONS
from harness.tasks.downstream import CaptionRetrievalTask, regressor_task
from harness.tasks.geometry import GeometryTask
from harness.tasks.probing import PROBING, probing_task
from harness.tasks.sts import STSTask
from harness.tasks.transfer import TRANSFER, transfer_task

if TYPE_CHECKING:
    from harness.sources.sts import Source

SUITES: dict[str, tuple[str, ...]] = {
    "sts": ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"),
    "geometry": ("geometry:STS-B",),
    "embedded": (
        "Embedded-STS-natural",
        "Embedded-STS-contrast",
        "geometry:Embedded-STS-natural",
        "geometry:Embedded-STS-contrast",
    ),
    "transfer": TRANSFER,
    "transfer-prototyping": tuple(f"prototyping:{name}" for name in TRANSFER),
    "transfer-lbfgs": tuple(f"lbfgs:{name}" for name in TRANSFER),
    "downstream": ("SST5", "SICK-E", "SNLI", "regressor:SICK-R", "regressor:STS-B", "caption-retrieval"),
    "probing": PROBING,
}
SOURCES: tuple[Source, ...] = ("senteval", "mteb")  # where the tasks with public data sets may read them from

Factory = Callable[["Source"], Task]


def _sts(name: str) -> Factory:
    return lambda source: STSTask(name, source)


def _embedded(name: str) -> Factory:
    return lambda source: STSTask(name, "embedded", suite="embedded")


def _embedded_geometry(name: str) -> Factory:
    return lambda source: GeometryTask(name, "embedded", splits=("dev", "test"))


def _transfer(dataset: str, suite: str, configuration: str = "full") -> Factory:
    name = dataset if configuration == "full" else f"{configuration}:{dataset}"
    classifier = CONFIGURATIONS[configuration]
    return lambda source: transfer_task(dataset, name=name, suite=suite, classifier=classifier)


def _regressor(dataset: str) -> Factory:
    return lambda source: regressor_task(dataset)


def _probing(dataset: str) -> Factory:
    return lambda source: probing_task(dataset)


_FACTORIES: dict[str, Factory] = {
    **{name: _sts(name) for name in SUITES["sts"]},
    "geometry:STS-B": lambda source: GeometryTask("STS-B", source, splits=("train", "dev", "test")),
    **{name: _embedded(name) for name in SUITES["embedded"][:2]},
    **{f"geometry:{name}": _embedded_geometry(name) for name in SUITES["embedded"][:2]},
    **{name: _transfer(name, "transfer") for name in TRANSFER},
    **{f"prototyping:{name}": _transfer(name, "transfer-prototyping", "prototyping") for name in TRANSFER},
    **{f"lbfgs:{name}": _transfer(name, "transfer-lbfgs", "lbfgs") for name in TRANSFER},
    **{name: _transfer(name, "downstream") for name in SUITES["downstream"][:3]},
    **{f"regressor:{name}": _regressor(name) for name in ("SICK-R", "STS-B")},
    "caption-retrieval": lambda source: CaptionRetrievalTask(),
    **{name: _probing(name) for name in PROBING},
}


def task_names() -> list[str]:
    """All task names, in the order of the suites."""
    return list(_FACTORIES)


def resolve_tasks(names: Sequence[str], *, source: str = "senteval") -> list[Task]:
    """Tasks for suite and task names, each once, in the order given. Reads no data.

    `source` says where STS12 to SICK-R come from ("senteval" or "mteb"); the embedded tasks have only their own.

    Raises:
        InputError: unknown name (with the nearest known one), unknown source, or no name at all.
    """
    if source not in SOURCES:
        raise InputError(f'unknown source "{source}"{nearest(source, list(SOURCES))}; known: {", ".join(SOURCES)}')
    if not names:
        raise InputError(f"no suite or task named; suites: {', '.join(SUITES)}")
    wanted: dict[str, None] = {}
    for name in names:
        if name not in SUITES and name not in _FACTORIES:
            known = [*SUITES, *_FACTORIES]
            raise InputError(f'unknown suite or task "{name}"{nearest(name, known)}; known: {", ".join(known)}')
        wanted.update(dict.fromkeys(SUITES.get(name, (name,))))
    checked: Source = "mteb" if source == "mteb" else "senteval"
    return [_FACTORIES[name](checked) for name in wanted]
