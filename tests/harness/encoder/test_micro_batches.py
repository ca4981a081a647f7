"""A batch encoded in parts: which rows are encoded together, which random numbers come back, what
is kept for it.
"""

from __future__ import annotations

import pytest
import torch
from torch.utils import checkpoint as checkpointing

from harness.encoder import Encoder
from tests.support.encoder_models import FAMILIES, TEXTS, base_model
from tests.support.errors import raises_input_error

RATES = {"hidden_dropout": (0.05, 0.3), "attention_dropout": (0.2, 0.0)}


def started(folder, family="bert", *, micro_batch=None):
    encoder = Encoder.from_pretrained(base_model(folder, family)).train()
    encoder.micro_batch = micro_batch
    return encoder, encoder.tokenize(TEXTS)


def gradients(encoder, ids, **rates):
    """Of a loss in which every vector meets every other, by parameter."""
    encoder.zero_grad()
    torch.manual_seed(5)
    a, b = encoder.two_views(ids, ids, differ_by=None, **rates)
    (a @ b.T).logsumexp(1).mean().backward()
    return {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}


def test_no_pass_sees_more_rows_than_a_part_and_each_part_is_encoded_twice(tmp_path):
    encoder, ids = started(tmp_path, micro_batch=4)
    rows = []
    encoder.transformer.register_forward_pre_hook(
        lambda _, args, given: rows.append(len(given["input_ids"])), with_kwargs=True
    )
    a, _ = encoder.two_views(ids, ids, differ_by=None)
    assert rows == [8, 4]
    a.sum().backward()
    assert rows == [8, 4, 4, 8]
    rows.clear()
    encoder(encoder.collate(ids)).sum().backward()
    assert rows == [4, 2, 2, 4]
    rows.clear()
    with torch.no_grad():  # nothing is kept for a gradient; a frozen copy is encoded like this
        encoder.two_views(ids, ids, differ_by=None)
    encoder.encode(TEXTS)
    assert sum(rows) == 2 * len(ids) + len(set(TEXTS))


@pytest.mark.parametrize("family", list(FAMILIES))
def test_the_second_pass_drops_what_the_first_one_dropped(tmp_path, family):
    """The same gradient as one backward pass through the same parts whose layers were all kept."""
    encoder, ids = started(tmp_path, family, micro_batch=2)
    before = torch.random.get_rng_state()
    in_parts = gradients(encoder, ids, **RATES)
    after = torch.random.get_rng_state()
    encoder.micro_batch = None
    whole_views = encoder.two_views

    def kept(ids_a, ids_b, **rates):
        parts = [
            whole_views(ids_a[rows], ids_b[rows], **rates)
            for rows in (slice(i, i + 2) for i in range(0, len(ids_a), 2))
        ]
        return tuple(torch.cat(side) for side in zip(*parts, strict=True))

    encoder.two_views = kept
    expected = gradients(encoder, ids, **RATES)
    assert torch.equal(
        after, torch.random.get_rng_state()
    )  # the backward pass draws nothing from the run's stream
    assert not torch.equal(after, before)
    assert in_parts.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(
            in_parts[name], gradient, rtol=1e-6, atol=1e-6 * float(gradient.abs().max())
        )


def test_one_part_is_encoded_as_without_parts(tmp_path):
    encoder, ids = started(tmp_path)
    whole = gradients(encoder, ids, **RATES)
    encoder.micro_batch = len(ids)
    one = gradients(encoder, ids, **RATES)
    assert all(torch.equal(one[name], gradient) for name, gradient in whole.items())


def test_generators_are_brought_back_on_the_device_that_encodes(tmp_path, monkeypatch):
    """PyTorch keeps the generators of the devices on which the block's own tensors are: token ids
    as lists, or tensors not yet moved, would leave a GPU's dropout to chance.
    """
    encoder, ids = started(tmp_path, micro_batch=2)
    encoder.to("meta")
    devices = []

    def spy(encode, *given, **options):
        assert options == {"use_reentrant": False}
        devices.append({tensor.device for tensor in given[0].values()})
        return torch.zeros(2, 2, encoder.dimension, requires_grad=True)

    monkeypatch.setattr("harness.encoder.network.checkpoint", spy)
    encoder.two_views(ids, ids, differ_by=None)
    assert devices == [{torch.device("meta")}] * 3


