"""The training loop: data order, schedule, selection, guard, and resuming bit for bit."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
import transformers
from torch import nn
from torch.utils.data import DataLoader

from harness.encoder import Encoder
from harness.errors import InputError, TrainingStopped
from harness.method import FitContext, MethodCard
from harness.sources import Corpus, load_corpus
from harness.training import Batch, BatchStream, TrainedMethod, TrainingConfig
from harness.training.loop import check_terms
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error

pytestmark = pytest.mark.timeout(120)


class Pull(TrainedMethod):
    """Two views of a sentence attract: enough of a loss to move weights and to use dropout."""

    name = "pull"
    card = MethodCard(title="pull", paper="", text="sentences", supervision="unsupervised")
    Config = TrainingConfig

    def __init__(self, config: Any = None, *, base_model: str = narrow_bert()) -> None:
        super().__init__(config, base_model=base_model)

    def heads(self, encoder: Encoder) -> nn.Module:
        return nn.Linear(encoder.dimension, 8)

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        ids = encoder.tokenize(batch.texts, max_length=self.config.train_length)
        a, b = encoder.two_views(ids, ids)
        return {"loss": (heads(a) - heads(b)).square().mean(), "size": a.norm(dim=-1).mean()}


class Broken(Pull):
    """A loss that is not a number from the third update on."""

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        terms = super().loss(encoder, heads, batch)
        return {"loss": terms["loss"] * (math.nan if batch.step >= 2 else 1.0)}


@pytest.fixture(autouse=True)
def regular_looks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts say what is seen at the looks that select; early ones are in `test_collapse.py`."""
    monkeypatch.setattr("harness.training.loop.early_looks", lambda every: [])


class FakeDev:
    """A selection set with a script: what each evaluation sees."""

    sha256 = "0" * 64

    def __init__(self, script: list[dict[str, float]]) -> None:
        self.script = list(script)

    def texts(self) -> list[str]:
        return ["a sentence", "another"]

    def evaluate(self, encode: Any) -> dict[str, float]:
        encode(self.texts())
        return self.script.pop(0)


def seen(spearman: float, std: float = 0.5, rank: float = 50.0) -> dict[str, float]:
    return {"spearman": spearman, "std": std, "effective_rank": rank}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("embedded:sentences", limit=67)


def config(**values: Any) -> TrainingConfig:
    base = {
        "batch_size": 8,
        "learning_rate": 1e-3,
        "eval_every": 2,
        "max_steps": 8,
        "log_every": 1,
        "bucket": 2,
    }
    return TrainingConfig(**{**base, **values})


def stream(corpus: Any, **values: Any) -> BatchStream:
    return BatchStream(
        corpus, **{"batch_size": 8, "bucket": 2, "seed": 1, "length_cap": 1000, **values}
    )


def test_an_epoch_holds_every_sentence_once_and_epochs_differ(corpus: Corpus) -> None:
    batches = stream(corpus)
    assert batches.steps_per_epoch == 9  # 67 = 8 * 8 + 3
    epochs = [[t for s in range(9) for t in batches.batch(e * 9 + s).texts] for e in range(2)]
    for texts in epochs:
        assert sorted(texts) == sorted(corpus[i] for i in range(67))
    assert epochs[0] != epochs[1]


def test_a_step_can_be_asked_for_in_any_order(corpus: Corpus) -> None:
    forward = [stream(corpus).batch(step).texts for step in range(12)]
    backward = stream(corpus)
    assert [backward.batch(step).texts for step in reversed(range(12))] == forward[::-1]


def test_methods_of_one_seed_share_the_order_and_seeds_differ(corpus: Corpus) -> None:
    assert stream(corpus).batch(3).texts == stream(corpus).batch(3).texts
    assert stream(corpus, seed=2).batch(3).texts != stream(corpus).batch(3).texts


def test_buckets_bring_similar_lengths_together(corpus: Corpus) -> None:
    def spread(bucket: int) -> float:
        batches = stream(corpus, bucket=bucket)
        return float(np.mean([np.std([len(t) for t in batches.batch(s).texts]) for s in range(8)]))

    assert spread(8) < 0.6 * spread(1)


