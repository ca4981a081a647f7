"""Retrieval and clustering over the embedded data, as task classes of mteb: its categories without
a hub.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from datasets import Dataset, DatasetDict
from mteb.abstasks.clustering import AbsTaskClustering
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData
from mteb.abstasks.task_metadata import TaskMetadata

from harness.files.hashing import content_id
from harness.sources.embedded import embedded_rows, list_embedded_files, topic_rows
from harness.tasks.mteb.benchmarks import RETRIEVAL_GROUPS, SENTENCES_A_TOPIC, TOPIC_PARTS


def _metadata(
    name: str,
    kind: Literal["Retrieval", "Clustering"],
    file: str,
    subsets: Iterable[str],
    *draw: int,
    **about: Any,
) -> TaskMetadata:
    contents = [path.read_bytes().hex() for path in list_embedded_files(file)]
    revision = content_id([*contents, *draw])
    return TaskMetadata(
        name=name,
        type=kind,
        dataset={"path": f"embedded/{file}", "revision": revision},
        eval_langs={subset: ["eng-Latn"] for subset in subsets},
        eval_splits=["test"],
        category="t2t",
        reference=None,
        license="cc0-1.0",
        sample_creation="created",
        bibtex_citation="",
        **about,
    )


class EmbeddedRetrieval(AbsTaskRetrieval):
    """For each query the one passage that answers it, among all of its group: nDCG@10."""

    metadata = _metadata(
        "Embedded-Retrieval",
        "Retrieval",
        "retrieval",
        RETRIEVAL_GROUPS,
        main_score="ndcg_at_10",
        description="Questions and the passages that answer them, written for the embedded suite.",
    )

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        self.dataset = {}
        for group in self.hf_subsets:
            self.dataset[group] = {"test": self._split(group)}
        self.data_loaded = True

    def _split(self, group: str) -> RetrievalSplitData:
        rows = embedded_rows("retrieval", RETRIEVAL_GROUPS[group])
        queries = []
        for row in rows:
            name = f"q-{row['id']}"
            queries.append({"id": name, "text": row["query"]})
        corpus = []
        for row in rows:
            corpus.append(
                {
                    "id": f"p-{row['id']}",
                    "text": row["passage"],
                    "title": "",
                }
            )
        return RetrievalSplitData(
            queries=Dataset.from_list(queries),
            corpus=Dataset.from_list(corpus),
            relevant_docs={f"q-{row['id']}": {f"p-{row['id']}": 1} for row in rows},
            top_ranked=None,
        )

    def sizes(self) -> dict[str, int]:
        """Queries of each group."""
        return {
            group: len(embedded_rows("retrieval", RETRIEVAL_GROUPS[group]))
            for group in self.hf_subsets
        }


class EmbeddedClustering(AbsTaskClustering):
    """Sentences of each contrast part by their eight topics: V-measure, the mean over draws and
    parts.
    """

    metadata = _metadata(
        "Embedded-Clustering",
        "Clustering",
        "sentences",
        TOPIC_PARTS,
        SENTENCES_A_TOPIC,
        main_score="v_measure",
        description="Sentences on eight topics a part, written for the embedded suite.",
    )
    max_fraction_of_documents_to_embed = None  # all of them
    max_documents_per_cluster = 8 * SENTENCES_A_TOPIC  # all of a part

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        self.dataset = {}
        for part in self.hf_subsets:
            self.dataset[part] = DatasetDict({"test": self._split(part)})
        self.data_loaded = True

    def _split(self, part: str) -> Dataset:
        rows = topic_rows([part], SENTENCES_A_TOPIC)
        return Dataset.from_dict(
            {"sentences": [r["text"] for r in rows], "labels": [r["topic"] for r in rows]}
        )

    def sizes(self) -> dict[str, int]:
        """Sentences of each part."""
        sizes = {}
        for part in self.hf_subsets:
            sizes[part] = len(topic_rows([part], SENTENCES_A_TOPIC))
        return sizes


TASKS = {"Embedded-Retrieval": EmbeddedRetrieval, "Embedded-Clustering": EmbeddedClustering}
