"""Search spaces: what a method's config declares, narrowed or fixed by the study file, with conditions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from harness import registry
from harness.config import nearest
from harness.errors import InputError
from studies.definition.constraint import Constraint, read_constraint

if TYPE_CHECKING:
    import optuna

    from harness.method import Method
    from studies.definition.study import Study

DECLARED = "declared"
EVERYTHING = "*"  # as a key of [space]: every other parameter that the method declares
Scalar = str | float | int | bool


class NothingToSearchError(InputError):
    """No parameter is left to search: none is declared or given, or the study fixes them all."""


@dataclass(frozen=True)
class Parameter:
    """One dimension: a list of `choices`, or numbers from `low` to `high`; searched only where `when` holds."""

    name: str
    choices: tuple[Scalar, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None
    integer: bool = False
    when: tuple[tuple[str, Any], ...] = ()

    @property
    def finite(self) -> bool:
        """Can its values be listed?"""
        return bool(self.choices) or self.step is not None or (self.integer and not self.log)

    @property
    def numeric(self) -> bool:
        """Are all its values numbers, so that they have an order and can be binned?"""
        return not self.choices or all(isinstance(c, int | float) and not isinstance(c, bool) for c in self.choices)

    def values(self) -> list[Scalar]:
        """All values of a finite parameter, in order."""
        if self.choices:
            return list(self.choices)
        step = self.step or 1
        count = math.floor((self.high - self.low) / step + 1e-9) + 1
        steps = [self.low + i * step for i in range(count)]
        return [round(v) for v in steps] if self.integer else [float(f"{v:.12g}") for v in steps]

    def holds(self, value: Any) -> bool:
        """Is it one of the values?"""
        if self.finite:
            return any(value == one for one in self.values())
        return isinstance(value, int | float) and self.low <= value <= self.high

    def active(self, values: Mapping[str, Any]) -> bool:
        """Does the condition hold, given the other values? A part of "a+b" counts as equal."""
        return all(_meets(values.get(key), wanted) for key, wanted in self.when)

    def suggest(self, trial: optuna.Trial) -> Scalar:
        """Optuna's value for this trial."""
        if self.choices:
            return cast(Scalar, trial.suggest_categorical(self.name, list(self.choices)))
        if self.integer:
            return trial.suggest_int(self.name, int(self.low), int(self.high), step=int(self.step or 1), log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, step=self.step, log=self.log)

    def describe(self) -> str:
        """One phrase for tables."""
        if self.choices:
            return ", ".join(str(c) for c in self.choices)
        scale = ", log" if self.log else f", step {self.step:g}" if self.step else ""
        return f"{self.low:g} to {self.high:g}{scale}"


def _meets(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_meets(value, one) for one in wanted)
    return bool(value == wanted) or (isinstance(value, str) and "+" in value and wanted in value.split("+"))


@dataclass(frozen=True)
class Space:
    """The parameters in the order in which they are drawn (conditions look back), and what they are drawn onto."""

    parameters: tuple[Parameter, ...]
    fixed: Mapping[str, Any]  # the config that all trials share, defaults included: what conditions refer to
    defaults_first: bool = False  # as in `Study`
    where: Constraint | None = None  # what every configuration of a grid has to meet

    def __getitem__(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)

    @property
    def names(self) -> list[str]:
        return [p.name for p in self.parameters]

    def suggest(self, trial: optuna.Trial, *, first: bool = False) -> dict[str, Scalar]:
        """A configuration: the values of the parameters whose conditions hold. `first`: for the first planned trial."""
        own = self.defaults_first and first
        values: dict[str, Scalar] = {}
        for parameter in self.parameters:
            beyond = own and not parameter.holds(self.fixed[parameter.name])  # then the config keeps its value
            if parameter.active({**self.fixed, **values}) and not beyond:
                values[parameter.name] = parameter.suggest(trial)
        return values

    def defaults(self) -> dict[str, Scalar]:
        """The config's own values of the parameters whose conditions hold; without values beyond the space."""
        values: dict[str, Scalar] = {}
        for p in self.parameters:
            if p.active({**self.fixed, **values}) and p.holds(self.fixed[p.name]):
                values[p.name] = self.fixed[p.name]
        return values

    def first_point(self) -> dict[str, Scalar]:
        """The lowest or first value of every parameter whose condition holds: some configuration of the space."""
        values: dict[str, Scalar] = {}
        for p in self.parameters:
            if p.active({**self.fixed, **values}):
                values[p.name] = p.choices[0] if p.choices else int(p.low) if p.integer else p.low
        return values

    def points(self) -> list[dict[str, Scalar]]:
        """Every configuration of a finite space that meets the constraint, the last parameter changing fastest."""

        def extend(values: dict[str, Scalar], rest: tuple[Parameter, ...]) -> Iterator[dict[str, Scalar]]:
            if not rest:
                yield values
            elif rest[0].active({**self.fixed, **values}):
                for value in rest[0].values():
                    yield from extend({**values, rest[0].name: value}, rest[1:])
            else:
                yield from extend(values, rest[1:])

        all_points = extend({}, self.parameters)
        if self.where is None:
            return list(all_points)
        return [point for point in all_points if self.where.holds({**self.fixed, **point})]


