"""Numbers that a change of the code must not change unnoticed: a few methods, trained for three
steps and scored.

`golden.json` holds the experiment and its scores in points. Its configurations are written out, so
that a recipe can change without changing them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness import api
from harness.api.result import Comparison

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())
TOLERANCE = 0.05  # points: processors round differently


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("golden")
    return api.compare(GOLDEN["experiment"], workdir=folder, tracked=False, formats=[])


@pytest.mark.parametrize("row", GOLDEN["scores"])
def test_a_method_gives_the_numbers_it_gave(computed: Comparison, row: str) -> None:
    (record,) = (record for record in computed.records if record.row == row)
    score = record.score("Embedded-STS-contrast")
    expected = GOLDEN["scores"][row]
    points = float("nan") if score is None else 100 * score
    assert points == pytest.approx(expected, abs=TOLERANCE), (
        f"{row}: {record.status} with {points} points, not {expected}. If this change of numbers is intended, raise "
        f"`version` of the method {record.method} where its own code changed, or `NUMERICS` in "
        "harness/results/spec.py where code that methods share changed, so that stored runs are trained again; "
        "then store the new score in golden.json"
    )
