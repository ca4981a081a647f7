"""LLM2Vec: attention both ways, masked next-token prediction against its formula, adapters, and
saved models.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from harness.method import FitContext
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.llm2vec import LLM2Vec, masked_next_token_loss
from tests.support.encoder_models import WORDS, base_model
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

pytestmark = pytest.mark.timeout(300)
SMALL = {"batch_size": 4, "train_length": 16, "log_every": 1, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return base_model(tmp_path_factory.mktemp("base"), "qwen3")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    draw = np.random.default_rng(0)
    file = tmp_path_factory.mktemp("text") / "made.txt"
    file.write_text(
        "\n".join(" ".join(draw.choice(WORDS, size=draw.integers(4, 9))) for _ in range(24))
    )
    return load_corpus(str(file))


def made(base: str, **values: Any) -> LLM2Vec:
    return LLM2Vec(LLM2Vec.configure({**SMALL, **values}), base_model=base)


def test_every_token_attends_to_those_behind_it_and_a_saved_model_keeps_that(
    base: str, tmp_path: Path
) -> None:
    for both_ways in (True, False):
        encoder = made(base, bidirectional=both_ways, pooling="cls").load_base().eval()
        one, other = encoder.encode(["cat sat on mat", "cat sat on tree"])
        assert (np.abs(one - other).max() > 1e-3) == both_ways, "the first token knows the last"
        encoder.save(tmp_path / str(both_ways))
        theirs = SentenceTransformer(str(tmp_path / str(both_ways)), device="cpu")
        np.testing.assert_allclose(
            theirs.encode(["cat sat on mat", "cat"]),
            encoder.encode(["cat sat on mat", "cat"]),
            atol=1e-5,
        )


def test_masked_tokens_are_read_from_the_state_before_them() -> None:
    rng = np.random.default_rng(0)
    states, vocabulary = rng.normal(size=(2, 4, 3)), rng.normal(size=(5, 3))
    labels = np.full((2, 4), -100)
    labels[0, 2], labels[1, 1], labels[1, 3] = 4, 0, 2
    terms = []
    for i, t in ((0, 2), (1, 1), (1, 3)):
        logits = vocabulary @ states[i, t - 1]
        terms.append(float(np.log(np.exp(logits).sum()) - logits[labels[i, t]]))
    value = masked_next_token_loss(*map(torch.from_numpy, (states, labels, vocabulary)))
    assert float(value) == pytest.approx(np.mean(terms), rel=1e-5)


def test_the_families_mask_as_their_released_configurations() -> None:
    masks = {
        family: (config.masking, config.mask, config.select)
        for family in ("llama-4096x32", "mistral-4096x32")
        for config in [LLM2Vec.configure({}, preset="full", family=family)]
    }
    assert masks == {
        "llama-4096x32": ("bert", 0.2, "last"),
        "mistral-4096x32": ("all", 0.8, "last"),
    }


def test_the_phases_follow_each_other_at_constant_rates(base: str, corpus: Corpus) -> None:
    method = made(base, mntp_steps=2, mntp_learning_rate=5e-4)
    rates = [method.schedule(step, 6) for step in range(6)]
    np.testing.assert_allclose(rates, [0.5, 0.5, 1.0, 1.0, 1.0, 1.0])
    method = made(base, mntp_steps=2, mntp_learning_rate=5e-4, warmup=0.5)
    rates = [method.schedule(step, 6) for step in range(6)]
    np.testing.assert_allclose(rates, [0.0, 0.5, 0.0, 0.5, 1.0, 1.0])
    encoder = method.load_base()
    heads = method.heads(encoder)
    batch = [Batch(list(corpus[:4]), np.random.default_rng(0), step) for step in (1, 2)]
    torch.manual_seed(0)
    first, second = (float(method.loss(encoder.train(), heads, b)["loss"].detach()) for b in batch)
    assert first > 2.0, "about log of the vocabulary's size"
    assert second < first


def test_training_resumes_bit_for_bit_across_the_phases(
    base: str, corpus: Corpus, tmp_path: Path
) -> None:
    class OnBase(LLM2Vec):
        def __init__(self, config: Any = None, *, base_model: str = "") -> None:
            super().__init__(config, base_model=base)

    whole, resumed = weights_whole_and_resumed(OnBase, {**SMALL, "mntp_steps": 2}, corpus, tmp_path)
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in whole.items())


def test_adapters_alone_are_trained_and_merged(base: str, corpus: Corpus, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    method = made(base, lora=2, mntp_steps=1, max_steps=3)
    before = {name: p.detach().clone() for name, p in method.load_base().named_parameters()}
    method.fit(corpus, FitContext(precision="fp32"))
    after = dict(method.encoder.named_parameters())
    assert after.keys() == before.keys(), "the adapters are merged"
    moved = {name for name, p in after.items() if not torch.equal(p, before[name])}
    assert moved
    assert all(name.endswith("proj.weight") for name in moved), moved
    method.save(tmp_path / "saved")
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(corpus[:3])
    np.testing.assert_allclose(theirs, np.asarray(method.encode(corpus[:3])), atol=1e-5)


def test_without_peft_adapters_are_refused_in_one_line(
    base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    method = made(base, lora=2)
    with raises_input_error(key="lora"):
        method.heads(method.load_base())


@pytest.mark.parametrize(
    "values", [{"mask": 0}, {"mntp_steps": -1}, {"lora": 0}, {"attention_rate": 0.0}]
)
def test_bad_settings_are_refused_in_one_line(values: dict[str, Any]) -> None:
    with raises_input_error(key=next(iter(values))):
        LLM2Vec.configure(values)
