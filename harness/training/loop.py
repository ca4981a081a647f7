"""The training loop that every trained method shares: same optimiser, schedule, data order,
selection and guard.

A method gives its heads and its loss (`TrainedMethod.heads`, `TrainedMethod.loss`); everything else
is here. A run that is killed at any moment and started again ends with the weights of the
uninterrupted run, bit for bit on a CPU: the batches and views of a step depend on the seed and the
step alone, and a checkpoint holds all other state.
"""

from __future__ import annotations

import copy
import math
import time
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, field_validator
from torch import nn

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.last_layers import check_depth, freeze_below
from harness.encoder.layout import check_start, model_folder
from harness.encoder.loading import depth_of
from harness.encoder.precision import autocast, check_precision
from harness.encoder.prefixes import Prefixes
from harness.encoder.token_count import count_tokens
from harness.errors import InputError, TrainingStopped
from harness.method import FitContext, FitReport, Method, MethodCard, MethodConfig, require_corpus
from harness.results.flat import NO_TERMS
from harness.seeds import derive, preserve_random_state
from harness.sources.embedded import resolve_model
from harness.training.batches import BatchStream
from harness.training.best_weights import BestWeights
from harness.training.collapse import (
    EARLY,
    Limits,
    describe_collapse,
    early_looks,
    explain_collapse,
    has_collapsed_twice,
    not_finite,
    note_constant_loss,
    view_cosine,
)
from harness.training.descent import Descent, decay_groups
from harness.views.make import Batch

if TYPE_CHECKING:
    from harness.sources import Corpus, TrainingText


class TrainingConfig(MethodConfig):
    """Optimisation, as the Hugging Face Trainer's defaults that SimCSE and SCD inherit.

    >>> TrainingConfig(batch_size=128, max_steps=500).learning_rate
    3e-05
    """

    learning_rate: float = option(
        3e-5,
        "peak learning rate of AdamW",
        gt=0,
        sweep=(1e-5, 1e-4),
        log=True,
    )
    batch_size: int = option(
        64,
        "sentences (or pairs) per training step",
        ge=2,
        sweep=[64, 128, 256, 512],
    )
    epochs: int = option(1, "passes over the corpus", ge=1)
    max_steps: int | None = option(None, "upper bound on training steps; empty: no bound", ge=1)
    train_length: int = option(
        32, "maximum number of tokens in training, special tokens included", ge=4
    )
    warmup: float = option(0.0, "share of the training steps with rising learning rate", ge=0, lt=1)
    warmup_steps: int | None = option(
        None, "training steps with rising rate; empty: the share warmup", ge=1
    )
    weight_decay: float = option(0.0, "decoupled weight decay (none on biases and LayerNorm)", ge=0)
    max_grad_norm: float = option(1.0, "gradient norm is clipped to this", gt=0)
    eval_every: int = option(125, "training steps between two evaluations on the dev set", ge=1)
    select: Literal["best", "last"] = option(
        "best", "which weights are used: the best on the dev set, or the last"
    )
    patience: int | None = option(
        None,
        "stop after this many evaluations worse than the one before (the first: than 0); empty: never",
        ge=1,
    )
    select_initial: bool = option(
        False, "may the untrained weights be selected as the best checkpoint"
    )
    bucket: int = option(
        1,
        "batches per length-sorted megabatch, for less padding, such as 32; 1: random batches, as the originals have",
        ge=1,
    )
    drop_last: bool = option(False, "leave out an epoch's last batch where it is shorter")
    log_every: int = option(5, "training steps between two lines of the training curve", ge=1)
    min_std: float = option(
        0.01, "collapse guard: least spread of the unit-length dev embeddings (1 = sphere)", ge=0
    )
    min_rank: float = option(
        1.5, "collapse guard: least effective rank of the dev embeddings", ge=0
    )
    micro_batch: int | None = option(
        None,
        "sentences (or pairs) encoded at a time, to need less memory for the same gradient; empty: all",
        ge=1,
    )
    gradient_checkpointing: bool = option(
        False, "keep only what enters each layer and compute the rest twice, to need less memory"
    )
    packed: Literal["auto", True, False] = option(
        "auto",
        "encode batches without their padding: true, false, or auto (on a CPU, where it is faster)",
    )

    matryoshka: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] | None = (
        option(
            None,
            "numbers of first dimensions that the loss is also computed on, and summed: vectors that "
            "can be cut to them; empty: all dimensions alone",
            later=True,
        )
    )
    trainable_layers: int | None = option(
        None,
        "train the last so many layers of the transformer alone, and what lies above them; its "
        "embeddings and lower layers are frozen; empty: train all",
        ge=1,
        later=True,
    )

    in_parts: ClassVar[bool] = False
    """May `micro_batch` be set? True for a loss that asks the encoder for nothing but `two_views`
    and `forward`.
    """

    @field_validator("micro_batch")
    @classmethod
    def _in_parts(cls, value: int | None) -> int | None:
        if value is not None and not cls.in_parts:
            raise ValueError(
                "must be empty, for this method encodes its batch as a whole (gradient_checkpointing = true saves "
                "memory too)"
            )
        return value

    def warm_updates(self, steps: int) -> int:
        """The number of `steps` with a rising learning rate; a share is rounded up, as transformers
        does.
        """
        if self.warmup_steps is not None:
            return self.warmup_steps
        return math.ceil(self.warmup * steps)

    def warm_share(self, step: int, steps: int) -> float:
        """The share of the peak learning rate that the warm-up has reached at training step `step`
        of `steps`; 1 after it.

        >>> config = TrainingConfig(warmup=0.5)
        >>> [config.warm_share(step, 4) for step in range(4)]
        [0.0, 0.5, 1.0, 1.0]
        """
        warm = self.warm_updates(steps)
        if step < warm:
            return step / warm
        return 1.0


