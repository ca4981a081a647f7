"""What the scores of mteb's tasks are made of, example by example, from the predictions that mteb
saves; and what guessing gives in its tasks.

Classification: right or not, the mean over the experiments (mteb draws ten small training sets, and
averages ten accuracies). A bootstrap over these means sees the noise of the test set, not that of
the draws, which are the same for every model. Pair classification: the similarity and whether the
pair is one; `max_ap` is the best of five similarities, and the one that was best on all pairs stays
the one under resampling. Clustering: the V-measure of each set; the sets of newer tasks are draws
of one collection, so that resampling them sees the noise of drawing and k-means alone.
Retrieval and reranking: the score of each query. Summarization: the correlation within each text.
Bitext mining: the F1 of the sentence as a class of its own. STS: the cosine of each pair, saved
with the pairs of our own STS tasks.

Multi-label classification, cross-validation, regression, zero-shot classification and scores that
are no mean over queries have none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from datasets import Dataset
from mteb import abstasks as kinds
from numpy.typing import ArrayLike

from harness.results.facts import DRAWS, PAIRS, QUERIES, SENTENCES, SETS, Facts
from harness.results.outcomes import value_of
from harness.results.text_ids import pair_units, text_ids
from harness.tasks.mteb.benchmarks import HUMAN

PAIR = "pair"  # stands for the metric in rows of STS, which are saved as pairs
TOLERANCE = 2e-5  # mteb rounds some scores to five decimals
Rows = list[pd.DataFrame]

_SIMILARITIES = {  # mteb's names of pair scores, and the sign that makes more alike larger
    "cosine_scores": 1,
    "similarity_scores": 1,
    "dot_scores": 1,
    "manhattan_distances": -1,
    "euclidean_distances": -1,
}
_TREC = {
    "ndcg": "ndcg_cut",
    "map": "map_cut",
    "recall": "recall",
    "precision": "P",
    "hit_rate": "success",
}


@dataclass(frozen=True)
class Kind:
    """A kind of mteb's tasks.

    Attributes:
        unit: what a bootstrap draws.
        rows: the examples of one subset of a task, from mteb's predictions; None where these do not
            say enough.
        lacks: why there are none.
    """

    unit: str = ""
    rows: Callable[[Any, Any, str, str], Rows] | None = None
    lacks: str = ""


def kind_of(task: Any) -> Kind:
    """Of an mteb task, or of the parts of one that joins others."""
    task = parts_of(task)[0]
    metric = task.metadata.main_score
    if isinstance(task, kinds.AbsTaskMultilabelClassification):
        return Kind(lacks="several labels a text")
    if isinstance(task, kinds.AbsTaskClassification):
        if task.is_cross_validation or metric != "accuracy":
            return Kind(
                lacks=f"{metric} by cross-validation"
                if task.is_cross_validation
                else f"{metric} is no mean"
            )
        return Kind(SENTENCES, _classification)
    if isinstance(task, kinds.AbsTaskPairClassification):
        best = metric.endswith("_ap")
        if best:
            return Kind(PAIRS, _pair_classification)
        return Kind(lacks=f"{metric}: its threshold is the best one")
    if isinstance(task, kinds.AbsTaskClustering | kinds.AbsTaskClusteringLegacy):
        # newer tasks draw sets from one collection
        if isinstance(task, kinds.AbsTaskClustering):
            sets = DRAWS
        else:
            sets = SETS
        if metric == "v_measure":
            return Kind(sets)
        return Kind(lacks=f"{metric} of each set is not saved by mteb")
    if isinstance(task, kinds.AbsTaskRetrieval):
        known = _of_queries(metric) is not None
        if known:
            return Kind(QUERIES, _retrieval)
        return Kind(lacks=f"{metric} is no mean over queries")
    if isinstance(task, kinds.AbsTaskSTS):
        return Kind(PAIRS, _sts)
    return Kind(lacks=f"mteb keeps no outcomes of {task.metadata.type}")


def parts_of(task: Any) -> list[Any]:
    """The tasks that an mteb task joins, or itself."""
    return getattr(task.metadata, "tasks", None) or [task]


def read_examples(task: Any, folder: Path) -> pd.DataFrame | None:
    """The rows of all predictions that mteb saved in `folder`, with split and subset; None where it
    saved none.
    """
    frames = []
    rows_of = kind_of(task).rows
    for part in parts_of(task):
        file = folder / part.prediction_file_name
        if rows_of is None or not file.exists():
            continue
        if part is task:
            name = ""
        else:
            name = part.metadata.name
        saved = json.loads(file.read_text("utf-8"))
        for subset, splits in saved.items():
            for split, predictions in splits.items() if subset != "mteb_model_meta" else ():
                if subset not in ("default", "parallel"):
                    shown = subset
                else:
                    shown = ""
                found = rows_of(part, predictions, split, subset)
                for rows in found:
                    frames.append(_add_split(rows, split, name, shown))
    if frames:
        return pd.concat(frames, ignore_index=True)
    return None


def clustering(name: str, scores: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame | None:
    """The rows of a clustering task, whose scores say all; None where they do not.

    A hierarchical task has a subset for each level, and each set is a unit of its own.
    """
    frames = []
    for split, subsets in scores.items():
        for one in subsets:
            values = one.get("v_measures") or ()
            if isinstance(values, dict):
                levels = values
            else:
                levels = {"": values}
            for level, sets in levels.items():
                units = text_ids(
                    [
                        f"{name} {one.get('hf_subset')} {level} {number}"
                        for number in range(len(sets))
                    ]
                )
                rows = _rows("v_measure", sets, units).assign(
                    subset=level if len(levels) > 1 else ""
                )
                frames.append(
                    _add_split(rows, split, one.get("hf_subset", "default").replace("default", ""))
                )
    if frames:
        return pd.concat(frames, ignore_index=True)
    return None


def sound(
    examples: pd.DataFrame,
    metric: str,
    value: float,
    splits: Sequence[str],
) -> pd.DataFrame | None:
    """The rows of one score, if it follows from them; None where it does not, or they are of
    another metric.

    A task of several splits has a subset for each split and subset.
    """
    rows = examples[examples["metric"].isin((metric, PAIR))]
    if len(splits) > 1:
        subsets = []
        for both in zip(rows["split"], rows["subset"], strict=True):
            subsets.append(" ".join(both).strip())
        rows = rows.assign(subset=subsets)
    rows = rows.assign(split="+".join(splits))
    if not len(rows):
        return None
    if rows["metric"].iloc[0] == PAIR:
        metric = "spearman"
    as_scored = rows.assign(metric=metric)
    if np.isclose(value_of(as_scored), value, rtol=0, atol=TOLERANCE):
        return rows
    return None


def task_facts(task: Any, splits: Sequence[str], examples: pd.DataFrame | None) -> Facts:
    """Chance and the commonest class of classification, the share of true pairs (the average
    precision of a random order) of pair classification, 0 for correlations; as mteb's scores, means
    over splits and subsets.

    Args:
        examples: of its scores; without them nothing is known of pairs.
    """
    kind = kind_of(task)
    metric = task.metadata.main_score
    is_correlation = metric.endswith(("spearman", "pearson"))
    chance = majority = None
    if isinstance(task, kinds.AbsTaskMultilabelClassification):
        pass
    elif isinstance(task, kinds.AbsTaskClassification) and metric == "accuracy":
        chance, majority = _guesses_of_labels(task, splits)
    elif (
        isinstance(task, kinds.AbsTaskPairClassification) and examples is not None and len(examples)
    ):
        pairs = examples[examples["metric"] == metric]
        if len(pairs):
            by_part = pairs.groupby(["split", "subset"])
            chance = float(by_part["target"].mean().mean())
    elif isinstance(task, kinds.AbsTaskSTS | kinds.AbsTaskSummarization) and is_correlation:
        chance = 0.0
    human = HUMAN.get(task.metadata.name)
    known = chance is not None or human is not None
    return Facts(
        kind.unit,
        kind.lacks,
        metric if known else "",
        chance,
        majority,
        human=human,
    )


def _guesses_of_labels(task: Any, splits: Sequence[str]) -> tuple[float, float] | tuple[None, None]:
    """Return the accuracies of guessing and of the commonest class, means over splits and subsets;
    None where mteb does not say how many examples each label has.
    """
    counts = []
    for split in splits:
        for subset in task.hf_subsets:
            if found := _labels(task, split, subset):
                counts.append(found)
    if not counts:
        return None, None
    guesses = [1 / len(labels) for labels in counts]
    largest = [max(labels) / sum(labels) for labels in counts]
    chance = np.mean(guesses)
    majority = np.mean(largest)
    return float(chance), float(majority)


def _labels(task: Any, split: str, subset: str) -> list[int]:
    """How many examples of a subset each label has, as far as mteb says."""
    about = (task.metadata.descriptive_stats or {}).get(split) or {}
    by_subset = about.get("hf_subset_descriptive_stats") or {}
    about = by_subset.get(subset) or about
    statistics = about.get("label_statistics") or about.get("labels_statistics") or {}
    counts = []
    for count in (statistics.get("labels") or {}).values():
        counts.append(int(count["count"]))
    return counts


def _add_split(rows: pd.DataFrame, split: str, *names: str) -> pd.DataFrame:
    """The rows with their split, and a subset of several names."""
    names_there = (*names, *rows["subset"].head(1))
    subset = " ".join(name for name in names_there if name)
    return rows.assign(split=split, subset=subset)


def _rows(
    metric: str,
    outcome: ArrayLike,
    unit: ArrayLike,
    target: ArrayLike | None = None,
    example: ArrayLike | None = None,
) -> pd.DataFrame:
    values = np.asarray(outcome, dtype=np.float32)  # as they are stored
    return pd.DataFrame(
        {
            "subset": "",
            "metric": metric,
            "example": np.arange(len(values))
            if example is None
            else np.asarray(example, dtype=np.int64),
            "unit": np.asarray(unit, dtype=np.int64),
            "outcome": values,
            "target": np.full(len(values), np.nan)
            if target is None
            else np.asarray(target, dtype=np.float64),
        }
    )


def _data(task: Any, split: str, subset: str) -> Any:
    whole = task.dataset
    if subset not in whole and split in whole:
        return whole[split]
    return whole[subset][split]


def _texts(values: Any) -> list[str]:
    texts = []
    for value in values:
        text = value if isinstance(value, str) else repr(value)
        texts.append(text)
    return texts


def _classification(task: Any, predictions: Any, split: str, subset: str) -> Rows:
    data = _data(task, split, subset)
    labels = np.asarray(data[task.label_column_name])
    by_experiment = [np.asarray(experiment) == labels for experiment in predictions]
    right = np.stack(by_experiment).mean(axis=0)
    texts = _texts(data[task.input_column_name])
    return [_rows("accuracy", right, text_ids(texts))]


def _pair_classification(task: Any, predictions: Any, split: str, subset: str) -> Rows:
    from sklearn.metrics import average_precision_score

    data = _data(task, split, subset)
    # as data sets of mteb 1 are stored
    if len(data) == 1:
        data = Dataset.from_dict(data[0])
    gold = np.asarray(data[task.label_column_name], dtype=np.float64)
    first = _texts(data[task.input1_column_name])
    second = _texts(data[task.input2_column_name])
    unit = pair_units(first, second)
    similar = {}
    for name, sign in _SIMILARITIES.items():
        values = np.asarray(predictions[name], dtype=np.float64)
        similar[name] = sign * values
    precision = {}
    for name, values in similar.items():
        precision[name] = average_precision_score(gold, values)
    best = max(precision, key=precision.__getitem__)
    chosen = {"max_ap": best, "cosine_ap": "cosine_scores"}
    chosen |= {
        f"{name.partition('_')[0]}_ap": name
        for name in similar
        if task.metadata.main_score not in chosen
    }
    rows = []
    for metric, name in chosen.items():
        rows.append(_rows(metric, similar[name], unit, gold))
    return rows


def _sts(task: Any, predictions: Any, split: str, subset: str) -> Rows:
    data = _data(task, split, subset)
    one, other = task.column_names
    first = text_ids(_texts(data[one]))
    second = text_ids(_texts(data[other]))
    rows = _rows(PAIR, predictions["cosine_scores"], first, data["score"])
    return [rows.assign(text1=first, text2=second)]


def _of_queries(metric: str) -> tuple[str, int] | None:
    """(measure, k) of "ndcg_at_10"; "accuracy" is mteb's name for the recall at 1."""
    found = re.fullmatch(r"(ndcg|map|recall|precision|hit_rate|mrr)_at_(\d+)", metric)
    if metric == "accuracy":
        return ("recall", 1)
    if found:
        return (found[1], int(found[2]))
    return None


