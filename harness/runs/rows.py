"""The rows of an experiment: method, config and text of each, its untrained start, and how long it
trains.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from harness import registry
from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import join_some, one_line
from harness.method import Method, MethodConfig, Text
from harness.recipes import preset_names
from harness.runs.conditions import CorpusSettings, DevSettings
from harness.runs.experiment import BudgetSettings, Entry, Experiment
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
        max_steps: upper bound on its training steps.
        fault: why it cannot be run here; empty for a row that can.
        added: it is not in the file, but the untrained start of rows that are.
    """

    label: str
    method: type[Method]
    base_model: str
    config: MethodConfig
    corpus: CorpusSettings | None
    seeds: Mapping[int, Blocks] = field(default_factory=dict, compare=False)
    max_steps: int | None = None
    fault: str = field(default="", compare=False)
    added: bool = field(default=False, compare=False)

    @cached_property
    def instance(self) -> Method:
        """The method with this config, not fitted."""
        return self.method(self.config, base_model=self.base_model)

    @property
    def start_model(self) -> str:
        """What its runs start from: the base model, or what its method names in its place."""
        return self.instance.start_model

    @property
    def blocks(self) -> Blocks:
        """The blocks of all its runs."""
        blocks: dict[str, None] = {}
        for of_seed in self.seeds.values():
            blocks |= dict.fromkeys(of_seed)
        return tuple(blocks)

    @property
    def key(self) -> str:
        """Equal for rows of one method, base model and config."""
        config = self.config.model_dump(mode="json")
        what = [self.method.name, self.base_model, config]
        return json.dumps(what, sort_keys=True, default=str)

    def start(self) -> Row | None:
        """The untrained row that it starts from, under its label; None where there is none, or it
        cannot be run.
        """
        found = None if self.fault else self.instance.untrained_start
        if found is None:
            return None
        name, values = found
        try:
            method: type[Method] = registry.load(registry.METHODS, name)
            config = method.configure(values, base_model=self.base_model)
        except InputError:
            return None
        return Row(self.label, method, self.base_model, config, None, added=True)

    def length(self, corpus: Corpus | None) -> RunLength | None:
        """How long it trains; None where it is not trained by steps, or its parts have batches of
        their own.
        """
        from harness.training import BatchStream, TrainedMethod, planned_steps

        config: Any = self.config
        if corpus is None:
            return None
        if isinstance(self.instance, TrainedMethod):
            stream: BatchStream = self.instance.stream(corpus, 0)
        elif {"batch_size", "epochs", "max_steps"} <= type(config).model_fields.keys():
            stream = BatchStream(
                range(len(corpus)),
                batch_size=config.batch_size,
                bucket=1,
                seed=0,
                length_cap=0,
            )
        else:
            return None
        epoch = stream.steps_per_epoch
        batch = stream.batch_size
        # the items of another stream need not be those of its corpus
        own = type(stream) is BatchStream
        if own:
            items = min(epoch * batch, len(corpus))
        else:
            items = epoch * batch
        return RunLength(planned_steps(config, stream, self.max_steps), batch, epoch, items)


def resolve_rows(experiment: Experiment, where: str, *, tolerant: bool = False) -> list[Row]:
    """Every row on each of its base models, base model by base model.

    Where it is tolerated, a row whose preset has no values for its base model keeps this as its
    fault.

    Raises:
        InputError: unknown method, preset or key, value out of range, a preset that is none for a
            base model, a shared key that no method has, equal labels.
    """
    _check_labels([entry.label for entry in experiment.methods], where)
    rows = []
    for number, entry in enumerate(experiment.methods, 1):
        place = f"{where}: methods[{number}]"
        rows += _rows_of(experiment, entry, where, place, tolerant)
    _check_shared(experiment, rows, where)
    base_models = list(dict.fromkeys(row.base_model for row in rows))
    return sorted(rows, key=lambda row: base_models.index(row.base_model))


def _check_labels(labels: Iterable[str], where: str) -> None:
    """Check that a reader can distinguish the rows: neither blanks nor the form in which Unicode
    writes an accent do.

    Raises:
        InputError: a label shows nothing, or two look the same.
    """
    seen = set()
    for label in labels:
        shown = normalize("NFC", one_line(label))
        if not shown:
            message = f"expected a name that can be seen, not {label!r}"
            raise InputError(message, file=where, key="name")
        if shown in seen:
            raise InputError(
                f'two rows are called "{shown}"',
                file=where,
                key="name",
                remedy="give one of them another name",
            )
        seen.add(shown)


