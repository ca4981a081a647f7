"""From a validated experiment to cells with stable ids, tasks and data: everything that can be wrong is found here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.comparison.budgeted_rows import budgeted
from harness.comparison.counterparts import key_of, start_of, with_counterparts
from harness.comparison.experiment import CorpusSettings, DevSettings, Experiment, Rehearsal
from harness.comparison.rows import Row, resolve_rows
from harness.comparison.schedule import Schedule, scheduled
from harness.comparison.timed_updates import TimedUpdates
from harness.errors import InputError, OutOfReach
from harness.evaluation.scoring import announced, each
from harness.files.hashing import content_id
from harness.identity.code import code_ids, evaluation_ids, twin
from harness.identity.models import model_fingerprint
from harness.machine.devices import pick_device
from harness.machine.distributed import ALONE, Team
from harness.machine.environment import device_name
from harness.results.record import WITHOUT
from harness.results.run_folder import RunFolder
from harness.seeds import seed_fields, seed_text
from harness.tasks.base import task_key

if TYPE_CHECKING:
    from harness.sources import Corpus
    from harness.tasks.base import Task
    from harness.tasks.sts import DevSet


_NOTHING: dict[str, Any] = {
    **dict.fromkeys(("model", "corpus", "dev", "max_steps", "precision")),
    "inputs": {},
    "code": "",
}


@dataclass(frozen=True)
class PlannedCell:
    """One run: a row, a base model and a seed. `id` hashes all that its weights depend on, `identity` and config.

    Attributes:
        seeds: how many runs the row has on this base model.
        blocks: the parts of the file that it stands in, and `tasks` what they evaluate.
        fault: why it cannot be run here and now; empty for a run that can.
    """

    id: str
    row: Row
    base_model: str
    seed: int
    seeds: int
    identity: dict[str, Any] = field(default_factory=dict, compare=False)
    blocks: tuple[str, ...] = field(default=(), compare=False)
    tasks: tuple[Task, ...] = field(default=(), compare=False)
    fault: str = field(default="", compare=False)

    @property
    def label(self) -> str:
        return f"{self.row.label} · {self.base_model} · seed {seed_text(self.seed)}"


@dataclass
class Plan:
    """What a comparison will do."""

    experiment: Experiment
    rows: list[Row]  # one for each row of the file and base model
    corpora: dict[str, Corpus]  # by the content of their settings, see `corpus`
    dev: DevSet | None
    block_tasks: dict[str, list[Task]]  # what each part of the experiment is evaluated on
    device: str
    team: Team = ALONE
    workdir: Path | None = None  # where runs may be kept under another id of the same code; None: nowhere yet
    tolerant: bool = False  # a row that cannot be run here leaves the others be
    rehearsal: Rehearsal | None = None  # of a rehearsal alone
    schedule: Schedule = field(default_factory=Schedule)  # when rows are scored on the dev set
    where: str = ""  # the file or name that messages point to
    announced: dict[tuple[str, ...], list[str]] = field(default_factory=dict)  # sentences of the tasks of some parts

    @cached_property
    def tasks(self) -> list[Task]:
        """Those of all parts, each once."""
        return list({task_key(task): task for tasks in self.block_tasks.values() for task in tasks}.values())

    def keys_of(self, block: str) -> list[str]:
        """The keys of the tasks of one part."""
        return [task_key(task) for task in self.tasks_of([block])]

    def tasks_of(self, blocks: Iterable[str]) -> tuple[Task, ...]:
        """What these parts are evaluated on, in the order of `tasks`."""
        wanted = {task_key(task) for block in blocks for task in self.block_tasks[block]}
        return tuple(task for task in self.tasks if task_key(task) in wanted)

    @cached_property
    def scoring(self) -> dict[str, tuple[str, ...]]:
        """Task -> ids of the code that scores it, the present first (the data has its hashes in the protocol ids)."""
        return {task_key(task): evaluation_ids(type(task)) for task in self.tasks}

    @property
    def evaluation(self) -> dict[str, str]:
        """Task -> the present id of the code that scores it."""
        return {task: ids[0] for task, ids in self.scoring.items()}

    @property
    def most(self) -> int | None:
        """How many sentences a task may ask for; None: any number."""
        return self.rehearsal.sentences if self.rehearsal is not None else None

    @cached_property
    def unreadable(self) -> set[str]:
        """The tasks whose data cannot be had now."""
        try:
            return set(each(self.tasks, lambda task: announced(task, self.most))[1])
        except InputError:
            return {task.name for task in self.tasks}

    @cached_property
    def texts_of(self) -> dict[str, int]:
        """How many sentences each task asks for, of those whose data can be had."""
        return {task_key(task): len(task.texts()) for task in self.tasks if task.name not in self.unreadable}

    @cached_property
    def device_name(self) -> str:
        """The device as measurements and caches are kept by: two of one kind have one name."""
        return device_name(self.device)

    @cached_property
    def starts(self) -> dict[str, str]:
        """Id of a run -> id of the run of its untrained start, of those that have one."""
        known = {(cell.base_model, key_of(cell.row)): cell.id for cell in reversed(self.cells)}
        starts = {cell.id: (cell.base_model, key_of(start)) for cell in self.cells if (start := start_of(cell.row))}
        return {run: known[key] for run, key in starts.items() if key in known}

    def corpus(self, row: Row) -> Corpus | None:
        """The text that a row learns from; None where it learns from none, or its text cannot be had."""
        return self.corpora.get(row.corpus.model_dump_json()) if row.corpus is not None else None

    @cached_property
    def cells(self) -> list[PlannedCell]:
        runs: dict[tuple[str, str], tuple[Row, dict[int, tuple[str, ...]]]] = {}
        for row in self.rows:  # a method that starts from something else has one row, not one a base model
            _, seeds = runs.setdefault((row.label, row.method.base_for(row.config, row.base_model)), (row, {}))
            for seed, blocks in row.seeds.items():
                seeds[seed] = tuple(dict.fromkeys((*seeds.get(seed, ()), *blocks)))
        cells = []
        for (_, base_model), (row, seeds) in runs.items():
            if row.method.card.deterministic:
                seeds = {int(next(iter(seeds))): tuple(dict.fromkeys(b for some in seeds.values() for b in some))}
            cells += [self._cell(row, base_model, seed, blocks, len(seeds)) for seed, blocks in seeds.items()]
        return cells

    def _cell(self, row: Row, base_model: str, seed: int, blocks: tuple[str, ...], seeds: int) -> PlannedCell:
        """A cell under the first of its ids that has a run; under the present one where none has."""
        more = (seeds, blocks, self.tasks_of(blocks))
        try:
            if row.fault:
                raise InputError(row.fault)
            model = model_fingerprint(base_model) if base_model == row.base_model else base_model
            candidates = []
            for number, code in enumerate(code_ids(row.method)):
                identity = self._identity(row, model, seed, code, number)
                candidates.append(self._planned(row, base_model, seed, identity, *more))
                if self.workdir is None or RunFolder(self.workdir, candidates[-1].id).path.exists():
                    return candidates[-1]
            return candidates[0]
        except InputError as error:
            if not self.tolerant:
                raise
            identity = {**_NOTHING, **seed_fields(seed), WITHOUT: base_model}
            return self._planned(row, base_model, seed, identity, *more, str(error))

    @staticmethod
    def _planned(
        row: Row,
        base_model: str,
        seed: int,
        identity: dict[str, Any],
        seeds: int,
        blocks: tuple[str, ...],
        tasks: tuple[Task, ...],
        fault: str = "",
    ) -> PlannedCell:
        run_id = content_id({**identity, "method": row.method.name, "config": row.config.for_id()})
        return PlannedCell(run_id, row, base_model, seed, seeds, identity, blocks, tasks, fault)

    def _identity(self, row: Row, model: str, seed: int, code: str, number: int) -> dict[str, Any]:
        """What a run's weights depend on besides method and config; `number` is the place of `code` among its ids."""
        corpus = self.corpus(row)
        selects = row.method.uses_dev(row.config)
        trains = selects or hasattr(row.config, "learning_rate")
        return {
            "model": model,
            **({"seed": None} if row.method.card.deterministic else seed_fields(seed)),
            "corpus": corpus.sha256 if corpus is not None else None,
            "inputs": {key: twin(value, number) for key, value in row.method.inputs(row.config).items()},
            "dev": self.dev.sha256 if selects and self.dev is not None else None,
            "max_steps": row.max_steps if trains else None,
            "precision": self.experiment.precision if trains else None,
            "code": code,
            **({"rehearsal": True} if self.rehearsal is not None else {}),
        }


