"""The conformance kit finds what it is for: every check fails on a method that breaks its promise,
and on no other.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from pydantic import ConfigDict, field_validator

from harness import registry
from harness.cli import main
from harness.config import option
from harness.conformance import CHECKS, Check, Subject, run_check
from harness.method import MethodCard, MethodConfig
from harness.testing import assert_method, check_method
from harness.training import TrainedMethod, TrainingConfig
from methods.random_vectors import RandomVectors, RandomVectorsConfig
from methods.simcse import SimCSE
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error


class Good(TrainedMethod):
    """Two views attract, features keep their spread; a queue lives in a buffer."""

    name = "good"
    card = MethodCard(
        title="Good", paper="here", text="sentences", supervision="unsupervised", cost="one epoch"
    )
    Config = TrainingConfig
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "mini": {"learning_rate": 1e-3, "train_length": 12}
    }

    def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
        a, b = encoder.two_views(batch.texts)
        return {"loss": (a - b).square().mean() + torch.relu(1 - a.float().std(dim=0)).mean()}


# ---------------------------------------------------------------- methods that break one promise
# each


class Doubles(RandomVectorsConfig):
    @field_validator("dimension")
    @classmethod
    def _twice(cls, value: int) -> int:
        return 2 * value


class Lenient(RandomVectorsConfig):
    model_config = ConfigDict(extra="ignore")


class Silent(RandomVectorsConfig):
    size: int = 3


class OutOfRange(RandomVectorsConfig):
    size: int = option(3, "a size", ge=1, sweep=[0, 1])


class ChangesInJson(RandomVectors):
    Config = Doubles


class TakesAnyKey(RandomVectors):
    Config = Lenient


class NoHelp(RandomVectors):
    Config = Silent


class BadSweep(RandomVectors):
    Config = OutOfRange


class NoCost(Good):
    card = replace(Good.card, cost="none")


class NoSuchNumbers(RandomVectors):
    card = replace(RandomVectors.card, published=("nothing.csv:Nobody",))


class Early(RandomVectors):
    @property
    def seed(self) -> int:
        return 0


class Greedy(Good):
    """Takes whatever it is given."""

    def fit(self, corpus: Any = None, context: Any = None) -> Any:
        return self


class NoSelf(RandomVectors):
    def fit(self, corpus: Any = None, context: Any = None) -> Any:
        super().fit(corpus, context)


class Encodes(RandomVectors):
    """Vectors with a fault."""

    def encode(self, sentences: Any, **options: Any) -> Any:
        vectors = super().encode(sentences, **options)
        return (
            vectors
            if isinstance(sentences, str) or not len(sentences)
            else self.spoil(vectors, sentences, options)
        )

    def spoil(self, vectors: Any, sentences: Any, options: Any) -> Any:
        raise NotImplementedError


class Double(Encodes):
    def spoil(self, vectors: Any, sentences: Any, options: Any) -> Any:
        return vectors.astype(np.float64) if isinstance(vectors, np.ndarray) else vectors


class Constant(Encodes):
    def spoil(self, vectors: Any, sentences: Any, options: Any) -> Any:
        return vectors * 0 + 1 / 16


class Noisy(Encodes):
    def spoil(self, vectors: Any, sentences: Any, options: Any) -> Any:
        return vectors + np.random.default_rng().normal(0, 1e-3, vectors.shape).astype(np.float32)


class BatchSized(Encodes):
    def spoil(self, vectors: Any, sentences: Any, options: Any) -> Any:
        return vectors * (1 + 1e-3 / options.get("batch_size", 64))


class Ordered(Encodes):
    def spoil(self, vectors: Any, sentences: Any, options: Any) -> Any:
        return vectors + np.arange(len(vectors), dtype=np.float32)[:, None]


class Padded(Encodes):
    def spoil(self, vectors: Any, sentences: Any, options: Any) -> Any:
        return vectors * max(map(len, sentences))


class EmptyIsNan(Encodes):
    def spoil(self, vectors: Any, sentences: Any, options: Any) -> Any:
        return np.where(np.array([[not text] for text in sentences]), np.float32(np.nan), vectors)


class Forgets(RandomVectors):
    @classmethod
    def load(cls, path: Any) -> Any:
        method = super().load(path)
        method._seed += 1
        return method


class Pickles(RandomVectors):
    def save(self, path: str | Path, *, card: str = "") -> None:
        super().save(path, card=card)
        (Path(path) / "weights.bin").write_bytes(b"")


class OtherVectors(Good):
    """Normalises outside of the encoder, where a SentenceTransformer does not see it."""

    def encode(self, sentences: Any, **options: Any) -> Any:
        return super().encode(sentences, **{**options, "normalize_embeddings": True})


class GlobalNumpy(Good):
    def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
        return {"loss": super().loss(encoder, heads, batch)["loss"] * (1 + np.random.rand())}


class SaysDeterministic(RandomVectors):
    card = replace(RandomVectors.card, deterministic=True)


class IgnoresTheSeed(RandomVectors):
    @property
    def seed(self) -> int:
        return super().seed * 0


class Uphill(Good):
    """The value of the loss with the gradient of its negative."""

    def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
        loss = super().loss(encoder, heads, batch)["loss"]
        return {"loss": 2 * loss.detach() - loss}


class TrainsTheHeadOnly(Good):
    def heads(self, encoder: Any) -> Any:
        return torch.nn.Linear(encoder.dimension, 2)

    def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
        ids = encoder.tokenize(batch.texts, max_length=8)
        return {"loss": heads(encoder(encoder.collate(ids)).detach()).square().mean()}


class StepsTwice(Good):
    def optimizer(self, groups: Any) -> torch.optim.Optimizer:
        doubled = [{**group, "params": [*group["params"], *group["params"]]} for group in groups]
        with pytest.warns(UserWarning, match="duplicate parameters"):
            return torch.optim.AdamW(doubled)


class LargeBatches(Good):
    def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
        terms = super().loss(encoder, heads, batch)
        return (
            {"loss": terms["loss"] / max(0, len(batch.items) - 2)}
            if len(batch.items) > 2
            else {"loss": terms["loss"] * float("nan")}
        )


class KeepsItsHead(Good):
    def load_base(self) -> Any:
        encoder = super().load_base()
        encoder.head.append(torch.nn.Linear(encoder.dimension, 16))
        return encoder


class AddsAHeadAfterwards(Good):
    def fit(self, corpus: Any = None, context: Any = None) -> Any:
        super().fit(corpus, context)
        self.encoder.head.append(torch.nn.Linear(self.encoder.dimension, 16))
        return self


class Remembers(Good):
    """Keeps state on the object, which no checkpoint holds."""

    updates = 0

    def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
        self.updates += 1
        a = super().loss(encoder, heads, batch)["loss"]
        anchor = sum(p.square().sum() for p in encoder.parameters())
        return {"loss": a + 1e-3 * self.updates * anchor}


BROKEN: list[tuple[str, type[Any], str]] = [
    ("configuration", ChangesInJson, "dimension"),
    ("configuration", TakesAnyKey, "an unknown key: accepted"),
    ("configuration", NoHelp, "help: size"),
    ("presets and sweeps are valid", BadSweep, 'key "size"'),
    ("card is complete", NoCost, "what does training cost"),
    ("card is complete", NoSuchNumbers, "nothing.csv"),
    ("before fit", Early, "encode before fit: accepted"),
    ("wrong corpus is refused", Greedy, "no corpus: accepted"),
    ("fit returns self", NoSelf, "NoneType"),
    ("shape and dtype", Double, "float64"),
    ("shape and dtype", Constant, "same vector"),
    ("vectors are repeatable", Noisy, "two calls differ"),
    ("vectors are repeatable", BatchSized, "each text alone"),
    ("vectors are repeatable", Ordered, "each text alone"),
    ("vectors are repeatable", Padded, "each text alone"),
    ("odd text", EmptyIsNan, "not finite for ''"),
    ("save and load", Forgets, "loaded vectors differ"),
    ("save and load", Pickles, "weights.bin"),
    ("SentenceTransformer reads it", OtherVectors, "vectors differ"),
    ("seeds", GlobalNumpy, "two fits with one seed differ"),
    ("seeds", SaysDeterministic, "another seed changes"),
    ("seeds", IgnoresTheSeed, "set card.deterministic"),
    ("a step lowers the loss", Uphill, "no step down the gradient"),
    ("a step lowers the loss", TrainsTheHeadOnly, "no gradient reaches the encoder"),
    ("each parameter is trained once", StepsTwice, "twice"),
    ("small batch, bfloat16", LargeBatches, "two items"),
    ("heads are dropped", KeepsItsHead, "card.kept"),
    ("heads are dropped", AddsAHeadAfterwards, "card.kept"),
    ("resumes after a kill", Remembers, "weights differ"),
]


def one(check: str, method: Any, folder: Path) -> Check:
    preset = "mini" if "mini" in method.presets else None
    with torch.random.fork_rng(devices=[]):
        return run_check(check, Subject(method, {}, preset, narrow_bert(), folder))


def test_every_check_has_a_method_that_breaks_it() -> None:
    assert {check for check, _, _ in BROKEN} == set(CHECKS)


@pytest.mark.parametrize(
    ("check", "method", "message"), BROKEN, ids=lambda x: getattr(x, "__name__", None)
)
def test_a_broken_promise_is_found(
    check: str, method: type[Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.results.published.folders", lambda: [tmp_path])
    result = one(check, method, tmp_path)
    assert not result.passed, result.detail
    assert message in result.detail
    assert "\n" not in result.detail


def test_a_class_that_has_a_name_and_a_loss_alone_is_complete(tmp_path: Path) -> None:
    """As in the README."""

    class Bare(TrainedMethod):
        name = "bare_loss"

        def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
            a, b = encoder.two_views(batch.texts)
            return {"loss": (a - b).square().mean()}

    assert one("card is complete", Bare, tmp_path).passed


def test_good_methods_pass() -> None:
    assert_method(Good, base_model=narrow_bert())
    checked = check_method(RandomVectors, base_model=narrow_bert())
    assert [check.name for check in checked] == list(CHECKS)


def test_a_state_in_a_buffer_is_resumed(tmp_path: Path) -> None:
    class Counts(Good):
        def heads(self, encoder: Any) -> Any:
            heads = torch.nn.Module()
            heads.register_buffer("updates", torch.zeros(()))
            return heads

        def after_update(self, encoder: Any, heads: Any) -> None:
            heads.updates += 1

        def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
            anchor = sum(p.square().sum() for p in encoder.parameters())
            return {
                "loss": super().loss(encoder, heads, batch)["loss"] + 1e-3 * heads.updates * anchor
            }

    assert one("resumes after a kill", Counts, tmp_path).passed


def test_a_declared_head_may_stay(tmp_path: Path) -> None:
    class Declared(KeepsItsHead):
        card = replace(Good.card, kept="a linear layer")

    result = one("heads are dropped", Declared, tmp_path)
    assert result.passed
    assert "head (1,040 parameters): a linear layer" in result.detail


def test_when_fit_fails_the_others_say_so(tmp_path: Path) -> None:
    class Fails(Good):
        def fit(self, corpus: Any = None, context: Any = None) -> Any:
            raise RuntimeError("no\nluck")

    with pytest.raises(
        AssertionError, match=r"(?s)Fails breaks .*fit returns self: RuntimeError: no luck.*not run"
    ):
        assert_method(Fails)


def test_an_error_in_a_loss_names_its_line(tmp_path: Path) -> None:
    class Slips(Good):
        def loss(self, encoder: Any, heads: Any, batch: Any) -> dict[str, torch.Tensor]:
            return {"loss": batch.texts + 1}  # the slip

    for check in ("fit returns self", "a step lowers the loss"):
        detail = one(check, Slips, tmp_path).detail
        assert detail.startswith("TypeError: ")
        assert f"{__file__}, line " in detail
        assert "batch.texts + 1}" in detail


def test_a_wrong_config_is_the_callers_error() -> None:
    with raises_input_error(file='method "simcse"', key="temperature"):
        check_method(SimCSE, config={"temperature": 0})
    with raises_input_error(file='method "simcse"'):
        check_method(SimCSE, preset="maxi")


def test_the_command_and_its_exit_codes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["check-method", "random", "--set", "dimension=32", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["passed"]
    assert [check["name"] for check in printed["checks"]] == list(CHECKS)
    assert main(["check-method", "randm"]) == 2
    assert 'did you mean "random"' in capsys.readouterr().err
    assert main(["check-method", "random", "--set", "dimension=0"]) == 2
    assert 'key "dimension"' in capsys.readouterr().err
    monkeypatch.setattr(registry, "load", lambda group, name: EmptyIsNan)
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["check-method", "random"]) == 1
    out = capsys.readouterr().out
    assert "FAILED" in out
    assert "of 17 checks passed" in out


def test_small_batches_never_beat_what_was_given(tmp_path: Path) -> None:
    def batch(**values: Any) -> int:
        config: MethodConfig = Subject(Good, values, None, "embedded:mini-bert", tmp_path).config
        return int(config.batch_size)  # type: ignore[attr-defined]

    assert (batch(), batch(batch_size=12), batch(batch_size=4)) == (8, 12, 4)
