"""The averages that papers print are recomputed from their rows by the code that averages our own
scores.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.results.record import Score
from harness.sources.senteval.labelled import PROBING
from harness.tasks.averages import Average, Mean, Number, mean_of, numbers_of
from harness.tasks.senteval.transfer import transfer_mean
from harness.tasks.sts import sts_mean
from reports.papers.paper_suites import DECLUTR_DOWNSTREAM, declutr_means

PUBLISHED = Path(__file__).parents[3] / "reports" / "published"
CATEGORIES = (
    "Classification",
    "Clustering",
    "PairClassification",
    "Reranking",
    "Retrieval",
    "STS",
    "Summarization",
)
RERANKING = (
    "AskUbuntuDupQuestions",
    "MindSmallReranking",
    "SciDocsRR",
    "StackOverflowDupQuestions",
)
PAIRS = ("SprintDuplicateQuestions", "TwitterSemEval2015", "TwitterURLCorpus")
SIMILARITY = ("BIOSSES", "SICK-R", "STS")


def table(file: str, name: str) -> dict[tuple[str, str], dict[str, float]]:
    """(model, base model) -> task -> value; a task with two metrics is listed as "task metric" too."""
    frame = pd.read_csv(PUBLISHED / file)
    by_model: dict[tuple[str, str], dict[str, float]] = {}
    for row in frame[frame["table"] == name].itertuples():
        values = by_model.setdefault((str(row.model), str(row.base_model)), {})
        if pd.notna(row.value):
            values.setdefault(str(row.task), float(row.value))  # type: ignore[arg-type]
            values[f"{row.task} {row.metric}"] = float(row.value)  # type: ignore[arg-type]
    return by_model


def numbers(mean: Mean, values: dict[str, float]) -> dict[Number, float]:
    """The printed `values` by the numbers that `mean` asks for: a task's, or its "MRPC f1"."""
    values_of: dict[Number, float] = {}
    for part in mean.parts:
        if isinstance(part, Mean):
            values_of |= numbers(part, values)
        elif (value := values.get(f"{part.task} {part.metric}", values.get(part.task))) is not None:
            values_of[part] = value
    return values_of


def average(mean: Mean, values: dict[str, float]) -> Average:
    return mean.over(numbers(mean, values))


def test_scd_table_1() -> None:
    rows = table("scd.csv", "Table 1")
    assert len(rows) > 10
    for key, values in rows.items():
        assert average(sts_mean(), values).value == pytest.approx(values["Avg."], abs=0.02), key


def test_scd_table_2() -> None:
    rows = table("scd.csv", "Table 2")
    assert len(rows) >= 10
    for key, values in rows.items():
        mean = average(transfer_mean(), {**values, "SST2": values["SST"]}).value
        assert mean == pytest.approx(values["Avg."], abs=0.0201), key


def test_scd_table_3_is_consistent_with_table_1() -> None:
    full = {
        name: value
        for (model, _), v in table("scd.csv", "Table 3").items()
        for name, value in v.items()
        if model.startswith("SCD")
    }
    years = ("STS12", "STS13", "STS14", "STS15", "STS16")
    means = [mean_of(v, years).value for v in table("scd.csv", "Table 1").values()]
    assert any(full["STS (mean of STS12..STS16)"] == pytest.approx(m, abs=0.02) for m in means)


def declutr_rows() -> dict[str, dict[str, float]]:
    """Tables S3 and S4 under our task names."""
    ours = {
        "STSBenchmark": "regressor:STS-B",
        "SICK-R": "regressor:SICK-R",
        "Caption-ImageRetrieval": "caption-retrieval",
    }
    printed = (
        "SentLen",
        "WC",
        "TreeDepth",
        "TopConst",
        "BShift",
        "Tense",
        "SubjNum",
        "ObjNum",
        "SOMO",
        "CoordInv",
    )
    probing = dict(zip(printed, PROBING, strict=True))
    by_model: dict[str, dict[str, float]] = {}
    for file_table in ("Table S3", "Table S4"):
        for (model, _), values in table("declutr.csv", file_table).items():
            row = by_model.setdefault(model, {})
            for task, value in values.items():
                row[ours.get(task, probing.get(task, task))] = value
            if file_table == "Table S3":
                row["MRPC accuracy"] = values["MRPC accuracy x100 (test)"]
                row["MRPC f1"] = values["MRPC F1 x100 (test)"]
    return by_model


def test_declutr_tables_1_s3_s4() -> None:
    rows, printed = declutr_rows(), table("declutr.csv", "Table 1")
    compared = 0
    for (model, _), values in printed.items():
        if model not in rows:
            continue
        means = {name: average(mean, rows[model]).value for name, mean in declutr_means().items()}
        assert means["downstream"] == pytest.approx(values["SentEval Downstream"], abs=0.02), model
        assert means["probing"] == pytest.approx(values["SentEval Probing"], abs=0.02), model
        assert means["half"] == pytest.approx(values["SentEval Avg."], abs=0.02), model
        compared += 1
    assert compared >= 7


