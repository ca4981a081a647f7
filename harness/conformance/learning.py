"""Promises of training: seeds, descent, small batches, what remains, and resuming."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from harness.conformance.subject import BrokenPromiseError, Subject, expect, gap, vectors
from harness.training import Batch
from harness.training.descent import check_optimizer, decay_groups
from harness.training.loop import check_terms


class KilledError(BaseException):
    """Ends a run as a kill would; a BaseException, so that no method takes it for an error of its
    own.
    """


def seeds(s: Subject) -> str:
    """The same seed gives the same bits, another seed another model (unless the card says
    deterministic).
    """
    first = vectors(s.fitted)
    # A fit leaves the generators of the process as they were, so that they are moved here.
    random.seed(np.random.randint(2**31))
    torch.rand(1)
    second = vectors(s.fit(s.new(), seed=1))
    other = vectors(s.fit(s.new(), seed=2))
    expect(
        bool((first == second).all()),
        f"two fits with one seed differ by {gap(first, second):.1e}: draw from "
        "batch.rng or torch's global generator only",
    )
    changed = gap(first, other)
    if s.method.card.deterministic:
        expect(
            changed == 0, f"card.deterministic, but another seed changes vectors by {changed:.1e}"
        )
        return "deterministic, as the card says"
    expect(
        changed > 0,
        "another seed gives the same vectors; if no seed enters, set card.deterministic",
    )
    return f"another seed changes vectors by {changed:.1e}"


class Workbench:
    """An untrained method with its heads and one fixed batch, in training mode."""

    def __init__(self, s: Subject) -> None:
        from harness.seeds import derive

        self.method = s.new()
        torch.manual_seed(derive(1, "init"))
        self.encoder = self.method.load_base()
        self.heads = self.method.heads(self.encoder)
        assert s.corpus is not None
        stream = self.method.stream(s.corpus, 1)
        self.batch: Batch = stream.batch(0)
        self.encoder.train()
        self.heads.train()
        both = torch.nn.ModuleList([self.encoder, self.heads])
        self.parameters = [p for p in both.parameters() if p.requires_grad]
        self._buffers = [(buffer, buffer.clone()) for buffer in both.buffers()]

    def terms(self, batch: Batch | None = None) -> dict[str, torch.Tensor]:
        """The loss with the same masks, views and queues every time."""
        for buffer, before in self._buffers:
            buffer.copy_(before)
        torch.manual_seed(2)
        rng = np.random.default_rng(3)
        fixed = replace(batch or self.batch, rng=rng)
        terms: dict[str, torch.Tensor] = self.method.loss(self.encoder, self.heads, fixed)
        return terms


def descent(s: Subject) -> str:
    """A small step down the gradient lowers the loss of a fixed batch with fixed masks and views."""
    bench = Workbench(s)
    terms = bench.terms()
    _sound(terms)
    before = float(terms["loss"].detach())
    terms["loss"].backward()  # type: ignore[no-untyped-call]
    moved = []
    for p in bench.parameters:
        if p.grad is not None:
            before_step = p.detach().clone()
            moved.append((p, before_step, p.grad))
    squares = [gradient.square().sum() for _, _, gradient in moved]
    total = sum(squares, torch.zeros(()))
    norm = float(torch.sqrt(total))
    expect(0 < norm < float("inf"), f"the gradient's norm is {norm}")
    inside = {id(p) for p in bench.encoder.parameters()}
    reached = False
    for p, _, gradient in moved:
        is_inside = id(p) in inside
        if is_inside and bool(gradient.any()):
            reached = True
    expect(reached, "no gradient reaches the encoder")
    after = before
    for size in (1e-2, 1e-3, 1e-4):
        with torch.no_grad():
            for p, start, g in moved:
                p.copy_(start - size / norm * g)
            after = float(bench.terms()["loss"])
        if after < before:
            return f"{before:.5g} -> {after:.5g} by a step of length {size:g}"
    raise BrokenPromiseError(
        f"no step down the gradient lowers the loss ({before:.5g} -> {after:.5g})"
    )


def _sound(terms: dict[str, torch.Tensor]) -> None:
    check_terms(terms)
    for name, term in terms.items():
        is_finite = bool(torch.isfinite(term))
        expect(is_finite, f'the term "{name}" is {float(term.detach())}')


def trains_once(s: Subject) -> str:
    """The optimiser steps each parameter once, also where the heads hold the encoder.

    Losses of other libraries are modules with the model inside.
    """
    bench = Workbench(s)
    holder = torch.nn.ModuleList([bench.encoder, bench.heads])
    parameters = [*bench.encoder.parameters(), *holder.parameters()]
    groups = decay_groups(parameters, bench.method.config.weight_decay)
    optimizer = bench.method.optimizer(groups)
    check_optimizer(optimizer)
    sizes = [len(group["params"]) for group in optimizer.param_groups]
    count = sum(sizes)
    return f"{count} tensors"


def small_batch(s: Subject) -> str:
    """A last batch of two items and autocast in bfloat16 give finite losses and gradients."""
    from harness.encoder.precision import autocast

    bench = Workbench(s)
    pair = replace(bench.batch, items=bench.batch.items[:2])
    cases = (("two items", pair, "fp32"), ("bfloat16", bench.batch, "bf16"))
    for what, batch, precision in cases:
        for p in bench.parameters:
            p.grad = None
        try:
            with autocast(precision, "cpu"):
                terms = bench.terms(batch)
            _sound(terms)
            terms["loss"].backward()  # type: ignore[no-untyped-call]
        except (BrokenPromiseError, RuntimeError, ValueError, IndexError) as error:
            said = " ".join(str(error).split())
            message = f"{what}: {type(error).__name__}: {said:.160}"
            raise BrokenPromiseError(message) from error
        gradients = [p.grad for p in bench.parameters if p.grad is not None]
        are_finite = [bool(torch.isfinite(gradient).all()) for gradient in gradients]
        finite = all(are_finite)
        expect(finite, f"{what}: a gradient is not finite")
    return "two items; bfloat16"


def drops_heads(s: Subject) -> str:
    """Heads are discarded after training; what remains besides the base model is named by
    `card.kept`.
    """
    from harness.encoder import Encoder

    method = s.fitted
    config = method.config
    base = set()
    if config.pooling != "none":
        plain = Encoder.from_pretrained(
            method.base_model,
            pooling=config.pooling,
            max_length=config.max_length,
            first_layer=config.first_layer,
        )
        base = {name for name, _ in plain.named_parameters()}
    more = []
    for name, p in method.encoder.named_parameters():
        if name not in base:
            more.append((name, p.numel()))
    if not more:
        return "the encoder is the base model's, nothing else"
    modules = [name.partition(".")[0] for name, _ in more]
    parts = ", ".join(dict.fromkeys(modules))
    total = sum(count for _, count in more)
    size = f"{parts} ({total:,} parameters)"
    expect(
        bool(s.method.card.kept),
        f"keeps {size} when encoding; say so in card.kept, or drop it after training",
    )
    return f"keeps {size}: {s.method.card.kept}"


def resume(s: Subject) -> str:
    """A run that is killed and started again ends with the weights of the uninterrupted one, bit
    for bit.
    """
    whole = s.fitted
    done = int(whole.fit_report.training["steps"])
    at = max(1, done // 2)
    folder = s.folder / "resumed"
    cut = s.new()
    loss = cut.loss

    def stop_at_step(encoder: Any, heads: Any, batch: Any) -> Any:
        if batch.step >= at:
            raise KilledError
        return loss(encoder, heads, batch)

    cut.__dict__["loss"] = stop_at_step
    with suppress(KilledError):
        s.fit(cut, folder=folder)
    expect(
        (folder / "checkpoint" / "state.pt").exists(),
        "no checkpoint was written; use context.folder",
    )
    again = s.fit(s.new(), folder=folder)
    steps = int(again.fit_report.training["steps"])
    expect(steps == done, f"the resumed run ended after {steps} steps, the whole one after {done}")
    weights = again.encoder.state_dict()
    other = []
    for name, tensor in whole.encoder.state_dict().items():
        if not torch.equal(tensor, weights[name]):
            other.append(name)
    advice = "state belongs in buffers of the heads, random choices come from batch.rng"
    expect(
        not other,
        f"killed after {at} of {done} steps, {len(other)} weights differ, first {other[:1]}: {advice}",
    )
    return f"killed after {at} of {done} steps: the same weights"


OF_TRAINED = (descent, trains_once, small_batch, drops_heads, resume)
"""The checks of methods that are trained in steps."""
