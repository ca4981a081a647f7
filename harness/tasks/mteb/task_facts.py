"""What guessing gives in tasks of mteb: from its own counts of labels, or from the pairs that were scored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mteb import abstasks as kinds

from harness.results.facts import Facts
from harness.tasks.mteb.examples import kind_of

if TYPE_CHECKING:
    import pandas as pd


def task_facts(task: Any, splits: Sequence[str], examples: pd.DataFrame | None) -> Facts:
    """Chance and the commonest class of classification, the share of true pairs (the average precision of a random
    order) of pair classification, 0 for correlations; as mteb's scores, means over splits and subsets.

    Args:
        examples: of its scores, as `harness.tasks.mteb.examples` has them; without them nothing is known of pairs.
    """
    kind, metric = kind_of(task), task.metadata.main_score
    chance = majority = None
    counts = [found for split in splits for subset in task.hf_subsets if (found := _labels(task, split, subset))]
    if isinstance(task, kinds.AbsTaskMultilabelClassification):
        pass
    elif isinstance(task, kinds.AbsTaskClassification) and metric == "accuracy" and counts:
        chance = float(np.mean([1 / len(labels) for labels in counts]))
        majority = float(np.mean([max(labels.values()) / sum(labels.values()) for labels in counts]))
    elif isinstance(task, kinds.AbsTaskPairClassification) and examples is not None and len(examples):
        pairs = examples[examples["metric"] == metric]
        chance = float(pairs.groupby(["split", "subset"])["target"].mean().mean()) if len(pairs) else None
    elif isinstance(task, kinds.AbsTaskSTS | kinds.AbsTaskSummarization) and metric.endswith(("spearman", "pearson")):
        chance = 0.0
    return Facts(kind.unit, kind.lacks, metric if chance is not None else "", chance, majority)


def _labels(task: Any, split: str, subset: str) -> dict[str, int]:
    """Label -> how many examples of a subset have it, as far as mteb says."""
    about = (task.metadata.descriptive_stats or {}).get(split) or {}
    about = (about.get("hf_subset_descriptive_stats") or {}).get(subset) or about
    statistics = about.get("label_statistics") or about.get("labels_statistics") or {}
    return {str(label): int(count["count"]) for label, count in (statistics.get("labels") or {}).items()}
