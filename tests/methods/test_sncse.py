"""SNCSE: the bidirectional margin, the three rows of a sentence, the loss from them, and where
negations come from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cosine

from harness.sources import Corpus, Pair, load_corpus
from harness.training import Batch
from methods.objectives import nt_xent
from methods.parts.negation import negate
from methods.sncse import SNCSE, bidirectional_margin
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=16)


def plain_margin(a: np.ndarray, p: np.ndarray, n: np.ndarray, alpha: float, beta: float) -> float:
    """The printed equation, one sentence at a time, with SciPy's cosine distance."""
    total = 0.0
    for a_i, p_i, n_i in zip(a, p, n, strict=True):
        delta = (1 - cosine(a_i, n_i)) - (1 - cosine(a_i, p_i))
        total += max(0.0, delta + alpha) + max(0.0, -delta - beta)
    return total / len(a)


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.3), (0.0, 0.0), (0.5, 1.5)])
def test_the_margin_is_the_printed_equation(alpha: float, beta: float) -> None:
    rng = np.random.default_rng(3)
    a, p, n = rng.normal(size=(3, 6, 4))
    found = bidirectional_margin(*map(torch.from_numpy, (a, p, n)), lower=alpha, upper=beta)
    assert float(found) == pytest.approx(plain_margin(a, p, n, alpha, beta), abs=1e-12)


@pytest.mark.parametrize(
    ("gap", "loss"), [(0.0, 0.1), (-0.05, 0.05), (-0.1, 0), (-0.2, 0), (-0.3, 0), (-0.5, 0.2)]
)
def test_nothing_is_asked_of_a_cosine_between_the_margins(gap: float, loss: float) -> None:
    anchor = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    angle = np.arccos(1 + gap)
    negative = torch.tensor([[np.cos(angle), np.sin(angle)]])
    assert float(
        bidirectional_margin(anchor, anchor, negative, lower=0.1, upper=0.3)
    ) == pytest.approx(loss, abs=1e-9)


def set_up(items: Any, **values: Any) -> tuple[SNCSE, Any, Any, Batch]:
    torch.manual_seed(0)
    method = SNCSE(SNCSE.configure({"train_length": 24, **values}))
    encoder = method.load_base().eval()
    return (
        method,
        encoder,
        method.heads(encoder).eval(),
        Batch(list(items), np.random.default_rng(0), 0),
    )


def test_a_row_and_its_template_are_within_train_length(corpus: Corpus) -> None:
    method, encoder, _, batch = set_up([*corpus[:4], "word " * 40], train_length=20)
    ids_a, ids_b = method.views(encoder, batch)
    negations = method._negations(encoder, batch)
    starts = ('[CLS] this sentence : "', '[CLS] this sentence of "', '[CLS] this sentence of "')
    for ids, start in zip((ids_a, ids_b, negations), starts, strict=True):
        assert all(encoder.tokenizer.decode(row).startswith(start) for row in ids)
        assert all(encoder.tokenizer.decode(row).endswith('" means [MASK]. [SEP]') for row in ids)
        assert max(map(len, ids)) == 20
    assert [a[5:-5] == b[5:-5] for a, b in zip(ids_a, ids_b, strict=True)] == [True] * 5
    assert encoder.tokenizer.decode(negations[-1][5:-5]).startswith("not word word")


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("margin_weight", [0.5, 0.0])
def test_the_loss_is_infonce_and_the_weighted_margin(
    n: int, margin_weight: float, corpus: Corpus
) -> None:
    """Against each row encoded by itself from the text of the template, without dropout."""
    method, encoder, heads, batch = set_up(corpus[:n], margin_weight=margin_weight, train_length=60)
    plain = method._plain_tokenizer()
    sides = []
    for head, texts in ((":", batch.texts), ("of", batch.texts), ("of", map(negate, batch.texts))):
        vectors = []
        for text in texts:
            ids = plain(f'This sentence {head} " {text} " means [MASK] .', return_tensors="pt")[
                "input_ids"
            ]
            at = int((ids[0] == plain.mask_token_id).nonzero()[0])
            vectors.append(encoder.transformer(ids).last_hidden_state[0, at])
        sides.append(heads.mlp(torch.stack(vectors)).detach())
    contrast = float(nt_xent(sides[0], sides[1], temperature=0.05))
    margin = plain_margin(*(side.double().numpy() for side in sides), 0.1, 0.3)
    terms = method.loss(encoder, heads, batch)
    assert float(terms["loss"].detach()) == pytest.approx(
        contrast + margin_weight * margin, rel=1e-4
    )
    if margin_weight:
        assert margin > 0
        assert float(terms["margin"].detach()) == pytest.approx(margin_weight * margin, rel=1e-3)
        assert float(terms["contrast"].detach()) == pytest.approx(contrast, rel=1e-4)


def test_given_negatives_are_those_of_the_pairs() -> None:
    pairs = [
        Pair("It rains.", "It pours.", "It is dry."),
        Pair("A dog runs.", "A dog does not run."),
    ]
    method, encoder, heads, batch = set_up(pairs, negatives="given")
    words = [encoder.tokenizer.decode(row[5:-5]) for row in method._negations(encoder, batch)]
    assert words == ["it is dry.", "a dog does not run."]
    assert torch.isfinite(method.loss(encoder, heads, batch)["loss"])
    assert SNCSE(method.config).text == "pairs"
    assert SNCSE(method.config).supervision == "supervised"
    theirs = SNCSE.configure({"negatives": "given", "negatives_are_labelled": False})
    assert SNCSE(theirs).supervision == "unsupervised"
    assert (SNCSE(SNCSE.configure({})).text, SNCSE(SNCSE.configure({})).supervision) == (
        "sentences",
        "unsupervised",
    )


def test_it_encodes_with_the_first_template_of_the_code() -> None:
    _, encoder, _, _ = set_up(["a"])
    assert (
        encoder.tokenizer.decode(encoder.tokenize(["Rain."])[0])
        == '[CLS] this sentence : " rain. " means [MASK]. [SEP]'
    )


def test_training_resumes_bit_for_bit(corpus: Corpus, tmp_path: Path) -> None:
    values = {"batch_size": 5, "train_length": 16, "learning_rate": 1e-3}
    whole, resumed = weights_whole_and_resumed(SNCSE, values, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


@pytest.mark.parametrize(
    "values",
    [{"margin_lower": 0.5}, {"margin_weight": -1}, {"denoise": True}, {"negatives": "parser"}],
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        SNCSE.configure(values)


def test_a_length_that_is_all_template_is_refused_before_the_run(corpus: Corpus) -> None:
    with raises_input_error(key="train_length"):
        SNCSE(SNCSE.configure({"train_length": 10})).check(corpus)
    SNCSE(SNCSE.configure({"train_length": 11})).check(corpus)
