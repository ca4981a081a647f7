"""Cross-batch memory (Wang et al., CVPR 2020): embeddings of earlier batches as further negatives."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from methods.parts.row_vectors import check_rows, check_temperature, full_precision, unit

MemoryTerms = Literal["library", "in_batch"]


@full_precision
def nt_xent_memory(
    a: Tensor,
    b: Tensor,
    older: Tensor,
    *,
    temperature: float,
    terms: MemoryTerms,
) -> Tensor:
    """`nt_xent_symmetric` with the m rows of `older` as negatives of every row; mean over 2n.

    l(x) = -log( exp(cos(x, partner)/t) / [sum_{y != x} exp(cos(x, y)/t) + sum_{o in older}
    exp(cos(x, o)/t)] )

    Args:
        a, b: (n, d); row i of one is the partner of row i of the other.
        older: (m, d), m >= 0; no gradient flows into it.
        terms: "in_batch": partner and in-batch negatives y carry their gradient (as DeCLUTR S6.2
            describes it);
            "library": they are read back from the memory, without gradient, so that only x learns
            from a term (what pytorch-metric-learning 0.9.98 does, which the ablation was run with).
    """
    check_rows(a, b)
    check_temperature(temperature)
    x = unit(torch.cat([a, b]))
    if terms == "library":
        in_batch = x.detach()
    else:
        in_batch = x
    keys = torch.cat([in_batch, unit(older.detach())])
    own = torch.eye(len(x), len(keys), dtype=torch.bool, device=x.device)
    logits = (x @ keys.T / temperature).masked_fill(own, float("-inf"))
    return functional.cross_entropy(logits, torch.arange(len(x), device=x.device).roll(len(a)))


class CrossBatchMemory(nn.Module):
    """Queue of the last `size` embeddings, newest first, in buffers, so that a run resumes with them.

    The last row of a batch counts as its newest: where the end of the queue cuts a batch in two,
    its first rows go.

    The library puts the current batch into the queue before it compares, so that of `size` places
    only those that the batch leaves hold older embeddings; with "in_batch" terms all `size` do.
    """

    rows: Tensor
    filled: Tensor

    def __init__(self, size: int, dimension: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(size, dimension))
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))

    def loss(self, a: Tensor, b: Tensor, *, temperature: float, terms: MemoryTerms) -> Tensor:
        """`nt_xent_memory` of a batch (n, d) and (n, d) against what the queue holds; then the
        batch joins it.

        Raises:
            ValueError: "library" terms of a batch that is larger than the queue.
        """
        size = len(self.rows)
        if terms == "in_batch":
            room = size
        else:
            room = size - 2 * len(a)
        if room < 0:
            raise ValueError(
                f"the memory holds {size} embeddings, fewer than the {2 * len(a)} of one batch"
            )
        value = nt_xent_memory(a, b, self.newest(room), temperature=temperature, terms=terms)
        self.push(torch.cat([a, b]))
        return value

    def newest(self, most: int | None = None) -> Tensor:
        """Return the newest embeddings (m, d), newest first: all of them, or at most `most`."""
        count = int(self.filled)
        if most is not None:
            count = min(count, most)
        return self.rows[:count]

    @torch.no_grad()
    def push(self, embeddings: Tensor) -> None:
        """Let a batch (n, d) join, its last row as the newest; the oldest ones go."""
        newest = embeddings.detach().to(self.rows.dtype).flip(0)
        # A new tensor, because the old one may still be needed by the backward pass.
        self.rows = torch.cat([newest, self.rows])[: len(self.rows)]
        self.filled.add_(len(newest)).clamp_(max=len(self.rows))
