"""Models that are trained elsewhere as rows of a comparison: one grammar for all of them."""

from __future__ import annotations

import importlib.util
import json
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

import harness
from harness.api.adoption import score_on_dev
from harness.api.repeat import locate_files
from harness.api.result import Comparison
from harness.cli import main
from harness.encoder.foreign import check_backend
from harness.errors import InputError
from harness.executors.executor import ExecutorSettings
from harness.runs.conditions import DevSettings
from harness.runs.differences import find_planned_differences
from harness.runs.experiment import Experiment, read_experiment
from harness.runs.pack import make_pack
from harness.runs.plan import Plan, make_plan
from harness.runs.selection import rehearse
from harness.sources import load_sts
from harness.tasks.catalogue import resolve_tasks
from tests.support import embedding_server
from tests.support.embedding_server import embed
from tests.support.errors import raises_input_error
from tests.support.short_runs import few_pairs, no_report

TASK = "Embedded-STS-natural"
ENCODERS = """
from tests.support.embedding_server import embed as words


def embed(texts):
    return words(texts)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh folder, few pairs, no report."""
    few_pairs(monkeypatch)
    no_report(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


def write_vectors(file: Path, seed: int = 0, noise: float = 0.3) -> str:
    """Write the vectors of the task's texts and of its dev set's, with noise that depends on the
    seed.
    """
    texts = list(dict.fromkeys(resolve_tasks([TASK])[0].texts()))
    texts = list(dict.fromkeys([*texts, *DevSettings(task=TASK).load().texts()]))
    drawn = np.random.default_rng(seed).standard_normal((len(texts), 64)).astype(np.float32)
    vectors = embed(texts) + noise * drawn * bool(seed)
    if file.suffix == ".npz":
        np.savez(file, text=np.array(texts), vector=vectors)
    else:
        pd.DataFrame({"text": texts, "vector": list(vectors)}).to_parquet(file)
    return str(file)


def experiment(rows: list[dict[str, Any]], **keys: Any) -> Experiment:
    return read_experiment({"name": "mine", "suites": [TASK], "dev": TASK, "methods": rows, **keys})


def plan(rows: list[dict[str, Any]], **keys: Any) -> Plan:
    return make_plan(experiment(rows, **keys), "mine.toml")


def compare(rows: list[Any], **options: Any) -> Comparison:
    return harness.compare(rows, suites=TASK, tracking_uri="none", formats=[], **options)


def scores_of(found: Comparison) -> dict[str, list[float]]:
    """Row -> its scores, seed by seed."""
    table = found.scores().query("metric == 'spearman' and aggregation == 'all'")
    return {str(row): list(part["value"]) for row, part in table.groupby("row")}


def reference(model: Any) -> float:
    scores = harness.evaluate(model, TASK).scores()
    return float(scores.query("metric == 'spearman' and aggregation == 'all'")["value"].iloc[0])


def test_every_form_has_the_score_that_evaluate_gives(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    (tmp_path / "rowmodel.py").write_text(ENCODERS)
    with embedding_server.serve() as server:
        rows = [
            {"model": write_vectors(tmp_path / "a.parquet")},
            {"model": write_vectors(tmp_path / "b.npz")},
            {"model": "rowmodel:embed"},
            {"model": f"{server.address}#words"},
            {"name": "object", "model": embed},
            {"model": "embedded:mini-bert"},
        ]
        found = compare(rows)
        sent = len(server.texts)
        assert sent == len(set(server.texts))
        assert reference(f"{server.address}#words") == reference(embed)
        assert len(server.texts) == sent, "evaluate uses the vectors of the row"
    scores = scores_of(found)
    value = reference(embed)
    expected = {row: [value] for row in ("a", "b", "embed", "words", "object")}
    assert scores == {**expected, "mini-bert": [reference("embedded:mini-bert")]}
    records = {record.row: record for record in found.records}
    for row in expected:
        assert records[row].status == "finished"
        assert "parameters" not in records[row].cost
    assert records["mini-bert"].cost["parameters"] > 0
    assert not records["a"].architecture, "a file says no time of a model"
    assert not records["words"].architecture
    assert records["object"].architecture


def test_the_id_is_that_of_the_content(tmp_path: Path) -> None:
    first = write_vectors(tmp_path / "a.npz", seed=1)
    ids = [job.id for job in plan([{"model": first}]).jobs]
    moved = tmp_path / "other.npz"
    Path(first).rename(moved)
    assert [job.id for job in plan([{"model": str(moved)}]).jobs] == ids
    write_vectors(moved, seed=2)
    assert [job.id for job in plan([{"model": str(moved)}]).jobs] != ids


def test_the_id_of_a_function_is_its_source_and_what_is_stated(tmp_path: Path) -> None:
    def ids(module: str, **config: Any) -> list[str]:
        row = {"model": f"{module}:embed", "config": config}
        return [job.id for job in plan([row]).jobs]

    (tmp_path / "first.py").write_text("def embed(texts):\n    return [[1.0]] * len(texts)\n")
    (tmp_path / "helper.py").write_text("VALUE = 1.0\n")
    (tmp_path / "second.py").write_text(
        "from helper import VALUE\ndef embed(texts):\n    return [[VALUE]] * len(texts)\n"
    )
    assert ids("first") == ids("first")
    assert ids("first") != ids("first", version="2026-10")
    inputs = plan([{"model": "second:embed"}]).jobs[0].spec.inputs
    assert inputs != plan([{"model": "first:embed"}]).jobs[0].spec.inputs


def test_three_models_are_three_seeds(tmp_path: Path) -> None:
    files = [write_vectors(tmp_path / f"{seed}.npz", seed) for seed in (1, 2, 3)]
    row = {"name": "theirs", "model_by_seed": files}
    found = compare([row, "pooling"], seeds=3)
    assert scores_of(found)["theirs"] == [reference(file) for file in files]
    assert len(set(scores_of(found)["theirs"])) == 3
    assert len({record.id for record in found.records if record.row == "theirs"}) == 3


def test_copies_of_one_model_are_no_seeds(tmp_path: Path) -> None:
    first = write_vectors(tmp_path / "1.npz", 1)
    copy = shutil.copyfile(first, tmp_path / "copy.npz")
    with raises_input_error(key="model_by_seed"):
        plan([{"name": "theirs", "model_by_seed": [first, str(copy)]}], seeds=2)


def test_each_seed_is_scored_on_dev_with_its_own_model(tmp_path: Path) -> None:
    files = [write_vectors(tmp_path / f"{seed}.npz", seed) for seed in (1, 2)]
    found = compare([{"name": "theirs", "model_by_seed": files}], seeds=2, workdir="work")
    assert found.experiment is not None
    scores = score_on_dev(Path("work"), found.experiment, found.records)
    dev = DevSettings(task=TASK).load()
    for record in found.records:
        model: Any = harness.load_model(files[record.seed - 1])
        assert scores[record.id] == dev.score(model.encode)
    assert len(set(scores.values())) == 2


def test_a_better_model_without_weights_is_named_and_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("harness.sources", "harness.sources.pair_sets"):  # all pairs
        monkeypatch.setattr(f"{module}.load_sts", load_sts)
    noisy = write_vectors(tmp_path / "noisy.npz", seed=1, noise=30.0)
    clear = write_vectors(tmp_path / "clear.npz")
    rows = [{"name": "ours", "model": noisy}, {"name": "theirs", "model": clear}]
    keys = {"methods": rows, "incumbent": "ours", "dev": TASK, "suites": [TASK]}
    found = harness.compare(keys, workdir="work", tracking_uri="none", formats=[])
    decision = json.loads(Path("work/decision.json").read_text())
    assert (decision["decision"], decision["row"]) == ("adopt", "theirs")
    assert "clear.npz" in found.decision
    assert not Path("work/best").exists()


def test_a_rehearsal_has_as_many_models_as_seeds(tmp_path: Path) -> None:
    files = [write_vectors(tmp_path / f"{seed}.npz", seed) for seed in (1, 2, 3)]
    small = rehearse(experiment([{"name": "theirs", "model_by_seed": files}]))
    assert small.seeds == [1]
    assert [job.spec.config["model_by_seed"] for job in make_plan(small, "mine.toml").jobs] == [
        files[:1]
    ]


def test_no_seeds_are_added_to_models_by_seed(tmp_path: Path) -> None:
    files = [write_vectors(tmp_path / f"{seed}.npz", seed) for seed in (1, 2, 3)]
    with raises_input_error(key="--until"):
        compare([{"name": "theirs", "model_by_seed": files}], seeds=3, until="decided")


@pytest.mark.parametrize("seeds", [2, 4, [4, 5, 6]])
def test_another_number_of_models_than_of_seeds(tmp_path: Path, seeds: Any) -> None:
    files = [write_vectors(tmp_path / f"{seed}.npz", seed) for seed in (1, 2, 3)]
    with pytest.raises(InputError) as caught:
        plan([{"name": "theirs", "model_by_seed": files}], seeds=seeds)
    assert caught.value.file == "mine.toml"
    assert caught.value.key is not None
    assert "model_by_seed" in caught.value.key


def test_a_failing_model_is_a_failed_row_and_the_others_go_on(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    texts = list(dict.fromkeys(resolve_tasks([TASK])[0].texts()))
    np.savez(tmp_path / "few.npz", text=np.array(texts[2:]), vector=embed(texts[2:]))
    with embedding_server.serve() as server:
        server.faults = [None]
        server.always = embedding_server.shorter
        found = compare(
            [{"model": "few.npz"}, {"model": f"{server.address}#words"}, {"model": embed}]
        )
    records = {record.row: record for record in found.records}
    assert [records[row].status for row in ("few", "words", "embed")] == [
        "failed",
        "failed",
        "finished",
    ]
    assert "2 of" in records["few"].reason
    assert "64" in records["words"].reason
    for row in ("few", "words"):  # the fault is not in the code of the method that ships
        assert "methods" not in records[row].reason


@pytest.mark.parametrize(
    ("config", "key"),
    [({"pooling": "mean"}, "pooling"), ({"max_length": 8}, "max_length")],
)
def test_settings_that_vectors_cannot_have(
    tmp_path: Path, config: dict[str, Any], key: str
) -> None:
    file = write_vectors(tmp_path / "a.npz")
    with raises_input_error(file="mine.toml: methods[1] (a)", key=key):
        plan([{"model": file, "config": config}])


@pytest.mark.parametrize("model", ["no.parquet", "nomodule:embed", "mteb:nobody/nothing"])
def test_a_model_that_is_not_there_is_found_before_anything_runs(model: str) -> None:
    with pytest.raises(InputError):
        plan([{"model": model}])


def test_files_of_vectors_go_with_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *files = [write_vectors(Path(f"{seed}.npz"), seed) for seed in (1, 2, 3)]
    rows = [{"model": first}, {"name": "theirs", "model_by_seed": files}]
    compare(rows, seeds=2, workdir="work", dev={"task": TASK})
    assert main(["pack", "comparison", "--workdir", "work", "--out", "all.zip"]) == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert main(["reproduce", "../all.zip", "--run", "new"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("equal: ")
    with pytest.raises(InputError):
        locate_files({"methods": [{"model": "../theirs.npz"}]}, elsewhere, "all.zip")
    monkeypatch.chdir(tmp_path)
    write_vectors(Path(first), seed=4)
    with pytest.raises(InputError) as caught:
        make_pack(tmp_path / "work", "comparison")
    assert caught.value.file == str(tmp_path / first)


def test_the_dry_run_says_what_is_not_known(tmp_path: Path) -> None:
    file = write_vectors(tmp_path / "a.npz")
    model = "mteb:openai/text-embedding-3-small"
    found = find_planned_differences(
        plan([{"model": file}, {"model": model}, {"method": "pooling"}])
    )
    texts = {key: list(values) for key, values in found.texts.items()}
    assert texts["pooling"] == ["unknown", "unknown", "mean"]
    assert texts["max_length"] == ["unknown", "unknown", "all"]
    assert texts["prompts"] == ["none", "of its makers", "none"]
    assert all(text.startswith("own vectors") for text in texts["loop"][:2])
    assert "base_model" not in texts  # a finished model has none
    assert texts["finished_model"] == [file, model, ""]


def test_a_row_has_one_model_or_one_for_each_seed() -> None:
    row = {"model": "encoders:embed", "model_by_seed": ["a.npz", "b.npz"]}
    with raises_input_error(key="model"):
        plan([row], seeds=2)


def test_a_row_has_a_method_or_a_model() -> None:
    with raises_input_error(key="model"):
        plan([{"method": "pooling", "model": "embedded:mini-bert"}])


class Doubling:
    """An object with `encode` that takes no options."""

    def encode(self, texts: list[str]) -> list[list[float]]:
        return (2 * embed(texts)).tolist()  # type: ignore[no-any-return]


def test_objects_are_rows_of_one_process() -> None:
    found = compare([Doubling(), {"name": "function", "model": embed}, "pooling"])
    scores = scores_of(found)
    assert scores["Doubling"] == scores["function"] == [reference(embed)]
    again = compare([Doubling(), "pooling"])
    ids = {record.row: record.id for record in found.records}
    assert {record.row: record.id for record in again.records}["Doubling"] == ids["Doubling"]
    assert ids["Doubling"] != ids["function"], "other vectors"


def test_an_object_is_not_sent_to_other_processes() -> None:
    with pytest.raises(InputError) as caught:
        compare([embed, "pooling"], executor=ExecutorSettings(name="processes"))
    assert "module:function" in str(caught.value.remedy)
    assert len(str(caught.value).splitlines()) == 1


def test_an_object_of_another_process_is_one_line() -> None:
    with raises_input_error(file="mine.toml: methods[1]") as caught:
        plan([{"name": "theirs", "method": "python:0123456789abcdef"}])
    assert len(str(caught.value)) < 300


def test_two_objects_of_one_name_need_names() -> None:
    with pytest.raises(InputError):
        compare([Doubling(), Doubling()])


def test_a_loss_is_no_model() -> None:
    def loss(a: Any, b: Any) -> Any:
        return (a - b).square().sum()

    with pytest.raises(InputError) as caught:
        compare([loss])
    assert "harness.loss" in str(caught.value.remedy)


@pytest.mark.parametrize("backend", ["onnx", "openvino"])
def test_a_backend_that_is_not_installed_is_one_line(
    backend: Literal["onnx", "openvino"],
) -> None:
    if importlib.util.find_spec("optimum") is not None:
        pytest.skip("optimum is installed")
    row = {"model": "embedded:mini-bert", "config": {"backend": backend}}
    for call in (
        lambda: plan([row]),
        lambda: harness.evaluate("embedded:mini-bert", TASK, backend=backend),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.key == "backend"
        assert f"sentence-transformers[{backend}]" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("needed", "suits"),
    [("transformers<4.58.0,>=4.36", False), ("transformers>=4.36", True), ("numpy", True)],
)
def test_a_backend_that_needs_other_transformers_is_one_line(
    needed: str, suits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "optimum"
    (package / "onnxruntime").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "onnxruntime" / "__init__.py").touch()
    (tmp_path / "onnxruntime.py").touch()
    about = tmp_path / "optimum_onnx-9.0.dist-info"
    about.mkdir()
    lines = ["Metadata-Version: 2.1", "Name: optimum-onnx", "Version: 9.0"]
    lines.append(f"Requires-Dist: {needed}")
    (about / "METADATA").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    if suits:
        check_backend("onnx")
        return
    with raises_input_error(key="backend") as caught:
        check_backend("onnx")
    assert "optimum-onnx 9.0" in str(caught.value)
    assert metadata.version("transformers") in str(caught.value)
