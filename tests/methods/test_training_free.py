"""MetaEOL and token prepending against computations of their own, on tiny random causal models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, LlamaConfig

from harness.method import FitContext, Method
from methods.metaeol import EIGHT, MetaEOL
from methods.pooling import PoolingMethod
from methods.token_prepending import TokenPrepending
from tests.support.encoder_models import SHAPE, causal_model
from tests.support.errors import raises_input_error

TEXTS = ["the cat sat on the mat", "a dog ran.", "tree"]
TEMPLATE = 'the sentence <PST> "[X]" and the'


@pytest.fixture(scope="module", params=["qwen3", "llama"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp(request.param)
    causal_model(folder)
    if request.param == "llama":
        torch.manual_seed(3)
        rows = len(AutoTokenizer.from_pretrained(folder))
        shape = {**SHAPE, "vocab_size": rows, "max_position_embeddings": 128, "pad_token_id": None}
        AutoModel.from_config(LlamaConfig(**shape, initializer_range=0.3)).save_pretrained(folder)
    return str(folder)


def fitted(kind: type[Method], base: str, **values: Any) -> Any:
    return kind(kind.configure(values), base_model=base).fit(
        context=FitContext(seed=1, device="cpu")
    )


def test_metaeol_is_the_mean_of_its_prompts(base: str, tmp_path: Path) -> None:
    templates = ['the "[X]" and', 'a big "[X]" the dog']
    method = fitted(MetaEOL, base, templates=templates)
    each = [
        fitted(PoolingMethod, base, pooling=f"prompt:{template}").encode(TEXTS)
        for template in templates
    ]
    np.testing.assert_allclose(method.encode(TEXTS), np.mean(each, axis=0), atol=1e-5)
    states = fitted(MetaEOL, base, templates=templates[:1], layer=2)
    ids = states.encoder.tokenize(TEXTS[:1])
    read = states.encoder.hidden_states(states.encoder.collate(ids))[2][0, -1]
    np.testing.assert_allclose(states.encode(TEXTS[0]), read.detach(), atol=1e-5)
    method.save(tmp_path / "model")
    np.testing.assert_array_equal(
        MetaEOL.load(tmp_path / "model").encode(TEXTS), method.encode(TEXTS)
    )


def test_eight_prompts_fit_into_the_embedded_model() -> None:
    assert len(EIGHT) == 8
    method = fitted(MetaEOL, "embedded:mini-bert")
    assert all(
        '" a dog ran. "' in e.tokenizer.decode(e.tokenize(["A dog ran."])[0])
        for e in method.encoders[1:]
    )
    with raises_input_error():
        fitted(MetaEOL, "embedded:mini-bert", max_length=12)
    with raises_input_error(key="layer"):
        fitted(MetaEOL, "embedded:mini-bert", layer=9)


@torch.inference_mode()
def by_hand(
    base: str, text: str, embedding: torch.Tensor, start: int, exit: int, layer: int
) -> torch.Tensor:
    """One row through the layers of the base model, with the rule written out."""
    model, tokenizer = AutoModel.from_pretrained(base).eval(), AutoTokenizer.from_pretrained(base)
    before, after = (
        tokenizer(part, add_special_tokens=False)["input_ids"] for part in ("the sentence ", ' "')
    )
    rest = tokenizer(text if text.endswith(".") else text + ".", add_special_tokens=False)[
        "input_ids"
    ]
    end = tokenizer('" and the', add_special_tokens=False)["input_ids"]
    known = model.embed_tokens(torch.tensor([[*before, 0, *after, *rest, *end]]))
    place = len(before)
    known[0, place] = embedding
    turns = model.rotary_emb(known, torch.arange(known.shape[1])[None])
    states = [known]
    for number, block in enumerate(model.layers):
        if start <= number < exit:
            known = known.clone()
            known[0, place] = known[0, -1]
        out = block(known, attention_mask=None, position_embeddings=turns)
        known = out[0] if isinstance(out, tuple) else out
        states.append(known)
    states[-1] = model.norm(states[-1])
    return states[layer][0, -1]


@pytest.mark.parametrize(
    ("start", "exit", "layer"), [(1, 3, -1), (1, 2, 2), (0, 1, -2), (2, None, 3)]
)
def test_token_prepending_follows_its_rule(
    base: str, start: int, exit: int | None, layer: int, tmp_path: Path
) -> None:
    values = {"templates": [TEMPLATE], "start": start, "exit": exit, "layer": layer}
    method = fitted(TokenPrepending, base, **values)
    token = method.encoder.tokenizer.convert_tokens_to_ids("<PST>")
    embedding = method.encoder.transformer.get_input_embeddings().weight[token].detach()
    assert 0.5 < float(embedding.std()) < 1.5, "drawn from N(0, I)"
    wanted = [by_hand(base, text, embedding, start, exit or 99, layer).numpy() for text in TEXTS]
    vectors = method.encode(TEXTS)  # one batch, padded
    np.testing.assert_allclose(vectors, wanted, atol=2e-4)
    plain = fitted(PoolingMethod, base, pooling=f"prompt:{TEMPLATE}").encode(TEXTS)
    assert np.abs(plain - vectors).max() > 0.01
    method.save(tmp_path / "model")
    np.testing.assert_array_equal(TokenPrepending.load(tmp_path / "model").encode(TEXTS), vectors)


def test_what_the_model_or_the_template_lacks_is_refused(base: str) -> None:
    for wrong in ({"exit": 9}, {"start": 3}, {"start": 2, "exit": 2}):
        with raises_input_error():
            TokenPrepending(TokenPrepending.configure(wrong), base_model=base).check(None)
    with raises_input_error(file='method "token_prepending"', key="templates"):
        TokenPrepending.configure({"templates": ['the "[X]" means:"']})
    with raises_input_error(file='method "metaeol"', key="templates"):
        MetaEOL.configure({"templates": []})
