"""The record of a run: its specification and its outcome. Reports, tracking and studies read
nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from harness.errors import InputError
from harness.files.reading import check_numbers
from harness.results.spec import RunSpec

SCHEMA = 1
_LARGEST_COST = 1e18  # above: no count of anything
_DIGEST = '"digest": "%s"'
Status = Literal["trained", "finished", "collapsed", "diverged", "pruned", "failed"]
Supervision = Literal["untrained", "unsupervised", "transductive", "supervised"]


class Score(BaseModel):
    """One number. Correlations are in [-1, 1] (not times 100); `n` is the number of pairs or
    sentences behind it.

    `protocol` hashes everything that defines the number (data fingerprint, pooling, aggregation,
    metric, versions that matter); `comparable` is the same without what belongs to the method
    (pooling): equal `comparable` ids may share a table column, unlike ones are marked.
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
    def task_key(self) -> str:
        """The task that gives this score, as "SOURCE:TASK"; "STS-B@layer:4:cls" is one score of
        "layers:STS-B".
        """
        pairs, at, _ = self.task.partition("@layer:")
        name = f"layers:{pairs}" if at else self.task
        return f"{self.source}:{name}"


@dataclass(frozen=True)
class Missing:
    """A reason, and of which kind it is.

    Attributes:
        kind: "data": it could not be read, and is requested again; "unfit": it was read, but does
            not suit the method or the task; "failed": a fault of the program, tried again by the
            next evaluation.
        text: one line for the reader.
    """

    kind: Literal["data", "unfit", "failed"]
    text: str

    def __str__(self) -> str:
        return self.text


def missing(error: Exception, *, was_read: bool) -> Missing:
    """The reason that an error gives for a task whose data was, or was not, read before it."""
    if isinstance(error, InputError):
        return Missing("unfit" if was_read else "data", str(error))
    first = str(error).partition("\n")[0]
    return Missing("failed", f"failed: {type(error).__name__}: {first}")


def is_amount(value: float) -> bool:
    """True if a number may be a cost: seconds, bytes, joules, a count."""
    return abs(value) < _LARGEST_COST


def _is_of_this_version(tree: dict[str, Any]) -> bool:
    if tree.get("schema_version", SCHEMA) != SCHEMA:
        return False
    return "spec" in tree or "identity" not in tree


