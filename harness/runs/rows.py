"""The rows of an experiment: method, config and text of each, its untrained start, and how long it trains."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harness import registry
from harness.config import nearest
from harness.errors import InputError, RunError
from harness.method import Method, MethodConfig
from harness.recipes import preset_names
from harness.runs.experiment import BudgetSettings, CorpusSettings, DevSettings, Entry, Experiment
from harness.seeds import part_seed

if TYPE_CHECKING:
    from harness.sources import Corpus
    from harness.training import BatchStream

Blocks = tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A row on one base model: label, method class, validated config and seeds.

    Attributes:
        corpus: None for methods that learn from no text.
        seeds: seed of each run -> the blocks of the file that contain it.
        fault: why it cannot be run here; empty for a row that can.
        added: it is not in the file, but the untrained start of rows that are.
    """

    label: str
    method: type[Method]
    base_model: str
    config: MethodConfig
    corpus: CorpusSettings | None
    seeds: Mapping[int, tuple[str, ...]] = field(default_factory=dict, compare=False)
    max_steps: int | None = None
    fault: str = field(default="", compare=False)
    added: bool = field(default=False, compare=False)

    @property
    def trained(self) -> bool:
        """Does `fit` learn from text?"""
        return self.corpus is not None


def resolve_rows(experiment: Experiment, where: str, *, tolerant: bool = False) -> list[Row]:
    """Every row on each of its base models, base model by base model.

    Where it is tolerated, a row whose preset has no values for its base model keeps this as its fault.

    Raises:
        InputError: unknown method, preset or key, value out of range, a preset that is none for a base model, a shared
            key that no method has, equal labels, blocks that bound the training steps of one row differently.
    """
    shares = [(number, entry, _shares(experiment, entry)) for number, entry in enumerate(experiment.methods, 1)]
    rows = []
    for base_model in dict.fromkeys(base for _, _, share in shares for base in share):
        for number, entry, share in shares:
            if base_model in share:
                seeds, bounds = share[base_model]
                if len(bounds) > 1:
                    raise InputError(
                        f'{where}: row "{entry.name or entry.method}": its blocks bound the updates differently '
                        f"({', '.join(str(bound) for bound in bounds)}); give the row a max_steps of its own"
                    )
                rows.append(_resolved(experiment, entry, base_model, number, where, seeds, bounds[0], tolerant))
    known = {name for row in rows for name in row.method.Config.model_fields}
    unused = sorted(set(experiment.shared) - known)
    if unused:
        hint = nearest(unused[0], sorted(known))
        raise InputError(f'{where}: shared: no method here has the key "{unused[0]}"{hint}')
    labels = [entry.name or entry.method for entry in experiment.methods]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f'{where}: two rows are called "{label}"; give one of them another name')
    return rows


def _shares(experiment: Experiment, entry: Entry) -> dict[str, tuple[dict[int, tuple[str, ...]], list[int | None]]]:
    """Base model -> the seeds of a row, each with its blocks, and its bounds on training steps.

    The keys of a row override those of its blocks, which override those of the comparison."""
    shares: dict[str, tuple[dict[int, tuple[str, ...]], list[int | None]]] = {}
    for name, block in experiment.parts.items():
        if entry.blocks and name not in entry.blocks:
            continue
        bound = entry.max_steps or block.max_steps or experiment.max_steps
        for base_model in entry.base_models or block.base_models or experiment.base_models:
            seeds, bounds = shares.setdefault(base_model, ({}, []))
            bounds += [bound] if bound not in bounds else []
            own = entry.seeds or block.seeds or experiment.seeds
            vary = entry.vary or block.vary or experiment.vary
            held = experiment.held_seed if experiment.held_seed is not None else own[0]
            for seed in (part_seed(number, vary, held) for number in own):
                seeds[seed] = (*seeds.get(seed, ()), name)
    return shares


