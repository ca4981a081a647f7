"""Quick Thoughts: a sentence's neighbours in its document are distinguished from the other
sentences of the batch.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from harness.config import option
from harness.encoder import Encoder
from harness.errors import InputError
from harness.method import POOLING_HELP
from harness.recipes import RecipeFile
from harness.seeds import derive
from harness.sources import Corpus
from harness.training import Batch, BatchStream, TrainedMethod, TrainingConfig
from methods.parts.row_vectors import check_rows, check_temperature, full_precision, unit

Similarity = Literal["dot", "cosine"]
Own = Literal["left_out", "zero"]

# A sentence ends where a line does; after ". ! ?" (and closing quotes or brackets) if white space
# and then a capital, a digit or an opening mark follow, but not after a single capital, as in "J.
# S. Bach"; and after the full stop of Chinese and Japanese.
_END = re.compile(
    r"(?<!\b[^\Wa-z\d_])[.!?]+[\"'”’)\]]*(?=\s+[^\Wa-z_]|\s+[\"'“‘(\[])|[。！？]+[」』”]*|\n+"
)


def split_sentences(text: str) -> list[str]:
    """Split a document into its sentences, each with a letter or a digit in it at least.

    The rule is as simple as that: abbreviations such as "Dr. Smith" are split.
    """
    ends = [match.end() for match in _END.finditer(text)]
    sentences: list[str] = []
    begin = 0
    for end in [*ends, len(text)]:
        sentence = text[begin:end].strip()
        if any(map(str.isalnum, sentence)):
            sentences.append(sentence)
        begin = end
    return sentences


def neighbours(documents: np.ndarray, context: int) -> np.ndarray:
    """Return (n, n): True where j is at most `context` places from i, in the same document, and not i."""
    places = np.arange(len(documents))
    distance = np.abs(places[:, None] - places[None, :])
    same = documents[:, None] == documents[None, :]
    near: np.ndarray = same & (distance > 0) & (distance <= context)
    return near


@full_precision
def neighbour_loss(
    f: Tensor,
    g: Tensor,
    targets: Tensor,
    *,
    temperature: float = 1.0,
    similarity: Similarity = "dot",
    own: Own = "left_out",
) -> Tensor:
    """Tell the neighbours of every sentence from the other sentences of the batch.

    L = mean over i of -(1/|N_i|) sum_{j in N_i} log( exp(f_i . g_j / t) / sum_{k != i} exp(f_i .
    g_k / t) )

    over the sentences that have neighbours; 0 where none has.

    Args:
        f, g: (n, d), the two encoders' vectors of the same n sentences.
        targets: (n, n), non-zero where j is a neighbour of i (j in N_i); the diagonal is ignored.
        similarity: "dot" (the paper) or "cosine".
        own: a sentence among its own candidates: "left_out" (the paper), or "zero", a score of 0 in
            its place, which adds 1 to the denominator (the code).

    Source: Logeswaran & Lee, ICLR 2018, Eq. 1-3; lajanugen/S2V, s2v_model.py.
    """
    check_rows(f, g)
    check_temperature(temperature)
    if similarity == "cosine":
        f = unit(f)
        g = unit(g)
    itself = torch.eye(len(f), dtype=torch.bool, device=f.device)
    scores = f @ g.T / temperature
    scores = scores.masked_fill(itself, 0.0 if own == "zero" else float("-inf"))
    is_neighbour = (targets.to(f.device) != 0) & ~itself
    rows = is_neighbour.any(1)
    if not bool(rows.any()):
        return (f.sum() + g.sum()) * 0.0
    scores = scores[rows]
    is_neighbour = is_neighbour[rows]
    near = scores.masked_fill(~is_neighbour, 0.0).sum(1) / is_neighbour.sum(1)
    return (scores.logsumexp(1) - near).mean()


class QuickThoughtsConfig(TrainingConfig):
    """Defaults: the paper's objective, with the optimisation that suits a pretrained transformer."""

    pooling: str = option("mean", POOLING_HELP)
    batch_size: int = option(
        400,
        "consecutive sentences per training step",
        ge=2,
        sweep=[64, 128, 256, 400],
    )
    train_length: int = option(
        64, "maximum number of tokens in training, special tokens included", ge=4
    )
    context: int = option(1, "neighbours on each side that are positives", ge=1, sweep=[1, 2, 3])
    shared: bool = option(False, "one encoder for both sides instead of the paper's two")
    similarity: Similarity = option("dot", "dot product (paper) or cosine")
    temperature: float = option(
        1.0,
        "divides the similarities; the paper has none (1)",
        gt=0,
        sweep=(0.01, 10),
        log=True,
    )
    own: Own = option(
        "left_out",
        "a sentence among its own candidates: left_out (paper), or a score of zero (code)",
    )
    test: Literal["f", "better"] = option(
        "f", "encoder that is used: f, or whichever of f and g the dev set prefers"
    )