def _rows_of(
    experiment: Experiment,
    entry: Entry,
    where: str,
    place: str,
    tolerant: bool,
) -> list[Row]:
    """A row on each of its base models; its base models and seeds are its own, its blocks' or the
    comparison's.
    """
    try:
        method: type[Method] = registry.load(registry.METHODS, entry.method)
    except InputError as error:
        raise InputError(str(error), file=place) from None
    values = {}
    for key, value in experiment.shared.items():
        if key in method.Config.model_fields:
            values[key] = value
    values |= entry.config
    preset = preset_of(experiment, entry, method)
    family = entry.family or experiment.family
    label = entry.label
    place = f"{place} ({label})"
    rows = []
    for base_model, own in _seeds_of(experiment, entry).items():
        fault = ""
        try:
            config = method.configure(
                values,
                preset=preset,
                family=family,
                base_model=base_model,
                where=place,
            )
        except InputError as error:
            if not tolerant or preset not in preset_names(method.presets):
                raise
            config = method.configure(values, where=place)
            fault = str(error)
        _check_models(config, own, where, label)
        if fault:  # the text depends on values that are not known
            corpus = None
        else:
            text = method(config, base_model=base_model).text
            corpus = corpus_for(experiment, entry, text, where)
        rows.append(
            Row(label, method, base_model, config, corpus, own, experiment.max_steps, fault)
        )
    return rows


def preset_of(experiment: Experiment, entry: Entry, method: type[Method]) -> str | None:
    """Return the preset of a row: its own, else the comparison's where its method has that one."""
    shared = experiment.preset
    if entry.preset:
        return entry.preset
    if shared in preset_names(method.presets):
        return shared
    return None


def _check_shared(experiment: Experiment, rows: Sequence[Row], where: str) -> None:
    """Check that options and preset of all rows are those of some.

    Raises:
        InputError: no method has them.
    """
    known: set[str] = set()
    for row in rows:
        known.update(row.method.Config.model_fields)
    for key in sorted(set(experiment.shared) - known):
        raise InputError(
            f'shared: no method here has the key "{key}"{nearest(key, sorted(known))}',
            file=where,
            key=key,
        )
    presets = set()
    for row in rows:
        presets.update(preset_names(row.method.presets))
    preset = experiment.preset
    if preset is not None and preset not in presets:
        hint = nearest(preset, sorted(presets))
        message = f'no method here has the preset "{preset}"{hint}'
        raise InputError(message, file=where, key='key "preset"')


def _check_models(config: Any, seeds: Iterable[int], where: str, label: str) -> None:
    """Raises:
    InputError: the row has a model for each seed, and another number of seeds.
    """
    models = getattr(config, "model_by_seed", [])
    numbers = sorted(map(int, seeds))
    wanted = list(range(1, len(models) + 1))
    if models and numbers != wanted:
        given = ", ".join(map(str, numbers))
        raise InputError(
            f"{len(models)} models, but the seeds are {given}: seed 1 is the first model",
            file=where,
            key=f'row "{label}": model_by_seed',
            remedy=f"set seeds = {len(models)}, or name as many models as seeds",
        )


def _seeds_of(experiment: Experiment, entry: Entry) -> dict[str, dict[int, Blocks]]:
    """Return base model -> seed -> the blocks that the run of this seed is in."""
    seeds: dict[str, dict[int, Blocks]] = {}
    for name, block in experiment.parts.items():
        if entry.blocks and name not in entry.blocks:
            continue
        numbers = block.seeds or experiment.seeds
        vary = block.vary or experiment.vary
        if experiment.held_seed is not None:
            held = experiment.held_seed
        else:
            held = numbers[0]
        for base_model in entry.base_models or block.base_models or experiment.base_models:
            own = seeds.setdefault(base_model, {})
            for number in numbers:
                seed = part_seed(number, vary, held)
                own[seed] = (*own.get(seed, ()), name)
    return seeds


def corpus_for(
    experiment: Experiment,
    entry: Entry,
    kind: Text,
    where: str,
) -> CorpusSettings | None:
    """The text of a row whose method learns from `kind`.

    Raises:
        InputError: the experiment names none of that kind.
    """
    if kind == "none":
        return None
    text = entry.corpus or (
        experiment.corpus if experiment.corpus.kind == kind else experiment.corpora.get(kind)
    )
    is_other_kind = text is not None and text.kind != kind
    if text is None or (is_other_kind and "kind" in text.model_fields_set):
        raise InputError(
            f'row "{entry.label}" learns from {kind}: add a table [corpora.{kind}]', file=where
        )
    return text.model_copy(update={"kind": kind})


def add_untrained_starts(rows: Sequence[Row]) -> list[Row]:
    """The rows and, after them, the untrained starts that the file does not contain (`Row.added`).

    The start of a row has the same base model, pooling and text length, and learnt nothing
    (`Method.untrained`), so that the gain of training is known. Rows with equal starts share one,
    which belongs to the blocks of all of them.
    """
    made = list(rows)
    names = dict[str, str]()
    labels = {row.label for row in rows}
    places = {}
    for place, row in reversed(list(enumerate(rows))):
        if not row.fault:
            places[row.key] = place
    for row in rows:
        if (start := row.start()) is None:
            continue
        key = start.key
        anywhere = replace(start, base_model="").key
        if key not in places:
            if anywhere not in names:  # one label on all base models
                free = (name for name in _names(start, row) if name not in labels)
                names[anywhere] = next(free)
                labels.add(names[anywhere])
            places[key] = len(made)
            first_seed = next(iter(row.seeds))
            made.append(replace(start, label=names[anywhere], seeds={first_seed: ()}))
        place = places[key]
        made[place] = _add_blocks(made[place], row.blocks)
    return made


