"""An experiment file (TOML) as a validated experiment; `harness.runs.rows` resolves its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from harness import registry
from harness.config import Config, nearest, option, setting
from harness.errors import InputError
from harness.executors.executor import ExecutorSettings
from harness.files.names import name_fault
from harness.files.reading import is_there, read_toml
from harness.method import DEFAULT_BASE_MODEL
from harness.results.record import SCHEMA
from harness.seeds import Stream

if TYPE_CHECKING:
    from harness.tasks.sts import DevSet


class CorpusSettings(Config):
    """Where the training text comes from."""

    uri: str = option(
        "embedded:sentences", "a name of `harness list data`, hf://datasets/ORG/NAME, a path, embedded:NAME"
    )
    kind: Literal["sentences", "pairs", "documents"] = option("sentences", "what the corpus holds")
    limit: int | None = option(None, "use the first N items only", ge=2)
    columns: dict[str, str] | None = option(None, "role -> column, for .csv, .tsv and .jsonl")


class DevSettings(Config):
    """The set that selects checkpoints."""

    task: str = option("STS-B", "an STS task with a dev split")
    source: Literal["senteval", "mteb", "embedded"] | None = option(
        None, "which copy of it; default: senteval, or embedded for the embedded tasks"
    )
    every: Annotated[int, Field(ge=1)] | Literal["own"] | None = option(
        None,
        'training steps between two scores of all rows; "own": each row as its config says; default: the interval of '
        "the row that is scored most often",
    )
    pairs: int | None = option(
        None, "number of its pairs to use (a fixed random subset), for a faster and coarser selection; default: all",
        ge=2,
    )  # fmt: skip

    @property
    def where(self) -> Literal["senteval", "mteb", "embedded"]:
        """The source in effect."""
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


EMBEDDED_DEV = DevSettings(task="Embedded-STS-natural")  # the default of calls from Python: it needs no download


class Entry(Config):
    """One row of the comparison."""

    method: str = Field(description="an installed method (harness list methods)")
    name: str = option("", "row label; the method's name when empty")
    preset: str | None = option(None, "a preset of the method")
    family: str | None = option(
        None, "model family whose values of the preset this row uses; default: the comparison's"
    )
    config: dict[str, Any] = option({}, "values that override the preset")
    grid: dict[str, list[Any]] = option(
        {}, "key -> values: expand into one row per combination; {key} in `name` places the values"
    )
    blocks: list[str] = option([], "the blocks of the file that contain the row; default: all")
    base_models: list[str] = option([], "of this row; default: those of its blocks, else of the comparison")
    seeds: list[int] = option([], "of this row; default: those of its blocks, else of the comparison")
    vary: list[Stream] = option([], "of this row; default: those of its blocks, else of the comparison")
    max_steps: int | None = option(None, "of this row; default: those of its blocks, else of the comparison", ge=1)
    corpus: CorpusSettings | None = option(None, "text of this row; default: the comparison's")
    space: dict[str, Any] = option({}, "what --tune searches, as [space] of a study file; default: all declared ranges")

    @field_validator("corpus", mode="before")
    @classmethod
    def _short_corpus(cls, value: Any) -> Any:
        return {"uri": value} if isinstance(value, str) else value


class Block(Config):
    """A named part of a comparison: a table or a figure of a paper."""

    title: str = option("", "heading of its tables; its name when empty")
    description: str = option("", "a paragraph for the report")
    base_models: list[str] = option([], "for rows without their own; default: the comparison's")
    seeds: list[int] = option([], "for rows without their own; default: the comparison's")
    vary: list[Stream] = option([], "for rows without their own; default: the comparison's")
    max_steps: int | None = option(None, "for rows without their own; default: the comparison's", ge=1)
    suites: list[str] = option([], "what its rows are evaluated on; default: the comparison's suites")


class Rehearsal(Config):
    """How `--rehearse` shrinks the file for a laptop."""

    base_model: str = option(DEFAULT_BASE_MODEL, "the base model of every row")
    max_steps: int = option(8, "upper bound on the training steps of every method", ge=1)
    seeds: int = option(1, "number of seeds of a row", ge=1)
    limit: int = option(512, "use the first N items of a corpus only", ge=2)
    corpora: dict[str, str] = option(
        {}, "uri -> uri of the text that replaces it; others: themselves, else embedded text"
    )
    sentences: int = option(10_000, "a task that needs more sentences than this is left out, with a note", ge=1)


# kind -> the key that says how much, and whether which other keys go with it
_AMOUNTS: dict[str, tuple[str, ...]] = {
    "own": (),
    "updates": ("updates",),
    "sentences": ("sentences",),
    "seconds": ("seconds", "device"),
    "trials": ("trials", "updates"),
}
BOUNDING = ("updates", "sentences", "seconds")  # the kinds that say how long a row trains


class BudgetSettings(Config):
    """The training budget that all rows share."""

    kind: Literal["own", "updates", "sentences", "seconds", "trials"] = option(
        "own",
        "what all rows get the same amount of: updates (training steps), sentences (or pairs, documents) seen, seconds "
        "of the training device, or trials of --tune; own: each row trains as its method, preset and max_steps say",
    )
    updates: int | None = option(None, "training steps of every row; with kind = trials: of every trial", ge=1)
    sentences: int | None = option(None, "items of text that every row sees; its training steps are rounded up", ge=1)
    seconds: float | None = option(
        None,
        "training time of every row: processor time on a CPU, elapsed time on a GPU; a training step is timed once and "
        "stored in measurements.json",
        gt=0,
    )
    device: str | None = option(
        None, "the device, as measurements.json names it, whose seconds count; default: this machine's"
    )
    trials: int | None = option(None, "trials of the search of every row, as --tune", ge=1)

    @model_validator(mode="before")
    @classmethod
    def _kind_alone(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _amount_of_its_kind(self) -> Self:
        keys = _AMOUNTS[self.kind]
        strange = [key for key in type(self).model_fields if key not in ("kind", *keys) and getattr(self, key)]
        if strange:
            raise ValueError(f'unexpected key "{strange[0]}" with kind = "{self.kind}"')
        if keys and getattr(self, keys[0]) is None:
            raise ValueError(f'expected the key "{keys[0]}" with kind = "{self.kind}"')
        return self

    @property
    def bounds(self) -> bool:
        """Does it fix the training steps of a row?"""
        return self.kind in BOUNDING

    def describe(self, clock: str = "") -> tuple[str, str]:
        """The amount and its unit: ("30 s", "of processor time per row"); empty texts where nothing is shared.

        Args:
            clock: what the seconds are ("processor time"), where that is known.
        """
        return {
            "own": ("", ""),
            "updates": (f"{self.updates or 0:,}", "training steps per row"),
            "sentences": (f"{self.sentences or 0:,}", "sentences seen per row"),
            "seconds": (f"{self.seconds or 0:g} s", f"of {clock or 'training time'} per row"),
            "trials": (f"{self.trials or 0:,}", "search trials per row"),
        }[self.kind]


class Conditions(Config):
    """What all runs of a comparison or of a study have in common."""

    name: str = Field(description="name of the comparison and of its output files; default: the file's stem")
    title: str = option("", "heading of the report")
    description: str = option("", "a paragraph for the report")
    source: Literal["senteval", "mteb"] = option("senteval", "which copy of the STS sets")
    corpus: CorpusSettings = option(CorpusSettings(), "the text that methods learn from")
    corpora: dict[Literal["sentences", "pairs", "documents"], CorpusSettings] = option(
        {}, "further text, by kind, for the methods that learn from another kind than corpus holds"
    )
    dev: DevSettings | None = option(DevSettings(), "the set that selects checkpoints")
    family: str | None = option(
        None, "model family whose preset values are used: bert-base, mini, ...; default: the base model's"
    )
    device: str = option("auto", "auto, cpu, cuda, cuda:N or mps")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = option(
        "auto", "training precision; auto measures which is faster"
    )

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
        """The keys defined here, to make an experiment or a study under the same conditions."""
        return {key: getattr(self, key) for key in Conditions.model_fields}


class Experiment(Conditions):
    """A comparison: every method under the same base models, seeds, corpus, budget, selection set and tasks.

    >>> experiment = Experiment(name="mine", methods=[{"method": "pooling"}], seeds=[1])
    >>> experiment.suites, experiment.methods[0].method
    (['embedded'], 'pooling')
    """

    base_models: list[str] = option(["embedded:mini-bert"], "hub ids, folders or embedded:NAME")
    seeds: list[int] = option([1, 2, 3], "one run per seed; deterministic methods run once")
    vary: list[Stream] = option([], "random streams that vary with the seed; the others use `held_seed`; default: all")
    held_seed: int | None = option(None, "the seed of the streams that do not vary; default: the first seed")
    suites: list[str] = option(["embedded"], "suites or tasks to evaluate")
    max_steps: int | None = option(None, "upper bound on the training steps of every method", ge=1)
    budget: BudgetSettings = option(
        BudgetSettings(), "the training budget that all rows share; default: each row's own"
    )
    shared: dict[str, Any] = option(
        {}, "config values for every method that has the key; they override presets, not a row's own config"
    )
    reports: list[str] = option([], "reports of papers that are built at the end, with the comparison's own")
    keep: Literal["all", "selected", "none"] = option(
        "all", "whose weights are kept after scoring; selected: the best run by dev score of each row and base model"
    )
    keep_vectors: bool = option(
        True, "keep the vectors of scored sentences; without them, further tasks encode them again"
    )
    executor: ExecutorSettings = option(ExecutorSettings(), "where runs are executed; it does not affect results")
    rehearsal: Rehearsal = option(Rehearsal(), "how --rehearse shrinks the file")
    blocks: dict[str, Block] = option({}, "named parts of the file, which --only can select")
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
    """A validated experiment from a TOML file, a preset's name, its keys or an `Experiment`, with `a.b=c` overrides.

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
    _resolve_conflicts(tree, overrides)
    for override in overrides:
        _override(tree, override)
    _drop_schema(tree, where)
    if isinstance(tree.get("methods"), list):
        tree["methods"] = expand_grids(tree["methods"], where)
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
    InputError: a block with an invalid name or without rows, or a row that names an unknown block.
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
            raise InputError(f'{where}: blocks: no row is in "{name}"; name it in the key "blocks" of its rows')


