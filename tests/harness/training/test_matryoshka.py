"""Matryoshka: the loss of a step is the sum of the losses of the vectors' first dimensions, from
one pass.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    MatryoshkaLoss,
    MultipleNegativesRankingLoss,
)
from torch import Tensor, nn
from torch.nn import functional

from harness import registry
from harness.encoder.prefixes import Prefixes, replay_pass
from harness.encoder.token_count import count_tokens
from harness.method import DEFAULT_BASE_MODEL, FitContext, require_corpus
from harness.sources import load_corpus
from harness.training import TrainedMethod
from harness.training.loop import Trainer
from methods.objectives import barlow_twins_terms, nt_xent
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

WIDTHS = (256, 64, 16)
SMALL: dict[str, dict[str, Any]] = {"declutr": {"l_min": 8, "l_max": 30}}


def trainer(name: str, base_model: str = DEFAULT_BASE_MODEL, **values: Any) -> Trainer:
    kind: type[TrainedMethod] = registry.load(registry.METHODS, name)
    config = kind.configure({"batch_size": 8, **SMALL.get(name, {}), **values})
    method = kind(config, base_model=base_model)
    kinds = {"documents": 4, "pairs": 16, "sentences": 16}
    corpus = require_corpus(
        method, load_corpus(f"embedded:{method.text}", kind=method.text, limit=kinds[method.text])
    )
    torch.manual_seed(1)
    encoder = method.load_base()
    return Trainer(
        method, encoder, method.heads(encoder), corpus, FitContext(precision="fp32", device="cpu")
    )


def gradients(run: Trainer, loss: Tensor) -> dict[str, Tensor]:
    run.encoder.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    return {
        name: p.grad.clone() for name, p in run.encoder.named_parameters() if p.grad is not None
    }


@pytest.mark.parametrize("name", ["simcse", "barlow_twins"])
def test_loss_and_gradient_are_the_sums_over_sliced_vectors(name: str) -> None:
    values = {"head": "none"} if name == "simcse" else {"projector": [32, 32]}
    run = trainer(name, matryoshka=WIDTHS, **values)
    run.encoder.double().train()
    run.heads.double()
    batch = run.stream.batch(0)
    torch.manual_seed(2)
    with count_tokens() as lengths:
        found = run._terms(batch)
    assert len(lengths) == 16, "both views of 8 sentences are encoded once"
    torch.manual_seed(2)
    if name == "simcse":
        views = run.encoder.two_views(batch.texts)
        wanted = sum(nt_xent(*(h[:, :m] for h in views), temperature=0.05) for m in WIDTHS)
    else:
        first, *rest = run.heads
        views = run.encoder.two_views(batch.texts)
        wanted = 0.0
        for m in (
            WIDTHS
        ):  # the projector's first columns, which are those of the dimensions that are left
            z = [
                nn.Sequential(*rest)(functional.linear(h[:, :m], first.weight[:, :m], first.bias))
                for h in views
            ]
            wanted += barlow_twins_terms(*z, off_diagonal_weight=run.config.off_diagonal_weight)[
                "loss"
            ]
    torch.testing.assert_close(found["loss"], wanted)
    expected = gradients(run, wanted)
    for parameter, gradient in gradients(run, found["loss"]).items():
        torch.testing.assert_close(gradient, expected[parameter], rtol=1e-6, atol=1e-9)


def test_it_is_the_loss_of_sentence_transformers_on_the_same_vectors() -> None:
    torch.manual_seed(3)
    a, b = torch.randn(2, 8, 256)

    class Given(nn.Module):
        def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
            return {"sentence_embedding": features["vectors"]}

    model = SentenceTransformer(modules=[Given()], device="cpu")
    theirs = MatryoshkaLoss(model, MultipleNegativesRankingLoss(model), [*WIDTHS])
    expected = theirs([{"vectors": a}, {"vectors": b}], torch.empty(0))
    views = replay_pass(cut=True)(lambda: (a, b))
    with Prefixes() as prefixes:
        ours = sum(nt_xent(*views(), temperature=0.05) for _ in prefixes.widths(WIDTHS))
    torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in registry.names(registry.METHODS)
        if issubclass(registry.load(registry.METHODS, name), TrainedMethod)
        and name not in ("infersent", "skip_thought")  # word vectors of another file; 20 seconds
    ],
)
def test_every_trained_method_can_be_trained_so(name: str) -> None:
    base_model = narrow_bert()
    run = trainer(name, base_model, matryoshka=(32,))
    run.encoder.train()
    run.heads.train()
    if name == "llm2vec":  # its first phase has no sentence vectors
        with raises_input_error(key="matryoshka"):
            run._terms(run.stream.batch(0))
        return
    torch.manual_seed(2)
    both = run._terms(run.stream.batch(0))
    assert run.widths == [32, run.encoder.dimension]
    torch.manual_seed(2)
    alone = trainer(name, base_model)
    alone.encoder.train()
    alone.heads.train()
    assert both.keys() == alone._terms(alone.stream.batch(0)).keys()
    assert torch.isfinite(both["loss"])


@pytest.mark.parametrize("name", ["rankcse", "dclr"])
def test_another_model_judges_by_its_whole_vectors(name: str) -> None:
    run = trainer(name, narrow_bert())
    method: Any = run.method
    batch = run.stream.batch(0)

    def judge() -> Tensor:
        if name == "rankcse":
            judged: Tensor = method._teacher_cosines(batch, torch.zeros(8, 8))
        else:
            (model,) = method._complement
            judged = model.encode(batch.texts, convert_to_tensor=True)
        return judged

    whole = judge()
    with Prefixes() as prefixes:
        for _ in prefixes.widths((4, 32)):
            assert torch.equal(judge(), whole)


def test_widths_beyond_the_vectors_are_refused_and_the_default_is_not_written() -> None:
    with raises_input_error(key="matryoshka"):
        trainer("simcse", matryoshka=(300,))
    run = trainer("simcse")
    assert "matryoshka" not in run.config.model_dump(mode="json"), "earlier runs keep their ids"
    assert trainer("simcse", matryoshka=[64]).config.model_dump(mode="json")["matryoshka"] == [64]