def test_batches_without_buckets_are_as_random_as_a_shuffling_loader_s() -> None:
    """Lengths deviate within a batch as in the corpus; a divisor of n - 1 makes the mean variance
    unbiased.
    """
    corpus = load_corpus("embedded:sentences", limit=2000)

    def deviation(batches: list[list[str]]) -> float:
        return math.sqrt(
            np.mean([np.var([len(text) for text in batch], ddof=1) for batch in batches])
        )

    whole = float(np.std([len(text) for text in corpus]))
    ours = [stream(corpus, bucket=1).batch(step).texts for step in range(250)]
    theirs = list(
        DataLoader(
            list(corpus), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(1)
        )
    )
    assert deviation(ours) == pytest.approx(whole, rel=0.05)
    assert deviation(theirs) == pytest.approx(whole, rel=0.05)
    assert (
        deviation([stream(corpus, bucket=32).batch(step).texts for step in range(250)])
        < 0.2 * whole
    )


@pytest.mark.parametrize("bucket", [1, 3])
@pytest.mark.parametrize("count", [16, 18, 21])
def test_the_last_batch_is_kept_or_dropped_as_a_loader_does(bucket: int, count: int) -> None:
    corpus = load_corpus("embedded:sentences", limit=count)
    kept = stream(corpus, bucket=bucket)
    for drop_last in (False, True):
        batches = stream(corpus, bucket=bucket, drop_last=drop_last)
        loader = DataLoader(list(corpus), batch_size=8, shuffle=True, drop_last=drop_last)
        steps = batches.steps_per_epoch
        assert steps == len(loader)
        for epoch in range(3):
            seen = [batches.batch(epoch * steps + step).texts for step in range(steps)]
            assert sorted(map(len, seen)) == sorted(map(len, loader))
            every = [
                kept.batch(epoch * kept.steps_per_epoch + step).texts
                for step in range(kept.steps_per_epoch)
            ]
            assert seen == [texts for texts in every if len(texts) == 8 or not drop_last]
    assert stream(corpus[:3], drop_last=True).steps_per_epoch == 1, (
        "a corpus shorter than a batch is a batch"
    )


def test_a_last_batch_of_one_is_dropped() -> None:
    corpus = load_corpus("embedded:sentences", limit=17)
    batches = stream(corpus)
    assert batches.steps_per_epoch == 2
    assert all(len(batches.batch(step).items) == 8 for step in range(4))


