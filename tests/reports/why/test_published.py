"""What is left between a row and a published number: Klein & Nabi 2022, Tables 1 and 2, SCD-BERT;
Gao et al. 2021, Tables 5 and E.1; Giorgi et al. 2020, Table S3.
"""

from __future__ import annotations

import pytest

from harness.errors import InputError
from harness.tasks.senteval.transfer import TRANSFER
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


def transfer(*tasks: str) -> Target:
    measures = tuple(Measure(task, "senteval", "accuracy", "") for task in tasks)
    return Target("t", "some tasks", "tasks", measures)


@pytest.mark.parametrize(
    ("key", "average"), [(KEY, 85.52), ("simcse.csv:SimCSE-BERT unsup", 85.81)]
)
def test_the_average_of_transfer_tasks_is_not_that_of_sts(key: str, average: float) -> None:
    assert find_published(key, transfer(*TRANSFER), "bert-base") == pytest.approx(average, abs=0.01)


def test_an_average_is_taken_of_the_tasks_that_it_is_the_mean_of_alone() -> None:
    repository = "simcse.csv:unsup-simcse-bert-large-uncased"  # which prints the average of STS
    large = "google-bert/bert-large-uncased"
    assert find_published(repository, target_of(*STS), large) == 78.41
    for target in (target_of(*STS[:5]), transfer(*TRANSFER)):
        with pytest.raises(InputError):
            find_published(repository, target, large)


def test_numbers_of_another_metric_are_not_those_of_a_task() -> None:
    fitted = Measure("regressor:SICK-R", "senteval", "spearman", "")
    mean = Measure("STS12", "senteval", "spearman", "mean")
    declutr = "declutr.csv:DeCLUTR-base"
    for measure in (fitted, mean):
        target = Target("t", "a task", "task", (measure,))
        assert find_published(declutr, target, "roberta-base") > 60
        with pytest.raises(InputError):
            find_published(KEY, target, "bert-base")
    with pytest.raises(InputError):  # which DeCLUTR has by a regressor, and by the mean of subsets
        find_published(declutr, target_of("SICK-R"), "roberta-base")
    with pytest.raises(InputError):
        find_published(declutr, target_of("STS12"), "roberta-base")


def test_of_several_base_models_none_is_taken_for_another() -> None:
    key = "simcse.csv:SimCSE-RoBERTa unsup"
    target = target_of("STS-B")
    assert find_published(key, target, "FacebookAI/roberta-base") == 80.22
    assert find_published(key, target, "FacebookAI/roberta-large") == 81.98
    with pytest.raises(InputError) as caught:
        find_published(key, target, "embedded:mini-bert")
    assert caught.value.key == "--published"


def test_what_is_left_has_the_interval_of_a_mean_of_that_many_runs() -> None:
    ends = (RowBetween("b", (), 75.10, 0.6, 3), RowBetween("a", ("x",), 77.0, 0.6, 3))
    whole = Estimate(0.019, 0.01, 0.03, 0.01)
    found = Explanation(
        "a", "b", target_of("STS-B"), whole, (), None, Smallest((), None), ends, 0, 3, 0.5
    )
    # t(2 degrees of freedom, 97.5 %) = 4.3027; 4.3027 x 0.6 / sqrt(3) = 1.49
    text = compare_with_published(KEY, found, "bert-base")
    assert "on bert-base" not in text
    assert "on bert-base" in compare_with_published(KEY, found, "embedded:mini-bert")
    assert "76.30" in text
    assert "−1.20 [−2.69, 0.29]" in text