def _check_budget(experiment: Experiment, where: str) -> None:
    """Raises:
    InputError: both the budget and another key bound the training of a row.
    """
    if not experiment.budget.bounds:
        return
    stated: list[tuple[str, str]] = [("max_steps", "")] if experiment.max_steps else []
    stated += [("max_steps", f"blocks.{name}: ") for name, block in experiment.blocks.items() if block.max_steps]
    stated += [(key, "shared: ") for key in ("max_steps", "epochs") if key in experiment.shared]
    for number, entry in enumerate(experiment.methods, 1):
        place = f"methods[{number}] ({entry.name or entry.method}): "
        stated += [("max_steps", place)] if entry.max_steps else []
        stated += [(key, place) for key in ("max_steps", "epochs") if key in entry.config]
    for key, place in stated:
        raise InputError(
            f'{where}: {place}key "{key}" and the budget of equal {experiment.budget.kind} both bound the training '
            "of a row; leave one of them out"
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


def _resolve_conflicts(tree: dict[str, Any], overrides: Sequence[str]) -> None:
    """A budget or a `max_steps` on the command line replaces the other one in the file."""
    typed = {setting(override, _EXAMPLE)[0].partition(".")[0] for override in overrides}
    given = {"budget": deepcopy(tree.get("budget", {}))}
    for override in overrides:
        if override.startswith("budget"):
            _override(given, override)
    budget = given["budget"]
    if (budget.get("kind") if isinstance(budget, dict) else budget) not in BOUNDING:
        return  # it does not bound the training steps
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

    Base models, seeds and max_steps of the comparison replace those of its blocks and rows: they apply to all runs.
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


def _drop_schema(tree: dict[str, Any], where: str) -> None:
    """Remove the key "schema", which files may state.

    Raises:
        InputError: another version than this one reads.
    """
    if tree.pop("schema", SCHEMA) != SCHEMA:
        raise InputError(f'{where}: key "schema": this version of the harness reads {SCHEMA}; update one of the two')


_OF_A_ROW = ("preset", "family", "max_steps", "base_models")  # keys beside the config's that a grid may range over


def expand_grids(entries: list[Any], where: str) -> list[Any]:
    """The tables of `methods`, each one with a grid replaced by its combinations, the last key changing fastest.

    A key of the grid is one of the method's config, of the row itself (preset, max_steps, ...) or of its corpus
    (`"corpus.limit"`). Other faults are found when the tables are validated.

    Raises:
        InputError: a grid without values, or over a corpus that the row does not name.
    """
    rows = []
    for number, entry in enumerate(entries, 1):
        grid = entry.get("grid") if isinstance(entry, dict) else None
        if not grid or not isinstance(grid, dict) or not _well_formed(entry):
            rows.append(entry)
            continue
        label = entry.get("name") or entry.get("method")
        for key, values in grid.items():
            if not isinstance(values, list) or not values:
                raise InputError(
                    f'{where}: methods[{number}] ({label}): grid: key "{key}": expected a list of values, as '
                    "grid = { dropout = [0.1, 0.2] }"
                )
        rows += [_grid_row(entry, dict(zip(grid, values, strict=True)), where) for values in product(*grid.values())]
    return rows


def _well_formed(entry: dict[str, Any]) -> bool:
    """Can values be put into its tables?"""
    return isinstance(entry.get("config", {}), dict) and isinstance(entry.get("corpus", ""), (str, dict))


def _grid_row(entry: dict[str, Any], values: dict[str, Any], where: str) -> dict[str, Any]:
    """One combination."""
    row = deepcopy({key: value for key, value in entry.items() if key != "grid"})
    name = str(entry.get("name") or entry.get("method"))
    unsaid = []
    for key, value in values.items():
        said = f"{value:g}" if isinstance(value, float) else str(value)
        if f"{{{key}}}" in name:
            name = name.replace(f"{{{key}}}", said)
        else:
            unsaid.append(f"{key} {said}")
        of_corpus = key.removeprefix("corpus.")
        if of_corpus != key:
            if not row.get("corpus"):
                raise InputError(f'{where}: row "{name}": grid over "{key}": give the row a corpus of its own')
            corpus = row["corpus"]
            row["corpus"] = {**({"uri": corpus} if isinstance(corpus, str) else corpus), of_corpus: value}
        elif key in _OF_A_ROW:
            row[key] = value
        else:
            row["config"] = {**row.get("config", {}), key: value}
    row["name"] = " · ".join([name, *([", ".join(unsaid)] if unsaid else [])])
    return row
