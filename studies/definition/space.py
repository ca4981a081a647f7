"""Search spaces: what a method's config declares, narrowed or fixed by the study file, with
conditions.
"""

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
            if not self.choices or len(set(map(str, self.choices))) != len(self.choices):
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
        # 0.16 - 0.14 is a little under 0.02
        if self.step is not None and not 0 < self.step <= (self.high - self.low) * (1 + 1e-9):
            raise ValueError(
                f"step {self.step:g}: expected a number above 0 that is not wider than the range"
            )
        return self

    @property
    def finite(self) -> bool:
        """Can its values be listed?"""
        return bool(self.choices) or self.step is not None or (self.integer and not self.log)

    @property
    def numeric(self) -> bool:
        """Are all its values numbers, so that they have an order and can be binned?"""
        return not self.choices or all(
            isinstance(c, int | float) and not isinstance(c, bool) for c in self.choices
        )

    def values(self) -> list[Scalar]:
        """All values of a finite parameter, in order."""
        if self.choices:
            return list(self.choices)
        step = self.step or 1
        count = math.floor((self.high - self.low) / step + 1e-9) + 1
        steps = [self.low + i * step for i in range(count)]
        return [round(v) for v in steps] if self.integer else [float(f"{v:.12g}") for v in steps]

    def ends(self) -> list[Scalar]:
        """All choices, or the lowest and the highest number."""
        return list(self.choices) or [
            int(end) if self.integer else end for end in (self.low, self.high)
        ]

    def holds(self, value: Any) -> bool:
        """Is it one of the values?"""
        if self.finite:
            return any(value == one for one in self.values())
        return isinstance(value, int | float) and self.low <= value <= self.high

    def active(self, values: Mapping[str, Any]) -> bool:
        """Does the condition hold, given the other values? A part of "a+b" counts as equal."""
        return all(_meets(values.get(key), wanted) for key, wanted in self.when.items())

    def suggest(self, trial: optuna.Trial) -> Scalar:
        """Optuna's value for this trial."""
        if self.choices:
            return cast(Scalar, trial.suggest_categorical(self.name, list(self.choices)))
        if self.integer:
            return trial.suggest_int(
                self.name, int(self.low), int(self.high), step=int(self.step or 1), log=self.log
            )
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
    return bool(value == wanted) or (
        isinstance(value, str) and "+" in value and wanted in value.split("+")
    )


@dataclass(frozen=True)
class Space:
    """The parameters in the order in which they are drawn (conditions refer to earlier ones)."""

    parameters: tuple[Parameter, ...]
    fixed: Mapping[
        str, Any
    ]  # the config that all trials share, defaults included: what conditions refer to
    defaults_first: bool = False  # as in `Study`
    where: Constraint | None = None  # what every configuration of a grid has to meet

    def __getitem__(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)

    @property
    def names(self) -> list[str]:
        return [p.name for p in self.parameters]

    def choose(self, value_of: Callable[[Parameter], Scalar | None]) -> dict[str, Scalar]:
        """A configuration: a value of each parameter whose condition holds; None leaves out the
        parameter.
        """
        values: dict[str, Scalar] = {}
        for p in self.parameters:
            if p.active({**self.fixed, **values}) and (value := value_of(p)) is not None:
                values[p.name] = value
        return values

    def suggest(self, trial: optuna.Trial, *, first: bool = False) -> dict[str, Scalar]:
        """A configuration that Optuna proposes. `first`: for the first planned trial."""
        own = self.defaults_first and first  # then the config keeps its values beyond the space
        return self.choose(
            lambda p: None if own and not p.holds(self.fixed[p.name]) else p.suggest(trial)
        )

    def defaults(self) -> dict[str, Scalar]:
        """The config's own values of the parameters whose conditions hold; without values beyond
        the space.
        """
        return self.choose(lambda p: self.fixed[p.name] if p.holds(self.fixed[p.name]) else None)

    def first_point(self) -> dict[str, Scalar]:
        """The lowest or first value of every parameter whose condition holds: some configuration of
        the space.
        """
        return self.choose(lambda p: p.ends()[0])

    def points(self) -> list[dict[str, Scalar]]:
        """Every configuration of a finite space that meets the constraint, the last parameter
        changing fastest.
        """
        points: list[dict[str, Scalar]] = [{}]
        for p in self.parameters:
            points = [
                {**point, **one}
                for point in points
                for one in (
                    [{p.name: v} for v in p.values()] if p.active({**self.fixed, **point}) else [{}]
                )
            ]
        return [
            point
            for point in points
            if self.where is None or self.where.holds({**self.fixed, **point})
        ]


