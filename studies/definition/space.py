"""Search spaces: the ranges that a method declares, narrowed or fixed by the study file."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic import Field, model_validator

from harness import registry
from harness.config import Config, nearest
from harness.errors import InputError
from studies.definition.constraint import Constraint, read_constraint
from studies.definition.study import ENUMERATED, Study

if TYPE_CHECKING:
    import optuna

    from harness.method import Method

DECLARED = "declared"
EVERYTHING = "*"  # as a key of [space]: every other parameter that the method declares
Scalar = str | float | int | bool


class NothingToSearchError(InputError):
    """No parameter is left to search: none is declared or given, or the study fixes them all."""


class Parameter(Config, strict=True):
    """One dimension: a list of `choices`, or numbers from `low` to `high`; searched only where
    `when` holds.
    """

    name: str
    choices: tuple[Scalar, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None
    integer: bool = False
    when: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if "choices" in self.model_fields_set:
            names = set(map(str, self.choices))
            # 1 and 1.0 are one value by two names, 1 and "1" two values by one.
            distinct = min(len(names), len(set(self.choices)))
            if not self.choices or distinct != len(self.choices):
                raise ValueError("choices: expected at least one value, each once")
            return self
        if not {"low", "high"} <= self.model_fields_set:
            raise ValueError("expected both low and high, or choices")
        if not self.low < self.high:
            raise ValueError(
                f"the range from {self.low:g} to {self.high:g} is empty; low must be under high"
            )
        if self.log and (self.low <= 0 or self.step is not None):
            raise ValueError("log: a log scale has a low above 0 and no step")
        if self.step is not None:
            width = (self.high - self.low) * (1 + 1e-9)  # 0.16 - 0.14 is a little under 0.02
            if not 0 < self.step <= width:
                message = "expected a number above 0 that is not wider than the range"
                raise ValueError(f"step {self.step:g}: {message}")
        if self.integer:
            self._refuse_fractions()
        return self

    def _refuse_fractions(self) -> None:
        """Raises:
        ValueError: the range of a whole number has an end or a step that is none.
        """
        for key, number in (("low", self.low), ("high", self.high), ("step", self.step or 1.0)):
            if not number.is_integer():
                raise ValueError(f"{key} {number:g}: expected a whole number")

    @property
    def finite(self) -> bool:
        """True if its values can be listed."""
        return bool(self.choices) or self.step is not None or (self.integer and not self.log)

    @property
    def numeric(self) -> bool:
        """True if all its values are numbers, so that they have an order and can be binned."""
        return all(isinstance(c, int | float) and not isinstance(c, bool) for c in self.choices)

    def values(self) -> list[Scalar]:
        """Return all values of a finite parameter, in order."""
        if self.choices:
            return list(self.choices)
        step = self.step or 1
        count = math.floor((self.high - self.low) / step + 1e-9) + 1
        numbers = [self.low + i * step for i in range(count)]
        if self.integer:
            return [round(number) for number in numbers]
        return [float(f"{number:.12g}") for number in numbers]

    def ends(self) -> list[Scalar]:
        """Return all choices, or the lowest and the highest number."""
        if self.choices:
            return list(self.choices)
        if self.integer:
            return [int(self.low), int(self.high)]
        return [self.low, self.high]

    def contains(self, value: Any) -> bool:
        """True if it is one of the values."""
        if self.finite:
            return value in self.values()
        return isinstance(value, int | float) and self.low <= value <= self.high

    def is_active(self, values: Mapping[str, Any]) -> bool:
        """True if the condition holds, given the other values. A part of "a+b" counts as equal."""
        return all(_is_met(wanted, values.get(key)) for key, wanted in self.when.items())

    def suggest(self, trial: optuna.Trial) -> Scalar:
        """Return Optuna's value for this trial."""
        if self.choices:
            return cast(Scalar, trial.suggest_categorical(self.name, list(self.choices)))
        if self.integer:
            return trial.suggest_int(
                self.name,
                int(self.low),
                int(self.high),
                step=int(self.step or 1),
                log=self.log,
            )
        return trial.suggest_float(
            self.name,
            self.low,
            self.high,
            step=self.step,
            log=self.log,
        )

    def describe(self) -> str:
        """Return one phrase for tables."""
        if self.choices:
            return ", ".join(str(c) for c in self.choices)
        text = f"{self.low:g} to {self.high:g}"
        if self.log:
            return f"{text}, log"
        if self.step:
            return f"{text}, step {self.step:g}"
        return text


