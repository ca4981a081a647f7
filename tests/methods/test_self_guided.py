"""SG and SG-OPT: every objective against loops over the printed formulas, and what stays frozen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import erf, logsumexp

from harness.encoder import Encoder
from harness.method import FitContext
from harness.sources import Corpus, load_corpus
from harness.training import Batch
from methods.self_guided import Guide, SelfGuided, opt2_as_coded, sum_of_squared_differences
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

SMALL = {"batch_size": 4, "train_length": 12, "learning_rate": 1e-3, "head_width": 24}


@pytest.fixture(scope="module")
def sentences() -> Corpus:
    return load_corpus("embedded:sentences", limit=24)


@pytest.fixture(scope="module")
def pairs() -> Corpus:
    return load_corpus("embedded:pairs", kind="pairs", limit=24)


def make(**values: Any) -> SelfGuided:
    config = SelfGuided.configure({**SMALL, **values})
    return SelfGuided(config, base_model=narrow_bert())


def guide_of(method: SelfGuided, encoder: Encoder) -> Guide:
    heads = method.heads(encoder)
    assert isinstance(heads, Guide)
    return heads


# ---------------------------------------------------------------- independent float64
# transcriptions


def cos(u: np.ndarray, v: np.ndarray) -> float:
    return float(u @ v / math.sqrt((u @ u) * (v @ v)))


def np_base(c: np.ndarray, h: np.ndarray, t: float) -> float:
    x = [*c, *h]
    b = len(c)
    parts = []
    for m in range(2 * b):
        partner = (m + b) % (2 * b)
        every = [cos(x[m], x[k]) / t for k in range(2 * b) if k != m]
        parts.append(logsumexp(every) - cos(x[m], x[partner]) / t)
    return sum(parts) / (2 * b)


def np_opt(c: np.ndarray, h: np.ndarray, t: float, *, with_c: bool) -> float:  # h: (b, layers, d)
    b, layers, _ = h.shape
    total = 0.0
    for i in range(b):
        others = [cos(c[i], h[j, n]) / t for j in range(b) if j != i for n in range(layers)]
        others += [cos(c[i], c[j]) / t for j in range(b) if j != i and with_c]
        for k in range(layers):
            own = cos(c[i], h[i, k]) / t
            total += logsumexp([own, *others]) - own
    return total / (b * layers)


def np_opt2_as_coded(c: np.ndarray, h: np.ndarray, t: float) -> float:
    """The code: a (2b, 2b) matrix without diagonal and partners, rows of c, columns from b on (2b -
    2 are there).
    """
    b = len(c)
    x = np.concatenate([c, h])
    total = 0.0
    for i in range(b):
        row = [cos(c[i], x[k]) / t for k in range(2 * b) if k not in (i, i + b)]
        own = cos(c[i], h[i]) / t
        total += logsumexp([own, *row[b:]]) - own
    return total / b


def gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + erf(x / math.sqrt(2))) / 2


def np_head(x: np.ndarray, heads: Guide, final: bool = True) -> np.ndarray:
    if isinstance(heads.head, torch.nn.Identity):
        return x
    first, second = (m for m in heads.head if isinstance(m, torch.nn.Linear))
    x = gelu(x @ first.weight.detach().numpy().T + first.bias.detach().numpy())
    x = x @ second.weight.detach().numpy().T + second.bias.detach().numpy()
    return gelu(x) if final else x


def np_layers(encoder: Encoder, texts: list[str], mode: str) -> np.ndarray:
    """(b, L + 1, d): each sentence alone, so that there is no padding to mask."""
    rows = []
    for ids in encoder.tokenize(texts, max_length=SMALL["train_length"]):
        states = encoder.transformer(
            input_ids=torch.tensor([ids]), output_hidden_states=True
        ).hidden_states
        pool = np.max if mode == "max" else np.mean
        rows.append([pool(s[0].detach().numpy(), axis=0) for s in states])
    return np.array(rows)


# ---------------------------------------------------------------- objectives


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_opt2_as_coded_equals_the_code_s_slice(n: int) -> None:
    rng = np.random.default_rng(n)
    c, h = rng.normal(size=(2, n, 5))
    ours = float(opt2_as_coded(torch.from_numpy(c), torch.from_numpy(h), temperature=0.07))
    assert ours == pytest.approx(np_opt2_as_coded(c, h, 0.07), rel=1e-9, abs=1e-12)
    if n <= 2:
        assert ours == 0.0, "no negative is left"


def test_opt2_as_coded_identical_rows_and_gradient() -> None:
    same = torch.ones(5, 3, dtype=torch.float64, requires_grad=True)
    # all cosines are equal: one of n - 1 = 4 terms, so log 4
    assert float(opt2_as_coded(same, same, temperature=0.01).detach()) == pytest.approx(math.log(4))
    c, h = (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda c, h: opt2_as_coded(c, h, temperature=0.5), (c, h))
    half = opt2_as_coded(c.detach().bfloat16(), h.detach().bfloat16(), temperature=0.01)
    assert half.dtype == torch.float32


def test_regulariser_by_hand() -> None:
    p = [torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([[3.0]], requires_grad=True)]
    start = [torch.tensor([0.0, 4.0]), torch.tensor([[3.5]])]
    value = sum_of_squared_differences(p, start)
    assert float(value.detach()) == 1 + 4 + 0.25
    value.backward()
    assert p[0].grad is not None
    assert p[0].grad.tolist() == [2.0, -4.0]
    # at the start the distance and its gradient are 0, not undefined
    at_start = sum_of_squared_differences(p, [q.detach().clone() for q in p])
    (gradient,) = torch.autograd.grad(at_start, p[:1])
    assert float(at_start.detach()) == 0
    assert gradient.tolist() == [0, 0]
    # what does not learn cannot have moved
    assert float(sum_of_squared_differences([p[0].detach()], [torch.zeros(2)])) == 0


@pytest.mark.parametrize(
    ("values", "n"),
    [
        ({"objective": "base"}, 5),
        ({"objective": "base", "base_reduction": "sum/b"}, 2),
        ({"objective": "opt1", "layer_pooling": "mean"}, 5),
        ({"objective": "opt2"}, 2),
        ({"objective": "opt2"}, 5),
        ({"objective": "opt2", "opt2_negatives": "code"}, 5),
        ({"objective": "opt3"}, 2),
        (
            {
                "objective": "opt3",
                "layer_pooling": "mean",
                "guide_first": 1,
                "guide_last": 2,
                "final_gelu": False,
            },
            5,
        ),
        ({"objective": "opt3", "head": "none", "temperature": 0.1}, 5),
        ({"objective": "back_translation", "base_reduction": "sum/b"}, 5),
        ({"objective": "back_translation+opt3"}, 5),
    ],
    ids=str,
)
def test_loss_equals_the_formulas_in_float64(
    values: dict[str, Any], n: int, sentences: Corpus, pairs: Corpus
) -> None:
    """From the hidden states on, everything is recomputed: pooling, head, contrast, regulariser."""
    method = make(**{"temperature": 0.05, "regularisation": 0.3, **values})
    config = method.config
    torch.manual_seed(0)
    encoder = method.load_base().double().eval()
    heads = guide_of(method, encoder).double().eval()
    weight = encoder.transformer.get_parameter("encoder.layer.0.output.dense.weight")
    with torch.no_grad():
        weight += 0.01  # the tuned model has moved away from its copy
    items = list((pairs if config.objective.startswith("back") else sentences)[:n])
    batch = Batch(items, np.random.default_rng(3), 0)
    drawn = np.random.default_rng(3).integers(
        encoder.transformer.config.num_hidden_layers + 1, size=n
    )
    terms = {
        name: float(value.detach()) for name, value in method.loss(encoder, heads, batch).items()
    }

    def f(x: np.ndarray) -> np.ndarray:
        return np_head(x, heads, config.final_gelu)

    t, mode = config.temperature, config.layer_pooling
    c = f(np_cls(encoder, batch.texts))
    h = f(np_layers(heads.frozen, batch.texts, mode))
    expected = {"regulariser": 0.3 * 0.01**2 * weight.numel()}
    factor = 2 if config.base_reduction == "sum/b" else 1
    one = h[np.arange(n), drawn]
    if config.objective == "base":
        expected["guide"] = factor * np_base(c, one, t)
    elif config.objective == "opt2" and config.opt2_negatives == "code":
        expected["guide"] = np_opt2_as_coded(c, one, t)
    elif config.objective in ("opt1", "opt2"):
        expected["guide"] = np_opt(c, one[:, None], t, with_c=config.objective == "opt1")
    elif config.objective.endswith("opt3"):
        last = None if config.guide_last is None else config.guide_last + 1
        expected["guide"] = np_opt(c, h[:, config.guide_first : last], t, with_c=False)
    if config.objective.startswith("back"):
        p = f(np_cls(encoder, [item.positive for item in items]))
        expected["back_translation"] = factor * np_base(c, p, t)
    expected["loss"] = sum(expected.values())
    assert terms == pytest.approx(expected, rel=1e-5)


def np_cls(encoder: Encoder, texts: list[str]) -> np.ndarray:
    rows = encoder.tokenize(texts, max_length=SMALL["train_length"])
    states = [
        encoder.transformer(input_ids=torch.tensor([ids])).last_hidden_state[0, 0] for ids in rows
    ]
    return np.array([s.detach().numpy() for s in states])


# ---------------------------------------------------------------- the guide


class Layers:
    """A model of 3 layers whose hidden state of layer k is k at every token, 100 at the padding."""

    def train(self, mode: bool) -> None:
        self.training = mode

    def hidden_states(self, features: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        mask = features["attention_mask"].unsqueeze(-1).float()
        return tuple(k * mask + 100 * (1 - mask) for k in range(4))


@pytest.mark.parametrize(
    ("values", "layers"),
    [
        ({}, {0, 1, 2, 3}),
        ({"guide_first": 1}, {1, 2, 3}),
        ({"guide_first": 1, "shift_layers": False}, {2, 3}),
        ({"guide_first": 1, "guide_last": 2, "layer_pooling": "mean"}, {1, 2}),
    ],
    ids=str,
)
def test_layers_that_the_guide_shows(values: dict[str, Any], layers: set[int]) -> None:
    features = {"attention_mask": torch.tensor([[1, 1, 1, 0]] * 200)}
    guide: Any = Layers()
    one = make(objective="base", **values)._guide(guide, features, np.random.default_rng(0))
    assert one.shape == (200, 1, 1)
    assert set(one.flatten().tolist()) == layers, "padding does not count, every layer comes up"
    assert guide.training is False
    every = make(objective="opt3", guide_dropout=True, **values)._guide(
        guide, features, np.random.default_rng(0)
    )
    first = values.get("guide_first", 0)
    assert every[0].flatten().tolist() == [
        float(k) for k in range(first, values.get("guide_last", 3) + 1)
    ]
    assert guide.training is True


def test_guide_and_embeddings_stay_where_they_were(
    sentences: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Guide] = []
    build = SelfGuided.heads

    def remember(self: SelfGuided, encoder: Encoder) -> Any:
        seen.append(build(self, encoder))
        return seen[-1]

    monkeypatch.setattr(SelfGuided, "heads", remember)
    for freeze in (True, False):
        method = make(freeze_embeddings=freeze).fit(
            sentences, FitContext(precision="fp32", max_steps=2)
        )
        start = dict(method.load_base().named_parameters())
        frozen = dict(seen[-1].frozen.named_parameters())
        assert all(torch.equal(frozen[name], p) for name, p in start.items())
        moved = {
            name for name, p in method.encoder.named_parameters() if not torch.equal(p, start[name])
        }
        assert any("layer.0" in name for name in moved)
        assert any("embeddings" in name for name in moved) is not freeze
        learned = method.fit_report.cost["trained_parameters"]
        whole = sum(p.numel() for p in start.values()) + sum(
            p.numel() for p in seen[-1].head.parameters()
        )
        assert (learned < whole) is freeze


def test_guide_drops_only_where_asked(sentences: Corpus) -> None:
    for dropout in (False, True):
        method = make(guide_dropout=dropout)
        encoder = method.load_base()
        heads = guide_of(method, encoder).train()
        features = encoder.collate(encoder.tokenize(list(sentences[:3])))
        a, b = (method._guide(heads.frozen, features, np.random.default_rng(0)) for _ in range(2))
        assert torch.equal(a, b) is not dropout
        assert not a.requires_grad


def test_head_starts_as_bert_does() -> None:
    torch.manual_seed(0)
    head: Any = guide_of(make(head_width=400), make().load_base()).head
    assert [type(layer).__name__ for layer in head] == ["Linear", "GELU", "Linear", "GELU"]
    assert float(head[2].weight.detach().std()) == pytest.approx(0.02, rel=0.02)
    assert float(head[0].bias.detach().abs().sum()) == 0
    assert not list(guide_of(make(head="none"), make().load_base()).head.parameters())


# ---------------------------------------------------------------- runs


def test_a_killed_run_ends_with_the_weights_of_a_whole_one(
    sentences: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = FitContext(seed=5, precision="fp32", max_steps=6)

    def fit(folder: Path | None) -> list[torch.Tensor]:
        context.folder = folder
        return list(make(objective="opt1").fit(sentences, context).encoder.state_dict().values())

    whole = fit(None)
    steps: list[int] = []
    loss = SelfGuided.loss

    def killed(self: SelfGuided, encoder: Any, heads: Any, batch: Batch) -> Any:
        steps.append(batch.step)
        context.checkpoint_seconds = 0.0 if batch.step == 2 else 1e9
        if steps == [0, 1, 2, 3]:
            raise KeyboardInterrupt
        return loss(self, encoder, heads, batch)

    monkeypatch.setattr(SelfGuided, "loss", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path)
    again = fit(tmp_path)
    assert steps == [0, 1, 2, 3, 3, 4, 5], "the second run goes on where the first was killed"
    assert all(torch.equal(a, b) for a, b in zip(whole, again, strict=True))


def test_text_and_supervision_follow_the_objective(sentences: Corpus) -> None:
    for objective, text, supervision in (
        ("opt3", "sentences", "unsupervised"),
        ("back_translation", "pairs", "supervised"),
        ("back_translation+opt3", "pairs", "supervised"),
    ):
        config = make(objective=objective).config
        assert (SelfGuided(config).text, SelfGuided(config).supervision) == (text, supervision)
    with raises_input_error(file='method "self_guided"'):
        make(objective="back_translation").fit(sentences)


def test_schedule_is_the_code_s() -> None:
    """17,256 sentences in batches of 16 are 1,079 updates, of which ceil(17256 / 16 * 0.1) = 108
    are warm-up.
    """
    rates = [make().schedule(step, 1079) for step in (0, 1, 54, 108, 1078)]
    assert rates == pytest.approx([0, 1 / 108, 0.5, 1, 1 / 971])


def test_optimiser_is_the_code_s() -> None:
    optimizer = make().optimizer(
        [{"params": [torch.nn.Parameter(torch.zeros(2, 2))], "weight_decay": 0.01}]
    )
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.9)
    assert make().config.weight_decay == 0.01


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"temperature": 0}, "temperature"),
        ({"guide_first": 3, "guide_last": 2}, None),
        ({"regularisation": -1}, "regularisation"),
        ({"objective": "opt4"}, "objective"),
        ({"batch_size": 1}, "batch_size"),
    ],
)
def test_bad_settings_are_one_line(values: dict[str, Any], key: str | None) -> None:
    with raises_input_error(file='method "self_guided"', key=key):
        make(**values)


@pytest.mark.parametrize(
    "values", [{"guide_last": 40}, {"guide_first": 40}, {"guide_first": 2, "shift_layers": False}]
)
def test_layers_that_the_model_does_not_have(values: dict[str, Any]) -> None:
    method = make(**values)
    with raises_input_error():
        method.heads(method.load_base())


def test_defaults_are_the_preset_of_the_paper() -> None:
    assert SelfGuided.configure({}, preset="paper", family="bert-base") == SelfGuided.Config()
