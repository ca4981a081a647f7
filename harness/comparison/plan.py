"""From a validated experiment to cells with stable ids, tasks and data: everything that can be wrong is found here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.comparison.experiment import DevSettings, Experiment, Row, resolve_rows
from harness.errors import InputError, OutOfReach
from harness.evaluation.scoring import each
from harness.files.hashing import content_id
from harness.identity.code import code_ids, evaluation_ids, twin
from harness.identity.models import model_fingerprint
from harness.machine.devices import pick_device
from harness.machine.distributed import ALONE, Team
from harness.machine.environment import device_name
from harness.results.run_folder import RunFolder
from harness.tasks.base import task_key

if TYPE_CHECKING:
    from harness.sources import Corpus
    from harness.tasks.base import Task
    from harness.tasks.sts import DevSet


@dataclass(frozen=True)
class PlannedCell:
    """One run: a row, a base model and a seed. `id` hashes all that its weights depend on, `identity` and config."""

    id: str
    row: Row
    base_model: str
    seed: int
    seeds: int  # how many runs the row has
    identity: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def label(self) -> str:
        return f"{self.row.label} · {self.base_model} · seed {self.seed}"


@dataclass
class Plan:
    """What a comparison will do."""

    experiment: Experiment
    rows: list[Row]
    corpora: dict[str, Corpus]  # by the content of their settings, see `corpus`
    dev: DevSet | None
    tasks: list[Task]
    device: str
    team: Team = ALONE
    workdir: Path | None = None  # where runs may be kept under another id of the same code; None: nowhere yet

    @cached_property
    def scoring(self) -> dict[str, tuple[str, ...]]:
        """Task -> ids of the code that scores it, the present first (the data has its hashes in the protocol ids)."""
        return {task_key(task): evaluation_ids(type(task)) for task in self.tasks}

    @property
    def evaluation(self) -> dict[str, str]:
        """Task -> the present id of the code that scores it."""
        return {task: ids[0] for task, ids in self.scoring.items()}

    @cached_property
    def unreadable(self) -> set[str]:
        """The tasks whose data cannot be had now."""
        try:
            return set(each(self.tasks, lambda task: task.texts())[1])
        except InputError:
            return {task.name for task in self.tasks}

    @cached_property
    def device_name(self) -> str:
        """The device as measurements and caches are kept by: two of one kind have one name."""
        return device_name(self.device)

    def corpus(self, row: Row) -> Corpus | None:
        """The text that a row learns from."""
        return self.corpora[row.corpus.model_dump_json()] if row.corpus is not None else None

    @cached_property
    def cells(self) -> list[PlannedCell]:
        cells = []
        seen = set()
        for base_model in self.experiment.base_models:
            for row in self.rows:
                base = row.method.base_for(row.config, base_model)
                if (row.label, base) in seen:  # a method that starts from something else has one row, not one a base
                    continue
                seen.add((row.label, base))
                model = model_fingerprint(base) if base == base_model else base
                deterministic = row.method.card.deterministic
                seeds = self.experiment.seeds[:1] if deterministic else self.experiment.seeds
                cells += [self._cell(row, base, model, seed, len(seeds)) for seed in seeds]
        return cells

    def _cell(self, row: Row, base_model: str, model: str, seed: int, seeds: int) -> PlannedCell:
        """A cell under the first of its ids that has a run; under the present one where none has."""
        candidates = []
        for number, code in enumerate(code_ids(row.method)):
            identity = self._identity(row, model, seed, code, number)
            run_id = content_id({**identity, "method": row.method.name, "config": row.config.for_id()})
            candidates.append(PlannedCell(run_id, row, base_model, seed, seeds, identity))
            if self.workdir is None or RunFolder(self.workdir, run_id).path.exists():
                return candidates[-1]
        return candidates[0]

    def _identity(self, row: Row, model: str, seed: int, code: str, number: int) -> dict[str, Any]:
        """What a run's weights depend on besides method and config; `number` is the place of `code` among its ids."""
        corpus = self.corpus(row)
        selects = row.method.uses_dev(row.config)
        trains = selects or hasattr(row.config, "learning_rate")
        return {
            "model": model,
            "seed": None if row.method.card.deterministic else seed,
            "corpus": corpus.sha256 if corpus is not None else None,
            "inputs": {key: twin(value, number) for key, value in row.method.inputs(row.config).items()},
            "dev": self.dev.sha256 if selects and self.dev is not None else None,
            "max_steps": self.experiment.max_steps if trains else None,
            "precision": self.experiment.precision if trains else None,
            "code": code,
        }


