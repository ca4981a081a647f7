"""Losses of the user's own and of other libraries as methods."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers.sentence_transformer import losses
from torch import nn
from torch.nn import functional

import harness
from harness import registry
from harness.errors import InputError
from harness.results.spec import method_version
from harness.sources import corpus_of
from tests.support.bases import narrow_bert
from tests.support.encoder_models import base_model
from tests.support.errors import raises_input_error
from tests.support.kill_and_resume import weights_whole_and_resumed

TEXTS = [
    f"The {animal} sleeps near the {place} at {time}."
    for animal in ("dog", "cat", "owl", "horse")
    for place in ("river", "house")
    for time in ("noon", "night")
]
SMALL = {"batch_size": 8, "max_steps": 2, "learning_rate": 1e-3, "pooling": "cls"}


def fit(method: Any, **config: Any) -> Any:
    values = {**SMALL, **config}
    return harness.train(method, corpus=TEXTS, dev=None, config=values, base_model=narrow_bert())


def in_batch(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiple negatives ranking, written from its equation."""
    cosines = functional.normalize(a, dim=1) @ functional.normalize(b, dim=1).T
    return functional.cross_entropy(20 * cosines, torch.arange(len(a)))


def weighted(weight: float) -> Any:
    return harness.loss(lambda a, b: weight * (a - b).square().sum(dim=1).mean(), name="weighted")


class Momentum(nn.Module):
    """A loss whose state is an attribute that its first call makes, as that of lightly's TiCo."""

    def __init__(self, beta: float = 0.5) -> None:
        super().__init__()
        self.beta = beta
        self.covariance: Any = None
        self.seen: list[int] = []

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        now = a.T @ b / len(a)
        before = torch.zeros_like(now) if self.covariance is None else self.covariance
        mixed = self.beta * before + (1 - self.beta) * now
        self.covariance = mixed.detach()
        self.seen.append(len(a))
        return mixed.square().mean() * len(self.seen) + (a - b).square().mean()


class Counting(nn.Module):
    """A loss that changes a buffer that no state_dict has."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()), persistent=False)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return (a - b).square().mean() * self.calls


class Generated(nn.Module):
    """A loss that draws from a generator of its own, which a checkpoint cannot hold."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a - b).square().mean()


def test_a_function_and_a_class_of_sentence_transformers_of_one_equation_train_alike() -> None:
    ours = fit(harness.loss(in_batch))
    theirs = fit(harness.loss(build=losses.MultipleNegativesRankingLoss, name="theirs"))
    torch.testing.assert_close(
        torch.tensor(ours.encode(TEXTS)), torch.tensor(theirs.encode(TEXTS)), rtol=1e-4, atol=1e-4
    )


class OfAListOfViews(nn.Module):
    """As lightly's EMP-SSL."""

    def forward(self, z_views: list[torch.Tensor]) -> torch.Tensor:
        return in_batch(*z_views)


class OfProjections(nn.Module):
    """As lightly's LeJEPA: (views, n, d) each."""

    def forward(self, *, local_proj: torch.Tensor, global_proj: torch.Tensor) -> torch.Tensor:
        return in_batch(global_proj[0], local_proj[0])


class OfLabels(nn.Module):
    """As those of pytorch-metric-learning: both views of a sentence have its label."""

    def forward(
        self,
        embeddings: torch.Tensor,
        labels: Any = None,
        indices_tuple: Any = None,
        ref_emb: Any = None,
        ref_labels: Any = None,
    ) -> torch.Tensor:
        order = torch.sort(labels, stable=True).indices
        return in_batch(embeddings[order[::2]], embeddings[order[1::2]])