def _resolved(
    experiment: Experiment,
    entry: Entry,
    base_model: str,
    number: int,
    where: str,
    seeds: Mapping[int, tuple[str, ...]],
    max_steps: int | None,
    tolerant: bool,
) -> Row:
    """A row on one base model; `shared` values apply where its method has the key."""
    place = f"{where}: methods[{number}]"
    try:
        method: type[Method] = registry.load(registry.METHODS, entry.method)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    label = entry.name or entry.method
    shared = {k: v for k, v in experiment.shared.items() if k in method.Config.model_fields}
    values, place, fault = {**shared, **entry.config}, f"{place} ({label})", ""
    family = entry.family or experiment.family
    try:
        config = method.configure(values, preset=entry.preset, family=family, base_model=base_model, where=place)
    except InputError as error:
        excused = tolerant or (experiment.blocks and not _readable(base_model))
        if not excused or entry.preset not in preset_names(method.presets):
            raise
        config, fault = method.configure(values, where=place), str(error)
    corpus = corpus_for(experiment, entry, method.text_for(config), where)
    return Row(label, method, base_model, config, corpus, seeds, max_steps, fault)


def _readable(base_model: str) -> bool:
    """Is the configuration of a base model available here?"""
    from harness.encoder.families import family_of

    try:
        family_of(base_model)
    except InputError:
        return False
    return True


def corpus_for(experiment: Experiment, entry: Entry, kind: str, where: str) -> CorpusSettings | None:
    """The text of a row whose method learns from `kind`.

    Raises:
        InputError: the experiment names none of that kind.
    """
    if kind == "none":
        return None
    own = entry.corpus
    if own is not None:
        own = own if "kind" in own.model_fields_set else own.model_copy(update={"kind": kind})
    text = own or next((c for c in (experiment.corpus, *experiment.corpora.values()) if c.kind == kind), None)
    if text is None or text.kind != kind:
        label = entry.name or entry.method
        held = text.kind if text is not None else experiment.corpus.kind
        raise InputError(
            f'{where}: row "{label}" learns from {kind}, but its corpus holds {held}; add a table [corpora.{kind}]'
        )
    return text


def add_untrained_starts(rows: Sequence[Row]) -> list[Row]:
    """The rows and, after them, the untrained starts that the file does not contain (`Row.added`).

    The start of a row has the same base model, pooling and text length, and learnt nothing (`Method.untrained`), so
    that the gain of training is known. Rows with equal starts share one, which belongs to the blocks of all of them.
    """
    wanted: dict[str, tuple[Row, list[Row]]] = {}  # start -> it, and the rows that start from it
    for row in rows:
        if (start := start_of(row)) is not None:
            wanted.setdefault(row_key(start), (start, []))[1].append(row)
    made = list(rows)
    taken = {row.label for row in rows}
    names: dict[str, str] = {}  # start, whatever its base model -> its label
    for key, (start, trained) in wanted.items():
        blocks = tuple(dict.fromkeys(b for row in trained for some in row.seeds.values() for b in some))
        place = next((i for i, row in enumerate(made) if not row.fault and row_key(row) == key), None)
        if place is not None:
            made[place] = replace(made[place], seeds=_in_blocks(made[place].seeds, blocks))
            continue
        anywhere = row_key(replace(start, base_model=""))
        if anywhere not in names:
            names[anywhere] = next(name for name in _names(start, trained[0]) if name not in taken)
            taken.add(names[anywhere])
        made.append(replace(start, label=names[anywhere], seeds={next(iter(trained[0].seeds)): blocks}))
    return made


def start_of(row: Row) -> Row | None:
    """The untrained row that a row starts from, under its own label; None where there is none, or it cannot be run."""
    if row.fault:
        return None
    found = row.method.untrained(row.config)
    if found is None:
        return None
    name, values = found
    try:
        method: type[Method] = registry.load(registry.METHODS, name)
        config = method.configure(values, base_model=row.base_model, where=f'the untrained start of "{row.label}"')
    except InputError:
        return None
    return Row(row.label, method, row.base_model, config, None, added=True)


def row_key(row: Row) -> str:
    """Equal for rows of one method, base model and config."""
    what = [row.method.name, row.base_model, row.config.model_dump(mode="json")]
    return json.dumps(what, sort_keys=True, default=str)


def _in_blocks(seeds: Mapping[int, Blocks], blocks: Blocks) -> Mapping[int, Blocks]:
    """The seeds of a row whose first run also belongs to further blocks."""
    there = {block for some in seeds.values() for block in some}
    first = next(iter(seeds))
    more = tuple(block for block in blocks if block not in there)
    return {**seeds, first: (*seeds[first], *more)} if more else seeds


