"""The masked-language-modelling head against transformers' own models, the masking rates and the
loss.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

from harness.encoder import Encoder
from harness.encoder.masked_lm import MaskedLM, mask_tokens, masked_lm_loss
from tests.support.encoder_models import FAMILIES, TEXTS, base_model, tokenizer
from tests.support.errors import raises_input_error

MINI = "embedded:mini-bert"


@pytest.fixture(scope="module")
def mini():
    return Encoder.from_pretrained(MINI).eval()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_checkpoints_own_head(tmp_path, family):
    torch.manual_seed(3)
    model = AutoModelForMaskedLM.from_config(FAMILIES[family]).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    encoder = Encoder.from_pretrained(str(tmp_path)).eval()
    head = MaskedLM.from_base(str(tmp_path), encoder)
    assert head.pretrained
    features = encoder.collate(encoder.tokenize(TEXTS[:2]))
    with torch.no_grad():
        states = encoder.hidden_states(features)[-1]
        torch.testing.assert_close(head(states), model(**features).logits, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(head(states[0, 1]), head(states)[0, 1])  # of any leading shape


def test_a_fresh_head(tmp_path):
    encoder = Encoder.from_pretrained(base_model(tmp_path / "base"))
    before = torch.get_rng_state()
    head = MaskedLM.from_base(str(tmp_path / "base"), encoder)
    torch.set_rng_state(before)
    again = MaskedLM.from_base(str(tmp_path / "base"), encoder)
    assert not head.pretrained
    assert head.dense.weight.shape == (32, 32)
    assert float(head.dense.weight.detach().std()) == pytest.approx(0.02, rel=0.1)
    assert not head.dense.bias.any()
    assert not head.bias.any()
    torch.testing.assert_close(
        head.dense.weight, again.dense.weight
    )  # the global generator alone decides


def test_the_decoder_is_the_encoders_embedding(mini):
    encoder = mini.copy()
    head = MaskedLM.from_base(MINI, encoder)
    table = encoder.transformer.get_input_embeddings().weight
    assert all(parameter is not table for parameter in head.parameters())
    states = encoder.hidden_states(encoder.collate(encoder.tokenize(["a cat"])))[-1].detach()
    head(states).sum().backward()
    assert table.grad is not None
    with torch.no_grad():
        before = head(states)
        table.mul_(2.0)
        torch.testing.assert_close(
            head(states) - head.bias, 2 * (before - head.bias), atol=1e-4, rtol=1e-4
        )


def test_the_embedded_model_predicts_words(mini):
    head = MaskedLM.from_base(MINI, mini)
    assert head.pretrained
    ids = mini.tokenize(["He was born in new [MASK] city ."])
    with torch.no_grad():
        logits = head(mini.hidden_states(mini.collate(ids))[-1])
    place = ids[0].index(mini.tokenizer.mask_token_id)
    assert mini.tokenizer.convert_ids_to_tokens(int(logits[0, place].argmax())) == "york"


def test_all_chosen_tokens_may_become_a_given_one(mini):
    words = mini.tokenizer.convert_tokens_to_ids(["cat", "dog", "house"]) * 200
    masked, labels = mask_tokens(
        [words], mini.tokenizer, np.random.default_rng(0), shares=(1.0, 0.0), mask=7
    )
    assert [m == 7 for m in masked[0]] == [label != -100 for label in labels[0]]
    assert [label if m == 7 else m for m, label in zip(masked[0], labels[0], strict=True)] == words


def test_masking_rates(mini):
    tokens = mini.tokenizer
    words = tokens.convert_tokens_to_ids(["cat", "dog", "house"])
    row = [tokens.cls_token_id, *words * 200, tokens.unk_token_id, tokens.sep_token_id]
    ids = [row] * 100
    masked, labels = mask_tokens(ids, tokens, np.random.default_rng(0))
    assert [len(row) for row in masked] == [len(row) for row in labels] == [len(row) for row in ids]
    before, after, label = (np.array(value) for value in (ids, masked, labels))
    special = np.isin(before, tokens.all_special_ids)
    assert (label[special] == -100).all()
    assert (after[label == -100] == before[label == -100]).all()
    assert (label[label != -100] == before[label != -100]).all()
    count = int((~special).sum())  # 60,000 draws; bounds are 4 standard errors
    chosen = label != -100
    assert abs(chosen.sum() / count - 0.15) < 4 * np.sqrt(0.15 * 0.85 / count)
    n = int(chosen.sum())
    for seen, rate in (
        ((after == tokens.mask_token_id) & chosen, 0.8),
        ((after == before) & chosen, 0.1),
        ((after != before) & (after != tokens.mask_token_id) & chosen, 0.1),
    ):
        assert abs(seen.sum() / n - rate) < 4 * np.sqrt(rate * (1 - rate) / n)
    drawn = after[chosen & (after != before) & (after != tokens.mask_token_id)]
    assert not np.isin(drawn, tokens.all_special_ids).any()
    assert len(set(drawn.tolist())) > 700  # of all the vocabulary


def test_masking_is_decided_by_the_generator(mini):
    ids = mini.tokenize(TEXTS)
    assert mask_tokens(ids, mini.tokenizer, np.random.default_rng(5)) == mask_tokens(
        ids, mini.tokenizer, np.random.default_rng(5)
    )
    everything, labels = mask_tokens(
        [[2, 700, 701, 3]], mini.tokenizer, np.random.default_rng(0), probability=1.0
    )
    assert labels == [[-100, 700, 701, -100]]
    assert everything[0][0] == 2
    assert mask_tokens([[2, 700, 3]], mini.tokenizer, np.random.default_rng(0), probability=0.0)[
        0
    ] == [[2, 700, 3]]
    assert mask_tokens([], mini.tokenizer, np.random.default_rng(0)) == ([], [])


def test_a_tokenizer_without_a_mask_token():
    with raises_input_error():
        mask_tokens([[0, 5, 2]], tokenizer(), np.random.default_rng(0))


def test_loss_by_hand():
    """-log softmax at the true token, averaged over the tokens that have a label."""
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(2, 3, 5))
    labels = np.array([[-100, 2, -100], [4, -100, 0]])
    terms = [
        np.log(np.exp(logits[i, t]).sum()) - logits[i, t, labels[i, t]]
        for i, t in ((0, 1), (1, 0), (1, 2))
    ]
    loss = masked_lm_loss(torch.tensor(logits, dtype=torch.float32), torch.tensor(labels))
    assert float(loss) == pytest.approx(np.mean(terms), rel=1e-5)
    half = masked_lm_loss(torch.tensor(logits, dtype=torch.bfloat16), torch.tensor(labels))
    assert half.dtype == torch.float32


def test_loss_of_nothing_is_zero_with_a_gradient():
    logits = torch.randn(2, 3, 5, requires_grad=True)
    loss = masked_lm_loss(logits, torch.full((2, 3), -100))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert not logits.grad.any()
    empty = masked_lm_loss(torch.zeros(0, 5, requires_grad=True), torch.zeros(0, dtype=torch.long))
    assert float(empty.detach()) == 0.0