@pytest.mark.parametrize(
    ("values", "warm", "steps"),
    [
        ({}, 0, 8),
        ({"warmup": 0.25}, 2, 8),
        ({"warmup": 0.1}, 108, 1079),
        ({"warmup_steps": 3}, 3, 8),
    ],
)
def test_the_schedule_is_transformers(values: dict[str, Any], warm: int, steps: int) -> None:
    """0 at the first update of a warm-up, whose share is rounded up."""
    adam = torch.optim.AdamW([nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = transformers.get_linear_schedule_with_warmup(adam, warm, steps)
    method = Pull(config(**values))
    for step in range(steps):
        assert method.schedule(step, steps) == pytest.approx(adam.param_groups[0]["lr"], abs=1e-12)
        adam.step()
        theirs.step()


def test_patience_counts_from_the_second_evaluation_on(corpus: Corpus) -> None:
    """SG's fit: last = 0; after each evaluation: worse += score < last; stop at the limit; last =
    score.
    """
    scores = [
        0.5,
        0.3,
        0.4,
        0.35,
        0.45,
        0.2,
        0.1,
    ]  # the first is that of the untrained weights, and is not compared
    last, worse, stop = 0.0, 0, None
    for number, score in enumerate(scores[1:], 1):
        worse += score < last
        last = score
        if worse == 2 and stop is None:
            stop = number
    assert stop == 5
    method = Pull(config(eval_every=1, patience=2, train_length=8))
    dev: Any = FakeDev([seen(score) for score in scores])
    report = method.fit(corpus, FitContext(dev=dev, precision="fp32")).fit_report
    assert report.training["steps"] == stop
    assert report.training["stopped_early"]


def weights(method: Pull) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in method.encoder.state_dict().items()}


def script() -> list[dict[str, float]]:
    return [
        seen(0.1),
        seen(0.3),
        seen(0.2),
        seen(0.4),
        seen(0.35),
    ]  # before training, then at steps 2, 4, 6, 8


class Holder(nn.Module):
    """Heads that hold a model too, as losses of sentence-transformers do."""

    def __init__(self, linear: nn.Module, *models: nn.Module) -> None:
        super().__init__()
        self.linear = linear
        self.models = nn.ModuleList(models)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.linear(rows)
        return out


class HoldsEncoder(Pull):
    def heads(self, encoder: Encoder) -> nn.Module:
        return Holder(super().heads(encoder), encoder)


class HoldsTransformer(Pull):
    def heads(self, encoder: Encoder) -> nn.Module:
        return Holder(super().heads(encoder), encoder.transformer)


class SharesALayer(Pull):
    def heads(self, encoder: Encoder) -> nn.Module:
        linear = super().heads(encoder)
        return Holder(linear, nn.Sequential(linear), nn.ParameterList(linear.parameters()))  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", [HoldsEncoder, HoldsTransformer, SharesALayer])
def test_a_parameter_that_occurs_twice_is_trained_once(method: type[Pull], corpus: Corpus) -> None:
    expected = Pull(config()).fit(corpus, FitContext(seed=3))
    held = method(config()).fit(corpus, FitContext(seed=3))
    for name, tensor in weights(expected).items():
        assert torch.equal(tensor, weights(held)[name]), name
    count = "trained_parameters"
    assert held.fit_report.cost[count] == expected.fit_report.cost[count]


def test_an_optimizer_that_holds_a_parameter_twice_is_refused(corpus: Corpus) -> None:
    class Twice(Pull):
        def optimizer(self, groups: Any) -> torch.optim.Optimizer:
            doubled = [{**group, "params": [*group["params"]] * 2} for group in groups]
            with pytest.warns(UserWarning, match="duplicate parameters"):
                return torch.optim.AdamW(doubled)

    with pytest.raises(InputError) as caught:
        Twice(config()).fit(corpus, FitContext())
    assert caught.value.key == "optimizer"


class WithoutDropout(Pull):
    """As on a base model without dropout: both views of a sentence are equal."""

    options: ClassVar[dict[str, Any]] = {}

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        off = {"hidden_dropout": (0.0, 0.0), "attention_dropout": (0.0, 0.0)}
        a, b = encoder.two_views(batch.texts, **off, **self.options)
        return {"loss": (heads(a) * heads(b)).mean()}


class MeansEqualViews(WithoutDropout):
    options: ClassVar[dict[str, Any]] = {"differ_by": None}


def test_equal_views_are_refused_unless_they_are_meant(corpus: Corpus) -> None:
    with raises_input_error():
        WithoutDropout(config()).fit(corpus, FitContext())
    report = MeansEqualViews(config()).fit(corpus, FitContext()).fit_report
    assert report.training["steps"] > 0


class HasTeacher(Pull):
    """A moving average of the encoder that the method itself holds, not its heads."""

    def heads(self, encoder: Encoder) -> nn.Module:
        self.teacher = encoder.copy()
        return super().heads(encoder)

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        terms = super().loss(encoder, heads, batch)
        with torch.no_grad():
            target = self.teacher(batch.texts)
        return {"loss": terms["loss"] + (encoder(batch.texts) - target).square().mean()}

    def after_update(self, encoder: Encoder, heads: nn.Module) -> None:
        with torch.no_grad():
            for mine, theirs in zip(self.teacher.parameters(), encoder.parameters(), strict=True):
                mine.lerp_(theirs, 0.1)


def test_a_copy_that_a_method_holds_is_resumed(tmp_path: Path, corpus: Corpus) -> None:
    class StopError(Exception):
        pass

    def stop(step: int, steps: int, text: str) -> None:
        if step == 5:
            raise StopError

    common: dict[str, Any] = {"seed": 3, "checkpoint_seconds": 0.0}
    whole = HasTeacher(config()).fit(corpus, FitContext(**common))
    with pytest.raises(StopError):
        HasTeacher(config()).fit(corpus, FitContext(**common, folder=tmp_path, progress=stop))
    resumed = HasTeacher(config()).fit(corpus, FitContext(**common, folder=tmp_path))
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(resumed)[name]), name