class OfFeatures(nn.Module):
    """As those of sentence-transformers that encode by themselves."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, sentence_features: Any, labels: Any) -> torch.Tensor:
        views = [self.model(features)["sentence_embedding"] for features in sentence_features]
        return in_batch(*views)


def test_parts_of_a_batch_that_a_loss_encodes_are_dropped_at_the_rates_of_the_row() -> None:
    loss = harness.loss(build=OfFeatures)
    whole = fit(loss, dropout=0.0).encode(TEXTS)
    in_parts = fit(loss, dropout=0.0, micro_batch=3).encode(TEXTS)
    torch.testing.assert_close(torch.tensor(in_parts), torch.tensor(whole), rtol=1e-4, atol=1e-4)


def test_a_rate_that_the_model_cannot_use_is_refused_where_a_loss_encodes(tmp_path: Path) -> None:
    base = str(base_model(tmp_path, "qwen3"))
    with raises_input_error(key="hidden_dropout"):
        harness.train(
            harness.loss(build=OfFeatures), corpus=TEXTS, dev=None, config=SMALL, base_model=base
        )


@pytest.mark.parametrize("build", [OfAListOfViews, OfProjections, OfLabels])
def test_one_equation_trains_alike_whatever_its_signature(build: type[nn.Module]) -> None:
    torch.testing.assert_close(
        torch.tensor(fit(harness.loss(build=build)).encode(TEXTS)),
        torch.tensor(fit(harness.loss(in_batch)).encode(TEXTS)),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize(
    "kind",
    [
        losses.BatchAllTripletLoss,
        losses.MegaBatchMarginLoss,
        losses.CachedMultipleNegativesRankingLoss,
        losses.ContrastiveTensionLossInBatchNegatives,
        losses.GlobalOrthogonalRegularizationLoss,
    ],
)
def test_losses_on_labels_features_and_copies_train(kind: type) -> None:
    base = harness.train("pooling", config={"pooling": "cls"}, base_model=narrow_bert())
    before = base.encode(TEXTS[:1])
    after = fit(harness.loss(build=kind)).encode(TEXTS[:1])
    assert abs(after - before).max() > 1e-3


@pytest.mark.parametrize(
    "kind", [losses.DenoisingAutoEncoderLoss, losses.CoSENTLoss, losses.MarginMSELoss]
)
def test_losses_that_two_views_cannot_feed_are_refused(kind: type) -> None:
    with pytest.raises(InputError) as error:
        harness.loss(build=kind)
    assert error.value.key == "loss"


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: (a - b).square().mean().detach(),
        lambda a, b: a.square().mean(),
        lambda a, b: (a.detach() - b).square().mean(),
    ],
)
def test_a_loss_without_a_gradient_to_both_views_is_refused(function: Any) -> None:
    with pytest.raises(InputError) as error:
        fit(harness.loss(function, name="one_sided"))
    assert error.value.key == "loss"


def test_a_margin_that_all_vectors_of_the_first_batch_keep_is_no_fault() -> None:
    """Neither a hinge at zero nor one above it has a gradient that is not zero."""
    for floor in (0.0, 0.1):
        hinge = harness.loss(
            lambda a, b, floor=floor: ((a - b).square().mean() - 1e6).clamp(min=floor),
            name="satisfied",
        )
        assert fit(hinge).fit_report.training["steps"] > 0


def test_closures_defaults_and_arguments_have_ids_of_their_own() -> None:
    def near(a: Any, b: Any, power: float = 1.0) -> Any:
        return (a - b).norm(dim=1).pow(power).mean()

    first = method_version(harness.loss(near))
    near.__defaults__ = (2.0,)
    assert method_version(harness.loss(near)) != first
    assert method_version(weighted(0.1)) == method_version(weighted(0.1))
    assert method_version(weighted(0.1)) != method_version(weighted(9.0))
    low = harness.loss(build=Momentum, beta=0.1).Config().model_dump()
    assert low != harness.loss(build=Momentum, beta=0.9).Config().model_dump()
    twice = method_version(harness.loss(Momentum(0.1)))
    assert twice != method_version(harness.loss(Momentum(0.9)))


SCALES = [1.0, 2.0]


class Private(nn.Module):
    """A loss whose numbers stand where no state_dict and no public attribute shows them."""

    def __init__(self, margin: float = 0.0, weight: float = 0.0) -> None:
        super().__init__()
        self._margin = margin
        self.register_buffer("weight", torch.tensor(weight), persistent=False)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        distance = (a - b).norm(dim=1)
        return (distance * self.weight - self._margin).relu().mean()


def test_values_that_a_module_hides_have_ids_of_their_own() -> None:
    modules = [Private(), Private(margin=0.5), Private(weight=0.5), Private()]
    *first, again = [method_version(harness.loss(module)) for module in modules]
    assert len(set(first)) == 3
    assert first[0] == again


def test_tables_of_a_class_are_in_its_id() -> None:
    class Scaled:
        scales = SCALES

        def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return (a - b).square().sum() * self.scales[0]

    first = method_version(harness.loss(build=Scaled))
    Scaled.scales = [3.0, 2.0]
    changed = method_version(harness.loss(build=Scaled))
    Scaled.scales = SCALES
    assert first != changed
    assert first == method_version(harness.loss(build=Scaled))


def test_what_cannot_be_hashed_needs_a_version() -> None:
    captured = torch.Generator()

    def drawn(a: Any, b: Any) -> Any:
        return (a - b).square().mean() * torch.rand(1, generator=captured)

    with pytest.raises(InputError) as error:
        harness.loss(drawn)
    assert error.value.key == "version"
    assert method_version(harness.loss(drawn, version=3)) == 3


@pytest.mark.parametrize(
    ("build", "values"),
    [
        (Momentum, {"beta": 0.3}),
        (Counting, {}),
        (losses.ContrastiveTensionLossInBatchNegatives, {}),
    ],
)
def test_state_and_copies_resume_bit_for_bit(build: type, values: Any, tmp_path: Path) -> None:
    method = harness.loss(build=build, **values)
    corpus = corpus_of(TEXTS, "sentences")
    whole, resumed = weights_whole_and_resumed(method, {**SMALL, "batch_size": 4}, corpus, tmp_path)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_state_does_not_pass_from_run_to_run() -> None:
    method = harness.loss(Momentum())
    assert (fit(method).encode(TEXTS) == fit(method).encode(TEXTS)).all()


def test_state_that_a_checkpoint_cannot_hold_is_refused() -> None:
    with pytest.raises(InputError) as error:
        fit(harness.loss(build=Generated))
    assert error.value.key == "loss"


def test_parameters_of_a_loss_are_options_that_a_study_can_search() -> None:
    method = harness.loss(build=losses.MultipleNegativesRankingLoss, space={"scale": (1.0, 100.0)})
    assert method.Config().scale == 20.0
    assert method.Config.sweeps()["scale"] == {"low": 1.0, "high": 100.0, "log": False}
    with pytest.raises(InputError) as error:
        harness.loss(build=losses.MultipleNegativesRankingLoss, skale=3.0)
    assert error.value.key == "skale"


MODULE = """
import harness
from harness.config import option
from harness.training import TrainedMethod, ViewsConfig


