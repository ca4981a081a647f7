"""The map: components by hand, neighbours in all dimensions, a sample that is the same for every run, a small page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from harness.cli import main
from harness.evaluation.scoring import evaluate
from harness.evaluation.vector_sample import TEXTS, half
from harness.results.run_folder import RunFolder
from harness.results.text_ids import text_id
from harness.results.vector_samples import vectors_of
from harness.tasks.catalogue import resolve_tasks
from reports.explore.embedding_map import components, evenly, space_maps
from reports.explore.map_widget import map_widget
from reports.read.comparison_runs import read_comparison
from tests.reports.explore.conftest import CLASSES, PAIRS, vectors
from tests.support.synthetic import Invented

CLUSTERS = "Embedded-Clustering"


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rows that kept vectors, and one of an earlier version that kept none."""
    made = Invented(tmp_path_factory.mktemp("mapped"))
    tasks = resolve_tasks([PAIRS, CLASSES])
    for row in ("words", "letters", "earlier"):
        record = made.add(row, tasks=(), geometry=False, curves=False)
        result = evaluate(lambda texts, row=row: vectors(row, 1, texts), tasks, pooling="mean")
        made.extend(record, result.scores, protocols=result.protocols)
        if row != "earlier":
            assert result.sample is not None
            result.sample.to_parquet(RunFolder(made.workdir, record.id).sample_file)
    return made.workdir


def test_the_sample_is_the_same_texts_for_every_run(mapped: Path) -> None:
    folders = [RunFolder(mapped, path.name) for path in sorted((mapped / "runs").iterdir())]
    first, second, earlier = [folder.sample() for folder in folders]
    assert first["id"].tolist() == second["id"].tolist()
    assert first.groupby("task").size().to_dict() == {PAIRS: TEXTS, CLASSES: TEXTS}
    assert len(earlier) == 0
    pairs = resolve_tasks([PAIRS])[0].evaluate(lambda texts: np.ones((len(texts), 2), np.float32), pooling="mean").pairs
    assert isinstance(pairs, pd.DataFrame)
    both = set(zip(pairs["text1"], pairs["text2"], strict=True))
    ids = first["id"].tolist()[:2]
    assert tuple(ids) in both  # pairs stay together


def test_kept_vectors_are_those_of_the_texts_at_unit_length(mapped: Path) -> None:
    run = sorted((mapped / "runs").iterdir())[0].name
    sample = RunFolder(mapped, run).sample()
    by_id = {text_id(text): text for task in resolve_tasks([CLASSES]) for text in task.texts()}
    rows = sample[sample["task"] == CLASSES]
    kept = vectors_of(rows)
    assert np.linalg.norm(kept, axis=1) == pytest.approx(1, abs=2e-3)
    assert all(int(one) in by_id for one in rows["id"])
    assert half(np.array([[np.nan, 3.0, 4.0]])).tolist()[0] == pytest.approx([0, 0.6, 0.8], abs=1e-3)


def test_components_of_points_on_a_plane() -> None:
    plane = np.random.default_rng(0).normal(size=(30, 2)) * [3, 1]
    turned = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))[0][:2]
    xy, share = components((plane @ turned).astype(np.float32))
    assert share == pytest.approx(1)
    centred = plane - plane.mean(axis=0)
    assert np.linalg.norm(xy[:, None] - xy[None], axis=2) == pytest.approx(
        np.linalg.norm(centred[:, None] - centred[None], axis=2), abs=1e-4
    )
    assert components(np.ones((4, 3), np.float32))[1] == 0
    assert components(np.ones((4, 1), np.float32))[0].shape == (4, 2)


def test_neighbours_are_those_of_all_dimensions(mapped: Path) -> None:
    comparison = read_comparison(mapped, "invented")
    maps = space_maps(comparison, comparison.rows, 60)
    assert sorted(one.row.label for one in maps) == ["letters", "words"]
    assert maps[0].texts == maps[1].texts
    one = maps[0]
    cosines = one.vectors @ one.vectors.T
    for place in range(len(one.texts)):
        others = [other for other in np.argsort(-cosines[place], kind="stable") if other != place]
        assert one.cosines[place, 0] == pytest.approx(cosines[place, others[0]], abs=1e-5)
        assert place not in one.nearest[place]


def test_texts_are_taken_evenly() -> None:
    texts = [("a", "s", i) for i in range(10)] + [("b", "s", i) for i in range(2)]
    assert [task for task, _, _ in evenly(texts, 6)] == ["a"] * 3 + ["b"] * 2


def test_the_page_is_light_and_says_who_has_no_map(mapped: Path) -> None:
    widget = map_widget(read_comparison(mapped, "invented"), None)
    assert widget is not None
    assert len(json.dumps(widget.data)) < 300_000
    assert widget.caption.endswith("Without a map, as their runs kept no vectors: earlier.")
    assert {label.partition(":")[0] for label in widget.data["labels"]} == {CLASSES}
    assert all(0 <= number <= widget.data["scale"] for row in widget.data["rows"] for number in row["xy"])


def test_gold_clusters_are_known() -> None:
    (task,) = resolve_tasks([CLUSTERS])
    labels = task.labels()
    assert set(task.texts()) == set(labels)
    assert len(set(labels.values())) >= 8


def test_export_for_an_atlas(mapped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "atlas.parquet"
    assert main(["report", "atlas", "words", "--from", str(mapped), "--out", str(file)]) == 0
    frame = pd.read_parquet(file)
    assert {"x", "y", "text", "task", "label", "neighbors", "vector"} <= set(frame.columns)
    assert len(frame) == 2 * TEXTS
    assert frame["text"].str.len().min() > 0
    near = frame["neighbors"].iloc[0]
    assert len(near["ids"]) == len(near["distances"])
    assert main(["report", "atlas", "earlier", "--from", str(mapped), "--out", str(file)]) == 2
    assert "kept vectors" in capsys.readouterr().err
