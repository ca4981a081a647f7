"""A loss of the user's own, or of another library, as a trained method."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from pydantic import create_model
from torch import Tensor, nn

from harness import registry
from harness.config import nearest, option
from harness.encoder import Encoder
from harness.errors import HarnessError, InputError
from harness.files.imports import import_path
from harness.files.printable import describe_error, first_line
from harness.method import POOLING_HELP, Method, MethodCard
from harness.registry import LOSS
from harness.training.code_identity import identify
from harness.training.loop import TrainingConfig
from harness.training.loss_calls import (
    Call,
    ThinModel,
    calls_of,
    check_class,
    choose_call,
    gradient_fault,
    total,
)
from harness.training.loss_state import LossState, use_seed
from harness.training.view_method import ViewMethod
from harness.views.make import Batch, encode, make_views
from harness.views.settings import ViewConfig

_MODELS = ("model", "encoder", "sentence_transformer")  # names under which a loss asks for one


class OwnLossConfig(ViewConfig, TrainingConfig):
    """Options of all own losses; the arguments of a class or factory are further ones."""

    pooling: str = option("mean", POOLING_HELP)
    in_parts: ClassVar[bool] = True


class OwnLoss(ViewMethod):
    """A method whose two views go through one function. `make_loss_method` makes subclasses.

    Attributes:
        function: a function of two views, used as it is.
        build: a class or factory, called once a run.
        arguments: the options of the config that it is called with.
        miner: makes a miner of pytorch-metric-learning, once a run.
    """

    Config = OwnLossConfig
    function: ClassVar[Callable[..., Any] | None] = None
    build: ClassVar[Callable[..., Any] | None] = None
    arguments: ClassVar[tuple[str, ...]] = ()
    miner: ClassVar[Callable[..., Any] | None] = None

    _call: Call | None = None
    _learns = False

    def heads(self, encoder: Encoder) -> nn.Module:
        """Build the loss: its weights are trained, and no state passes from run to run."""
        built = self._make(encoder)
        calls = calls_of(built)
        kind = type(self)
        if kind.build is None:
            self._call = choose_call(calls, lambda: built, encoder.dimension)
        else:
            self._call = choose_call(calls, lambda: self._make(encoder), encoder.dimension)
        self._learns = False
        return LossState(built)

    def _make(self, encoder: Encoder) -> Any:
        kind = type(self)
        if kind.build is None:
            return kind.function
        parameters = _signature(kind.build)
        values = {}
        for name in kind.arguments:
            value = getattr(self.config, name)
            if value != parameters[name].default:  # not every class takes what it inherits
                values[name] = value
        model = _parameter_for_model(kind.build)
        wanted = {}
        if model is not None:
            wanted[model] = _model_for(model, encoder)
        with use_seed(torch.initial_seed()):
            built = _call_maker(kind.build, wanted, values)
            if kind.miner is not None:
                built.harness_miner = kind.miner()
        if not callable(built):
            raise InputError(
                f"{_name_of(kind.build)} gave a {type(built).__name__}, which cannot be called",
                key="loss",
            )
        return built

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Return the terms of the loss of two views, "loss" among them."""
        assert self._call is not None
        assert isinstance(heads, LossState)
        config = self.config
        views = make_views(
            batch.items,
            encoder,
            config,
            batch.rng,
            max_length=config.train_length,
        )
        models = [module for module in heads.modules() if isinstance(module, ThinModel)]
        heads.follow(encoder.device)
        given: list[Any]
        if self._call.on_features:
            for model in models:
                model.rates = (views.hidden_dropout, views.attention_dropout)
                model.vectors.clear()
            given = [
                _features(encoder, ids, view) for view, ids in enumerate((views.ids_a, views.ids_b))
            ]
        else:
            given = list(encode(encoder, views, config.differ_by))
        seed = int(batch.rng.integers(2**31))
        with use_seed(seed):
            terms = self._evaluate(heads.built, *given)
        if not self._learns:
            if self._call.on_features:
                vectors = _list_encoded(models)
            else:
                vectors = list(enumerate(given))
            fault = gradient_fault(terms["loss"], vectors) if vectors else ""
            if fault:
                message = f"{fault} (first batch, {self._call.name})"
                raise InputError(message, key="loss")
            self._learns = True
        for model in models:
            model.vectors.clear()
        return terms

    def _evaluate(self, built: Any, a: Any, b: Any) -> dict[str, Tensor]:
        assert self._call is not None
        try:
            return total(self._call.run(built, a, b))
        except HarnessError:
            raise
        except Exception as error:
            if self.function is not None or self._learns:
                raise  # the line of the user's own code says it best
            raise InputError(
                f"{type(built).__name__} cannot be called as {self._call.name}: {first_line(error):.200}",
                key="loss",
            ) from error


def _features(encoder: Encoder, ids: list[list[int]], view: int) -> dict[str, Tensor]:
    features = encoder.collate(ids)
    placed = {name: tensor.to(encoder.device) for name, tensor in features.items()}
    view_of_rows = torch.full((len(ids),), view)
    return {**placed, "view": view_of_rows}


