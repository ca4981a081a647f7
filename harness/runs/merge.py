"""One run evaluated in several calls: the record and the examples of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.results.record import Record
from harness.results.text_ids import stack
from harness.tasks.base import Task, task_key

if TYPE_CHECKING:
    import pandas as pd

_SUMS = (
    "sentences",
    "sentences_cached",
    "encode_seconds",
    "evaluate_seconds",
    "score_cpu_seconds",
    "encode_cpu_joules",
    "encode_gpu_joules",
)


def merge_records(old: Record, new: Record, tasks: Sequence[Task]) -> Record:
    """`new`, the scores of `tasks`, with what `old` holds of other tasks. Both have the same
    weights.
    """
    scored = {task_key(task) for task in tasks}
    names = {task.name for task in tasks}
    others = [score for score in old.scores if score.task_key not in scored]
    scores = others + new.scores
    # Tasks of one name may come from several sources, of which `missing` says nothing.
    open_names = {key.partition(":")[2] for key in old.unscored - scored}
    still_missing = {}
    for name, why in old.missing.items():
        if name not in names or name in open_names:
            still_missing[name] = why
    used: set[str] = set()
    for s in scores:
        used.update((s.protocol, s.comparable))
    task_code = {}
    for key, files in old.task_code.items():
        if key not in scored:
            task_code[key] = files
    notes = []
    for note in old.training.get("notes", []):
        if not _concerns(note, names):
            notes.append(note)
    notes += new.training.get("notes", [])
    notes = list(dict.fromkeys(notes))
    return new.model_copy(
        update={
            "scores": scores,
            "protocols": {
                key: what for key, what in (old.protocols | new.protocols).items() if key in used
            },
            "missing": still_missing | new.missing,
            "evaluation": old.evaluation | new.evaluation,
            "task_code": task_code | new.task_code,
            "training": {**new.training, **({"notes": notes} if notes else {})},
            "cost": _merge_costs(old.cost, new.cost),
            "environment": old.environment,  # that of the training
            "row": old.row,
            "comparison": old.comparison,
            "architecture": new.architecture or old.architecture,
        }
    )


def _concerns(note: str, tasks: set[str]) -> bool:
    """Is a note about one of these tasks ("TASK: ...") or a subset of it ("TASK SUBSET: ...")?"""
    subject = note.partition(": ")[0]
    begins = tuple(f"{task} " for task in tasks)
    return subject in tasks or subject.startswith(begins)


def _merge_costs(old: dict[str, float], new: dict[str, float]) -> dict[str, float]:
    cost = old | new
    for key in _SUMS:
        if key in cost:
            cost[key] = old.get(key, 0.0) + new.get(key, 0.0)
    if "evaluate_seconds" in old and "score_cpu_seconds" not in old:
        cost.pop("score_cpu_seconds", None)  # of the first part they are not known
    if encoding := cost.get("encode_seconds"):
        cost["sentences_per_second"] = (
            cost["sentences"] - cost.get("sentences_cached", 0.0)
        ) / encoding
    peak = old.get("peak_memory_bytes", 0.0)
    cost["peak_memory_bytes"] = max(peak, new["peak_memory_bytes"])
    return cost


def merge_examples(
    old: pd.DataFrame | None,
    new: pd.DataFrame | None,
    tasks: Sequence[Task],
) -> pd.DataFrame | None:
    if old is None:
        return new
    scored = {(task.name, task.source) for task in tasks}
    pairs = zip(old["task"], old["source"], strict=True)
    others = old[[pair not in scored for pair in pairs]]
    if new is None:
        return others
    return stack([others, new] if len(others) else [new])
