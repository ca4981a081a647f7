"""Names to tasks: the bundles that `--suite` and experiment files speak of, and single tasks by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from harness.config import nearest
from harness.errors import InputError
from harness.sources import multilingual
from harness.tasks.averages import DECLUTR_DOWNSTREAM
from harness.tasks.base import Task
from harness.tasks.efficiency import EfficiencyTask
from harness.tasks.geometry.alignment_uniformity import GeometryTask
from harness.tasks.layers import LayersTask
from harness.tasks.mteb.benchmarks import MTEB_SUITES, PREFIX, names_of
from harness.tasks.mteb.task import embedded_task, mteb_task
from harness.tasks.senteval.caption_retrieval import CaptionRetrievalTask
from harness.tasks.senteval.embedded_transfer import EMBEDDED_TRANSFER, EmbeddedTransferTask
from harness.tasks.senteval.fits.problem import CONFIGURATIONS
from harness.tasks.senteval.probing import PROBING, probing_task
from harness.tasks.senteval.regression import regressor_task
from harness.tasks.senteval.transfer import TRANSFER, transfer_task
from harness.tasks.sts import STSTask

if TYPE_CHECKING:
    from harness.sources.pair_sets import Source

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
    "multilingual": tuple(multilingual.TASKS),
    "layers": ("layers:STS-B",),
    "efficiency": ("efficiency:STS-B",),
    "embedded-transfer": tuple(EMBEDDED_TRANSFER),
    "embedded-layers": ("layers:Embedded-STS-natural", "layers:Embedded-STS-contrast"),
    "embedded-efficiency": ("efficiency:Embedded-STS-natural",),
    **{suite: tuple(PREFIX + name for name in names_of(sets)) for suite, sets in MTEB_SUITES.items()},
    "embedded-mteb": ("Embedded-Retrieval-natural", "Embedded-Retrieval-contrast", "Embedded-Clustering"),
    "Embedded-Retrieval": ("Embedded-Retrieval-natural", "Embedded-Retrieval-contrast"),
}
# What each paper evaluates, under its own protocol; a name of a suite stands for its tasks.
_PAPERS: dict[str, tuple[str, ...]] = {
    "paper-scd": ("sts", "transfer", "geometry"),
    "paper-nc": ("mteb-en-v1", "geometry"),
    "paper-declutr": (*DECLUTR_DOWNSTREAM, "probing"),
    "paper-sg": ("sts", "transfer", "layers", "efficiency"),
}
SUITES |= {
    paper: tuple(dict.fromkeys(task for part in parts for task in SUITES.get(part, (part,))))
    for paper, parts in _PAPERS.items()
}
ABOUT: dict[str, str] = {
    "sts": "STS12-16, STS-B and SICK-R by cosine, as SimCSE, SCD and SG report them; all aggregations",
    "geometry": "alignment, uniformity, ranks, isotropy and spectrum of STS-B's sentences",
    "embedded": "similarity and geometry on the embedded sentences; no hub needed",
    "transfer": "the seven SentEval tasks, full configuration (10 folds, Adam): the papers' tables",
    "transfer-prototyping": "the same seven in SentEval's faster prototyping configuration (5 folds, RMSprop)",
    "transfer-lbfgs": "the same seven with the exact convex solution of the classifier; no seeds",
    "downstream": "SentEval's other tasks: SST5, SICK-E, SNLI, trained regressors, caption retrieval",
    "probing": "SentEval's ten probing tasks; their files must be at HARNESS_SENTEVAL",
    "multilingual": "the STS-B test set in ten languages",
    "layers": "STS-B by every layer and pooling of a transformer (SG figure 1)",
    "efficiency": "seconds to train and to encode STS-B",
    "embedded-transfer": "question type, subjectivity, sentiment, paraphrase on embedded data",
    "embedded-layers": "layers and poolings on the embedded pairs",
    "embedded-efficiency": "seconds to train and to encode the embedded pairs",
    "embedded-mteb": "retrieval and clustering by mteb on embedded data",
    "Embedded-Retrieval": "both parts of the embedded retrieval task",
    "mteb-en-v1": "the 56 English data sets of MTEB's paper, on which papers of 2022-2024 report",
    "mteb-en-v2": "the 41 tasks of MMTEB's English benchmark",
    "mteb-quick": "one to three small MTEB sets of each category: minutes on a laptop",
    "paper-scd": "as SCD (and SimCSE) evaluate: seven STS by cosine, seven transfer tasks, alignment and uniformity",
    "paper-nc": "as the non-contrastive study evaluates: MTEB's 56 English sets, alignment and uniformity",
    "paper-declutr": "as DeCLUTR evaluates: its 18 downstream tasks (STS by mean, regressors, COCO), 10 probing tasks",
    "paper-sg": "as SG-OPT evaluates: seven STS by cosine, seven transfer tasks, layers, time",
}
SOURCES: tuple[Source, ...] = ("senteval", "mteb")  # where the tasks with public data sets may read them from


Factory = Callable[["Source"], Task]


def _sts(name: str) -> Factory:
    return lambda source: STSTask(name, source)


def _embedded(name: str) -> Factory:
    return lambda source: STSTask(name, "embedded", suite="embedded")


def _embedded_geometry(name: str) -> Factory:
    return lambda source: GeometryTask(name, "embedded", splits=("dev", "test"))


def _translated(name: str) -> Factory:
    return lambda source: STSTask(name, "stsb-multi-mt", suite="multilingual")


def _embedded_transfer(name: str) -> Factory:
    return lambda source: EmbeddedTransferTask(name)


def _layers(name: str) -> Factory:
    return lambda source: LayersTask(name, "embedded" if name.startswith("Embedded") else source)


def _efficiency(name: str) -> Factory:
    return lambda source: EfficiencyTask(name, "embedded" if name.startswith("Embedded") else source)


def _transfer(dataset: str, suite: str, configuration: str = "full") -> Factory:
    name = dataset if configuration == "full" else f"{configuration}:{dataset}"
    classifier = CONFIGURATIONS[configuration]
    return lambda source: transfer_task(dataset, name=name, suite=suite, classifier=classifier)


def _regressor(dataset: str) -> Factory:
    return lambda source: regressor_task(dataset)


def _probing(dataset: str) -> Factory:
    return lambda source: probing_task(dataset)


def _mteb(name: str) -> Factory:
    return lambda source: mteb_task(name)


def _embedded_mteb(name: str) -> Factory:
    return lambda source: embedded_task(name)


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
    **{name: _translated(name) for name in multilingual.TASKS},
    **{name: _embedded_transfer(name) for name in EMBEDDED_TRANSFER},
    **{f"layers:{name}": _layers(name) for name in ("STS-B", *SUITES["embedded"][:2])},
    **{f"efficiency:{name}": _efficiency(name) for name in ("STS-B", SUITES["embedded"][0])},
    **{name: _mteb(name) for suite in MTEB_SUITES for name in SUITES[suite]},
    **{name: _embedded_mteb(name) for name in SUITES["embedded-mteb"]},
}


def task_names() -> list[str]:
    """All task names, in the order of the suites."""
    return list(_FACTORIES)


def suites_within(names: Sequence[str]) -> list[str]:
    """Those of `names` that are suites, each followed by the suites that it names in turn."""
    return list(dict.fromkeys(part for name in names for part in (name, *_PAPERS.get(name, ())) if part in SUITES))


def resolve_tasks(names: Sequence[str], *, source: str = "senteval") -> list[Task]:
    """Tasks for suite and task names, each once, in the order given. Reads no data.

    `source` says where STS12 to SICK-R come from ("senteval" or "mteb"); the embedded tasks have only their own. Any
    text task of mteb is known too, as "mteb:NAME", "mteb:NAME/SUBSET", or by a NAME that is not ours.

    Raises:
        InputError: unknown name (with the nearest known one), unknown source, or no name at all.
    """
    if source not in SOURCES:
        raise InputError(f'unknown source "{source}"{nearest(source, list(SOURCES))}; known: {", ".join(SOURCES)}')
    if not names:
        raise InputError(f"no suite or task named; suites: {', '.join(SUITES)}")
    wanted: dict[str, None] = {}
    for name in names:
        wanted.update(dict.fromkeys(SUITES.get(name) or (_task_name(name),)))
    checked: Source = "mteb" if source == "mteb" else "senteval"
    return [_FACTORIES.get(name, _mteb(name))(checked) for name in wanted]


def _task_name(name: str) -> str:
    """The full name of a task: our own, or "mteb:NAME" for any other of mteb's.

    The prefix may be left out unless the name is much like one of ours: mteb's "STSB" is Chinese, and may well be
    meant for "STS-B".
    """
    if name in _FACTORIES or PREFIX + name in _FACTORIES:
        return name if name in _FACTORIES else PREFIX + name
    known = [*SUITES, *(own for own in _FACTORIES if not own.startswith(PREFIX))]
    task = mteb_task(name)
    if name.startswith(PREFIX) or not difflib.get_close_matches(name, known, n=1, cutoff=0.8):
        from harness.tasks.mteb.adapter import open_task  # imports mteb: seconds

        try:
            open_task(task.task_name, task.subset)
            return task.name
        except InputError:
            if name.startswith(PREFIX) or "/" in name:
                raise
    raise InputError(
        f'unknown suite or task "{name}"{nearest(name, known)}; known: {", ".join(known)}, and every text task of '
        f"mteb as {PREFIX}NAME or {PREFIX}NAME/SUBSET"
    )