class Record(BaseModel):
    """Everything known about one run.

    Attributes:
        digest: in the file, the sha256 of all else; see `to_json`.
        status: "trained" (the weights are saved, nothing is scored yet), "finished", or how it
            ended otherwise; "pruned" runs were stopped by a study.
        reason: why it collapsed, diverged, was pruned or failed.
        row, comparison: the label and the comparison under which the run was first executed.
        missing: task -> why it has no scores.
        protocols: protocol id -> what was hashed.
        evaluation: "SOURCE:TASK" -> version of the code that scored it.
        task_code: "SOURCE:TASK" of a plugin -> what that version was hashed from, file -> hash.
        training: steps, best_step, best_dev, initial_dev, final statistics, notes.
        architecture: of the encoder, as the measured cost of inference is stored by; empty where it
            was not measured.
        cost: train_seconds, train_cpu_seconds, train_gpu_seconds, dev_seconds, dev_cpu_seconds,
            encode_seconds, evaluate_seconds, score_cpu_seconds (of both), sentences_per_second,
            sentences, sentences_cached, peak_memory_bytes, parameters, corpus_sentences_seen;
            train_tokens, train_tokens_per_second;
            train_cpu_joules, train_gpu_joules, encode_cpu_joules and encode_gpu_joules where the
            machine counts them.
        environment: python, platform, cpu, device, precision, threads, versions.
        files: name in the run's folder -> sha256 of the weights, examples, details and curve.
        removed: the same of weights that were scored and then removed (`keep` of the experiment).
        command: what reproduces the run.
        started, finished: ISO 8601, UTC.
    """

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="constants")

    schema_version: int = SCHEMA
    digest: str = ""
    id: str
    spec: RunSpec
    comparison: str
    status: Status
    reason: str = ""
    row: str
    supervision: Supervision
    scores: list[Score] = []
    missing: dict[str, Missing] = {}
    protocols: dict[str, dict[str, Any]] = {}
    evaluation: dict[str, str] = {}
    task_code: dict[str, dict[str, str]] = {}
    training: dict[str, Any] = {}
    architecture: str = ""
    cost: dict[str, float] = {}
    environment: dict[str, Any] = {}
    files: dict[str, str] = {}
    removed: dict[str, str] = {}
    command: str = ""
    started: str = ""
    finished: str = ""

    @field_validator("cost")
    @classmethod
    def _check_cost(cls, cost: dict[str, float]) -> dict[str, float]:
        for name, value in cost.items():
            if not is_amount(value):
                raise ValueError(f"{name}: expected an amount, not {value}")
        return cost

    @model_validator(mode="before")
    @classmethod
    def _check_schema(cls, tree: Any) -> Any:
        if isinstance(tree, dict) and not _is_of_this_version(tree):
            raise InputError(
                f"record {tree.get('id')}: written by another version of the harness",
                key=f"record {tree.get('id')}",
                remedy="use a new work directory, or read it with the version that wrote it",
            )
        return tree

    def to_json(self) -> str:
        """The record as its file holds it, with the hash of its content."""
        text = self.model_dump_json(indent=1)
        return (
            text.replace(_DIGEST % "", _DIGEST % hashlib.sha256(text.encode()).hexdigest(), 1)
            + "\n"
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The record that `to_json` wrote.

        Raises:
            ValueError: it is damaged, or was changed since it was written.
        """
        check_numbers(text)
        record = cls.model_validate_json(text)
        content = text.rstrip("\n").replace(_DIGEST % record.digest, _DIGEST % "", 1)
        digest = hashlib.sha256(content.encode()).hexdigest()
        if record.digest and digest != record.digest:
            raise ValueError("its content is not as it was written")
        return record.model_copy(update={"digest": ""})

    @property
    def method(self) -> str:
        return self.spec.method

    @property
    def config(self) -> dict[str, Any]:
        return self.spec.config

    @property
    def base_model(self) -> str:
        return self.spec.base_model

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def random_seed(self) -> int:
        """Its seed, which only some streams of random numbers may have (`harness.seeds.PartSeed`)."""
        return self.spec.random_seed

    @property
    def corpus(self) -> dict[str, Any] | None:
        return self.spec.corpus

    @property
    def dev(self) -> dict[str, Any] | None:
        return self.spec.dev

    @property
    def unscored(self) -> set[str]:
        """ "SOURCE:TASK" of the tasks that it was to be scored on, and that gave no score."""
        scored = {score.task_key for score in self.scores}
        return {key for key in self.evaluation if key not in scored}

    def protocol_of(self, score: Score) -> dict[str, Any]:
        """Return what was hashed as the protocol of a score; empty where it was not stored."""
        stated = self.protocols.get(score.comparable)
        return stated or self.protocols.get(score.protocol, {})

    @property
    def inputs(self) -> dict[str, str]:
        return self.spec.inputs

    @property
    def rehearsal(self) -> bool:
        return self.spec.rehearsal

    @property
    def unavailable(self) -> bool:
        """Was nothing tried, as its row needs something that is not available here? `reason` says
        what.
        """
        return bool(self.spec.missing)

    @property
    def seconds(self) -> float:
        """Seconds of training, dev evaluations, encoding and scoring; what was reused counts
        nothing.
        """
        parts = ("train_seconds", "dev_seconds", "encode_seconds", "evaluate_seconds")
        return sum(self.cost.get(part, 0.0) for part in parts)

    def limit_to(self, tasks: Iterable[str]) -> Self:
        """Return the record with the scores of `tasks` ("SOURCE:TASK") only: other comparisons may
        have scored it on more.
        """
        tasks = set(tasks)
        scores = [s for s in self.scores if s.task_key in tasks]
        without_score = tasks - {s.task_key for s in scores}
        names = {task.partition(":")[2] for task in without_score}
        missing = {task: why for task, why in self.missing.items() if task in names}
        return self.model_copy(update={"scores": scores, "missing": missing})

    def as_row(self, row: str, comparison: str, base_model: str | None = None) -> Record:
        """The record as a row of a comparison, which may know the base model by another name."""
        if base_model in (None, self.base_model):
            spec = self.spec
        else:
            spec = self.spec.model_copy(update={"base_model": base_model})
        return self.model_copy(update={"row": row, "comparison": comparison, "spec": spec})

    def score(
        self,
        task: str,
        metric: str = "spearman",
        aggregation: str = "all",
        split: str = "test",
    ) -> float | None:
        """The value of one score, or None where it was not computed."""
        for s in self.scores:
            place = (s.task, s.metric, s.aggregation, s.split)
            if place == (task, metric, aggregation, split):
                return s.value
        return None
