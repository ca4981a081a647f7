"""A task of the mteb library as one of ours: mteb requests vectors as it goes, and computes the
score.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.errors import InputError
from harness.files.printable import first_line, redacted
from harness.results.outcomes import COLUMNS
from harness.results.text_ids import PAIR_IDS, stack
from harness.sources.embedded import embedded_rows, topic_rows
from harness.sources.remote.hub import find_cached_folder, hub_reachable
from harness.tasks.base import TaskResult, Vectors
from harness.tasks.mteb.benchmarks import (
    EMBEDDED,
    PREFIX,
    RETRIEVAL_GROUPS,
    SENTENCES_A_TOPIC,
    SUMMEVAL,
    SUMMEVAL_CORRECTED,
    SUMMEVAL_METRIC,
    TOPIC_PARTS,
)
from harness.tasks.prompts import PromptedVectors
from harness.tasks.protocol import Description, add_score
from harness.tasks.vectors import UNNAMED, EmbeddingTable

if TYPE_CHECKING:
    from harness.tasks.mteb.adapter import BenchmarkScores


@dataclass(frozen=True)
class MTEBTask:
    """One mteb task, by mteb's `task_name`; `subset` is one part of a multilingual set, "" all that
    are wanted.

    The texts of most are not known beforehand (mteb draws and joins them itself): the table of
    vectors encodes on demand what was not announced.
    """

    task_name: str
    subset: str = ""
    suite: str = "mteb"

    @property
    def name(self) -> str:
        if self.task_name.startswith(EMBEDDED):
            if self.subset:
                return f"{self.task_name}-{self.subset}"
            return self.task_name
        if self.subset:
            return f"{PREFIX}{self.task_name}/{self.subset}"
        return PREFIX + self.task_name

    @property
    def source(self) -> str:
        if self.task_name.startswith(EMBEDDED):
            return "embedded"
        return "mteb"

    @property
    def sha256(self) -> str:
        """Of the data set's pinned revision and of what is taken from it; reads no data."""
        from harness.tasks.mteb.adapter import identify_data, open_task

        return identify_data(open_task(self.task_name, self.subset))

    def texts(self) -> list[str]:
        """Those of embedded tasks, which are known; of others none: see above.

        Raises:
            InputError: the data is neither on the hub nor in the local cache.
        """
        if self.source == "embedded":
            return _read_embedded_texts(self.task_name, self.subset)
        from harness.tasks.mteb.adapter import find_pinned_data, open_task

        task = open_task(self.task_name, self.subset)
        for repository, revision in find_pinned_data(task).items():
            check_data(repository, revision)
        return []

    def open(self) -> Any:
        """Return the task of mteb's.

        Raises:
            InputError: mteb knows no such task or subset.
        """
        from harness.tasks.mteb.adapter import open_task

        return open_task(self.task_name, self.subset)

    def at_least(self) -> int:
        """How many texts it will ask for at least: known before its data is fetched."""
        from harness.tasks.mteb.adapter import open_task, texts_at_least

        if self.source == "embedded":
            return 0
        return texts_at_least(open_task(self.task_name, self.subset))

    def fetch(self) -> None:
        """Have the data downloaded that an evaluation reads.

        Raises:
            InputError: the data cannot be had.
        """
        from harness.tasks.mteb.adapter import load_data, open_task

        load_data(self.open())
        if self.task_name == SUMMEVAL:
            load_data(open_task(SUMMEVAL_CORRECTED, self.subset))

    def evaluate(self, vectors: Vectors, *, pooling: str) -> TaskResult:
        """Raises:
        InputError: the data cannot be had (no hub, gated, damaged), or mteb cannot score it.
        RunError: the encoder returned something else than one vector a text.
        """
        result = TaskResult()
        self._run(self.task_name, self.open(), result, vectors, pooling)
        if self.task_name == SUMMEVAL:
            from harness.tasks.mteb.adapter import open_task

            corrected = open_task(SUMMEVAL_CORRECTED, self.subset)
            self._run(SUMMEVAL_CORRECTED, corrected, result, vectors, pooling)
        result.notes += getattr(self, "data_remarks", [])
        return result

    def _run(
        self,
        task_name: str,
        task: Any,
        result: TaskResult,
        vectors: Vectors,
        pooling: str,
    ) -> None:
        from harness.tasks.mteb.adapter import run_task

        if isinstance(vectors, EmbeddingTable | PromptedVectors):
            origin = vectors.origin
        else:
            origin = UNNAMED
        named = getattr(self, "described_as", task_name)
        local = self.source != "mteb"
        outcome = run_task(task, named, vectors, origin, local)
        if self.subset:
            file = f"{task_name}-{self.subset}"
        else:
            file = task_name
        if self.source != "file":
            result.artifacts[f"mteb/{file}.json"] = outcome.json
        result.note_damaged(self.name, outcome.damaged)
        if outcome.facts is not None:
            result.figures[self.name] = outcome.facts.plain()
        if outcome.fault:
            result.notes.append(
                f"{self.name}: outcomes of its examples are not saved: {outcome.fault}"
            )
        for metric in outcome.metrics:
            description = Description(
                getattr(self, "described_as", self.name),
                self.source,
                "+".join(outcome.splits),
                SUMMEVAL_METRIC if task_name == SUMMEVAL else metric,
                outcome.data,
                f"mean of {outcome.subsets} subsets" if outcome.subsets > 1 else "",
                particular=outcome.conditions,
            )
            value = outcome.value(metric)
            add_score(
                result,
                description,
                suite=self.suite,
                pooling=pooling,
                value=value,
                n=outcome.n,
                name=self.name,
            )
            if outcome.examples is not None and len(outcome.examples):
                self._keep(result, outcome, description, metric, value)

    def _keep(
        self,
        result: TaskResult,
        outcome: BenchmarkScores,
        description: Description,
        metric: str,
        value: float,
    ) -> None:
        """Add the examples of one score to its outcomes, or to the pairs."""
        from harness.tasks.mteb.examples import PAIR, sound

        assert outcome.examples is not None
        rows = sound(outcome.examples, metric, value, outcome.splits)
        if rows is None:
            said = f"{self.name}: outcomes of its examples are not saved: {metric} does not follow from them"
            result.notes.append(said)
            return
        rows = rows.assign(task=self.name, source=self.source)
        rows = rows.reset_index(drop=True)
        if (rows["metric"] == PAIR).all():
            names = {"example": "pair", "target": "gold", "outcome": "score"}
            result.pairs = rows.rename(columns=names)[
                ["task", "source", "split", "subset", *names.values(), *PAIR_IDS]
            ]
            return
        kept = rows.assign(metric=description.metric, target=rows["target"].astype(np.float32))[
            list(COLUMNS)
        ]
        if result.outcomes is None:
            result.outcomes = kept
        else:
            result.outcomes = stack([result.outcomes, kept])