def test_declutr_s1_s5_halves_and_deltas() -> None:
    for name in ("Table 1", "Table S1", "Table S5"):
        for key, values in table("declutr.csv", name).items():
            # The printed averages stand for every task of their half: a mean of equal numbers is
            # that number.
            halves = ((DECLUTR_DOWNSTREAM, "Downstream"), (PROBING, "Probing"))
            row = {task: values[f"SentEval {part}"] for tasks, part in halves for task in tasks}
            half = average(declutr_means()["half"], row).value
            assert half == pytest.approx(values["SentEval Avg."], abs=0.0101), (name, key)
    for key, values in table("declutr.csv", "Table 1").items():
        if "Delta to DeCLUTR-base Avg." in values:
            difference = values["SentEval Avg."] - 75.98
            assert difference == pytest.approx(values["Delta to DeCLUTR-base Avg."], abs=0.0101), (
                key
            )


def test_declutr_s6_deltas() -> None:
    rows = {model: values for (model, _), values in table("declutr.csv", "Table S6").items()}
    base = rows["DeCLUTR-base"]
    for model, values in rows.items():
        for what in ("", " without SNLI"):
            if f"Delta to DeCLUTR-base{what}" in values:
                difference = (
                    values[f"SentEval Downstream{what}"] - base[f"SentEval Downstream{what}"]
                )
                assert difference == pytest.approx(
                    values[f"Delta to DeCLUTR-base{what}"], abs=0.0101
                ), model


def category(task: str) -> str:
    if task in RERANKING:
        return "Reranking"
    if task in PAIRS:
        return "PairClassification"
    if task == "SummEval":
        return "Summarization"
    if task.startswith(SIMILARITY):
        return "STS"
    return next((c for c in ("Classification", "Clustering") if c in task), "Retrieval")


def test_noncontrastive_tables_2_and_4() -> None:
    printed = {model: v for (model, _), v in table("noncontrastive.csv", "Table 2").items()}
    complete = 0
    for (model, _), row in table("noncontrastive.csv", "Table 4").items():
        tasks = list(
            pd.read_csv(PUBLISHED / "noncontrastive.csv").query("table == 'Table 4'").task.unique()
        )
        categories: dict[str, list[str]] = {c: [] for c in CATEGORIES}
        for task in tasks:
            categories[category(task)].append(task)
        assert [len(categories[c]) for c in CATEGORIES] == [12, 11, 3, 4, 15, 10, 1]
        by_name = {name: mean_of(row, tasks) for name, tasks in categories.items()}
        everything = mean_of(row, [task for tasks in categories.values() for task in tasks])
        if everything.value is None:
            assert (
                everything.missing
            )  # six cells of the printed table are blank: no average of fewer data sets
            continue
        complete += 1
        if model in printed:
            assert everything.value == pytest.approx(printed[model]["MTEB Avg."], abs=0.1), model
            for name, mean in by_name.items():
                assert mean.value == pytest.approx(printed[model][f"MTEB {name}"], abs=0.1001), (
                    model,
                    name,
                )
    assert complete >= 1


def test_a_missing_task_leaves_no_value() -> None:
    mean = average(transfer_mean(), {"MR": 80.0, "CR": 80.0})
    assert mean.value is None
    assert mean.missing == ("SUBJ", "MPQA", "SST2", "TREC", "MRPC")
    half = average(declutr_means()["half"], dict.fromkeys(DECLUTR_DOWNSTREAM, 50.0))
    assert (half.missing, half.of) == (tuple(PROBING), 28)


def test_values_are_rounded_before_the_mean_as_the_script_does() -> None:
    values = dict.fromkeys(("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"), 70.0)
    assert average(sts_mean(), {**values, "STS12": 70.004}).value == 70.0


def score(
    task: str, value: float, metric: str, aggregation: str = "", split: str = "test"
) -> Score:
    rest: dict[str, Any] = {
        "suite": "",
        "source": "senteval",
        "n": 1,
        "protocol": "p",
        "comparable": "c",
    }
    return Score(
        task=task, split=split, metric=metric, aggregation=aggregation, value=value, **rest
    )


def test_numbers_are_picked_from_scores_as_each_paper_picks_them() -> None:
    scores = [
        score("MRPC", 0.70, "accuracy"),
        score("MRPC", 0.80, "f1"),
        score("MRPC", 0.72, "accuracy", split="dev"),
        score("STS12", 0.5, "spearman", "mean"),
        score("STS12", 0.6, "spearman", "all"),
        score("STS-B", 0.9, "spearman", "all"),
        score("regressor:STS-B", 0.8, "spearman"),
        score("regressor:STS-B", 0.85, "pearson", split="dev"),
        score("regressor:STS-B", 0.81, "pearson"),
        score("caption-retrieval", 0.4, "recall", "mean of six recalls"),
        score("Length", 0.3, "accuracy"),
    ]
    test, dev = declutr_means("test"), declutr_means("dev")
    values = numbers_of(scores)

    def picked(mean: Mean) -> dict[str, float]:
        return {
            part.tasks[0]: value for part in mean.parts if (value := part.value(values)) is not None
        }

    assert picked(transfer_mean()) == pytest.approx({"MRPC": 70})
    assert picked(sts_mean()) == pytest.approx({"STS12": 60, "STS-B": 90})
    assert picked(test["tasks"]) == pytest.approx(
        {"MRPC": 75, "STS12": 50, "regressor:STS-B": 80, "caption-retrieval": 40, "Length": 30}
    )
    assert picked(dev["tasks"]) == pytest.approx({"MRPC": 72, "STS12": 50, "regressor:STS-B": 85})
