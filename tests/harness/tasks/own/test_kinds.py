"""A file is a task: its kind by its columns, and scores equal to those of other implementations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

import harness
from harness.evaluation.scoring import evaluate
from harness.sources.embedded import embedded_rows
from harness.tasks.base import TaskResult
from harness.tasks.catalogue import resolve_tasks
from harness.tasks.mteb.benchmarks import RETRIEVAL_GROUPS
from harness.tasks.own.data import TaskFile
from harness.tasks.senteval.transfer import transfer_task
from harness.tasks.vectors import Origin
from tests.support import own_files, senteval_data
from tests.support.errors import raises_input_error

MODEL = "embedded:mini-bert"


def score(texts_to_vectors: Any, entry: Any) -> TaskResult:
    (task,) = resolve_tasks([entry])
    return task.evaluate(lambda texts: texts_to_vectors(list(texts)), pooling="mean")


def values(result: TaskResult) -> dict[str, float]:
    return {s.metric: s.value for s in result.scores if s.split == "test"}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_a_file_of_the_pairs_of_a_task_has_its_score_to_the_last_digit(
    tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"mine.{suffix}"
    frame = pd.DataFrame(own_files.embedded_pairs(), columns=["sentence1", "sentence2", "score"])
    if suffix == "jsonl":
        frame.to_json(file, orient="records", lines=True, force_ascii=False)
    elif suffix == "parquet":
        frame.to_parquet(file)
    else:
        frame.to_csv(file, index=False, sep="\t" if suffix == "tsv" else ",")
    found = harness.evaluate(MODEL, [own_files.NATURAL, str(file)]).result
    shipped = {
        s.metric: s.value
        for s in found.scores
        if s.task == own_files.NATURAL and s.aggregation == "all"
    }
    own = {s.metric: s.value for s in found.scores if s.task == file.name}
    assert own == shipped


def test_vectors_of_a_file_are_cut_as_those_of_a_task_that_ships(tmp_path: Path) -> None:
    file = own_files.pairs_file(tmp_path / "mine.csv")
    names = [f"compression:{own_files.NATURAL}", f"compression:{file}"]
    found = [harness.evaluate(MODEL, name).result.scores for name in names]
    shipped, own = ({s.metric: s.value for s in scores} for scores in found)
    assert own == shipped
    assert "spearman_first_128" in own


def test_frames_of_all_libraries_are_read_as_the_file_is(tmp_path: Path) -> None:
    import datasets
    import pyarrow

    frame = pd.DataFrame(
        own_files.embedded_pairs()[:40], columns=["sentence1", "sentence2", "score"]
    )
    file = own_files.pairs_file(tmp_path / "pairs.csv", 40)
    entries = [file, frame, pyarrow.Table.from_pandas(frame), datasets.Dataset.from_pandas(frame)]
    ids = [
        harness.evaluate(MODEL, str(one) if one is file else one).result.scores[0].protocol
        for one in entries
    ]
    assert len(set(ids)) == 1


def test_ids_are_of_the_content_and_not_of_the_path(tmp_path: Path) -> None:
    first = own_files.pairs_file(tmp_path / "a.csv", 40)
    (tmp_path / "deep").mkdir()
    moved = own_files.pairs_file(tmp_path / "deep" / "b.tsv", 40)
    other = own_files.pairs_file(tmp_path / "c.csv", 41)
    result = harness.evaluate(MODEL, [str(first), str(moved), str(other)]).result
    by_task = {s.task: s.protocol for s in result.scores if s.metric == "spearman"}
    assert by_task["a.csv"] == by_task["b.tsv"] != by_task["c.csv"]


def test_labelled_pairs_have_the_average_precision_of_scikit_learn_and_the_accuracy_of_the_library(
    tmp_path: Path,
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.evaluation import BinaryClassificationEvaluator

    from harness.sources import resolve_model

    pairs = own_files.embedded_pairs()[:120]
    gold = [int(one[2] >= 2.5) for one in pairs]
    words = ["yes" if one else "no" for one in gold]
    rows = [(a, b, w) for (a, b, _), w in zip(pairs, words, strict=True)]
    file = own_files.write_table(tmp_path / "p.csv", ("sentence1", "sentence2", "label"), rows)
    found = harness.evaluate(MODEL, str(file)).result
    assert found.outcomes is not None
    expected = average_precision_score(gold, found.outcomes["outcome"])
    assert values(found)["cosine_ap"] == pytest.approx(expected, abs=1e-6)
    model = SentenceTransformer(resolve_model(MODEL))
    evaluator = BinaryClassificationEvaluator(
        [a for a, _, _ in pairs], [b for _, b, _ in pairs], gold, similarity_fn_names=["cosine"]
    )
    library = evaluator(model)
    assert values(found)["cosine_accuracy"] == pytest.approx(library["cosine_accuracy"], abs=1e-9)
    assert values(found)["cosine_ap"] == pytest.approx(library["cosine_ap"], abs=1e-3)


def test_triplets_have_the_accuracy_of_the_library(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.evaluation import TripletEvaluator

    from harness.sources import resolve_model

    pairs = own_files.embedded_pairs()[:90]
    rows = [(a, b, pairs[(i + 1) % 90][1]) for i, (a, b, _) in enumerate(pairs)]
    file = tmp_path / "t.jsonl"
    names = ("anchor", "positive", "negative")
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    file.write_text("\n".join(lines), encoding="utf-8")
    model = SentenceTransformer(resolve_model(MODEL))
    library = TripletEvaluator(*map(list, zip(*rows, strict=True)))(model)
    found = values(harness.evaluate(MODEL, str(file)).result)
    assert found == {"accuracy": pytest.approx(library["cosine_accuracy"], abs=1e-6)}


def test_labelled_texts_have_the_accuracy_of_sentevals_task_on_its_own_files(
    tmp_path: Path,
) -> None:
    root = senteval_data.downstream(tmp_path / "senteval")
    rows = [
        (line, label)
        for name, label in (("rt-polarity.pos", "pos"), ("rt-polarity.neg", "neg"))
        for line in (root / "downstream" / "MR" / name).read_text("latin-1").splitlines()
    ]
    file = own_files.write_table(tmp_path / "mr.csv", ("text", "label"), rows)
    shipped = transfer_task("MR", root=root).evaluate(senteval_data.words, pooling="mean")
    assert values(score(senteval_data.words, str(file))) == values(shipped)


def test_a_train_part_is_learnt_from_and_the_test_part_scored(tmp_path: Path) -> None:
    rows = [(f"{mark} w{i}", mark, "train") for i in range(40) for mark in ("good", "bad")]
    rows += [(f"{mark} x{i}", mark, "test") for i in range(10) for mark in ("good", "bad")]
    file = own_files.write_table(tmp_path / "c.csv", ("text", "label", "split"), rows)
    result = score(senteval_data.words, str(file))
    assert values(result) == {"accuracy": 1.0}
    assert {s.n for s in result.scores if s.split == "test"} == {20}


def test_clusters_are_found_where_there_are_some(tmp_path: Path) -> None:
    rows = [(f"{mark} w{i}", mark) for i in range(30) for mark in ("red", "blue", "green")]
    file = own_files.write_table(tmp_path / "c.csv", ("text", "label"), rows)
    found = values(score(senteval_data.words, TaskFile(task=str(file), kind="clustering")))
    noise = values(score(senteval_data.noise, TaskFile(task=str(file), kind="clustering")))
    assert found["v_measure"] > 0.9 > 0.3 > noise["v_measure"]


def test_a_beir_folder_has_the_score_of_mtebs_task_on_the_same_data(tmp_path: Path) -> None:
    group = "natural"
    folder = own_files.beir_folder(
        tmp_path / "docs", embedded_rows("retrieval", RETRIEVAL_GROUPS[group])
    )
    found = harness.evaluate(MODEL, [f"Embedded-Retrieval-{group}", str(folder)]).result
    by_task = {s.task: (s.value, s.n) for s in found.scores if s.metric == "ndcg_at_10"}
    assert by_task["docs"] == by_task[f"Embedded-Retrieval-{group}"]


def test_scores_by_mteb_follow_a_file_that_changes(tmp_path: Path) -> None:
    origin = Origin("harness/words", "1", tmp_path / "results")
    texts = [f"{mark} w{i}" for i in range(30) for mark in ("red", "blue", "green")]
    file = tmp_path / "c.csv"
    found = []
    for labels in (["red", "blue", "green"] * 30, ["x"] * 45 + ["y"] * 45):  # then the halves
        own_files.write_table(file, ("text", "label"), zip(texts, labels, strict=True))
        (task,) = resolve_tasks([TaskFile(task=str(file), kind="clustering")])
        result = evaluate(senteval_data.words, [task], pooling="mean", origin=origin)
        found.append(result.scores[0].value)
    assert found[0] > 0.9 > 0.3 > found[1]
    folder = own_files.beir_folder(tmp_path / "docs", embedded_rows("retrieval", ("d",)))
    answers = folder / "qrels" / "test.tsv"
    grades = answers.read_text("utf-8")
    first = grades.splitlines()[1].split("\t")[1]
    for text in (grades, re.sub(r"p-\S+", first, grades)):  # then one passage answers all
        answers.write_text(text, "utf-8")
        (task,) = resolve_tasks([str(folder)])
        result = evaluate(senteval_data.words, [task], pooling="mean", origin=origin)
        found.append(result.scores[0].value)
    assert found[2] > 2 * found[3]


def test_other_names_of_columns_are_given_by_the_user(tmp_path: Path) -> None:
    rows = own_files.embedded_pairs()[:40]
    file = own_files.write_table(tmp_path / "q.csv", ("query", "Sentence2", "grade"), rows)
    columns = {"sentence1": "query", "score": "grade"}
    usual = own_files.pairs_file(tmp_path / "p.csv", 40)
    entries = [TaskFile(task=str(file), columns=columns), usual, str(usual)]
    entries.append({"task": str(file), "columns": columns, "name": "of a table"})
    tasks = resolve_tasks(entries)
    assert len({task.sha256 for task in tasks}) == 1
    assert tasks[-1].name == "of a table"
    with raises_input_error(file="suites", key="colums"):
        resolve_tasks([{"task": str(file), "colums": columns}])
    with raises_input_error(key="suites"):
        resolve_tasks([{"train": rows, "test": rows}])


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    files = []
    for number, folder in enumerate(("old", "new")):
        (tmp_path / folder).mkdir()
        files.append(str(own_files.pairs_file(tmp_path / folder / "pairs.csv", 40 + number)))
    names = [task.name for task in resolve_tasks(files)]
    assert len(set(names)) == 2
    assert np.all([name.startswith("pairs.csv") for name in names])


def test_one_file_with_two_readings_needs_a_name_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first of them would be scored."""
    monkeypatch.chdir(tmp_path)
    pairs = own_files.embedded_pairs()[:40]
    rows = [(*pair, str(number)) for number, pair in enumerate(pairs)]
    own_files.write_table(tmp_path / "p.csv", ("sentence1", "sentence2", "score", "other"), rows)
    other = {"task": "p.csv", "columns": {"score": "other"}}
    with raises_input_error(file="p.csv", key="suites"):
        resolve_tasks(["p.csv", other])
    assert len(resolve_tasks(["p.csv", {**other, "name": "by the other"}])) == 2
    assert len(resolve_tasks(["p.csv", "./p.csv"])) == 1


def test_a_file_that_is_called_as_a_task_needs_another_name(tmp_path: Path) -> None:
    """Only the first of them would be scored."""
    file = own_files.pairs_file(tmp_path / "p.csv", 40)
    mine = {"task": str(file), "name": own_files.NATURAL}
    for entries in ([own_files.NATURAL, mine], [mine, "embedded"]):
        with raises_input_error(file=str(file), key="name"):
            resolve_tasks(entries)
    assert [task.source for task in resolve_tasks([mine])] == ["file"]
