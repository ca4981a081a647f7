"""InferSent: a bidirectional LSTM over fixed word vectors, max-pooled, that learns from natural
language inference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Subset

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.quiet import evaluation
from harness.errors import InputError
from harness.method import FitContext
from harness.recipes import RecipeFile
from harness.sources import Corpus, Pair, TrainingText
from harness.training import Batch, BatchStream, TrainedMethod, TrainingConfig
from methods.parts.nli import LABELS, Joined, NLIMethod, class_indices, join_vectors, split_parts
from methods.parts.recurrent_encoder import FrozenWords, RecurrentEncoder, RecurrentMethod
from methods.parts.word_vectors import (
    GLOVE,
    SOURCES,
    describe_lost_capitals,
    read_word_vectors,
    vectors_hash,
)
from methods.static import word_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class InferSentConfig(TrainingConfig):
    """Defaults: the paper's, which are the released script's."""

    pooling: Literal["max", "mean"] = option(
        "max", "of the states at all words: their maximum (paper) or mean"
    )
    max_length: int | None = option(None, "maximum number of words when encoding; empty: all", ge=4)
    vectors: str = option(GLOVE, SOURCES)
    words: int | None = option(
        None, "use the first so many words of the file only; empty: all", ge=1
    )
    tokens: Literal["space", "punctuation"] = option(
        "punctuation", "words are what blanks separate, or punctuation is split off as well"
    )
    lower_case: bool = option(
        False, "lower-case the text first: for vectors of lower-cased words, such as GloVe 6B"
    )
    marks: Literal["s", "p"] = option(
        "s", "a sentence is enclosed by <s> and </s> (version 1) or <p> and </p> (2)"
    )
    hidden: int = option(2048, "units of each direction; a vector has twice as many values", ge=1)
    classifier: int = option(512, "units of the classifier's two hidden layers", ge=1)
    nonlinear: bool = option(
        False, "tanh between the classifier's layers; the released models have none"
    )
    joined: Joined = option(
        "u,v,|u-v|,u*v", "what the classifier sees of both vectors: u, v, |u-v|, u*v"
    )
    learning_rate: float = option(
        0.1,
        "first learning rate of SGD",
        gt=0,
        sweep=(0.01, 1.0),
        log=True,
    )
    decay: float = option(
        0.99, "the learning rate is multiplied by this after each epoch", gt=0, le=1
    )
    shrink: float = option(
        5.0, "and divided by this after one whose dev accuracy is no better than the best", ge=1
    )
    held_out: float = option(
        0.02, "share of the pairs that are left out of training: the dev set of NLI", gt=0, lt=0.5
    )
    batch_size: int = option(64, "pairs per training step", ge=2, sweep=[32, 64, 128])
    epochs: int = option(20, "passes over the corpus", ge=1)
    train_length: int = option(128, "maximum number of words in training, the marks included", ge=4)
    max_grad_norm: float = option(5.0, "gradient norm is clipped to this", gt=0)
    eval_every: int = option(1000, "training steps between two evaluations on the dev set", ge=1)
    bucket: int = option(
        1, "batches per length-sorted megabatch, for less padding; 1: random batches", ge=1
    )
    gradient_checkpointing: Literal[False] = option(False, "no effect: there is one layer")
    packed: Literal[False] = option(False, "no effect: there is no transformer")


class InferSent(RecurrentMethod, NLIMethod):
    """L = mean over pairs of -log softmax( C([u, v, |u - v|, u * v]) ) at the label, C a classifier
    of three layers.
    """

    name = "infersent"
    version = 2  # 1: of pairs with negatives only contradictions were held out
    sheet = RecipeFile.beside(__file__)
    Config = InferSentConfig

    _steps_per_epoch = 1
    _dev_pairs: Sequence[Pair] = ()
    _heads: nn.Module | None = None
    _notes: Sequence[str] = ()

    @property
    def start_model(self) -> str:
        """Name of the vectors: no base model enters."""
        return str(self.config.vectors)

    @property
    def inputs(self) -> dict[str, str]:
        """Content hash of the vectors."""
        return {"vectors": vectors_hash(self.config.vectors)}

    def load_base(self) -> Encoder:
        """Load the word vectors, under an untrained LSTM.

        Raises:
            InputError: no such file of vectors, or one that is damaged.
        """
        config: InferSentConfig = self.config
        table = read_word_vectors(config.vectors, config.words)
        self._notes = describe_lost_capitals(table.row, config.lower_case)
        marks = (f"<{config.marks}>", f"</{config.marks}>")
        missing = [mark for mark in marks if mark not in table.row]
        count, d = table.matrix.shape
        new_rows = {mark: place for place, mark in enumerate(missing, count)}
        row = {**table.row, **new_rows}
        matrix = np.concatenate([table.matrix, np.zeros((len(missing), d), dtype=np.float32)])
        return RecurrentEncoder(
            make_marked_tokenizer(row, marks, config.tokens, config.lower_case),
            FrozenWords(torch.from_numpy(matrix)),
            nn.LSTM(d, config.hidden, batch_first=True, bidirectional=True),
            reduce=config.pooling,
            max_length=config.max_length,
        )

    def heads(self, encoder: Encoder) -> nn.Module:
        config: InferSentConfig = self.config
        between = nn.Tanh if config.nonlinear else nn.Identity
        inputs = encoder.dimension * len(split_parts(config.joined))
        heads = nn.Module()
        heads.classifier = nn.Sequential(
            nn.Linear(inputs, config.classifier),
            between(),
            nn.Linear(config.classifier, config.classifier),
            between(),
            nn.Linear(config.classifier, len(LABELS)),
        )
        # Buffers, so that a run that goes on from a checkpoint has the rate of the one that was not
        # interrupted.
        heads.register_buffer("updates", torch.zeros((), dtype=torch.long))
        heads.register_buffer("best", torch.full((), -1.0))
        heads.register_buffer("shrunk", torch.ones(()))
        self._heads = heads
        return heads

    def stream(self, corpus: Corpus, seed: int) -> BatchStream:
        examples = self.examples(corpus)
        of_each = examples.of_each
        apart: list[int] = []
        for item in hold_out(len(examples) // of_each, self.config.held_out, of_each):
            apart.extend(range(item * of_each, (item + 1) * of_each))
        if not apart:
            raise InputError(
                f"{len(examples)} labelled pairs leave none for held_out = "
                f"{self.config.held_out:g}",
                file=corpus.uri,
                remedy="give more pairs, or hold out a larger share",
            )
        self._dev_pairs = [examples[i] for i in apart]
        others = np.delete(np.arange(len(examples)), apart)
        rest: Any = Subset(examples, others.tolist())  # type: ignore[arg-type]
        stream = TrainedMethod.stream(self, rest, seed)
        self._steps_per_epoch = stream.steps_per_epoch
        return stream

    def optimizer(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """SGD without momentum."""
        return torch.optim.SGD(groups, lr=self.config.learning_rate)

    def schedule(self, step: int, steps: int) -> float:
        """Return decay^epoch, divided after each epoch whose dev accuracy was no better, after a
        warm-up.
        """
        config: InferSentConfig = self.config
        shrunk = float(self._heads.shrunk) if self._heads is not None else 1.0  # type: ignore[arg-type]
        decayed = shrunk * config.decay ** (step // self._steps_per_epoch)
        return config.warm_share(step, steps) * decayed

    def after_update(self, encoder: Encoder, heads: nn.Module) -> None:
        """Divide the learning rate after an epoch whose accuracy on the held-out pairs is no better
        than the best so far.
        """
        updates = cast(Tensor, heads.updates)
        best = cast(Tensor, heads.best)
        shrunk = cast(Tensor, heads.shrunk)
        updates += 1
        if int(updates) % self._steps_per_epoch:
            return
        accuracy = self._accuracy(encoder, heads)
        if accuracy > float(best):
            best.fill_(accuracy)
        else:
            shrunk /= self.config.shrink

    def _accuracy(self, encoder: Encoder, heads: nn.Module) -> float:
        size = self.config.batch_size
        correct = 0
        with evaluation(encoder), torch.no_grad():
            for start in range(0, len(self._dev_pairs), size):
                pairs = self._dev_pairs[start : start + size]
                logits = self._logits(encoder, heads, pairs)[:, : self._classes]
                correct += int((logits.argmax(1).cpu() == class_indices(pairs)).sum())
        return correct / len(self._dev_pairs)

    def _logits(self, encoder: Encoder, heads: nn.Module, pairs: Sequence[Pair]) -> Tensor:
        length = self.config.train_length
        ids = encoder.tokenize([pair.anchor for pair in pairs], max_length=length)
        ids += encoder.tokenize([pair.positive for pair in pairs], max_length=length)
        u, v = encoder(encoder.collate(ids)).split(len(pairs))
        features = join_vectors(u, v, split_parts(self.config.joined))
        return cast(Tensor, heads.classifier(features))  # type: ignore[operator]

    def loss(self, encoder: Encoder, heads: nn.Module, batch: Batch) -> dict[str, Tensor]:
        return self.loss_and_accuracy(self._logits(encoder, heads, batch.items), batch.items)

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Train; a note says where no word with a capital letter has a vector."""
        super().fit(corpus, context)
        if self._notes:
            self.fit_report.training.setdefault("notes", []).extend(self._notes)
        return self

    def num_parameters(self) -> int:
        """Return the number of values of the LSTM and of the word vectors."""
        return super().num_parameters() + cast(RecurrentEncoder, self.encoder).words.weight.numel()


def hold_out(count: int, share: float, of_each: int = 1) -> list[int]:
    """Return the places of items that are held out of 0 .. count - 1, evenly spread.

    Args:
        share: of the examples, of which each item makes `of_each`; a part of an example is none.

    >>> hold_out(10, 0.3), hold_out(48, 0.02), hold_out(48, 0.02, of_each=2)
    ([2, 5, 9], [], [47])
    """
    examples = math.floor(count * of_each * Fraction(str(share)))
    number = math.ceil(examples / of_each)
    return [place * count // number - 1 for place in range(1, number + 1)]


def make_marked_tokenizer(
    row: dict[str, int],
    marks: tuple[str, str],
    tokens: Literal["space", "punctuation"],
    lower_case: bool,
) -> PreTrainedTokenizerFast:
    """Return a tokenizer that gives the rows of a sentence's known words between those of the two
    marks, and leaves out other words.
    """
    from tokenizers import normalizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = word_tokenizer(row, tokens, lower_case, None)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase()] if lower_case else [])
    begin, end = marks
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(begin, row[begin]), (end, row[end])]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)
