"""The rows between two rows of a comparison: each takes some of their settings from the first row
and the others from the second one (`harness why`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from harness.config import nearest
from harness.errors import HarnessError, InputError
from harness.results.store import DESIGN
from harness.runs.experiment import Entry, Experiment
from harness.runs.inputs import load_text
from harness.runs.plan import Plan
from harness.runs.rows import Row, apply_budget, apply_schedule, resolve_rows

MOST = 6  # factors: more would be 128 rows
OTHERS = "all other settings"

METHOD = "method"
BASE_MODEL = "base model"
TEXT = "training text"
STEPS = "training steps"

GROUPS: Mapping[str, tuple[str, ...]] = {
    "pooling": ("pooling", "first_layer"),
    "text length": ("max_length", "train_length"),
    "batch size and learning rate": (
        "batch_size",
        "drop_last",
        "learning_rate",
        "head_learning_rate",
        "warmup",
        "warmup_steps",
        "decay",
        "lr_schedule",
        "weight_decay",
        "max_grad_norm",
    ),
    "view": (
        "view",
        "dropout",
        "dropout_a",
        "dropout_b",
        "attention_dropout",
        "attention_rate",
        "attention_rate_a",
        "attention_rate_b",
        "native_dropout",
        "shuffle",
        "eda",
        "eda_operations",
        "deletion",
        "repetition",
        "crop",
        "word_crop",
        "word_deletion",
        "synonyms",
        "predicted",
        "sentence_crop",
        "shortest",
        "longest",
        "crop_pair",
        "token_crop",
        "chunk",
        "pairs_are_labelled",
    ),
    STEPS: ("epochs", "max_steps"),
    "selection": ("eval_every", "select", "select_initial", "patience"),
    "batches of like length": ("bucket",),
    "projector": ("projector", "projector_bias", "projector_init", "projector_blocks"),
    "target": ("target", "target_projector", "momentum"),
    "collapse guard": ("min_std", "min_rank"),
    "memory": ("micro_batch", "gradient_checkpointing", "packed", "log_every"),
}
"""Settings that belong together, and so are changed together. Any other setting is a factor of its
own.
"""

MARKED = (
    METHOD,
    BASE_MODEL,
    "pooling",
    "prompts",
    TEXT,
    STEPS,
    "view",
    "batch size and learning rate",
    "batches of like length",
)
"""The factors that often matter: the last ones to be joined into `OTHERS`."""


@dataclass(frozen=True)
class Factor:
    """Settings in which two rows differ and that are changed together.

    Attributes:
        name: of the group, or of all groups that were joined ("pooling + view").
        parts: the groups that it consists of.
        changes: each setting as in the first and in the second row, in words.
    """

    name: str
    parts: frozenset[str]
    changes: tuple[tuple[str, str, str], ...]

    def __add__(self, other: Factor) -> Factor:
        return Factor(
            f"{self.name} + {other.name}", self.parts | other.parts, self.changes + other.changes
        )

    def describe(self) -> str:
        """Return its settings in one line: "pooling (mean, not cls)"."""
        stated = []
        for key, first, second in self.changes:
            change = f"{first}, not {second}"
            stated.append(change if key == self.name else f"{key} {change}")
        some = "; ".join(stated[:3])
        if len(stated) > 3:
            some += "; ..."
        return f"{self.name} ({some})"


def group_of(key: str) -> str:
    """Return the group of a setting; itself in words where it has none."""
    for name, keys in GROUPS.items():
        if key in keys:
            return name
    return key.replace("_", " ")


def find_factors(a: Row, b: Row, *, same_steps: bool = False) -> list[Factor]:
    """Return the groups of settings in which two rows differ, those that often matter first.

    Args:
        same_steps: both have as many training steps, whatever their epochs.
    """
    first = set(a.method.Config.model_fields)
    second = set(b.method.Config.model_fields)
    changes: dict[str, list[tuple[str, str, str]]] = {}
    if a.method is not b.method:  # with the options that one of the methods has alone
        names = (a.method.name, b.method.name)
        changes[METHOD] = [(METHOD, *names)]
    if a.base_model != b.base_model:
        changes[BASE_MODEL] = [(BASE_MODEL, a.base_model, b.base_model)]
    if a.corpus != b.corpus:
        changes[TEXT] = [(TEXT, _text(a), _text(b))]
    for key in sorted(first & second):
        one = _value(a, key)
        other = _value(b, key)
        if one != other:
            words = (key.replace("_", " "), _words(one), _words(other))
            changes.setdefault(group_of(key), []).append(words)
    if same_steps:
        changes.pop(STEPS, None)
    factors = []
    for name in sorted(changes, key=_order_of):
        of_group = tuple(sorted(changes[name]))
        factors.append(Factor(name, frozenset({name}), of_group))
    return factors


def _order_of(name: str) -> tuple[bool, int, str]:
    """Return the key of a factor: the method, base model and text come first, then by name."""
    return (name not in MARKED, _place(name), name)


def _place(name: str) -> int:
    return MARKED.index(name) if name in MARKED else 0


def _value(row: Row, key: str) -> Any:
    value = getattr(row.config, key, None)
    return json.loads(json.dumps(value, default=str))


def _text(row: Row) -> str:
    if row.corpus is None:
        return "none"
    limit = row.corpus.limit
    if limit is None:
        return row.corpus.uri
    return f"{row.corpus.uri}, first {limit:,}"


def _words(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def choose_factors(
    found: Sequence[Factor], only: Sequence[str] = (), join: Sequence[str] = ()
) -> list[Factor]:
    """Return the factors of a design: those of `join` as one, and at most `MOST`; settings that are
    left over form "all other settings".

    Args:
        only: names of factors that are kept apart; all others are joined.
        join: names joined by "+", as "pooling+view".

    Raises:
        InputError: a name that is none of the factors.
    """
    factors = list(found)
    for text in join:
        names = []
        for name in text.split("+"):
            names.append(_check_name(name.strip(), found, "--join"))
        together = [factor for factor in factors if factor.parts & set(names)]
        factors = [factor for factor in factors if factor not in together]
        factors.insert(0, _join(together))
    if only:
        names = [_check_name(name.strip(), found, "--factors") for name in only]
        apart = [factor for factor in factors if factor.parts & set(names)]
    elif len(factors) > MOST:
        apart = factors[: MOST - 1]
    else:
        return factors
    rest = [factor for factor in factors if factor not in apart]
    if len(rest) > 1:
        joined = _join(rest)
        rest = [Factor(OTHERS, joined.parts, joined.changes)]
    return apart + rest


def _check_name(name: str, factors: Sequence[Factor], option: str) -> str:
    names = [factor.name for factor in factors]
    if name not in names:
        raise InputError(
            f'the rows do not differ in "{name}"{nearest(name, names)}; they differ in: '
            f"{', '.join(names)}",
            key=option,
        )
    return name


def _join(factors: Sequence[Factor]) -> Factor:
    whole = factors[0]
    for factor in factors[1:]:
        whole = whole + factor
    return whole


def join_impossible(
    factors: Sequence[Factor], impossible: Iterable[frozenset[int]]
) -> tuple[list[Factor], list[str]]:
    """Join factors until none of their subsets is impossible, so that the shares still sum to the
    whole difference; and the names of those that were joined.

    Args:
        impossible: the subsets of `factors` whose row cannot be made.
    """
    lost = [frozenset(subset) for subset in impossible]
    groups = [frozenset({number}) for number in range(len(factors))]
    while _is_any_reached(lost, groups):
        one, other = min(
            combinations(groups, 2), key=lambda pair: _count_reached(lost, groups, *pair)
        )
        groups = _merge(groups, one, other)
    groups.sort(key=min)
    joined = []
    for group in groups:
        joined.append(_join([factors[number] for number in sorted(group)]))
    return joined, [
        factor.name for factor, group in zip(joined, groups, strict=True) if len(group) > 1
    ]


def _merge(
    groups: Sequence[frozenset[int]], one: frozenset[int], other: frozenset[int]
) -> list[frozenset[int]]:
    others = [group for group in groups if group not in (one, other)]
    return [*others, one | other]


def _count_reached(
    lost: Sequence[frozenset[int]],
    groups: Sequence[frozenset[int]],
    one: frozenset[int],
    other: frozenset[int],
) -> int:
    """Return how many impossible subsets remain when two groups are joined."""
    merged = _merge(groups, one, other)
    return sum(_is_reached(subset, merged) for subset in lost)


def _is_reached(subset: frozenset[int], groups: Sequence[frozenset[int]]) -> bool:
    """True if the subset is a union of groups, other than none and all of them."""
    inside = [group for group in groups if group <= subset]
    covered = sum(map(len, inside)) == len(subset)
    return covered and 0 < len(inside) < len(groups)


def _is_any_reached(
    subsets: Sequence[frozenset[int]],
    groups: Sequence[frozenset[int]],
) -> bool:
    if len(groups) < 2:
        return False
    return any(_is_reached(subset, groups) for subset in subsets)


def make_between(a: Row, b: Row, factors: Sequence[Factor], taken: frozenset[int]) -> Row:
    """Return the row that has the factors `taken` from `a` and all else from `b`.

    Raises:
        InputError: the settings do not go together.
    """
    if not taken:
        return b
    if len(taken) == len(factors):
        return a
    of_a = [factors[number] for number in sorted(taken)]
    from_a = frozenset().union(*(factor.parts for factor in of_a))
    method = (a if METHOD in from_a else b).method
    base_model = (a if BASE_MODEL in from_a else b).base_model
    text = (a if TEXT in from_a else b).corpus
    names = ", ".join(factor.name for factor in of_a)
    label = f"{b.label} with {names} of {a.label}"
    values = _mix_values(a, b, from_a)
    config = method.configure(values, base_model=base_model, where=label)
    row = Row(
        label=label,
        method=method,
        base_model=base_model,
        config=config,
        corpus=text,
        seeds=b.seeds,
        max_steps=b.max_steps,
    )
    _check_text(row)
    return row


def _mix_values(a: Row, b: Row, from_a: frozenset[str]) -> dict[str, Any]:
    """Return the settings of a row between: an option of one method alone comes with the method."""
    method_row = a if METHOD in from_a else b
    values = {}
    for key in method_row.method.Config.model_fields:
        source = method_row
        if hasattr(a.config, key) and hasattr(b.config, key):
            source = a if group_of(key) in from_a else b
        values[key] = getattr(source.config, key)
    return values


def _check_text(row: Row) -> None:
    """Raises:
    InputError: the method does not learn from the row's text.
    """
    kind = row.instance.text
    had = "none" if row.corpus is None else row.corpus.kind
    if had != kind:
        message = f"{row.label}: learns from {kind}, not from {had}"
        raise InputError(message, key=row.label)
    if row.corpus is None:
        row.instance.check(None)
    else:
        row.instance.check(load_text(row.corpus))


@dataclass(frozen=True)
class Between:
    """Two rows as they were before their budget, and the conditions that rows between them share.

    Attributes:
        plan: of the comparison that the rows are from.
        seeds: of every row of a design.
    """

    plan: Plan
    a: Row
    b: Row
    seeds: tuple[int, ...]

    @property
    def same_steps(self) -> bool:
        """True if the comparison gives both rows as many training steps, whatever their epochs."""
        whole = self.plan.experiment
        if whole.budget.kind or whole.max_steps is None:
            return bool(whole.budget.kind)
        lengths = []
        for row in (self.a, self.b):
            if row.corpus is None:
                text = None
            else:
                text = load_text(row.corpus)
            lengths.append(row.length(text))
        return all(one is not None and one.epoch >= whole.max_steps for one in lengths)

    def try_rows(
        self, factors: Sequence[Factor], subsets: Iterable[frozenset[int]]
    ) -> tuple[dict[frozenset[int], Row], dict[frozenset[int], str]]:
        """Return the rows of some subsets under the budget of the comparison, and why others cannot
        be made.
        """
        rows: dict[frozenset[int], Row] = {}
        reasons: dict[frozenset[int], str] = {}
        for subset in subsets:
            try:
                row = make_between(self.a, self.b, factors, subset)
                rows[subset] = self._prepare(row)
            except HarnessError as error:
                reasons[subset] = str(error)
        return rows, reasons

    def _prepare(self, row: Row) -> Row:
        """Return the row with the seeds and the budget of the design."""
        blocks = self.a.blocks or self.b.blocks
        row = replace(row, seeds=dict.fromkeys(self.seeds, blocks))
        budget = self.plan.experiment.budget
        if budget.kind and row.corpus is not None:
            return apply_budget(row, budget, load_text(row.corpus))
        return row

    def plan_of(self, rows: Mapping[frozenset[int], Row]) -> Plan:
        """Return the plan of a design: an ordinary comparison of its rows."""
        whole = self.plan.experiment
        entries = [_as_entry(row, whole) for row in rows.values()]
        title = f"Rows between {self.a.label} and {self.b.label}"
        update = {
            "name": design_name(whole.name, self.a.label, self.b.label, rows),
            "title": title,
            "description": f"Made by harness why from the comparison {whole.name}.",
            "methods": entries,
            "base_models": list(dict.fromkeys(row.base_model for row in rows.values())),
            "seeds": list(self.seeds),
            "baseline": "",
            "contrasts": [],
            "reports": [],
            "keep": [],
        }
        return replace(
            self.plan, experiment=whole.model_copy(update=update), rows=list(rows.values())
        )


def _as_entry(row: Row, experiment: Experiment) -> Entry:
    fields = type(row.config).model_fields
    config = {}
    for key, value in row.config.model_dump(mode="json").items():
        if value is not None or fields[key].default is not None:
            config[key] = value
    if experiment.budget.kind:  # a file may not say both
        config = {key: value for key, value in config.items() if key not in GROUPS[STEPS]}
    return Entry(
        method=row.method.name,
        name=row.label,
        config=config,
        corpus=row.corpus,
    )


def design_name(name: str, a: str, b: str, rows: Mapping[frozenset[int], Row]) -> str:
    """Return the name of a design's comparison: equal for equal rows, whatever their seeds."""
    labels = [row.label for row in rows.values()]
    content = json.dumps([a, b, labels])
    digest = hashlib.sha256(content.encode()).hexdigest()[:6]
    plain = re.sub(r"[^A-Za-z0-9]+", "-", f"{a}-{b}")
    plain = plain[:30].strip("-").lower()
    return f"{name}{DESIGN}{plain}-{digest}"


def rows_before_budget(plan: Plan, where: str) -> list[Row]:
    """Return the rows of a plan as they are before the budget bounds their steps: those of the file
    with the dev schedule of all, and the untrained starts that were added.
    """
    rows, _ = apply_schedule(
        resolve_rows(plan.experiment, where, tolerant=True), plan.experiment.dev
    )
    added = [row for row in plan.rows if row.added]
    return [*rows, *added]
