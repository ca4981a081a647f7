"""Echo: both copies of a sentence, the tokens that are pooled, cutting, and saved models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer

from harness.encoder import Encoder
from harness.encoder.prompts import DEFAULT, Echo
from harness.evaluation.any_model import open_for_evaluation
from harness.method import MethodConfig
from methods.model2vec import encode_tokens
from methods.pooling import PoolingMethod
from tests.support.encoder_models import base_model, causal_model
from tests.support.errors import raises_input_error

TEXTS = ["the cat sat on the mat", "a dog ran", "", "tree " * 100, "été 🙂"]
WITH_END = "echo:Rewrite: [X] -> [X]."


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> str:
    return causal_model(tmp_path_factory.mktemp("causal"))


@pytest.mark.parametrize("base", ["embedded:mini-bert", "causal"])
@pytest.mark.parametrize("pooling", ["echo", "echo_last", WITH_END])
def test_the_vector_is_made_of_the_second_copy(base: str, pooling: str, causal: str) -> None:
    encoder = Encoder.from_pretrained(causal if base == "causal" else base, pooling=pooling).eval()
    vectors = encoder.encode(TEXTS)
    for text, vector in zip(TEXTS[:2], vectors[:2], strict=True):
        (ids,) = encoder.tokenize([text])
        copies = encoder.tokenizer(text, add_special_tokens=False)["input_ids"]
        words = copies[: len(copies) // 2]
        starts = [i for i in range(len(ids)) if ids[i : i + len(words)] == words]
        assert len(starts) == 2
        states = encoder.hidden_states(encoder.collate([ids]))[-1][
            0, starts[1] : starts[1] + len(words)
        ].detach()
        expected = states[-1] if pooling == "echo_last" else states.mean(dim=0)
        np.testing.assert_allclose(vector, expected.numpy(), atol=1e-5)
    assert np.isfinite(vectors).all()
    assert np.abs(vectors[2]).sum() > 0, "an empty text has the vector of the template"


def test_under_causal_attention_the_second_copy_knows_the_end_of_the_sentence(causal: str) -> None:
    """The first token of both texts is the same; only an echo lets it see what follows."""
    echo, plain = (
        Encoder.from_pretrained(causal, pooling=name).eval() for name in ("echo", "mean")
    )
    for encoder, seen in ((echo, True), (plain, False)):
        first = []
        for text in ("the cat sat on the mat", "the cat sat on the tree"):
            (ids,) = encoder.tokenize([text])
            features = encoder.collate([ids])
            at = encoder.pooling_mask(features)[0].nonzero()[0]
            first.append(encoder.hidden_states(features)[-1][0, at].detach())
        assert bool((first[0] - first[1]).abs().max() > 1e-3) == seen


def test_words_are_the_same_as_in_running_text(causal: str) -> None:
    """A byte-level tokenizer glues a blank to the word behind it; the template must not take it
    away.
    """
    encoder = Encoder.from_pretrained(causal, pooling="echo")
    plain = Encoder.from_pretrained(causal).tokenizer
    text = DEFAULT.replace("[X]", "the cat sat")
    assert encoder.tokenize(["the cat sat"]) == [plain(text)["input_ids"]]
    quoted = Encoder.from_pretrained(causal, pooling='echo:"[X]" is "[X]"')
    assert quoted.tokenizer.decode(quoted.tokenize(["the cat"])[0]) == '"the cat" is "the cat"'


@pytest.mark.parametrize("limit", [20, 21])
def test_both_copies_are_cut_alike_and_the_template_is_not(limit: int) -> None:
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling="echo", max_length=limit)
    short, long = encoder.tokenize(["Rain", "sun rain wind snow " * 20])
    assert (
        encoder.tokenizer.decode(short)
        == "[CLS] rewrite the sentence : rain, rewritten sentence : rain [SEP]"
    )
    assert len(long) == encoder.max_length == 20
    assert long[6:10] == long[15:19]
    assert (long[:6], long[10:15], long[-1]) == (short[:6], short[7:12], short[-1])
    assert len(encoder.tokenize(["sun " * 20], max_length=4)[0]) == 12 + 2, (
        "one word at least is left of a sentence"
    )


@pytest.mark.parametrize("pooling", ["echo", "echo_last", WITH_END])
def test_saved_models_open_with_this_package_and_keep_their_vectors(
    pooling: str, causal: str, tmp_path: Path
) -> None:
    encoder = Encoder.from_pretrained(causal, pooling=pooling, max_length=60).eval()
    vectors = encoder.encode(TEXTS)
    encoder.save(tmp_path / "saved")
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(theirs.encode(TEXTS), vectors, atol=1e-5)
    theirs.save(str(tmp_path / "again"), create_model_card=False)
    for folder in ("saved", "again"):
        opened = open_for_evaluation(str(tmp_path / folder))
        assert opened.model.pooling == encoder.pooling
        assert opened.model.max_length == encoder.max_length
        np.testing.assert_array_equal(opened.model.encode(TEXTS), vectors)
    assert "trust_remote_code=True" in ModelCard.load(tmp_path / "saved" / "README.md").text


def test_a_folder_whose_parts_do_not_belong_together_is_refused(tmp_path: Path) -> None:
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling="echo")
    encoder.save(tmp_path / "saved")
    file = tmp_path / "saved" / "1_SecondCopy" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "between": 2}))
    with raises_input_error(file=tmp_path / "saved"):
        Encoder.load(tmp_path / "saved")


def test_rows_that_a_method_made_itself_are_refused() -> None:
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling="echo")
    (ids,) = encoder.tokenize(["A dog runs across the field."])
    longer = [*ids[:8], ids[7], ids[7], *ids[8:]]  # two more tokens in the first copy alone
    for row in (longer, ids[:-1], ids[:4]):
        with raises_input_error(key="pooling"):
            encoder(encoder.collate([ids, row]))


def test_two_views_and_gradients_go_through(causal: str) -> None:
    encoder = Encoder.from_pretrained(causal, pooling="echo").train()
    ids = encoder.tokenize(TEXTS[:3])
    a, b = encoder.two_views(ids, ids, differ_by=None, attention_dropout=(0.1, 0.1))
    assert not torch.equal(a, b)
    (a * b).sum().backward()
    assert all(p.grad is not None for p in encoder.transformer.layers.parameters())


@pytest.mark.parametrize(
    "template", ["no sentence", "once [X]", "[X][X]", "[X] [X]", "[X] a [X] b [X]"]
)
@pytest.mark.parametrize("name", ["echo", "echo_last"])
def test_a_text_that_is_no_template_is_refused_in_one_line(name: str, template: str) -> None:
    for refuse in (
        lambda: MethodConfig.parse({"pooling": f"{name}:{template}"}, "file.toml"),
        lambda: Encoder.from_pretrained("embedded:mini-bert", pooling=f"{name}:{template}"),
    ):
        with raises_input_error(key="pooling"):
            refuse()


def test_a_template_without_room_for_a_sentence_is_refused_before_the_run(tmp_path: Path) -> None:
    method = PoolingMethod(PoolingMethod.configure({"pooling": "echo", "max_length": 13}))
    with raises_input_error(file="embedded:mini-bert"):
        method.check(None)
    roomy = PoolingMethod(PoolingMethod.configure({"pooling": "echo", "max_length": 14}))
    roomy.check(None)


def test_the_papers_template() -> None:
    assert Echo.parse(DEFAULT) == Echo("Rewrite the sentence: ", ", rewritten sentence: ", "")
    assert [PoolingMethod.configure({}, preset=name).pooling for name in ("echo", "echo_last")] == [
        "echo",
        "echo_last",
    ]


def test_prompteol_reads_the_quote_that_the_next_word_would_follow(
    causal: str, tmp_path: Path
) -> None:
    config = PoolingMethod.configure({}, preset="prompteol")
    method = PoolingMethod(config, base_model=causal).fit()
    (ids,) = method.encoder.tokenize(["a dog ran"])
    assert (
        method.encoder.tokenizer.decode(ids) == 'This sentence : "a dog ran." means in one word:"'
    )
    state = method.encoder.hidden_states(method.encoder.collate([ids]))[-1][0, -1].detach().numpy()
    np.testing.assert_allclose(method.encode(["a dog ran", *TEXTS])[0], state, atol=1e-5)
    method.save(tmp_path / "model")
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, method.encode(TEXTS), atol=1e-5)


def test_a_family_with_a_frame_of_its_own_keeps_it(tmp_path: Path) -> None:
    encoder = Encoder.from_pretrained(
        base_model(tmp_path / "bert", "bert"), pooling="echo:the [X] and [X]"
    )
    assert (
        encoder.tokenizer.decode(encoder.tokenize(["cat sat"])[0])
        == "<s> the cat sat and cat sat </s>"
    )


def test_word_pieces_are_distilled_from_both_copies(tmp_path: Path) -> None:
    encoder = Encoder.from_pretrained(
        base_model(tmp_path / "bert", "bert"), pooling="echo:the [X] and [X]"
    )
    words = ["cat", "tree"]
    ids = encoder.tokenizer.convert_tokens_to_ids(words)
    np.testing.assert_allclose(encode_tokens(encoder, ids), encoder.encode(words), atol=1e-5)
