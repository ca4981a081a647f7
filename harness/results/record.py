"""Records on disk are the truth about every run: `WORKDIR/runs/<id>/{record.json, pairs.parquet, outcomes.parquet,
figures.json, curves.jsonl}`.

Reports, tracking and studies read these; nothing else is needed to rebuild a table.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field, field_serializer, model_validator

from harness.results.migrations import RECORD
from harness.results.missing import Missing, from_record
from harness.seeds import seed_of

Status = Literal["finished", "collapsed", "diverged", "pruned", "failed"]  # pruned: a study gave it up
WITHOUT = "without"  # in the identity of a run whose row asks for something that is not there: it depends on no more


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

    schema_version: int = RECORD.version
    id: str
    comparison: str
    rehearsal: bool = False  # made with a small model, little text and few updates, to try a file out
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
    identity: dict[str, Any] = {}  # what its id hashes beside method and config; {} in records of schema version 1
    dev: dict[str, Any] | None = None  # task, source, sha256 of the selection set
    scores: list[Score] = []
    missing: dict[str, Missing] = {}  # task -> why it has no scores: averages over it are not complete
    protocols: dict[str, dict[str, Any]] = {}  # protocol id -> what was hashed
    evaluation: dict[str, str] = {}  # task -> hash of the code that scored it: a change asks for new scores, not for
    #                                  new training
    training: dict[str, Any] = {}  # steps, best_step, best_dev, initial_dev, final statistics
    architecture: str = ""  # of the encoder, as `harness.results.inference` knows its cost; "" where not measured
    cost: dict[str, float] = {}  # train_seconds, train_cpu_seconds, train_gpu_seconds, encode_seconds,
    #                              evaluate_seconds, sentences_per_second, sentences, sentences_cached,
    #                              peak_memory_bytes, parameters, corpus_sentences_seen; train_tokens,
    #                              train_tokens_per_second, train_flops: word pieces through encoders and their
    #                              operations (harness.encoder.work); mfu, a share of peak_flops; load_start, load_end:
    #                              processes that wanted to run, mean over the minute before
    environment: dict[str, Any] = {}  # python, platform, cpu, device, precision, threads, versions
    files: dict[str, str] = {}  # name in the run's folder -> sha256, of weights, pairs, outcomes, figures, curve
    removed: dict[str, str] = {}  # the same of weights that were scored and not kept (`keep` of the experiment)
    command: str = ""  # what reproduces this run
    started: str = ""  # ISO 8601, UTC
    finished: str = ""

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, tree: Any) -> Any:
        """As a record of today, where an earlier version wrote it."""
        if not isinstance(tree, dict):
            return tree
        if RECORD.key in tree:
            tree = RECORD.migrated(tree, f"record {tree.get('id')}")
        rest = {key: given for key, given in tree.items() if key != "unfit"}
        if isinstance(rest.get("missing"), dict):
            rest["missing"] = from_record(rest["missing"], tree.get("unfit") or ())
        return rest

    @model_validator(mode="after")
    def _known_seed(self) -> Record:
        _ = self.drawn
        return self

    @field_serializer("missing")
    def _texts(self, missing: dict[str, Missing]) -> dict[str, str]:
        return {task: why.text for task, why in missing.items()}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def unfit(self) -> list[str]:
        """Those of the missing whose data was there, but did not suit the method or the task."""
        return [task for task, why in self.missing.items() if why.kind == "unfit"]

    @property
    def lacking(self) -> bool:
        """Was nothing tried, as its row asks for something that is not there? `reason` says for what."""
        return WITHOUT in self.identity

    @property
    def drawn(self) -> int:
        """Its seed, which only some streams of random numbers may have (`harness.seeds.PartSeed`)."""
        return seed_of({**self.identity, "seed": self.seed})

    @property
    def seconds(self) -> float:
        """What it took: training, its dev evaluations, encoding and scoring; what was never done counts nothing."""
        parts = ("train_seconds", "dev_seconds", "encode_seconds", "evaluate_seconds")
        return sum(self.cost.get(part, 0.0) for part in parts)

    def score(self, task: str, metric: str = "spearman", aggregation: str = "all", split: str = "test") -> float | None:
        """The value of one score, or None where it was not computed."""
        for s in self.scores:
            if (s.task, s.metric, s.aggregation, s.split) == (task, metric, aggregation, split):
                return s.value
        return None