class QuickThoughts(TrainedMethod):
    """L = mean over i of -mean over neighbours j of log softmax_j( f(s_i) . g(s_j) / temperature )."""

    name = "quick_thoughts"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = QuickThoughtsConfig

    def heads(self, encoder: Encoder) -> nn.Module:
        heads = nn.Module()
        if not self.config.shared:
            heads.g = encoder.copy()
        return heads

    def stream(self, corpus: Corpus, seed: int) -> BatchStream:
        config = self.config
        return ConsecutiveSentences(
            corpus, batch_size=config.batch_size, seed=seed, drop_last=config.drop_last
        )

    def candidates(self, encoder: Encoder, heads: Any) -> tuple[Encoder, ...]:
        if self.config.test == "better" and not self.config.shared:
            return (encoder, heads.g)
        return (encoder,)

    def loss(self, encoder: Encoder, heads: Any, batch: Batch) -> dict[str, Tensor]:
        config = self.config
        features = encoder.collate(encoder.tokenize(batch.texts, max_length=config.train_length))
        g = encoder if config.shared else heads.g
        documents = np.array([getattr(item, "document", 0) for item in batch.items])
        targets = torch.from_numpy(neighbours(documents, config.context))
        loss = neighbour_loss(
            encoder(features),
            g(features),
            targets,
            temperature=config.temperature,
            similarity=config.similarity,
            own=config.own,
        )
        return {"loss": loss}


class Sentence(NamedTuple):
    """Sentence, and the place of its document in the corpus."""

    anchor: str
    document: int


class ConsecutiveSentences(BatchStream):
    """Batches of consecutive sentences: documents are shuffled every epoch and their sentences keep
    their order.
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        batch_size: int,
        seed: int,
        drop_last: bool = False,
    ) -> None:
        super().__init__(corpus, batch_size=batch_size, bucket=1, seed=seed, length_cap=1)
        self._counts = np.array([len(split_sentences(text)) for text in corpus])
        total = int(self._counts.sum())
        if int(self._counts.max()) < 2:
            raise InputError(
                f"corpus {corpus.uri}: no document has two sentences, so that none has a neighbour",
                file=corpus.uri,
                remedy="give whole texts",
            )
        self.batch_size = min(batch_size, total)
        whole, rest = divmod(total, self.batch_size)
        uses_rest = rest >= 2 and not drop_last
        self.steps_per_epoch = whole + 1 if uses_rest else whole

    def batch(self, step: int) -> Batch:
        """Return the batch of training step `step` (0-based, over all epochs)."""
        epoch, within = divmod(step, self.steps_per_epoch)
        order = self._order(epoch)
        ends = np.cumsum(self._counts[order])
        first = within * self.batch_size
        place = int(np.searchsorted(ends, first, side="right"))
        if place:
            skipped = first - int(ends[place - 1])
        else:
            skipped = first

        items: list[Sentence] = []
        for document in order[place:].tolist():
            if len(items) >= skipped + self.batch_size:
                break
            items += [Sentence(text, document) for text in split_sentences(self.corpus[document])]
        items = items[skipped : skipped + self.batch_size]
        return Batch(items, np.random.default_rng(derive(self.seed, f"views {step}")), step)
