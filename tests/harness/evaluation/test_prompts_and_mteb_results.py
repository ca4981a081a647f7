"""Prompts stand before the texts of each kind of task and enter protocol ids; mteb's loader reads
what is written.
"""

from __future__ import annotations

import json
from pathlib import Path

import mteb
import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from harness import registry
from harness.api import compare, evaluate, load_model, sensitivity
from harness.encoder import Encoder
from harness.encoder.foreign import own_prompts
from harness.method import FitContext
from harness.tasks.catalogue import resolve_tasks
from harness.tasks.prompts import Prompts
from reports.read.score_tables import read_scores
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

MODEL = narrow_bert()
pytestmark = pytest.mark.usefixtures("few_pairs")


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
    prompts = Prompts(
        {"STS": "a", "Retrieval-query": "b", "query": "c", "ArguAna": "d", "default": "e"}
    )
    assert [
        prompts.of("STS12", "STS"),
        prompts.of("NQ", "Retrieval", "query"),
        prompts.of("X", "Reranking", "query"),
        prompts.of("ArguAna", "Retrieval", "query"),
        prompts.of("NQ", "Retrieval", "document"),
    ] == ["a", "b", "c", "d", "e"]
    assert Prompts({"query": "c"}).of("MR", "Classification") == ""


def test_tasks_of_labelled_texts_have_the_prompt_of_classification() -> None:
    """As mteb's tasks on such texts have it; pairs with scores have that of STS."""
    prompts = Prompts({"Classification": "c: ", "STS": "s: "})
    labelled = ["MR", "knn:MR", "Embedded-Questions", "knn:Embedded-Questions", "Length"]
    scored = ["STS-B", "geometry:STS-B", "compression:STS-B", "Embedded-Phenomena-roles"]
    for task in resolve_tasks([*labelled, *scored]):
        assert prompts.of_task(task) == ("c: " if task.name in labelled else "s: "), task.name


def test_prompts_leave_the_model_of_the_caller_as_it_is(prompted: Path) -> None:
    """Its default prompt was lost, so that it had other scores from then on."""
    texts = {"own": "search for: "}
    model = SentenceTransformer(str(prompted), prompts=texts, default_prompt_name="own")
    task = "Embedded-STS-natural"
    before = evaluate(model, task).scores()["value"].tolist()
    other = evaluate(model, task, prompts={"STS": "Instruct: similar meaning. "})
    sensitivity(model, task, vary={"batch_size": [8]}, prompts={"STS": "x "})
    unfit = evaluate(model, task, prompts={"Retrieval": "x "})  # no prompt at all
    ids = {one.result.scores[0].protocol for one in (unfit, other, evaluate(model, task))}
    assert len(ids) == 3
    assert model.default_prompt_name == "own"
    assert evaluate(model, task).scores()["value"].tolist() == before
    assert other.scores()["value"].tolist() != before
    encoder = load_model(prompted)
    assert isinstance(encoder, Encoder)
    encoder.include_prompt = False
    evaluate(encoder, task, prompts={"STS": "a "})
    assert encoder.left_out == ()


def test_prompts_change_vectors_and_ids_and_are_told_where_unused(prompted: Path) -> None:
    suites = ["Embedded-STS-natural", "Embedded-Retrieval-natural"]
    plain = evaluate(prompted, suites, cached=False)
    assert '"STS", "query"' in plain.remark
    own = evaluate(prompted, suites, cached=False, prompts="own")
    given = evaluate(prompted, suites, cached=False, prompts={"STS": "Instruct: similar meaning. "})
    bare = evaluate(MODEL, suites, cached=False)

    def told(evaluation):  # type: ignore[no-untyped-def]
        scores = evaluation.result.scores
        return {
            (s.task, s.metric, s.aggregation): (s.value, s.protocol, s.comparable) for s in scores
        }

    a, b, c, d = map(told, (plain, own, given, bare))
    assert a == d, "an id without prompts stays what it was"
    for key in a:
        assert b[key][0] != a[key][0], key
        assert b[key][1] != a[key][1] != c[key][1] != b[key][1], key
        assert b[key][2] == a[key][2]
        assert (c[key][0] == b[key][0]) == key[0].startswith("Embedded-STS"), (
            "the query's prompt is for queries"
        )
    pairs = own.result.pairs
    assert pairs is not None
    vectors = Encoder.load(prompted).encode(
        ["Instruct: similar meaning. A.", "Instruct: similar meaning. B."]
    )
    assert np.isfinite(vectors).all()
    with raises_input_error(file=MODEL, key="prompts"):
        evaluate(MODEL, suites, prompts="own")


def test_mteb_s_own_loader_reads_the_results(tmp_path: Path) -> None:
    suites = ["Embedded-Clustering", "Embedded-Retrieval-natural"]
    with raises_input_error(key="--model-name"):
        evaluate(MODEL, suites, mteb_results=tmp_path)
    with raises_input_error(key="--revision"):  # it names a folder
        evaluate(MODEL, suites, mteb_results=tmp_path, model_name="org/mini", revision="../../..")
    assert not list(tmp_path.iterdir())
    scored = evaluate(
        MODEL,
        suites,
        cached=False,
        mteb_results=tmp_path,
        model_name="org/mini",
        revision="0123abc",
    )
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


