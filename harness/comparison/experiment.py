"""An experiment file (TOML) -> a validated experiment; `harness.comparison.rows` makes its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator

from harness import registry
from harness.comparison.budget import BOUNDING, BudgetSettings
from harness.comparison.grid import expanded
from harness.config import Config, nearest, option, setting
from harness.errors import InputError
from harness.executors.executor import ExecutorSettings
from harness.files.names import name_fault
from harness.files.reading import is_there, read_toml
from harness.method import DEFAULT_BASE_MODEL
from harness.results.migrations import EXPERIMENT
from harness.seeds import Stream

if TYPE_CHECKING:
    from harness.tasks.sts import DevSet


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
    every: Annotated[int, Field(ge=1)] | Literal["own"] | None = option(
        None,
        'updates between two scores, of all rows; "own": each row as its config says; empty: as the row that is scored '
        "most often",
    )
    pairs: int | None = option(
        None, "so many of its pairs, drawn once and the same for all runs: a faster and coarser selection; empty: all",
        ge=2,
    )  # fmt: skip

    @property
    def where(self) -> Literal["senteval", "mteb", "embedded"]:
        """The source in force."""
        return self.source or ("embedded" if self.task.startswith("Embedded") else "senteval")

    def load(self) -> DevSet:
        """The set, read.

        Raises:
            InputError: no such task, no dev split, fewer pairs, or data that cannot be had.
        """
        from harness.sources import load_sts
        from harness.tasks.sts import DevSet

        whole = load_sts(self.task, source=self.where, split="dev")
        return DevSet(whole if self.pairs is None else whole.drawn(self.pairs))


EMBEDDED_DEV = DevSettings(task="Embedded-STS-natural")  # what selects where nothing is said; it needs no download


class Entry(Config):
    """One row of the comparison."""

    method: str = Field(description="an installed method (harness list methods)")
    name: str = option("", "row label; the method's name when empty")
    preset: str | None = option(None, "a preset of the method")
    family: str | None = option(None, "whose values of the preset, for this row alone; empty: the comparison's")
    config: dict[str, Any] = option({}, "values that override the preset")
    grid: dict[str, list[Any]] = option(
        {}, "key -> values: a row for each combination; the name says them as {key}, else they follow it"
    )
    blocks: list[str] = option([], "the parts of the file that it stands in; empty: all")
    base_models: list[str] = option([], "of this row alone; empty: its blocks', else the comparison's")
    seeds: list[int] = option([], "of this row alone; empty: its blocks', else the comparison's")
    vary: list[Stream] = option([], "of this row alone; empty: its blocks', else the comparison's")
    max_steps: int | None = option(None, "of this row alone; empty: its blocks', else the comparison's", ge=1)
    corpus: CorpusSettings | None = option(None, "text of this row alone; empty: the comparison's")
    space: dict[str, Any] = option({}, "what --tune searches, as [space] of a study file; empty: all declared ranges")

    @field_validator("corpus", mode="before")
    @classmethod
    def _short_corpus(cls, value: Any) -> Any:
        return {"uri": value} if isinstance(value, str) else value


class Block(Config):
    """A named part of a comparison: a table or a figure of a paper."""

    title: str = option("", "heading of its tables; its name when empty")
    description: str = option("", "a paragraph for the report")
    base_models: list[str] = option([], "for the rows that name none of their own; empty: the comparison's")
    seeds: list[int] = option([], "for the rows that name none of their own; empty: the comparison's")
    vary: list[Stream] = option([], "for the rows that name none of their own; empty: the comparison's")
    max_steps: int | None = option(None, "for the rows that name none of their own; empty: the comparison's", ge=1)
    suites: list[str] = option([], "what its rows are evaluated on; empty: the comparison's suites")


class Rehearsal(Config):
    """What `--rehearse` makes of the file on a laptop."""

    base_model: str = option(DEFAULT_BASE_MODEL, "what every row starts from instead of its base models")
    max_steps: int = option(8, "upper bound on updates of every method", ge=1)
    seeds: int = option(1, "runs of a row: the first so many of its seeds", ge=1)
    limit: int = option(512, "use the first N items of a corpus only", ge=2)
    corpora: dict[str, str] = option({}, "uri -> uri of the text instead; others: themselves, else embedded text")
    sentences: int = option(10_000, "a task that asks for more than this many is left out, and says so", ge=1)


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
    family: str | None = option(None, "whose values presets have: bert-base, mini, ...; empty: the base model's family")
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
    """A comparison: every method under the same base models, seeds, corpus, budget, selection set and tasks.

    >>> experiment = Experiment(name="mine", methods=[{"method": "pooling"}], seeds=[1])
    >>> experiment.suites, experiment.methods[0].method
    (['embedded'], 'pooling')
    """

    base_models: list[str] = option(["embedded:mini-bert"], "hub ids, folders or embedded:NAME")
    seeds: list[int] = option([1, 2, 3], "one run per seed; deterministic methods run once")
    vary: list[Stream] = option(
        [], "the streams of random numbers that are each seed's own, the others those of one seed; empty: all"
    )
    held_seed: int | None = option(None, "the seed of the streams that do not vary; empty: the first of the seeds")
    suites: list[str] = option(["embedded"], "suites or tasks to evaluate")
    max_steps: int | None = option(None, "upper bound on updates of every method", ge=1)
    budget: BudgetSettings = option(BudgetSettings(), "what every row gets as much of as every other; empty: its own")
    shared: dict[str, Any] = option({}, "for every method that has the key: beats presets, not a row's own config")
    reports: list[str] = option([], "reports of papers that are built at the end, beside the comparison's own")
    keep: Literal["all", "selected", "none"] = option(
        "all", "whose weights stay after scoring; selected: the best run by dev score of each row and base model"
    )
    keep_vectors: bool = option(
        True, "keep the vectors of scored sentences; without them further tasks encode from the kept weights"
    )
    executor: ExecutorSettings = option(ExecutorSettings(), "where its runs are made; no part of any result")
    rehearsal: Rehearsal = option(Rehearsal(), "what --rehearse makes of the file")
    blocks: dict[str, Block] = option({}, "named parts of the file, which --only may ask for")
    methods: list[Entry] = Field(description="the rows of the table")

    @field_validator("methods", "seeds", "base_models")
    @classmethod
    def _not_empty(cls, value: list[Any]) -> list[Any]:
        if not value:
            raise ValueError("needs at least one")
        if len({str(v) for v in value}) != len(value):
            raise ValueError("holds the same entry twice")
        return value

    @property
    def parts(self) -> dict[str, Block]:
        """Its blocks by name; one without a name where the file has none."""
        return dict(self.blocks) or {"": Block()}


_EXAMPLE = 'seeds="[1, 2]"'  # of --set
_OF_ALL = ("base_models", "seeds", "vary", "max_steps")  # keys that blocks and rows have too


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
    _make_room(tree, overrides)
    for override in overrides:
        _override(tree, override)
    tree = EXPERIMENT.migrated(tree, where)
    tree.pop(EXPERIMENT.key, None)
    if isinstance(tree.get("methods"), list):
        tree["methods"] = expanded(tree["methods"], where)
        for number, entry in enumerate(tree["methods"], 1):
            if not isinstance(entry, dict):
                raise InputError(f'{where}: methods[{number}]: expected a table such as {{method = "simcse"}}')
            Entry.parse(entry, f"{where}: methods[{number}]")
    experiment = Experiment.parse(tree, where)
    if fault := name_fault(experiment.name):
        raise InputError(f'{where}: key "name": {fault}')
    _check_blocks(experiment, where)
    _check_budget(experiment, where)
    return experiment


def _check_blocks(experiment: Experiment, where: str) -> None:
    """Raises:
    InputError: a block whose name can be none, that no row stands in, or that a row names and the file has not.
    """
    known = list(experiment.blocks)
    for name in known:
        if fault := name_fault(name):
            raise InputError(f'{where}: blocks: "{name}": {fault}')
    for number, entry in enumerate(experiment.methods, 1):
        for name in entry.blocks:
            if name not in known:
                label = entry.name or entry.method
                raise InputError(
                    f'{where}: methods[{number}] ({label}): no block "{name}"{nearest(name, known)}; '
                    f"tables [blocks.NAME] of the file: {', '.join(known) or 'none'}"
                )
    for name in known:
        if not any(name in (entry.blocks or known) for entry in experiment.methods):
            raise InputError(f'{where}: blocks: no row stands in "{name}"; name it in the key "blocks" of its rows')


def _check_budget(experiment: Experiment, where: str) -> None:
    """Raises:
    InputError: another key says how long a row trains, and the budget does too.
    """
    if not experiment.budget.bounds:
        return
    said: list[tuple[str, str]] = [("max_steps", "")] if experiment.max_steps else []
    said += [("max_steps", f"blocks.{name}: ") for name, block in experiment.blocks.items() if block.max_steps]
    said += [(key, "shared: ") for key in ("max_steps", "epochs") if key in experiment.shared]
    for number, entry in enumerate(experiment.methods, 1):
        place = f"methods[{number}] ({entry.name or entry.method}): "
        said += [("max_steps", place)] if entry.max_steps else []
        said += [(key, place) for key in ("max_steps", "epochs") if key in entry.config]
    for key, place in said:
        raise InputError(
            f'{where}: {place}key "{key}" and the budget of equal {experiment.budget.kind} both say how long a row '
            "trains; leave one of them out"
        )


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


def _make_room(tree: dict[str, Any], overrides: Sequence[str]) -> None:
    """Who types a budget of updates, or an upper bound on them, means it instead of the file's other one."""
    typed = {setting(override, _EXAMPLE)[0].partition(".")[0] for override in overrides}
    asked = {"budget": deepcopy(tree.get("budget", {}))}
    for override in overrides:
        if override.startswith("budget"):
            _override(asked, override)
    budget = asked["budget"]
    if (budget.get("kind") if isinstance(budget, dict) else budget) not in BOUNDING:
        return  # it lets rows be as long as they are
    if "budget" in typed and "max_steps" not in typed:
        tree.pop("max_steps", None)
        _drop(tree, "max_steps")
    elif "max_steps" in typed and "budget" not in typed:
        tree.pop("budget", None)


def _drop(tree: dict[str, Any], key: str) -> None:
    """Take a key from all blocks and rows."""
    blocks, rows = tree.get("blocks"), tree.get("methods")
    for table in (*(blocks.values() if isinstance(blocks, dict) else ()), *(rows if isinstance(rows, list) else ())):
        if isinstance(table, dict):
            table.pop(key, None)


def _override(tree: dict[str, Any], override: str) -> None:
    """Set one value of the tree; in `methods`, a row is named by its label, method or number (from 1).

    Base models, seeds and updates of the comparison beat those of its blocks and rows: who types them means all runs.
    """
    path, value = setting(override, _EXAMPLE)
    if path in _OF_ALL:
        _drop(tree, path)
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