def _retrieval(task: Any, predictions: Any, split: str, subset: str) -> Rows:
    import pytrec_eval

    metric = task.metadata.main_score
    measure, k = _of_queries(metric) or ("", 0)
    data = _data(task, split, subset)
    gold = data["relevant_docs"]
    found = predictions
    if task.ignore_identical_ids:
        found = {
            query: {doc: s for doc, s in docs.items() if doc != query}
            for query, docs in found.items()
        }
    if task.skip_first_result:
        ranked = {}
        for query, docs in found.items():
            ranked[query] = sorted(docs.items(), key=lambda x: x[1], reverse=True)
        found = {}
        for query, docs in ranked.items():
            found[query] = dict(docs[1:])
    if measure == "mrr":
        values = {}
        for query, docs in found.items():
            values[query] = _reciprocal_rank(gold[query], docs, k)
    else:
        name = _TREC[measure]
        evaluator = pytrec_eval.RelevanceEvaluator(gold, {f"{name}.{k}"})
        said = evaluator.evaluate(found)
        values = {}
        for query, scores in said.items():
            values[query] = scores[f"{name}_{k}"]
    place = {}
    for number, query in enumerate(data["queries"]["id"]):
        place[query] = number
    texts = _texts(data["queries"]["text"])
    order = sorted(values, key=place.__getitem__)
    numbers = [place[query] for query in order]
    unit = text_ids([texts[number] for number in numbers])
    outcomes = [values[query] for query in order]
    return [_rows(metric, outcomes, unit, example=numbers)]


def _reciprocal_rank(gold: dict[str, int], docs: dict[str, float], k: int) -> float:
    by_score = sorted(docs, key=lambda doc: (docs[doc], doc), reverse=True)
    for rank, doc in enumerate(by_score[:k], 1):
        if gold.get(doc, 0) > 0:
            return 1 / rank
    return 0.0
