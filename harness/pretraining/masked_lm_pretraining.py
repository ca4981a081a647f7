"""Masked-language pretraining, from scratch or continued; the result is an ordinary Hugging Face folder.

A run that is killed and started again goes on from its last checkpoint, with the batches and masks of the uninterrupted
run (its weights too, bit for bit on a CPU, where the budget is in steps; one in minutes ends where the clock says).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional
from transformers import AutoModelForMaskedLM, BertConfig, BertForMaskedLM, PreTrainedModel, PreTrainedTokenizerBase

from harness.encoder import Encoder
from harness.encoder.layout.loading import no_model
from harness.encoder.masked_lm import IGNORED, MaskedLM, TokenMasker
from harness.encoder.precision import autocast, choose_precision
from harness.encoder.quiet import quiet_transformers
from harness.method import FitContext
from harness.pretraining.options import PretrainingConfig
from harness.pretraining.packing import Texts, packed_parts, train_tokenizer
from harness.seeds import derive
from harness.training.descent import Descent, decay_groups

if TYPE_CHECKING:
    from harness.sources import Corpus

Progress = Callable[[int, int, str], None]
_CONTINUED_LENGTH = 128
_VALIDATION_TOKENS = 200_000  # more would cost time and say no more


class Pretraining(Descent):
    """One run: `run` trains, `harness.pretraining.model_folder.save` writes what came of it.

    Raises:
        InputError: a base model without a mask token or known head, too little text, a length beyond the positions.
    """

    counters = ("seconds", "initial", "loss", "precision")

    def __init__(
        self,
        config: PretrainingConfig,
        corpora: Sequence[Corpus],
        *,
        folder: Path | None = None,
        device: str = "cpu",
        progress: Progress | None = None,
        checkpoint_seconds: float = 60.0,
    ) -> None:
        def say(text: str) -> None:
            if progress:
                progress(0, config.steps or 0, text)

        self.config, self.corpora, self.device = config, corpora, device
        self.seconds = 0.0  # of training and evaluation
        self.initial = self.loss = math.nan  # on the validation part: before training, and now
        self._epoch: tuple[int, NDArray[np.int64]] | None = None
        texts = Texts(corpora, hold_out=config.hold_out, seed=config.seed)
        torch.manual_seed(derive(config.seed, "init"))
        if config.base_model is None:
            say("learning the vocabulary")
            self.model, self.tokenizer, self.length = _from_scratch(config, texts)
        else:
            self.model, self.tokenizer, self.length = _continued(config, config.base_model)
        self._masker = TokenMasker(self.tokenizer, probability=config.masking)
        say("tokenising the corpus")
        self.train, held = packed_parts(texts, self.tokenizer, self.length)
        self.held = held[: max(1, _VALIDATION_TOKENS // self.length)]
        self.rows = min(max(1, config.batch_tokens // self.length), len(self.train))
        self.steps_per_epoch = math.ceil(len(self.train) / self.rows)
        one_pass = self.steps_per_epoch if config.minutes is None else 0

        self.model.to(device)  # type: ignore[arg-type]
        self._head = MaskedLM.of(self.model)
        self._own_rates = {m: m.p for m in self.model.modules() if isinstance(m, nn.Dropout)}
        groups = decay_groups(self.model.parameters(), config.weight_decay)
        super().__init__(
            {"model": self.model},
            torch.optim.AdamW(groups, lr=config.peak, betas=(0.9, config.beta2), fused=True),
            list(self.model.parameters()),
            FitContext(device=device, folder=folder, checkpoint_seconds=checkpoint_seconds, progress=progress),
            steps=config.steps or one_pass,
            max_grad_norm=config.max_grad_norm,
            log_every=config.log_every,
            precision=choose_precision(device, config.precision).name,
        )

    def run(self) -> float:
        """Train to the end, or from the last checkpoint to the end; the loss on the validation part, in nats a token.

        Raises:
            TrainingStopped: the loss became infinite or not a number.
            InputError: the checkpoint in the folder is of a run with other settings or another corpus.
        """
        torch.manual_seed(derive(self.config.seed, "dropout"))
        if not self.resume():
            self.initial = self.loss = self._validate()
        for module in self._own_rates:
            module.p = self.config.dropout
        mark = time.monotonic()
        evaluated = self.step
        while self._share() < 1:
            self._update()
            if self.step % self.config.eval_every == 0:
                self.loss, evaluated = self._validate(), self.step
            now = time.monotonic()
            self.seconds, mark = self.seconds + now - mark, now
            if self.checkpoint():
                mark = time.monotonic()
        if evaluated != self.step:
            self.loss = self._validate()
        for module, rate in self._own_rates.items():
            module.p = rate
        self.model.eval()  # type: ignore[no-untyped-call]
        self.curves.flush()
        return self.loss

    def _share(self) -> float:
        """How much of the training is done, from 0 to 1: by steps or by time, whichever is further."""
        by_step = self.step / self.steps if self.steps else 0.0
        return max(by_step, self.seconds / (60 * self.config.minutes) if self.config.minutes else 0.0)

    def _rate(self) -> float:
        """The learning rate of the next update: linear warm-up, then linear decay to 0."""
        share, warmup = self._share(), self.config.warmup
        if share < warmup:
            return self.config.peak * min(1.0, (share + (1 / self.steps if self.steps else 0.0)) / warmup)
        return self.config.peak * (1 - share) / (1 - warmup)

    def _blocks(self, step: int) -> NDArray[np.int32]:
        """The sequences of an update; the last of an epoch may be fewer."""
        epoch, within = divmod(step, self.steps_per_epoch)
        if self._epoch is None or self._epoch[0] != epoch:
            order = np.random.default_rng(derive(self.config.seed, f"data order {epoch}")).permutation(len(self.train))
            self._epoch = (epoch, order)
        return self.train[self._epoch[1][within * self.rows : (within + 1) * self.rows]]

    def _loss(self, blocks: NDArray[np.int32], rng: np.random.Generator) -> torch.Tensor:
        ids, labels = self._masker(blocks, rng)
        chosen = np.flatnonzero(labels != IGNORED)
        inputs = torch.from_numpy(ids).to(self.device, non_blocking=True)
        places = torch.from_numpy(chosen).to(self.device, non_blocking=True)
        wanted = torch.from_numpy(labels.reshape(-1)[chosen]).to(self.device, non_blocking=True)
        with autocast(self.precision, self.device):
            states = self.model.base_model(input_ids=inputs).last_hidden_state
            logits = self._head(states.flatten(0, 1)[places]).float()
        return functional.cross_entropy(logits, wanted) if len(chosen) else logits.sum() * 0.0

    def _update(self) -> None:
        self.model.train()
        rate = self._rate()
        rng = np.random.default_rng(derive(self.config.seed, f"views {self.step}"))
        loss = self._loss(self._blocks(self.step), rng)
        norm = self.update(loss, rate)
        if self.at_log_step():
            value = float(loss.detach())
            self.log(
                {"loss": value, "lr": rate, "grad_norm": float(norm), "seconds": round(self.seconds, 2)},
                progress=f"loss {value:.3f}, validation {self.loss:.3f}, {self._share():.0%}",
                diverged=f"the loss is {value} at step {self.step}; lower the learning rate",
            )

    def _validate(self) -> float:
        """Mean loss of a masked token of the validation part; the masks are always the same."""
        self.model.eval()  # type: ignore[no-untyped-call]
        rng = np.random.default_rng(derive(self.config.seed, "validation masks"))
        total, count = 0.0, 0
        with torch.inference_mode():
            for start in range(0, len(self.held), 64):
                blocks = self.held[start : start + 64]
                total += float(self._loss(blocks, rng)) * len(blocks)
                count += len(blocks)
        self.curves.add(self.step, "validation", {"loss": total / count})
        return total / count

    def identity(self) -> dict[str, Any]:
        """The settings and the corpora."""
        corpora = {f"corpus {i + 1}": corpus.sha256 for i, corpus in enumerate(self.corpora)}
        return {**self.config.model_dump(), **corpora}


_Parts = tuple[PreTrainedModel, PreTrainedTokenizerBase, int]  # model, tokenizer, tokens of a sequence


def _from_scratch(config: PretrainingConfig, texts: Texts) -> _Parts:
    length = config.length or 64
    size, lower = config.vocabulary, config.lower
    tokenizer = train_tokenizer(lambda: texts.read(texts.kept), size=size, lower=lower, length=length)
    shape = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=config.feed_forward or 4 * config.width,
        max_position_embeddings=length,
        pad_token_id=tokenizer.pad_token_id,
    )
    return BertForMaskedLM(shape), tokenizer, length


def _continued(config: PretrainingConfig, base: str) -> _Parts:
    from harness.sources import resolve_model

    encoder = Encoder.from_pretrained(base, max_length=config.length)
    length = config.length or min(encoder.max_length, _CONTINUED_LENGTH)
    try:
        with quiet_transformers():
            model = AutoModelForMaskedLM.from_pretrained(
                resolve_model(base), dtype=torch.float32, trust_remote_code=False, use_safetensors=True
            )
    except (OSError, ValueError, KeyError) as error:
        raise no_model(base, error) from error
    return model, encoder.tokenizer, length
