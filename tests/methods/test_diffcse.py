"""DiffCSE: the detection loss against its formula, what the generator writes, what the
discriminator is told.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.encoder.masked_lm import mask_tokens
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.diffcse import DiffCSE, replaced_token_detection
from methods.objectives import nt_xent
from tests.support.encoder_models import base_model
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=16)


def test_detection_equals_the_formula_on_real_tokens() -> None:
    rng = np.random.default_rng(0)
    logits, ids, original = (
        rng.normal(size=(2, 3, 2)),
        rng.integers(0, 3, (2, 3)),
        rng.integers(0, 3, (2, 3)),
    )
    mask = np.array([[1, 1, 0], [1, 1, 1]])
    terms = []
    for i in range(2):
        for t in range(3):
            if mask[i, t]:
                p = np.exp(logits[i, t]) / np.exp(logits[i, t]).sum()
                terms.append(-math.log(p[1 if ids[i, t] != original[i, t] else 0]))
    value = replaced_token_detection(*map(torch.from_numpy, (logits, ids, original, mask)))
    assert float(value) == pytest.approx(sum(terms) / 5, rel=1e-6)


def set_up(corpus: Corpus, **values: Any) -> tuple[DiffCSE, Any, Any, Batch]:
    torch.manual_seed(0)
    method = DiffCSE(DiffCSE.configure({"train_length": 16, **values}))
    encoder = method.load_base()
    return (
        method,
        encoder,
        method.heads(encoder),
        Batch(list(corpus[:4]), np.random.default_rng(0), 0),
    )


def test_the_generator_writes_the_likeliest_tokens_and_keeps_the_frame(corpus: Corpus) -> None:
    _, encoder, heads, batch = set_up(corpus)
    ids = encoder.tokenize(batch.texts, max_length=16)
    masked, _ = mask_tokens(ids, encoder.tokenizer, np.random.default_rng(1), probability=0.3)
    heads.train()
    written = heads.generator.write(ids, masked)
    from transformers import AutoModelForMaskedLM

    from harness.sources import resolve_model

    model = AutoModelForMaskedLM.from_pretrained(
        resolve_model("embedded:mini-bert"), dtype=torch.float32
    ).eval()
    for row, hidden, new in zip(ids, masked, written, strict=True):
        assert (new[0], new[-1]) == (row[0], row[-1])
        best = model(input_ids=torch.tensor([hidden])).logits[0].argmax(-1).tolist()
        assert new[1:-1] == best[1:-1], "without dropout, by transformers' own head"
    assert written != ids
    assert not any(p.requires_grad for p in heads.generator.parameters())


def test_the_discriminator_reads_the_vector_in_the_place_of_the_first_token(corpus: Corpus) -> None:
    _, encoder, heads, batch = set_up(corpus)
    features = encoder.collate([*encoder.tokenize(batch.texts[:2], max_length=16)] * 2)
    told = [torch.randn(2, encoder.dimension) for _ in range(3)]
    model = heads.discriminator.eval()
    one, two = model(features, told[0], told[1]), model(features, told[0], told[2])
    torch.testing.assert_close(one[:2], two[:2])
    assert not torch.allclose(one[2:], two[2:], atol=1e-3), "view b is told its own vectors"
    inside = model.transformer.embeddings(
        input_ids=features["input_ids"], token_type_ids=features["token_type_ids"]
    )
    replaced = torch.cat([torch.cat(told[:2]).unsqueeze(1), inside[:, 1:]], dim=1)
    states = model.transformer.encoder(replaced, attention_mask=spread(features["attention_mask"]))
    torch.testing.assert_close(one, model.head(states.last_hidden_state), atol=1e-5, rtol=1e-4)


def spread(mask: torch.Tensor) -> torch.Tensor:
    """What a layer adds to its scores: 0 at real tokens, very little at padding."""
    return (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min


def test_the_loss_is_simcse_plus_the_weighted_detection_which_reaches_the_encoder(
    corpus: Corpus,
) -> None:
    method, encoder, heads, batch = set_up(corpus, rtd_weight=0.5)
    encoder.train()
    heads.train()
    terms = method.loss(encoder, heads, batch)
    total = float(terms["contrast"].detach() + terms["detection"].detach())
    assert float(terms["loss"].detach()) == pytest.approx(total, rel=1e-6)
    encoder.zero_grad()
    terms["detection"].backward()
    assert any(p.grad is not None and bool(p.grad.any()) for p in encoder.parameters()), (
        "by the vector it is told"
    )
    encoder.eval()
    heads.eval()
    ids = encoder.tokenize(batch.texts, max_length=16)
    z = heads.mlp(encoder(encoder.collate(ids)))
    plain = method.loss(encoder, heads, Batch(batch.items, np.random.default_rng(0), 0))
    torch.testing.assert_close(
        plain["contrast"], nt_xent(z, z, temperature=0.05), atol=1e-5, rtol=1e-4
    )


def test_the_projector_is_the_released_one(corpus: Corpus) -> None:
    _, encoder, heads, _ = set_up(corpus)
    shapes = [tuple(p.shape) for p in heads.mlp.parameters()]
    d = encoder.dimension
    assert shapes == [(2 * d, d), (2 * d,), (2 * d,), (d, 2 * d)], (
        "no biases, and a last BatchNorm without weights"
    )


def test_training_resumes_bit_for_bit(corpus: Corpus, tmp_path: Path) -> None:
    values = {"batch_size": 4, "train_length": 8, "learning_rate": 1e-3}
    whole, resumed = weights_whole_and_resumed(DiffCSE, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


def test_a_generator_of_another_vocabulary_or_without_a_head_is_refused(
    corpus: Corpus, tmp_path: Path
) -> None:
    other = base_model(tmp_path / "other", "roberta")
    with raises_input_error(key="generator"):
        set_up(corpus, generator=other)
    method = DiffCSE(DiffCSE.configure({}), base_model=base_model(tmp_path / "bare", "bert"))
    with raises_input_error():
        method.heads(method.load_base())


@pytest.mark.parametrize(
    "values", [{"mask": 1.0}, {"rtd_weight": -1}, {"head": "mlp"}, {"micro_batch": 4}]
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        DiffCSE.configure(values)