def _names(start: Row, trained: Row) -> list[str]:
    """Labels for an added start, the shortest first."""
    config: Any = start.config
    layer = ", from the embedding block" if config.pooling == "first_last_avg" and config.first_layer == 0 else ""
    length = f", {config.max_length} tokens" if config.max_length is not None else ""
    named = [] if config.pooling == "none" else [f"untrained ({config.pooling}{layer}{length})"]
    other = f"untrained start of {trained.label}"
    return [*named, other, *(f"{other} ({number})" for number in range(2, 100))]


@dataclass(frozen=True)
class Schedule:
    """When the rows of a comparison are scored on its dev set.

    All rows use one interval: a row that is scored more often chooses from more checkpoints, and the best of 60 scores
    is higher than the best of 5 by luck alone. So `every` of the table [dev] overrides a method's own `eval_every`.

    Attributes:
        every: training steps between two scores of every row; None where each row keeps its own, or none is scored.
        instead_of: label of a row -> its own interval, of the rows whose interval was changed.
    """

    every: int | None = None
    instead_of: dict[str, int] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """The change in a sentence; empty where nothing changed."""
        if not self.instead_of:
            return ""
        by_own: dict[int, list[str]] = {}
        for label, own in self.instead_of.items():
            by_own.setdefault(own, []).append(label)
        changed = "; ".join(f"{_list_labels(labels)} alone: every {own:,}" for own, labels in by_own.items())
        return (
            f"all rows are scored on the dev set every {self.every:,} training steps, so that all choose from equally "
            f'many checkpoints ({changed}; [dev] every = "own" lets each row keep its interval)'
        )

    @property
    def overrides(self) -> list[str]:
        """Values of --set with which a part of the experiment has the schedule of the whole."""
        return [f"dev.every={self.every}"] if self.instead_of else []


def apply_schedule(rows: Sequence[Row], dev: DevSettings | None) -> tuple[list[Row], Schedule]:
    """The rows under one dev schedule: `dev.every`, by default the shortest interval of all rows.

    Rows whose weights are not selected by dev scores keep their config.
    """
    own = {row.label: n for row in rows if (n := _dev_interval(row)) is not None}
    if dev is None or dev.every == "own" or not own:
        return list(rows), Schedule()
    every = dev.every if isinstance(dev.every, int) else min(own.values())
    changed = {label: n for label, n in own.items() if n != every}
    update = {"eval_every": every}
    return [
        replace(row, config=row.config.model_copy(update=update)) if _dev_interval(row) not in (None, every) else row
        for row in rows
    ], Schedule(every, changed)


def fix_schedule(experiment: Experiment, where: str) -> Experiment:
    """The experiment with its dev interval as a number where rows differ, so that its parts have the same one.

    Unchanged where a row cannot be resolved: the error is reported if that row is selected.
    """
    if experiment.dev is None or experiment.dev.every is not None:
        return experiment
    try:
        _, schedule = apply_schedule(resolve_rows(experiment, where, tolerant=True), experiment.dev)
    except InputError:
        return experiment
    if not schedule.instead_of:
        return experiment
    dev = experiment.dev.model_copy(update={"every": schedule.every})
    return experiment.model_copy(update={"dev": dev})


def _dev_interval(row: Row) -> int | None:
    """Training steps between two dev scores, of a row whose weights they select."""
    value = getattr(row.config, "eval_every", None)
    last = getattr(row.config, "select", "best") == "last" and getattr(row.config, "patience", None) is None
    return value if isinstance(value, int) and not (row.fault or last) and row.method.uses_dev(row.config) else None


