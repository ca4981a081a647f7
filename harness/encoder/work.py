"""The work of encoders in training: tokens that they encoded, and operations in products of matrices.

A training step costs, for each token, 6 N operations, N the number of weights in products of matrices: 2 N forward and
4 N back (Kaplan et al. 2020, section 2.1). To that comes what attention multiplies, 12 L d t for a piece of a row of t,
with L layers of width d (Chowdhery et al. 2022, PaLM, appendix B). Weights and passes without a gradient count their
forward pass alone. Padding, what checkpointing computes twice, and heads are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn


class Work:
    """The work of all encoders inside of `counted`.

        >>> from harness.encoder import Encoder
        >>> work = Work()
        >>> encoder = Encoder.from_pretrained("embedded:mini-bert")
        >>> with work.counted():
        ...     vectors = encoder(encoder.collate(encoder.tokenize(["A dog runs."])))
        >>> work.tokens
        6

    Attributes:
        tokens: tokens, special tokens included and padding not; those of two views are counted twice.
        flops: operations in products of matrices, forward and back; a product and a sum are two.
    """

    def __init__(self) -> None:
        self.tokens, self.flops = 0, 0.0
        self._costs: WeakKeyDictionary[nn.Module, _Cost] = WeakKeyDictionary()

    def take(self) -> tuple[int, float]:
        """Tokens and flops since the last call; both counters are set to zero."""
        taken = self.tokens, self.flops
        self.tokens, self.flops = 0, 0.0
        return taken

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Inside the block every pass through an encoder is added."""
        token = _work.set(self)
        try:
            yield
        finally:
            _work.reset(token)

    def _add(self, module: nn.Module, lengths: Sequence[int]) -> None:
        cost = self._costs.get(module)
        if cost is None:
            cost = self._costs[module] = _cost(module)
        weights = cost.trained + cost.frozen
        back = 2 * cost.trained / max(weights, 1) if torch.is_grad_enabled() else 0.0  # relative to a forward pass
        tokens = sum(lengths)
        forward = 2 * weights * tokens + 4 * cost.attention * sum(n * n for n in lengths)
        self.tokens += tokens
        self.flops += (1 + back) * forward


_work: ContextVar[Work | None] = ContextVar("work", default=None)


def passes(module: nn.Module, rows: Tensor | Sequence[Sequence[int]]) -> None:
    """Report a pass through `module` to `Work.counted`, before it is made: of a mask (n, length) or of rows of ids.

    A mask on a GPU is waited for, so give that of `Network.collate`.

    >>> work = Work()
    >>> with work.counted():
    ...     passes(nn.Linear(3, 5), [[1, 2], [3, 4]])
    >>> work.tokens, work.flops  # 6 x 15 weights x 4 tokens
    (4, 360.0)
    """
    work = _work.get()
    if work is not None:
        work._add(module, rows.sum(1).tolist() if isinstance(rows, Tensor) else [len(row) for row in rows])


class _Cost(NamedTuple):
    trained: float  # weights that a token is multiplied with, and that learn
    frozen: float  # the others
    attention: int  # layers times their width


def _cost(module: nn.Module) -> _Cost:
    """Weights that count have two dimensions or more; embeddings are looked up, and a pooler sees one token."""
    config = getattr(getattr(module, "transformer", module), "config", None)
    depth, width = int(getattr(config, "num_hidden_layers", 0)), int(getattr(config, "hidden_size", 0))
    groups = int(getattr(config, "num_hidden_groups", 0)) or depth  # ALBERT's layers share their weights
    sums = {True: 0.0, False: 0.0}
    for name, part in module.named_modules():
        once = isinstance(part, nn.Embedding | nn.EmbeddingBag) or {"pooler", "head", "affine"} & set(name.split("."))
        for p in () if once else part.parameters(recurse=False):
            if p.ndim >= 2:
                sums[p.requires_grad] += p.numel() * (depth / groups if "layer_groups" in name else 1)
    return _Cost(sums[True], sums[False], depth * width)
