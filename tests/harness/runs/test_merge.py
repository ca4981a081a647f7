"""A run that is scored again keeps what its training was, and the scores of other tasks."""

from __future__ import annotations

from typing import Any

from harness.results.record import Missing, Record, Score
from harness.results.spec import RunSpec
from harness.runs.merge import merge_records

# What each field holds after scores were added. A new field of records needs a line here: without
# one in `merge_records`, it is that of the last scoring.
ORIGIN = {
    "schema_version": "last",
    "digest": "last",
    "id": "last",
    "spec": "last",
    "comparison": "first",
    "status": "last",
    "reason": "last",
    "row": "first",
    "supervision": "last",
    "scores": "both",
    "missing": "both",
    "protocols": "both",
    "evaluation": "both",
    "task_code": "both",
    "training": "both",
    "architecture": "last",
    "cost": "both",
    "environment": "first",
    "files": "last",
    "removed": "last",
    "command": "last",
    "started": "last",
    "finished": "last",
}
EQUAL = {"schema_version", "id", "spec", "status", "supervision"}  # of a run and itself


class Task:
    """A task of which only name and source matter here."""

    source = "own"

    def __init__(self, name: str) -> None:
        self.name = name


def scored(call: str, task: str, value: float) -> Record:
    """A record whose every field says which call wrote it."""
    score = {"task": task, "suite": "own", "source": "own", "split": "test", "metric": "sum"}
    score |= {"aggregation": "", "value": value, "n": 1, "protocol": task, "comparable": task}
    values: dict[str, Any] = dict.fromkeys(("digest", "reason", "row", "comparison"), call)
    values |= dict.fromkeys(("architecture", "command", "started", "finished"), call)
    return Record(
        id="0123456789abcdef",
        spec=RunSpec(method="simcse", config={}, base_model="small", seed=1),
        status="finished",
        supervision="unsupervised",
        scores=[Score.model_validate(score)],
        missing={f"other {call}": Missing("data", call)},
        protocols={task: {"task": task}},
        evaluation={f"own:{task}": call},
        task_code={f"own:{task}": {"task.py": call}},
        training={"steps": 3, "notes": [f"{task}: {call}"]},
        cost={"encode_seconds": 1.0, "sentences": 10.0, "peak_memory_bytes": 5.0},
        environment={"device": call},
        files={"weights": call},
        removed={"weights": call},
        **values,
    )


def test_each_field_of_a_record_that_is_scored_again() -> None:
    first = scored("first", "one", 0.25)
    last = scored("last", "two", 0.5)
    merged = merge_records(first, last, [Task("two")])  # type: ignore[list-item]
    assert set(ORIGIN) == set(Record.model_fields)
    for field, origin in ORIGIN.items():
        if origin != "both":
            expected = {"first": first, "last": last}[origin]
            assert (getattr(first, field) == getattr(last, field)) == (field in EQUAL), field
            assert getattr(merged, field) == getattr(expected, field), field
    assert [(score.task, score.value) for score in merged.scores] == [("one", 0.25), ("two", 0.5)]
    assert set(merged.missing) == {"other first", "other last"}
    assert set(merged.protocols) == {"one", "two"}
    assert merged.evaluation == {"own:one": "first", "own:two": "last"}
    assert merged.task_code == {
        "own:one": {"task.py": "first"},
        "own:two": {"task.py": "last"},
    }
    assert merged.training == {"steps": 3, "notes": ["one: first", "two: last"]}
    assert (merged.cost["encode_seconds"], merged.cost["sentences"]) == (2.0, 20.0)
    assert (merged.cost["sentences_per_second"], merged.cost["peak_memory_bytes"]) == (10.0, 5.0)


def test_processor_seconds_of_a_part_are_not_those_of_the_whole() -> None:
    first = scored("first", "one", 0.25)
    last = scored("last", "two", 0.5)
    timed = []
    for record, seconds in ((first, 2.0), (last, 3.0)):
        cost = record.cost | {"evaluate_seconds": 4.0, "score_cpu_seconds": seconds}
        timed.append(record.model_copy(update={"cost": cost}))
    both = merge_records(timed[0], timed[1], [Task("two")])  # type: ignore[list-item]
    assert both.cost["score_cpu_seconds"] == 5.0
    earlier = timed[0].model_copy(update={"cost": first.cost | {"evaluate_seconds": 4.0}})
    part = merge_records(earlier, timed[1], [Task("two")])  # type: ignore[list-item]
    assert "score_cpu_seconds" not in part.cost
    assert part.cost["evaluate_seconds"] == 8.0


def test_a_task_that_is_scored_again_has_its_last_score_alone() -> None:
    first = scored("first", "one", 0.25)
    last = scored("last", "one", 0.5).model_copy(update={"task_code": {}})
    merged = merge_records(first, last, [Task("one")])  # type: ignore[list-item]
    assert [(score.task, score.value) for score in merged.scores] == [("one", 0.5)]
    assert merged.evaluation == {"own:one": "last"}
    assert merged.task_code == {}, "it is no plugin any more"
    assert merged.training["notes"] == ["one: last"]


def test_a_task_is_missing_of_one_source_and_scored_of_another() -> None:
    """One comparison reads STS12 of a source that is not here, another one that of another source."""
    lacking = scored("first", "one", 0.25).model_copy(
        update={
            "missing": {"STS12": Missing("data", "no hub")},
            "evaluation": {"own:one": "first", "far:STS12": "first"},
        }
    )
    added = scored("last", "STS12", 0.5).model_copy(update={"missing": {}})
    one_way = merge_records(lacking, added, [Task("STS12")])  # type: ignore[list-item]
    far = Task("STS12")
    far.source = "far"
    last = lacking.model_copy(update={"scores": [], "evaluation": {"far:STS12": "last"}})
    other_way = merge_records(added, last, [far])  # type: ignore[list-item]
    for merged in (one_way, other_way):
        assert merged.unscored == {"far:STS12"}
        assert merged.limit_to(["far:STS12"]).missing == lacking.missing
        assert merged.limit_to(["own:STS12"]).missing == {}
    scored_at_last = scored("last", "STS12", 0.75)
    (score,) = scored_at_last.scores
    update = {"source": "far", "value": 0.75}
    scored_at_last = scored_at_last.model_copy(
        update={
            "scores": [score.model_copy(update=update)],
            "evaluation": {"far:STS12": "last"},
            "missing": {},
        }
    )
    complete = merge_records(one_way, scored_at_last, [far])  # type: ignore[list-item]
    assert complete.missing == {}