def _list_labels(labels: Iterable[str]) -> str:
    names = list(labels)
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def apply_budget(
    rows: Sequence[Row],
    budget: BudgetSettings,
    corpus_of: Callable[[Row], Corpus | None],
    step_seconds: Callable[[Row, Corpus, int], float],
    *,
    tolerant: bool = False,
) -> list[Row]:
    """The rows under a budget, as a bound on their training steps; rows that are not trained by steps are unchanged.

    Args:
        step_seconds: seconds of a training step of a row on its text, given the steps of an epoch.

    Raises:
        InputError: a row cannot have the budget.
        RunError: its steps cannot be timed. Where it is tolerated, a row keeps either as its fault.
    """
    if not budget.bounds:
        return list(rows)
    done = []
    for row in rows:
        try:
            done.append(_with_budget(row, budget, corpus_of(row), step_seconds))
        except (InputError, RunError) as error:
            if not tolerant:
                raise
            done.append(replace(row, fault=str(error)))
    return done


def _with_budget(
    row: Row, budget: BudgetSettings, corpus: Corpus | None, step_seconds: Callable[[Row, Corpus, int], float]
) -> Row:
    if row.fault or corpus is None:
        return row
    length = length_of(row, corpus)
    if length is None:
        if not row.method.uses_dev(row.config):  # learns without training steps
            return row
        if budget.kind != "updates":
            raise InputError(
                f'budget: row "{row.label}" trains parts with batches of their own, which a budget of {budget.kind} '
                "does not bound; leave the row out, or use a budget of updates"
            )
        return replace(row, max_steps=budget.updates)
    if budget.updates is not None:
        steps = budget.updates
    elif budget.sentences is not None:
        steps = math.ceil(budget.sentences / length.batch)
    else:
        assert budget.seconds is not None
        one = step_seconds(row, corpus, length.epoch)
        if budget.seconds < one:
            raise InputError(
                f'budget: row "{row.label}" makes no training step in {budget.seconds:g} s, as one takes {one:.3g} s; '
                "give more seconds, or smaller batches"
            )
        steps = int(budget.seconds / one)
    return replace(row, config=with_steps(row.config, steps, length.epoch), max_steps=steps)


@dataclass(frozen=True)
class RunLength:
    """How long a row trains; its items are sentences, pairs or documents.

    Attributes:
        steps: planned training steps.
        batch: items of a step.
        epoch: steps of a pass over the text, and `items` its items.
    """

    steps: int
    batch: int
    epoch: int
    items: int

    @property
    def seen(self) -> int:
        """Items in all steps; the short batch of an epoch counts at its end."""
        epochs, rest = divmod(self.steps, self.epoch)
        return epochs * self.items + min(rest * self.batch, self.items)


def length_of(row: Row, corpus: Corpus | None, seed: int = 0) -> RunLength | None:
    """How long a row trains; None for one that is not trained by steps, or whose parts have batches of their own."""
    from harness.training import planned_steps

    stream = _stream(row, corpus, seed)
    if stream is None:
        return None
    steps = planned_steps(row.config, stream, row.max_steps)  # type: ignore[arg-type] # epochs and max_steps suffice
    return RunLength(steps, stream.batch_size, stream.steps_per_epoch, _items(stream))


def with_steps(config: Any, steps: int, epoch: int) -> Any:
    """The config with as many epochs as `steps` need; unchanged where it makes as many anyway."""
    changed: dict[str, Any] = {}
    if config.epochs * epoch < steps:
        changed["epochs"] = math.ceil(steps / epoch)
    if config.max_steps is not None and config.max_steps < steps:
        changed["max_steps"] = None
    return config.model_copy(update=changed) if changed else config


def _stream(row: Row, corpus: Corpus | None, seed: int) -> BatchStream | None:
    from harness.training import BatchStream, TrainedMethod

    if corpus is None:
        return None
    if issubclass(row.method, TrainedMethod):
        return row.method(row.config, base_model=row.base_model).stream(corpus, seed)
    if not {"batch_size", "epochs", "max_steps"} <= row.config.__class__.model_fields.keys():
        return None
    batch = row.config.batch_size  # type: ignore[attr-defined]
    return BatchStream(range(len(corpus)), batch_size=batch, bucket=1, seed=seed, length_cap=0)


def _items(stream: BatchStream) -> int:
    from harness.training import BatchStream

    if type(stream) is not BatchStream:  # its items need not be those of its corpus
        return stream.steps_per_epoch * stream.batch_size
    whole, rest = divmod(len(stream.corpus), stream.batch_size)
    return whole * stream.batch_size + (rest if rest >= stream.shortest else 0)