def errors(found, exact):
    """Length of the difference of gradients, relative to the exact one's."""
    difference = sum(float((found[name] - exact[name]).square().sum()) for name in exact)
    return (difference / sum(float(g.square().sum()) for g in exact.values())) ** 0.5


def test_half_precision_costs_parts_no_more_than_the_whole_batch(tmp_path):
    """Two faults of others: a second pass outside autocast, and weights without a gradient because
    autocast kept their copies of a pass that needed none.
    """
    encoder, ids = started(tmp_path)
    ids = ids * 4

    def halved(size):
        encoder.micro_batch = size
        encoder.zero_grad()
        torch.manual_seed(5)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a, b = encoder.two_views(ids, ids, differ_by=None)
            loss = (a @ b.T).float().logsumexp(1).mean()
        loss.backward()
        return {
            name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None
        }

    for dropout in encoder.modules():
        if isinstance(dropout, torch.nn.Dropout):
            dropout.p = 0.0
    exact = gradients(encoder, ids)
    whole, parts = halved(None), halved(1)
    assert parts.keys() == exact.keys()
    assert all(bool(g.any()) == bool(exact[name].any()) for name, g in parts.items())
    assert errors(parts, exact) < 1.5 * errors(whole, exact)


# ---------------------------------------------------------------- gradient checkpointing


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "mpnet"])
@pytest.mark.parametrize("micro_batch", [None, 4])
def test_gradient_checkpointing_redraws_what_was_dropped(tmp_path, family, micro_batch):
    """At the rates of then, also where another pass at other rates comes before the backward pass,
    and in parts.
    """

    def loss(encoder, ids):
        encoder.zero_grad()
        torch.manual_seed(5)
        a, b = encoder.two_views(ids, ids, differ_by=None, **RATES)
        states = encoder.hidden_states(encoder.collate(ids))[
            -1
        ]  # as masked-language modelling: the checkpoint's rates
        ((a * b).sum() + states.square().mean()).backward()
        return {
            name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None
        }

    encoder, ids = started(tmp_path, family, micro_batch=micro_batch)
    expected = loss(encoder, ids)
    encoder.checkpoint_gradients()
    found = loss(encoder, ids)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], gradient) for name, gradient in expected.items())
    twin = encoder.copy()  # repeats its layers at its own rates
    copied = loss(twin, ids)
    assert all(torch.equal(copied[name], gradient) for name, gradient in expected.items())


def test_gradient_checkpointing_that_does_not_know_the_rates_is_refused(tmp_path):
    encoder, ids = started(tmp_path)
    encoder.transformer.activation_checkpointing_enable()
    with raises_input_error():
        encoder.two_views(ids, ids, differ_by=None, **RATES)
    encoder.checkpoint_gradients()
    encoder.two_views(ids, ids, differ_by=None, **RATES)


def test_gradient_checkpointing_keeps_less(tmp_path):
    encoder, ids = started(tmp_path)

    def kept():
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: sizes.append(t.numel()) or t, lambda t: t
        ):
            encoder.two_views(ids, ids, differ_by=None)
        return sum(sizes)

    before = kept()
    encoder.checkpoint_gradients()
    assert kept() < before / 3
    assert encoder.encode(TEXTS).shape == (len(TEXTS), encoder.dimension)


def test_a_model_without_gradient_checkpointing_is_told_in_one_line(tmp_path):
    encoder, _ = started(tmp_path, "mpnet")
    with raises_input_error(key="gradient_checkpointing"):
        encoder.checkpoint_gradients()


def test_this_pytorch_keeps_the_generators_of_its_arguments_devices():
    """What `test_generators_are_brought_back_on_the_device_that_encodes` rests on."""
    assert checkpointing.get_device_states(["ids", "in", "lists"]) == ([], [])
