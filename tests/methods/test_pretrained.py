"""Finished models as rows, `harness evaluate`'s way to open them, and those that only
sentence-transformers knows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.encoder import Encoder
from harness.encoder.foreign import ForeignEncoder, open_model, run_by_sentence_transformers
from harness.errors import NotFitted
from harness.evaluation.any_model import open_for_evaluation
from harness.method import FitContext
from harness.runs.experiment import read_experiment
from harness.runs.plan import make_plan
from harness.sources.embedded import model_fingerprint
from methods.pooling import PoolingMethod
from methods.pretrained import Pretrained
from methods.static import Static
from tests.support.errors import raises_input_error

TEXTS = ["A dog runs across the field.", "Two children play chess.", "", "rain"]


def pretrained(model: Path | str, **values: Any) -> Pretrained:
    return Pretrained(Pretrained.configure({"model": str(model), **values}))


def pooled(**values: Any) -> PoolingMethod:
    return PoolingMethod(PoolingMethod.configure(values)).fit()


@pytest.fixture(scope="module")
def cls_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model whose own pooling is the first token's."""
    path = tmp_path_factory.mktemp("pretrained") / "cls"
    pooled(pooling="cls", max_length=20).encoder.save(path)
    return path


@pytest.fixture(scope="module")
def prompted(cls_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a prompt, which our encoder does not know."""
    import shutil

    path = tmp_path_factory.mktemp("pretrained") / "prompted"
    shutil.copytree(cls_model, path)
    file = path / "config_sentence_transformers.json"
    settings = {
        **json.loads(file.read_text()),
        "prompts": {"query": "query: "},
        "default_prompt_name": "query",
    }
    file.write_text(json.dumps(settings))
    return path


def test_pooling_as_the_model_says_unless_told_otherwise(cls_model: Path) -> None:
    method = pretrained(cls_model)
    with pytest.raises(NotFitted):
        method.encode("early")
    vectors = np.asarray(method.fit(None, FitContext()).encode(TEXTS))
    assert np.allclose(vectors, pooled(pooling="cls", max_length=20).encode(TEXTS), atol=1e-6)
    assert method.encoder.max_length == 20
    assert pretrained(cls_model, max_length=10).fit().encoder.max_length == 10
    mean = pretrained(cls_model, pooling="mean", max_length=20).fit()
    assert np.allclose(
        mean.encode(TEXTS), pooled(pooling="mean", max_length=20).encode(TEXTS), atol=1e-6
    )
    with raises_input_error(file='method "pretrained"', key="pooling"):
        Pretrained.configure({"pooling": "median"})


def test_a_length_above_the_stated_one_is_used(cls_model: Path, prompted: Path) -> None:
    texts = ["the sun " * 40]
    ours = pretrained(cls_model, max_length=60).fit()
    assert np.allclose(ours.encode(texts), pooled(pooling="cls", max_length=60).encode(texts))
    foreign = open_for_evaluation(str(prompted), max_length=60).model
    assert foreign.model.max_seq_length == 60
    ids = {pretrained(cls_model, max_length=n).inputs.get("length") for n in (None, 20)}
    assert ids == {None}, "runs that were cut as they said keep their ids"
    assert pretrained(cls_model, max_length=60).inputs["length"]


@pytest.mark.parametrize("model", ["cls_model", "prompted"])
def test_a_length_beyond_the_positions_is_refused(
    model: str, request: pytest.FixtureRequest
) -> None:
    folder = str(request.getfixturevalue(model))
    with raises_input_error(key="max_length"):
        open_for_evaluation(folder, max_length=10_000)
    with raises_input_error(key="max_length"):
        pretrained(Path(folder), max_length=10_000).fit()


def test_what_a_row_says_about_itself(cls_model: Path) -> None:
    config = Pretrained.configure({"model": str(cls_model)})
    assert Pretrained(config, base_model="embedded:mini-bert").start_model == str(cls_model)
    assert Pretrained(config).inputs == {"model": model_fingerprint(str(cls_model))}
    assert Pretrained(config).supervision == "supervised"
    told = Pretrained.configure({"model": str(cls_model), "supervision": "unsupervised"})
    assert Pretrained(told).supervision == "unsupervised"
    assert Pretrained(config).text == "none"


def test_save_and_load(cls_model: Path, prompted: Path, tmp_path: Path) -> None:
    for number, source in enumerate((cls_model, prompted)):
        method = pretrained(source).fit()
        vectors = np.asarray(method.encode(TEXTS))
        method.save(tmp_path / f"{number}")
        again = Pretrained.load(tmp_path / f"{number}")
        assert again.config == method.config
        assert np.allclose(again.encode(TEXTS), vectors, atol=1e-5)
    assert (
        Pretrained.load(tmp_path / "0").num_parameters()
        == pretrained(cls_model).fit().num_parameters()
        > 1_000_000
    )


def test_a_prompt_is_put_before_the_text_by_sentence_transformers(
    cls_model: Path, prompted: Path
) -> None:
    method = pretrained(prompted).fit()
    vectors = np.asarray(method.encode(TEXTS[:2]))
    expected = pretrained(cls_model).fit().encode(["query: " + text for text in TEXTS[:2]])
    assert np.allclose(vectors, expected, atol=1e-5)
    told = method.fit_report.training
    assert told["encoder"] == "sentence-transformers"
    assert 'prompt "query: "' in told["modules"]
    assert "query" in told["why"]
    assert np.allclose(method.encode(TEXTS[0]), vectors[0], atol=1e-5)
    assert (vectors.dtype, np.asarray(method.encode([])).shape) == (np.float32, (0, 256))
    assert torch.is_tensor(method.encode(TEXTS, convert_to_tensor=True))
    assert np.isfinite(np.asarray(method.encode(["lone \ud800"]))).all()


def test_damaged_models_do_not_fall_back(cls_model: Path, tmp_path: Path) -> None:
    """sentence-transformers would draw missing weights at random; only what is sound and unknown is
    left to it.
    """
    import shutil

    from safetensors.torch import load_file, save_file

    shutil.copytree(cls_model, tmp_path / "damaged")
    file = tmp_path / "damaged" / "model.safetensors"
    weights = load_file(file)
    weights.pop(next(name for name in weights if "layer.0" in name))
    save_file(weights, file, metadata={"format": "pt"})
    with raises_input_error(file=tmp_path / "damaged"):
        pretrained(tmp_path / "damaged").fit()
    with raises_input_error(file=tmp_path / "nowhere"):
        pretrained(tmp_path / "nowhere").fit()


def test_unknown_to_both_is_one_line(cls_model: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(cls_model, tmp_path / "exotic")
    file = tmp_path / "exotic" / "modules.json"
    modules = json.loads(file.read_text())
    modules.append(
        {"idx": 2, "name": "2", "path": "2_Secret", "type": "secret_package.SecretModule"}
    )
    file.write_text(json.dumps(modules))
    with raises_input_error():
        open_model(str(tmp_path / "exotic"))


@pytest.fixture
def with_dense(prompted: Path, tmp_path: Path) -> Path:
    """The prompted model with a dense module, as sentence-transformers writes it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

    model = SentenceTransformer(str(prompted), device="cpu")
    model.append(Dense(256, 8))
    model.save(str(tmp_path / "dense"), create_model_card=False)
    return tmp_path / "dense"


@pytest.mark.parametrize("pickled", [False, True])
def test_a_module_of_a_hub_model_is_never_unpickled(
    with_dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pickled: bool
) -> None:
    import shutil

    import huggingface_hub
    from huggingface_hub.utils import are_progress_bars_disabled, filter_repo_objects

    (module,) = with_dense.glob("*_Dense")
    torch.save(
        {"linear.weight": torch.zeros(8, 256), "linear.bias": torch.zeros(8)},
        module / "pytorch_model.bin",
    )
    if pickled:
        (module / "model.safetensors").unlink()

    def downloaded(name: str, ignore_patterns: list[str], **_: Any) -> str:
        assert name == "org/dense"
        assert are_progress_bars_disabled(), "a log has no bars"
        files = [
            str(file.relative_to(with_dense)) for file in with_dense.rglob("*") if file.is_file()
        ]
        for file in filter_repo_objects(files, ignore_patterns=ignore_patterns):
            (tmp_path / "hub" / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(with_dense / file, tmp_path / "hub" / file)
        return str(tmp_path / "hub")

    def never(*args: Any, **rest: Any) -> Any:
        raise AssertionError("unpickled")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", downloaded)
    monkeypatch.setattr(torch, "load", never)
    assert not are_progress_bars_disabled()
    if not pickled:
        assert np.asarray(run_by_sentence_transformers("org/dense", "why").encode(TEXTS)).shape == (
            4,
            8,
        )
        return
    with raises_input_error(file="org/dense"):
        run_by_sentence_transformers("org/dense", "why")
    with raises_input_error(file=with_dense):  # in a folder too
        run_by_sentence_transformers(str(with_dense), "why")


def test_evaluate_opens_whatever_can_encode(
    cls_model: Path, prompted: Path, tmp_path: Path
) -> None:
    opened = open_for_evaluation(str(cls_model), max_length=12)
    assert isinstance(opened.model, Encoder)
    assert (opened.pooling, opened.model.max_length, opened.remark) == ("cls", 12, "")
    assert open_for_evaluation("embedded:mini-bert", "max").pooling == "max"

    foreign = open_for_evaluation(str(prompted), max_length=8)
    assert isinstance(foreign.model, ForeignEncoder)
    assert foreign.model.model.max_seq_length == 8
    assert "Transformer > Pooling" in foreign.pooling
    assert "run by sentence-transformers" in foreign.remark

    vectors = tmp_path / "vectors.txt"
    vectors.write_text("a 1 2\nb 3 4\n")
    static = Static(Static.configure({"vectors": str(vectors)})).fit()
    static.save(tmp_path / "static")
    words = open_for_evaluation(str(tmp_path / "static")).model
    assert np.asarray(words.encode(["a b"])).tolist() == [[2, 3]]


@pytest.mark.usefixtures("few_pairs")
def test_evaluate_runs_a_model_that_only_sentence_transformers_knows(
    prompted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from harness.cli import main

    asked = ["--suite", "Embedded-STS-contrast", "--device", "cpu", "--json"]
    assert main(["evaluate", str(prompted), *asked]) == 0
    assert json.loads(capsys.readouterr().out)["scores"]


def test_a_row_of_the_base_model_itself_has_no_untrained_start() -> None:
    row = {"method": "pretrained", "config": {"model": "embedded:mini-bert", "pooling": "mean"}}
    experiment = read_experiment(
        {"name": "one", "suites": ["Embedded-STS-natural"], "methods": [row]}
    )
    assert [row.label for row in make_plan(experiment, "one").rows] == ["pretrained"]
