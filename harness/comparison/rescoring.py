"""A run gathers scores: a comparison with further tasks adds to what earlier ones found; nothing is scored twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.results.record import Record
from harness.results.text_ids import stacked
from harness.tasks.base import task_key

if TYPE_CHECKING:
    import pandas as pd

    from harness.comparison.plan import Plan, PlannedCell
    from harness.tasks.base import Task

_SUMS = ("sentences", "sentences_cached", "encode_seconds", "evaluate_seconds")


def due(record: Record | None, cell: PlannedCell, plan: Plan) -> list[Task]:
    """The tasks of a cell that its run has to be scored on: all of them, for a run that is not finished.

    Those that it has no scores of, or scores by other code than today's; and those whose data was missing and has come.
    """
    if record is None or record.status != "finished":
        return list(cell.tasks)
    done = {task.name for task in cell.tasks if record.evaluation.get(task_key(task)) in plan.scoring[task_key(task)]}
    unread = done & {task for task, why in record.missing.items() if why.kind != "unfit"}
    done -= unread - plan.unreadable if unread else set()
    return [task for task in cell.tasks if task.name not in done]


def merged(old: Record, new: Record, tasks: list[Task]) -> Record:
    """`new`, the scores of `tasks`, and what `old` holds of other tasks. Both are of the same weights."""
    scored, names = {task_key(task) for task in tasks}, {task.name for task in tasks}
    scores = [s for s in old.scores if s.made_by not in scored] + new.scores
    used = {i for s in scores for i in (s.protocol, s.comparable)}
    missing = {name: why for name, why in old.missing.items() if name not in names} | new.missing
    said = [note for note in old.training.get("notes", []) if not _is_of(note, names)]
    notes = list(dict.fromkeys([*said, *new.training.get("notes", [])]))
    return new.model_copy(
        update={
            "scores": scores,
            "protocols": {key: what for key, what in (old.protocols | new.protocols).items() if key in used},
            "missing": missing,
            "evaluation": old.evaluation | new.evaluation,
            "training": {**new.training, **({"notes": notes} if notes else {})},
            "cost": _cost(old.cost, new.cost),
            "environment": old.environment,  # that of the training
        }
    )


def _is_of(note: str, tasks: set[str]) -> bool:
    """Is a note one of these tasks' ("TASK: ...") or of a subset of theirs ("TASK SUBSET: ...")?"""
    subject = note.partition(": ")[0]
    return any(subject == task or subject.startswith(f"{task} ") for task in tasks)


def _cost(old: dict[str, float], new: dict[str, float]) -> dict[str, float]:
    cost = old | new
    cost |= {key: old.get(key, 0.0) + new.get(key, 0.0) for key in _SUMS if key in cost}
    if encoding := cost.get("encode_seconds"):
        cost["sentences_per_second"] = (cost["sentences"] - cost.get("sentences_cached", 0.0)) / encoding
    cost |= {key: max(old[key], new[key]) for key in ("load_start", "load_end") if key in old and key in new}
    cost["peak_memory_bytes"] = max(old.get("peak_memory_bytes", 0.0), new["peak_memory_bytes"])
    return cost


def merged_rows(old: pd.DataFrame, new: pd.DataFrame | None, tasks: list[Task]) -> pd.DataFrame:
    """As `merged`, for the pairs or the outcomes."""
    scored = {(task.name, task.source) for task in tasks}
    kept = old[[pair not in scored for pair in zip(old["task"], old["source"], strict=True)]]
    return kept if new is None else stacked([kept, new] if len(kept) else [new])


def merged_figures(old: dict[str, Any], new: dict[str, Any], tasks: list[Task]) -> dict[str, Any]:
    """As `merged`, for what is drawn."""
    names = {task.name for task in tasks}
    return {name: data for name, data in old.items() if name not in names} | new
