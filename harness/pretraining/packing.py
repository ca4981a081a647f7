"""Text for pretraining: a vocabulary of word pieces, and token sequences of one length packed from many texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from transformers import BertTokenizer, PreTrainedTokenizerBase

from harness.encoder.sentences import clean
from harness.errors import InputError
from harness.seeds import derive

if TYPE_CHECKING:
    from harness.sources import Corpus

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_CHUNK = 4096  # texts tokenised at a time


class Texts:
    """The texts of several corpora, split by a seed into a training and a validation part."""

    def __init__(self, corpora: Sequence[Corpus], *, hold_out: float, seed: int) -> None:
        self._corpora = corpora
        self._ends = np.cumsum([len(corpus) for corpus in corpora])
        order = np.random.default_rng(derive(seed, "data order")).permutation(int(self._ends[-1]))
        held = min(max(1, round(hold_out * len(order))), len(order) - 1)
        self.held, self.kept = order[:held], order[held:]

    def read(self, places: NDArray[np.int64]) -> Iterator[str]:
        """The texts at `places`; of a pair all its sides."""
        for place in places:
            number = int(np.searchsorted(self._ends, place, side="right"))
            item = self._corpora[number][int(place - self._ends[number])]
            for text in (item,) if isinstance(item, str) else (item.anchor, item.positive, item.negative):
                if text:
                    yield clean(text)


def train_tokenizer(
    texts: Callable[[], Iterator[str]], *, size: int, lower: bool, length: int
) -> PreTrainedTokenizerBase:
    """A BERT tokenizer whose `size` word pieces (special tokens included; fewer in a small corpus) fit the texts.

    Pairs of pieces that are equally frequent are merged in the order of their ids, and the trainer gives out the ids of
    the letters in no fixed order. So a first pass finds the letters, and a second one takes them sorted: the same texts
    give the same vocabulary.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    def vocabulary(size: int, first: list[str]) -> dict[str, int]:
        backend = Tokenizer(models.WordPiece(unk_token=SPECIAL[1]))
        backend.normalizer = normalizers.BertNormalizer(lowercase=lower)
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(
            vocab_size=size, special_tokens=first, min_frequency=2, limit_alphabet=1000, show_progress=False
        )
        backend.train_from_iterator(texts(), trainer)
        return backend.get_vocab()

    letters = set(vocabulary(0, SPECIAL)) - set(SPECIAL)
    learned = vocabulary(size, [*SPECIAL, *sorted(letters)])
    return BertTokenizer(vocab=learned, do_lower_case=lower, model_max_length=length)


def pack(texts: Iterator[str], tokenizer: PreTrainedTokenizerBase, length: int) -> NDArray[np.int32]:
    """Sequences (n, length) without padding: the texts one after the other, a separator between them, cut to pieces
    that each get the tokenizer's special tokens around them. The last, incomplete piece is dropped."""
    prefix, suffix = _frame(tokenizer)
    separator = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
    between = [] if separator is None else [separator]
    parts: list[NDArray[np.int32]] = []
    chunk: list[str] = []

    def flush() -> None:
        rows = tokenizer(chunk, add_special_tokens=False, return_attention_mask=False, verbose=False)["input_ids"]
        parts.append(np.array([token for row in rows for token in [*row, *between]], dtype=np.int32))
        chunk.clear()

    for text in texts:
        chunk.append(text)
        if len(chunk) == _CHUNK:
            flush()
    if chunk:
        flush()
    flat = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
    body = length - len(prefix) - len(suffix)
    count = len(flat) // body
    blocks = np.empty((count, length), dtype=np.int32)
    blocks[:, : len(prefix)] = prefix
    blocks[:, len(prefix) : len(prefix) + body] = flat[: count * body].reshape(count, body)
    blocks[:, len(prefix) + body :] = suffix
    return blocks


def _frame(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """The special tokens before and after a text."""
    inner: list[int] = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole: list[int] = tokenizer("a")["input_ids"]
    start = next(i for i in range(len(whole)) if whole[i : i + len(inner)] == inner)
    return whole[:start], whole[start + len(inner) :]


def packed_parts(
    texts: Texts, tokenizer: PreTrainedTokenizerBase, length: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Training and validation sequences, both (n, length).

    Raises:
        InputError: one of the parts does not fill a single sequence.
    """
    train = pack(texts.read(texts.kept), tokenizer, length)
    held = pack(texts.read(texts.held), tokenizer, length)
    if not len(train) or not len(held):
        which = "validation part of the corpus" if len(train) else "corpus"
        raise InputError(
            f"the {which} has fewer tokens than one sequence of {length}; give more text, "
            "a shorter length or a larger hold_out"
        )
    return train, held
