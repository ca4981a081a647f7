"""Which row of which experiment file makes each published number on public data, or why none can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness import registry
from harness.errors import InputError
from harness.method import Method, MethodConfig
from harness.results.record import Record
from harness.results.spec import RunSpec
from harness.runs.conditions import CorpusSettings
from harness.runs.experiment import Entry, Experiment
from harness.runs.rows import corpus_for
from harness.tasks.catalogue import tasks_of
from reports.load import RecordedRow
from reports.papers.conditions import find_differences, is_run_of
from reports.papers.definition import Definition, PaperCell, PaperColumn, PaperRow, Published
from reports.papers.measured import tasks_of_column
from reports.papers.paper_results import PaperResults
from reports.records.run_library import RunLibrary

NO_FILE, NO_METHOD = "no file has it", "no method of this harness"
NOT_YET = (NO_FILE, NO_METHOD)  # what somebody could still do
FamilyOf = Callable[[str], str | None]  # base model -> the family of its presets; None: of no paper


@dataclass(frozen=True)
class PlannedRun:
    """A row of an experiment file or a study on one base model.

    Attributes:
        file: the argument of `harness compare` or `harness study run`.
        row: as a row of results, with one record that has no scores.
        tasks: block of the file -> the tasks that the row is evaluated on there; of a file without
            blocks, of "".
        study: whether it is a value of a study's grid; the statistics of its trials are the
            numbers.
    """

    file: str
    row: RecordedRow
    tasks: dict[str, frozenset[str]]
    study: bool = False

    @property
    def record(self) -> Record:
        return self.row.records[0]


def plan_record(
    comparison: str,
    label: str,
    method: type[Method],
    config: MethodConfig,
    base_model: str,
    corpus: CorpusSettings | None,
    max_steps: int | None,
    family: str,
    dev: dict[str, Any] | None = None,
) -> Record:
    """A record of what is known before a run."""
    text: dict[str, Any] | None = (
        None if corpus is None else {"uri": corpus.uri, "kind": corpus.kind}
    )
    if text and corpus and corpus.limit:
        text["count"] = corpus.limit
    instance = method(config, base_model=base_model)
    spec = RunSpec(
        method=method.name,
        config=config.model_dump(mode="json"),
        base_model=instance.start_model,
        seed=0,
        corpus=text,
        dev=dev,
        max_steps=max_steps,
    )
    return Record(
        id=f"{comparison} {label} {family}",
        spec=spec,
        comparison=comparison,
        status="finished",
        row=label,
        supervision=instance.supervision,
    )


def plan_runs(file: str, experiment: Experiment, family_of: FamilyOf) -> list[PlannedRun]:
    """Every row of a file on each of its base models that a paper has and that the row's preset has
    values for.

    Raises:
        InputError: an unknown method, or no text for it.
    """
    return [
        run
        for entry in experiment.methods
        for run in _plan_entry(file, experiment, entry, family_of)
    ]


def _plan_entry(
    file: str, experiment: Experiment, entry: Entry, family_of: FamilyOf
) -> list[PlannedRun]:
    method: type[Method] = registry.load(registry.METHODS, entry.method)
    label, steps = entry.label, experiment.max_steps
    tasks: dict[str, dict[str, frozenset[str]]] = {}  # base model -> block -> tasks
    for name, block in experiment.parts.items():
        if entry.blocks and name not in entry.blocks:
            continue
        for base_model in entry.base_models or block.base_models or experiment.base_models:
            known: set[str] = set()
            for suite in block.suites or experiment.suites:
                if isinstance(suite, str):  # a user's file is in no paper
                    known.update(tasks_of(suite) or (suite,))
            tasks.setdefault(base_model, {})[name] = frozenset(known)
    values = {
        **{k: v for k, v in experiment.shared.items() if k in method.Config.model_fields},
        **entry.config,
    }
    runs = []
    for base_model, by_block in tasks.items():
        family = entry.family or experiment.family or family_of(base_model)
        if family is None:
            continue
        try:
            config = method.configure(
                values, preset=entry.preset, family=family, where=f"{file}: {label}"
            )
        except InputError:  # the preset has no values for this base model
            continue
        corpus = corpus_for(experiment, entry, method(config).text, file)
        record = plan_record(
            experiment.name, label, method, config, base_model, corpus, steps, family
        )
        runs.append(
            PlannedRun(file, RecordedRow.of_records(label, record.base_model, (record,)), by_block)
        )
    return runs


@dataclass(frozen=True)
class Source:
    """Where a published number comes from: a row of a file and its block; or, without a file, the
    reason.

    Attributes:
        remark: why our number cannot be compared with the paper's.
    """

    published: Published
    place: PaperCell | None
    file: str = ""
    study: bool = False
    block: str = ""
    row: str = ""
    reason: str = ""
    remark: str = ""


def find_sources(definition: Definition, runs: Sequence[PlannedRun]) -> list[Source]:
    """The source of each published number, in the file's order. `runs`: those of the paper's own
    file first.
    """
    finder = _Finder(definition, runs)
    places = zip(finder.paper.published, finder.paper.places, strict=True)
    return [finder.find(p, place) for p, place in places]


class _Finder:
    def __init__(self, definition: Definition, runs: Sequence[PlannedRun]) -> None:
        self.paper = PaperResults(definition, RunLibrary("", (), workdir=definition.folder))
        self.runs = runs
        self._fitting: dict[tuple[int, str], list[PlannedRun]] = {}

    def find(self, p: Published, place: PaperCell | None) -> Source:
        if place is None:
            return Source(p, None, reason="a statement of the text, which no table has")
        row, column = place.row, place.column
        found = self._find_runs(place, row, column, p["base_model"])
        if not found:
            cannot = row.cannot or ("" if column.score else column.cannot)
            return Source(p, place, reason=cannot or (NO_FILE if row.method else NO_METHOD))
        remark = column.cannot
        if (
            column.difference
            and (other := self._reference_base(place, p["base_model"])) != p["base_model"]
        ):
            remark = f"the paper subtracts the row on {other}, reports do not"
        own = [one for one in found if one[0].file == found[0][0].file]
        run, block = next((one for one in own if one[1] == place.table.key), own[0])
        return Source(p, place, run.file, run.study, block, run.row.label, remark=remark)

    def _find_runs(
        self, place: PaperCell, row: PaperRow, column: PaperColumn, base: str
    ) -> list[tuple[PlannedRun, str]]:
        """The runs that make a number, with a block in which they are evaluated on its tasks."""
        if column.difference:
            scores = next(c for c in self.paper.columns(place.table) if c.head == column.name)
            reference = place.table.reference_of(row)
            if reference is not None and reference[0] is not row:
                base_of_reference = self._reference_base(place, base)
                if not self._find_runs(place, reference[0], scores, base_of_reference):
                    return []
            return self._find_runs(place, row, scores, base)
        needed = tasks_of_column(column)
        found: list[tuple[PlannedRun, str]] = []
        for run in self._runs_of(row, base) if column.score else ():
            if column.kind == "trials":
                dev = run.record.dev or {}
                if run.study and (dev.get("task"), dev.get("source")) == ("STS-B", "senteval"):
                    found.append((run, ""))
            elif needed <= frozenset().union(*run.tasks.values()):
                whole = [name for name, tasks in run.tasks.items() if needed <= tasks]
                partly = [name for name, tasks in run.tasks.items() if needed & tasks]
                found.append(
                    (run, place.table.key if place.table.key in whole else (whole or partly)[0])
                )
        return found

    def _reference_base(self, place: PaperCell, base: str) -> str:
        """The base model of the row that a difference goes to: the same, where the paper has the
        reference on it.
        """
        bases = self.paper.reference_bases(place)
        return base if base in bases or not bases else sorted(bases)[0]

    def _runs_of(self, row: PaperRow, base: str) -> list[PlannedRun]:
        """The planned runs that the definition takes for a published row on `base`."""
        key = id(row), base
        definition = self.paper.definition
        if key not in self._fitting:
            mine = [run for run in self.runs if is_run_of(definition, row, run.record)]
            self._fitting[key] = [
                run for run in mine if not find_differences(definition, base, row, run.row)
            ]
        return self._fitting[key]
