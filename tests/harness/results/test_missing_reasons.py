"""Why a task has no scores: one type from the task to the report, plain texts in the record on disk."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from harness.errors import InputError
from harness.results.missing import Missing, missing
from harness.results.record import Record

# As records were written before the reasons had a type.
OLD = {
    "id": "1", "comparison": "c", "status": "finished", "row": "r", "method": "simcse", "config": {},
    "base_model": "m", "seed": 1, "supervision": "unsupervised",
    "missing": {"CR": "no such file", "MR": "vectors span 39 dimensions", "STS-B": "failed: ValueError: a fault"},
    "unfit": ["MR"],
}  # fmt: skip


def test_a_record_of_before_is_read_and_written_as_it_was() -> None:
    record = Record.model_validate_json(json.dumps(OLD))
    assert {task: why.kind for task, why in record.missing.items()} == {"CR": "data", "MR": "unfit", "STS-B": "failed"}
    written = json.loads(record.model_dump_json())
    assert (written["missing"], written["unfit"]) == (OLD["missing"], OLD["unfit"])
    assert Record.model_validate(written) == record


def test_reasons_that_are_none_are_refused() -> None:
    for given in ({"CR": 3}, ["CR"]):
        with pytest.raises(ValidationError):
            Record.model_validate({**OLD, "missing": given})


@pytest.mark.parametrize(
    ("error", "was_read", "kind", "text"),
    [
        (InputError("no such file"), False, "data", "no such file"),
        (InputError("too few dimensions"), True, "unfit", "too few dimensions"),
        (ValueError("a fault\nof two lines"), True, "failed", "failed: ValueError: a fault"),
        (ValueError("a fault"), False, "failed", "failed: ValueError: a fault"),
    ],
)
def test_what_an_error_says_about_a_task(error: Exception, was_read: bool, kind: str, text: str) -> None:
    why = missing(error, was_read=was_read)
    assert (why.kind, why.text, str(why)) == (kind, text, text)
    record = Record.model_validate({**OLD, "missing": {"CR": why}, "unfit": []})
    assert Record.model_validate_json(record.model_dump_json()).missing == {"CR": Missing(why.kind, text)}
