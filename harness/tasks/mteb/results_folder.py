"""Scores of mteb's tasks in a folder as mteb itself writes it: for its own loader, and for its public results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mteb
from mteb.models.model_meta import ModelMeta, ScoringFunction
from mteb.results import TaskResult


def write_results(folder: Path, name: str, revision: str, results: Iterable[str], **about: Any) -> list[Path]:
    """Write results (JSON of mteb's `TaskResult`) of the model `name` at `revision`; the files, one a task.

    They lie in FOLDER/results/ORG__NAME/REVISION/TASK.json beside model_meta.json, where
    `mteb.ResultCache(FOLDER).load_results()` finds them. Parts of a multilingual task that were scored one by one are
    put together. `about`: what else is known of the model, as fields of mteb's ModelMeta.
    """
    known = {"name": name, "revision": revision, "similarity_fn_name": ScoringFunction.COSINE, "modalities": ["text"]}
    meta = ModelMeta.create_empty({**known, **about})
    tasks: dict[str, TaskResult] = {}
    for text in results:
        result = TaskResult.model_validate_json(text)
        earlier = tasks.setdefault(result.task_name, result)
        if earlier is not result:
            for split, parts in result.scores.items():
                earlier.scores.setdefault(split, []).extend(parts)
            earlier.evaluation_time = (earlier.evaluation_time or 0) + (result.evaluation_time or 0)
    cache = mteb.ResultCache(folder)
    for result in tasks.values():
        cache.save_to_cache(result, meta)
    return [cache.get_task_result_path(task, meta) for task in tasks]
