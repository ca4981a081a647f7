"""PromptBERT: both templates as views, what the templates say by themselves, and the loss from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.objectives import nt_xent
from methods.promptbert import PromptBERT
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=16)


def set_up(corpus: Corpus, **values: Any) -> tuple[PromptBERT, Any, Any, Batch]:
    torch.manual_seed(0)
    method = PromptBERT(PromptBERT.configure({"train_length": 12, **values}))
    encoder = method.load_base().eval()
    return (
        method,
        encoder,
        method.heads(encoder).eval(),
        Batch(list(corpus[:4]), np.random.default_rng(0), 0),
    )


def test_the_views_are_the_two_templates_around_the_cut_sentence(corpus: Corpus) -> None:
    method, encoder, _, batch = set_up(corpus)
    ids_a, ids_b = method.views(encoder, batch)
    for a, b in zip(ids_a, ids_b, strict=True):
        assert encoder.tokenizer.decode(a).startswith('[CLS] this sentence of "')
        assert encoder.tokenizer.decode(b).startswith('[CLS] this sentence : "')
        assert a[5:-5] == b[5:-5]
        assert len(a) <= 12 + 10


def test_the_bare_template_stands_where_it_stood_around_the_sentence(corpus: Corpus) -> None:
    """By position ids that leave out the sentence's, as the released code has it."""
    method, encoder, _, batch = set_up(corpus)
    ids_a, _ = method.views(encoder, batch)
    bare = method._template_vectors(encoder, ids_a, 0).detach()
    before, after = method._prompt(0).pieces(method._plain_tokenizer())
    for row, vector in zip(ids_a, bare, strict=True):
        places = [*range(len(before)), *range(len(row) - len(after), len(row))]
        template = torch.tensor([[*before, *after]])
        out = encoder.transformer(
            input_ids=template, position_ids=torch.tensor([places])
        ).last_hidden_state
        at = [*before, *after].index(encoder.tokenizer.mask_token_id)
        torch.testing.assert_close(vector, out[0, at], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("denoise", [True, False])
def test_the_loss_is_simcse_of_what_is_left(denoise: bool, corpus: Corpus) -> None:
    method, encoder, heads, batch = set_up(corpus, denoise=denoise)
    sides = []
    for which, ids in enumerate(method.views(encoder, batch)):
        h = encoder(encoder.collate(ids))
        sides.append(heads.mlp(h - method._template_vectors(encoder, ids, which) if denoise else h))
    value = method.loss(encoder, heads, batch)["loss"]
    torch.testing.assert_close(
        value, nt_xent(sides[0], sides[1], temperature=0.05), atol=1e-5, rtol=1e-4
    )


def test_it_encodes_with_the_first_template_and_takes_nothing_away(corpus: Corpus) -> None:
    method, encoder, _, _ = set_up(corpus)
    assert encoder.pooling.name == method.config.pooling
    ids = encoder.tokenize(corpus[:2])
    states = encoder.hidden_states(encoder.collate(ids))[-1]
    at = [row.index(encoder.tokenizer.mask_token_id) for row in ids]
    expected = states[torch.arange(2), torch.tensor(at)].detach().numpy()
    np.testing.assert_allclose(encoder.encode(corpus[:2]), expected, atol=1e-5)


def test_training_resumes_bit_for_bit(corpus: Corpus, tmp_path: Path) -> None:
    values = {"batch_size": 4, "train_length": 8, "learning_rate": 1e-3}
    whole, resumed = weights_whole_and_resumed(PromptBERT, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize(
    "values",
    [
        {"pooling": "cls"},
        {"second": "no sentence"},
        {"temperature": 0},
    ],
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        PromptBERT.configure(values)


def test_templates_of_two_kinds_are_refused() -> None:
    with raises_input_error(key="pooling"):  # the first key that the message names
        PromptBERT.configure({"second": "[X] means in one word:"})
