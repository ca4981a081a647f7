"""An experiment file (TOML) as a validated experiment; `harness.runs.rows` resolves its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    field_serializer,
    field_validator,
    model_validator,
)

from harness import registry
from harness.config import Config, nearest, option, setting
from harness.errors import InputError
from harness.executors.executor import ExecutorSettings
from harness.files.model_names import label_of
from harness.files.printable import name_fault
from harness.files.reading import is_there, read_toml
from harness.method import DEFAULT_BASE_MODEL, PRETRAINED
from harness.results.record import SCHEMA
from harness.runs.conditions import Conditions, CorpusSettings, DevSettings
from harness.runs.consent import refuse_code
from harness.runs.row_grid import expand_grid
from harness.seeds import Stream, expand_seeds
from harness.tasks.own.data import SHARE, TaskFile, has_split, name_files

Kept = Literal["weights", "vectors"]


class Entry(Config):
    """One row of the comparison."""

    method: str = Field(description="an installed method (harness list methods)")
    loss: str = option("", 'in place of method: a loss to import, as "module:Class"')
    view: str = option(
        "", "with loss: how its two views differ, as the methods' option of that name"
    )
    model: str = option(
        "", "in place of method: a model that is not trained here, as `harness evaluate` takes it"
    )
    model_by_seed: list[str] = option(
        [], "in place of method: models that were trained elsewhere, one for each seed"
    )
    trust_remote_code: bool = option(
        False, "with model: its loader, of mteb, may run the code of its repository"
    )
    name: str = option("", "row label; the method's name when empty")
    preset: str | None = option(None, "a preset of the method")
    family: str | None = option(
        None, "model family whose preset values are used; default: the comparison's"
    )
    config: dict[str, Any] = option({}, "values that override the preset")
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = option(
        {}, "key -> values: a row for each combination; {key} in `name` places the values"
    )
    blocks: list[str] = option([], "the blocks of the file that contain the row; default: all")
    base_models: list[str] = option(
        [], "of this row; default: those of its blocks, else of the comparison"
    )
    corpus: CorpusSettings | None = option(None, "text of this row; default: the comparison's")
    space: dict[str, Any] = option(
        {}, "what --tune searches, as [space] of a study file; default: all declared ranges"
    )

    @model_validator(mode="before")
    @classmethod
    def _loss_is_a_method(cls, value: Any) -> Any:
        return _name_method(value)

    @property
    def label(self) -> str:
        """What the row is called."""
        return self.name or self.method


class Block(Config):
    """A named part of a comparison: a table or a figure of a paper."""

    title: str = option("", "heading of its tables; its name when empty")
    description: str = option("", "a paragraph for the report")
    base_models: list[str] = option([], "for rows without their own; default: the comparison's")
    seeds: list[int] = option([], "their number, or a list; default: the comparison's")
    vary: list[Stream] = option([], "default: the comparison's")
    suites: list[str | TaskFile] = option(
        [], "what its rows are evaluated on; default: the comparison's suites"
    )

    @field_validator("seeds", mode="before")
    @classmethod
    def _number_of_seeds(cls, value: Any) -> Any:
        return expand_seeds(value)


class Contrast(Config):
    """Two rows whose comparison is planned before any score is known."""

    row: str = Field(description="label of a row")
    against: str = Field(description="label of the row that it is compared with")


class Rehearsal(Config):
    """How `--rehearse` shrinks the file for a laptop."""

    base_model: str = option(DEFAULT_BASE_MODEL, "the base model of every row")
    max_steps: int = option(8, "upper bound on the training steps of every method", ge=1)
    seeds: int = option(1, "number of seeds of a row", ge=1)
    limit: int = option(
        512,
        "use the first N items of a corpus, N pairs of the dev set, and encode N sentences of the "
        "tasks of a row: the others get the vectors of these",
        ge=2,
    )
    sentences: int = option(
        20_000, "a task that needs more sentences than this is left out, with a note", ge=1
    )


class BudgetSettings(Config):
    """The training budget that all rows share: steps or sentences for each row, or none."""

    steps: int | None = option(None, "training steps", ge=1)
    sentences: int | None = option(
        None, "sentences (pairs, documents) that a row sees, in whole batches", ge=1
    )
    by_text: bool = option(
        False,
        "as many sentences as the text has, at least 3,200 and at most 6,400, or at most `sentences`",
    )

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        if self.steps is not None and (self.sentences is not None or self.by_text):
            raise ValueError("expected steps or sentences, not both")
        return self

    @property
    def kind(self) -> str:
        """The key that is given; empty where each row trains as its method, preset and `max_steps`
        say.
        """
        return next(iter(self.model_dump(exclude_defaults=True)), "")

    def describe(self) -> tuple[str, str]:
        """The amount and its unit: ("300", "training steps per row"); empty texts where nothing is
        shared.
        """
        if self.sentences is not None:
            return f"{self.sentences:,}", "sentences seen per row"
        if self.steps is not None:
            return (f"{self.steps:,}", "training steps per row")
        return ("", "")


class Experiment(Conditions):
    """A comparison: every method under the same base models, seeds, corpus, budget, selection set
    and tasks.

    Its fields are the keys of an experiment file (docs/reference.md).

    >>> experiment = Experiment(name="mine", methods=[{"method": "pooling"}], seeds=[1])
    >>> experiment.suites, experiment.methods[0].method
    (['embedded'], 'pooling')
    """

    base_models: list[str] = option(["embedded:mini-bert"], "hub ids, folders or embedded:NAME")
    seeds: list[int] = option(
        [1, 2, 3],
        "their number (3 is the seeds 1, 2 and 3) or a list; deterministic methods run once",
    )
    vary: list[Stream] = option(
        [], "random streams that vary with the seed; the others use `held_seed`; default: all"
    )
    held_seed: int | None = option(
        None, "the seed of the streams that do not vary; default: the first seed"
    )
    suites: list[str | TaskFile] = option(["embedded"], "suites, tasks or files to evaluate on")
    max_steps: int | None = option(None, "upper bound on the training steps of every method", ge=1)
    budget: BudgetSettings = option(
        BudgetSettings(), "the training budget that all rows share; default: their own"
    )
    preset: str | None = option(
        None, "the preset of rows that name none, where their method has it"
    )
    shared: dict[str, Any] = option(
        {}, "config values of every method that has the key; they override presets"
    )
    reports: list[str] = option(
        [], "reports of papers that are built at the end, with the comparison's own"
    )
    published: list[str] = option(
        [], 'papers whose published rows the report shows under these, as ["scd", "simcse"]'
    )
    keep: list[Kept] = option(
        ["weights", "vectors"],
        "what stays of a finished run: its weights, the vectors of scored sentences",
    )
    executor: ExecutorSettings = option(
        ExecutorSettings(), "where runs are executed; it does not affect results"
    )
    rehearsal: Rehearsal = option(Rehearsal(), "how --rehearse shrinks the file")
    blocks: dict[str, Block] = option({}, "named parts of the file, which --only can select")
    baseline: str = option(
        "", "label of a row: its comparison with each other row is planned, and corrected for less"
    )
    incumbent: str = option(
        "",
        "label of the row in use: the comparison ends with whether to keep it, and saves a better "
        "one in DIR/best",
    )
    contrasts: list[Contrast] = option([], "further pairs of rows whose comparison is planned")
    primary: str = option(
        "", 'the score that decides: a task, a suite, or "STS"; all others are called secondary'
    )
    methods: list[Entry] = Field(description="the rows of the table")

    @field_validator("seeds", mode="before")
    @classmethod
    def _number_of_seeds(cls, value: Any) -> Any:
        return expand_seeds(value)

    @field_validator("dev", mode="before")
    @classmethod
    def _no_dev_set(cls, value: Any) -> Any:
        if value == "none":
            return None
        return value

    @field_serializer("dev", mode="wrap", when_used="json")
    def _write_dev(self, value: DevSettings | None, write: SerializerFunctionWrapHandler) -> Any:
        if value is None:  # TOML has no such value, and the key left out is the default set
            return "none"
        return write(value)

    @field_validator("methods", "seeds", "base_models")
    @classmethod
    def _not_empty(cls, value: list[Any]) -> list[Any]:
        if not value:
            raise ValueError("needs at least one")
        distinct = {str(entry) for entry in value}
        if len(distinct) != len(value):
            raise ValueError(
                "expected different entries; give a method that occurs twice two names"
            )
        return value

    @model_validator(mode="after")
    def _blocks_have_rows(self) -> Self:
        known = list(self.blocks)
        for entry in self.methods:
            for name in set(entry.blocks) - set(known):
                hint = nearest(name, known)
                raise ValueError(f'row "{entry.label}": no block "{name}"{hint}')
        for name in known:
            if fault := name_fault(name):
                raise ValueError(f'blocks: "{name}": {fault}')
            of_rows = [entry.blocks or known for entry in self.methods]
            if not any(name in blocks for blocks in of_rows):
                raise ValueError(
                    f'blocks: no row is in "{name}"; name it in the key "blocks" of its rows'
                )
        return self

    @model_validator(mode="after")
    def _named_rows_exist(self) -> Self:
        if self.incumbent and self.dev is None:
            raise ValueError('key "incumbent": row and run are chosen by a dev set; name one')
        named = []
        if self.baseline:
            named.append(("baseline", self.baseline))
        if self.incumbent:
            named.append(("incumbent", self.incumbent))
        for one in self.contrasts:
            if one.row == one.against:
                raise ValueError(f'key "contrasts": "{one.row}" is compared with itself')
            named += [("contrasts", one.row), ("contrasts", one.against)]
        labels = [entry.label for entry in self.methods]
        for key, label in named:
            if label not in labels:
                hint = nearest(label, labels)
                raise ValueError(f'key "{key}": no row "{label}"{hint}')
        return self

    @model_validator(mode="after")
    def _training_is_bounded_once(self) -> Self:
        if self.budget.kind:
            tables = {
                "": {"max_steps": self.max_steps} if self.max_steps else {},
                "shared: ": self.shared,
            }
            for entry in self.methods:
                tables[f'row "{entry.label}": '] = entry.config
            for place, table in tables.items():
                for key in {"max_steps", "epochs"} & set(table):
                    raise ValueError(
                        f'{place}key "{key}" and a budget of {self.budget.kind} exclude each other'
                    )
        return self

    def suites_by_block(self) -> dict[str, list[str | TaskFile]]:
        """Return the suites of each block, in which files have names and, where the dev set is one
        of them, its share and columns.
        """
        from harness.tasks.catalogue import own_file

        by_block = {}
        for name, block in self.parts.items():
            by_block[name] = block.suites or self.suites
        files = []
        for suites in by_block.values():
            for entry in suites:
                if (file := own_file(entry)) is not None:
                    files.append(file)
        with_parts = [self._with_dev_part(file) for file in files]
        named = iter(name_files(with_parts))
        found = {}
        for name, suites in by_block.items():
            found[name] = [
                next(named) if own_file(entry) is not None else entry for entry in suites
            ]
        return found

    def selection(self) -> DevSettings | None:
        """Return the dev set; a file that is evaluated too gives a share of its pairs."""
        dev = self.dev
        if dev is None or dev.file is None:
            return dev
        entries = [*self.suites]
        for block in self.blocks.values():
            entries += block.suites
        for entry in entries:
            if isinstance(entry, TaskFile):
                file = entry
            else:
                file = TaskFile(task=entry)
            if file.path == dev.file.path and not has_split(dev.file):
                columns = dev.columns or file.columns
                share = dev.share or file.share or SHARE
                return dev.model_copy(update={"share": share, "columns": columns})
        return dev

    def _with_dev_part(self, file: TaskFile) -> TaskFile:
        dev = self.selection()
        if dev is None or dev.file is None:
            return file
        if dev.file.path != file.path:
            return file
        if file.share not in (None, dev.share):
            message = "the file has another share in suites than in dev"
            raise InputError(message, file=file.task, key='key "share"', remedy="leave one out")
        columns = file.columns or dev.columns
        return file.model_copy(update={"share": dev.share, "columns": columns})

    @property
    def parts(self) -> dict[str, Block]:
        """Its blocks by name; one without a name where the file has none."""
        return dict(self.blocks) or {"": Block()}


_EXAMPLE = "seeds=5"  # of --set
_SHORTHAND = {"dev": "task", "corpus": "uri"}  # a table that may be a text: the key that it is


def presets() -> dict[str, Path]:
    """Name -> experiment file of every installed preset."""
    files = {}
    for name in registry.names(registry.PRESETS):
        folder = registry.load(registry.PRESETS, name)
        for file in sorted(folder.glob("*.toml")):
            files[file.stem] = file
    return files


ExperimentSource = str | Path | Mapping[str, Any] | Experiment


def read_experiment(
    source: ExperimentSource,
    overrides: Sequence[str] = (),
    *,
    allow_code: bool = True,
) -> Experiment:
    """A validated experiment from a TOML file, a preset's name, its keys or an `Experiment`, with
    `a.b=c` overrides.

    Args:
        allow_code: False for a file that came inside an archive: it may name no code of its own, no
            command, no endpoint and no cluster.

    Raises:
        InputError: no such file or preset, not TOML, unknown key, value out of range, code that is
            not allowed.
    """
    if isinstance(source, Experiment):
        source = source.model_dump(mode="json", exclude_unset=True)
    if isinstance(source, Mapping):
        where = "experiment"
        tree = deepcopy(dict(source))
    else:
        where, tree = read_keys(str(source), presets())
    if isinstance(tree.get("methods"), list):
        tree["methods"] = [_name_method(entry) for entry in tree["methods"]]
    typed = set()
    for override in overrides:
        typed.add(_override(tree, override))
    _resolve_conflicts(tree, typed)
    if isinstance(tree.get("methods"), list):
        tree["methods"] = _expand_grids(tree["methods"], where)
    experiment = Experiment.parse(tree, where)
    if fault := name_fault(experiment.name):
        raise InputError(f'key "name": {fault}', file=where, key="name")
    if not allow_code:
        refuse_code(experiment, where)
    return experiment


_MODEL_KEYS = ("model", "model_by_seed", "trust_remote_code")  # of the config of such a row


def _name_method(entry: Any) -> Any:
    """Return a table of `methods` with its method, where it has a loss or a model instead."""
    return _name_model(_name_loss(entry))


def _name_model(entry: Any) -> Any:
    """Return a table of `methods`; one with `model` as one of the method "pretrained"."""
    if _is_row(entry):
        stated = {key: entry.get(key) for key in _MODEL_KEYS}
        given = {key: value for key, value in stated.items() if value}
    else:
        given = {}
    if not given:
        return entry
    row = {key: value for key, value in entry.items() if key not in given}
    row["config"] = {**row.get("config", {}), **given}
    if "method" in row or given.keys() == {"trust_remote_code"}:
        return row
    models = given.get("model_by_seed") or [given.get("model", "")]
    first = models[0] if isinstance(models, list) else None
    named = isinstance(first, str) and first
    return {
        **({"name": label_of(models[0])} if named else {}),
        "method": PRETRAINED,
        **row,
    }


def _is_row(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    return isinstance(entry.get("config", {}), dict)


def _name_loss(entry: Any) -> Any:
    """Return a table of `methods`; one with `loss` and `view` as one of the method of that loss."""
    if not isinstance(entry, dict):
        return entry
    loss = entry.get("loss")
    if not isinstance(loss, str) or not loss:
        return entry
    row = {}
    for key, value in entry.items():
        if key not in ("loss", "view"):
            row[key] = value
    loss = entry["loss"]
    if "method" in row:
        raise InputError("a row has a method or a loss, not both", key="loss")
    if entry.get("view"):
        given = row.get("config", {})
        row["config"] = {"view": entry["view"], **given}
    return {
        "name": loss.rpartition(":")[2],
        **row,
        "method": registry.LOSS + loss,
    }


def read_keys(name: str, known: Mapping[str, Path]) -> tuple[str, dict[str, Any]]:
    """Path and keys of the file of that name, or of that of a known preset; "name" is its stem by
    default.

    Raises:
        InputError: there is none, it is no TOML, or one of another schema.
    """
    path = Path(name)
    is_folder_of_that_name = path.is_dir() and name in known
    if not is_there(path) or is_folder_of_that_name:
        if name not in known:
            hint = nearest(name, sorted(known))
            raise InputError(
                f'no file and no preset "{name}"{hint}; presets: {", ".join(known) or "none"}',
                file=name,
            )
        path = known[name]
    tree = read_toml(path)
    if tree.pop("schema", SCHEMA) != SCHEMA:
        raise InputError(
            f'key "schema": this version of the harness reads {SCHEMA}',
            file=path,
            key="schema",
            remedy="update one of the two",
        )
    return str(path), {"name": path.stem, **tree}


def _override(tree: dict[str, Any], override: str) -> str:
    """Set one value of the tree and return its first key; in `methods`, a row is named by its
    label, method or number (from 1).

    Base models, seeds and `vary` of the comparison replace those of its blocks and rows: they apply
    to all runs.
    """
    path, value = setting(override, _EXAMPLE)
    if path in ("base_models", "seeds", "vary"):
        blocks = _tables(tree.get("blocks"))
        rows = _tables(tree.get("methods"))
        for table in (*blocks, *rows):
            table.pop(path, None)
    place = tree
    keys = path.split(".")
    first = keys[0]
    if first == "methods" and len(keys) > 2:
        rows = _tables(tree.get("methods"))
        place = _find_row(rows, keys[1], override)
        if keys[2] in Entry.model_fields:
            keys = keys[2:]
        else:
            keys = ["config", *keys[2:]]
    set_value(place, keys, value, override)
    return first


def set_value(tree: dict[str, Any], keys: Sequence[str], value: Any, override: str) -> None:
    """Set a value of a table of tables, as `override` says.

    Raises:
        InputError: one of the keys before the last one is no table.
    """
    *tables, last = keys
    for key in tables:
        if isinstance(tree.get(key), str) and key in _SHORTHAND:
            tree[key] = {_SHORTHAND[key]: tree[key]}
        table = tree.setdefault(key, {})
        if not isinstance(table, dict):
            message = f'--set {override}: "{key}" is no table'
            raise InputError(message, key="--set")
        tree = table
    tree[last] = value


def _tables(value: Any) -> list[dict[str, Any]]:
    """The tables of a list, or of a table of tables; none of what is not valid, which is reported
    later.
    """
    values = value
    if isinstance(value, dict):
        values = value.values()
    elif not isinstance(value, list):
        values = ()
    return [table for table in values if isinstance(table, dict)]


def _find_row(rows: list[dict[str, Any]], wanted: str, override: str) -> dict[str, Any]:
    """The first row of this label or method, or with this number."""
    for number, row in enumerate(rows, 1):
        names = (row.get("name"), row.get("method"), str(number))
        if wanted in names:
            return row
    known = [str(row.get("name") or row.get("method")) for row in rows]
    labels = ", ".join(known)
    if wanted.lstrip("-").isdigit():
        numbers = "; rows are numbered from 1"
    else:
        numbers = ""
    message = f'--set {override}: no row "{wanted}"; rows: {labels}{numbers}'
    raise InputError(message, key="--set")


def _resolve_conflicts(tree: dict[str, Any], typed: set[str]) -> None:
    """Have a budget or a `max_steps` on the command line replace the other one in the file.

    Args:
        typed: the first keys of what the command line sets.
    """
    if not tree.get("budget"):
        return
    sets_budget = "budget" in typed
    sets_steps = "max_steps" in typed
    if sets_budget and not sets_steps:
        tree.pop("max_steps", None)
    elif sets_steps and not sets_budget:
        tree.pop("budget")


def _expand_grids(entries: list[Any], where: str) -> list[Any]:
    """Return the tables of `methods`, each one with a grid replaced by its combinations.

    Raises:
        InputError: a row that is no table or not valid, or a grid that does not suit it.
    """
    rows = []
    for number, entry in enumerate(entries, 1):
        place = f"{where}: methods[{number}]"
        if not isinstance(entry, dict):
            raise InputError('expected a table such as {method = "simcse"}', file=place)
        grid = Entry.parse(entry, place).grid
        if "grid" in entry:
            rows += expand_grid(entry, grid, place)
        else:
            rows.append(entry)
    return rows
