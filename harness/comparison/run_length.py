"""How long a row trains: its updates, and the items of text that it sees in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.comparison.rows import Row

if TYPE_CHECKING:
    from harness.sources import Corpus
    from harness.training import BatchStream


@dataclass(frozen=True)
class RunLength:
    """What a row's batches come to; its items are sentences, pairs or documents.

    Attributes:
        updates: as planned.
        batch: items of an update.
        epoch: updates of a pass over the text, and `items` its items.
    """

    updates: int
    batch: int
    epoch: int
    items: int

    @property
    def seen(self) -> int:
        """Items in all updates; the short batch at the end of an epoch is counted there, wherever it stands."""
        epochs, rest = divmod(self.updates, self.epoch)
        return epochs * self.items + min(rest * self.batch, self.items)


def length_of(row: Row, corpus: Corpus | None, seed: int = 0) -> RunLength | None:
    """None for a row that is not trained by updates, or whose parts have batches of their own."""
    from harness.training import planned_steps

    stream = _stream(row, corpus, seed)
    if stream is None:
        return None
    updates = planned_steps(row.config, stream, row.max_steps)  # type: ignore[arg-type] # epochs and max_steps suffice
    return RunLength(updates, stream.batch_size, stream.steps_per_epoch, _items(stream))


def lengthened(config: Any, updates: int, epoch: int) -> Any:
    """The config with as many epochs as `updates` need; itself where it would make as many anyway."""
    changed: dict[str, Any] = {}
    if config.epochs * epoch < updates:
        changed["epochs"] = math.ceil(updates / epoch)
    if config.max_steps is not None and config.max_steps < updates:
        changed["max_steps"] = None
    return config.model_copy(update=changed) if changed else config


def _stream(row: Row, corpus: Corpus | None, seed: int) -> BatchStream | None:
    from harness.training import BatchStream, TrainedMethod

    if corpus is None:
        return None
    if issubclass(row.method, TrainedMethod):
        return row.method(row.config, base_model=row.base_model).stream(corpus, seed)
    if not {"batch_size", "epochs", "max_steps"} <= row.config.__class__.model_fields.keys():
        return None
    batch = row.config.batch_size  # type: ignore[attr-defined]
    return BatchStream(range(len(corpus)), batch_size=batch, bucket=1, seed=seed, length_cap=0)


def _items(stream: BatchStream) -> int:
    from harness.training import BatchStream

    if type(stream) is not BatchStream:  # its items need not be those of its corpus
        return stream.steps_per_epoch * stream.batch_size
    whole, rest = divmod(len(stream.corpus), stream.batch_size)
    return whole * stream.batch_size + (rest if rest >= stream.shortest else 0)