def _is_met(wanted: Any, value: Any) -> bool:
    """True if a value is the wanted one, or one of a list of them; "a+b" is a and is b."""
    if isinstance(wanted, list):
        return any(_is_met(one, value) for one in wanted)
    if value == wanted:
        return True
    return isinstance(value, str) and "+" in value and wanted in value.split("+")


@dataclass(frozen=True)
class Space:
    """The parameters of a study.

    Attributes:
        parameters: in the order in which they are drawn; conditions refer to earlier ones.
        fixed: the config that all trials share, defaults included; conditions refer to it too.
        defaults_first, by: as in `Study`.
        where: the constraint that every configuration of a grid has to meet.
    """

    parameters: tuple[Parameter, ...]
    fixed: Mapping[str, Any]
    defaults_first: bool = False
    by: str | None = None
    where: Constraint | None = None

    def __getitem__(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)

    @property
    def names(self) -> list[str]:
        return [p.name for p in self.parameters]

    @property
    def numbers(self) -> list[str]:
        """The names of the ranges that every configuration has a value of."""
        return [p.name for p in self.parameters if not p.choices and not p.when]

    @property
    def endless(self) -> list[str]:
        """The names of the ranges whose values cannot be listed."""
        return [p.name for p in self.parameters if not p.finite]

    def describe(self) -> list[str]:
        """Return a line on each parameter: its values, and when it has any."""
        lines = []
        for p in self.parameters:
            condition = ""
            if p.when:
                values = [f"{option} = {value}" for option, value in p.when.items()]
                condition = f" (when {', '.join(values)})"
            lines.append(f"{p.name}: {p.describe()}{condition}")
        return lines

    def choose(self, value_of: Callable[[Parameter], Scalar | None]) -> dict[str, Scalar]:
        """Return a configuration: a value of each parameter whose condition holds.

        Args:
            value_of: gives the value of a parameter; None leaves the parameter out.
        """
        values: dict[str, Scalar] = {}
        for parameter in self.parameters:
            if parameter.is_active({**self.fixed, **values}):
                value = value_of(parameter)
                if value is not None:
                    values[parameter.name] = value
        return values

    def suggest(self, trial: optuna.Trial, *, first: bool = False) -> dict[str, Scalar]:
        """Return a configuration that Optuna proposes. `first`: for the first planned trial."""

        def suggest_one(parameter: Parameter) -> Scalar | None:
            default = self.fixed[parameter.name]
            is_own = first and self.defaults_first and parameter.name != self.by
            if is_own and not parameter.contains(default):
                return None  # the config keeps its value beyond the space
            value = parameter.suggest(trial)
            if not parameter.choices and not parameter.low <= float(value) <= parameter.high:
                shown = f"{parameter.name} = {value!r:.40}"
                raise ValueError(f"{shown}, beyond {parameter.describe()}")
            return value

        return self.choose(suggest_one)

    def defaults(self, planned: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return the config's own values of the parameters whose conditions hold.

        Values beyond the space are left out.

        Args:
            planned: values that replace the config's own.
        """

        def default_of(parameter: Parameter) -> Scalar | None:
            default = planned.get(parameter.name, self.fixed[parameter.name])
            return default if parameter.contains(default) else None

        return self.choose(default_of)

    def first_point(self) -> dict[str, Scalar]:
        """Return the lowest or first value of every parameter whose condition holds."""
        return self.choose(lambda parameter: parameter.ends()[0])

    def points(self) -> list[dict[str, Scalar]]:
        """Return every configuration of a finite space that meets the constraint.

        The last parameter changes fastest.
        """
        points: list[dict[str, Scalar]] = [{}]
        for parameter in self.parameters:
            longer = []
            for point in points:
                if not parameter.is_active({**self.fixed, **point}):
                    longer.append(point)
                    continue
                for value in parameter.values():
                    longer.append({**point, parameter.name: value})
            points = longer

        if self.where is None:
            return points
        return [point for point in points if self.where.is_met({**self.fixed, **point})]


def make_space(study: Study, where: str) -> Space:
    """Return the space of a study, every value of it checked against the method's config.

    Raises:
        InputError: an unknown method or parameter, no values, an empty range, a log scale at or
            below 0, a value that the config refuses, nothing to search (NothingToSearchError).
    """
    method: type[Method] = registry.load(registry.METHODS, study.method)
    recipe = {"preset": study.preset, "family": study.family, "base_model": study.base_model}
    base = dict(method.configure(study.config, **recipe, where=f"{where}: config"))
    parameters = _make_parameters(study, method, base, where)
    for parameter in parameters:
        config = {**study.config, **_meet_condition(parameter)}
        place = f"{where}: space: {parameter.name}"
        for value in parameter.ends():
            method.configure({**config, parameter.name: value}, **recipe, where=place)

    space = Space(tuple(parameters), base, study.defaults_first, study.by)
    if study.by is not None:
        _check_by(study.by, space, where)
    if not study.where:
        return space
    constraint = read_constraint(study.where, base, space.names, f"{where}: where")
    try:
        constraint.is_met({**base, **space.first_point()})
    except TypeError:
        message = "only numbers can be compared by <, <=, > and >="
        raise InputError(message, file=where, key="where") from None
    return replace(space, where=constraint)


def _check_by(name: str, space: Space, where: str) -> None:
    """Check that every configuration has one of the values that get equal numbers of trials.

    Raises:
        InputError: it has not.
    """
    finite = {parameter.name for parameter in space.parameters if parameter.finite}
    if name not in finite:
        message = f'"{name}" is no parameter of the space with a list of values'
        raise InputError(message, file=where, key="by")
    searched = sorted(space[name].when.keys() & set(space.names))
    if searched:
        message = f'"{name}" has a value only for some values of "{searched[0]}", which is searched'
        remedy = f"fix {searched[0]} in config"
        raise InputError(message, file=where, key="by", remedy=remedy)


def _meet_condition(parameter: Parameter) -> dict[str, Any]:
    """Return values of other keys with which a parameter is active."""
    values = {}
    for key, wanted in parameter.when.items():
        if isinstance(wanted, list):
            values[key] = wanted[0]
        else:
            values[key] = wanted
    return values


def _make_parameters(
    study: Study,
    method: type[Method],
    base: Mapping[str, Any],
    where: str,
) -> list[Parameter]:
    """Return the parameters that can be active, each after those that its condition refers to."""
    declared = method.Config.sweeps()
    wanted = dict(study.space) or {EVERYTHING: DECLARED}
    if wanted.pop(EVERYTHING, None) is not None:
        for name in declared:
            if name not in wanted and name not in study.config:
                wanted[name] = DECLARED

    made = {}
    for name, given in wanted.items():
        if name not in method.Config.model_fields:
            known = sorted(method.Config.model_fields)
            message = f'method "{study.method}" has no parameter "{name}"{nearest(name, known)}'
            raise InputError(message, file=where, key="space")
        place = f"{where}: space: {name}"
        if name in study.config:
            remedy = "leave it out of one of the two"
            raise InputError("is fixed by config", file=where, key=f"space: {name}", remedy=remedy)
        whole = isinstance(base[name], int)
        made[name] = _make_parameter(name, given, declared.get(name), whole, place)

    parameters = [one for one in made.values() if _can_be_active(one, made, base)]
    if not parameters:
        raise NothingToSearchError(
            "nothing to search",
            file=where,
            key="space",
            remedy="give values or ranges for some parameters",
        )
    return _sort_by_condition(parameters, where)


def _can_be_active(
    parameter: Parameter,
    searched: Mapping[str, Parameter],
    base: Mapping[str, Any],
) -> bool:
    """True unless no configuration meets a part of the condition."""
    for key, wanted in parameter.when.items():
        other = searched.get(key)
        if other is None:
            can_hold = _is_met(wanted, base.get(key))
        elif other.finite:
            can_hold = any(_is_met(wanted, value) for value in other.values())
        else:
            can_hold = True
        if not can_hold:
            return False
    return True


def _sort_by_condition(parameters: list[Parameter], where: str) -> list[Parameter]:
    """Return the parameters, each after those that its condition refers to."""
    waiting = list(parameters)
    ordered: list[Parameter] = []
    while waiting:
        names = {parameter.name for parameter in waiting}
        ready = [parameter for parameter in waiting if not names & parameter.when.keys()]
        if not ready:
            message = f'the condition of "{waiting[0].name}" goes in a circle'
            raise InputError(message, file=where, key="space")
        ordered += ready
        waiting = [parameter for parameter in waiting if parameter not in ready]
    return ordered


def _make_parameter(
    name: str,
    given: Any,
    declared: dict[str, Any] | None,
    integer: bool,
    place: str,
) -> Parameter:
    """Return one entry of [space].

    Args:
        given: a list, a table that narrows or replaces what is declared, or the word "declared".
        integer: the config's own value is a whole number.
    """
    table = dict(declared or {})
    if isinstance(given, list):
        if "when" in table:
            condition = {"when": table["when"]}
        else:
            condition = {}
        table = {**condition, "choices": given}
    elif isinstance(given, dict):
        table = _narrow(table, given)
    elif given != DECLARED:
        message = f'expected a list, a table with low and high, or "declared", not {given!r}'
        raise InputError(message, key=place)
    elif declared is None:
        remedy = "give a list or low and high"
        raise InputError("the method declares no range for it", key=place, remedy=remedy)

    if isinstance(table.get("choices"), list):
        table["choices"] = tuple(table["choices"])
    whole = integer and isinstance(table.get("low"), int)
    return Parameter.parse({"name": name, "integer": whole, **table}, place)


def _narrow(declared: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the declared range with the given keys, without those that they replace."""
    if "choices" in given:
        replaced = {"low", "high", "log"}
    elif given.keys() & {"low", "high"}:
        replaced = {"choices"}
    else:
        replaced = set()
    if "step" in given:
        replaced |= {"log"}
    remaining = {key: value for key, value in declared.items() if key not in replaced}
    return remaining | given


def plan_trials(study: Study, space: Space) -> list[dict[str, Any]]:
    """Return the fixed values of each trial.

    They are whole configurations for grids and defaults, the value of `by`, or nothing.
    """
    if study.sampler in ENUMERATED:
        points = space.points()
        if study.sampler == "brute_force":
            random.Random(study.sampler_seed).shuffle(points)  # noqa: S311 - an order, not a secret
            points = points[: study.trials]
        return points

    assert study.trials is not None
    turns: list[dict[str, Any]] = [{}]
    if study.by is not None:
        # They take turns, so that a study that was stopped has all values to the same extent.
        turns = [{study.by: value} for value in space[study.by].values()]
    planned = []
    for _ in range(study.trials):
        for turn in turns:
            planned.append(dict(turn))
    if study.defaults_first:
        planned[0] = space.defaults(planned[0])
    return planned