class LoadedData:
    """Corpora and selection sets, each read once: for all plans of one process."""

    rehearsal: Rehearsal | None = None
    """What its texts are cut by, where they stand in for those of the experiment."""

    def __init__(self) -> None:
        self._corpora: dict[str, Corpus] = {}
        self._dev: dict[str, DevSet] = {}

    def corpus(self, c: CorpusSettings) -> Corpus:
        """The text that settings name.

        Raises:
            InputError: it cannot be had, or is not what the settings say.
        """
        from harness.sources import load_corpus

        key = c.model_dump_json()
        if key not in self._corpora:
            try:
                self._corpora[key] = load_corpus(c.uri, kind=c.kind, columns=c.columns, limit=c.limit)
            except OutOfReach as error:
                embedded = f'embedded: --set corpus.uri="embedded:{c.kind}"'
                raise InputError(f'{error} (corpus "{c.uri}" asks for it; {embedded})') from None
        return self._corpora[key]

    def dev_set(self, dev: DevSettings) -> DevSet:
        """The set that selects checkpoints."""
        key = f"{dev.where}:{dev.task}:{dev.pairs}"
        if key not in self._dev:
            self._dev[key] = dev.load()
        return self._dev[key]


def make_plan(
    experiment: Experiment,
    where: str,
    workdir: Path | None = None,
    *,
    data: LoadedData | None = None,
    tasks: list[Task] | None = None,
    team: Team = ALONE,
    say: Callable[[str], None] | None = None,
    counterparts: bool = False,
) -> Plan:
    """Resolve rows, corpus, dev set and tasks, and load the data; time the updates of rows under a budget of time.

    Args:
        where: the file or name that an error message points to.
        workdir: as in `Plan`.
        data: what earlier plans of this process have read; it gets what this one reads.
        tasks: those to score on, where they are known; the experiment's suites when left out.
        team: the processes that train together.
        say: called with a line on each row whose updates were timed.
        counterparts: whether the untrained starts that the file does not hold are rows too.

    Raises:
        InputError: anything in the experiment that cannot work.
        RunError: the updates of a row cannot be timed.
    """
    from harness.tasks.catalogue import resolve_tasks

    data = data or LoadedData()
    rehearsal = data.rehearsal
    tolerant = rehearsal is not None or bool(experiment.blocks)
    corpora: dict[str, Corpus] = {}
    resolved, schedule = scheduled(resolve_rows(experiment, where, tolerant=tolerant), experiment.dev)
    rows = [_with_text(row, data, corpora, tolerant) for row in resolved]
    if counterparts:  # one that cannot be had, such as of a layer that is not there, says less than the row itself will
        known = (_with_text(row, data, corpora, tolerant or row.counterpart) for row in with_counterparts(rows))
        rows = [row for row in known if not (row.counterpart and row.fault)]
    dev = None
    if experiment.dev is not None and any(row.method.uses_dev(row.config) for row in rows):
        try:
            dev = data.dev_set(experiment.dev)
        except OutOfReach as error:
            given = "dev" in experiment.model_fields_set
            asks = "asks for it" if given else "is not there, and its default asks for it"
            raise InputError(f"{error} (table [dev] {asks}; embedded: --set dev.task=Embedded-STS-natural)") from None
    by_block = {
        name: tasks if tasks is not None else resolve_tasks(block.suites or experiment.suites, source=experiment.source)
        for name, block in experiment.parts.items()
    }
    device = team.device or pick_device(experiment.device)
    times = TimedUpdates(workdir, device, experiment.budget.device, say if team.main else None)
    rows = budgeted(
        rows,
        experiment.budget,
        lambda row: corpora.get(row.corpus.model_dump_json()) if row.corpus is not None else None,
        times,
        experiment.precision,
        tolerant=tolerant,
    )
    plan = Plan(experiment, rows, corpora, dev, by_block, device, team, workdir, tolerant, rehearsal, schedule, where)
    if plan.cells and all(cell.fault for cell in plan.cells):  # reads what configs refer to, such as word vectors
        raise InputError(plan.cells[0].fault)
    return plan


