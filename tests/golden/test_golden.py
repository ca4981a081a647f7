"""Numbers that a change of the code must not change unnoticed: fifteen rows, trained for three
steps and scored on two tasks.

`golden.json` holds the experiment, its rows in groups and their scores. Its configurations are
written out, so that a recipe can change without changing them. `python -m tests.golden.make` stores
the scores of today's code.
"""

from __future__ import annotations

import json

import pytest

from tests.golden.make import FILE, compute

GOLDEN = json.loads(FILE.read_text())
TOLERANCE = 5e-4  # 0.05 points, or a part of a number that is larger: processors round differently
LONG = ("several networks", "views of their own")
GROUPS = [
    pytest.param(group, marks=pytest.mark.campaign if group in LONG else ())
    for group in GOLDEN["groups"]
]


@pytest.mark.parametrize("group", GROUPS)
def test_methods_give_the_numbers_they_gave(
    group: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = compute(GOLDEN, group, tmp_path_factory.mktemp("golden"))
    expected = {row: GOLDEN["scores"][row] for row in found}
    assert len(found) == len(GOLDEN["groups"][group])
    changed = {
        row: (scores, expected[row])
        for row, scores in found.items()
        if scores != pytest.approx(expected[row], rel=TOLERANCE, abs=TOLERANCE)
    }
    assert not changed, (
        f"found and expected: {changed}. If this change of numbers is intended, raise `version` of the method where "
        "its own code changed, or `NUMERICS` in harness/results/spec.py where code that methods share changed, so "
        "that stored runs are trained again; then store the new scores: python -m tests.golden.make"
    )


def test_there_are_fifteen_rows_and_two_tasks() -> None:
    assert len(GOLDEN["scores"]) == 15
    for scores in GOLDEN["scores"].values():
        assert {name.split()[0] for name in scores} == {
            "Embedded-STS-contrast",
            "geometry:Embedded-STS-contrast",
        }