def test_settings_make_an_experiment_of_mteb_and_are_written_down(tmp_path: Path) -> None:
    name = {"mteb_results": tmp_path, "model_name": "org/mini", "revision": "0123abc"}
    for pooling in (None, "cls"):
        evaluate(MODEL, "Embedded-Clustering", pooling=pooling, cached=False, batch_size=16, **name)  # type: ignore[arg-type]
    cache = mteb.ResultCache(tmp_path)
    (usual,) = cache.load_results(
        include_remote=False, load_experiments="no_experiments"
    ).model_results
    both = cache.load_results(include_remote=False, load_experiments="match_name").model_results
    assert len(both) == 2
    meta = json.loads(
        (tmp_path / "results/org__mini/0123abc/experiments/pooling_cls/model_meta.json").read_text()
    )
    assert meta["experiment_kwargs"] == {"pooling": "cls"}
    assert {"batch_size": 16, "pooling": "cls"}.items() <= meta["loader_kwargs"].items()
    scores = read_scores(tmp_path)
    assert sorted(scores["row"]) == ["org/mini", "org/mini (pooling_cls)"]
    assert usual.task_results[0].get_score() == pytest.approx(
        scores["score"][scores["row"] == "org/mini"].item()
    )


def test_a_row_is_scored_with_its_prompts_and_marked(prompted: Path, tmp_path: Path) -> None:
    """As `evaluate` scores it: the same values and ids; rows with the same model, with and without,
    are two runs.
    """
    row = {"method": "pretrained", "config": {"model": str(prompted)}}
    own = {
        "method": "pretrained",
        "name": "prompted",
        "config": {"model": str(prompted), "prompts": "own"},
    }
    experiment = {"name": "prompts", "suites": ["Embedded-STS-natural"], "methods": [row, own]}
    found = compare(experiment, workdir=tmp_path / "work", tracking_uri="none", formats=["md"])
    plain, with_own = found.records
    assert plain.id != with_own.id
    alone = evaluate(prompted, experiment["suites"], cached=False, prompts="own").result.scores  # type: ignore[arg-type]
    assert [s.value for s in with_own.scores] == pytest.approx([s.value for s in alone], abs=1e-6)
    assert [s.comparable for s in with_own.scores] == [s.comparable for s in plain.scores]
    assert {s.protocol for s in with_own.scores}.isdisjoint(s.protocol for s in plain.scores)
    page = found.report["md"].read_text()
    assert 'STS "Instruct: similar meaning. ", query "search for: "' in page, (
        "the prompts that were used"
    )
    assert '"STS", "query"' in page, "those that the other row could have used"
    assert "prompts" in found._repr_html_()


def test_prompts_of_a_row_that_cannot_be_had_are_one_line(tmp_path: Path) -> None:
    row = {"method": "pretrained", "config": {"model": MODEL, "prompts": "own"}}
    with raises_input_error(file=MODEL, key="prompts"):
        compare([row], workdir=tmp_path / "work", tracking_uri="none")
    with raises_input_error(file='experiment "comparison": methods[1] (pretrained)', key="prompts"):
        compare(
            [{**row, "config": {"model": MODEL, "prompts": {}}}],
            workdir=tmp_path / "work",
            tracking_uri="none",
        )


def test_a_list_of_prompts_has_one_a_seed_and_their_spread(tmp_path: Path) -> None:
    texts: list[dict[str, str]] = [{"STS": "query: "}, {"default": "Instruct: similar meaning. "}]
    row = {"method": "pretrained", "name": "prompts", "config": {"model": MODEL, "prompts": texts}}
    task = "Embedded-STS-natural"
    found = compare(
        [row],
        seeds=[1, 2],
        suites=[task],
        workdir=tmp_path / "work",
        tracking_uri="none",
        formats=["md"],
    )
    alone = [evaluate(MODEL, task, cached=False, prompts=one).result.scores for one in texts]
    assert [[s.value for s in record.scores] for record in found.records] == [
        [s.value for s in of] for of in alone
    ]
    page = next((tmp_path / "work").glob("reports/*/report.md")).read_text()
    assert 'STS "query: ", or default "Instruct: similar meaning. "' in page

    kind = registry.load(registry.METHODS, "pretrained")
    settings = kind.configure(row["config"])
    method = kind(settings).fit(None, FitContext(seed=2))
    method.save(tmp_path / "model")
    assert kind.load(tmp_path / "model").prompts.by_key == texts[1]
    with raises_input_error(key="prompts"):
        kind(settings).fit(None, FitContext(seed=3))


def test_equal_prompts_are_no_seeds() -> None:
    kind = registry.load(registry.METHODS, "pretrained")
    same = [{"STS": "query: "}, {"STS": "query: "}]
    with raises_input_error():
        kind.configure({"model": MODEL, "prompts": same})


def test_a_saved_row_keeps_its_prompts(prompted: Path, tmp_path: Path) -> None:
    kind = registry.load(registry.METHODS, "pretrained")
    method = kind(kind.configure({"model": str(prompted), "prompts": {"STS": "a: "}})).fit()
    method.save(tmp_path / "model")
    assert kind.load(tmp_path / "model").prompts.by_key == {"STS": "a: "}
    assert own_prompts(str(tmp_path / "model")) == {"STS": "a: "}


def test_keys_that_fit_no_task_are_named_and_change_no_id() -> None:
    scored = evaluate(MODEL, "Embedded-STS-natural", cached=False, prompts={"sts": "query: "})
    (note,) = [note for note in scored.result.notes if "prompt" in note]
    for key in ('"sts"', '"Embedded-STS-natural"', '"STS"', '"default"'):  # given, and looked for
        assert key in note
    plain = evaluate(MODEL, "Embedded-STS-natural", cached=False)
    assert [one.protocol for one in scored.result.scores] == [
        one.protocol for one in plain.result.scores
    ]
    in_hand = evaluate(
        Encoder.load(MODEL).encode, "Embedded-STS-natural", prompts={"STS": "query: "}
    )
    named = evaluate(MODEL, "Embedded-STS-natural", cached=False, prompts={"STS": "query: "})
    assert in_hand.scores()["value"].tolist() == pytest.approx(
        named.scores()["value"].tolist(), abs=1e-6
    )
