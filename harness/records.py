"""Records on disk are the truth about every run: `WORKDIR/runs/<id>/{record.json, pairs.parquet, figures.json,
curves.jsonl}`.

Reports, tracking and studies read these; nothing else is needed to rebuild a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from harness.errors import InputError
from harness.files.atomic import write_atomic

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["finished", "collapsed", "diverged", "pruned", "failed"]  # pruned: a study gave it up


class Score(BaseModel):
    """One number. Correlations are in [-1, 1] (not times 100); `n` is the number of pairs or sentences behind it.

    `protocol` hashes everything that defines the number (data fingerprint, pooling, aggregation, metric, versions that
    matter); `comparable` is the same without what belongs to the method (pooling): equal `comparable` ids may share a
    table column, unlike ones are marked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    task: str  # "STS12", "STS-B", "SICK-R", "Embedded-STS-natural", "alignment", ...
    suite: str  # "sts", "geometry", "embedded"
    source: str  # "senteval", "mteb", "embedded"
    split: str  # "test", "dev", "all"
    metric: str  # "spearman", "pearson", "alignment", "uniformity", ...
    aggregation: str  # "all", "mean", "wmean", or "" where it has no meaning
    value: float
    n: int
    protocol: str
    comparable: str

    @property
    def made_by(self) -> str:
        """The task that gives this score, by source and name: "STS-B@layer:4:cls" is one of many of "layers:STS-B"."""
        pairs, at, _ = self.task.partition("@layer:")
        return f"{self.source}:{f'layers:{pairs}' if at else self.task}"


class Record(BaseModel):
    """Everything known about one run (one cell of a comparison: row label x base model x seed)."""

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="constants")

    schema_version: int = 1
    id: str
    comparison: str
    status: Status
    reason: str = ""  # why it collapsed, diverged or failed; empty when finished
    row: str  # label of the table row: the method's name, or the name given in the experiment file
    method: str
    config: dict[str, Any]  # the method's whole resolved config
    base_model: str
    seed: int
    supervision: Literal["untrained", "unsupervised", "transductive", "supervised"]
    corpus: dict[str, Any] | None = None  # uri, kind, count, sha256
    inputs: dict[str, str] = {}  # what else the method reads -> content hash (word vectors, another model)
    dev: dict[str, Any] | None = None  # task, source, sha256 of the selection set
    scores: list[Score] = []
    missing: dict[str, str] = {}  # task -> why it has no scores: averages over it are not complete
    unfit: list[str] = []  # those of the missing whose data was there, but did not suit the method or the task
    protocols: dict[str, dict[str, Any]] = {}  # protocol id -> what was hashed
    evaluation: dict[str, str] = {}  # task -> hash of the code that scored it: a change asks for new scores, not for
    #                                  new training
    training: dict[str, Any] = {}  # steps, best_step, best_dev, initial_dev, final statistics
    cost: dict[str, float] = {}  # train_seconds, encode_seconds, evaluate_seconds, sentences_per_second, sentences,
    #                              sentences_cached, peak_memory_bytes, parameters, corpus_sentences_seen
    environment: dict[str, Any] = {}  # python, platform, cpu, device, precision, threads, versions
    command: str = ""  # what reproduces this run
    started: str = ""  # ISO 8601, UTC
    finished: str = ""

    @field_validator("evaluation", mode="before")
    @classmethod
    def _older(cls, value: Any) -> Any:
        """One hash for all tasks, as earlier versions wrote it, tells nothing about each."""
        return {} if isinstance(value, str) else value

    def score(self, task: str, metric: str = "spearman", aggregation: str = "all", split: str = "test") -> float | None:
        """The value of one score, or None where it was not computed."""
        for s in self.scores:
            if (s.task, s.metric, s.aggregation, s.split) == (task, metric, aggregation, split):
                return s.value
        return None


