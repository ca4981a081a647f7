"""Frozen, validated configuration models whose fields carry default, help and the range that a
study may sweep.
"""

from __future__ import annotations

import difflib
import operator
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from reprlib import Repr
from typing import Annotated, Any, Self, TypeVar, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from harness.errors import InputError

T = TypeVar("T")


def option(
    default: Any,
    help: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    sweep: tuple[float, float] | list[Any] | None = None,
    log: bool = False,
    when: Mapping[str, Any] | None = None,
    later: bool = False,
) -> Any:
    """A config field: its default, one line of help, its bounds, and what a study may sweep.

        >>> class Loss(Config):
        ...     weight: float = option(1.0, "weight of the term", gt=0, sweep=(0.1, 10.0), log=True)
        >>> Loss.sweeps()
        {'weight': {'low': 0.1, 'high': 10.0, 'log': True}}

    `sweep` is `(low, high)` for a continuous range (log-uniform with `log=True`) or a list of
    categories. `when` names fields and the value each must have for this one to matter: {"view":
    "eda"} (a part of "eda+shuffle" counts too). `later` is for an option of a method that has run
    without it: its default is not written, so that earlier runs keep their ids.
    """
    extra: dict[str, Any] = {}
    if isinstance(sweep, tuple):
        extra["sweep"] = {"low": sweep[0], "high": sweep[1], "log": log}
    elif sweep is not None:
        extra["sweep"] = {"choices": sweep}
    if sweep is not None and when:
        extra["sweep"]["when"] = dict(when)
    if later:
        unwritten = partial(operator.eq, default)
    else:
        unwritten = None
    schema = extra or None
    return Field(
        default,
        description=help,
        ge=ge,
        gt=gt,
        le=le,
        lt=lt,
        json_schema_extra=schema,
        exclude_if=unwritten,
    )


def setting(text: str, example: str = "temperature=0.1") -> tuple[str, Any]:
    """Key and value of `--set KEY=VALUE`; the value as in TOML, or the text itself where it is
    none.

        >>> setting("temperature=0.1"), setting("name=mine")
        (('temperature', 0.1), ('name', 'mine'))

    Raises:
        InputError: no "=" or no key; `example` shows what was expected.
    """
    key, equals, value = text.partition("=")
    if not equals or not key:
        message = f"--set {text}: expected KEY=VALUE, as in --set {example}"
        raise InputError(message, key="--set")
    try:
        return key, tomllib.loads(f"v = {value}")["v"]
    except ValueError:  # no TOML, or a number of thousands of digits
        return key, value
    except RecursionError:
        raise InputError(f"--set {key}: its value is nested too deeply", key="--set") from None


def drop_unset(values: Mapping[str, T | None]) -> dict[str, T]:
    """Return values without those that are None.

    >>> drop_unset({"pooling": "cls", "max_length": None})
    {'pooling': 'cls'}
    """
    return {name: value for name, value in values.items() if value is not None}


def as_list(given: str | Path | Sequence[T] | None) -> list[Any]:
    """Return several values as a list; one name or path alone is a list of one, None an empty one.

    >>> as_list("html"), as_list(("html", "md")), as_list(None)
    (['html'], ['html', 'md'], [])
    """
    if given is None:
        return []
    if isinstance(given, str | Path):
        return [given]
    return list(given)


def nearest(word: str, known: list[str]) -> str:
    """' (did you mean "x"?)' for the known word nearest to `word`, or the empty string.

    Letters are compared without their case, and options without their dashes.

    >>> nearest("temprature", ["temperature", "epochs"])
    ' (did you mean "temperature"?)'
    >>> nearest("simcse", ["SCD", "SimCSE"])
    ' (did you mean "SimCSE"?)'
    """
    names = {_without_form(name): name for name in known}
    close = difflib.get_close_matches(_without_form(word), list(names), n=1, cutoff=0.5)
    if close:
        return f' (did you mean "{names[close[0]]}"?)'
    return ""


def _without_form(word: str) -> str:
    return word.lstrip("-").casefold()


