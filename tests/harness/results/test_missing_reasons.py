"""Why a task has no scores: one type from the task to the report."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from harness.errors import InputError
from harness.results.record import Missing, Record, missing
from harness.results.spec import RunSpec

SPEC = RunSpec(method="simcse", config={}, base_model="m", seed=1)


def record(reasons: object) -> Record:
    return Record.model_validate(
        {
            "id": SPEC.id,
            "spec": SPEC,
            "comparison": "c",
            "status": "finished",
            "row": "r",
            "supervision": "unsupervised",
            "missing": reasons,
        }
    )


def test_reasons_that_are_none_are_refused() -> None:
    for given in ({"CR": 3}, {"CR": {"kind": "unknown", "text": ""}}, ["CR"]):
        with pytest.raises(ValidationError):
            record(given)


@pytest.mark.parametrize(
    ("error", "was_read", "kind", "text"),
    [
        (InputError("no such file"), False, "data", "no such file"),
        (InputError("too few dimensions"), True, "unfit", "too few dimensions"),
        (ValueError("a fault\nof two lines"), True, "failed", "failed: ValueError: a fault"),
        (ValueError("a fault"), False, "failed", "failed: ValueError: a fault"),
    ],
)
def test_what_an_error_says_about_a_task(
    error: Exception, was_read: bool, kind: str, text: str
) -> None:
    why = missing(error, was_read=was_read)
    assert (why.kind, why.text, str(why)) == (kind, text, text)
    assert Record.model_validate_json(record({"CR": why}).model_dump_json()).missing == {
        "CR": Missing(why.kind, text)
    }
