"""Views of a batch: chains compose, each view draws for itself, and the encoder drops at the rates
of the views.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers.integrations import sdpa_attention

from harness.encoder import Encoder
from harness.sources import Pair
from harness.training import Batch
from harness.views import ViewConfig, Views, encode_views, make_views
from tests.support import tiny_wordnet
from tests.support.errors import raises_input_error

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "A boat sails by the pier in the evening.",
    "",
    "rain",
]
OFF = (0.0, 0.0)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.from_pretrained("embedded:mini-bert", pooling="cls")


def views(encoder: Encoder, items: list[Any], seed: int = 0, **values: Any) -> Views:
    config = ViewConfig.parse(values, "test")
    return make_views(items, encoder, config, np.random.default_rng(seed), max_length=16)


# ---------------------------------------------------------------- settings


def test_rates_of_dropout() -> None:
    def rates(**values: Any) -> Any:
        return ViewConfig.parse(values, "test").dropout_rates

    assert rates() == ((0.1, 0.1), (0.1, 0.1))
    assert rates(dropout=0.05, dropout_b=0.2) == ((0.05, 0.2), (0.05, 0.2))
    assert rates(dropout=0.05, dropout_b=0.0) == ((0.05, 0.0), (0.05, 0.0))
    assert rates(dropout=0.05, attention_dropout="checkpoint") == ((0.05, 0.05), None)
    assert rates(view="shuffle") == (OFF, OFF), "augmentations are not combined"
    assert rates(view="shuffle", native_dropout=True) == (None, None)
    assert rates(view="shuffle+dropout", dropout=0.2) == ((0.2, 0.2), (0.2, 0.2))


@pytest.mark.parametrize("view", ["shuffle", "deletion", "repetition", "crop", "token_crop"])
def test_a_template_is_part_of_no_view(view: str) -> None:
    template = 'prompt:This sentence : "[X]" means [MASK].'
    encoder = Encoder.from_pretrained("embedded:mini-bert", pooling=template)
    rate = {} if view == "token_crop" else {view: 0.8}
    made = views(encoder, TEXTS, view=view, **rate)
    number = encoder.tokenizer.convert_tokens_to_ids
    before = number(["[CLS]", "this", "sentence", ":", '"'])
    after = number(['"', "means", "[MASK]", ".", "[SEP]"])
    for row in [*made.ids_a, *made.ids_b]:
        assert row[:5] == before
        assert row[-5:] == after
    assert made.ids_a != encoder.tokenize(TEXTS, max_length=16), "sentences are changed"


def test_a_chain_is_a_list_or_a_text() -> None:
    config = ViewConfig.parse({"view": ["crop", "shuffle"]}, "test")
    assert config == ViewConfig.parse({"view": "crop+shuffle"}, "test")
    assert config.views == ("crop", "shuffle")
    assert ViewConfig.parse(config.model_dump(), "test") == config


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"view": "shufle"}, "view"),
        ({"view": ""}, "view"),
        ({"view": "crop+crop"}, "view"),
        ({"view": "shuffle+eda"}, "view"),
        ({"view": 3}, "view"),
        ({"dropout": 1.0}, "dropout"),
        ({"dropout_b": -0.1}, "dropout_b"),
        ({"eda": 0.0}, "eda"),
        ({"deletion": 1.0}, "deletion"),
        ({"crop": 1.0}, "crop"),
    ],
)
def test_wrong_settings_are_one_line(values: dict[str, Any], key: str) -> None:
    with raises_input_error(file="test", key=key):
        ViewConfig.parse(values, "test")


# ---------------------------------------------------------------- token ids


def test_dropout_leaves_the_ids_alone(encoder: Encoder) -> None:
    made = views(encoder, TEXTS)
    assert made.ids_a == made.ids_b == encoder.tokenize(TEXTS, max_length=16)


@pytest.mark.parametrize("view", ["shuffle", "deletion", "repetition", "crop"])
def test_each_view_draws_for_itself_and_a_seed_repeats(encoder: Encoder, view: str) -> None:
    rates = {"shuffle": 0.5, "deletion": 0.5, "repetition": 0.5, "crop": 0.5}
    made = views(encoder, TEXTS, view=view, **rates)
    plain = encoder.tokenize(TEXTS, max_length=16)
    assert made.ids_a != made.ids_b
    assert made == views(encoder, TEXTS, view=view, **rates)
    assert made != views(encoder, TEXTS, 1, view=view, **rates)
    for rows in (made.ids_a, made.ids_b):
        for row, original in zip(rows, plain, strict=True):
            assert (row[0], row[-1]) == (original[0], original[-1])  # [CLS], [SEP]
            assert set(row) <= set(original)
            assert len(row) >= min(3, len(original))
        assert rows[2] == plain[2], "an empty sentence has nothing to change"


def test_crop_then_shuffle(encoder: Encoder) -> None:
    """Cropped to 7 of 10 tokens, of which all are shuffled: the tokens are a span, their order is
    not.
    """
    text = "the red dog ran to a big tree and sat"
    (plain,) = encoder.tokenize([text])
    n = len(plain) - 2
    spans = {tuple(sorted(plain[1 + s : 1 + s + n - 3])) for s in range(4)}
    seen_other_order = False
    for seed in range(5):
        made = views(encoder, [text], seed, view=["crop", "shuffle"], crop=3 / n, shuffle=1.0)
        inner = made.ids_a[0][1:-1]
        assert tuple(sorted(inner)) in spans
        seen_other_order |= inner != [t for t in plain if t in inner]
    assert seen_other_order


def test_repetition_never_passes_the_models_positions(encoder: Encoder) -> None:
    long = ["word " * 1000]
    config = ViewConfig.parse({"view": "repetition", "repetition": 1.0}, "test")
    made = make_views(long, encoder, config, np.random.default_rng(0))
    assert len(made.ids_a[0]) == encoder.max_length


def test_paraphrases_are_the_other_side(encoder: Encoder) -> None:
    pairs = [Pair("a dog ran", "a hound was running"), Pair("rain", "it rains")]
    made = views(encoder, pairs, view="paraphrase")
    assert made.ids_a == encoder.tokenize(["a dog ran", "rain"])
    assert made.ids_b == encoder.tokenize(["a hound was running", "it rains"])
    assert made.hidden_dropout == made.attention_dropout == OFF
    assert views(encoder, pairs, view="shuffle").ids_b != made.ids_b, "other views take the anchors"
    with raises_input_error():
        views(encoder, TEXTS, view="paraphrase")


def test_eda_changes_words_of_both_views(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nltk_data = pytest.importorskip("nltk.data", reason="nltk is not installed")
    monkeypatch.setattr(nltk_data, "path", [str(tiny_wordnet.write(tmp_path))])
    made = views(encoder, TEXTS, view="eda", eda=0.5, eda_operations="all")
    assert made.ids_a != made.ids_b
    assert made == views(encoder, TEXTS, view="eda", eda=0.5, eda_operations="all")
    known = {"ship", "sailing", "vessel", "fast", "quay", "well", "kept"}
    words = set(
        " ".join(encoder.tokenizer.decode(row) for row in [*made.ids_a, *made.ids_b]).split()
    )
    assert words & known, "a synonym of the tiny WordNet"
    monkeypatch.setattr(nltk_data, "path", [])
    with raises_input_error():
        views(encoder, TEXTS, view="eda")


# ---------------------------------------------------------------- what the encoder drops


class Watch:
    """Dropped and live entries of every dropout site of one forward pass, by half of the batch."""

    def __init__(self, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rates: dict[str, list[float]] = defaultdict(list)
        names = {module: name for name, module in encoder.transformer.named_modules()}
        self.handles = [
            module.register_forward_hook(self.hidden)
            for module in names
            if isinstance(module, nn.Dropout)
        ]
        self.names, self.rows = names, 0
        attend = sdpa_attention.sdpa_attention_forward

        def spy(
            module: nn.Module, query: Any, key: Any, value: Any, mask: Any, **kwargs: Any
        ) -> Any:
            # with the identity as values, attention returns its (dropped) probabilities
            eye = torch.eye(key.shape[2]).expand(*key.shape[:3], key.shape[2])
            state = torch.get_rng_state()
            seen = attend(module, query, key, eye, mask, **kwargs)[0]
            torch.set_rng_state(state)
            live = attend(module, query, key, eye, mask, **{**kwargs, "dropout": 0.0})[0] != 0
            half = self.rows // 2  # equal rates: one call for both halves; else one a half
            pieces = zip(seen.split(half), live.split(half), strict=True)
            for dropped, alive in pieces:
                self.rates[f"{names[module]} probabilities"].append(
                    float(((dropped == 0) & alive).sum() / alive.sum())
                )
            torch.set_rng_state(state)
            return attend(module, query, key, value, mask, **kwargs)

        monkeypatch.setattr(sdpa_attention, "sdpa_attention_forward", spy)

    def hidden(self, module: nn.Module, inputs: Any, output: Any) -> None:
        live = inputs[0] != 0
        half = len(output) // 2
        for part in (slice(None, half), slice(half, None)):
            dropped = (output[part] == 0) & live[part]
            self.rates[self.names[module]].append(float(dropped.sum() / live[part].sum()))


@pytest.mark.parametrize(
    ("values", "hidden", "attention"),
    [
        ({"dropout": 0.05, "dropout_b": 0.2}, (0.05, 0.2), (0.05, 0.2)),
        ({"dropout": 0.2}, (0.2, 0.2), (0.2, 0.2)),
        (
            {"dropout": 0.3, "dropout_b": 0.0, "attention_dropout": "checkpoint"},
            (0.3, 0.0),
            (0.1, 0.1),
        ),
        ({"view": "shuffle"}, (0.0, 0.0), (0.0, 0.0)),
        ({"view": "crop", "native_dropout": True}, (0.1, 0.1), (0.1, 0.1)),
    ],
)
def test_masks_of_every_site_follow_the_views_rates(
    encoder: Encoder,
    monkeypatch: pytest.MonkeyPatch,
    values: dict[str, Any],
    hidden: Any,
    attention: Any,
) -> None:
    watch = Watch(encoder, monkeypatch)
    texts = ["the old man walked slowly down to the harbour to look at the boats"] * 24
    watch.rows = 2 * len(texts)
    torch.manual_seed(0)
    encoder.train()
    try:
        batch = Batch(texts, np.random.default_rng(0), 0)
        with torch.no_grad():
            encode_views(encoder, batch, ViewConfig.parse(values, "test"), max_length=16)
    finally:
        for handle in watch.handles:
            handle.remove()
    layers = encoder.transformer.config.num_hidden_layers
    probabilities = {name for name in watch.rates if name.endswith("probabilities")}
    assert len(probabilities) == layers
    assert (
        len(watch.rates) - len(probabilities) == 1 + 2 * layers
    )  # embeddings; attention and feed-forward outputs
    for name, rates in watch.rates.items():
        expected = attention if name in probabilities else hidden
        # 24,576 entries a site and half at least: four standard deviations at rate 0.3 are 0.012
        assert rates == [pytest.approx(rate, abs=0.012 if rate else 0) for rate in expected], name


def test_evaluation_is_deterministic(encoder: Encoder) -> None:
    encoder.eval()
    config = ViewConfig.parse({"dropout": 0.5}, "test")
    with torch.no_grad():
        first, second = (
            encode_views(encoder, Batch(TEXTS, np.random.default_rng(0), 0), config)
            for _ in range(2)
        )
    assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))
    torch.testing.assert_close(*first, atol=1e-6, rtol=0)