class Config(BaseModel):
    """Base of all configs: frozen, unknown keys refused, errors in one line that names the place
    and the key.

    >>> class Loss(Config):
    ...     weight: float = option(1.0, "weight of the term", gt=0)
    >>> Loss.parse({"weight": 2}, "my.toml").weight
    2.0
    >>> Loss.parse({"wieght": 2}, "my.toml")
    Traceback (most recent call last):
    harness.errors.InputError: my.toml: unknown key "wieght" (did you mean "weight"?); known keys:
    weight
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _empty(cls, values: Any) -> Any:
        """An empty text empties an option that may be empty: TOML and the command line have no
        null.
        """
        if not isinstance(values, Mapping):
            return values
        read = dict(values)
        for name, field in cls.model_fields.items():
            given = read.get(name)
            is_empty = isinstance(given, str) and not given
            if is_empty and type(None) in get_args(field.annotation):
                read[name] = None
        return read

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_truth_value(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse true and false where numbers are expected: they would count as 1 and 0."""
        annotation = cls.model_fields[str(info.field_name)].annotation
        values = value if isinstance(value, list | tuple) else [value]
        for one in values:
            if isinstance(one, bool) and _takes_numbers_only(annotation):
                raise ValueError("expected a number")
        return value

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str) -> Self:
        """Validate `values`; `where` names the file and table for the error message.

        Raises:
            InputError: one line with the first wrong key, what was expected and the nearest known
                key.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            first = error.errors()[0]
            parts = [str(part) for part in first["loc"]]
            # no kind that pydantic tried
            key = ".".join(part for part in parts if not _KIND.fullmatch(part)) or "value"
            if first["type"] == "extra_forbidden":
                known = sorted(cls.model_fields)
                leaf = str(first["loc"][-1])
                raise InputError(
                    f'unknown key "{key:.100}"{nearest(leaf, known)}; known keys: '
                    f"{', '.join(known)}",
                    file=where,
                    key=f"{key:.100}",
                ) from None
            if not first["loc"]:  # a rule about several keys, which names them itself
                reason = first.get("ctx", {}).get("error")
                text = str(reason or phrase(first))
                named = re.search(r'keys? "([^"]+)"', text)
                key = named[1] if named else ""
                raise InputError(text, file=where, key=key or None) from None
            message = f'key "{key}": {phrase(first)}'
            raise InputError(message, file=where, key=key) from None

    @classmethod
    def sweeps(cls) -> dict[str, dict[str, Any]]:
        """Field name -> declared sweep, where there is one: `{"low", "high", "log"}` or
        `{"choices"}`, and `"when"`.
        """
        declared: dict[str, dict[str, Any]] = {}
        for name, field in cls.model_fields.items():
            extra = field.json_schema_extra
            if isinstance(extra, dict) and isinstance(extra.get("sweep"), dict):
                declared[name] = dict(extra["sweep"])  # type: ignore[arg-type]
        return declared


# a kind that pydantic tried, as "list[str]" and "[key]": no name of a user's key in `loc`
_KIND = re.compile(
    r"(?:list|dict|tuple|set|literal|constrained-\w+|nullable|union|json-or-python|lax-or-strict|"
    r"tagged-union|function-\w+)?\[.*\]",
    re.DOTALL,
)


def _takes_numbers_only(annotation: Any) -> bool:
    """True if a field takes numbers, and neither true nor false.

    >>> _takes_numbers_only(int | None), _takes_numbers_only(bool | int), _takes_numbers_only(str)
    (True, False, False)
    """
    kinds = set(_kinds_in(annotation))
    return bool(kinds & {int, float}) and not kinds & {bool, Any, True, False}


def _kinds_in(annotation: Any) -> Iterator[Any]:
    """Yield the types of which an annotation consists; of a `Literal` its values."""
    parts = get_args(annotation)
    if not parts:
        yield annotation
    if get_origin(annotation) is Annotated:
        parts = parts[:1]
    for part in parts:
        yield from _kinds_in(part)


_SHORT = Repr()  # of what was given: however long and deeply nested, a few words
_SHORT.maxstring = _SHORT.maxother = 80


def phrase(fault: Mapping[str, Any]) -> str:
    """One entry of `ValidationError.errors()` in words.

    >>> phrase({"type": "int_type", "msg": "Input should be a valid integer", "input": "abc"})
    "expected a valid integer, not 'abc'"
    """
    if fault["type"] == "missing":
        return "is missing"
    rule = fault["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    rule = re.sub(
        ", (unable to parse|got a number) .*", "", rule
    )  # what is wrong follows from what was given
    rule = re.sub("a valid dictionary( or instance of .*)?", "a table", rule)
    rule = rule.replace("Input should be", "expected", 1)
    rule = rule.replace("Input should", "expected to", 1)
    rule = rule.replace("String should", "expected to", 1)
    given = _SHORT.repr(fault["input"])
    return f"{rule}, not {given}"


def first_fault(error: ValidationError) -> str:
    """The first fault as "KEY: PHRASE", or the phrase alone where it concerns the whole.

    >>> class Loss(BaseModel):
    ...     weight: float
    >>> try:
    ...     Loss.model_validate({})
    ... except ValidationError as error:
    ...     first_fault(error)
    'weight: is missing'
    """
    fault = error.errors()[0]
    place = ".".join(str(part) for part in fault["loc"])
    if place:
        return f"{place}: {phrase(fault)}"
    return phrase(fault)
