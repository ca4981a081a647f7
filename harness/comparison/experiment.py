"""An experiment file (TOML) -> a validated experiment -> its rows: method, config and text of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from harness import registry
from harness.config import Config, nearest, option, setting
from harness.errors import InputError
from harness.files.names import name_fault
from harness.files.reading import is_there, read_toml
from harness.method import Method, MethodConfig
from harness.results.migrations import EXPERIMENT


class CorpusSettings(Config):
    """Where the training text comes from."""

    uri: str = option(
        "embedded:sentences", "a name of `harness data list`, hf://datasets/ORG/NAME, a path, embedded:NAME"
    )
    kind: Literal["sentences", "pairs", "documents"] = option("sentences", "what the corpus holds")
    limit: int | None = option(None, "use the first N items only", ge=2)
    columns: dict[str, str] | None = option(None, "role -> column, for .csv, .tsv and .jsonl")


class DevSettings(Config):
    """The set that selects checkpoints."""

    task: str = option("STS-B", "an STS task with a dev split")
    source: Literal["senteval", "mteb", "embedded"] | None = option(
        None, "which copy of it; empty: senteval, or embedded for the embedded tasks"
    )

    @property
    def where(self) -> Literal["senteval", "mteb", "embedded"]:
        """The source in force."""
        return self.source or ("embedded" if self.task.startswith("Embedded") else "senteval")


class Entry(Config):
    """One row of the comparison."""

    method: str = Field(description="an installed method (harness list methods)")
    name: str = option("", "row label; the method's name when empty")
    preset: str | None = option(None, "a preset of the method")
    config: dict[str, Any] = option({}, "values that override the preset")
    corpus: CorpusSettings | None = option(None, "text of this row alone; empty: the comparison's")
    space: dict[str, Any] = option({}, "what --tune searches, as [space] of a study file; empty: all declared ranges")

    @field_validator("corpus", mode="before")
    @classmethod
    def _short_corpus(cls, value: Any) -> Any:
        return {"uri": value} if isinstance(value, str) else value


class Conditions(Config):
    """What all runs of a comparison, or of a study, have in common."""

    name: str = Field(description="what its files are called by; a file that says none has its own name")
    title: str = option("", "heading of the report")
    description: str = option("", "a paragraph for the report")
    source: Literal["senteval", "mteb"] = option("senteval", "which copy of the STS sets")
    corpus: CorpusSettings = option(CorpusSettings(), "the text that methods learn from")
    corpora: dict[Literal["sentences", "pairs", "documents"], CorpusSettings] = option(
        {}, "further text, by kind, for the methods that learn from another kind than corpus holds"
    )
    dev: DevSettings | None = option(DevSettings(), "the set that selects checkpoints")
    device: str = option("auto", "auto, cpu, cuda, cuda:N or mps")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = option("auto", "training precision; auto measures")

    @field_validator("corpus", mode="before")
    @classmethod
    def _short_corpus(cls, value: Any) -> Any:
        return {"uri": value} if isinstance(value, str) else value

    @field_validator("corpora", mode="before")
    @classmethod
    def _kinds_of_corpora(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        tables = {kind: {"uri": c} if isinstance(c, str) else c for kind, c in value.items()}
        return {kind: {"kind": kind, **c} if isinstance(c, dict) else c for kind, c in tables.items()}

    def conditions(self) -> dict[str, Any]:
        """Key -> value of what stands here: to make an experiment or a study under the same conditions."""
        return {key: getattr(self, key) for key in Conditions.model_fields}


class Experiment(Conditions):
    """A comparison: every method under the same base models, seeds, corpus, budget, selection set and tasks."""

    base_models: list[str] = option(["embedded:mini-bert"], "hub ids, folders or embedded:NAME")
    seeds: list[int] = option([1, 2, 3], "one run per seed; deterministic methods run once")
    suites: list[str] = option(["embedded"], "suites or tasks to evaluate")
    max_steps: int | None = option(None, "upper bound on updates of every method", ge=1)
    shared: dict[str, Any] = option({}, "for every method that has the key: beats presets, not a row's own config")
    methods: list[Entry] = Field(description="the rows of the table")

    @field_validator("methods", "seeds", "base_models")
    @classmethod
    def _not_empty(cls, value: list[Any]) -> list[Any]:
        if not value:
            raise ValueError("needs at least one")
        if len({str(v) for v in value}) != len(value):
            raise ValueError("holds the same entry twice")
        return value


def presets() -> dict[str, Path]:
    """Name -> experiment file of every installed preset."""
    files: dict[str, Path] = {}
    for point in registry.names(registry.PRESETS):
        folder: Path = registry.load(registry.PRESETS, point)
        files.update({file.stem: file for file in sorted(folder.glob("*.toml"))})
    return files


def read_experiment(source: str | Path | Mapping[str, Any] | Experiment, overrides: Sequence[str] = ()) -> Experiment:
    """An experiment from a TOML file, a preset's name, its keys or as it is; with `a.b=c` overrides, validated.

    Raises:
        InputError: no such file or preset, not TOML, unknown key, value out of range.
    """
    if isinstance(source, Experiment):
        source = source.model_dump(mode="json", exclude_unset=True)
    if isinstance(source, Mapping):
        where, tree = "experiment", deepcopy(dict(source))
    else:
        path = _file_of(str(source))
        where, tree = str(path), _read(path)
    for override in overrides:
        _override(tree, override)
    tree = EXPERIMENT.migrated(tree, where)
    tree.pop(EXPERIMENT.key, None)
    if isinstance(tree.get("methods"), list):
        for number, entry in enumerate(tree["methods"], 1):
            if not isinstance(entry, dict):
                raise InputError(f'{where}: methods[{number}]: expected a table such as {{method = "simcse"}}')
            Entry.parse(entry, f"{where}: methods[{number}]")
    experiment = Experiment.parse(tree, where)
    if fault := name_fault(experiment.name):
        raise InputError(f'{where}: key "name": {fault}')
    return experiment


def _file_of(name: str) -> Path:
    path = Path(name)
    known = presets()
    if is_there(path) and not (path.is_dir() and name in known):
        return path
    if name not in known:
        hint = nearest(name, sorted(known))
        raise InputError(f'no file and no preset "{name}"{hint}; presets: {", ".join(known) or "none"}')
    return known[name]


def _read(path: Path) -> dict[str, Any]:
    return {"name": path.stem, **read_toml(path)}


def _override(tree: dict[str, Any], override: str) -> None:
    """Set one value of the tree; in `methods`, a row is named by its label, method or number (from 1)."""
    path, value = setting(override, 'seeds="[1, 2]"')
    place: Any = tree
    keys = path.split(".")
    for i, key in enumerate(keys):
        if isinstance(place, list):
            if not all(isinstance(e, dict) for e in place) or i == len(keys) - 1:
                place_of = ".".join(keys[: i + 1])
                raise InputError(f'--set {override}: "{place_of}" is no key of a row, as methods.SimCSE.temperature is')
            rows = [e for e in place if key in (e.get("name"), e.get("method"))]
            rows = rows or ([place[int(key) - 1]] if key.isdigit() and 0 < int(key) <= len(place) else [])
            if not rows:
                labels = ", ".join(str(e.get("name") or e.get("method")) for e in place)
                raise InputError(f'--set {override}: no row "{key}"; rows: {labels}')
            place = rows[0]
            if keys[i + 1 :] and keys[i + 1] not in Entry.model_fields:
                place = place.setdefault("config", {})
        elif i == len(keys) - 1:
            place[key] = value
        else:
            place = place.setdefault(key, {})
            if not isinstance(place, (dict, list)):
                raise InputError(f'--set {override}: "{key}" is a single value, not a table')


@dataclass(frozen=True)
class Row:
    """A resolved row: label, plugin class and validated config."""

    label: str
    method: type[Method]
    config: MethodConfig
    corpus: CorpusSettings | None  # None for methods that learn from no text

    @property
    def trained(self) -> bool:
        """Does `fit` learn from text?"""
        return self.corpus is not None


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


def resolve_rows(experiment: Experiment, where: str) -> list[Row]:
    """Load every plugin and validate its config; `shared` values reach the methods that have the key.

    Raises:
        InputError: unknown method, preset or key, value out of range, a shared key that no method has, equal labels.
    """
    rows: list[Row] = []
    used: set[str] = set()
    for number, entry in enumerate(experiment.methods, 1):
        place = f"{where}: methods[{number}] ({entry.name or entry.method})"
        try:
            method: type[Method] = registry.load(registry.METHODS, entry.method)
        except InputError as error:
            raise InputError(f"{where}: methods[{number}]: {error}") from None
        shared = {k: v for k, v in experiment.shared.items() if k in method.Config.model_fields}
        used.update(shared)
        config = method.configure({**shared, **entry.config}, preset=entry.preset, where=place)
        corpus = corpus_for(experiment, entry, method.text_for(config), where)
        rows.append(Row(entry.name or entry.method, method, config, corpus))
    unused = sorted(set(experiment.shared) - used)
    if unused:
        known = sorted({name for row in rows for name in row.method.Config.model_fields})
        raise InputError(f'{where}: shared: no method here has the key "{unused[0]}"{nearest(unused[0], known)}')
    labels = [row.label for row in rows]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f'{where}: two rows are called "{label}"; give one of them another name')
    return rows
