"""Batches without padding inside the transformer: the states and gradients of padded ones, and what
is dropped.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from harness.encoder import Encoder, packing
from harness.encoder.packing import Packing
from tests.support.encoder_models import FAMILIES, NO_DROPOUT, TEXTS, base_model
from tests.support.errors import raises_input_error

PACKS = [family for family in (*FAMILIES, *NO_DROPOUT) if family != "mpnet"]
RATES = {"hidden_dropout": (0.05, 0.3), "attention_dropout": (0.2, 0.0)}


def started(folder, family="bert", *, packed=True, pooling="mean"):
    encoder = Encoder.from_pretrained(base_model(folder, family), pooling=pooling).train()
    if packed:
        encoder.pack_batches()
    return encoder, encoder.tokenize([*TEXTS, " ".join(TEXTS[:2] * 2)])


def without_dropout(encoder):
    for module in encoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return encoder


def gradients(encoder, ids, **rates):
    """Of a loss in which every vector meets every other, by parameter."""
    encoder.zero_grad()
    torch.manual_seed(5)
    a, b = encoder.two_views(ids, ids, differ_by=None, **rates)
    (nn.functional.normalize(a) @ nn.functional.normalize(b).T).logsumexp(1).mean().backward()
    return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}


def expect_close(found, expected, tolerance=1e-6):
    """Every tensor relative to its own largest entry; what is zero but for rounding has no scale of
    its own.
    """
    assert found.keys() == expected.keys()
    largest = max(float(tensor.abs().max()) for tensor in expected.values())
    assert largest > 0
    for name, tensor in expected.items():
        scale = max(float(tensor.abs().max()), 1e-6 * largest)
        assert float((found[name] - tensor).abs().max()) <= tolerance * scale, name


def test_tokens_are_packed_and_padded_again():
    mask = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 0]])
    places = Packing(mask)
    padded = torch.arange(24.0).view(4, 3, 2) + 1
    packed = places.pack(padded)
    assert packed.shape == (1, 8, 2)
    assert packed[0, :, 0].tolist() == [1, 3, 7, 9, 11, 13, 19, 21]
    assert torch.equal(places.pad(packed), padded * mask.unsqueeze(-1))
    assert places.half == 5


@pytest.mark.parametrize("family", PACKS)
def test_states_of_every_layer_and_gradients_are_those_of_the_padded_batch(tmp_path, family):
    """Positions, the sliding window and the causal mask included; ModernBERT's window here is
    shorter than a row.
    """
    encoder, ids = started(tmp_path, family)
    without_dropout(encoder.double())
    features = encoder.collate(ids)
    real = features["attention_mask"] == 1
    states = [state[real] for state in encoder.hidden_states(features)]
    found = gradients(encoder, ids)
    encoder.packed = False
    expected = [state[real] for state in encoder.hidden_states(features)]
    assert len(states) == len(expected)
    for state, true in zip(states, expected, strict=True):
        torch.testing.assert_close(state, true, rtol=1e-9, atol=1e-9)
    expect_close(found, gradients(encoder, ids))


def test_one_row_with_tokens_masked_inside_it_is_padded(tmp_path):
    """The packed batch would have one row as well, of another length."""
    encoder, ids = started(tmp_path)
    without_dropout(encoder.double())
    features = encoder.collate([max(ids, key=len)])
    features["attention_mask"][0, 2:4] = 0
    states = []
    for encoder.packed in (True, False):
        states.append(encoder.token_states(features)[features["attention_mask"] == 1])
    torch.testing.assert_close(*states, rtol=1e-9, atol=1e-9)


def without_rows(monkeypatch):
    """As on a GPU, where attention needs no padded rows; the list grows with every attention that
    had none.
    """
    calls = []

    def attend(*given):
        calls.append(given)
        return plain(*given)

    plain = packing.attend
    monkeypatch.setattr(packing, "attend", attend)
    monkeypatch.setattr(packing, "has_kernels", lambda states: True)
    return calls


@pytest.mark.parametrize("family", PACKS)
def test_attention_over_rows_of_unequal_length_gives_the_same(tmp_path, family, monkeypatch):
    """Where all tokens meet; other layers (a window, the past alone) pad theirs."""
    encoder, ids = started(tmp_path, family)
    without_dropout(encoder.double())
    expected = gradients(encoder, ids)
    calls = without_rows(monkeypatch)
    expect_close(gradients(encoder, ids), expected)
    layers = encoder.transformer.config.num_hidden_layers
    assert len(calls) == {"qwen3": 0, "modernbert": 2}.get(family, layers)


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_attention_over_rows_of_unequal_length_drops_each_view_at_its_own_rate(
    tmp_path, family, monkeypatch
):
    encoder, ids = started(tmp_path, family)
    without_dropout(encoder)
    plain, _ = encoder.two_views(ids, ids, differ_by=None, attention_dropout=(0.0, 0.0))
    calls = without_rows(monkeypatch)
    for rates, still in (((0.0, 0.5), 0), ((0.5, 0.0), 1), ((0.5, 0.5), None)):
        views = encoder.two_views(ids, ids, differ_by=None, attention_dropout=rates)
        for view, states in enumerate(views):
            apart = (states - plain).norm(dim=1) / plain.norm(dim=1)
            assert bool((apart < 1e-4).all() if view == still else (apart > 1e-3).all())
    assert calls


@pytest.mark.parametrize("how", ["checkpoints", "parts"])
def test_where_layers_are_computed_again_rows_are_padded_for_attention_everywhere(
    tmp_path, monkeypatch, how
):
    encoder, ids = started(tmp_path)
    encoder.micro_batch = 2 if how == "parts" else None
    expected = gradients(encoder, ids, **RATES)
    calls = without_rows(monkeypatch)
    if how == "checkpoints":
        encoder.checkpoint_gradients()
    found = gradients(encoder, ids, **RATES)
    assert all(torch.equal(found[name], gradient) for name, gradient in expected.items())
    assert not calls


@pytest.mark.parametrize(
    "pooling", ["cls", "max", "first_last_avg", "last", "layer:2:mean", "cls_pooler"]
)
def test_every_pooling_reads_its_tokens(tmp_path, pooling):
    encoder, ids = started(tmp_path, pooling=pooling)
    without_dropout(encoder.double())
    found = encoder(encoder.collate(ids))
    encoder.packed = False
    torch.testing.assert_close(found, encoder(encoder.collate(ids)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", PACKS)
def test_linear_layers_see_real_tokens_alone_and_only_in_training(tmp_path, family):
    encoder, ids = started(tmp_path, family)
    shapes = set()
    for module in encoder.transformer.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_hook(
                lambda layer, given, out: shapes.add(tuple(given[0].shape[:2]))
            )
    encoder(encoder.collate(ids))
    assert shapes == {(1, sum(map(len, ids)))}
    shapes.clear()
    encoder.eval()(encoder.collate(ids))
    assert shapes == {(len(ids), max(map(len, ids)))}


@pytest.mark.parametrize("place", ["hidden_dropout", "attention_dropout"])
@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "modernbert"])
def test_each_view_is_dropped_at_its_own_rate(tmp_path, family, place):
    encoder, ids = started(tmp_path, family)
    without_dropout(encoder)
    plain, _ = encoder.two_views(ids, ids, differ_by=None, **{place: (0.0, 0.0)})
    for rates, still in (((0.0, 0.5), 0), ((0.5, 0.0), 1)):
        views = encoder.two_views(ids, ids, differ_by=None, **{place: rates})
        torch.testing.assert_close(views[still], plain, rtol=1e-4, atol=1e-4)
        apart = (views[1 - still] - plain).norm(dim=1) / plain.norm(dim=1)
        assert bool((apart > 1e-3).all())


def test_as_many_units_are_dropped_as_the_rate_says(tmp_path):
    encoder, ids = started(tmp_path)
    ids = ids * 200
    dropped = []
    encoder.transformer.embeddings.dropout.register_forward_hook(
        lambda module, given, out: dropped.append(out == 0)
    )
    encoder.two_views(ids, ids, differ_by=None, hidden_dropout=(0.1, 0.4))
    half = sum(map(len, ids))
    assert dropped[0].shape[:2] == (1, 2 * half)
    assert float(dropped[0][:, :half].float().mean()) == pytest.approx(0.1, abs=0.005)
    assert float(dropped[0][:, half:].float().mean()) == pytest.approx(0.4, abs=0.005)


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "modernbert"])
@pytest.mark.parametrize("micro_batch", [None, 3])
def test_gradient_checkpointing_redraws_what_was_dropped(tmp_path, family, micro_batch):
    """Also where a pass of another batch comes before the backward pass."""

    def loss(encoder, ids):
        encoder.zero_grad()
        torch.manual_seed(5)
        a, b = encoder.two_views(ids, ids, differ_by=None, **RATES)
        states = encoder.hidden_states(encoder.collate(ids[2:]))[-1]
        ((a * b).sum() + states.square().mean()).backward()
        return {
            name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None
        }

    encoder, ids = started(tmp_path, family)
    encoder.micro_batch = micro_batch
    expected = loss(encoder, ids)
    encoder.checkpoint_gradients()
    found = loss(encoder, ids)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], gradient) for name, gradient in expected.items())
    copied = loss(encoder.copy(), ids)
    assert all(torch.equal(copied[name], gradient) for name, gradient in expected.items())


def test_a_batch_in_parts_has_the_gradient_of_the_whole(tmp_path):
    encoder, ids = started(tmp_path)
    without_dropout(encoder.double())
    whole = gradients(encoder, ids)
    encoder.micro_batch = 2
    expect_close(gradients(encoder, ids), whole)


def test_half_precision_costs_a_packed_batch_no_more_than_a_padded_one(tmp_path):
    encoder, ids = started(tmp_path)
    without_dropout(encoder)
    exact = gradients(encoder, ids)

    def error(packed):
        encoder.packed = packed
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = gradients(encoder, ids)
        difference = sum(float((found[name] - exact[name]).square().sum()) for name in exact)
        return (difference / sum(float(g.square().sum()) for g in exact.values())) ** 0.5

    assert error(True) < 1.5 * error(False)


def test_a_batch_without_padding_is_encoded_as_it_always_was(tmp_path):
    encoder, ids = started(tmp_path)
    ids = [ids[0], ids[0][::-1]]
    found = gradients(encoder, ids, **RATES)
    encoder.packed = False
    expected = gradients(encoder, ids, **RATES)
    assert all(torch.equal(found[name], gradient) for name, gradient in expected.items())


def test_a_model_whose_tokens_meet_elsewhere_is_refused_in_one_line(tmp_path, monkeypatch):
    """MPNet has an attention of its own; a packed batch whose rows were mixed would change its
    states.
    """
    encoder, _ = started(tmp_path / "mpnet", "mpnet", packed=False)
    with raises_input_error(key="packed"):
        encoder.pack_batches()
    assert not encoder.packed
    encoder, _ = started(tmp_path / "bert", packed=False)
    monkeypatch.setattr(Packing, "is_packed", lambda self, tensor: False)
    with raises_input_error(key="packed"):
        encoder.pack_batches()
    assert encoder.training


def test_trying_it_draws_nothing(tmp_path):
    encoder, _ = started(tmp_path, packed=False)
    before = torch.random.get_rng_state()
    encoder.pack_batches()
    assert torch.equal(before, torch.random.get_rng_state())


# ---------------------------------------------------------------- packed = "auto"


def automatic(folder, family="bert"):
    encoder = Encoder.from_pretrained(base_model(folder, family)).train()
    encoder.pack_batches(where_possible=True)
    return encoder, encoder.tokenize([*TEXTS, " ".join(TEXTS[:2] * 2)])


@pytest.mark.parametrize("family", [*PACKS, "mpnet"])
def test_auto_is_on_where_the_model_can_and_else_off_with_one_line(tmp_path, family, caplog):
    encoder, _ = automatic(tmp_path, family)
    assert encoder.packed == (family != "mpnet")
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("harness")]
    assert len(lines) == (family == "mpnet")
    assert all("mpnet" in line and "\n" not in line for line in lines)


def test_half_precision_is_near_enough(tmp_path, monkeypatch):
    encoder, ids = automatic(tmp_path)
    without_rows(monkeypatch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        encoder.two_views(ids, ids, differ_by=None)
    assert encoder.packed
