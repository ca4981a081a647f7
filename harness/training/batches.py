"""The items of each training step's batch: a function of corpus, seed and step alone, so that a run
can resume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from harness.seeds import derive
from harness.views.make import Batch


class BatchStream:
    """Batches by step number: shuffled per epoch, length-sorted inside megabatches, batch order
    shuffled again.

        >>> stream = BatchStream(["a", "b", "c", "d"], batch_size=2, bucket=1, seed=1, length_cap=10)
        >>> stream.steps_per_epoch
        2

    With bucket = 1 they are those of transformers' and PyTorch's shuffling samplers: any
    permutation, cut into batches. The order depends on (corpus, seed, batch size, bucket) only, so
    methods of one comparison see the same batches. A last batch of a single item is dropped: batch
    statistics need two. `drop_last` drops any that is shorter. `about` is what the run's report
    says of the items, such as how many a method left out.
    """

    def __init__(
        self,
        corpus: Sequence[Any],
        *,
        batch_size: int,
        bucket: int,
        seed: int,
        length_cap: int,
        drop_last: bool = False,
        about: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.corpus = corpus
        self.batch_size = min(batch_size, len(corpus))
        self.mega = bucket * self.batch_size
        self.bucket = bucket
        self.seed = seed
        self.length_cap = length_cap
        self.about = about
        self.shortest = self.batch_size if drop_last else 2
        whole, rest = divmod(len(corpus), self.batch_size)
        self.steps_per_epoch = whole + (1 if rest >= self.shortest else 0)
        self._epoch: tuple[int, np.ndarray] | None = None
        self._cut: tuple[tuple[int, int], list[np.ndarray]] | None = None

    def _order(self, epoch: int) -> np.ndarray:
        if self._epoch is None or self._epoch[0] != epoch:
            seed = derive(self.seed, f"data order {epoch}")
            rng = np.random.default_rng(seed)
            self._epoch = (epoch, rng.permutation(len(self.corpus)))
        return self._epoch[1]

    def _megabatch(self, epoch: int, number: int) -> list[np.ndarray]:
        if self._cut is None or self._cut[0] != (epoch, number):
            begin = number * self.mega
            indices = self._order(epoch)[begin : begin + self.mega]
            if self.bucket > 1:
                lengths = [min(self._length(int(i)), self.length_cap) for i in indices]
                indices = indices[np.argsort(lengths, kind="stable")]
            batches = []
            for i in range(0, len(indices), self.batch_size):
                batch = indices[i : i + self.batch_size]
                if len(batch) >= 2:
                    batches.append(batch)
            if self.bucket > 1:
                seed = derive(self.seed, f"batch order {epoch} {number}")
                rng = np.random.default_rng(seed)
                order = rng.permutation(len(batches))
                batches = [batches[i] for i in order]
            long_enough = [batch for batch in batches if len(batch) >= self.shortest]
            self._cut = ((epoch, number), long_enough)
        return self._cut[1]

    def _length(self, index: int) -> int:
        item = self.corpus[index]
        if isinstance(item, str):
            return len(item)
        return len(item.anchor)

    def batch(self, step: int) -> Batch:
        """The batch of training step `step` (0-based, over all epochs)."""
        epoch, within = divmod(step, self.steps_per_epoch)
        number, position = divmod(within, self.bucket)
        indices = self._megabatch(epoch, number)[position]
        rng = np.random.default_rng(derive(self.seed, f"views {step}"))
        items = [self.corpus[int(i)] for i in indices]
        return Batch(items, rng, step)
