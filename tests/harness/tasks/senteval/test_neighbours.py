"""Accuracy of the nearest neighbours: equal to scikit-learn's, and to counting by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

import harness
from harness.errors import InputError
from harness.sources.senteval.labelled import in_order
from harness.tasks.catalogue import resolve_tasks, suite
from harness.tasks.senteval.neighbours import NeighbourTask, predict_labels
from harness.tasks.senteval.transfer import ClassificationTask

DRAW = np.random.default_rng(3)
CENTRES = DRAW.standard_normal((3, 6)) + 0.3
CLASSES = 3


def vectors_of(texts: list[str]) -> np.ndarray:
    """Return vectors around the centre of the label, which is the last sign of a text."""
    rows = []
    for text in texts:
        noise = np.random.default_rng(int(text.split()[0])).standard_normal(6)
        rows.append(CENTRES[int(text[-1])] + noise)
    return np.stack(rows).astype(np.float32)


def examples(count: int, first: int) -> list[tuple[str, str, float]]:
    labels = np.random.default_rng(first).integers(0, CLASSES, count)
    return [(f"{first + n} text {label}", "", float(label)) for n, label in enumerate(labels)]


def test_a_test_part_is_scored_as_scikit_learn_scores_it() -> None:
    parts = {"train": examples(70, 0), "dev": examples(20, 1000), "test": examples(40, 2000)}
    task = NeighbourTask(ClassificationTask("own", lambda: in_order(parts, CLASSES)))
    assert task.name == "knn:own"
    assert not {text for text, _, _ in parts["dev"]} & {*task.texts()}
    result = task.evaluate(vectors_of, pooling="mean")
    data = in_order(parts, CLASSES).parts
    model = KNeighborsClassifier(10, metric="cosine")
    model.fit(vectors_of(data["train"].first), data["train"].labels)
    expected = model.score(vectors_of(data["test"].first), data["test"].labels)
    (score,) = result.scores
    assert (score.metric, score.n, score.value) == ("accuracy", 40, pytest.approx(expected))
    assert 0.4 < expected < 1
    assert result.outcomes is not None
    assert result.outcomes["outcome"].mean() == pytest.approx(expected)
    assert result.protocols[score.comparable]["neighbours_from"] == "train"


def test_a_set_without_parts_is_cut_into_ten_folds() -> None:
    load = lambda: in_order({"all": examples(90, 0)}, CLASSES)  # noqa: E731
    result = NeighbourTask(ClassificationTask("own", load)).evaluate(vectors_of, pooling="mean")
    data = load().parts["all"]
    folds = StratifiedKFold(10, shuffle=True, random_state=1111)
    model = KNeighborsClassifier(10, metric="cosine")
    predicted = cross_val_predict(model, vectors_of(data.first), data.labels, cv=folds)
    expected = float((predicted == data.labels).mean())
    assert result.scores[0].value == pytest.approx(expected)
    assert result.outcomes is not None
    assert result.outcomes["subset"].nunique() == 10


def test_the_commonest_label_of_the_nearest_wins_and_length_does_not_count() -> None:
    x = np.array([[9.0, 0], [8, 1], [0.1, 0.11], [0, 5], [1, 9]], dtype=np.float32)
    labels = np.array([1, 1, 0, 2, 2])
    tested = np.array([[100.0, 1], [0.001, 0.1]], dtype=np.float32)
    assert predict_labels(x, labels, tested, neighbours=3).tolist() == [1, 2]
    # All five are asked: two 1 and two 2, of which the smaller is taken.
    assert predict_labels(x, labels, tested).tolist() == [1, 1]


def test_a_file_of_labelled_texts_has_it_and_pairs_have_not(tmp_path: Path) -> None:
    file = tmp_path / "topics.csv"
    lines = [f"{text},{label:.0f}" for text, _, label in examples(60, 0)]
    file.write_text("text,label\n" + "\n".join(lines) + "\n")
    (task,) = resolve_tasks([f"knn:{file}"])
    assert task.name == "knn:topics.csv"
    found = harness.evaluate("embedded:mini-bert", f"knn:{file}").scores()
    assert found["task"].tolist() == ["knn:topics.csv"]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2,score\n" + "a,b,1\nc,d,2\n" * 3)
    with pytest.raises(InputError) as caught:
        resolve_tasks([f"knn:{pairs}"])
    assert str(pairs) in str(caught.value.file)


def test_suites_name_tasks_of_single_texts() -> None:
    for name, of in (("knn", "transfer"), ("embedded-knn", "embedded-transfer")):
        tasks = resolve_tasks([name])
        chance = {f"knn:{task}": suite(of).chance_of(task) for task in suite(of).tasks}
        shared = chance.keys() & {task.name for task in tasks}
        assert len(shared) >= 4
        assert all(suite(name).chance_of(task) == chance[task] for task in shared)
    (questions,) = resolve_tasks(["knn:Embedded-Questions"])
    (classified,) = resolve_tasks(["Embedded-Questions"])
    assert questions.sha256 == classified.sha256  # type: ignore[attr-defined]
