"""What guessing gives in tasks of mteb, from mteb's own counts of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mteb import abstasks as kinds

from harness.results.facts import Facts
from harness.tasks.mteb.examples import kind_of


def task_facts(task: Any, splits: Sequence[str]) -> Facts:
    """Chance and the commonest class of classification, the share of true pairs (the average precision of a random
    order) of pair classification, 0 for correlations; as mteb's scores, means over splits and subsets."""
    kind, metric = kind_of(task), task.metadata.main_score
    chance = majority = None
    counts = [found for split in splits for subset in task.hf_subsets if (found := _labels(task, split, subset))]
    if isinstance(task, kinds.AbsTaskMultilabelClassification):
        pass
    elif isinstance(task, kinds.AbsTaskClassification) and metric == "accuracy" and counts:
        chance = float(np.mean([1 / len(labels) for labels in counts]))
        majority = float(np.mean([max(labels.values()) / sum(labels.values()) for labels in counts]))
    elif isinstance(task, kinds.AbsTaskPairClassification) and metric.endswith("_ap") and counts:
        chance = float(np.mean([labels.get("1", 0) / sum(labels.values()) for labels in counts]))
    elif isinstance(task, kinds.AbsTaskSTS | kinds.AbsTaskSummarization) and metric.endswith(("spearman", "pearson")):
        chance = 0.0
    return Facts(kind.unit, kind.lacks, metric if chance is not None else "", chance, majority)


def _labels(task: Any, split: str, subset: str) -> dict[str, int]:
    """Label -> how many examples of a subset have it, as far as mteb says."""
    about = (task.metadata.descriptive_stats or {}).get(split) or {}
    about = (about.get("hf_subset_descriptive_stats") or {}).get(subset) or about
    statistics = about.get("label_statistics") or about.get("labels_statistics") or {}
    return {str(label): int(count["count"]) for label, count in (statistics.get("labels") or {}).items()}