def _list_encoded(models: list[ThinModel]) -> list[tuple[int, Tensor]]:
    """Return what the models encoded with a gradient, by view; by model where two of them encoded
    one view.
    """
    made = [pair for model in models for pair in model.vectors]
    if len({view for view, _ in made}) > 1:
        return made
    used = [model for model in models if model.vectors]
    encoded = []
    for place, model in enumerate(used):
        for _, vectors in model.vectors:
            encoded.append((min(place, 1), vectors))
    return encoded


def _parameter_for_model(build: Callable[..., Any]) -> str | None:
    """Return the parameter of a class or factory that takes the model; None where none does."""
    parameters = list(_signature(build).values())
    named = [parameter.name for parameter in parameters if parameter.name in _MODELS]
    if named:
        return named[0]
    needed = [p for p in parameters if p.default is p.empty]
    alone = not isinstance(build, type) and len(needed) == 1
    return needed[0].name if alone else None


def _model_for(name: str, encoder: Encoder) -> Any:
    return encoder if name == "encoder" else ThinModel(encoder)


def _signature(build: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class or factory by name; `**kwargs` are those of the class above."""
    if not isinstance(build, type):
        try:
            found = list(inspect.signature(build).parameters.values())
        except (TypeError, ValueError):
            return {}
        named = [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        return {p.name: p for p in named}
    parameters: dict[str, inspect.Parameter] = {}
    passed_on = True
    for kind in build.__mro__:
        if kind in (nn.Module, object):
            break
        if "__init__" not in vars(kind):
            continue
        signature = inspect.signature(kind.__init__)  # type: ignore[misc]
        own = list(signature.parameters.values())[1:]
        for p in own:
            given = not passed_on and p.default is p.empty  # by the class below
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and not given:
                parameters.setdefault(p.name, p)
        passed_on = any(p.kind is p.VAR_POSITIONAL for p in own)
        if not any(p.kind is p.VAR_KEYWORD for p in own):
            break
    return parameters


def _call_maker(build: Callable[..., Any], model: dict[str, Any], values: dict[str, Any]) -> Any:
    parameters = _signature(build)
    positional = [
        model[name] for name in model if parameters[name].kind is inspect.Parameter.POSITIONAL_ONLY
    ]
    named = {} if positional else model
    try:
        return build(*positional, **named, **values)
    except HarnessError:
        raise
    except Exception as error:  # whatever a constructor raises on values that it does not take
        raise InputError(
            f"{_name_of(build)} cannot be made: {describe_error(error)}",
            key="loss",
        ) from error


def _name_of(what: Any) -> str:
    name = str(getattr(what, "__name__", type(what).__name__))
    return "loss" if name == "<lambda>" else name


def make_loss_method(
    function: Callable[..., Any] | None = None,
    *,
    build: Callable[..., Any] | None = None,
    name: str | None = None,
    miner: Callable[..., Any] | None = None,
    space: Mapping[str, Any] | None = None,
    version: int | str | None = None,
    options: Mapping[str, Any] | None = None,
) -> type[OwnLoss]:
    """Return the method of a loss: a function of two views, a module, or what makes one.

        >>> def near(a, b, *, power=2):
        ...     return (a - b).norm(dim=1).pow(power).mean()
        >>> method = make_loss_method(near, options={"batch_size": 8})
        >>> method.name, method.Config().batch_size
        ('near', 8)

    Args:
        function: a function of two views (n, d), or a module, of which each run gets a copy.
        build: a class or factory, called once a run; it gets the model where it asks for one.
        miner: makes a miner of pytorch-metric-learning.
        space: ranges of options or arguments that a study may search.
        version: identifies the loss in place of its source and values.
        options: other defaults of options, and arguments of `build`.

    Raises:
        InputError: neither or both of function and build, an unknown option, a value that cannot be
            hashed without a `version`.
    """
    _check_given(function, build)
    if isinstance(function, nn.Module):
        whole = function
        return make_loss_method(
            build=_Copies(whole),
            name=name or type(whole).__name__,
            miner=miner,
            space=space,
            version=version if version is not None else identify(whole),
            options=options,
        )
    source: Any = function if build is None else build
    config, arguments = _make_config(
        build, dict(options or {}), dict(space or {}), _name_of(source)
    )
    label = name or _name_of(source)
    title = f"{label}, a loss of one's own"
    card = MethodCard(
        title,
        "none",
        text="sentences",
        supervision="unsupervised",
        cost="one pass, two views",
    )
    attributes = {
        "name": label,
        "version": version if version is not None else identify([source, miner]),
        "card": card,
        "Config": config,
        "function": _as_static(function),
        "build": _as_static(build),
        "miner": _as_static(miner),
        "arguments": arguments,
        "__module__": __name__,
        "__doc__": inspect.getdoc(source) or title,
    }
    letters = filter(str.isalnum, label.title())
    return type("OwnLossOf" + "".join(letters), (OwnLoss,), attributes)


def _check_given(function: Any, build: Any) -> None:
    """Raises:
    InputError: neither or both are given, or a class as a function.
    """
    if (function is None) == (build is None):
        raise InputError(
            "give a function of two views, or build= with a class or factory", key="loss"
        )
    if isinstance(function, type):
        raise InputError(
            f"{function.__name__} is a class",
            key="loss",
            remedy=f"give it as build={function.__name__}",
        )


def _as_static(function: Callable[..., Any] | None) -> staticmethod[..., Any] | None:
    if function is None:
        return None
    return staticmethod(function)


class _Copies:
    """Gives copies of a module."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.__name__ = type(module).__name__

    def __call__(self) -> nn.Module:
        return copy.deepcopy(self.module)


def _make_config(
    build: Callable[..., Any] | None,
    options: dict[str, Any],
    space: dict[str, Any],
    name: str,
) -> tuple[type[OwnLossConfig], tuple[str, ...]]:
    """Return the config of a loss and the names of its arguments."""
    own = OwnLossConfig.model_fields
    fields = _make_arguments(build, options, space, name)
    arguments = list(fields)
    known = sorted([*own, *arguments])
    for key in [*options, *space]:
        if key not in own and key not in arguments:
            hint = nearest(key, known)
            raise InputError(f'{name}: no option "{key}"{hint}', key=key)
    defaults = OwnLossConfig.parse({**options}, f'loss "{name}"')
    for key in {*options, *space} & set(own):
        info = copy.copy(own[key])
        info.default = getattr(defaults, key)
        if key in space:
            info.json_schema_extra = {"sweep": _read_sweep(space[key])}
        fields[key] = (own[key].annotation, info)
    made = create_model(f"{name}Config", __base__=OwnLossConfig, **fields)
    return made, tuple(arguments)


def _make_arguments(
    build: Callable[..., Any] | None,
    options: dict[str, Any],
    space: dict[str, Any],
    name: str,
) -> dict[str, Any]:
    """Return the fields of a config for the arguments of a loss; values are taken out of `options`."""
    if build is None:
        return {}
    if isinstance(build, type):
        check_class(build)
    model = _parameter_for_model(build)
    fields: dict[str, Any] = {}
    for key, parameter in _signature(build).items():
        if key == model or key in OwnLossConfig.model_fields:
            continue
        given = options.pop(key, parameter.default)
        is_needed = given is parameter.empty
        if is_needed or _fits_a_config(given):
            default = ... if is_needed else given  # pydantic's mark of a value that must be given
            swept = _sweep_of(space, key)
            fields[key] = (Any, option(default, f"argument of {name}", **swept))
        elif given is not parameter.default:
            raise InputError(
                f"{name}: {key} is a {type(given).__name__}, which a config cannot hold",
                key=key,
                remedy=f"give a factory: build=lambda: {name}({key}=...)",
            )
    return fields


def _fits_a_config(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_fits_a_config, value))
    return value is None or isinstance(value, bool | int | float | str)


