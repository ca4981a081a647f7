"""Models as other libraries save them: the vectors are those of the libraries, or one line says why
there are none.
"""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging

import harness
from harness.encoder import Encoder, foreign
from harness.encoder.foreign import ForeignEncoder, open_model
from harness.encoder.loading import depth_of, family_of, tokens_of
from harness.errors import InputError
from harness.evaluation.any_model import choose_prompts, open_for_evaluation
from harness.runs.typical_costs import read_shape
from harness.sources.embedded import model_fingerprint
from methods.pretrained import Pretrained, PretrainedConfig
from tests.support.bases import TOKENS, narrow_bert
from tests.support.errors import raises_input_error

TEXTS = ["A dog runs.", "It rains in the hills, and nobody is outside today.", "chess", ""]
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "vocab_size": TOKENS,
    "max_position_embeddings": 64,
}
TRAIN = {"max_steps": 1, "batch_size": 2, "pooling": "mean"}
SOURCE = Path(narrow_bert())


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.set_verbosity_error()


def save_plain(folder: Path, kind: str = "bert", **shape: Any) -> Path:
    torch.manual_seed(1)
    config = AutoConfig.for_model(kind, **{**SHAPE, **shape})
    AutoModel.from_config(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(SOURCE).save_pretrained(folder)
    return folder


def save_sentence_encoder(folder: Path, plain: Path, *after: Any, length: int = 64) -> Path:
    reader = modules.Transformer(str(plain), max_seq_length=length)
    SentenceTransformer(modules=[reader, *after], device="cpu").save(str(folder))
    return folder


def their_vectors(folder: Path, texts: list[str] = TEXTS, **options: Any) -> np.ndarray:
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})
    return np.asarray(model.encode(texts, **options))


