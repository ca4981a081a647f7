"""InfoNCE with words that the untrained base model writes: what changes, and what does not learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from harness import registry
from harness.encoder import Encoder
from harness.method import FitContext
from harness.training import Batch
from methods.infonce import InfoNCE, ProjectionHead
from methods.parts.generator import Generator

BASE = "embedded:mini-bert"
TEXTS = ["A dog runs over the wet grass.", "It rains in the hills.", "She sells maps.", "He sings."]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.from_pretrained(BASE)


def test_only_masked_places_are_filled_with_ordinary_tokens(encoder: Encoder) -> None:
    from harness.encoder.masked_lm import IGNORED, mask_tokens

    ids = encoder.tokenize(TEXTS)
    rng = np.random.default_rng(1)
    masked, labels = mask_tokens(ids, encoder.tokenizer, rng, probability=0.5, shares=(1.0, 0.0))
    filled = Generator(BASE, encoder, "infonce").fill(masked, labels)
    places = [i for row in labels for i in row]
    old = [i for row in ids for i in row]
    new = [i for row in filled for i in row]
    assert [n for n, p in zip(new, places, strict=True) if p == IGNORED] == [
        o for o, p in zip(old, places, strict=True) if p == IGNORED
    ]
    written = [n for n, p in zip(new, places, strict=True) if p != IGNORED]
    assert written
    assert encoder.tokenizer.mask_token_id not in written


def test_no_words_are_written_into_a_template(encoder: Encoder) -> None:
    values = {"pooling": 'prompt:This : "[X]" means [MASK].', "predicted": 0.9}
    method = InfoNCE(InfoNCE.configure(values))
    prompted = method.load_base()
    ids = prompted.tokenize(TEXTS)
    batch = Batch(TEXTS, np.random.default_rng(1), 0)
    written = method._write(prompted, Generator(BASE, encoder, "infonce"), ids, batch)
    assert written != ids
    for row, whole in zip(written, ids, strict=True):
        assert row[:4] == whole[:4]  # [CLS] this : "
        assert row[-5:] == whole[-5:]  # " means [MASK] . [SEP]
    assert method.inputs == {"template": "unchanged"}
    assert InfoNCE(InfoNCE.configure({"predicted": 0.9})).inputs == {}


def test_the_generator_does_not_learn_and_the_views_differ_without_dropout() -> None:
    config = InfoNCE.configure(
        {"view": "dropout", "dropout": 0.0, "predicted": 0.3, "batch_size": 4, "max_steps": 2}
    )
    method = registry.load(registry.METHODS, "infonce")(config, base_model=BASE)
    method.fit(TEXTS, FitContext(seed=1, precision="fp32"))
    heads = method.heads(method.load_base())
    assert isinstance(heads, ProjectionHead)
    assert not any(p.requires_grad for p in heads.generator.parameters())
    assert torch.isfinite(torch.tensor(method.encode(TEXTS))).all()
