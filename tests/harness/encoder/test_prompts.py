"""Prompts: what stands around a sentence, the state that is read, and saved models in
sentence-transformers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from harness.encoder import Encoder
from harness.encoder.pooling import one_token
from harness.encoder.prompts import Prompt
from harness.method import MethodConfig
from tests.support.encoder_models import base_model, causal_model
from tests.support.errors import raises_input_error

MASKED = 'prompt:This sentence : "[X]" means [MASK].'
LAST = 'prompt:This sentence : "[X]" means in one word:"'
TEXTS = ["A man plays a guitar.", "Rain", "", "word " * 100, "the [MASK] itself"]


@pytest.mark.parametrize("pooling", [MASKED, LAST, "last"])
def test_the_vector_is_the_state_of_the_token_that_is_read_and_saved_models_agree(
    pooling: str, tmp_path: Path
) -> None:
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling=pooling).eval()
    vectors = encoder.encode(TEXTS)
    for text, vector in list(zip(TEXTS, vectors, strict=True))[:4]:
        (ids,) = encoder.tokenize([text])
        at = ids.index(encoder.tokenizer.mask_token_id) if pooling == MASKED else len(ids) - 1
        state = encoder.hidden_states(encoder.collate([ids]))[-1][0, at]
        np.testing.assert_allclose(vector, state.detach().numpy(), atol=1e-5)
    encoder.save(tmp_path / "saved")
    again = Encoder.load(tmp_path / "saved")
    assert again.pooling == encoder.pooling
    np.testing.assert_array_equal(again.encode(TEXTS), vectors)
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, vectors, atol=1e-5)


def test_the_template_is_never_cut() -> None:
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling=MASKED, max_length=20)
    short, long = encoder.tokenize(["Rain", "word " * 100])
    assert encoder.tokenizer.decode(short) == '[CLS] this sentence : " rain. " means [MASK]. [SEP]'
    assert len(long) == 20
    assert long[:5] == short[:5]
    assert long[-5:] == short[-5:]


def test_what_would_follow_the_last_token_is_left_off() -> None:
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling=LAST)
    assert encoder.tokenizer.decode(encoder.tokenize(["Rain"])[0]).endswith('in one word : "')


def test_a_causal_model_reads_its_last_token(tmp_path: Path) -> None:
    base = base_model(tmp_path / "qwen3", "qwen3")
    encoder = Encoder.from_pretrained(base, pooling="prompt:the [X] and the").eval()
    ids = encoder.tokenize(["cat sat", "dog"])
    assert [row[-2:] for row in ids] == [ids[0][-2:]] * 2
    states = [encoder.hidden_states(encoder.collate([row]))[-1][0, -1].detach() for row in ids]
    np.testing.assert_allclose(
        encoder.encode(["cat sat", "dog"]), torch.stack(states).numpy(), atol=1e-5
    )
    encoder.save(tmp_path / "saved")
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(["cat sat", "dog"])
    np.testing.assert_allclose(theirs, encoder.encode(["cat sat", "dog"]), atol=1e-5)


def test_rows_are_those_of_the_tokenizer_with_the_template() -> None:
    plain = Encoder.from_pretrained("embedded:mini-bert").tokenizer
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling=MASKED)
    prompt = Prompt.parse(MASKED.removeprefix("prompt:"))
    assert prompt.rows(TEXTS[:3], plain, 30) == encoder.tokenize(TEXTS[:3])
    assert [len(row) for row in prompt.rows(["word " * 100], plain, 7)] == [
        sum(map(len, prompt.pieces(plain))) + 7
    ]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ('"[X]" means [MASK].', ["It rains.", "It rains.", "Why?", 'He said "no"', ""]),
        ('" [X] " means [MASK] .', ["It rains .", "It rains.", "Why?", 'He said "no"', ""]),
        ('"[X]" means in one word:"', ["It rains.", "It rains.", "Why.", "He said 'no'", ""]),
    ],
)
def test_a_sentence_ends_as_in_the_authors_evaluations(template: str, expected: list[str]) -> None:
    texts = ["It rains ", "It rains.", "Why?", 'He said "no"', ""]
    written = Prompt.parse(template).sentence(
        Encoder.from_pretrained("embedded:mini-bert").tokenizer
    )
    assert [written.normalize_str(text) for text in texts] == expected
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling=f"prompt:{template}")
    assert encoder.tokenize(texts) == encoder.tokenize(expected)


def test_a_blank_before_the_sentence_belongs_to_its_first_word(tmp_path: Path) -> None:
    """As where the whole line is tokenised at once, which is what PromptBERT's authors do."""
    causal = causal_model(tmp_path)
    plain = Encoder.from_pretrained(causal).tokenizer
    encoder = Encoder.from_pretrained(causal, pooling="prompt:This sentence : ' [X] ' means:")
    (row,) = encoder.tokenize(["a dog ran"])
    assert (
        row == plain("This sentence : ' a dog ran. ' means:", add_special_tokens=False)["input_ids"]
    )
    assert Prompt.parse("This sentence : ' [X] ' means:").rows(["a dog ran"], plain, 9) == [row]


def test_one_token() -> None:
    mask = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 0, 1]])
    assert one_token(mask).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    assert one_token(mask[:2], torch.tensor([[1, 0, 0], [0, 1, 1]]) == 1).tolist() == [
        [1, 0, 0],
        [0, 1, 1],
    ]
    with raises_input_error():
        one_token(mask, torch.zeros(3, 3) == 1)


@pytest.mark.parametrize(
    "template", ["no sentence", "[X] and [X]", "[X]", "[MASK] [X] and [X] [MASK]"]
)
def test_a_text_that_is_no_template_is_refused_in_one_line(template: str) -> None:
    for refuse in (
        lambda: MethodConfig.parse({"pooling": f"prompt:{template}"}, "file.toml"),
        lambda: Encoder.from_pretrained("embedded:mini-bert", pooling=f"prompt:{template}"),
    ):
        with raises_input_error(key="pooling"):
            refuse()


def test_a_base_model_without_a_mask_token_is_refused(tmp_path: Path) -> None:
    base = base_model(tmp_path / "bert", "bert")
    with raises_input_error(key="prompt"):
        Encoder.from_pretrained(base, pooling=MASKED)
