"""Models that mteb loads: a model of this package, under a name of mteb's registry."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness
from harness.encoder import Encoder
from harness.errors import InputError
from harness.evaluation.mteb_models import MtebModel
from harness.evaluation.named_models import open_outside
from tests.support.errors import raises_input_error
from tests.support.short_runs import few_pairs

NAME = "tests/mini-bert"
PROMPT = "similar to: "
TASK = "Embedded-STS-natural"
TEXTS = ["A dog runs across the field.", "It rains.", "Two children play chess."]


def load(folder: str, name: str, revision: str | None = None, **options: Any) -> Any:
    """Load a folder as mteb loads most models: by sentence-transformers, with a prompt for STS."""
    from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper

    return SentenceTransformerEncoderWrapper(
        folder, device=options.get("device"), model_prompts={"STS": PROMPT}
    )


def foreign(name: str, **options: Any) -> Any:
    """A loader that says that it runs the code of a repository."""
    return load(str(options["folder"]), name, trust_remote_code=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model in the layout of sentence-transformers."""
    path = tmp_path_factory.mktemp("mteb") / "model"
    Encoder.from_pretrained("embedded:mini-bert", pooling="mean").save(path)
    return path


@pytest.fixture(autouse=True)
def _registry(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of these tests in mteb's registry."""
    from mteb.models.model_implementations import MODEL_REGISTRY
    from mteb.models.model_meta import ModelMeta

    def add(name: str, loader: Any, **options: Any) -> None:
        about = {"name": name, "revision": "1", "modalities": ["text"], "loader": loader}
        meta = ModelMeta.create_empty({**about, "loader_kwargs": options})
        monkeypatch.setitem(MODEL_REGISTRY, name, meta)

    add(NAME, partial(load, str(folder)))
    add("tests/foreign", partial(load, str(folder)), trust_remote_code=True)
    add("tests/said-in-source", foreign, folder=str(folder))
    few_pairs(monkeypatch)


def reference(texts: list[str]) -> np.ndarray:
    model = harness.load_model("embedded:mini-bert")
    return np.asarray(model.encode(texts))


def test_vectors_have_the_prompt_of_their_task() -> None:
    model = open_outside(f"mteb:{NAME}")
    assert isinstance(model, MtebModel)
    assert model.prompts is not None
    sts = model.prompts.of("STS-B", "STS")
    other = model.prompts.of("SciFact", "Retrieval", "query")
    mixed = [sts + TEXTS[0], other + TEXTS[1], sts + TEXTS[2], TEXTS[1]]
    expected = reference([PROMPT + TEXTS[0], TEXTS[1], PROMPT + TEXTS[2], PROMPT + TEXTS[1]])
    assert np.abs(model.encode(mixed) - expected).max() < 1e-5


def test_scores_are_those_of_the_model_with_the_prompt(tmp_path: Path) -> None:
    def value(model: str, **options: Any) -> float:
        scores = harness.evaluate(model, TASK, cached=False, **options).scores()
        main = scores.query("metric == 'spearman' and aggregation == 'all'")
        return float(main["value"].iloc[0])

    theirs = value(f"mteb:{NAME}")
    assert theirs == pytest.approx(value("embedded:mini-bert", prompts={"STS": PROMPT}), abs=1e-6)
    assert theirs != pytest.approx(value("embedded:mini-bert"), abs=1e-6)


@pytest.mark.parametrize("name", ["tests/foreign", "tests/said-in-source"])
def test_code_of_a_repository_needs_consent(name: str) -> None:
    with pytest.raises(InputError) as caught:
        open_outside(f"mteb:{name}")
    assert "trust_remote_code" in str(caught.value.remedy)
    assert open_outside(f"mteb:{name}", trust_remote_code=True) is not None


def test_code_of_a_repository_is_refused_whatever_the_loader_says(
    folder: Path, tmp_path: Path
) -> None:
    """transformers asks for the code here, as it does for every model with code of its own."""
    import json
    import shutil

    from mteb.models.model_implementations import MODEL_REGISTRY

    own = tmp_path / "own"
    shutil.copytree(folder, own)
    ran = tmp_path / "ran"
    (own / "theirs.py").write_text(f"open({str(ran)!r}, 'w')\nclass Model: ...\n")
    modules = json.loads((own / "modules.json").read_text())
    modules[0]["type"] = "theirs.Model"
    (own / "modules.json").write_text(json.dumps(modules))

    def loader(name: str, **_: Any) -> Any:
        from sentence_transformers import SentenceTransformer

        options: Any = {"trust_remote" + "_code": True}  # not seen in the source
        return SentenceTransformer(str(own), **options)

    meta = MODEL_REGISTRY[NAME]
    MODEL_REGISTRY[NAME] = meta.model_copy(update={"loader": loader})
    try:
        with pytest.raises(InputError):
            MtebModel(NAME).encode(TEXTS)
        assert not ran.exists()
        with pytest.raises(InputError):  # it is no module of sentence-transformers
            MtebModel(NAME, trust_remote_code=True).encode(TEXTS)
        assert ran.exists(), "with consent it runs"
    finally:
        MODEL_REGISTRY[NAME] = meta


def test_consent_goes_with_models_of_mteb_alone() -> None:
    with pytest.raises(InputError) as caught:
        open_outside("embedded:mini-bert", trust_remote_code=True)
    assert caught.value.key == "trust_remote_code"


def test_a_model_behind_a_network_is_not_timed() -> None:
    far = open_outside("mteb:openai/text-embedding-3-small")
    near = open_outside(f"mteb:{NAME}")
    assert far is not None
    assert near is not None
    assert (far.timed, near.timed) == (False, True)


def test_no_such_model() -> None:
    with raises_input_error(key="model"):
        open_outside("mteb:sentence-transformers/all-MiniLM-L6-v3")