def _add_blocks(row: Row, blocks: Blocks) -> Row:
    """The row with further blocks, to which its first run belongs."""
    first, *_ = row.seeds
    more = [block for block in blocks if block not in row.blocks]
    seeds = {**row.seeds, first: (*row.seeds[first], *more)}
    return replace(row, seeds=seeds)


def _names(start: Row, trained: Row) -> Iterable[str]:
    """Labels for an added start, the shortest first."""
    config: Any = start.config
    if config.pooling != "none":
        if config.pooling == "first_last_avg" and config.first_layer == 0:
            layer = ", from the embedding block"
        else:
            layer = ""
        if config.max_length is not None:
            length = f", {config.max_length} tokens"
        else:
            length = ""
        yield f"untrained ({config.pooling}{layer}{length})"
    title = f"untrained start of {trained.label}"
    yield from (title, f"{title} (2)")


@dataclass(frozen=True)
class Schedule:
    """When the rows of a comparison are scored on its dev set.

    All rows use one interval: a row that is scored more often chooses from more checkpoints, and
    the best of 60 scores is higher than the best of 5 by luck alone. So `every` of the table [dev]
    overrides a method's own `eval_every`.

    Attributes:
        every: training steps between two scores of every row; None where each row keeps its own, or
            none is scored.
        instead_of: label of a row -> its own interval, of the rows whose interval was changed.
    """

    every: int | None = None
    instead_of: dict[str, int] = field(default_factory=dict)

    def describe(self, longest: int) -> str:
        """Return the change in a sentence; "" where nothing changed, or where the longest training
        has too few steps for a difference.
        """
        if not self.instead_of:
            return ""
        shortest = min(self.every or 0, *self.instead_of.values())
        if longest <= shortest:
            return ""
        intervals = [f"{label} every {every:,}" for label, every in self.instead_of.items()]
        own = join_some(intervals, 4)
        interval = "after each training step"
        if self.every != 1:
            interval = f"every {self.every} training steps"
        common = f"all rows are scored on the dev set {interval}"
        return f'{common}; with [dev] every = "own": {own}'

    @property
    def overrides(self) -> list[str]:
        """Values of --set with which a part of the experiment has the schedule of the whole."""
        if self.instead_of:
            return [f"dev.every={self.every}"]
        return []


def apply_schedule(rows: Sequence[Row], dev: DevSettings | None) -> tuple[list[Row], Schedule]:
    """The rows under one dev schedule: `dev.every`, by default the shortest interval of all rows.

    Rows whose weights are not selected by dev scores keep their config.
    """
    intervals = [_dev_interval(row) for row in rows]
    own = [interval for interval in intervals if interval is not None]
    if dev is None or dev.every == "own" or not own:
        return list(rows), Schedule()
    every = dev.every or min(own)
    update = {"eval_every": every}
    changed = []
    instead_of: dict[str, int] = {}
    for row, interval in zip(rows, intervals, strict=True):
        if interval not in (None, every):
            row = replace(row, config=row.config.model_copy(update=update))
            # a row on several base models may have several; the shortest is shown
            instead_of[row.label] = min(interval, instead_of.get(row.label, interval))
        changed.append(row)
    return changed, Schedule(every, instead_of)


def _dev_interval(row: Row) -> int | None:
    """Training steps between two dev scores, of a row whose weights they select."""
    config: Any = row.config
    if row.fault or not row.instance.uses_dev:
        return None
    if not hasattr(config, "eval_every"):
        return None
    selects_last = getattr(config, "select", "best") == "last"
    if selects_last and getattr(config, "patience", None) is None:
        return None
    return int(config.eval_every)


def apply_budget(row: Row, budget: BudgetSettings, corpus: Corpus) -> Row:
    """The row under a budget, as a bound on its training steps; unchanged where it is not trained
    by steps.

    Raises:
        InputError: the row cannot have the budget.
    """
    length = row.length(corpus)
    if length is None:
        if not row.instance.uses_dev:
            return row
        if budget.steps is None:
            raise InputError(
                f'budget: row "{row.label}" trains parts with own batches',
                key="budget",
                remedy="use a budget of steps",
            )
        return replace(row, max_steps=budget.steps)
    by_sentences = math.ceil((budget.sentences or 0) / length.batch)
    steps = budget.steps or by_sentences
    config = with_steps(row.config, steps, length.epoch)
    return replace(row, config=config, max_steps=steps)


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
        of_rest = min(rest * self.batch, self.items)
        return epochs * self.items + of_rest


def with_steps(config: Any, steps: int, epoch: int) -> Any:
    """The config with as many epochs as `steps` need; unchanged where it makes as many anyway."""
    changed: dict[str, Any] = {}
    if config.epochs * epoch < steps:
        changed["epochs"] = math.ceil(steps / epoch)
    if config.max_steps is not None and config.max_steps < steps:
        changed["max_steps"] = None
    if changed:
        return config.model_copy(update=changed)
    return config
