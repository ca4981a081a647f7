"""Two views in one forward pass: each half is dropped at its own rate, everywhere the rates are
said to act.
"""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from transformers import AttentionInterface

from harness.encoder import Encoder
from harness.encoder.dropout import ATTENTION, PerViewDropout, ViewRates
from harness.errors import InputError
from tests.support.encoder_models import FAMILIES, TEXTS, base_model
from tests.support.errors import raises_input_error

OFF = {"hidden_dropout": (0.0, 0.0), "attention_dropout": (0.0, 0.0)}


@pytest.fixture(scope="module", params=list(FAMILIES))
def encoder(request, tmp_path_factory):
    return Encoder.from_pretrained(base_model(tmp_path_factory.mktemp("base"), request.param))


def zero_fraction(tensor):
    return float((tensor == 0).float().mean())


def test_hidden_rates_a_half():
    rates = ViewRates()
    dropout = PerViewDropout(0.1, rates)
    torch.manual_seed(0)
    with rates.inside(200, (0.05, 0.3), None):
        out = dropout(torch.ones(200, 50, 64))
        other = dropout(torch.ones(100, 50, 64))  # not the batch in force: the module's own rate
        assert zero_fraction(dropout.eval()(torch.ones(200, 4))) == 0
    for half, rate in ((out[:100], 0.05), (out[100:], 0.3)):
        assert zero_fraction(half) == pytest.approx(
            rate, abs=0.004
        )  # 320,000 draws: 5 standard deviations
        kept = half[half != 0]
        torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - rate)))
    assert zero_fraction(other) == pytest.approx(0.1, abs=0.004)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_probabilities_a_half(masked):
    """With the identity as values, the output of attention is the matrix of (dropped) probabilities
    itself.
    """
    Encoder.from_pretrained(
        "embedded:mini-bert"
    )  # the attention is registered with the first model
    rows, heads, length = 60, 4, 32
    rates, attend = ViewRates(), AttentionInterface()[ATTENTION]
    module = nn.Module()
    module.view_rates, module.is_causal = rates, False
    torch.manual_seed(0)
    query, key = torch.randn(2, rows, heads, length, 16)
    values = torch.eye(length).expand(rows, heads, length, length)
    mask = (torch.arange(length) < 24).expand(rows, 1, length, length) if masked else None
    seen = 24 if masked else length
    with rates.inside(rows, None, (0.0, 0.0)):
        exact = attend(module, query, key, values, mask)[0]
    expected = query @ key.transpose(2, 3) / 16**0.5
    if masked:
        expected[..., 24:] = float("-inf")
    torch.testing.assert_close(exact, expected.softmax(-1).transpose(1, 2))
    with rates.inside(rows, None, (0.05, 0.3)):
        out = attend(module, query, key, values, mask)[0]
    for part, rate in ((slice(0, 30), 0.05), (slice(30, 60), 0.3)):
        dropped = out[part, ..., :seen]
        assert zero_fraction(dropped) == pytest.approx(rate, abs=0.01)
        kept = dropped != 0  # formula: a kept probability is divided by 1 - rate
        torch.testing.assert_close(dropped[kept], exact[part, ..., :seen][kept] / (1 - rate))


def places(encoder, ids, **rates):
    """What each dropout of one `two_views` call did: name -> (fraction of zeros in half a, in half
    b).
    """
    halves_of = {}
    handles = []
    for name, module in encoder.transformer.named_modules():
        if isinstance(module, nn.Dropout):

            def hook(module, inputs, output, name=name):
                live = inputs[0] != 0
                half = len(output) // 2
                dropped = (output == 0) & live
                halves_of[name] = tuple(
                    float(dropped[part].sum() / live[part].sum())
                    for part in (slice(None, half), slice(half, None))
                )

            handles.append(module.register_forward_hook(hook))
    encoder.train()
    encoder.two_views(ids, ids, differ_by=None, **rates)
    for handle in handles:
        handle.remove()
    return halves_of


def test_every_place_of_the_model(encoder):
    torch.manual_seed(0)
    ids = torch.randint(4, 20, (300, 12)).tolist()
    halves_of = places(encoder, ids, hidden_dropout=(0.05, 0.2), attention_dropout=(0.4, 0.1))
    family = encoder.transformer.config.model_type
    assert len(halves_of) == 1 + 3 * {"distilbert": 1, "mpnet": 3}.get(
        family, 2
    )  # embeddings, then a layer's places
    for name, halves in halves_of.items():
        expected = (0.4, 0.1) if name.endswith("attn.dropout") else (0.05, 0.2)
        assert halves == pytest.approx(expected, abs=0.02), name


def test_rates_reach_a_model_whose_checkpoint_has_none(tmp_path):
    """ModernBERT: embeddings, then the feed-forward block of each of three layers, and attention
    probabilities.
    """
    encoder = Encoder.from_pretrained(base_model(tmp_path, "modernbert"))
    torch.manual_seed(0)
    ids = torch.randint(4, 20, (300, 12)).tolist()
    halves_of = places(encoder, ids, hidden_dropout=(0.05, 0.2), attention_dropout=(0.4, 0.1))
    assert len(halves_of) == 1 + 3
    for name, halves in halves_of.items():
        assert halves == pytest.approx((0.05, 0.2), abs=0.02), name
    with torch.no_grad():
        views = [
            encoder.two_views(ids, ids, differ_by=None, attention_dropout=rates)
            for rates in (None, (0.3, 0.3))
        ]
    equal = [torch.allclose(*pair, atol=1e-5) for pair in views]
    assert equal == [True, False], (
        "attention probabilities are dropped where a rate is given, and only there"
    )


