"""A study file (TOML) -> a validated study: what is searched, under which budget, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from harness import registry
from harness.config import nearest, option, setting
from harness.errors import InputError
from harness.executors.executor import ExecutorSettings
from harness.files.printable import name_fault
from harness.runs.conditions import Conditions, DevSettings
from harness.runs.experiment import Entry, Experiment, Kept, read_keys, set_value
from harness.seeds import expand_seeds
from harness.tasks.own.data import TaskFile

PRESETS = Path(__file__).parents[1] / "presets"
EXTENDS = "extends"  # key of a file: the preset whose keys it has where it does not say otherwise
DEV = "dev"  # the objective "best Spearman on the dev set over the run's evaluations"

ENUMERATED = ("grid", "brute_force")  # every configuration once: no proposals are needed
Pruner = Literal["none", "median", "percentile", "hyperband"]


class Study(Conditions):
    """A search: one method, a space, and the same conditions and budget for every trial."""

    dev: DevSettings = option(
        DevSettings(), "the set that selects checkpoints, and the objective dev"
    )
    method: str = Field(
        description='an installed method (harness list methods), or "loss:MODULE:CLASS"'
    )
    preset: str | None = option(None, "a preset of the method")
    config: dict[str, Any] = option({}, "values of the method's config that every trial shares")
    base_model: str = option("embedded:mini-bert", "hub id, folder or embedded:NAME")
    suites: list[str | TaskFile] = option(
        [], "suites or tasks that every trial is evaluated on; none: the dev set alone"
    )
    steps: int | None = option(
        None, "upper bound on the training steps of every trial: its budget", ge=1
    )
    objective: str = option(
        DEV, "what is maximised: dev, or TASK, TASK:METRIC, TASK:METRIC:AGGREGATION of the suites"
    )
    seeds: list[int] = option([101], "seeds of a trial, their number or a list: a run for each")
    held_out_seeds: list[int] = option(
        [1, 2, 3],
        "seeds that confirm the best configuration; none of them searches; where seeds is a "
        "number, the next three by default",
    )
    sampler: str = option("tpe", "how configurations are proposed: grid, brute_force or a sampler")
    sampler_seed: int = option(0, "seed of the sampler")
    defaults_first: bool = option(
        False, "the first trial is the configuration that method, preset and config give"
    )
    pruner: Pruner = option("none", "which trials are stopped early, by their dev scores")
    trials: int | None = option(
        None, "finished trials (with `by`: for each of its values); grids need none", ge=1
    )
    by: str | None = option(
        None, "parameter whose values get equal numbers of trials, and a line each in the table"
    )
    keep: list[Kept] = option(
        [], "what stays of a finished run: its weights, the vectors of scored sentences"
    )
    space: dict[str, Any] = option(
        {}, "parameter -> values, range or the word declared; empty: all declared ones"
    )
    executor: ExecutorSettings = option(
        ExecutorSettings(), "where its runs are executed; no part of any result"
    )
    where: str = option(
        "", 'what every cell of a grid has to meet, as "dropout_a < dropout_b"; empty: nothing'
    )

    @model_validator(mode="before")
    @classmethod
    def _number_of_seeds(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("seeds"), int):
            return value
        seeds = expand_seeds(value["seeds"])
        others = [seeds[-1] + 1, seeds[-1] + 2, seeds[-1] + 3]
        return {"held_out_seeds": others, **value, "seeds": seeds}

    @field_validator("sampler")
    @classmethod
    def _check_sampler(cls, value: str) -> str:
        known = [*ENUMERATED, *registry.names(registry.SAMPLERS)]
        if value not in known:
            raise ValueError(
                f'unknown sampler "{value}"{nearest(value, known)}; known: {", ".join(known)}'
            )
        return value

    @field_validator("seeds")
    @classmethod
    def _not_empty(cls, value: list[Any]) -> list[Any]:
        if not value or len(set(value)) != len(value):
            raise ValueError("needs at least one, each once")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        both = sorted(set(self.seeds) & set(self.held_out_seeds))
        if both:
            raise ValueError(f"held_out_seeds: seed {both[0]} searches too (seeds); choose others")
        if self.pruner != "none" and self.objective != DEV:
            raise ValueError(
                f'pruner: {self.pruner} judges dev scores; it goes with objective = "dev" alone'
            )
        if self.defaults_first and self.sampler in ENUMERATED:
            raise ValueError(
                f"defaults_first: {self.sampler} goes through the whole space in its own order"
            )
        if self.objective != DEV and not self.suites:
            raise ValueError(
                f'objective: "{self.objective}" is evaluated by no suite; name one in suites'
            )
        return self

    @property
    def objective_name(self) -> str:
        """Title of the objective."""
        if self.objective == DEV:
            return f"{self.dev.label} dev"
        return self.objective

    def experiment(self, values: Mapping[str, Any], label: str) -> Experiment:
        """Return the comparison of one row, named `label`, that a trial with these values is.

        Its runs have the same ids.
        """
        entry = Entry(
            method=self.method,
            name=label,
            preset=self.preset,
            config={**self.config, **values},
        )
        return Experiment(
            **self.conditions(),
            base_models=[self.base_model],
            seeds=self.seeds,
            suites=self.suites,
            max_steps=self.steps,
            keep=self.keep,
            methods=[entry],
        )

    def identity(self) -> dict[str, Any]:
        """Return what must be equal for two runs to be one study.

        More trials or another title go on with the same one.
        """
        free = {"title", "description", "trials", "held_out_seeds"}
        free |= {"keep", "name", "device", "executor"}
        return self.model_dump(mode="json", exclude=free)


def presets() -> dict[str, Path]:
    """Return the study file of every preset by name."""
    return {file.stem: file for file in sorted(PRESETS.glob("*.toml"))}


def read_study(
    source: str | Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    *,
    quick: bool = False,
    name: str | None = None,
) -> Study:
    """Read a study file, a preset's name or the keys of a file; then `key=value` overrides.

    `quick` puts its table [quick] above the rest.

    Raises:
        InputError: no such file or preset, not TOML, no quick size, unknown key, value out of
            range.
    """
    if isinstance(source, Mapping):
        path = "study"
        tree = deepcopy(dict(source))
    else:
        path, tree = _read(str(source))
    tree.setdefault("name", "study")
    smaller = tree.pop("quick", None)
    if quick:
        if not isinstance(smaller, dict):
            raise InputError("the file has no table [quick]", file=path, key="--quick")
        tree |= {"name": f"{tree['name']}-quick", **smaller}
    for override in overrides:
        key, value = setting(override, "trials=20")
        set_value(tree, key.split("."), value, override)
    if name is not None:
        tree["name"] = name
    study = Study.parse(tree, path)
    fault = name_fault(study.name)
    if fault:
        raise InputError(fault, file=path, key='key "name"')
    return study


def _read(file: str) -> tuple[str, dict[str, Any]]:
    """Return path and keys of a file or preset, with those of the study that it `extends`."""
    known = presets()
    path, tree = read_keys(file, known)
    base = tree.pop(EXTENDS, None)
    if base is None:
        return path, tree
    if base not in list(known):
        message = f"expected one of the presets {', '.join(known)}, not {base!r}"
        raise InputError(message, file=path, key=f'key "{EXTENDS}"')
    return path, {**_read(base)[1], **tree}
