"""Every saved method opens in sentence-transformers with equal vectors: of stock modules where they
suffice.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import ModelCard

from harness import load_model, registry
from harness.encoder import Encoder
from harness.evaluation.any_model import open_for_evaluation
from harness.method import FitContext, Method
from harness.modules import SavedMethod
from harness.sources import load_corpus
from tests.support.errors import raises_input_error

TEXTS = ["A man plays the guitar.", "", "Nobody is here.", "word " * 40]
STATIC: dict[str, Any] = {"method": "static", "config": {"lower_case": True}}
STOCK: dict[str, tuple[str, dict[str, Any]]] = {
    "whitening": ("whitening", {"k": 32}),
    "static": ("static", {"lower_case": True}),
    "pooling": ("pooling", {"pooling": "first_last_avg"}),
}
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "flow": ("flow", {"max_steps": 2, "levels": 2, "steps": 1}),
    "transductive flow": ("flow", {"fit_on": "task"}),
    "transductive whitening": ("whitening", {"fit_on": "task"}),
    "wk_pooling": ("wk_pooling", {"layer_start": 1}),
    "random": ("random", {}),
}


@pytest.fixture(autouse=True)
def vectors_at_hand(word_vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for values in (STATIC["config"], STOCK["static"][1]):
        monkeypatch.setitem(values, "vectors", str(word_vectors))


def saved(name: str, values: dict[str, Any], folder: Path) -> Method:
    kind: type[Method] = registry.load(registry.METHODS, name)
    config = kind.configure(values)
    text = kind(config).text
    corpus = None if text == "none" else load_corpus(f"embedded:{text}", kind=text, limit=80)
    method = kind(config).fit(corpus, FitContext(seed=1, precision="fp32"))
    method.save(folder)
    return method


def test_stock_modules_open_where_this_package_is_not_installed(tmp_path: Path) -> None:
    methods = {name: saved(*about, tmp_path / name) for name, about in STOCK.items()}
    alone = """
import json, sys
for ours in ("harness", "methods", "studies", "reports"):
    sys.modules[ours] = None  # an import fails
from sentence_transformers import SentenceTransformer
texts, names = json.loads(sys.argv[1]), sys.argv[2:]
vectors = {name: SentenceTransformer(name, device="cpu").encode(texts).tolist() for name in names}
print(json.dumps(vectors))
"""
    command = [sys.executable, "-c", alone, json.dumps(TEXTS), *methods]
    told = subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True).stdout
    for name, vectors in json.loads(told.splitlines()[-1]).items():
        assert np.abs(np.array(vectors) - methods[name].encode(TEXTS)).max() < 1e-5


@pytest.mark.parametrize("name", OURS)
def test_others_open_with_this_package(name: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    method = saved(*OURS[name], tmp_path / "model")
    vectors = np.asarray(method.encode(TEXTS))
    for model in (
        SentenceTransformer(modules=[SavedMethod.load(str(tmp_path / "model"))], device="cpu"),
        SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True),
    ):
        assert np.abs(model.encode(TEXTS) - vectors).max() < 1e-5
        assert np.abs(model.encode(TEXTS[0]) - vectors[0]).max() < 1e-5
        assert model.get_embedding_dimension() == vectors.shape[1]
    model.save(str(tmp_path / "again"))
    again = SentenceTransformer(str(tmp_path / "again"), device="cpu", trust_remote_code=True)
    assert np.abs(again.encode(TEXTS) - vectors).max() < 1e-5

    said = ModelCard.load(tmp_path / "model" / "README.md")
    assert "harness.modules" in said.text
    assert said.data.library_name == "sentence-transformers"
    for opened in (
        load_model(tmp_path / "model"),
        open_for_evaluation(str(tmp_path / "model")).model,
    ):
        assert np.abs(np.asarray(opened.encode(TEXTS)) - vectors).max() < 1e-5
    with raises_input_error(file=tmp_path / "model"):
        Encoder.load(tmp_path / "model")


def test_a_folder_of_before_is_read_by_its_method(tmp_path: Path) -> None:
    method = saved("random", {}, tmp_path / "model")
    (tmp_path / "model" / "modules.json").unlink()
    opened = open_for_evaluation(str(tmp_path / "model"))
    assert np.array_equal(opened.model.encode(TEXTS), method.encode(TEXTS))