def make_space(study: Study, where: str) -> Space:
    """The space of a study, every value of it checked against the method's config.

    Raises:
        InputError: an unknown method or parameter, no values, an empty range, a log scale at or
            below 0, a value that the config refuses, nothing to search (NothingToSearchError).
    """
    method: type[Method] = registry.load(registry.METHODS, study.method)
    recipe = {"preset": study.preset, "family": study.family, "base_model": study.base_model}
    base = dict(method.configure(study.config, **recipe, where=f"{where}: config"))
    parameters = _parameters(study, method, base, where)
    for p in parameters:
        conditions = {
            key: wanted[0] if isinstance(wanted, list) else wanted for key, wanted in p.when.items()
        }
        for value in p.ends():
            method.configure(
                {**study.config, **conditions, p.name: value},
                **recipe,
                where=f"{where}: space: {p.name}",
            )
    if study.by is not None and not any(p.name == study.by and p.finite for p in parameters):
        raise InputError(
            f'{where}: by: "{study.by}" is no parameter of the space with a list of values'
        )
    space = Space(tuple(parameters), base, study.defaults_first)
    if not study.where:
        return space
    constraint = read_constraint(study.where, base, space.names, f"{where}: where")
    try:
        constraint.holds({**base, **space.first_point()})
    except TypeError:
        raise InputError(
            f"{where}: where: only numbers can be compared by <, <=, > and >="
        ) from None
    return replace(space, where=constraint)


def _parameters(
    study: Study, method: type[Method], base: Mapping[str, Any], where: str
) -> list[Parameter]:
    """The parameters of a study that can be active, each after those that its condition refers to."""
    declared = method.Config.sweeps()
    wanted = dict(study.space) or {EVERYTHING: DECLARED}
    if wanted.pop(EVERYTHING, None) is not None:
        wanted |= {
            name: DECLARED for name in declared if name not in wanted and name not in study.config
        }
    waiting = []
    for name, given in wanted.items():
        place = f"{where}: space: {name}"
        if name not in method.Config.model_fields:
            known = sorted(method.Config.model_fields)
            raise InputError(
                f'{where}: space: method "{study.method}" has no parameter "{name}"{nearest(name, known)}'
            )
        if name in study.config:
            raise InputError(f"{place}: is fixed by config; leave it out of one of the two")
        waiting.append(
            _parameter(name, given, declared.get(name), isinstance(base[name], int), place)
        )
    # A condition on something that is not searched is decided now.
    waiting = [
        p for p in waiting if all(k in wanted or _meets(base.get(k), v) for k, v in p.when.items())
    ]
    if not waiting:
        raise NothingToSearchError(
            f"{where}: space: nothing to search; give values or ranges for some parameters"
        )
    ordered: list[Parameter] = []
    while waiting:
        names = {p.name for p in waiting}
        ready = [p for p in waiting if not names & p.when.keys()]
        if not ready:
            raise InputError(
                f'{where}: space: the condition of "{waiting[0].name}" goes in a circle'
            )
        ordered += ready
        waiting = [p for p in waiting if p not in ready]
    return ordered


def _parameter(
    name: str, given: Any, declared: dict[str, Any] | None, integer: bool, place: str
) -> Parameter:
    """One entry of [space]: a list, a table that narrows or replaces what is declared, or the word
    "declared".
    """
    table = dict(declared or {})
    if isinstance(given, list):
        table = {key: table[key] for key in ("when",) if key in table} | {"choices": given}
    elif isinstance(given, dict):
        if {"choices", "low", "high"} & given.keys():
            for key in ("low", "high", "log") if "choices" in given else ("choices",):
                table.pop(key, None)
        if "step" in given:
            table.pop("log", None)
        table |= given
    elif given != DECLARED:
        raise InputError(
            f'{place}: expected a list, a table with low and high, or "declared", not {given!r}'
        )
    elif declared is None:
        raise InputError(
            f"{place}: the method declares no range for it; give a list or low and high"
        )
    if isinstance(table.get("choices"), list):
        table["choices"] = tuple(table["choices"])
    return Parameter.parse(
        {"name": name, "integer": integer and isinstance(table.get("low"), int), **table}, place
    )


def planned_trials(study: Study, space: Space) -> list[dict[str, Any]]:
    """The fixed values of each trial: whole configurations for grids and defaults, the value of
    `by`, or nothing.
    """
    if study.sampler in ENUMERATED:
        points = space.points()
        if study.sampler == "brute_force":
            random.Random(study.sampler_seed).shuffle(points)  # noqa: S311 - an order, not a secret
            points = points[: study.trials]
        return points
    assert study.trials is not None
    turns: list[dict[str, Any]] = [{}]
    if (
        study.by is not None
    ):  # taking turns, so that a study that was stopped has all values to the same extent
        turns = [{study.by: value} for value in space[study.by].values()]
    planned = [dict(turn) for _ in range(study.trials) for turn in turns]
    if study.defaults_first:
        planned[0] = space.defaults() | planned[0]
    return planned