def _sweep_of(space: Mapping[str, Any], key: str) -> dict[str, Any]:
    if key not in space:
        return {}
    given = space[key]
    if isinstance(given, tuple) and len(given) == 2:
        return {"sweep": given}
    return {"sweep": list(given)}


def _read_sweep(given: Any) -> dict[str, Any]:
    if isinstance(given, tuple) and len(given) == 2:
        return {"low": given[0], "high": given[1], "log": False}
    return {"choices": list(given)}


@functools.cache
def method_from_path(path: str) -> type[Method]:
    """Return the method of "module:name", a function of two views, a class or a factory.

    Raises:
        InputError: no such module or name, or it is no loss.
    """
    found = import_path(path, key="loss")
    name = LOSS + path
    if isinstance(found, type) and issubclass(found, Method):
        if _is_installed(found):
            return found
        return _rename(found, name)
    if isinstance(found, nn.Module):
        return make_loss_method(found, name=name)
    if not callable(found):
        kind = type(found).__name__
        raise InputError(f'"{path}" is a {kind}, and no loss', key="loss")
    if isinstance(found, type) or len(_arguments_needed(found)) < 2:
        return make_loss_method(build=found, name=name)
    return make_loss_method(found, name=name)


def _is_installed(kind: type[Method]) -> bool:
    """True of a method that every process finds by its own name, as a package registers it."""
    name = getattr(kind, "name", "")
    known = set(registry.names(registry.METHODS))
    shared = known - registry.names_of_process(registry.METHODS)
    if name not in shared:
        return False
    return registry.load(registry.METHODS, name) is kind


def _rename(kind: type[Method], name: str) -> type[Method]:
    """Return a method under the name by which other processes import it."""
    attributes = {"name": name, "__module__": kind.__module__, "__doc__": kind.__doc__}
    if "version" in vars(kind):  # of this class alone: it is not inherited
        attributes["version"] = vars(kind)["version"]
    return type(kind.__name__, (kind,), attributes)


def _arguments_needed(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments that a function cannot be called without."""
    parameters = _signature(function).values()
    return [p.name for p in parameters if p.default is p.empty]