def _with_text(row: Row, data: LoadedData, corpora: dict[str, Corpus], tolerant: bool) -> Row:
    """The row after a look at its base model and its text, which is put into `corpora`.

    Raises:
        InputError: one of them cannot be had, or does not suit; where that is tolerated, the row keeps it as its fault.
    """
    if row.fault:
        return row
    try:
        model_fingerprint(row.base_model)
        text = data.corpus(row.corpus) if row.corpus is not None else None
        if row.corpus is not None and text is not None:
            corpora[row.corpus.model_dump_json()] = text
        row.method(row.config, base_model=row.base_model).check(text)
    except InputError as error:
        if not tolerant:
            raise
        return replace(row, fault=str(error))
    return row


def describe_data(plan: Plan, row: Row) -> dict[str, Any]:
    """The corpus and the selection set of a row, for its record."""
    e = plan.experiment
    dev: dict[str, Any] | None = None
    if plan.dev is not None and e.dev is not None:
        dev = {"task": e.dev.task, "source": e.dev.where, "split": "dev", "sha256": plan.dev.sha256}
        if e.dev.pairs is not None:
            dev["pairs"] = e.dev.pairs
    corpus = plan.corpus(row)
    if corpus is None:
        return {}
    return {"corpus": corpus.describe(), "dev": dev if row.method.uses_dev(row.config) else None}
