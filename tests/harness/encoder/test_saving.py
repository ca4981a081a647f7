"""Saved models: the same vectors from `SentenceTransformer(path)` and `Encoder.load`; one line for
what is refused.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from torch import nn

from harness import registry
from harness.encoder import Encoder
from harness.encoder.foreign import open_model
from harness.encoder.pooling import Normalize, TokenConvolution
from harness.errors import UnsupportedModel
from harness.sources import resolve_model
from tests.support.encoder_models import FAMILIES, TEXTS, base_model, causal_model
from tests.support.errors import raises_input_error

SENTENCES = [*TEXTS, "The CAT sat, 🙂 " * 20]
MINI = "embedded:mini-bert"


def reference(path, texts=SENTENCES, batch_size=32):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a reader must not be warned of anything
        return SentenceTransformer(str(path), device="cpu").encode(texts, batch_size=batch_size)


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    return {name: base_model(tmp_path_factory.mktemp("base") / name, name) for name in FAMILIES}


CASES = [
    *(
        ("bert", name, first)
        for name, first in (("cls", 1), ("max", 1), ("last2_avg", 1), ("cls_pooler", 1))
    ),
    *(("bert", name, 1) for name in ("layer:0:mean", "layer:1:max", "layer:3:cls", "last")),
    *(("bert", "first_last_avg", first) for first in (0, 1)),
    *((family, "mean", 1) for family in FAMILIES),
    *((family, "first_last_avg", 1) for family in ("distilbert", "mpnet", "roberta")),
]


@pytest.mark.parametrize("affine", [False, True], ids=["plain", "affine"])
@pytest.mark.parametrize(("family", "pooling", "first"), CASES)
def test_the_same_vectors_everywhere(bases, tmp_path, family, pooling, first, affine):
    encoder = Encoder.from_pretrained(
        bases[family], pooling=pooling, first_layer=first, max_length=12
    )
    if affine:
        encoder.affine = nn.Linear(32, 9)
    vectors = encoder.encode(SENTENCES)
    encoder.save(tmp_path / "saved")
    np.testing.assert_allclose(reference(tmp_path / "saved"), vectors, atol=1e-5)
    loaded = Encoder.load(tmp_path / "saved")
    np.testing.assert_allclose(loaded.encode(SENTENCES), vectors, atol=1e-6)
    assert (loaded.pooling, loaded.max_length) == (encoder.pooling, 12)
    assert (loaded.affine is not None) == affine
    assert sum(p.numel() for p in loaded.parameters()) == sum(
        p.numel() for p in encoder.parameters()
    )
    loaded.save(tmp_path / "again")
    np.testing.assert_allclose(reference(tmp_path / "again"), vectors, atol=1e-5)


def test_a_head_of_several_layers(bases, tmp_path):
    encoder = Encoder.from_pretrained(bases["bert"])
    encoder.head = nn.Sequential(
        nn.Linear(32, 20), nn.GELU(), Normalize(), nn.Linear(20, 11, bias=False), nn.Tanh()
    )
    encoder.save(tmp_path / "saved")
    for vectors in (
        reference(tmp_path / "saved"),
        Encoder.load(tmp_path / "saved").encode(SENTENCES),
    ):
        np.testing.assert_allclose(vectors, encoder.encode(SENTENCES), atol=1e-5)
    for head in (nn.Sequential(nn.Tanh()), nn.Sequential(nn.Linear(32, 4), Normalize(), nn.Tanh())):
        encoder.head = head  # an activation that no module of sentence-transformers has by itself
        with raises_input_error():
            encoder.save(tmp_path / "other")


@pytest.mark.parametrize("mode", ["cls", "mean", "max", "lasttoken"])
def test_a_pooling_is_written_as_its_class_writes_it(bases, tmp_path, mode):
    encoder = Encoder.from_pretrained(bases["bert"], pooling=mode.removesuffix("token"))
    encoder.save(tmp_path / "saved")
    modules.Pooling(32, mode).save(str(tmp_path))
    written = (tmp_path / "saved" / "1_Pooling" / "config.json").read_bytes()
    assert written == (tmp_path / "config.json").read_bytes()
    listed = json.loads((tmp_path / "saved" / "modules.json").read_text())
    for row, kind in zip(listed, (modules.Transformer, modules.Pooling), strict=True):
        assert row["type"] == f"{kind.__module__}.{kind.__name__}"


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "first_last_avg"])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_convolution_over_tokens(bases, tmp_path, family, pooling):
    torch.manual_seed(1)
    encoder = Encoder.from_pretrained(bases[family], pooling=pooling)
    encoder.token_module = TokenConvolution(32, 5, (1, 3))
    encoder.affine = nn.Linear(10, 7)
    vectors = encoder.encode(SENTENCES)
    encoder.save(tmp_path / "saved")
    for batch_size in (32, 1):  # padding does not matter
        np.testing.assert_allclose(
            reference(tmp_path / "saved", batch_size=batch_size), vectors, atol=1e-5
        )
    loaded = Encoder.load(tmp_path / "saved")
    np.testing.assert_allclose(loaded.encode(SENTENCES), vectors, atol=1e-6)
    loaded.save(tmp_path / "again")
    np.testing.assert_allclose(reference(tmp_path / "again"), vectors, atol=1e-5)


def test_a_causal_model_without_a_padding_token(tmp_path):
    encoder = Encoder.from_pretrained(causal_model(tmp_path / "base"), pooling="last").eval()
    encoder.save(tmp_path / "saved")
    texts = [text for text in SENTENCES if text]
    np.testing.assert_allclose(
        reference(tmp_path / "saved", texts), encoder.encode(texts), atol=1e-5
    )


def test_folders_that_sentence_transformers_wrote(bases, tmp_path):
    for mode, chain in (
        ("mean", [modules.Dense(32, 12), modules.Normalize()]),
        ("cls", [modules.Dense(32, 8, activation_function=nn.Identity(), bias=False)]),
        ("max", [modules.Normalize(), modules.Dense(32, 8, activation_function=nn.SiLU())]),
        ("lasttoken", []),
    ):
        transformer = modules.Transformer(
            bases["roberta"], processor_kwargs={"model_max_length": 9}
        )
        model = SentenceTransformer(
            modules=[transformer, modules.Pooling(32, mode), *chain], device="cpu"
        )
        model.save(str(tmp_path / mode))
        loaded = Encoder.load(tmp_path / mode)
        assert loaded.max_length == 9
        np.testing.assert_allclose(loaded.encode(SENTENCES), model.encode(SENTENCES), atol=1e-5)
        assert loaded.encode(SENTENCES).shape[1] == loaded.dimension
    # Its CNN lets padding leak into a sentence, ours does not: equal where nothing is padded.
    parts = [
        modules.Transformer(bases["bert"]),
        modules.CNN(32, 6, [1, 3]),
        modules.Pooling(12, "mean"),
    ]
    SentenceTransformer(modules=parts, device="cpu").save(str(tmp_path / "cnn"))
    alone = reference(tmp_path / "cnn", batch_size=1)
    np.testing.assert_allclose(Encoder.load(tmp_path / "cnn").encode(SENTENCES), alone, atol=1e-5)


@pytest.mark.parametrize(
    ("chain", "prompt"),
    [
        ([modules.Pooling(32, "weightedmean")], None),
        ([modules.Pooling(32, ("mean", "max"))], None),
        ([modules.Pooling(32, "mean"), modules.Dense(32, 32, use_residual=True)], None),
        ([modules.CNN(32, 4, [1], [2]), modules.Pooling(4, "mean")], None),
        ([modules.WordWeights(["a"] * 20, {}, 0.5), modules.Pooling(32, "mean")], None),
        ([modules.Pooling(32, "mean"), modules.Dropout(0.1)], None),
        ([modules.Pooling(32, "mean")], "query"),
    ],
)
def test_what_our_encoder_does_not_know_is_run_by_sentence_transformers(
    bases, tmp_path, chain, prompt
):
    prompts = {"prompts": {"query": "the cat: "}, "default_prompt_name": prompt} if prompt else {}
    model = SentenceTransformer(
        modules=[modules.Transformer(bases["bert"]), *chain], device="cpu", **prompts
    )
    model.save(str(tmp_path / "saved"))
    with raises_input_error(kind=UnsupportedModel):
        Encoder.load(tmp_path / "saved")
    np.testing.assert_allclose(
        open_model(str(tmp_path / "saved")).encode(TEXTS), model.encode(TEXTS), atol=1e-6
    )


def test_the_folder(bases, tmp_path):
    encoder = Encoder.from_pretrained(bases["bert"])
    encoder.save(tmp_path / "saved", card="# My method\n\nTrained on nothing.")
    names = {
        file.relative_to(tmp_path / "saved").as_posix() for file in (tmp_path / "saved").rglob("*")
    }
    assert {
        "modules.json",
        "config.json",
        "model.safetensors",
        "1_Pooling/config.json",
        "README.md",
    } <= names
    assert not [name for name in names if name.endswith((".bin", ".pt", ".pkl", ".py"))]
    assert not [
        key for key in load_file(tmp_path / "saved" / "model.safetensors") if "pooler" in key
    ]
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "# My method" in card
    assert "library_name: sentence-transformers" in card
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]


def test_neither_the_folder_nor_a_random_number_depends_on_what_was_done_before(bases, tmp_path):
    """A training that was killed may have cut no text since: its files are those of the
    uninterrupted one.
    """
    encoder = Encoder.from_pretrained(bases["bert"])
    encoder.affine = nn.Linear(32, 4)
    state = torch.random.get_rng_state()
    encoder.save(tmp_path / "before")
    encoder.encode(SENTENCES)
    encoder.save(tmp_path / "after")
    Encoder.load(tmp_path / "after")
    assert torch.equal(state, torch.random.get_rng_state())
    for file in (tmp_path / "before").rglob("*"):
        if file.is_file():
            assert (
                file.read_bytes()
                == (tmp_path / "after" / file.relative_to(tmp_path / "before")).read_bytes()
            )


def test_saving_over(bases, tmp_path, monkeypatch):
    encoder = Encoder.from_pretrained(bases["bert"])
    encoder.save(tmp_path / "saved")
    (tmp_path / "saved" / "left.over").touch()
    encoder.save(tmp_path / "saved")
    assert not (tmp_path / "saved" / "left.over").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with raises_input_error(file=tmp_path / "mine"):
        encoder.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    before = reference(tmp_path / "saved")
    monkeypatch.setattr(encoder.tokenizer, "save_pretrained", full)
    with pytest.raises(OSError):
        encoder.save(tmp_path / "saved")
    assert {p.name for p in tmp_path.iterdir()} == {"saved", "mine"}
    np.testing.assert_array_equal(reference(tmp_path / "saved"), before)


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
    assert (
        loaded.tokenize(["THE Cat"]) == loaded.tokenize(["the cat"]) != base.tokenize(["THE Cat"])
    )
    np.testing.assert_allclose(reference(tmp_path / "saved"), loaded.encode(SENTENCES), atol=1e-5)


def test_a_plain_folder_gets_mean_pooling_and_float32():
    assert Encoder.load(MINI).pooling.name == "mean"
    encoder = Encoder.from_pretrained(MINI)  # its file is in half precision
    assert {p.dtype for p in encoder.parameters()} == {torch.float32}
    assert (encoder.dimension, encoder.max_length) == (256, 64)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("make", [Encoder.load, Encoder.from_pretrained])
@pytest.mark.parametrize(
    "name", ["no/such-model-here", "./nowhere", "/nowhere/at/all", "embedded:maxi-bert"]
)
def test_models_that_do_not_exist(make, name, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with raises_input_error() as error:
        make(name)
    assert error.value.file is not None
    assert name in error.value.file


def rows_of(folder, change):
    rows = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(change(rows)))


DAMAGES = {
    "no JSON": lambda folder: (folder / "modules.json").write_text("[{"),
    "no list": lambda folder: (folder / "modules.json").write_text('{"a": 1}'),
    "half the weights": lambda folder: (folder / "model.safetensors").write_bytes(
        (folder / "model.safetensors").read_bytes()[:5000]
    ),
    "order": lambda folder: rows_of(
        folder, lambda rows: [*rows, {"idx": 2, "path": "2_CNN", "type": "x.CNN"}]
    ),
    "path": lambda folder: rows_of(
        folder, lambda rows: [rows[0], {**rows[1], "path": "../outside"}]
    ),
    "no pooling": lambda folder: rows_of(folder, lambda rows: rows[:1]),
    "no weights of Dense": lambda folder: (folder / "2_Dense" / "model.safetensors").unlink(),
    "shape of Dense": lambda folder: (folder / "2_Dense" / "config.json").write_text(
        '{"in_features": 31, "out_features": 4}'
    ),
    "tokenizer": lambda folder: (folder / "tokenizer.json").write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_folders_are_one_clear_line(bases, tmp_path, damage):
    encoder = Encoder.from_pretrained(bases["bert"])
    encoder.affine = nn.Linear(32, 4)
    encoder.save(tmp_path / "saved")
    DAMAGES[damage](tmp_path / "saved")
    with raises_input_error(file=tmp_path / "saved"):
        Encoder.load(tmp_path / "saved")


def test_a_base_whose_file_lacks_weights(bases, tmp_path):
    shutil.copytree(bases["bert"], tmp_path / "base")
    weights = load_file(tmp_path / "base" / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, tmp_path / "base" / "model.safetensors", metadata={"format": "pt"})
    with raises_input_error(file=tmp_path / "base"):
        Encoder.from_pretrained(str(tmp_path / "base"))


def test_a_module_over_tokens_of_another_kind_cannot_be_saved(bases, tmp_path):
    encoder = Encoder.from_pretrained(bases["bert"])
    encoder.token_module = nn.Linear(32, 8)
    with raises_input_error():
        encoder.save(tmp_path / "other")
    assert not list(tmp_path.iterdir())


def pickle_at(path):
    def add(folder):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(b"not to be opened")

    return add


def pickle_in_an_index(folder):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    (folder / "shard.bin").write_bytes(b"not to be opened")
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, "shard.bin")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def pickle_in_the_configuration(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**config, "transformers_weights": "weights.bin"})
    )


def pickle_alone(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def pickle_in_another_library(folder):
    pickle_at("1_Odd/pytorch_model.bin")(folder)
    (folder / "modules.json").write_text(
        '[{"idx": 0, "name": "0", "path": "1_Odd", "type": "x.Odd"}]'
    )


@pytest.mark.parametrize("load", [Encoder.from_pretrained, Encoder.load, open_model])
@pytest.mark.parametrize(
    ("add", "named"),
    [
        (pickle_alone, "pytorch_model.bin"),
        (pickle_at("pytorch_model.bin"), "pytorch_model.bin"),
        (pickle_at("2_Dense/pytorch_model.bin"), "2_Dense/pytorch_model.bin"),
        (pickle_at("adapter_model.bin"), "adapter_model.bin"),
        (pickle_in_an_index, "model.safetensors.index.json"),
        (pickle_in_the_configuration, "config.json"),
        (pickle_in_another_library, "1_Odd/pytorch_model.bin"),
    ],
)
def test_pickled_weights_are_refused_unopened(tmp_path, monkeypatch, load, add, named):
    """Also where they lie beside safetensors, are named in an index of weights, or belong to one
    module.
    """

    def opened(*args, **options):
        raise AssertionError("torch.load was called")

    shutil.copytree(resolve_model(MINI), tmp_path / "model")
    add(tmp_path / "model")
    monkeypatch.setattr(torch, "load", opened)
    with raises_input_error() as error:
        load(str(tmp_path / "model"))
    assert named in str(error.value)


@pytest.mark.parametrize(
    ("umask", "folder", "file"),
    [(0o027, 0o750, 0o640), (0o077, 0o700, 0o600), (0o002, 0o775, 0o664)],
)
def test_saved_models_honour_the_umask(umask, folder, file, tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("a 0.1 0.2\nb 0.3 0.4\n")
    before = os.umask(umask)
    try:
        Encoder.from_pretrained(MINI).save(tmp_path / "made" / "encoder")
        static = registry.load(registry.METHODS, "static")
        static(static.Config(vectors=str(vectors)), base_model=MINI).fit().save(
            tmp_path / "made" / "method"
        )
    finally:
        os.umask(before)
    for path in (tmp_path / "made").rglob("*"):
        assert path.stat().st_mode & 0o777 == (folder if path.is_dir() else file), path