class RunFolder:
    """The folder of one run."""

    def __init__(self, workdir: Path, run_id: str) -> None:
        self.path = workdir / "runs" / run_id

    @property
    def record_file(self) -> Path:
        return self.path / "record.json"

    @property
    def pairs_file(self) -> Path:
        return self.path / "pairs.parquet"

    @property
    def figures_file(self) -> Path:
        """What is drawn rather than tabled, by task: spectra, histograms (`TaskResult.figures`)."""
        return self.path / "figures.json"

    @property
    def curves_file(self) -> Path:
        return self.path / "curves.jsonl"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def model(self) -> Path:
        return self.path / "model"

    def read(self) -> Record | None:
        """The record, or None when the run has not been finished.

        Raises:
            InputError: the file is there but damaged.
        """
        if not self.record_file.exists():
            return None
        try:
            return Record.model_validate_json(self.record_file.read_bytes())
        except ValidationError as error:
            raise InputError(
                f"{self.record_file}: damaged record ({error.errors()[0]['msg']}); delete its folder to run it again"
            ) from None

    def write(self, record: Record) -> None:
        write_atomic(self.record_file, record.model_dump_json(indent=1) + "\n")

    def pairs(self) -> pd.DataFrame:
        """Per-pair scores: columns task, source, split, subset, pair, gold, score (cosine)."""
        import pandas as pd

        return pd.read_parquet(self.pairs_file)

    def figures(self) -> dict[str, dict[str, Any]]:
        """Data for figures by task; empty where no task had any."""
        found: dict[str, dict[str, Any]] = (
            json.loads(self.figures_file.read_text()) if self.figures_file.exists() else {}
        )
        return found

    def is_readable(self) -> bool:
        """Are pairs and figures whole, where there are any?"""
        try:
            if self.pairs_file.exists():
                self.pairs()
            self.figures()
        except (OSError, ValueError):  # pyarrow's errors are among the latter
            return False
        return True

    def curves(self) -> list[dict[str, Any]]:
        """Training log: one dict a line with "step", "kind" ("train" or "dev") and named numbers."""
        if not self.curves_file.exists():
            return []
        return [json.loads(line) for line in self.curves_file.read_text().splitlines() if line]


def manifest_file(workdir: Path, comparison: str) -> Path:
    """Which runs a comparison consists of: `{"title", "tasks": ["SOURCE:TASK"], "cells": [{"id", "row"}],
    ...}` in the order of the table."""
    return workdir / "comparisons" / f"{comparison}.json"


def read_manifest(workdir: Path, comparison: str) -> dict[str, Any] | None:
    """The manifest of a comparison, or None when there is none."""
    file = manifest_file(workdir, comparison)
    if not file.exists():
        return None
    manifest: dict[str, Any] = json.loads(file.read_text())
    return manifest


def asked(record: Record, tasks: Iterable[str] | None) -> Record:
    """The record with the scores of `tasks` ("SOURCE:TASK") alone: others may have scored the same run on more."""
    if tasks is None:
        return record
    tasks = set(tasks)
    names = {task.partition(":")[2] for task in tasks}
    return record.model_copy(
        update={
            "scores": [s for s in record.scores if s.made_by in tasks],
            "missing": {task: why for task, why in record.missing.items() if task in names},
        }
    )


def read_records(
    workdir: Path, comparison: str | None = None, *, damaged: dict[str, str] | None = None
) -> list[Record]:
    """The finished records of a comparison in the order of its manifest, or all records of a work directory.

    A run may belong to several comparisons, under a row label of each and scored on what each asks for: the label and
    the suites are the manifest's. Where `damaged` is given, records that cannot be read are left out and noted in it,
    run id -> what is wrong.

    Raises:
        InputError: a damaged record, without `damaged`.
    """

    def read(run_id: str) -> Record | None:
        try:
            return RunFolder(workdir, run_id).read()
        except InputError as error:
            if damaged is None:
                raise
            damaged[run_id] = str(error)
            return None

    manifest = read_manifest(workdir, comparison) if comparison else None
    if manifest is not None:
        cells = [(cell["row"], read(cell["id"])) for cell in manifest["cells"]]
        known = [r.model_copy(update={"row": row, "comparison": comparison}) for row, r in cells if r is not None]
        return [asked(record, manifest.get("tasks")) for record in known]
    found = [read(file.parent.name) for file in sorted((workdir / "runs").glob("*/record.json"))]
    records = [r for r in found if r is not None and comparison in (None, r.comparison)]
    return sorted(records, key=lambda r: (r.comparison, r.row, r.base_model, r.seed, r.id))