def _read_embedded_texts(task_name: str, subset: str) -> list[str]:
    if task_name == f"{EMBEDDED}Clustering":
        return [
            row["text"]
            for row in topic_rows([subset] if subset else TOPIC_PARTS, SENTENCES_A_TOPIC)
        ]
    groups = [subset] if subset else RETRIEVAL_GROUPS
    rows = []
    for group in groups:
        rows.extend(embedded_rows("retrieval", RETRIEVAL_GROUPS[group]))
    return [row[side] for side in ("query", "passage") for row in rows]


def check_data(repository: str, revision: str) -> None:
    """Check, before anything is encoded, that a data set of the hub can be had.

    Raises:
        InputError: it is neither on the hub nor in the local cache.
    """
    if reason := _absence(repository, revision):
        raise InputError(reason)


@cache
def _absence(repository: str, revision: str) -> str:
    """Why a data set cannot be had; "" where it can."""
    from datasets import config
    from huggingface_hub import HfApi, constants, errors

    converted = Path(config.HF_DATASETS_CACHE) / repository.replace("/", "___")
    stored = find_cached_folder(repository).is_dir() or converted.is_dir()
    if not hub_reachable():
        hub = redacted(constants.ENDPOINT)  # one reason for all tasks
        return (
            "" if stored else f"no data: not in the local cache, and no hub can be reached at {hub}"
        )
    try:
        info = HfApi().dataset_info(
            repository, revision=revision, timeout=constants.HF_HUB_ETAG_TIMEOUT
        )
        if info.gated:  # its page is open to all, its files are not
            HfApi().auth_check(repository, repo_type="dataset")
    except errors.GatedRepoError:
        return f"no data: {repository} is gated; ask for access on its page, then set HF_TOKEN"
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
        return f"no data: the hub has no data set {repository} at revision {revision} (private ones need HF_TOKEN)"
    except Exception as error:  # whatever the HTTP library of the day raises
        if stored:
            return ""
        return f"no data: the hub answered with an error: {first_line(error):.200}"
    return ""


def mteb_task(name: str) -> MTEBTask:
    """From "mteb:STS17" or "mteb:STS17/es-es"; the prefix may be left out."""
    task, _, subset = name.removeprefix(PREFIX).partition("/")
    return MTEBTask(task, subset)


def make_embedded_task(name: str) -> MTEBTask:
    """From "Embedded-Clustering" or "Embedded-Retrieval-natural"."""
    kind, _, subset = name.removeprefix(EMBEDDED).partition("-")
    return MTEBTask(EMBEDDED + kind, subset, suite="embedded-mteb")
