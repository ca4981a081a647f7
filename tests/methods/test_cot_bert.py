"""CoT-BERT: the last of two [MASK]s, three templates and what they say by themselves, the loss with
3n columns.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from sentence_transformers import SentenceTransformer

from harness.encoder import Encoder
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.cot_bert import TEMPLATES, CoTBERT, extended_nt_xent
from methods.objectives import nt_xent
from tests.support.errors import raises_input_error

pytestmark = pytest.mark.timeout(300)
ENDS = ["[CLS] the sentence of", "[CLS] the sentence :", "[CLS] the sentence :"]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=5)


def started(corpus: Corpus, **values: Any) -> tuple[Any, Any, Any, Batch]:
    torch.manual_seed(0)
    method = CoTBERT(CoTBERT.configure({"train_length": 12, **values}))
    encoder = method.load_base().eval()
    return (
        method,
        encoder,
        method.heads(encoder).eval(),
        Batch(list(corpus), np.random.default_rng(0), 0),
    )


def np_loss(a: np.ndarray, p: np.ndarray, n: np.ndarray, t: float) -> float:
    a, p, n = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, p, n))
    rows = [[*(p @ a[i]), *(n @ a[i]), *(n @ p[i])] for i in range(len(a))]
    return float(
        np.mean([logsumexp(np.array(row) / t) - a[i] @ p[i] / t for i, row in enumerate(rows)])
    )


def test_loss_by_loops_and_its_gradient() -> None:
    x = [
        torch.from_numpy(np.random.default_rng(k).normal(size=(4, 3))).requires_grad_()
        for k in range(3)
    ]
    value = extended_nt_xent(*x, temperature=0.3)
    assert value.item() == pytest.approx(np_loss(*(y.detach().numpy() for y in x), 0.3))
    assert torch.autograd.gradcheck(
        lambda a, p, n: extended_nt_xent(a, p, n, temperature=0.3), tuple(x)
    )
    without = nt_xent(x[0], x[1], temperature=0.3, hard_negatives=x[2])
    assert value > without, "n more columns"


def test_it_encodes_by_the_last_mask_and_saves_that(corpus: Corpus, tmp_path: Path) -> None:
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling=TEMPLATES["pooling"]).eval()
    texts = [*corpus, "a [MASK] within the text"]
    ids = encoder.tokenize(texts)
    states = encoder.hidden_states(encoder.collate(ids))[-1]
    mask = encoder.tokenizer.mask_token_id
    last = [len(row) - 1 - row[::-1].index(mask) for row in ids]
    assert [row.count(mask) for row in ids] == [2] * len(corpus) + [3]
    vectors = encoder.encode(texts)
    np.testing.assert_allclose(
        vectors, states[torch.arange(len(ids)), torch.tensor(last)].detach().numpy(), atol=1e-5
    )
    encoder.save(tmp_path / "saved")
    np.testing.assert_array_equal(Encoder.load(tmp_path / "saved").encode(texts), vectors)
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(theirs.encode(texts), vectors, atol=1e-5)
    file = tmp_path / "saved" / "1_LastMask" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "token": 7}))
    with raises_input_error(file=tmp_path / "saved"):
        Encoder.load(tmp_path / "saved")


@pytest.mark.parametrize("denoise_by", ["pad", "position"])
def test_what_a_template_says_around_padding_or_hidden_words(
    denoise_by: str, corpus: Corpus
) -> None:
    method, encoder, _, batch = started(corpus, denoise_by=denoise_by)
    for which, start in enumerate(ENDS):
        ids = method._prompt(which).rows(batch.texts, method._plain_tokenizer(), 12)
        assert all(encoder.tokenizer.decode(row).startswith(start) for row in ids)
        bare = method._template_vectors(encoder, ids, which).detach()
        before, after = method._prompt(which).pieces(method._plain_tokenizer())
        for row, vector in zip(ids, bare, strict=True):
            words = len(row) - len(before) - len(after)
            if denoise_by == "pad":
                given = {
                    "input_ids": torch.tensor(
                        [[*before, *[encoder.tokenizer.pad_token_id] * words, *after]]
                    )
                }
                given["attention_mask"] = torch.ones_like(given["input_ids"])
            else:
                places = [*range(len(before)), *range(len(row) - len(after), len(row))]
                given = {
                    "input_ids": torch.tensor([[*before, *after]]),
                    "position_ids": torch.tensor([places]),
                }
            state = encoder.transformer(**given).last_hidden_state[0]
            at = max(
                i
                for i, token in enumerate(given["input_ids"][0])
                if token == encoder.tokenizer.mask_token_id
            )
            torch.testing.assert_close(vector, state[at], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("denoise", [True, False])
def test_the_loss_is_of_three_templates_each_part_with_its_own_negatives(
    parts: int, denoise: bool, corpus: Corpus
) -> None:
    """Five sentences: an odd number, in parts of three and two."""
    method, encoder, heads, batch = started(corpus, parts=parts, denoise=denoise)
    z = []
    for which in range(3):
        ids = method._prompt(which).rows(batch.texts, method._plain_tokenizer(), 12)
        h = encoder(encoder.collate(ids))
        z.append(
            heads.mlp(h - method._template_vectors(encoder, ids, which) if denoise else h)
            .detach()
            .double()
            .numpy()
        )
    cuts = [slice(0, 5)] if parts == 1 else [slice(0, 3), slice(3, 5)]
    expected = np.mean([np_loss(*(x[cut] for x in z), 0.05) for cut in cuts])
    assert method.loss(encoder, heads, batch)["loss"].item() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    "values", [{"negative": "no sentence"}, {"parts": 0}, {"denoise_by": "words"}]
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        CoTBERT.configure(values)