@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.campaign)])
def test_an_interrupted_run_ends_like_an_uninterrupted_one(
    tmp_path: Path, corpus: Corpus, precision: str
) -> None:
    class StopError(Exception):
        pass

    def stop_at(wanted: int) -> Any:
        def progress(step: int, steps: int, text: str) -> None:
            if step == wanted:
                raise StopError

        return progress

    whole = Pull(config())
    common: dict[str, Any] = {"seed": 3, "precision": precision, "checkpoint_seconds": 0.0}
    whole.fit(corpus, FitContext(**common, dev=FakeDev(script()), folder=tmp_path / "whole"))  # type: ignore[arg-type]
    evaluations = {
        3: 2,
        5: 3,
        7: 4,
    }  # how many evaluations lie before the checkpoint that a stop leaves
    for wanted, done in evaluations.items():
        folder = tmp_path / f"cut{wanted}"
        with pytest.raises(StopError):
            Pull(config()).fit(
                corpus,
                FitContext(
                    **common, dev=FakeDev(script()), folder=folder, progress=stop_at(wanted)
                ),  # type: ignore[arg-type]
            )
        resumed = Pull(config())
        resumed.fit(corpus, FitContext(**common, dev=FakeDev(script()[done:]), folder=folder))  # type: ignore[arg-type]
        for name, tensor in weights(whole).items():
            assert torch.equal(tensor, weights(resumed)[name]), (wanted, name)
        assert (folder / "curves.jsonl").read_bytes() == (
            tmp_path / "whole" / "curves.jsonl"
        ).read_bytes()
        assert resumed.fit_report.training == whole.fit_report.training
        assert resumed.fit_report.cost["train_tokens"] == whole.fit_report.cost["train_tokens"] > 0
    assert whole.fit_report.training["best_step"] == 6
    assert whole.fit_report.training["initial_dev"] == 0.1


@pytest.mark.parametrize("name", ["state.pt", "best-2.safetensors"])
def test_a_flipped_bit_in_a_checkpoint_costs_its_training(
    tmp_path: Path, corpus: Corpus, name: str
) -> None:
    class StopError(Exception):
        pass

    def stop(step: int, steps: int, text: str) -> None:
        if step == 4:
            raise StopError

    def fit(**more: Any) -> Pull:
        context = FitContext(
            seed=3, precision="fp32", checkpoint_seconds=0.0, folder=tmp_path, **more
        )
        return Pull(config(max_steps=4)).fit(corpus, context)

    with pytest.raises(StopError):
        fit(dev=FakeDev(script()), progress=stop)
    file = tmp_path / "checkpoint" / name
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 4  # inside a tensor: torch and safetensors read it without a word
    file.write_bytes(raw)
    resumed, steps = script(), list[int]()
    fit(dev=FakeDev(resumed), progress=lambda step, *_: steps.append(step))
    assert steps[0] == 1


def test_the_best_weights_are_returned_not_the_last(tmp_path: Path, corpus: Corpus) -> None:
    rising = [seen(0.1), seen(0.2), seen(0.3)]
    best_first = [seen(0.1), seen(0.3), seen(0.2)]
    last = Pull(config(max_steps=4)).fit(
        corpus, FitContext(seed=1, dev=FakeDev(rising), precision="fp32")
    )  # type: ignore[arg-type]
    first = Pull(config(max_steps=4)).fit(
        corpus, FitContext(seed=1, dev=FakeDev(best_first), precision="fp32")
    )  # type: ignore[arg-type]
    assert first.fit_report.training["best_step"] == 2
    assert any(not torch.equal(a, weights(first)[n]) for n, a in weights(last).items())


def test_a_run_shorter_than_the_dev_interval_is_evaluated_at_its_last_step(corpus: Corpus) -> None:
    dev: Any = FakeDev([seen(0.1 + step / 100) for step in range(9)])
    short = Pull(config(max_steps=4, eval_every=60)).fit(
        corpus, FitContext(dev=dev, precision="fp32")
    )
    assert short.fit_report.training["best_step"] == 4
    assert short.fit_report.training["best_dev"] > 0.1


