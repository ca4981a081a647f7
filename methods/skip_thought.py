"""Skip-Thought: two decoders write the sentences before and after a sentence from its vector."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.quiet import quiet_transformers
from harness.errors import InputError
from harness.recipes import RecipeFile
from harness.sources import Corpus, resolve_model
from harness.training import Batch, BatchStream, TrainingConfig
from methods.parts.recurrent_encoder import RecurrentEncoder, RecurrentMethod
from methods.quick_thoughts import split_sentences

SPREAD = 0.1  # weights that are not recurrent begin uniformly in [-SPREAD, SPREAD]


class Triple(NamedTuple):
    """Sentence with its neighbours in the document."""

    before: str
    anchor: str
    after: str


class Triples(Sequence[Triple]):
    """Sentences of a corpus of documents that have one before and one after them, in order."""

    def __init__(self, corpus: Corpus[str]) -> None:
        inner = [max(0, len(split_sentences(text)) - 2) for text in corpus]
        self._ends = np.cumsum(inner).tolist()
        if self._ends[-1] < 2:
            raise InputError(
                f"corpus {corpus.uri}: fewer than two sentences have a neighbour on each side",
                file=corpus.uri,
                remedy="give documents of at least three sentences",
            )
        self._sentences = lru_cache(maxsize=4096)(
            lambda document: split_sentences(corpus[document])
        )

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: Any) -> Any:
        document = bisect_right(self._ends, index)
        if document:
            place = index - self._ends[document - 1]
        else:
            place = index
        return Triple(*self._sentences(document)[place : place + 3])


def word_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """L = sum over words of -log softmax(logits)[word].

    Args:
        logits: (words, vocabulary), one row for each word to be predicted. targets: (words,).

    Source: Kiros et al., NIPS 2015, equation 10.
    """
    return functional.cross_entropy(logits.float(), targets, reduction="sum")


class SkipThoughtConfig(TrainingConfig):
    """Defaults: the paper's."""

    pooling: Literal["none"] = option("none", "the vector is the last state of each direction")
    max_length: int | None = option(
        None, "maximum number of tokens when encoding; empty: all", ge=4
    )
    direction: Literal["uni", "bi"] = option(
        "uni", "read forwards (uni-skip), or also backwards (bi-skip)"
    )
    hidden: int = option(2400, "values of a vector; bi-skip has half of them a direction", ge=2)
    embedding: int = option(620, "values of a word's vector", ge=1)
    learning_rate: float = option(2e-4, "learning rate of Adam", gt=0, sweep=(1e-4, 1e-2), log=True)
    batch_size: int = option(
        128, "sentences per training step, each with both neighbours", ge=2, sweep=[32, 64, 128]
    )
    train_length: int = option(30, "maximum number of tokens of each sentence in training", ge=4)
    max_grad_norm: float = option(10.0, "gradient norm is clipped to this", gt=0)
    eval_every: int = option(1000, "training steps between two evaluations on the dev set", ge=1)
    min_std: float = option(
        0.0, "collapse guard: none, for vectors share most of their values for long", ge=0
    )
    min_rank: float = option(0.0, "collapse guard: none", ge=0)
    gradient_checkpointing: Literal[False] = option(False, "no effect: there is one layer")
    packed: Literal[False] = option(False, "no effect: there is no transformer")

    @model_validator(mode="after")
    def _two_halves(self) -> Self:
        if self.direction == "bi" and self.hidden % 2:
            raise ValueError(
                'key "hidden": must be even with direction = "bi": half of it for each direction'
            )
        return self