def test_no_dropout_equals_evaluation(encoder):
    ids = encoder.tokenize(TEXTS)
    shorter = encoder.tokenize([text[:9] for text in TEXTS])  # other lengths in the other view
    encoder.eval()
    with torch.no_grad():
        a, b = encoder(encoder.collate(ids)), encoder(encoder.collate(shorter))
        encoder.train()
        for _ in range(2):
            got = encoder.two_views(ids, shorter, differ_by=None, **OFF)
            torch.testing.assert_close(got, (a, b), atol=1e-5, rtol=0)
        same = encoder.two_views(ids, ids, differ_by=None, **OFF)
        torch.testing.assert_close(*same, atol=1e-6, rtol=0)
        encoder.eval()
        torch.testing.assert_close(
            encoder.two_views(ids, shorter, differ_by=None, hidden_dropout=(0.5, 0.5)),
            (a, b),
            atol=1e-5,
            rtol=0,
        )


@pytest.mark.parametrize("place", ["hidden_dropout", "attention_dropout"])
def test_dropping_one_half_leaves_the_other_exact(encoder, place):
    """The views differ in length, so each half must also get the padding mask of its own rows."""
    ids_a, ids_b = (
        encoder.tokenize(TEXTS),
        encoder.tokenize([*TEXTS[2:], "a", "the big red dog sat on a tree"]),
    )
    encoder.eval()
    with torch.no_grad():
        exact_a, exact_b = encoder(encoder.collate(ids_a)), encoder(encoder.collate(ids_b))
        encoder.train()
        a, b = encoder.two_views(ids_a, ids_b, differ_by=None, **{**OFF, place: (0.0, 0.5)})
        c, d = encoder.two_views(ids_a, ids_b, differ_by=None, **{**OFF, place: (0.5, 0.0)})
    torch.testing.assert_close(a, exact_a, atol=1e-5, rtol=0)
    torch.testing.assert_close(d, exact_b, atol=1e-5, rtol=0)
    assert ((b - exact_b).abs().amax(dim=1) > 1e-3).all()
    assert ((c - exact_a).abs().amax(dim=1) > 1e-3).all()


def test_seeds_and_own_rates(encoder):
    ids = encoder.tokenize(TEXTS)
    encoder.train()

    def views(seed, **rates):
        torch.manual_seed(seed)
        return torch.cat(encoder.two_views(ids, ids, differ_by=None, **rates)).detach()

    rates = {"hidden_dropout": (0.05, 0.155), "attention_dropout": (0.05, 0.155)}
    assert torch.equal(views(1, **rates), views(1, **rates))
    assert not torch.equal(views(1, **rates), views(2, **rates))
    # None is the checkpoint's own 0.1 in both places: the plain forward pass in training mode, draw
    # for draw.
    torch.manual_seed(3)
    plain = encoder(encoder.collate([*ids, *ids])).detach()
    assert torch.equal(views(3), plain)
    assert torch.equal(views(3, hidden_dropout=(0.1, 0.1), attention_dropout=(0.1, 0.1)), plain)


def test_gradients_reach_every_weight_and_copies_keep_their_own_rates(encoder):
    twin = copy.deepcopy(encoder).train()
    ids = twin.tokenize(TEXTS)
    a, b = twin.two_views(
        ids, ids, differ_by=None, hidden_dropout=(0.05, 0.2), attention_dropout=(0.05, 0.2)
    )
    (a * b).sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in twin.parameters())
    assert twin.view_rates is not encoder.view_rates
    assert {m.rates for m in twin.modules() if isinstance(m, PerViewDropout)} == {twin.view_rates}


def test_wrong_rates_and_views(encoder):
    ids = encoder.tokenize(TEXTS)
    encoder.train()
    with raises_input_error(key="hidden_dropout"):
        encoder.two_views(ids, ids, differ_by=None, hidden_dropout=(0.1, 1.0))
    with raises_input_error():
        encoder.two_views(ids, ids[1:], differ_by=None)


def test_a_model_that_cannot_drop_per_view_says_so(tmp_path):
    encoder = Encoder.from_pretrained(base_model(tmp_path, "mpnet")).train()
    for name, module in encoder.transformer.named_modules():
        if name.endswith("attention.attn"):
            module.dropout = nn.Identity()
    ids = encoder.tokenize(TEXTS)
    encoder.two_views(ids, ids, differ_by=None, hidden_dropout=(0.1, 0.2))
    with raises_input_error(key="attention_dropout"):
        encoder.two_views(ids, ids, differ_by=None, attention_dropout=(0.1, 0.2))


def test_dropout_of_a_loss_that_names_no_rates_is_an_option():
    from harness.training import TrainedMethod, ViewsConfig

    seen = []

    class Attract(TrainedMethod):
        name = "attract_of_the_dropout_tests"
        version = 1

        def loss(self, encoder, heads, batch):
            a, b = encoder.two_views(batch.texts)
            seen.append(float((a - b).detach().square().sum(dim=1).mean()))
            return {"loss": (a - b).square().sum(dim=1).mean()}

    class OneView(TrainedMethod):
        name = "one_view_of_the_dropout_tests"
        version = 1

        def loss(self, encoder, heads, batch):
            return {"loss": encoder(batch.texts).square().mean()}

    texts = ["A dog runs.", "It rains.", "She sells maps.", "He sings."]
    for rate in (None, 0.01, 0.4):
        Attract(ViewsConfig(dropout=rate, batch_size=4, max_steps=1)).fit(texts)
    own, low, high = seen
    assert low < own < high  # mini-bert's own rate is 0.1
    assert "dropout" not in ViewsConfig().model_dump(), "ids of runs without it stay"
    with pytest.raises(InputError) as refused:
        OneView(ViewsConfig(dropout=0.2, batch_size=2, max_steps=1)).fit(texts)
    assert refused.value.key == "dropout"