class Config(ViewsConfig):
    weight: float = option(1.0, "of the loss", gt=0)


class Pull(TrainedMethod):
    name = "pull"
    Config = Config

    def loss(self, encoder, heads, batch):
        a, b = encoder.two_views(batch.texts)
        return {"loss": self.config.weight * attract(a, b)}


def attract(a, b):
    return (a - b).square().sum(dim=1).mean()


@harness.loss
def near(a, b):
    return attract(a, b)
"""


@pytest.mark.usefixtures("few_pairs")
def test_a_loss_in_a_file_is_a_row_for_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mylosses.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    st = "sentence_transformers.sentence_transformer.losses:MultipleNegativesRankingLoss"
    rows = [
        {"loss": "mylosses:attract", "view": "shuffle", "config": {"pooling": "cls"}},
        {"loss": st, "config": {"scale": 5.0, "pooling": "cls"}},
        {"loss": "mylosses:Pull", "config": {"pooling": "cls", "weight": 2.0}},
        {"loss": "mylosses:near", "config": {"pooling": "cls"}},
    ]
    found = harness.compare(
        {"name": "own", "methods": rows, "shared": {"batch_size": 8}},
        seeds=[1],
        max_steps=1,
        base_models=narrow_bert(),
        suites="Embedded-STS-natural",
        dev=None,
        workdir=tmp_path / "work",
        tracking_uri="none",
        formats=[],
    )
    specs = {record.row: record.spec for record in found.records if record.spec.trained}
    assert set(specs) == {"attract", "MultipleNegativesRankingLoss", "Pull", "near"}
    # Methods that no package registers have the names by which another process imports them.
    assert specs["Pull"].method == "loss:mylosses:Pull"
    assert specs["near"].method == "loss:mylosses:near"
    assert specs["Pull"].config["weight"] == 2.0
    assert specs["attract"].config["view"] == "shuffle"
    assert specs["MultipleNegativesRankingLoss"].config["scale"] == 5.0
    assert all(record.status == "finished" for record in found.records)
    assert "mylosses" in sys.modules


class Margin(torch.nn.Module):
    """A loss with an argument that it cannot do without."""

    def __init__(self, margin: float) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a - b).norm(dim=1).sub(self.margin).relu().mean()


def test_an_argument_without_a_default_is_an_option_that_must_be_given() -> None:
    method = registry.load(registry.METHODS, f"loss:{__name__}:Margin")
    assert method.configure({"margin": 0.4}).margin == 0.4
    with raises_input_error(key="margin"):
        method.configure({})


def test_a_loss_that_is_not_there_is_one_line() -> None:
    with pytest.raises(InputError) as error:
        registry.load(registry.METHODS, "loss:torch:no_such_loss")
    assert error.value.key == "loss"


def test_a_method_that_is_installed_keeps_its_name() -> None:
    kind = registry.load(registry.METHODS, "loss:methods.simcse:SimCSE")
    assert kind is registry.load(registry.METHODS, "simcse")


@pytest.mark.parametrize(
    ("name", "key", "remedy"),
    [("mylosses:Pull", "mylosses:Pull", "loss:mylosses:Pull"), ("loss:a.py:B", "loss", '"a:B"')],
)
def test_code_in_place_of_a_name_has_the_name_to_write(name: str, key: str, remedy: str) -> None:
    with pytest.raises(InputError) as error:
        registry.load(registry.METHODS, name)
    assert error.value.key == key
    assert remedy in (error.value.remedy or "")


def test_two_losses_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        harness.compare([weighted(0.1), weighted(9.0)], workdir=tmp_path)
    assert error.value.key == "methods"


def test_the_conformance_kit_passes_on_a_loss() -> None:
    from harness.testing import assert_method

    assert_method(harness.loss(in_batch), base_model=narrow_bert())


def test_the_conformance_kit_passes_on_a_class_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.testing import assert_method

    (tmp_path / "pulling.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    assert_method("loss:pulling:Pull", base_model=narrow_bert())
