"""DeCLUTR: schedules, optimiser, what is fed to the loss, and its terms. Its memory is tested in
`parts/`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from harness.encoder import Encoder
from harness.encoder.loading import tokens_of
from harness.method import DEFAULT_BASE_MODEL, FitContext
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.declutr import DeCLUTR, slanted_triangular_rate
from methods.parts.optimizers import adamw
from methods.parts.spans import DocumentTokens, extract_text
from tests.support.bases import narrow_bert
from tests.support.encoder_models import base_model
from tests.support.errors import raises_input_error

SMALL = {"batch_size": 3, "train_length": 64, "l_min": 3, "l_max": 10, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:documents", kind="documents", limit=6)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.from_pretrained("embedded:mini-bert")


def make(base_model: str = DEFAULT_BASE_MODEL, **values: Any) -> DeCLUTR:
    return DeCLUTR(DeCLUTR.configure({**SMALL, **values}), base_model=base_model)


def batch_of(corpus: Corpus, count: int = 3, seed: int = 0) -> Batch:
    return Batch([corpus[i] for i in range(count)], np.random.default_rng(seed), 0)


# ------------------------------------------------------------------------------------- schedule and
# optimiser


def test_the_intended_schedule_rises_for_a_tenth_and_ends_at_a_32nd() -> None:
    method = make()
    rates = [method.schedule(step, 1000) for step in range(1000)]
    assert rates[0] == pytest.approx((1 + 31 / 100) / 32)
    assert rates[99] == max(rates) == 1.0
    assert rates[99 + 450] == pytest.approx((1 + 31 / 2) / 32)
    assert rates[-1] == pytest.approx(1 / 32)
    np.testing.assert_allclose(np.diff(rates[:100]), 31 / 32 / 100, rtol=1e-9)
    np.testing.assert_allclose(np.diff(rates[99:]), -31 / 32 / 900, rtol=1e-9)


def test_the_printed_schedule_only_climbs_to_064() -> None:
    """16 documents an update: one epoch of 495,243 documents is 30,953 updates of a schedule of
    495,243.
    """
    method = make(lr_schedule="instances", batch_size=16)
    last = method.schedule(30_952, 30_953)
    assert last == pytest.approx((1 + 31 * 30_953 / 49_524) / 32, rel=1e-4)
    assert round(last, 2) == 0.64
    assert method.schedule(20_000, 30_953) < last


def test_the_released_schedule_stays_at_its_floor_for_the_first_epoch() -> None:
    """5e-5 / 32 = 1.56e-6, whatever the length; a second epoch follows the triangle, as its length
    is known by then.
    """
    once, twice = make(lr_schedule="released"), make(lr_schedule="released", epochs=2)
    assert {5e-5 * once.schedule(step, 100) for step in range(100)} == {5e-5 / 32}
    assert {twice.schedule(step, 200) for step in range(100)} == {1 / 32}
    assert twice.schedule(100, 200) == slanted_triangular_rate(101, 200) > 1 / 32


def test_short_schedules_are_defined() -> None:
    for steps in (1, 2, 9):
        for kind in ("updates", "instances", "released"):
            rates = [make(lr_schedule=kind).schedule(step, steps) for step in range(steps)]
            assert all(1 / 32 <= rate <= 1 for rate in rates)


def np_adamw(
    p: np.ndarray, grads: list[np.ndarray], lr: float, decay: float, eps: float, correct: bool
) -> np.ndarray:
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        mh, vh = (m / (1 - 0.9**t), v / (1 - 0.999**t)) if correct else (m, v)
        p = (1 - lr * decay) * p - lr * mh / (np.sqrt(vh) + eps)
    return p


@pytest.mark.parametrize("correct", [True, False])
def test_adamw_with_and_without_bias_correction(correct: bool) -> None:
    rng = np.random.default_rng(0)
    start, grads = rng.normal(size=(3, 4)), [rng.normal(size=(3, 4)) for _ in range(5)]
    p = torch.nn.Parameter(torch.tensor(start))
    groups = [{"params": [p], "weight_decay": 0.1}]
    optimizer = adamw(groups, learning_rate=0.01, eps=1e-6, bias_correction=correct)
    for t, grad in enumerate(grads):
        if t == 3:  # a run that resumes goes on in the same way
            state = optimizer.state_dict()
            optimizer = adamw([{"params": [p], "weight_decay": 0.1}], learning_rate=0.01, eps=1e-6)
            optimizer.load_state_dict(state)
        p.grad = torch.tensor(grad)
        optimizer.step()
    np.testing.assert_allclose(
        p.detach().numpy(), np_adamw(start, grads, 0.01, 0.1, 1e-6, correct), rtol=1e-9
    )


# ------------------------------------------------------------------------------------------- spans
# of documents


def test_a_span_is_cut_from_the_text_and_tokenises_to_its_tokens(
    encoder: Encoder, corpus: Corpus
) -> None:
    tokens = DocumentTokens(encoder.tokenizer)
    text = corpus[0]
    (starts,) = tokens.starts([text])
    ids = encoder.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    assert len(starts) == len(ids) + 1
    assert extract_text(text, starts, 0, len(ids)) == text.strip()
    begins = [i for i in range(len(ids)) if i == 0 or text[starts[i] - 1] == " "]
    for first, end in zip(begins[:-3:7], begins[3::7], strict=False):
        span = extract_text(text, starts, first, end)
        assert span in text
        assert encoder.tokenizer(span, add_special_tokens=False)["input_ids"] == ids[first:end]


def test_bytes_of_one_character_are_not_an_empty_span() -> None:
    starts = np.array(
        [0, 2, 2, 2, 4, 5], dtype=np.uint32
    )  # "a", an emoji of three byte tokens, "b"
    assert extract_text("a 🙂 b", starts, 1, 2) == extract_text("a 🙂 b", starts, 1, 4) == "🙂"
    assert extract_text("a 🙂 b", starts, 0, 5) == "a 🙂 b"


def test_a_tokenizer_without_offsets_is_refused() -> None:
    class Slow:
        is_fast = False

    with raises_input_error():
        DocumentTokens(Slow())  # type: ignore[arg-type]


def test_enough_tokens_is_decided_by_words_where_they_suffice(encoder: Encoder) -> None:
    tokens = DocumentTokens(encoder.tokenizer)
    assert tokens.at_least("one two three", 3)
    assert tokens.at_least("- - -", 3)  # no word with a letter, and yet three tokens
    assert not tokens.at_least("one two three", 40)
    assert not tokens.at_least("", 1)


def test_every_anchor_meets_its_own_positives(corpus: Corpus, encoder: Encoder) -> None:
    """With subsuming positives the anchor's text contains each of them."""
    method = make(strategy="subsuming", positives=3)
    method.heads(encoder)
    anchors, positives = method._draw_spans(encoder, batch_of(corpus))
    assert (len(anchors), len(positives)) == (3 * 2, 3 * 2 * 3)
    texts = [
        encoder.tokenizer.decode(row, skip_special_tokens=True).replace(" ", "") for row in anchors
    ]
    for place, row in enumerate(positives):
        inside = (
            encoder.tokenizer.decode(row, skip_special_tokens=True)
            .replace(" ", "")
            .removeprefix("##")
        )
        assert inside in texts[place // 3]


def test_lower_case_is_applied_to_spans(corpus: Corpus, encoder: Encoder) -> None:
    method = make(lower=True)
    assert method._prepare("ABC Äb") == "abc äb"
    assert make()._prepare("ABC \ud800") == "ABC ?"


def test_documents_too_short_are_left_out_and_counted(tmp_path: Path) -> None:
    lines = ["word " * 39, "word " * 40, "un-be-liev-able " * 8, "word " * 100]
    file = tmp_path / "documents.jsonl"
    file.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    method = make(objective="contrastive", batch_size=2)  # 2 * 2 anchors * 10 = 40 tokens
    method.fit(load_corpus(str(file), kind="documents"), FitContext(precision="fp32", max_steps=1))
    assert (
        method.fit_report.training["documents"] == 3
    )  # the third has 8 words, but 7 tokens a word
    assert method.fit_report.training["documents_too_short"] == 1
    with raises_input_error(file=file):
        make(l_max=50, anchors=10).fit(load_corpus(str(file), kind="documents"), FitContext())


# ---------------------------------------------------------------------------------------------------- the method


def test_a_check_before_training_reads_no_weights(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paper files have a hundred rows to check; the limit is the encoder's own, RoBERTa's positions
    from 2 included.
    """
    bases = {kind: base_model(tmp_path / kind, kind) for kind in ("bert", "roberta")}
    limits = {kind: Encoder.from_pretrained(base).max_length for kind, base in bases.items()}
    monkeypatch.setattr(Encoder, "from_pretrained", None)
    for kind, base in bases.items():
        assert tokens_of(base)[1] == limits[kind]
    make().check(corpus)


def terms_of(corpus: Corpus, **values: Any) -> dict[str, float]:
    """The terms of one batch in evaluation mode, so that nothing is dropped."""
    torch.manual_seed(0)
    method = make(**values)
    encoder = method.load_base().eval()
    heads = method.heads(encoder)
    return {
        name: term.item() for name, term in method.loss(encoder, heads, batch_of(corpus)).items()
    }


def test_loss_is_the_contrast_of_anchors_with_the_mean_of_their_positives(corpus: Corpus) -> None:
    """Against numpy over vectors that `encode` gives for the same spans, decoded."""
    method = make(objective="contrastive", temperature=0.2)
    encoder = method.load_base().eval()
    heads = method.heads(encoder)
    anchors, positives = method._draw_spans(encoder, batch_of(corpus))
    with torch.no_grad():
        one = encoder(encoder.collate(anchors)).double().numpy()
        two = (
            encoder(encoder.collate(positives))
            .double()
            .numpy()
            .reshape(len(anchors), 2, -1)
            .mean(1)
        )
    rows = np.concatenate([one, two])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows @ rows.T / 0.2
    np.fill_diagonal(cosines, -np.inf)  # no row is compared with itself
    numbers = np.arange(len(rows))
    expected = (logsumexp(cosines, axis=1) - cosines[numbers, np.roll(numbers, len(one))]).mean()
    terms = method.loss(encoder, heads, batch_of(corpus))
    assert terms["loss"].item() == pytest.approx(expected, rel=1e-5)


def test_terms_weights_and_reductions(corpus: Corpus) -> None:
    both = terms_of(corpus)
    assert both["loss"] == pytest.approx(both["contrastive"] + both["mlm"])
    assert both["mlm"] > 0
    assert set(terms_of(corpus, objective="mlm")) == {"loss", "mlm"}
    assert terms_of(corpus, objective="mlm")["mlm"] == pytest.approx(both["mlm"], rel=1e-5)
    clean = terms_of(corpus, masked_anchors=False)
    alone = terms_of(corpus, objective="contrastive")
    assert (
        clean["contrastive"] == pytest.approx(alone["contrastive"], rel=1e-5) != both["contrastive"]
    )
    # 2 A N = 12 terms
    assert terms_of(corpus, reduction="sum")["contrastive"] == pytest.approx(
        12 * both["contrastive"], rel=1e-5
    )
    quarter = terms_of(corpus, contrastive_weight=0.25)
    assert quarter["contrastive"] == pytest.approx(both["contrastive"] / 4, rel=1e-5)


def test_masked_language_modelling_is_the_cross_entropy_of_the_masked_tokens(
    corpus: Corpus,
) -> None:
    from harness.encoder.masked_lm import mask_tokens

    method = make(objective="mlm")
    encoder = method.load_base().eval()
    heads = method.heads(encoder)
    value = float(method.loss(encoder, heads, batch_of(corpus))["loss"])
    batch = batch_of(corpus)
    anchors, _ = method._draw_spans(encoder, batch)
    masked, labels = mask_tokens(anchors, encoder.tokenizer, batch.rng)
    losses = []
    for row, wanted in zip(masked, labels, strict=True):  # one anchor at a time: no padding
        with torch.no_grad():
            logits = (
                heads.masked_lm(encoder.token_states(encoder.collate([row])))[0].double().numpy()
            )
        losses += [
            logsumexp(logits[k]) - logits[k][label]
            for k, label in enumerate(wanted)
            if label != -100
        ]
    assert len(losses) > 1
    assert value == pytest.approx(float(np.mean(losses)), rel=1e-5)


@pytest.mark.parametrize(
    ("values", "linears", "activation", "bias"),
    [
        ({"projection": 8}, [(256, 8), (8, 8)], "ReLU", True),
        (
            {"projection": 8, "projection_activation": "linear", "projection_bias": False},
            [(256, 8), (8, 8)],
            "Identity",
            False,
        ),
    ],
)
def test_projection_head(
    encoder: Encoder, values: Any, linears: Any, activation: str, bias: bool
) -> None:
    head: Any = make(**values).heads(encoder).projection
    assert [
        (m.in_features, m.out_features) for m in head if isinstance(m, torch.nn.Linear)
    ] == linears
    assert type(head[1]).__name__ == activation
    assert all((m.bias is not None) == bias for m in head if isinstance(m, torch.nn.Linear))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"memory": 12, "projection": 8, "objective": "contrastive"},
        {"anchor_grid": False, "strategy": "adjacent"},
    ],
)
def test_fits_resumes_and_repeats(corpus: Corpus, tmp_path: Path, values: dict[str, Any]) -> None:
    """Three updates at once, and stopped after two by a full disk: the same weights, bit for bit;
    no head is left.
    """
    probe = ["A dog runs.", "Rain fell on the town."]
    base_model = narrow_bert()
    whole = make(base_model, epochs=2, **values)
    whole.fit(corpus, FitContext(precision="fp32", max_steps=3))
    context = FitContext(precision="fp32", max_steps=3, folder=tmp_path, checkpoint_seconds=0.0)
    broken = make(base_model, epochs=2, **values)
    after = broken.after_update

    def stop(encoder: Any, heads: Any) -> None:
        broken.updates = getattr(broken, "updates", 0) + 1  # type: ignore[attr-defined]
        if broken.updates == 3:  # type: ignore[attr-defined]
            raise OSError("disk full")
        after(encoder, heads)

    broken.after_update = stop  # type: ignore[method-assign]
    with pytest.raises(OSError):
        broken.fit(corpus, context)
    resumed = make(base_model, epochs=2, **values).fit(corpus, context)
    np.testing.assert_array_equal(whole.encode(probe), resumed.encode(probe))
    assert whole.encoder.dimension == 64
    base = make(base_model).load_base()
    assert float(np.abs(whole.encode(probe) - base.encode(probe)).max()) > 1e-4
    whole.save(tmp_path / "model")
    np.testing.assert_allclose(
        DeCLUTR.load(tmp_path / "model").encode(probe), whole.encode(probe), atol=1e-6
    )


def test_a_step_lowers_the_loss_and_bf16_agrees(corpus: Corpus) -> None:
    torch.manual_seed(0)
    method = make()
    encoder = method.load_base().eval()
    heads = method.heads(encoder)
    parameters = [p for p in [*encoder.parameters(), *heads.parameters()] if p.requires_grad]
    optimizer = method.optimizer([{"params": parameters, "weight_decay": 0.0}])
    before = method.loss(encoder, heads, batch_of(corpus, 2))["loss"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = method.loss(encoder, heads, batch_of(corpus, 2))["loss"]
    assert float(half) == pytest.approx(float(before), rel=0.1)
    before.backward()
    optimizer.param_groups[0]["lr"] = 1e-4
    optimizer.step()
    assert float(method.loss(encoder, heads, batch_of(corpus, 2))["loss"]) < float(before)


def test_spans_that_the_encoder_cannot_hold_are_refused(corpus: Corpus) -> None:
    method = DeCLUTR(DeCLUTR.configure({}, preset="paper-small"))
    with raises_input_error(key="l_max"):
        method.fit(corpus, FitContext())
    make(l_max=66).heads(make().load_base())  # what 512 is to 510


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"l_min": 11}, None),
        ({"memory": 11}, None),
        ({"memory": 64, "matryoshka": [32]}, "memory"),
        ({"pooling": 'prompt:This : "[X]" means [MASK].'}, "pooling"),
        ({"temperature": 0}, "temperature"),
        ({"anchors": 0}, "anchors"),
        ({"strategy": "near"}, "strategy"),
    ],
)
def test_bad_settings_are_one_line(values: dict[str, Any], key: str | None) -> None:
    with raises_input_error(file='method "declutr"', key=key) as caught:
        make(**values)
    assert len(str(caught.value)) < 250


def test_sentences_are_refused_and_the_last_weights_are_used() -> None:
    assert make().config.select == "last"
    sentences = load_corpus("embedded:sentences", limit=4)
    with raises_input_error(file='method "declutr"'):
        make().fit(sentences)


def test_warm_up_in_updates_is_refused() -> None:
    with raises_input_error(file='method "declutr"'):
        make(warmup_steps=10)
