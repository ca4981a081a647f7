"""The runs that an experiment file asks for, as records before there is a score: what can make a paper's numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness import registry
from harness.comparison.experiment import CorpusSettings, Entry, Experiment
from harness.comparison.rows import corpus_for
from harness.errors import InputError
from harness.method import Method, MethodConfig
from harness.results.record import Record
from harness.tasks.catalogue import tasks_of
from reports.papers.recipes import configured
from reports.read.comparison_runs import ResultRow

FamilyOf = Callable[[str], str | None]  # base model -> the family of its recipes; None: of no paper


@dataclass(frozen=True)
class PlannedRun:
    """A row of a file on one base model.

    Attributes:
        file: what `harness compare` or `harness study run` is given.
        row: as a row of results, with one record that no score stands in.
        tasks: block of the file -> the tasks that it is evaluated on there; the block "" of a file without any.
        study: whether it is a value of a study's grid, whose trials' statistics are the numbers.
    """

    file: str
    row: ResultRow
    tasks: dict[str, frozenset[str]]
    study: bool = False

    @property
    def record(self) -> Record:
        return self.row.records[0]


def planned_record(
    comparison: str, label: str, method: type[Method], config: MethodConfig, base_model: str,
    corpus: CorpusSettings | None, max_steps: int | None, family: str,
) -> Record:  # fmt: skip
    """A record of what is known before a run."""
    text: dict[str, Any] | None = None if corpus is None else {"uri": corpus.uri, "kind": corpus.kind}
    if text and corpus and corpus.limit:
        text["count"] = corpus.limit
    return Record(
        id=f"{comparison} {label} {family}", comparison=comparison, status="finished", row=label, method=method.name,
        config=config.model_dump(mode="json"), base_model=method.base_for(config, base_model), seed=0,
        supervision=method.supervision_for(config), corpus=text, identity={"max_steps": max_steps},
    )  # fmt: skip


def planned_runs(file: str, experiment: Experiment, family_of: FamilyOf) -> list[PlannedRun]:
    """Every row of a file on each of its base models that a paper has and its preset has values for.

    Raises:
        InputError: an unknown method, or no text for it.
    """
    return [run for entry in experiment.methods for run in _runs(file, experiment, entry, family_of)]


def _runs(file: str, experiment: Experiment, entry: Entry, family_of: FamilyOf) -> list[PlannedRun]:
    method: type[Method] = registry.load(registry.METHODS, entry.method)
    label = entry.name or entry.method
    tasks: dict[str, dict[str, frozenset[str]]] = {}  # base model -> block -> tasks
    bounds: dict[str, int | None] = {}
    for name, block in experiment.parts.items():
        if entry.blocks and name not in entry.blocks:
            continue
        suites = block.suites or experiment.suites
        for base_model in entry.base_models or block.base_models or experiment.base_models:
            known = frozenset(task for suite in suites for task in (tasks_of(suite) or (suite,)))
            tasks.setdefault(base_model, {})[name] = known
            bounds[base_model] = entry.max_steps or block.max_steps or experiment.max_steps
    shared = {k: v for k, v in experiment.shared.items() if k in method.Config.model_fields}
    runs = []
    for base_model, by_block in tasks.items():
        family = entry.family or experiment.family or family_of(base_model)
        if family is None:
            continue
        try:
            config = configured(method, {**shared, **entry.config}, entry.preset, family, f"{file}: {label}")
        except InputError:  # no recipe for this base model: no run
            continue
        corpus = corpus_for(experiment, entry, method.text_for(config), file)
        bound = bounds[base_model]
        record = planned_record(experiment.name, label, method, config, base_model, corpus, bound, family)
        runs.append(PlannedRun(file, ResultRow(label, record.base_model, (record,)), by_block))
    return runs