def test_step_zero_is_evaluated_but_selected_only_when_asked(corpus: Corpus) -> None:
    falling: ClassVar = [seen(0.5), seen(0.3), seen(0.2)]
    default = Pull(config(max_steps=4)).fit(
        corpus, FitContext(dev=FakeDev(falling), precision="fp32")
    )  # type: ignore[arg-type]
    asked = Pull(config(max_steps=4, select_initial=True))
    asked.fit(corpus, FitContext(dev=FakeDev(falling), precision="fp32"))  # type: ignore[arg-type]
    assert (default.fit_report.training["best_step"], asked.fit_report.training["best_step"]) == (
        2,
        0,
    )
    untrained = asked.load_base().state_dict()
    assert all(torch.equal(tensor, weights(asked)[name]) for name, tensor in untrained.items())


def test_a_loss_that_is_not_a_number_ends_the_run_as_diverged(
    tmp_path: Path, corpus: Corpus
) -> None:
    with pytest.raises(TrainingStopped, match="step 3 of 8") as stop:
        Broken(config()).fit(corpus, FitContext(precision="fp32", folder=tmp_path))
    assert stop.value.status == "diverged"
    assert [
        json.loads(line)["step"] for line in (tmp_path / "curves.jsonl").read_text().splitlines()
    ] == [1, 2, 3]


class Rooted(Pull):
    """A finite loss whose gradient is none: that of a root at 0."""

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        terms = super().loss(encoder, heads, batch)
        loss = terms["loss"]
        return {**terms, "loss": loss + (loss - loss).sqrt()}


def test_a_gradient_that_is_not_a_number_ends_the_run_without_a_dev_set_too(
    corpus: Corpus,
) -> None:
    with pytest.raises(TrainingStopped, match="gradient is nan at step 1 of 1") as stop:
        Rooted(config(max_steps=1)).fit(corpus, FitContext(precision="fp32"))
    assert stop.value.status == "diverged"


@pytest.mark.parametrize("bad", [seen(0.2, std=0.001), seen(0.2, rank=1.1)])
def test_constant_or_one_dimensional_embeddings_end_the_run_as_collapsed(
    corpus: Corpus, bad: dict[str, float]
) -> None:
    method = Pull(config())
    with pytest.raises(TrainingStopped, match="at step 2 of 8") as stop:
        method.fit(corpus, FitContext(dev=FakeDev([seen(0.1), bad]), precision="fp32"))  # type: ignore[arg-type]
    assert stop.value.status == "collapsed"
    assert method.fit_report.training["steps"] == 2


def test_without_a_dev_set_the_last_weights_are_kept(corpus: Corpus) -> None:
    report = Pull(config(max_steps=2)).fit(corpus, FitContext(precision="fp32")).fit_report
    assert report.training["best_step"] is None
    assert report.cost["corpus_sentences_seen"] == 16


def test_a_missing_or_wrong_corpus_is_one_clear_line(corpus: Corpus) -> None:
    with raises_input_error(file='method "pull"'):
        Pull(config()).fit(None)
    with raises_input_error(file='method "pull"'):
        Pull(config()).fit(load_corpus("embedded:pairs", kind="pairs"))


@pytest.mark.parametrize(
    ("returned", "key"),
    [
        (None, "loss"),
        (torch.ones(()), "loss"),
        ({"align": torch.ones(())}, "loss"),
        ({"loss": torch.ones(64, requires_grad=True)}, "loss"),
        ({"loss": torch.ones((), requires_grad=True), "align": 1.0}, "align"),
        ({"loss": torch.ones((), requires_grad=True), "step": torch.ones(())}, "step"),
        ({"loss": torch.ones((), requires_grad=True), "lr": torch.ones(())}, "lr"),
        ({"loss": torch.ones(())}, "loss()"),  # it depends on no trained parameter
    ],
)
def test_what_a_loss_must_return_is_one_line(returned: object, key: str) -> None:
    with raises_input_error(key=key):
        check_terms(returned)