class LoadedData:
    """Corpora and selection sets, each read once: for all plans of one process."""

    def __init__(self) -> None:
        self._corpora: dict[str, Corpus] = {}
        self._dev: dict[str, DevSet] = {}

    def corpora(self, rows: Sequence[Row]) -> dict[str, Corpus]:
        """The text of every row that learns from some, by its settings."""
        from harness.sources import load_corpus

        wanted = {row.corpus.model_dump_json(): row.corpus for row in rows if row.corpus is not None}
        for key, c in wanted.items():
            if key not in self._corpora:
                try:
                    self._corpora[key] = load_corpus(c.uri, kind=c.kind, columns=c.columns, limit=c.limit)
                except OutOfReach as error:
                    embedded = f'embedded: --set corpus.uri="embedded:{c.kind}"'
                    raise InputError(f'{error} (corpus "{c.uri}" asks for it; {embedded})') from None
        return {key: self._corpora[key] for key in wanted}

    def dev_set(self, dev: DevSettings) -> DevSet:
        """The set that selects checkpoints."""
        from harness.sources import load_sts
        from harness.tasks.sts import DevSet

        key = dev.model_dump_json()
        if key not in self._dev:
            self._dev[key] = DevSet(load_sts(dev.task, source=dev.where, split="dev"))
        return self._dev[key]


def make_plan(
    experiment: Experiment,
    where: str,
    workdir: Path | None = None,
    *,
    data: LoadedData | None = None,
    tasks: list[Task] | None = None,
    team: Team = ALONE,
) -> Plan:
    """Resolve rows, corpus, dev set and tasks, and load the data.

    Args:
        where: the file or name that an error message points to.
        workdir: as in `Plan`.
        data: what earlier plans of this process have read; it gets what this one reads.
        tasks: those to score on, where they are known; the experiment's suites when left out.
        team: the processes that train together.

    Raises:
        InputError: anything in the experiment that cannot work.
    """
    from harness.tasks.catalogue import resolve_tasks

    data = data or LoadedData()
    rows = resolve_rows(experiment, where)
    for base_model in experiment.base_models:
        model_fingerprint(base_model)
    corpora = data.corpora(rows)
    for row in rows:
        text = corpora[row.corpus.model_dump_json()] if row.corpus is not None else None
        row.method(row.config, base_model=experiment.base_models[0]).check(text)
    selects = any(row.method.uses_dev(row.config) for row in rows)
    dev = None
    if experiment.dev is not None and selects:
        try:
            dev = data.dev_set(experiment.dev)
        except OutOfReach as error:
            given = "dev" in experiment.model_fields_set
            asks = "asks for it" if given else "is not there, and its default asks for it"
            raise InputError(f"{error} (table [dev] {asks}; embedded: --set dev.task=Embedded-STS-natural)") from None
    if tasks is None:
        tasks = resolve_tasks(experiment.suites, source=experiment.source)
    plan = Plan(experiment, rows, corpora, dev, tasks, team.device or pick_device(experiment.device), team, workdir)
    _ = plan.cells  # reads what configs refer to: word vectors and models that are not there are told here
    return plan


def describe_data(plan: Plan, row: Row) -> dict[str, Any]:
    """The corpus and the selection set of a row, for its record."""
    e = plan.experiment
    dev = None
    if plan.dev is not None and e.dev is not None:
        dev = {"task": e.dev.task, "source": e.dev.where, "split": "dev", "sha256": plan.dev.sha256}
    corpus = plan.corpus(row)
    if corpus is None:
        return {}
    return {"corpus": corpus.describe(), "dev": dev if row.method.uses_dev(row.config) else None}
