"""RetroMAE: whole words, what each place of the decoder sees, the decoder beside one in loops, and
its two losses.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.sources import load_corpus
from harness.training import Batch
from methods.retromae import Decoder, RetroMAE, decode, draw_words, hidden_from_places, word_numbers
from tests.support.encoder_models import base_model
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)
WORDS = np.array([-1, 0, 0, 0, 1, 2, 2, 3, 4, -1])


def started(**values: Any) -> tuple[Any, Any, Any]:
    method = RetroMAE(RetroMAE.configure({"batch_size": 4, "train_length": 16, **values}))
    torch.manual_seed(0)
    encoder = method.load_base().eval()
    return method, encoder, method.heads(encoder).eval()


def test_words_of_three_kinds_of_tokenizers() -> None:
    framed = [True, False, False, False, False, True]
    bert = ["[CLS]", "un", "##happy", "dogs", ".", "[SEP]"]
    assert word_numbers(bert, framed).tolist() == [-1, 0, 0, 1, 2, -1]
    assert word_numbers(["<s>", "un", "happy", "Ġdogs", "Ġrun", "</s>"], framed).tolist() == [
        -1,
        0,
        0,
        1,
        2,
        -1,
    ]
    assert word_numbers(["<s>", "▁un", "happy", "▁dogs", "▁run", "</s>"], framed).tolist() == [
        -1,
        0,
        0,
        1,
        2,
        -1,
    ]


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_whole_words_are_drawn_at_random_as_long_as_they_fit(share: float) -> None:
    """Against the rule in words, on the same orders: of transformers' collator, which the authors
    use.
    """
    rng = np.random.default_rng(0)
    drawn = draw_words(WORDS, share, 200, rng)
    orders = np.random.default_rng(0).random((200, 5)).argsort(axis=1)
    for row, order in zip(drawn, orders, strict=True):
        taken: list[int] = []
        for word in order:
            places = np.flatnonzero(word == WORDS).tolist()
            if len(taken) + len(places) <= round(share * len(WORDS)):
                taken += places
        assert sorted(taken) == np.flatnonzero(row).tolist()
    assert draw_words(np.array([-1, -1]), share, 3, rng).tolist() == [[False, False]] * 3


def test_a_place_sees_all_but_itself_and_the_words_of_one_mask() -> None:
    short = np.array([-1, 0, -1])
    hidden = hidden_from_places([WORDS, short], 0.5, np.random.default_rng(0)).numpy()
    assert hidden.shape == (2, 10, 10)
    masks = {tuple(row) for row in draw_words(WORDS, 0.5, 5000, np.random.default_rng(1))}
    for place, row in enumerate(hidden[0]):
        assert row[place]
        assert any((row == (np.array(mask) | (np.arange(10) == place))).all() for mask in masks)
        assert place == 0 or not row[0], "the vector is seen from all places but its own"
    assert hidden[1, :3, 3:].all(), "nothing looks at padding"
    assert not hidden.all(axis=2).any(), "every place sees something"


def test_the_decoder_is_a_layer_of_bert_with_queries_of_their_own() -> None:
    """In loops over heads and places, in float64."""
    _, encoder, _ = started()
    torch.manual_seed(1)
    decoder = Decoder(encoder.transformer.config).double().eval()
    with torch.no_grad():
        for p in decoder.parameters():
            p.add_(0.1 * torch.randn_like(p))
    d, heads = 256, decoder.heads
    q, m = torch.randn(1, 3, d, dtype=torch.float64), torch.randn(1, 3, d, dtype=torch.float64)
    hidden = torch.tensor([[[True, False, False], [False, True, True], [False, False, True]]])
    found = decoder(q, m, hidden)[0].detach().numpy()
    weights = {name: p.detach().numpy() for name, p in decoder.named_parameters()}

    def linear(x: np.ndarray, name: str, bias: str) -> np.ndarray:
        return x @ weights[name].T + weights[bias]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        scaled = (x - x.mean()) / math.sqrt(x.var() + decoder.out.eps)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    three = np.split(weights["attention.in_proj_weight"], 3)
    shifts = np.split(weights["attention.in_proj_bias"], 3)
    queries, keys, values = (
        x[0].numpy() @ w.T + b for x, w, b in zip((q, m, m), three, shifts, strict=True)
    )
    size = d // heads
    for i in range(3):
        seen = []
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            scores = [queries[i, part] @ keys[j, part] / math.sqrt(size) for j in range(3)]
            shares = [0.0 if hidden[0, i, j] else math.exp(scores[j]) for j in range(3)]
            seen.append(sum(shares[j] * values[j, part] for j in range(3)) / sum(shares))
        attended = linear(
            np.concatenate(seen), "attention.out_proj.weight", "attention.out_proj.bias"
        )
        state = norm(q[0, i].numpy() + attended, "attended")
        wide = linear(state, "wide.weight", "wide.bias")
        wide = np.array([x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in wide])
        np.testing.assert_allclose(
            found[i], norm(state + linear(wide, "narrow.weight", "narrow.bias"), "out"), atol=1e-10
        )


def test_a_place_is_written_from_the_vector_and_the_words_it_sees() -> None:
    _, encoder, heads = started()
    ids = encoder.collate(encoder.tokenize(["A dog runs across the field."]))["input_ids"]
    hidden = torch.eye(ids.shape[1], dtype=torch.bool).unsqueeze(0)
    hidden[0, 2, 4] = True
    vector = torch.randn(1, 256)

    def states(ids: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return decode(encoder, heads.decoder, vector, ids, hidden)[0]

    before, changed = states(ids, vector), ids.clone()
    changed[0, 4] = 70  # place 2 does not see it, nor place 4 itself
    moved = (states(changed, vector) - before).abs().amax(1) > 1e-6
    assert moved.tolist() == [place not in (2, 4) for place in range(ids.shape[1])]
    assert bool(((states(ids, -vector) - before).abs().amax(1) > 1e-6).all()), "all see the vector"


def test_the_loss_is_the_sum_of_two_cross_entropies_and_reaches_all() -> None:
    method, encoder, heads = started()
    texts = list(load_corpus("embedded:sentences", limit=4))
    seen: list[Any] = []
    heads.mlm.register_forward_hook(lambda _, given, logits: seen.append(logits))
    terms = method.loss(encoder, heads, Batch([*texts, ""], np.random.default_rng(0), 0))
    assert terms["loss"].item() == pytest.approx((terms["encoder"] + terms["decoder"]).item())
    ids = encoder.tokenize(texts, max_length=16)
    masked, every = seen
    assert len(every) == sum(len(row) - 2 for row in ids), "all tokens but the frame"
    assert 0.15 < len(masked) / len(every) < 0.45
    truth = torch.tensor([token for row in ids for token in row[1:-1]])
    nats = every.double().logsumexp(1) - every.double()[torch.arange(len(truth)), truth]
    assert terms["decoder"].item() == pytest.approx(nats.mean().item(), rel=1e-5)
    terms["loss"].backward()
    assert all(p.grad is not None for p in heads.decoder.parameters())
    assert all(p.grad is not None for p in encoder.transformer.encoder.parameters())


def test_training_resumes_bit_for_bit(tmp_path: Path) -> None:
    values = {"batch_size": 4, "train_length": 8, "learning_rate": 1e-3, "pooling": "mean"}
    corpus = load_corpus("embedded:sentences", limit=16)
    whole, resumed = weights_whole_and_resumed(RetroMAE, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize("family", ["modernbert", "qwen3"])
def test_a_model_without_position_embeddings_is_refused_in_one_line(
    family: str, tmp_path: Path
) -> None:
    method = RetroMAE(base_model=base_model(tmp_path, family))
    with raises_input_error():
        method.heads(method.load_base())


@pytest.mark.parametrize(
    "values", [{"encoder_mask": 0.0}, {"decoder_mask": 1.0}, {"pooling": "first_last_avg"}]
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        RetroMAE.configure(values)