def update(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


# --- adapters


def save_adapter(folder: Path, base: Path, kind: Any = AutoModel, **options: Any) -> Path:
    peft = pytest.importorskip("peft")
    settings = {"r": 4, "lora_alpha": 32, "target_modules": ["query", "value"], **options}
    model = kind.from_pretrained(base)
    torch.manual_seed(2)
    adapted = peft.get_peft_model(model, peft.LoraConfig(**settings, init_lora_weights=False))
    adapted.save_pretrained(folder)
    update(folder / "adapter_config.json", base_model_name_or_path=str(base))
    return folder


def adapter_in(shape: str, folder: Path) -> Path:
    """A model with an adapter: alone, with its tokenizer, beside the weights, or in a sentence
    encoder.
    """
    plain = save_plain(folder / "plain")
    adapter = save_adapter(folder / "adapter", plain)
    if shape == "alone":
        return adapter
    if shape == "beside the weights":
        shutil.copytree(adapter, plain, dirs_exist_ok=True)
        return plain
    AutoTokenizer.from_pretrained(plain).save_pretrained(adapter)
    if shape == "with a tokenizer":
        return adapter
    encoder = save_sentence_encoder(folder / "encoder", plain, modules.Pooling(32, "mean"))
    if shape == "in the root":
        shutil.copytree(adapter, encoder, dirs_exist_ok=True)
        return encoder
    inner = encoder / "0_Transformer"
    inner.mkdir()
    for file in [*encoder.glob("*.json"), *encoder.glob("model.safetensors")]:
        if file.name not in ("modules.json", "config_sentence_transformers.json"):
            file.rename(inner / file.name)
    rows = json.loads((encoder / "modules.json").read_text())
    rows[0]["path"] = "0_Transformer"
    (encoder / "modules.json").write_text(json.dumps(rows))
    shutil.copytree(adapter, inner, dirs_exist_ok=True)
    return encoder


ADAPTERS = ("alone", "with a tokenizer", "beside the weights", "in the root", "in a module")


@pytest.mark.parametrize("shape", ADAPTERS)
def test_an_adapter_is_applied_whichever_way_it_lies(shape: str, tmp_path: Path) -> None:
    from peft import PeftModel

    folder = adapter_in(shape, tmp_path)
    encoder = open_model(str(folder))
    base = AutoModel.from_pretrained(save_plain(tmp_path / "base"))
    adapter = save_adapter(tmp_path / "again", tmp_path / "base")
    adapted = PeftModel.from_pretrained(base, adapter).eval()
    tokenizer = AutoTokenizer.from_pretrained(SOURCE)
    for text, vector in zip(TEXTS, encoder.encode(TEXTS), strict=True):
        with torch.no_grad():
            states = adapted(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        assert states.mean(dim=0).numpy() == pytest.approx(vector, abs=1e-5)
    plain = Encoder.from_pretrained(str(tmp_path / "base")).encode(TEXTS)
    assert np.abs(encoder.encode(TEXTS) - plain).max() > 0.1
    encoder.save(tmp_path / "saved")
    assert their_vectors(tmp_path / "saved") == pytest.approx(encoder.encode(TEXTS), abs=1e-5)
    assert family_of(str(folder)) == "mini"
    assert tokens_of(str(folder))[1] == encoder.max_length


def test_an_adapter_of_another_head_is_applied(tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM

    pytest.importorskip("peft")
    plain = save_plain(tmp_path / "plain")
    adapter = save_adapter(tmp_path / "adapter", plain, AutoModelForMaskedLM)
    same = save_adapter(tmp_path / "same", plain)
    vectors = [Encoder.from_pretrained(str(folder)).encode(TEXTS) for folder in (adapter, same)]
    assert vectors[0] == pytest.approx(vectors[1], abs=1e-5)


@pytest.mark.parametrize(
    "options", [{"use_dora": True}, {"use_rslora": True}, {"bias": "lora_only"}]
)
def test_variants_of_lora_are_merged(options: dict[str, Any], tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    plain = save_plain(tmp_path / "plain")
    adapter = save_adapter(tmp_path / "adapter", plain, **options)
    encoder = Encoder.from_pretrained(str(adapter))
    adapted = peft.PeftModel.from_pretrained(AutoModel.from_pretrained(plain), adapter).eval()
    tokenizer = AutoTokenizer.from_pretrained(SOURCE)
    for text, vector in zip(TEXTS, encoder.encode(TEXTS), strict=True):
        with torch.no_grad():
            states = adapted(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        assert states.mean(dim=0).numpy() == pytest.approx(vector, abs=1e-5)
    encoder.save(tmp_path / "saved")
    assert their_vectors(tmp_path / "saved") == pytest.approx(encoder.encode(TEXTS), abs=1e-5)


def test_a_trained_model_holds_the_adapter_in_its_weights(tmp_path: Path) -> None:
    folder = adapter_in("beside the weights", tmp_path)
    config = {**TRAIN, "learning_rate": 1e-9}
    method = harness.train(
        "simcse", base_model=str(folder), corpus=TEXTS[:3], config=config, dev=None
    )
    method.save(tmp_path / "out")
    assert their_vectors(tmp_path / "out") == pytest.approx(method.encode(TEXTS), abs=1e-5)
    changed = np.abs(method.encode(TEXTS) - Encoder.from_pretrained(str(folder)).encode(TEXTS))
    assert changed.max() < 1e-4, "one small step from the adapted weights"


@pytest.mark.parametrize("shape", ADAPTERS)
def test_without_peft_an_adapter_is_refused(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    if shape in ("in the root", "in a module"):
        plain = save_plain(tmp_path / "plain")
        save_sentence_encoder(folder, plain, modules.Pooling(32, "mean"))
        place = folder if shape == "in the root" else folder / "1_Pooling"
    elif shape == "beside the weights":
        place = save_plain(folder)
    else:
        place = folder
        place.mkdir()
    base = str(SOURCE)
    (place / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "base_model_name_or_path": base})
    )
    monkeypatch.setattr("harness.encoder.adapters.find_spec", lambda name: None)
    for act in (open_model, Encoder.from_pretrained, open_for_evaluation):
        with pytest.raises(InputError) as caught:
            act(str(folder))
        assert caught.value.file == str(place / "adapter_config.json")


def test_the_identity_of_a_model_knows_its_adapter(tmp_path: Path) -> None:
    plain = save_plain(tmp_path / "plain")
    bare = tmp_path / "bare"
    bare.mkdir()
    settings = {"peft_type": "LORA", "base_model_name_or_path": str(plain)}
    (bare / "adapter_config.json").write_text(json.dumps(settings))
    before = model_fingerprint(str(bare))
    update(plain / "config.json", layer_norm_eps=1e-3)
    assert model_fingerprint(str(bare)) != before, "the base model is a part of it"
    both = shutil.copytree(plain, tmp_path / "both")
    shutil.copy(bare / "adapter_config.json", both)
    assert model_fingerprint(str(both)) != model_fingerprint(str(plain))


def test_models_with_segments_of_their_own_have_other_ids_than_before(tmp_path: Path) -> None:
    plain = save_plain(tmp_path / "plain")
    assert not model_fingerprint(str(plain)).endswith("segments")
    update(plain / "config.json", model_type="xlnet")
    assert model_fingerprint(str(plain)).endswith(" segments")


def test_what_is_known_of_a_folder_is_read_again_when_it_changes(tmp_path: Path) -> None:
    plain = save_plain(tmp_path / "plain")
    shape = read_shape(str(plain))
    assert shape is not None
    assert (depth_of(str(plain)), shape.depth, tokens_of(str(plain))[1]) == (2, 2, 64)
    update(plain / "config.json", num_hidden_layers=1, max_position_embeddings=32)
    shape = read_shape(str(plain))
    assert shape is not None
    assert (depth_of(str(plain)), shape.depth, tokens_of(str(plain))[1]) == (1, 1, 32)
    family = family_of(str(plain))
    update(plain / "config.json", hidden_size=768, num_hidden_layers=12)
    assert family_of(str(plain)) == "bert-base" != family


@pytest.mark.parametrize(
    "change",
    [
        {"target_modules": ["no_such_layer"]},
        {"r": 7},
        {"peft_type": "NO_SUCH"},
        {"base_model_name_or_path": None},
        {"base_model_name_or_path": "/no/such/folder"},
    ],
)
def test_a_damaged_adapter_is_one_line(change: dict[str, Any], tmp_path: Path) -> None:
    folder = save_adapter(tmp_path / "adapter", save_plain(tmp_path / "plain"))
    update(folder / "adapter_config.json", **change)
    with raises_input_error():
        open_model(str(folder))


# --- prompts that are not pooled

PROMPTS = {"STS": "Represent the sentence: ", "Retrieval": "Represent: "}


@pytest.mark.parametrize("mode", ["mean", "max", "cls", "lasttoken"])
def test_a_prompt_that_is_left_out_of_the_pooling_is(mode: str, tmp_path: Path) -> None:
    plain = save_plain(tmp_path / "plain")
    pooling = modules.Pooling(32, mode, include_prompt=False)
    folder = save_sentence_encoder(tmp_path / "model", plain, pooling)
    update(folder / "config_sentence_transformers.json", prompts=PROMPTS)
    method = Pretrained(PretrainedConfig(model=str(folder), prompts="own")).fit()
    sentences = TEXTS[:3]
    for prompt in PROMPTS.values():
        expected = their_vectors(folder, sentences, prompt=prompt)
        found = method.encode([prompt + text for text in sentences])
        assert found == pytest.approx(expected, abs=1e-5)
    assert method.encode(sentences) == pytest.approx(their_vectors(folder, sentences), abs=1e-5)
    method.save(tmp_path / "saved")
    again = their_vectors(tmp_path / "saved", sentences, prompt=PROMPTS["STS"])
    assert again == pytest.approx(their_vectors(folder, sentences, prompt=PROMPTS["STS"]), abs=1e-5)
    loaded = Pretrained.load(tmp_path / "saved")
    prompted = [PROMPTS["STS"] + text for text in sentences]
    assert loaded.encode(prompted) == pytest.approx(again, abs=1e-5)


def test_two_views_and_packed_batches_leave_a_prompt_out_too(tmp_path: Path) -> None:
    plain = save_plain(
        tmp_path / "plain", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    pooling = modules.Pooling(32, "mean", include_prompt=False)
    folder = save_sentence_encoder(tmp_path / "model", plain, pooling)
    encoder = Encoder.load(folder)
    given = {"any": PROMPTS["STS"]}
    choose_prompts(str(folder), open_for_evaluation(str(folder)), given)
    encoder.left_out = tuple(given.values())
    prompted = [PROMPTS["STS"] + text for text in TEXTS[:3]]
    expected = their_vectors(folder, TEXTS[:3], prompt=PROMPTS["STS"])
    for packed in (False, True):
        encoder.train()
        if packed:
            encoder.pack_batches()
        views = encoder.two_views(prompted, differ_by=None)
        for view in (*views, encoder(prompted)):
            assert view.detach().numpy() == pytest.approx(expected, abs=1e-5)
    encoder.eval()
    features = encoder.collate(encoder.tokenize(prompted))
    pooled = encoder.pool(encoder.token_states(features), encoder.pooling_mask(features))
    assert pooled.detach().numpy() == pytest.approx(expected, abs=1e-5)


def test_runs_with_prompts_that_are_not_pooled_have_an_id_of_their_own(tmp_path: Path) -> None:
    plain = save_plain(tmp_path / "plain")
    pooling = modules.Pooling(32, "mean", include_prompt=False)
    folder = save_sentence_encoder(tmp_path / "model", plain, pooling)
    update(folder / "config_sentence_transformers.json", prompts=PROMPTS)
    with_prompts = Pretrained(PretrainedConfig(model=str(folder), prompts="own"))
    without = Pretrained(PretrainedConfig(model=str(folder)))
    assert with_prompts.inputs["prompts"] == "not pooled"
    assert with_prompts.inputs.keys() - without.inputs.keys() == {"prompts"}


# --- training that starts from a sentence encoder


@pytest.mark.parametrize("length", [8, 48])
def test_training_keeps_unit_vectors_and_the_length_of_its_start(
    length: int, tmp_path: Path
) -> None:
    plain = save_plain(tmp_path / "plain")
    after = (modules.Pooling(32, "mean"), modules.Normalize())
    folder = save_sentence_encoder(tmp_path / "model", plain, *after, length=length)
    config = {**TRAIN, "train_length": 6, "learning_rate": 1e-12}
    method = harness.train(
        "simcse", base_model=str(folder), corpus=TEXTS[:3], config=config, dev=None
    )
    long = "It rains in the hills. " * 20
    vectors = method.encode([*TEXTS, long])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-6)
    assert vectors == pytest.approx(their_vectors(folder, [*TEXTS, long]), abs=1e-5)
    assert method.encoder.train_length == 6
    method.save(tmp_path / "out")
    saved = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    assert saved.max_seq_length == length
    assert isinstance(saved[-1], modules.Normalize)
    start = harness.train("pooling", base_model=str(folder), config={"pooling": "mean"}, dev=None)
    assert start.encode([long]) == pytest.approx(their_vectors(folder, [long]), abs=1e-5)
    assert tokens_of(str(folder))[1] == length


def test_a_loss_sees_the_vectors_before_they_are_normalised(tmp_path: Path) -> None:
    plain = save_plain(tmp_path / "plain")
    after = (modules.Pooling(32, "mean"), modules.Normalize())
    folder = save_sentence_encoder(tmp_path / "model", plain, *after)
    encoder = Encoder.from_pretrained(str(folder)).eval()
    found = encoder(TEXTS[:3]).detach().numpy()
    expected = Encoder.from_pretrained(str(plain)).encode(TEXTS[:3])
    assert found == pytest.approx(expected, abs=1e-6)


def test_training_refuses_to_lose_a_dense_layer(tmp_path: Path) -> None:
    plain = save_plain(tmp_path / "plain")
    after = (modules.Pooling(32, "mean"), modules.Dense(32, 16))
    folder = save_sentence_encoder(tmp_path / "model", plain, *after)
    with pytest.raises(InputError) as caught:
        harness.train("simcse", base_model=str(folder), corpus=TEXTS[:3], config=TRAIN, dev=None)
    assert caught.value.file == str(folder / "modules.json")
    assert open_model(str(folder)).encode(TEXTS) == pytest.approx(their_vectors(folder), abs=1e-5)


# --- precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_files_in_half_precision_are_computed_in_float32(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    plain = save_plain(tmp_path / "plain")
    AutoModel.from_pretrained(plain).to(dtype).save_pretrained(plain)
    for mode, kind in (("weightedmean", ForeignEncoder), ("mean", Encoder)):
        folder = tmp_path / mode
        reader = modules.Transformer(str(plain), max_seq_length=64, model_kwargs={"dtype": dtype})
        pooling = modules.Pooling(32, mode)
        SentenceTransformer(modules=[reader, pooling], device="cpu").save(str(folder))
        model = open_model(str(folder))
        assert isinstance(model, kind)
        assert model.encode(TEXTS[:3]) == pytest.approx(their_vectors(folder, TEXTS[:3]), abs=1e-6)
        assert foreign.in_half_precision(str(folder))
    half = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": dtype})
    assert str(dtype).removeprefix("torch.") in ForeignEncoder(half, "").modules


# --- segments


def xlnet(folder: Path) -> Path:
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast, XLNetConfig, XLNetModel

    torch.manual_seed(1)
    config = XLNetConfig(vocab_size=16000, d_model=32, n_layer=2, n_head=2, d_inner=48)
    model = XLNetModel(config)
    for layer in model.layer:
        torch.nn.init.normal_(layer.rel_attn.seg_embed, std=1.0)
        torch.nn.init.normal_(layer.rel_attn.r_s_bias, std=1.0)
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(SOURCE).backend_tokenizer
    names = {name: tokenizer.token_to_id(name) for name in ("[SEP]", "[CLS]")}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A:0 [SEP]:0 [CLS]:2", special_tokens=list(names.items())
    )
    own = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        padding_side="left",
        pad_token_type_id=3,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    own.save_pretrained(folder)
    return folder


def funnel(folder: Path) -> Path:
    from tokenizers import processors
    from transformers import FunnelConfig, FunnelModel, PreTrainedTokenizerFast

    torch.manual_seed(1)
    config = FunnelConfig(
        vocab_size=16000, block_sizes=[1, 1], d_model=32, n_head=2, d_head=16, d_inner=48
    )
    FunnelModel(config).save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(SOURCE).backend_tokenizer
    names = {name: tokenizer.token_to_id(name) for name in ("[SEP]", "[CLS]")}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:2 $A:0 [SEP]:0", special_tokens=list(names.items())
    )
    own = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    own.save_pretrained(folder)
    return folder


def bert_of_other_segments(folder: Path) -> Path:
    from tokenizers import processors

    save_plain(folder, type_vocab_size=3)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    names = {name: tokenizer.convert_tokens_to_ids(name) for name in ("[SEP]", "[CLS]")}
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:2 $A:1 [SEP]:1", special_tokens=list(names.items())
    )
    tokenizer.save_pretrained(folder)
    update(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    again = AutoTokenizer.from_pretrained(folder)("a", return_token_type_ids=True)
    assert again["token_type_ids"] == [2, 1, 1]
    return folder


@pytest.mark.parametrize("make", [xlnet, funnel, bert_of_other_segments])
def test_segments_are_those_of_the_tokenizer(make: Any, tmp_path: Path) -> None:
    folder = make(tmp_path / "model")
    model, tokenizer = (
        AutoModel.from_pretrained(folder).eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    opened = open_model(str(folder))
    # Funnel mixes neighbours, padding among them: its texts are compared one by one.
    found = [opened.encode(text) for text in TEXTS[:3]]
    if make is not funnel:
        assert opened.encode(TEXTS[:3]) == pytest.approx(np.stack(found), abs=1e-5)
    for text, vector in zip(TEXTS, found, strict=False):
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        assert vector == pytest.approx(states.mean(dim=0).numpy(), abs=1e-5)


# --- what is no sentence encoder, and what says nothing of its pooling


@pytest.mark.parametrize("form", ["library", "old", "one label"])
def test_a_cross_encoder_is_refused(form: str, tmp_path: Path) -> None:
    plain, folder = save_plain(tmp_path / "plain"), tmp_path / "model"
    if form == "library":
        CrossEncoder(str(plain), num_labels=1, device="cpu").save(str(folder))
    else:
        count = 3 if form == "old" else 1
        model = AutoModelForSequenceClassification.from_pretrained(plain, num_labels=count)
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(SOURCE).save_pretrained(folder)
        if form == "old":
            update(folder / "config.json", sbert_ce_default_activation_function="torch.nn.Identity")
    with pytest.raises(InputError) as caught:
        open_model(str(folder))
    assert caught.value.file == str(folder)
    vectors = open_for_evaluation(str(folder), "mean").model.encode(TEXTS)
    assert vectors == pytest.approx(Encoder.from_pretrained(str(plain)).encode(TEXTS), abs=1e-6)


def test_a_model_without_a_pooling_says_what_was_used(tmp_path: Path) -> None:
    plain = save_plain(tmp_path / "plain")
    assert "mean" in open_for_evaluation(str(plain)).remark
    named = save_sentence_encoder(tmp_path / "model", plain, modules.Pooling(32, "mean"))
    assert open_for_evaluation(str(named)).remark == ""
    assert open_for_evaluation(str(plain), "cls").remark == ""
    classifier = tmp_path / "classifier"
    model = AutoModelForSequenceClassification.from_pretrained(plain, num_labels=4)
    model.save_pretrained(classifier)
    AutoTokenizer.from_pretrained(SOURCE).save_pretrained(classifier)
    assert "BertForSequenceClassification" in open_for_evaluation(str(classifier)).remark


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_an_encoder_of_t5_is_run_by_sentence_transformers(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    from transformers import T5Config, T5EncoderModel

    torch.manual_seed(1)
    config = T5Config(vocab_size=16000, d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2)
    plain = tmp_path / "plain"
    T5EncoderModel(config).to(dtype).save_pretrained(plain)
    AutoTokenizer.from_pretrained(SOURCE).save_pretrained(plain)
    folder = save_sentence_encoder(tmp_path / "model", plain, modules.Pooling(32, "mean"))
    model = open_model(str(folder))
    assert isinstance(model, ForeignEncoder)
    assert model.encode(TEXTS[:3]) == pytest.approx(their_vectors(folder, TEXTS[:3]), abs=1e-6)
    with pytest.raises(InputError):
        Encoder.from_pretrained(str(plain))


def test_a_shortened_funnel_is_run_by_sentence_transformers(tmp_path: Path) -> None:
    from transformers import FunnelBaseModel, FunnelConfig

    torch.manual_seed(1)
    config = FunnelConfig(
        vocab_size=16000, block_sizes=[1, 1], d_model=32, n_head=2, d_head=16, d_inner=48
    )
    FunnelBaseModel(config).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(SOURCE).save_pretrained(tmp_path)
    assert isinstance(open_model(str(tmp_path)), ForeignEncoder)


# --- hostile files


def no_padding(folder: Path) -> None:
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        if (folder / name).is_file():
            settings = json.loads((folder / name).read_text())
            kept = {k: v for k, v in settings.items() if not k.endswith("_token")}
            kept["tokenizer_class"] = "PreTrainedTokenizerFast"
            (folder / name).write_text(json.dumps(kept))


def more_tokens(folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["[TICKET]", "[USER]"], special_tokens=True)
    tokenizer.save_pretrained(folder)


def frame_beyond_the_vocabulary(folder: Path) -> None:
    file = folder / "tokenizer.json"
    tree = json.loads(file.read_text())
    for special in tree["post_processor"]["special_tokens"].values():
        special["ids"] = [999_999]
    file.write_text(json.dumps(tree))
    update(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")


def empty_vocabulary(folder: Path) -> None:
    file = folder / "tokenizer.json"
    tree = json.loads(file.read_text())
    tree["model"]["vocab"] = {}
    tree["added_tokens"] = []
    file.write_text(json.dumps(tree))


def link_to_a_device(folder: Path) -> None:
    (folder / "1_Pooling" / "config.json").unlink()
    (folder / "1_Pooling" / "config.json").symlink_to("/dev/zero")


def long_prompt(folder: Path) -> None:
    prompts = {"query": "a " * 1_000_000}
    file = folder / "config_sentence_transformers.json"
    update(file, prompts=prompts, default_prompt_name="query")


HOSTILE = {
    "layers": lambda folder: update(folder / "config.json", num_hidden_layers=10**9),
    "layers, below 0": lambda folder: update(folder / "config.json", num_hidden_layers=-1),
    "length NaN": lambda folder: update(folder / "tokenizer_config.json", model_max_length=np.nan),
    "layers, a float": lambda folder: update(folder / "config.json", num_hidden_layers=1e9),
    "length -1": lambda folder: update(folder / "tokenizer_config.json", model_max_length=-1),
    "length 0": lambda folder: update(folder / "tokenizer_config.json", model_max_length=0),
    "length x": lambda folder: update(folder / "tokenizer_config.json", model_max_length="x"),
    "no padding": no_padding,
    "more tokens than vectors": more_tokens,
    "a frame beyond the vocabulary": frame_beyond_the_vocabulary,
    "an empty vocabulary": empty_vocabulary,
    "modules.json, nested": lambda folder: (folder / "modules.json").write_text("[" * 100_000),
    "config.json, nested": lambda folder: (folder / "config.json").write_text('{"a":' * 100_000),
    "modules.json, an object": lambda folder: (folder / "modules.json").write_text('{"type": 1}'),
    "a link to a device": link_to_a_device,
    "a long prompt": long_prompt,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_one_line(name: str, tmp_path: Path) -> None:
    plain = save_plain(tmp_path / "plain")
    folder = save_sentence_encoder(tmp_path / "model", plain, modules.Pooling(32, "mean"))
    HOSTILE[name](folder)
    with raises_input_error() as caught:
        open_for_evaluation(str(folder))
    assert len(str(caught.value)) < 1500


@pytest.mark.skipif(find_spec("sentencepiece") is not None, reason="sentencepiece is installed")
def test_a_tokenizer_of_sentencepiece_names_what_to_install(tmp_path: Path) -> None:
    save_plain(tmp_path, "xlm-roberta")
    for file in tmp_path.glob("tokenizer*"):
        file.unlink()
    pieces = b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02"
    (tmp_path / "sentencepiece.bpe.model").write_bytes(pieces)
    settings = {"tokenizer_class": "XLMRobertaTokenizer"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with raises_input_error(file=tmp_path):
        open_model(str(tmp_path))
