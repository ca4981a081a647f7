"""What all runs of a comparison or of a study have in common: their text, the set that selects
checkpoints, and the device.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from harness.config import Config, option
from harness.errors import InputError
from harness.tasks.own.data import TaskFile, name_files, names_file, read_own
from harness.tasks.sts import DevSet

Kind = Literal["sentences", "pairs", "documents"]
Source = Literal["senteval", "mteb"]


class CorpusSettings(Config):
    """Where the training text comes from."""

    uri: str = option(
        "embedded:sentences",
        "a name of `harness list data`, hf://datasets/ORG/NAME, a path, embedded:NAME",
    )
    kind: Kind = option("sentences", "what the corpus holds")
    limit: int | None = option(None, "use the first N items only", ge=2)
    columns: dict[str, str] | None = option(None, "role -> column, for .csv, .tsv and .jsonl")

    @model_validator(mode="before")
    @classmethod
    def _uri_alone(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"uri": value}
        return value

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


class DevSettings(Config):
    """The set that selects checkpoints."""

    task: str = option("STS-B", "an STS task with a dev split, or a file of scored pairs")
    source: Source | Literal["embedded"] | None = option(
        None, "which copy of it; default: senteval, or embedded"
    )
    every: Annotated[int, Field(ge=1)] | Literal["own"] | None = option(
        None,
        'training steps between two scores of all rows; "own": as their configs say; default: the shortest',
    )
    pairs: int | None = option(
        None, "use a fixed random subset of so many of its pairs; default: all", ge=2
    )
    columns: dict[str, str] = option({}, "of a file: column of the kind -> what the file calls it")
    share: float | None = option(
        None,
        "of a file without a column split: the share of its pairs that selects; default: half of "
        "a file that the suites name too, else all",
        gt=0,
        lt=1,
    )

    @model_validator(mode="before")
    @classmethod
    def _task_alone(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"task": value}
        return value

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def file(self) -> TaskFile | None:
        """The file that it is; None for a task."""
        if not names_file(self.task) or self.source is not None:
            return None
        (named,) = name_files(
            [TaskFile(task=self.task, columns=self.columns, share=self.share, kind="similarity")]
        )
        return named

    @property
    def label(self) -> str:
        """What it is called: the task, or the name of the file."""
        if self.file is None:
            return self.task
        return self.file.name

    @property
    def where(self) -> Literal["senteval", "mteb", "embedded", "file"]:
        """The source in effect."""
        if self.file is not None:
            return "file"
        if self.source:
            return self.source
        return "embedded" if self.task.startswith("Embedded") else "senteval"

    def load(self) -> DevSet:
        """The set, read.

        Raises:
            InputError: no such task, no dev split, fewer pairs, or data that cannot be had.
        """
        from harness.sources import load_sts
        from harness.tasks.sts import DevSet

        remarks: list[str] = []
        if self.file is not None:
            from harness.tasks.own.similarity import read_scored_pairs

            own = read_own(self.file.path, self.file)
            whole = read_scored_pairs(own, "dev")
            if own.split == "whole":
                remarks = own.remarks
            else:
                remarks = []
        elif self.columns or self.share is not None:
            message = "is no file, so it has neither columns nor a share"
            raise InputError(message, key=f'[dev] task = "{self.task}"')
        else:
            self._refuse_other_task()
            whole = load_sts(self.task, source=self.where, split="dev")
        if self.pairs is not None:
            whole = whole.draw(self.pairs)
        return DevSet(whole, remarks)

    def _refuse_other_task(self) -> None:
        """Raise the error for a task that is installed, but is none of the sets of scored pairs."""
        from harness.sources.pair_sets import is_pair_set
        from harness.tasks.catalogue import offers

        if is_pair_set(self.task) or self.task not in offers():
            return
        raise InputError(
            f'the task "{self.task}" cannot select checkpoints; a set of scored pairs can',
            key="[dev] task",
            remedy='name one that ships, or a file of your pairs, as dev = "pairs.csv"',
        )


EMBEDDED_DEV = DevSettings(
    task="Embedded-STS-natural"
)  # the default of calls from Python: it needs no download


class Conditions(Config):
    """What all runs of a comparison or of a study have in common."""

    name: str = Field(
        description="name of the comparison and of its output files; default: the file's stem"
    )
    title: str = option("", "heading of the report")
    description: str = option("", "a paragraph for the report")
    source: Source = option("senteval", "which copy of the STS sets")
    corpus: CorpusSettings = option(CorpusSettings(), "the text that methods learn from")
    corpora: dict[Kind, CorpusSettings] = option(
        {}, "by kind: text for the methods that learn from another kind"
    )
    dev: DevSettings | None = option(
        DevSettings(),
        'the set that selects checkpoints; default: STS-B; "none": the last weights are used',
    )
    family: str | None = option(
        None, "model family whose preset values are used; default: the base model's"
    )
    device: str = option(
        "auto", "auto, cpu, cuda, cuda:N or mps; several encode at a time, as cuda:0,cuda:1"
    )
    precision: Literal["fp32", "bf16", "fp16"] = option(
        "fp32", "of training; harness doctor measures what bf16 would save"
    )

    @field_validator("precision", mode="before")
    @classmethod
    def _refuse_auto(cls, value: Any) -> Any:
        if value == "auto":
            raise ValueError(
                '"auto" chose by a measurement of time, so that one run had two results; '
                'write "fp32" (the default) or "bf16"'
            )
        return value

    @field_validator("corpora")
    @classmethod
    def _kinds_are_names(cls, value: dict[Kind, CorpusSettings]) -> dict[Kind, CorpusSettings]:
        corpora = {}
        for kind, corpus in value.items():
            if "kind" in corpus.model_fields_set and corpus.kind != kind:
                raise ValueError(f'"{kind}" has the kind "{corpus.kind}"; leave out its key "kind"')
            corpora[kind] = corpus.model_copy(update={"kind": kind})
        return corpora

    @model_validator(mode="after")
    def _each_kind_has_one_text(self) -> Self:
        kind = self.corpus.kind
        if kind in self.corpora:
            raise ValueError(
                f'key "corpora.{kind}": corpus is the text of {kind}; write that table as [corpus], '
                "and leave this one out"
            )
        return self

    def conditions(self) -> dict[str, Any]:
        """The keys defined here, to make an experiment or a study under the same conditions."""
        return {key: getattr(self, key) for key in Conditions.model_fields}