class ViewsConfig(TrainingConfig):
    """Of a loss of `encoder.two_views` that names no rates of dropout itself.

    >>> ViewsConfig(dropout=0.2).dropout
    0.2
    """

    dropout: float | None = option(
        None,
        "dropout rate of both views of a sentence: hidden states and attention; empty: the "
        "checkpoint's own",
        ge=0,
        lt=1,
        later=True,
    )


class TrainedMethod(Method):
    """A method trained by gradient descent. Subclasses write `heads` and `loss`; the other hooks
    have defaults.

        >>> from harness.method import MethodCard
        >>> class Attract(TrainedMethod):
        ...     name = "attract"
        ...     card = MethodCard("Attraction", "none", cost="little")
        ...     def loss(self, encoder, heads, batch):
        ...         a, b = encoder.two_views(batch.texts)
        ...         return {"loss": (a - b).square().sum(dim=1).mean()}
        >>> method = Attract(TrainingConfig(batch_size=2, max_steps=1)).fit(["A dog runs.", "It rains."])
        >>> method.fit_report.training["steps"]
        1

    Parameters of encoder and heads are trained unless `heads` turned their `requires_grad` off, so
    a frozen copy of the encoder, or a slowly following one, is a part of the heads. Without a
    `card` a method learns from sentences, without labels.
    """

    Config: ClassVar[type[MethodConfig]] = ViewsConfig

    def __init_subclass__(cls, **options: Any) -> None:
        """A card that names no text means unlabelled sentences: nothing can be trained without
        text.
        """
        super().__init_subclass__(**options)
        name = getattr(cls, "name", cls.__name__)
        without = MethodCard(name, "none", cost="the training steps that its options set")
        card = getattr(cls, "card", None) or without
        if card.text == "none":
            if card.supervision == "untrained":
                learns = "unsupervised"
            else:
                learns = card.supervision
            cls.card = replace(card, text="sentences", supervision=learns)

    def load_base(self) -> Encoder:
        """As `Method.load_base`, ready to be trained with the memory that the config allows, packed
        or padded.
        """
        check_start(self.base_model, model_folder(self.base_model))
        encoder = super().load_base()
        encoder.train_length = self.config.train_length
        encoder.micro_batch = self.config.micro_batch
        if self.config.trainable_layers is not None:
            freeze_below(encoder, self.config.trainable_layers, self.base_model)
        if self.config.gradient_checkpointing:
            encoder.checkpoint_gradients()
        if self.config.packed:
            encoder.pack_batches(where_possible=self.config.packed == "auto")
        return encoder

    def heads(self, encoder: Encoder) -> nn.Module:
        """Modules trained with the encoder and discarded afterwards (projectors); none by default.

        Called once with the untrained encoder, before the first training step: the place to freeze
        or copy parts.
        """
        return nn.Module()

    def stream(self, corpus: Corpus, seed: int) -> BatchStream:
        """The batches; by default random, and equal for all methods of a
        comparison.
        """
        return BatchStream(
            corpus,
            batch_size=self.config.batch_size,
            bucket=self.config.bucket,
            seed=seed,
            length_cap=6 * self.config.train_length,  # about the characters that survive the cut
            drop_last=self.config.drop_last,
        )

    def check(self, corpus: Corpus | None) -> None:
        """As `Method.check`; what `stream` refuses is refused here already, and more
        `trainable_layers` than the base model has.
        """
        count = self.config.trainable_layers
        if count is not None and (depth := depth_of(self.base_model)):
            check_depth(count, depth, self.base_model)
        resolved = Path(resolve_model(self.base_model))
        if resolved.is_dir():
            check_start(self.base_model, resolved)
        self.stream(require_corpus(self, corpus), 0)

    def optimizer(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """The optimiser of parameter groups that carry their weight decay; AdamW with PyTorch's
        defaults.
        """
        return torch.optim.AdamW(
            groups,
            lr=self.config.learning_rate,
            betas=(0.9, 0.999),
            eps=1e-8,
            fused=True,
        )

    def schedule(self, step: int, steps: int) -> float:
        """Share of the peak learning rate at training step `step` of `steps`: linear warm-up from
        0, linear decay to 0.

        The first training step has 0 for `step`, so with a warm-up its rate is 0: the schedule of
        transformers, which sentence-transformers has too.
        """
        warm: int = self.config.warm_updates(steps)
        if step < warm:
            return step / warm
        return (steps - step) / max(1, steps - warm)

    def after_update(self, encoder: Encoder, heads: nn.Module) -> None:
        """Called after every training step: moving averages, queues. State belongs in buffers of
        the heads.
        """

    def candidates(self, encoder: Encoder, heads: nn.Module) -> tuple[Encoder, ...]:
        """Encoders that compete on the dev set, each of the architecture of `encoder`; the best one
        is used (the first one without a dev set).
        """
        return (encoder,)

    @abstractmethod
    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        """Named scalar terms of one batch; "loss" is what is minimised, the others are logged."""

    @preserve_random_state()
    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Train on `corpus`; the best weights on `context.dev` are used (the last ones without a
        dev set).

        Raises:
            TrainingStopped: the collapse guard ended the run.
            InputError: no corpus, or one of the wrong kind.
        """
        context = context or FitContext()
        stream_of = require_corpus(self, corpus)
        torch.manual_seed(derive(context.seed, "init"))
        encoder = self.load_base().to(context.device)
        is_on_cpu = context.device.startswith("cpu")
        if self.config.packed == "auto" and not is_on_cpu:
            # On a GPU padding costs less than the many small kernels of packed attention.
            encoder.packed = False
        if isinstance(self.config, ViewsConfig):
            encoder.view_dropout = self.config.dropout
        heads = self.heads(encoder).to(context.device)
        self.fit_report = FitReport()
        trainer = Trainer(self, encoder, heads, stream_of, context)
        self.fit_report = trainer.run(self.fit_report)
        encoder.eval()
        self._encoder = encoder.finish()
        return self


def planned_steps(config: TrainingConfig, stream: BatchStream, bound: int | None = None) -> int:
    """How many training steps a run makes: its epochs, cut by the config's bound and by the
    caller's.

    >>> stream = BatchStream(["a", "b", "c", "d"], batch_size=2, bucket=1, seed=1, length_cap=10)
    >>> planned_steps(TrainingConfig(epochs=3), stream), planned_steps(TrainingConfig(epochs=3), stream, 5)
    (6, 5)
    """
    bounds = [config.epochs * stream.steps_per_epoch, config.max_steps, bound]
    return min(b for b in bounds if b is not None)


def check_terms(terms: Any) -> None:
    """Check what `TrainedMethod.loss` returned.

    Raises:
        InputError: no dictionary with "loss", a term that is no scalar tensor or has the name of
            something else in the curve, or a loss without a gradient.
    """
    if isinstance(terms, dict):
        returned: Any = [*terms]
    else:
        returned = type(terms).__name__
    if not isinstance(terms, dict) or "loss" not in terms:
        raise InputError(
            f'loss() must return a dict with the key "loss", but returned {returned}', key="loss"
        )
    for name, term in terms.items():
        if name in NO_TERMS:
            raise InputError(
                f'loss(): "{name}" is written into the training curve by the loop',
                key=name,
                remedy="give the term another name",
            )
        if not torch.is_tensor(term) or term.numel() != 1:
            raise InputError(
                f'loss(): "{name}" must be a scalar tensor, as .mean() gives', key=name
            )
    if not terms["loss"].requires_grad:
        raise InputError(
            "loss(): the loss does not depend on any trained parameter; is it detached?",
            key="loss()",
        )


def _widths_of(config: TrainingConfig, dimension: int) -> list[int]:
    """Return the widths at which vectors are trained, the whole one last; none where it is alone.

    Raises:
        InputError: one is wider than the vectors.
    """
    if not config.matryoshka:
        return []
    widths = sorted({*config.matryoshka, dimension})
    if widths[-1] > dimension:
        raise InputError(
            f'key "matryoshka": {widths[-1]}, but vectors have {dimension} dimensions',
            key="matryoshka",
        )
    return widths


def _own_modules(method: TrainedMethod, heads: nn.Module, device: str) -> dict[str, nn.Module]:
    """Return the modules that a method holds itself, as a copy of the encoder, on the device.

    They are part of a checkpoint, so that a resumed run has the weights of an uninterrupted one.
    """
    modules = {}
    for name, value in vars(method).items():
        if value is heads or name == "_encoder":  # in a checkpoint anyway; that of an earlier fit
            continue
        if isinstance(value, nn.Module):
            modules[f"method.{name}"] = value.to(device)
    return modules


class Trainer(Descent):
    """One run of the loop: batches by step, selection on the dev set, the collapse guard.

    >>> from harness import registry
    >>> from harness.method import require_corpus
    >>> kind = registry.load(registry.METHODS, "simcse")
    >>> method = kind(kind.Config(batch_size=2))
    >>> corpus = require_corpus(method, ["A dog runs.", "It rains.", "She sells maps.", "He sings."])
    >>> encoder = method.load_base()
    >>> Trainer(method, encoder, method.heads(encoder), corpus, FitContext(precision="fp32")).steps
    2
    """

    counters = (
        "sentences_seen",
        "tokens",
        "seconds",
        "best",
        "initial_dev",
        "last",
        "worse",
        "precision",
    )

    def __init__(
        self,
        method: TrainedMethod,
        encoder: Encoder,
        heads: nn.Module,
        corpus: Corpus,
        context: FitContext,
    ) -> None:
        config: TrainingConfig = method.config
        self.method = method
        self.encoder = encoder
        self.heads = heads
        self.config = config
        self.limits = Limits(config.batch_size, config.min_std, config.min_rank)
        self.stream = method.stream(corpus, context.seed)
        self.widths = _widths_of(config, encoder.dimension)
        check_precision(context.precision, context.device)
        # again: heads may have put adapters into all layers
        if config.trainable_layers is not None:
            freeze_below(encoder, config.trainable_layers, method.base_model)
        parameters = [*encoder.parameters(), *heads.parameters()]
        groups = decay_groups(parameters, config.weight_decay)
        super().__init__(
            {"encoder": encoder, "heads": heads, **_own_modules(method, heads, context.device)},
            method.optimizer(groups),
            [p for group in groups for p in group["params"]],
            context,
            steps=planned_steps(config, self.stream, context.max_steps),
            max_grad_norm=config.max_grad_norm,
            log_every=config.log_every,
            precision=context.precision,
        )
        self.best_weights = BestWeights(context.folder)
        self.sentences_seen = 0
        self.tokens = 0
        self.seconds = {"train": 0.0, "dev": 0.0, "train_cpu": 0.0, "dev_cpu": 0.0}
        self.best: dict[str, Any] = {"step": None, "dev": -math.inf}
        self.initial_dev: float | None = None
        self.last: dict[str, float] = {}
        self.worse = 0
        self.stopped_early = False
        if context.dev is not None:
            self.early = early_looks(config.eval_every)
        else:
            self.early = []

    def run(self, report: FitReport) -> FitReport:
        """Train to the end, or from the last checkpoint to the end, and load the selected weights.

        Raises:
            TrainingStopped: see `_guard`; `report` then holds what was seen so far.
        """
        torch.manual_seed(derive(self.context.seed, "dropout"))
        try:
            if not self.resume():
                self._evaluate()
            while self.step < self.steps:
                self._update()
                is_last = self.step == self.steps
                if is_last or self.step % self.config.eval_every == 0:
                    self._evaluate()
                    patience = self.config.patience
                    if patience is not None and self.worse >= patience:
                        self.stopped_early = True
                        break
                elif self.step in self.early:
                    self._look()
                if self.checkpoint():
                    self.best_weights.drop_all_but(self.best["step"])
        finally:
            self.curves.flush()
            self._fill(report)
        kept = self.method.candidates(self.encoder, self.heads)[0]
        if self.best["step"] is None:
            if kept is not self.encoder:
                self.encoder.load_state_dict(kept.state_dict())
        else:
            self.best_weights.load(self.encoder, self.best["step"])
        return report

    def is_whole(self, state: dict[str, Any]) -> bool:
        """Are the best weights there, to which a checkpoint refers?"""
        best = state["best"]
        return best["step"] is None or self.best_weights.are_whole(
            best["step"], best.get("sha256", "")
        )

    def _update(self) -> None:
        started = time.perf_counter()
        worked = time.process_time()
        self.encoder.train()
        self.heads.train()
        batch = self.stream.batch(self.step)
        schedule = self.method.schedule(self.step, self.steps)
        rate = self.config.learning_rate * schedule
        with autocast(self.precision, self.context.device), count_tokens() as lengths:
            terms = self._terms(batch)
        check_terms(terms)
        if self.encoder.view_dropout is not None and not self.encoder.used_view_dropout:
            message = "has no effect: the loss makes no two views, or names rates itself"
            raise InputError(message, key="dropout", remedy="leave it out")
        norm = self.update(terms["loss"], rate)
        self.method.after_update(self.encoder, self.heads)
        self.sentences_seen += len(batch.items)
        self.tokens += sum(lengths)
        self.seconds["train"] += time.perf_counter() - started
        self.seconds["train_cpu"] += time.process_time() - worked
        if self.at_log_step():
            values = {name: float(term.detach()) for name, term in terms.items()}
            if self.best["step"] is not None:
                best = 100 * self.best["dev"]
                dev = f", best dev {best:.2f}"
            else:
                dev = ""
            loss = values["loss"]
            at = f"at step {self.step} of {self.steps}"
            self.log(
                {**values, "lr": rate, "grad_norm": float(norm)},
                progress=f"loss {loss:.4g}{dev}",
                diverged=f"the loss is {loss} {at}{not_finite(values)}{self._helps()}",
            )

    def _terms(self, batch: Batch) -> dict[str, torch.Tensor]:
        """The terms of the loss; with `matryoshka` their sums over its widths, the whole vector's
        last.

        L = sum over m of L(z with zeros behind its first m dimensions), all weights 1 (Kusupati et
        al., NeurIPS 2022): for a cosine as if it were cut; of a layer on top its first m columns
        act (their MRL-E).
        """
        if not self.widths:
            return self.method.loss(self.encoder, self.heads, batch)
        total: dict[str, torch.Tensor] = {}
        with Prefixes() as prefixes:
            for _ in prefixes.widths(self.widths):
                again = replace(batch, rng=copy.deepcopy(batch.rng))
                terms = self.method.loss(self.encoder, self.heads, again)
                for name, term in terms.items():
                    if name in total:
                        total[name] = total[name] + term
                    else:
                        total[name] = term
        if not prefixes.was_cut:
            raise InputError(
                f'key "matryoshka": the loss of {self.method.name} takes no vectors that could be cut',
                key="matryoshka",
            )
        return total

    def at_log_step(self) -> bool:
        """As `Descent.at_log_step`; early dev evaluations also log the loss."""
        return super().at_log_step() or self.step in self.early

    def _score(self, kind: str) -> tuple[Encoder, dict[str, float]]:
        """The best of the candidates on the dev set and what was seen of it, with a line in the
        curve.
        """
        assert self.context.dev is not None
        started = time.perf_counter()
        worked = time.process_time()
        best: tuple[int, dict[str, float]] | None = None
        encoders = self.method.candidates(self.encoder, self.heads)
        for number, encoder in enumerate(encoders):
            encoder.eval()
            encode = partial(encoder.encode, device=self.context.device, precision=self.precision)
            seen = self.context.dev.evaluate(encode)
            if best is None or seen["spearman"] > best[1]["spearman"]:
                best = number, seen
        assert best is not None
        number, seen = best
        self.seconds["dev"] += time.perf_counter() - started
        # Checkpoints from before this was measured do not have it.
        earlier = self.seconds.get("dev_cpu", 0.0)
        self.seconds["dev_cpu"] = earlier + time.process_time() - worked
        self.curves.add(
            self.step,
            kind,
            {**seen, **({"encoder": number} if len(encoders) > 1 else {})},
        )
        return encoders[number], seen

    def _look(self) -> None:
        """Look early whether the run collapses; nothing is selected."""
        _, seen = self._score(EARLY)
        self._guard(seen, early=True)

    def _evaluate(self) -> None:
        """Score the dev set, keep the weights when it strictly improves, and apply the collapse
        guard.
        """
        if self.context.dev is None:
            return
        encoder, seen = self._score("dev")
        if self.step == 0:
            self.initial_dev = seen["spearman"]
        else:  # SG's code compares the first evaluation with 0, and not with the untrained weights
            if self.step > self.config.eval_every:
                before = self.last["spearman"]
            else:
                before = 0.0
            self.worse += seen["spearman"] < before
        self.last = seen
        self._guard(seen)
        last = self.config.select == "last"
        if (last or seen["spearman"] > self.best["dev"]) and (
            self.step > 0 or self.config.select_initial
        ):
            digest = self.best_weights.keep(encoder, self.step)
            self.best = {"step": self.step, "dev": seen["spearman"], "sha256": digest}
        self.curves.flush(durable=False)  # whoever watches the run reads its dev scores there
        if self.context.on_dev is not None:
            self.context.on_dev(self.step, seen["spearman"])

    def _guard(self, seen: dict[str, float], *, early: bool = False) -> None:
        """End a run whose embeddings have become constant (std) or span a line only (effective
        rank), and say why.
        """
        if not all(math.isfinite(value) for value in seen.values()):
            raise TrainingStopped(
                "diverged", f"the embeddings are not finite at step {self.step}{self._helps()}"
            )
        lines = self.curves.lines
        looks = [line for line in lines if line["kind"] in ("dev", EARLY)]
        ends = (
            bool(describe_collapse(seen, self.limits))
            and self.step > 0
            and (not early or has_collapsed_twice(looks, self.limits))
        )
        if ends:
            self.last = seen
            raise TrainingStopped("collapsed", self._why(looks))

    def _why(self, looks: list[dict[str, Any]]) -> str:
        assert self.context.dev is not None
        views = view_cosine(self.encoder, self.context.dev.texts())
        lines = [line for line in self.curves.lines if line["kind"] == "train"]
        why = explain_collapse(looks, lines, self.limits, self.steps, views)
        return why + self._helps()

    def _helps(self) -> str:
        helps = self.method.card.when_it_collapses
        return f"; what usually helps: {helps}" if helps else ""

    def _fill(self, report: FitReport) -> None:
        lines = [line for line in self.curves.lines if line["kind"] == "train"]
        note = note_constant_loss(lines)
        report.training = {
            "steps": self.step,
            "planned_steps": self.steps,
            "best_step": self.best["step"],
            "best_dev": self.best["dev"] if self.best["step"] is not None else None,
            "initial_dev": self.initial_dev,
            "final": self.last,
            "precision": self.precision,
            **self.stream.about,
            **({"packed": True} if getattr(self.encoder, "packed", False) else {}),
            **({"stopped_early": True} if self.stopped_early else {}),
            **({"notes": [note]} if note else {}),
        }
        counted = {
            "train_tokens": float(self.tokens),
            "train_tokens_per_second": self.tokens / max(self.seconds["train"], 1e-9),
        }
        report.cost = {
            "train_seconds": self.seconds["train"],
            "train_cpu_seconds": self.seconds["train_cpu"],
            "dev_seconds": self.seconds["dev"],
            "dev_cpu_seconds": self.seconds.get("dev_cpu", 0.0),
            "corpus_sentences_seen": float(self.sentences_seen),
            "train_sentences_per_second": self.sentences_seen / max(self.seconds["train"], 1e-9),
            **(counted if self.tokens else {}),
            "trained_parameters": float(sum(p.numel() for p in self.parameters)),
        }
