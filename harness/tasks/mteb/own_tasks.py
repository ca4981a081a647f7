"""Retrieval and clustering over a user's files, as task classes of mteb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from datasets import Dataset, DatasetDict
from mteb.abstasks.clustering import AbsTaskClustering
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData
from mteb.abstasks.task_metadata import TaskMetadata

if TYPE_CHECKING:
    from harness.tasks.own.beir import Folder

_CLUSTERED = 16_384  # texts that are clustered: mteb's own limit


def _metadata(
    name: str,
    kind: Literal["Retrieval", "Clustering"],
    revision: str,
    **about: Any,
) -> TaskMetadata:
    return TaskMetadata(
        name=name,
        type=kind,
        dataset={"path": "own/file", "revision": revision},
        eval_langs=["eng-Latn"],
        eval_splits=["test"],
        category="t2t",
        description="A user's own file.",
        reference=None,
        bibtex_citation="",
        **about,
    )


def retrieval_task(name: str, revision: str, folder: Folder) -> Any:
    """Return the task of a folder: for each query the passages that answer it, among all."""

    class OwnRetrieval(AbsTaskRetrieval):
        metadata = _metadata(name, "Retrieval", revision, main_score="ndcg_at_10")

        def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
            self.dataset = {"default": {"test": _split(folder)}}
            self.data_loaded = True

        def sizes(self) -> dict[str, int]:
            return {"default": len(folder.queries)}

    return OwnRetrieval()


def _split(folder: Folder) -> RetrievalSplitData:
    passages = folder.passages.items()
    corpus = []
    for one, (title, text) in passages:
        corpus.append({"id": one, "title": title, "text": text})
    queries = []
    for one, text in folder.queries.items():
        queries.append({"id": one, "text": text})
    return RetrievalSplitData(
        queries=Dataset.from_list(queries),
        corpus=Dataset.from_list(corpus),
        relevant_docs=folder.relevant,
        top_ranked=None,
    )


def clustering_task(name: str, revision: str, texts: list[str], labels: list[str]) -> Any:
    """Return the task of labelled texts: V-measure, the mean over mteb's draws."""

    class OwnClustering(AbsTaskClustering):
        metadata = _metadata(name, "Clustering", revision, main_score="v_measure")
        max_fraction_of_documents_to_embed = None  # all of them
        max_documents_per_cluster = min(len(texts), _CLUSTERED)

        def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
            part = Dataset.from_dict({"sentences": texts, "labels": labels})
            self.dataset = {"default": DatasetDict({"test": part})}
            self.data_loaded = True

        def sizes(self) -> dict[str, int]:
            return {"default": len(texts)}

    return OwnClustering()
