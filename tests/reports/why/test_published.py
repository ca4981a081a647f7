"""What is left between a row and a published number: Klein & Nabi 2022, Table 1, SCD-BERT."""

from __future__ import annotations

import pytest

from harness.errors import InputError
from reports.stats.estimate import Estimate
from reports.targets import Measure, Target
from reports.why.explanation import Explanation, RowBetween, Smallest
from reports.why.published import compare_with_published, find_published

KEY = "scd.csv:SCD-BERT"
STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


def target_of(*tasks: str) -> Target:
    return Target("t", "some tasks", "tasks", tuple(Measure(task, "senteval") for task in tasks))


def test_a_task_has_its_number_and_several_their_mean() -> None:
    assert find_published(KEY, target_of("STS-B"), "bert-base") == 76.30
    assert find_published(KEY, target_of(*STS), "bert-base") == pytest.approx(74.19, abs=0.005)
    with pytest.raises(InputError) as caught:
        find_published(KEY, target_of("mine.csv"), "bert-base")
    assert caught.value.key == "--published"


def test_what_is_left_has_the_interval_of_a_mean_of_that_many_runs() -> None:
    ends = (RowBetween("b", (), 75.10, 0.6, 3), RowBetween("a", ("x",), 77.0, 0.6, 3))
    whole = Estimate(0.019, 0.01, 0.03, 0.01)
    found = Explanation(
        "a", "b", target_of("STS-B"), whole, (), None, Smallest((), None), ends, 0, 3, 0.5
    )
    # t(2 degrees of freedom, 97.5 %) = 4.3027; 4.3027 x 0.6 / sqrt(3) = 1.49
    text = compare_with_published(KEY, found, "bert-base")
    assert "76.30" in text
    assert "−1.20 [−2.69, 0.29]" in text
