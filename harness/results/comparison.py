"""The file of a comparison: which runs it consists of, and what they are to be compared by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from harness.files.hashing import content_id

SCHEMA = 2
SCHEMA_WITHOUT_HASH = 1
"""Of files that an earlier version wrote."""


class _Part(BaseModel):
    # Written with all required fields, and the others where they are not the default. The hash says
    # that no key was changed; keys that only an earlier version knew are ignored.
    model_config = ConfigDict(frozen=True, extra="ignore")


class ListedRun(_Part):
    """A run of a comparison.

    Attributes:
        seed, vary, held: as `harness.seeds.seed_fields` writes a seed.
        blocks: those that it belongs to, in a file with blocks.
        rate_from: the origin of its learning rate.
        added: it is the untrained start of rows, and no row of the file.
        start: the id of its own untrained start.
        analysis: the first interim analysis that includes it, from 1.
        source: whose it is, of a run that was made elsewhere; else empty.
        tasks: of such a run the tasks ("SOURCE:TASK") on which it is comparable.
    """

    id: str
    row: str
    base_model: str
    seed: int
    vary: tuple[str, ...] = ()
    held: int | None = None
    blocks: tuple[str, ...] = ()
    rate_from: str = ""
    added: bool = False
    start: str = ""
    analysis: int = 0
    source: str = ""
    tasks: tuple[str, ...] = ()


class ListedBlock(_Part):
    """A block of the experiment: rows that are compared on tasks ("SOURCE:TASK") of their own."""

    name: str
    title: str
    description: str
    tasks: tuple[str, ...]


class DevSchedule(_Part):
    """How often all rows were scored on the dev set.

    Attributes:
        every: training steps between two scores.
        instead_of: label of a row -> its own interval, of the rows whose interval was changed.
    """

    every: int
    instead_of: dict[str, int]


class TunedRow(_Part):
    """The search of one row by `--tune`.

    Attributes:
        row, label: of the row, and of the row that its best configuration is.
        study: its name; empty where nothing was searched.
        trials, runs: how many ended with a result, and how many different runs these are.
        seconds: of training and dev evaluation.
        values: the best configuration; empty where there is none.
        reason: why there is none.
    """

    row: str
    label: str
    study: str
    trials: int
    runs: int
    seconds: float
    values: dict[str, Any]
    reason: str


class Tuning(_Part):
    """How rows were tuned: `trials` of `steps` training steps and `seeds` each."""

    trials: int
    steps: int
    seeds: tuple[int, ...]
    rows: tuple[TunedRow, ...]


class ListedAnalysis(_Part):
    """An interim analysis.

    Attributes:
        seeds: of the rows in contention.
        by: what rows were compared by, empty where nothing can be compared; None: not made yet.
        rows: "row", "base_model" and "state" of each row, and why; None: not made yet.
    """

    seeds: int
    by: str | None = None
    rows: tuple[dict[str, Any], ...] | None = None


class SeedsAdded(_Part):
    """How seeds were added until a comparison was decided.

    Attributes:
        rule: how the analyses decide, in a line.
        most: seeds of a row at the last analysis that is planned.
        equivalence: half width of the region of practical equivalence, in points.
        first: seeds of a row at the first analysis.
        seeds: in the order in which every row gets them.
        analyses: those so far.
        ended: "decided", "seeds" (no more were available); "" where it has not ended.
    """

    kind: Literal["decided"]
    rule: str
    most: int
    equivalence: float
    first: int
    seeds: tuple[int, ...]
    analyses: tuple[ListedAnalysis, ...]
    ended: Literal["", "decided", "seeds"]


class RowNotCompared(_Part):
    """A row made elsewhere that could not be compared, and why."""

    source: str
    row: str
    why: str


class ListedFile(_Part):
    """A task that is a file of the user's.

    Attributes:
        settings: path, columns and kind, as `harness.tasks.own.data.TaskFile` has them.
        sha256: of what was read.
        examples: how many each part has.
    """

    settings: dict[str, Any]
    sha256: str
    examples: dict[str, int] = {}


class ComparisonFile(_Part):
    """Which runs a comparison consists of.

    Attributes:
        experiment: the experiment file, resolved.
        tasks: "SOURCE:TASK" of each.
        runs: in the order of the table.
        only: the blocks or patterns of rows that alone were run (`--only`).
        left_out: rows made elsewhere that could not be compared.
        files: "SOURCE:TASK" of the tasks that are files of the user's.
        benchmarks: suite "mteb-benchmark:NAME" -> type of task -> mteb's names of its tasks.
        sha256: hash of the content that was read; "" of a file that an earlier version wrote, whose
            labels cannot be checked, and of content that was not read from a file.
    """

    name: str
    title: str = ""
    description: str = ""
    experiment: dict[str, Any] = Field(default_factory=dict)
    tasks: tuple[str, ...] = ()
    runs: tuple[ListedRun, ...]
    blocks: tuple[ListedBlock, ...] = ()
    only: tuple[str, ...] = ()
    schedule: DevSchedule | None = None
    tuned: Tuning | None = None
    until: SeedsAdded | None = None
    left_out: tuple[RowNotCompared, ...] = ()
    files: dict[str, ListedFile] = Field(default_factory=dict)
    benchmarks: dict[str, dict[str, tuple[str, ...]]] = Field(default_factory=dict)
    sha256: str = ""

    def tasks_of(self, run: ListedRun) -> tuple[str, ...]:
        """Return the tasks ("SOURCE:TASK") that a run was to be scored on."""
        if run.source:
            return run.tasks
        if not run.blocks:
            return self.tasks
        tasks: list[str] = []
        for block in self.blocks:
            if block.name in run.blocks:
                tasks += block.tasks
        return tuple(tasks)

    @cached_property
    def runs_by_row(self) -> dict[tuple[str, str], ListedRun]:
        """Each run by its id and row label: a run may be in several rows."""
        return {(run.id, run.row): run for run in self.runs}

    def to_text(self) -> str:
        """Return the file's text, with its schema and the hash of its content."""
        always = self.model_dump(include={"name", "title", "description", "experiment", "tasks"})
        given = self.model_dump(mode="json", exclude_defaults=True, exclude={"sha256"})
        content = {"schema": SCHEMA, **always, **given}
        whole = {**content, "sha256": _hash_content(content)}
        return json.dumps(whole, indent=1) + "\n"

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any]) -> Self:
        """Return what `to_text` wrote, or an earlier version.

        Raises:
            ValueError: it is damaged, was changed since, or another version of the harness wrote
                it; with what is wrong.
        """
        if isinstance(tree, dict):
            schema = tree.get("schema")
        else:
            schema = None
        if schema not in (SCHEMA_WITHOUT_HASH, SCHEMA):
            raise ValueError("damaged, or of another version")
        if schema == SCHEMA and tree.get("sha256") != _hash_content(tree):
            raise ValueError("damaged: its content does not have its hash")
        content = {key: value for key, value in tree.items() if key != "schema"}
        if schema == SCHEMA_WITHOUT_HASH:
            content.pop("sha256", None)
        try:
            return cls.model_validate(content)
        except ValueError:
            raise ValueError("damaged, or of another version") from None


def _hash_content(tree: Mapping[str, Any]) -> str:
    content = {key: value for key, value in tree.items() if key != "sha256"}
    return content_id(json.loads(json.dumps(content)), digits=64)