def make_space(study: Study, where: str) -> Space:
    """The space of a study, every value of it checked against the method's config.

    Raises:
        InputError: an unknown method or parameter, no values, an empty range, a log scale at or below 0, a value that
            the config refuses, nothing to search (NothingToSearchError).
    """
    method: type[Method] = registry.load(registry.METHODS, study.method)
    declared = method.Config.sweeps()
    recipe = {"preset": study.preset, "family": study.family, "base_model": study.base_model}
    base = method.configure(study.config, **recipe, where=f"{where}: config").model_dump()
    wanted = dict(study.space) or {EVERYTHING: DECLARED}
    if EVERYTHING in wanted:
        wanted.pop(EVERYTHING)
        wanted |= {name: DECLARED for name in declared if name not in wanted and name not in study.config}
    parameters = []
    for name, given in wanted.items():
        place = f"{where}: space: {name}"
        if name not in method.Config.model_fields:
            known = sorted(method.Config.model_fields)
            raise InputError(f'{where}: space: method "{study.method}" has no parameter "{name}"{nearest(name, known)}')
        if name in study.config:
            raise InputError(f"{place}: is fixed by config; leave it out of one of the two")
        parameters.append(_parameter(name, given, declared.get(name), isinstance(base[name], int), place))
    searched = {p.name for p in parameters}
    # A condition on something that is not searched is decided now.
    kept = [
        p for p in parameters
        if all(key in searched or _meets(base.get(key), wanted_) for key, wanted_ in p.when)
    ]  # fmt: skip
    ordered = _ordered(kept, where)
    if not ordered:
        raise NothingToSearchError(f"{where}: space: nothing to search; give values or ranges for some parameters")
    for parameter in ordered:
        conditions = {key: wanted_[0] if isinstance(wanted_, list) else wanted_ for key, wanted_ in parameter.when}
        for value in parameter.choices or (parameter.low, parameter.high):
            number = int(value) if parameter.integer and not parameter.choices else value
            method.configure(
                {**study.config, **conditions, parameter.name: number},
                **recipe,
                where=f"{where}: space: {parameter.name}",
            )
    if study.by is not None and not any(p.name == study.by and p.finite for p in ordered):
        raise InputError(f'{where}: by: "{study.by}" is no parameter of the space with a list of values')
    made = Space(tuple(ordered), base, study.defaults_first)
    return replace(made, where=_constraint(study.where, made, f"{where}: where")) if study.where else made


def _constraint(text: str, space: Space, place: str) -> Constraint:
    """The constraint of a study, tried on a configuration: what cannot be compared is told before anything is run."""
    constraint = read_constraint(text, space.fixed, space.names, place)
    try:
        constraint.holds({**space.fixed, **space.first_point()})
    except TypeError:
        raise InputError(
            f"{place}: only numbers are smaller or larger than one another; == and != take anything"
        ) from None
    return constraint


def _parameter(name: str, given: Any, declared: dict[str, Any] | None, integer: bool, place: str) -> Parameter:
    """One entry of [space]: a list, a table that narrows or replaces what is declared, or the word "declared"."""
    if given == DECLARED:
        if declared is None:
            raise InputError(f"{place}: the method declares no range for it; give a list or low and high")
        table = dict(declared)
    elif isinstance(given, list):
        table = {"choices": given, **({"when": declared["when"]} if declared and "when" in declared else {})}
    elif isinstance(given, dict):
        unknown = sorted(set(given) - {"choices", "low", "high", "log", "step", "when"})
        if unknown:
            raise InputError(f'{place}: unknown key "{unknown[0]}"; known: choices, low, high, log, step, when')
        replaced = {"low", "high", "log"} if "choices" in given else {"choices"}
        dropped = replaced if {"choices", "low", "high"} & set(given) else set()
        dropped |= {"log"} if "step" in given else set()
        table = {**{key: value for key, value in (declared or {}).items() if key not in dropped}, **given}
    else:
        raise InputError(f'{place}: expected a list, a table with low and high, or "declared", not {given!r}')
    if not isinstance(table.get("when", {}), dict):
        raise InputError(f"{place}: when must be a table of keys and their values, not {table['when']!r}")
    when = tuple(table.get("when", {}).items())
    if "choices" in table:
        choices = tuple(table["choices"])
        if not choices:
            raise InputError(f"{place}: needs at least one value")
        if len(set(map(str, choices))) != len(choices):
            raise InputError(f"{place}: holds the same value twice")
        if not all(isinstance(c, str | int | float | bool) for c in choices):
            raise InputError(f"{place}: values must be numbers, texts or true and false")
        return Parameter(name, choices, when=when)
    if not {"low", "high"} <= set(table):
        raise InputError(f"{place}: expected both low and high, or choices")
    low, high, log, step = table["low"], table["high"], table.get("log", False), table.get("step")
    if not isinstance(log, bool):
        raise InputError(f"{place}: log must be true or false, not {log!r}")
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in (low, high, step or 1)):
        raise InputError(f"{place}: low, high and step must be numbers")
    if not low < high:
        raise InputError(f"{place}: the range from {low:g} to {high:g} is empty; low must be under high")
    if log and low <= 0:
        raise InputError(f"{place}: a log scale cannot start at {low:g}; give low above 0, or log = false")
    if step is not None and (log or step <= 0):
        raise InputError(f"{place}: step must be above 0 and goes with log = false")
    if step is not None and step > (high - low) * (1 + 1e-9):  # 0.16 - 0.14 is a little under 0.02
        raise InputError(f"{place}: step {step:g} is wider than the range from {low:g} to {high:g}")
    return Parameter(name, (), float(low), float(high), log, step, integer and isinstance(low, int), when)


def _ordered(parameters: list[Parameter], where: str) -> list[Parameter]:
    """Parameters after those that their conditions refer to, otherwise as given."""
    names = {p.name for p in parameters}
    ordered: list[Parameter] = []
    waiting = list(parameters)
    while waiting:
        done = {p.name for p in ordered}
        ready = [p for p in waiting if all(key in done or key not in names for key, _ in p.when)]
        if not ready:
            raise InputError(f'{where}: space: the condition of "{waiting[0].name}" goes in a circle')
        ordered += ready
        waiting = [p for p in waiting if p not in ready]
    return ordered