class SkipThought(RecurrentMethod):
    """L = -sum over sentences, and over the words w_t of the next and of the previous one, of log
    P(w_t | w_<t, h).
    """

    name = "skip_thought"
    version = 2  # 1: no warm-up
    sheet = RecipeFile.beside(__file__)
    Config = SkipThoughtConfig

    def load_base(self) -> Encoder:
        """Make untrained word vectors and GRU, with the tokenizer of the base model.

        Raises:
            InputError: the base model has no tokenizer that can be read.
        """
        from transformers import AutoTokenizer

        config: SkipThoughtConfig = self.config
        try:
            with quiet_transformers():
                tokenizer = AutoTokenizer.from_pretrained(
                    resolve_model(self.base_model), trust_remote_code=False
                )
        except (OSError, ValueError, KeyError) as error:
            raise InputError(
                f'base model "{self.base_model}": no tokenizer: {str(error).splitlines()[0]}',
                file=self.base_model,
            ) from None
        both = config.direction == "bi"
        words = nn.Embedding(len(tokenizer), config.embedding)
        nn.init.uniform_(words.weight, -SPREAD, SPREAD)
        if both:
            hidden = config.hidden // 2
        else:
            hidden = config.hidden
        layer = _gru(config.embedding, hidden, both=both)
        return RecurrentEncoder(
            tokenizer, words, layer, reduce="last", max_length=config.max_length
        )

    def heads(self, encoder: Encoder) -> nn.Module:
        config: SkipThoughtConfig = self.config
        words = cast(RecurrentEncoder, encoder).words.weight
        heads = nn.Module()
        heads.after = _gru(config.embedding, config.hidden)
        heads.before = _gru(config.embedding, config.hidden)
        heads.vocabulary = nn.Linear(config.hidden, len(words))
        nn.init.uniform_(heads.vocabulary.weight, -SPREAD, SPREAD)
        nn.init.zeros_(heads.vocabulary.bias)
        return heads

    def stream(self, corpus: Corpus, seed: int) -> BatchStream:
        return super().stream(Triples(corpus), seed)  # type: ignore[arg-type]  # needs no more than a sequence

    def schedule(self, step: int, steps: int) -> float:
        """Return the share of the peak rate, which is constant after a warm-up."""
        share: float = self.config.warm_share(step, steps)
        return share

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        triples: list[Triple] = batch.items
        anchors = [triple.anchor for triple in triples]
        following = [triple.after for triple in triples]
        preceding = [triple.before for triple in triples]

        ids = encoder.tokenize(anchors, max_length=self.config.train_length)
        vectors = encoder(encoder.collate(ids))
        after = self._decode_loss(encoder, heads, heads.after, vectors, following)
        before = self._decode_loss(encoder, heads, heads.before, vectors, preceding)
        return {"loss": after + before, "after": after, "before": before}

    def _decode_loss(
        self,
        encoder: Encoder,
        heads: Any,
        decoder: Any,
        vectors: Tensor,
        texts: list[str],
    ) -> Tensor:
        """Loss of writing `texts` from `vectors`, each word given the true words before it."""
        ids = encoder.tokenize(texts, max_length=self.config.train_length)
        rows = [row if len(row) > 1 else row * 2 for row in ids]  # two tokens at least
        padded = encoder.collate(rows)["input_ids"].to(vectors.device)
        lengths = torch.tensor([max(1, len(row) - 1) for row in ids])
        words = cast(RecurrentEncoder, encoder).words
        with torch.autocast(device_type=vectors.device.type, enabled=False):
            inputs = _pack(words(padded[:, :-1]), lengths)
            targets = _pack(padded[:, 1:], lengths)
            states, _ = decoder(inputs, vectors.float().unsqueeze(0))
            return word_cross_entropy(heads.vocabulary(states.data), targets.data)


def _pack(padded: Tensor, lengths: Tensor) -> PackedSequence:
    return pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)


def _gru(inputs: int, hidden: int, *, both: bool = False) -> nn.GRU:
    """Return a GRU initialised as in the paper: recurrent weights orthogonal, others uniform, biases
    0.
    """
    gru = nn.GRU(inputs, hidden, batch_first=True, bidirectional=both)
    for name, weight in gru.named_parameters():
        if "bias" in name:
            nn.init.zeros_(weight)
        elif "weight_hh" in name:
            for gate in weight.detach().chunk(3):
                nn.init.orthogonal_(gate)
        else:
            nn.init.uniform_(weight, -SPREAD, SPREAD)
    return gru
