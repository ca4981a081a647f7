"""Prompts stand before the texts of each kind of task and enter protocol ids; mteb's loader reads what is written."""

from __future__ import annotations

import json
from pathlib import Path

import mteb
import numpy as np
import pytest

from harness.api import evaluate
from harness.encoder import Encoder
from harness.errors import InputError
from harness.tasks.prompts import Prompts

MODEL = "embedded:mini-bert"


@pytest.fixture(scope="module")
def prompted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model whose configuration has prompts, and names none as its default."""
    folder = tmp_path_factory.mktemp("prompted") / "model"
    Encoder.from_pretrained(MODEL, pooling="mean").save(folder)
    file = folder / "config_sentence_transformers.json"
    prompts = {"STS": "Instruct: similar meaning. ", "query": "search for: ", "document": ""}
    file.write_text(json.dumps({**json.loads(file.read_text()), "prompts": prompts}))
    return folder


def test_the_key_that_fits_best_counts() -> None:
    prompts = Prompts({"STS": "a", "Retrieval-query": "b", "query": "c", "ArguAna": "d", "default": "e"})
    assert [
        prompts.of("STS12", "STS"), prompts.of("NQ", "Retrieval", "query"), prompts.of("X", "Reranking", "query"),
        prompts.of("ArguAna", "Retrieval", "query"), prompts.of("NQ", "Retrieval", "document"),
    ] == ["a", "b", "c", "d", "e"]  # fmt: skip
    assert Prompts({"query": "c"}).of("MR", "Classification") == ""


def test_prompts_change_vectors_and_ids_and_are_told_where_unused(prompted: Path) -> None:
    suites = ["Embedded-STS-natural", "Embedded-Retrieval-natural"]
    plain = evaluate(prompted, suites, cached=False)
    assert '"STS", "query"' in plain.remark
    own = evaluate(prompted, suites, cached=False, prompts="own")
    given = evaluate(prompted, suites, cached=False, prompts={"STS": "Instruct: similar meaning. "})
    bare = evaluate(MODEL, suites, cached=False)

    def told(evaluation):  # type: ignore[no-untyped-def]
        scores = evaluation.result.scores
        return {(s.task, s.metric, s.aggregation): (s.value, s.protocol, s.comparable) for s in scores}

    a, b, c, d = map(told, (plain, own, given, bare))
    assert a == d, "an id without prompts stays what it was"
    for key in a:
        assert b[key][0] != a[key][0], key
        assert b[key][1] != a[key][1] != c[key][1] != b[key][1], key
        assert b[key][2] == a[key][2]
        assert (c[key][0] == b[key][0]) == key[0].startswith("Embedded-STS"), "the query's prompt is for queries"
    pairs = own.result.pairs
    assert pairs is not None
    vectors = Encoder.load(prompted).encode(["Instruct: similar meaning. A.", "Instruct: similar meaning. B."])
    assert np.isfinite(vectors).all()
    with pytest.raises(InputError, match="has none in its config"):
        evaluate(MODEL, suites, prompts="own")


def test_mteb_s_own_loader_reads_the_results(tmp_path: Path) -> None:
    suites = ["Embedded-Clustering", "Embedded-Retrieval-natural"]
    with pytest.raises(InputError, match="--model-name: expected ORG/NAME"):
        evaluate(MODEL, suites, mteb_results=tmp_path)
    scored = evaluate(MODEL, suites, cached=False, mteb_results=tmp_path, model_name="org/mini", revision="0123abc")
    folder = tmp_path / "results" / "org__mini" / "0123abc"
    meta = json.loads((folder / "model_meta.json").read_text())
    assert (meta["name"], meta["revision"]) == ("org/mini", "0123abc")
    read = mteb.ResultCache(tmp_path).load_results(include_remote=False)
    (model,) = read.model_results
    assert (model.model_name, model.model_revision) == ("org/mini", "0123abc")
    found = {result.task_name: result for result in model.task_results}
    ours = {score.task.removesuffix("-natural"): score.value for score in scored.result.scores}
    assert found.keys() == ours.keys()
    for task, value in ours.items():
        assert found[task].get_score() == pytest.approx(value, abs=1e-5)
